use std::sync::Mutex;

use serde_json::Value;

use super::document::{blocks, example_block};
use super::*;
use crate::domain::{
    Asks, ComparisonPair, Edit, EditOp, FailedAttempt, PairCategory, PairSide, Patch, Prompt, Role, Sampling,
    StepMemory, Trajectory, UpdateMode,
};

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
        system_prompt: Default::default(),
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
        asks: Asks::default(),
        workspace: None,
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
        at_most: false,
        failed_attempts: vec![attempt],
        reviewer_notes: Vec::new(),
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

fn analyze_in(mode: UpdateMode) -> Brief {
    let Brief::Analyze { source, skill, budget, trajectories, memory, meta_skill, appendix, .. } =
        analyze(INTRO, (0..4).map(city).collect(), 2, Vec::new())
    else {
        panic!("another brief")
    };
    Brief::Analyze { mode, source, skill, budget, trajectories, memory, meta_skill, appendix }
}

fn stages() -> [Brief; 6] {
    let (skill, text) = (|| INTRO.to_owned(), String::new);
    let patch = || Patch::default();
    [
        Brief::LearningRate {
            mode: UpdateMode::Patch,
            skill: skill(),
            patch: patch(),
            rollout_n: 1,
            rollout_hard: 0.0,
            rollout_soft: 0.0,
            memory: Vec::new(),
            meta_skill: text(),
        },
        Brief::SlowUpdate { prev_skill: skill(), skill: skill(), previous_guidance: text(), pairs: pairs() },
        Brief::MetaSkill { prev_skill: skill(), skill: skill(), previous: text(), pairs: pairs() },
        Brief::MetaReflect {
            mode: UpdateMode::FullRewriteMinibatch,
            skill: skill(),
            budget: 2,
            previous_summary: text(),
            history: "### Step 1 — gate\n### Step 2 — gate".into(),
        },
        Brief::Probe { skill: skill(), trajectories: vec![city(0)], memory: Vec::new(), meta_skill: text() },
        Brief::Consolidate {
            notes: ["Read the unit.", "read the unit. Always.", "Other", "other"].map(str::to_owned).to_vec(),
        },
    ]
}

/// Two items that got worse, one that failed both times.
fn pairs() -> Vec<ComparisonPair> {
    let side = |hard, answer: &str| PairSide {
        hard,
        soft: 0.0,
        predicted_answer: answer.into(),
        fail_reason: String::new(),
    };
    let pair = |n: usize, category| {
        let shown = city(n);
        ComparisonPair {
            id: shown.item,
            task: shown.task,
            category,
            prev: side(1, &shown.gold),
            curr: side(0, "wrong"),
            prev_trajectory: String::new(),
            curr_trajectory: String::new(),
        }
    };
    vec![
        pair(0, PairCategory::Regressed),
        pair(1, PairCategory::PersistentFail),
        pair(2, PairCategory::Regressed),
    ]
}

#[tokio::test]
async fn proposals_take_the_form_of_the_update_mode() {
    let (patch, _) = edits(analyze_in(UpdateMode::Patch)).await;
    let mode = UpdateMode::RewriteFromSuggestions;
    let value = ask(&Arc::default(), Some(analyze_in(mode))).await.unwrap();
    let suggestions = value["patch"]["revise_suggestions"].as_array().unwrap();
    assert_eq!(suggestions.len(), patch.edits.len());
    let instruction = format!("Add at the end:\n{}", patch.edits[0].content);
    assert_eq!(suggestions[0]["instruction"], instruction);
    assert_eq!(suggestions[0]["motivation"], patch.edits[0].rationale);

    let mode = UpdateMode::FullRewriteMinibatch;
    let value = ask(&Arc::default(), Some(analyze_in(mode))).await.unwrap();
    let [candidate] = value["patch"]["skill_candidates"].as_array().unwrap().as_slice() else {
        panic!("{value}")
    };
    let wanted =
        patch.edits.iter().fold(INTRO.to_owned(), |skill, edit| super::document::apply(&skill, edit));
    assert_eq!(candidate["new_skill"], wanted);
    assert_eq!(candidate["change_summary"].as_array().unwrap().len(), patch.edits.len());
}

#[tokio::test]
async fn merged_suggestions_are_carried_out_and_merged_documents_are_one() {
    let suggested = |title: &str, support: u32, content: &str| Edit {
        op: EditOp::AddRule,
        target: title.into(),
        support_count: support,
        ..super::document::append(content)
    };
    let patches = vec![
        Patch { reasoning: String::new(), edits: vec![suggested("a", 1, "Add at the end:\nText: x\n1")] },
        Patch { reasoning: String::new(), edits: vec![suggested("a", 2, "Add at the end:\nText: x\n1")] },
    ];
    let merge = |mode, patches| Brief::Merge {
        mode,
        source: None,
        level: 1,
        skill: INTRO.into(),
        patches,
        meta_skill: String::new(),
    };
    let value = ask(&Arc::default(), Some(merge(UpdateMode::RewriteFromSuggestions, patches))).await.unwrap();
    assert_eq!(value["revise_suggestions"].as_array().unwrap().len(), 1);
    assert_eq!(value["revise_suggestions"][0]["support_count"], 3);
    let suggestions =
        Patch { reasoning: String::new(), edits: vec![suggested("a", 3, "Add at the end:\nText: x\n1")] };
    let brief = Brief::Rewrite { skill: INTRO.into(), suggestions, memory: Vec::new() };
    let value = ask(&Arc::default(), Some(brief)).await.unwrap();
    assert_eq!(value["new_skill"], format!("{INTRO}\nText: x\n1\n"));

    let document = |content: &str, support| Patch {
        reasoning: String::new(),
        edits: vec![Edit { op: EditOp::Rewrite, ..suggested("t", support, content) }],
    };
    let patches = vec![document("# A\n", 1), document("# B\n", 2)];
    let value = ask(&Arc::default(), Some(merge(UpdateMode::FullRewriteMinibatch, patches))).await.unwrap();
    let documents = value["skill_candidates"].as_array().unwrap();
    assert_eq!((documents.len(), &documents[0]["new_skill"]), (1, &Value::from("# B\n")));
}

#[tokio::test]
async fn every_stage_is_answered_and_none_claims_to_be_a_model() {
    let mut answers = Vec::new();
    for brief in stages() {
        let value = ask(&Arc::default(), Some(brief.clone())).await.unwrap();
        assert_eq!(ask(&Arc::default(), Some(brief)).await.unwrap(), value);
        answers.push(value);
    }
    let [rate, slow, meta, reflect, probe, notes] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(rate["learning_rate"], 0);
    // "Copy the answer" is the only sentence that the made-up model likes; its 0.2 are worth it.
    let guidance = "Copy the answer from the text exactly as it is written.";
    assert_eq!(slow["slow_update_content"], guidance);
    assert!(slow["reasoning"].as_str().unwrap().contains("on 2 tasks with a known answer"), "{slow}");
    let wanted = "Of 3 compared items 0 got better, 2 worse, 1 fail and 0 succeed as before.";
    assert!(meta["meta_skill_content"].as_str().unwrap().ends_with(wanted), "{meta}");
    assert_eq!(reflect["patch"]["edits"], Value::Array(Vec::new()));
    assert!(reflect["meta_summary"].as_str().unwrap().contains("2 steps"), "{reflect}");
    assert!(probe["probe_instruction"].as_str().is_some_and(|text| !text.contains("Rome")), "{probe}");
    assert_eq!(notes["appendix_notes"], serde_json::json!(["read the unit. Always.", "Other"]));
    for answer in [rate, slow, meta, reflect, probe] {
        assert!(answer.to_string().contains("built-in edit search (no model wrote this)"), "{answer}");
    }
}

#[tokio::test]
async fn guidance_that_does_not_help_is_dropped() {
    let brief = |previous: &str, pairs| Brief::SlowUpdate {
        prev_skill: INTRO.into(),
        skill: format!("{INTRO}Copy the answer from the text exactly as it is written.\n"),
        previous_guidance: previous.into(),
        pairs,
    };
    let value = ask(&Arc::default(), Some(brief("It is dull.", pairs()))).await.unwrap();
    assert_eq!(value["slow_update_content"], "", "{value}");
    let value = ask(&Arc::default(), Some(brief("", Vec::new()))).await.unwrap();
    assert_eq!(value["slow_update_content"], "", "{value}");
}
