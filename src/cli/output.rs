//! Lines on stdout and stderr. A closed pipe ends the command quietly; nothing that steers a terminal, reorders
//! text or breaks lines gets out, whoever wrote it.

use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write};

use serde::Serialize;

use super::Failure;
use crate::text::{is_invisible, sanitize_line};

/// Prints one line of text.
pub fn line(text: &str) -> Result<(), Failure> {
    write(sanitize_line(text).into_owned())
}

/// Prints one JSON line. Characters that a terminal or a line reader would act upon are escaped: the value is the same.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::run(error.to_string()))?;
    write(escape_hidden(text))
}

/// JSON text with `\u` escapes for what serde_json leaves as it is: DEL, C1, line separators, bidi and other
/// invisible format characters. They can stand only in strings.
fn escape_hidden(text: String) -> String {
    let hidden = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_invisible(c);
    if !text.contains(hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
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

/// How far a long command has got, rewritten in place on stderr; nothing where that is no terminal.
pub fn progress(done: usize, all: usize, what: &str) {
    let mut out = std::io::stderr().lock();
    if !out.is_terminal() || (done != all && done * 100 / all == (done - 1) * 100 / all) {
        return;
    }
    let text = if done == all { String::new() } else { format!("{done}/{all} {what}") };
    let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
}

/// `error: …` on stderr, one line each.
pub fn complain(text: &str) {
    say("error: ", text);
}

fn say(prefix: &str, text: &str) {
    let mut out = std::io::stderr().lock();
    for line in text.lines() {
        // Nobody is left to be told when stderr fails.
        let _ = writeln!(out, "{prefix}{}", sanitize_line(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_the_value_stays() {
        let text = "a\u{7f}\u{85}\u{9b}2J\u{2028}\u{2029}\u{202e}\u{2066}\u{200f}\u{61c}\u{e0041}\u{1b} é👩\u{200d}🚀";
        let value = serde_json::json!({ text: [text, 1.5] });
        let told = escape_hidden(value.to_string());
        assert!(told.chars().all(|c| !c.is_control() && !is_invisible(c) && c != '\u{2028}'), "{told:?}");
        assert!(
            told.contains("\\u009b2J\\u2028") && told.contains("\\udb40\\udc41") && told.contains('é'),
            "{told}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), value);
        assert_eq!(escape_hidden("{\"a\":\"é\"}".into()), "{\"a\":\"é\"}");
    }
}
