//! A run's report: result, steps, stages between epochs, and the lineage of the best skill. Pure functions of the run's
//! state; item ids and scores only, never an item's content.

use serde_json::{Value, json};

use super::carried::{skill_folder_rows, skill_folder_summary};
use super::describe::{bounded, count, score, test_line, tokens, verdict_word};
use super::lineage::{EditOrigin, Lineage, Origin, OriginStage, lineage};
use super::money::dollars;
use super::stages::{action_words, pair_words, sample_words, stage_summary};
use super::table::{markdown, markdown_table};
use crate::domain::{EpochStage, Origin as RunOrigin, SourceType, Verdict};
use crate::event::{RunState, RunStatus, StageState, StepState};
use crate::text::{sanitize_line, truncate};

/// Longest reason in a table, in columns.
const REASON: usize = 240;

/// The report in Markdown, line by line.
pub fn report(state: &RunState) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(info) = &state.info {
        let plan = &info.plan;
        out.push(format!("# {}", markdown(&info.name)));
        out.push(String::new());
        out.push(format!(
            "{}. {} of {} in {}; {}/{}/{} train/val/test items; seed {}; target {}, optimizer {}.",
            status(state),
            state.steps.iter().filter(|step| step.record.is_some()).count(),
            count(plan.total_steps as usize, "step"),
            count(plan.epochs as usize, "epoch"),
            plan.train,
            plan.val,
            plan.test,
            info.seed,
            markdown(&plan.target),
            markdown(&plan.optimizer)
        ));
    }
    section(&mut out, "Result", result(state));
    let folder = state.info.as_ref().and_then(|info| info.folder.as_ref());
    section(&mut out, "Skill folder", folder.map(skill_folder_rows).unwrap_or_default());
    section(&mut out, "Steps", steps(state));
    section(&mut out, "Between epochs", stages(state));
    let told = lineage(state);
    section(&mut out, "Lineage of the best skill", lines_of(&told));
    section(&mut out, "Changes", changes(&told));
    out
}

/// The report as data.
pub fn report_json(state: &RunState) -> Value {
    let (status, reason) = match &state.status {
        RunStatus::Ended { status, reason } => (json!(status), reason.as_str()),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => (Value::Null, ""),
    };
    let step =
        |step: &StepState| json!({"record": step.record, "gate": step.gate, "override": step.overruling});
    let stage = |found: &StageState| {
        let mut told = stage_summary(found);
        told["current_hash"] = json!(found.current_hash);
        told
    };
    json!({
        "run": state.info.as_ref().map(|info| &info.name),
        "status": status,
        "reason": reason,
        "seed": state.info.as_ref().map(|info| info.seed),
        "origin": state.info.as_ref().and_then(|info| info.origin.as_ref()).map(origin_summary),
        "skill_folder": state.info.as_ref().and_then(|info| info.folder.as_ref()).map(skill_folder_summary),
        "plan": state.info.as_ref().map(|info| &info.plan),
        "baseline": state.baseline_score,
        "best_score": state.best_score,
        "best_step": state.best_step,
        "current_score": state.current_score,
        "current_score_stale": state.current_score_stale,
        "final_selection": state.final_selection.as_ref().map(|(score, promoted)| {
            json!({ "score": score.gate, "promoted": promoted })
        }),
        "test": state.test,
        "steps": state.steps.iter().filter(|step| step.record.is_some()).map(step).collect::<Vec<_>>(),
        "stages": state.stages.iter().map(stage).collect::<Vec<_>>(),
        "usage": state.usage,
        "lineage": lineage(state),
    })
}

/// A heading and its body; nothing without a body.
fn section(out: &mut Vec<String>, title: &str, body: Vec<String>) {
    if !body.is_empty() {
        out.extend([String::new(), format!("## {title}"), String::new()]);
        out.extend(body);
    }
}

fn status(state: &RunState) -> String {
    match &state.status {
        RunStatus::NotStarted => "Not started".to_owned(),
        RunStatus::Running => "Running (or stopped without an end)".to_owned(),
        RunStatus::Paused { by } => format!("Paused by {}", markdown(&by.0)),
        RunStatus::Cancelling { by } => format!("About to stop for {}", markdown(&by.0)),
        RunStatus::Ended { status, reason } => {
            let word = match status {
                crate::event::EndStatus::Completed => "Completed",
                crate::event::EndStatus::Cancelled => "Cancelled",
                crate::event::EndStatus::Failed => "Failed",
                crate::event::EndStatus::BudgetExhausted => "Stopped: budget exhausted",
                crate::event::EndStatus::Imported => "Not a run of planish's own",
            };
            if reason.is_empty() { word.to_owned() } else { format!("{word}: {}", markdown(reason)) }
        }
    }
}

/// Where a run came from that did not begin at a seed.
pub fn origin_summary(origin: &RunOrigin) -> Value {
    match origin {
        RunOrigin::Imported(imported) => json!({ "imported_from": imported.folder, "steps": imported.steps }),
        RunOrigin::Continued(continued) => {
            json!({ "continued_from": continued.folder, "steps": continued.last.step })
        }
    }
}

fn result(state: &RunState) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "not measured".to_owned(), score);
    let stale =
        if state.current_score_stale { " (stale: the skill was changed outside the gate)" } else { "" };
    let mut out = vec![
        format!("- Selection score of the seed: {}", number(state.baseline_score)),
        format!(
            "- Selection score of the best skill: {} ({})",
            number(state.best_score),
            state.best_origin()
        ),
        format!("- Selection score of the last skill: {}{stale}", number(state.current_score)),
    ];
    if let Some(RunOrigin::Continued(continued)) = state.info.as_ref().and_then(|info| info.origin.as_ref()) {
        let folder = markdown(&continued.folder);
        out.insert(0, format!("- Continues {folder} behind its step {}", continued.last.step));
    }
    if let Some((last, promoted)) = &state.final_selection {
        let verdict = if *promoted { "it became the best" } else { "not above the best" };
        out.push(format!("- Final selection: the last skill has {}, {verdict}", score(last.gate)));
    }
    if let Some(test) = &state.test {
        let changed = format!("{} gained, {} lost", test.gained, test.lost);
        out.push(format!("- Test: {}; {changed} (95 % interval, paired by item)", test_line(test)));
    }
    let usage = state.total_usage();
    let money =
        if usage.nanodollars > 0 { format!(", {}", dollars(usage.nanodollars)) } else { String::new() };
    out.push(format!(
        "- Cost: {}, {} prompt and {} completion tokens{money}",
        count(usage.calls as usize, "call"),
        tokens(usage.prompt_tokens),
        tokens(usage.completion_tokens)
    ));
    let unanswered = state.total_unanswered();
    if unanswered.calls > 0 {
        let attempts = count(unanswered.calls as usize, "attempt");
        out.push(format!("- Of these {attempts} without a reply, counted at the most they can have used"));
    }
    out
}

fn steps(state: &RunState) -> Vec<String> {
    let row = |step: &StepState| {
        let record = step.record.as_ref()?;
        let applied = record
            .edit_apply_summary
            .map_or_else(|| "–".to_owned(), |summary| format!("{} of {}", summary.applied, summary.total));
        let mut row = vec![
            record.at.step.to_string(),
            record.at.epoch.to_string(),
            score(record.rollout_hard),
            applied,
            step_verdict(step, record.action),
        ];
        row.extend(match &step.gate {
            Some(gate) => [
                bounded(&gate.candidate, gate.candidate.gate),
                format!("{:.3}", gate.current.gate),
                gate.gained.len().to_string(),
                gate.lost.len().to_string(),
                gate.mid_p.map_or_else(|| "–".to_owned(), |p| format!("{:.0} %", 100.0 * (1.0 - p))),
            ],
            None => ["–"; 5].map(str::to_owned),
        });
        Some(row)
    };
    let rows: Vec<Vec<String>> = state.steps.iter().filter_map(row).collect();
    let head = [
        "Step",
        "Epoch",
        "Rollouts",
        "Applied",
        "Verdict",
        "Candidate",
        "Current",
        "Gained",
        "Lost",
        "Helps",
    ];
    if rows.is_empty() { Vec::new() } else { markdown_table(&head, &rows) }
}

/// What the gate said, and the word of a person over it.
fn step_verdict(step: &StepState, action: Verdict) -> String {
    let said = verdict_word(action);
    match &step.overruling {
        Some(word) if word.current_hash().is_some() => {
            format!("{said}; {} by {}", word.ruling.name(), word.by.0)
        }
        Some(_) | None => said.to_owned(),
    }
}

fn stages(state: &RunState) -> Vec<String> {
    let row = |found: &StageState| {
        let gate = found.stage.candidate().1;
        let (pairs, sample) = match &found.stage {
            EpochStage::SlowUpdate(found) => (pair_words(found), sample_words(found)),
            EpochStage::MetaSkill(_) | EpochStage::MetaReflect(_) => (None, None),
        };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        vec![
            found.at.epoch.to_string(),
            found.stage.name().to_owned(),
            action_words(found.stage.action()).to_owned(),
            or_none(gate.map(|gate| bounded(&gate.candidate, gate.candidate.gate))),
            or_none(gate.map(|gate| format!("{:.3}", gate.current.gate))),
            or_none(pairs),
            or_none(sample),
        ]
    };
    let rows: Vec<Vec<String>> = state.stages.iter().map(row).collect();
    let head = ["Epoch", "Stage", "Outcome", "Candidate", "Current", "Compared", "Train score"];
    if rows.is_empty() { Vec::new() } else { markdown_table(&head, &rows) }
}

/// Every line of the skill with where it came from, and what it was before.
fn lines_of(told: &Lineage) -> Vec<String> {
    let rows: Vec<Vec<String>> = told
        .lines
        .iter()
        .enumerate()
        .map(|(place, line)| {
            let earlier: Vec<String> =
                line.earlier.iter().rev().map(|origin| label(&told.origins[*origin])).collect();
            let text = line.text.trim_end_matches(['\n', '\r']).to_owned();
            vec![(place + 1).to_string(), text, label(told.origin(line)), earlier.join(" ← ")]
        })
        .collect();
    if rows.is_empty() {
        return vec!["The best skill is empty.".to_owned()];
    }
    markdown_table(&["Line", "Text", "From", "Before"], &rows)
}

/// The changes that lines of the best skill came from.
fn changes(told: &Lineage) -> Vec<String> {
    let used =
        |place: &usize| told.lines.iter().any(|line| line.origin == *place || line.earlier.contains(place));
    let rows: Vec<Vec<String>> = (0..told.origins.len())
        .filter(used)
        .map(|place| &told.origins[place])
        .filter(|origin| origin.stage != OriginStage::Seed)
        .map(|origin| {
            let (change, evidence, review) = match &origin.edit {
                Some(edit) => (edit.op.name().to_owned(), evidence(edit), reviewed(edit)),
                None => (origin.stage.name().to_owned(), String::new(), String::new()),
            };
            let reason = truncate(&sanitize_line(&origin.reason), REASON);
            vec![label(origin), change, evidence, review, reason, verdict(origin)]
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    markdown_table(&["Change", "What", "Evidence", "Review", "Why", "Gate"], &rows)
}

/// `step 3, edit 2`, `epoch 2, slow update`, `seed`.
fn label(origin: &Origin) -> String {
    let at = origin.at;
    match (origin.stage, &origin.edit) {
        (OriginStage::Seed, _) => "seed".to_owned(),
        (OriginStage::Edit, Some(edit)) => format!("step {}, edit {}", at.step, edit.number),
        (OriginStage::Edit, None) => format!("step {}", at.step),
        (
            OriginStage::Rewrite | OriginStage::Appendix | OriginStage::Override | OriginStage::Unrecorded,
            _,
        ) => {
            format!("step {}, {}", at.step, origin.stage.name())
        }
        (OriginStage::MetaReflect, Some(edit)) => {
            format!("epoch {}, {}, edit {}", at.epoch, origin.stage.name(), edit.number)
        }
        (OriginStage::SlowUpdate | OriginStage::MetaReflect, _) => {
            format!("epoch {}, {}", at.epoch, origin.stage.name())
        }
    }
}

/// `failure ×5 (q1, q7)`.
fn evidence(edit: &EditOrigin) -> String {
    let source = match edit.source_type {
        SourceType::Failure => "failure",
        SourceType::Success => "success",
    };
    let items = match edit.motivated_by.as_slice() {
        [] => String::new(),
        items => format!(" ({})", items.join(", ")),
    };
    format!("{source} ×{}{}", edit.support_count, truncate(&sanitize_line(&items), REASON / 4))
}

fn reviewed(edit: &EditOrigin) -> String {
    match &edit.reviewer {
        Some(author) if edit.amended => format!("amended by {}", author.0),
        Some(author) => format!("accepted by {}", author.0),
        None => String::new(),
    }
}

fn verdict(origin: &Origin) -> String {
    let scores = origin.scores.map_or_else(String::new, |(candidate, current)| {
        format!(" {} against {}", score(candidate), score(current))
    });
    format!("{}{scores}", words(origin.verdict.unwrap_or_default()))
}

/// A name of files and journals as words.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::StepRef;

    #[test]
    fn an_unfinished_run_reports_what_there_is() {
        let text = report(&RunState::default()).join("\n");
        assert!(text.contains("not measured") && text.contains("The best skill is empty."), "{text}");
        assert!(!text.contains("## Steps") && !text.contains("## Changes"), "{text}");
        assert_eq!(report_json(&RunState::default())["lineage"]["lines"], json!([]));
    }

    #[test]
    fn origins_have_short_names() {
        let edit = EditOrigin {
            number: 2,
            op: crate::domain::EditOp::Replace,
            source_type: SourceType::Failure,
            support_count: 5,
            motivated_by: vec!["q1".into(), "q\n7".into()],
            reviewer: None,
            amended: false,
        };
        assert_eq!(evidence(&edit), "failure ×5 (q1, q⏎7)");
        let at = StepRef { epoch: 2, step: 3, step_in_epoch: 0 };
        let named = |stage, edit: Option<&EditOrigin>| {
            let edit = edit.cloned();
            label(&Origin { stage, at, edit, reason: String::new(), verdict: None, scores: None })
        };
        assert_eq!(named(OriginStage::Edit, Some(&edit)), "step 3, edit 2");
        assert_eq!(named(OriginStage::SlowUpdate, None), "epoch 2, slow update");
        assert_eq!(named(OriginStage::MetaReflect, Some(&edit)), "epoch 2, meta-reflect, edit 2");
        assert_eq!(named(OriginStage::Rewrite, None), "step 3, rewrite");
    }
}
