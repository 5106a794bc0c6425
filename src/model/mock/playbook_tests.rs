use std::path::Path;

use serde_json::Value;

use super::super::conversation::{Said, Speaker};
use super::super::dialect::Dialect;
use super::super::script::Chaos;
use super::*;

fn said(system: &str, last: &str) -> Conversation {
    let messages = [Said::new(Speaker::System, system), Said::new(Speaker::User, last)];
    Conversation::of(Dialect::Chat, "m", &messages)
}

fn text(act: Act) -> String {
    match act {
        Act::Reply { turn, .. } => turn.text,
        Act::Fault(fault) => format!("{fault:?}"),
    }
}

#[test]
fn reads_toml_rules_and_expands_groups() {
    let script: Script = toml::from_str(
        r#"
        latency_ms = 3
        [[rules]]
        system = "analyst"
        answers = ["{}"]
        [[rules]]
        name = "city"
        matches = "in (\\w+)"
        answers = [{ text = "$1", expand = true }]
        [[rules]]
        pick = "sequence"
        answers = [{ fault = "status", status = 429, headers = { retry-after = "1" } }, "fine", { fault = "hang" }]
        "#,
    )
    .unwrap();
    let mut book = Playbook::new(script).unwrap();
    assert_eq!(text(book.act(&said("you are an analyst", "in Rome"), "")), "{}");
    assert_eq!(text(book.act(&said("", "lives in Rome"), "")), "Rome");
    assert_eq!(book.answered(), "city");
    let x = said("", "x");
    assert!(text(book.act(&x, "")).contains("429"));
    assert_eq!(book.answered(), "");
    assert_eq!(text(book.act(&x, "")), "fine");
    assert_eq!([book.act(&x, ""), book.act(&x, "")], [(); 2].map(|()| Act::Fault(Fault::Hang)));
}

#[test]
fn later_rounds_are_told_apart_and_groups_fill_json() {
    let script: Script = toml::from_str(
        r#"
        [[rules]]
        after_reply = false
        answers = ["no"]
        [[rules]]
        asked = "(?s)<skill>(?<skill>.*)</skill>"
        answers = [{ json = { new_skill = "$skill!", n = [1, { deep = "$skill" }] } }]
        "#,
    )
    .unwrap();
    let mut book = Playbook::new(script).unwrap();
    let mut said = said("", "once more");
    said.asked = "<skill>say \"a\"\nand b</skill>".into();
    assert_eq!(text(book.act(&said, "")), "no");
    said.replies = 1;
    let reply: Value = serde_json::from_str(&text(book.act(&said, ""))).unwrap();
    let skill = "say \"a\"\nand b";
    assert_eq!(reply, serde_json::json!({"new_skill": format!("{skill}!"), "n": [1, {"deep": skill}]}));
    said.asked = "nothing".into();
    assert!(text(book.act(&said, "")).contains("404"));
}

#[test]
fn prompt_picks_do_not_depend_on_order() {
    let rule = Rule { answers: ["a", "b", "c"].map(Answer::from).into(), ..Rule::default() };
    let script = Script { rules: vec![rule], ..Script::default() };
    let answers = |order: &[u32]| {
        let mut book = Playbook::new(script.clone()).unwrap();
        order.iter().map(|n| (*n, text(book.act(&said("", &n.to_string()), "")))).collect::<HashMap<_, _>>()
    };
    let forward = answers(&(0..30).collect::<Vec<_>>());
    assert_eq!(forward, answers(&(0..30).rev().collect::<Vec<_>>()));
    assert_eq!(forward.values().collect::<std::collections::HashSet<_>>().len(), 3);
}

#[test]
fn chaos_hits_about_its_rate_and_the_same_requests_each_time() {
    let chaos = Chaos { seed: 7, rate: 0.3, faults: vec![Fault::Hang, Fault::Drop] };
    let rule = Rule { answers: vec!["ok".into()], ..Rule::default() };
    let script = Script { chaos: Some(chaos), rules: vec![rule], ..Script::default() };
    let hits = || {
        let mut book = Playbook::new(script.clone()).unwrap();
        (0..1000).filter(|n| text(book.act(&said("", ""), &n.to_string())) != "ok").collect::<Vec<_>>()
    };
    assert_eq!(hits(), hits());
    assert!((250..350).contains(&hits().len()), "{}", hits().len());
}

#[test]
fn bad_scripts_are_refused_with_their_place() {
    let rule = Rule { matches: Some("(".into()), answers: vec!["a".into()], ..Rule::default() };
    let script = Script {
        rules: vec![Rule { answers: vec!["a".into()], ..Rule::default() }, rule],
        ..Script::default()
    };
    assert!(Playbook::new(script).unwrap_err().to_string().starts_with("rule 2: "));
    assert!(Script::load(Path::new("no/such.toml")).unwrap_err().to_string().starts_with("no/such.toml: "));
}
