//! A made-up journal of any length for benches, and the memory of this process. Knows no target numbers.
#![allow(dead_code, reason = "no bench uses all of it")]

use std::sync::Arc;
use std::time::Instant;

use planish::config::Config;
use planish::domain::{
    EffectKey, FinishReason, GateScore, Phase, ReviewMode, Rollout, Score, Skill, StepRef, Usage, fingerprint,
};
use planish::event::{EvalPurpose, Event, FORMAT_VERSION, ItemResult, Record, RunPlan};

/// Events of one made-up step: phases, training rollouts, and the candidate's evaluation.
const ROLLOUTS: usize = 40;
const ITEMS: usize = 400;

/// The first `n` records of a run of short questions (about 0.8 kB each).
pub fn records(n: usize) -> Vec<Record> {
    let skill = Skill::new("Answer with one word. A card of kind A is red. A card of kind B is green.\n");
    let plan = RunPlan {
        epochs: 100,
        steps_per_epoch: 25,
        total_steps: 2_500,
        batch_size: ROLLOUTS,
        train: 1_000,
        val: ITEMS,
        test: 0,
        target: "mock".into(),
        optimizer: "mock".into(),
        judge: String::new(),
        env: "qa".into(),
        review: ReviewMode::Auto,
    };
    let begun = Event::RunStarted {
        v: FORMAT_VERSION,
        run: "bench".into(),
        seed: 7,
        config: serde_json::to_value(Config::default()).unwrap_or_default(),
        config_hash: fingerprint(["config"]),
        skill: skill.clone(),
        origin: None,
        folder: None,
        origins: Default::default(),
        plan,
    };
    let events = std::iter::once(begun).chain((1..).flat_map(|step| step_events(step, &skill)));
    events
        .take(n)
        .zip(1..)
        .map(|(event, seq)| Record { seq, at: 1_760_000_000_000 + seq * 3, event })
        .collect()
}

fn step_events(step: u32, skill: &Skill) -> Vec<Event> {
    let at = StepRef { epoch: 1 + step / 25, step, step_in_epoch: step % 25 };
    let eval = format!("s{step:03}");
    let mut events = vec![Event::PhaseStarted { at, phase: Phase::Rollout }];
    events.extend((0..ROLLOUTS).map(|index| {
        let (key, result) = rollout(&format!("{}/rollout", at.path()), index, skill);
        Event::RolloutFinished { key, at, index, result }
    }));
    events.push(Event::PhaseStarted { at, phase: Phase::Evaluate });
    events.push(Event::EvaluationStarted {
        eval: eval.clone(),
        purpose: EvalPurpose::Candidate,
        at,
        skill_hash: skill.hash.clone(),
        n: ITEMS,
    });
    events.extend((0..ITEMS).map(|index| {
        let (key, result) = rollout(&format!("{}/eval", at.path()), index, skill);
        Event::EvaluationItemFinished { key, eval: eval.clone(), index, result }
    }));
    let score = GateScore { hard: 0.5, soft: 0.5, gate: 0.5, n: ITEMS, done: ITEMS };
    events.push(Event::EvaluationFinished { eval, score, curtailed: false, missing: 0 });
    events
}

fn rollout(prefix: &str, index: usize, skill: &Skill) -> (EffectKey, ItemResult) {
    let item = format!("card {index:03}");
    let path = format!("{prefix}/{item}#0");
    let task = format!("What colour is card {index} of kind A?");
    let rollout = Rollout {
        turns: Vec::new(),
        item,
        task_type: "qa".into(),
        task: task.clone(),
        gold: "red".into(),
        system_prompt: skill.text.as_str().into(),
        user_prompt: task,
        reply: "I think that it is red.".into(),
        answer: "red".into(),
        score: Score { hard: 1.0, soft: 0.75, reason: "exact: equal to a reference".into() },
        finish: FinishReason::Stop,
        usage: Usage { calls: 1, prompt_tokens: 40, completion_tokens: 6, ..Usage::default() },
        ms: 812,
        judging: None,
    };
    (EffectKey { fingerprint: fingerprint([path.as_str()]), path }, ItemResult::Scored(Arc::new(rollout)))
}

/// Runs `work` and its wall seconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let out = work();
    (out, began.elapsed().as_secs_f64())
}

/// A memory field of this process in MB (10^6 bytes): `VmRSS` or `VmHWM`.
pub fn memory_mb(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
