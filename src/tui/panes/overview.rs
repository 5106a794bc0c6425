//! The run at a glance.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::Canvas;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let inner = frame(app, Pane::Overview, area, canvas, Vec::new(), &[]);
    placeholder(canvas, inner, &[waiting_words(app)]);
}
