//! What each pane looks like, in every kind of state and at the sizes the layouts are made for.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../fixture/client.rs"]
mod client;
#[path = "../fixture/mod.rs"]
mod fixture;
mod curves;
mod imported;
#[path = "../fixture/listing.rs"]
mod listing;
mod shell;
mod review;
mod stages;
mod themes;

use client::{app, buffer, hear, key, played, press, styled, text, welcome};
use fixture::Tape;
use planish::domain::{
    Author, Decision, Edit, EditOp, EffectKey, Retuned, ReviewClose, Role, Usage, Verdict,
};
use planish::event::{Client, EndStatus, Event, HostLine, LogLevel, RejectedEdit, WatchRole};
use planish::tui::{App, ClientEvent, Depth, Msg, Pane, Scope, actions};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;

const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 60)];
const HOSTILE: &str = "\x1b]52;c;ZXZpbA==\x07\x1b[2Jrm -rf\u{202e}txt\u{200b}\ttab";

fn show(app: &mut App, pane: Pane) {
    match pane.number() {
        Some(number) => {
            press(app, &number.to_string());
        }
        None => {
            press(app, "3");
            key(app, KeyCode::Enter);
        }
    }
}

fn result_key(path: &str) -> EffectKey {
    EffectKey { path: path.into(), fingerprint: String::new() }
}

/// Many steps, edits, rollouts and a very long reply.
fn huge() -> Tape {
    let mut tape = fixture::two_steps();
    for number in 3..60 {
        fixture::rollouts(&mut tape, fixture::step(number), 11, 2);
    }
    let at = fixture::step(60);
    fixture::rollouts(&mut tape, at, 11, 1500);
    let result = fixture::rollout("city-long", &"x".repeat(1_000_000), "Lima");
    tape.push(1, Event::RolloutFinished { key: result_key("long"), at, index: 1500, result });
    for index in 0..300 {
        let message = format!("line {index}: {}", "words ".repeat(60));
        tape.push(1, Event::Log { level: LogLevel::Info, message });
    }
    let edits: Vec<Edit> = (0..50)
        .map(|index| {
            let content = format!("- rule {index} {}", "and more ".repeat(40));
            fixture::edit(EditOp::Append, "", &content, index, &"because ".repeat(200))
        })
        .collect();
    tape.push(1, fixture::review_opened(at, edits));
    tape
}

/// Wide characters everywhere, and text that tries to steer the terminal.
fn unicode() -> Tape {
    let mut tape = fixture::two_steps();
    let at = fixture::step(3);
    let items = ["東京-質問-1", "e\u{301}te\u{301}", "👩\u{200d}🚀-crew", HOSTILE];
    for (index, item) in items.into_iter().enumerate() {
        let reply = format!("日本の首都は東京です {HOSTILE}\n{}", "東京".repeat(90));
        let result = fixture::rollout(item, &reply, "東京");
        tape.push(100, Event::RolloutFinished { key: result_key(item), at, index, result });
    }
    let second = format!("説明しない。{HOSTILE}\n\u{2066}x");
    let edits = vec![
        fixture::edit(EditOp::Append, "", &format!("- 都市の名前だけ {HOSTILE}"), 3, HOSTILE),
        fixture::edit(EditOp::Replace, "Do not explain.", &second, 2, "理由"),
    ];
    tape.push(100, fixture::review_opened(at, edits));
    let decision = Decision::Reject { reason: format!("違う {HOSTILE}") };
    let by = Author(format!("安\x1b[31m@{HOSTILE}"));
    tape.push(100, Event::EditDecided { at, edit: 0, decision, by, rev: 9 });
    tape.push(1, Event::Alert { level: LogLevel::Error, code: "注意".into(), message: HOSTILE.into() });
    tape
}

/// The state of each kind that says most about `pane`.
fn state(kind: &str, pane: Pane, size: (u16, u16)) -> App {
    match kind {
        "empty" => app(size),
        "loading" => {
            let mut app = app(size);
            hear(&mut app, welcome(5000));
            for line in fixture::begun().lines() {
                hear(&mut app, line);
            }
            app
        }
        "typical" => match pane {
            Pane::Rollouts | Pane::Steps => {
                let mut app = played(size, &fixture::rolling());
                for live in fixture::live() {
                    hear(&mut app, HostLine::Live(live));
                }
                app.update(Msg::Tick(app.now + 1_400));
                app
            }
            Pane::Gate | Pane::Curves => {
                let mut app = played(size, &fixture::two_steps());
                for live in fixture::live() {
                    app.update(Msg::Tick(app.now + 5_000));
                    hear(&mut app, HostLine::Live(live));
                }
                app
            }
            Pane::Patch
            | Pane::Logs
            | Pane::Transcript
            | Pane::Runs
            | Pane::Machine
            | Pane::Config
            | Pane::Overview => played(size, &fixture::reviewing()),
        },
        "huge" => played(size, &huge()),
        "unicode" => played(size, &unicode()),
        "error" => {
            let reason = "authentication: the server answered 401 to every call";
            let mut app = played(size, &fixture::ended(EndStatus::Failed, reason));
            app.update(Msg::Client(ClientEvent::Lost("connection reset".into())));
            app.update(Msg::Tick(app.now + 3_000));
            app
        }
        other => panic!("no state {other}"),
    }
}

fn snapshot(pane: Pane, name: &str) {
    for size in SIZES {
        let mut out = String::new();
        for kind in ["empty", "loading", "typical", "huge", "unicode", "error"] {
            let mut app = state(kind, pane, size);
            show(&mut app, pane);
            out.push_str(&format!("──────── {kind}\n{}", styled(&app)));
        }
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), out);
    }
}

#[test]
fn steps() {
    snapshot(Pane::Steps, "steps");
}

#[test]
fn rollouts() {
    snapshot(Pane::Rollouts, "rollouts");
}

#[test]
fn transcript() {
    snapshot(Pane::Transcript, "transcript");
}

#[test]
fn patch() {
    snapshot(Pane::Patch, "patch");
}

#[test]
fn gate() {
    snapshot(Pane::Gate, "gate");
}

#[test]
fn curves() {
    snapshot(Pane::Curves, "curves");
}

#[test]
fn logs() {
    snapshot(Pane::Logs, "logs");
}

#[test]
fn measuring_and_the_end() {
    let mut out = String::new();
    for tape in [
        fixture::measuring(),
        fixture::ended(EndStatus::Completed, ""),
        fixture::ended(EndStatus::Cancelled, "asked for by ann@pts/1"),
    ] {
        out.push_str(&text(&played((120, 40), &tape)));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn a_review_in_the_middle_of_its_decisions() {
    let mut tape = fixture::reviewing();
    let at = fixture::step(3);
    let decided = [
        (0, Decision::Accept, "ann@pts/1"),
        (1, Decision::Reject { reason: "one example is enough".into() }, "bob@pts/7"),
        (2, Decision::Amend { content: "- Explain nothing.".into(), reason: String::new() }, "ann@pts/1"),
    ];
    for (rev, (edit, decision, by)) in decided.into_iter().enumerate() {
        let by = Author(by.into());
        tape.push(2_000, Event::EditDecided { at, edit, decision, by, rev: rev as u64 + 10 });
    }
    let mut app = played((120, 40), &tape);
    let clients = ["ann@pts/1", "bob@pts/7"]
        .map(|name| Client { name: Author(name.into()), role: WatchRole::Steer })
        .to_vec();
    hear(&mut app, HostLine::Clients(clients));
    press(&mut app, "4Jr");
    let selected = text(&app);
    key(&mut app, KeyCode::Enter);
    insta::assert_snapshot!(selected + &text(&app));
}

#[test]
fn overlays() {
    let mut out = String::new();
    for (keys, typed) in [("?", ""), (":", "undecided"), ("x", "too specific"), ("Q", "")] {
        let mut app = played((80, 24), &fixture::reviewing());
        press(&mut app, "4");
        press(&mut app, keys);
        press(&mut app, typed);
        out.push_str(&text(&app));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn tiny_terminals_get_a_summary() {
    let mut out = String::new();
    for size in [(59, 15), (60, 14), (24, 3), (1, 1)] {
        let shown = text(&played(size, &fixture::reviewing()));
        out.push_str(&format!("──────── {}x{}\n{shown}", size.0, size.1));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn without_colour_everything_is_still_said() {
    let app = played((80, 24), &fixture::reviewing());
    let plain = buffer(&app, Depth::None);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let coloured = buffer(&app, Depth::True);
    let symbols = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(symbols(&plain.content), symbols(&coloured.content));
}

#[test]
fn the_hint_bar_offers_only_what_works_now() {
    let hints = |tape: &Tape| {
        let mut app = played((120, 40), tape);
        press(&mut app, "4");
        text(&app).lines().last().unwrap().to_owned()
    };
    let closed = hints(&fixture::two_steps());
    assert!(!closed.contains("accept") && closed.contains("? help"), "{closed}");
    let open = hints(&fixture::reviewing());
    assert!(open.contains("a accept") && open.contains("enter submit"), "{open}");
}

#[test]
fn the_registry_is_the_help() {
    let mut app = played((120, 70), &fixture::reviewing());
    press(&mut app, "4?");
    let help = text(&app);
    for spec in actions() {
        // Panes have one row together.
        if spec.doc.starts_with("pane ") {
            continue;
        }
        if matches!(spec.scope, Scope::Patch | Scope::Global) {
            assert!(help.contains(spec.doc), "{}", spec.id);
        }
    }
    assert!(
        help.contains("  1 2 3 4 5 ") && help.contains("  6 7 8 9 ") && help.contains("also pgdn/pgup"),
        "{help}"
    );
    assert!(help.contains("ctl decide --accept") && !help.contains("scroll"), "{help}");
}

#[test]
fn help_on_a_small_screen_says_that_there_is_more() {
    let mut app = played((80, 24), &fixture::reviewing());
    press(&mut app, "4?");
    let help = text(&app);
    // `1–22 of N · j/k scroll`
    let (_, rest) = help.split_once("1–22 of ").unwrap_or_else(|| panic!("{help}"));
    let total: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(rest.contains(" · j/k scroll  / finds  esc closes"), "{help}");
    assert!(!help.contains('…'), "{help}");
    press(&mut app, &"j".repeat(80));
    let end = text(&app);
    let last = format!("{}–{total} of {total}", total - 21);
    assert!(end.contains(&last) && end.contains("leave the client; the run goes on"), "{end}");
    press(&mut app, "k");
    let before = format!("{}–{} of {total}", total - 22, total - 1);
    assert!(text(&app).contains(&before), "scrolling back needs no extra keys");
}

#[test]
fn a_candidate_measured_in_part_is_shown_as_a_bound() {
    let mut app = played((120, 40), &fixture::curtailed());
    let shown = text(&app);
    for words in [
        "✗ 2       ≤0.517 ≤0.000",
        "candidate   ≤0.517  ≤0.517  ≤0.550   54/60  at most: stopped early",
        "difference  ≤0.000  [-0.160, +0.060]  95 % interval on the 54 measured items",
        "gained and lost on the 54 measured items",
        "✗ 2     ≤0.517  ≤0.000   [-0.160, +0.060]    9    4   rejected, 54 of 60 items",
        "★ 1      0.517  +0.200",
    ] {
        assert!(shown.contains(words) || text(scrolled(&mut app)).contains(words), "{words}\n{shown}");
    }
    assert!(!shown.contains('●'), "a bound has no place on the axis of the interval");
    press(&mut app, "2z");
    let zoomed = text(&app);
    assert!(zoomed.contains("rejected, 54 of 60 items"), "{zoomed}");
}

#[test]
fn the_selection_curve_is_that_of_the_current_skill() {
    let app = played((120, 40), &fixture::two_steps());
    assert!(text(&app).contains("select 0.5167"), "step 2 was rejected at 0.467: {}", text(&app));
    let compact = text(&played((80, 24), &fixture::two_steps()));
    assert!(compact.contains("select 0.517"), "{compact}");
    let mut app = played((120, 40), &fixture::two_steps());
    press(&mut app, "6");
    for _ in 0..2 {
        key(&mut app, KeyCode::Left);
    }
    assert!(text(&app).contains("select 0.5167") && !text(&app).contains("select 0.467"));
}

#[test]
fn a_step_without_a_gate_says_what_happened() {
    let at = fixture::step(3);
    let rolled = || {
        let mut tape = fixture::two_steps();
        fixture::rollouts(&mut tape, at, 11, 20);
        tape
    };
    let analysis = |tape: &mut Tape| {
        tape.push(
            10,
            Event::AnalysisFinished {
                appendix_notes: Vec::new(),
                deep: false,
                success_patterns: Vec::new(),
                key: result_key("a"),
                at,
                source: planish::domain::SourceType::Failure,
                minibatch: 0,
                items: Vec::new(),
                patch: None,
                failures: Vec::new(),
                note: "no JSON".into(),
                usage: planish::domain::Usage::default(),
            },
        );
    };
    let gate = |mut tape: Tape, end: bool| {
        if end {
            tape.push(10, fixture::finished(EndStatus::Cancelled, ""));
        }
        let mut app = played((120, 40), &tape);
        press(&mut app, "5");
        let gate = text(&app);
        press(&mut app, "4");
        (gate, text(&app))
    };

    let mut tape = rolled();
    analysis(&mut tape);
    fixture::skip_step(&mut tape, at, Verdict::SkipNoPatches);
    for end in [false, true] {
        let (shown, patch) = gate(tape.clone(), end);
        assert!(shown.contains("step 3: no edits proposed by the analysis"), "{shown}");
        assert!(!shown.contains("comes after"), "{shown}");
        assert!(patch.contains("Step 3: no edits proposed."), "{patch}");
    }
    let mut tape = rolled();
    fixture::skip_step(&mut tape, at, Verdict::SkipNoPatches);
    assert!(gate(tape, true).0.contains("step 3: no edits proposed, as there was nothing to analyse"));

    let mut tape = rolled();
    tape.push(10, fixture::review_opened(at, fixture::edits()));
    let mut rejected = tape.clone();
    fixture::skip_step(&mut tape, at, Verdict::SkipNoChange);
    assert!(gate(tape, true).0.contains("step 3: skipped: the edits change nothing"));
    let none =
        fixture::edits().into_iter().map(|edit| RejectedEdit { edit, reason: String::new(), by: None });
    let close = ReviewClose::Submitted { by: fixture::ann() };
    rejected.push(
        10,
        Event::ReviewClosed { at, close, kept: Vec::new(), rejected: none.collect(), comments: Vec::new() },
    );
    fixture::skip_step(&mut rejected, at, Verdict::SkipNoChange);
    assert!(gate(rejected, true).0.contains("step 3: skipped: every edit was rejected in the review"));

    assert!(gate(rolled(), false).0.contains("step 3: rollout; the gate comes after the update"));
    let (shown, patch) = gate(rolled(), true);
    assert!(shown.contains("step 3: the run ended in phase rollout; nothing was measured"), "{shown}");
    assert!(patch.contains("The run ended before the step selected any."), "{patch}");
    assert!(gate(fixture::measuring(), true).0.contains("step 3: the run ended while it was measured"));
}

#[test]
fn the_test_counts_and_marks_each_skill() {
    let tape = fixture::ended(EndStatus::Completed, "");
    let wide = text(&played((120, 40), &tape));
    assert!(wide.contains("base ✓1 ✗19 · best ✓14 ✗6"), "{wide}");
    assert!(wide.contains("✓ city-3014 1.00  best  1.0s"), "{wide}");
    let mut app = played((120, 40), &tape);
    press(&mut app, "3G");
    assert!(text(&app).contains("✗ city-0411 0.00  base  1.0s"), "{}", text(&app));
    press(&mut app, "z");
    let zoomed = text(&app);
    assert!(zoomed.contains("base     0.00"), "{zoomed}");

    // A call in flight is marked by its path, whatever began last.
    let mut tape = fixture::two_steps();
    let at = fixture::step(2);
    tape.push(10, Event::PhaseStarted { at, phase: planish::domain::Phase::Test });
    let mut app = played((120, 40), &tape);
    for path in ["test_base/city-1#0", "test_best/city-2#0"] {
        let item = path[10..16].to_owned();
        hear(
            &mut app,
            HostLine::Live(planish::event::Live::CallStarted { path: path.into(), item, attempt: 1 }),
        );
    }
    let shown = text(&app);
    assert!(shown.contains("base ▸1 · best ▸1") && shown.contains("▸ city-2   best waiting"), "{shown}");
}

#[test]
fn a_rejected_step_kept_no_edit() {
    let shown = text(&played((120, 40), &fixture::two_steps()));
    assert!(shown.contains("✗ 2        0.467 -0.050  0/4"), "{shown}");
    assert!(shown.contains("★ 1        0.517 +0.200  3/4"), "{shown}");
}

#[test]
fn throughput_stays_readable_when_nothing_runs() {
    for size in [(120, 40), (80, 24)] {
        let mut app = played(size, &fixture::two_steps());
        for live in fixture::live() {
            hear(&mut app, HostLine::Live(live));
        }
        let rate = planish::event::Live::Throughput { tokens_per_s: 0.0, in_flight: 0 };
        hear(&mut app, HostLine::Live(rate));
        let idle = text(&app);
        assert!(idle.contains("111.4") && idle.contains("idle"), "{idle}");
        let event = fixture::finished(EndStatus::Cancelled, "");
        let end = planish::event::Record { seq: app.state.seq + 1, at: app.now, event };
        hear(&mut app, HostLine::Event(Box::new(end)));
        let ended = text(&app);
        assert!(ended.contains("104.2") && ended.contains("mean"), "{ended}");
    }
}

/// What follows the second step, and the first step of the other modes, in the words of the Logs pane and of `--plain`.
#[test]
fn words_of_stages_and_modes() {
    let suggested = fixture::epochs::rewritten("rewrite_from_suggestions", fixture::epochs::suggestions());
    let mut noted = fixture::epochs::rewritten("full_rewrite_minibatch", fixture::epochs::whole_skills());
    fixture::epochs::noted(&mut noted, fixture::epochs::at(1));
    let mut out = String::new();
    for (tape, from) in [(fixture::epochs::ended(), 2), (suggested, 0), (noted, 0)] {
        let mut finished = 0;
        for record in &tape.records {
            finished += usize::from(matches!(record.event, Event::StepFinished { .. }));
            if finished >= from
                && !matches!(
                    record.event,
                    Event::EvaluationItemFinished { .. } | Event::RolloutFinished { .. }
                )
            {
                out.push_str(&planish::plain::describe(record));
                out.push('\n');
            }
        }
        out.push_str("────────\n");
    }
    insta::assert_snapshot!(out);
}

#[test]
fn the_report_tells_stages_and_the_final_selection() {
    let state = planish::event::RunState::fold(&fixture::epochs::ended().records);
    let text = planish::plain::report(&state).join("\n");
    let part = |title: &str| text.split("\n## ").find(|part| part.starts_with(title)).unwrap().to_owned();
    insta::assert_snapshot!(format!("{}\n{}", part("Result"), part("Between epochs")));
    let told = planish::plain::report_json(&state);
    assert_eq!(told["stages"][3]["pairs"]["improved"], 2);
    assert_eq!(told["final_selection"]["promoted"], false);
    assert!(!told["stages"].to_string().contains("Give the name alone"), "no text of a model");
}

/// The Gate pane at its end.
fn scrolled(app: &mut App) -> &App {
    press(app, "5G");
    app
}

#[test]
fn a_closed_review_says_how_it_ended() {
    let mut tape = fixture::reviewing();
    let close = ReviewClose::Submitted { by: Author("bob@pts/7".into()) };
    let at = fixture::step(3);
    tape.push(
        5,
        Event::ReviewClosed { at, close, kept: fixture::edits(), rejected: Vec::new(), comments: Vec::new() },
    );
    let mut app = played((120, 40), &tape);
    press(&mut app, "4");
    let shown = text(&app);
    assert!(shown.contains("submitted by bob@pts/7") && !shown.contains("accepts in"), "{shown}");
}

#[test]
fn money_spent_and_the_caps_are_shown_where_there_are_any() {
    let mut tape = fixture::two_steps();
    let cap = |key: &str, new: serde_json::Value| Retuned { key: key.into(), old: 0.into(), new };
    let changes = vec![cap("budget.max_usd", 1.0.into()), cap("budget.max_calls", 500.into())];
    tape.push(1, Event::ConfigChanged { keys: Vec::new(), changes });
    let usage = Usage { calls: 2, prompt_tokens: 900, nanodollars: 12_300_000, ..Usage::default() };
    tape.push(1, Event::AttemptsSpent { role: Role::Target, stage: "rollout".into(), usage });
    let mut app = played((200, 60), &tape);
    show(&mut app, Pane::Overview);
    let shown = text(&app);
    for words in ["$0.0123 of $1.00", "without a reply", "of 500 calls"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut free = played((200, 60), &fixture::two_steps());
    show(&mut free, Pane::Overview);
    assert!(!text(&free).contains("$0"), "{}", text(&free));
}
