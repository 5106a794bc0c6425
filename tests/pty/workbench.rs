//! Whole sittings at the workbench: from the launch to the last key, over lost hosts, terminals and sizes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::place::{PLANISH, Place, script};
use crate::pty::Terminal;
use crate::{on_terminal, on_terminal_with};

const XTERM: &str = "xterm-256color";
const TWO_STEPS: [&str; 8] =
    ["run", "run.toml", "--name", "one", "-o", "review.mode=manual", "-o", "train.num_epochs=2"];

/// An `$EDITOR` that adds a word to the first line.
fn editor(place: &Place) -> PathBuf {
    let path = place.path("editor");
    std::fs::write(&path, "#!/bin/sh\nsed -i '1s/$/ Always./' \"$1\"\n").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

fn events(place: &Place) -> Vec<Value> {
    place.planish(&["ctl", "one", "events", "--content"]).json()
}

fn find<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().find_map(|event| event.get(kind)).unwrap_or_else(|| panic!("no {kind}"))
}

fn submit(terminal: &mut Terminal, step: u32) {
    terminal.send("\r");
    terminal.wait_for(&format!("Submit the review of step {step}?"));
    terminal.send("\r");
}

fn kill_host(place: &Place) {
    let text = std::fs::read_to_string(place.path("runs/one/host.json")).unwrap();
    let pid = serde_json::from_str::<Value>(&text).unwrap()["pid"].as_i64().unwrap();
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// Even cards are answered once the skill says that cards are red, odd ones never: every step has something to learn.
fn never_done() -> Value {
    let mut script = script();
    let rules = script["rules"].as_array_mut().unwrap();
    rules[2]["matches"] = json!("card \\d*[02468]\\?");
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_review_amend_submit_gate_override_quit() {
    let place = Place::with(never_done()).await;
    let editor = editor(&place);
    let set = |command: &mut CommandBuilder| command.env("EDITOR", &editor);
    let mut terminal = on_terminal_with(&place, &TWO_STEPS, XTERM, set);
    terminal.wait_for("[REVIEW 2]");
    // The first edit is amended in the editor, the second accepted.
    terminal.send("4e");
    terminal.wait_for("[REVIEW 1]");
    terminal.wait_for("All cards are red. Always.");
    terminal.send("Ja");
    terminal.wait_for("[REVIEW submit]");
    submit(&mut terminal, 1);
    // The review of the second step waits; the gate's word on the first one is overruled meanwhile.
    terminal.wait_for("[REVIEW 2]");
    terminal.send("2[");
    terminal.send("5");
    terminal.wait_for("step 1 accepted");
    terminal.send("O");
    terminal.wait_for("Overrule the gate at step 1");
    terminal.send("3");
    terminal.wait_for("Why?");
    terminal.send("it only memorises");
    terminal.wait_for("it only memorises");
    terminal.send("\r");
    terminal.wait_until("the override in the journal", |_, _| {
        events(&place).iter().any(|event| event.get("override_requested").is_some())
    });
    // The second step proposes the same again and is rejected by its reviewer, so the override has its way.
    terminal.send("4f");
    terminal.wait_for("step 2  2 edits");
    terminal.send("X");
    terminal.wait_for("why?");
    terminal.send("\r");
    terminal.wait_for("[REVIEW submit]");
    submit(&mut terminal, 2);
    terminal.wait_until("the override at its boundary", |_, _| {
        events(&place).iter().any(|event| event.get("override_applied").is_some())
    });
    terminal.send("Q");
    terminal.wait_for("Stop run one?");
    terminal.send("\r");
    terminal.wait_for("END  stopped");
    terminal.send("q");
    assert_eq!(terminal.wait().0, 130);
    let events = events(&place);
    let amended = &find(&events, "edit_decided")["decision"]["amend"]["content"];
    assert_eq!(amended, "All cards are red. Always.");
    let asked = find(&events, "override_requested");
    assert_eq!((&asked["ruling"], &asked["reason"]), (&json!("reject"), &json!("it only memorises")));
    assert!(asked["by"].as_str().unwrap().starts_with("tester@pts/"), "{asked}");
    let applied = find(&events, "override_applied");
    assert_eq!(applied["current_hash"], find(&events, "run_started")["skill"]["hash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_is_come_back_to() {
    let place = Place::new().await;
    let mut first = on_terminal(&place, &TWO_STEPS, XTERM);
    first.wait_for("[REVIEW 2]");
    first.send("4x");
    first.wait_for("the optimiser is told");
    first.send("too vague\r");
    first.wait_for("[REVIEW 1]");
    first.hang_up();
    first.wait();
    let mut second = on_terminal(&place, &["attach", "one"], XTERM);
    second.wait_for("[REVIEW 1]");
    second.wait_for("too vague");
    second.send("q");
    assert_eq!(second.wait().0, 0);
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_being_typed_survives_its_host() {
    let place = Place::new().await;
    let mut terminal = on_terminal(&place, &TWO_STEPS, XTERM);
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4x");
    terminal.wait_for("the optimiser is told");
    terminal.send("far too va");
    terminal.wait_for("far too va");
    kill_host(&place);
    terminal.wait_for("reconnecting");
    terminal.send("gue");
    terminal.wait_for("far too vague");
    assert_eq!(place.planish(&["resume", "one", "--detach"]).code, Some(0));
    terminal.wait_until("the link again", |screen, _| !screen.contents().contains("reconnecting"));
    terminal.send("\r");
    terminal.wait_for("[REVIEW 1]");
    assert_eq!(find(&events(&place), "edit_decided")["decision"]["reject"]["reason"], "far too vague");
    terminal.send("q");
    terminal.wait();
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_terminals_see_each_others_decisions() {
    let place = Place::new().await;
    let mut ann = on_terminal(&place, &TWO_STEPS, XTERM);
    ann.wait_for("[REVIEW 2]");
    let mut bob = on_terminal(&place, &["attach", "one"], XTERM);
    bob.wait_for("[REVIEW 2]");
    ann.send("4a");
    bob.wait_for("[REVIEW 1]");
    bob.wait_for("tester@pts/");
    bob.send("4Ja");
    ann.wait_for("[REVIEW submit]");
    bob.send("q");
    bob.wait();
    submit(&mut ann, 1);
    ann.wait_until("the next step", |_, _| {
        events(&place).iter().any(|event| event.get("step_finished").is_some())
    });
    ann.send("q");
    ann.wait();
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_sizes_ends_in_a_whole_screen() {
    let place = Place::new().await;
    let mut terminal = on_terminal(&place, &TWO_STEPS, XTERM);
    terminal.wait_for("[REVIEW 2]");
    for n in 0..60u16 {
        terminal.resize(20 + n * 37 % 240, 5 + n * 13 % 70);
    }
    let before = terminal.frame();
    terminal.resize(80, 24);
    terminal.wait_for_frame_after(before);
    terminal.wait_until("a whole screen of 80x24", |screen, _| {
        let rows: Vec<String> = screen.rows(0, 80).collect();
        rows.len() == 24 && rows[0].contains("planish one") && rows[23].contains("q quit")
    });
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_is_no_colour() {
    let place = Place::new().await;
    let set = |command: &mut CommandBuilder| command.env("NO_COLOR", "1");
    let mut terminal = on_terminal_with(&place, &TWO_STEPS, XTERM, set);
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4");
    terminal.wait_until("a screen without colours", |screen, frame| {
        let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        frame.number > 1
            && cells.all(|cell| {
                cell.fgcolor() == vt100::Color::Default && cell.bgcolor() == vt100::Color::Default
            })
    });
    terminal.send("q");
    terminal.wait();
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_tmux() {
    let place = Place::new().await;
    let socket = format!("planish-test-{}", std::process::id());
    let mut command = CommandBuilder::new("tmux");
    command.args(["-L", &socket, "-f", "/dev/null", "new-session", "-x", "120", "-y", "40", PLANISH]);
    command.args(TWO_STEPS);
    command.cwd(place.path(""));
    command.env("TERM", XTERM);
    command.env_remove("TMUX");
    for (name, value) in place.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let scratch = place.path("terminal-tmux");
    std::fs::create_dir(&scratch).unwrap();
    let mut terminal = Terminal::spawn(command, &scratch, 120, 41);
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4A");
    terminal.wait_for("[REVIEW submit]");
    terminal.resize(100, 35);
    terminal.wait_until("the smaller screen", |screen, _| {
        screen.rows(0, 100).any(|row| row.contains("q quit")) && screen.contents().contains("[REVIEW submit]")
    });
    terminal.send("q");
    terminal.wait();
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}

/// A shell with jobs, and the workbench as one of them.
#[tokio::test(flavor = "multi_thread")]
async fn control_z_in_the_pager_gives_the_shell_back_and_fg_goes_on() {
    let place = Place::new().await;
    let pager = place.path("pager");
    std::fs::write(&pager, "#!/bin/sh\necho PAGING\nread line\n").unwrap();
    std::fs::set_permissions(&pager, Permissions::from_mode(0o755)).unwrap();
    let mut command = CommandBuilder::new("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.cwd(place.path(""));
    command.env("TERM", XTERM);
    command.env("PAGER", &pager);
    command.env("PS1", "SHELL> ");
    for (name, value) in place.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let scratch = place.path("terminal-jobs");
    std::fs::create_dir(&scratch).unwrap();
    let mut terminal = Terminal::spawn(command, &scratch, 120, 40);
    terminal.wait_for("SHELL>");
    terminal.send(&format!("{PLANISH} {}\n", TWO_STEPS.join(" ")));
    terminal.wait_for("[REVIEW 2]");
    terminal.send("4o");
    terminal.wait_for("PAGING");
    terminal.send("\u{1a}");
    terminal.wait_for("Stopped");
    terminal.send("fg\n");
    terminal.wait_for("fg");
    terminal.send("\n");
    terminal.wait_for("[REVIEW 2]");
    terminal.send("q");
    terminal.wait_for("SHELL>");
    terminal.send("exit\n");
    terminal.wait();
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
}
