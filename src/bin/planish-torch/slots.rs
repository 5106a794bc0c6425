//! Which key/value slot a sequence gets, and how much of a prompt is already in one. Slots keep their tokens when a
//! sequence ends, so prompts that begin alike (one skill, many items) are computed once.

/// Idle slots that keep their content; more would only hold copies of the same few prefixes.
const KEPT_IDLE: usize = 8;
/// A shared beginning shorter than this is not worth waiting for.
const WORTH_WAITING: usize = 32;

#[derive(Clone, Default)]
struct Slot {
    /// Tokens whose keys and values are in the slot.
    tokens: Vec<u32>,
    /// All tokens the running sequence will have computed before it generates; empty when idle.
    planned: Vec<u32>,
    busy: bool,
    used: u64,
}

pub struct Slots {
    slots: Vec<Slot>,
    clock: u64,
}

/// Where a new sequence goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Now {
        slot: usize,
        /// Slot to copy from, and how many positions; `source == slot` keeps what is there.
        source: usize,
        cached: usize,
    },
    /// A running sequence will soon hold a longer shared beginning.
    Later,
    Full,
}

impl Slots {
    pub fn new(count: usize) -> Self {
        Self { slots: vec![Slot::default(); count], clock: 0 }
    }

    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Finds a place for `tokens`, of which at most the first `limit` may come from a cache.
    pub fn place(&self, tokens: &[u32], limit: usize) -> Place {
        let idle = self.slots.iter().enumerate().filter(|(_, slot)| !slot.busy);
        let Some((slot, _)) = idle.min_by_key(|(_, slot)| slot.used) else { return Place::Full };
        let shared = |other: &[u32]| common(other, tokens).min(limit);
        let (mut source, mut cached) = (slot, shared(&self.slots[slot].tokens));
        for (index, other) in self.slots.iter().enumerate() {
            if shared(&other.tokens) > cached {
                (source, cached) = (index, shared(&other.tokens));
            }
        }
        let coming = self.slots.iter().filter(|slot| slot.busy).map(|slot| shared(&slot.planned)).max();
        match coming {
            Some(coming) if coming >= cached + WORTH_WAITING => Place::Later,
            _ => Place::Now { slot, source, cached },
        }
    }

    pub fn take(&mut self, slot: usize, source: usize, tokens: &[u32], cached: usize) {
        self.clock += 1;
        self.slots[source].used = self.clock;
        self.slots[slot] = Slot {
            tokens: tokens[..cached].to_vec(),
            planned: tokens.to_vec(),
            busy: true,
            used: self.clock,
        };
    }

    /// Notes that these tokens' keys and values have been computed.
    pub fn extend(&mut self, slot: usize, tokens: &[u32]) {
        self.slots[slot].tokens.extend_from_slice(tokens);
    }

    /// Positions computed so far.
    pub fn computed(&self, slot: usize) -> usize {
        self.slots[slot].tokens.len()
    }

    /// Makes a slot idle; returns another whose content is given up, if there are too many.
    pub fn release(&mut self, slot: usize) -> Option<usize> {
        self.clock += 1;
        let released = &mut self.slots[slot];
        (released.busy, released.planned, released.used) = (false, Vec::new(), self.clock);
        let kept = |slot: &Slot| !slot.busy && !slot.tokens.is_empty();
        if self.slots.iter().filter(|slot| kept(slot)).count() <= KEPT_IDLE {
            return None;
        }
        let oldest =
            self.slots.iter().enumerate().filter(|(_, slot)| kept(slot)).min_by_key(|(_, s)| s.used)?.0;
        self.slots[oldest] = Slot::default();
        Some(oldest)
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(tail: u32) -> Vec<u32> {
        (0..100).chain([1000 + tail]).collect()
    }

    #[test]
    fn the_second_prompt_waits_for_the_shared_beginning_and_then_copies_it() {
        let mut slots = Slots::new(3);
        assert_eq!(slots.place(&prompt(0), 100), Place::Now { slot: 0, source: 0, cached: 0 });
        slots.take(0, 0, &prompt(0), 0);
        assert_eq!(slots.place(&prompt(1), 100), Place::Later);
        assert!(matches!(slots.place(&[5, 6, 7], 2), Place::Now { cached: 0, .. }));
        slots.extend(0, &prompt(0));
        assert_eq!(slots.place(&prompt(1), 100), Place::Now { slot: 1, source: 0, cached: 100 });
    }

    #[test]
    fn an_idle_slot_keeps_its_tokens_and_the_limit_holds() {
        let mut slots = Slots::new(1);
        slots.take(0, 0, &prompt(0), 0);
        slots.extend(0, &prompt(0));
        assert_eq!(slots.place(&prompt(0), 100), Place::Full);
        assert_eq!(slots.release(0), None);
        assert_eq!(slots.place(&prompt(0), 100), Place::Now { slot: 0, source: 0, cached: 100 });
    }

    #[test]
    fn the_least_recently_used_content_is_given_up() {
        let mut slots = Slots::new(KEPT_IDLE + 2);
        for slot in 0..KEPT_IDLE + 2 {
            let tokens = vec![slot as u32; 40];
            slots.take(slot, slot, &tokens, 0);
            slots.extend(slot, &tokens);
        }
        let given_up: Vec<_> = (0..KEPT_IDLE + 2).filter_map(|slot| slots.release(slot)).collect();
        assert_eq!(given_up, [0, 1]);
        assert_eq!(slots.computed(0), 0);
        assert!(matches!(slots.place(&[1; 40], 39), Place::Now { cached: 0, .. }));
        assert!(matches!(slots.place(&[5; 40], 39), Place::Now { source: 5, cached: 39, .. }));
    }
}
