//! A long call from Python: threads of its own, interrupts within a tenth of a second, progress from the
//! calling thread.
//!
//! With one thread the job runs on the calling thread and no other is started: its polls of the [`Flag`] read
//! the clock, and every [`TICK`] take the interpreter for a moment, to let Python handle signals and to
//! hand over the latest progress. With more, the job runs in a rayon pool made for the call (nothing is
//! shared between Python threads that fit at once), and the calling thread does so while it waits. An
//! exception, or the end of the time limit of the call, raises a flag that every solver polls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use super::errors::from_panic;
use crate::fit::{Monitor, Progress, Reading};
use crate::{Error, Result, memory, parallel};

/// Time between two checks for signals and progress.
pub const TICK: Duration = Duration::from_millis(50);

/// The job never checks for signals and progress itself.
const NEVER: u64 = u64::MAX;

/// The monitor of a call: flags, a clock, the latest progress and whom to tell.
pub struct Flag {
    cancelled: AtomicBool,
    overdue: AtomicBool,
    started: Instant,
    limit: Option<Duration>,
    /// Nanoseconds from the start to the next check that a poll makes.
    due: AtomicU64,
    /// Whether signals or progress can still matter to the calling thread.
    is_checking: AtomicBool,
    progress: Option<Py<PyAny>>,
    latest: Mutex<Option<News>>,
    raised: Mutex<Option<PyErr>>,
}

/// What a job reports on its progress.
enum News {
    /// From a fit in memory or a search.
    Progress(Progress),
    /// From a descent over a store.
    Reading(Reading),
}

impl Flag {
    fn new(limit: Option<Duration>, progress: Option<&Bound<'_, PyAny>>) -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            overdue: AtomicBool::new(false),
            started: Instant::now(),
            limit,
            due: AtomicU64::new(NEVER),
            is_checking: AtomicBool::new(true),
            progress: progress.map(|callback| callback.clone().unbind()),
            latest: Mutex::new(None),
            raised: Mutex::new(None),
        }
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn note(&self, news: News) {
        // A poisoned lock belongs to a panicking task; the panic itself is reported, the progress is not
        // worth a second one.
        if let Ok(mut latest) = self.latest.lock() {
            *latest = Some(news);
        }
    }

    /// Time from the start to the next check or the limit, whichever comes first.
    fn next(&self) -> Option<Duration> {
        let check = self.is_checking.load(Ordering::Relaxed).then(|| self.started.elapsed() + TICK);
        let limit = self.limit.filter(|_| !self.is_overdue());
        check.into_iter().chain(limit).min()
    }

    /// Stops a job whose time is over; checks for signals, and stops the job on an exception.
    fn wake(&self) {
        if self.limit.is_some_and(|limit| self.started.elapsed() >= limit) {
            self.overdue.store(true, Ordering::Relaxed);
            self.cancel();
        }
        if self.is_checking.load(Ordering::Relaxed) {
            let again = Python::attach(|py| self.check(py)).unwrap_or_else(|error| self.stop(error));
            self.is_checking.store(again, Ordering::Relaxed);
        }
    }

    /// Lets Python handle signals and hands over the latest progress; whether to do so again.
    fn check(&self, py: Python<'_>) -> PyResult<bool> {
        py.check_signals()?;
        let Some(callback) = &self.progress else { return handles_signals(py) };
        let latest = self.latest.lock().ok().and_then(|mut latest| latest.take());
        match latest {
            None => None,
            Some(News::Reading(r)) => Some(callback.call1(py, (r.solver, r.passes, r.gap, r.rows, r.bytes))?),
            Some(News::Progress(p)) => Some(match p.search {
                None => callback.call1(py, (p.solver, p.iteration, p.accuracy))?,
                Some(at) => {
                    callback.call1(py, (p.solver, at.c, p.iteration, at.lanes_left, at.passes, p.accuracy))?
                }
            }),
        };
        Ok(true)
    }

    /// Stops the job because of an exception, after which there are no further checks.
    fn stop(&self, error: PyErr) -> bool {
        self.cancel();
        if let Ok(mut raised) = self.raised.lock() {
            *raised = Some(error);
        }
        false
    }

    /// [`Self::wake`] from within the job, unless another thread of it was faster.
    #[cold]
    fn wake_within(&self, due: u64) {
        if self.due.compare_exchange(due, NEVER, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.wake();
            self.set_due();
        }
    }

    fn set_due(&self) {
        self.due.store(self.next().map_or(NEVER, |next| next.as_nanos() as u64), Ordering::Relaxed);
    }

    /// Waits for the result of a job that runs elsewhere.
    fn wait<T>(&self, result: &Receiver<T>) -> std::result::Result<T, RecvTimeoutError> {
        loop {
            let found = match self.next() {
                Some(next) => result.recv_timeout(next.saturating_sub(self.started.elapsed())),
                None => result.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match found {
                Err(RecvTimeoutError::Timeout) => self.wake(),
                found => return found,
            }
        }
    }
}

/// Only the main thread handles signals.
fn handles_signals(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("main_thread")?.is(&threading.call_method0("current_thread")?))
}

impl Monitor for Flag {
    #[inline]
    fn cancelled(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        if due != NEVER && self.started.elapsed().as_nanos() as u64 >= due {
            self.wake_within(due);
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn observe(&self, progress: &Progress) {
        self.note(News::Progress(*progress));
    }

    fn observe_reading(&self, reading: &Reading) {
        self.note(News::Reading(*reading));
    }
}

/// Runs `job` with `n_threads` threads, on this one alone if that is one, with the interpreter released.
///
/// `progress`, if given, is called at most every [`TICK`] with `(solver, iteration, accuracy)`, in a search
/// with `(solver, C, iteration, lanes_left, passes, accuracy)`, in a descent over a store with
/// `(solver, passes, gap, rows, bytes)`. An exception in it, or a signal, stops the job and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<T> {
    run_within(py, n_threads, None, progress, job)
}

/// [`run`] with a time limit, after which the job is stopped as overdue; the job decides what its result then
/// is.
pub fn run_within<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    limit: Option<Duration>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<T> {
    match watch(py, n_threads, limit, progress, job)? {
        (_, Some(error)) => Err(error),
        (result, None) => Ok(result?),
    }
}

/// [`run`] for a job with a result worth keeping when it is interrupted: a KeyboardInterrupt is dropped if
/// there is one.
pub fn run_keeping<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<T> {
    match watch(py, n_threads, None, progress, job)? {
        (result, Some(error)) if result.is_err() || !error.is_instance_of::<PyKeyboardInterrupt>(py) => {
            Err(error)
        }
        (result, _) => Ok(result?),
    }
}

/// Runs the job and waits for it: its result, and the exception that stopped it. Compiled anew for every job
/// is only that it leaves its result behind.
fn watch<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    limit: Option<Duration>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<(Result<T>, Option<PyErr>)> {
    let (mut job, mut result) = (Some(job), None);
    let mut work = |flag: &Flag| {
        if let Some(job) = job.take() {
            result = Some(memory::catch(|| job(flag)));
        }
    };
    let raised = watch_work(py, n_threads, Flag::new(limit, progress), &mut work)?;
    match result {
        Some(result) => Ok((result, raised)),
        None => Err(PyRuntimeError::new_err("a thread of the call has ended without a result")),
    }
}

/// What a job does, whatever comes of it.
type Work<'a> = dyn FnMut(&Flag) + Send + 'a;

/// Runs the work and waits for its end: the exception that stopped it, if one did.
fn watch_work(py: Python<'_>, n_threads: usize, flag: Flag, work: &mut Work<'_>) -> PyResult<Option<PyErr>> {
    let ended =
        py.detach(
            || if n_threads <= 1 { run_here(&flag, work) } else { run_in_pool(n_threads, &flag, work) },
        )?;
    match (ended, flag.raised.into_inner().ok().flatten()) {
        (Ok(()), raised) => Ok(raised),
        (Err(_), Some(error)) => Err(error),
        (Err(panic), None) => Err(from_panic(panic)),
    }
}

/// Does the work on this thread, watched by its own polls.
fn run_here(flag: &Flag, work: &mut Work<'_>) -> PyResult<thread::Result<()>> {
    flag.set_due();
    Ok(catch_unwind(AssertUnwindSafe(|| parallel::alone(|| work(flag)))))
}

/// Does the work in a pool, watched by this thread.
fn run_in_pool(n_threads: usize, flag: &Flag, work: &mut Work<'_>) -> PyResult<thread::Result<()>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().map_err(|e| {
        PyRuntimeError::new_err(format!("cannot start {n_threads} threads: {e}; ask for fewer by n_jobs"))
    })?;
    let (done, ended) = channel();
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            // the receiver waits below
            let _ = done.send(catch_unwind(AssertUnwindSafe(|| work(flag))));
        });
        flag.wait(&ended)
            .map_err(|_| PyRuntimeError::new_err("a thread of the call has ended without a result"))
    })
}

/// Wraps the error of a Python callback called from within a job; [`unwrap_callback`] finds it again.
pub fn callback_error(error: PyErr, slot: &Mutex<Option<PyErr>>) -> Error {
    let reason = error.to_string();
    if let Ok(mut slot) = slot.lock() {
        *slot = Some(error);
    }
    Error::Callback { reason }
}

/// The original exception of a callback, if one failed.
pub fn unwrap_callback<T>(result: PyResult<T>, slot: &Mutex<Option<PyErr>>) -> PyResult<T> {
    match slot.lock().ok().and_then(|mut slot| slot.take()) {
        Some(error) if result.is_err() => Err(error),
        _ => result,
    }
}
