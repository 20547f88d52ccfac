//! A value that calls from several Python threads use one after the other.
//!
//! A call that waited for a mutex with the interpreter held would stop everybody: the call that has the mutex
//! needs the interpreter to end. Here a call waits with the interpreter released, and wakes up every [`TICK`]
//! to let Python handle signals.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::run::TICK;

/// The value, and who has it.
pub struct Turns<T> {
    /// Locked for moments only, never while anything is waited for.
    seat: Mutex<Seat<T>>,
    freed: Condvar,
}

enum Seat<T> {
    Free(T),
    Taken(ThreadId),
}

impl<T: Send> Turns<T> {
    /// Of a value that nobody has yet.
    pub fn new(value: T) -> Self {
        Self { seat: Mutex::new(Seat::Free(value)), freed: Condvar::new() }
    }

    /// Waits until the value is free and takes it.
    ///
    /// # Errors
    /// What a signal handler raises meanwhile; RuntimeError where this thread has the value already (a call
    /// from within a call).
    pub fn take(&self, py: Python<'_>) -> PyResult<Turn<'_, T>> {
        loop {
            if let Some(value) = self.try_take()? {
                return Ok(Turn { turns: self, value: Some(value) });
            }
            py.detach(|| self.wait());
            py.check_signals()?;
        }
    }

    fn try_take(&self) -> PyResult<Option<T>> {
        let me = thread::current().id();
        let mut seat = self.seat();
        match std::mem::replace(&mut *seat, Seat::Taken(me)) {
            Seat::Free(value) => Ok(Some(value)),
            Seat::Taken(holder) => {
                *seat = Seat::Taken(holder);
                let within = "this object is in the middle of a call of the same thread: wait for its end";
                if holder == me { Err(PyRuntimeError::new_err(within)) } else { Ok(None) }
            }
        }
    }

    /// Waits for the value to be free, no longer than [`TICK`].
    fn wait(&self) {
        let is_taken = |seat: &mut Seat<T>| matches!(seat, Seat::Taken(_));
        let ended = self.freed.wait_timeout_while(self.seat(), TICK, is_taken);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }

    /// Nothing in between locking and unlocking can fail, so there is no poisoned state.
    fn seat(&self) -> MutexGuard<'_, Seat<T>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value, until this is dropped.
pub struct Turn<'a, T: Send> {
    turns: &'a Turns<T>,
    /// There until the drop.
    value: Option<T>,
}

impl<T: Send> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the value is given back by the drop only")
    }
}

impl<T: Send> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("the value is given back by the drop only")
    }
}

impl<T: Send> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            *self.turns.seat() = Seat::Free(value);
            self.turns.freed.notify_one();
        }
    }
}
