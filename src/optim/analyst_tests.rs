use serde_json::json;

use super::*;

fn shown() -> Vec<String> {
    vec!["t1".into(), "t2".into(), "t3".into()]
}

fn analyst(reply: Value, budget: usize) -> Result<AnalystReply, ReplyFault> {
    analyst_reply(&reply.to_string(), UpdateMode::Patch, SourceType::Success, budget, &shown())
}

#[test]
fn an_edit_carries_its_source_support_and_items() {
    let reply = analyst(
        json!({"batch_size": 2, "patch": {"reasoning": "why", "edits": [
            {"op": "append", "content": "x", "source_type": "failure", "motivated_by": ["t2", "elsewhere"]},
            {"op": "delete", "target": "y", "content": null, "support_count": 1, "rationale": "stale"},
        ]}}),
        9,
    )
    .unwrap();
    assert_eq!(reply.patch.reasoning, "why");
    let [append, delete] = reply.patch.edits.as_slice() else { panic!("{reply:?}") };
    assert_eq!((append.source_type, append.support_count), (SourceType::Success, 2));
    assert_eq!(append.motivated_by, ["t2"], "an id that was not shown is no motive");
    assert_eq!((delete.op, delete.target.as_str(), delete.content.as_str()), (EditOp::Delete, "y", ""));
    assert_eq!((delete.support_count, delete.rationale.as_str()), (1, "stale"));
    assert_eq!(delete.motivated_by, shown());
    assert_eq!(reply.left_out, [""; 0]);
}

#[test]
fn support_defaults_to_the_number_of_items_shown() {
    for odd in [json!("eight"), json!([1]), json!(null), json!(true), json!(-3), json!(1e300)] {
        let reply = analyst(json!({"batch_size": odd, "patch": {"edits": [{"op": "append"}]}}), 9).unwrap();
        assert_eq!(reply.patch.edits[0].support_count, 3, "{odd}");
    }
}

#[test]
fn the_budget_cuts_and_malformed_edits_do_not_count() {
    let edits = json!(["x", {"op": "append", "content": 5}, {"op": "append", "content": "a"},
        {"op": "Append", "content": "b"}, {"op": "append", "content": "c"}]);
    let reply = analyst(json!({"patch": {"edits": edits}}), 2).unwrap();
    let contents: Vec<&str> = reply.patch.edits.iter().map(|edit| edit.content.as_str()).collect();
    assert_eq!(contents, ["a", "b"]);
    assert_eq!(reply.patch.edits[1].op, EditOp::Unknown);
    assert_eq!(
        reply.left_out,
        [
            "edit 1: a text instead of an object",
            "edit 2: `content` is a number, not text",
            "edit 4: unknown op \"Append\"",
            "the budget of 2 leaves out 1 of 3 edits",
        ]
    );
}

#[test]
fn nothing_to_propose_is_a_reply_and_a_broken_one_is_a_fault() {
    assert_eq!(analyst(json!({"patch": {"edits": []}}), 4).unwrap().patch.edits, []);
    let unwrapped = analyst(json!({"edits": [{"op": "append", "content": "a"}]}), 4).unwrap();
    assert_eq!(unwrapped.patch.edits.len(), 1);
    let cases = [
        (json!([1]), "the reply is a list, not a JSON object"),
        (json!({"edits": []}), "the reply has no `patch`"),
        (json!({"patch": "y"}), "`patch` is a text, not an object"),
        (json!({"patch": {}}), "the reply has no `edits`"),
        (json!({"patch": {"edits": {}}}), "`edits` is an object, not a list"),
        (json!({"patch": {"edits": [1]}}), "no edit is usable: edit 1: a number instead of an object"),
    ];
    for (reply, message) in cases {
        // A bare list is found in a fence only.
        let text = format!("```json\n{reply}\n```");
        let fault = analyst_reply(&text, UpdateMode::Patch, SourceType::Failure, 4, &shown()).unwrap_err();
        assert_eq!(fault.to_string(), message);
    }
    let prose =
        analyst_reply("I cannot help with that.", UpdateMode::Patch, SourceType::Failure, 4, &shown());
    assert_eq!(prose, Err(ReplyFault::NoJson));
}

#[test]
fn failure_summaries_are_read_leniently() {
    let rows = json!([{"failure_type": "A", "count": "2", "description": "d"}, {"failure_type": " "}, "x",
        {"failure_type": "B", "count": "many"}]);
    let reply = analyst(json!({"failure_summary": rows, "patch": {"edits": []}}), 4).unwrap();
    let note = |kind: &str, count, description: &str| FailureNote {
        failure_type: kind.into(),
        count,
        description: description.into(),
    };
    assert_eq!(reply.failures, [note("A", Some(2), "d"), note("B", None, "")]);
    let reply = analyst(json!({"failure_summary": "bad", "patch": {"edits": []}}), 4).unwrap();
    assert_eq!(reply.failures, []);
}
