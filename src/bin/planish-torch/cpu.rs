//! The CPU engine: a Llama forward pass in f32 over ragged rows, built from `kernels`. A row's logits have the same
//! bits alone, in any batch, in any prefill chunk and after any prefix-cache hit. Owns weights and key/value slots.

use crate::engine::{Engine, EngineError, Row};
use crate::kernels::{Disjoint, attend, linear, rms_norm, swiglu};
use crate::pool::Pool;
use crate::weights::{Shape, Weights};

/// Keys and values of one sequence: per layer [positions, kv_width].
#[derive(Default)]
struct Slot {
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

pub struct CpuEngine {
    weights: Weights,
    pool: Pool,
    slots: Vec<Slot>,
    /// Rotations of positions 0.. as far as needed yet.
    rope: Vec<Vec<(f32, f32)>>,
}

impl CpuEngine {
    pub fn new(weights: Weights, slots: usize, threads: usize) -> Result<Self, EngineError> {
        let pool = Pool::new(threads).map_err(EngineError::Threads)?;
        let layers = weights.shape.layers;
        let slots = (0..slots)
            .map(|_| Slot { keys: vec![Vec::new(); layers], values: vec![Vec::new(); layers] })
            .collect();
        Ok(Self { weights, pool, slots, rope: Vec::new() })
    }

    /// Rotates queries and keys of every row in place and stores keys and values.
    fn rotate_and_store(&mut self, rows: &[Row], layer: usize, qkv: &mut [f32]) {
        let shape = &self.weights.shape;
        let (q, kv) = (shape.q_width(), shape.kv_width());
        for (row, qkv) in rows.iter().zip(qkv.chunks_exact_mut(q + 2 * kv)) {
            let rotation = &self.rope[row.position];
            for head in qkv[..q + kv].chunks_exact_mut(shape.head) {
                for (pair, (cos, sin)) in head.chunks_exact_mut(2).zip(rotation) {
                    let (a, b) = (pair[0], pair[1]);
                    pair[0] = a * cos - b * sin;
                    pair[1] = a * sin + b * cos;
                }
            }
            let slot = &mut self.slots[row.slot];
            for (cache, new) in
                [(&mut slot.keys[layer], &qkv[q..q + kv]), (&mut slot.values[layer], &qkv[q + kv..])]
            {
                cache.truncate(row.position * kv);
                cache.extend_from_slice(new);
            }
        }
    }

    fn attention(&mut self, rows: &[Row], layer: usize, qkv: &[f32], out: &mut [f32]) {
        let shape = &self.weights.shape;
        let (q, kv, d) = (shape.q_width(), shape.kv_width(), shape.head);
        let group = shape.heads / shape.kv_heads * d;
        let slots = &self.slots;
        let out = Disjoint::new(out);
        self.pool.run(rows.len() * shape.kv_heads, &|task| {
            let (r, head) = (task / shape.kv_heads, task % shape.kv_heads);
            let row = rows[r];
            let span = head * d..row.position * kv + (head + 1) * d;
            let queries = &qkv[r * (q + 2 * kv) + head * group..][..group];
            // SAFETY: every task has its own row and head.
            let out = unsafe { out.slice(r * q + head * group, group) };
            let slot = &slots[row.slot];
            attend(queries, &slot.keys[layer][span.clone()], &slot.values[layer][span], kv, d, out);
        });
    }
}

impl Engine for CpuEngine {
    fn name(&self) -> &'static str {
        "cpu-f32"
    }

    fn shape(&self) -> &Shape {
        &self.weights.shape
    }

    fn forward(&mut self, rows: &[Row], wanted: &[usize]) -> Result<Vec<f32>, EngineError> {
        let shape = self.weights.shape.clone();
        let (d, q, kv, ffn) = (shape.width, shape.q_width(), shape.kv_width(), shape.ffn);
        let count = rows.len();
        let longest = rows.iter().map(|row| row.position + 1).max().unwrap_or(0);
        self.rope.extend((self.rope.len()..longest).map(|position| shape.rope(position)));
        let mut x: Vec<f32> = Vec::with_capacity(count * d);
        for row in rows {
            x.extend_from_slice(&self.weights.embedding[row.token as usize * d..][..d]);
        }
        let mut normed = vec![0.0; count * d];
        let mut qkv = vec![0.0; count * (q + 2 * kv)];
        let mut mixed = vec![0.0; count * q];
        let mut gate_up = vec![0.0; count * 2 * ffn];
        let mut gated = vec![0.0; count * ffn];
        let mut added = vec![0.0; count * d];
        for index in 0..shape.layers {
            let layer = &self.weights.layers[index];
            norm_rows(&x, &layer.attention_norm, shape.eps, &mut normed);
            linear(&mut self.pool, &layer.qkv, &normed, &mut qkv, d);
            self.rotate_and_store(rows, index, &mut qkv);
            self.attention(rows, index, &qkv, &mut mixed);
            let layer = &self.weights.layers[index];
            linear(&mut self.pool, &layer.attention_out, &mixed, &mut added, q);
            add(&mut x, &added);
            norm_rows(&x, &layer.ffn_norm, shape.eps, &mut normed);
            linear(&mut self.pool, &layer.gate_up, &normed, &mut gate_up, d);
            let out = Disjoint::new(&mut gated);
            self.pool.run(count, &|r| {
                // SAFETY: every task has its own row.
                swiglu(&gate_up[r * 2 * ffn..][..2 * ffn], unsafe { out.slice(r * ffn, ffn) });
            });
            linear(&mut self.pool, &layer.down, &gated, &mut added, ffn);
            add(&mut x, &added);
        }
        let mut last = vec![0.0; wanted.len() * d];
        for (row, out) in wanted.iter().zip(last.chunks_exact_mut(d)) {
            rms_norm(&x[row * d..][..d], &self.weights.out_norm, shape.eps, out);
        }
        let mut logits = vec![0.0; wanted.len() * shape.vocab];
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        linear(&mut self.pool, head, &last, &mut logits, d);
        Ok(logits)
    }

    fn copy_prefix(&mut self, from: usize, to: usize, positions: usize) -> Result<(), EngineError> {
        let len = positions * self.weights.shape.kv_width();
        let mut target = std::mem::take(&mut self.slots[to]);
        if from == to {
            target.keys.iter_mut().chain(&mut target.values).for_each(|cache| cache.truncate(len));
        } else {
            let source = &self.slots[from];
            let pairs = target.keys.iter_mut().zip(&source.keys);
            for (cache, source) in pairs.chain(target.values.iter_mut().zip(&source.values)) {
                cache.clear();
                cache.extend_from_slice(&source[..len]);
            }
        }
        self.slots[to] = target;
        Ok(())
    }

    fn clear(&mut self, slot: usize) {
        let slot = &mut self.slots[slot];
        slot.keys.iter_mut().chain(&mut slot.values).for_each(|cache| *cache = Vec::new());
    }
}

fn norm_rows(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) {
    let d = gain.len();
    for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        rms_norm(x, gain, eps, out);
    }
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}
