use proptest::prelude::*;

use super::*;
use crate::fit::params::SolverKind;
use crate::fit::{Params, Silent};
use crate::matrix::Matrix;
use crate::matrix::dense::DenseView;

/// A small problem, dense, and its slow twin.
#[derive(Clone, Debug)]
struct Small {
    values: Vec<f64>,
    class: Vec<u32>,
    cost: Vec<f64>,
    n_columns: usize,
    n_classes: usize,
    intercept: Intercept,
}

impl Small {
    fn solve(&self, solver: SolverKind, tol: f64, max_iter: usize) -> MultinomialSolution {
        let rows = Matrix::from(DenseView::new(&self.values, self.class.len(), self.n_columns).unwrap().0);
        let problem = ClassProblem {
            rows: &rows,
            ids: None,
            class: &self.class,
            n_classes: self.n_classes,
            cost: &self.cost,
            intercept: self.intercept,
        };
        let params = Params { solver, tol, max_iter, seed: 3 };
        solve(&problem, &params, &Silent).unwrap()
    }

    /// `sum_i c_i (1 - p_iy) (z_i's spread + log K)`: in units of this rounding errors of the terms, and of
    /// the constraint of free intercepts, are paid for.
    fn doubt(&self, found: &MultinomialSolution) -> f64 {
        let (d, k) = (self.n_columns, self.n_classes);
        let w: Vec<Vec<f64>> = (0..k).map(|m| found.weights.class(m, d)).collect();
        let of_row = |(i, x): (usize, &[f64])| {
            let z: Vec<f64> = (0..k)
                .map(|m| found.intercepts[m] + x.iter().zip(&w[m]).map(|(x, w)| x * w).sum::<f64>())
                .collect();
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let lowest = z.iter().copied().fold(f64::INFINITY, f64::min);
            let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
            let own = (z[self.class[i] as usize] - top).exp() / sum;
            self.cost[i] * (1.0 - own) * (top - lowest + (k as f64).ln())
        };
        self.values.chunks(d).enumerate().map(of_row).sum()
    }

    /// Objective and largest entry of the gradient, straight from the definition.
    fn objective(&self, found: &MultinomialSolution) -> (f64, f64) {
        let (d, k) = (self.n_columns, self.n_classes);
        let w: Vec<Vec<f64>> = (0..k).map(|m| found.weights.class(m, d)).collect();
        let mut value = 0.5 * w.iter().flatten().map(|w| w * w).sum::<f64>();
        let mut gradient = w.clone();
        let mut of_intercepts = vec![0.0; k];
        if let Intercept::Penalised(scale) = self.intercept {
            value += 0.5 * found.intercepts.iter().map(|b| (b / scale).powi(2)).sum::<f64>();
            for (g, b) in of_intercepts.iter_mut().zip(&found.intercepts) {
                *g = b / scale / scale;
            }
        }
        for (i, x) in self.values.chunks(d).enumerate() {
            let z: Vec<f64> = (0..k)
                .map(|m| found.intercepts[m] + x.iter().zip(&w[m]).map(|(x, w)| x * w).sum::<f64>())
                .collect();
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
            value += self.cost[i] * (top + sum.ln() - z[self.class[i] as usize]);
            for m in 0..k {
                let is_own = if self.class[i] as usize == m { 1.0 } else { 0.0 };
                let slope = self.cost[i] * ((z[m] - top).exp() / sum - is_own);
                gradient[m].iter_mut().zip(x).for_each(|(g, x)| *g += slope * x);
                of_intercepts[m] += slope;
            }
        }
        let of_intercepts = if self.intercept == Intercept::None { vec![] } else { of_intercepts };
        let largest = gradient.iter().flatten().chain(&of_intercepts).map(|g| g.abs()).fold(0.0, f64::max);
        (value, largest)
    }
}

/// The objective and its derivatives over rows with a constant column, with unknowns class by class.
struct Twin<'s> {
    small: &'s Small,
    rows: Vec<Vec<f64>>,
    penalty: Vec<f64>,
}

impl<'s> Twin<'s> {
    fn of(small: &'s Small) -> Self {
        let (constant, penalty) = match small.intercept {
            Intercept::None => (0.0, 1.0),
            Intercept::Free => (1.0, 0.0),
            Intercept::Penalised(scale) => (scale, 1.0),
        };
        let rows = small.values.chunks(small.n_columns).map(|x| [x, &[constant]].concat()).collect();
        let mut of_column = vec![1.0; small.n_columns];
        of_column.push(penalty);
        Self { small, rows, penalty: of_column.repeat(small.n_classes) }
    }

    fn value(&self, theta: &[f64]) -> f64 {
        let penalty: f64 = theta.iter().zip(&self.penalty).map(|(t, p)| 0.5 * p * t * t).sum();
        let losses = (0..self.rows.len()).map(|i| {
            let (z, p) = self.row(theta, i);
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log = (z.iter().map(|z| (z - top).exp()).sum::<f64>()).ln();
            debug_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            self.small.cost[i] * (top + log - z[self.small.class[i] as usize])
        });
        penalty + losses.sum::<f64>()
    }

    fn row(&self, theta: &[f64], i: usize) -> (Vec<f64>, Vec<f64>) {
        let x = &self.rows[i];
        let z: Vec<f64> = theta.chunks(x.len()).map(|w| w.iter().zip(x).map(|(w, x)| w * x).sum()).collect();
        let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
        let p = z.iter().map(|z| (z - top).exp() / sum).collect();
        (z, p)
    }

    /// Newton's direction, with the sum of free intercepts held at 0.
    fn step(&self, theta: &[f64]) -> Vec<f64> {
        let (m, k, n) = (self.small.n_columns + 1, self.small.n_classes, theta.len());
        let mut gradient: Vec<f64> = theta.iter().zip(&self.penalty).map(|(t, p)| t * p).collect();
        let mut hessian = vec![vec![0.0; n]; n];
        for (i, x) in self.rows.iter().enumerate() {
            let (c, (_, p)) = (self.small.cost[i], self.row(theta, i));
            for a in 0..k {
                let is_own = if self.small.class[i] as usize == a { 1.0 } else { 0.0 };
                for j in 0..m {
                    gradient[a * m + j] += c * (p[a] - is_own) * x[j];
                }
                for b in 0..k {
                    let curvature = c * (if a == b { p[a] } else { 0.0 } - p[a] * p[b]);
                    for j in 0..m {
                        for l in 0..m {
                            hessian[a * m + j][b * m + l] += curvature * x[j] * x[l];
                        }
                    }
                }
            }
        }
        for a in 0..n {
            hessian[a][a] += self.penalty[a];
        }
        if self.small.intercept == Intercept::Free {
            (0..k * k).for_each(|ab| hessian[ab / k * m + m - 1][ab % k * m + m - 1] += 1.0);
        }
        solved(hessian, gradient.iter().map(|g| -g).collect())
    }

    /// The least value, by Newton's method with halved steps as long as that falls.
    fn least(&self) -> f64 {
        let mut theta = vec![0.0; self.penalty.len()];
        let mut value = self.value(&theta);
        loop {
            let step = self.step(&theta);
            let next = (0..60).find_map(|h| {
                let moved: Vec<f64> = theta.iter().zip(&step).map(|(t, s)| t + 0.5f64.powi(h) * s).collect();
                let there = self.value(&moved);
                (there < value).then_some((moved, there))
            });
            match next {
                Some(found) => (theta, value) = found,
                None => return value,
            }
        }
    }
}

/// `a x = b` by elimination with pivots.
fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for j in 0..n {
        let pivot = (j..n).max_by(|r, s| a[*r][j].abs().total_cmp(&a[*s][j].abs())).unwrap();
        a.swap(j, pivot);
        b.swap(j, pivot);
        let (above, below) = a.split_at_mut(j + 1);
        for (r, row) in below.iter_mut().enumerate() {
            let factor = row[j] / above[j][j];
            row.iter_mut().zip(&above[j]).for_each(|(x, y)| *x -= factor * y);
            b[j + 1 + r] -= factor * b[j];
        }
    }
    for j in (0..n).rev() {
        let rest: f64 = (j + 1..n).map(|l| a[j][l] * b[l]).sum();
        b[j] = (b[j] - rest) / a[j][j];
    }
    b
}

fn problems() -> impl Strategy<Value = Small> {
    let shapes = (3..12usize, 1..5usize, 4..40usize, 0..3u8, -2..7i32, any::<u32>());
    shapes.prop_map(|(k, d, extra, intercept, power, seed)| {
        let n = k + extra;
        let number = |a: usize, b: usize| {
            let mixed = (a as u64 * 2_654_435_761 + b as u64 * 40_503 + u64::from(seed))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        };
        let class: Vec<u32> = (0..n)
            .map(|i| if i < k { i as u32 } else { (number(i, 7) * 97.0).abs() as u32 % k as u32 })
            .collect();
        let values = (0..n * d).map(|j| 4.0 * number(j, 1) + f64::from(class[j / d] % 3)).collect();
        let c = 4f64.powi(power);
        let cost = (0..n).map(|i| c * (0.75 + number(i, 2))).collect();
        let intercept = [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)][intercept as usize];
        Small { values, class, cost, n_columns: d, n_classes: k, intercept }
    })
}

/// So many random cases, unless the environment says how many.
fn cases(n: u32) -> ProptestConfig {
    if std::env::var_os("PROPTEST_CASES").is_some() {
        ProptestConfig::default()
    } else {
        ProptestConfig::with_cases(n)
    }
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn both_solvers_find_the_optimum_and_no_gap_is_understated(small in problems()) {
        let least = Twin::of(&small).least();
        let exact = small.solve(SolverKind::Newton, 1e-11, 1000);
        let (optimum, gradient) = small.objective(&exact);
        prop_assert!((optimum / least - 1.0).abs() <= 1e-11, "{optimum} {least}");
        prop_assert!(exact.certificate.dual <= least * (1.0 + 1e-13), "{:?} {least}", exact.certificate);
        // What double precision can prove where huge costs meet rows on the wrong side. The certificate takes
        // off 2^-52 (rows + widest logits + 100) of the terms' sizes, at most 2e-13 for these 50 rows and the
        // 709 that an exponential reaches; scores add up to 0, so that a term is at most twice its spread.
        let doubt = small.doubt(&exact) / optimum;
        let gap = exact.certificate.relative_gap();
        prop_assert!(gap <= 1e-11 + 1e-12 * doubt, "{gap} {doubt}");
        prop_assert!(exact.status == Status::Converged || gap > 1e-11);
        prop_assert!((exact.certificate.primal - optimum).abs() <= 1e-12 * optimum);
        prop_assert!(gradient <= 1e-3 * optimum.sqrt().max(1.0), "gradient {gradient}");
        for (solver, tol, max_iter) in [
            (SolverKind::Newton, 1e-2, 1000),
            (SolverKind::Newton, 1e-1, 1),
            (SolverKind::DualCd, 1e-2, 1000),
            (SolverKind::DualCd, 1e-5, 20),
            (SolverKind::DualCd, 1e-9, 2),
            (SolverKind::Auto, 1e-6, 1000),
        ] {
            let found = small.solve(solver, tol, max_iter);
            let (value, _) = small.objective(&found);
            prop_assert!((found.certificate.primal / value - 1.0).abs() <= 1e-11);
            let dual = found.certificate.dual;
            prop_assert!(dual <= least * (1.0 + 1e-13), "{dual} {least}");
            prop_assert!(value >= least * (1.0 - 1e-13), "{value} {least}");
            if max_iter == 1000 && solver != SolverKind::DualCd {
                prop_assert_eq!(found.status, Status::Converged);
            }
            if found.status == Status::Converged {
                prop_assert!(found.certificate.relative_gap() <= tol);
                prop_assert!(value <= optimum * (1.0 + tol));
            }
            if small.intercept == Intercept::Free {
                let sum: f64 = found.intercepts.iter().sum();
                let size: f64 = found.intercepts.iter().map(|b| b.abs()).sum();
                prop_assert!(sum.abs() <= 1e-9 * (1.0 + size), "{sum}");
            }
        }
    }
}

/// Rows of many classes in text-like shape.
fn wide(n: usize, d: usize, k: usize) -> (Vec<i64>, Vec<i32>, Vec<f64>, Vec<u32>) {
    let (mut indptr, mut indices, mut values, mut class) = (vec![0], vec![], vec![], vec![]);
    for i in 0..n {
        let own = i * i % k;
        let mut columns: Vec<i32> = (0..12).map(|j| ((i * 31 + j * j * 17) % d) as i32).collect();
        columns.push((own * 3 % d) as i32);
        columns.sort_unstable();
        columns.dedup();
        values.extend(columns.iter().map(|j| 0.2 + 0.1 * f64::from(j % 4)));
        indices.extend(columns);
        indptr.push(indices.len() as i64);
        class.push(own as u32);
    }
    // Every class has a row.
    for m in 0..k {
        class[m] = m as u32;
    }
    (indptr, indices, values, class)
}

#[test]
fn threads_change_no_bit() {
    for k in [3, 20, 70] {
        let (indptr, indices, values, class) = wide(3000, 400, k);
        let (x, _) = crate::matrix::csr::CsrView::new(&indptr, &indices, &values, 400).unwrap();
        let (x, cost) = (Matrix::from(x), vec![2.0; 3000]);
        for intercept in [Intercept::None, Intercept::Free] {
            for solver in [SolverKind::Newton, SolverKind::DualCd] {
                let run = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| {
                        let (class, cost) = (&class[..], &cost[..]);
                        let problem =
                            ClassProblem { rows: &x, ids: None, class, n_classes: k, cost, intercept };
                        let params = Params { solver, tol: 1e-3, max_iter: 200, seed: 0 };
                        let found = solve(&problem, &params, &Silent).unwrap();
                        assert_eq!(found.status, Status::Converged);
                        let weights: Vec<f64> = (0..k).flat_map(|m| found.weights.class(m, 400)).collect();
                        (weights, found.intercepts, found.certificate)
                    })
                };
                assert_eq!(run(1), run(3), "{k} {intercept:?} {solver:?}");
            }
        }
    }
}

#[test]
fn a_thousand_classes_and_separable_rows_at_a_large_cost() {
    let (n, k) = (3000, 1000);
    let (indptr, indices, values, class) = wide(n, 3000, k);
    let (x, _) = crate::matrix::csr::CsrView::new(&indptr, &indices, &values, 3000).unwrap();
    let (x, cost) = (Matrix::from(x), vec![1.0; n]);
    let problem = ClassProblem {
        rows: &x,
        ids: None,
        class: &class,
        n_classes: k,
        cost: &cost,
        intercept: Intercept::Free,
    };
    let params = Params { tol: 1e-2, ..Params::default() };
    let found = solve(&problem, &params, &Silent).unwrap();
    assert!(found.status == Status::Converged && found.certificate.relative_gap() <= 1e-2);

    let small = Small {
        values: (0..30).map(|i| f64::from(i % 3) + 0.01 * f64::from(i / 3)).collect(),
        class: (0..30).map(|i| i % 3).collect(),
        cost: vec![1024.0; 30],
        n_columns: 1,
        n_classes: 3,
        intercept: Intercept::Free,
    };
    for solver in [SolverKind::Auto, SolverKind::Newton] {
        let found = small.solve(solver, 1e-8, 1000);
        assert_eq!(found.status, Status::Converged);
    }
}

#[test]
fn a_row_of_weight_two_is_the_row_twice() {
    let base = Small {
        values: (0..40).map(|i| f64::from(i * i % 17) - 8.0).collect(),
        class: (0..20).map(|i| i % 4).collect(),
        cost: (0..20).map(|i| if i % 3 == 0 { 2.0 } else { 1.0 }).collect(),
        n_columns: 2,
        n_classes: 4,
        intercept: Intercept::Free,
    };
    let mut twice = Small { cost: vec![1.0; 20], ..base.clone() };
    for i in (0..20).step_by(3) {
        twice.values.extend_from_slice(&base.values[2 * i..2 * i + 2]);
        twice.class.push(base.class[i]);
        twice.cost.push(1.0);
    }
    let [a, b] = [&base, &twice].map(|small| small.solve(SolverKind::Auto, 1e-10, 1000));
    assert!((a.certificate.primal / b.certificate.primal - 1.0).abs() < 1e-9);
    for m in 0..4 {
        for (a, b) in a.weights.class(m, 2).iter().zip(b.weights.class(m, 2)) {
            assert!((a - b).abs() < 1e-3);
        }
    }
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn fits_begin_at_the_best_multiple_of_a_dual_point(small in problems(), rise in 0..8u32) {
        let rows = Matrix::from(DenseView::new(&small.values, small.class.len(), small.n_columns).unwrap().0);
        let costs: Vec<f64> = small.cost.iter().map(|c| c * f64::from(1 << rise)).collect();
        let problem = |cost| ClassProblem {
            rows: &rows,
            ids: None,
            class: &small.class,
            n_classes: small.n_classes,
            cost,
            intercept: small.intercept,
        };
        for solver in [SolverKind::Newton, SolverKind::DualCd] {
            let params = Params { solver, tol: 1e-2, max_iter: 30, seed: 3 };
            let first = solve_from(&problem(&small.cost), None, &params, &Silent).unwrap();
            let left = SoftmaxStart::of(first.point);
            prop_assert_eq!(matches!(left, SoftmaxStart::Logits(..)), solver == SolverKind::DualCd);
            let there = problem(&costs);
            let setup = certified_setup(&there, &Silent);
            let start = left.clone().into_dual(&setup).unwrap();
            // By the definition: p from the logits, W from p, the value from both.
            let (lines, k, d) = (setup.lines, small.n_classes, setup.design.n_cols());
            let mut w = vec![0.0; d * k];
            let (mut entropy, mut of_start) = (0.0, vec![]);
            for (i, u) in start.logits.chunks(lines).enumerate() {
                let p: Vec<f64> = u.as_flattened()[..k].iter().map(|u| u.exp()).collect();
                prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                let own = small.class[i] as usize;
                entropy -= costs[i] * p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
                for m in 0..k {
                    let change = costs[i] * (if m == own { 1.0 } else { 0.0 } - p[m]);
                    let x = &small.values[i * small.n_columns..][..small.n_columns];
                    x.iter().enumerate().for_each(|(j, x)| w[m * d + j] += change * x);
                    if d > small.n_columns {
                        w[m * d + d - 1] += change * setup.design.bias;
                    }
                }
                of_start.push((costs[i], own, p));
            }
            let squared = w.iter().map(|w| w * w).sum::<f64>();
            let size = entropy + squared;
            prop_assert!((entropy - 0.5 * squared - start.value).abs() <= 1e-9 * size);
            for m in 0..k {
                for (a, b) in start.w.class(m).iter().zip(&w[m * d..]) {
                    prop_assert!((a - b).abs() <= 1e-8 * size.sqrt().max(1.0), "{a} {b}");
                }
            }
            // Multiples of the point of the start, up to the end of the interval.
            for factor in [0.5f64, 0.9, 0.99, 1.01, 1.1].into_iter().filter(|f| f * start.factor <= 1.0) {
                let point = |(c, own, p): &(f64, usize, Vec<f64>)| {
                    let off = |m: usize| if m == *own { 1.0 } else { 0.0 };
                    let q = (0..k).map(|m| off(m) - factor * (off(m) - p[m]));
                    -c * q.filter(|q| *q > 0.0).map(|q| q * q.ln()).sum::<f64>()
                };
                let value = of_start.iter().map(point).sum::<f64>() - 0.5 * factor * factor * squared;
                prop_assert!(value <= start.value + 1e-4 * size, "{factor}: {value} {}", start.value);
            }
            let params = Params { tol: 1e-6, max_iter: 1000, ..params };
            let next = solve_from(&there, Some(left), &params, &Silent).unwrap();
            let close = Params { solver: SolverKind::Newton, tol: 1e-9, ..params };
            let cold = solve(&there, &close, &Silent).unwrap();
            let (warm, best) = (next.certificate, cold.certificate.primal);
            // By the solver's own figures, rounding not counted.
            prop_assert!(warm.dual <= best * (1.0 + 1e-10));
            if solver == SolverKind::Newton {
                prop_assert_eq!(next.point.status, Status::Converged);
            }
            if next.point.status == Status::Converged {
                prop_assert!(warm.primal <= best * (1.0 + 1e-6) && warm.relative_gap() <= 1e-6);
            }
        }
    }
}

#[test]
fn the_dual_descent_knows_when_it_is_done() {
    let v: Vec<f64> =
        (0..240 * 8).map(|k: usize| f64::from(((k * 7919 % 1009) as f32 / 1009.0 - 0.5) * 2.0)).collect();
    let (mut values, mut class) = (vec![], vec![]);
    for i in (0..240).filter(|i| i % 3 != 0) {
        let row = &v[i * 8..(i + 1) * 8];
        values.extend_from_slice(row);
        class.push((0..4u32).max_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize])).unwrap());
    }
    let n = class.len();
    let small =
        Small { values, class, cost: vec![32.0; n], n_columns: 8, n_classes: 4, intercept: Intercept::Free };
    let found = small.solve(SolverKind::DualCd, 1e-9, 100);
    assert!(found.n_iter < 60, "{}: {:?}", found.n_iter, found.certificate);
}
