//! What an exported folder says, and what is not exported.

use super::*;
use crate::domain::{Skill, SkillFolder};
use crate::event::{Event, Record, RunPlan};

fn state(text: &str, front: Option<&str>) -> RunState {
    let skill = Skill::new(text);
    let folder = front.map(|front| SkillFolder { front_matter: Some(front.into()), files: Vec::new() });
    let plan = RunPlan {
        epochs: 1,
        steps_per_epoch: 1,
        total_steps: 1,
        batch_size: 1,
        train: 1,
        val: 1,
        test: 0,
        target: "t".into(),
        optimizer: "o".into(),
        judge: String::new(),
        env: "qa".into(),
        review: crate::domain::ReviewMode::Auto,
    };
    let event = Event::RunStarted {
        v: 1,
        run: "City Demo_1".into(),
        seed: 7,
        config: Json::Null,
        config_hash: String::new(),
        skill,
        plan,
        origin: None,
        folder,
        origins: Default::default(),
    };
    // 2026-11-30T00:00:01Z
    let mut state = RunState::fold(&[Record { seq: 1, at: 1_795_996_801_000, event }]);
    state.best_score = Some(0.875);
    state
}

fn wishes(name: &str, description: &str) -> Wishes {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Wishes { name: some(name), description: some(description), license: None }
}

fn document(state: &RunState, wishes: &Wishes) -> String {
    let exported = export(state, Vec::new(), wishes).unwrap();
    String::from_utf8(exported.package.document().unwrap().to_vec()).unwrap()
}

const DESCRIPTION: &str = "Names \"cities\": all. Use when asked.";

#[test]
fn a_run_without_front_matter_gets_one_that_says_where_the_skill_came_from() {
    let state = state("Answer with one word.", None);
    let text = document(&state, &Wishes { license: Some("MIT".into()), ..wishes("", DESCRIPTION) });
    let parent = &state.initial_hash;
    let date = "2026-11-30";
    assert_eq!(
        text,
        format!(
            "---\nname: \"city-demo-1\"\ndescription: \"Names \\\"cities\\\": all. Use when asked.\"\nlicense: \"MIT\"\n\
             metadata:\n  generator: \"planish {}\"\n  run-id: \"City Demo_1\"\n  parent-sha: \"{parent}\"\n  \
             val-score: \"0.8750\"\n  date: \"{date}\"\n---\n\nAnswer with one word.\n",
            env!("CARGO_PKG_VERSION")
        )
    );
    assert_eq!(
        document(&state, &Wishes { license: Some("MIT".into()), ..wishes("", DESCRIPTION) }),
        text,
        "stable"
    );
}

#[test]
fn kept_front_matter_stays_as_it_was_written_but_for_the_metadata_of_this_run() {
    let front = "# ours\nname: 'cities' # short\nlicense: MIT\ndescription: >-\n  Names cities. Use when\n  asked.\nmetadata: # more\n    author: me\n    run-id: \"old\"\n    version: \"2\"\nallowed-tools: Read\n";
    let text = document(&state("Do it.\n", Some(front)), &Wishes::default());
    let (head, tail) = text.split_once("    version: \"2\"\n").unwrap();
    assert_eq!(head, format!("---\n{}", front.split_once("    run-id").unwrap().0));
    assert!(tail.starts_with("    generator: \"planish"), "{text}");
    assert!(tail.ends_with("  date: \"2026-11-30\"\nallowed-tools: Read\n---\n\nDo it.\n"), "{text}");
    assert!(!text.contains("old") && text.contains("    run-id: \"City Demo_1\"\n"), "{text}");
    let flow = front.replace(
        "metadata: # more\n    author: me\n    run-id: \"old\"\n    version: \"2\"",
        "metadata: {author: me}",
    );
    assert!(
        document(&state("Do it.\n", Some(&flow)), &Wishes::default())
            .contains("metadata:\n  author: \"me\"\n  generator:")
    );
    let renamed = document(&state("Do it.\n", Some(front)), &wishes("towns", "New words. Use when new."));
    assert!(
        renamed
            .contains("name: \"towns\"\nlicense: MIT\ndescription: \"New words. Use when new.\"\nmetadata:"),
        "{renamed}"
    );
}

#[test]
fn front_matter_inside_the_text_of_a_file_is_taken_as_such() {
    let text =
        document(&state("---\nname: a\ndescription: Use when b.\n---\n\nDo it.\n", None), &Wishes::default());
    assert!(text.starts_with("---\nname: a\ndescription: Use when b.\nmetadata:\n"), "{text}");
    assert!(text.ends_with("---\n\nDo it.\n") && text.matches("---").count() == 2, "{text}");
}

#[test]
fn what_would_break_a_rule_is_not_exported_and_named() {
    let told = |text: &str, front: Option<&str>, wishes: Wishes| {
        export(&state(text, front), Vec::new(), &wishes).unwrap_err().to_string()
    };
    assert!(told("x", None, Wishes::default()).contains("--description"));
    assert!(
        told("x", None, wishes("bad name", DESCRIPTION))
            .contains("has the character ' '; write \"bad-name\", or another")
    );
    assert!(told(" \n", None, wishes("", DESCRIPTION)).contains("has no body"));
    let key = told("sk-proj-abcdefgh12345678", None, wishes("", DESCRIPTION));
    assert!(key.contains("SKILL.md:12: error: something here looks like a key"), "{key}");
    assert!(told("[a](gone.md)", None, wishes("", DESCRIPTION)).contains("has no \"gone.md\""));
    let long = told("x", None, wishes("", &"Use when ".repeat(200)));
    assert!(long.contains("the description has 1799 characters"), "{long}");
    let bad = Some("name: a\ndescription: b: c\n");
    assert!(told("x", bad, Wishes::default()).contains("give --name and --description"));
    assert!(export(&state("x", bad), Vec::new(), &wishes("a", DESCRIPTION)).is_ok());
    let listed = Some("name: a\ndescription: Use when b.\nmetadata:\n  c: [d]\n");
    assert!(told("x", listed, Wishes::default()).contains("metadata.c is a list"));
    assert!(matches!(
        export(&RunState::default(), Vec::new(), &Wishes::default()),
        Err(ExportError::NoSkill { .. })
    ));
}

#[test]
fn the_files_that_came_with_the_seed_come_out_again() {
    let file = PackageFile { path: "scripts/x.sh".into(), bytes: b"run\n".to_vec(), executable: true };
    let exported =
        export(&state("Run scripts/x.sh", None), vec![file.clone()], &wishes("", DESCRIPTION)).unwrap();
    assert_eq!(exported.package.get("scripts/x.sh"), Some(&file));
    assert_eq!(exported.findings, []);
}

proptest::proptest! {
    #[test]
    fn whatever_is_said_of_a_skill_reads_back(description in "Use when \\PC{0,200}", license in "\\PC{1,40}", body in "[a-z .\n#-]{1,80}") {
        proptest::prop_assume!(!body.trim().is_empty() && !body.trim_start_matches('\n').starts_with("---"));
        let wishes = Wishes { name: Some("a".into()), description: Some(description.clone()), license: Some(license.clone()) };
        if let Ok(exported) = export(&state(&body, None), Vec::new(), &wishes) {
            let text = String::from_utf8(exported.package.document().unwrap().to_vec()).unwrap();
            let parts = divide(&text).unwrap();
            let (matter, faults) = FrontMatter::parse(parts.front.unwrap());
            proptest::prop_assert_eq!(faults, vec![]);
            proptest::prop_assert_eq!(matter.text("description"), Some(description.as_str()));
            proptest::prop_assert_eq!(matter.text("license"), Some(license.as_str()));
            proptest::prop_assert_eq!(parts.body.trim_matches('\n'), body.trim_matches('\n'));
        }
    }
}
