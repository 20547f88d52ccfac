use super::*;
use crate::fit::Silent;
use crate::fit::penalised::tests::{entries, term};
use crate::fit::problem::Certificate;
use crate::fit::problem::Status;
use crate::matrix::Matrix;
use crate::matrix::dense::DenseView;
use crate::matrix::design::Design;
use proptest::prelude::*;

/// A small problem that owns its numbers.
struct Small {
    /// Rows with the constant column, if there is one.
    x: Vec<f64>,
    columns: Columns,
    class: Vec<u32>,
    n_classes: usize,
    cost: Vec<f64>,
    terms: Vec<Term>,
}

impl Small {
    /// `constant` is the term of the intercepts.
    fn new(x: &[f64], d: usize, n_classes: usize, mut terms: Vec<Term>, constant: Option<Term>) -> Self {
        let n = x.len() / d;
        let rows: Matrix<'_> = DenseView::new(x, n, d).unwrap().0.into();
        let bias = if constant.is_some() { 1.0 } else { 0.0 };
        let columns = Columns::of(&Design { rows: &rows, ids: None, bias });
        terms.extend(constant);
        let one = constant.map(|_| 1.0);
        let x = x.chunks(d).flat_map(|row| row.iter().copied().chain(one)).collect();
        // All classes first, then at random.
        let class_of = |i: usize| if i < n_classes { i } else { (i * i + 3 * i / 2 + i / 7) % n_classes };
        let class = (0..n).map(|i| class_of(i) as u32).collect();
        Self { x, columns, class, n_classes, cost: vec![1.0; n], terms }
    }

    fn with_costs(mut self, of: impl Fn(usize) -> f64) -> Self {
        self.cost = (0..self.class.len()).map(of).collect();
        self
    }

    fn problem(&self) -> PenalisedClasses<'_> {
        let Self { columns, class, n_classes, cost, terms, .. } = self;
        PenalisedClasses { columns, class, n_classes: *n_classes, cost, terms, reach: None }
    }

    fn solve(&self, tol: f64) -> PenalisedSolution {
        self.solve_from(tol, None)
    }

    fn solve_from(&self, tol: f64, start: Option<&[f64]>) -> PenalisedSolution {
        let params = Params { tol, ..Params::default() };
        solve(&self.problem(), &params, start, &Silent).unwrap()
    }

    /// The objective and its slopes, by loops.
    fn value_and_slope(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let (d, k) = (self.terms.len(), self.n_classes);
        let (mut value, mut slope) = (0.0, vec![0.0; d * k]);
        for (i, row) in self.x.chunks(d).enumerate() {
            let score = |class: usize| -> f64 { row.iter().zip(&w[class * d..]).map(|(x, w)| x * w).sum() };
            let z: Vec<f64> = (0..k).map(score).collect();
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
            let (own, c) = (self.class[i] as usize, self.cost[i]);
            value += c * (top - z[own] + sum.ln());
            for class in 0..k {
                let g = (z[class] - top).exp() / sum - if class == own { 1.0 } else { 0.0 };
                row.iter().zip(&mut slope[class * d..]).for_each(|(x, s)| *s += c * g * x);
            }
        }
        let penalty: f64 = w.iter().enumerate().map(|(j, w)| self.terms[j % d].value(*w)).sum();
        (value + penalty, slope)
    }

    /// The slow, obvious twin: proximal gradient steps with momentum, as many as it takes.
    fn twin(&self) -> f64 {
        let d = self.terms.len();
        let squares: f64 =
            self.x.chunks(d).zip(&self.cost).map(|(row, c)| c * row.iter().map(|x| x * x).sum::<f64>()).sum();
        let bend = (0.5 * squares).max(1e-9);
        let mut w: Vec<f64> = (0..d * self.n_classes).map(|j| self.terms[j % d].clip(0.0)).collect();
        let (mut from, mut best, mut t) = (w.clone(), f64::INFINITY, 1.0f64);
        for _ in 0..20_000 {
            let (_, slope) = self.value_and_slope(&from);
            let step = |j: usize| self.terms[j % d].minimiser(from[j], slope[j], bend);
            let next: Vec<f64> = (0..w.len()).map(step).collect();
            let (value, _) = self.value_and_slope(&next);
            let is_done = next.iter().zip(&from).all(|(a, b)| a == b);
            // A step that leads up begins anew.
            let later = if value > best { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt()) };
            let push = if value > best { 0.0 } else { (t - 1.0) / later };
            let moved = |j: usize| self.terms[j % d].clip(next[j] + push * (next[j] - w[j]));
            from = (0..w.len()).map(moved).collect();
            (w, t, best) = (next, later, best.min(value));
            if is_done {
                break;
            }
        }
        best
    }

    /// Checks a solution by itself: its primal value, bounds, and how far it is from optimal.
    fn check(&self, found: &PenalisedSolution, tol: f64) {
        assert_eq!(found.status, Status::Converged, "{found:?}");
        let d = self.terms.len();
        let (value, _) = self.value_and_slope(&found.w);
        let Certificate { primal, dual } = found.certificate;
        assert!((value - primal).abs() <= 1e-11 * primal.abs(), "{value} is not {primal}");
        assert!(dual <= primal && found.certificate.relative_gap() <= tol);
        for (j, w) in found.w.iter().enumerate() {
            let term = self.terms[j % d];
            assert!(term.lower <= *w && *w <= term.upper);
        }
        for j in (0..d).filter(|&j| self.terms[j].is_free()) {
            let of_column: Vec<f64> = found.w.iter().skip(j).step_by(d).copied().collect();
            let size: f64 = of_column.iter().map(|w| w.abs()).sum();
            assert!(of_column.iter().sum::<f64>().abs() <= 1e-14 * (1.0 + size));
        }
    }
}

fn constant(kind: usize) -> Option<Term> {
    [None, Some(Term::FREE), Some(Term { l1: 1.0, ..Term::FREE }), Some(Term { l2: 1.0, ..Term::FREE })][kind]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn finds_the_twins_optimum(
        n in 5..24usize,
        d in 1..7usize,
        n_classes in 3..6usize,
        kind in 0..16usize,
        intercept in 0..4usize,
        cost in 0.02..8.0f64,
        seed in 0..9999u64,
    ) {
        let terms = (0..d).map(|j| term(kind, j)).collect();
        let small = Small::new(&entries(n, d, seed), d, n_classes, terms, constant(intercept));
        let costs = |i: usize| if i > n_classes && i % 5 == 4 { 0.0 } else { cost * (1.0 + (i % 3) as f64) };
        let small = small.with_costs(costs);
        let found = small.solve(1e-9);
        small.check(&found, 1e-9);
        let best = small.twin();
        let Certificate { primal, dual } = found.certificate;
        prop_assert!(dual <= best * (1.0 + 1e-14), "dual {} above {}", dual, best);
        prop_assert!(primal <= best * (1.0 + 1e-8), "primal {} above {}", primal, best);
        // From its own answer nothing is left to do; from nonsense the same answer.
        let again = small.solve_from(1e-9, Some(&found.w));
        prop_assert!(again.n_iter <= 1 && again.certificate.relative_gap() <= 1e-9);
        let nonsense: Vec<f64> = (0..found.w.len()).map(|j| j as f64 % 5.0 - 2.0).collect();
        let other = small.solve_from(1e-9, Some(&nonsense));
        prop_assert!((other.certificate.primal - primal).abs() <= 1e-8 * primal, "{:?} {:?}", other, found);
    }

    /// Without a solution to compare with: the certificate is the proof. Empty and equal columns, factors of
    /// 0 and infinity.
    #[test]
    fn any_costs_are_solved_and_proved(
        n in 5..40usize,
        d in 2..8usize,
        n_classes in 3..6usize,
        exponent in -4..5i32,
        intercept in 0..4usize,
        l1 in prop::sample::select(vec![0.0, 0.5, 1.0]),
        seed in 0..9999u64,
    ) {
        let mut x = entries(n, d, seed);
        x.chunks_mut(d).for_each(|row| {
            row[d - 1] = row[0];
            if d > 3 {
                row[1] = 0.0;
            }
        });
        x[..d].fill(0.0);
        let mut terms = vec![Term { l1, l2: 1.0 - l1, ..Term::FREE }; d];
        if d > 4 {
            terms[2] = Term { l1: 0.0, l2: 0.0, lower: 0.0, upper: 0.0 };
        }
        if d > 5 {
            // A column that all rows of one class share has no finite best weight without a bound.
            terms[3] = Term { lower: -2.0, upper: 2.0, l1: 0.0, l2: 0.0 };
        }
        let small = Small::new(&x, d, n_classes, terms, constant(intercept));
        let small = small.with_costs(|i| 10f64.powi(exponent) * (1.0 + (i % 2) as f64));
        let found = small.solve(1e-7);
        small.check(&found, 1e-7);
        let (_, slope) = small.value_and_slope(&found.w);
        let width = small.terms.len();
        for (j, (w, slope)) in found.w.iter().zip(&slope).enumerate() {
            let miss = small.terms[j % width].violation(*w, *slope);
            // Slopes have the size of the costs, and a gap is about the square of a miss.
            let size = 1.0 + 10f64.powi(exponent) * n as f64;
            prop_assert!(miss <= 2e-3 * size, "{} at {}", miss, j);
        }
    }

    #[test]
    fn weights_leave_zero_at_the_largest_null_cost(n in 6..30usize, d in 1..8usize, seed in 0..9999u64) {
        let terms = vec![Term { l1: 0.7, ..Term::FREE }; d];
        let mut small = Small::new(&entries(n, d, seed), d, 3, terms, Some(Term::FREE));
        if let Some(c) = largest_null_cost(&small.problem(), &Silent).unwrap() {
            let mut nonzero = |c: f64| {
                small.cost.fill(c);
                let found = small.solve(1e-10).w;
                found.iter().enumerate().filter(|(j, w)| j % (d + 1) < d && **w != 0.0).count()
            };
            prop_assert_eq!(nonzero(c * 0.999), 0);
            prop_assert!(nonzero(c * 1.01) > 0);
        }
    }

    /// Two classes with squares alone: the weights of one are the opposite of the other's, and a binary
    /// problem with half the penalty has their difference.
    #[test]
    fn two_classes_are_a_binary_problem(
        n in 4..20usize,
        d in 1..6usize,
        cost in 0.1..5.0f64,
        seed in 0..999u64,
    ) {
        use crate::fit::penalised::{PenalisedProblem, solve as solve_binary};
        let small = Small::new(&entries(n, d, seed), d, 2, vec![Term { l2: 1.0, ..Term::FREE }; d], None);
        let small = small.with_costs(|_| cost);
        let found = small.solve(1e-10);
        let y: Vec<f64> = small.class.iter().map(|class| f64::from(*class) * 2.0 - 1.0).collect();
        let terms = vec![Term { l2: 0.5, ..Term::FREE }; d];
        let (columns, cost) = (&small.columns, &small.cost[..]);
        let problem = PenalisedProblem { columns, y: &y, cost, terms: &terms, reach: None };
        let params = Params { tol: 1e-10, ..Params::default() };
        let binary = solve_binary(&problem, crate::loss::LossKind::Logistic, &params, None, &Silent).unwrap();
        let [ours, its] = [found.certificate, binary.certificate];
        prop_assert!(ours.dual <= its.primal * (1.0 + 1e-12) && its.dual <= ours.primal * (1.0 + 1e-12));
        for j in 0..d {
            prop_assert!((found.w[d + j] - found.w[j] - binary.w[j]).abs() <= 1e-4);
        }
    }

    /// Both forms of the model have the slopes and curvatures of the losses themselves.
    #[test]
    fn models_have_the_losses_curvature(
        n in 4..30usize,
        d in 1..5usize,
        scale in 0.1..30.0f64,
        seed in 0..999u64,
    ) {
        use crate::fit::penalised::entries::RowModels;
        let small = Small::new(&entries(n, d, seed), d, 3, vec![Term { l1: 1.0, ..Term::FREE }; d], None);
        let problem = small.problem();
        let all = problem.coordinates();
        let list: Vec<u32> = (0..all.len() as u32).filter(|j| j % 4 != 1).collect();
        let w: Vec<f64> = entries(1, all.len(), seed + 1).iter().map(|w| scale * w).collect();
        let losses = Losses::at(&problem, all.decisions(&w));
        let slope = all.slopes(&list, &losses.slope);
        let mut chosen = ChosenColumns::of(all, &list).unwrap();
        let [matrix, other] = [true, false].map(|is_dense| {
            chosen.is_dense = is_dense;
            problem.matrix(&chosen, &list, &losses, &Silent).unwrap()
        });
        for (a, b) in matrix.iter().zip(&other) {
            prop_assert!((a - b).abs() <= 1e-12 * (1.0 + a.abs()), "by tiles {a}, by places {b}");
        }
        let mut models = problem.row_models(&list, &losses, &slope);
        let by: Vec<f64> = entries(1, list.len(), seed + 2);
        let mut along = vec![0.0; all.n_decisions()];
        by.iter().enumerate().for_each(|(k, by)| models.spread(k, *by, &mut along));
        let promised = models.change(&along);
        let m = list.len();
        let quadratic: f64 = (0..m * m).map(|at| by[at / m] * matrix[at] * by[at % m]).sum();
        let linear: f64 = by.iter().zip(&slope).map(|(by, s)| by * s).sum();
        prop_assert!((promised - linear - 0.5 * quadratic).abs() <= 1e-10 * (1.0 + quadratic.abs()));
        prop_assert!(quadratic >= -1e-14);
        let mut bent = along.clone();
        models.bend_times(&mut bent);
        for k in 0..m {
            prop_assert!((models.bend(k) - matrix[k * m + k]).abs() <= 1e-12 * (1.0 + matrix[k * m + k]));
            let product: f64 = (0..m).map(|l| matrix[k * m + l] * by[l]).sum();
            prop_assert!((models.gather(k, &bent) - product).abs() <= 1e-10 * (1.0 + product.abs()));
            if seed % 2 == 0 {
                models.shift(k, by[k]);
            }
        }
        if seed % 2 == 1 {
            models.go(&along);
        }
        for k in 0..m {
            let product: f64 = (0..m).map(|l| matrix[k * m + l] * by[l]).sum();
            prop_assert!((models.slope(k) - slope[k] - product).abs() <= 1e-10 * (1.0 + product.abs()));
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_threads() {
    let (n, d) = (3000, 12);
    let terms = vec![Term { l1: 0.8, l2: 0.2, ..Term::FREE }; d];
    let small = Small::new(&entries(n, d, 5), d, 4, terms, Some(Term::FREE)).with_costs(|_| 0.3);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| small.solve(1e-8))
    };
    let (one, three) = (run(1), run(3));
    small.check(&one, 1e-8);
    assert_eq!(one.w, three.w);
    assert_eq!(one.certificate, three.certificate);
}

#[test]
fn overflow_is_an_error_and_a_stop_is_heard() {
    struct Asked;
    impl Monitor for Asked {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let terms = vec![Term { l1: 1.0, ..Term::FREE }; 2];
    let small = Small::new(&entries(9, 2, 1), 2, 3, terms, Some(Term::FREE));
    let huge = vec![1e308; 9];
    let found = solve(&small.problem(), &Params::default(), Some(&huge), &Silent);
    assert!(matches!(found, Err(Error::Overflow { .. })), "{found:?}");
    let found = solve(&small.problem(), &Params::default(), None, &Asked);
    assert!(matches!(found, Err(Error::Cancelled)));
}
