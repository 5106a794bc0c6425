//! Reader of GGUF files (versions 2 and 3): metadata and tensors out of a memory map. The file is untrusted: every
//! length is checked before use. Knows nothing of architectures.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::dequant::TensorType;

#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("cannot open the model file {path}: {source}")]
    Open { path: String, source: std::io::Error },
    #[error("not a GGUF file (it must start with the bytes GGUF)")]
    Magic,
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    #[error("the GGUF file is damaged or cut off at byte {at}: {what}")]
    Damaged { at: usize, what: &'static str },
    #[error("metadata key {key} is missing or has another type than {wanted}")]
    Key { key: String, wanted: &'static str },
    #[error("tensor {0} is missing")]
    NoTensor(String),
    #[error("tensor {name} has type number {id}; supported: F32 F16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q6_K")]
    Type { name: String, id: u32 },
    #[error("tensor {name} has shape {found:?}, expected {wanted:?} (rows, columns)")]
    Shape { name: String, found: Vec<usize>, wanted: Vec<usize> },
}

/// A metadata value; numbers are widened.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Value>),
}

#[derive(Clone, Debug)]
struct TensorInfo {
    /// Fastest dimension first, as the file has it.
    dims: Vec<usize>,
    type_id: u32,
    offset: usize,
}

/// An open model file.
pub struct Gguf {
    map: Mmap,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, TensorInfo>,
    data_start: usize,
}

impl Gguf {
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let failed = |source| GgufError::Open { path: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the map is read-only; a model file that another process truncates meanwhile ends this worker
        // with SIGBUS, which the client handles as a crash.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let mut cursor = Cursor { bytes: &map, at: 0 };
        if cursor.take(4)? != b"GGUF" {
            return Err(GgufError::Magic);
        }
        let version = cursor.u32()?;
        if !(2..=3).contains(&version) {
            return Err(GgufError::Version(version));
        }
        let (tensor_count, key_count) = (cursor.length()?, cursor.length()?);
        let mut metadata = HashMap::new();
        for _ in 0..key_count {
            let key = cursor.text()?;
            let kind = cursor.u32()?;
            metadata.insert(key, cursor.value(kind, 0)?);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = cursor.text()?;
            let rank = cursor.u32()?;
            if rank > 4 {
                return Err(cursor.damaged("a tensor has more than 4 dimensions"));
            }
            let dims = (0..rank).map(|_| cursor.length()).collect::<Result<_, _>>()?;
            let type_id = cursor.u32()?;
            let offset = cursor.length()?;
            tensors.insert(name, TensorInfo { dims, type_id, offset });
        }
        let alignment = match metadata.get("general.alignment") {
            Some(Value::Unsigned(value)) if value.is_power_of_two() && *value <= 1 << 20 => *value as usize,
            _ => 32,
        };
        let data_start = cursor.at.next_multiple_of(alignment);
        Ok(Self { map, metadata, tensors, data_start })
    }

    /// The whole file, for hashing.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    pub fn size(&self, key: &str) -> Result<usize, GgufError> {
        match self.get(key) {
            Some(Value::Unsigned(value)) => Ok(*value as usize),
            Some(Value::Signed(value)) if *value >= 0 => Ok(*value as usize),
            _ => Err(GgufError::Key { key: key.into(), wanted: "a whole number" }),
        }
    }

    pub fn float(&self, key: &str) -> Result<f32, GgufError> {
        match self.get(key) {
            Some(Value::Float(value)) => Ok(*value as f32),
            _ => Err(GgufError::Key { key: key.into(), wanted: "a float" }),
        }
    }

    pub fn text(&self, key: &str) -> Result<&str, GgufError> {
        match self.get(key) {
            Some(Value::Text(value)) => Ok(value),
            _ => Err(GgufError::Key { key: key.into(), wanted: "a string" }),
        }
    }

    pub fn array(&self, key: &str) -> Result<&[Value], GgufError> {
        match self.get(key) {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(GgufError::Key { key: key.into(), wanted: "an array" }),
        }
    }

    pub fn has_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Appends the tensor's elements, row-major, to `out`. `shape` is (rows, columns), or (length) of a vector.
    pub fn read(&self, name: &str, shape: &[usize], out: &mut Vec<f32>) -> Result<(), GgufError> {
        let info = self.tensors.get(name).ok_or_else(|| GgufError::NoTensor(name.into()))?;
        let found: Vec<usize> = info.dims.iter().rev().copied().collect();
        if found != shape {
            return Err(GgufError::Shape { name: name.into(), found, wanted: shape.into() });
        }
        let kind = TensorType::from_id(info.type_id)
            .ok_or_else(|| GgufError::Type { name: name.into(), id: info.type_id })?;
        let damaged = |what| GgufError::Damaged { at: info.offset, what };
        let count =
            shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b)).ok_or(damaged("tensor too large"))?;
        if shape.last().is_none_or(|columns| columns % kind.block_len() != 0) {
            return Err(damaged("a tensor's row is no whole number of blocks"));
        }
        let start = self.data_start.checked_add(info.offset).ok_or(damaged("tensor offset too large"))?;
        let len = count / kind.block_len() * kind.block_bytes();
        let bytes = start
            .checked_add(len)
            .and_then(|end| self.map.get(start..end))
            .ok_or(damaged("tensor data lies outside the file"))?;
        let old = out.len();
        out.resize(old + count, 0.0);
        kind.dequantise(bytes, &mut out[old..]);
        Ok(())
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn damaged(&self, what: &'static str) -> GgufError {
        GgufError::Damaged { at: self.at, what }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], GgufError> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(self.damaged("the file ends early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize, GgufError> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| self.damaged("length too large"))
    }

    fn text(&mut self) -> Result<String, GgufError> {
        let len = self.length()?;
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Value, GgufError> {
        Ok(match kind {
            0 => Value::Unsigned(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Bool(self.array::<1>()?[0] != 0),
            8 => Value::Text(self.text()?),
            9 if depth < 4 => {
                let element = self.u32()?;
                let len = self.length()?;
                // No capacity from the file's own claim: a lying length ends at the end of the file instead.
                let mut values = Vec::new();
                for _ in 0..len {
                    values.push(self.value(element, depth + 1)?);
                }
                Value::Array(values)
            }
            10 => Value::Unsigned(u64::from_le_bytes(self.array()?)),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(self.damaged("unknown metadata type")),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::Write;

    fn text(out: &mut Vec<u8>, value: &str) {
        out.extend((value.len() as u64).to_le_bytes());
        out.extend(value.as_bytes());
    }

    fn sample() -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend(1u64.to_le_bytes());
        out.extend(2u64.to_le_bytes());
        text(&mut out, "llama.block_count");
        out.extend(4u32.to_le_bytes());
        out.extend(2u32.to_le_bytes());
        text(&mut out, "tokens");
        out.extend(9u32.to_le_bytes());
        out.extend(8u32.to_le_bytes());
        out.extend(2u64.to_le_bytes());
        text(&mut out, "a");
        text(&mut out, "b");
        text(&mut out, "w");
        out.extend(2u32.to_le_bytes());
        out.extend(2u64.to_le_bytes());
        out.extend(3u64.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        out.resize(out.len().next_multiple_of(32), 0);
        for value in 0..6 {
            out.extend((value as f32).to_le_bytes());
        }
        out
    }

    fn open(bytes: &[u8]) -> Result<Gguf, GgufError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Gguf::open(file.path())
    }

    #[test]
    fn metadata_and_tensors_are_read() {
        let gguf = open(&sample()).unwrap();
        assert_eq!(gguf.size("llama.block_count").unwrap(), 2);
        assert_eq!(gguf.array("tokens").unwrap()[1], Value::Text("b".into()));
        let mut out = vec![9.0];
        gguf.read("w", &[3, 2], &mut out).unwrap();
        assert_eq!(out, [9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(matches!(gguf.read("w", &[2, 3], &mut out), Err(GgufError::Shape { .. })));
        assert!(matches!(gguf.read("v", &[2, 3], &mut out), Err(GgufError::NoTensor(_))));
        assert!(gguf.float("tokens").unwrap_err().to_string().contains("tokens"));
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_and_never_a_crash() {
        let whole = sample();
        for cut in 1..whole.len() {
            let read = open(&whole[..cut]).and_then(|gguf| gguf.read("w", &[3, 2], &mut Vec::new()));
            assert!(read.is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn lying_lengths_are_refused() {
        let mut bytes = sample();
        bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(open(&bytes), Err(GgufError::Damaged { .. })));
        let mut bytes = sample();
        bytes[0] = b'X';
        assert!(matches!(open(&bytes), Err(GgufError::Magic)));
    }
}
