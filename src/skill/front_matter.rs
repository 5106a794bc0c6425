//! The front matter of `SKILL.md`: a flat YAML mapping between two `---` lines, with one mapping of texts inside it.
//! Owns finding, reading and faults of its syntax; keeps every entry's own lines. Must not know what keys mean.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::finding::Finding;
use super::package::DOCUMENT;

/// Most bytes between the two lines.
const LARGEST: usize = 64 << 10;
const FENCE: &str = "---";

/// `SKILL.md` in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// What stands between the `---` lines; `None` without front matter.
    pub front: Option<&'a str>,
    /// What follows.
    pub body: &'a str,
    /// The line of the file that the body begins on, from 1.
    pub body_line: usize,
}

/// Front matter that no `---` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SKILL.md:1: the front matter does not end; close it with a line that is only `---`")]
pub struct Unclosed;

/// Divides a document whose line ends are LF.
///
/// # Errors
/// [`Unclosed`].
pub fn divide(text: &str) -> Result<Parts<'_>, Unclosed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    let mut start = 0;
    for (place, line) in text.split_inclusive('\n').enumerate() {
        let fence = line.trim_end() == FENCE;
        if place == 0 && !fence {
            break;
        }
        at += line.len();
        if place == 0 {
            start = at;
        } else if fence {
            let front = &text[start..at - line.len()];
            return Ok(Parts { front: Some(front), body: &text[at..], body_line: place + 2 });
        }
    }
    if start > 0 { Err(Unclosed) } else { Ok(Parts { front: None, body: text, body_line: 1 }) }
}

/// The entries of a front matter in the order they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    pub entries: Vec<Entry>,
    /// Comments and blank lines before the first entry.
    pub preamble: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: Value,
    /// Line of the file, from 1.
    pub line: usize,
    /// As it was written, with the comments behind it; every line ends.
    pub written: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    /// Entries whose values are texts.
    Map(Vec<Entry>),
    /// Something else, named for people.
    Other(&'static str),
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Map(_) | Self::Other(_) => None,
        }
    }

    /// Named for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Map(_) => "mapping",
            Self::Other(kind) => kind,
        }
    }
}

impl FrontMatter {
    /// Reads what stands between the fences, which begins on line 2 of the file, and tells every fault of its syntax.
    pub fn parse(front: &str) -> (Self, Vec<Finding>) {
        let fault =
            |line: usize, problem: String, remedy: &str| Finding::error(DOCUMENT, problem, remedy).at(line);
        if front.len() > LARGEST {
            let problem = format!("the front matter has {} bytes, at most {LARGEST} are read", front.len());
            return (Self::default(), vec![fault(2, problem, "move the text into the body")]);
        }
        let mut faults = suspicious_lines(front);
        let mut events = Vec::new();
        for event in Parser::new_from_str(front) {
            match event {
                Ok((event, span)) => events.push((event, span.start.line().max(1))),
                Err(error) => {
                    let line = error.marker().line().max(1) + 1;
                    if faults.iter().all(|fault| fault.line != Some(line) || !fault.is_error()) {
                        let problem = format!("the front matter is not valid YAML: {}", error.info());
                        faults.push(fault(line, problem, "write `key: \"value\"` lines"));
                    }
                    return (Self::default(), faults);
                }
            }
        }
        let lines: Vec<&str> = front.split_inclusive('\n').collect();
        let mut reader = Reader { events: &events, at: 0, lines: &lines, faults };
        let matter = reader.document();
        (matter, reader.faults)
    }

    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(|entry| entry.value.text())
    }
}

/// Faults that a YAML reader words badly or passes over: tabs, and unquoted values with `: ` or ` #` in them.
fn suspicious_lines(front: &str) -> Vec<Finding> {
    let mut faults = Vec::new();
    // Lines of a block scalar are text, however they look.
    let mut block: Option<usize> = None;
    for (place, line) in front.lines().enumerate() {
        let number = place + 2;
        let indent = line.len() - line.trim_start_matches(' ').len();
        if line.contains('\t') {
            let problem = "a tab in the front matter, which YAML does not take as indentation";
            faults.push(Finding::error(DOCUMENT, problem, "write spaces").at(number));
        }
        if block.is_some_and(|depth| indent > depth || line.trim().is_empty()) {
            continue;
        }
        block = None;
        let Some((_, value)) = line.split_once(": ") else { continue };
        let value = value.trim();
        match value.chars().next() {
            Some('|' | '>') => block = Some(indent),
            Some('"' | '\'' | '{' | '[' | '#' | '&' | '*' | '!') | None => {}
            Some(_) if line.trim_start().starts_with('#') => {}
            Some(_) => {
                if value.contains(": ") || value.ends_with(':') {
                    let problem = "an unquoted value with a colon in it, which YAML reads as another mapping";
                    faults
                        .push(Finding::error(DOCUMENT, problem, "put the value in double quotes").at(number));
                } else if value.contains(" #") {
                    let problem = "an unquoted value with ` #` in it, which YAML cuts off there as a comment";
                    faults
                        .push(Finding::warn(DOCUMENT, problem, "put the value in double quotes").at(number));
                }
            }
        }
    }
    faults
}

struct Reader<'a> {
    events: &'a [(Event<'a>, usize)],
    at: usize,
    lines: &'a [&'a str],
    faults: Vec<Finding>,
}

impl<'a> Reader<'a> {
    fn fault(&mut self, line: usize, problem: impl Into<String>, remedy: &str) {
        self.faults.push(Finding::error(DOCUMENT, problem, remedy).at(line + 1));
    }

    fn next(&mut self) -> Option<(&'a Event<'a>, usize)> {
        let (event, line) = self.events.get(self.at)?;
        self.at += 1;
        Some((event, *line))
    }

    fn document(&mut self) -> FrontMatter {
        while let Some((event, line)) = self.next() {
            match event {
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
                Event::MappingStart(..) => {
                    let end = self.lines.len() + 1;
                    let entries = self.entries(end, true);
                    let first = entries.first().map_or(1, |entry| entry.line - 1);
                    return FrontMatter { entries, preamble: self.written(1..first) };
                }
                Event::Scalar(..) | Event::SequenceStart(..) | Event::Alias(_) => {
                    self.fault(line, "the front matter is no mapping", "write `key: \"value\"` lines");
                    break;
                }
                Event::MappingEnd | Event::SequenceEnd | Event::DocumentEnd | Event::StreamEnd => break,
            }
        }
        FrontMatter::default()
    }

    /// Lines of the front matter, counted from 1.
    fn written(&self, lines: Range<usize>) -> String {
        let mut text = String::new();
        for line in self.lines.iter().take(lines.end.saturating_sub(1)).skip(lines.start - 1) {
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }

    /// The entries of the mapping that was just opened and whose lines end before `end`. Only the outermost one may hold
    /// another one.
    fn entries(&mut self, end: usize, outermost: bool) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        while let Some((event, line)) = self.next() {
            let key = match event {
                Event::Scalar(text, ..) => text.to_string(),
                Event::MappingEnd => break,
                _ => {
                    self.fault(line, "a key that is no plain name", "write `key: \"value\"` lines");
                    self.skip_rest_of(event);
                    self.value(line, false);
                    continue;
                }
            };
            if places.last() == Some(&line) {
                self.fault(
                    line,
                    format!("{key:?} is not on a line of its own"),
                    "write one `key: \"value\"` a line",
                );
            }
            let value = self.value(line, outermost);
            if entries.iter().any(|entry| entry.key == key) {
                self.fault(line, format!("{key:?} is written twice"), "keep one of the two");
                continue;
            }
            places.push(line);
            entries.push(Entry { key, value, line: line + 1, written: String::new() });
        }
        let starts: Vec<usize> = entries.iter().map(|entry| entry.line - 1).collect();
        let stop = if outermost { end } else { self.end_of_nested(end) };
        for (place, entry) in entries.iter_mut().enumerate() {
            let until = starts.get(place + 1).copied().unwrap_or(stop);
            entry.written = self.written(starts[place]..until.max(starts[place] + 1));
        }
        entries
    }

    /// Where the entry that holds the mapping just read ends: at the next key, if there is one.
    fn end_of_nested(&self, end: usize) -> usize {
        match self.events.get(self.at) {
            Some((Event::Scalar(..), line)) => *line,
            Some(_) | None => end,
        }
    }

    fn value(&mut self, line: usize, may_nest: bool) -> Value {
        let Some((event, at)) = self.next() else { return Value::Other("nothing") };
        if has_anchor_or_tag(event) {
            self.fault(at, "an anchor or a tag, which loaders of skills do not know", "write the value out");
        }
        match event {
            Event::Scalar(text, style, ..) => {
                if *style == ScalarStyle::Plain && is_typed(text) {
                    let problem = format!("the unquoted value {text:?} is no text in YAML");
                    let remedy = "put the value in double quotes";
                    self.faults.push(Finding::warn(DOCUMENT, problem, remedy).at(line + 1));
                }
                Value::Text(text.to_string())
            }
            Event::MappingStart(..) if may_nest => Value::Map(self.entries(self.lines.len() + 1, false)),
            Event::MappingStart(..) => {
                self.skip_rest_of(event);
                Value::Other("mapping")
            }
            Event::SequenceStart(..) => {
                self.skip_rest_of(event);
                Value::Other("list")
            }
            Event::Alias(_) => {
                self.fault(at, "an alias, which loaders of skills do not know", "write the value out");
                Value::Other("alias")
            }
            _ => Value::Other("nothing"),
        }
    }

    /// Passes over what `event` opened.
    fn skip_rest_of(&mut self, event: &Event) {
        let mut depth = usize::from(matches!(event, Event::MappingStart(..) | Event::SequenceStart(..)));
        while depth > 0 {
            match self.next() {
                Some((Event::MappingStart(..) | Event::SequenceStart(..), _)) => depth += 1,
                Some((Event::MappingEnd | Event::SequenceEnd, _)) => depth -= 1,
                Some(_) => {}
                None => break,
            }
        }
    }
}

fn has_anchor_or_tag(event: &Event) -> bool {
    match event {
        Event::Scalar(_, _, anchor, tag) => *anchor > 0 || tag.is_some(),
        Event::MappingStart(anchor, tag) | Event::SequenceStart(anchor, tag) => *anchor > 0 || tag.is_some(),
        _ => false,
    }
}

/// Whether some YAML reader takes an unquoted scalar for a number, a date, a truth value or nothing.
fn is_typed(text: &str) -> bool {
    let word = text.to_ascii_lowercase();
    let date = word.len() >= 8
        && word.split('-').count() == 3
        && word.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let words = ["", "~", "null", "true", "false", "yes", "no", "on", "off", ".nan", ".inf", "-.inf"];
    words.contains(&word.as_str()) || date || word.replace('_', "").parse::<f64>().is_ok()
}

/// A scalar that every YAML reader takes for this text.
pub fn quoted(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[path = "front_matter_tests.rs"]
mod tests;
