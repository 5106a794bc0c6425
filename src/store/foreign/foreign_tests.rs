//! The reader on a real SkillOpt run and on damaged copies of it.

use std::fs;

use super::*;
use crate::domain::{EditStatus, PairCategory, StageAction, Verdict};

/// A copy of the real run that a test may damage.
struct Copy {
    dir: tempfile::TempDir,
}

impl Copy {
    fn new() -> Self {
        let copy = Self { dir: tempfile::tempdir().unwrap() };
        copy_tree(&fixture(), copy.path());
        copy
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path().join(name)).unwrap();
        assert!(text.contains(from), "{name} holds no {from}");
        self.write(name, &text.replace(from, to));
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    fn open(&self) -> ForeignRun {
        ForeignRun::open(self.path()).unwrap()
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/skillopt_run")
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn notes(run: &ForeignRun) -> Vec<String> {
    run.oddities.iter().map(ToString::to_string).collect()
}

#[test]
fn a_real_run_is_read_without_an_oddity() {
    let run = ForeignRun::open(&fixture()).unwrap();
    assert_eq!(notes(&run), Vec::<String>::new());
    assert_eq!(
        (run.settings.epochs, run.settings.steps_per_epoch, run.settings.seed),
        (Some(2), Some(3), Some(7))
    );
    assert_eq!((run.settings.target.as_str(), run.settings.optimizer.as_str()), ("tgt-m", "opt-m"));
    assert_eq!(run.skills.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    let actions: Vec<_> =
        run.steps.iter().map(|step| step.record.as_ref().map(|record| record.record.action)).collect();
    let (best, reject) = (Some(Verdict::AcceptNewBest), Some(Verdict::Reject));
    assert_eq!(actions, [best, best, best, best, reject, reject]);

    let first = &run.steps[0];
    let record = &first.record.as_ref().unwrap().record;
    assert_eq!(record.accumulation_batches[0].batch_seed, 1008);
    assert_eq!(record.tokens["rollout"].calls, 10);
    assert_eq!(first.batches.len(), 1);
    assert_eq!(first.batches[0].rollouts.as_ref().unwrap().results.len(), 4);
    assert_eq!(first.batches[0].analyses.len(), 2);
    assert_eq!(first.merged.as_ref().unwrap().edits.len(), 6);
    assert_eq!(first.ranked.as_ref().unwrap().edits.len(), 3);
    assert_eq!(first.report.as_ref().unwrap().rows[2].status, EditStatus::Error);
    assert_eq!(first.candidate.as_ref().unwrap().hash, "473fe66b4a90a432");
    assert_eq!(first.selection.as_ref().unwrap().counted_hard, 1.0 / 6.0);
    let digest = first.digest.as_ref().unwrap();
    assert_eq!((digest.n_fail, digest.failure_patterns[0].2.len()), (4, 4));
    let q8 = first.batches[0].rollouts.as_ref().unwrap().results[0].rollout().unwrap();
    assert_eq!((q8.item.as_str(), q8.answer.as_str(), q8.gold.as_str()), ("q8", "wrong 8", "A8"));
    assert_eq!(q8.turns.len(), 2);

    let epoch = &run.epochs[&2];
    let slow = epoch.slow_update.as_ref().unwrap();
    assert_eq!(
        (slow.found.action, slow.found.content.as_str()),
        (StageAction::ForceAccept, "GUIDE-1 RULE-3")
    );
    assert_eq!(slow.found.candidate.as_ref().unwrap().hash, "f967202426b64dae");
    assert!(slow.found.pairs.iter().all(|pair| pair.category == PairCategory::StableSuccess));
    assert_eq!(epoch.prev.as_ref().unwrap().results.len(), 5);
    assert_eq!(epoch.meta_skill.as_ref().unwrap().found.content, "MEMO-1");
    assert_eq!(run.epochs[&1].slow_update.as_ref().unwrap().found.action, StageAction::InjectPlaceholder);

    let standing = &run.standing;
    assert_eq!((standing.last_step, standing.best_step), (6, 4));
    assert_eq!((standing.current_score, standing.best_score), (Some(1.0), Some(1.0)));
    assert_eq!(standing.current_origin, "slow_update_epoch_02");
    assert_eq!(standing.current.as_ref().unwrap().hash, "f967202426b64dae");
    assert_eq!(standing.best.as_ref().unwrap().hash, "c335cca2bd0be7ff");
    assert_eq!(run.baseline.as_ref().unwrap().results.len(), 6);
    assert_eq!((run.summary.test_hard, run.summary.baseline_test_hard), (Some(1.0), Some(0.0)));
}

#[test]
fn the_folder_is_not_touched() {
    let copy = Copy::new();
    let state = |path: &Path| {
        let mut seen = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let meta = fs::metadata(&path).unwrap();
            seen.push((path.clone(), meta.modified().unwrap(), meta.len()));
            if meta.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        seen.sort();
        seen
    };
    let before = state(copy.path());
    copy.open();
    assert_eq!(state(copy.path()), before);
}

#[test]
fn what_is_no_such_folder_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let told = |path: &Path| ForeignRun::open(path).unwrap_err().to_string();
    assert!(told(dir.path()).contains("no SkillOpt output folder"));
    assert!(told(&dir.path().join("none")).contains("cannot open"));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(told(&file).contains("cannot open"));
    fs::write(dir.path().join("events.jsonl"), "").unwrap();
    assert!(told(dir.path()).contains("is a planish run"));
}

#[test]
fn without_its_state_the_history_tells_where_it_stands() {
    for damage in ["", "{\"last_completed_step\": 6, \"curr", "[]", "{\"last_completed_step\": \"x\"}"] {
        let copy = Copy::new();
        match damage {
            "" => copy.remove("runtime_state.json"),
            torn => copy.write("runtime_state.json", torn),
        }
        let run = copy.open();
        let standing = &run.standing;
        assert_eq!((standing.last_step, standing.best_step), (6, 4), "{damage}");
        assert_eq!((standing.current_score, standing.best_score), (Some(1.0), Some(1.0)), "{damage}");
        assert_eq!(standing.current_origin, "step_0004", "{damage}");
        assert_eq!(standing.current.as_ref().unwrap().hash, "f967202426b64dae", "{damage}");
        assert!(
            notes(&run).iter().any(|note| note.starts_with("runtime_state.json: is not usable")),
            "{damage}"
        );
    }
}

#[test]
fn a_score_of_zero_is_a_score_and_minus_one_is_none() {
    let copy = Copy::new();
    copy.replace("runtime_state.json", "\"current_score\": 1.0", "\"current_score\": 0.0");
    copy.replace("runtime_state.json", "\"best_score\": 1.0", "\"best_score\": -1.0");
    let standing = copy.open().standing;
    assert_eq!((standing.current_score, standing.best_score), (Some(0.0), None));
    assert_eq!(standing.last_step, 6);
}

#[test]
fn a_state_that_was_rewound_does_not_undo_recorded_steps() {
    let copy = Copy::new();
    copy.replace("runtime_state.json", "\"last_completed_step\": 6", "\"last_completed_step\": 0");
    copy.replace("runtime_state.json", "skill_v0006.md", "skill_v0000.md");
    let run = copy.open();
    assert_eq!(run.standing.last_step, 6);
    assert_eq!(run.standing.current.as_ref().unwrap().hash, "f967202426b64dae");
    assert!(notes(&run).iter().any(|note| note.contains("the records stand")), "{:?}", notes(&run));
}

#[test]
fn a_torn_history_is_filled_from_the_step_folders() {
    let copy = Copy::new();
    copy.write("history.json", "[\n  {\n    \"step\": 1,");
    let run = copy.open();
    assert!(run.steps.iter().all(|step| step.record.is_some()));
    assert_eq!(run.standing.last_step, 6);
    let told = notes(&run);
    assert!(told[0].starts_with("history.json:3: is no JSON"), "{told:?}");
    assert!(told[1].contains("lacks step 1; steps/step_0001/step_record.json is taken"), "{told:?}");
}

#[test]
fn repeated_and_odd_records() {
    let copy = Copy::new();
    let text = fs::read_to_string(copy.path().join("history.json")).unwrap();
    let mut rows: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = rows.as_array_mut().unwrap();
    let mut again = rows[5].clone();
    again["action"] = "provisionally_accepted".into();
    again["current_score"] = "0.75".into();
    rows.extend([again, "row".into(), serde_json::json!({"step": -3})]);
    rows[1]["action"] = serde_json::json!({"what": 1});
    rows[2]["gate_metric"] = "vibes".into();
    rows[3].as_object_mut().unwrap().remove("epoch");
    copy.write("history.json", &serde_json::json!(rows).to_string());
    let run = copy.open();
    let record = |step: usize| &run.steps[step - 1].record.as_ref().unwrap().record;
    assert_eq!((record(6).action, record(6).current_score), (Verdict::Accept, 0.75));
    assert_eq!(record(2).action, Verdict::Undecided);
    assert_eq!(record(4).at.epoch, 2, "from the steps per epoch");
    let told = notes(&run).join("\n");
    for part in [
        "step 6 stands there twice",
        "\"provisionally_accepted\", which planish does not know; read as accept",
        "row 8 has no step number",
        "row 9 has no step number",
        "`gate_metric` is \"vibes\"",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn the_best_skill_is_the_text_that_was_scored() {
    let copy = Copy::new();
    copy.write("best_skill.md", "something else");
    let run = copy.open();
    assert_eq!(run.standing.best.as_ref().unwrap().hash, "c335cca2bd0be7ff");
    assert!(notes(&run)[0].starts_with("best_skill.md: is not the text that got the best score"));
    copy.remove("best_skill.md");
    assert_eq!(copy.open().standing.best.unwrap().hash, "c335cca2bd0be7ff");
    // Written with the line ends of another system it is still that text.
    let scored = fs::read_to_string(fixture().join("best_skill.md")).unwrap();
    copy.write("best_skill.md", &scored.replace('\n', "\r\n"));
    assert_eq!(notes(&copy.open()), Vec::<String>::new());
}

#[test]
fn a_skill_version_that_is_lost_is_said() {
    let copy = Copy::new();
    copy.remove("skills/skill_v0003.md");
    let notes = notes(&copy.open());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("skills/skill_v0003.md") && notes[0].contains("is absent"), "{notes:?}");
}

#[test]
fn paths_of_another_machine_are_found_inside_the_folder() {
    let copy = Copy::new();
    copy.remove("skills/skill_v0006.md");
    copy.replace("runtime_state.json", "skill_v0006.md", "skill_v0004.md");
    let run = copy.open();
    assert_eq!(run.standing.current.as_ref().unwrap().hash, "c335cca2bd0be7ff");
    assert!(
        notes(&run).iter().any(|note| note.contains("skills/skill_v0004.md is taken")),
        "{:?}",
        notes(&run)
    );
    // Not below the recorded root, and with the separators of another system.
    copy.replace(
        "runtime_state.json",
        "/home/user/outputs/run1/skills/",
        "D:\\\\\\\\runs\\\\\\\\x\\\\\\\\skills\\\\\\\\",
    );
    assert_eq!(copy.open().standing.current.unwrap().hash, "c335cca2bd0be7ff");
    // A file that exists on this machine is not followed.
    let outside = tempfile::NamedTempFile::new().unwrap();
    let path = outside.path().display().to_string();
    let state = format!("{{\"last_completed_step\": 6, \"current_skill_path\": {path:?}}}");
    copy.write("runtime_state.json", &state);
    assert_eq!(copy.open().standing.current, None);
}

#[test]
fn a_step_that_did_not_finish_is_shown_as_far_as_it_got() {
    let copy = Copy::new();
    fs::create_dir_all(copy.path().join("steps/step_0007/rollout")).unwrap();
    copy.write(
        "steps/step_0007/rollout/results.jsonl",
        "{\"id\": \"q1\", \"hard\": 1, \"soft\": 1.0}\n{\"id\":",
    );
    let run = copy.open();
    let last = run.steps.last().unwrap();
    assert_eq!((last.at.step, last.at.epoch, last.record.is_none()), (7, 3, true));
    assert_eq!(last.batches[0].rollouts.as_ref().unwrap().results.len(), 1);
    assert_eq!(run.standing.last_step, 6);
}
