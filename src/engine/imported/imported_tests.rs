//! The journal of a real SkillOpt run and of damaged copies of it, seen through the fold.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::domain::{GateDecision, StageAction, Verdict, skill_hash};
use crate::event::{EndStatus, RunState, RunStatus, decode_line, encode_line};

struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/skillopt_run");
        let mut open = vec![PathBuf::new()];
        while let Some(folder) = open.pop() {
            fs::create_dir_all(dir.path().join(&folder)).unwrap();
            for entry in fs::read_dir(fixture.join(&folder)).unwrap() {
                let (path, name) = {
                    let entry = entry.unwrap();
                    (entry.path(), folder.join(entry.file_name()))
                };
                if path.is_dir() {
                    open.push(name);
                } else {
                    fs::copy(path, dir.path().join(name)).unwrap();
                }
            }
        }
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} holds no {from}");
        fs::write(self.path(name), text.replace(from, to)).unwrap();
    }

    fn records(&self) -> Vec<Record> {
        imported_journal(&ForeignRun::open(self.0.path()).unwrap(), "old")
    }

    fn state(&self) -> RunState {
        RunState::fold(&self.records())
    }
}

fn gate(state: &RunState, step: usize) -> &GateDecision {
    state.steps[step - 1].gate.as_ref().unwrap()
}

fn warnings(state: &RunState) -> Vec<&str> {
    state.logs.iter().map(|line| line.message.as_str()).collect()
}

#[test]
fn the_fold_shows_what_the_folder_records() {
    let copy = Copy::new();
    let state = copy.state();
    assert_eq!(warnings(&state), Vec::<&str>::new());
    let info = state.info.as_ref().unwrap();
    assert_eq!((info.name.as_str(), info.seed), ("old", 7));
    let plan = &info.plan;
    assert_eq!((plan.epochs, plan.steps_per_epoch, plan.total_steps), (2, 3, 6));
    assert_eq!((plan.train, plan.val, plan.test, plan.batch_size), (9, 6, 7, 4));
    assert!(matches!(&info.origin, Some(Origin::Imported(Imported { steps: 6, .. }))));
    let RunStatus::Ended { status: EndStatus::Imported, reason } = &state.status else { panic!() };
    assert!(reason.starts_with("imported from ") && reason.ends_with(", 6 steps done"), "{reason}");

    assert_eq!(state.steps.len(), 6);
    let first = &state.steps[0];
    assert_eq!((first.rollouts.len(), first.analyses.len()), (4, 2));
    assert_eq!(first.merged.as_ref().unwrap().edits.len(), 6);
    assert_eq!(first.ranking.as_ref().unwrap().selected_indices, [0, 1, 2, 3, 4]);
    assert_eq!(first.review.as_ref().unwrap().edits.len(), 3);
    assert_eq!(
        (state.baseline_score, state.current_score, state.best_score),
        (Some(0.0), Some(1.0), Some(1.0))
    );
    assert_eq!((state.best_step, state.current_hash.as_str()), (4, "f967202426b64dae"));
    assert_eq!(state.best_hash, "c335cca2bd0be7ff");
    assert_eq!(state.skill_text(&state.best_hash).map(skill_hash), Some(state.best_hash.clone()));
    assert_eq!(state.usage["rollout"].calls, 10 + 10 + 7 + 10 + 10 + 7);
    assert_eq!(state.usage["analyst"].calls, 2 + 3 + 1 + 3 + 2 + 1);

    let stages: Vec<_> = state.stages.iter().map(|stage| stage.stage.action()).collect();
    let expected = [
        StageAction::InjectPlaceholder,
        StageAction::SkipFirstEpoch,
        StageAction::ForceAccept,
        StageAction::WriteMetaSkill,
    ];
    assert_eq!(stages, expected);
    assert!(!state.current_score_stale, "the final selection measured what the slow update had changed");
    let test = state.test.as_ref().unwrap();
    assert_eq!((test.n, test.base_hard, test.best_hard, test.gained, test.lost), (7, 0.0, 1.0, 7, 0));
    assert_eq!(test.last.as_ref().unwrap().hard, 1.0);
    assert_eq!(
        state.final_selection.as_ref().map(|(score, promoted)| (score.hard, *promoted)),
        Some((1.0, false))
    );
}

#[test]
fn evidence_comes_from_the_rows_of_both_skills() {
    let state = Copy::new().state();
    let first = gate(&state, 1);
    assert_eq!(
        (first.verdict, first.gained.as_slice(), first.lost.len()),
        (Verdict::AcceptNewBest, &["q103".to_owned()][..], 0)
    );
    assert_eq!(first.mid_p, Some(0.25));
    assert_eq!(
        first.why,
        "Accepted as the new best: 0.167 against 0.000 on 6 items; 1 gained, 0 lost, 75 % sure that it helps."
    );
    let fourth = gate(&state, 4);
    assert_eq!((fourth.current.gate, fourth.candidate.gate, fourth.gained.len()), (5.0 / 6.0, 1.0, 1));
    assert!(fourth.why.contains("changed outside the gate"), "{}", fourth.why);
    let fifth = gate(&state, 5);
    assert_eq!((fifth.verdict, fifth.gained.len() + fifth.lost.len()), (Verdict::Reject, 0));
    assert_eq!((fifth.candidate.n, fifth.current.n), (6, 6));
}

#[test]
fn times_are_the_recorded_ones_and_every_line_reads_back() {
    let copy = Copy::new();
    let records = copy.records();
    let mut before = 0;
    for record in &records {
        assert!(record.at >= before);
        before = record.at;
        assert_eq!(decode_line(&encode_line(record).unwrap()).unwrap(), *record);
    }
    assert_eq!(records, copy.records(), "the same folder gives the same journal");
    let state = RunState::fold(&records);
    let spent: Vec<u64> =
        state.steps.iter().map(|step| step.finished_at.unwrap() - step.started_at).collect();
    assert_eq!(spent, [200, 200, 100, 200, 100, 100]);
}

#[test]
fn without_rows_the_score_stands_alone() {
    let copy = Copy::new();
    fs::remove_dir_all(copy.path("steps/step_0002/selection_eval")).unwrap();
    let state = copy.state();
    let second = gate(&state, 2);
    assert_eq!(
        (second.verdict, second.candidate.gate, second.current.gate),
        (Verdict::AcceptNewBest, 0.5, 1.0 / 6.0)
    );
    assert_eq!((second.gained.len(), second.mid_p, second.interval), (0, None, (-1.0, 1.0)));
    assert!(second.why.contains("no item of both skills is recorded"), "{}", second.why);
    let eval = &state.evals["s002"];
    assert_eq!((eval.n, eval.results.len()), (0, 0));
    // The next step has rows, but nothing to pair them with.
    assert!(gate(&state, 3).gained.is_empty());
    assert_eq!(gate(&state, 4).gained.len(), 1);
}

#[test]
fn rows_of_another_text_are_no_evidence() {
    let copy = Copy::new();
    fs::copy(
        copy.path("steps/step_0004/selection_eval/results.jsonl"),
        copy.path("steps/step_0002/selection_eval/results.jsonl"),
    )
    .unwrap();
    let state = copy.state();
    assert!(gate(&state, 2).gained.is_empty());
    let told = warnings(&state);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("step_0002/selection_eval: its rows give 1.000, but 0.500 is recorded"),
        "{told:?}"
    );
}

#[test]
fn a_failed_call_is_missing_although_it_was_counted() {
    let copy = Copy::new();
    copy.replace(
        "steps/step_0001/selection_eval/results.jsonl",
        "EM=0: predicted 'wrong 100' but expected ['A100']",
        "error: 401 api_key=abcdefghijklmnop",
    );
    let state = copy.state();
    let eval = &state.evals["s001"];
    assert_eq!((eval.missing, eval.results.len()), (1, 6));
    let error = eval.results.iter().find_map(|(_, result)| match result {
        ItemResult::Missing { error, .. } => Some(error.as_str()),
        ItemResult::Scored(_) => None,
    });
    assert_eq!(error, Some("error: 401 api_key=[redacted]"));
    let first = gate(&state, 1);
    assert_eq!((first.verdict, first.candidate.gate), (Verdict::AcceptNewBest, 1.0 / 6.0));
    assert!(first.why.starts_with("Recorded as accept_new_best"), "{}", first.why);
}

#[test]
fn a_folder_with_hardly_anything_is_still_shown() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("history.json"), "[{\"step\": 1, \"action\": \"reject\", \"current_score\": 0.0, \"best_score\": 0.0, \"candidate_hash\": \"aaaa\", \"selection_hard\": 0.0}]").unwrap();
    let records = imported_journal(&ForeignRun::open(dir.path()).unwrap(), "bare");
    let state = RunState::fold(&records);
    assert_eq!((state.current_score, state.best_score), (Some(0.0), Some(0.0)));
    assert_eq!(state.steps[0].record.as_ref().map(|record| record.action), Some(Verdict::Reject));
    let told = warnings(&state).join("\n");
    for part in [
        "config.json: is absent",
        "skill_v0000.md: is absent",
        "selection_eval_baseline: is absent",
        "the candidate is not known",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    for record in &records {
        assert_eq!(decode_line(&encode_line(record).unwrap()).unwrap(), *record);
    }
}

/// Files that the recorded run lacks: accumulation, a learned budget, rewrites, notes, deep and meta reflection.
#[test]
fn the_other_modes_and_stages_are_shown_too() {
    let copy = Copy::new();
    let put = |name: &str, text: &str| {
        let path = copy.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let step = "steps/step_0006";
    for whole in ["rollout", "patches"] {
        fs::remove_dir_all(copy.path(&format!("{step}/{whole}"))).unwrap();
    }
    for batch in [0, 1, 10] {
        put(
            &format!("{step}/batch_{batch}/rollout/results.jsonl"),
            &format!("{{\"id\": \"q{batch}\", \"hard\": 1, \"soft\": 1}}\n"),
        );
        put(
            &format!("{step}/batch_{batch}/patches/minibatch_succ_000.json"),
            r#"{"patch": {"revise_suggestions": [{"type": "compress", "title": "T", "instruction": "I", "motivation": "M", "priority_hint": "high"}]}, "appendix_notes": [{"note": "n"}, "m", 4]}"#,
        );
    }
    put(
        &format!("{step}/batch_1/deep_reflect/probe.json"),
        r#"{"reasoning": "r", "probe_instruction": "say why", "selected_examples": [{"id": "q1", "reference_fields": ["a"]}]}"#,
    );
    put(
        &format!("{step}/batch_1/deep_reflect/rollout/results.jsonl"),
        "{\"id\": \"q1\", \"hard\": 0, \"soft\": 0.5}\n",
    );
    put(
        &format!("{step}/rewrite_result.json"),
        r#"{"reasoning": "why", "change_summary": ["a"], "new_skill": "x"}"#,
    );
    put(&format!("{step}/appendix_notes.json"), r#"{"step_notes": ["n"], "appendix_after": ["n", "o"]}"#);
    let text = fs::read_to_string(copy.path("history.json")).unwrap();
    let mut rows: Value = serde_json::from_str(&text).unwrap();
    rows[5]["lr_control_mode"] = "autonomous".into();
    rows[5]["lr_decision"] = serde_json::json!({"learning_rate": 1, "raw_learning_rate": 2, "clamped": true});
    fs::write(copy.path("history.json"), rows.to_string()).unwrap();
    put(
        "meta_reflect/epoch_02/meta_result.json",
        r#"{"meta_summary": "S", "patch": {"edits": [{"op": "append", "content": "- M"}]}, "action": "accept_new_best", "gate_score": 1.0}"#,
    );
    put("meta_reflect/epoch_02/meta_candidate.md", "candidate of meta-reflection");
    put("slow_update/epoch_09/slow_result.json", r#"{"action": "no_content"}"#);
    let state = copy.state();
    let last = &state.steps[5];
    assert_eq!((last.rollouts.len(), &last.batch_starts), (3, &vec![0, 1, 2]));
    let batches: Vec<_> = last.analyses.iter().map(|one| (one.batch, one.appendix_notes.len())).collect();
    assert_eq!(batches, [(0, 2), (1, 2), (2, 2)]);
    let proposal = &last.analyses[0].patch.as_ref().unwrap().edits[0];
    assert_eq!(
        (proposal.op.name(), proposal.target.as_str(), proposal.rationale.as_str()),
        ("compress", "T", "M")
    );
    assert_eq!(last.probes[0].answer.examples[0].reference_fields, ["a"]);
    assert_eq!(state.evals["s006/deep/b1"].results.len(), 1);
    assert_eq!(last.lr_decision.as_ref().map(|decision| decision.clamped), Some(true));
    assert_eq!(last.rewrite.as_ref().map(|rewrite| rewrite.change_summary.len()), Some(1));
    let meta = state.stages.last().unwrap();
    assert_eq!((meta.stage.name(), meta.stage.action()), ("meta-reflect", StageAction::AcceptNewBest));
    assert!(
        warnings(&state).iter().any(|told| told.contains("the stages of epoch 9 follow no recorded step"))
    );
}
