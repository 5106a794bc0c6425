//! Which training items form which batch: the epoch plan and its batch seeds, as the Python original draws them.
//! Works on positions in the training split; must not know items or rollouts.

use super::mersenne::Random;

/// One accumulation slice of a step: its seed and positions in the training split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Seeds everything drawn for this batch (minibatch grouping, per-call seeds).
    pub seed: u64,
    pub items: Vec<usize>,
}

/// Steps in one epoch: ceil(train_size / (batch_size * accumulation)).
pub fn steps_per_epoch(train_size: usize, batch_size: usize, accumulation: usize) -> usize {
    train_size.div_ceil(batch_size.saturating_mul(accumulation).max(1))
}

/// The batches of `epoch` (from 1): `steps * accumulation` of them in order, `accumulation` per step.
///
/// All positions are shuffled with `seed + 1000 * epoch` and cut into slices of `batch_size`. The last slice stays
/// short; a slice that would be empty takes the first `batch_size` of the epoch's order shuffled again under its own batch
/// seed, `seed + 1000 * epoch + k + 1` for slice `k` from 0.
pub fn epoch_plan(
    train_size: usize,
    steps: usize,
    accumulation: usize,
    batch_size: usize,
    seed: u64,
    epoch: u32,
) -> Vec<Batch> {
    let epoch_seed = seed.wrapping_add(1000 * u64::from(epoch));
    let order = shuffled((0..train_size).collect(), epoch_seed);
    let mut slices = order.chunks(batch_size.max(1));
    (0..steps * accumulation)
        .map(|k| {
            let seed = epoch_seed.wrapping_add(k as u64 + 1);
            let items = match slices.next() {
                Some(slice) => slice.to_vec(),
                None => first(shuffled(order.clone(), seed), batch_size),
            };
            Batch { seed, items }
        })
        .collect()
}

/// A random training batch outside the plan: the first `batch_size` positions of a shuffle under `seed`.
pub fn train_batch(train_size: usize, batch_size: usize, seed: u64) -> Vec<usize> {
    first(shuffled((0..train_size).collect(), seed), batch_size)
}

/// How many of the `n` items of a split are evaluated: the first `limit`, or all when `limit` is 0 or above `n`. They
/// are never shuffled.
pub fn eval_size(limit: usize, n: usize) -> usize {
    if limit == 0 { n } else { limit.min(n) }
}

fn shuffled(mut order: Vec<usize>, seed: u64) -> Vec<usize> {
    Random::new(seed).shuffle(&mut order);
    order
}

fn first(mut order: Vec<usize>, n: usize) -> Vec<usize> {
    order.truncate(n);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_round_up() {
        assert_eq!(steps_per_epoch(10, 4, 1), 3);
        assert_eq!(steps_per_epoch(8, 4, 2), 1);
        assert_eq!(steps_per_epoch(9, 4, 2), 2);
        assert_eq!(steps_per_epoch(0, 4, 1), 0);
    }

    #[test]
    fn an_epoch_visits_every_item_once() {
        let mut seen: Vec<usize> = epoch_plan(23, 6, 1, 4, 42, 3).into_iter().flat_map(|b| b.items).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..23).collect::<Vec<_>>());
    }
}
