//! The Mersenne Twister MT19937 as CPython's `random.Random` drives it, so that equal seeds give the splits and
//! batches of the Python original. Owns the generator and its derived draws; must not be used for secrets.

const N: usize = 624;
const M: usize = 397;

/// `random.Random(seed)`: every draw equals CPython's (checked against 3.11) for the same sequence of calls.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u32; N],
    next: usize,
}

impl Random {
    /// `Random(seed)` for a non-negative integer. CPython seeds with the absolute value, so `-3` is `3`.
    pub fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        if high == 0 { Self::from_key(&[low]) } else { Self::from_key(&[low, high]) }
    }

    /// `init_by_array` of Matsumoto and Nishimura (2002). The key is the seed's base 2^32 digits, lowest first, without
    /// leading zeros; not empty.
    fn from_key(key: &[u32]) -> Self {
        let mut state = [0u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = mix(state[i - 1]).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        for k in 0..N.max(key.len()) {
            let j = k % key.len();
            state[i] = (state[i] ^ mix(state[i - 1]).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i = following(i, &mut state);
        }
        for _ in 1..N {
            state[i] = (state[i] ^ mix(state[i - 1]).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i = following(i, &mut state);
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.regenerate();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn regenerate(&mut self) {
        for i in 0..N {
            let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// A float in [0, 1) with 53 random bits.
    pub fn random(&mut self) -> f64 {
        let (high, low) = (u64::from(self.next_u32() >> 5), u64::from(self.next_u32() >> 6));
        ((high << 26) | low) as f64 / (1u64 << 53) as f64
    }

    /// `bits` random bits, at most 64 (more are cut to 64); 0 bits give 0 and draw nothing.
    pub fn getrandbits(&mut self, bits: u32) -> u64 {
        let bits = bits.min(64);
        let mut value = 0;
        for shift in (0..bits).step_by(32) {
            let wanted = (bits - shift).min(32);
            value |= u64::from(self.next_u32() >> (32 - wanted)) << shift;
        }
        value
    }

    /// An integer in [0, n) by rejection; 0 for `n` = 0.
    pub fn randbelow(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let bits = u64::BITS - n.leading_zeros();
        loop {
            let value = self.getrandbits(bits);
            if value < n {
                return value;
            }
        }
    }

    fn index_below(&mut self, n: usize) -> usize {
        self.randbelow(n as u64) as usize
    }

    /// `random.shuffle`: Fisher-Yates from the end.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index_below(i + 1));
        }
    }

    /// `random.sample`: `count` different elements in selection order; all of them, in that order, when there are
    /// fewer than `count`.
    pub fn sample<T: Clone>(&mut self, population: &[T], count: usize) -> Vec<T> {
        let n = population.len();
        let count = count.min(n);
        // CPython draws from a shrinking pool when that is smaller than a set of the chosen indices would be. Which
        // of the two it takes changes the draws, so the rule is part of the contract.
        let mut set_size = 21u64;
        if count > 5 {
            let mut power = 1u64;
            while power < 3 * count as u64 {
                power *= 4;
            }
            set_size += power;
        }
        if n as u64 <= set_size {
            let mut pool: Vec<usize> = (0..n).collect();
            (0..count)
                .map(|i| {
                    let j = self.index_below(n - i);
                    let chosen = pool[j];
                    pool[j] = pool[n - i - 1];
                    population[chosen].clone()
                })
                .collect()
        } else {
            let mut chosen = std::collections::HashSet::new();
            (0..count)
                .map(|_| {
                    let mut j = self.index_below(n);
                    while !chosen.insert(j) {
                        j = self.index_below(n);
                    }
                    population[j].clone()
                })
                .collect()
        }
    }
}

fn mix(word: u32) -> u32 {
    word ^ (word >> 30)
}

fn following(i: usize, state: &mut [u32; N]) -> usize {
    if i + 1 < N {
        return i + 1;
    }
    state[0] = state[N - 1];
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    // Printed by CPython 3.11 in this order of calls.
    #[test]
    fn draws_equal_cpython() {
        let mut random = Random::new(12_345);
        let floats = [random.random(), random.random(), random.random()];
        assert_eq!(floats, [0.41661987254534116, 0.010169169457068361, 0.8252065092537432]);
        assert_eq!(random.getrandbits(64), 15_774_518_201_988_393_282);
        assert_eq!(random.getrandbits(40), 1_023_784_532_583);
        assert_eq!(random.randbelow(10), 3);
        let range = |n: u32| (0..n).collect::<Vec<u32>>();
        assert_eq!(random.sample(&range(10), 3), [4, 6, 2]);
        assert_eq!(random.sample(&range(1000), 5), [382, 127, 895, 443, 267]);
        let large = random.sample(&range(30), 25);
        assert_eq!(large[..8], [17, 20, 5, 19, 29, 27, 11, 2]);
        assert_eq!(large[20..], [0, 7, 10, 9, 26]);
        assert_eq!(random.randbelow(1 << 33), 7_492_699_466);
    }

    #[test]
    fn a_seed_above_32_bits_uses_both_words() {
        assert_eq!(Random::new(u64::MAX).getrandbits(32), 93_740_670);
    }

    #[test]
    fn degenerate_requests_draw_nothing() {
        let (mut random, mut untouched) = (Random::new(1), Random::new(1));
        assert_eq!((random.getrandbits(0), random.randbelow(0)), (0, 0));
        random.shuffle::<u8>(&mut []);
        assert_eq!(random.sample::<u8>(&[], 3), [0u8; 0]);
        assert_eq!(random.getrandbits(32), untouched.getrandbits(32));
    }

    #[test]
    fn a_sample_larger_than_the_population_is_a_permutation() {
        let mut all = Random::new(9).sample(&[1, 2, 3], 8);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    }
}
