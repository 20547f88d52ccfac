//! A walk along a straight line of parameters, from event to event.
//!
//! One parameter `t`, from 0 to 1, moves both costs and the perturbation linearly:
//!
//! ```text
//! c_i(t) = C+(t) or C-(t),     margin of the rows in M:  y_i w.x_i = 1 + (1 - t) e_i + t f_i
//! ```
//!
//! Between events the dual variables of `M` and `w` are linear in `t`. The same code walks a ray of costs for
//! thousands of rows (`e = f`), polishes an answer of the plane (costs fixed, `f = 0`) and makes sets of a
//! fit that is nearly exact (`e` are its errors). It works on the rows themselves, with `w` in memory, so
//! that its cost per event is O(|M|^2 + |M| nnz of a row) and not O(n).
//!
//! The margins of rows outside of `M` are not computed in every step: a margin moves by at most `|x_i|` times
//! the length of the path of `w`, so a row sleeps until that length could have brought it to the margin. A
//! heap holds the path lengths at which rows wake up.
//!
//! Where a row reaches the margin that depends on the rows in `M` (rounding, or the end of a walk to
//! `f = 0`), it replaces one of them: `w` stays, dual variables move along the dependency until one
//! is at its bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::keys::{Event, Side};
use super::margins::{Combination, Margins, PerturbedProblem};
use super::state::DEPENDENT;
use crate::fit::Monitor;
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Events between two corrections of dual variables and `w` by the residual of the margin system.
const CORRECT: usize = 16;
/// Residual of the margin system, relative to 1, at which the inverse is computed anew.
const MAX_RESIDUAL: f64 = 1e-9;
/// Events at one `t`, per member of `M`, after which the walk is taken to be cycling.
///
/// Tried: looking for a few rows whose events repeat. The cycle on a9a goes through more rows than are in
/// `M`, and was missed.
const AT_ONCE: usize = 10;
/// Events between two calls of the monitor.
const POLL: usize = 256;

/// A straight line in the plane of the costs: value at `t = 0` and slope of each.
#[derive(Clone, Copy, Debug)]
pub struct CostLine {
    /// `C+` and `C-`.
    pub cost: [[f64; 2]; 2],
}

/// A change of the sets on the way from `t = 0` to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breakpoint {
    /// Value of `t` at which the sets change.
    pub t: f64,
    /// The change.
    pub event: Event,
}

/// A key of the heap: total order over finite numbers, then rows.
#[derive(Clone, Copy, PartialEq)]
struct Wake(f64, u32);
impl Eq for Wake {}
impl PartialOrd for Wake {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Wake {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// A walk along a [`CostLine`], and where it is.
pub struct PathWalk<'a> {
    problem: PerturbedProblem<'a>,
    line: CostLine,
    t: f64,
    sides: Vec<Side>,
    margins: Margins<'a>,
    /// Position in `M` of every row.
    position: Vec<u32>,
    /// Dual variables of the members, and `w`.
    at: Combination,
    /// Sum of the signed rows on the left, per class.
    left: [Vec<f64>; 2],
    /// Rates of `at`.
    rate: Combination,
    /// A row that is about to enter, less its projection on the members.
    entrant: Combination,
    /// Largest rate of a target.
    largest: f64,
    /// Length of the path of `w` so far.
    path_length: f64,
    asleep: BinaryHeap<Reverse<Wake>>,
    awake: Vec<(u32, f64)>,
    /// Changes of the sets so far.
    pub breakpoints: Vec<Breakpoint>,
    since: usize,
}

impl<'a> PathWalk<'a> {
    /// A walk that begins at `t` with the given sets. Members that depend on others leave to the right.
    pub fn new(problem: PerturbedProblem<'a>, line: CostLine, t: f64, sides: &[Side]) -> Self {
        let (n, d) = (problem.rows.n_rows(), problem.rows.n_cols());
        let [from, to] = problem.perturbation;
        let largest = from.iter().zip(to).fold(0.0, |a: f64, (e, f)| a.max((f - e).abs()));
        let margins = Margins::new(problem);
        let empty = || Combination { alpha: Vec::new(), w: memory::zeros(d) };
        let mut walk = Self {
            problem,
            line,
            t,
            sides: memory::copy(sides),
            margins,
            position: memory::filled(u32::MAX, n),
            at: empty(),
            left: [memory::zeros(d), memory::zeros(d)],
            rate: empty(),
            entrant: empty(),
            largest,
            path_length: 0.0,
            asleep: BinaryHeap::new(),
            awake: Vec::new(),
            breakpoints: Vec::new(),
            since: 0,
        };
        let on = |side: Side| (0..n as u32).filter(move |&i| sides[i as usize] == side);
        for i in on(Side::Left) {
            walk.margins.add(i, 1.0, &mut walk.left[problem.class(i)]);
        }
        let members = on(Side::On).collect();
        walk.rebuild(members);
        let asleep =
            (0..n as u32).filter(|&i| walk.sides[i as usize] != Side::On).map(|i| Reverse(Wake(0.0, i)));
        walk.asleep = asleep.collect_large().into();
        walk
    }

    fn cost(&self, i: u32) -> f64 {
        let [at, rate] = self.line.cost[self.problem.class(i)];
        at + rate * self.t
    }

    fn cost_rate(&self, i: u32) -> f64 {
        self.line.cost[self.problem.class(i)][1]
    }

    /// The state of every row.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    /// `t` now.
    pub fn t(&self) -> f64 {
        self.t
    }

    /// The dual variables of all rows.
    pub fn alphas(&self) -> Vec<f64> {
        (0..self.sides.len())
            .map(|i| match self.sides[i] {
                Side::Left => self.cost(i as u32),
                Side::Right => 0.0,
                Side::On => self.at.alpha[self.position[i] as usize],
            })
            .collect_large()
    }

    /// Goes to `t = 1`.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Stalled`] when `max_steps` changes were not enough, or too many were at
    /// the same `t`.
    pub fn run(&mut self, max_steps: usize, monitor: &dyn Monitor) -> Result<()> {
        while self.t < 1.0 {
            if self.breakpoints.len().is_multiple_of(POLL) {
                monitor.poll()?;
                monitor.observe(&crate::fit::Progress {
                    solver: "cost ray",
                    iteration: self.breakpoints.len(),
                    accuracy: 1.0 - self.t,
                    search: None,
                });
            }
            if self.breakpoints.len() >= max_steps || self.is_cycling() {
                return Err(Error::Stalled { what: "the walk between facets", steps: max_steps });
            }
            if self.since >= CORRECT {
                self.correct();
            }
            self.set_rates();
            let (dt, event) = self.next_event();
            self.advance(dt);
            match event {
                Some(event) => self.apply(event),
                None => self.t = 1.0,
            }
        }
        self.correct();
        Ok(())
    }

    /// Whether so many events were at one `t` that they must repeat. On an axis, where a cost stays 0, all
    /// events of its class are at one `t`.
    fn is_cycling(&self) -> bool {
        let most = AT_ONCE * (self.margins.members().len() + 10);
        let is_at_once = self
            .breakpoints
            .len()
            .checked_sub(most)
            .is_some_and(|before| self.breakpoints[before].t >= self.t);
        is_at_once && !self.line.cost.contains(&[0.0; 2])
    }

    /// Solves the margin system of the present sets without perturbation.
    pub fn settle(&mut self) {
        self.margins.meet(&mut self.at, |_| 1.0);
        self.margins.meet(&mut self.at, |_| 1.0);
    }

    /// Rates of the members' dual variables and of `w`.
    fn set_rates(&mut self) {
        let costs = self.line.cost.map(|[_, rate]| rate);
        sum_left(&mut self.rate, self.margins.members().len(), &self.left, costs);
        let problem = self.problem;
        self.margins.meet(&mut self.rate, |i| problem.target_rate(i));
    }

    /// The nearest event, as a distance in `t` that ends at 1.
    fn next_event(&mut self) -> (f64, Option<Event>) {
        let mut best = (1.0 - self.t, None);
        for (k, &i) in self.margins.members().iter().enumerate() {
            let (alpha, rate) = (self.at.alpha[k], self.rate.alpha[k]);
            let (room, closing) = (self.cost(i) - alpha, rate - self.cost_rate(i));
            if rate < 0.0 {
                nearer(&mut best, alpha / -rate, Event::new(i, Side::On, Side::Right));
            }
            if closing > 0.0 {
                nearer(&mut best, room / closing, Event::new(i, Side::On, Side::Left));
            }
        }
        let speed = self.speed();
        self.awake.clear();
        while let Some(&Reverse(Wake(length, i))) = self.asleep.peek() {
            if length > self.path_length + speed * best.0 {
                break;
            }
            self.asleep.pop();
            let side = self.sides[i as usize];
            if side == Side::On {
                continue; // entered meanwhile; comes back when it leaves
            }
            let slack = self.margins.of(i, &self.at.w) - self.problem.target(i, self.t);
            let rate = self.margins.of(i, &self.rate.w) - self.problem.target_rate(i);
            self.awake.push((i, slack));
            let (distance, closing) = if side == Side::Left { (-slack, rate) } else { (slack, -rate) };
            if closing > 0.0 {
                nearer(&mut best, distance / closing, Event::new(i, side, Side::On));
            }
        }
        best
    }

    fn speed(&self) -> f64 {
        let squared: f64 = self.rate.w.iter().map(|w| w * w).sum();
        (squared + self.largest.powi(2)).sqrt()
    }

    fn advance(&mut self, dt: f64) {
        for (w, rate) in self.at.w.iter_mut().zip(&self.rate.w) {
            *w += dt * rate;
        }
        for (a, rate) in self.at.alpha.iter_mut().zip(&self.rate.alpha) {
            *a += dt * rate;
        }
        let before = self.path_length;
        self.path_length += self.speed() * dt;
        self.t += dt;
        // A row whose slack was computed sleeps until that slack can be used up.
        for (i, slack) in self.awake.drain(..) {
            let reach = (self.margins.squared(i) + 1.0).sqrt();
            let wake = before + slack.abs() / reach;
            self.asleep.push(Reverse(Wake(wake.max(self.path_length), i)));
        }
    }

    fn apply(&mut self, event: Event) {
        let i = event.row();
        match event.sides() {
            (Side::On, to) => {
                self.leave(i, to);
                self.note(event);
            }
            (from, _) => self.enter(i, from),
        }
        self.since += 1;
    }

    fn note(&mut self, event: Event) {
        memory::push(&mut self.breakpoints, Breakpoint { t: self.t, event });
    }

    fn leave(&mut self, i: u32, to: Side) {
        let k = self.position[i as usize] as usize;
        self.margins.leave(k);
        self.at.alpha.swap_remove(k);
        if let Some(&moved) = self.margins.members().get(k) {
            self.position[moved as usize] = k as u32;
        }
        self.position[i as usize] = u32::MAX;
        self.put(i, to);
        self.asleep.push(Reverse(Wake(self.path_length, i)));
    }

    /// Changes the side of a row outside of `M`, or about to be: keeps the sums of the left.
    fn put(&mut self, i: u32, to: Side) {
        let left = &mut self.left[self.problem.class(i)];
        let from = std::mem::replace(&mut self.sides[i as usize], to);
        if from == Side::Left {
            self.margins.add(i, -1.0, left);
        }
        if to == Side::Left {
            self.margins.add(i, 1.0, left);
        }
    }

    fn enter(&mut self, i: u32, from: Side) {
        let distance = self.margins.project(i, &mut self.entrant);
        if distance <= DEPENDENT * self.margins.squared(i) {
            return self.exchange(i, from);
        }
        let alpha = if from == Side::Left { self.cost(i) } else { 0.0 };
        self.margins.enter(i, &self.entrant, distance);
        self.put(i, Side::On);
        self.position[i as usize] = self.at.alpha.len() as u32;
        self.at.alpha.push(alpha);
        self.note(Event::new(i, from, Side::On));
    }

    /// Row `i` is the combination `-entrant.alpha` of the members: its dual variable moves off its bound,
    /// theirs against it, until one is at a bound.
    fn exchange(&mut self, i: u32, from: Side) {
        let towards = if from == Side::Left { -1.0 } else { 1.0 };
        let mut best = (self.cost(i), None);
        for (k, &m) in self.margins.members().iter().enumerate() {
            let rate = towards * self.entrant.alpha[k];
            let (alpha, cost) = (self.at.alpha[k], self.cost(m));
            if rate < 0.0 && alpha / -rate < best.0 {
                best = ((alpha / -rate).max(0.0), Some((m, Side::Right)));
            } else if rate > 0.0 && (cost - alpha) / rate < best.0 {
                best = (((cost - alpha) / rate).max(0.0), Some((m, Side::Left)));
            }
        }
        for (alpha, rate) in self.at.alpha.iter_mut().zip(&self.entrant.alpha) {
            *alpha += towards * best.0 * rate;
        }
        let Some((m, to)) = best.1 else {
            let to = if from == Side::Left { Side::Right } else { Side::Left };
            self.note(Event::new(i, from, Side::On));
            self.note(Event::new(i, Side::On, to));
            self.put(i, to);
            return self.asleep.push(Reverse(Wake(self.path_length, i)));
        };
        self.leave(m, to);
        self.note(Event::new(m, Side::On, to));
        self.note(Event::new(i, from, Side::On));
        self.put(i, Side::On);
        let mut members = self.margins.members().to_vec();
        members.push(i);
        self.rebuild(members);
    }

    /// Solves the margin system at `t` once more, from the dual variables as they are.
    fn correct(&mut self) {
        self.since = 0;
        if !self.margins.has_lost_digits()
            && (self.meet_targets() <= MAX_RESIDUAL || self.meet_targets() <= MAX_RESIDUAL)
        {
            return;
        }
        self.rebuild(self.margins.members().to_vec());
    }

    /// Moves `at` to the margins at `t`; the largest residual before.
    fn meet_targets(&mut self) -> f64 {
        let (problem, t) = (self.problem, self.t);
        self.margins.meet(&mut self.at, |i| problem.target(i, t))
    }

    /// Inverse, dual variables and `w` from the sets at `t`. Dependent members are put to the right.
    fn rebuild(&mut self, members: Vec<u32>) {
        for i in self.margins.rebuild(members) {
            self.position[i as usize] = u32::MAX;
            self.sides[i as usize] = Side::Right;
            self.note(Event::new(i, Side::On, Side::Right));
            self.asleep.push(Reverse(Wake(self.path_length, i)));
        }
        for (k, &i) in self.margins.members().iter().enumerate() {
            self.position[i as usize] = k as u32;
        }
        let t = self.t;
        sum_left(
            &mut self.at,
            self.margins.members().len(),
            &self.left,
            self.line.cost.map(|[at, rate]| at + rate * t),
        );
        for _ in 0..3 {
            self.meet_targets();
        }
        self.since = 0;
    }
}

/// The combination of no member: every row on the left at its cost.
fn sum_left(what: &mut Combination, members: usize, left: &[Vec<f64>; 2], costs: [f64; 2]) {
    for (k, w) in what.w.iter_mut().enumerate() {
        *w = costs[0] * left[0][k] + costs[1] * left[1][k];
    }
    what.alpha.clear();
    what.alpha.resize(members, 0.0);
}

/// Keeps the nearer of two events; a distance below zero is rounding.
fn nearer(best: &mut (f64, Option<Event>), distance: f64, event: Event) {
    if distance < best.0 {
        *best = (distance.max(0.0), Some(event));
    }
}
