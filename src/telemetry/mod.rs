//! Numbers of a run over its steps, time and tokens: the series behind all curves, and what is drawn with what. Fed by
//! records and live news, and by samples of the machine; draws nothing, decides nothing.

mod board;
mod charts;
mod machine;
mod pyramid;
mod scale;
mod series;
mod shelf;

pub use board::{Board, Mark, names};
pub use charts::{Chart, Curve};
pub use machine::Sampler;
pub use pyramid::{Extent, Pyramid};
pub use scale::{MOST_ZOOM, Unit, nice_limits, significant, stepped_end, sticky, window};
pub use series::{Axis, Moment, Series, Smoothing};
pub use shelf::{SHELF, of_run};
