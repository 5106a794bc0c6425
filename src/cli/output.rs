//! Lines on stdout and stderr. A closed pipe ends the command quietly; control characters never reach a terminal.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::Failure;

/// Prints one line of text.
pub fn line(text: &str) -> Result<(), Failure> {
    write(inert(text))
}

/// Prints one JSON line.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    write(serde_json::to_string(value).map_err(|error| Failure::run(error.to_string()))?)
}

fn write(mut text: String) -> Result<(), Failure> {
    text.push('\n');
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Quiet),
        Err(error) => Err(Failure::run(format!("cannot write to stdout: {error}"))),
    }
}

/// A notice for people, on stderr.
pub fn note(text: &str) {
    say("", text);
}

/// `error: …` on stderr, one line each.
pub fn complain(text: &str) {
    say("error: ", text);
}

fn say(prefix: &str, text: &str) {
    let mut out = std::io::stderr().lock();
    for line in text.lines() {
        // Nobody is left to be told when stderr fails.
        let _ = writeln!(out, "{prefix}{}", inert(line));
    }
}

fn inert(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
