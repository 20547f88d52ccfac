//! A shard that owns its rows and waits for requests, on a thread of its own.
//!
//! What a fit knows of the rows borrows them; the thread has both on its stack, so that no request makes a
//! view of the rows, or the rows' state, anew. It ends when the shard is dropped, in the middle of a pass if
//! need be, and its memory goes with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::columns::OwnColumns;
use super::pieces::{PieceFolds, StoreRows, StoreShard};
use super::shard::{CostedRows, Shard, ShardFacts, ShardFolds, ShardRows};
use super::wire::ShardAnswer;
use crate::fit::routes::SHARD_OWN_COLUMNS;
use crate::fit::{Intercept, Monitor};
use crate::loss::LossKind;
use crate::matrix::CsrValues;
use crate::matrix::csr::{CsrView, Structure};
use crate::matrix::dense::DenseView;
use crate::matrix::layout::Layout;
use crate::search::folds::Fold;
use crate::store::reader::Store;
use crate::{Error, Result, memory, parallel};

/// A matrix with memory of its own.
pub enum OwnedRows {
    /// Rows with their nonzero entries.
    Sparse {
        /// Row pointers.
        indptr: Vec<i64>,
        /// Columns.
        indices: Vec<i32>,
        /// Values.
        values: CsrValues,
        /// Number of columns.
        n_cols: usize,
    },
    /// Dense rows.
    Dense {
        /// Row after row.
        values: CsrValues,
        /// Number of rows.
        n_rows: usize,
        /// Number of columns.
        n_cols: usize,
    },
}

impl OwnedRows {
    fn checked(&self) -> Result<Layout<'_>> {
        let (rows, structure): (Layout<'_>, Structure) = match self {
            Self::Sparse { indptr, indices, values: CsrValues::F32(values), n_cols } => {
                let (rows, structure) = CsrView::new(indptr, indices, values, *n_cols)?;
                (rows.into(), structure)
            }
            Self::Sparse { indptr, indices, values: CsrValues::F64(values), n_cols } => {
                let (rows, structure) = CsrView::new(indptr, indices, values, *n_cols)?;
                (rows.into(), structure)
            }
            Self::Dense { values: CsrValues::F32(values), n_rows, n_cols } => {
                let (rows, structure) = DenseView::new(values, *n_rows, *n_cols)?;
                (rows.into(), structure)
            }
            Self::Dense { values: CsrValues::F64(values), n_rows, n_cols } => {
                let (rows, structure) = DenseView::new(values, *n_rows, *n_cols)?;
                (rows.into(), structure)
            }
        };
        structure.check_solvable()?;
        Ok(rows)
    }

    /// Checks the rows and numbers their columns anew, where they are sparse and have many.
    fn number_columns(&mut self, stop: &Stop) -> Result<Option<OwnColumns>> {
        let Self::Sparse { indptr, indices, values, n_cols } = self else { return Ok(None) };
        if *n_cols < SHARD_OWN_COLUMNS {
            return Ok(None);
        }
        let is_stopped = || stop.cancelled();
        let found = match values {
            CsrValues::F32(values) => OwnColumns::number((indptr, indices, values), *n_cols, &is_stopped)?,
            CsrValues::F64(values) => OwnColumns::number((indptr, indices, values), *n_cols, &is_stopped)?,
        };
        if let Some(own) = &found {
            *n_cols = own.n_columns();
        }
        Ok(found)
    }

    /// The rows after that.
    fn numbered(&self) -> Result<Layout<'_>> {
        let Self::Sparse { indptr, indices, values, n_cols } = self else { unreachable!("sparse rows") };
        Ok(match values {
            CsrValues::F32(values) => CsrView::of_distinct(indptr, indices, values, *n_cols)?.into(),
            CsrValues::F64(values) => CsrView::of_distinct(indptr, indices, values, *n_cols)?.into(),
        })
    }

    fn n_rows(&self) -> usize {
        match self {
            Self::Sparse { indptr, .. } => indptr.len().saturating_sub(1),
            Self::Dense { n_rows, .. } => *n_rows,
        }
    }
}

/// The rows of a shard with their classes and costs.
pub struct ShardData {
    /// The rows.
    pub rows: OwnedRows,
    /// A class for each.
    pub classes: Vec<u32>,
    /// A cost for each; rows of cost 0 are absent.
    pub cost: Vec<f64>,
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Threads of a pass.
    pub n_threads: usize,
}

/// Where the rows of a shard are.
pub enum ShardSource {
    /// In memory.
    Rows(ShardData),
    /// In a block store, from which they come piece by piece.
    Store(StoreData),
}

/// A block store as a shard.
pub struct StoreData {
    /// The file.
    pub path: PathBuf,
    /// What its rows are for.
    pub rows: StoreRows,
    /// Threads of a pass.
    pub n_threads: usize,
}

impl ShardSource {
    fn n_threads(&self) -> usize {
        match self {
            Self::Rows(data) => data.n_threads,
            Self::Store(data) => data.n_threads,
        }
    }
}

impl From<ShardData> for ShardSource {
    fn from(data: ShardData) -> Self {
        Self::Rows(data)
    }
}

impl From<StoreData> for ShardSource {
    fn from(data: StoreData) -> Self {
        Self::Store(data)
    }
}

/// Whether the shard is being dropped.
struct Stop(AtomicBool);

impl Monitor for Stop {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the thread is told.
enum Message {
    /// To answer.
    Request(Vec<f64>),
    /// The splits of a search, as rows of the shard.
    Folds(Vec<Fold>),
}

/// A shard on its thread.
pub struct Served {
    requests: Option<Sender<Message>>,
    answers: Receiver<Result<ShardAnswer>>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    facts: ShardFacts,
}

impl Served {
    /// Checks the data and starts.
    ///
    /// # Errors
    /// Those of the checks of rows, and of the store; [`Error::Shape`] for lists of other lengths;
    /// [`Error::Thread`].
    pub fn start(source: impl Into<ShardSource>) -> Result<Self> {
        let source = source.into();
        let (requests, inbox) = channel();
        let (outbox, answers) = channel();
        let (ready, started) = channel();
        let stop = Arc::new(Stop(AtomicBool::new(false)));
        let monitor = Arc::clone(&stop);
        let work = move || serve(source, &monitor, &ready, inbox, &outbox);
        let thread = Builder::new().name("hinge-shard".into()).spawn(work).map_err(Error::Thread)?;
        let facts = started.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Self { requests: Some(requests), answers, stop, thread: Some(thread), facts })
    }

    /// What the client has to know of the rows.
    pub fn facts(&self) -> ShardFacts {
        self.facts
    }

    /// Does what a request says.
    ///
    /// # Errors
    /// Those of [`Shard::answer`].
    pub fn answer(&mut self, request: Vec<f64>) -> Result<ShardAnswer> {
        self.send(Message::Request(request))?;
        self.answers.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Takes the splits of a search, as rows of the shard; problems that were begun are forgotten.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn split(&mut self, folds: Vec<Fold>) -> Result<()> {
        self.send(Message::Folds(folds))
    }

    fn send(&self, message: Message) -> Result<()> {
        let requests = self.requests.as_ref().ok_or_else(ended)?;
        requests.send(message).map_err(|_| ended())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported as the answer to the request that met it.
            let _ = thread.join();
        }
    }
}

fn ended() -> Error {
    Error::Thread(std::io::Error::other("the thread of a shard has ended"))
}

/// The life of the thread.
fn serve(
    source: ShardSource,
    stop: &Stop,
    ready: &Sender<Result<ShardFacts>>,
    inbox: Receiver<Message>,
    outbox: &Sender<Result<ShardAnswer>>,
) {
    let n_threads = source.n_threads();
    let work = || {
        let failed = memory::catch(|| match source {
            ShardSource::Rows(data) => answer_all(data, stop, ready, inbox, outbox),
            ShardSource::Store(data) => answer_store(&data, stop, ready, &inbox, outbox),
        });
        if let Err(error) = failed {
            // Whichever of the two is waited for; nobody waits if the shard is being dropped.
            let again = Err(Error::Callback { reason: error.to_string() });
            let _ = ready.send(Err(error));
            let _ = outbox.send(again);
        }
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        match rayon::ThreadPoolBuilder::new().num_threads(n_threads).build() {
            Ok(pool) if n_threads > 1 => pool.install(work),
            _ => parallel::alone(work),
        }
    }));
    drop(ended); // the channels are closed, and whoever waits hears of it
}

fn answer_all(
    mut data: ShardData,
    stop: &Stop,
    ready: &Sender<Result<ShardFacts>>,
    inbox: Receiver<Message>,
    outbox: &Sender<Result<ShardAnswer>>,
) -> Result<()> {
    let n = data.rows.n_rows();
    for found in [data.classes.len(), data.cost.len()] {
        if found != n {
            return Err(Error::Shape { what: "classes and costs of a shard", expected: n, found });
        }
    }
    let own = data.rows.number_columns(stop)?;
    let checked = match &own {
        Some(_) => data.rows.numbered()?,
        None => data.rows.checked()?,
    };
    let own = own.as_ref();
    let scaled = checked.scaled();
    let rows = checked.or_scaled(scaled.as_ref()).into();
    let CostedRows { ids, classes, cost } = &CostedRows::of(n, |i| (data.classes[i], data.cost[i]));
    let ShardData { loss, intercept, .. } = data;
    let rows = ShardRows { rows: &rows, ids, own, classes, cost, loss, intercept, folds: None };
    // Nobody waits if the shard is being dropped.
    let _ = ready.send(Ok(rows.facts()));
    let mut split = Vec::new();
    loop {
        let (classes, weight) = (&data.classes[..], &data.cost[..]);
        let folds = (!split.is_empty()).then_some(ShardFolds { folds: &split, classes, weight });
        let mut shard = Shard::new(ShardRows { folds, ..rows }, stop);
        match answer_some(|request| shard.answer(request), &inbox, outbox) {
            Some(next) => split = next,
            None => return Ok(()),
        }
    }
}

fn answer_store(
    StoreData { path, rows, .. }: &StoreData,
    stop: &Stop,
    ready: &Sender<Result<ShardFacts>>,
    inbox: &Receiver<Message>,
    outbox: &Sender<Result<ShardAnswer>>,
) -> Result<()> {
    rows.with_pieces(&Store::open(path)?, stop, |rows, loader| {
        // Nobody waits if the shard is being dropped.
        let _ = ready.send(Ok(rows.facts));
        let mut folds = None;
        loop {
            let mut shard = StoreShard::new(rows, folds.as_ref(), loader, stop);
            let Some(splits) = answer_some(|request| shard.answer(request), inbox, outbox) else {
                return Ok(());
            };
            drop(shard);
            folds = Some(PieceFolds::cut(&splits, loader, rows.pieces, stop)?);
        }
    })
}

/// Answers until there are splits, or until there is nobody left.
fn answer_some(
    mut answer: impl FnMut(&[f64]) -> Result<ShardAnswer>,
    inbox: &Receiver<Message>,
    outbox: &Sender<Result<ShardAnswer>>,
) -> Option<Vec<Fold>> {
    loop {
        match inbox.recv().ok()? {
            Message::Folds(folds) => return Some(folds),
            Message::Request(request) => outbox.send(answer(&request)).ok()?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::wire::{Op, Request};

    fn data(values: Vec<f64>, cost: Vec<f64>) -> ShardData {
        ShardData {
            rows: OwnedRows::Dense { n_rows: values.len() / 2, values: CsrValues::F64(values), n_cols: 2 },
            classes: vec![0, 1, 1],
            cost,
            loss: LossKind::SquaredHinge,
            intercept: Intercept::None,
            n_threads: 1,
        }
    }

    #[test]
    fn a_shard_answers_until_it_is_dropped() {
        let mut shard = Served::start(data(vec![1.0, 0.0, 0.0, 2.0, 5.0, 5.0], vec![1.0, 2.0, 0.0])).unwrap();
        assert_eq!((shard.facts().n_rows, shard.facts().curvature), (2, 9.0));
        let mut request = Request::new(1);
        request.op(Op::Begin).number(1.0).number(1.0).number(1.0).op(Op::Evaluate).number(0.0);
        let answer = shard.answer(request.words().to_vec()).unwrap();
        // Slopes at zero are -2 c y.
        assert_eq!(answer.sums, [2.0, -8.0, 3.0, 2.0]);
        assert!(shard.answer(vec![99.0]).is_err());
        assert!(shard.answer(request.words().to_vec()).is_ok());
    }

    #[test]
    fn splits_come_when_there_is_a_search() {
        let mut shard = Served::start(data(vec![1.0, 0.0, 0.0, 2.0, 5.0, 5.0], vec![1.0, 2.0, 0.0])).unwrap();
        let mut request = Request::new(1);
        request.op(Op::BeginFolds).number(0.0).number(1.0).number(1.0);
        request.op(Op::Decide).block(&[[1.0], [2.0]]).op(Op::HeldOut);
        assert!(shard.answer(request.words().to_vec()).is_err());
        shard.split(vec![Fold { train: vec![0, 1], test: vec![2, 0] }]).unwrap();
        // Rows without weight are predicted, too.
        assert_eq!(shard.answer(request.words().to_vec()).unwrap().sums, [15.0, 1.0]);
    }

    #[test]
    fn bad_rows_are_refused_at_the_start() {
        let bad = data(vec![1.0, f64::NAN, 0.0, 2.0, 5.0, 5.0], vec![1.0; 3]);
        assert!(matches!(Served::start(bad), Err(Error::NotFinite { .. })));
        assert!(matches!(Served::start(data(vec![1.0; 6], vec![1.0; 2])), Err(Error::Shape { .. })));
    }
}
