//! Stages between epochs and the other update modes on the screen.

use ratatui::crossterm::event::KeyCode;

use crate::HOSTILE;
use crate::client::{key, played, press, text};
use crate::fixture::epochs;
use crate::fixture::{Tape, edits};
use planish::domain::EpochStage;
use planish::event::Event;
use planish::tui::App;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// One snapshot per size: each tape, after its keys (`⏎` is enter).
fn snapshot(name: &str, shown: &[(&str, Tape, &str)]) {
    for size in SIZES {
        let mut out = String::new();
        for (what, tape, keys) in shown {
            let mut app = played(size, tape);
            typed(&mut app, keys);
            out.push_str(&format!("──────── {what}\n{}", text(&app)));
        }
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), out);
    }
}

fn typed(app: &mut App, keys: &str) {
    for one in keys.chars() {
        match one {
            '⏎' => {
                key(app, KeyCode::Enter);
            }
            one => {
                press(app, &one.to_string());
            }
        }
    }
}

#[test]
fn steps() {
    snapshot(
        "steps_with_stages",
        &[
            ("after two epochs", epochs::stale(), "2"),
            ("comparing", epochs::comparing(), "2"),
            ("the last skill again", epochs::selecting(), "2"),
            ("the end, zoomed", epochs::ended(), "2z"),
        ],
    );
}

#[test]
fn a_stage_in_full() {
    snapshot(
        "stage_in_full",
        &[
            ("slow update", epochs::stale(), "2j⏎"),
            ("its end", epochs::stale(), "2j⏎G"),
            ("meta skill", epochs::stale(), "2⏎"),
            ("meta-reflect", epochs::first(), "2⏎"),
            ("under way", epochs::comparing(), "2⏎"),
        ],
    );
}

#[test]
fn suggestions() {
    let tape = || epochs::reviewing("rewrite_from_suggestions", epochs::suggestions());
    let rewritten = epochs::rewritten("rewrite_from_suggestions", epochs::suggestions());
    snapshot(
        "patch_with_suggestions",
        &[("under review", tape(), "4"), ("why", tape(), "4Jr"), ("rewritten", rewritten, "4")],
    );
}

#[test]
fn whole_candidates() {
    let tape = || epochs::reviewing("full_rewrite_minibatch", epochs::whole_skills());
    let mut noted = epochs::rewritten("full_rewrite_minibatch", epochs::whole_skills());
    epochs::noted(&mut noted, epochs::at(1));
    snapshot(
        "patch_with_whole_candidates",
        &[("the first", tape(), "4"), ("the second", tape(), "4Jr"), ("rewritten, notes", noted, "4r")],
    );
}

#[test]
fn gate() {
    snapshot(
        "gate_with_stages",
        &[
            ("stale", epochs::stale(), "25"),
            ("a gated stage", epochs::first(), "25"),
            ("the current skill again", epochs::rescoring(), "5"),
            ("the last skill again", epochs::selecting(), "5"),
            ("the end", epochs::ended(), "5"),
        ],
    );
}

#[test]
fn rollouts() {
    snapshot(
        "rollouts_with_stages",
        &[
            ("comparing", epochs::comparing(), "3"),
            ("probed", epochs::reviewing("patch", edits()), "3"),
            ("the current skill again", epochs::rescoring(), "3"),
        ],
    );
}

#[test]
fn a_step_of_whole_texts_says_why_it_was_skipped_and_what_it_kept() {
    let mut tape = epochs::rewritten("rewrite_from_suggestions", epochs::suggestions());
    tape.records.pop();
    let record = crate::fixture::two_steps().records.into_iter().find_map(|record| match record.event {
        Event::StepFinished { record, .. } => Some(record),
        _ => None,
    });
    let mut record = record.unwrap();
    (record.at, record.action) = (epochs::at(1), planish::domain::Verdict::SkipNoRewrite);
    let hash = tape.current.hash.clone();
    tape.push(1, Event::StepFinished { record, current_hash: hash.clone(), best_hash: hash });
    let mut app = played((120, 40), &tape);
    typed(&mut app, "5");
    let shown = text(&app);
    assert!(shown.contains("– 1  no rewrite"), "{shown}");
    assert!(shown.contains("step 1: skipped: no usable text came of 2 suggestions"), "{shown}");
    typed(&mut app, "4");
    assert!(text(&app).contains("no rewrite came of the suggestions"), "{}", text(&app));

    let mut tape = epochs::rewritten("full_rewrite_minibatch", epochs::whole_skills());
    let candidate = planish::domain::Skill::new("x");
    let score = |gate: f64| planish::domain::GateScore { hard: gate, soft: gate, gate, n: 60, done: 60 };
    let verdict = planish::domain::Verdict::AcceptNewBest;
    let decision = Box::new(epochs::decision(&candidate, score(0.6), score(0.3), verdict));
    tape.push(1, Event::GateDecided { at: epochs::at(1), decision });
    let shown = text(&played((120, 40), &tape));
    assert!(shown.contains("★ 1        0.600 +0.300  1/2"), "{shown}");
}

/// Texts of models that try to steer the terminal, and far too much of them; `text` fails on any escape that gets out.
#[test]
fn hostile_and_huge_texts_stay_inert() {
    let evil = format!("{HOSTILE}\n{}", "東京 words ".repeat(20_000));
    let mut tape = epochs::stale();
    for record in &mut tape.records {
        match &mut record.event {
            Event::EpochStageFinished { stage: EpochStage::SlowUpdate(found), .. } => {
                (found.reasoning, found.note) = (evil.clone(), evil.clone());
                for pair in &mut found.pairs {
                    (pair.id, pair.prev.predicted_answer) = (evil.clone(), evil.clone());
                }
            }
            Event::EpochStageFinished { stage: EpochStage::MetaSkill(found), .. } => {
                found.content.clone_from(&evil);
            }
            Event::EpochStageFinished { stage: EpochStage::MetaReflect(found), .. } => {
                found.meta_summary.clone_from(&evil);
                found.patch.edits[0].rationale.clone_from(&evil);
            }
            _ => {}
        }
    }
    for size in [(60, 15), (80, 24), (120, 40)] {
        for keys in ["2⏎", "2j⏎G", "2jjjj⏎", "2jjjj⏎5"] {
            let mut app = played(size, &tape);
            typed(&mut app, keys);
            assert!(!text(&app).contains('\u{1b}'));
        }
    }
    let mut proposed = epochs::suggestions();
    (proposed[0].content, proposed[0].target) = (evil.clone(), evil.clone());
    let mut app = played((80, 24), &epochs::reviewing("rewrite_from_suggestions", proposed));
    typed(&mut app, "4r");
    assert!(text(&app).contains("hides"), "{}", text(&app));
    let mut proposed = epochs::whole_skills();
    (proposed[0].content, proposed[0].rationale) = (evil.clone(), evil);
    let mut app = played((80, 24), &epochs::reviewing("full_rewrite_minibatch", proposed));
    typed(&mut app, "4rt");
    assert!(text(&app).contains("hides"), "{}", text(&app));
}
