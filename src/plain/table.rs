//! Tables for a terminal and for Markdown. Owns alignment, cutting and escaping; must not know what a table is about.

use crate::text::{fit, sanitize_line, truncate, width};

/// Between columns.
const GAP: &str = "  ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A column: its title, where its cells stand, and the widest it may get.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub align: Align,
    pub most: usize,
}

/// A column of text; longer cells are cut.
pub const fn left(title: &'static str, most: usize) -> Column {
    Column { title, align: Align::Left, most }
}

/// A column of numbers.
pub const fn right(title: &'static str) -> Column {
    Column { title, align: Align::Right, most: usize::MAX }
}

/// Title and rows as lines of at most `columns` columns where the last column is the one to be cut. Cells may be any
/// untrusted text.
pub fn text_table(head: &[Column], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = std::iter::once(head.iter().map(|column| column.title.to_owned()).collect())
        .chain(rows.iter().map(|row| row.iter().map(|cell| sanitize_line(cell).into_owned()).collect()))
        .collect();
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(place, column)| {
            rows.iter()
                .map(|row| row.get(place).map_or(0, |cell| width(cell)))
                .max()
                .unwrap_or(0)
                .min(column.most)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(head.iter().zip(&widths))
            .map(|(cell, (column, width_of))| match column.align {
                Align::Left => fit(cell, *width_of),
                Align::Right => format!("{}{cell}", " ".repeat(width_of.saturating_sub(width(cell)))),
            })
            .collect();
        truncate(cells.join(GAP).trim_end(), columns)
    };
    rows.iter().map(line).collect()
}

/// The same as a Markdown table. Cells become one line each and cannot end their cell or begin markup.
pub fn markdown_table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let mut out = vec![
        line(&mut head.iter().map(|title| (*title).to_owned())),
        line(&mut head.iter().map(|_| "---".to_owned())),
    ];
    out.extend(rows.iter().map(|row| line(&mut row.iter().map(|cell| markdown(cell)))));
    out
}

/// Untrusted text as one line of Markdown that reads as it is.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let head = [left("ITEM", 6), right("HARD"), left("WHY", 40)];
        let rows = vec![
            vec!["a".into(), "1.000".into(), String::new()],
            vec!["日本語と長い".into(), "0.5".into(), "wrong: \x1b[2Jsomething\nlong".into()],
        ];
        assert_eq!(
            text_table(&head, &rows, 24),
            ["ITEM     HARD  WHY", "a       1.000", "日本…     0.5  wrong: s…"]
        );
    }

    #[test]
    fn markdown_cells_stay_in_their_cell() {
        let table = markdown_table(&["Line", "Why"], &[vec!["- a | b `c`".into(), "x\n<br>*y*".into()]]);
        assert_eq!(table, ["| Line | Why |", "| --- | --- |", "| - a \\| b \\`c\\` | x⏎\\<br\\>\\*y\\* |"]);
    }
}
