//! Groups a batch's rollouts into the minibatches that analysts read. Owns the grouping rule and its seeds; must not
//! look at what a rollout says.

use crate::domain::SourceType;
use crate::env::mersenne::Random;

/// Rollouts of one analyst call: positions in the batch, all failures or all successes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minibatch {
    pub source: SourceType,
    pub members: Vec<usize>,
}

/// Failures shuffled with `seed`, then successes with `seed + 1` (none with `failure_only`), each cut into groups of
/// `size` (at least 1). `failed[i]` is [`crate::domain::Score::failed`] of rollout `i`. Failure minibatches come first.
pub fn minibatches(failed: &[bool], size: usize, seed: u64, failure_only: bool) -> Vec<Minibatch> {
    let pool = |wanted: bool| -> Vec<usize> {
        failed.iter().enumerate().filter(|(_, failed)| **failed == wanted).map(|(i, _)| i).collect()
    };
    let mut groups = cut(pool(true), SourceType::Failure, size, seed);
    if !failure_only {
        groups.extend(cut(pool(false), SourceType::Success, size, seed.wrapping_add(1)));
    }
    groups
}

fn cut(mut pool: Vec<usize>, source: SourceType, size: usize, seed: u64) -> Vec<Minibatch> {
    Random::new(seed).shuffle(&mut pool);
    pool.chunks(size.max(1)).map(|members| Minibatch { source, members: members.to_vec() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rollout_is_in_exactly_one_minibatch() {
        let failed: Vec<bool> = (0..23).map(|i| i % 3 == 0).collect();
        let groups = minibatches(&failed, 4, 7, false);
        let mut seen: Vec<usize> = groups.iter().flat_map(|group| group.members.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..23).collect::<Vec<_>>());
        for group in &groups {
            assert!(group.members.len() <= 4);
            assert!(group.members.iter().all(|&i| failed[i] == (group.source == SourceType::Failure)));
        }
    }

    #[test]
    fn failure_only_drops_successes_and_keeps_the_failure_groups() {
        let failed = [true, false, true, true];
        let all = minibatches(&failed, 2, 3, false);
        let only = minibatches(&failed, 2, 3, true);
        assert_eq!(only[..], all[..2]);
        assert_eq!(minibatches(&[], 2, 3, false), []);
    }
}
