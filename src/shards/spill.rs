//! What is known of the rows of pieces, in a file, where the budget has no room for it.
//!
//! A piece that leaves memory leaves its vectors in the file. When its turn comes an operation brings back
//! those that it needs, and what it has changed is written again ([`Touched`]): a product with the Hessian
//! reads the curvatures of the rows and writes nothing. As that of [`crate::blocks::duals`] the file has no
//! name: it is gone with the process, however that ends.
//!
//! Tried: all vectors of a piece in and out at each of its turns. The search on flights within 300 MB took 28
//! to 31 s instead of 22 to 25, a covtype fit with the hinge within 85 MB 5.0 to 5.7 instead of 4.0.

use std::ops::{BitOr, BitOrAssign};
use std::path::PathBuf;
use std::sync::Arc;

use super::wire::Op;
use crate::durable::nameless::NamelessFile;
use crate::matrix::lanes::Block;
use crate::{Result, memory};

/// Vectors that are needed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownPart {
    /// Costs, labels, and the dual variables of the hinge's sequence of smooth problems.
    Terms,
    /// Dual points beside the slopes.
    Points,
    /// Decision values.
    Decisions,
    /// Slopes.
    Slopes,
    /// Curvatures.
    Curvatures,
    /// Decision values of a step.
    Steps,
    /// Those of a product, which nothing asks for again.
    Products,
}

impl KnownPart {
    /// Those that are in the file.
    const KEPT: [Self; 6] =
        [Self::Terms, Self::Points, Self::Decisions, Self::Slopes, Self::Curvatures, Self::Steps];
}

/// Some parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownParts(u8);

impl KnownParts {
    const NONE: Self = Self(0);
    const ALL: Self = Self(u8::MAX);

    const fn of(parts: &[KnownPart]) -> Self {
        let (mut bits, mut k) = (0, 0);
        while k < parts.len() {
            bits |= 1 << parts[k] as u8;
            k += 1;
        }
        Self(bits)
    }

    fn has(self, part: KnownPart) -> bool {
        self.0 & Self::of(&[part]).0 != 0
    }
}

impl BitOr for KnownParts {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for KnownParts {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// What an operation does with what is known of the rows.
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    /// What it reads.
    pub read: KnownParts,
    /// What it makes, of nothing or of what it reads.
    pub changed: KnownParts,
}

impl Touched {
    /// Of an operation; those that a fit asks for now and then are taken to touch everything.
    pub fn by(op: Op) -> Self {
        use KnownPart::{Curvatures, Decisions, Points, Slopes, Steps, Terms};
        let (read, changed): (&[KnownPart], &[KnownPart]) = match op {
            Op::Begin | Op::BeginFolds | Op::Columns => {
                return Self { read: KnownParts::NONE, changed: KnownParts::ALL };
            }
            Op::Hash | Op::Survey | Op::Travelling => (&[], &[]),
            Op::Decide => (&[], &[Decisions]),
            Op::Shift => (&[Decisions], &[Decisions]),
            Op::HeldOut => (&[Decisions], &[]),
            Op::Evaluate | Op::EvaluateQuietly => (&[Terms, Decisions], &[Slopes, Curvatures, Points]),
            Op::Curvature | Op::Multiply => (&[Curvatures], &[]),
            Op::Finish => (&[], &[Steps]),
            Op::Slopes => (&[Terms, Decisions], &[]),
            Op::Losses | Op::SlopesAhead => (&[Terms, Decisions, Steps], &[]),
            Op::Advance => (&[Decisions, Steps], &[Decisions]),
            _ => return Self { read: KnownParts::ALL, changed: KnownParts::ALL },
        };
        Self { read: KnownParts::of(read), changed: KnownParts::of(changed) }
    }
}

/// A vector with an entry per row.
pub trait RowVector {
    /// Its numbers.
    fn numbers(&self) -> &[f64];
    /// Gives its memory back.
    fn forget(&mut self);
    /// Has so many numbers again, to be written.
    fn remake(&mut self, len: usize) -> &mut [f64];
}

impl RowVector for Vec<f64> {
    fn numbers(&self) -> &[f64] {
        self
    }

    fn forget(&mut self) {
        *self = Self::new();
    }

    fn remake(&mut self, len: usize) -> &mut [f64] {
        *self = memory::zeros(len);
        self
    }
}

/// Those who share it get a copy each.
impl RowVector for Arc<Vec<f64>> {
    fn numbers(&self) -> &[f64] {
        self
    }

    fn forget(&mut self) {
        *self = Self::default();
    }

    fn remake(&mut self, len: usize) -> &mut [f64] {
        *self = Self::new(memory::zeros(len));
        Self::get_mut(self).expect("nobody else has it yet")
    }
}

impl<const L: usize> RowVector for Block<L> {
    fn numbers(&self) -> &[f64] {
        self.as_flattened()
    }

    fn forget(&mut self) {
        *self = Self::default();
    }

    fn remake(&mut self, len: usize) -> &mut [f64] {
        *self = Self::zeros(len / L);
        self.as_flattened_mut()
    }
}

/// Where a part of a piece is.
#[derive(Clone, Default)]
struct Place {
    start: u64,
    /// Bytes that are its own from there on.
    room: u64,
    /// Numbers of each of its vectors.
    lens: Vec<usize>,
}

/// A piece.
#[derive(Clone)]
struct Spilled {
    places: [Place; KnownPart::KEPT.len()],
    /// What is in memory,
    here: KnownParts,
    /// and what of that the file does not have.
    changed: KnownParts,
}

/// The file.
pub struct SpillFile {
    folder: PathBuf,
    /// Made when something is to be written.
    file: Option<NamelessFile>,
    pieces: Vec<Spilled>,
    end: u64,
}

impl SpillFile {
    /// For so many pieces, of which nothing is known yet, in a folder.
    pub fn new(folder: PathBuf, n_pieces: usize) -> Self {
        let piece = Spilled { places: Default::default(), here: KnownParts::ALL, changed: KnownParts::NONE };
        Self { folder, file: None, pieces: vec![piece; n_pieces], end: 0 }
    }

    /// Brings what an operation reads into memory, and takes it that it does what [`Touched`] says.
    ///
    /// # Errors
    /// [`crate::Error::Io`], which names the folder; the vectors are then lost.
    pub fn bring(&mut self, k: usize, op: Op, vectors: Vec<(KnownPart, &mut dyn RowVector)>) -> Result<()> {
        let Touched { read, changed } = Touched::by(op);
        let piece = &self.pieces[k];
        let mut left = piece.places.each_ref().map(|place| (place.start, place.lens.iter()));
        let is_to_come = |part| KnownPart::KEPT.contains(&part) && read.has(part) && !piece.here.has(part);
        for (part, vector) in vectors.into_iter().filter(|(part, _)| is_to_come(*part)) {
            let (at, lens) = &mut left[part as usize];
            let len = *lens.next().expect("as many as were put there");
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(vector.remake(len));
            if !bytes.is_empty() {
                self.file.as_ref().expect("it has been written").read(bytes, *at)?;
            }
            *at += bytes.len() as u64;
        }
        let piece = &mut self.pieces[k];
        piece.here |= read | changed;
        piece.changed |= changed;
        Ok(())
    }

    /// Takes all vectors of a piece out of memory. A part that has got more than it had moves to the end of
    /// the file: dual points do, once or twice in a fit.
    ///
    /// # Errors
    /// [`crate::Error::Io`], which names the folder.
    pub fn put(&mut self, k: usize, mut vectors: Vec<(KnownPart, &mut dyn RowVector)>) -> Result<()> {
        let changed = self.pieces[k].changed;
        for part in KnownPart::KEPT.into_iter().filter(|part| changed.has(*part)) {
            let of_part = vectors.iter().filter(|(of, _)| *of == part).map(|(_, vector)| vector.numbers());
            self.write(k, part, &of_part.collect::<Vec<_>>())?;
        }
        vectors.iter_mut().for_each(|(_, vector)| vector.forget());
        (self.pieces[k].here, self.pieces[k].changed) = (KnownParts::NONE, KnownParts::NONE);
        Ok(())
    }

    fn write(&mut self, k: usize, part: KnownPart, vectors: &[&[f64]]) -> Result<()> {
        let place = &mut self.pieces[k].places[part as usize];
        place.lens = vectors.iter().map(|numbers| numbers.len()).collect();
        let bytes = vectors.iter().map(|numbers| size_of_val(*numbers) as u64).sum();
        if bytes > place.room {
            (place.start, place.room) = (self.end, bytes);
            self.end += bytes;
        }
        let mut at = place.start;
        for numbers in vectors.iter().filter(|numbers| !numbers.is_empty()) {
            let bytes: &[u8] = bytemuck::cast_slice(numbers);
            self.file()?.write(bytes, at)?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    fn file(&mut self) -> Result<&mut NamelessFile> {
        let file = match self.file.take() {
            Some(file) => file,
            None => NamelessFile::empty(&self.folder)?,
        };
        Ok(self.file.insert(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use proptest::prelude::*;
    use std::path::Path;

    const N: usize = 5;

    /// What is known of the rows of a piece.
    #[derive(Clone)]
    struct Known {
        cost: Vec<f64>,
        alpha: Arc<Vec<f64>>,
        point: Option<Vec<f64>>,
        z: Block<8>,
        curvature: Block<8>,
        slopes: Block<8>,
        steps: Block<8>,
    }

    impl Known {
        fn zeros() -> Self {
            let block = || Block::zeros(N);
            let [cost, alpha] = [vec![0.0; N], vec![0.0; N]];
            let (z, curvature, slopes, steps) = (block(), block(), block(), block());
            Self { cost, alpha: Arc::new(alpha), point: None, z, curvature, slopes, steps }
        }

        fn vectors(&mut self) -> Vec<(KnownPart, &mut dyn RowVector)> {
            let Self { cost, alpha, point, z, curvature, slopes, steps } = self;
            let mut all: Vec<(KnownPart, &mut dyn RowVector)> = vec![
                (KnownPart::Terms, cost),
                (KnownPart::Decisions, z),
                (KnownPart::Slopes, slopes),
                (KnownPart::Terms, alpha),
            ];
            all.extend([(KnownPart::Curvatures, curvature as &mut dyn RowVector), (KnownPart::Steps, steps)]);
            all.extend(point.as_mut().map(|point| (KnownPart::Points, point as &mut dyn RowVector)));
            all
        }

        fn numbers(&mut self) -> Vec<(KnownPart, Vec<f64>)> {
            self.vectors().into_iter().map(|(part, vector)| (part, vector.numbers().to_vec())).collect()
        }

        /// Writes what an operation changes, in memory of its own where the vectors are not there.
        fn change(&mut self, op: Op, number: f64) {
            match op {
                Op::Evaluate => self.point = None,
                Op::Settle => self.point = Some(vec![0.0; N + number as usize % 3]),
                _ => {}
            }
            let changed = Touched::by(op).changed;
            for (k, (_, vector)) in self.vectors().into_iter().filter(|(p, _)| changed.has(*p)).enumerate() {
                let len = if vector.numbers().is_empty() { 8 * N } else { vector.numbers().len() };
                vector.remake(len).fill(number + k as f64);
            }
        }
    }

    const OPS: [Op; 9] = [
        Op::Evaluate,
        Op::Multiply,
        Op::Finish,
        Op::Losses,
        Op::Advance,
        Op::Decide,
        Op::HeldOut,
        Op::Settle,
        Op::Shift,
    ];

    proptest! {
        /// Against pieces that never leave memory: an operation finds what it reads.
        #[test]
        fn what_is_read_is_what_was_known(
            turns in prop::collection::vec((0..3_usize, prop::collection::vec(0..OPS.len(), 1..4)), 1..40),
        ) {
            let mut file = SpillFile::new(std::env::temp_dir(), 3);
            let mut all = [Known::zeros(), Known::zeros(), Known::zeros()];
            let mut twins = all.clone();
            for (k, piece) in all.iter_mut().enumerate() {
                file.bring(k, Op::Begin, piece.vectors()).unwrap();
                file.put(k, piece.vectors()).unwrap();
                prop_assert!(piece.numbers().iter().all(|(_, numbers)| numbers.is_empty()));
            }
            for (number, (k, ops)) in turns.into_iter().enumerate() {
                for op in ops.into_iter().map(|op| OPS[op]) {
                    file.bring(k, op, all[k].vectors()).unwrap();
                    let (found, expected) = (all[k].numbers(), twins[k].numbers());
                    prop_assert_eq!(found.len(), expected.len());
                    let is_read = |part| Touched::by(op).read.has(part);
                    for (one, other) in found.into_iter().zip(expected) {
                        prop_assert!(!is_read(one.0) || one == other, "{:?} {:?}", op, one.0);
                    }
                    all[k].change(op, number as f64);
                    twins[k].change(op, number as f64);
                }
                file.put(k, all[k].vectors()).unwrap();
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut file = SpillFile::new("no/such/folder".into(), 1);
        let mut piece = Known::zeros();
        file.bring(0, Op::Begin, piece.vectors()).unwrap();
        let Err(Error::Io { path, .. }) = file.put(0, piece.vectors()) else { panic!("no error") };
        assert_eq!(path, Path::new("no/such/folder"));
    }
}
