//! Foreign patches: what analysts proposed, what merging and ranking left, how applying went. Reads shapes only; an edit
//! that cannot be read is noted and left out, never repaired.

use serde_json::{Map, Value};

use super::fields::{Fields, kind};
use super::folder::Folder;
use crate::domain::{
    Edit, EditOp, EditOutcome, EditReport, EditStatus, FailureNote, Patch, SourceType, UpdateMode,
};

/// One analyst's reply as SkillOpt keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignAnalysis {
    pub source: SourceType,
    pub minibatch: usize,
    /// Item ids; SkillOpt does not record them, planish does.
    pub items: Vec<String>,
    pub patch: Patch,
    pub failures: Vec<FailureNote>,
    pub success_patterns: Vec<String>,
    pub appendix_notes: Vec<String>,
    pub note: String,
}

/// The analyses in a `patches/` folder: failures first, then successes, each in minibatch order.
pub fn analyses(folder: &mut Folder, place: &str) -> Vec<ForeignAnalysis> {
    let mut found = Vec::new();
    for (prefix, source) in
        [("minibatch_fail_", SourceType::Failure), ("minibatch_succ_", SourceType::Success)]
    {
        let number = |name: &str| name.strip_prefix(prefix)?.strip_suffix(".json")?.parse::<usize>().ok();
        let mut files: Vec<(usize, String)> =
            folder.names(place).into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
        files.sort();
        for (minibatch, name) in files {
            let file = format!("{place}/{name}");
            let Some(map) = object(folder, &file) else { continue };
            let fields = Fields { map: &map, file: &file, line: None, place: "" };
            found.push(analysis(folder, &fields, source, minibatch));
        }
    }
    found
}

fn analysis(
    folder: &mut Folder,
    fields: &Fields<'_>,
    source: SourceType,
    minibatch: usize,
) -> ForeignAnalysis {
    let mut patch = patch_of(folder, fields);
    for edit in &mut patch.edits {
        edit.source_type = source;
    }
    let items = texts(folder, fields, "items");
    ForeignAnalysis {
        source,
        minibatch,
        items,
        patch,
        failures: failures(folder, fields),
        success_patterns: texts(folder, fields, "success_patterns"),
        appendix_notes: texts(folder, fields, "appendix_notes"),
        note: fields.text(folder, "note").unwrap_or_default(),
    }
}

/// The patch inside a reply, or the reply itself where the wrapper is lacking.
pub fn patch_of(folder: &mut Folder, fields: &Fields<'_>) -> Patch {
    let map = fields.object(folder, "patch").unwrap_or(fields.map);
    read_patch(folder, &Fields { map, place: "patch: ", ..*fields })
}

/// The texts of a list, or one text alone; notes may be wrapped in objects.
pub fn texts(folder: &mut Folder, fields: &Fields<'_>, key: &str) -> Vec<String> {
    if let Some(Value::String(text)) = fields.value(key) {
        return vec![text.clone()];
    }
    let text = |row: &Value| {
        let inner = row.get("note").or_else(|| row.get("content")).unwrap_or(row);
        inner.as_str().map(str::to_owned)
    };
    fields.list(folder, key).iter().filter_map(text).collect()
}

fn failures(folder: &mut Folder, fields: &Fields<'_>) -> Vec<FailureNote> {
    let mut notes = Vec::new();
    for row in fields.list(folder, "failure_summary") {
        let Value::Object(map) = row else { continue };
        let row = Fields { map, place: "failure_summary: ", ..*fields };
        notes.push(FailureNote {
            failure_type: row.text(folder, "failure_type").unwrap_or_default(),
            count: row.count(folder, "count"),
            description: row.text(folder, "description").unwrap_or_default(),
        });
    }
    notes
}

/// `merged_patch.json` or `ranked_edits.json`.
pub fn patch(folder: &mut Folder, file: &str) -> Option<Patch> {
    let map = object(folder, file)?;
    Some(read_patch(folder, &Fields { map: &map, file, line: None, place: "" }))
}

/// The proposals of a patch, whatever the update mode calls them.
fn read_patch(folder: &mut Folder, fields: &Fields<'_>) -> Patch {
    let reasoning = fields.text(folder, "reasoning").unwrap_or_default();
    let mut edits = Vec::new();
    for mode in [UpdateMode::Patch, UpdateMode::RewriteFromSuggestions, UpdateMode::FullRewriteMinibatch] {
        for (index, row) in fields.list(folder, mode.items_key()).iter().enumerate() {
            let place = format!("{} {}: ", mode.noun(), index + 1);
            let Value::Object(map) = row else {
                fields.note(folder, &format!("{place}{} instead of an object; left out", kind(row)));
                continue;
            };
            edits.push(proposal(folder, &Fields { map, place: &place, ..*fields }, mode));
        }
    }
    Patch { reasoning, edits }
}

fn proposal(folder: &mut Folder, fields: &Fields<'_>, mode: UpdateMode) -> Edit {
    let (op, target, content, rationale) = match mode {
        UpdateMode::Patch => ("op", "target", "content", "rationale"),
        UpdateMode::RewriteFromSuggestions => ("type", "title", "instruction", "motivation"),
        UpdateMode::FullRewriteMinibatch => ("op", "title", "new_skill", "rationale"),
    };
    let word = fields.text(folder, op).unwrap_or_default();
    let op = match mode {
        UpdateMode::FullRewriteMinibatch => EditOp::Rewrite,
        // Any text is an operation: those not known become `Unknown`.
        UpdateMode::Patch | UpdateMode::RewriteFromSuggestions => {
            serde_json::from_value(Value::String(word.clone())).unwrap_or(EditOp::Unknown)
        }
    };
    if op == EditOp::Unknown {
        fields.note(folder, &format!("{word:?} is no operation that planish knows"));
    }
    let mut rationale = fields.text(folder, rationale).unwrap_or_default();
    for change in fields.list(folder, "change_summary").iter().filter_map(Value::as_str) {
        rationale.push_str(if rationale.is_empty() { "" } else { "\n" });
        rationale.push_str(change);
    }
    let of_name = |key: &str| fields.value(key).cloned();
    let whole = |count: Option<usize>| count.and_then(|count| u32::try_from(count).ok());
    let ids = fields.list(folder, "motivated_by").iter().filter_map(Value::as_str);
    let motivated_by = ids.map(str::to_owned).collect();
    Edit {
        op,
        target: fields.text(folder, target).unwrap_or_default(),
        content: fields.text(folder, content).unwrap_or_default(),
        support_count: whole(fields.count(folder, "support_count")).unwrap_or(1),
        source_type: of_name("source_type")
            .and_then(|name| serde_json::from_value(name).ok())
            .unwrap_or_default(),
        merge_level: whole(fields.count(folder, "merge_level")),
        priority: of_name("priority_hint")
            .or(of_name("priority"))
            .and_then(|name| serde_json::from_value(name).ok()),
        rationale,
        motivated_by,
    }
}

/// `edit_apply_report.json`.
pub fn report(folder: &mut Folder, file: &str) -> Option<EditReport> {
    let value = folder.json(file)?;
    let Value::Array(rows) = value else {
        folder.note(file, None, format!("is {}, not a list; left out", kind(&value)));
        return None;
    };
    let mut outcomes = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Value::Object(map) = row else {
            folder.note(file, None, format!("row {} is {}; left out", index + 1, kind(row)));
            continue;
        };
        let place = format!("row {}: ", index + 1);
        let fields = Fields { map, file, line: None, place: &place };
        let word = fields.text(folder, "status").unwrap_or_default();
        let status = serde_json::from_value::<EditStatus>(Value::String(word.clone()));
        let mut error = fields.text(folder, "error");
        let status = status.unwrap_or_else(|_| {
            fields
                .note(folder, &format!("`status` is {word:?}, which planish does not know; shown as error"));
            error.get_or_insert_with(|| format!("recorded status: {word}"));
            EditStatus::Error
        });
        outcomes.push(EditOutcome {
            index: fields.count(folder, "index").unwrap_or(index + 1),
            op: fields.text(folder, "op").unwrap_or_default(),
            target: fields.text(folder, "target").unwrap_or_default(),
            content_preview: fields.text(folder, "content_preview").unwrap_or_default(),
            status,
            error,
        });
    }
    Some(EditReport::from_rows(outcomes))
}

/// A file that holds one object.
pub fn object(folder: &mut Folder, file: &str) -> Option<Map<String, Value>> {
    match folder.json(file)? {
        Value::Object(map) => Some(map),
        other => {
            folder.note(file, None, format!("is {}, not an object; left out", kind(&other)));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn edits_are_read_as_they_are_and_oddities_noted() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("ranked_edits.json"),
            r#"{"reasoning": "why", "edits": [
                {"op": "delete", "target": "zzz", "content": null, "source_type": "success", "support_count": "3"},
                {"op": "explode", "content": 5},
                "append"
            ]}"#,
        )
        .unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let patch = patch(&mut folder, "ranked_edits.json").unwrap();
        assert_eq!(patch.reasoning, "why");
        let [delete, unknown] = &patch.edits[..] else { panic!("{patch:?}") };
        assert_eq!((delete.op, delete.content.as_str(), delete.support_count), (EditOp::Delete, "", 3));
        assert_eq!(delete.source_type, SourceType::Success);
        assert_eq!((unknown.op, unknown.content.as_str()), (EditOp::Unknown, "5"));
        let told: Vec<String> = folder.into_oddities().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "ranked_edits.json: edit 2: \"explode\" is no operation that planish knows",
                "ranked_edits.json: edit 3: text instead of an object; left out",
            ]
        );
    }

    #[test]
    fn minibatches_come_in_number_order_failures_first() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("patches")).unwrap();
        for (name, text) in [
            ("minibatch_succ_000.json", r#"{"patch": {"edits": []}, "success_patterns": ["a", 1, "b"]}"#),
            ("minibatch_fail_010.json", r#"{"patch": {"edits": [{"op": "append", "content": "x"}]}}"#),
            (
                "minibatch_fail_002.json",
                r#"{"failure_summary": [{"failure_type": "t", "count": "two", "description": "d"}],
                    "edits": [{"op": "append", "content": "bare"}]}"#,
            ),
            ("minibatch_fail_003.json", "{\"patch\": "),
            ("notes.txt", ""),
        ] {
            fs::write(dir.path().join("patches").join(name), text).unwrap();
        }
        let mut folder = Folder::open(dir.path()).unwrap();
        let found = analyses(&mut folder, "patches");
        let told: Vec<_> =
            found.iter().map(|one| (one.source, one.minibatch, one.patch.edits.len())).collect();
        let expected =
            [(SourceType::Failure, 2, 1), (SourceType::Failure, 10, 1), (SourceType::Success, 0, 0)];
        assert_eq!(told, expected);
        assert_eq!(found[0].failures[0].count, None);
        assert_eq!(found[2].success_patterns, ["a", "b"]);
    }

    #[test]
    fn an_unknown_status_is_shown_not_guessed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("r.json"),
            r#"[{"index": 1, "op": "append", "status": "applied_append"}, {"status": "melted"}, 4]"#,
        )
        .unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let report = report(&mut folder, "r.json").unwrap();
        assert_eq!((report.total, report.applied, report.errors), (2, 1, 1));
        assert_eq!(report.rows[1].error.as_deref(), Some("recorded status: melted"));
        assert_eq!(folder.into_oddities().len(), 2);
    }
}
