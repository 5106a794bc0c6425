//! Traces that the real programs wrote against a scripted server, scrubbed, and what is read out of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use planish::model::exec::{Cap, Cli, Draft, End, Ending, FailureClass, Trace, read_line};
use serde::Deserialize;

/// How the program ended when the trace was recorded; without an exit code it was cut by the clock.
#[derive(Deserialize)]
struct Ended {
    exit: Option<i32>,
    stderr: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces")
}

fn cli(folder: &str) -> Cli {
    let program = folder.split('-').next().unwrap();
    Cli::ALL.into_iter().find(|cli| format!("{cli:?}").to_lowercase() == program).unwrap()
}

fn read(cli: Cli, lines: &str) -> Draft {
    let mut draft = Draft::default();
    lines.lines().for_each(|line| read_line(cli, line, &mut draft));
    draft
}

/// All recorded traces: folder, name, trace.
fn recorded() -> Vec<(String, String, Trace)> {
    let mut traces = Vec::new();
    let mut folders: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let program = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let ends: BTreeMap<String, Ended> =
            serde_json::from_slice(&std::fs::read(folder.join("ends.json")).unwrap()).unwrap();
        for (name, ended) in ends {
            let lines = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
            let ending = ended.exit.map_or(Ending::Cut(Cap::WallClock), |code| Ending::Exited(Some(code)));
            let trace = read(cli(&program), &lines).finish(ending, &ended.stderr);
            traces.push((program.clone(), name, trace.of_workspace_job(cli(&program))));
        }
    }
    traces
}

#[test]
fn recorded_traces_read_the_same() {
    for (program, name, trace) in recorded() {
        insta::assert_snapshot!(format!("{program}_{name}"), serde_json::to_string_pretty(&trace).unwrap());
    }
}

#[test]
fn every_program_has_every_ending() {
    let traces = recorded();
    for (name, want) in [
        ("http401", FailureClass::Auth),
        ("http403", FailureClass::Auth),
        ("http400", FailureClass::Model),
        ("rate_limited", FailureClass::RateLimit),
    ] {
        for (program, _, trace) in traces.iter().filter(|(_, other, _)| other == name) {
            let End::Failed { class, message } = &trace.end else {
                panic!("{program} {name}: {:?}", trace.end)
            };
            assert_eq!(*class, want, "{program} {name}: {message}");
        }
    }
    for (program, name, trace) in &traces {
        match (program.as_str(), name.as_str()) {
            (_, "ok") => {
                assert_eq!(trace.end, End::Completed, "{program}");
                assert_eq!(trace.final_text, "The tally is done.\n<answer>42</answer>", "{program}");
                assert_eq!((trace.tool_calls, trace.usage.calls), (2, 3), "{program}");
            }
            (_, "empty") => assert_eq!(trace.end, End::Empty, "{program}"),
            ("codex-0.171.0", "no_tools") => {
                assert!(matches!(&trace.end, End::Failed { class: FailureClass::Sandbox, .. }));
            }
            (_, "no_tools") => assert_eq!((&trace.end, trace.tool_calls), (&End::Completed, 0), "{program}"),
            _ => {}
        }
    }
    assert_eq!(traces.len(), 6 * 7);
}
