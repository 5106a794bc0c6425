//! An evaluation as text: tables in 80 columns. Pure.

use super::sheet::{Comparison, Part, Sheet};
use super::{Scored, Setting};
use crate::engine::ScoredItem;
use crate::event::ItemResult;
use crate::gate::{Estimate, item_means, passed, smallest_visible_gain};
use crate::plain::{count, left, right, signed, text_table};

/// Columns that a line may take.
const COLUMNS: usize = 80;

/// Repeats that are shown one by one; more are counted.
const MARKS: usize = 12;

/// Everything about one skill.
pub fn of_skill(setting: &Setting, scored: &Scored, sheet: &Sheet) -> Vec<String> {
    let repeats = setting.repeats;
    let mut out = vec![format!("{} on {}", heading(scored), setting.target)];
    let whole = sheet.parts.len() - 1;
    for (place, part) in sheet.parts.iter().enumerate() {
        // The parts before it have shown the items of the whole.
        if place < whole || place == 0 {
            out.push(String::new());
            out.extend(items(part, repeats));
        }
    }
    for part in &sheet.parts {
        if part.types.len() > 1 {
            out.push(String::new());
            out.extend(types(part));
        }
    }
    out.push(String::new());
    out.extend(means(sheet));
    if repeats > 1 {
        out.push(String::new());
        out.extend(steadiness(sheet));
    }
    out.extend(missing(sheet));
    out
}

/// Two skills side by side.
pub fn of_pair(
    setting: &Setting,
    scored: [&Scored; 2],
    sheets: [&Sheet; 2],
    compared: &[Comparison],
) -> Vec<String> {
    let mut out = vec![
        format!("A: {} on {}", heading(scored[0]), setting.target),
        format!("B: {}", heading(scored[1])),
        String::new(),
    ];
    let rows: Vec<Vec<String>> =
        sheets[0].items.iter().zip(sheets[1].items).map(|(a, b)| pair_row(a, b)).collect();
    let head =
        [left("ITEM", 24), left("SPLIT", 5), left("TYPE", 12), right("A"), right("B"), left("CHANGE", 6)];
    out.extend(text_table(&head, &rows, COLUMNS));
    for (name, sheet) in ["A", "B"].into_iter().zip(sheets) {
        out.push(String::new());
        out.push(format!("{name}:"));
        out.extend(means(sheet));
        out.extend(missing(sheet));
    }
    out.push(String::new());
    let head = [
        left("B - A", 5),
        right("ITEMS"),
        right("GAIN"),
        left("95 %", 16),
        right("GAINED"),
        right("LOST"),
        right("MID-P"),
        right("LEAST VISIBLE"),
    ];
    let rows: Vec<Vec<String>> = compared.iter().map(comparison_row).collect();
    out.extend(text_table(&head, &rows, COLUMNS));
    out.push(String::new());
    out.extend(compared.last().map(verdict));
    out
}

fn heading(scored: &Scored) -> String {
    format!("{} ({})", scored.path.display(), scored.skill.hash)
}

fn items(part: &Part, repeats: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = part
        .items
        .iter()
        .map(|item| {
            let means = item_means(&item.scores());
            let number = |part: fn((f64, f64)) -> f64| means.map_or_else(dash, |means| decimals(part(means)));
            vec![
                item.item.clone(),
                item.task_type().unwrap_or("-").to_owned(),
                marks(item, repeats),
                number(|means| means.0),
                number(|means| means.1),
                item.last_failure()
                    .or(item.missing().last().map(|missing| missing.1))
                    .unwrap_or("")
                    .to_owned(),
            ]
        })
        .collect();
    let head = [
        left("ITEM", 20),
        left("TYPE", 10),
        left("HARD", 16),
        right("MEAN"),
        right("SOFT"),
        left("LAST FAILURE", COLUMNS),
    ];
    let mut out =
        vec![format!("{}: {}, {}", part.name, count(part.items.len(), "item"), count(repeats, "repeat"))];
    out.extend(text_table(&head, &rows, COLUMNS));
    out
}

/// `+` right, `~` in part, `x` wrong, `?` not answered.
fn marks(item: &ScoredItem, repeats: usize) -> String {
    let mark = |result: &ItemResult| match result {
        ItemResult::Missing { .. } => '?',
        ItemResult::Scored(rollout) if passed(&rollout.score) => '+',
        ItemResult::Scored(rollout) if rollout.score.failed() => 'x',
        ItemResult::Scored(_) => '~',
    };
    let marks: String = item.results.iter().map(mark).collect();
    if repeats <= MARKS {
        return marks;
    }
    let number = |wanted: char| marks.chars().filter(|mark| *mark == wanted).count();
    let counts: Vec<String> = ['+', '~', 'x', '?']
        .into_iter()
        .filter(|mark| number(*mark) > 0)
        .map(|mark| format!("{}{mark}", number(mark)))
        .collect();
    counts.join(" ")
}

fn types(part: &Part) -> Vec<String> {
    let head = [left("TYPE", 30), right("ITEMS"), right("HARD"), left("95 %", 14), right("SOFT")];
    let rows: Vec<Vec<String>> = part
        .types
        .iter()
        .map(|(name, summary)| {
            let (hard, interval) = cells(summary.hard);
            vec![(*name).to_owned(), summary.scored.to_string(), hard, interval, cells(summary.soft).0]
        })
        .collect();
    let mut out = vec![format!("{} by type", part.name)];
    out.extend(text_table(&head, &rows, COLUMNS));
    out
}

fn means(sheet: &Sheet) -> Vec<String> {
    let head = [
        left("SPLIT", 5),
        right("ITEMS"),
        right("SCORED"),
        right("HARD"),
        left("95 %", 14),
        right("SOFT"),
        left("95 %", 14),
    ];
    let rows: Vec<Vec<String>> = sheet
        .parts
        .iter()
        .map(|part| {
            let summary = &part.summary;
            let ((hard, hard_interval), (soft, soft_interval)) = (cells(summary.hard), cells(summary.soft));
            let (items, scored) = (summary.items.to_string(), summary.scored.to_string());
            vec![part.name.to_owned(), items, scored, hard, hard_interval, soft, soft_interval]
        })
        .collect();
    text_table(&head, &rows, COLUMNS)
}

fn steadiness(sheet: &Sheet) -> Vec<String> {
    let head = [
        left("SPLIT", 5),
        right("ALWAYS"),
        right("SOMETIMES"),
        right("NEVER"),
        right("PASS@K"),
        right("PASS^K"),
        right("FLIP"),
    ];
    let rows: Vec<Vec<String>> = sheet
        .parts
        .iter()
        .map(|part| {
            let summary = &part.summary;
            let complete = summary.always + summary.sometimes + summary.never;
            let share = |n: usize| if complete == 0 { dash() } else { decimals(n as f64 / complete as f64) };
            vec![
                part.name.to_owned(),
                summary.always.to_string(),
                summary.sometimes.to_string(),
                summary.never.to_string(),
                share(summary.always + summary.sometimes),
                share(summary.always),
                summary.flip.map_or_else(dash, decimals),
            ]
        })
        .collect();
    text_table(&head, &rows, COLUMNS)
}

/// Not answered and so not scored, one line each.
fn missing(sheet: &Sheet) -> Vec<String> {
    let Some(whole) = sheet.whole() else { return Vec::new() };
    let rows: Vec<Vec<String>> = whole
        .missing()
        .map(|(item, repeat, error)| {
            vec![item.item.clone(), item.split.name().to_owned(), format!("#{repeat}"), error.to_owned()]
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let head = [left("NOT ANSWERED", 20), left("SPLIT", 5), left("REPEAT", 6), left("ERROR", COLUMNS)];
    let mut out = vec![String::new()];
    out.extend(text_table(&head, &rows, COLUMNS));
    out
}

fn pair_row(a: &ScoredItem, b: &ScoredItem) -> Vec<String> {
    let means = [a, b].map(|item| item_means(&item.scores()).map(|means| means.0));
    let change = match means {
        [Some(a), Some(b)] if b > a => "gained",
        [Some(a), Some(b)] if b < a => "lost",
        [Some(_), Some(_)] => "",
        [None, _] | [_, None] => "-",
    };
    let task_type = a.task_type().or(b.task_type()).unwrap_or("-");
    let [before, after] = means.map(|mean| mean.map_or_else(dash, decimals));
    vec![a.item.clone(), a.split.name().to_owned(), task_type.to_owned(), before, after, change.to_owned()]
}

fn comparison_row(compared: &Comparison) -> Vec<String> {
    let gain = &compared.gain;
    vec![
        compared.name.to_owned(),
        gain.n.to_string(),
        format!("{:+.3}", gain.mean),
        format!("[{:+.2}, {:+.2}]", gain.interval.0, gain.interval.1),
        gain.gains.to_string(),
        gain.losses.to_string(),
        gain.mid_p.map_or_else(dash, |p| if p < 0.0005 { "<.001".to_owned() } else { decimals(p) }),
        decimals(smallest_visible_gain(gain.psi, gain.n)),
    ]
}

/// The comparison in one sentence.
fn verdict(compared: &Comparison) -> String {
    let gain = &compared.gain;
    let on = count(gain.n, "item");
    match gain.mid_p {
        Some(p) => format!(
            "B against A on {on}: {}, {} gained, {} lost; {} sure that B is better.",
            signed(gain.mean),
            gain.gains,
            gain.losses,
            if p < 0.005 { "over 99 %".to_owned() } else { format!("{:.0} %", 100.0 * (1.0 - p)) }
        ),
        None => format!("B against A on {on}: no item changed."),
    }
}

fn cells(estimate: Option<Estimate>) -> (String, String) {
    match estimate {
        Some(Estimate { mean, interval: (low, high) }) => (decimals(mean), format!("[{low:.3}, {high:.3}]")),
        None => (dash(), String::new()),
    }
}

fn decimals(value: f64) -> String {
    format!("{value:.3}")
}

fn dash() -> String {
    "-".to_owned()
}
