//! Which files of its folder a skill's text names: Markdown links, and paths into the three folders of the format. Owns
//! finding them; must not know which files there are.

/// The folders that the format knows.
const KNOWN_FOLDERS: [&str; 3] = ["scripts", "references", "assets"];

/// A path in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub target: Target,
    /// In the text, from 1.
    pub line: usize,
    /// A Markdown link or picture, not merely a mention.
    pub link: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Relative, without `.` parts; it may have `..`.
    Inside(String),
    /// A path from the root of a file system, or of a home folder.
    Absolute(String),
    /// With backslashes.
    Foreign(String),
}

/// The files that `body` names, each target once, in order of its first line.
pub fn references(body: &str) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut add = |target: Option<Target>, line: usize, link: bool| {
        let Some(target) = target else { return };
        match found.iter_mut().find(|known| known.target == target) {
            Some(known) => known.link |= link,
            None => found.push(Reference { target, line, link }),
        }
    };
    let mut fence: Option<&str> = None;
    for (place, line) in body.lines().enumerate() {
        let number = place + 1;
        let start = line.trim_start();
        let mut linked = Vec::new();
        let marks = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, marks) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                linked = links(&without_code(line));
                linked.iter().for_each(|target| add(target_of(target), number, true));
            }
            (Some(_), _) => {}
        }
        let part_of_link = |path: &&str| linked.iter().any(|target| target.contains(*path));
        mentions(line)
            .into_iter()
            .filter(|path| !part_of_link(path))
            .for_each(|path| add(target_of(path), number, false));
    }
    found
}

/// Lines on which a path of somebody's own machine stands.
pub fn machine_paths(text: &str) -> Vec<usize> {
    let on_line = |line: &str| {
        ["/home/", "/Users/"].iter().any(|root| {
            line.match_indices(root).any(|(at, root)| {
                let free = line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '.');
                free && line[at + root.len()..].starts_with(|c: char| c.is_alphanumeric())
            })
        }) || line.match_indices(":\\").any(|(at, _)| {
            let mut before = line[..at].chars().rev();
            before.next().is_some_and(|c| c.is_ascii_uppercase())
                && before.next().is_none_or(|c| !c.is_alphanumeric())
        })
    };
    text.lines().enumerate().filter(|(_, line)| on_line(line)).map(|(place, _)| place + 1).collect()
}

/// `line` with spaces in place of its code spans.
fn without_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let ticks = rest[open..].len() - rest[open..].trim_start_matches('`').len();
        let inner = &rest[open + ticks..];
        let Some(close) = inner.find(&rest[open..open + ticks]) else { break };
        out.push_str(&rest[..open]);
        out.push(' ');
        rest = &inner[close + ticks..];
    }
    out.push_str(rest);
    out
}

/// Targets of links, pictures and link definitions.
fn links(line: &str) -> Vec<String> {
    let mut targets: Vec<String> =
        line.match_indices("](").filter_map(|(at, _)| destination(&line[at + 2..])).collect();
    let start = line.trim_start();
    if start.starts_with('[')
        && !start.starts_with("[^")
        && let Some((_, rest)) = start.split_once("]: ")
        && !start[1..].split("]: ").next().unwrap_or_default().contains(['[', ']'])
    {
        targets.extend(destination(rest));
    }
    targets
}

/// The destination that `text` begins with: up to a space or the bracket that closes the link.
fn destination(text: &str) -> Option<String> {
    let text = text.trim_start();
    if let Some(bracketed) = text.strip_prefix('<') {
        return bracketed.split_once('>').map(|(inside, _)| inside.to_owned());
    }
    let mut depth = 0_usize;
    let end = text.find(|c: char| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth > 0 => {
            depth -= 1;
            false
        }
        ')' => true,
        c => c.is_whitespace(),
    });
    Some(text[..end.unwrap_or(text.len())].to_owned())
}

/// Paths that begin with a folder of the format, wherever they stand.
fn mentions(line: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    let begins = |token: &&str| {
        let token = token.strip_prefix("./").unwrap_or(token);
        KNOWN_FOLDERS.iter().any(|folder| {
            token
                .strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| !rest.is_empty())
        })
    };
    line.split(|c: char| !part(c))
        .map(|token| token.trim_end_matches(['.', '/', '-']))
        .filter(begins)
        .collect()
}

/// What a link's destination means; `None`: nothing in a folder.
fn target_of(destination: &str) -> Option<Target> {
    let plain = percent_decoded(destination);
    let scheme = plain.split_once(':').filter(|(scheme, _)| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    match scheme {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return Some(Target::Absolute(plain)),
        Some(_) => return None,
        None => {}
    }
    let path = plain.split(['#', '?']).next().unwrap_or_default();
    let drive = path.as_bytes().get(1) == Some(&b':');
    if path.is_empty() {
        return None;
    }
    if path.starts_with(['/', '~']) || drive {
        return Some(Target::Absolute(path.to_owned()));
    }
    if path.contains('\\') {
        return Some(Target::Foreign(path.to_owned()));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty()).then(|| Target::Inside(parts.join("/")))
}

/// `%20` and the like as what they stand for; what is no such code stays.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let value = code
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match value {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(body: &str) -> Vec<(String, usize, bool)> {
        let row = |found: Reference| match found.target {
            Target::Inside(path) => Some((path, found.line, found.link)),
            Target::Absolute(_) | Target::Foreign(_) => None,
        };
        references(body).into_iter().filter_map(row).collect()
    }

    #[test]
    fn links_and_mentions_are_found_once_with_their_first_line() {
        let body = "See [the guide](references/GUIDE.md#part \"title\") and\n![x](<assets/a b.png>).\n\
                    Run `scripts/extract.py --all`, then scripts/extract.py.\n[r]: ./references/GUIDE.md\n\
                    [a](b%20c.md) [w](x(1).md)\n```sh\npython ./scripts/run.sh; [no](link.md)\n```\n";
        assert_eq!(
            inside(body),
            [
                ("references/GUIDE.md".into(), 1, true),
                ("assets/a b.png".into(), 2, true),
                ("scripts/extract.py".into(), 3, false),
                ("b c.md".into(), 5, true),
                ("x(1).md".into(), 5, true),
                ("scripts/run.sh".into(), 7, false),
            ]
        );
    }

    #[test]
    fn what_lies_elsewhere_is_no_file_of_the_folder() {
        for body in [
            "[a](https://example.com/x)",
            "[a](mailto:x@example.com)",
            "[a](#part)",
            "[a]()",
            "`[a](b.md)`",
            "``x`[a](b.md)``",
            "myscripts/x.py and other/scripts/x.py",
            "scripts/<name>.py and references/*.md and scripts/.",
            "[^1]: note",
        ] {
            assert_eq!(references(body), [], "{body}");
        }
    }

    #[test]
    fn absolute_and_foreign_paths_are_told_apart() {
        let target = |body: &str| references(body).remove(0).target;
        for path in ["/etc/x", "~/x", "C:/x", "file:///x", "//host/x"] {
            assert_eq!(target(&format!("[a]({path})")), Target::Absolute(path.into()));
        }
        assert_eq!(target("[a](references\\x.md)"), Target::Foreign("references\\x.md".into()));
        assert_eq!(target("[a](../x.md)"), Target::Inside("../x.md".into()));
        assert_eq!(target("[a](%2e%2e/x.md)"), Target::Inside("../x.md".into()));
    }

    #[test]
    fn paths_of_a_machine_have_their_lines() {
        let text = "ok /usr/bin/env\nsee /home/ann/x\nhttps://example.com/home/ann\nC:\\Users\\a\nabc:\\d\n/Users/ann\n";
        assert_eq!(machine_paths(text), [2, 4, 6]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_scanner(text in "(\\PC|[\\[\\]()<>`%:/\\\\. \n]){0,160}") {
            let _ = references(&text);
            let _ = machine_paths(&text);
        }
    }
}
