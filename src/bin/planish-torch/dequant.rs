//! Dequantisers of the GGML tensor types this worker reads, exactly as the format defines the blocks.
//! Works on bytes and floats only; knows nothing of files or models.

use half::f16;

/// How a tensor's elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorType {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q6K,
}

impl TensorType {
    /// From the type number of a GGUF tensor record; `None`: a type this worker does not read.
    pub fn from_id(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            14 => Self::Q6K,
            _ => return None,
        })
    }

    /// Elements per block.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q6K => 256,
        }
    }

    /// Bytes per block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q6K => 210,
        }
    }

    /// Fills `out` from whole blocks. `bytes` and `out` must hold the same number of blocks.
    pub fn dequantise(self, bytes: &[u8], out: &mut [f32]) {
        let blocks = bytes.chunks_exact(self.block_bytes()).zip(out.chunks_exact_mut(self.block_len()));
        match self {
            Self::F32 => {
                blocks.for_each(|(b, y)| y[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            }
            Self::F16 => blocks.for_each(|(b, y)| y[0] = half_at(b, 0)),
            Self::Q4_0 => blocks.for_each(|(b, y)| {
                let d = half_at(b, 0);
                nibbles(&b[2..], y, |q, _| d * (f32::from(q) - 8.0));
            }),
            Self::Q4_1 => blocks.for_each(|(b, y)| {
                let (d, m) = (half_at(b, 0), half_at(b, 2));
                nibbles(&b[4..], y, |q, _| d * f32::from(q) + m);
            }),
            Self::Q5_0 => blocks.for_each(|(b, y)| {
                let (d, high) = (half_at(b, 0), word_at(b, 2));
                nibbles(&b[6..], y, |q, j| d * (f32::from(fifth_bit(q, high, j)) - 16.0));
            }),
            Self::Q5_1 => blocks.for_each(|(b, y)| {
                let (d, m, high) = (half_at(b, 0), half_at(b, 2), word_at(b, 4));
                nibbles(&b[8..], y, |q, j| d * f32::from(fifth_bit(q, high, j)) + m);
            }),
            Self::Q8_0 => blocks.for_each(|(b, y)| {
                let d = half_at(b, 0);
                for (value, q) in y.iter_mut().zip(&b[2..]) {
                    *value = d * f32::from(*q as i8);
                }
            }),
            Self::Q6K => blocks.for_each(|(b, y)| q6k(b, y)),
        }
    }
}

fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn fifth_bit(q: u8, high: u32, j: usize) -> u8 {
    q | (((high >> j) & 1) as u8) << 4
}

/// The low nibbles of 16 bytes are elements 0..16, the high ones 16..32.
fn nibbles(packed: &[u8], out: &mut [f32], value: impl Fn(u8, usize) -> f32) {
    for (j, byte) in packed.iter().enumerate() {
        out[j] = value(byte & 0xF, j);
        out[j + 16] = value(byte >> 4, j + 16);
    }
}

/// 128 bytes of low nibbles, 64 bytes of two-bit high parts, 16 signed scales (one per 16 elements), one f16.
fn q6k(block: &[u8], out: &mut [f32]) {
    let d = half_at(block, 208);
    for part in 0..2 {
        let low = &block[part * 64..][..64];
        let high = &block[128 + part * 32..][..32];
        let scales = &block[192 + part * 8..][..8];
        let out = &mut out[part * 128..][..128];
        for l in 0..32 {
            for group in 0..4 {
                let byte = low[l + 32 * (group % 2)];
                let nibble = if group < 2 { byte & 0xF } else { byte >> 4 };
                let q = nibble | ((high[l] >> (2 * group)) & 3) << 4;
                let scale = f32::from(scales[2 * group + l / 16] as i8);
                out[32 * group + l] = d * scale * (f32::from(q) - 32.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(value: f32) -> [u8; 2] {
        f16::from_f32(value).to_le_bytes()
    }

    fn block(kind: TensorType, parts: &[&[u8]]) -> Vec<f32> {
        let bytes = parts.concat();
        assert_eq!(bytes.len(), kind.block_bytes());
        let mut out = vec![f32::NAN; kind.block_len()];
        kind.dequantise(&bytes, &mut out);
        out
    }

    /// Byte j holds low nibble j and high nibble 15 - j.
    fn ramp() -> Vec<u8> {
        (0..16u8).map(|j| j | (15 - j) << 4).collect()
    }

    #[test]
    fn q4_0_centres_on_eight() {
        let out = block(TensorType::Q4_0, &[&half(0.5), &ramp()]);
        assert_eq!(out[0], -4.0);
        assert_eq!(out[8], 0.0);
        assert_eq!(out[15], 3.5);
        assert_eq!(out[16], 3.5);
        assert_eq!(out[31], -4.0);
    }

    #[test]
    fn q4_1_adds_the_minimum() {
        let out = block(TensorType::Q4_1, &[&half(0.25), &half(-1.0), &ramp()]);
        assert_eq!(out[0], -1.0);
        assert_eq!(out[4], 0.0);
        assert_eq!(out[15], 2.75);
        assert_eq!(out[16], 2.75);
    }

    #[test]
    fn q5_takes_its_fifth_bit_from_the_high_word() {
        let high = (1u32 << 0 | 1 << 31).to_le_bytes();
        let out = block(TensorType::Q5_0, &[&half(1.0), &high, &ramp()]);
        assert_eq!((out[0], out[1], out[16], out[31]), (0.0, -15.0, -1.0, 0.0));
        let out = block(TensorType::Q5_1, &[&half(1.0), &half(0.5), &high, &ramp()]);
        assert_eq!((out[0], out[1], out[16], out[31]), (16.5, 1.5, 15.5, 16.5));
    }

    #[test]
    fn q8_0_is_signed() {
        let quants: Vec<u8> = (0..32).map(|j| (j as i8 - 16) as u8).collect();
        let out = block(TensorType::Q8_0, &[&half(2.0), &quants]);
        assert_eq!((out[0], out[16], out[31]), (-32.0, 0.0, 30.0));
    }

    #[test]
    fn q6_k_combines_nibble_high_bits_and_scale() {
        let mut low = [0u8; 128];
        let mut high = [0u8; 64];
        let mut scales = [1u8; 16];
        low[0] = 0x7 | 0x9 << 4; // elements 0 (low nibble) and 64 (high nibble)
        high[0] = 0b10 | 0b11 << 4; // element 0 gets 2 << 4, element 64 gets 3 << 4
        scales[0] = 3;
        scales[4] = (-2i8) as u8; // elements 64..80
        low[64 + 32 + 17] = 0x5; // second half, group 1, l = 17: element 128 + 32 + 17
        scales[8 + 3] = 4; // its scale: second half, group 1, upper sixteen
        let out = block(TensorType::Q6K, &[&low, &high, &scales, &half(0.5)]);
        assert_eq!(out[0], 0.5 * 3.0 * (39.0 - 32.0));
        assert_eq!(out[64], 0.5 * -2.0 * (57.0 - 32.0));
        assert_eq!(out[128 + 32 + 17], 0.5 * 4.0 * (5.0 - 32.0));
        assert_eq!(out[1], 0.5 * 3.0 * -32.0);
    }

    #[test]
    fn plain_floats_are_copied() {
        assert_eq!(block(TensorType::F32, &[&1.5f32.to_le_bytes()]), [1.5]);
        assert_eq!(block(TensorType::F16, &[&half(-0.75)]), [-0.75]);
    }

    #[test]
    fn unknown_types_have_no_reader() {
        assert_eq!(TensorType::from_id(10), None);
        assert_eq!(TensorType::from_id(14), Some(TensorType::Q6K));
    }
}
