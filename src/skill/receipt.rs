//! What planish put where, for one skill and one project (or home): the file that takes installations back, and that a
//! crash in the middle of one is cleared up by. Owns its shape; must not touch what was installed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::install::InstallError;
use super::name::SkillName;
use super::place::{Client, Scope};
use crate::store::{StoreError, atomic_write};

const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    format: u32,
    pub name: String,
    /// By path of the skill's folder, relative to the project or home.
    pub targets: BTreeMap<String, Target>,
}

/// One place that a skill was put into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Name of the client.
    pub client: String,
    #[serde(flatten)]
    pub standing: Standing,
    /// A change that was begun. It is written down before anything is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Digest of what planish left there last; `None`: nothing.
    pub present: Option<String>,
    /// What was there before each change, oldest first; `None`: nothing. Each is kept as a backup.
    pub earlier: Vec<Option<String>>,
}

/// How a change can be told from none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Name, in the store, of what is swapped with the place; `None`: the place is emptied.
    pub holder: Option<Holder>,
    pub then: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub file: String,
    /// Digest of it before the swap. A holder that is gone or has another one was swapped.
    pub digest: String,
}

impl Receipt {
    pub fn new(name: &SkillName) -> Self {
        Self { format: FORMAT, name: name.to_string(), targets: BTreeMap::new() }
    }

    /// Reads the receipt of `name`; `None` without one. It may have come with a project of others, so every place in it
    /// must be one that planish puts skills into.
    pub fn read(path: &Path, name: &SkillName) -> Result<Option<Self>, InstallError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("read", path)(error).into()),
        };
        let broken = |problem: String| InstallError::Receipt { path: path.to_owned(), problem };
        let receipt: Self = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if receipt.format != FORMAT {
            return Err(broken(format!("it has format {}, this planish knows {FORMAT}", receipt.format)));
        }
        if receipt.name != name.as_str() {
            return Err(broken(format!("it is of the skill {:?}", receipt.name)));
        }
        match receipt.targets.iter().find(|(path, target)| !target.is_sound(path, name)) {
            Some((path, _)) => Err(broken(format!("{path:?} is no place that planish puts this skill into"))),
            None => Ok(Some(receipt)),
        }
    }

    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|source| StoreError::Encode { path: path.to_owned(), source })?;
        atomic_write(path, format!("{text}\n").as_bytes())
    }
}

impl Target {
    /// Whether it is of one of the clients, with names and digests as they are made here.
    fn is_sound(&self, path: &str, name: &SkillName) -> bool {
        let Ok(client) = self.client.parse::<Client>() else { return false };
        let known = |scope| path == client.path(scope, name);
        let hex = |digest: &String| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let holder = self.pending.as_ref().and_then(|pending| pending.holder.as_ref());
        let beside = |file: &str| file.starts_with(&format!("{name}.")) && !file.contains(['/', '\0']);
        let standings = [Some(&self.standing), self.pending.as_ref().map(|pending| &pending.then)];
        let digests = standings.into_iter().flatten();
        (known(Scope::Project) || known(Scope::User))
            && holder.is_none_or(|holder| beside(&holder.file) && hex(&holder.digest))
            && digests.flat_map(|one| one.earlier.iter().chain([&one.present])).flatten().all(hex)
    }
}
