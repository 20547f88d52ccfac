//! The order of the values of `C`, and the reasons to end.
//!
//! ```text
//! pass:     C_min -> ratio C_min -> ratio^2 C_min -> ...          or an explicit rising list
//! refine:                    L ---- l ---- B ---- r ---- R     l, r: midpoints in log C around the best, B
//! ```
//!
//! The **pass** goes upwards, each value from the solutions at the one before. It ends at the last value, or
//! by the rule of [`StopRule`]. A plateau of the score is no reason to end: accuracy is flat over whole
//! decades of `C` on many sets and rises after them (Chu15, section 3.3.2).
//!
//! What counts as **no change** is not what Chu15, eq. (24), asks for, a gradient of the solution at the `C`
//! before of at most `eps` times that at zero. Here a solution is unchanged where the fit at the next `C`
//! would stop at once: for Newton by Chu15, eq. (28), whose bound is that of eq. (24) times
//! `min(pos, neg) / n`, so stricter by a factor of 2 at least, and with [`StopRule::Exact`] by the height of
//! the objective ([`super::primal`]); for other solvers by their duality gap.
//! Deviation: unless asked for, three such values do not end a pass; [`StopRule::Exact`] does. Eq. (24) as
//! printed is [`StopRule::Gradient`], for Newton only: what it needs, the gradient of each start, other
//! solvers do not have.
//!
//! **Refinement** bisects in `log C` around the best score (the smallest such `C`): one round visits the
//! midpoints between it and its visited neighbours, so that each round halves the spacing. Every fit starts
//! from the kept state of the nearest smaller `C`, since warm starts run upwards (Chu15, section 3.1). States
//! kept: that of the best, of its left neighbour, and those of the visits of the running round: four at most.

use std::collections::VecDeque;

use crate::{Error, Result};

/// Successive values of `C` without a change that end a search by [`StopRule::Unchanged`], as many as in
/// Chu15, eq. (24).
pub const UNCHANGED_TO_STOP: usize = 3;
/// The same for [`StopRule::Liblinear`].
pub const LIBLINEAR_TO_STOP: usize = 5;
/// Rounding that `C_max` allows to a product of many factors.
const SLACK: f64 = 1e-12;

/// The values of the pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// From `c_min` (the bound of [`super::lower_bound`] if `None`) by the factor `ratio`, as long as `c_max`
    /// is not passed.
    Range {
        /// First value.
        c_min: Option<f64>,
        /// Limit.
        c_max: f64,
        /// Factor, above 1.
        ratio: f64,
    },
    /// These, which must rise.
    List(Vec<f64>),
}

/// When a pass may end before its last value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRule {
    /// As soon as no solution can change any more up to the last value, which loses nothing.
    Exact,
    /// When no solution has changed for three successive values: as Chu15, eq. (24), but by the stop of the
    /// fits, for Newton eq. (28).
    Unchanged,
    /// By Chu15, eq. (24): at three successive values of `C`, the gradient of every lane's solution at the
    /// value before is at most `tol` times that at zero. Newton's searches only.
    Gradient,
    /// As `find_parameter_C` of LIBLINEAR counts: five successive values without a change, the first value of
    /// all among them, since there is nothing before it to differ from.
    Liblinear,
}

impl StopRule {
    /// Checks that the fits of a search tell what the rule needs; `is_newton` of a smooth loss and the square
    /// of the weights, in memory.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(self, is_newton: bool) -> Result<()> {
        if self != Self::Gradient || is_newton {
            return Ok(());
        }
        let rule = "of a search by Newton's method (solver 'auto' or 'newton', a smooth loss, squares of the \
                    weights, each class against the rest, rows in memory): give 'exact', 'unchanged' or \
                    'liblinear'";
        Err(Error::Parameter { name: "stop", value: "'gradient'".into(), rule })
    }
}

/// Values and rules of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    /// The values of the pass.
    pub values: Values,
    /// Rounds of bisection after it.
    pub refine: usize,
    /// How the pass may end early.
    pub stop: StopRule,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// By the stop rule, before the last value.
    Unchanged,
    /// At `c_max`.
    CMax,
    /// At the end of the list.
    List,
    /// By the caller's time limit.
    TimeLimit,
    /// By the caller's visit.
    Visit,
}

/// Where to go next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The value.
    pub c: f64,
    /// The visited value whose state to start from; `None` for the first.
    pub from: Option<f64>,
}

/// What the plan must know of a finished step.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// The value.
    pub c: f64,
    /// Its score, the larger the better; NaN is worse than any number.
    pub score: f64,
    /// [`super::SearchStep::is_unchanged`].
    pub is_unchanged: bool,
    /// [`super::SearchStep::starts_near`].
    pub starts_near: bool,
    /// [`super::SearchStep::unchanged_until`].
    pub unchanged_until: f64,
}

/// A plan with the values visited so far and those to come.
pub struct SearchSchedule {
    plan: SearchPlan,
    /// By rising `C`.
    visited: Vec<Visited>,
    queue: VecDeque<Target>,
    /// Successive values so far that count for the rule.
    run: usize,
    rounds_left: usize,
    /// How the pass ended, once it has.
    ended: Option<EndReason>,
}

impl SearchSchedule {
    /// Checks the plan; `bound` gives the first value where the plan leaves it open.
    ///
    /// # Errors
    /// [`Error::Parameter`]; those of `bound`.
    pub fn new(plan: &SearchPlan, bound: impl FnOnce() -> Result<f64>) -> Result<Self> {
        let first = match &plan.values {
            Values::Range { c_min: Some(c_min), c_max, ratio } => first_of_range(*c_min, *c_max, *ratio)?,
            Values::Range { c_min: None, c_max, ratio } => first_from_data(bound()?, *c_max, *ratio)?,
            Values::List(values) => first_of_list(values)?,
        };
        let queue = VecDeque::from([Target { c: first, from: None }]);
        let rounds_left = plan.refine;
        Ok(Self { plan: plan.clone(), visited: Vec::new(), queue, run: 0, rounds_left, ended: None })
    }

    /// The next value, or `None` at the end.
    pub fn next(&self) -> Option<Target> {
        self.queue.front().copied()
    }

    /// Takes note of the step to [`Self::next`].
    pub fn record(&mut self, step: Visited) {
        self.queue.pop_front();
        let at = self.visited.partition_point(|v| v.c < step.c);
        self.visited.insert(at, step);
        if self.ended.is_none() {
            match self.end_of_pass(&step) {
                None => self.queue.extend(self.following(step.c).map(|c| Target { c, from: Some(step.c) })),
                reason => self.ended = reason,
            }
        }
        if self.ended.is_some() && self.queue.is_empty() && self.rounds_left > 0 {
            self.rounds_left -= 1;
            self.queue = self.midpoints();
        }
    }

    /// Why the search ended, once [`Self::next`] is `None`.
    pub fn reason(&self) -> EndReason {
        self.ended.unwrap_or(self.limit())
    }

    /// Whether any target may start from another state than the last.
    pub fn returns(&self) -> bool {
        self.plan.refine > 0
    }

    /// Whether a later target may start from the state at `c`.
    pub fn needs(&self, c: f64) -> bool {
        if self.queue.iter().any(|target| target.from == Some(c)) {
            return true;
        }
        let best = self.best();
        self.rounds_left > 0 && (best.saturating_sub(1)..=best).any(|k| self.visited[k].c == c)
    }

    fn limit(&self) -> EndReason {
        if matches!(self.plan.values, Values::List(_)) { EndReason::List } else { EndReason::CMax }
    }

    /// Bound of all values.
    pub fn last(&self) -> f64 {
        match &self.plan.values {
            Values::Range { c_max, .. } => *c_max,
            Values::List(values) => values[values.len() - 1],
        }
    }

    fn following(&self, c: f64) -> Option<f64> {
        match &self.plan.values {
            Values::Range { c_max, ratio, .. } => {
                Some(c * ratio).filter(|next| *next <= c_max * (1.0 + SLACK))
            }
            Values::List(values) => values.iter().copied().find(|next| *next > c),
        }
    }

    fn end_of_pass(&mut self, step: &Visited) -> Option<EndReason> {
        let counts = match self.plan.stop {
            StopRule::Exact | StopRule::Unchanged => step.is_unchanged,
            StopRule::Gradient => step.starts_near,
            StopRule::Liblinear => step.is_unchanged || self.visited.len() == 1,
        };
        self.run = if counts { self.run + 1 } else { 0 };
        if self.following(step.c).is_none() {
            return Some(self.limit());
        }
        let is_over = match self.plan.stop {
            StopRule::Exact => step.unchanged_until >= self.last(),
            StopRule::Unchanged | StopRule::Gradient => self.run >= UNCHANGED_TO_STOP,
            StopRule::Liblinear => self.run >= LIBLINEAR_TO_STOP,
        };
        is_over.then_some(EndReason::Unchanged)
    }

    /// Position of the best score, the first among equals; 0 if nothing is visited.
    fn best(&self) -> usize {
        let mut best = 0;
        for (k, v) in self.visited.iter().enumerate() {
            let held = self.visited[best].score;
            if v.score > held || (held.is_nan() && !v.score.is_nan()) {
                best = k;
            }
        }
        best
    }

    fn midpoints(&self) -> VecDeque<Target> {
        let best = self.best();
        let pairs = self.visited[best.saturating_sub(1)..].windows(2).take(if best == 0 { 1 } else { 2 });
        let middle = |pair: &[Visited]| {
            let (low, high) = (pair[0].c, pair[1].c);
            let c = low * (high / low).sqrt();
            (low < c && c < high).then_some(Target { c, from: Some(low) })
        };
        pairs.filter_map(middle).collect()
    }
}

fn refused<T>(name: &'static str, value: f64, rule: &'static str) -> Result<T> {
    Err(Error::Parameter { name, value: value.to_string(), rule })
}

fn first_of_range(c_min: f64, c_max: f64, ratio: f64) -> Result<f64> {
    if !(ratio > 1.0 && ratio.is_finite()) {
        return refused("ratio", ratio, "a finite number above 1");
    }
    if !(c_min > 0.0 && c_min.is_finite()) {
        return refused("C_min", c_min, "a finite number above 0");
    }
    if !(c_max >= c_min && c_max.is_finite()) {
        return refused("C_max", c_max, "finite and not below C_min");
    }
    Ok(c_min)
}

/// A first value that was computed is not the caller's mistake: the message says where it comes from.
fn first_from_data(first: f64, c_max: f64, ratio: f64) -> Result<f64> {
    if c_max.is_finite() && c_max < first {
        let value = format!(
            "{c_max} below {first} (C_min was not given: computed from the weights and norms of the rows)"
        );
        let rule = "not below the first value of C, which weights far below 1 make large: raise C_max or the \
                    weights, or give C_min";
        return Err(Error::Parameter { name: "C_max", value, rule });
    }
    first_of_range(first, c_max, ratio)
}

fn first_of_list(values: &[f64]) -> Result<f64> {
    let Some(&first) = values.first() else {
        return Err(Error::Parameter { name: "Cs", value: "[]".into(), rule: "at least one value" });
    };
    if let Some(&c) = values.iter().find(|c| !(**c > 0.0 && c.is_finite())) {
        return refused("Cs", c, "finite numbers above 0");
    }
    match values.windows(2).find(|pair| pair[1] <= pair[0]) {
        Some(pair) => {
            let value = format!("{} after {}", pair[1], pair[0]);
            Err(Error::Parameter { name: "Cs", value, rule: "strictly rising" })
        }
        None => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(c_min: f64, c_max: f64, refine: usize, stop: StopRule) -> SearchPlan {
        SearchPlan { values: Values::Range { c_min: Some(c_min), c_max, ratio: 2.0 }, refine, stop }
    }

    /// Walks a plan whose score falls with the distance from `peak` in log C; `fact` gives (is unchanged,
    /// until). Checks that every start is a value whose state was kept, and that no more than four are.
    fn walk(plan: &SearchPlan, peak: f64, fact: impl Fn(f64) -> (bool, f64)) -> (Vec<f64>, EndReason) {
        let mut schedule = SearchSchedule::new(plan, || panic!("C_min is given")).unwrap();
        let (mut values, mut kept) = (Vec::new(), Vec::<f64>::new());
        while let Some(target) = schedule.next() {
            assert_eq!(target.from.is_none(), values.is_empty());
            if let Some(from) = target.from {
                assert!(kept.contains(&from) && from < target.c);
                let nearest = values.iter().copied().filter(|c| *c < target.c).fold(0.0, f64::max);
                assert_eq!(from, nearest);
            }
            let (is_unchanged, unchanged_until) = fact(target.c);
            let score = -(target.c.log2() - peak).abs();
            let starts_near = target.c >= 2.0;
            schedule.record(Visited { c: target.c, score, is_unchanged, starts_near, unchanged_until });
            values.push(target.c);
            kept.push(target.c);
            kept.retain(|c| schedule.needs(*c));
            assert!(kept.len() <= 4);
        }
        (values, schedule.reason())
    }

    fn changing(c: f64) -> (bool, f64) {
        (false, c)
    }

    #[test]
    fn a_pass_doubles_to_the_limit() {
        let (values, reason) = walk(&range(0.5, 7.9, 0, StopRule::Exact), 0.0, changing);
        assert_eq!((values, reason), (vec![0.5, 1.0, 2.0, 4.0], EndReason::CMax));
    }

    #[test]
    fn a_list_is_visited_as_it_is() {
        let plan = SearchPlan { values: Values::List(vec![0.1, 3.0, 4.0]), refine: 0, stop: StopRule::Exact };
        assert_eq!(walk(&plan, 0.0, changing), (vec![0.1, 3.0, 4.0], EndReason::List));
        assert_eq!(
            walk(&plan, 0.0, |c| (false, if c > 1.0 { 4.0 } else { c })),
            (vec![0.1, 3.0], EndReason::Unchanged)
        );
    }

    #[test]
    fn the_exact_rule_needs_the_whole_rest() {
        let until =
            |limit: f64| walk(&range(1.0, 64.0, 0, StopRule::Exact), 0.0, |c| (c > 1.0, limit.max(c)));
        assert_eq!(until(63.9), (vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], EndReason::CMax));
        assert_eq!(until(64.0), (vec![1.0], EndReason::Unchanged));
    }

    #[test]
    fn counting_rules_count() {
        let from_8 = |stop| walk(&range(1.0, 1e9, 0, stop), 0.0, |c| (c >= 8.0, c)).0.len();
        assert_eq!((from_8(StopRule::Unchanged), from_8(StopRule::Liblinear)), (6, 8));
        let all = |stop| walk(&range(1.0, 1e9, 0, stop), 0.0, |c| (c > 1.0, c)).0.len();
        assert_eq!((all(StopRule::Unchanged), all(StopRule::Liblinear)), (4, 5));
        // By the starts, which are near from 2 on: 1, 2, 4, 8.
        assert_eq!(from_8(StopRule::Gradient), 4);
    }

    #[test]
    fn rounds_halve_the_spacing_around_the_best() {
        for peak in [-9.0, -0.3, 0.0, 1.3, 2.0, 3.21, 5.0, 9.0] {
            for refine in 1..6 {
                let (values, _) = walk(&range(0.5, 64.0, refine, StopRule::Exact), peak, changing);
                let inside = peak.clamp(-1.0, 6.0);
                let nearest = values.iter().map(|c| (c.log2() - inside).abs()).fold(f64::INFINITY, f64::min);
                assert!(
                    nearest <= 0.5f64.powi(refine as i32 + 1) + 1e-12,
                    "peak {peak}, {refine} rounds: {nearest}"
                );
                assert!(values.len() <= 8 + 2 * refine);
            }
        }
    }

    #[test]
    fn nan_is_the_worst_score() {
        let mut schedule = SearchSchedule::new(&range(1.0, 4.0, 1, StopRule::Exact), || Ok(1.0)).unwrap();
        for score in [f64::NAN, f64::NEG_INFINITY, f64::NAN] {
            let c = schedule.next().unwrap().c;
            schedule.record(Visited {
                c,
                score,
                is_unchanged: false,
                starts_near: false,
                unchanged_until: c,
            });
        }
        assert_eq!(schedule.next().unwrap().c, 2f64.sqrt());
    }

    #[test]
    fn bisection_ends_where_no_number_lies_between() {
        let c = 1.0f64;
        let plan =
            SearchPlan { values: Values::List(vec![c, c.next_up()]), refine: 9, stop: StopRule::Exact };
        assert_eq!(walk(&plan, 0.0, changing).0.len(), 2);
    }

    #[test]
    fn bad_plans_are_refused() {
        let message =
            |plan: &SearchPlan| SearchSchedule::new(plan, || Ok(f64::NAN)).err().unwrap().to_string();
        assert!(message(&range(2.0, 1.0, 0, StopRule::Exact)).contains("C_max"));
        assert!(message(&range(0.0, 1.0, 0, StopRule::Exact)).contains("C_min"));
        let values = Values::Range { c_min: None, c_max: 1024.0, ratio: 2.0 };
        let plan = SearchPlan { values, refine: 0, stop: StopRule::Exact };
        let text = SearchSchedule::new(&plan, || Ok(4096.0)).err().unwrap().to_string();
        assert!(
            ["got 1024 below 4096", "C_min was not given", "weights", "raise C_max"]
                .iter()
                .all(|s| text.contains(s)),
            "{text}"
        );
        for (list, part) in [(vec![], "at least one"), (vec![1.0, 1.0], "1 after 1"), (vec![f64::NAN], "NaN")]
        {
            let plan = SearchPlan { values: Values::List(list), refine: 0, stop: StopRule::Exact };
            assert!(message(&plan).contains(part));
        }
    }
}
