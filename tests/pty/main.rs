//! The program on a real (pseudo-)terminal.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../headless/place.rs"]
#[allow(dead_code)]
mod place;
#[path = "../support/pty.rs"]
#[allow(dead_code)]
mod pty;
mod screen;
mod ssh;
mod workbench;

use place::{PLANISH, Place, script};
use portable_pty::CommandBuilder;
use pty::{Frame, Terminal};
use serde_json::json;

fn on_terminal(place: &Place, arguments: &[&str], term: &str) -> Terminal {
    on_terminal_with(place, arguments, term, |_| {})
}

fn on_terminal_with(
    place: &Place,
    arguments: &[&str],
    term: &str,
    set: impl FnOnce(&mut CommandBuilder),
) -> Terminal {
    let mut command = CommandBuilder::new(PLANISH);
    command.args(arguments);
    command.cwd(place.path(""));
    command.env("TERM", term);
    for (name, value) in place.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    set(&mut command);
    let scratch = tempfile::tempdir_in(place.path("")).unwrap().keep();
    Terminal::spawn(command, &scratch, 120, 40)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_terminal_gets_plain_lines() {
    let place = Place::new().await;
    let terminal = on_terminal(&place, &["replay", "--demo", "--speed", "inf"], "dumb");
    let (code, screen) = terminal.wait();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("run completed") || screen.contains("completed"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_terminal_leaves_the_run_going() {
    let mut slow = script();
    slow["latency_ms"] = json!(20);
    let place = Place::with(slow).await;
    let mut terminal = on_terminal(&place, &["run", "run.toml", "--name", "one"], "dumb");
    terminal.wait_for("watching one");
    terminal.hang_up();
    let (_, screen) = terminal.wait();
    assert!(!screen.contains("error"), "{screen}");
    let attached = place.planish(&["attach", "one"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    let shown = place.planish(&["ctl", "one", "show", "--json"]).json();
    assert_eq!(shown[0]["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_the_client_and_the_run_goes_on() {
    let place = Place::new().await;
    let mut terminal =
        on_terminal(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"], "dumb");
    terminal.wait_for("watching one");
    terminal.send("\u{3}");
    terminal.wait_for("the run goes on");
    let (code, _) = terminal.wait();
    assert_eq!(code, 130);
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
    assert_eq!(place.planish(&["attach", "one"]).code, Some(130));
}

#[test]
fn the_driver_shows_screens_sizes_and_frames() {
    let scratch = tempfile::tempdir().unwrap();
    let mut shell = CommandBuilder::new("/bin/sh");
    shell.arg("-c");
    shell.arg(
        r#"printf '\033[2J\033[3;5Hhello'; echo "frame 1 seq 9" > "$PLANISH_FRAME_ACK"; read key; \
           stty size; echo "frame 2 seq 9" > "$PLANISH_FRAME_ACK"; read key; exit 3"#,
    );
    let mut terminal = Terminal::spawn(shell, scratch.path(), 80, 24);
    terminal.wait_for("hello");
    terminal.wait_for_frame_after(Frame::default());
    let first = terminal.frame();
    assert_eq!((first.number, first.seq), (1, 9));
    assert!(terminal.screen().starts_with("\n\n    hello"), "{:?}", terminal.screen());
    terminal.resize(100, 30);
    terminal.send("\n");
    terminal.wait_for("30 100");
    terminal.wait_for_frame_after(first);
    assert!(terminal.bytes() > 0);
    terminal.send("\n");
    assert_eq!(terminal.wait().0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_in_the_workbench_is_measured_as_decided() {
    let place = Place::new().await;
    let arguments = ["run", "run.toml", "--name", "one", "-o", "review.mode=manual"];
    let mut terminal = on_terminal(&place, &arguments, "xterm-256color");
    // Select the second edit, reject it with a reason, submit the rest.
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4Jx");
    terminal.wait_for("the optimiser is told");
    terminal.send("too vague");
    terminal.wait_for("too vague");
    terminal.send("\r");
    terminal.wait_for("[REVIEW 1]");
    terminal.send("\r");
    terminal.wait_for("Submit the review of step 1?");
    let before = terminal.frame();
    terminal.send("\r");
    let ended = |seq: u64| {
        let listed = place.planish(&["ls", "--json"]).json();
        listed[0]["status"] == "completed"
            && place.planish(&["ctl", "one", "show", "--json"]).json()[0]["seq"] == seq
    };
    terminal.wait_until("the end of the run", |_, frame| frame > before && ended(frame.seq));
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);

    let events = place.planish(&["ctl", "one", "events", "--content"]).json();
    let find =
        |kind: &str| events.iter().find_map(|event| event.get(kind)).unwrap_or_else(|| panic!("no {kind}"));
    let decided = find("edit_decided");
    assert_eq!(
        (&decided["edit"], &decided["decision"]["reject"]["reason"]),
        (&json!(1), &json!("too vague"))
    );
    assert!(decided["by"].as_str().unwrap().starts_with("tester@pts/"), "{decided}");
    let candidate = &find("skill_updated")["candidate"];
    let text = candidate["text"].as_str().unwrap();
    assert!(text.contains("All cards are red.") && !text.contains("Be brief."), "{text}");
    assert_eq!(find("gate_decided")["decision"]["candidate_hash"], candidate["hash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn accepting_all_and_submitting_in_one_burst_goes_through() {
    let place = Place::new().await;
    let arguments = ["run", "run.toml", "--name", "one", "-o", "review.mode=manual"];
    let mut terminal = on_terminal(&place, &arguments, "xterm-256color");
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4A\r\r");
    terminal.wait_until("the end of the run", |_, _| {
        place.planish(&["ls", "--json"]).json()[0]["status"] == "completed"
    });
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
    let events = place.planish(&["ctl", "one", "events", "--content"]).json();
    let n = |kind: &str| events.iter().filter(|event| event.get(kind).is_some()).count();
    assert_eq!((n("edit_decided"), n("review_submitted")), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workbench_without_a_run_starts_one_by_its_form() {
    let place = Place::new().await;
    std::fs::create_dir(place.path("configs")).unwrap();
    let config = place.config().replace("\"data.json\"", "\"../data.json\"");
    place.write("configs/cards.toml", &config.replace("\"seed.md\"", "\"../seed.md\""));
    let mut terminal = on_terminal(&place, &[], "xterm-256color");
    terminal.wait_for("no run attached");
    terminal.wait_for("No runs here yet");
    terminal.send("c");
    terminal.wait_for("configs/cards.toml");
    terminal.send("\r");
    terminal.wait_for("3 steps = 1 epoch");
    terminal.send("one");
    terminal.wait_for("run one");
    terminal.send("\trun.nam=");
    terminal.wait_for("unknown key, did you mean run.name?");
    terminal.send("\u{15}env.workers=2\r");
    terminal.wait_for("✓ env.workers=2");
    terminal.wait_for("run one");
    terminal.send("\u{13}");
    terminal.wait_for("END  completed");
    terminal.send("1");
    terminal.wait_for("completed · attached");
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
    let listed = place.planish(&["ls", "--json", "name:one", "status:done"]).json();
    assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("one")));
    let started = place.planish(&["ctl", "one", "events", "--limit", "3", "--content"]).json();
    let config = started.iter().find_map(|event| event.get("run_started")).unwrap();
    assert_eq!(config["config"]["env"]["workers"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_resumed_by_the_picker() {
    let place = Place::new().await;
    let done = place.planish(&["run", "run.toml", "--name", "one", "-o", "review.mode=manual", "--detach"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut terminal = on_terminal(&place, &["attach", "one"], "xterm-256color");
    terminal.wait_for("[REVIEW 2]");
    let pid = done.json()[0]["launch"]["pid"].as_u64().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    terminal.wait_for("☠ one");
    terminal.send("gr");
    terminal.wait_for("goes on with the configuration it began with");
    terminal.send("\r");
    terminal.wait_until("a living host", |screen, _| {
        let screen = screen.contents();
        screen.contains("[REVIEW 2]") && !screen.contains("reconnecting") && !screen.contains("Resume a run")
    });
    terminal.send("4A\r\r");
    terminal.wait_for("END  completed");
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
}

/// `--plain` on a terminal: questions that a screen reader can read, answered by numbers.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_review_is_asked_in_numbered_questions() {
    let place = Place::new().await;
    let editor = place.path("editor.sh");
    std::fs::write(&editor, "#!/bin/sh\necho 'All cards are red, always.' > \"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = CommandBuilder::new(PLANISH);
    command.args(["run", "run.toml", "--name", "one", "--plain", "-o", "review.mode=manual"]);
    command.cwd(place.path(""));
    command.env("TERM", "xterm-256color");
    for (name, value) in place.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.env_remove("VISUAL");
    command.env("EDITOR", &editor);
    let scratch = place.path("plain-terminal");
    std::fs::create_dir(&scratch).unwrap();
    let mut terminal = Terminal::spawn(command, &scratch, 160, 50);
    terminal.wait_for("Edit 1 of 2, append, supported by");
    terminal.send("5\n");
    terminal.wait_for("Text to add at the end:");
    terminal.send("3\n");
    terminal.wait_for("Edit 2 of 2");
    // Somebody else is first: the question is taken back.
    assert_eq!(place.planish(&["ctl", "one", "decide", "2", "--reject", "--reason", "vague"]).code, Some(0));
    terminal.wait_for("Edit 2 was rejected by");
    terminal.send("\n");
    terminal.wait_for("Submit the review of step 1? 1 accepted, 1 rejected.");
    let asked = terminal.screen();
    assert!(!asked.contains(['│', '─', '╭', '▸']), "{asked}");
    terminal.send("1\n");
    let (code, screen) = terminal.wait();
    assert_eq!(code, 0, "{screen}");
    let events = place.planish(&["ctl", "one", "events", "--content"]).json();
    let updated = events.iter().find_map(|event| event.get("skill_updated")).unwrap();
    let text = updated["candidate"]["text"].as_str().unwrap();
    assert!(text.contains("All cards are red, always.") && !text.contains("Be brief."), "{text}");
}
