//! The batch of a step that an effect path names.

/// Batch of a rollout whose step has several, from its effect path `…/rollout/b1/ITEM#0`. The id may hold anything.
pub(super) fn rollout_batch(path: &str, item: &str) -> Option<usize> {
    let (before, _repeat) = path.rsplit_once('#')?;
    batch_of(before.strip_suffix(item)?.strip_suffix('/')?.rsplit('/').next()?)
}

/// Batch that an optimizer call's path names: `…/analyst/b1/fail000`.
pub(super) fn batch_segment(path: &str) -> Option<usize> {
    path.split('/').find_map(batch_of)
}

fn batch_of(segment: &str) -> Option<usize> {
    segment.strip_prefix('b').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_read_from_effect_paths_whatever_the_items_are_called() {
        assert_eq!(rollout_batch("e01/s001/rollout/b1/q#7#0", "q#7"), Some(1));
        assert_eq!(rollout_batch("e01/s001/rollout/b1/b2/x#0", "b2/x"), Some(1));
        assert_eq!(rollout_batch("e01/s001/rollout/b2/x#0", "b2/x"), None);
        assert_eq!(rollout_batch("e01/s001/rollout/q1#0", "q1"), None);
        assert_eq!(rollout_batch("r1", "q1"), None);
        assert_eq!(batch_segment("e01/s001/analyst/b12/fail000"), Some(12));
        assert_eq!(batch_segment("e01/s001/bad/b"), None);
    }
}
