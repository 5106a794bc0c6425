//! `planish ls`: the runs under the root, the last changed first.

use super::locate::Root;
use super::run::now_ms;
use super::{Failure, exit, output};
use crate::client::list_runs;
use crate::store::{QUERY_HELP, Query, RunSummary};

#[derive(clap::Args)]
pub struct Args {
    /// Only runs that match: words, FIELD:TEXT, FIELD<NUMBER, joined by and, or, not
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    #[command(flatten)]
    root: Root,
    /// One JSON line per run
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let query = Query::parse(&args.filter.join(" "))
        .map_err(|error| Failure::usage(format!("filter: {error}; a filter is made of {QUERY_HELP}")))?;
    let now = now_ms();
    let mut runs = list_runs(&args.root.path, now)?;
    let all = runs.len();
    runs.retain(|run| query.admits(run, now));
    if args.json {
        runs.iter().try_for_each(output::json)?;
    } else if runs.is_empty() && all > 0 {
        output::note(&format!("none of the {all} runs under {} match", args.root.path.display()));
    } else if runs.is_empty() {
        output::note(&format!("no runs under {}", args.root.path.display()));
    } else {
        table(&runs).iter().try_for_each(|line| output::line(line))?;
    }
    Ok(exit::DONE)
}

fn table(runs: &[RunSummary]) -> Vec<String> {
    let score = |score: Option<f64>| score.map_or_else(|| "-".to_owned(), |score| format!("{score:.3}"));
    let mut rows = vec![["NAME", "STATUS", "STEP", "BASE", "BEST", "HOST"].map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        [
            run.name.clone(),
            run.standing(),
            format!("{}/{}", run.steps_done, run.total_steps),
            score(run.baseline_score),
            score(run.best_score),
            run.holder.as_ref().map_or_else(|| "-".to_owned(), |holder| format!("pid {}", holder.pid)),
        ]
    }));
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    rows.iter()
        .map(|row| {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Condition, RunDir};

    #[test]
    fn columns_are_aligned() {
        let root = tempfile::tempdir().unwrap();
        let run = |name: &str, status, best| RunSummary {
            name: name.into(),
            status,
            undecided: (status == Condition::Review).then_some(3),
            steps_done: 2,
            total_steps: 4,
            baseline_score: Some(0.25),
            best_score: best,
            ..RunSummary::unread(&RunDir::create(root.path(), "any").unwrap(), 0)
        };
        assert_eq!(
            table(&[
                run("a", Condition::Completed, Some(0.5)),
                run("longer-name", Condition::New, None),
                run("c", Condition::Review, None),
                run("d", Condition::Interrupted, None)
            ]),
            [
                "NAME         STATUS     STEP  BASE   BEST   HOST",
                "a            completed  2/4   0.250  0.500  -",
                "longer-name  new        2/4   0.250  -      -",
                "c            review 3   2/4   0.250  -      -",
                "d            crashed    2/4   0.250  -      -",
            ]
        );
    }
}
