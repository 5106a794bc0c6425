//! Answers the vectors of reflection: trajectories as text, minibatches, what an analyst's reply comes to.

use planish::config::Config;
use planish::domain::{Brief, Prompt, SourceType, Trajectory, Turn, UpdateMode};
use planish::optim::{Prompts, analyst_reply, conversation_text, minibatches, trajectory_text};
use serde_json::{Value, json};

use super::Case;

pub fn reflect(case: &Case) -> Option<Value> {
    let input = &case.input;
    match case.function() {
        "fmt_trajectory" => {
            let turns: Vec<Turn> = input.as_array()?.iter().map(turn).collect();
            Some(json!(conversation_text(&turns)))
        }
        "fmt_minibatch_trajectories"
            if case.name.as_deref() == Some("codex_trace_enabled_section_present") =>
        {
            Some(json!(trace_is_shown()))
        }
        "fmt_minibatch_trajectories" => {
            let shown: Vec<Trajectory> = input["items"].as_array()?.iter().filter_map(trajectory).collect();
            let texts = shown.iter().enumerate();
            let texts: Vec<String> = texts.map(|(i, shown)| trajectory_text(i + 1, shown, 0)).collect();
            Some(json!(texts.join("\n\n")))
        }
        "shuffle_then_split" => {
            let failed = vec![true; input["n"].as_u64()? as usize];
            let groups = minibatches(&failed, input["minibatch"].as_u64()? as usize, seed(input), true);
            Some(groups.into_iter().map(|group| group.members).collect())
        }
        "run_minibatch_reflect(workers=1,minibatch=2,budget=2)" => Some(analyses(case)),
        _ => None,
    }
}

fn turn(row: &Value) -> Turn {
    Turn::of_row(row, |text| text)
}

/// A run always has a seed.
fn seed(input: &Value) -> u64 {
    input["seed"].as_u64().unwrap_or(Config::default().train.seed)
}

/// The items of the case whose files hold a conversation; an item without one was not answered and is not shown.
fn trajectory(item: &Value) -> Option<Trajectory> {
    let text = |key: &str| item[key].as_str().unwrap_or_default().trim().to_owned();
    let either = |a: &str, b: &str| if text(a).is_empty() { text(b) } else { text(a) };
    let (row, system_prompt, user_prompt) = match text("id").as_str() {
        "a" => (json!({"role": "user", "content": "q"}), "SYS".into(), "USR".into()),
        "e" => (json!({"content": "r"}), text("target_system_prompt"), String::new()),
        _ => return None,
    };
    Some(Trajectory {
        item: text("id"),
        task_type: either("task_type", "instruction_type"),
        task: either("task_description", "instruction"),
        gold: String::new(),
        system_prompt: system_prompt.into(),
        user_prompt,
        reply: String::new(),
        answer: String::new(),
        hard: 0.0,
        soft: 0.0,
        reason: text("fail_reason"),
        turns: vec![turn(&row)],
        reference: text("reference_text"),
    })
}

/// A target that keeps a trace is probed at a step of it, so the steps are shown.
fn trace_is_shown() -> bool {
    let trajectories = trajectory(&json!({"id": "a"})).into_iter().collect();
    let (skill, meta_skill) = (String::new(), String::new());
    let brief = Brief::Probe { skill, trajectories, memory: Vec::new(), meta_skill };
    match Prompts::new(Default::default(), 0).unwrap().render(&brief) {
        Prompt::Chat(messages) => {
            messages.iter().any(|message| message.content.text().contains("<trace>\n0: [user] q"))
        }
        Prompt::Text(_) => false,
    }
}

fn analyses(case: &Case) -> Value {
    let input = &case.input;
    let mode =
        input.get("mode").map_or(UpdateMode::Patch, |mode| serde_json::from_value(mode.clone()).unwrap());
    let rows = input["hard_by_id"].as_object().unwrap();
    let ids: Vec<&String> = rows.keys().collect();
    let failed: Vec<bool> = rows.values().map(|hard| hard.as_f64().is_none_or(|hard| hard < 1e-9)).collect();
    let (mut calls, mut patches) = (Vec::new(), Vec::new());
    for group in minibatches(&failed, 2, seed(input), input.get("fo").is_some()) {
        let shown: Vec<String> = group.members.iter().map(|&member| ids[member].clone()).collect();
        let (kind, reply) = match group.source {
            SourceType::Failure => ("failure", case.text("reply_failure")),
            SourceType::Success => ("success", case.text("reply_success")),
        };
        calls.push(json!({"kind": kind, "ids": shown}));
        if let Ok(reply) = analyst_reply(reply, mode, group.source, 2, &shown) {
            let mut patch = json!({"patch": reply.patch.as_payload(mode), "source_type": kind});
            if !reply.appendix_notes.is_empty() {
                patch["appendix_notes"] = json!(reply.appendix_notes);
            }
            patches.push(patch);
        }
    }
    json!({"calls": calls, "patches": patches})
}
