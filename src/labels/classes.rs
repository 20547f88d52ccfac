//! The classes of a store or a model: their labels, in the order of their ids.

use serde::{Deserialize, Serialize};

/// Labels of one type, in the order of their ids: in a store that of first appearance, sorted in a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "labels", rename_all = "lowercase")]
pub enum Classes {
    /// Truth values.
    Bool(Vec<bool>),
    /// Whole numbers.
    Int(Vec<i64>),
    /// Numbers.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

impl Classes {
    /// Number of classes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(labels) => labels.len(),
            Self::Int(labels) => labels.len(),
            Self::Float(labels) => labels.len(),
            Self::Text(labels) => labels.len(),
        }
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ids in the order of the sorted labels; `None` if a label comes twice or is not finite.
    pub fn sorted(&self) -> Option<Vec<u32>> {
        match self {
            Self::Bool(labels) => order(labels, |a, b| a.cmp(b)),
            Self::Int(labels) => order(labels, |a, b| a.cmp(b)),
            Self::Float(labels) if labels.iter().all(|x| x.is_finite()) => order(labels, |a, b| {
                // Not `total_cmp`: 0 and -0 are one label.
                a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal)
            }),
            Self::Float(_) => None,
            Self::Text(labels) => order(labels, |a, b| a.cmp(b)),
        }
    }

    /// The labels in sorted order, given [`Self::sorted`].
    pub fn in_order(&self, ids: &[u32]) -> Self {
        fn pick<T: Clone>(labels: &[T], ids: &[u32]) -> Vec<T> {
            ids.iter().map(|&id| labels[id as usize].clone()).collect()
        }
        match self {
            Self::Bool(labels) => Self::Bool(pick(labels, ids)),
            Self::Int(labels) => Self::Int(pick(labels, ids)),
            Self::Float(labels) => Self::Float(pick(labels, ids)),
            Self::Text(labels) => Self::Text(pick(labels, ids)),
        }
    }
}

fn order<T>(labels: &[T], compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<Vec<u32>> {
    let mut ids: Vec<u32> = (0..labels.len() as u32).collect();
    ids.sort_by(|&a, &b| compare(&labels[a as usize], &labels[b as usize]));
    let repeats =
        ids.windows(2).any(|pair| compare(&labels[pair[0] as usize], &labels[pair[1] as usize]).is_eq());
    (!repeats).then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_repetitions_refused() {
        assert_eq!(Classes::Int(vec![5, -1, 3]).sorted(), Some(vec![1, 2, 0]));
        assert_eq!(Classes::Int(vec![5, 5]).sorted(), None);
        assert_eq!(Classes::Float(vec![0.0, -0.0]).sorted(), None);
        assert_eq!(Classes::Float(vec![f64::NAN]).sorted(), None);
        assert_eq!(Classes::Bool(vec![true, false]).sorted(), Some(vec![1, 0]));
        let text = Classes::Text(vec!["b".into(), "a".into()]);
        assert_eq!(text.in_order(&text.sorted().unwrap()), Classes::Text(vec!["a".into(), "b".into()]));
    }
}
