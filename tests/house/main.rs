//! Rules of the house that no compiler checks: import direction, file length, headers, tracked text.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules in import order: each may use only those before it (and `tui` never `engine`).
const ORDER: [&str; 17] = [
    "domain",
    "text",
    "config",
    "event",
    "store",
    "skill",
    "model",
    "env",
    "optim",
    "gate",
    "telemetry",
    "engine",
    "host",
    "client",
    "plain",
    "tui",
    "cli",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files git tracks or would track, relative to the root.
fn project_files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "git ls-files failed: the house tests need a git checkout");
    let mut files: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .split('\0')
        .filter(|name| !name.is_empty() && root().join(name).is_file())
        .map(PathBuf::from)
        .collect();
    files.sort();
    assert!(files.len() > 50, "only {} files found", files.len());
    files
}

fn rust_sources() -> Vec<(PathBuf, String)> {
    let sources: Vec<_> = project_files()
        .into_iter()
        .filter(|file| file.starts_with("src") && file.extension().is_some_and(|ext| ext == "rs"))
        .map(|file| {
            let text = std::fs::read_to_string(root().join(&file)).unwrap();
            (file, text)
        })
        .collect();
    assert!(!sources.is_empty());
    sources
}

/// The part of a source file before its test module.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn is_test_file(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
}

fn module_of(file: &Path) -> Option<String> {
    let name = file.components().nth(1)?.as_os_str().to_str()?.to_owned();
    ORDER.contains(&name.as_str()).then_some(name)
}

/// Names of top-level modules that `text` reaches through `crate::`.
fn imports(text: &str) -> Vec<&'static str> {
    ORDER.into_iter().filter(|module| has_word(text, &format!("crate::{module}"))).collect()
}

/// Whether `word` occurs with no letter, digit or underscore on either side.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let apart = |at: usize| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !part(before) && !part(after)
    };
    text.match_indices(word).any(|(at, _)| apart(at))
}

#[test]
fn imports_go_one_way() {
    let mut faults = Vec::new();
    for (file, text) in rust_sources() {
        let Some(module) = module_of(&file) else { continue };
        if is_test_file(&file) {
            continue;
        }
        let place = ORDER.iter().position(|name| *name == module).unwrap();
        for used in imports(without_tests(&text)) {
            let used_place = ORDER.iter().position(|name| *name == used).unwrap();
            if used_place > place || (module == "tui" && used == "engine") {
                faults.push(format!("{} uses crate::{used}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "imports against the order of DESIGN 3:\n{}", faults.join("\n"));
}

#[test]
fn the_library_never_names_libtorch() {
    for (file, text) in rust_sources() {
        if !file.starts_with("src/bin/planish-torch") {
            assert!(!has_word(&text, "tch"), "{} names tch: the client would link libtorch", file.display());
        }
    }
}

#[test]
fn optimiser_steps_cannot_open_held_out_items() {
    for (file, text) in rust_sources() {
        if file.starts_with("src/optim") || file.starts_with("src/model") {
            assert!(!text.contains("Evaluator"), "{} could open held-out content", file.display());
        }
    }
    let holders: Vec<_> = rust_sources()
        .into_iter()
        .filter(|(file, _)| !is_test_file(file))
        .filter(|(_, text)| without_tests(text).contains("Evaluator::for_evaluation_stage()"))
        .map(|(file, _)| file.display().to_string())
        .collect();
    for holder in &holders {
        let allowed = ["src/engine/evaluation.rs", "src/engine/score_only.rs"];
        assert!(allowed.contains(&holder.as_str()), "{holder} opens held-out items");
    }
}

#[test]
fn files_stay_short_and_say_what_they_own() {
    let mut faults = Vec::new();
    for (file, text) in rust_sources() {
        if is_test_file(&file) {
            continue;
        }
        let lines = without_tests(&text).lines().count();
        if lines > 800 {
            faults.push(format!("{} has {lines} lines without its tests", file.display()));
        }
        if !text.starts_with("//!") {
            faults.push(format!("{} does not begin with what it owns", file.display()));
        }
        let stem = file.file_stem().unwrap().to_string_lossy();
        if ["utils", "util", "helpers", "misc", "common"].contains(&stem.as_ref()) {
            faults.push(format!("{} is not a noun of the trade", file.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Spinners cost bytes and unsettle people: one module may move by itself, and it stands still on request.
#[test]
fn only_one_module_moves_by_itself() {
    for (file, text) in rust_sources() {
        let spins = ["⠋", "⠹", "◐◓", "|/-"].iter().any(|frame| without_tests(&text).contains(frame));
        assert!(!spins || file.ends_with("tui/motion.rs"), "{} has a spinner of its own", file.display());
    }
}

#[test]
fn tracked_text_names_no_registry_and_no_machine_path() {
    // Assembled from pieces so that this file passes its own test.
    let forbidden = [
        ["pypi", ".org"].concat(),
        ["pythonhosted", ".org"].concat(),
        ["crates", ".io/api"].concat(),
        ["static.crates", ".io"].concat(),
        ["index.crates", ".io"].concat(),
        ["registry.npm", "js.org"].concat(),
        ["deb.", "debian.org"].concat(),
        ["download.", "pytorch.org"].concat(),
        ["hugging", "face.co"].concat(),
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
    ];
    let mut faults = Vec::new();
    for file in project_files() {
        let bytes = std::fs::read(root().join(&file)).unwrap();
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if file == Path::new("Cargo.lock") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for word in &forbidden {
                if line.contains(word.as_str()) {
                    faults.push(format!("{}:{}: {word}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_client_does_not_need_libtorch() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_planish")).output().unwrap();
    let needed = String::from_utf8_lossy(&output.stdout);
    assert!(needed.contains("libc.so"), "ldd printed: {needed}");
    assert!(!needed.contains("torch"), "planish links libtorch:\n{needed}");
}
