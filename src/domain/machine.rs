//! What a run takes of its machine at one moment.

use serde::{Deserialize, Serialize};

/// Memory in bytes. Shares are in [0, 1].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSample {
    /// Share of all cores busy since the last sample.
    pub cpu: f64,
    /// Cores of the machine.
    pub cores: usize,
    /// Resident memory of the host process.
    pub rss: u64,
    /// Resident memory of its children (workers, harnesses, sandboxes).
    pub children_rss: u64,
    pub memory_used: u64,
    pub memory_total: u64,
    /// Empty without an NVIDIA driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSample>,
}

/// One GPU. What the driver does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    pub index: u32,
    pub name: String,
    pub memory_used: u64,
    pub memory_total: u64,
    pub utilisation: Option<f64>,
    pub watts: Option<f64>,
    pub watts_limit: Option<f64>,
    pub celsius: Option<f64>,
}
