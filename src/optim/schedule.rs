//! The edit budget per step. Owns the schedules; must not know how many edits there are.

use std::f64::consts::PI;

use crate::config::Scheduler;

/// The budget of the schedule `autonomous`, SkillOpt's.
const UNLIMITED: usize = 999;

/// Most edits of update number `k` (from 1) of `total`: SkillOpt's schedules, rounded half to even, never below
/// `min`. `constant` is `max` at every step; with `total` <= 1 so are the others.
///
/// linear: max + (min - max) k / T; cosine: min + (max - min) (1 + cos(pi k / T)) / 2, k at most T.
pub fn edit_budget(scheduler: Scheduler, max: usize, min: usize, k: usize, total: usize) -> usize {
    if scheduler == Scheduler::Autonomous {
        return UNLIMITED;
    }
    if total <= 1 {
        return max;
    }
    let (high, low) = (max as f64, min as f64);
    let progress = k.min(total) as f64;
    let value = match scheduler {
        Scheduler::Constant | Scheduler::Autonomous => return max,
        Scheduler::Linear => high + (low - high) * progress / total as f64,
        Scheduler::Cosine => low + 0.5 * (high - low) * (1.0 + (PI * progress / total as f64).cos()),
    };
    (value.round_ties_even() as usize).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even_neighbour() {
        assert_eq!(edit_budget(Scheduler::Linear, 5, 2, 1, 2), 4, "3.5 rounds up to 4");
        assert_eq!(edit_budget(Scheduler::Linear, 3, 2, 1, 2), 2, "2.5 rounds down to 2");
    }

    #[test]
    fn stays_at_the_floor_past_the_end() {
        assert_eq!(edit_budget(Scheduler::Cosine, 4, 2, 9, 4), 2);
        assert_eq!(edit_budget(Scheduler::Cosine, 2, 4, 1, 4), 4, "the floor wins over a smaller maximum");
    }
}
