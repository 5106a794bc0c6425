use std::path::Path;

use serde_json::Value;

use super::super::conversation::{Said, Speaker};
use super::super::dialect::Dialect;
use super::super::fault::Drip;
use super::super::script::Chaos;
use super::super::turn::Finish;
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
fn bad_patterns_are_refused_with_their_place() {
    let rule = Rule { matches: Some("(".into()), answers: vec!["a".into()], ..Rule::default() };
    let script = Script {
        rules: vec![Rule { answers: vec!["a".into()], ..Rule::default() }, rule],
        ..Script::default()
    };
    let error = Playbook::new(script).unwrap_err().to_string();
    assert!(error.starts_with("rule 2: matches is no regular expression: "), "{error}");
    assert!(Script::load(Path::new("no/such.toml")).unwrap_err().to_string().starts_with("no/such.toml: "));
}

#[test]
fn bad_scripts_are_told_in_words_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    for (text, want) in [
        ("latency_ms = \"5\"", "latency_ms: found the text \"5\", expected a whole number"),
        ("usage = { prompt_tokens = 3 }", "usage: key `completion_tokens` is missing"),
        ("[[rule]]", "unknown key `rule`; known: `latency_ms`"),
        ("rules = 3", "rules: expected a list of tables"),
        ("chaos = { seed = 1, rate = 3.0, faults = [] }", "chaos: rate must lie between 0 and 1"),
        ("[[rules]]\nname = \"x\"", "rule 1 (x): key `answers` is missing"),
        ("[[rules]]\nanswers = []", "rule 1: no answers"),
        ("[[rules]]\nanswers = [\"a\"]\ndialect = \"b\"", "rule 1: dialect: unknown word `b`; known: `chat`"),
        ("[[rules]]\nanswers = [\"a\", 5]", "rule 1: answer 2: an answer is a text or a table, not 5"),
        ("[[rules]]\nanswers = [{ finish = \"x\" }]", "this one has finish"),
        (
            "[[rules]]\nanswers = [{ text = \"a\", finsh = \"x\" }]",
            "rule 1: answer 1: unknown key `finsh`; known: `text`",
        ),
        (
            "[[rules]]\nanswers = [{ fault = \"oops\" }]",
            "rule 1: answer 1: unknown word `oops`; known: `status`",
        ),
        ("[[rules]]\nanswers = [{ fault = \"huge\" }]", "rule 1: answer 1: key `bytes` is missing"),
        (
            "[[rules]]\nanswers = [{ fault = \"huge\", bytes = \"x\" }]",
            "answer 1: bytes: found the text \"x\"",
        ),
        (
            "[[rules]]\nanswers = [{ tools = [{ name = \"x\" }] }]",
            "tools: unknown key `name`; known: `tool` or `arguments`",
        ),
        ("[[rules]]\nanswers = [\"a\"", "TOML parse error at line 2"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = Script::load(&file).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}: ", file.display())) && error.contains(want),
            "{text}: {error}"
        );
    }
}

#[test]
fn rules_look_at_tools_dialect_and_model() {
    let script: Script = toml::from_str(
        r#"
        [[rules]]
        tool_result = "^42"
        answers = ["seen"]
        [[rules]]
        after_tool = true
        answers = ["other result"]
        [[rules]]
        dialect = "gemini"
        answers = ["in gemini"]
        [[rules]]
        model = "^small"
        answers = ["small model"]
        [[rules]]
        after_tool = false
        answers = ["rest"]
        "#,
    )
    .unwrap();
    let mut book = Playbook::new(script).unwrap();
    let x = said("", "x");
    let result = |result: &str| Conversation { tool_result: Some(result.into()), ..x.clone() };
    for (said, want) in [
        (result("42"), "seen"),
        (result("41"), "other result"),
        (Conversation { dialect: Dialect::Gemini, ..x.clone() }, "in gemini"),
        (Conversation { model: "small-1".into(), ..x.clone() }, "small model"),
        (x.clone(), "rest"),
    ] {
        assert_eq!(text(book.act(&said, "")), want);
    }
}

#[test]
fn turns_of_agents_do_not_depend_on_each_other() {
    let script: Script = toml::from_str(
        r#"
        [[rules]]
        asked = "file (\\w+)"
        pick = "turn"
        answers = [
            { tool = "bash", arguments = { command = "cat $1", n = [1] }, expand = true },
            { tools = [{ tool = "a" }, { tool = "b", arguments = "{no json" }], finish = "stop" },
            "done",
        ]
        "#,
    )
    .unwrap();
    let mut book = Playbook::new(script).unwrap();
    let mut at = |replies: usize| match book.act(&Conversation { replies, ..said("", "file x") }, "") {
        Act::Reply { turn, .. } => turn,
        Act::Fault(fault) => panic!("{fault:?}"),
    };
    assert_eq!(at(2).text, "done");
    let first = at(0);
    assert_eq!(first.calls[0].arguments, serde_json::json!({"command": "cat x", "n": [1]}));
    assert_eq!((first.calls[0].id.as_str(), first.finish), ("1_1", Finish::ToolCalls));
    let second = at(1);
    let calls: Vec<_> = second.calls.iter().map(|call| (call.id.clone(), call.arguments_text())).collect();
    assert_eq!(calls, [("2_1".into(), "{}".into()), ("2_2".into(), "{no json".into())]);
    assert_eq!((second.finish, at(7).text.as_str()), (Finish::Stop, "done"));
}

#[test]
fn chaos_that_only_slows_keeps_the_answer() {
    let drip = Drip { bytes: 3, every_ms: 1 };
    let chaos = Chaos { seed: 1, rate: 1.0, faults: vec![Fault::Drip(drip)] };
    let script = Script { chaos: Some(chaos), ..Script::sequence(["kept".into()]) };
    let act = Playbook::new(script).unwrap().act(&said("", "x"), "");
    assert_eq!(
        act,
        Act::Reply { turn: Turn::of_text("kept"), pace: Pace { drip: Some(drip), comments: None } }
    );
}
