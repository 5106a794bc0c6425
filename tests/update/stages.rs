//! Stages between epochs are walked and opened like steps; proposals of every mode are decided alike.

use planish::domain::{Decision, EditOp};
use planish::event::{Command, Event, HostLine, Live};
use planish::tui::{EditPurpose, Effect, Msg, Pane, Stage};
use ratatui::crossterm::event::KeyCode;

use super::client::{hear, key, played, press, text};
use super::fixture::{self, epochs};
use super::{SIZE, applied, bodies, next_event};

#[test]
fn stages_are_walked_between_the_steps_and_enter_opens_them() {
    let mut app = played(SIZE, &epochs::stale());
    let mut names = vec![app.stage_name()];
    for _ in 0..6 {
        press(&mut app, "[");
        names.push(app.stage_name());
    }
    assert_eq!(
        names,
        [
            "epoch 2 meta skill",
            "epoch 2 slow update",
            "step 4",
            "step 3",
            "epoch 1 meta-reflect",
            "epoch 1 meta skill",
            "epoch 1 slow update",
        ]
    );
    let mut app = played(SIZE, &epochs::stale());
    press(&mut app, "2j");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.arrangement.focus, Pane::Patch);
    assert!(text(&app).contains("+ Give the name alone."), "{}", text(&app));
    press(&mut app, "2j");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.arrangement.focus, Pane::Gate, "a decided step opens at its gate");
}

#[test]
fn a_stage_under_way_is_the_newest_and_the_next_step_takes_over() {
    let mut app = played(SIZE, &epochs::comparing());
    assert_eq!(app.stage_name(), "epoch 2 slow update");
    assert_eq!(app.progress(app.shown_stage().unwrap()), Some((5, 10)));
    let at = epochs::at(5);
    next_event(&mut app, Event::PhaseStarted { at, phase: planish::domain::Phase::Rollout });
    assert_eq!(app.stage_name(), "step 5");
    let stages = app.stages();
    let slow = |stage: Stage| matches!(stage, Stage::Between { epoch: 2, .. });
    assert!(!stages.iter().any(slow), "it never finished");
}

#[test]
fn the_guidance_is_copied_and_no_step_is_steered_from_a_stage() {
    let mut app = played(SIZE, &epochs::stale());
    press(&mut app, "2j");
    key(&mut app, KeyCode::Enter);
    let copied = press(&mut app, "y");
    assert_eq!(copied, [Effect::Copy(epochs::GUIDANCE.to_owned())]);
    assert!(press(&mut app, "aeu").is_empty());
    assert!(!app.has_edits() && app.has_diff());
    let folded = text(&app);
    press(&mut app, "t");
    let unfolded = text(&app);
    assert!(folded.contains("unchanged lines") && !unfolded.contains("unchanged lines"), "{unfolded}");
}

#[test]
fn long_stages_scroll_and_another_stage_starts_at_its_top() {
    let mut app = played((80, 24), &epochs::stale());
    press(&mut app, "2j");
    key(&mut app, KeyCode::Enter);
    let top = text(&app);
    press(&mut app, "G");
    let end = text(&app);
    assert!(top.contains("accepted without a gate") && !top.contains("passed twice"), "{top}");
    assert!(end.contains("passed twice city-0959") && !end.contains("accepted without a gate"), "{end}");
    press(&mut app, "]");
    assert!(text(&app).contains("memory written"), "{}", text(&app));
}

#[test]
fn a_suggestions_instruction_is_amended() {
    let mut app = played(SIZE, &epochs::reviewing("rewrite_from_suggestions", epochs::suggestions()));
    press(&mut app, "4");
    let opened = press(&mut app, "e");
    let [Effect::OpenEditor { text: shown, purpose }] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!(shown, &epochs::suggestions()[0].content);
    let EditPurpose::Amend { at, edit, .. } = purpose.clone();
    assert_eq!((at, edit), (epochs::at(1), 0));
    let content = "End after the name.".to_owned();
    let sent = app.update(Msg::EditorClosed { purpose: purpose.clone(), result: Ok(Some(content.clone())) });
    let decision = Decision::Amend { content: content.clone(), reason: String::new() };
    assert_eq!(bodies(&sent), [Command::Decide { at, edit: 0, decision }]);
    applied(&mut app, &sent);
    press(&mut app, "K");
    let shown = text(&app);
    assert!(shown.contains("[✎] clarify Where the answer ends") && shown.contains(&content), "{shown}");
}

#[test]
fn a_suggestion_without_its_text_in_the_skill_still_applies() {
    let mut suggestions = epochs::suggestions();
    suggestions[0].op = EditOp::RemoveRule;
    let mut app = played(SIZE, &epochs::reviewing("rewrite_from_suggestions", suggestions));
    press(&mut app, "4");
    let shown = text(&app);
    assert!(!shown.contains("does not apply") && !shown.contains("not in the candidate"), "{shown}");
}

#[test]
fn of_whole_candidates_the_first_accepted_one_is_taken() {
    let mut app = played(SIZE, &epochs::reviewing("full_rewrite_minibatch", epochs::whole_skills()));
    press(&mut app, "4");
    assert!(text(&app).contains("+1 −2"), "{}", text(&app));
    press(&mut app, "J");
    let second = text(&app);
    assert!(second.contains("+3 −0") && second.contains("not used: candidate 1 comes first"), "{second}");
    press(&mut app, "K");
    let at = epochs::at(1);
    let decision = Decision::Reject { reason: String::new() };
    next_event(&mut app, Event::EditDecided { at, edit: 0, decision, by: fixture::ann(), rev: 1 });
    press(&mut app, "J");
    assert!(!text(&app).contains("not used"), "{}", text(&app));
    let decision = Decision::Amend { content: "# Short\n".into(), reason: String::new() };
    next_event(&mut app, Event::EditDecided { at, edit: 1, decision, by: fixture::ann(), rev: 2 });
    assert!(text(&app).contains("+ # Short"), "{}", text(&app));
}

#[test]
fn a_candidate_shows_the_protected_regions_as_they_will_be() {
    let mut whole = epochs::whole_skills();
    whole[0].content = "<!-- SLOW_UPDATE_START -->\nforged\n<!-- SLOW_UPDATE_END -->\nbody\n".into();
    let app = played(SIZE, &epochs::reviewing("full_rewrite_minibatch", whole));
    let mut app = app;
    press(&mut app, "4t");
    let shown = text(&app);
    assert!(shown.contains("+ body") && !shown.contains("forged"), "{shown}");
}

#[test]
fn calls_in_flight_are_grouped_by_what_they_are_for() {
    let mut app = played(SIZE, &epochs::comparing());
    for (path, item) in [
        ("e02/slow/prev/city-0001#0", "city-0001"),
        ("e02/slow/curr/city-0002#0", "city-0002"),
        ("e02/slow/call", ""),
    ] {
        hear(
            &mut app,
            HostLine::Live(Live::CallStarted { path: path.into(), item: item.into(), attempt: 1 }),
        );
    }
    let groups: Vec<(&str, &str)> = app.rows().iter().take(3).map(|row| (row.group, row.item)).collect();
    assert_eq!(groups, [("optim", "call"), ("curr", "city-0002"), ("prev", "city-0001")]);
    let shown = text(&app);
    assert!(shown.contains("prev ▸1 ✓1 ✗2 · curr ▸1 ✓1 ✗1"), "{shown}");
}

#[test]
fn a_measured_again_skill_is_told_with_the_verdict() {
    let mut app = played(SIZE, &epochs::rescoring());
    let at = epochs::at(5);
    for index in 22..60 {
        let result = fixture::rollout(&format!("city-{index}"), "Lima", "Lima");
        let key = fixture::key(format!("s005/rescore/{index}#0"));
        next_event(
            &mut app,
            Event::EvaluationItemFinished { key, eval: "s005/rescore".into(), index, result },
        );
    }
    let score = planish::domain::GateScore { hard: 0.55, soft: 0.55, gate: 0.55, n: 60, done: 60 };
    let eval = "s005/rescore".into();
    next_event(
        &mut app,
        Event::EvaluationFinished { eval, score: score.clone(), curtailed: false, missing: 0 },
    );
    press(&mut app, "5");
    assert!(!text(&app).contains('≈'), "the score is that of the current skill again: {}", text(&app));
    let candidate = planish::domain::Skill::new("c");
    let decision = epochs::decision(&candidate, score.clone(), score, planish::domain::Verdict::Reject);
    next_event(&mut app, Event::GateDecided { at, decision: Box::new(decision) });
    let shown = text(&app);
    assert!(shown.contains("current measured again: 0.55 on 60 of 60 items"), "{shown}");
}

#[test]
fn a_search_in_a_stage_goes_through_its_lines() {
    let mut app = played(SIZE, &epochs::stale());
    press(&mut app, "2j");
    key(&mut app, KeyCode::Enter);
    text(&app);
    let word = epochs::GUIDANCE.split_whitespace().find(|word| word.len() > 4).unwrap().to_lowercase();
    press(&mut app, &format!("/{word}"));
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains(&format!("/{word} 1 of ")), "{}", text(&app));
    press(&mut app, "n");
    assert!(app.patch.found.is_some());
}
