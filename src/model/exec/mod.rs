//! Coding agents on the command line as targets and optimizers: each is a program with arguments, an environment, a
//! prompt on its input and JSON lines on its output, which become one trace. Must not score or try again.

mod cli;
mod trace;

pub use cli::{Cli, Version};
pub use trace::{Cap, Draft, End, Ending, FailureClass, News, Trace, read_line};
