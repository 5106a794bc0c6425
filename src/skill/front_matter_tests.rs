//! What front matter is read as, and what is wrong with it.

use super::*;

fn told(front: &str) -> Vec<String> {
    FrontMatter::parse(front).1.iter().map(ToString::to_string).collect()
}

#[test]
fn a_document_is_divided_at_its_fences() {
    let parts = divide("---\nname: a\n---\n\n# Body\n---\nrest\n").unwrap();
    assert_eq!(parts, Parts { front: Some("name: a\n"), body: "\n# Body\n---\nrest\n", body_line: 4 });
    let parts = divide("---  \n---\nx").unwrap();
    assert_eq!(parts, Parts { front: Some(""), body: "x", body_line: 3 });
    let parts = divide("# Body\n---\n").unwrap();
    assert_eq!(parts, Parts { front: None, body: "# Body\n---\n", body_line: 1 });
    assert_eq!(divide("---\nname: a\n"), Err(Unclosed));
    assert_eq!(divide("\u{feff}---\n---\nx").unwrap().body, "x");
    assert_eq!(divide("").unwrap().body, "");
}

#[test]
fn entries_keep_their_own_lines() {
    let front = "# about\nname: cities\ndescription: >\n  Long\n  text.\n\nmetadata:\n  a: one\n  # why\n  b: \"2\"\n# end\nlicense: MIT";
    let (matter, faults) = FrontMatter::parse(front);
    assert_eq!(faults, []);
    assert_eq!(matter.preamble, "# about\n");
    assert_eq!(matter.text("name"), Some("cities"));
    assert_eq!(matter.text("description"), Some("Long text.\n"));
    let whole: String = matter.entries.iter().map(|entry| entry.written.as_str()).collect();
    assert_eq!(format!("{}{whole}", matter.preamble), format!("{front}\n"));
    let metadata = matter.get("metadata").unwrap();
    assert_eq!(metadata.line, 8);
    let Value::Map(inner) = &metadata.value else { panic!("{metadata:?}") };
    assert_eq!(inner[0].written, "  a: one\n  # why\n");
    assert_eq!(inner[1].written, "  b: \"2\"\n# end\n");
    assert_eq!((inner[1].value.text(), inner[1].line), (Some("2"), 11));
}

#[test]
fn every_fault_has_its_line() {
    for (front, expected) in [
        ("name: a\ndescription: Use when: x\n", "SKILL.md:3: error: an unquoted value with a colon"),
        ("name: a\ndescription: ends:\n", "SKILL.md:3: error: an unquoted value with a colon"),
        ("name: a\nmetadata:\n\tb: c\n", "SKILL.md:4: error: a tab"),
        ("name: a\nname: b\n", "SKILL.md:3: error: \"name\" is written twice"),
        ("name: a\nmetadata: {b: c, b: d}\n", "\"b\" is written twice"),
        ("name: a\ndescription: see #3 of it\n", "SKILL.md:3: warning: an unquoted value with ` #`"),
        (
            "name: a\nmetadata:\n  date: 2026-11-30\n",
            "SKILL.md:4: warning: the unquoted value \"2026-11-30\"",
        ),
        ("name: 12\n", "SKILL.md:2: warning: the unquoted value \"12\""),
        ("name: yes\n", "SKILL.md:2: warning: the unquoted value \"yes\""),
        ("name:\n", "SKILL.md:2: warning: the unquoted value \"\""),
        ("name: &x a\n", "SKILL.md:2: error: an anchor or a tag"),
        ("a: &x b\nname: *x\n", "SKILL.md:3: error: an alias"),
        ("name: !!str a\n", "SKILL.md:2: error: an anchor or a tag"),
        ("? [a]\n: b\n", "SKILL.md:2: error: a key that is no plain name"),
        ("- a\n", "SKILL.md:2: error: the front matter is no mapping"),
        ("{name: a, description: b}\n", "SKILL.md:2: error: \"description\" is not on a line of its own"),
        ("name: \"a\n", "error: the front matter is not valid YAML"),
        (&format!("name: {}\n", "x".repeat(LARGEST)), "at most 65536 are read"),
    ] {
        let told = told(front);
        assert!(told.iter().any(|line| line.contains(expected)), "{front:?}: {told:?}");
    }
}

#[test]
fn well_formed_values_are_no_faults() {
    for front in [
        "name: a\ndescription: \"Use when: x # y\"\n",
        "description: 'a: b'\n",
        "description: |\n  a: b: c\n  d #e\nname: x\n",
        "# note: a: b\nname: x\n",
        "homepage: https://example.com/a#b\n",
        "",
        "# nothing\n",
    ] {
        assert_eq!(told(front), Vec::<String>::new(), "{front:?}");
    }
}

#[test]
fn nested_values_are_named_and_do_not_break_what_follows() {
    let (matter, faults) = FrontMatter::parse("a: [x, [y]]\nmetadata:\n  b: {c: d}\n  e: f\nname: g\n");
    assert_eq!(faults, []);
    assert_eq!(matter.get("a").unwrap().value, Value::Other("list"));
    let Value::Map(inner) = &matter.get("metadata").unwrap().value else { panic!("{matter:?}") };
    assert_eq!(inner[0].value, Value::Other("mapping"));
    assert_eq!(matter.text("name"), Some("g"));
}

proptest::proptest! {
    #[test]
    fn a_quoted_text_reads_back(text in "(\\PC|[\n\t\u{1}\u{85}\u{2028}\u{feff}]){0,60}") {
        let (matter, faults) = FrontMatter::parse(&format!("a: {}\n", quoted(&text)));
        proptest::prop_assert_eq!(&faults, &vec![]);
        proptest::prop_assert_eq!(matter.text("a"), Some(text.as_str()));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(\\PC|[\n\t:#'\"\\[\\]{}|>&*-]| ){0,120}") {
        let _ = FrontMatter::parse(&text);
        let _ = divide(&text);
    }
}
