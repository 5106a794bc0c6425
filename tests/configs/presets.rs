//! The presets under `configs/`.
