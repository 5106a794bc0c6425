//! What each configuration must have done: its files, its events, and that something happened in its stage.

use planish::domain::{
    EpochStage, GateMetric, PairCategory, ReviewClose, SlowUpdate, StageAction, TimeoutPolicy, Verdict,
};
use planish::event::{EvalPurpose, Event};

use crate::lanterns::{Finished, Lanterns};

use StageAction as Stage;
use Verdict::{AcceptNewBest, ForceAccept, Reject, SkipNoChange, SkipNoPatches};

/// `Every lantern of row X is COLOUR.`
const ROWS: [&str; 4] = ["row A is red", "row B is green", "row C is blue", "row D is yellow"];

fn actions(run: &Finished) -> Vec<Verdict> {
    run.state.steps.iter().map(|step| step.record.as_ref().unwrap().action).collect()
}

fn budgets(run: &Finished) -> Vec<Option<usize>> {
    run.state.steps.iter().map(|step| step.budget).collect()
}

fn stages(run: &Finished) -> Vec<(&'static str, StageAction)> {
    run.state.stages.iter().map(|stage| (stage.stage.name(), stage.stage.action())).collect()
}

fn slow_updates(run: &Finished) -> Vec<&SlowUpdate> {
    let slow = run.state.stages.iter().filter_map(|stage| match &stage.stage {
        EpochStage::SlowUpdate(found) => Some(found.as_ref()),
        EpochStage::MetaSkill(_) | EpochStage::MetaReflect(_) => None,
    });
    slow.collect()
}

fn evaluations(run: &Finished, purpose: EvalPurpose) -> usize {
    run.state.evals.values().filter(|eval| eval.purpose == purpose).count()
}

/// Requests to the optimizer whose user message holds `text`.
fn told(lanterns: &Lanterns, text: &str) -> usize {
    let requests = lanterns.optimizer.requests();
    let user =
        |body: &serde_json::Value| body["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
    requests.iter().filter(|request| user(&request.body).contains(text)).count()
}

fn knows(skill: &str, rows: &[&str]) {
    for row in rows {
        assert!(skill.contains(row), "not {row} in {skill}");
    }
}

/// What became of the edits of all steps.
fn statuses(run: &Finished) -> Vec<String> {
    let rows = run.state.steps.iter().filter_map(|step| step.report.as_ref()).flat_map(|report| &report.rows);
    rows.map(|row| serde_json::to_value(row.status).unwrap().as_str().unwrap().to_owned()).collect()
}

fn has(run: &Finished, files: &[&str]) {
    for file in files {
        assert!(run.has(file), "no {file}");
    }
}

pub fn patch(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest, Reject, Reject]);
    assert_eq!(budgets(run), [3, 2, 1, 1].map(Some));
    knows(run.best(), &ROWS[..3]);
    assert_eq!(run.state.best_score, Some(0.75));
    let step = "steps/step_0001";
    for file in [
        "rollout/results.jsonl",
        "patches/minibatch_fail_000.json",
        "merged_patch.json",
        "ranked_edits.json",
        "candidate_skill.md",
        "edit_apply_report.json",
        "selection_eval/results.jsonl",
        "trajectory_digest.json",
        "step_record.json",
    ] {
        has(run, &[&format!("{step}/{file}")]);
    }
    // The reason of a rejection reaches the next analyst of the epoch.
    let rejected = run.json("steps/step_0003/trajectory_digest.json");
    assert_eq!(rejected["rejected_edits"].as_array().unwrap().len(), 1);
    assert!(!run.has("slow_update") && !run.has("meta_skill") && !run.has("lr_history.jsonl"));
}

pub fn rewrite_from_suggestions(run: &Finished, _: &Lanterns) {
    let learned = [AcceptNewBest, AcceptNewBest, AcceptNewBest];
    assert_eq!(actions(run), [&learned[..], &[Reject, SkipNoPatches, SkipNoPatches]].concat());
    assert_eq!(run.answers("rewrite").len(), 4);
    has(run, &["steps/step_0003/rewrite_result.json", "steps/step_0003/candidate_skill.md"]);
    let suggestions = run.json("steps/step_0001/merged_patch.json");
    assert_eq!(suggestions["revise_suggestions"][0]["type"], "add_rule");
    let record = run.json("steps/step_0003/step_record.json");
    assert_eq!(record["rewrite_change_summary"].as_array().unwrap().len(), 1);
    // The writer forgets the region; it comes back.
    let restored = run.state.steps.iter().filter(|step| step.regions_restored).count();
    assert_eq!(restored, 2);
    let told = run.records.iter().map(planish::plain::describe);
    assert_eq!(told.filter(|line| line.contains("protected regions were put back")).count(), restored);
    knows(run.best(), &ROWS[..3]);
}

pub fn full_rewrite_minibatch(run: &Finished, _: &Lanterns) {
    let learned = [AcceptNewBest, AcceptNewBest, AcceptNewBest];
    assert_eq!(actions(run), [&learned[..], &[Reject, SkipNoPatches, SkipNoPatches]].concat());
    assert_eq!(budgets(run), [None; 6]);
    has(run, &["steps/step_0003/full_rewrite_result.json", "steps/step_0003/candidate_skill.md"]);
    assert_eq!(run.json("steps/step_0001/step_record.json")["lr_control_mode"], "none");
    let candidates = run.json("steps/step_0001/merged_patch.json");
    assert_eq!(candidates["skill_candidates"].as_array().unwrap().len(), 1);
    assert_eq!(run.state.steps.iter().filter(|step| step.regions_restored).count(), 2);
    knows(run.best(), &ROWS[..3]);
}

pub fn lr_autonomous(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, SkipNoChange, SkipNoChange, SkipNoChange]);
    assert_eq!(budgets(run), [2, 0, 0, 0].map(Some));
    let decision = run.json("steps/step_0001/lr_decision.json");
    assert_eq!((&decision["learning_rate"], &decision["available_update_items"]), (&2.into(), &4.into()));
    let refused = run.json("steps/step_0002/lr_decision.json");
    assert_eq!((&refused["learning_rate"], &refused["fallback"]), (&0.into(), &true.into()));
    assert_eq!(run.text("lr_history.jsonl").lines().count(), 4);
    // A budget of 0 applies nothing, ranks nothing and measures nothing.
    assert_eq!(evaluations(run, EvalPurpose::Candidate), 1);
    assert_eq!(run.json("steps/step_0002/step_record.json")["n_edits_ranked"], 0);
    let ranked = run.state.usage.get("ranking").map(|usage| usage.calls);
    assert_eq!(ranked, Some(1));
}

pub fn lr_none(run: &Finished, _: &Lanterns) {
    assert_eq!(budgets(run), [3, 2, 1, 1].map(Some), "as the schedule");
    assert_eq!(run.json("steps/step_0001/step_record.json")["lr_control_mode"], "none");
}

pub fn schedule_autonomous(run: &Finished, _: &Lanterns) {
    assert_eq!(budgets(run), [999; 4].map(Some));
    assert!(run.state.steps.iter().all(|step| step.ranking.is_none()));
    let kept = |step: usize| run.state.steps[step].ranked.as_ref().unwrap().edits.len();
    assert_eq!((kept(0), kept(1)), (4, 3));
    // Everything that was proposed is applied, or reported: an insert_after without its anchor, a delete of what is not
    // there, which needs no content.
    let statuses = statuses(run);
    for status in [
        "applied_insert_after",
        "applied_append",
        "applied_replace",
        "skipped_delete_target_not_found",
        "skipped_insert_after_target_not_found",
    ] {
        assert!(statuses.contains(&status.to_owned()), "{status} in {statuses:?}");
    }
    assert!(!run.last().contains("Mind the number."));
}

pub fn schedule_constant(run: &Finished, _: &Lanterns) {
    assert_eq!(budgets(run), [3; 4].map(Some));
}

pub fn schedule_linear(run: &Finished, _: &Lanterns) {
    assert_eq!(budgets(run), [2, 2, 2, 1].map(Some));
}

pub fn gate_soft(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest, AcceptNewBest, Reject]);
    knows(run.best(), &[ROWS[0], ROWS[1], ROWS[2], "row D is pale yellow"]);
    let decision = run.state.steps[2].gate.as_ref().unwrap();
    assert_eq!(decision.metric, GateMetric::Soft);
    assert!(
        decision.candidate.hard == decision.current.hard && decision.candidate.soft > decision.current.soft
    );
}

pub fn gate_mixed(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest, AcceptNewBest, Reject]);
    let score = &run.state.steps[2].gate.as_ref().unwrap().candidate;
    assert!((score.gate - (0.75 * score.hard + 0.25 * score.soft)).abs() < 1e-12, "{score:?}");
}

pub fn gate_off(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [ForceAccept; 4]);
    // Equal to the best is not better: the last skill was accepted and the best is of step 2.
    assert_eq!(run.state.best_step, 2);
    assert_ne!(run.last(), run.best());
    has(run, &["final_selection_eval/results.jsonl"]);
    // Without a gate nothing is stopped early.
    assert!(run.state.evals.values().all(|eval| !eval.curtailed));
}

pub fn semantic_density(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest; 4]);
    let decision = run.state.steps[2].gate.as_ref().unwrap();
    assert!(decision.candidate.hard == decision.current.hard, "the words alone decided");
    assert!(decision.candidate.gate > decision.candidate.hard);
}

pub fn insert_after_append(run: &Finished, _: &Lanterns) {
    assert!(statuses(run).contains(&"applied_insert_after_fallback_append".to_owned()));
    assert!(run.best().contains("Mind the number."));
}

pub fn accumulation(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest]);
    for batch in 0..2 {
        has(run, &[&format!("steps/step_0001/batch_{batch}/rollout/results.jsonl")]);
        has(run, &[&format!("steps/step_0001/batch_{batch}/patches/minibatch_fail_000.json")]);
    }
    let record = run.json("steps/step_0001/step_record.json");
    assert_eq!(record["accumulation_batches"].as_array().unwrap().len(), 2);
    assert_eq!(record["rollout_n"], 8);
}

pub fn failure_only(run: &Finished, lanterns: &Lanterns) {
    assert!(run.state.steps.iter().all(|step| step.record.as_ref().unwrap().n_success_patches == 0));
    let asked = lanterns.optimizer.requests();
    assert!(asked.iter().all(|request| !request.body.to_string().contains("success_patterns")));
    // Successes there were.
    assert!(run.state.steps[3].record.as_ref().unwrap().rollout_hard > 0.0);
}

pub fn slow_update_forced(run: &Finished, _: &Lanterns) {
    let wanted = [Stage::InjectPlaceholder, Stage::ForceAccept, Stage::ForceAccept];
    assert_eq!(stages(run), wanted.map(|action| ("slow update", action)));
    for file in
        ["comparison_pairs.json", "candidate_skill.md", "slow_result.json", "rollout_prev", "rollout_curr"]
    {
        has(run, &[&format!("slow_update/epoch_02/{file}")]);
    }
    assert!(!run.has("slow_update/epoch_02/selection_eval"));
    // Step 5 compares with the skill as it is now, measured again.
    assert_eq!(evaluations(run, EvalPurpose::SlowCandidate), 0);
    let decision = run.state.steps[4].gate.as_ref().unwrap();
    assert_eq!(decision.current.hard, 1.0);
    assert_eq!(run.state.steps[4].record.as_ref().unwrap().current_score, 1.0);
    // The text with the first guidance was never accepted by a gate, but measured: it is the best.
    knows(run.best(), &ROWS);
    assert_eq!((run.state.best_step, run.state.best_score), (4, Some(1.0)));
    let summary = run.json("summary.json");
    assert_eq!((&summary["best_origin"], &summary["best_step"]), (&"slow_update_epoch_02".into(), &4.into()));
    knows(run.last(), &["Answer in a whole sentence."]);
}

pub fn slow_update_gated(run: &Finished, _: &Lanterns) {
    // A stage made the best, not the step before it.
    assert_eq!(run.state.best_origin(), "epoch 2, slow update");
    let wanted = [Stage::InjectPlaceholder, Stage::AcceptNewBest, Stage::Reject];
    assert_eq!(stages(run), wanted.map(|action| ("slow update", action)));
    assert_eq!(evaluations(run, EvalPurpose::SlowCandidate), 2);
    has(run, &["slow_update/epoch_02/selection_eval/results.jsonl", "slow_update/epoch_02/gate.json"]);
    knows(run.best(), &ROWS);
    assert_eq!((run.state.best_step, run.state.best_score), (4, Some(1.0)));
    assert_eq!(run.last(), run.best());
}

pub fn pairs_changed(run: &Finished, _: &Lanterns) {
    let [_, found] = slow_updates(run)[..] else { panic!("two epochs") };
    let categories = found.pairs.iter().map(|pair| pair.category);
    assert_eq!(categories.collect::<Vec<_>>(), [PairCategory::Improved; 2]);
    // Every training item was looked at before giving up.
    assert_eq!(found.all_pairs.len(), 8);
    has(run, &["slow_update/epoch_02/comparison_pairs_all.json", "slow_update/epoch_02/rollout_prev/topup"]);
}

pub fn pairs_unchanged(run: &Finished, _: &Lanterns) {
    let [_, found] = slow_updates(run)[..] else { panic!("two epochs") };
    let unchanged = [PairCategory::PersistentFail, PairCategory::StableSuccess];
    assert_eq!(found.pairs.len(), 4);
    assert!(found.pairs.iter().all(|pair| unchanged.contains(&pair.category)));
    assert!(!run.has("slow_update/epoch_02/rollout_prev/topup"));
}

pub fn meta_skill(run: &Finished, lanterns: &Lanterns) {
    let wanted = [Stage::SkipFirstEpoch, Stage::WriteMetaSkill, Stage::WriteMetaSkill];
    assert_eq!(stages(run), wanted.map(|action| ("meta skill", action)));
    has(run, &["meta_skill/epoch_02/meta_skill_result.json", "meta_skill/epoch_02/rollout_prev"]);
    assert!(!run.has("slow_update"));
    // The memory of epoch 2 is used in epoch 3, where it finds row D.
    assert!(told(lanterns, "Prefer edits that name one row.") > 0);
    assert_eq!(actions(run)[4], AcceptNewBest);
    knows(run.best(), &ROWS);
}

pub fn meta_skill_after_slow_update(run: &Finished, _: &Lanterns) {
    let memory: Vec<_> = stages(run).into_iter().filter(|(name, _)| *name == "meta skill").collect();
    let wanted = [Stage::SkipFirstEpoch, Stage::WriteMetaSkill, Stage::WriteMetaSkill];
    assert_eq!(memory, wanted.map(|action| ("meta skill", action)));
    // One comparison serves both.
    assert_eq!(evaluations(run, EvalPurpose::LongitudinalPrev), 2);
    assert!(!run.has("meta_skill/epoch_02/rollout_prev"));
}

pub fn meta_reflect(run: &Finished, lanterns: &Lanterns) {
    let wanted = [Stage::AcceptNewBest, Stage::Reject];
    assert_eq!(stages(run), wanted.map(|action| ("meta-reflect", action)));
    for file in [
        "meta_patch.json",
        "meta_candidate.md",
        "meta_edit_apply_report.json",
        "meta_result.json",
        "selection_eval",
    ] {
        has(run, &[&format!("meta_reflect/epoch_01/{file}")]);
    }
    // The second epoch is told the summary of the first.
    assert_eq!(told(lanterns, "Row D was misread."), 1);
    knows(run.best(), &ROWS);
    assert_eq!(run.state.best_step, 2);
}

pub fn meta_reflect_suggestions(run: &Finished, _: &Lanterns) {
    let wanted = [Stage::AcceptNewBest, Stage::Reject];
    assert_eq!(stages(run), wanted.map(|action| ("meta-reflect", action)));
    has(run, &["meta_reflect/epoch_01/meta_rewrite_result.json", "meta_reflect/epoch_01/meta_candidate.md"]);
    assert_eq!(run.answers("rewrite").len(), 5);
    knows(run.best(), &ROWS);
}

pub fn deep_reflect(run: &Finished, lanterns: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest, AcceptNewBest, Reject]);
    for file in ["probe.json", "rollout/results.jsonl", "patches/minibatch_succ_000.json"] {
        has(run, &[&format!("steps/step_0001/deep_reflect/{file}")]);
    }
    let record = run.json("steps/step_0001/step_record.json");
    assert_eq!(
        (&record["n_deep_failure_patches"], &record["n_deep_success_patches"]),
        (&1.into(), &1.into())
    );
    // The probe sees the reference and the target does not.
    assert!(told(lanterns, "The plan of the square shows") > 0);
    let target = lanterns.target.requests();
    assert!(target.iter().all(|request| !request.body.to_string().contains("The plan of the square shows")));
    assert!(
        target.iter().any(|request| request.body.to_string().contains("Before the colour, name the row."))
    );
    // What it learned is not what plain reflection learns.
    knows(run.best(), &ROWS);
}

pub fn skill_aware(run: &Finished, lanterns: &Lanterns) {
    let flushed: Vec<_> = run.state.steps.iter().filter_map(|step| step.appendix.as_ref()).collect();
    assert!(flushed.len() >= 2 && flushed[0].consolidated.is_none());
    assert_eq!(flushed[1].consolidated.as_ref().unwrap().len(), 1);
    has(run, &["steps/step_0002/appendix_notes.json"]);
    assert!(run.last().contains("<!-- APPENDIX_START -->"));
    knows(run.last(), &[ROWS[3]]);
    let record = run.json("steps/step_0002/step_record.json");
    assert_eq!(record["n_appendix_notes_added"], 1);
    assert_eq!(record["n_appendix_notes_consolidated"], 1);
    // Notes came of a step without edits, too, and the skill was measured again before the next verdict.
    assert_eq!(actions(run)[0], SkipNoPatches);
    assert!(run.state.steps[0].record.as_ref().unwrap().current_score_stale);
    assert_eq!(run.state.steps[1].gate.as_ref().unwrap().current.hard, 0.25);
    assert!(lanterns.optimizer.requests().len() > 10);
}

pub fn skill_aware_failure_only(run: &Finished, lanterns: &Lanterns) {
    let asked = lanterns.optimizer.requests();
    let system = |body: &serde_json::Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    let success =
        asked.iter().map(|request| system(&request.body)).filter(|text| text.contains("success_patterns"));
    assert!(success.clone().count() > 0);
    assert!(success.into_iter().all(|text| !text.contains("appendix_notes")));
    assert!(run.answers("appendix_consolidate").is_empty());
    assert!(run.last().contains("Read the letter of the row first."));
}

pub fn review_timeout(run: &Finished, _: &Lanterns) {
    assert_eq!(actions(run), [AcceptNewBest, AcceptNewBest]);
    let closes = run.events().filter_map(|event| match event {
        Event::ReviewClosed { close, .. } => Some(close.clone()),
        _ => None,
    });
    let timed_out = ReviewClose::TimedOut { policy: TimeoutPolicy::Accept };
    assert_eq!(closes.collect::<Vec<_>>(), [timed_out.clone(), timed_out]);
}
