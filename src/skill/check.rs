//! The rules of the format, each fault one finding. Owns what the rules are; must not change a skill.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::finding::Finding;
use super::front_matter::{FrontMatter, Parts, Unclosed, Value, divide};
use super::name::SkillName;
use super::package::{DOCUMENT, Package, no_document};
use super::references::{Target, machine_paths, references};
use crate::text::{is_invisible, secret_lines};

const LONGEST_DESCRIPTION: usize = 1024;
const LONGEST_COMPATIBILITY: usize = 500;
/// What the format advises at most for a body.
const ADVISED_LINES: usize = 500;
const ADVISED_TOKENS: usize = 5000;
/// Characters of a token, on average; no tokenizer is asked.
const CHARS_PER_TOKEN: usize = 4;

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    pub folder: PathBuf,
    pub name: Option<String>,
    #[serde(flatten)]
    pub size: Size,
    /// By file and line.
    pub findings: Vec<Finding>,
}

/// How large a skill is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    pub files: usize,
    pub bytes: u64,
    pub body_lines: usize,
    /// An estimate: what every session is told, name and description.
    pub listed_tokens: usize,
    /// An estimate: what a session reads that uses the skill.
    pub body_tokens: usize,
}

impl Checked {
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }
}

/// Checks the skill in `folder`.
pub fn check(folder: &Path) -> Checked {
    let (package, unread) = Package::survey(folder);
    let named = folder.canonicalize().ok();
    let name = named.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let mut checked = check_package(&package, name.as_deref().unwrap_or_default());
    // A folder that could not be read says so once.
    if package.files().is_empty() && unread.iter().any(Finding::is_error) {
        checked.findings.clear();
    }
    checked.findings.extend(unread);
    checked.folder = folder.to_owned();
    in_order(&mut checked.findings);
    checked
}

/// Checks a skill that lies, or is to lie, in a folder called `folder_name`.
pub fn check_package(package: &Package, folder_name: &str) -> Checked {
    let mut checked = Checked {
        folder: PathBuf::from(folder_name),
        name: None,
        size: Size { files: package.files().len(), bytes: package.bytes(), ..Size::default() },
        findings: Vec::new(),
    };
    checked.findings.extend(secrets(package));
    match package.document() {
        Some(bytes) => document(&mut checked, package, bytes, folder_name),
        None => checked.findings.push(no_document(package)),
    }
    in_order(&mut checked.findings);
    checked
}

/// Tokens of a text, roughly.
pub fn estimated_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARS_PER_TOKEN)
}

fn in_order(findings: &mut [Finding]) {
    findings.sort_by(|left, right| {
        (&left.file, left.line, left.level).cmp(&(&right.file, right.line, right.level))
    });
}

/// What looks like a key or a token in a text file of the skill.
pub fn secrets(package: &Package) -> Vec<Finding> {
    let texts = package.files().iter().filter_map(|file| {
        let text = std::str::from_utf8(&file.bytes).ok()?;
        Some((file.path.as_str(), text))
    });
    texts.flat_map(|(path, text)| secrets_in(path, text)).collect()
}

fn secrets_in(file: &str, text: &str) -> Vec<Finding> {
    let told = |line| {
        Finding::error(
            file,
            "something here looks like a key or a token",
            "take it out, and give it up if it was real",
        )
        .at(line)
    };
    secret_lines(text).into_iter().map(told).collect()
}

fn document(checked: &mut Checked, package: &Package, bytes: &[u8], folder_name: &str) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            let fault = Finding::error(DOCUMENT, "is not UTF-8", "save the file as UTF-8").at(line);
            return checked.findings.push(fault);
        }
    };
    checked.findings.extend(encoding(text));
    let text = text.replace("\r\n", "\n");
    let parts = match divide(&text) {
        Ok(parts) => parts,
        Err(Unclosed) => {
            let remedy = "close it with a line that is only `---`";
            return checked
                .findings
                .push(Finding::error(DOCUMENT, "the front matter does not end", remedy).at(1));
        }
    };
    match parts.front {
        Some(front) => {
            let (matter, faults) = FrontMatter::parse(front);
            let unreadable = matter.entries.is_empty() && faults.iter().any(Finding::is_error);
            checked.findings.extend(faults);
            if !unreadable {
                keys(checked, &matter, folder_name);
            }
        }
        None => checked.findings.push(
            Finding::error(
                DOCUMENT,
                "has no front matter, so no client lists the skill",
                "begin the file with `---`, name, description and `---`",
            )
            .at(1),
        ),
    }
    body(checked, package, &parts);
}

/// Faults of the text as such.
fn encoding(text: &str) -> Vec<Finding> {
    let mut faults = Vec::new();
    let line_of = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
    if text.starts_with('\u{feff}') {
        let problem = "begins with a byte order mark, which hides the front matter from some loaders";
        faults.push(Finding::error(DOCUMENT, problem, "save the file as UTF-8 without BOM").at(1));
    }
    if let Some(at) = text.find('\r') {
        let problem = "has line ends other than LF";
        faults.push(Finding::error(DOCUMENT, problem, "save the file with LF line ends").at(line_of(at)));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let problem = "the last line does not end";
        faults.push(Finding::warn(DOCUMENT, problem, "end the file with a line end").at(line_of(text.len())));
    }
    let hidden =
        text.char_indices().skip_while(|(at, c)| *at == 0 && *c == '\u{feff}').find(|(_, c)| hides(*c));
    if let Some((at, c)) = hidden {
        let problem = format!("has a character that no reader sees (U+{:04X})", u32::from(c));
        faults.push(Finding::warn(DOCUMENT, problem, "remove it: models read it").at(line_of(at)));
    }
    faults
}

/// Controls and format characters, but those that writing and pictures in text need.
fn hides(c: char) -> bool {
    let ordinary =
        matches!(c, '\n' | '\r' | '\t' | '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    !ordinary && (c.is_control() || is_invisible(c))
}

fn keys(checked: &mut Checked, matter: &FrontMatter, folder_name: &str) {
    for (key, what) in [("name", "a name"), ("description", "a description")] {
        if matter.get(key).is_none() {
            let problem = format!("the front matter has no {key}");
            checked.findings.push(Finding::error(DOCUMENT, problem, format!("give the skill {what}")).at(1));
        }
    }
    let listed: Vec<&str> = ["name", "description"].iter().filter_map(|key| matter.text(key)).collect();
    checked.size.listed_tokens = listed.iter().map(|text| estimated_tokens(text)).sum();
    for entry in &matter.entries {
        let findings = match (entry.key.as_str(), &entry.value) {
            ("name", Value::Text(name)) => {
                checked.name = Some(name.clone());
                name_rules(name, folder_name)
            }
            ("description", Value::Text(text)) => description_rules(text),
            ("compatibility", Value::Text(text)) => compatibility_rules(text),
            ("license" | "allowed-tools", Value::Text(_)) => Vec::new(),
            ("metadata", Value::Map(inner)) => {
                let wrong = inner.iter().filter(|entry| entry.value.text().is_none());
                let told = |entry: &super::Entry| {
                    let problem = format!("metadata.{} is a {}, not a text", entry.key, entry.value.kind());
                    Finding::error(DOCUMENT, problem, "write one quoted text").at(entry.line)
                };
                wrong.map(told).collect()
            }
            ("metadata", value) => {
                let problem = format!("metadata is a {}, not a mapping of texts", value.kind());
                vec![Finding::error(DOCUMENT, problem, "write indented `key: \"value\"` lines under it")]
            }
            ("name" | "description" | "compatibility" | "license" | "allowed-tools", value) => {
                let problem = format!("{} is a {}, not a text", entry.key, value.kind());
                let remedy = match entry.key.as_str() {
                    "allowed-tools" => "write the tools as one text, with spaces between them",
                    _ => "write one quoted text",
                };
                vec![Finding::error(DOCUMENT, problem, remedy)]
            }
            ("disable-model-invocation", _) => vec![Finding::warn(
                DOCUMENT,
                "disable-model-invocation is a key of some clients only, and strict loaders refuse it",
                "remove it unless only those clients matter",
            )],
            (key, _) => {
                let problem = format!("the format knows no key {key:?}, and strict loaders refuse it");
                vec![Finding::warn(DOCUMENT, problem, "put it under metadata, or remove it")]
            }
        };
        let placed = |finding: Finding| match finding.line {
            Some(_) => finding,
            None => finding.at(entry.line),
        };
        checked.findings.extend(findings.into_iter().map(placed));
    }
}

fn name_rules(name: &str, folder_name: &str) -> Vec<Finding> {
    let parsed = match SkillName::parse(name) {
        Ok(parsed) => parsed,
        Err(fault) => return vec![Finding::error(DOCUMENT, fault.problem, fault.remedy)],
    };
    let mut findings = Vec::new();
    if !parsed.is_ascii() {
        let problem = format!("the name {name:?} has letters that some clients refuse");
        findings.push(Finding::warn(DOCUMENT, problem, "use a to z, digits and hyphens"));
    }
    if parsed.as_str() != folder_name {
        let problem = format!("the name {name:?} is not that of its folder, {folder_name:?}");
        findings.push(Finding::warn(DOCUMENT, problem, "give both the same name"));
    }
    findings
}

fn description_rules(text: &str) -> Vec<Finding> {
    let length = text.trim().chars().count();
    if length == 0 {
        return vec![Finding::error(
            DOCUMENT,
            "the description is empty",
            "say what the skill does and when to use it",
        )];
    }
    if length > LONGEST_DESCRIPTION {
        let problem =
            format!("the description has {length} characters, at most {LONGEST_DESCRIPTION} are allowed");
        return vec![Finding::error(DOCUMENT, problem, "shorten it; details belong into the body")];
    }
    let lower = text.to_lowercase();
    let has = |word: &str| lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
    if has("use") && has("when") {
        return Vec::new();
    }
    let problem = "the description does not say when to use the skill";
    vec![Finding::warn(DOCUMENT, problem, "add a sentence that begins with \"Use when\"")]
}

fn compatibility_rules(text: &str) -> Vec<Finding> {
    let length = text.chars().count();
    if (1..=LONGEST_COMPATIBILITY).contains(&length) {
        return Vec::new();
    }
    let problem = format!("compatibility has {length} characters, 1 to {LONGEST_COMPATIBILITY} are allowed");
    vec![Finding::error(DOCUMENT, problem, "shorten it, or remove it")]
}

fn body(checked: &mut Checked, package: &Package, parts: &Parts) {
    let (lines, tokens) = (parts.body.trim().lines().count(), estimated_tokens(parts.body));
    (checked.size.body_lines, checked.size.body_tokens) = (lines, tokens);
    if lines == 0 {
        let fault =
            Finding::error(DOCUMENT, "has no body, so there is nothing to follow", "write the instructions");
        return checked.findings.push(fault.at(parts.body_line));
    }
    let shorter = "move details into files under references/";
    if lines > ADVISED_LINES {
        let problem = format!("the body has {lines} lines, {ADVISED_LINES} are advised at most");
        checked.findings.push(Finding::warn(DOCUMENT, problem, shorter).at(parts.body_line));
    }
    if tokens > ADVISED_TOKENS {
        let problem = format!("the body has about {tokens} tokens, {ADVISED_TOKENS} are advised at most");
        checked.findings.push(Finding::warn(DOCUMENT, problem, shorter).at(parts.body_line));
    }
    let line = |in_body: usize| parts.body_line + in_body - 1;
    for found in references(parts.body) {
        let fault = match &found.target {
            Target::Absolute(path) => Some(Finding::error(
                DOCUMENT,
                format!("the path {path:?} is absolute"),
                "write it relative to the skill's folder",
            )),
            Target::Foreign(path) => Some(Finding::error(
                DOCUMENT,
                format!("the path {path:?} has backslashes"),
                "write it with slashes",
            )),
            Target::Inside(path) => inside(package, path, found.link),
        };
        checked.findings.extend(fault.map(|fault| fault.at(line(found.line))));
    }
    for found in machine_paths(parts.body) {
        let problem = "a path of one machine only";
        checked.findings.push(
            Finding::warn(DOCUMENT, problem, "write it relative, or say what it stands for").at(line(found)),
        );
    }
}

fn inside(package: &Package, path: &str, link: bool) -> Option<Finding> {
    if path.split('/').any(|part| part == "..") {
        let problem = format!("the path {path:?} leaves the skill's folder");
        return Some(Finding::error(DOCUMENT, problem, "put the file into the folder"));
    }
    if !package.has(path) {
        let problem = format!("the folder has no {path:?}");
        return Some(match link {
            true => Finding::error(DOCUMENT, problem, "add the file, or correct the link"),
            // Prose may speak of folders of the reader's own.
            false => {
                Finding::warn(DOCUMENT, problem, "add the file if the text means one of the skill's own")
            }
        });
    }
    if path.split('/').count() > 2 {
        let problem = format!("{path:?} lies more than one folder deep");
        return Some(Finding::warn(
            DOCUMENT,
            problem,
            "keep files that the text names at most one folder deep",
        ));
    }
    None
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
