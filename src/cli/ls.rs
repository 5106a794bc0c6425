//! `planish ls`: the runs under the root, the last changed first.

use super::locate::Root;
use super::{Failure, exit, output};
use crate::store::{RunSummary, list_runs};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    root: Root,
    /// One JSON line per run
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let runs = list_runs(&args.root.path)?;
    if args.json {
        runs.iter().try_for_each(output::json)?;
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
            match run.undecided {
                Some(edits) if run.status == "review" => format!("review {edits}"),
                _ => run.status.to_owned(),
            },
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

    #[test]
    fn columns_are_aligned() {
        let run = |name: &str, status, best| RunSummary {
            name: name.into(),
            path: name.into(),
            status,
            undecided: (status == "review").then_some(3),
            holder: None,
            steps_done: 2,
            total_steps: 4,
            baseline_score: Some(0.25),
            best_score: best,
            started_at: 0,
            updated_at: 0,
            problem: None,
        };
        assert_eq!(
            table(&[
                run("a", "completed", Some(0.5)),
                run("longer-name", "new", None),
                run("c", "review", None)
            ]),
            [
                "NAME         STATUS     STEP  BASE   BEST   HOST",
                "a            completed  2/4   0.250  0.500  -",
                "longer-name  new        2/4   0.250  -      -",
                "c            review 3   2/4   0.250  -      -",
            ]
        );
    }
}
