//! The sentence for each event, and the number formats shared with the screen.

use super::money::dollars;
use super::stages::{appendix_words, budget_words, proposals, stage_line};
use crate::domain::{
    Decision, Edit, EditOp, GateDecision, GateScore, LrDecision, Origin, Phase, Retuned, ReviewClose,
    ReviewMode, SourceType, TimeoutPolicy, Verdict,
};
use crate::event::{EndStatus, Event, ItemResult, LogLevel, Record, TestOutcome};
use crate::text::{sanitize_line, truncate};

/// Longest quotation of model text in a line, in columns.
const QUOTE: usize = 60;

/// One line of sanitised text without line break, the same for the same record.
pub fn describe(record: &Record) -> String {
    sanitize_line(&sentence(&record.event)).into_owned()
}

fn sentence(event: &Event) -> String {
    match event {
        Event::RunStarted { run, plan, origin, .. } => {
            let began = match origin {
                None => "started".to_owned(),
                Some(Origin::Imported(origin)) => format!("imported from {}", origin.folder),
                Some(Origin::Continued(origin)) => {
                    format!("continues {} from step {}", origin.folder, origin.last.step)
                }
            };
            format!(
                "run {run} {began}: {} steps in {} epochs, {}/{}/{} train/val/test items, target {}, optimizer {}",
                plan.total_steps, plan.epochs, plan.train, plan.val, plan.test, plan.target, plan.optimizer
            )
        }
        Event::PhaseStarted { at, phase } => match phase {
            Phase::Baseline | Phase::FinalSelection | Phase::Test => format!("{} started", phase.name()),
            Phase::SlowUpdate | Phase::MetaSkill | Phase::MetaReflect => {
                format!("epoch {}: {} started", at.epoch, phase.name())
            }
            Phase::Rollout
            | Phase::Reflect
            | Phase::DeepReflect
            | Phase::Aggregate
            | Phase::Select
            | Phase::Review
            | Phase::Update
            | Phase::Evaluate
            | Phase::Gate => format!("step {}: {} started", at.step, phase.name()),
        },
        Event::RolloutFinished { at, result, .. } => format!("step {}: rollout {}", at.step, outcome(result)),
        Event::AnalysisFinished {
            at, source, minibatch, items, patch, note, deep, appendix_notes, ..
        } => {
            let kind = match source {
                SourceType::Failure => "failures",
                SourceType::Success => "successes",
            };
            let probed = if *deep { "probed " } else { "" };
            let found = match patch {
                Some(patch) => proposals(&patch.edits),
                None => format!("no usable reply: {}", quote(note)),
            };
            let notes = match appendix_notes.len() {
                0 => String::new(),
                n => format!(", {}", count(n, "appendix note")),
            };
            let n = count(items.len(), "item");
            format!("step {}: analysis {} of {probed}{kind} ({n}): {found}{notes}", at.step, minibatch + 1)
        }
        Event::OptimizerAnswered { at, stage, answer, note, .. } => {
            let found = match answer {
                Some(answer) => answered(stage, answer),
                None => format!("{}: nothing usable: {}", stage.replace('_', " "), quote(note)),
            };
            match stage.as_str() {
                "slow_update" | "meta_skill" | "meta_reflect" => format!("epoch {}: {found}", at.epoch),
                _ => format!("step {}: {found}", at.step),
            }
        }
        Event::MergeFinished { at, patch, fallbacks, .. } => {
            let fallback = match fallbacks {
                0 => String::new(),
                n => format!(", {n} without the model"),
            };
            format!("step {}: merged into {}{fallback}", at.step, proposals(&patch.edits))
        }
        Event::EditsSelected { at, budget, patch, note, .. } => {
            let note = if note.is_empty() { String::new() } else { format!("; {}", quote(note)) };
            let budget = budget.map_or_else(String::new, |budget| format!(" (budget {budget})"));
            format!("step {}: selected {}{budget}{note}", at.step, proposals(&patch.edits))
        }
        Event::ReviewOpened { at, mode, edits, timeout_s, on_timeout, .. } => match mode {
            ReviewMode::Auto => {
                format!("step {}: {} accepted without review", at.step, proposals(edits))
            }
            ReviewMode::Manual => {
                let limit = match (timeout_s, on_timeout) {
                    (None, _) | (_, TimeoutPolicy::Wait) => "waits for a decision".to_owned(),
                    (Some(s), TimeoutPolicy::Accept) => format!("accepts in {s} s"),
                    (Some(s), TimeoutPolicy::Reject) => format!("rejects in {s} s"),
                };
                format!("step {}: REVIEW of {}, {limit}", at.step, proposals(edits))
            }
        },
        Event::ReviewClosed { at, close, kept, rejected, comments } => {
            let how = match close {
                ReviewClose::Auto => "automatic".to_owned(),
                ReviewClose::Submitted { by } => format!("submitted by {}", by.0),
                ReviewClose::TimedOut { .. } => "timed out".to_owned(),
            };
            let said = match comments.len() {
                0 => String::new(),
                n => format!(", {}", count(n, "comment")),
            };
            format!("step {}: review {how}: {} kept, {} rejected{said}", at.step, kept.len(), rejected.len())
        }
        Event::SkillUpdated { at, candidate, report, rewrite, regions_restored } => {
            let how = match rewrite {
                Some(rewrite) => format!("rewritten, {}", count(rewrite.change_summary.len(), "change")),
                None => format!("{} of {} applied", report.applied, count(report.total, "edit")),
            };
            let restored = if *regions_restored { "; its protected regions were put back" } else { "" };
            format!("step {}: candidate {} ({how}){restored}", at.step, short(&candidate.hash))
        }
        Event::EvaluationStarted { purpose, n, .. } => {
            format!("{}: {} to measure", purpose.name(), count(*n, "item"))
        }
        Event::EvaluationItemFinished { eval, result, .. } => format!("{eval}: {}", outcome(result)),
        Event::EvaluationFinished { eval, score: s, curtailed, missing } => {
            let missing = if *missing > 0 { format!(", {missing} missing") } else { String::new() };
            let early = if *curtailed { ", stopped early" } else { "" };
            // A candidate's evaluation holds its best case where items have no score, others a mean.
            let bound = is_candidate(eval) && measured_part(s).is_some();
            let most = if bound { "at most " } else { "" };
            format!("{eval}: {most}{} on {} of {} items{missing}{early}", score(s.gate), s.done, s.n)
        }
        Event::GateDecided { at, decision } => gate(at.step, decision),
        Event::StepFinished { record, .. } => format!(
            "step {} finished: {}, current {}{}, best {} (step {})",
            record.at.step,
            verdict_word(record.action),
            score(record.current_score),
            if record.current_score_stale { " (stale)" } else { "" },
            score(record.best_score),
            record.best_step
        ),
        Event::AppendixUpdated { at, .. } if at.step == 0 => "appendix: room for notes was put in".to_owned(),
        Event::AppendixUpdated { at, flush, .. } => format!("step {}: {}", at.step, appendix_words(flush)),
        Event::EpochStageFinished { at, stage, stale, .. } => {
            format!("epoch {}, {}", at.epoch, stage_line(stage, *stale))
        }
        Event::FinalSelectionFinished { score: s, promoted } => {
            let what = if *promoted { "becomes the best" } else { "is not above the best" };
            format!("final selection: the last skill has {} and {what}", score(s.gate))
        }
        Event::TestFinished { outcome } => format!("test: {}", test_line(outcome)),
        Event::RunFinished { status, reason, best_score, best_step, .. } => {
            let status = match status {
                EndStatus::Completed => "completed",
                EndStatus::Cancelled => "cancelled",
                EndStatus::Failed => "FAILED",
                EndStatus::BudgetExhausted => "stopped: budget exhausted",
                EndStatus::Imported => "ends here",
            };
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let best = best_score.map_or_else(
                || "nothing was measured".to_owned(),
                |best| format!("best selection score {} (step {best_step})", score(best)),
            );
            format!("run {status}{why}; {best}")
        }
        Event::HostStarted { host, pid, resumed } => {
            format!("{} by process {pid} on {host}", if *resumed { "resumed" } else { "hosted" })
        }
        Event::EditDecided { at, edit, decision, by, .. } => {
            let what = match decision {
                Decision::Undecided => "back to undecided".to_owned(),
                Decision::Accept => "accepted".to_owned(),
                Decision::Reject { reason } if reason.is_empty() => "rejected".to_owned(),
                Decision::Reject { reason } => format!("rejected ({})", quote(reason)),
                Decision::Amend { .. } => "amended and accepted".to_owned(),
            };
            format!("step {}: edit {} {what} by {}", at.step, edit + 1, by.0)
        }
        Event::ReviewSubmitted { at, by, .. } => format!("step {}: review submitted by {}", at.step, by.0),
        Event::Paused { by } => format!("paused by {}", by.0),
        Event::Resumed { by } => format!("resumed by {}", by.0),
        Event::CancelRequested { by } => format!("stop asked for by {}", by.0),
        Event::ConfigChanged { keys, .. } => format!("config changed: {}", keys.join(", ")),
        Event::ReviewCommented { at, edit, text, by, .. } => {
            let on = edit.map_or(String::new(), |edit| format!(" on edit {}", edit + 1));
            format!("step {}: comment{on} by {}: {}", at.step, by.0, quote(text))
        }
        Event::OverrideRequested { at, ruling, reason, by, .. } => {
            format!("step {}: {} overrules the gate: {} ({})", at.step, by.0, ruling.name(), quote(reason))
        }
        Event::OverrideApplied { at, ruling, by, .. } => {
            format!("step {}: override by {} applied: {}", at.step, by.0, ruling.name())
        }
        Event::OverrideLapsed { at, ruling, by, why } => {
            format!("step {}: override by {} ({}) comes to nothing: {why}", at.step, by.0, ruling.name())
        }
        Event::RetuneRequested { changes, by, reason, .. } => {
            format!("{} retunes {} ({})", by.0, retuned(changes), quote(reason))
        }
        Event::RetuneApplied { changes, .. } => format!("retuned {}", retuned(changes)),
        Event::RolloutCancelled { path, by, .. } => format!("{} cancelled {}", by.0, quote(path)),
        Event::RolloutRequeued { path, by, .. } => format!("{} requeued {}", by.0, quote(path)),
        Event::AttemptsSpent { stage, usage, .. } => {
            let money = match usage.nanodollars {
                0 => String::new(),
                _ => format!(", at most {}", dollars(usage.nanodollars)),
            };
            let n = count(usize::try_from(usage.calls).unwrap_or(usize::MAX), "attempt");
            format!("{n} at {stage} without a reply{money}")
        }
        Event::MachineSampled { sample, tokens_per_s, .. } => format!(
            "machine: cpu {:.0} %, memory {} of {}, {tokens_per_s:.1} tokens/s",
            sample.cpu * 100.0,
            bytes(sample.memory_used),
            bytes(sample.memory_total)
        ),
        Event::Metric { step, values } => {
            let at = step.map_or(String::new(), |step| format!(" at step {step}"));
            let values: Vec<String> =
                values.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
            format!("metrics{at}: {}", values.join(", "))
        }
        Event::Alert { level, code, message } => format!("{}: {code}: {message}", level_word(*level)),
        Event::Log { level, message } => match level {
            LogLevel::Debug | LogLevel::Info => message.clone(),
            LogLevel::Warn | LogLevel::Error => format!("{}: {message}", level_word(*level)),
        },
        Event::Unknown(map) => {
            format!("unknown event {}", map.keys().next().map_or("?", String::as_str))
        }
    }
}

fn retuned(changes: &[Retuned]) -> String {
    let words = |change: &Retuned| format!("{}: {} -> {}", change.key, change.old, change.new);
    changes.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Memory for people: `512M`, `61.3G`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit < 3 { format!("{value:.0}{}", UNITS[unit]) } else { format!("{value:.1}{}", UNITS[unit]) }
}

/// What an optimizer call of its own kind came to.
fn answered(stage: &str, answer: &serde_json::Value) -> String {
    let word = stage.replace('_', " ");
    let decision = |answer| serde_json::from_value::<LrDecision>(answer).ok();
    match stage {
        "lr_autonomous" => match decision(answer.clone()) {
            Some(decision) => budget_words(&decision),
            None => format!("{word} answered"),
        },
        "deep_probe" => match answer["probe_instruction"].as_str() {
            Some(instruction) => format!("probe: {}", quote(instruction)),
            None => format!("{word} answered"),
        },
        _ => format!("{word} answered"),
    }
}

fn gate(step: u32, decision: &GateDecision) -> String {
    let (most, on) = match measured_part(&decision.candidate) {
        Some(part) => ("at most ", format!(" on the measured {part}")),
        None => ("", String::new()),
    };
    format!(
        "step {step}: gate {}: {most}{} against {} ({} gained, {} lost{on}). {}",
        verdict_word(decision.verdict),
        score(decision.candidate.gate),
        score(decision.current.gate),
        decision.gained.len(),
        decision.lost.len(),
        decision.why
    )
}

/// Evaluations of candidates are named after their step, `s003`, or their stage, `e02/slow/eval`.
fn is_candidate(eval: &str) -> bool {
    eval.strip_prefix('s').is_some_and(|step| step.bytes().all(|byte| byte.is_ascii_digit()))
        || (eval.starts_with('e') && eval.ends_with("/eval"))
}

/// `54 of 60 items` of a candidate that was measured in part; `None` when all were.
pub fn measured_part(candidate: &GateScore) -> Option<String> {
    (candidate.done < candidate.n).then(|| format!("{} of {}", candidate.done, count(candidate.n, "item")))
}

/// A number of `candidate` in three decimals. Measured in part it is an upper bound: `≤0.900`, "at most".
pub fn bounded(candidate: &GateScore, value: f64) -> String {
    if candidate.done < candidate.n { format!("≤{value:.3}") } else { format!("{value:.3}") }
}

/// The gain of `candidate` over the current score in three decimals: `+0.050`, `≤-0.017`, `≤0.000`.
pub fn bounded_gain(candidate: &GateScore, current: f64) -> String {
    let gain = candidate.gate - current;
    match candidate.done < candidate.n {
        true if gain.abs() < 5e-4 => "≤0.000".to_owned(),
        true => format!("≤{gain:+.3}"),
        false => format!("{gain:+.3}"),
    }
}

/// `base 0.02 → best 0.71, +0.69 [0.60, 0.78] on 100 items`.
pub(super) fn test_line(outcome: &TestOutcome) -> String {
    let last = match &outcome.last {
        Some(last) if last.hard != outcome.best_hard => {
            format!("; last {}, {}", score(last.hard), signed(last.delta))
        }
        Some(_) | None => String::new(),
    };
    format!(
        "base {} → best {}, {} {} on {}{last}",
        score(outcome.base_hard),
        score(outcome.best_hard),
        signed(outcome.delta),
        interval(outcome.interval),
        count(outcome.n, "item")
    )
}

fn outcome(result: &ItemResult) -> String {
    match result {
        ItemResult::Scored(rollout) => {
            let grade = if rollout.score.failed() { "fail" } else { "pass" };
            let reason = quote(&rollout.score.reason);
            format!("{} {grade} {} ({reason})", rollout.item, score(rollout.score.hard))
        }
        ItemResult::Missing { item, error } => format!("{item} MISSING ({})", quote(error)),
    }
}

fn level_word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warning",
        LogLevel::Error => "ERROR",
    }
}

fn quote(text: &str) -> String {
    truncate(&sanitize_line(text), QUOTE)
}

fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// The verdict in a word or two.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::AcceptNewBest => "accepted, new best",
        Verdict::Accept => "accepted",
        Verdict::ForceAccept => "accepted without a gate",
        Verdict::Reject => "rejected",
        Verdict::Undecided => "undecided",
        Verdict::SkipNoPatches => "skipped, no edits",
        Verdict::SkipNoRewrite => "skipped, no rewrite",
        Verdict::SkipNoChange => "skipped, no change",
    }
}

/// What an edit does, for a list: `replace “be short”`.
pub fn edit_title(edit: &Edit) -> String {
    let (verb, text) = match edit.op {
        EditOp::Append => ("append", &edit.content),
        EditOp::InsertAfter => ("insert", &edit.content),
        EditOp::Replace => ("replace", &edit.target),
        EditOp::Delete => ("delete", &edit.target),
        EditOp::AddRule => ("add", &edit.target),
        EditOp::RemoveRule => ("remove", &edit.target),
        EditOp::MergeRules => ("merge", &edit.target),
        EditOp::Reorganize => ("reorder", &edit.target),
        EditOp::Compress => ("shorten", &edit.target),
        EditOp::Clarify => ("clarify", &edit.target),
        EditOp::Rewrite => ("rewrite", &edit.target),
        EditOp::Unknown => ("unknown", &edit.content),
    };
    format!("{verb:<8}{}", sanitize_line(text.trim()))
}

/// A score in [0, 1], or a difference of two, in two decimals; three when two would hide it.
pub fn score(value: f64) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    let rounded = (value * 100.0).round() / 100.0;
    let text = if (value - rounded).abs() < 5e-4 { format!("{value:.2}") } else { format!("{value:.3}") };
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

/// [`score`] with its sign.
pub fn signed(value: f64) -> String {
    if value >= 0.0 { format!("+{}", score(value)) } else { score(value) }
}

/// `[-0.017, +0.179]`.
pub fn interval((low, high): (f64, f64)) -> String {
    // No minus before what is rounded to zero.
    let [low, high] = [low, high].map(|end| (end * 1e3).round() / 1e3 + 0.0);
    format!("[{low:+.3}, {high:+.3}]")
}

/// `3 edits`, `1 edit`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `812`, `4.2k`, `3.07M`.
pub fn tokens(n: u64) -> String {
    match n {
        0..=999 => n.to_string(),
        1_000..=99_949 => format!("{:.1}k", n as f64 / 1e3),
        99_950..=999_499 => format!("{:.0}k", n as f64 / 1e3),
        _ => format!("{:.2}M", n as f64 / 1e6),
    }
}

/// Milliseconds as `0:42`, `12:05`, `3:07:09`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Time of day (UTC) of a Unix time in milliseconds: `17:03:09`.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, StepRef};

    fn line(event: Event) -> String {
        describe(&Record { seq: 1, at: 0, event })
    }

    #[test]
    fn hostile_text_stays_on_one_inert_line() {
        let at = StepRef { epoch: 1, step: 2, step_in_epoch: 1 };
        let decision = Decision::Reject { reason: "bad\x1b[2J\nnews\u{202e}".into() };
        let by = Author("ann@pts/1".into());
        let text = line(Event::EditDecided { at, edit: 0, decision, by, rev: 1 });
        assert_eq!(text, "step 2: edit 1 rejected (bad⏎news) by ann@pts/1");
    }

    #[test]
    fn a_missing_result_is_not_called_a_score() {
        let result = ItemResult::Missing { item: "t7".into(), error: "timed out".into() };
        assert_eq!(outcome(&result), "t7 MISSING (timed out)");
    }

    #[test]
    fn a_partly_measured_candidate_is_bounded_not_scored() {
        let part = GateScore { hard: 0.9, soft: 0.9, gate: 0.9, n: 60, done: 54 };
        let all = GateScore { done: 60, ..part.clone() };
        assert_eq!([bounded(&part, part.hard), bounded(&all, all.hard)], ["≤0.900", "0.900"]);
        assert_eq!(
            [bounded_gain(&part, 0.9 + 1e-16), bounded_gain(&part, 0.95), bounded_gain(&part, 0.8)],
            ["≤0.000", "≤-0.050", "≤+0.100"]
        );
        assert_eq!([bounded_gain(&all, 0.95), bounded_gain(&all, 0.85)], ["-0.050", "+0.050"]);
        assert_eq!((measured_part(&part).as_deref(), measured_part(&all)), (Some("54 of 60 items"), None));
        let decision = GateDecision {
            verdict: Verdict::Reject,
            metric: crate::domain::GateMetric::Hard,
            candidate_hash: String::new(),
            candidate: part.clone(),
            current: all.clone(),
            best: all,
            gained: vec!["a".into()],
            lost: Vec::new(),
            mid_p: None,
            interval: (-0.1, 0.1),
            smallest_visible_gain: 0.1,
            curtailed: true,
            why: "Why.".into(),
        };
        let at = StepRef { epoch: 1, step: 2, step_in_epoch: 1 };
        assert_eq!(
            line(Event::GateDecided { at, decision: Box::new(decision) }),
            "step 2: gate rejected: at most 0.90 against 0.90 \
             (1 gained, 0 lost on the measured 54 of 60 items). Why."
        );
        let finished = |eval: &str, curtailed, missing| {
            line(Event::EvaluationFinished { eval: eval.into(), score: part.clone(), curtailed, missing })
        };
        assert_eq!(finished("s002", true, 0), "s002: at most 0.90 on 54 of 60 items, stopped early");
        assert_eq!(finished("s002", false, 6), "s002: at most 0.90 on 54 of 60 items, 6 missing");
        assert_eq!(finished("baseline", false, 6), "baseline: 0.90 on 54 of 60 items, 6 missing");
    }

    #[test]
    fn numbers() {
        assert_eq!(
            [score(0.5), score(0.625), score(-0.0001), score(f64::NAN), signed(0.021)],
            ["0.50", "0.625", "0.00", "–", "+0.021"]
        );
        assert_eq!(
            [tokens(999), tokens(4_200), tokens(99_960), tokens(3_070_000)],
            ["999", "4.2k", "100k", "3.07M"]
        );
        assert_eq!([duration(42_000), duration(11_229_000)], ["0:42", "3:07:09"]);
        assert_eq!(clock(1_764_435_600_123), "17:00:00");
    }
}
