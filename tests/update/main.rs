//! Message scripts against the app: what comes in, what it wants done, what it then shows.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../fixture/client.rs"]
mod client;
#[path = "../fixture/mod.rs"]
mod fixture;
#[path = "../fixture/listing.rs"]
mod listing;

mod curves;
mod departure;
mod gate;
mod lacking;
mod logs;
mod news;
mod random;
mod recording;
mod replies;
mod shell;
mod review;
mod rollouts;
mod stages;
mod surface;
mod transcript;

use client::{app, control, hear, key, played, press, text, welcome};
use planish::domain::{Author, Decision, EditOp, Phase, ReviewClose, Skill, TimeoutPolicy};
use planish::event::{
    AckResult, BREAKER, BREAKER_OPEN, ClientLine, Command, EndStatus, Event, HostLine, LogLevel, Record,
};
use planish::tui::{
    Anchor, App, ClientEvent, Dirty, EditPurpose, Effect, Identity, Link, Msg, Overlay, Pane,
};
use ratatui::crossterm::event::KeyCode;

const SIZE: (u16, u16) = (120, 40);

fn reviewing() -> App {
    played(SIZE, &fixture::reviewing())
}

/// The commands among the effects: (id, revision, body).
fn commands(effects: &[Effect]) -> Vec<(String, Option<u64>, Command)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send(ClientLine::Command { cmd_id, expect_rev, body }) => {
                Some((cmd_id.clone(), *expect_rev, body.clone()))
            }
            _ => None,
        })
        .collect()
}

fn bodies(effects: &[Effect]) -> Vec<Command> {
    commands(effects).into_iter().map(|(_, _, body)| body).collect()
}

/// The host applies a decision: the event, then the acknowledgement.
fn applied(app: &mut App, effects: &[Effect]) {
    for (cmd_id, _, body) in commands(effects) {
        let rev = app.state.rev + 1;
        if let Command::Decide { at, edit, decision } = body {
            next_event(app, Event::EditDecided { at, edit, decision, by: fixture::ann(), rev });
        }
        hear(app, HostLine::Ack { cmd_id, result: AckResult::Applied, rev });
    }
}

fn next_event(app: &mut App, event: Event) -> Vec<Effect> {
    let record = Record { seq: app.state.seq + 1, at: app.now, event };
    hear(app, HostLine::Event(Box::new(record)))
}

fn decide(edit: usize, decision: Decision) -> Command {
    Command::Decide { at: fixture::step(3), edit, decision }
}

fn reject(reason: &str) -> Decision {
    Decision::Reject { reason: reason.into() }
}

#[test]
fn the_first_record_and_the_end_of_the_history_are_drawn_at_once() {
    let mut app = app(SIZE);
    let records = fixture::reviewing().records.len() as u64;
    hear(&mut app, welcome(records));
    app.take_dirty();
    for (seq, line) in (1..).zip(fixture::reviewing().lines()) {
        hear(&mut app, line);
        let prompt = seq == 1 || seq == records;
        assert_eq!(
            app.take_dirty(),
            if prompt { Dirty::Input } else { Dirty::Data },
            "record {seq} of {records}"
        );
    }
    next_event(&mut app, Event::Paused { by: fixture::ann() });
    assert_eq!(app.take_dirty(), Dirty::Data);
}

#[test]
fn a_pause_by_the_circuit_breaker_says_why_until_it_ends() {
    let why = "127.0.0.1 gave no reply to 3 calls in a row";
    for size in [(80, 24), SIZE] {
        let mut app = played(size, &fixture::rolling());
        next_event(&mut app, Event::Paused { by: Author(BREAKER.into()) });
        let (code, message) = (BREAKER_OPEN.into(), format!("{why} (the last: cannot connect)"));
        let rung = next_event(&mut app, Event::Alert { level: LogLevel::Error, code, message });
        assert_eq!(rung, [Effect::Bell]);
        app.update(Msg::Tick(app.now + 60_000));
        let last = text(&app).lines().last().unwrap().to_owned();
        assert!(last.contains(why) && last.contains("p resume"), "{last}");
        next_event(&mut app, Event::Resumed { by: fixture::ann() });
        assert!(!text(&app).contains(why));
    }
}

#[test]
fn a_phase_that_people_answer_through_files_says_so() {
    let mut tape = fixture::rolling();
    if let Event::RunStarted { config, .. } = &mut tape.records[0].event {
        *config = serde_json::json!({"model": {"optimizer": {"backend": "handoff"}}});
    }
    let mut app = played((80, 24), &tape);
    let awaited = "answers of the optimizer are awaited in handoff/ of the run";
    assert!(!text(&app).contains(awaited), "the target is asked");
    next_event(&mut app, Event::PhaseStarted { at: fixture::step(3), phase: Phase::Reflect });
    assert!(text(&app).contains(awaited), "{}", text(&app));
    next_event(&mut app, Event::Paused { by: fixture::ann() });
    assert!(!text(&app).contains(awaited));
}

#[test]
fn attaching_to_an_open_review_shows_it_and_rings() {
    let mut app = app(SIZE);
    let tape = fixture::reviewing();
    hear(&mut app, welcome(tape.records.len() as u64));
    let effects: Vec<Effect> = tape.lines().into_iter().flat_map(|line| hear(&mut app, line)).collect();
    assert_eq!(effects, [Effect::Bell]);
    assert_eq!(app.arrangement.focus, Pane::Patch);
    assert_eq!(app.waiting(), 4);
}

#[test]
fn a_whole_review_by_keys() {
    let mut app = reviewing();
    let rev = app.state.rev;

    let effects = press(&mut app, "a");
    assert_eq!(commands(&effects)[0].1, Some(rev));
    assert_eq!(bodies(&effects), [decide(0, Decision::Accept)]);
    applied(&mut app, &effects);
    assert_eq!(app.patch.edit, 1, "the next undecided edit is selected");

    assert_eq!(press(&mut app, "x"), []);
    let effects = press(&mut app, "one is enough");
    assert_eq!(effects, []);
    let effects = key(&mut app, KeyCode::Enter);
    assert_eq!(bodies(&effects), [decide(1, reject("one is enough"))]);
    applied(&mut app, &effects);

    press(&mut app, "J");
    let effects = press(&mut app, "e");
    let purpose = EditPurpose::Amend { at: fixture::step(3), edit: 3, expect_rev: app.state.rev };
    assert_eq!(effects, [Effect::OpenEditor { text: "- Never guess.".into(), purpose: purpose.clone() }]);
    let content = "- Guess never.".to_owned();
    let effects = app.update(Msg::EditorClosed { purpose, result: Ok(Some(content.clone())) });
    assert_eq!(bodies(&effects), [decide(3, Decision::Amend { content, reason: String::new() })]);
    applied(&mut app, &effects);
    assert_eq!(app.waiting(), 1);

    assert_eq!(key(&mut app, KeyCode::Enter), []);
    let shown = text(&app);
    assert!(
        shown.contains("1 undecided, accepted by submitting") && shown.contains("✗ 1 rejected"),
        "{shown}"
    );
    let effects = key(&mut app, KeyCode::Enter);
    assert_eq!(bodies(&effects), [Command::Submit { at: fixture::step(3) }]);
    assert!(app.overlay.is_none());
}

#[test]
fn a_submission_counts_decisions_on_their_way_as_made() {
    let mut app = reviewing();
    let sent = press(&mut app, "A");
    key(&mut app, KeyCode::Enter);
    let asked = text(&app);
    assert!(asked.contains("✓ 4 accepted") && !asked.contains("undecided, accepted"), "{asked}");
    applied(&mut app, &sent);
    assert!(text(&app).contains("✓ 4 accepted"));
}

#[test]
fn an_open_question_keeps_up_with_the_decisions_of_others() {
    let mut app = reviewing();
    key(&mut app, KeyCode::Enter);
    assert!(text(&app).contains("· 4 undecided, accepted by submitting"));
    let (at, by) = (fixture::step(3), Author("bob@pts/7".into()));
    next_event(&mut app, Event::EditDecided { at, edit: 1, decision: reject("no"), by, rev: 50 });
    let asked = text(&app);
    assert!(asked.contains("· 3 undecided") && asked.contains("✗ 1 rejected"), "{asked}");
    let close = ReviewClose::TimedOut { policy: TimeoutPolicy::Accept };
    next_event(
        &mut app,
        Event::ReviewClosed { at, close, kept: Vec::new(), rejected: Vec::new(), comments: Vec::new() },
    );
    assert!(text(&app).contains("that review is closed"));
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    assert!(app.toast.unwrap().text.contains("closed"));
}

#[test]
fn a_refused_decision_is_not_counted_any_more() {
    let mut app = reviewing();
    let sent = press(&mut app, "A");
    key(&mut app, KeyCode::Enter);
    for (cmd_id, _, _) in commands(&sent) {
        let result = AckResult::Denied { reason: "no".into() };
        hear(&mut app, HostLine::Ack { cmd_id, result, rev: 50 });
    }
    assert!(text(&app).contains("· 4 undecided, accepted by submitting"));
}

/// All three keys before the host says a word, as pasted or typed ahead.
#[test]
fn accepting_all_and_submitting_in_one_burst_is_no_conflict_with_oneself() {
    let mut app = reviewing();
    let rev = app.state.rev;
    let mut sent = press(&mut app, "A");
    sent.extend(key(&mut app, KeyCode::Enter));
    sent.extend(key(&mut app, KeyCode::Enter));
    let at = fixture::step(3);
    let mut expected: Vec<Command> = (0..4).map(|edit| decide(edit, Decision::Accept)).collect();
    expected.push(Command::Submit { at });
    assert_eq!(bodies(&sent), expected, "the decisions go out before the submission");
    let revs: Vec<Option<u64>> = commands(&sent).into_iter().map(|(_, rev, _)| rev).collect();
    assert_eq!(revs, [Some(rev); 5], "based on what others had decided by then");
    assert_eq!(key(&mut app, KeyCode::Enter), [], "nothing is submitted twice");
    assert!(app.overlay.is_none());

    applied(&mut app, &sent);
    assert_eq!(app.waiting(), 0);
    assert!(app.toast.as_ref().is_none_or(|toast| !toast.text.contains("first")));
    let rev = app.state.rev + 1;
    next_event(&mut app, Event::ReviewSubmitted { at, by: fixture::ann(), rev });
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    assert!(app.overlay.is_none());
}

#[test]
fn deciding_twice_before_an_answer_keeps_what_was_before() {
    let mut app = reviewing();
    let mut sent = press(&mut app, "a");
    assert_eq!(press(&mut app, "Ka"), [], "it is accepted already");
    press(&mut app, "Kx");
    sent.extend(key(&mut app, KeyCode::Enter));
    applied(&mut app, &sent);
    assert_eq!(bodies(&press(&mut app, "u")), [decide(0, Decision::Accept)]);
}

#[test]
fn enter_skips_the_reason() {
    let mut app = reviewing();
    press(&mut app, "x");
    assert_eq!(bodies(&key(&mut app, KeyCode::Enter)), [decide(0, reject(""))]);
}

#[test]
fn all_undecided_at_once_and_undone_at_once() {
    let mut app = reviewing();
    let first = press(&mut app, "a");
    applied(&mut app, &first);
    press(&mut app, "X");
    press(&mut app, "no");
    let effects = key(&mut app, KeyCode::Enter);
    assert_eq!(bodies(&effects), (1..4).map(|edit| decide(edit, reject("no"))).collect::<Vec<_>>());
    applied(&mut app, &effects);
    assert_eq!(app.waiting(), 0);
    assert_eq!(app.review_label().unwrap(), "REVIEW submit");

    let effects = press(&mut app, "u");
    assert_eq!(bodies(&effects), (1..4).map(|edit| decide(edit, Decision::Undecided)).collect::<Vec<_>>());
    applied(&mut app, &effects);
    let effects = press(&mut app, "u");
    assert_eq!(bodies(&effects), [decide(0, Decision::Undecided)]);
    applied(&mut app, &effects);
    assert_eq!(app.waiting(), 4);
    assert_eq!(press(&mut app, "u"), [], "nothing is left to undo");
}

#[test]
fn undo_goes_back_to_the_decision_before() {
    let mut app = reviewing();
    let effects = press(&mut app, "a");
    applied(&mut app, &effects);
    press(&mut app, "Kx");
    let effects = key(&mut app, KeyCode::Enter);
    applied(&mut app, &effects);
    assert_eq!(bodies(&press(&mut app, "u")), [decide(0, Decision::Accept)]);
}

#[test]
fn a_conflict_names_the_first_and_leaves_nothing_to_undo() {
    let mut app = reviewing();
    let effects = press(&mut app, "a");
    let cmd_id = commands(&effects)[0].0.clone();
    let bob = Author("bob@pts/7".into());
    let at = fixture::step(3);
    next_event(
        &mut app,
        Event::EditDecided { at, edit: 0, decision: reject("no"), by: bob.clone(), rev: 50 },
    );
    let result = AckResult::Conflict { by: bob, detail: "edit 1 was decided by bob@pts/7 first".into() };
    hear(&mut app, HostLine::Ack { cmd_id, result, rev: 50 });
    let toast = app.toast.clone().unwrap().text;
    assert!(toast.contains("bob@pts/7"), "{toast}");
    assert!(text(&app).contains("bob@pts/7 was first"));
    assert!(!app.can_undo());
}

#[test]
fn what_is_on_its_way_is_marked_until_it_is_answered() {
    let mut app = reviewing();
    let effects = press(&mut app, "a");
    assert!(text(&app).contains("1 [⋯] replace"));
    applied(&mut app, &effects);
    assert!(text(&app).contains("1 [✓] replace"));
}

#[test]
fn command_ids_are_never_used_twice() {
    let mut app = reviewing();
    let mut ids: Vec<String> = Vec::new();
    for keys in ["a", "a", "p", "A"] {
        ids.extend(commands(&press(&mut app, keys)).into_iter().map(|(id, _, _)| id));
    }
    let n = ids.len();
    ids.sort();
    ids.dedup();
    assert!(n >= 4 && ids.len() == n);
}

#[test]
fn a_read_only_client_gives_no_command_and_says_why() {
    let identity = Identity { name: fixture::ann(), read_only: true, client_id: "c1".into() };
    let mut app = App::new(identity, SIZE, fixture::START);
    let tape = fixture::reviewing();
    hear(&mut app, welcome(tape.records.len() as u64));
    for line in tape.lines() {
        hear(&mut app, line);
    }
    assert_eq!(app.arrangement.focus, Pane::Patch, "the open review is shown");
    assert!(text(&app).contains("1 [ ] replace"));
    for keys in ["a", "x", "A", "X", "e", "u", " ", "c", "C", "\n"] {
        app.toast = None;
        let effects = if keys == "\n" { key(&mut app, KeyCode::Enter) } else { press(&mut app, keys) };
        assert_eq!(effects, []);
        assert!(app.overlay.is_none());
        let said = app.toast.clone().unwrap().text;
        assert!(said.ends_with(": read-only, gs steers"), "{keys}: {said}");
    }
    for keys in ["p", "Q"] {
        assert_eq!(press(&mut app, keys), []);
        assert!(app.toast.clone().unwrap().text.ends_with(": read-only, gs steers"));
    }
}

#[test]
fn stopping_asks_and_names_the_run() {
    let mut app = reviewing();
    assert_eq!(press(&mut app, "Q"), []);
    assert!(text(&app).contains("Stop run city-demo?"));
    key(&mut app, KeyCode::Esc);
    assert!(app.overlay.is_none());
    press(&mut app, "Q");
    assert_eq!(bodies(&press(&mut app, "y")), [Command::Cancel]);
}

#[test]
fn pause_becomes_resume() {
    let mut app = reviewing();
    assert_eq!(bodies(&press(&mut app, "p")), [Command::Pause]);
    next_event(&mut app, Event::Paused { by: fixture::ann() });
    assert!(text(&app).contains("PAUSED by ann@pts/1"));
    assert!(text(&app).contains("accepts later (paused)"));
    assert_eq!(app.next_tick(), None, "no clock runs while paused");
    assert_eq!(bodies(&press(&mut app, "p")), [Command::Resume]);
}

#[test]
fn control_c_leaves_a_prompt_first_and_then_the_client() {
    let mut app = reviewing();
    press(&mut app, "x");
    press(&mut app, "draft");
    assert_eq!(control(&mut app, 'c'), []);
    assert!(app.overlay.is_none());
    assert_eq!(control(&mut app, 'c'), [Effect::Quit]);
    assert_eq!(press(&mut app, "q"), [Effect::Quit]);
}

#[test]
fn a_lost_link_keeps_the_draft_and_is_shown() {
    let mut app = reviewing();
    press(&mut app, "x");
    press(&mut app, "half a rea");
    app.update(Msg::Client(ClientEvent::Lost("connection reset".into())));
    app.update(Msg::Tick(app.now + 3_000));
    assert!(text(&app).contains("reconnecting 3s"));
    app.update(Msg::Paste("son".into()));
    let Some(Overlay::Prompt { input, .. }) = &app.overlay else { panic!("the prompt is gone") };
    assert_eq!(input.text(), "half a reason");
    app.update(Msg::Client(ClientEvent::Restored));
    assert_eq!(app.link, Link::Up);
    assert!(!text(&app).contains("reconnecting"));
}

#[test]
fn records_sent_again_change_nothing() {
    let mut app = reviewing();
    let before = app.state.clone();
    for line in fixture::reviewing().lines() {
        hear(&mut app, line);
    }
    assert_eq!(app.state, before);
}

#[test]
fn a_new_review_takes_the_screen_only_from_somebody_idle() {
    for (idle_ms, expected) in [(10_000, Pane::Patch), (100, Pane::Logs)] {
        let mut app = played(SIZE, &fixture::two_steps());
        press(&mut app, "8");
        app.update(Msg::Tick(app.now + idle_ms));
        let effects = next_event(&mut app, fixture::review_opened(fixture::step(3), fixture::edits()));
        assert_eq!(effects, [Effect::Bell]);
        assert_eq!(app.arrangement.focus, expected);
    }
}

#[test]
fn the_end_is_shown() {
    let app = played(SIZE, &fixture::ended(EndStatus::Completed, ""));
    let shown = text(&app);
    assert!(shown.contains("■ END  completed") && shown.contains("RUN COMPLETED"), "{shown}");
    assert!(shown.contains("base 0.02 → best 0.71,  +0.69 [+0.600, +0.780]"), "{shown}");
    assert_eq!(app.next_tick(), None, "no clock runs after the end");
}

#[test]
fn the_countdown_reaches_the_policy() {
    let mut app = reviewing();
    assert!(text(&app).contains("accepts in 0:57"));
    app.update(Msg::Tick(app.now + 15_400));
    assert!(text(&app).contains("accepts in 0:42"));
}

#[test]
fn the_time_to_go_is_that_of_the_machine() {
    let quick = reviewing();
    let mut tape = fixture::two_steps();
    // An hour over coffee in the review of step 2 changes nothing in what is foretold.
    let closed =
        tape.records.iter().rposition(|one| matches!(one.event, Event::ReviewClosed { .. })).unwrap();
    for record in &mut tape.records[closed..] {
        record.at += 3_600_000;
    }
    let last = tape.records.last().unwrap().at;
    let mut slow = played(SIZE, &tape);
    slow.update(Msg::Tick(last));
    let mut fast = played(SIZE, &fixture::two_steps());
    fast.update(Msg::Tick(fixture::two_steps().now()));
    assert_eq!(slow.eta(), fast.eta());

    let later = |seconds: u64| {
        let mut app = reviewing();
        app.update(Msg::Tick(app.now + seconds * 1_000));
        app.eta()
    };
    assert!(quick.eta().is_some());
    assert_eq!(later(0), later(50), "a review under way does not use up the time to go");
}

#[test]
fn no_time_to_go_while_a_review_waits_without_a_limit() {
    for (timeout, policy, foretold) in [
        (None, TimeoutPolicy::Accept, false),
        (Some(60), TimeoutPolicy::Wait, false),
        (Some(60), TimeoutPolicy::Reject, true),
    ] {
        let mut tape = fixture::reviewing();
        let opened = tape.records.last_mut().unwrap();
        let Event::ReviewOpened { timeout_s, on_timeout, .. } = &mut opened.event else {
            panic!("no review")
        };
        (*timeout_s, *on_timeout) = (timeout, policy);
        let app = played(SIZE, &tape);
        assert_eq!((app.eta().is_some(), text(&app).contains("eta ")), (foretold, foretold), "{policy:?}");
    }
}

#[test]
fn edits_and_changes_are_walked() {
    let mut app = reviewing();
    press(&mut app, "JJJJJJ");
    assert_eq!(app.patch.edit, 3);
    press(&mut app, "KKK");
    assert_eq!(app.patch.edit, 0);
    press(&mut app, "}");
    assert_eq!(app.patch.edit, 2, "edit 3 touches edit 1, and its change is its own");
    press(&mut app, "}");
    assert_eq!(app.patch.edit, 1);
    press(&mut app, "}}{");
    assert_eq!(app.patch.edit, 2);
    press(&mut app, "{{{");
    assert_eq!(app.patch.edit, 0);
}

/// A review of one edit near the end of a long skill and one at its beginning.
fn long_review(size: (u16, u16)) -> App {
    let skill: String = (1..=60).map(|line| format!("- rule number {line}\n")).collect();
    let mut tape = fixture::two_steps();
    for record in &mut tape.records {
        if let Event::RunStarted { skill: first, .. } = &mut record.event {
            *first = Skill::new(skill.as_str());
        }
    }
    let edits = vec![
        fixture::edit(EditOp::Replace, "- rule number 50", "- rule number fifty", 2, ""),
        fixture::edit(EditOp::Delete, "- rule number 20\n", "", 2, ""),
    ];
    let mut opened = fixture::review_opened(fixture::step(3), edits);
    if let Event::ReviewOpened { current_hash, .. } = &mut opened {
        *current_hash = Skill::new(skill.as_str()).hash;
    }
    tape.push(10, opened);
    played(size, &tape)
}

#[test]
fn the_patch_opens_at_the_first_change_of_the_selected_edit() {
    for size in [(80, 24), (120, 40), (60, 15)] {
        let mut app = long_review(size);
        let shown = text(&app);
        assert!(shown.contains("+ - rule number fifty"), "{shown}");
        for line in [47, 48, 49] {
            assert!(shown.contains(&format!("  - rule number {line}")), "{line}: {shown}");
        }
        press(&mut app, "J");
        let shown = text(&app);
        assert!(shown.contains("- - rule number 20") && shown.contains("  - rule number 17"), "{shown}");
        // Scrolled by hand it stays, whatever others decide.
        press(&mut app, "Kk");
        let before = text(&app);
        let (at, by) = (fixture::step(3), Author("bob@pts/7".into()));
        next_event(&mut app, Event::EditDecided { at, edit: 1, decision: Decision::Accept, by, rev: 50 });
        assert_eq!(app.patch.anchor, Anchor::Free);
        let first = |text: &str| text.lines().find(|line| line.contains("rule number 4")).map(str::to_owned);
        assert_eq!(first(&text(&app)), first(&before));
    }
}

#[test]
fn long_unchanged_parts_are_folded_until_asked_for() {
    let mut app = long_review((120, 60));
    let shown = text(&app);
    for words in ["… 16 unchanged lines", "… 23 unchanged lines", "… 7 unchanged lines"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("rule number 30"));
    press(&mut app, "t");
    let shown = text(&app);
    assert!(!shown.contains("unchanged lines") && shown.contains("rule number 46"), "{shown}");
    press(&mut app, "gg");
    assert!(text(&app).contains("rule number 1"));
    press(&mut app, "}");
    assert_eq!(app.patch.edit, 1, "the next change below what is in view");
}

#[test]
fn edits_that_hide_characters_say_so() {
    let at = fixture::step(3);
    let mut tape = fixture::two_steps();
    let plain = fixture::edit(EditOp::Append, "", "- Be kind.", 2, "");
    let trojan = fixture::edit(EditOp::Append, "", "- Be \u{202e}kind\u{202c}.\x1b[8m", 2, "");
    tape.push(10, fixture::review_opened(at, vec![plain, trojan]));
    let mut app = played((120, 40), &tape);
    let row = |app: &App, number: &str| {
        text(app).lines().find(|line| line.contains(number)).map(str::to_owned).unwrap()
    };
    assert!(row(&app, " 2 [ ] append").contains("hides 6 control characters"));
    assert!(!row(&app, " 1 [ ] append").contains("hides"));
    let detail = "the text applied is not just what is shown";
    assert!(!text(&app).contains(detail));
    press(&mut app, "J");
    assert!(text(&app).contains(detail), "{}", text(&app));
    // What counts is the text as amended.
    let decision = Decision::Amend { content: "- Be kind.\u{200b}".into(), reason: String::new() };
    next_event(&mut app, Event::EditDecided { at, edit: 1, decision, by: fixture::ann(), rev: 50 });
    assert!(row(&app, " 2 [✎] append").contains("hides 1 control character "));
}

#[test]
fn rejected_edits_leave_the_candidate() {
    let mut app = reviewing();
    assert!(text(&app).contains("+4 −2"));
    press(&mut app, "x");
    let effects = key(&mut app, KeyCode::Enter);
    applied(&mut app, &effects);
    assert!(text(&app).contains("+3 −1"), "{}", text(&app));
}

#[test]
fn steps_are_walked_and_the_newest_keeps_up() {
    let mut app = reviewing();
    press(&mut app, "[");
    assert_eq!(app.stage_name(), "step 2");
    press(&mut app, "[[[[");
    assert_eq!(app.stage_name(), "baseline");
    press(&mut app, "]]]]");
    assert_eq!(app.stage_name(), "step 3");
    next_event(
        &mut app,
        Event::PhaseStarted { at: fixture::step(4), phase: planish::domain::Phase::Rollout },
    );
    assert_eq!(app.stage_name(), "step 4");
}

#[test]
fn copying_gives_the_terminal_the_text() {
    let mut app = reviewing();
    let effects = press(&mut app, "y");
    assert_eq!(effects, [Effect::Copy(fixture::edits()[0].content.clone())]);
}

#[test]
fn the_palette_runs_what_works_now() {
    let mut app = reviewing();
    press(&mut app, ":");
    press(&mut app, "patch.accept-rest");
    assert_eq!(bodies(&key(&mut app, KeyCode::Enter)).len(), 4);
}

#[test]
fn a_decision_on_a_closed_review_is_not_sent() {
    let mut app = reviewing();
    press(&mut app, "x");
    let close = planish::domain::ReviewClose::TimedOut { policy: planish::domain::TimeoutPolicy::Accept };
    let at = fixture::step(3);
    next_event(
        &mut app,
        Event::ReviewClosed { at, close, kept: Vec::new(), rejected: Vec::new(), comments: Vec::new() },
    );
    assert_eq!(key(&mut app, KeyCode::Enter), []);
    assert!(app.toast.unwrap().text.contains("closed"));
}

#[test]
fn a_lost_link_says_what_would_bring_it_back_once() {
    let mut app = played(SIZE, &fixture::reviewing());
    let lost =
        || Msg::Client(ClientEvent::Lost("no host serves this run; `planish resume x` continues it".into()));
    app.update(lost());
    assert!(text(&app).lines().last().unwrap().contains("planish resume x"), "{}", text(&app));
    press(&mut app, "j");
    app.update(lost());
    assert_eq!(app.toast, None, "the same reason is not told again");
}
