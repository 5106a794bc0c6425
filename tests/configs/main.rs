//! Configurations as files: SkillOpt's layouts import to TOML that loads to the same settings, and the presets load.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::panic)]

mod layouts;
mod presets;

use std::path::{Path, PathBuf};

use planish::config::{Config, Loaded, flatten};
use serde_json::{Map, Value};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every setting that is not planish's default.
fn changed(loaded: &Loaded) -> Map<String, Value> {
    let default = flatten(&Config::default());
    let values = flatten(&loaded.config).into_iter().zip(default);
    values
        .filter(|((_, value), (_, default))| value != default)
        .map(|((key, value), _)| (key.path.to_owned(), value))
        .collect()
}
