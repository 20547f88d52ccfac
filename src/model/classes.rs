//! Names of classes and labels.

/// Classes of one type, in the order of their numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Classes {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Truth values.
    Booleans(Vec<bool>),
    /// Strings.
    Strings(Vec<String>),
}

impl Classes {
    /// Number of classes.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(classes) => classes.len(),
            Self::Floats(classes) => classes.len(),
            Self::Booleans(classes) => classes.len(),
            Self::Strings(classes) => classes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
