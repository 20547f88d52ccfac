//! Decision values of many labels, in parallel over rows, from dense or sparse weights.
//!
//! Weights lie by column of the data: a row adds, for each of its entries, the weights of that column to the values of the labels.
//! A sparse model reads only what a row's columns hold; nothing of the size of labels times columns or rows times labels is made
//! unless it is asked for.

use crate::data::Rows;
use crate::solver::{Monitor, check_length};
use crate::{Error, Result, parallel};

/// Rows per parallel task.
const CHUNK: usize = 64;

/// Weights by column of the data.
#[derive(Clone, Copy)]
pub enum ByColumn<'a> {
    /// Column `j` has the weights `j * n_labels ..` of all labels.
    Dense(&'a [f64]),
    /// Column `j` owns the entries `starts[j] .. starts[j + 1]`.
    Sparse {
        /// One more than there are columns.
        starts: &'a [i64],
        /// Label of each entry.
        labels: &'a [u32],
        /// Weight of each entry.
        values: &'a [f64],
    },
}

/// A linear model of several labels.
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// The weights.
    pub weights: ByColumn<'a>,
    /// One per label.
    pub intercept: &'a [f64],
}

impl Model<'_> {
    /// Checks the shapes.
    fn check<R: Rows>(&self, rows: &R) -> Result<()> {
        let n_labels = self.intercept.len();
        match self.weights {
            ByColumn::Dense(w) => check_length("weights", rows.n_cols() * n_labels, w.len()),
            ByColumn::Sparse { starts, labels, values } => {
                check_length("starts of weights", rows.n_cols() + 1, starts.len())?;
                check_length("weights", labels.len(), values.len())?;
                let is_rising = starts.windows(2).all(|pair| pair[0] <= pair[1]) && starts[0] == 0;
                let found = starts.last().map_or(0, |end| *end as usize);
                if !is_rising || found != labels.len() {
                    return Err(Error::Shape { what: "end of the starts of weights", expected: labels.len(), found });
                }
                match labels.iter().find(|label| **label as usize >= n_labels) {
                    Some(label) => {
                        Err(Error::Shape { what: "labels of weights", expected: n_labels, found: *label as usize + 1 })
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Decision values of row `i` into `out`, one per label.
    fn row<R: Rows>(&self, rows: &R, i: usize, out: &mut [f64]) {
        out.copy_from_slice(self.intercept);
        match self.weights {
            ByColumn::Dense(w) => rows.for_each(i, |j, v| {
                let column = &w[j * out.len()..][..out.len()];
                out.iter_mut().zip(column).for_each(|(out, w)| *out += v * w);
            }),
            ByColumn::Sparse { starts, labels, values } => rows.for_each(i, |j, v| {
                let range = starts[j] as usize..starts[j + 1] as usize;
                labels[range.clone()].iter().zip(&values[range]).for_each(|(l, w)| out[*l as usize] += v * w);
            }),
        }
    }

    /// Decision values of all rows, one per label, row after row.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Cancelled`].
    pub fn decisions<R: Rows>(&self, rows: &R, monitor: &dyn Monitor) -> Result<Vec<f64>> {
        self.check(rows)?;
        let n_labels = self.intercept.len();
        let mut out = vec![0.0; rows.n_rows() * n_labels];
        parallel::each(out.chunks_mut((CHUNK * n_labels).max(1)), |chunk, out| {
            if !monitor.cancelled() {
                out.chunks_exact_mut(n_labels).enumerate().for_each(|(k, out)| self.row(rows, chunk * CHUNK + k, out));
            }
        });
        monitor.poll()?;
        Ok(out)
    }

    /// Labels and decision values of the `k` highest of each row, highest first, equal ones by label.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` that is 0 or above the number of labels, [`Error::Shape`], [`Error::Cancelled`].
    pub fn top_k<R: Rows>(&self, rows: &R, k: usize, monitor: &dyn Monitor) -> Result<(Vec<u32>, Vec<f64>)> {
        self.check(rows)?;
        let n_labels = self.intercept.len();
        if k == 0 || k > n_labels {
            let rule = "at least 1 and at most the number of labels";
            return Err(Error::Parameter { name: "k", value: k.to_string(), rule });
        }
        let mut found = vec![(0u32, 0.0f64); rows.n_rows() * k];
        parallel::each(found.chunks_mut(CHUNK * k), |chunk, found| {
            if monitor.cancelled() {
                return;
            }
            let (mut values, mut order) = (vec![0.0; n_labels], Vec::with_capacity(n_labels));
            for (at, found) in found.chunks_exact_mut(k).enumerate() {
                self.row(rows, chunk * CHUNK + at, &mut values);
                order.clear();
                order.extend(0..n_labels as u32);
                let first = |a: &u32, b: &u32| values[*b as usize].total_cmp(&values[*a as usize]).then(a.cmp(b));
                if k < n_labels {
                    order.select_nth_unstable_by(k - 1, first);
                }
                order[..k].sort_unstable_by(first);
                found.iter_mut().zip(&order).for_each(|(f, l)| *f = (*l, values[*l as usize]));
            }
        });
        monitor.poll()?;
        Ok(found.into_iter().unzip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dense::DenseView;
    use crate::solver::Silent;

    #[test]
    fn dense_and_sparse_match_plain_loops() {
        let (n, d, l) = (130, 5, 9);
        let x: Vec<f64> = (0..n * d).map(|k| ((k * 29 % 17) as f64 - 8.0) / 4.0).collect();
        let w: Vec<f64> = (0..d * l).map(|k| if k % 3 == 0 { 0.0 } else { ((k * 13 % 7) as f64) - 3.0 }).collect();
        let b: Vec<f64> = (0..l).map(|k| k as f64 / 8.0).collect();
        let (rows, _) = DenseView::new(&x, n, d).unwrap();
        let (mut starts, mut labels, mut values) = (vec![0i64], Vec::new(), Vec::new());
        for j in 0..d {
            for m in (0..l).filter(|m| w[j * l + m] != 0.0) {
                labels.push(m as u32);
                values.push(w[j * l + m]);
            }
            starts.push(labels.len() as i64);
        }
        let sparse =
            Model { weights: ByColumn::Sparse { starts: &starts, labels: &labels, values: &values }, intercept: &b };
        let dense = Model { weights: ByColumn::Dense(&w), intercept: &b };
        let all = dense.decisions(&rows, &Silent).unwrap();
        assert_eq!(all, sparse.decisions(&rows, &Silent).unwrap());
        let (top, scores) = sparse.top_k(&rows, 3, &Silent).unwrap();
        for i in 0..n {
            let plain: Vec<f64> =
                (0..l).map(|m| b[m] + (0..d).map(|j| x[i * d + j] * w[j * l + m]).sum::<f64>()).collect();
            let mut order: Vec<usize> = (0..l).collect();
            order.sort_by(|a, b| all[i * l + b].total_cmp(&all[i * l + a]));
            for m in 0..l {
                assert!((all[i * l + m] - plain[m]).abs() < 1e-12);
            }
            for r in 0..3 {
                assert_eq!((top[3 * i + r] as usize, scores[3 * i + r]), (order[r], all[i * l + order[r]]));
            }
        }
        assert_eq!(dense.top_k(&rows, l, &Silent).unwrap().0.len(), n * l);
        assert!(dense.top_k(&rows, 0, &Silent).is_err() && dense.top_k(&rows, l + 1, &Silent).is_err());
        assert!(Model { weights: ByColumn::Dense(&w[1..]), intercept: &b }.decisions(&rows, &Silent).is_err());
    }
}
