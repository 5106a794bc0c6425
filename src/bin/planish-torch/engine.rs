//! What the scheduler asks of a forward pass: a flat list of token rows in, logits of some of them out, keys and
//! values kept per slot. Two engines do it: `cpu` and `torch`.

use crate::weights::Shape;

/// One token of one sequence. Rows of one slot stand in ascending, gapless positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub slot: usize,
    pub position: usize,
    pub token: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    #[error("cannot start decode threads: {0}")]
    Threads(std::io::Error),
    #[error("device cuda was asked for, but this libtorch has none")]
    NoCuda,
}

pub trait Engine {
    /// `cpu-f32` or `cuda-f32`.
    fn name(&self) -> &'static str;

    fn shape(&self) -> &Shape;

    /// Runs the rows; keys and values of each slot grow to hold them. Returns [wanted.len(), vocab] logits, row-major;
    /// `wanted` are indices into `rows`.
    fn forward(&mut self, rows: &[Row], wanted: &[usize]) -> Result<Vec<f32>, EngineError>;

    /// Makes slot `to` hold the first `positions` keys and values of slot `from` (which may be `to`).
    fn copy_prefix(&mut self, from: usize, to: usize, positions: usize) -> Result<(), EngineError>;

    /// Gives a slot's memory back.
    fn clear(&mut self, slot: usize);
}
