//! YAML 1.1 as PyYAML reads it, into [`Node`]s with their lines. Files are untrusted: size, depth and what aliases
//! expand to are limited.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::error::ImportError;
use super::node::{Entry, Mapping, Node, Place};

const LARGEST_FILE: usize = 1 << 20;
const DEEPEST: usize = 64;
/// Most values of a document, with aliases expanded.
const MOST_NODES: usize = 100_000;

/// The mapping of a document; an empty document is an empty mapping.
pub fn parse(path: &Path, text: &str) -> Result<Mapping, ImportError> {
    let mut reader =
        Reader { path: Arc::from(path), open: Vec::new(), anchors: HashMap::new(), nodes: 0, root: None };
    if text.len() > LARGEST_FILE {
        return Err(reader.fault(1, "larger than 1 MiB", "give a configuration file"));
    }
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let problem = format!("not valid YAML: {}", error.info());
            reader.fault(error.marker().line(), problem, "correct the syntax at this line")
        })?;
        reader.take(event, span.start.line())?;
    }
    match reader.root {
        None | Some(Node::Null) => Ok(Mapping::new()),
        Some(Node::Map(mapping)) => Ok(mapping),
        Some(other) => {
            let problem = format!("the document is a {}, not a mapping of settings", other.kind());
            Err(ImportError::Syntax {
                path: path.to_owned(),
                line: 1,
                problem,
                remedy: "write `key: value` lines",
            })
        }
    }
}

/// A list or mapping that is not complete yet.
enum Open {
    List { items: Vec<Node>, anchor: usize },
    Map { entries: Mapping, merged: Vec<Mapping>, key: Option<(String, usize)>, anchor: usize },
}

struct Reader {
    path: Arc<Path>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    root: Option<Node>,
}

impl Reader {
    fn fault(&self, line: usize, problem: impl Into<String>, remedy: &'static str) -> ImportError {
        ImportError::Syntax { path: self.path.to_path_buf(), line, problem: problem.into(), remedy }
    }

    fn take(&mut self, event: Event, line: usize) -> Result<(), ImportError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, tag.as_deref(), line)?;
                self.remember(anchor, &node);
                self.place(node, line)
            }
            Event::SequenceStart(anchor, tag) => {
                self.known(tag.as_deref(), &["seq"], line)?;
                self.enter(Open::List { items: Vec::new(), anchor }, line)
            }
            Event::MappingStart(anchor, tag) => {
                self.known(tag.as_deref(), &["map"], line)?;
                let map = Open::Map { entries: Mapping::new(), merged: Vec::new(), key: None, anchor };
                self.enter(map, line)
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(line),
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.fault(
                        line,
                        "an alias of something that holds it",
                        "write the value out",
                    ));
                };
                self.count(size, line)?;
                self.place(node, line)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.fault(line, "a second document", "keep one document per file"))
            }
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => Ok(()),
        }
    }

    fn enter(&mut self, open: Open, line: usize) -> Result<(), ImportError> {
        if self.open.len() == DEEPEST {
            return Err(self.fault(line, format!("nested deeper than {DEEPEST}"), "flatten the document"));
        }
        self.count(1, line)?;
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self, line: usize) -> Result<(), ImportError> {
        let (node, anchor) = match self.open.pop() {
            Some(Open::List { items, anchor }) => (Node::List(items), anchor),
            Some(Open::Map { mut entries, merged, anchor, .. }) => {
                for (key, entry) in merged.into_iter().flatten() {
                    entries.entry(key).or_insert(entry);
                }
                (Node::Map(entries), anchor)
            }
            None => return Ok(()),
        };
        self.remember(anchor, &node);
        self.place(node, line)
    }

    /// Puts a complete value where it belongs.
    fn place(&mut self, node: Node, line: usize) -> Result<(), ImportError> {
        let path = Arc::clone(&self.path);
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, merged, key, .. }) => match key.take() {
                None => {
                    let Some(name) = key_text(&node) else {
                        let problem = format!("a {} as a key", node.kind());
                        return Err(self.fault(line, problem, "give a plain name"));
                    };
                    *key = Some((name, line));
                }
                Some((name, _)) if name == "<<" => match node {
                    Node::Map(map) => merged.push(map),
                    Node::List(maps) => merged.extend(maps.into_iter().filter_map(|map| match map {
                        Node::Map(map) => Some(map),
                        _ => None,
                    })),
                    _ => return Err(self.fault(line, "`<<` of no mapping", "name an anchor of a mapping")),
                },
                Some((name, line)) => {
                    if entries.contains_key(&name) {
                        let problem = format!("{name:?} is written twice in one mapping");
                        return Err(self.fault(line, problem, "keep one of the two"));
                    }
                    entries.insert(name, Entry { node, place: Place::File { path, line }, was: None });
                }
            },
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<Node, ImportError> {
        self.count(1, line)?;
        self.known(tag, &["str", "null", "bool", "int", "float"], line)?;
        Ok(match (tag, style) {
            (None, ScalarStyle::Plain) => plain(text),
            (Some(tag), _) if tag.suffix != "str" => plain(text),
            (_, _) => Node::Text(text.to_owned()),
        })
    }

    fn known(&self, tag: Option<&Tag>, allowed: &[&str], line: usize) -> Result<(), ImportError> {
        match tag {
            Some(tag) if !tag.is_yaml_core_schema() || !allowed.contains(&tag.suffix.as_str()) => {
                Err(self.fault(line, "a tag of another program", "write the value without a tag"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn remember(&mut self, anchor: usize, node: &Node) {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size(node)));
        }
    }

    fn count(&mut self, nodes: usize, line: usize) -> Result<(), ImportError> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            return Err(self.fault(
                line,
                format!("more than {MOST_NODES} values"),
                "give a configuration file",
            ));
        }
        Ok(())
    }
}

fn size(node: &Node) -> usize {
    match node {
        Node::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Node::Map(entries) => 1 + entries.values().map(|entry| size(&entry.node)).sum::<usize>(),
        Node::Null | Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Text(_) => 1,
    }
}

fn key_text(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Null => Some("null".into()),
        Node::Bool(value) => Some(value.to_string()),
        Node::Int(number) => Some(number.to_string()),
        Node::Float(number) => Some(number.to_string()),
        Node::List(_) | Node::Map(_) => None,
    }
}

/// A decimal number of YAML 1.1: it has a point, `_` may part its digits, an exponent has a sign.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let Some((whole, part)) = mantissa.split_once('.') else { return false };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let power = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    digits(whole)
        && digits(part)
        && (begins(whole) || (whole.is_empty() && begins(part)))
        && exponent.is_none_or(power)
}

/// An unquoted scalar. Base-60 numbers stay text: an unquoted ratio like `2:1:7` means the text.
fn plain(text: &str) -> Node {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Node::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Node::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Node::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Node::Float(f64::NAN),
        _ => {}
    }
    let (negative, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Node::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if let Some(number) =
        integer(unsigned).and_then(|number| if negative { number.checked_neg() } else { Some(number) })
    {
        return Node::Int(number);
    }
    let digits = text.replace('_', "");
    match digits.parse() {
        Ok(number) if is_float(text) => Node::Float(number),
        _ => Node::Text(text.to_owned()),
    }
}

fn integer(unsigned: &str) -> Option<i64> {
    let first = unsigned.chars().next()?;
    if !first.is_ascii_digit() {
        return None;
    }
    let (digits, radix) = match unsigned.get(..2) {
        Some("0b") => (&unsigned[2..], 2),
        Some("0x") => (&unsigned[2..], 16),
        Some(two) if two.starts_with('0') => (&unsigned[1..], 8),
        Some(_) | None => (unsigned, 10),
    };
    i64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Mapping, String> {
        parse(Path::new("c.yaml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_float_has_a_point_and_a_signed_exponent() {
        for text in ["1.", "-1.5", "+.5", "1_0.0_1", "1.5e+3", ".5E-2"] {
            assert!(is_float(text), "{text}");
        }
        for text in ["1", "1e3", "1.5e3", ".", "-.", "_1.0", "._1", "1.5e+", "1.2.3", "x.5", ".5x", ""] {
            assert!(!is_float(text), "{text}");
        }
    }

    #[test]
    fn unquoted_words_are_read_as_pyyaml_reads_them() {
        for (text, expected) in [
            ("yes", Node::Bool(true)),
            ("Off", Node::Bool(false)),
            ("y", Node::Text("y".into())),
            ("~", Node::Null),
            ("1_000", Node::Int(1000)),
            ("010", Node::Int(8)),
            ("0", Node::Int(0)),
            ("-0x1F", Node::Int(-31)),
            ("08", Node::Text("08".into())),
            ("1e3", Node::Text("1e3".into())),
            ("1.0e+3", Node::Float(1000.0)),
            ("1.e3", Node::Text("1.e3".into())),
            ("5.", Node::Float(5.0)),
            ("-.5", Node::Float(-0.5)),
            ("-.inf", Node::Float(f64::NEG_INFINITY)),
            ("2:1:7", Node::Text("2:1:7".into())),
            ("2024-12-01-preview", Node::Text("2024-12-01-preview".into())),
            ("99999999999999999999", Node::Text("99999999999999999999".into())),
            ("\"5\"", Node::Text("5".into())),
            ("!!str 5", Node::Text("5".into())),
        ] {
            assert_eq!(read(&format!("v: {text}")).unwrap()["v"].node, expected, "{text}");
        }
    }

    #[test]
    fn entries_know_their_lines_and_merge_keys_yield() {
        let map =
            read("base: &b {seed: 1, batch_size: 2}\ntrain:\n  <<: *b\n  seed: 3\nwords: [a, *b]\n").unwrap();
        let Node::Map(train) = &map["train"].node else { panic!("{map:?}") };
        assert_eq!(train["seed"].node, Node::Int(3));
        assert_eq!(train["batch_size"].node, Node::Int(2));
        assert_eq!(train["seed"].place.to_string(), "c.yaml:4");
        assert_eq!(map["words"].node.kind(), "list");
        assert_eq!(read("").unwrap(), Mapping::new());
        assert_eq!(read("# nothing\n---\n").unwrap(), Mapping::new());
    }

    #[test]
    fn hostile_and_broken_documents_are_one_clear_complaint() {
        let bomb = (0..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
            format!("{text}a{next}: &a{next} [*a{i}, *a{i}]\n", next = i + 1)
        });
        let deep = format!("v: {}{}", "[".repeat(100), "]".repeat(100));
        let huge = format!("v: \"{}\"", "x".repeat(LARGEST_FILE));
        for (text, expected) in [
            ("a: 1\nb: [1\n", "c.yaml:"),
            ("a: 1\na: 2\n", "c.yaml:2: \"a\" is written twice"),
            ("- 1\n", "the document is a list, not a mapping"),
            ("a: 1\n---\nb: 2\n", "c.yaml:2: a second document"),
            ("a: !!python/object:os.system x\n", "c.yaml:1: a tag of another program"),
            ("a: !!python/tuple [x]\n", "c.yaml:1: a tag of another program"),
            ("a: !thing x\n", "a tag of another program"),
            ("? [1]\n: 2\n", "a list as a key"),
            ("<<: 5\n", "`<<` of no mapping"),
            (&bomb, "more than 100000 values"),
            (&deep, "nested deeper than 64"),
            (&huge, "larger than 1 MiB"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
