//! The libtorch engine: the same forward pass as `cpu`, as tensor operations, for CUDA. Slower than `cpu` on a CPU,
//! where it only serves as its reference. Owns weights and key/value slots on the device.

use tch::{Device, Kind, TchError, Tensor};

use crate::engine::{Engine, EngineError, Row};
use crate::weights::{Shape, Weights};

struct Layer {
    attention_norm: Tensor,
    qkv: Tensor,
    attention_out: Tensor,
    ffn_norm: Tensor,
    gate_up: Tensor,
    down: Tensor,
}

/// Keys and values of one layer of one sequence: [kv_heads, positions, head].
type Cache = Option<(Tensor, Tensor)>;

pub struct TorchEngine {
    shape: Shape,
    device: Device,
    layers: Vec<Layer>,
    embedding: Tensor,
    out_norm: Tensor,
    head: Tensor,
    /// Per slot, per layer.
    slots: Vec<Vec<Cache>>,
}

impl TorchEngine {
    pub fn new(weights: Weights, slots: usize, device: Device) -> Result<Self, EngineError> {
        let Weights { shape, layers, embedding, out_norm, head } = weights;
        let matrix = |values: &[f32], columns: usize| {
            Tensor::f_from_slice(values)?.f_view([-1, columns as i64])?.f_to_device(device)
        };
        let vector = |values: &[f32]| Tensor::f_from_slice(values)?.f_to_device(device);
        let layers = layers
            .iter()
            .map(|layer| {
                Ok(Layer {
                    attention_norm: vector(&layer.attention_norm)?,
                    qkv: matrix(&layer.qkv, shape.width)?,
                    attention_out: matrix(&layer.attention_out, shape.q_width())?,
                    ffn_norm: vector(&layer.ffn_norm)?,
                    gate_up: matrix(&layer.gate_up, shape.width)?,
                    down: matrix(&layer.down, shape.ffn)?,
                })
            })
            .collect::<Result<Vec<_>, TchError>>()?;
        let embedding = matrix(&embedding, shape.width)?;
        let head = match head {
            Some(head) => matrix(&head, shape.width)?,
            None => embedding.shallow_clone(),
        };
        let out_norm = vector(&out_norm)?;
        let slots = (0..slots).map(|_| (0..shape.layers).map(|_| None).collect()).collect();
        Ok(Self { shape, device, layers, embedding, out_norm, head, slots })
    }

    fn run(&mut self, rows: &[Row], wanted: &[usize]) -> Result<Vec<f32>, TchError> {
        let shape = self.shape.clone();
        let (width, count) = (shape.width as i64, rows.len() as i64);
        let tokens: Vec<i64> = rows.iter().map(|row| i64::from(row.token)).collect();
        let tokens = Tensor::f_from_slice(&tokens)?.f_to_device(self.device)?;
        let rotation: Vec<f32> =
            rows.iter().flat_map(|row| shape.rope(row.position)).flat_map(|(cos, sin)| [cos, sin]).collect();
        let rotation = Tensor::f_from_slice(&rotation)?
            .f_view([count, 1, shape.head as i64 / 2, 2])?
            .f_to_device(self.device)?
            .f_view_as_complex()?;
        let mut x = self.embedding.f_index_select(0, &tokens)?;
        for index in 0..shape.layers {
            let layer = &self.layers[index];
            let normed = rms_norm(&x, &layer.attention_norm, shape.eps)?;
            let qkv = normed.f_linear(&layer.qkv, None::<&Tensor>)?;
            let mixed = self.attention(rows, index, &qkv, &rotation)?;
            let layer = &self.layers[index];
            x = x.f_add(&mixed.f_linear(&layer.attention_out, None::<&Tensor>)?)?;
            let normed = rms_norm(&x, &layer.ffn_norm, shape.eps)?;
            let gate_up = normed.f_linear(&layer.gate_up, None::<&Tensor>)?;
            let ffn = shape.ffn as i64;
            let gated = gate_up.f_narrow(1, 0, ffn)?.f_silu()?.f_mul(&gate_up.f_narrow(1, ffn, ffn)?)?;
            x = x.f_add(&gated.f_linear(&layer.down, None::<&Tensor>)?)?;
        }
        let wanted: Vec<i64> = wanted.iter().map(|row| *row as i64).collect();
        let last = x.f_index_select(0, &Tensor::f_from_slice(&wanted)?.f_to_device(self.device)?)?;
        let logits = rms_norm(&last.f_view([-1, width])?, &self.out_norm, shape.eps)?
            .f_linear(&self.head, None::<&Tensor>)?
            .f_to_device(Device::Cpu)?
            .f_contiguous()?;
        let mut out = vec![0.0f32; wanted.len() * shape.vocab];
        let len = out.len();
        logits.f_copy_data(&mut out, len)?;
        Ok(out)
    }

    /// Rotates, appends to the caches, and attends slot by slot (their contexts differ in length).
    fn attention(
        &mut self,
        rows: &[Row],
        layer: usize,
        qkv: &Tensor,
        rotation: &Tensor,
    ) -> Result<Tensor, TchError> {
        let shape = &self.shape;
        let (count, head) = (rows.len() as i64, shape.head as i64);
        let (heads, kv_heads) = (shape.heads as i64, shape.kv_heads as i64);
        let rotated = qkv
            .f_narrow(1, 0, (heads + kv_heads) * head)?
            .f_reshape([count, heads + kv_heads, head / 2, 2])?
            .f_view_as_complex()?
            .f_mul(rotation)?
            .f_view_as_real()?
            .f_view([count, heads + kv_heads, head])?;
        let values = qkv
            .f_narrow(1, (heads + kv_heads) * head, kv_heads * head)?
            .f_reshape([count, kv_heads, head])?;
        let mut parts = Vec::new();
        let mut from = 0;
        for span in rows.chunk_by(|a, b| a.slot == b.slot) {
            let (start, len) = (from, span.len() as i64);
            from += len;
            let (slot, before) = (span[0].slot, span[0].position as i64);
            let part = |all: &Tensor, first: i64, n: i64| {
                all.f_narrow(0, start, len)?.f_narrow(1, first, n)?.f_transpose(0, 1)
            };
            let query = part(&rotated, 0, heads)?;
            let (mut keys, mut new_values) = (part(&rotated, heads, kv_heads)?, part(&values, 0, kv_heads)?);
            if let Some((old_keys, old_values)) = &self.slots[slot][layer] {
                keys = Tensor::f_cat(&[&old_keys.f_narrow(1, 0, before)?, &keys], 1)?;
                new_values = Tensor::f_cat(&[&old_values.f_narrow(1, 0, before)?, &new_values], 1)?;
            }
            // Query i of this span sees positions 0..=before + i.
            let mask = Tensor::f_ones([len, before + len], (Kind::Bool, self.device))?.f_tril(before)?;
            let mixed = Tensor::f_scaled_dot_product_attention(
                &query.f_unsqueeze(0)?,
                &keys.f_unsqueeze(0)?,
                &new_values.f_unsqueeze(0)?,
                Some(&mask),
                0.0,
                false,
                None,
                true,
            )?;
            parts.push(mixed.f_squeeze_dim(0)?.f_transpose(0, 1)?.f_reshape([len, heads * head])?);
            self.slots[slot][layer] = Some((keys, new_values));
        }
        Tensor::f_cat(&parts, 0)
    }
}

impl Engine for TorchEngine {
    fn name(&self) -> &'static str {
        match self.device {
            Device::Cuda(_) => "cuda-f32",
            _ => "torch-cpu-f32",
        }
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn forward(&mut self, rows: &[Row], wanted: &[usize]) -> Result<Vec<f32>, EngineError> {
        tch::no_grad(|| self.run(rows, wanted)).map_err(EngineError::Torch)
    }

    fn copy_prefix(&mut self, from: usize, to: usize, positions: usize) -> Result<(), EngineError> {
        let positions = positions as i64;
        // Caches are never changed in place, so a copy may share storage.
        let copied = self.slots[from]
            .iter()
            .map(|cache| {
                let part = |all: &Tensor| all.f_narrow(1, 0, positions);
                let Some((keys, values)) = cache.as_ref().filter(|_| positions > 0) else {
                    return Ok(None);
                };
                Ok(Some((part(keys)?, part(values)?)))
            })
            .collect::<Result<Vec<_>, TchError>>()?;
        self.slots[to] = copied;
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        self.slots[slot].iter_mut().for_each(|cache| *cache = None);
    }
}

fn rms_norm(x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor, TchError> {
    let scale = x.f_square()?.f_mean_dim(-1, true, Kind::Float)?.f_add_scalar(f64::from(eps))?.f_rsqrt()?;
    x.f_mul(&scale)?.f_mul(gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuEngine;
    use crate::weights;

    fn random_weights() -> Weights {
        let shape = Shape {
            layers: 2,
            width: 16,
            heads: 4,
            kv_heads: 2,
            head: 8,
            ffn: 24,
            vocab: 40,
            context: 64,
            eps: 1e-5,
            rope_base: 10_000.0,
        };
        let mut seed = 9u32;
        let mut noise = |len: usize| -> Vec<f32> {
            (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 8) as f32 / 8_388_608.0 - 1.0
                })
                .collect()
        };
        let layers = (0..shape.layers)
            .map(|_| weights::Layer {
                attention_norm: noise(16),
                qkv: noise((32 + 32) * 16),
                attention_out: noise(16 * 32),
                ffn_norm: noise(16),
                gate_up: noise(48 * 16),
                down: noise(16 * 24),
            })
            .collect();
        let (embedding, out_norm) = (noise(40 * 16), noise(16));
        Weights { shape, layers, embedding, out_norm, head: None }
    }

    fn rows(slot: usize, from: usize, tokens: &[u32]) -> Vec<Row> {
        tokens.iter().enumerate().map(|(i, token)| Row { slot, position: from + i, token: *token }).collect()
    }

    /// Logits of every row, over a prefill in two pieces beside another sequence, a copied prefix, and a decode.
    fn play(engine: &mut dyn Engine) -> Vec<f32> {
        let mut all = Vec::new();
        let mut step = |engine: &mut dyn Engine, rows: &[Row]| {
            let wanted: Vec<usize> = (0..rows.len()).collect();
            all.extend(engine.forward(rows, &wanted).unwrap());
        };
        step(engine, &[rows(0, 0, &[1, 2, 3]), rows(1, 0, &[9])].concat());
        step(engine, &[rows(1, 1, &[8, 7]), rows(0, 3, &[4, 5])].concat());
        engine.copy_prefix(0, 2, 4).unwrap();
        engine.copy_prefix(1, 1, 2).unwrap();
        step(engine, &[rows(2, 4, &[6]), rows(1, 2, &[30])].concat());
        all
    }

    #[test]
    fn both_engines_compute_the_same_model() {
        let torch = play(&mut TorchEngine::new(random_weights(), 3, Device::Cpu).unwrap());
        let cpu = play(&mut CpuEngine::new(random_weights(), 3, 2).unwrap());
        assert_eq!(torch.len(), 10 * 40);
        for (a, b) in torch.iter().zip(&cpu) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }

    #[test]
    fn chunks_and_copied_prefixes_do_not_change_a_bit_on_the_cpu() {
        let played = play(&mut CpuEngine::new(random_weights(), 3, 2).unwrap());
        let mut engine = CpuEngine::new(random_weights(), 1, 1).unwrap();
        let whole = engine.forward(&rows(0, 0, &[1, 2, 3, 4, 6]), &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(whole[..3 * 40], played[..3 * 40]);
        assert_eq!(whole[4 * 40..], played[8 * 40..9 * 40]);
    }
}
