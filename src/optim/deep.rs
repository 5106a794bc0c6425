//! Deep reflection: representative items of a batch, a diagnostic instruction for a second look at them. Owns which
//! items those are and how the instruction is read; must not run them.

use serde_json::{Map, Value};

use super::reply::{ReplyFault, object, required_text, text};
use crate::domain::{DeepProbe, ProbeExample, Trajectory};
use crate::env::mersenne::Random;

/// Longest quote of a reference in the record of a probe, in characters.
const PREVIEW: usize = 400;

/// Positions of the items to probe: up to `n_failures` failures, then up to `n_successes` successes, each shuffled by a
/// generator of `seed`; of every task type one before a second of any.
pub fn representatives(
    failed: &[bool],
    task_types: &[&str],
    n_failures: usize,
    n_successes: usize,
    seed: u64,
) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut picked = Vec::new();
    for (wanted, count) in [(true, n_failures), (false, n_successes)] {
        // No draw for what is not wanted: the order of the others would depend on it.
        if count == 0 {
            continue;
        }
        let mut pool: Vec<usize> = (0..failed.len()).filter(|i| failed[*i] == wanted).collect();
        random.shuffle(&mut pool);
        let mut seen = Vec::new();
        let (first, rest): (Vec<usize>, Vec<usize>) = pool.into_iter().partition(|i| {
            let task_type = task_types.get(*i).copied().unwrap_or_default();
            let new = !seen.contains(&task_type);
            seen.push(task_type);
            new
        });
        picked.extend(first.into_iter().chain(rest).take(count));
    }
    picked
}

/// `shown` with the environment's reference material for its item; blank material is none.
pub fn with_reference(shown: Trajectory, reference: &str) -> Trajectory {
    Trajectory { reference: reference.trim().to_owned(), ..shown }
}

/// Reads a probe reply. `known` are the ids of the items; no other is a target. `last_step` is the last step of the trace
/// of a target that can be sent back into it: then a missing target is the first item and a missing step the last but
/// one.
pub fn probe_reply(reply: &str, known: &[String], last_step: Option<u64>) -> Result<DeepProbe, ReplyFault> {
    const KEY: &str = "probe_instruction";
    let reply = object(reply)?;
    let probe_instruction = required_text(&reply, KEY)?;
    if probe_instruction.is_empty() {
        return Err(ReplyFault::Blank { key: KEY });
    }
    let mut probe_target_id = id(&reply, "probe_target_id").filter(|id| known.contains(id));
    let mut probe_after_step = reply.get("probe_after_step").and_then(step);
    if let Some(last) = last_step.map(|last| i64::try_from(last).unwrap_or(i64::MAX)) {
        probe_target_id = probe_target_id.or_else(|| known.first().cloned());
        probe_after_step = Some(probe_after_step.unwrap_or(last - 1).clamp(0, last));
    }
    let reasoning = text(&reply, "reasoning").trim().to_owned();
    Ok(DeepProbe { reasoning, probe_instruction, probe_target_id, probe_after_step })
}

fn id(reply: &Map<String, Value>, key: &str) -> Option<String> {
    match reply.get(key)? {
        Value::String(id) => Some(id.trim().to_owned()).filter(|id| !id.is_empty()),
        Value::Number(id) => Some(id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number (cut to an integer) or a text of one.
fn step(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_f64().map(|number| number as i64),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What the record of a probe says about the items.
pub fn probe_examples(trajectories: &[Trajectory]) -> Vec<ProbeExample> {
    let example = |shown: &Trajectory| ProbeExample {
        id: shown.item.clone(),
        task_type: shown.task_type.clone(),
        reference_fields: if shown.reference.is_empty() { vec![] } else { vec!["reference_text".into()] },
        reference_preview: shown.reference.chars().take(PREVIEW).collect(),
    };
    trajectories.iter().map(example).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_a_default_place_and_bounds() {
        let known = ["a".to_owned(), "b".into()];
        let read = |reply: &str, last| {
            let probe = probe_reply(reply, &known, last).unwrap();
            (probe.probe_target_id.unwrap(), probe.probe_after_step)
        };
        assert_eq!(read(r#"{"probe_instruction": "x"}"#, Some(7)), ("a".into(), Some(6)));
        assert_eq!(read(r#"{"probe_instruction": "x"}"#, Some(0)), ("a".into(), Some(0)));
        let reply = r#"{"probe_instruction": "x", "probe_target_id": "b", "probe_after_step": -4}"#;
        assert_eq!(read(reply, Some(7)), ("b".into(), Some(0)));
        let reply = r#"{"probe_instruction": "x", "probe_target_id": "../b", "probe_after_step": 1e300}"#;
        assert_eq!(read(reply, Some(7)), ("a".into(), Some(7)));
        let reply = r#"{"probe_instruction": "x", "probe_target_id": "c"}"#;
        let without_trace = probe_reply(reply, &known, None).unwrap();
        assert_eq!((without_trace.probe_target_id, without_trace.probe_after_step), (None, None));
        let missing = probe_reply(r#"{"reasoning": "x"}"#, &[], None);
        assert_eq!(missing, Err(ReplyFault::Missing { key: "probe_instruction" }));
    }

    #[test]
    fn every_task_type_is_seen_before_a_second_item_of_any() {
        let types = ["x", "x", "x", "y", "x", "z"];
        for seed in 0..20 {
            let picked = representatives(&[true; 6], &types, 3, 3, seed);
            let mut seen: Vec<&str> = picked.iter().map(|i| types[*i]).collect();
            seen.sort_unstable();
            assert_eq!(seen, ["x", "y", "z"], "{seed}");
        }
        assert_eq!(representatives(&[], &[], 2, 2, 1), [0usize; 0]);
    }
}
