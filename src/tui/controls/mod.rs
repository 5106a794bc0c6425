//! One module per pane and one for what holds everywhere: the state of its view, its rows of the action registry, and
//! what they do. They change the app; drawing is done in `panes`.

pub mod config;
pub mod curves;
pub mod gate;
pub mod global;
pub mod logs;
pub mod machine;
pub mod overview;
pub mod patch;
pub mod rollouts;
pub mod runs;
pub mod steps;
pub mod transcript;
