use std::sync::Mutex;

use serde_json::Value;

use super::document::{blocks, example_block};
use super::*;
use crate::domain::{FailedAttempt, Patch, Prompt, Role, Sampling, StepMemory, Trajectory};

/// A made-up model: answers get likelier with every block of the skill that is an example ending in a capitalised
/// word, and unlikelier with every "bad" in the skill. Keeps what it was asked.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<(String, String)>>,
}

impl Likelihood for Fake {
    fn score<'a>(
        &'a self,
        pairs: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<(f64, usize)>, ModelError>> {
        self.asked.lock().unwrap().extend_from_slice(pairs);
        let score = |(prompt, _): &(String, String)| {
            let good = prompt.matches("\nText: ").count() as f64 - 1.0;
            let dull = prompt.matches("dull").count() as f64;
            let bad = prompt.matches("bad").count() as f64;
            let copied = f64::from(prompt.contains("Copy the answer"));
            (3.0 * (-6.0 + good - 0.9 * dull - 2.0 * bad + 0.2 * copied), 3)
        };
        let scores = pairs.iter().map(score).collect();
        Box::pin(async move { Ok(scores) })
    }
}

pub fn trajectory(item: &str, task: &str, gold: &str) -> Trajectory {
    Trajectory {
        reference: String::new(),
        turns: Vec::new(),
        item: item.into(),
        task_type: "qa".into(),
        task: task.into(),
        gold: gold.into(),
        system_prompt: String::new(),
        user_prompt: task.into(),
        reply: "wrong".into(),
        answer: "wrong".into(),
        hard: 0.0,
        soft: 0.0,
        reason: "mismatch: wrong".into(),
    }
}

fn city(n: usize) -> Trajectory {
    let (names, cities) = (
        ["Bo", "Al", "Ed", "Di", "Jo", "Cy", "Flo", "Gus", "Hal", "Ida"],
        ["Rome", "Bern", "Lyon", "Oslo", "Kiev", "Lima", "Doha", "Baku", "Pune", "Riga"],
    );
    let (name, city) = (names[n], cities[n]);
    trajectory(&format!("t{n}"), &format!("Text: {name} lives{n} in{n} {city} now{n}."), city)
}

fn analyze(skill: &str, trajectories: Vec<Trajectory>, budget: usize, memory: Vec<StepMemory>) -> Brief {
    Brief::Analyze {
        appendix: false,
        meta_skill: String::new(),
        mode: Default::default(),
        source: SourceType::Failure,
        skill: skill.into(),
        budget,
        trajectories,
        memory,
    }
}

async fn ask(fake: &Arc<Fake>, brief: Option<Brief>) -> Result<Value, ModelError> {
    let likelihood: Arc<dyn Likelihood> = fake.clone();
    let search = EditSearch::new(likelihood, "fake");
    let request = ChatRequest {
        path: "e01/s001/analyst/f000".into(),
        role: Role::Optimizer,
        stage: "analyst".into(),
        prompt: Prompt::Chat(Vec::new()),
        sampling: Sampling {
            max_tokens: 1,
            temperature: None,
            top_p: None,
            top_k: None,
            seed: None,
            stop: vec![],
        },
        brief: brief.map(Box::new),
    };
    let live: LiveSink = Arc::new(|_| {});
    let reply = search.chat(&request, &live).await?;
    assert_eq!(reply.usage, Usage { calls: 1, ..Usage::default() });
    Ok(serde_json::from_str(&reply.text).unwrap())
}

async fn edits(brief: Brief) -> (Patch, Value) {
    let value = ask(&Arc::default(), Some(brief)).await.unwrap();
    (serde_json::from_value(value["patch"].clone()).unwrap(), value)
}

const INTRO: &str = "Reply with the city.\n";

#[tokio::test]
async fn adds_failing_items_as_examples_with_numbers() {
    let (patch, value) = edits(analyze(INTRO, (0..4).map(city).collect(), 2, Vec::new())).await;
    assert_eq!(value["batch_size"], 4);
    assert_eq!(value["failure_summary"][0]["failure_type"], "mismatch");
    assert_eq!(value["failure_summary"][0]["count"], 4);
    assert_eq!(patch.edits.len(), 2);
    let first = &patch.edits[0];
    assert_eq!(first.op, crate::domain::EditOp::Append);
    assert_eq!(first.content, "Text: Bo lives0 in0 Rome now0.\nRome");
    assert_eq!(first.motivated_by, ["t0"]);
    assert_eq!(first.support_count, 3);
    let numbers = "log p(answer) per token -6.000 -> -5.000 on 3 other training items (3 better)";
    assert_eq!(first.rationale, format!("add item t0 as a worked example: {numbers}"));
}

#[tokio::test]
async fn never_scores_an_example_on_itself() {
    let fake = Arc::new(Fake::default());
    let known = city(9);
    let skill = format!("{INTRO}\n{}\n", example_block(&known.task, &known.gold));
    let batch: Vec<Trajectory> = (0..4).map(city).chain([known]).collect();
    ask(&fake, Some(analyze(&skill, batch, 4, Vec::new()))).await.unwrap();
    let asked = fake.asked.lock().unwrap();
    assert!(asked.len() > 20);
    for (prompt, gold) in asked.iter() {
        let (skill, task) = prompt.trim_end().rsplit_once('\n').unwrap();
        assert!(!skill.contains(&example_block(task, gold)), "{prompt}");
        assert!(prompt.starts_with(INTRO.trim_end()) && prompt.ends_with(".\n"));
    }
}

#[tokio::test]
async fn proposes_nothing_without_other_items_or_without_gain() {
    let (patch, value) = edits(analyze(INTRO, vec![city(0)], 4, Vec::new())).await;
    assert_eq!(patch.edits, [], "{value}");
    let dull = |n: usize| {
        let mut dull = city(n);
        dull.task = dull.task.replace("now", "bad");
        dull
    };
    let (patch, value) = edits(analyze(INTRO, (0..4).map(dull).collect(), 4, Vec::new())).await;
    assert!(patch.edits.iter().all(|edit| !edit.content.contains("Text:")), "{value}");
    let skill = format!("{INTRO}\nText: it is bad.\nbad\n");
    let (patch, value) = edits(analyze(&skill, vec![city(0)], 4, Vec::new())).await;
    assert_eq!(patch.edits, [], "one item is too few to take an example away: {value}");
    let (patch, value) = edits(analyze(INTRO, Vec::new(), 4, Vec::new())).await;
    assert_eq!(patch.edits, []);
    assert!(value["patch"]["reasoning"].as_str().unwrap().contains("no item to measure on"));
}

#[tokio::test]
async fn deletes_or_swaps_a_harmful_example() {
    let skill = format!("{INTRO}\nText: it is bad.\nbad\n");
    let (patch, value) = edits(analyze(&skill, (0..4).map(city).collect(), 9, Vec::new())).await;
    let swap = patch.edits.iter().find(|edit| edit.target.trim() == "Text: it is bad.\nbad");
    let swap = swap.unwrap_or_else(|| panic!("{value}"));
    assert_eq!(swap.op, crate::domain::EditOp::Replace);
    assert!(swap.content.starts_with("Text: "));
    let touching = patch.edits.iter().filter(|edit| edit.target.contains("it is bad")).count();
    assert_eq!(touching, 1, "{value}");
}

#[tokio::test]
async fn a_full_skill_swaps_and_does_not_grow() {
    let full: String =
        (0..8).map(|n| format!("\nText: {n} dull thing{n} stands{n} here{n}\nX{n}\n")).collect();
    let skill = format!("{INTRO}{full}");
    let (patch, value) = edits(analyze(&skill, (0..4).map(city).collect(), 9, Vec::new())).await;
    assert!(!patch.edits.is_empty());
    for edit in &patch.edits {
        let changed = super::document::apply(&skill, edit);
        let count = blocks(&changed).filter(|block| block.starts_with("Text: ")).count();
        assert!(count <= 8, "{value}");
    }
    assert!(patch.edits.iter().any(|edit| edit.rationale.contains("in place of")), "{value}");
}

#[tokio::test]
async fn a_skill_grows_to_its_limit_and_no_further() {
    let almost: String = (0..6).map(|n| format!("\nText: {n} thing{n} stands{n} here{n}\nX{n}\n")).collect();
    let (patch, value) =
        edits(analyze(&format!("{INTRO}{almost}"), (0..5).map(city).collect(), 9, vec![])).await;
    let added = patch.edits.iter().filter(|edit| edit.op == crate::domain::EditOp::Append).count();
    assert_eq!(added, 2, "{value}");
}

#[tokio::test]
async fn adds_and_drops_sentences() {
    let (patch, value) = edits(analyze(INTRO, (0..4).map(city).collect(), 99, Vec::new())).await;
    let sentence = patch.edits.iter().find(|edit| edit.content.contains("Copy the answer"));
    let sentence = sentence.unwrap_or_else(|| panic!("{value}"));
    assert_eq!(sentence.target, "Reply with the city.");
    assert!(sentence.content.starts_with("Reply with the city.\nCopy the answer"));
}

#[tokio::test]
async fn does_not_repeat_what_was_turned_down() {
    let attempt = FailedAttempt {
        summary: "[append] Text: Bo lives0 in0 Rome now0. Rome (item t0)".into(),
        why: "rejected by reviewer because it leaks".into(),
    };
    let memory = StepMemory {
        step: 1,
        action: "reject".into(),
        n_total: 4,
        n_fail: 4,
        failure_patterns: Vec::new(),
        scores: None,
        failed_attempts: vec![attempt],
    };
    let (patch, _) = edits(analyze(INTRO, (0..4).map(city).collect(), 9, vec![memory])).await;
    assert!(patch.edits.iter().all(|edit| !edit.content.contains("Rome")));
    assert!(patch.edits.iter().any(|edit| edit.content.contains("Bern")));
}

#[tokio::test]
async fn the_same_brief_gets_the_same_answer() {
    let brief = || Some(analyze(INTRO, (0..8).map(city).collect(), 4, Vec::new()));
    let first = ask(&Arc::default(), brief()).await.unwrap();
    assert_eq!(ask(&Arc::default(), brief()).await.unwrap().to_string(), first.to_string());
}

#[tokio::test]
async fn successes_propose_nothing_and_other_calls_are_refused() {
    let brief = Brief::Analyze {
        appendix: false,
        meta_skill: String::new(),
        mode: Default::default(),
        source: SourceType::Success,
        skill: INTRO.into(),
        budget: 4,
        trajectories: vec![city(0)],
        memory: Vec::new(),
    };
    let value = ask(&Arc::default(), Some(brief)).await.unwrap();
    assert_eq!(value["success_patterns"], Value::Array(Vec::new()));
    assert_eq!(value["patch"]["edits"], Value::Array(Vec::new()));
    let error = ask(&Arc::default(), None).await.unwrap_err();
    assert!(error.to_string().contains("built-in edit search"), "{error}");
}

#[tokio::test]
async fn merge_and_rank_speak_the_contract() {
    let (patch, _) = edits(analyze(INTRO, (0..4).map(city).collect(), 3, Vec::new())).await;
    let brief = Brief::Merge {
        meta_skill: String::new(),
        mode: Default::default(),
        source: None,
        level: 1,
        skill: INTRO.into(),
        patches: vec![patch.clone(), patch.clone()],
    };
    let value = ask(&Arc::default(), Some(brief)).await.unwrap();
    let merged: Patch = serde_json::from_value(value).unwrap();
    assert_eq!(merged.edits.len(), 3);
    assert_eq!(merged.edits[0].support_count, 6);
    let brief = Brief::Rank {
        meta_skill: String::new(),
        mode: Default::default(),
        skill: INTRO.into(),
        patch: merged,
        budget: 2,
    };
    let value = ask(&Arc::default(), Some(brief)).await.unwrap();
    assert_eq!(value["selected_indices"].as_array().unwrap().len(), 2);
}
