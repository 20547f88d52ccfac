//! Questions to the shards and their answers, as numbers.
//!
//! A request is a list of operations that every shard does one after the other; each is a code, its arguments
//! and its vectors, all as doubles, so that a request is one array of any transport. An answer is two lists:
//! sums, which are added over the shards, and maxima. Vectors have the lanes in use only, the padding stays
//! at home.

use crate::fit::newton::factorisation::Form;
use crate::{Error, Result, memory};

/// What a shard is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Begins a problem: first class, number of lanes, factor of the costs. Everything is zero afterwards.
    Begin,
    /// Decision values of weights.
    Decide,
    /// Adds to the decision values.
    Shift,
    /// Asks for the slopes at shifted decision values.
    Slopes,
    /// Asks for gradient and losses.
    Evaluate,
    /// The same without an answer: for a shard that takes another's place.
    EvaluateQuietly,
    /// Asks for the matrix of curvatures, its diagonal, or that and the block of some columns: every so
    /// many-th row, how many columns, and which.
    Curvature,
    /// Asks for a product with the Hessian.
    Multiply,
    /// Decision values of a step.
    Finish,
    /// Asks for the losses at some lengths.
    Losses,
    /// Decision values anew; asks for the terms before and after.
    DecideAnew,
    /// Dual variables become the slopes.
    TakeSlopes,
    /// Asks for hinges and dual variables.
    Corners,
    /// Remembers the dual variables and the margins.
    Keep,
    /// Goes back to those dual variables.
    GoBack,
    /// Asks for what the dual variables of a lane weigh.
    Weigh,
    /// Asks for the sums of a proof.
    Prove,
    /// Begins a group of lanes of a search: first lane, number of lanes, binary problems of a fold.
    BeginFolds,
    /// Asks for the decision values of the rows held out of each lane, shard by shard.
    HeldOut,
    /// Asks for a hash of the rows, and one of their classes and costs, shard by shard.
    Hash,
    /// Goes so many steps.
    Advance,
    /// Asks for an epoch of dual descent from the slopes of a lane.
    Descend,
    /// Asks for the slopes of a lane linearised along a step: whether from the end of another one, which then
    /// comes first, and whether it is also asked for what that leaves out of gradient and matrix at the end.
    Linearise,
    /// Asks for the weights of such dual variables, moved onto the constraint.
    Settle,
    /// Asks for the weights of a fit on these rows alone.
    FitAlone,
    /// Asks for the slopes so many steps from here.
    SlopesAhead,
    /// Asks for a round of ascent in the dual.
    Ascend,
    /// Asks for the balance of the variables it came to.
    TakeAscent,
    /// Asks which columns are proportional, shard by shard.
    Survey,
    /// Tells which columns travel. No problem is begun afterwards.
    Columns,
    /// Asks how many columns travel, and which of them the rows have; nothing where all travel everywhere.
    Travelling,
}

impl Op {
    const ALL: [Self; 31] = [
        Self::Begin,
        Self::Decide,
        Self::Shift,
        Self::Slopes,
        Self::Evaluate,
        Self::EvaluateQuietly,
        Self::Curvature,
        Self::Multiply,
        Self::Finish,
        Self::Losses,
        Self::DecideAnew,
        Self::TakeSlopes,
        Self::Corners,
        Self::Keep,
        Self::GoBack,
        Self::Weigh,
        Self::Prove,
        Self::BeginFolds,
        Self::HeldOut,
        Self::Hash,
        Self::Advance,
        Self::Descend,
        Self::Linearise,
        Self::Settle,
        Self::FitAlone,
        Self::SlopesAhead,
        Self::Ascend,
        Self::TakeAscent,
        Self::Survey,
        Self::Columns,
        Self::Travelling,
    ];

    /// Whether it asks for nothing of the rows' entries.
    pub fn is_of_numbers(self) -> bool {
        use Op::{
            Advance, Begin, BeginFolds, Columns, Corners, GoBack, HeldOut, Keep, Losses, Shift, Slopes,
        };
        let is_told = matches!(self, Begin | BeginFolds | Columns | Op::Survey | Op::Travelling);
        let is_step = matches!(self, Shift | Slopes | Losses | Advance | Op::SlopesAhead | HeldOut);
        is_told || is_step || matches!(self, Op::TakeSlopes | Corners | Keep | GoBack)
    }

    /// Whether a piece of a store goes on from the weights at which the one before has ended.
    pub fn is_relayed(self) -> bool {
        matches!(self, Self::Descend | Self::Ascend)
    }

    /// Whether it is one of the steps of a search.
    pub fn is_of_search(self) -> bool {
        use Op::{Advance, Curvature, Decide, Evaluate, EvaluateQuietly, Finish, HeldOut, Losses, Multiply};
        let is_evaluation = matches!(self, Evaluate | EvaluateQuietly | Curvature | HeldOut);
        is_evaluation || matches!(self, Decide | Multiply | Finish | Losses | Advance)
    }
}

/// Where in a message a vector of the columns begins, and how many numbers it has of each.
pub type VectorAt = [usize; 2];

/// A request under construction.
#[derive(Clone, Debug, Default)]
pub struct Request {
    words: Vec<f64>,
    vectors: Vec<VectorAt>,
    lanes: usize,
}

impl Request {
    /// For so many lanes.
    pub fn new(lanes: usize) -> Self {
        Self { words: Vec::new(), vectors: Vec::new(), lanes }
    }

    /// One that was made before, with nothing known of its vectors.
    pub fn of_words(words: Vec<f64>) -> Self {
        Self { words, vectors: Vec::new(), lanes: 1 }
    }

    /// Begins an operation.
    pub fn op(&mut self, op: Op) -> &mut Self {
        self.words.push(f64::from(op as u8));
        self
    }

    /// An argument.
    pub fn number(&mut self, x: f64) -> &mut Self {
        self.words.push(x);
        self
    }

    /// A form of the matrix of curvatures.
    pub fn form(&mut self, form: Form) -> &mut Self {
        self.number(f64::from(form as u8))
    }

    /// Several.
    pub fn numbers(&mut self, numbers: &[f64]) -> &mut Self {
        memory::extend_from_slice(&mut self.words, numbers);
        self
    }

    /// A number per lane.
    pub fn lanes<const L: usize>(&mut self, x: &[f64; L]) -> &mut Self {
        self.words.extend_from_slice(&x[..self.lanes]);
        self
    }

    /// A vector of the columns with one lane.
    pub fn vector(&mut self, x: &[f64]) -> &mut Self {
        self.vectors.push([self.words.len(), 1]);
        self.numbers(x)
    }

    /// A vector of the columns.
    pub fn block<const L: usize>(&mut self, x: &[[f64; L]]) -> &mut Self {
        self.vectors.push([self.words.len(), self.lanes]);
        self.words.reserve(x.len() * self.lanes);
        for x in x {
            self.words.extend_from_slice(&x[..self.lanes]);
        }
        self
    }

    /// Appends another request.
    pub fn then(&mut self, other: &Self) -> &mut Self {
        let start = self.words.len();
        self.vectors.extend(other.vectors.iter().map(|[at, lanes]| [start + at, *lanes]));
        self.numbers(&other.words)
    }

    /// The numbers.
    pub fn words(&self) -> &[f64] {
        &self.words
    }

    /// Where its vectors are.
    pub fn vectors(&self) -> &[VectorAt] {
        &self.vectors
    }

    /// Forgets all operations.
    pub fn clear(&mut self) {
        self.words.clear();
        self.vectors.clear();
    }
}

/// A list of numbers that is read from its start: a request at a shard, or sums.
pub struct Reader<'a> {
    words: &'a [f64],
    lanes: usize,
}

impl<'a> Reader<'a> {
    /// Of lists with so many lanes.
    pub fn new(words: &'a [f64], lanes: usize) -> Self {
        Self { words, lanes }
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of lanes.
    pub fn n_lanes(&self) -> usize {
        self.lanes
    }

    /// Sets the number of lanes.
    pub fn set_lanes(&mut self, lanes: usize) {
        self.lanes = lanes;
    }

    /// The next operation, which stays the next.
    ///
    /// # Errors
    /// [`Error::Shape`] for what is none, as of all methods.
    pub fn next_op(&self) -> Result<Op> {
        Reader { words: self.words, lanes: self.lanes }.op()
    }

    /// The next operation.
    ///
    /// # Errors
    /// As for [`Self::next_op`].
    pub fn op(&mut self) -> Result<Op> {
        let code = self.number()? as usize;
        let known = Op::ALL.iter().find(|op| **op as usize == code);
        known.copied().ok_or(Error::Shape {
            what: "an operation of shards",
            expected: Op::ALL.len(),
            found: code,
        })
    }

    /// The next number.
    ///
    /// # Errors
    /// As for [`Self::op`].
    pub fn number(&mut self) -> Result<f64> {
        Ok(self.numbers(1)?[0])
    }

    /// The next form of the matrix of curvatures.
    ///
    /// # Errors
    /// As for [`Self::op`].
    pub fn form(&mut self) -> Result<Form> {
        let code = self.number()? as usize;
        let known = [Form::Diagonal, Form::Frequent, Form::Dense].into_iter().find(|f| *f as usize == code);
        known.ok_or(Error::Shape { what: "a form of curvatures", expected: 3, found: code })
    }

    /// The next numbers.
    ///
    /// # Errors
    /// As for [`Self::op`].
    pub fn numbers(&mut self, n: usize) -> Result<&'a [f64]> {
        if n > self.words.len() {
            return Err(Error::Shape { what: "numbers of a message", expected: n, found: self.words.len() });
        }
        let (head, rest) = self.words.split_at(n);
        self.words = rest;
        Ok(head)
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [f64] {
        self.words
    }

    /// A number per lane; the padding is 0.
    ///
    /// # Errors
    /// As for [`Self::op`].
    pub fn lanes<const L: usize>(&mut self) -> Result<[f64; L]> {
        let mut out = [0.0; L];
        out[..self.lanes].copy_from_slice(self.numbers(self.lanes)?);
        Ok(out)
    }

    /// A vector of so many entries.
    ///
    /// # Errors
    /// As for [`Self::op`].
    pub fn block<const L: usize>(&mut self, out: &mut [[f64; L]]) -> Result<()> {
        let numbers = self.numbers(out.len() * self.lanes)?;
        for (out, x) in out.iter_mut().zip(numbers.chunks_exact(self.lanes.max(1))) {
            out[..x.len()].copy_from_slice(x);
            out[x.len()..].fill(0.0);
        }
        Ok(())
    }
}

/// What the sums of an answer are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SumsKind {
    /// Sums.
    #[default]
    Sums,
    /// Decision values of held-out rows.
    HeldOut,
    /// Hashes.
    Hash,
    /// What is known of columns.
    Columns,
}

/// What shards answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardAnswer {
    /// What the sums are, if a shard's own.
    pub kind: SumsKind,
    /// To be added.
    pub sums: Vec<f64>,
    /// Of which the largest counts.
    pub maxima: Vec<f64>,
    /// Where in the sums there are vectors of which a shard may know some columns only.
    pub vectors: Vec<VectorAt>,
}

impl ShardAnswer {
    /// Appends a number per lane in use.
    pub fn lanes<const L: usize>(&mut self, x: &[f64; L], lanes: usize) {
        self.sums.extend_from_slice(&x[..lanes]);
    }

    /// Appends a vector.
    pub fn block<const L: usize>(&mut self, x: &[[f64; L]], lanes: usize) {
        self.sums.reserve(x.len() * lanes);
        for x in x {
            self.sums.extend_from_slice(&x[..lanes]);
        }
    }

    /// Appends the answer to the operations that follow.
    pub fn then(&mut self, other: &Self) {
        let start = self.sums.len();
        self.vectors.extend(other.vectors.iter().map(|[at, lanes]| [start + at, *lanes]));
        memory::extend_from_slice(&mut self.sums, &other.sums);
        self.maxima.extend_from_slice(&other.maxima);
        self.kind = other.kind;
    }

    /// Takes the answer of another shard in.
    ///
    /// # Errors
    /// [`Error::Shape`] if they are to different requests.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        let shape = |a: &Self| a.sums.len() + a.maxima.len();
        if (self.sums.len(), self.maxima.len()) != (other.sums.len(), other.maxima.len()) {
            return Err(Error::Shape {
                what: "the answer of a shard",
                expected: shape(self),
                found: shape(other),
            });
        }
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += b);
        self.maxima.iter_mut().zip(&other.maxima).for_each(|(a, b)| *a = a.max(*b));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lanes::Block;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let mut request = Request::new(2);
        request.op(Op::Decide).block(&[[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]]).op(Op::Losses).number(1.0);
        request.lanes(&[0.5, 0.25, 9.0]);
        let mut reader = Reader::new(request.words(), 2);
        let mut block = Block::<3>::zeros(2);
        assert_eq!(reader.op().unwrap(), Op::Decide);
        reader.block(&mut block).unwrap();
        assert_eq!(&*block, &[[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]);
        assert_eq!((reader.op().unwrap(), reader.number().unwrap()), (Op::Losses, 1.0));
        assert_eq!(reader.lanes().unwrap(), [0.5, 0.25, 0.0]);
        assert!(reader.is_empty() && reader.number().is_err());
        assert!(Reader::new(&[77.0], 1).op().is_err());
    }

    #[test]
    fn requests_know_where_their_vectors_are() {
        let (mut one, mut other) = (Request::new(2), Request::new(3));
        one.op(Op::Decide).block(&[[1.0, 2.0]]).op(Op::Losses).number(1.0);
        other.number(0.5).block(&[[1.0; 3]; 2]).vector(&[7.0, 8.0]);
        one.then(&other);
        assert_eq!(one.vectors(), [[1, 2], [6, 3], [12, 1]]);
        assert_eq!(one.words()[12..], [7.0, 8.0]);
        one.clear();
        assert!(one.vectors().is_empty());
    }

    #[test]
    fn answers_are_joined() {
        let answer = |sums, maxima| ShardAnswer { sums, maxima, ..ShardAnswer::default() };
        let mut one = answer(vec![1.0, 2.0], vec![3.0]);
        one.join(&answer(vec![4.0, 0.5], vec![2.0])).unwrap();
        assert_eq!(one, answer(vec![5.0, 2.5], vec![3.0]));
        assert!(one.join(&ShardAnswer::default()).is_err());
    }

    #[test]
    fn codes_are_places_in_the_list() {
        assert!(Op::ALL.iter().enumerate().all(|(k, op)| *op as usize == k));
    }
}
