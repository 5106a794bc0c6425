//! Marks on edits, change groups and lines; what they decide; undo and redo; comments; the summary.

use planish::domain::{Author, Decision, Edit, EditOp};
use planish::event::{Command, Event};
use planish::optim::apply_edits;
use planish::tui::{App, Effect, Pane};
use proptest::prelude::*;
use ratatui::crossterm::event::KeyCode;

use super::client::{control, key, played, press, text};
use super::fixture::{self, Tape, epochs};
use super::{SIZE, applied, bodies, decide, next_event, reject};

const OLD: &str = "- Answer with the city alone.\n- Do not explain.";
const NEW: &str = "- Answer with the city alone, on one line.\n- Never explain.\n- Never guess.";

/// A review of `edits` of the fixture's skill.
fn review_of(size: (u16, u16), edits: Vec<Edit>) -> App {
    let mut tape: Tape = fixture::two_steps();
    fixture::rollouts(&mut tape, fixture::step(3), 11, 20);
    tape.push(20, fixture::review_opened(fixture::step(3), edits));
    let mut app = played(size, &tape);
    press(&mut app, "4");
    app
}

fn one(op: EditOp, target: &str, content: &str) -> Vec<Edit> {
    vec![fixture::edit(op, target, content, 2, "why")]
}

/// Presses and lets the host apply what that sends.
fn act(app: &mut App, keys: &str) -> Vec<Command> {
    let effects = press(app, keys);
    applied(app, &effects);
    bodies(&effects)
}

fn amend(content: &str) -> Decision {
    Decision::Amend { content: content.into(), reason: String::new() }
}

#[test]
fn space_cycles_the_mark_of_an_edit() {
    let mut app = review_of(SIZE, fixture::edits());
    assert_eq!(act(&mut app, " "), [decide(0, Decision::Accept)]);
    assert!(text(&app).contains("1 [✓] replace"));
    assert_eq!(act(&mut app, " "), [decide(0, reject(""))]);
    assert!(app.toast.as_ref().unwrap().text.contains("without a reason"));
    assert!(text(&app).contains("1 [✗] replace"));
    assert_eq!(act(&mut app, " "), [decide(0, Decision::Undecided)]);
    assert!(text(&app).contains("1 [ ] replace"));
}

#[test]
fn lines_and_groups_are_left_out_and_taken_again() {
    let mut app = review_of(SIZE, one(EditOp::Replace, OLD, NEW));
    press(&mut app, "V");
    let shown = text(&app);
    assert!(shown.contains("lines  change 1 of 1  undecided, 5 lines"), "{shown}");
    // The cursor begins on the head of the group; the last line is the guess.
    assert_eq!(
        act(&mut app, "jjjjj "),
        [decide(0, amend("- Answer with the city alone, on one line.\n- Never explain.\n"))]
    );
    let shown = text(&app);
    assert!(shown.contains("4 of 5 lines taken") && shown.contains("1 [~] replace"), "{shown}");
    assert!(shown.contains("[✗]    3 + - Never guess."), "{shown}");
    assert!(shown.contains("accepted in part: 4 of 5 changed lines"), "{shown}");
    // The head takes the whole group again, and a second time leaves it out, which is a rejection.
    assert_eq!(act(&mut app, "{ "), [decide(0, Decision::Accept)]);
    assert!(text(&app).contains("1 [✓] replace"));
    assert_eq!(act(&mut app, " "), []);
    assert!(text(&app).contains("Reject edit 1: why?"));
    press(&mut app, "no");
    let sent = key(&mut app, KeyCode::Enter);
    assert_eq!(bodies(&sent), [decide(0, reject("no"))]);
    applied(&mut app, &sent);
    assert!(app.patch.line_mode.is_some(), "the reviewer stays where they were");
    key(&mut app, KeyCode::Esc);
    assert!(app.patch.line_mode.is_none());
    assert_eq!(app.arrangement.focus, Pane::Patch);
    press(&mut app, "Vs");
    assert!(app.patch.line_mode.is_none(), "both columns are about the whole diff");
}

#[test]
fn a_deletion_may_keep_some_of_its_lines() {
    let target = "- Answer with the city alone.\n- Do not explain.\n";
    let mut app = review_of(SIZE, one(EditOp::Delete, target, ""));
    press(&mut app, "V");
    assert_eq!(act(&mut app, "jj "), [decide(0, amend("- Do not explain.\n"))]);
    key(&mut app, KeyCode::Esc);
    let shown = text(&app);
    assert!(shown.contains("- - Answer with the city alone."), "{shown}");
    assert!(shown.contains("  - Do not explain.") && !shown.contains("- - Do not explain."), "{shown}");
    let opened = press(&mut app, "e");
    assert!(matches!(&opened[..], [Effect::OpenEditor { text, .. }] if text == "- Do not explain.\n"));
}

#[test]
fn text_by_hand_is_said_and_its_lines_are_not_to_be_chosen() {
    let mut app = review_of(SIZE, one(EditOp::Replace, OLD, NEW));
    let (at, by) = (fixture::step(3), Author("bob@pts/7".into()));
    let decision = amend("- Something else.");
    next_event(&mut app, Event::EditDecided { at, edit: 0, decision, by, rev: 40 });
    let shown = text(&app);
    assert!(shown.contains("1 [✎] replace") && shown.contains("edited by hand"), "{shown}");
    press(&mut app, "V");
    assert_eq!(act(&mut app, " "), []);
    assert!(app.toast.unwrap().text.contains("by hand"));
}

#[test]
fn an_edit_without_lines_says_so() {
    let mut app = review_of(SIZE, one(EditOp::Append, "", " "));
    press(&mut app, "V");
    assert!(app.patch.line_mode.is_none());
    assert!(app.toast.unwrap().text.contains("no lines"));
}

#[test]
fn whole_documents_are_chosen_by_line_too() {
    let mut app = played(SIZE, &epochs::reviewing("full_rewrite_minibatch", epochs::whole_skills()));
    press(&mut app, "4V");
    let shown = text(&app);
    assert!(shown.contains("lines  change 1 of"), "{shown}");
    let sent = bodies(&press(&mut app, "j "));
    assert!(matches!(&sent[..], [Command::Decide { decision: Decision::Amend { .. }, .. }]), "{sent:?}");
}

#[test]
fn acts_are_undone_and_done_again_in_order() {
    let mut app = review_of(SIZE, one(EditOp::Replace, OLD, NEW));
    press(&mut app, "V");
    let first = act(&mut app, "jjjjj ");
    let second = act(&mut app, "k ");
    assert!(first != second && second.len() == 1);
    assert_eq!(act(&mut app, "u"), first);
    assert_eq!(act(&mut app, "u"), [decide(0, Decision::Undecided)]);
    assert!(!app.can_undo() && app.can_redo());
    let mut redo = || {
        let sent = control(&mut app, 'r');
        applied(&mut app, &sent);
        bodies(&sent)
    };
    assert_eq!(redo(), first);
    assert_eq!(redo(), second);
    assert_eq!(redo(), []);
    assert_eq!(act(&mut app, "u"), first);
    act(&mut app, "kk ");
    assert!(!app.can_redo(), "a new decision ends what could be done again");
}

#[test]
fn comments_are_sent_and_shown_with_their_author() {
    let mut app = review_of(SIZE, fixture::edits());
    press(&mut app, "Jc");
    assert!(text(&app).contains("Comment on edit 2"));
    press(&mut app, "name the country too");
    let at = fixture::step(3);
    let comment = |edit, text: &str| Command::Comment { at, edit, text: text.into() };
    assert_eq!(bodies(&key(&mut app, KeyCode::Enter)), [comment(Some(1), "name the country too")]);
    press(&mut app, "C");
    press(&mut app, "fewer edits");
    assert_eq!(bodies(&key(&mut app, KeyCode::Enter)), [comment(None, "fewer edits")]);
    press(&mut app, "c  ");
    assert_eq!(key(&mut app, KeyCode::Enter), [], "nothing said, nothing sent");
    let by = || Author("bob@pts/7".into());
    for (rev, edit, text) in
        [(41, Some(1), "why\x1b[2J Peru?"), (42, None, "go slow"), (43, Some(0), "other")]
    {
        next_event(&mut app, Event::ReviewCommented { at, edit, text: text.into(), by: by(), rev });
    }
    let shown = text(&app);
    assert!(shown.contains("comment bob@pts/7: why Peru?"), "{shown}");
    assert!(shown.contains("comment bob@pts/7: go slow") && !shown.contains("other"), "{shown}");
}

#[test]
fn from_an_edit_to_its_rollouts_and_back() {
    let mut edits = fixture::edits();
    let app = review_of(SIZE, edits.clone());
    let known: Vec<String> = app.rows().iter().take(2).map(|row| row.item.to_owned()).collect();
    edits[0].motivated_by.clone_from(&known);
    edits[1].motivated_by.clear();
    let mut app = review_of(SIZE, edits);
    press(&mut app, "i");
    assert_eq!(app.arrangement.focus, Pane::Rollouts);
    let items: Vec<String> = app.rows().iter().map(|row| row.item.to_owned()).collect();
    assert!(!items.is_empty() && items.iter().all(|item| known.iter().any(|one| one == item)), "{items:?}");
    assert!(text(&app).contains("behind edit 1"));
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.arrangement.focus, Pane::Patch);
    assert!(app.rollouts.only.is_none());
    // See the edit, see its rollouts, decide, see the gate: three keys.
    let sent = press(&mut app, "ia5");
    assert_eq!(bodies(&sent), [decide(0, Decision::Accept)]);
    assert_eq!(app.arrangement.focus, Pane::Gate);
    press(&mut app, "4i");
    assert!(app.toast.unwrap().text.contains("not recorded"));
}

#[test]
fn side_by_side_where_there_is_room() {
    let mut app = review_of((200, 60), one(EditOp::Replace, OLD, NEW));
    press(&mut app, "zs");
    let shown = text(&app);
    let row = shown.lines().find(|line| line.contains("- - Do not explain.")).unwrap();
    assert!(row.contains("│▌   8 + - Never explain."), "{row}");
    let mut app = review_of((80, 24), one(EditOp::Replace, OLD, NEW));
    text(&app);
    press(&mut app, "s");
    assert!(app.toast.as_ref().unwrap().text.contains("side by side from"));
    assert!(text(&app).contains("+ - Never explain."), "one column all the same");
}

#[test]
fn white_space_is_ignored_when_asked() {
    let mut app =
        review_of(SIZE, one(EditOp::Replace, "- Do not explain.", "-  Do not\texplain.\n- Never guess."));
    assert!(text(&app).contains("- - Do not explain."));
    press(&mut app, "w");
    let shown = text(&app);
    assert!(shown.contains("white space ignored") && !shown.contains("- - Do not explain."), "{shown}");
    assert!(shown.contains("+ - Never guess."));
}

#[test]
fn the_summary_names_every_edit_and_the_result() {
    let mut app = review_of(SIZE, fixture::edits());
    press(&mut app, "x");
    press(&mut app, "too long");
    let sent = key(&mut app, KeyCode::Enter);
    applied(&mut app, &sent);
    act(&mut app, "a");
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(shown.contains("[✗] 1 replace - Answer with …") && shown.contains(": too long"), "{shown}");
    assert!(shown.contains("[✓] 2 insert  Country: Peru⏎City: Lima"), "{shown}");
    assert!(shown.contains("· 2 undecided, accepted by submitting"), "{shown}");
    // The fixture's skill with three lines (one blank) put in and one cut.
    assert!(shown.contains("Result: +3 −1 lines") && shown.contains("about"), "{shown}");
}

#[test]
fn a_long_summary_leaves_room_for_the_answer() {
    let edits: Vec<Edit> = (0..40).flat_map(|_| one(EditOp::Append, "", "- more")).collect();
    let mut app = review_of((80, 24), edits);
    key(&mut app, KeyCode::Enter);
    let shown = text(&app);
    assert!(shown.contains("… and 29 more") && shown.contains("enter submit"), "{shown}");
}

fn line() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["- a", "- b", "", "  - c", "# d", "- a b c", "\x1b[2J- e", "- \u{202e}f"])
        .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is marked: the marks are those of the decision, and what the gate will measure is what is shown.
    #[test]
    fn marks_are_the_decision_and_the_preview_is_what_is_applied(
        content in prop::collection::vec(line(), 1..7),
        op in 0usize..3,
        keys in "[jk {}uaJK]{0,30}",
    ) {
        let content = content.join("\n");
        let edit = match op {
            0 => fixture::edit(EditOp::Replace, OLD, &content, 1, ""),
            1 => fixture::edit(EditOp::Append, "", &content, 1, ""),
            _ => fixture::edit(EditOp::Delete, OLD, "", 1, ""),
        };
        let second = fixture::edit(EditOp::InsertAfter, "City: Paris", "Country: Peru\nCity: Lima", 1, "");
        let mut app = review_of((120, 60), vec![edit, second]);
        press(&mut app, "V");
        for c in keys.chars() {
            let mut sent = press(&mut app, &c.to_string());
            if app.overlay.is_some() {
                sent.extend(key(&mut app, KeyCode::Enter));
            }
            applied(&mut app, &sent);
        }
        let review = app.shown_review().unwrap();
        let mut kept = Vec::new();
        for slot in &review.edits {
            let lines = planish::optim::EditLines::of(&slot.edit, fixture::SKILL);
            match &slot.decision {
                Decision::Undecided | Decision::Accept => kept.push(slot.edit.clone()),
                Decision::Reject { .. } => {}
                Decision::Amend { content, .. } => {
                    // A part, and never the whole or nothing: those are told as what they are.
                    let lines = lines.unwrap();
                    let planish::optim::Choice::Lines(taken) = lines.choice(&slot.decision) else {
                        panic!("{content:?} is no choice of lines");
                    };
                    prop_assert!(taken != lines.all() || *content == slot.edit.content);
                    kept.push(slot.edit.amended(content));
                }
            }
        }
        let made = apply_edits(fixture::SKILL, &kept, Default::default()).skill;
        let shown = planish::text::diff(fixture::SKILL, &planish::text::sanitize(&made));
        let doc = app.patch_doc().unwrap();
        prop_assert_eq!((doc.diff.added(), doc.diff.removed()), (shown.added(), shown.removed()));
        text(&app);
    }
}

#[test]
fn a_search_in_the_patch_counts_marks_and_shows_folded_lines() {
    let mut app = review_of(SIZE, one(EditOp::Append, "", "- Never guess.\n- Never guess twice."));
    let before = text(&app);
    assert!(before.contains("unchanged line"), "{before}");
    press(&mut app, "/guess");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("/guess 1 of 2"), "{}", text(&app));
    let of = app.search.as_ref().unwrap().found.unwrap().1;
    press(&mut app, "N");
    assert_eq!(app.search.as_ref().unwrap().found, Some((of, of)), "round to the last one");
    // A line that the diff folds.
    let doc = app.patch_doc().unwrap();
    let texts = doc.diff.lines.iter().map(|line| line.parts.iter().map(|(_, text)| text.as_str()).collect());
    let words = texts.map(|text: String| text.chars().take(16).collect::<String>());
    let word = words.into_iter().find(|word| word.len() > 8 && !before.contains(word.as_str())).unwrap();
    key(&mut app, KeyCode::Esc);
    assert!(!app.patch.unfolded);
    press(&mut app, &format!("/{word}"));
    key(&mut app, KeyCode::Enter);
    assert!(app.patch.unfolded && text(&app).matches(&word).count() >= 2, "{}", text(&app));
    key(&mut app, KeyCode::Esc);
    press(&mut app, "/Zanzibar");
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("/Zanzibar not found"), "{}", text(&app));
}
