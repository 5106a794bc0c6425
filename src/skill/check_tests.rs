//! A good folder, and folders that break exactly one rule.

use super::*;
use crate::skill::{Level, PackageFile};

const GOOD: &str = "---\nname: \"cities\"\ndescription: \"Names the city of a text. Use when a text names one.\"\n\
                    license: MIT\ncompatibility: Needs nothing.\nallowed-tools: Read Grep\nmetadata:\n  \
                    version: \"1.0\"\n---\n\n# Cities\n\nSee [the list](references/list.md); run `scripts/find.sh`.\n";

fn package(document: &[u8]) -> Package {
    let file = |path: &str, bytes: &[u8]| PackageFile {
        path: path.into(),
        bytes: bytes.to_vec(),
        executable: false,
    };
    Package::new(vec![
        file(DOCUMENT, document),
        file("references/list.md", b"Paris\n"),
        file("references/old/list.md", b"Rome\n"),
        file("scripts/find.sh", b"#!/bin/sh\n"),
        file("assets/city.png", b"\x89PNG\xff"),
    ])
}

/// Findings with their level, line and words.
fn told(document: &str) -> Vec<String> {
    let checked = check_package(&package(document.as_bytes()), "cities");
    checked.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_folder_has_no_findings_and_its_sizes() {
    let checked = check_package(&package(GOOD.as_bytes()), "cities");
    assert_eq!(checked.findings, []);
    assert_eq!(checked.name.as_deref(), Some("cities"));
    assert_eq!((checked.size.files, checked.size.body_lines), (5, 3));
    assert_eq!(
        checked.size.body_tokens,
        estimated_tokens("\n# Cities\n\nSee [the list](references/list.md); run `scripts/find.sh`.\n")
    );
    assert_eq!(checked.size.listed_tokens, 2 + 13);
    assert_eq!(checked.errors(), 0);
}

/// Replaces one piece of the good document and expects exactly one finding that says so.
#[test]
fn each_rule_is_broken_by_itself() {
    let long = |n: usize| "x".repeat(n);
    let description = "\"Names the city of a text. Use when a text names one.\"";
    let many_lines = "a\n".repeat(501);
    let many_words = "word ".repeat(4_001);
    for (from, to, expected) in [
        ("name: \"cities\"\n", "", "SKILL.md:1: error: the front matter has no name"),
        (
            "\"cities\"",
            "\"towns\"",
            "SKILL.md:2: warning: the name \"towns\" is not that of its folder, \"cities\"",
        ),
        (
            "\"cities\"",
            "\"Cities\"",
            "SKILL.md:2: error: the name \"Cities\" has the capital letter 'C'; write \"cities\"",
        ),
        ("\"cities\"", "\"-cities\"", "SKILL.md:2: error: the name \"-cities\" begins or ends with a hyphen"),
        ("\"cities\"", "\"ci--ties\"", "SKILL.md:2: error: the name \"ci--ties\" has two hyphens"),
        ("\"cities\"", "\"\"", "SKILL.md:2: error: the name is empty"),
        ("\"cities\"", &long(65), "SKILL.md:2: error: the name has 65 characters"),
        ("\"cities\"", "\"ﬁ\"", "SKILL.md:2: error: the name \"ﬁ\" is not in Unicode normal form NFKC"),
        ("\"cities\"", "[a]", "SKILL.md:2: error: name is a list, not a text"),
        (
            &format!("description: {description}\n"),
            "",
            "SKILL.md:1: error: the front matter has no description",
        ),
        (description, "\" \"", "SKILL.md:3: error: the description is empty"),
        (
            description,
            &format!("Use when {}", long(1016)),
            "SKILL.md:3: error: the description has 1025 characters",
        ),
        (description, "\"Names the city.\"", "SKILL.md:3: warning: the description does not say when to use"),
        (description, "Use it when: x", "SKILL.md:3: error: an unquoted value with a colon"),
        (description, "{a: b}", "SKILL.md:3: error: description is a mapping, not a text"),
        ("Needs nothing.", &long(501), "SKILL.md:5: error: compatibility has 501 characters"),
        ("Needs nothing.", "\"\"", "SKILL.md:5: error: compatibility has 0 characters"),
        (
            "Read Grep",
            "[Read, Grep]",
            "SKILL.md:6: error: allowed-tools is a list, not a text; write the tools as one text",
        ),
        ("\n  version: \"1.0\"", " x", "SKILL.md:7: error: metadata is a text, not a mapping of texts"),
        ("\"1.0\"", "[1]", "SKILL.md:8: error: metadata.version is a list, not a text"),
        ("\"1.0\"", "1.0", "SKILL.md:8: warning: the unquoted value \"1.0\" is no text"),
        ("license: MIT", "licence: MIT", "SKILL.md:4: warning: the format knows no key \"licence\""),
        (
            "license: MIT",
            "disable-model-invocation: \"true\"",
            "SKILL.md:4: warning: disable-model-invocation is a key of some",
        ),
        ("license: MIT", "license: MIT\nlicense: MIT", "SKILL.md:5: error: \"license\" is written twice"),
        ("license: MIT", "license:\tMIT", "SKILL.md:4: error: a tab in the front matter"),
        ("\n---\n\n# Cities", "\n--\n\n# Cities", "SKILL.md:1: error: the front matter does not end"),
        (
            "# Cities",
            "\u{202e}# Cities",
            "SKILL.md:11: warning: has a character that no reader sees (U+202E)",
        ),
        ("# Cities", "sk-proj-abcdefgh12345678", "SKILL.md:11: error: something here looks like a key"),
        ("# Cities", &many_lines, "SKILL.md:10: warning: the body has 504 lines"),
        ("# Cities", &many_words, "SKILL.md:10: warning: the body has about 5017 tokens"),
        ("# Cities", "[a](/etc/x.md)", "SKILL.md:11: error: the path \"/etc/x.md\" is absolute"),
        ("# Cities", "[a](../x.md)", "SKILL.md:11: error: the path \"../x.md\" leaves the skill's folder"),
        (
            "# Cities",
            "[a](references/../../x.md)",
            "SKILL.md:11: error: the path \"references/../../x.md\" leaves",
        ),
        (
            "# Cities",
            "[a](references\\list.md)",
            "SKILL.md:11: error: the path \"references\\\\list.md\" has backslashes",
        ),
        ("# Cities", "[a](more.md)", "SKILL.md:11: error: the folder has no \"more.md\""),
        ("# Cities", "scripts/other.sh", "SKILL.md:11: warning: the folder has no \"scripts/other.sh\""),
        (
            "# Cities",
            "[a](references/old/list.md)",
            "SKILL.md:11: warning: \"references/old/list.md\" lies more than one",
        ),
        ("# Cities", "See /home/ann/list", "SKILL.md:11: warning: a path of one machine only"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let told = told(&GOOD.replacen(from, to, 1));
        assert!(told.len() == 1 && told[0].contains(expected), "{expected}: {told:#?}");
    }
}

#[test]
fn faults_of_the_file_as_a_whole() {
    let cut = GOOD.trim_end();
    assert!(told(cut)[0].starts_with("SKILL.md:13: warning: the last line does not end"), "{:?}", told(cut));
    let marked = told(&format!("\u{feff}{GOOD}"));
    assert!(
        marked.len() == 1 && marked[0].contains("SKILL.md:1: error: begins with a byte order mark"),
        "{marked:?}"
    );
    let windows = told(&GOOD.replace('\n', "\r\n"));
    assert!(
        windows.len() == 1 && windows[0].contains("SKILL.md:1: error: has line ends other than LF"),
        "{windows:?}"
    );
    let bare = told("# Cities\n");
    assert!(bare.len() == 1 && bare[0].contains("SKILL.md:1: error: has no front matter"), "{bare:?}");
    let (head, _) = GOOD.split_once("\n# Cities").unwrap();
    assert!(told(head)[0].contains("SKILL.md:10: error: has no body"), "{:?}", told(head));
    let mut bytes = GOOD.as_bytes().to_vec();
    bytes.push(0xff);
    let broken = check_package(&package(&bytes), "cities").findings;
    assert!(
        broken.len() == 1 && broken[0].to_string().contains("SKILL.md:14: error: is not UTF-8"),
        "{broken:?}"
    );
    assert!(check_package(&Package::default(), "cities").findings[0].message.contains("holds no SKILL.md"));
}

#[test]
fn secrets_in_other_files_are_found_by_line_and_never_shown() {
    let secret = "ghp_abcdefghijklmnop1234";
    let file = PackageFile {
        path: "scripts/x.py".into(),
        bytes: format!("a\nb = '{secret}'\n").into_bytes(),
        executable: true,
    };
    let document = PackageFile {
        path: DOCUMENT.into(),
        bytes: GOOD
            .replace("See [", "see [")
            .replace("`scripts/find.sh`", "it")
            .replace("(references/list.md)", "(scripts/x.py)")
            .into(),
        executable: false,
    };
    let found = check_package(&Package::new(vec![file, document]), "cities").findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].file.as_str(), found[0].line, found[0].level),
        ("scripts/x.py", Some(2), Level::Error)
    );
    assert!(!found[0].to_string().contains(secret));
}

#[test]
fn a_folder_on_disk_is_checked_under_its_own_name() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("cities");
    for file in package(GOOD.as_bytes()).files() {
        let path = folder.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.bytes).unwrap();
    }
    assert_eq!(check(&folder).findings, []);
    std::os::unix::fs::symlink("list.md", folder.join("references/link.md")).unwrap();
    let found = check(&folder).findings;
    assert!(
        found.len() == 1 && found[0].to_string().contains("references/link.md: error: is a symbolic link"),
        "{found:?}"
    );
    let gone = check(&place.path().join("none")).findings;
    assert!(gone.len() == 1 && gone[0].message.contains("cannot be read"), "{gone:?}");
}
