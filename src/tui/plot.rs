//! Line plots of dots in O(columns): each dot column shows the minimum and maximum of the samples it stands for, read from
//! the series' pyramid. Knows no pane.

use ratatui::layout::Rect;

use super::paint::Canvas;
use super::theme::Role;
use crate::telemetry::{Axis, Series, Smoothing};

/// How a dot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Eight dots a cell.
    Braille,
    /// One dot a cell: fewer cells change, and any font has it.
    Dot,
}

impl Marker {
    /// Dot columns and rows in one cell.
    fn dots(self) -> (usize, usize) {
        match self {
            Marker::Braille => (2, 4),
            Marker::Dot => (1, 1),
        }
    }
}

/// One curve.
pub struct Line<'a> {
    pub series: &'a Series,
    pub smoothing: Smoothing,
    pub role: Role,
    /// Stands at the last point, where roles alone would tell the curves apart.
    pub glyph: Option<char>,
}

/// Where curves are drawn and what the edges stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plot {
    pub area: Rect,
    pub axis: Axis,
    pub x: (f64, f64),
    /// In decades where `log`.
    pub y: (f64, f64),
    pub log: bool,
    pub marker: Marker,
}

/// Bit of the dot at (column, row) in a braille cell.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// What a dot column shows of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    /// Dot rows (top, bottom).
    span: Option<(usize, usize)>,
    gap: bool,
}

impl Plot {
    /// Draws the curves one over the other; a later one colours the cells it touches. Gives the cell columns in which the
    /// last curve has gaps.
    pub fn draw(&self, canvas: &mut Canvas<'_>, lines: &[Line<'_>]) -> Vec<u16> {
        let area = self.area.intersection(canvas.buf.area);
        if area.is_empty() || area != self.area {
            return Vec::new();
        }
        let (across, down) = self.marker.dots();
        let mut cells = vec![(0u8, Role::Text); area.area() as usize];
        let mut gaps = Vec::new();
        for line in lines {
            gaps.clear();
            for (column, shown) in self.columns(line).into_iter().enumerate() {
                if shown.gap {
                    gaps.push((column / across) as u16);
                }
                let Some((top, bottom)) = shown.span else { continue };
                for row in top..=bottom {
                    let index = row / down * area.width as usize + column / across;
                    cells[index].0 |= BITS[column % across][row % down];
                    cells[index].1 = line.role;
                }
            }
        }
        for (index, (bits, role)) in cells.into_iter().enumerate() {
            if bits == 0 {
                continue;
            }
            let (x, y) = (index as u16 % area.width, index as u16 / area.width);
            let glyph = match self.marker {
                Marker::Braille => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
                Marker::Dot => '•',
            };
            canvas.buf[(area.x + x, area.y + y)].set_char(glyph).set_style(canvas.theme.style(role));
        }
        for line in lines {
            self.glyph(canvas, line);
        }
        gaps.dedup();
        gaps
    }

    fn glyph(&self, canvas: &mut Canvas<'_>, line: &Line<'_>) {
        let Some(glyph) = line.glyph else { return };
        let Some(last) = line.series.last_until(self.axis, self.x.1) else { return };
        let place = line.series.moment(last).map(|at| at.on(self.axis)).and_then(|x| self.cell_column(x));
        let value = line.series.values(line.smoothing).values()[last];
        if let (Some(column), Some(row)) = (place, self.cell_row(value)) {
            let cell = &mut canvas.buf[(self.area.x + column, self.area.y + row)];
            cell.set_char(glyph).set_style(canvas.theme.style(line.role));
        }
    }

    /// The cell column of `x`; `None` outside.
    pub fn cell_column(&self, x: f64) -> Option<u16> {
        let columns = self.area.width as usize * self.marker.dots().0;
        let column = share(x, self.x) * (columns.checked_sub(1)? as f64);
        let inside = column > -0.5 && column < columns as f64 - 0.5;
        inside.then(|| (column.round() as usize / self.marker.dots().0) as u16)
    }

    /// The cell row of a value, at the edge where it is beyond it.
    pub fn cell_row(&self, value: f64) -> Option<u16> {
        let rows = self.area.height as usize * self.marker.dots().1;
        Some(
            (self.row(value, rows)?.clamp(0.0, rows as f64 - 1.0).round() as usize / self.marker.dots().1)
                as u16,
        )
    }

    /// How much of the x axis one cell stands for.
    pub fn grain(&self) -> f64 {
        (self.x.1 - self.x.0) / f64::from(self.area.width.max(1))
    }

    /// The dot row of a value, counted from the top; `None` for what has no place on the axis.
    fn row(&self, value: f64, rows: usize) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        value.is_finite().then(|| (1.0 - share(value, self.y)) * (rows - 1) as f64)
    }

    fn columns(&self, line: &Line<'_>) -> Vec<Column> {
        let (across, down) = self.marker.dots();
        let (n, rows) = (self.area.width as usize * across, self.area.height as usize * down);
        let mut out = vec![Column::default(); n];
        let values = line.series.values(line.smoothing);
        let step = (self.x.1 - self.x.0) / (n - 1).max(1) as f64;
        let edge = |column: usize| self.x.0 + (column as f64 - 0.5) * step;
        let row_of = |index: usize| self.row(values.values()[index], rows);
        let place = |index: usize| {
            let x = line.series.moment(index).map_or(0.0, |at| at.on(self.axis));
            ((x - self.x.0) / step.max(f64::MIN_POSITIVE)).round().clamp(-1e9, 1e9) as i64
        };
        let mut from = line.series.first_at(self.axis, edge(0));
        // The line enters from the last point before the window.
        let mut previous = from.checked_sub(1).and_then(|before| Some((place(before), row_of(before)?)));
        for column in 0..n {
            let to = line.series.first_at(self.axis, edge(column + 1));
            if from >= to {
                continue;
            }
            if let (Some(previous), Some(first)) = (previous, row_of(from)) {
                join(&mut out, rows, previous, (column as i64, first));
            }
            let extent = values.extent(from..to);
            out[column].gap = extent.gaps > 0;
            let limits = if self.log { extent.positive_limits() } else { extent.limits() };
            if let Some((low, high)) = limits {
                for row in [self.row(low, rows), self.row(high, rows)].into_iter().flatten() {
                    grow(&mut out[column].span, row, rows);
                }
            }
            previous = row_of(to - 1).map(|row| (column as i64, row));
            from = to;
        }
        if let Some(previous) = previous
            && from < line.series.len()
            && let Some(row) = row_of(from)
        {
            join(&mut out, rows, previous, (place(from), row));
        }
        out
    }
}

/// The line between two samples, one short upright piece per column; its ends may lie outside.
fn join(out: &mut [Column], rows: usize, from: (i64, f64), to: (i64, f64)) {
    let (first, last) = ((from.0 + 1).max(0), to.0.min(out.len() as i64 - 1));
    let at = |column: i64| from.1 + (to.1 - from.1) * (column - from.0) as f64 / (to.0 - from.0) as f64;
    if to.0 <= from.0 {
        return;
    }
    for column in first..=last {
        let span = &mut out[column as usize].span;
        let here = at(column).round();
        grow(span, here, rows);
        // Join without doubling the dot of the column before.
        let before = at(column - 1).round();
        if here > before + 1.0 {
            grow(span, before + 1.0, rows);
        } else if here + 1.0 < before {
            grow(span, before - 1.0, rows);
        }
    }
}

fn grow(span: &mut Option<(usize, usize)>, row: f64, rows: usize) {
    let row = row.clamp(0.0, rows as f64 - 1.0).round() as usize;
    *span = Some(match *span {
        Some((top, bottom)) => (top.min(row), bottom.max(row)),
        None => (row, row),
    });
}

/// Where `value` lies between the limits: 0 at the lower, 1 at the upper.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    // Halved, as the difference of huge limits would be infinite.
    let width = high / 2.0 - low / 2.0;
    if width > 0.0 { (value / 2.0 - low / 2.0) / width } else { 0.5 }
}

/// A row of eighth blocks, one per value, for the newest `columns` values in [0, 1].
pub fn sparkline(values: &[f64], columns: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    values[values.len().saturating_sub(columns)..]
        .iter()
        .map(
            |value| {
                if value.is_finite() { BLOCKS[(value.clamp(0.0, 1.0) * 7.0).round() as usize] } else { '·' }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::Moment;

    fn series(points: &[(f64, f64)]) -> Series {
        let mut out = Series::default();
        for (x, y) in points {
            out.push(Moment { step: *x, ..Moment::default() }, *y);
        }
        out
    }

    /// Two dot columns a cell, four dot rows.
    fn unit(width: u16, height: u16) -> Plot {
        Plot {
            area: Rect { x: 0, y: 0, width, height },
            axis: Axis::Step,
            x: (0.0, 1.0),
            y: (0.0, 1.0),
            log: false,
            marker: Marker::Braille,
        }
    }

    fn spans(plot: Plot, points: &[(f64, f64)]) -> Vec<Option<(usize, usize)>> {
        let series = series(points);
        let line = Line { series: &series, smoothing: Smoothing::Off, role: Role::Series1, glyph: None };
        plot.columns(&line).into_iter().map(|column| column.span).collect()
    }

    #[test]
    fn a_rising_line_goes_from_the_lower_left_to_the_upper_right() {
        let spans = spans(unit(2, 2), &[(0.0, 0.0), (1.0, 1.0)]);
        assert_eq!(spans[0], Some((7, 7)));
        assert_eq!(spans[3].unwrap().0, 0);
        assert!(spans.iter().all(Option::is_some));
    }

    #[test]
    fn a_column_shows_the_minimum_and_maximum_of_its_samples() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64 / 1e5, f64::from(i % 2))).collect();
        assert!(spans(unit(5, 2), &points).iter().all(|span| *span == Some((0, 7))));
    }

    #[test]
    fn gaps_stay_gaps_and_are_told() {
        let points = [(0.0, 0.5), (0.5, f64::NAN), (1.0, 0.5)];
        let found = spans(unit(4, 1), &points);
        assert_eq!(found.iter().filter(|span| span.is_some()).count(), 2);
        let series = series(&points);
        let line = Line { series: &series, smoothing: Smoothing::Off, role: Role::Series1, glyph: None };
        assert_eq!(unit(4, 1).columns(&line).iter().filter(|column| column.gap).count(), 1);
    }

    #[test]
    fn a_logarithmic_axis_has_no_place_for_zero() {
        let plot = Plot { y: (-2.0, 0.0), log: true, ..unit(3, 2) };
        let found = spans(plot, &[(0.0, 1.0), (0.5, 0.0), (1.0, 0.01)]);
        assert_eq!(found[0], Some((0, 0)));
        assert_eq!(found[5], Some((7, 7)));
        assert!(found[1..5].iter().all(Option::is_none));
    }

    #[test]
    fn a_window_shows_the_lines_that_cross_it() {
        let plot = Plot { x: (0.4, 0.6), ..unit(3, 2) };
        let found = spans(plot, &[(0.0, 0.5), (1.0, 0.5)]);
        assert!(found.iter().all(|span| *span == Some((4, 4)) || *span == Some((3, 3))), "{found:?}");
    }

    #[test]
    fn sparkline_shows_the_newest() {
        assert_eq!(sparkline(&[0.0, 0.5, f64::NAN, 1.0], 3), "▅·█");
    }

    proptest! {
        #[test]
        fn any_values_stay_inside(
            points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..40),
            low in any::<f64>(),
            high in any::<f64>(),
            log: bool,
        ) {
            prop_assume!(low < high && low.is_finite() && high.is_finite());
            let plot = Plot { x: (low, high), log, ..unit(4, 3) };
            let spans = spans(plot, &points);
            prop_assert!(spans.iter().flatten().all(|(top, bottom)| top <= bottom && *bottom < 12));
        }
    }
}
