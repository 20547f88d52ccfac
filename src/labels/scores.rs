//! Decision values of many labels, in parallel over rows, from dense or sparse weights.
//!
//! Weights are read where they lie, whatever their layout; no copy of dense ones is ever made. Labels one
//! after the other (a C-ordered `coef_`): a block of rows is multiplied by one vector after the other, which
//! it finds in the cache from its second row on. Columns one after the other (Fortran order), and sparse
//! weights: a row adds, for each of its entries, the weights of that column to the values of the labels.
//! Nothing of the size of rows times labels is made unless it is asked for.
//!
//! The number for a row and a label has the same bits whichever rows are predicted together and whatever the
//! number of threads.

use std::ops::Range;

use super::inverted_index::InvertedIndex;
use crate::fit::{Monitor, check_length};
use crate::matrix::pieces::{CheckedRows, Finite, RowProducts};
use crate::matrix::{Rows, Value};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory, parallel};

/// Entries per block of rows, at most. A vector of weights is read once per block, so that blocks are as
/// large as the sharing among threads allows (10,000 rows of 100 entries, 50 vectors of 100,000 weights: 0.8
/// s in blocks of 2^15 entries).
const BLOCK_ENTRIES: usize = 1 << 20;
/// Blocks per thread into which rows are cut where they are enough for that.
const BLOCKS: usize = 2;
/// Products per parallel task, at least.
const TASK_PRODUCTS: usize = 1 << 18;
/// Below this number of products (a millisecond) threads cost more than they save.
const FEW_PRODUCTS: usize = 1 << 20;
/// Fewer rows than this are shared among threads label by label.
const FEW_ROWS: usize = 8;
/// Decision values that are held per thread where only the best are wanted.
const HELD_VALUES: usize = 1 << 20;

/// Numbers of single or double precision.
#[derive(Clone, Copy, Debug)]
pub enum FloatSlice<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

/// Evaluates `$body` with `$w` the slice.
macro_rules! with_slice {
    ($numbers:expr, $w:ident => $body:expr) => {
        match $numbers {
            FloatSlice::F32($w) => $body,
            FloatSlice::F64($w) => $body,
        }
    };
}

impl FloatSlice<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        with_slice!(self, w => w.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::F32(w) => Self::F32(&w[range]),
            Self::F64(w) => Self::F64(&w[range]),
        }
    }
}

/// Weights as they lie.
#[derive(Clone, Copy)]
pub enum ModelWeights<'a> {
    /// Label `l` has the weights `l * n_cols ..` of all columns.
    ByLabel(FloatSlice<'a>),
    /// Column `j` has the weights `j * n_labels ..` of all labels.
    ByColumn(FloatSlice<'a>),
    /// A CSR matrix with a row per label.
    Sparse {
        /// Where its columns are.
        index: &'a InvertedIndex,
        /// Its values.
        values: FloatSlice<'a>,
        /// The values column after column; None reads them at their positions in `values`.
        gathered: Option<&'a [f64]>,
    },
}

/// A linear model of several labels, as it lies.
#[derive(Clone, Copy)]
pub struct Scorer<'a> {
    /// The weights.
    pub weights: ModelWeights<'a>,
    /// One per label.
    pub intercept: &'a [f64],
}

/// Some rows, some labels, and their decision values.
type Task<'o> = (Range<usize>, Range<usize>, &'o mut [f64]);

impl Scorer<'_> {
    /// Checks the shapes.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn check(&self, n_cols: usize) -> Result<()> {
        let n_labels = self.intercept.len();
        if n_labels == 0 {
            return Err(Error::Shape { what: "labels of the model", expected: 1, found: 0 });
        }
        match self.weights {
            ModelWeights::ByLabel(w) | ModelWeights::ByColumn(w) => {
                check_length("weights", n_cols * n_labels, w.len())
            }
            ModelWeights::Sparse { index, values, .. } => {
                check_length("columns of sparse weights", n_cols, index.n_cols())?;
                check_length("labels of sparse weights", n_labels, index.n_labels())?;
                check_length("sparse weights", index.nnz(), values.len())
            }
        }
    }

    /// Products for each entry of a row, on average.
    fn depth(&self) -> usize {
        match self.weights {
            ModelWeights::Sparse { index, .. } => index.nnz() / index.n_cols().max(1) + 1,
            _ => self.intercept.len(),
        }
    }

    /// Products and sums of a prediction, about.
    pub fn products(&self, x: &impl CheckedRows) -> usize {
        let outputs = x.n_rows().saturating_mul(self.intercept.len());
        x.n_entries().saturating_mul(self.depth()).saturating_add(outputs)
    }

    /// Whether a prediction is too short for threads: it is then made by the calling thread alone.
    pub fn is_small(&self, x: &impl CheckedRows) -> bool {
        self.products(x) <= FEW_PRODUCTS
    }

    /// Rows per block: all of them where the calling thread works alone, which then asks for no pool either.
    fn block_rows(&self, x: &impl CheckedRows) -> usize {
        let (n_rows, n_entries) = (x.n_rows(), x.n_entries());
        if self.is_small(x) {
            return n_rows.max(1);
        }
        let least = (TASK_PRODUCTS / self.depth().max(1)).clamp(1, BLOCK_ENTRIES);
        let entries = (n_entries / (BLOCKS * rayon::current_num_threads())).clamp(least, BLOCK_ENTRIES);
        (entries / (n_entries / n_rows.max(1)).max(1)).max(1)
    }

    /// The model of some labels; all of them where weights do not lie label after label.
    fn part(&self, labels: Range<usize>) -> Self {
        match self.weights {
            ModelWeights::ByLabel(w) => {
                let n_cols = w.len() / self.intercept.len();
                let weights = ModelWeights::ByLabel(w.part(labels.start * n_cols..labels.end * n_cols));
                Self { weights, intercept: &self.intercept[labels] }
            }
            _ => *self,
        }
    }

    /// The values of sparse weights by column, if most of them are going to be read.
    fn gather(&self, x: &impl CheckedRows) -> Option<Vec<f64>> {
        match self.weights {
            // Columns that occur often hold many weights: an eighth of the entries is enough to meet most of
            // these.
            ModelWeights::Sparse { index, values, .. }
                if x.n_entries() > index.n_cols() / 8 && !self.is_small(x) =>
            {
                Some(with_slice!(values, w => index.gather(|position| w[position].to_f64())))
            }
            _ => None,
        }
    }

    /// Checks some rows and writes their decision values, row after row.
    ///
    /// # Errors
    /// Those of [`CheckedRows::piece`].
    pub fn fill<P: CheckedRows>(
        &self,
        x: &P,
        rows: Range<usize>,
        finite: Finite,
        out: &mut [f64],
    ) -> Result<()> {
        self.fill_checked(&x.piece(rows, finite)?, out);
        Ok(())
    }

    /// Writes the decision values of checked rows, row after row; allocates nothing.
    ///
    /// # Panics
    /// If the model has fewer columns than the rows, or `out` is too short.
    pub fn fill_checked<R: RowProducts>(&self, rows: &R, out: &mut [f64]) {
        let b = self.intercept;
        match self.weights {
            ModelWeights::ByLabel(w) => with_slice!(w, w => rows.products(w, b, out)),
            ModelWeights::ByColumn(w) => with_slice!(w, w => add_columns(rows, b, out, |j, v, out| {
                out.iter_mut().zip(&w[j * b.len()..]).for_each(|(out, w)| *out += v * w.to_f64());
            })),
            ModelWeights::Sparse { index, gathered: Some(values), .. } => {
                add_columns(rows, b, out, |j, v, out| {
                    let (start, labels, _) = index.column(j);
                    labels.iter().zip(&values[start..]).for_each(|(l, w)| out[*l as usize] += v * w);
                })
            }
            ModelWeights::Sparse { index, values, .. } => {
                with_slice!(values, w => add_columns(rows, b, out, |j, v, out| {
                    let (_, labels, positions) = index.column(j);
                    labels.iter().zip(positions).for_each(|(l, at)| out[*l as usize] += v * w[*at].to_f64());
                }))
            }
        }
    }

    /// Decision values of all rows, one per label, row after row.
    ///
    /// # Errors
    /// Those of [`CheckedRows::piece`], [`Error::Shape`] and [`Error::Cancelled`].
    pub fn decisions<P: CheckedRows>(
        &self,
        x: &P,
        finite: Finite,
        monitor: &dyn Monitor,
    ) -> Result<Vec<f64>> {
        let mut out = memory::zeros(x.n_rows() * self.intercept.len());
        self.decisions_into(x, finite, monitor, &mut out)?;
        Ok(out)
    }

    /// [`Self::decisions`] into a slice of theirs.
    ///
    /// # Errors
    /// Those of [`Self::decisions`]; `out` may then be written in part.
    pub fn decisions_into<P: CheckedRows>(
        &self,
        x: &P,
        finite: Finite,
        monitor: &dyn Monitor,
        out: &mut [f64],
    ) -> Result<()> {
        self.check(x.n_cols())?;
        check_length("decision values", x.n_rows() * self.intercept.len(), out.len())?;
        let gathered = self.gather(x);
        let model = self.with_gathered(gathered.as_deref());
        let fill = |(rows, labels, out): Task<'_>| model.part(labels).fill(x, rows, finite, out);
        let tasks = model.tasks(x, out);
        if self.is_small(x) {
            return tasks.into_iter().try_for_each(fill);
        }
        parallel::try_map(tasks, |_, task| monitor.poll().and_then(|()| fill(task))).map(|_| ())
    }

    /// The decision values in pieces: blocks of rows, or parts of a row where there are few rows of much
    /// work.
    fn tasks<'o>(&self, x: &impl CheckedRows, out: &'o mut [f64]) -> Vec<Task<'o>> {
        let (n_rows, n_labels) = (x.n_rows(), self.intercept.len());
        let is_cut =
            n_rows < FEW_ROWS && matches!(self.weights, ModelWeights::ByLabel(_)) && !self.is_small(x);
        if is_cut {
            let labels = (TASK_PRODUCTS * n_rows / x.n_entries().max(1)).clamp(1, n_labels);
            let rows = out.chunks_mut(n_labels).enumerate();
            let parts = |(i, row): (usize, &'o mut [f64])| {
                let parts = row.chunks_mut(labels).enumerate();
                parts.map(move |(k, part)| (i..i + 1, k * labels..k * labels + part.len(), part))
            };
            return rows.flat_map(parts).collect();
        }
        let block = self.block_rows(x);
        let blocks = out.chunks_mut((block * n_labels).max(1)).enumerate();
        blocks.map(|(k, out)| (k * block..k * block + out.len() / n_labels, 0..n_labels, out)).collect()
    }

    fn with_gathered<'b>(&'b self, by_column: Option<&'b [f64]>) -> Scorer<'b> {
        let weights = match self.weights {
            ModelWeights::Sparse { index, values, .. } => {
                ModelWeights::Sparse { index, values, gathered: by_column }
            }
            dense => dense,
        };
        Scorer { weights, intercept: self.intercept }
    }

    /// `read` of the decision values of blocks of rows, in the order of the rows.
    ///
    /// # Errors
    /// Those of [`Self::decisions`].
    pub fn read_blocks<P: CheckedRows, T: Send>(
        &self,
        x: &P,
        finite: Finite,
        monitor: &dyn Monitor,
        read: impl Fn(&[f64]) -> T + Sync,
    ) -> Result<Vec<T>> {
        self.check(x.n_cols())?;
        let (n_rows, n_labels) = (x.n_rows(), self.intercept.len());
        let gathered = self.gather(x);
        let model = self.with_gathered(gathered.as_deref());
        let block = self.block_rows(x).min(HELD_VALUES / n_labels.max(1)).max(1);
        let one = |k: usize| {
            let rows = k * block..((k + 1) * block).min(n_rows);
            let mut values = memory::zeros(rows.len() * n_labels);
            model.fill(x, rows, finite, &mut values)?;
            Ok(read(&values))
        };
        let blocks = 0..n_rows.div_ceil(block);
        if self.is_small(x) {
            return blocks.map(one).collect();
        }
        parallel::try_map(blocks, |_, k| monitor.poll().and_then(|()| one(k)))
    }

    /// Labels and decision values of the `k` highest of each row, highest first, equal ones by label.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` that is 0 or above the number of labels, and those of
    /// [`Self::decisions`].
    pub fn top_k<P: CheckedRows>(
        &self,
        x: &P,
        k: usize,
        finite: Finite,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<u32>, Vec<f64>)> {
        let n_labels = self.intercept.len();
        if k == 0 || k > n_labels {
            let rule = "at least 1 and at most the number of labels";
            return Err(Error::Parameter { name: "k", value: k.to_string(), rule });
        }
        let found = self.read_blocks(x, finite, monitor, |values| highest(values, n_labels, k))?;
        let found = found.into_iter().flatten().collect_large();
        Ok((found.iter().map(|f| f.0).collect_large(), found.iter().map(|f| f.1).collect_large()))
    }

    /// The labels with a positive decision value: where those of each row begin, one number more than there
    /// are rows, and the labels.
    ///
    /// # Errors
    /// Those of [`Self::decisions`].
    pub fn positive<P: CheckedRows>(
        &self,
        x: &P,
        finite: Finite,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<i64>, Vec<i32>)> {
        let n_labels = self.intercept.len();
        let found = self.read_blocks(x, finite, monitor, |values| positive(values, n_labels))?;
        let (mut starts, mut labels) = (memory::with_capacity(x.n_rows() + 1), Vec::new());
        starts.push(0);
        for (counts, more) in found {
            for count in counts {
                starts.push(starts[starts.len() - 1] + count as i64);
            }
            memory::extend(&mut labels, more);
        }
        Ok((starts, labels))
    }
}

/// The intercepts, and what `add(column, value, out)` adds for each entry of each row.
#[inline(always)]
fn add_columns<R: Rows>(rows: &R, intercept: &[f64], out: &mut [f64], add: impl Fn(usize, f64, &mut [f64])) {
    for (i, out) in out.chunks_exact_mut(intercept.len()).enumerate() {
        out.copy_from_slice(intercept);
        rows.for_each(i, |j, v| add(j, v, out));
    }
}

/// The labels of the `k` highest values of each row with the values, highest first, equal ones by label.
pub fn highest(values: &[f64], n_labels: usize, k: usize) -> Vec<(u32, f64)> {
    let (mut found, mut order) =
        (memory::with_capacity(values.len() / n_labels * k), Vec::with_capacity(n_labels));
    for values in values.chunks_exact(n_labels) {
        order.clear();
        order.extend(0..n_labels as u32);
        let first = |a: &u32, b: &u32| values[*b as usize].total_cmp(&values[*a as usize]).then(a.cmp(b));
        if k < n_labels {
            order.select_nth_unstable_by(k - 1, first);
        }
        order[..k].sort_unstable_by(first);
        found.extend(order[..k].iter().map(|l| (*l, values[*l as usize])));
    }
    found
}

/// How many values of each row are positive, and the labels of these.
pub fn positive(values: &[f64], n_labels: usize) -> (Vec<usize>, Vec<i32>) {
    let (mut counts, mut labels) = (Vec::with_capacity(values.len() / n_labels), Vec::new());
    for values in values.chunks_exact(n_labels) {
        let before = labels.len();
        labels.extend((0..n_labels as i32).filter(|l| values[*l as usize] > 0.0));
        counts.push(labels.len() - before);
    }
    (counts, labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::matrix::csr::CsrPieces;
    use crate::matrix::dense::DensePieces;

    /// Weights of `l` labels and `d` columns with zeros among them, by label and by column, and as CSR
    /// arrays.
    struct Made {
        by_label: Vec<f64>,
        by_column: Vec<f64>,
        sparse: (Vec<i64>, Vec<i64>, Vec<f64>),
        intercept: Vec<f64>,
    }

    fn made(d: usize, l: usize) -> Made {
        let by_label: Vec<f64> =
            (0..d * l).map(|k| if k % 3 == 0 { 0.0 } else { ((k * 13 % 7) as f64) - 3.0 }).collect();
        let by_column = (0..d * l).map(|k| by_label[k % l * d + k / l]).collect();
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for w in by_label.chunks(d) {
            indices.extend((0..d as i64).filter(|j| w[*j as usize] != 0.0));
            values.extend(w.iter().filter(|w| **w != 0.0));
            indptr.push(indices.len() as i64);
        }
        let intercept = (0..l).map(|k| k as f64 / 8.0).collect();
        Made { by_label, by_column, sparse: (indptr, indices, values), intercept }
    }

    fn numbers(n: usize, d: usize) -> Vec<f64> {
        (0..n * d).map(|k| ((k * 29 % 17) as f64 - 8.0) / 4.0).collect()
    }

    #[test]
    fn every_layout_matches_plain_loops() {
        let (n, d, l) = (130, 5, 9);
        let (x, made) = (numbers(n, d), made(d, l));
        let w = &made.by_label;
        let narrow: Vec<f32> = w.iter().map(|w| *w as f32).collect();
        let (indptr, indices, values) = &made.sparse;
        let index = InvertedIndex::new(indptr, indices, d).unwrap();
        let rows = DensePieces::new(&x, n, d).unwrap();
        for weights in [
            ModelWeights::ByLabel(FloatSlice::F64(w)),
            ModelWeights::ByLabel(FloatSlice::F32(&narrow)),
            ModelWeights::ByColumn(FloatSlice::F64(&made.by_column)),
            ModelWeights::Sparse { index: &index, values: FloatSlice::F64(values), gathered: None },
        ] {
            let model = Scorer { weights, intercept: &made.intercept };
            let all = model.decisions(&rows, Finite::Required, &Silent).unwrap();
            let (top, scores) = model.top_k(&rows, 3, Finite::Required, &Silent).unwrap();
            let (starts, positive) = model.positive(&rows, Finite::Required, &Silent).unwrap();
            for i in 0..n {
                let plain =
                    |m: usize| made.intercept[m] + (0..d).map(|j| x[i * d + j] * w[m * d + j]).sum::<f64>();
                let mut order: Vec<usize> = (0..l).collect();
                order.sort_by(|a, b| all[i * l + b].total_cmp(&all[i * l + a]));
                assert!((0..l).all(|m| (all[i * l + m] - plain(m)).abs() < 1e-12));
                for r in 0..3 {
                    assert_eq!(
                        (top[3 * i + r] as usize, scores[3 * i + r]),
                        (order[r], all[i * l + order[r]])
                    );
                }
                let expected: Vec<i32> = (0..l as i32).filter(|m| all[i * l + *m as usize] > 0.0).collect();
                assert_eq!(positive[starts[i] as usize..starts[i + 1] as usize], expected);
            }
            assert_eq!(model.top_k(&rows, l, Finite::Assumed, &Silent).unwrap().0.len(), n * l);
            assert!([0, l + 1].iter().all(|k| model.top_k(&rows, *k, Finite::Assumed, &Silent).is_err()));
            let (fewer, one_less) = (
                DensePieces::new(&x[..n * 4], n, 4).unwrap(),
                Scorer { intercept: &made.intercept[1..], ..model },
            );
            assert!(model.decisions(&fewer, Finite::Assumed, &Silent).is_err());
            assert!(one_less.decisions(&rows, Finite::Assumed, &Silent).is_err());
        }
    }

    /// Blocks, parts of a row, gathered values and threads leave the bits as they are.
    #[test]
    fn a_row_alone_has_the_bits_it_has_among_others() {
        let (n, d, l) = (1000, 60, 40);
        let (x, made) = (numbers(n, d), made(d, l));
        let x: Vec<f64> = x.iter().map(|v| v.sin()).collect();
        let indptr: Vec<i64> = (0..=n).map(|i| (i * d) as i64).collect();
        let indices: Vec<i32> = (0..n * d).map(|k| (k % d) as i32).collect();
        let index = InvertedIndex::new(&made.sparse.0, &made.sparse.1, d).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for weights in [
            ModelWeights::ByLabel(FloatSlice::F64(&made.by_label)),
            ModelWeights::ByColumn(FloatSlice::F64(&made.by_column)),
            ModelWeights::Sparse { index: &index, values: FloatSlice::F64(&made.sparse.2), gathered: None },
        ] {
            let model = Scorer { weights, intercept: &made.intercept };
            let dense = DensePieces::new(&x, n, d).unwrap();
            let sparse = CsrPieces::new(&indptr, &indices, &x, d).unwrap();
            let (of_dense, of_sparse) = pool.install(|| {
                let of_dense = model.decisions(&dense, Finite::Required, &Silent).unwrap();
                (of_dense, model.decisions(&sparse, Finite::Required, &Silent).unwrap())
            });
            assert!(!model.is_small(&dense) && model.tasks(&dense, &mut vec![0.0; n * l]).len() > 1);
            for i in [0, 1, 333, n - 1] {
                let row = &x[i * d..(i + 1) * d];
                let one = DensePieces::new(row, 1, d).unwrap();
                assert_eq!(
                    model.decisions(&one, Finite::Required, &Silent).unwrap(),
                    of_dense[i * l..(i + 1) * l]
                );
                let one = CsrPieces::new(&indptr[..2], &indices[..d], row, d).unwrap();
                assert_eq!(
                    model.decisions(&one, Finite::Required, &Silent).unwrap(),
                    of_sparse[i * l..(i + 1) * l]
                );
            }
        }
    }

    #[test]
    fn few_rows_of_much_work_are_cut_by_labels() {
        let (n, d, l) = (3, 4000, 200);
        let (x, made) = (numbers(n, d), made(d, l));
        let model = Scorer {
            weights: ModelWeights::ByLabel(FloatSlice::F64(&made.by_label)),
            intercept: &made.intercept,
        };
        let rows = DensePieces::new(&x, n, d).unwrap();
        assert!(model.tasks(&rows, &mut vec![0.0; n * l]).len() > n);
        let all = model.decisions(&rows, Finite::Required, &Silent).unwrap();
        let one = DensePieces::new(&x[d..2 * d], 1, d).unwrap();
        for m in [0, 99, 199] {
            let alone = model.part(m..m + 1).decisions(&one, Finite::Required, &Silent).unwrap();
            assert_eq!(all[l + m], alone[0]);
        }
    }
}
