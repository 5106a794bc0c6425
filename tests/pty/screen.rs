//! Settings of the screen on a real terminal: read at start and again when they change, given back on leaving.

use super::place::Place;
use super::{Terminal, on_terminal_with};

fn demo(place: &Place, arguments: &[&str]) -> Terminal {
    let all = [&["replay", "--demo", "--speed", "inf"], arguments].concat();
    on_terminal_with(place, &all, "xterm-256color", |command| {
        command.env("XDG_CONFIG_HOME", place.path("config"));
        command.env_remove("NO_COLOR");
    })
}

fn settings(place: &Place, name: &str, text: &str) {
    let folder = place.path("config/planish");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_again_when_they_change() {
    let place = Place::new().await;
    settings(&place, "keymap.toml", "[app]\nhelp = [\"f1\", \"H\"]\n");
    let mut terminal = demo(&place, &[]);
    terminal.wait_for("END  completed");
    terminal.wait_for("f1 help");
    settings(&place, "keymap.toml", "[app]\nhelp = [\"ctrl-y\", \"ctrl-y ctrl-y\"]\nhelo = []\n");
    terminal.wait_for("keymap.toml:3: app.helo: no such action");
    terminal.send("H");
    terminal.wait_for("Help: Gate");
    terminal.send("\x1b");
    settings(&place, "keymap.toml", "[app]\nhelp = [\"ctrl-g\"]\n");
    terminal.wait_for("the settings can be used again");
    terminal.send("\x07");
    terminal.wait_for("Help: Gate");
    terminal.send("q");
    terminal.wait_until("the help is gone", |screen, _| !screen.contents().contains("Help: Gate"));
    terminal.send("q");
    let (code, _) = terminal.wait();
    assert_eq!(code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_said_before_the_screen_is_taken() {
    let place = Place::new().await;
    settings(&place, "ui.toml", "[ui]\nfps = 500\n");
    let (code, screen) = demo(&place, &[]).wait();
    assert_eq!(code, 2, "{screen}");
    assert!(screen.contains("ui.toml:2: ui.fps: give a whole number from 1 to 60"), "{screen}");
    settings(&place, "ui.toml", "[ui]\n");
    let (code, screen) = demo(&place, &["--theme", "drak"]).wait();
    assert!(code == 2 && screen.contains("did you mean dark?"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_is_exported_and_nothing_is_overwritten() {
    let place = Place::new().await;
    let mut terminal = demo(&place, &["--theme", "light"]);
    terminal.wait_for("END  completed");
    for _ in 0..2 {
        terminal.send("E");
        terminal.wait_for("screen as png");
        terminal.send("4");
        terminal.wait_until("the file is named", |screen, _| {
            screen.contents().contains("written: exports/screen-")
                && !screen.contents().contains("screen as png")
        });
        terminal.send("?");
        terminal.wait_for("Help: Gate");
        terminal.send("\x1b");
        terminal.wait_until("the help is gone", |screen, _| !screen.contents().contains("Help: Gate"));
    }
    terminal.send("q");
    assert_eq!(terminal.wait().0, 0);
    // Also of the one that may still have been under way.
    let files: Vec<_> = std::fs::read_dir(place.path("exports")).unwrap().flatten().collect();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| std::fs::read(file.path()).unwrap().ends_with(b"IEND\xaeB`\x82")));
}
