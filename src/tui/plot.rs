//! Braille line plots in O(columns): each dot column shows the minimum and maximum of the samples it stands for.

use ratatui::layout::Rect;

use super::paint::Canvas;
use super::theme::Role;

/// Samples of one curve with rising x. NaN marks a gap.
pub struct Series<'a> {
    pub points: &'a [(f64, f64)],
    pub role: Role,
}

/// Limits of the plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub x: (f64, f64),
    pub y: (f64, f64),
}

/// Dot columns and rows in one cell.
const DOTS: (usize, usize) = (2, 4);
/// Bit of the dot at (column, row) in a braille cell.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Draws the series one over the other; a later one colours the cells it touches.
pub fn plot(canvas: &mut Canvas<'_>, area: Rect, bounds: Bounds, series: &[Series<'_>]) {
    let area = area.intersection(canvas.buf.area);
    if area.is_empty() {
        return;
    }
    let (columns, rows) = (area.width as usize * DOTS.0, area.height as usize * DOTS.1);
    let mut cells = vec![(0u8, Role::Text); area.area() as usize];
    for one in series {
        let spans = extents(one.points, bounds, columns, rows);
        for (column, span) in spans.iter().enumerate() {
            let Some((top, bottom)) = span else { continue };
            for row in *top..=*bottom {
                let index = row / DOTS.1 * area.width as usize + column / DOTS.0;
                cells[index].0 |= BITS[column % DOTS.0][row % DOTS.1];
                cells[index].1 = one.role;
            }
        }
    }
    for (index, (bits, role)) in cells.into_iter().enumerate() {
        if bits == 0 {
            continue;
        }
        let (x, y) = (index as u16 % area.width, index as u16 / area.width);
        let glyph = char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
        canvas.buf[(area.x + x, area.y + y)].set_char(glyph).set_style(canvas.theme.style(role));
    }
}

/// For each dot column the dot rows (top, bottom) the curve covers, joined to the column before.
fn extents(
    points: &[(f64, f64)],
    bounds: Bounds,
    columns: usize,
    rows: usize,
) -> Vec<Option<(usize, usize)>> {
    let mut out: Vec<Option<(usize, usize)>> = vec![None; columns];
    let mut previous: Option<(usize, usize)> = None;
    for (x, y) in points {
        if !y.is_finite() || !x.is_finite() {
            previous = None;
            continue;
        }
        let column = place(*x, bounds.x, columns);
        let row = rows - 1 - place(*y, bounds.y, rows);
        match previous {
            Some((from, from_row)) if column > from => {
                // The line between two samples, one short upright piece per column.
                let mut last = from_row;
                for (at, span) in out.iter_mut().enumerate().take(column + 1).skip(from + 1) {
                    let part = (at - from) as f64 / (column - from) as f64;
                    let here = (from_row as f64 + (row as f64 - from_row as f64) * part).round() as usize;
                    grow(span, here);
                    // Join without doubling the dot of the column before.
                    if here > last + 1 {
                        grow(span, last + 1);
                    } else if here + 1 < last {
                        grow(span, last - 1);
                    }
                    last = here;
                }
            }
            _ => grow(&mut out[column], row),
        }
        previous = Some((column, row));
    }
    out
}

fn grow(span: &mut Option<(usize, usize)>, row: usize) {
    *span = Some(match *span {
        Some((top, bottom)) => (top.min(row), bottom.max(row)),
        None => (row, row),
    });
}

fn place(value: f64, (low, high): (f64, f64), n: usize) -> usize {
    if high <= low {
        return (n - 1) / 2;
    }
    (((value - low) / (high - low)).clamp(0.0, 1.0) * (n - 1) as f64).round() as usize
}

/// A range around the values: whole steps of `grid`, never flat. `None` without finite values.
pub fn range(values: impl Iterator<Item = f64>, grid: f64) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return None;
    }
    // Steps keep the axis still while values move a little.
    let (low, high) = ((low / grid).floor() * grid, (high / grid).ceil() * grid);
    Some(if high > low { (low, high) } else { (low, low + grid) })
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

    const UNIT: Bounds = Bounds { x: (0.0, 1.0), y: (0.0, 1.0) };

    #[test]
    fn a_rising_line_goes_from_the_lower_left_to_the_upper_right() {
        let spans = extents(&[(0.0, 0.0), (1.0, 1.0)], UNIT, 4, 8);
        assert_eq!(spans[0], Some((7, 7)));
        assert_eq!(spans[3].unwrap().0, 0);
        assert!(spans.iter().all(Option::is_some));
    }

    #[test]
    fn a_column_shows_the_minimum_and_maximum_of_its_samples() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64 / 1e5, f64::from(i % 2))).collect();
        let spans = extents(&points, UNIT, 10, 8);
        assert!(spans.iter().all(|span| *span == Some((0, 7))));
    }

    #[test]
    fn gaps_stay_gaps() {
        let spans = extents(&[(0.0, 0.5), (0.5, f64::NAN), (1.0, 0.5)], UNIT, 9, 4);
        assert_eq!(spans.iter().filter(|span| span.is_some()).count(), 2);
    }

    #[test]
    fn ranges_snap_to_the_grid() {
        assert_eq!(range([0.31, 0.58].into_iter(), 0.25), Some((0.25, 0.75)));
        assert_eq!(range([0.5].into_iter(), 0.25), Some((0.5, 0.75)));
        assert_eq!(range([f64::NAN].into_iter(), 0.25), None);
    }

    #[test]
    fn sparkline_shows_the_newest() {
        assert_eq!(sparkline(&[0.0, 0.5, f64::NAN, 1.0], 3), "▅·█");
    }

    proptest! {
        #[test]
        fn any_values_stay_inside(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..40)) {
            let spans = extents(&points, UNIT, 7, 12);
            prop_assert!(spans.iter().flatten().all(|(top, bottom)| top <= bottom && *bottom < 12));
        }
    }
}
