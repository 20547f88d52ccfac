//! The stop by short steps: the sum of the lengths of the last steps.

/// The lengths of the last steps and their sum.
pub struct Window {
    lengths: Vec<f64>,
    at: usize,
    seen: usize,
    sum: f64,
    /// Sum at which to stop; 0 for never.
    pub limit: f64,
}

impl Window {
    /// No steps yet.
    pub fn new((steps, limit): (usize, f64)) -> Self {
        let len = if limit > 0.0 { steps.max(1) } else { 0 };
        Self { lengths: vec![0.0; len], at: 0, seen: 0, sum: 0.0, limit }
    }

    /// Records a step.
    pub fn push(&mut self, length: f64) {
        self.sum += length - self.lengths[self.at];
        self.lengths[self.at] = length;
        self.at += 1;
        self.seen += 1;
        if self.at == self.lengths.len() {
            self.at = 0;
            self.sum = self.lengths.iter().sum(); // free of the rounding of many differences
        }
    }

    #[inline(always)]
    /// Whether enough steps have been seen and their sum is at the limit.
    pub fn is_still(&self) -> bool {
        self.limit > 0.0 && self.seen >= self.lengths.len() && self.sum <= self.limit
    }
}
