//! Loading: layers into one [`Config`], with the origin of every value. Errors come all at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::derive::derive;
use super::error::{ConfigError, ConfigErrors, Origin, Place};
use super::layer::{Layers, folder_of};
use super::value::Complaint;
use super::{Config, keys, rules};

/// A checked configuration and where each value came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// One entry per key of the registry.
    pub origins: BTreeMap<&'static str, Origin>,
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Folder of that file, absolute. Paths inside `config` are already resolved.
    pub base_dir: PathBuf,
    /// Settings that are allowed but have no effect.
    pub warnings: Vec<String>,
}

impl Config {
    /// Loads `path` over the built-in defaults, then `overrides` (`section.key=value`) over it.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place, key and remedy.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Loaded, ConfigErrors> {
        let mut layers = Layers::default();
        let complete = layers.read_file(path);
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        layers.begin();
        for argument in overrides {
            layers.read_override(argument, &here);
        }
        derive(&mut layers);
        let config = assemble(path, &mut layers);
        // Without the whole file nearly every rule would complain about a key that is not set.
        if complete {
            rules::check(&config, path, &mut layers);
        }
        if !layers.errors.is_empty() {
            return Err(ConfigErrors(layers.errors));
        }
        let origins = keys::keys()
            .map(|key| {
                let entry = layers.entries.get(key.path);
                (key.path, entry.map_or(Origin::BuiltIn, |entry| entry.origin.clone()))
            })
            .collect();
        Ok(Loaded {
            config,
            origins,
            path: path.to_owned(),
            base_dir: folder_of(path),
            warnings: layers.warnings,
        })
    }

    /// This configuration with `KEY=VALUE` overrides in it, and everything that is wrong with that.
    pub(super) fn overridden(&self, overrides: &[String]) -> (Self, Vec<ConfigError>) {
        let mut layers = Layers::default();
        layers.read_config(self);
        layers.begin();
        let here = PathBuf::from(".");
        for argument in overrides {
            layers.read_override(argument, &here);
        }
        derive(&mut layers);
        let file = Path::new("config.toml");
        let config = assemble(file, &mut layers);
        rules::check(&config, file, &mut layers);
        (config, layers.errors)
    }

    /// Reads the `config.toml` of a run as it was resolved then: types are checked, the disk is not looked at.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn read_resolved(path: &Path) -> Result<Self, ConfigErrors> {
        let mut layers = Layers::default();
        layers.read_file(path);
        let config = assemble(path, &mut layers);
        if layers.errors.is_empty() { Ok(config) } else { Err(ConfigErrors(layers.errors)) }
    }

    /// The whole configuration as TOML, for `config.toml` of a run. Holds no secret: keys are named, not held.
    ///
    /// # Errors
    /// A number that TOML cannot hold (above 2^63 - 1); loading refuses those.
    pub fn resolved_toml(&self) -> Result<String, toml::ser::Error> {
        let body = toml::to_string(self)?;
        Ok(format!("# Resolved configuration of this run, written by planish.\n\n{body}"))
    }
}

fn assemble(path: &Path, layers: &mut Layers) -> Config {
    let mut root = toml::Table::new();
    for (key, entry) in &layers.entries {
        insert(&mut root, key, entry.value.clone());
    }
    // Every value was checked against the registry; a complaint here means that registry and settings differ.
    Config::deserialize(root).unwrap_or_else(|error| {
        let complaint = Complaint::new(error.message().to_owned(), "report this as a defect of planish");
        layers.complain(Place::File(path.to_owned()), "", complaint);
        Config::default()
    })
}

fn insert(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                insert(inner, rest, value);
            }
        }
    }
}
