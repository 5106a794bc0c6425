use proptest::prelude::*;

use super::*;
use crate::domain::{
    AppendixFlush, Decision, Edit, EpochStage, GateDecision, GateMetric, GateScore, Patch, ReviewClose,
    ReviewMode, Rewrite, Skill, SlowUpdate, StageAction, TimeoutPolicy, Verdict,
};
use crate::event::{Analysis, ReviewEdit, ReviewState, SkillVersion, StageState, StepState};
use crate::optim::{Applied, MissingAnchor, apply_edits, with_empty_appendix};

/// A run that is told step by step.
struct Story {
    state: RunState,
    text: String,
}

fn edit(op: EditOp, target: &str, content: &str) -> Edit {
    Edit {
        op,
        target: target.into(),
        content: content.into(),
        support_count: 3,
        source_type: SourceType::Success,
        merge_level: None,
        priority: None,
        rationale: format!("because of {content}"),
        motivated_by: vec!["t1".into()],
    }
}

fn append(content: &str) -> Edit {
    edit(EditOp::Append, "", content)
}

fn decision(verdict: Verdict) -> GateDecision {
    let score = |gate| GateScore { hard: gate, soft: gate, gate, n: 4, done: 4 };
    GateDecision {
        verdict,
        metric: GateMetric::Hard,
        candidate_hash: String::new(),
        candidate: score(0.75),
        current: score(0.5),
        best: score(0.5),
        gained: Vec::new(),
        lost: Vec::new(),
        mid_p: None,
        interval: (0.0, 1.0),
        smallest_visible_gain: 0.1,
        curtailed: false,
        why: String::new(),
    }
}

impl Story {
    fn of(seed: &str) -> Self {
        let mut story = Self { state: RunState::default(), text: seed.to_owned() };
        let hash = story.know(seed);
        (story.state.initial_hash, story.state.best_hash) = (hash.clone(), hash);
        story
    }

    fn know(&mut self, text: &str) -> String {
        let skill = Skill::new(text);
        let version = SkillVersion { skill: skill.clone(), step: 0, accepted: true };
        self.state.skills.insert(skill.hash.clone(), version);
        skill.hash
    }

    fn at(&self) -> StepRef {
        let step = self.state.steps.len() as u32 + 1;
        StepRef { epoch: 1, step, step_in_epoch: step - 1 }
    }

    /// A step whose review kept all edits with these decisions, and what the gate said to the result.
    fn step(mut self, proposed: &[(Edit, Decision)], verdict: Verdict) -> Self {
        let kept: Vec<Edit> = proposed
            .iter()
            .filter_map(|(edit, decision)| match decision {
                Decision::Reject { .. } => None,
                Decision::Amend { content, .. } => Some(edit.amended(content)),
                Decision::Accept | Decision::Undecided => Some(edit.clone()),
            })
            .collect();
        let Applied { skill, report } = apply_edits(&self.text, &kept, MissingAnchor::Skip);
        let ann = || Some(Author("ann".into()));
        let review = ReviewState {
            mode: ReviewMode::Manual,
            edits: proposed
                .iter()
                .map(|(edit, decision)| ReviewEdit {
                    edit: edit.clone(),
                    decision: decision.clone(),
                    by: ann().filter(|_| *decision != Decision::Undecided),
                    rev: 1,
                })
                .collect(),
            current_hash: self.know(&self.text.clone()),
            preview: String::new(),
            deadline: None,
            timeout_s: None,
            submitted: None,
            on_timeout: TimeoutPolicy::Wait,
            closed: Some(ReviewClose::Auto),
            kept,
            rejected: Vec::new(),
            comments: Vec::new(),
        };
        let edits = proposed.iter().map(|(edit, _)| edit.clone()).collect();
        let step = StepState {
            at: self.at(),
            ranked: Some(Patch { reasoning: "all of it".into(), edits }),
            review: Some(review),
            candidate: Some(Skill::new(skill.clone())),
            report: Some(report),
            gate: Some(decision(verdict)),
            ..StepState::default()
        };
        self.finish(step, &skill, verdict)
    }

    fn finish(mut self, mut step: StepState, candidate: &str, verdict: Verdict) -> Self {
        self.know(candidate);
        if verdict.accepted() {
            candidate.clone_into(&mut self.text);
        }
        step.current_hash = self.know(&self.text.clone());
        if verdict == Verdict::AcceptNewBest {
            self.state.best_hash.clone_from(&step.current_hash);
            self.state.best_step = step.at.step;
        }
        self.state.steps.push(step);
        self
    }

    /// The last text, whatever the gate would say to it.
    fn best_now(mut self) -> Self {
        self.state.best_hash = self.know(&self.text.clone());
        self
    }

    fn told(&self) -> Lineage {
        let told = lineage(&self.state);
        assert_eq!(told.text(), self.state.skill_text(&told.skill_hash).unwrap());
        assert!(told.lines.iter().all(|line| line.origin < told.origins.len()));
        told
    }
}

fn all(edits: &[Edit]) -> Vec<(Edit, Decision)> {
    edits.iter().map(|edit| (edit.clone(), Decision::Undecided)).collect()
}

fn line<'a>(told: &'a Lineage, text: &str) -> (&'a SkillLine, &'a Origin) {
    let line = told.lines.iter().find(|line| line.text.trim_end() == text).unwrap();
    (line, told.origin(line))
}

#[test]
fn lines_name_their_edit_its_reason_and_the_verdict() {
    let story = Story::of("# Skill\n- old\n")
        .step(&all(&[append("- one"), append("- two\n- three")]), Verdict::AcceptNewBest)
        .step(&all(&[append("- worse")]), Verdict::Reject);
    let told = story.told();
    assert_eq!(line(&told, "- old").1.stage, OriginStage::Seed);
    let (_, origin) = line(&told, "- three");
    assert_eq!(
        (origin.stage, origin.at.step, origin.verdict),
        (OriginStage::Edit, 1, Some("accept_new_best"))
    );
    assert_eq!((origin.reason.as_str(), origin.scores), ("because of - two\n- three", Some((0.75, 0.5))));
    let edit = origin.edit.as_ref().unwrap();
    assert_eq!((edit.number, edit.op, edit.support_count), (2, EditOp::Append, 3));
    assert_eq!((edit.source_type, edit.reviewer.as_ref(), edit.amended), (SourceType::Success, None, false));
    assert_eq!(told.origins.len(), 3, "the rejected step brought nothing");
}

#[test]
fn a_line_changed_twice_has_its_history() {
    let story = Story::of("Answer with the city.\n")
        .step(&all(&[edit(EditOp::Replace, "the city", "the capital city")]), Verdict::AcceptNewBest)
        .step(&all(&[edit(EditOp::Replace, "city.", "city alone.")]), Verdict::AcceptNewBest)
        .step(&all(&[append("Nothing like it at all")]), Verdict::AcceptNewBest);
    let told = story.told();
    let (changed, origin) = line(&told, "Answer with the capital city alone.");
    assert_eq!((origin.at.step, changed.earlier.as_slice()), (2, &[0, 1][..]));
    assert_eq!(line(&told, "Nothing like it at all").0.earlier, [0usize; 0]);
}

#[test]
fn an_amended_deletion_is_the_reviewers_and_so_is_what_follows() {
    let cut = Edit { op: EditOp::Delete, target: "- a\n- b\n".into(), ..append("") };
    let keeps = Decision::Amend { content: "- b\n".into(), reason: String::new() };
    let told = Story::of("# T\n- a\n- b\n")
        .step(&[(cut, keeps), (append("- c"), Decision::Accept)], Verdict::AcceptNewBest)
        .told();
    let edit = told.lines.iter().rev().find_map(|line| told.origins[line.origin].edit.as_ref()).unwrap();
    assert_eq!((edit.number, edit.amended, edit.reviewer.as_ref()), (2, false, Some(&Author("ann".into()))));
}

#[test]
fn amended_text_is_the_reviewers() {
    let amended = Decision::Amend { content: "- better words".into(), reason: String::new() };
    let struck = Decision::Reject { reason: "no".into() };
    let story = Story::of("# Skill\n").step(
        &[(append("- a"), Decision::Accept), (append("- b"), struck), (append("- words"), amended)],
        Verdict::AcceptNewBest,
    );
    let told = story.told();
    let edit = line(&told, "- better words").1.edit.as_ref().unwrap();
    assert_eq!((edit.number, edit.amended, edit.reviewer.as_ref()), (2, true, Some(&Author("ann".into()))));
    let edit = line(&told, "- a").1.edit.as_ref().unwrap();
    assert_eq!((edit.amended, edit.reviewer.as_ref()), (false, Some(&Author("ann".into()))));
}

#[test]
fn the_reason_is_the_edits_own_then_its_analysts_then_the_steps() {
    let silent = |content: &str| Edit { rationale: String::new(), ..append(content) };
    let mut story = Story::of("# Skill\n")
        .step(&all(&[append("- own"), silent("- analyst"), silent("- step")]), Verdict::AcceptNewBest);
    story.state.steps[0].analyses.push(Analysis {
        source: SourceType::Failure,
        batch: 0,
        minibatch: 0,
        items: Vec::new(),
        patch: Some(Patch { reasoning: "seen twice".into(), edits: vec![silent("- analyst")] }),
        failures: Vec::new(),
        success_patterns: Vec::new(),
        appendix_notes: Vec::new(),
        deep: false,
        note: String::new(),
    });
    let told = story.told();
    let reason = |text| line(&told, text).1.reason.as_str();
    assert_eq!(
        [reason("- own"), reason("- analyst"), reason("- step")],
        ["because of - own", "seen twice", "all of it"]
    );
}

#[test]
fn the_best_is_told_as_it_was_when_it_became_the_best() {
    let story = Story::of("# Skill\n")
        .step(&all(&[append("- one")]), Verdict::AcceptNewBest)
        .step(&all(&[append("- two")]), Verdict::Accept)
        .step(&all(&[edit(EditOp::Delete, "\n- two\n", "")]), Verdict::Accept);
    let told = story.told();
    assert_eq!((told.text().as_str(), told.origins.len()), ("# Skill\n\n- one\n", 2));
    let seed = Story::of("# Skill\n").step(&all(&[append("- x")]), Verdict::Accept).told();
    assert_eq!((seed.origins.len(), seed.lines.len()), (1, 1));
}

#[test]
fn rewrites_appendix_and_slow_update_are_named() {
    let mut story = Story::of("Say the city.\n- be brief\n");
    let rewritten = "Say the city in English.\n- be brief\n";
    let step = StepState {
        at: story.at(),
        candidate: Some(Skill::new(rewritten)),
        gate: Some(decision(Verdict::Accept)),
        rewrite: Some(Rewrite {
            reasoning: "clearer".into(),
            change_summary: vec!["named the language".into(), "kept brevity".into()],
            new_skill: rewritten.into(),
        }),
        ..StepState::default()
    };
    story = story.finish(step, rewritten, Verdict::Accept);
    let noted = format!("{rewritten}<!-- APPENDIX_START -->\nmind it\n<!-- APPENDIX_END -->\n");
    story.text.clone_from(&noted);
    let mut step =
        StepState { at: story.at(), appendix: Some(AppendixFlush::default()), ..StepState::default() };
    step.current_hash = story.know(&noted);
    story.state.steps.push(step);
    let guided = format!("{noted}<!-- SLOW_UPDATE_START -->\ngo slowly\n<!-- SLOW_UPDATE_END -->\n");
    let slow = SlowUpdate {
        action: StageAction::ForceAccept,
        reasoning: "it regressed".into(),
        content: "go slowly".into(),
        prev_hard: None,
        curr_hard: None,
        pairs: Vec::new(),
        all_pairs: Vec::new(),
        candidate: None,
        decision: None,
        note: String::new(),
    };
    let at = story.state.steps[1].at;
    let current_hash = story.know(&guided);
    let stage = EpochStage::SlowUpdate(Box::new(slow));
    story.state.stages.push(StageState { at, stage, current_hash, started_at: 0, finished_at: 0 });
    story.text = guided;
    let told = story.best_now().told();
    let (changed, origin) = line(&told, "Say the city in English.");
    assert_eq!((origin.stage, changed.earlier.as_slice()), (OriginStage::Rewrite, &[0][..]));
    assert_eq!((origin.reason.as_str(), origin.edit.as_ref()), ("named the language; kept brevity", None));
    assert_eq!(line(&told, "- be brief").1.stage, OriginStage::Seed);
    assert_eq!(
        (line(&told, "mind it").1.stage, line(&told, "mind it").1.at.step),
        (OriginStage::Appendix, 2)
    );
    let (_, slow) = line(&told, "go slowly");
    assert_eq!((slow.stage, slow.verdict), (OriginStage::SlowUpdate, Some("force_accept")));
}

#[test]
fn the_room_for_notes_is_told_although_no_event_does() {
    let mut story = Story::of("# Skill\n");
    story.text = with_empty_appendix(&story.text);
    story = story.step(&all(&[append("- one")]), Verdict::AcceptNewBest);
    story.state.skills.remove(&story.state.steps[0].review.as_ref().unwrap().current_hash.clone());
    let told = story.told();
    assert_eq!(line(&told, "- one").1.stage, OriginStage::Edit);
    assert_eq!(line(&told, "<!-- APPENDIX_START -->").1.stage, OriginStage::Appendix);
}

#[test]
fn a_candidate_that_the_edits_do_not_give_is_told_by_content() {
    let mut story =
        Story::of("# Skill\n").step(&all(&[append("- one"), append("- two")]), Verdict::AcceptNewBest);
    // As another program would have applied them.
    let other = "# Skill\n- two\n- one\n- from nowhere\n";
    story.state.best_hash = story.know(other);
    let step = &mut story.state.steps[0];
    step.candidate = Some(Skill::new(other));
    step.current_hash.clone_from(&story.state.best_hash);
    let told = story.told();
    let number = |text| line(&told, text).1.edit.as_ref().map(|edit| edit.number);
    assert_eq!([number("- one"), number("- two"), number("- from nowhere")], [Some(1), Some(2), None]);
    assert_eq!((line(&told, "- from nowhere").1.stage, told.origins.len()), (OriginStage::Edit, 4));
}

#[test]
fn what_the_record_does_not_explain_is_said_to_be_so() {
    let mut story = Story::of("# Skill\n").step(&all(&[append("- one")]), Verdict::AcceptNewBest);
    story.state.best_hash = story.know("# Skill\n\n- one\n- dropped from the sky\n");
    let told = story.told();
    assert_eq!(line(&told, "- one").1.stage, OriginStage::Edit);
    assert_eq!(line(&told, "- dropped from the sky").1.stage, OriginStage::Unrecorded);
    assert_eq!(lineage(&RunState::default()).lines, []);
}

/// Documents and edits that meet each other often, with regions, blank lines and odd line ends among them.
fn proposals() -> impl Strategy<Value = Vec<(Edit, bool)>> {
    let words = prop::sample::select(vec![
        "a",
        "- b",
        "- b c",
        "a\n\nb",
        "<!-- APPENDIX_START -->\nx\n<!-- APPENDIX_END -->",
        "é\r\n",
        "b\rc",
        "",
    ]);
    let ops =
        prop::sample::select(vec![EditOp::Append, EditOp::InsertAfter, EditOp::Replace, EditOp::Delete]);
    let one = (ops, words.clone(), words, any::<bool>())
        .prop_map(|(op, target, content, accept)| (edit(op, target, content), accept));
    prop::collection::vec(one, 0..6)
}

proptest! {
    #[test]
    fn every_line_has_one_origin_and_the_lines_make_the_document(
        seed in "([ab]|- b|\\n|\\r\\n){0,6}",
        steps in prop::collection::vec((proposals(), 0..3usize), 0..5),
        replayable in any::<bool>(),
    ) {
        const VERDICTS: [Verdict; 3] = [Verdict::AcceptNewBest, Verdict::Accept, Verdict::Reject];
        let mut story = Story::of(&seed);
        for (proposed, verdict) in steps {
            let proposed: Vec<(Edit, Decision)> = proposed
                .into_iter()
                .map(|(edit, accept)| {
                    let decision =
                        if accept { Decision::Accept } else { Decision::Reject { reason: String::new() } };
                    (edit, decision)
                })
                .collect();
            story = story.step(&proposed, VERDICTS[verdict]);
            if !replayable && let Some(step) = story.state.steps.last_mut() {
                step.report = None;
            }
        }
        for story in [Story { state: story.state.clone(), text: story.text.clone() }.best_now(), story] {
            let told = story.told();
            for line in &told.lines {
                let origin = told.origin(line);
                prop_assert!(line.earlier.iter().all(|earlier| *earlier < line.origin));
                match origin.stage {
                    OriginStage::Seed => prop_assert!(lines(&seed).contains(&line.text.as_str())),
                    OriginStage::Edit => prop_assert!(origin.at.step > 0 && origin.verdict.is_some()),
                    _ => prop_assert!(false, "{:?}", origin),
                }
            }
        }
    }
}
