//! Progress of lanes that are fitted in parallel: adds to each report of a solver the value of `C`, the lanes
//! left and the readings of the data so far.

use std::sync::Mutex;

use crate::fit::{Monitor, Progress, Reading, SearchProgress};

/// Watches the lanes that run as parallel tasks at one `C`.
pub struct Watch<'a> {
    caller: &'a dyn Monitor,
    place: Mutex<SearchProgress>,
}

impl<'a> Watch<'a> {
    /// Begins a step.
    pub fn new(caller: &'a dyn Monitor, c: f64, n_lanes: usize) -> Self {
        Self { caller, place: Mutex::new(SearchProgress { c, lanes_left: n_lanes, passes: 0.0 }) }
    }

    /// Takes note of a finished lane.
    pub fn finish(&self, passes: f64) {
        // A poisoned lock belongs to a panicking task, which is reported itself.
        if let Ok(mut place) = self.place.lock() {
            place.lanes_left -= 1;
            place.passes += passes;
        }
    }
}

impl Monitor for Watch<'_> {
    fn cancelled(&self) -> bool {
        self.caller.cancelled()
    }

    fn observe_reading(&self, reading: &Reading) {
        let (solver, iteration) = (reading.solver, reading.passes as usize);
        self.observe(&Progress { solver, iteration, accuracy: reading.gap, search: None });
    }

    fn observe(&self, progress: &Progress) {
        let search = self.place.lock().ok().map(|place| *place);
        self.caller.observe(&Progress { search, ..*progress });
    }
}
