//! The arithmetic of a decode step on plain slices. Every output element is computed by one fixed sequence of
//! operations that depends on its own row only, so a row's result has the same bits whatever rows, threads or
//! chunks stand beside it. Wide (AVX2 + FMA) and portable code give the same bits too.

use crate::pool::Pool;

const LANES: usize = 8;
/// Weight rows and activation rows of one register tile: 12 accumulators fill the 16 vector registers.
const TILE_WEIGHTS: usize = 4;
const TILE_ROWS: usize = 3;
/// Activation rows worked on per pass over a chunk of weights, so that both stay in the second-level cache.
const ROW_BLOCK: usize = 48;
/// Weight rows per task, a multiple of the tile.
const WEIGHT_CHUNK: usize = 48;

/// A pointer that tasks write disjoint elements through.
#[derive(Clone, Copy)]
pub struct Disjoint(*mut f32, usize);

// SAFETY: users write disjoint ranges only (the contract of `slice`).
unsafe impl Send for Disjoint {}
// SAFETY: as above.
unsafe impl Sync for Disjoint {}

impl Disjoint {
    pub fn new(slice: &mut [f32]) -> Self {
        Self(slice.as_mut_ptr(), slice.len())
    }

    /// # Safety
    /// No two threads may hold overlapping ranges at once.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [f32] {
        assert!(start + len <= self.1, "range outside the buffer");
        // SAFETY: inside the buffer; disjointness is the caller's duty.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

#[cfg(target_arch = "x86_64")]
fn wide() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn wide() -> bool {
    false
}

/// `y[r, n] = Σ_k x[r, k] · w[n, k]`: `w` is [n, k], `x` [rows, k], `y` [rows, n], all row-major; `k` is a multiple
/// of 8.
pub fn linear(pool: &mut Pool, w: &[f32], x: &[f32], y: &mut [f32], k: usize) {
    assert!(k.is_multiple_of(LANES) && w.len().is_multiple_of(k) && x.len().is_multiple_of(k));
    let (n, rows) = (w.len() / k, x.len() / k);
    assert_eq!(y.len(), rows * n);
    let out = Disjoint::new(y);
    let wide = wide();
    pool.run(n.div_ceil(WEIGHT_CHUNK), &|chunk| {
        let first = chunk * WEIGHT_CHUNK;
        let last = (first + WEIGHT_CHUNK).min(n);
        for block in (0..rows).step_by(ROW_BLOCK) {
            let end = (block + ROW_BLOCK).min(rows);
            for at in (first..last).step_by(TILE_WEIGHTS) {
                let weights = &w[at * k..(at + TILE_WEIGHTS).min(last) * k];
                for row in (block..end).step_by(TILE_ROWS) {
                    let inputs = &x[row * k..(row + TILE_ROWS).min(end) * k];
                    tile(wide, weights, inputs, k, |b, values| {
                        // SAFETY: column ranges of different chunks are disjoint.
                        unsafe { out.slice((row + b) * n + at, values.len()) }.copy_from_slice(values);
                    });
                }
            }
        }
    });
}

/// All dot products of up to 4 weight rows with up to 3 activation rows; `put` gets those of one activation row.
#[inline(always)]
fn tile(wide: bool, w: &[f32], x: &[f32], k: usize, mut put: impl FnMut(usize, &[f32])) {
    let (weights, rows) = (w.len() / k, x.len() / k);
    macro_rules! whole {
        ($rows:literal) => {{
            let sums = dots::<TILE_WEIGHTS, $rows>(wide, w, x, k);
            sums.iter().enumerate().for_each(|(b, values)| put(b, values));
        }};
    }
    match (weights, rows) {
        (TILE_WEIGHTS, 3) => whole!(3),
        (TILE_WEIGHTS, 2) => whole!(2),
        (TILE_WEIGHTS, 1) => whole!(1),
        _ => {
            for b in 0..rows {
                let mut values = [0.0; TILE_WEIGHTS];
                for (m, value) in values[..weights].iter_mut().enumerate() {
                    *value = dots::<1, 1>(wide, &w[m * k..][..k], &x[b * k..][..k], k)[0][0];
                }
                put(b, &values[..weights]);
            }
        }
    }
}

#[inline(always)]
fn dots<const M: usize, const B: usize>(wide: bool, w: &[f32], x: &[f32], k: usize) -> [[f32; M]; B] {
    assert!(w.len() == M * k && x.len() == B * k && k.is_multiple_of(LANES));
    #[cfg(target_arch = "x86_64")]
    if wide {
        // SAFETY: `wide` is true only where AVX2 and FMA were detected; lengths were checked above.
        return unsafe { dots_avx2::<M, B>(w.as_ptr(), x.as_ptr(), k) };
    }
    let _ = wide;
    dots_portable(w, x, k)
}

fn dots_portable<const M: usize, const B: usize>(w: &[f32], x: &[f32], k: usize) -> [[f32; M]; B] {
    let mut sums = [[0.0; M]; B];
    for (b, sums) in sums.iter_mut().enumerate() {
        for (m, sum) in sums.iter_mut().enumerate() {
            *sum = dot(&w[m * k..][..k], &x[b * k..][..k]);
        }
    }
    sums
}

/// # Safety
/// The CPU has AVX2 and FMA; `w` points to `M * k` and `x` to `B * k` floats; `k` is a multiple of 8.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn dots_avx2<const M: usize, const B: usize>(w: *const f32, x: *const f32, k: usize) -> [[f32; M]; B] {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps};
    let mut sums = [[_mm256_setzero_ps(); B]; M];
    let mut at = 0;
    while at < k {
        // SAFETY: at + 8 <= k, so every load lies inside its row.
        unsafe {
            let mut inputs = [_mm256_setzero_ps(); B];
            for (b, input) in inputs.iter_mut().enumerate() {
                *input = _mm256_loadu_ps(x.add(b * k + at));
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let weights = _mm256_loadu_ps(w.add(m * k + at));
                for (sum, input) in sums.iter_mut().zip(&inputs) {
                    *sum = _mm256_fmadd_ps(weights, *input, *sum);
                }
            }
        }
        at += LANES;
    }
    let mut out = [[0.0; M]; B];
    for (m, sums) in sums.iter().enumerate() {
        for (out, sum) in out.iter_mut().zip(sums) {
            let mut lanes = [0.0; LANES];
            // SAFETY: `lanes` holds 8 floats.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), *sum) };
            out[m] = add_lanes(&lanes);
        }
    }
    out
}

#[inline(always)]
fn add_lanes(l: &[f32; LANES]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// Dot product in 8 interleaved partial sums; lengths are equal multiples of 8.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for i in 0..LANES {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    add_lanes(&lanes)
}

/// Compiles an always-inlined body twice, for AVX2 + FMA and for any CPU, and picks at run time.
macro_rules! dispatched {
    ($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        pub fn $name($($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                unsafe fn wide_version($($arg: $type),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if wide() {
                    // SAFETY: AVX2 and FMA were detected.
                    return unsafe { wide_version($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}

dispatched! {
    /// RMSNorm (Zhang and Sennrich 2019): `out = x / sqrt(mean(x²) + eps) · gain`, one row.
    pub fn rms_norm(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) = rms_norm_body
}
dispatched! {
    /// SwiGLU (Shazeer 2020): `out = silu(gate) · up`; `gate_up` holds the gate row and then the up row.
    pub fn swiglu(gate_up: &[f32], out: &mut [f32]) = swiglu_body
}
dispatched! {
    /// Attention of the query heads that share one key/value head, for one row: softmax(q·K / sqrt(d)) · V.
    /// `q` and `out` are [group, d]; position p's key and value start at `p * stride` in `keys` and `values`.
    pub fn attend(q: &[f32], keys: &[f32], values: &[f32], stride: usize, d: usize, out: &mut [f32]) = attend_body
}
dispatched! {
    /// `Σ exp((x - shift) · scale)`, and the terms into `out`.
    pub fn exp_sum(x: &[f32], shift: f32, scale: f32, out: &mut [f32]) -> f64 = exp_sum_body
}

#[inline(always)]
fn rms_norm_body(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) {
    let scale = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
    for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
        *out = x * scale * gain;
    }
}

#[inline(always)]
fn swiglu_body(gate_up: &[f32], out: &mut [f32]) {
    let (gate, up) = gate_up.split_at(out.len());
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        *out = gate / (1.0 + exp(-gate)) * up;
    }
}

#[inline(always)]
fn attend_body(q: &[f32], keys: &[f32], values: &[f32], stride: usize, d: usize, out: &mut [f32]) {
    let positions = (keys.len() - d) / stride + 1;
    let scale = 1.0 / (d as f32).sqrt();
    let mut weights = vec![0.0f32; positions];
    for (q, out) in q.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        for (p, weight) in weights.iter_mut().enumerate() {
            *weight = dot(q, &keys[p * stride..][..d]);
        }
        let max = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        weights.iter_mut().for_each(|weight| *weight = exp((*weight - max) * scale));
        let mut sum = 0.0f32;
        out.fill(0.0);
        for (p, weight) in weights.iter().enumerate() {
            sum += weight;
            for (out, value) in out.iter_mut().zip(&values[p * stride..][..d]) {
                *out = weight.mul_add(*value, *out);
            }
        }
        out.iter_mut().for_each(|out| *out /= sum);
    }
}

#[inline(always)]
fn exp_sum_body(x: &[f32], shift: f32, scale: f32, out: &mut [f32]) -> f64 {
    let mut sum = 0.0f64;
    for (x, out) in x.chunks(1024).zip(out.chunks_mut(1024)) {
        let mut lanes = [0.0f32; LANES];
        for (x, out) in x.chunks(LANES).zip(out.chunks_mut(LANES)) {
            for ((x, out), lane) in x.iter().zip(out.iter_mut()).zip(&mut lanes) {
                *out = exp((x - shift) * scale);
                *lane += *out;
            }
        }
        sum += f64::from(add_lanes(&lanes));
    }
    sum
}

/// e^x within 2 units in the last place on [-87, 88], clamped outside; the polynomial of Cephes `expf`. Own code
/// because the C library's differs between machines and is not vectorised.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = 1.987_569_1e-4f32;
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p.mul_add(r, c);
    }
    let p = p.mul_add(r * r, r) + 1.0;
    p * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, mut seed: u32) -> Vec<f32> {
        (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    }

    #[test]
    fn linear_is_the_product_and_each_row_has_the_same_bits_in_any_company() {
        let mut pool = Pool::new(2).unwrap();
        let (n, k) = (101, 64);
        let w = noise(n * k, 1);
        let x = noise(70 * k, 2);
        let mut all = vec![0.0; 70 * n];
        linear(&mut pool, &w, &x, &mut all, k);
        for (r, row) in x.chunks_exact(k).enumerate() {
            let mut alone = vec![0.0; n];
            linear(&mut pool, &w, row, &mut alone, k);
            assert_eq!(alone, all[r * n..][..n]);
            for (m, value) in alone.iter().enumerate() {
                let exact: f64 = (0..k).map(|i| f64::from(w[m * k + i]) * f64::from(row[i])).sum();
                assert!((exact - f64::from(*value)).abs() < 1e-5, "{exact} {value}");
                assert_eq!(*value, dot(&w[m * k..][..k], row), "portable and wide code differ");
            }
        }
    }

    #[test]
    fn exp_is_close_to_the_true_value() {
        for step in -8700..8800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7, "exp({x})");
        }
        assert!(exp(-1e9) < 1e-37 && exp(0.0) == 1.0);
    }

    #[test]
    fn attention_of_one_position_is_its_value_and_weights_follow_the_scores() {
        let (d, stride) = (8, 16);
        let q = noise(2 * d, 3);
        let keys = noise(2 * stride + d, 4);
        let values = noise(2 * stride + d, 5);
        let mut out = vec![0.0; 2 * d];
        attend(&q, &keys[..d], &values[..d], stride, d, &mut out);
        assert_eq!(out[..d], values[..d]);
        attend(&q, &keys, &values, stride, d, &mut out);
        let scores: Vec<f64> = (0..3)
            .map(|p| (0..d).map(|i| f64::from(q[d + i] * keys[p * stride + i])).sum::<f64>() / 8f64.sqrt())
            .collect();
        let total: f64 = scores.iter().map(|s| s.exp()).sum();
        for i in 0..d {
            let exact: f64 =
                (0..3).map(|p| scores[p].exp() / total * f64::from(values[p * stride + i])).sum();
            assert!((exact - f64::from(out[d + i])).abs() < 1e-5);
        }
    }

    #[test]
    fn norm_and_gate_match_their_formulas() {
        let x = noise(16, 6);
        let gain = noise(16, 7);
        let mut out = vec![0.0; 16];
        rms_norm(&x, &gain, 1e-5, &mut out);
        let mean = x.iter().map(|v| f64::from(v * v)).sum::<f64>() / 16.0;
        for i in 0..16 {
            let exact = f64::from(x[i]) / (mean + 1e-5).sqrt() * f64::from(gain[i]);
            assert!((exact - f64::from(out[i])).abs() < 1e-6);
        }
        let mut gated = vec![0.0; 8];
        swiglu(&x, &mut gated);
        for i in 0..8 {
            let g = f64::from(x[i]);
            assert!((g / (1.0 + (-g).exp()) * f64::from(x[8 + i]) - f64::from(gated[i])).abs() < 1e-6);
        }
        let mut terms = vec![0.0; 16];
        let sum = exp_sum(&x, 0.5, 2.0, &mut terms);
        let exact: f64 = x.iter().map(|v| ((f64::from(*v) - 0.5) * 2.0).exp()).sum();
        assert!((sum / exact - 1.0).abs() < 1e-6);
    }
}
