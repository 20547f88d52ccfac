//! The dual bound of a free intercept: a copy of the dual variables moved onto
//! `sum_i u_im = sum_{i: y_i = m} c_i` for all classes.
//!
//! A class with too little in total takes from classes with too much, within rows: moving `delta` from class
//! `p` to class `m` in a row keeps the row's sum and costs `delta (G_ip - G_im)` of the dual value to first
//! order, nothing at the optimum where both are positive. So rows where both are positive go first, then any
//! row with something on `p`. That always suffices: a class with too much has at least the excess on its
//! rows.

use super::descent::ClassDescent;
use super::kernels::Change;
use super::rows::{Entry, Lists};
use super::setup::POLL_STEPS;
use super::weights::ClassWeights;
use crate::fit::monitor::Monitor;
use crate::{Result, memory};

/// Share of all costs that is rounding of sums over rows.
const ROUNDING: f64 = 1e-13;

/// Which classes may take in a row.
#[derive(Clone, Copy, PartialEq)]
enum Takers {
    /// Those with a positive variable.
    Present,
    /// Any.
    Any,
}

/// How the dual variables of a row move: `w_m += delta x_i` for each change.
pub struct Move {
    /// The row.
    pub row: u32,
    /// The change of one class.
    pub change: Change,
}

/// The moves onto the constraint, those of a row's visit side by side, and the sum of `c_i - u_{i,y_i}` after
/// them. They depend on no entry of the data.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn moves(
    lists: Lists,
    class: &[u32],
    cost: &[f64],
    n_classes: usize,
    monitor: &dyn Monitor,
) -> Result<(Vec<Move>, f64)> {
    let mut repair = Repair {
        lack: vec![0.0; n_classes],
        exact: ROUNDING * cost.iter().sum::<f64>(),
        sum: lists.sum_of_others(class),
        lists,
        list: Vec::new(),
        moves: Vec::new(),
    };
    for (i, own) in class.iter().enumerate() {
        repair.lack[*own as usize] += cost[i];
        let Repair { lists, lack, .. } = &mut repair;
        lists.get(i).iter().for_each(|entry| lack[entry.class as usize] -= entry.u);
    }
    for takers in [Takers::Present, Takers::Any] {
        for (i, own) in class.iter().enumerate() {
            if i % POLL_STEPS == 0 {
                monitor.poll()?;
                if repair.is_done() {
                    break;
                }
            }
            repair.row(i, *own, takers);
        }
    }
    Ok((repair.moves, repair.sum))
}

/// A copy of the dual variables on their way.
struct Repair {
    lists: Lists,
    /// What each class lacks; negative where it has too much.
    lack: Vec<f64>,
    /// Lack that is none.
    exact: f64,
    /// `sum_i (c_i - u_{i,y_i})`.
    sum: f64,
    list: Vec<Entry>,
    moves: Vec<Move>,
}

impl ClassDescent<'_> {
    /// Dual value of the repaired copy.
    pub(super) fn repaired_dual(&self) -> Result<f64> {
        let (moves, sum) = moves(self.lists().clone(), self.class, self.cost, self.n_classes, self.monitor)?;
        let (mut w, mut changes): (ClassWeights, Vec<Change>) = (self.w.clone(), Vec::new());
        for (k, same) in moves.chunk_by(|a, b| a.row == b.row).enumerate() {
            if k % POLL_STEPS == 0 {
                self.monitor.poll()?;
            }
            changes.clear();
            changes.extend(same.iter().map(|step| step.change));
            w.add(self.plain, same[0].row as usize, &changes);
        }
        Ok(sum - 0.5 * w.squared(self.n_penalised()))
    }
}

impl Repair {
    fn is_done(&self) -> bool {
        self.lack.iter().all(|lack| *lack >= -self.exact)
    }

    /// Moves what it can in one row.
    fn row(&mut self, i: usize, own: u32, takers: Takers) {
        self.list.clear();
        self.list.extend_from_slice(self.lists.get(i));
        let before = self.moves.len();
        for p in 0..self.list.len() {
            let from = self.list[p].class;
            while self.list[p].u > 0.0 && self.lack[from as usize] < -self.exact {
                let Some(m) = self.taker(own, takers) else { break };
                let to = self.list[m].class;
                let delta = self.list[p].u.min(-self.lack[from as usize]).min(self.lack[to as usize]);
                self.list[p].u -= delta;
                self.list[m].u += delta;
                self.lack[from as usize] += delta;
                self.lack[to as usize] -= delta;
                self.sum += if from == own { delta } else { 0.0 } - if to == own { delta } else { 0.0 };
                let changes = [Change { class: from, delta }, Change { class: to, delta: -delta }];
                memory::extend(&mut self.moves, changes.map(|change| Move { row: i as u32, change }));
            }
        }
        if self.moves.len() > before {
            self.lists.set(i, &self.list);
        }
    }

    /// Position in the list of a class that lacks something: the row's own, or the neediest.
    fn taker(&mut self, own: u32, takers: Takers) -> Option<usize> {
        let (lack, exact) = (&self.lack, self.exact);
        if takers == Takers::Present {
            return self.list.iter().position(|entry| entry.u > 0.0 && lack[entry.class as usize] > exact);
        }
        let neediest =
            (0..lack.len() as u32).max_by(|a, b| lack[*a as usize].total_cmp(&lack[*b as usize]))?;
        let class = if lack[own as usize] > exact { own } else { neediest };
        if lack[class as usize] <= exact {
            return None;
        }
        let found = self.list.iter().position(|entry| entry.class == class);
        Some(found.unwrap_or_else(|| {
            self.list.push(Entry { u: 0.0, class });
            self.list.len() - 1
        }))
    }
}
