//! A long call from Python: a pool of its own, interrupts within a tenth of a second, progress from the calling thread.
//!
//! The work runs in a rayon pool made for the call (nothing is shared between Python threads that fit at once). The calling
//! thread waits with the interpreter released, wakes up every [`TICK`] to let Python handle signals and to hand over the
//! latest progress, and on an exception, or when the time limit of the call is over, raises a flag that every solver polls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::outofcore::trainer::NAME as BLOCKS;
use crate::solver::{Monitor, Progress, Reading};
use crate::{Error, Result};

/// Time between two looks at signals and progress.
const TICK: Duration = Duration::from_millis(50);

/// The monitor of a call: flags, a clock and the latest progress.
pub struct Flag {
    cancelled: AtomicBool,
    overdue: AtomicBool,
    started: Instant,
    latest: Mutex<Option<News>>,
}

/// What a job reports.
enum News {
    /// From a fit in memory or a search.
    Progress(Progress),
    /// From a descent over a store.
    Reading(Reading),
}

impl Flag {
    fn new() -> Self {
        let (cancelled, overdue) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { cancelled, overdue, started: Instant::now(), latest: Mutex::new(None) }
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn note(&self, news: News) {
        // A poisoned lock belongs to a panicking task; the panic itself is reported, the progress is not worth a second one.
        if let Ok(mut latest) = self.latest.lock() {
            *latest = Some(news);
        }
    }

    /// Stops the job because its time is over.
    fn expire(&self) {
        self.overdue.store(true, Ordering::Relaxed);
        self.cancel();
    }
}

impl Monitor for Flag {
    #[inline]
    fn cancelled(&self) -> bool {
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

/// Runs `job` in a pool of `n_threads` threads, with the interpreter released.
///
/// `progress`, if given, is called at most every [`TICK`] with `(solver, iteration, accuracy)`, in a search with
/// `(solver, C, iteration, lanes_left, passes, accuracy)`, in a descent over a store with `(solver, passes, gap, rows, bytes)`. An exception in it, or a signal, stops the job and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<T> {
    run_within(py, n_threads, None, progress, job)
}

/// [`run`] with a limit of time, after which the job is stopped as overdue; what that means is the job's affair.
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

/// [`run`] for a job with a result worth keeping when it is interrupted: a KeyboardInterrupt is dropped if there is one.
pub fn run_keeping<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<T> {
    match watch(py, n_threads, None, progress, job)? {
        (result, Some(error)) if result.is_err() || !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        (result, _) => Ok(result?),
    }
}

/// Runs the job and waits for it: its result, and the exception that stopped it.
fn watch<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    limit: Option<Duration>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Flag) -> Result<T> + Send,
) -> PyResult<(Result<T>, Option<PyErr>)> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads.max(1))
        .build()
        .map_err(|e| PyRuntimeError::new_err(format!("cannot start {n_threads} threads: {e}")))?;
    let flag = Flag::new();
    let progress = progress.map(|callback| callback.clone().unbind());
    let (outcome, raised) = py.detach(|| {
        let (done, wait) = channel::<()>();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _done = done; // dropped at the end, also by a panic: wakes the caller
                pool.install(|| job(&flag))
            });
            let mut raised = None;
            while wait.recv_timeout(next_look(&flag, limit)) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() && limit.is_some_and(|limit| flag.started.elapsed() >= limit) {
                    flag.expire();
                }
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| look(py, &flag, progress.as_ref()))
                {
                    flag.cancel();
                    raised = Some(error);
                }
            }
            (worker.join(), raised)
        })
    });
    match outcome {
        Ok(result) => Ok((result, raised)),
        Err(panic) => match raised {
            Some(error) => Err(error),
            None => std::panic::resume_unwind(panic),
        },
    }
}

/// Time to the next tick or to the limit, whichever comes first.
fn next_look(flag: &Flag, limit: Option<Duration>) -> Duration {
    let left = limit.map(|limit| limit.saturating_sub(flag.started.elapsed()));
    left.filter(|left| !left.is_zero()).map_or(TICK, |left| left.min(TICK))
}

fn look(py: Python<'_>, flag: &Flag, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    let latest = flag.latest.lock().ok().and_then(|mut latest| latest.take());
    if let (Some(callback), Some(news)) = (progress, latest) {
        match news {
            News::Reading(r) => callback.call1(py, (BLOCKS, r.passes, r.gap, r.rows, r.bytes))?,
            News::Progress(p) => match p.place {
                None => callback.call1(py, (p.solver, p.iteration, p.accuracy))?,
                Some(at) => callback.call1(py, (p.solver, at.c, p.iteration, at.lanes_left, at.passes, p.accuracy))?,
            },
        };
    }
    Ok(())
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
