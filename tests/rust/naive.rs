//! The slow oracle: dense rows, plain loops, no shrinking, no parallelism.

use hinge::fit::{Intercept, Problem};
use hinge::loss::LossKind;
use hinge::matrix::Matrix;
use hinge::matrix::csr::CsrView;

/// A small problem with its dense rows and its CSR arrays.
#[derive(Clone, Debug)]
pub struct Data {
    pub rows: Vec<Vec<f64>>,
    pub y: Vec<f64>,
    pub cost: Vec<f64>,
    indptr: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<f64>,
    n_cols: usize,
}

impl Data {
    pub fn new(rows: Vec<Vec<f64>>, y: Vec<f64>, cost: Vec<f64>) -> Self {
        let n_cols = rows[0].len();
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in &rows {
            // Columns in falling order: solvers must not rely on sorted rows.
            for j in (0..n_cols).rev().filter(|&j| row[j] != 0.0) {
                indices.push(j as i64);
                values.push(row[j]);
            }
            indptr.push(indices.len() as i64);
        }
        Self { rows, y, cost, indptr, indices, values, n_cols }
    }

    pub fn view(&self) -> Matrix<'_> {
        CsrView::new(&self.indptr, &self.indices, &self.values, self.n_cols).unwrap().0.into()
    }

    pub fn problem<'a>(&'a self, view: &'a Matrix<'a>, intercept: Intercept) -> Problem<'a> {
        Problem { rows: view, ids: None, y: &self.y, cost: &self.cost, intercept }
    }

    /// Primal objective.
    pub fn primal(&self, loss: LossKind, intercept: Intercept, w: &[f64], b: f64) -> f64 {
        let mut total = 0.5 * dot(w, w);
        if let Intercept::Penalised(s) = intercept {
            total += 0.5 * (b / s).powi(2);
        }
        for (i, row) in self.rows.iter().enumerate() {
            total += self.cost[i] * value(loss, self.y[i] * (dot(row, w) + b));
        }
        total
    }

    /// Dual objective, on the constraint of a free intercept or not.
    pub fn dual(&self, loss: LossKind, intercept: Intercept, alpha: &[f64]) -> f64 {
        let s = if let Intercept::Penalised(s) = intercept { s } else { 0.0 };
        let mut w = vec![0.0; self.n_cols + 1];
        let mut total = 0.0;
        for (i, row) in self.rows.iter().enumerate() {
            let scale = alpha[i] * self.y[i];
            row.iter().chain([&s]).zip(&mut w).for_each(|(x, w)| *w += scale * x);
            total += self.cost[i] * dual_term(loss, alpha[i] / self.cost[i]);
        }
        total - 0.5 * dot(&w, &w)
    }

    /// Optimal objective by accelerated projected gradient on the dual with an explicit kernel matrix; hinge
    /// and squared hinge without or with a penalised intercept. Runs until the duality gap is below 1e-11 of
    /// the value.
    pub fn optimum(&self, loss: LossKind, intercept: Intercept) -> f64 {
        let n = self.rows.len();
        let s = if let Intercept::Penalised(s) = intercept { s } else { 0.0 };
        let x: Vec<Vec<f64>> = self.rows.iter().map(|r| r.iter().copied().chain([s]).collect()).collect();
        let (upper, diagonal): (Vec<f64>, Vec<f64>) = self
            .cost
            .iter()
            .map(|&c| if loss == LossKind::Hinge { (c, 0.0) } else { (f64::INFINITY, 0.5 / c) })
            .unzip();
        let mut q = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..n {
                q[i][j] = self.y[i] * self.y[j] * dot(&x[i], &x[j]) + if i == j { diagonal[i] } else { 0.0 };
            }
        }
        let mut a = vec![0.0; n];
        for _ in 0..2_000_000 {
            for i in 0..n {
                let g = dot(&q[i], &a) - 1.0;
                a[i] = if q[i][i] > 0.0 { (a[i] - g / q[i][i]).clamp(0.0, upper[i]) } else { upper[i] };
            }
            let w: Vec<f64> =
                (0..x[0].len()).map(|j| (0..n).map(|i| a[i] * self.y[i] * x[i][j]).sum()).collect();
            let linear: f64 = a.iter().sum();
            let shrink: f64 = (0..n).map(|i| diagonal[i] * a[i] * a[i]).sum();
            let dual = linear - 0.5 * (dot(&w, &w) + shrink);
            let b = s * w[w.len() - 1];
            let primal = self.primal(loss, intercept, &w[..w.len() - 1], b);
            if primal - dual <= 1e-11 * primal.abs().max(1e-300) {
                return dual;
            }
        }
        panic!("the oracle did not converge");
    }

    /// Largest change of the objective that random moves around a point find; an optimum has none below zero.
    pub fn is_minimum(&self, loss: LossKind, intercept: Intercept, w: &[f64], b: f64, slack: f64) -> bool {
        let here = self.primal(loss, intercept, w, b);
        let mut seed = 12345_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1u32 << 31) * 2.0 - 1.0
        };
        (0..200).all(|k| {
            let size = 10f64.powi(-(k % 6));
            let moved: Vec<f64> = w.iter().map(|w| w + size * random()).collect();
            let shift = if intercept == Intercept::None { 0.0 } else { size * random() };
            self.primal(loss, intercept, &moved, b + shift) >= here - slack
        })
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A loss, by its formula.
pub fn value(loss: LossKind, m: f64) -> f64 {
    match loss {
        LossKind::Hinge => (1.0 - m).max(0.0),
        LossKind::ModifiedHuber if m < -1.0 => -4.0 * m,
        LossKind::SquaredHinge | LossKind::ModifiedHuber => (1.0 - m).max(0.0).powi(2),
        LossKind::Logistic => (-m.abs()).exp().ln_1p() + (-m).max(0.0),
    }
}

/// What a row of cost 1 adds to the dual.
fn dual_term(loss: LossKind, a: f64) -> f64 {
    let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    match loss {
        LossKind::Hinge => a,
        LossKind::SquaredHinge | LossKind::ModifiedHuber => a - 0.25 * a * a,
        LossKind::Logistic => entropy(a) + entropy(1.0 - a),
    }
}
