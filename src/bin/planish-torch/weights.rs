//! Shape and weights of a Llama-architecture model, read from GGUF into f32. Projections that share an input are
//! fused into one matrix. Does no arithmetic beyond dequantisation.

use crate::gguf::{Gguf, GgufError, Value};

#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error("architecture {0} is not supported (llama is)")]
    Architecture(String),
    #[error("unsupported model: {0}")]
    Unsupported(String),
}

/// Sizes: `width` d of the residual stream, `heads` × `head` query columns, `kv_heads` × `head` key columns.
#[derive(Clone, Debug)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head: usize,
    pub ffn: usize,
    pub vocab: usize,
    pub context: usize,
    pub eps: f32,
    pub rope_base: f32,
}

impl Shape {
    pub fn q_width(&self) -> usize {
        self.heads * self.head
    }

    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head
    }

    /// Rotation (cos, sin) of pair `i` at position `p`: angle p · base^(-2i/head) (Su et al. 2021). GGUF's llama
    /// files keep pairs interleaved: elements 2i and 2i + 1.
    pub fn rope(&self, position: usize) -> Vec<(f32, f32)> {
        (0..self.head / 2)
            .map(|i| {
                let frequency = f64::from(self.rope_base).powf(-2.0 * i as f64 / self.head as f64);
                let angle = position as f64 * frequency;
                (angle.cos() as f32, angle.sin() as f32)
            })
            .collect()
    }
}

/// All matrices are [outputs, inputs], row-major.
pub struct Layer {
    pub attention_norm: Vec<f32>,
    /// Query, key and value rows one below the other.
    pub qkv: Vec<f32>,
    pub attention_out: Vec<f32>,
    pub ffn_norm: Vec<f32>,
    /// Gate rows, then up rows.
    pub gate_up: Vec<f32>,
    pub down: Vec<f32>,
}

pub struct Weights {
    pub shape: Shape,
    pub layers: Vec<Layer>,
    pub embedding: Vec<f32>,
    pub out_norm: Vec<f32>,
    /// `None`: the output head is the embedding.
    pub head: Option<Vec<f32>>,
}

impl Weights {
    pub fn load(gguf: &Gguf, vocab: usize) -> Result<Self, WeightsError> {
        let architecture = gguf.text("general.architecture")?;
        if architecture != "llama" {
            return Err(WeightsError::Architecture(architecture.into()));
        }
        let shape = read_shape(gguf, vocab)?;
        let one = |name: &str, dims: &[usize]| -> Result<Vec<f32>, GgufError> {
            let mut out = Vec::new();
            gguf.read(name, dims, &mut out)?;
            Ok(out)
        };
        let (d, q, kv, ffn) = (shape.width, shape.q_width(), shape.kv_width(), shape.ffn);
        let layers = (0..shape.layers)
            .map(|index| {
                let name = |part: &str| format!("blk.{index}.{part}.weight");
                let mut qkv = Vec::with_capacity((q + 2 * kv) * d);
                gguf.read(&name("attn_q"), &[q, d], &mut qkv)?;
                gguf.read(&name("attn_k"), &[kv, d], &mut qkv)?;
                gguf.read(&name("attn_v"), &[kv, d], &mut qkv)?;
                let mut gate_up = Vec::with_capacity(2 * ffn * d);
                gguf.read(&name("ffn_gate"), &[ffn, d], &mut gate_up)?;
                gguf.read(&name("ffn_up"), &[ffn, d], &mut gate_up)?;
                Ok(Layer {
                    attention_norm: one(&name("attn_norm"), &[d])?,
                    qkv,
                    attention_out: one(&name("attn_output"), &[d, q])?,
                    ffn_norm: one(&name("ffn_norm"), &[d])?,
                    gate_up,
                    down: one(&name("ffn_down"), &[d, ffn])?,
                })
            })
            .collect::<Result<Vec<_>, GgufError>>()?;
        let head = match gguf.has_tensor("output.weight") {
            true => Some(one("output.weight", &[shape.vocab, d])?),
            false => None,
        };
        let embedding = one("token_embd.weight", &[shape.vocab, d])?;
        let out_norm = one("output_norm.weight", &[d])?;
        Ok(Self { shape, layers, embedding, out_norm, head })
    }

    pub fn parameters(&self) -> u64 {
        let layer = |l: &Layer| {
            [&l.attention_norm, &l.qkv, &l.attention_out, &l.ffn_norm, &l.gate_up, &l.down]
                .iter()
                .map(|part| part.len() as u64)
                .sum::<u64>()
        };
        let head = self.head.as_ref().map_or(0, |head| head.len() as u64);
        self.layers.iter().map(layer).sum::<u64>()
            + self.embedding.len() as u64
            + self.out_norm.len() as u64
            + head
    }
}

fn read_shape(gguf: &Gguf, vocab: usize) -> Result<Shape, WeightsError> {
    let size = |key: &str| gguf.size(&format!("llama.{key}"));
    let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
    let kv_heads = size("attention.head_count_kv").unwrap_or(heads);
    let unsupported = |what: String| Err(WeightsError::Unsupported(what));
    if heads == 0 || kv_heads == 0 || width % heads != 0 || heads % kv_heads != 0 {
        return unsupported(format!("width {width}, {heads} heads, {kv_heads} key/value heads"));
    }
    let head = size("attention.key_length").unwrap_or(width / heads);
    let ffn = size("feed_forward_length")?;
    if [width, head, ffn].iter().any(|n| *n == 0 || n % 8 != 0) {
        return unsupported(format!("widths must be multiples of 8: {width}, {head}, {ffn}"));
    }
    if size("rope.dimension_count").is_ok_and(|rotated| rotated != head) {
        return unsupported("rotary embedding of a part of each head".into());
    }
    if let Some(Value::Text(kind)) = gguf.get("llama.rope.scaling.type")
        && kind != "none"
    {
        return unsupported(format!("rotary scaling {kind}"));
    }
    if gguf.has_tensor("rope_freqs.weight") || gguf.has_tensor("blk.0.attn_q.bias") {
        return unsupported("rotary frequency factors or attention bias".into());
    }
    Ok(Shape {
        layers: size("block_count")?,
        width,
        heads,
        kv_heads,
        head,
        ffn,
        vocab,
        context: size("context_length")?,
        eps: gguf.float("llama.attention.layer_norm_rms_epsilon")?,
        rope_base: gguf.float("llama.rope.freq_base").unwrap_or(10_000.0),
    })
}
