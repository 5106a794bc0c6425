//! What planish put where, for one skill and one project (or home): the file that takes installations back, and that a
//! crash in the middle of one is cleared up by. Owns its shape; must not touch what was installed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::install::InstallError;
use super::name::SkillName;
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

    /// Reads a receipt; `None` without one.
    pub fn read(path: &Path) -> Result<Option<Self>, InstallError> {
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
        let inside = |path: &str| {
            !path.is_empty()
                && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
                && !path.contains('\0')
        };
        let plain = |name: &str| inside(name) && !name.contains('/');
        let sound = receipt.targets.iter().all(|(path, target)| {
            let holder = target.pending.as_ref().and_then(|pending| pending.holder.as_ref());
            let hex =
                |digest: &String| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            let digests = target.standing.earlier.iter().chain([&target.standing.present]).flatten();
            inside(path)
                && plain(&target.client)
                && holder.is_none_or(|holder| plain(&holder.file))
                && digests.into_iter().all(hex)
        });
        if !sound {
            return Err(broken("it names places outside the project".into()));
        }
        Ok(Some(receipt))
    }

    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|source| StoreError::Encode { path: path.to_owned(), source })?;
        atomic_write(path, format!("{text}\n").as_bytes())
    }
}
