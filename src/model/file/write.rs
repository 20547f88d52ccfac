//! Writing a model: tensors one after the other through one buffer, with their checksums.

use std::borrow::Cow;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::about::About;
use super::convert::{Precision, Storage, Stored, WeightSlices};
use super::sums::{self, CHUNK, sum, sum_of};
use super::{ALIGNMENT, Checked, FORMAT, KIND, MAX_HEAD, MAX_TEXT, PLAIN_FORMAT, SaveOptions, at, text};
use crate::durable::draft::Draft;
use crate::encode::record::EncoderRecord;
use crate::labels::classes::Classes;
use crate::labels::scores::FloatSlice;
use crate::model::Model;
use crate::model::answer::ClassRule;
use crate::model::check::Flaw;
use crate::model::probability::Probability;
use crate::{Result, memory};

/// Bytes written at a time, whole chunks.
const BUFFER: usize = 256 * CHUNK;

/// Writes `model`, with `weights` and `metadata` in place of its own.
///
/// # Errors
/// Those of [`Model::save`].
pub fn save(
    model: &Model,
    weights: WeightSlices<'_>,
    metadata: &Map<String, Value>,
    path: &Path,
    options: &SaveOptions,
) -> Result<()> {
    let check = || {
        little_endian()?;
        model.check_rest()?;
        let (m, d) = (model.n_vectors(), model.n_weights()?);
        weights.check(m, d)?;
        let is_sparse = match options.storage {
            Storage::AsIs => matches!(weights, WeightSlices::Sparse { .. }),
            storage => storage == Storage::Sparse,
        };
        if is_sparse && model.pairs.is_some() {
            return Err(Flaw::new("coef", "weights of a degree-2 map must be dense"));
        }
        Ok((m, d))
    };
    let (m, d) = check().map_err(at(path))?;
    memory::catch(|| {
        let stored = weights.stored(options.storage, m, d);
        let weights = stored.as_ref().map_or(weights, Stored::slices);
        let head = about(model, metadata).map_err(at(path))?;
        let mut tensors = weight_tensors(weights, m, d, options.precision);
        tensors.extend(other_tensors(model));
        tensors.extend(head.long);
        write(tensors, head.short, path, options)
    })
}

/// Refuses a machine on which numbers do not lie as files have them.
pub fn little_endian() -> Checked<()> {
    if cfg!(target_endian = "little") {
        return Ok(());
    }
    Err(Flaw::new("file", "model files need a machine that stores the low byte of a number first"))
}

/// A tensor to be written.
struct Tensor<'a> {
    name: &'static str,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Data<'a>,
}

/// Numbers, and what they become.
enum Data<'a> {
    /// What they are.
    Same(Cow<'a, [u8]>),
    /// Single precision.
    ToSingle(&'a [f64]),
    /// Double precision.
    ToDouble(&'a [f32]),
    /// 32-bit numbers, all of which fit.
    ToShort(&'a [i64]),
}

impl<'a> Tensor<'a> {
    fn new(name: &'static str, dtype: Dtype, shape: &[usize], data: Data<'a>) -> Self {
        Self { name, dtype, shape: shape.to_vec(), data }
    }

    fn f64(name: &'static str, numbers: &'a [f64]) -> Self {
        Self::new(name, Dtype::F64, &[numbers.len()], Data::Same(bytemuck::cast_slice(numbers).into()))
    }

    fn i64(name: &'static str, numbers: &'a [i64]) -> Self {
        Self::new(name, Dtype::I64, &[numbers.len()], Data::Same(bytemuck::cast_slice(numbers).into()))
    }

    fn u8(name: &'static str, bytes: Vec<u8>) -> Self {
        Self::new(name, Dtype::U8, &[bytes.len()], Data::Same(bytes.into()))
    }

    fn floats(name: &'static str, shape: &[usize], w: FloatSlice<'a>, precision: Option<Precision>) -> Self {
        let (dtype, data) = match (w, precision) {
            (FloatSlice::F64(w), Some(Precision::Single)) => (Dtype::F32, Data::ToSingle(w)),
            (FloatSlice::F32(w), Some(Precision::Double)) => (Dtype::F64, Data::ToDouble(w)),
            (FloatSlice::F64(w), _) => (Dtype::F64, Data::Same(bytemuck::cast_slice(w).into())),
            (FloatSlice::F32(w), _) => (Dtype::F32, Data::Same(bytemuck::cast_slice(w).into())),
        };
        Self::new(name, dtype, shape, data)
    }

    /// Strings, as two tensors.
    fn texts(names: [&'static str; 2], strings: &[String]) -> [Self; 2] {
        let (text, ends) = text::joined(strings);
        let bytes: Vec<u8> = bytemuck::cast_slice(&ends).to_vec();
        [Self::u8(names[0], text), Self::new(names[1], Dtype::I64, &[ends.len()], Data::Same(bytes.into()))]
    }

    fn n_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

impl Data<'_> {
    /// Hands all bytes on, in order.
    fn each(
        &self,
        mut put: impl FnMut(&[u8]) -> Result<()>,
        out_of_range: impl Fn(f64) -> crate::Error,
    ) -> Result<()> {
        match self {
            Self::Same(bytes) => put(bytes),
            Self::ToSingle(w) => w.iter().try_for_each(|&w| {
                let single = w as f32;
                if w.is_finite() && !single.is_finite() {
                    return Err(out_of_range(w));
                }
                put(&single.to_le_bytes())
            }),
            Self::ToDouble(w) => w.iter().try_for_each(|&w| put(&f64::from(w).to_le_bytes())),
            Self::ToShort(list) => list.iter().try_for_each(|&j| put(&(j as i32).to_le_bytes())),
        }
    }
}

/// Weights of `m` vectors and `d` columns.
fn weight_tensors(
    weights: WeightSlices<'_>,
    m: usize,
    d: usize,
    precision: Option<Precision>,
) -> Vec<Tensor<'_>> {
    match weights {
        WeightSlices::ByLabel(w) => vec![Tensor::floats("coef", &[m, d], w, precision)],
        WeightSlices::ByColumn(w) => vec![Tensor::floats("coef_by_feature", &[d, m], w, precision)],
        WeightSlices::Sparse { indptr, indices, values } => {
            let n = indices.len();
            let columns = if d <= i32::MAX as usize {
                Tensor::new("coef.indices", Dtype::I32, &[n], Data::ToShort(indices))
            } else {
                Tensor::i64("coef.indices", indices)
            };
            let values = Tensor::floats("coef.values", &[n], values, precision);
            vec![values, Tensor::i64("coef.indptr", indptr), columns]
        }
    }
}

/// All others.
fn other_tensors(model: &Model) -> Vec<Tensor<'_>> {
    let mut tensors = vec![Tensor::f64("intercept", &model.intercepts)];
    match &model.classes {
        Classes::Int(classes) => tensors.push(Tensor::i64("classes", classes)),
        Classes::Float(classes) => tensors.push(Tensor::f64("classes", classes)),
        Classes::Bool(classes) => {
            let bytes: Vec<u8> = classes.iter().map(|&class| u8::from(class)).collect();
            tensors.push(Tensor::new("classes", Dtype::BOOL, &[bytes.len()], Data::Same(bytes.into())));
        }
        Classes::Text(classes) => tensors.extend(Tensor::texts(["classes.text", "classes.ends"], classes)),
    }
    match &model.answer {
        ClassRule::Threshold(threshold) => {
            tensors.push(Tensor::f64("answer.threshold", std::slice::from_ref(threshold)));
        }
        ClassRule::Cheapest(costs) => {
            let (k, bytes) = (model.classes.len(), bytemuck::cast_slice(costs));
            tensors.push(Tensor::new("answer.costs", Dtype::F64, &[k, k], Data::Same(bytes.into())));
        }
        _ => {}
    }
    tensors.extend(model.probability.iter().flat_map(probability_tensors));
    if let Some(names) = &model.feature_names {
        tensors.extend(Tensor::texts(["feature_names.text", "feature_names.ends"], names));
    }
    if let Some(EncoderRecord { head, terms, numbers }) = &model.encoder {
        let bytes = |name, bytes: &'_ [u8]| {
            Tensor::new(name, Dtype::U8, &[bytes.len()], Data::Same(bytes.to_vec().into()))
        };
        tensors.push(bytes("encoder", head.as_bytes()));
        tensors.push(bytes("encoder.text", &terms.text));
        tensors.push(Tensor::i64("encoder.ends", &terms.ends));
        tensors.push(Tensor::f64("encoder.numbers", numbers));
    }
    tensors
}

fn probability_tensors(probability: &Probability) -> Vec<Tensor<'_>> {
    match probability {
        Probability::Logistic => Vec::new(),
        Probability::Sigmoid { slopes, offsets } => {
            vec![Tensor::f64("probability.slopes", slopes), Tensor::f64("probability.offsets", offsets)]
        }
        Probability::Isotonic(lines) => {
            let mut end = 0;
            let ends: Vec<u8> = lines
                .iter()
                .flat_map(|line| {
                    end += line.x.len() as i64;
                    end.to_le_bytes()
                })
                .collect();
            let all =
                |axis: Vec<f64>| -> Data<'_> { Data::Same(bytemuck::cast_slice(&axis).to_vec().into()) };
            let x = lines.iter().flat_map(|line| line.x.iter().copied()).collect();
            let y = lines.iter().flat_map(|line| line.y.iter().copied()).collect();
            let n = [end as usize];
            vec![
                Tensor::new("probability.x", Dtype::F64, &n, all(x)),
                Tensor::new("probability.y", Dtype::F64, &n, all(y)),
                Tensor::new("probability.ends", Dtype::I64, &[lines.len()], Data::Same(ends.into())),
            ]
        }
        Probability::Temperature(factor) => {
            vec![Tensor::f64("probability.factor", std::slice::from_ref(factor))]
        }
    }
}

/// The JSON of a model: what the head has of it, and tensors of what is too long for it.
struct Texts<'a> {
    short: Vec<(&'static str, String)>,
    long: Vec<Tensor<'a>>,
}

fn about(model: &Model, metadata: &Map<String, Value>) -> Checked<Texts<'static>> {
    let about = serde_json::to_string(&About::of(model, metadata)?);
    let about = about.map_err(|error| Flaw::new("model", error.to_string()))?;
    let metadata = Value::Object(metadata.clone()).to_string();
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for (name, text) in [("metadata", metadata), ("model", about)] {
        if text.len() <= MAX_TEXT {
            short.push((name, text));
        } else {
            long.push(Tensor::u8(name, text.into_bytes()));
        }
    }
    Ok(Texts { short, long })
}

/// The head of a file in the order in which it is written.
struct Head<'a> {
    metadata: Map<String, Value>,
    tensors: Vec<(&'a str, TensorInfo)>,
}

impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.tensors.len() + 1))?;
        map.serialize_entry("__metadata__", &self.metadata)?;
        for (name, tensor) in &self.tensors {
            map.serialize_entry(name, tensor)?;
        }
        map.end()
    }
}

/// The length of the head, and the head.
fn head(tensors: &[Tensor<'_>], texts: Vec<(&'static str, String)>) -> Checked<Vec<u8>> {
    let mut begin = 0;
    let mut info = |name, dtype, shape: Vec<usize>, n_bytes: usize| {
        let data_offsets = (begin, begin + n_bytes);
        begin += n_bytes;
        (name, TensorInfo { dtype, shape, data_offsets })
    };
    let mut tensors: Vec<_> =
        tensors.iter().map(|t| info(t.name, t.dtype, t.shape.clone(), t.n_bytes())).collect();
    let n_data = tensors.last().map_or(0, |(_, last)| last.data_offsets.1);
    let n_sums = sums::count(n_data);
    tensors.push(info("checksums", Dtype::U64, vec![n_sums], 8 * n_sums));
    // Sorted by serde_json, so that the format is the first and its version the second entry.
    let mut metadata = Map::new();
    metadata.insert("format".into(), "hinge-model".into());
    let has_encoder = tensors.iter().any(|(name, _)| *name == "encoder");
    let format = if has_encoder { FORMAT } else { PLAIN_FORMAT };
    metadata.insert("format_version".into(), format.to_string().into());
    metadata.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
    let mut bytes = vec![0; 8];
    serde_json::to_writer(&mut bytes, &Head { metadata, tensors })
        .map_err(|error| Flaw::new("head", error.to_string()))?;
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), b' ');
    let length = bytes.len() - 8;
    if length > MAX_HEAD {
        return Err(Flaw::new("head", format!("it has {length} bytes, at most {MAX_HEAD} are written")));
    }
    bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
    Ok(bytes)
}

fn write(
    mut tensors: Vec<Tensor<'_>>,
    texts: Vec<(&'static str, String)>,
    path: &Path,
    options: &SaveOptions,
) -> Result<()> {
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.dtype.bitsize())); // stable: in order otherwise
    let head = head(&tensors, texts).map_err(at(path))?;
    let mut sink = Sink::new(Draft::new(path, KIND, options.replace)?, &head)?;
    for Tensor { name, data, .. } in &tensors {
        let out_of_range = |w: f64| {
            at(path)(Flaw::new(
                name,
                format!("the weight {w:e} is beyond single precision, save it in double"),
            ))
        };
        data.each(|bytes| sink.put(bytes), out_of_range)?;
    }
    sink.finish()
}

/// Takes the data on their way to the file.
struct Sink {
    draft: Draft,
    buffer: Vec<u8>,
    sums: Vec<u64>,
}

impl Sink {
    fn new(mut draft: Draft, head: &[u8]) -> Result<Self> {
        draft.write(head)?;
        Ok(Self { draft, buffer: memory::with_capacity(BUFFER), sums: vec![sum(head)] })
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == BUFFER {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the buffer, which holds whole chunks or the last ones.
    fn flush(&mut self) -> Result<()> {
        self.sums.extend(self.buffer.chunks(CHUNK).map(sum));
        self.draft.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.sums.push(sum_of(&self.sums));
        self.draft.write(bytemuck::cast_slice(&self.sums))?;
        self.draft.publish().map(drop)
    }
}
