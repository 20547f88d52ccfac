//! Reading a model: every tensor is compared with the others before it is used.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::{Map, Value};

use super::about::{About, AnswerKind, ProbabilityKind};
use super::bytes::Bytes;
use super::convert::{Precision, check_csr, length};
use super::opened::{Lent, Opened};
use super::write::little_endian;
use super::{Checked, at, text};
use crate::encode::counts::TermList;
use crate::encode::record::EncoderRecord;
use crate::labels::classes::Classes;
use crate::labels::inverted_index::InvertedIndex;
use crate::memory::CollectLarge;
use crate::model::Model;
use crate::model::answer::ClassRule;
use crate::model::check::Flaw;
use crate::model::probability::{Line, Probability};
use crate::model::weights::{Numbers, WeightVectors};
use crate::{Result, memory};

/// Most columns of sparse weights: for each, whatever is stored of it, predictions keep 8 bytes.
const MAX_SPARSE_COLUMNS: usize = 1 << 31;

/// Opens a model; files of at most `max_owned` bytes are read, others mapped.
///
/// # Errors
/// Those of [`Model::load`].
pub fn load(path: &Path, max_owned: usize) -> Result<Model> {
    little_endian().map_err(at(path))?;
    memory::catch(|| {
        let bytes = Bytes::open(path, max_owned)?;
        read(path, bytes).map_err(at(path))
    })
}

fn read(path: &Path, bytes: Bytes) -> Checked<Model> {
    let (file, head) = Opened::new(path, bytes)?;
    if file.is_owned() {
        file.prove_all()?;
    }
    let file = Arc::new(file);
    let mut left: BTreeMap<String, TensorInfo> =
        head.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
    left.remove("checksums");
    let mut texts = head.metadata().clone().unwrap_or_default();
    let mut tensors = Tensors { file: &file, left };
    let about: About = tensors.json("model", texts.remove("model"))?;
    let metadata: Map<String, Value> = tensors.json("metadata", texts.remove("metadata"))?;
    if let Some(name) = texts.keys().find(|name| !["format", "format_version"].contains(&name.as_str())) {
        return Err(Flaw::new(name, "the head has such an entry in no version"));
    }
    let intercepts = tensors.f64s("intercept", None)?;
    let (weights, n_weights) = tensors.weights(intercepts.len(), about.n_features)?;
    // Before a map is made of so many columns.
    let fits =
        if about.pairs.is_some() { about.n_features <= n_weights } else { about.n_features == n_weights };
    if !fits {
        let found = about.n_features;
        return Err(Flaw::new(
            "n_features",
            format!("{found} columns, coef has {n_weights} weights a vector"),
        ));
    }
    let classes = tensors.classes()?;
    let model = Model {
        n_features: about.n_features,
        weights,
        answer: tensors.answer(about.answer, classes.len())?,
        probability: about.probability.map(|kind| tensors.probability(kind, intercepts.len())).transpose()?,
        pairs: about.pairs.as_ref().map(|pairs| pairs.spec()),
        feature_names: tensors.texts("feature_names")?,
        encoder: tensors.encoder()?,
        intercepts,
        classes,
        record: about.record(metadata),
    };
    if let Some(name) = tensors.left.keys().next() {
        return Err(Flaw::new(name, "such a model has no tensor of that name"));
    }
    model.check()?;
    Ok(model)
}

/// The tensors of a file that were not used yet.
struct Tensors<'a> {
    file: &'a Arc<Opened>,
    left: BTreeMap<String, TensorInfo>,
}

impl<'a> Tensors<'a> {
    fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// A tensor of one of some types and of so many dimensions.
    fn take(&mut self, name: &str, dtypes: &[Dtype], n_dimensions: usize) -> Checked<TensorInfo> {
        let info = self.left.remove(name).ok_or_else(|| Flaw::new(name, "the file lacks it"))?;
        if !dtypes.contains(&info.dtype) {
            let expected: Vec<String> = dtypes.iter().map(Dtype::to_string).collect();
            let reason = format!("its type is {}, expected {}", info.dtype, expected.join(" or "));
            return Err(Flaw::new(name, reason));
        }
        if info.shape.len() != n_dimensions {
            let found = info.shape.len();
            return Err(Flaw::new(name, format!("it has {found} dimensions, expected {n_dimensions}")));
        }
        Ok(info)
    }

    /// The bytes of a tensor, proved.
    fn proved(&self, info: &TensorInfo) -> Checked<&'a [u8]> {
        let range = info.data_offsets.0..info.data_offsets.1;
        self.file.prove(range.clone())?;
        Ok(&self.file.data()[range])
    }

    /// A list of `n` items, or of as many as there are.
    fn list(&mut self, name: &str, dtype: Dtype, n: Option<usize>) -> Checked<&'a [u8]> {
        let info = self.take(name, &[dtype], 1)?;
        match n {
            Some(n) if info.shape[0] != n => {
                Err(Flaw::new(name, format!("it has {} items, expected {n}", info.shape[0])))
            }
            _ => self.proved(&info),
        }
    }

    fn f64s(&mut self, name: &str, n: Option<usize>) -> Checked<Vec<f64>> {
        self.list(name, Dtype::F64, n).map(|bytes| items(bytes, f64::from_le_bytes))
    }

    fn i64s(&mut self, name: &str, n: Option<usize>) -> Checked<Vec<i64>> {
        self.list(name, Dtype::I64, n).map(|bytes| items(bytes, i64::from_le_bytes))
    }

    fn texts(&mut self, name: &str) -> Checked<Option<Vec<String>>> {
        let [of_text, of_ends] = ["text", "ends"].map(|part| format!("{name}.{part}"));
        if !self.has(&of_text) && !self.has(&of_ends) {
            return Ok(None);
        }
        let text = self.list(&of_text, Dtype::U8, None)?;
        let ends = self.i64s(&of_ends, None)?;
        let strings = text::split(text, &ends);
        strings.map(Some).map_err(|(part, reason)| Flaw::new(&format!("{name}.{part}"), reason))
    }

    /// The encoder of a table, which is checked when it is made of its record.
    fn encoder(&mut self) -> Checked<Option<EncoderRecord>> {
        if !self.has("encoder") {
            return Ok(None);
        }
        let head = str::from_utf8(self.list("encoder", Dtype::U8, None)?);
        let head = head.map_err(|error| Flaw::new("encoder", format!("not UTF-8: {error}")))?.to_owned();
        let text = memory::copy(self.list("encoder.text", Dtype::U8, None)?);
        let terms = TermList { text, ends: self.i64s("encoder.ends", None)? };
        Ok(Some(EncoderRecord { head, terms, numbers: self.f64s("encoder.numbers", None)? }))
    }

    /// JSON from the head, or from a tensor of bytes where it was too long for it.
    fn json<T: serde::de::DeserializeOwned>(&mut self, name: &str, short: Option<String>) -> Checked<T> {
        let parsed = match short {
            Some(text) if !self.has(name) => serde_json::from_str(&text),
            _ => serde_json::from_slice(self.list(name, Dtype::U8, None)?),
        };
        parsed.map_err(|error| Flaw::new(name, error.to_string()))
    }

    /// Weights of `m` vectors, and how many there are per vector.
    fn weights(&mut self, m: usize, n_features: usize) -> Checked<(WeightVectors, usize)> {
        if self.has("coef") {
            let (numbers, [found, n_weights]) = self.dense("coef")?;
            expect_vectors("coef", found, m)?;
            return Ok((WeightVectors::ByLabel(numbers), n_weights));
        }
        if self.has("coef_by_feature") {
            let (numbers, [n_weights, found]) = self.dense("coef_by_feature")?;
            expect_vectors("coef_by_feature", found, m)?;
            return Ok((WeightVectors::ByColumn(numbers), n_weights));
        }
        if !self.has("coef.indptr") {
            return Err(Flaw::new("coef", "the file lacks it"));
        }
        Ok((self.sparse(m, n_features)?, n_features))
    }

    fn dense(&mut self, name: &str) -> Checked<(Numbers, [usize; 2])> {
        let info = self.take(name, &[Dtype::F32, Dtype::F64], 2)?;
        Ok((self.numbers(name, &info)?, [info.shape[0], info.shape[1]]))
    }

    /// Numbers that stay in the file.
    fn numbers(&self, name: &str, info: &TensorInfo) -> Checked<Numbers> {
        let precision = if info.dtype == Dtype::F32 { Precision::Single } else { Precision::Double };
        let range = info.data_offsets.0..info.data_offsets.1;
        Ok(Numbers::Lent(Arc::new(Lent::new(self.file, name, range, precision)?)))
    }

    fn sparse(&mut self, m: usize, n_features: usize) -> Checked<WeightVectors> {
        if n_features > MAX_SPARSE_COLUMNS {
            let reason = format!("{n_features} columns, sparse weights have at most {MAX_SPARSE_COLUMNS}");
            return Err(Flaw::new("n_features", reason));
        }
        let indptr = self.i64s("coef.indptr", Some(m.saturating_add(1)))?;
        let info = self.take("coef.indices", &[Dtype::I32, Dtype::I64], 1)?;
        let bytes = self.proved(&info)?;
        let indices = match info.dtype {
            Dtype::I32 => items(bytes, |column| i64::from(i32::from_le_bytes(column))),
            _ => items(bytes, i64::from_le_bytes),
        };
        let info = self.take("coef.values", &[Dtype::F32, Dtype::F64], 1)?;
        let values = self.numbers("coef.values", &info)?;
        check_csr(&indptr, &indices, length(values.slice()), m, n_features)?;
        let index = InvertedIndex::new(&indptr, &indices, n_features);
        let index = index.map_err(|error| Flaw::new("coef.indices", error.to_string()))?;
        Ok(WeightVectors::Sparse { indptr, indices, values, index })
    }

    fn classes(&mut self) -> Checked<Classes> {
        if let Some(strings) = self.texts("classes")? {
            return Ok(Classes::Text(strings));
        }
        let info = self.take("classes", &[Dtype::I64, Dtype::F64, Dtype::BOOL], 1)?;
        let bytes = self.proved(&info)?;
        Ok(match info.dtype {
            Dtype::I64 => Classes::Int(items(bytes, i64::from_le_bytes)),
            Dtype::F64 => Classes::Float(items(bytes, f64::from_le_bytes)),
            _ => {
                if let Some(byte) = bytes.iter().find(|byte| **byte > 1) {
                    return Err(Flaw::new("classes", format!("{byte} is no truth value, 0 and 1 are")));
                }
                Classes::Bool(bytes.iter().map(|byte| *byte == 1).collect_large())
            }
        })
    }

    fn answer(&mut self, kind: AnswerKind, k: usize) -> Checked<ClassRule> {
        Ok(match kind {
            AnswerKind::Sign => ClassRule::Sign,
            AnswerKind::Threshold => ClassRule::Threshold(self.f64s("answer.threshold", Some(1))?[0]),
            AnswerKind::Highest => ClassRule::Highest,
            AnswerKind::MostProbable => ClassRule::MostProbable,
            AnswerKind::Labels => ClassRule::Labels,
            AnswerKind::Cheapest => {
                let info = self.take("answer.costs", &[Dtype::F64], 2)?;
                if info.shape != [k, k] {
                    let reason = format!("its shape is {:?}, there are {k} classes", info.shape);
                    return Err(Flaw::new("answer.costs", reason));
                }
                ClassRule::Cheapest(items(self.proved(&info)?, f64::from_le_bytes))
            }
        })
    }

    fn probability(&mut self, kind: ProbabilityKind, m: usize) -> Checked<Probability> {
        Ok(match kind {
            ProbabilityKind::Logistic => Probability::Logistic,
            ProbabilityKind::Sigmoid => Probability::Sigmoid {
                slopes: self.f64s("probability.slopes", Some(m))?,
                offsets: self.f64s("probability.offsets", Some(m))?,
            },
            ProbabilityKind::Isotonic => Probability::Isotonic(self.lines(m)?),
            ProbabilityKind::Temperature => {
                Probability::Temperature(self.f64s("probability.factor", Some(1))?[0])
            }
        })
    }

    fn lines(&mut self, m: usize) -> Checked<Vec<Line>> {
        let x = self.f64s("probability.x", None)?;
        let y = self.f64s("probability.y", Some(x.len()))?;
        let ends = self.i64s("probability.ends", Some(m))?;
        let mut begin = 0;
        let mut line = |end: i64| {
            let range = usize::try_from(end).ok().filter(|end| *end <= x.len()).map(|end| begin..end);
            let range = range.filter(|range| range.start <= range.end).ok_or_else(|| {
                let n = x.len();
                let reason = format!("{end} ends no line that begins at {begin} of {n} points");
                Flaw::new("probability.ends", reason)
            })?;
            begin = range.end;
            Ok(Line { x: x[range.clone()].to_vec(), y: y[range].to_vec() })
        };
        let lines = ends.into_iter().map(&mut line).collect::<Checked<_>>()?;
        if begin < x.len() {
            let reason = format!("the last line ends at {begin}, there are {} points", x.len());
            return Err(Flaw::new("probability.ends", reason));
        }
        Ok(lines)
    }
}

fn expect_vectors(name: &str, found: usize, expected: usize) -> Checked<()> {
    if found == expected {
        return Ok(());
    }
    Err(Flaw::new(name, format!("{found} vectors of weights, there are {expected} intercepts")))
}

/// Numbers that may lie anywhere.
fn items<T, const N: usize>(bytes: &[u8], item: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| item(*bytes)).collect_large()
}
