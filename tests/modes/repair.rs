//! Malformed replies: every stage asks once more, and what came of it is on record.

use planish::domain::{EpochStage, StageAction, Verdict};
use planish::event::Event;
use planish::model::mock::{Answer, Rule};
use serde_json::Value;

use crate::lanterns::{Finished, Lanterns, optimizer};

/// JSON that ends too early, inside words.
const MALFORMED: &str = "Gladly: {\"reasoning\": \"as follows";

fn malformed(system: &str, after_reply: Option<bool>) -> Rule {
    let (system, answers) = (Some(system.to_owned()), vec![Answer::from(MALFORMED)]);
    Rule { system, after_reply, answers, ..Rule::default() }
}

/// Conversations that the optimizer server saw: first rounds and repair rounds.
fn rounds(lanterns: &Lanterns) -> (Vec<Value>, Vec<Value>) {
    let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
    let all = lanterns.optimizer.requests().into_iter().map(|request| messages(&request.body));
    let (repairs, firsts): (Vec<_>, Vec<_>) =
        all.partition(|messages| messages.iter().any(|message| message["role"] == "assistant"));
    (firsts.into_iter().map(Value::from).collect(), repairs.into_iter().map(Value::from).collect())
}

/// Every first round that got a malformed reply has exactly one repair round, which shows the reply and says what is
/// wrong with it.
fn one_repair_each(lanterns: &Lanterns, system: &str) {
    let pattern = regex::Regex::new(system).unwrap();
    let of_stage = |messages: &Value| pattern.is_match(messages[0]["content"].as_str().unwrap());
    let (mut firsts, mut repairs) = rounds(lanterns);
    firsts.retain(of_stage);
    repairs.retain(of_stage);
    assert!(!firsts.is_empty(), "the stage was never asked");
    let mut begun: Vec<String> = repairs
        .iter()
        .map(|messages| {
            let messages = messages.as_array().unwrap();
            let [.., reply, complaint] = messages.as_slice() else { panic!("{messages:?}") };
            assert_eq!(reply["content"], MALFORMED);
            assert_eq!(complaint["role"], "user");
            assert!(complaint["content"].as_str().unwrap().contains("JSON"), "{complaint}");
            Value::from(messages[..messages.len() - 2].to_vec()).to_string()
        })
        .collect();
    let mut asked: Vec<String> = firsts.iter().map(Value::to_string).collect();
    begun.sort();
    asked.sort();
    assert_eq!(asked, begun);
}

/// What the run learned, without what it cost.
fn course(run: &Finished) -> Vec<(Verdict, Option<String>, usize)> {
    let records = run.state.steps.iter().filter_map(|step| step.record.as_ref());
    records.map(|record| (record.action, record.candidate_hash.clone(), record.n_edits_ranked)).collect()
}

/// Repaired replies give the same course of the run as replies that were right at once.
async fn repairs(config: &str) {
    let calm = Lanterns::new(config).await;
    let expected = calm.complete("run", &[]).await;
    let lanterns = Lanterns::with(config, optimizer(vec![malformed("", Some(false))])).await;
    let run = lanterns.complete("run", &[]).await;
    one_repair_each(&lanterns, "");
    assert_eq!(course(&run), course(&expected), "{config}");
    assert_eq!((run.last(), run.best()), (expected.last(), expected.best()), "{config}");
    // A mock's seed and the prompt differ, so the two calls are two calls in the count.
    let calls = |run: &Finished| {
        run.state.usage.iter().map(|(stage, usage)| (stage.clone(), usage.calls)).collect::<Vec<_>>()
    };
    for ((stage, twice), (_, once)) in calls(&run).into_iter().zip(calls(&expected)) {
        let target = ["rollout", "evaluation"].contains(&stage.as_str());
        assert_eq!(twice, if target { once } else { 2 * once }, "{config}: {stage}");
    }
}

macro_rules! repaired {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            repairs(stringify!($name)).await;
        }
    )*};
}

repaired! {
    deep_reflect
    full_rewrite_minibatch
    meta_reflect_suggestions
    meta_skill_after_slow_update
    patch
    skill_aware
}

/// A run whose optimizer never gives a usable answer in the stages that `system` recognises.
async fn hopeless(config: &str, system: &str) -> Finished {
    let lanterns = Lanterns::with(config, optimizer(vec![malformed(system, None)])).await;
    let run = lanterns.complete("run", &[]).await;
    one_repair_each(&lanterns, system);
    run
}

const TWICE: &str = "also after a repair round";

#[tokio::test(flavor = "multi_thread")]
async fn an_analyst_without_a_usable_reply_proposes_nothing() {
    let run = hopeless("patch", "\"(failure_summary|success_patterns)\"").await;
    for event in run.events() {
        if let Event::AnalysisFinished { patch, note, usage, .. } = event {
            assert!(patch.is_none() && note.contains(TWICE), "{note}");
            assert_eq!(usage.calls, 2);
        }
    }
    assert!(
        run.state.steps.iter().all(|step| step.record.as_ref().unwrap().action == Verdict::SkipNoPatches)
    );
    assert!(!run.has("steps/step_0001/patches"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_merge_keeps_the_edits() {
    let run = hopeless("patch", "list directly in it").await;
    let mut kept = 0;
    for event in run.events() {
        if let Event::MergeFinished { at, patch, model_merges, fallbacks, .. } = event {
            assert_eq!(*model_merges, 0);
            let step = run.state.steps.iter().find(|step| step.at == *at).unwrap();
            let proposed: usize =
                step.analyses.iter().filter_map(|one| Some(one.patch.as_ref()?.edits.len())).sum();
            assert_eq!(patch.edits.len(), proposed);
            kept += fallbacks;
        }
    }
    let said = run.state.logs.iter().filter(|line| line.message.contains("stay unmerged")).count();
    assert!(kept > 0 && said == kept, "{kept} fallbacks, {said} said so");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_ranking_takes_the_first_edits_and_says_so() {
    let run = hopeless("patch", "\"selected_indices\"").await;
    let mut seen = 0;
    for event in run.events() {
        if let Event::EditsSelected { at, budget, patch, note, ranking, .. } = event
            && !note.is_empty()
        {
            let step = run.state.steps.iter().find(|step| step.at == *at).unwrap();
            assert!(note.contains(TWICE) && ranking.is_none(), "{note}");
            assert_eq!(patch.edits, step.merged.as_ref().unwrap().edits[..budget.unwrap()]);
            seen += 1;
        }
    }
    assert!(seen > 0, "nothing was ranked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_nobody_names_is_zero_and_applies_nothing() {
    let run = hopeless("lr_autonomous", "\"learning_rate\"").await;
    for step in &run.state.steps {
        let Some(decision) = &step.lr_decision else { continue };
        assert!(decision.fallback && decision.learning_rate == 0 && decision.error.is_some(), "{decision:?}");
        assert_eq!(step.record.as_ref().unwrap().action, Verdict::SkipNoChange);
        assert!(step.ranked.as_ref().unwrap().edits.is_empty() && step.eval.is_none());
    }
    assert_eq!(run.last(), run.state.skill_text(&run.state.initial_hash).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_that_fails_skips_the_step() {
    let run = hopeless("meta_reflect_suggestions", "\"change_summary\"").await;
    let proposed = run.state.steps.iter().filter(|step| step.merged.is_some());
    let actions: Vec<_> = proposed.map(|step| step.record.as_ref().unwrap().action).collect();
    assert!(
        !actions.is_empty() && actions.iter().all(|action| *action == Verdict::SkipNoRewrite),
        "{actions:?}"
    );
    assert!(run.answers("rewrite").iter().all(|(answer, note)| answer.is_none() && note.contains(TWICE)));
    let stages: Vec<_> = run.state.stages.iter().map(|stage| stage.stage.action()).collect();
    assert!(stages.iter().all(|action| *action == StageAction::SkipNoRewrite), "{stages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_between_epochs_without_a_usable_reply_change_nothing() {
    for (config, system) in [
        ("slow_update_forced", "\"slow_update_content\""),
        ("slow_update_gated", "\"slow_update_content\""),
        ("meta_skill", "\"meta_skill_content\""),
        ("meta_reflect", "\"meta_summary\""),
    ] {
        let run = hopeless(config, system).await;
        let mut without = 0;
        for stage in &run.state.stages {
            let note = match &stage.stage {
                EpochStage::SlowUpdate(found) => &found.note,
                EpochStage::MetaSkill(found) => &found.note,
                EpochStage::MetaReflect(found) => &found.note,
            };
            match stage.stage.action() {
                StageAction::InjectPlaceholder | StageAction::SkipFirstEpoch => {}
                StageAction::NoContent => {
                    assert!(note.contains(TWICE), "{config}: {note}");
                    without += 1;
                }
                action => panic!("{config}: {action:?}"),
            }
        }
        assert!(without > 0, "{config}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_without_an_instruction_ends_the_second_look() {
    let run = hopeless("deep_reflect", "\"probe_instruction\"").await;
    assert!(run.answers("deep_probe").iter().all(|(answer, note)| answer.is_none() && note.contains(TWICE)));
    assert!(run.state.steps.iter().all(|step| step.analyses.iter().all(|analysis| !analysis.deep)));
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_that_cannot_be_consolidated_all_stay() {
    let run = hopeless("skill_aware", "has an appendix of notes").await;
    let flushed: Vec<_> = run.state.steps.iter().filter_map(|step| step.appendix.as_ref()).collect();
    assert!(!flushed.is_empty() && flushed.iter().all(|flush| flush.consolidated.is_none()));
    let notes = &flushed.last().unwrap().appendix_after;
    assert!(notes.len() > 1 && notes.iter().all(|note| run.last().contains(note)), "{notes:?}");
}
