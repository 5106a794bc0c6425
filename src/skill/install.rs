//! Putting skills where coding agents look, taking them away and back: what is to be done, and what is refused. Looks at
//! the disk and changes nothing; [`super::moves`] does that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::moves::{self, Act, Move, Plan};
use super::name::SkillName;
use super::package::Package;
use super::place::{Client, Scope};
use super::receipt::{Receipt, Standing, Target};
use super::tree;
use crate::store::StoreError;

/// A project, or the home of a user, with its store of receipts and backups.
#[derive(Clone, Debug)]
pub struct Site {
    base: PathBuf,
    scope: Scope,
}

/// What was, or would be, done at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Relative to the site.
    pub path: String,
    pub client: String,
    pub change: Change,
    /// Where what was there before is kept, relative to the site.
    pub backup: Option<String>,
    /// A link in the path that a folder takes the place of, and where it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Installed,
    Replaced,
    Unchanged,
    Removed,
    Restored,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
            Self::Restored => "restored",
        }
    }
}

/// Why a place is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// That a folder may take the place of.
    Link {
        path: PathBuf,
    },
    /// That nothing takes the place of.
    OwnLink {
        path: PathBuf,
    },
    NoFolder {
        path: PathBuf,
    },
    NotOurs {
        path: PathBuf,
    },
    Changed {
        path: PathBuf,
    },
    NoBackup {
        path: PathBuf,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link { path } => {
                write!(
                    out,
                    "{} is a symbolic link, which is not followed; remove it, or install with --force to put a folder in its place",
                    path.display()
                )
            }
            Self::OwnLink { path } => {
                write!(out, "{} is a symbolic link, which is not followed; remove it", path.display())
            }
            Self::NoFolder { path } => write!(out, "{} is no folder; move it away", path.display()),
            Self::NotOurs { path } => {
                write!(
                    out,
                    "{} was not installed by planish; --force replaces it and keeps a backup",
                    path.display()
                )
            }
            Self::Changed { path } => {
                write!(
                    out,
                    "{} was changed since planish put it there; --force replaces it and keeps a backup",
                    path.display()
                )
            }
            Self::NoBackup { path } => {
                write!(
                    out,
                    "the backup {} is gone or was changed, so there is nothing to go back to",
                    path.display()
                )
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    #[error("planish has not installed {name} under {}", base.display())]
    NotInstalled { name: SkillName, base: PathBuf },
    #[error("{name} has nothing earlier to go back to under {}", base.display())]
    NothingEarlier { name: SkillName, base: PathBuf },
    #[error("{} is no folder; name one that exists", path.display())]
    NoSite { path: PathBuf },
    #[error("another planish is changing skills under {}; try again when it is done", base.display())]
    Busy { base: PathBuf },
    #[error("{}: {problem}; move the file away to begin anew", path.display())]
    Receipt { path: PathBuf, problem: String },
    #[error("the file system of {} cannot swap two folders in one step; uninstall or move the old one away first", path.display())]
    NoSwap { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Called before every change of the disk; an error there ends the work as a crash would.
pub type Step<'a> = dyn FnMut() -> Result<(), StoreError> + 'a;

/// Whether anything is changed, and at what risk.
pub enum Mode<'a, 'b> {
    /// Nothing is.
    Rehearsal {
        force: bool,
    },
    Real {
        force: bool,
        step: &'a mut Step<'b>,
    },
}

impl Mode<'_, '_> {
    fn force(&self) -> bool {
        match self {
            Self::Rehearsal { force } | Self::Real { force, .. } => *force,
        }
    }
}

impl Site {
    /// # Errors
    /// `base` is no folder.
    pub fn new(base: &Path, scope: Scope) -> Result<Self, InstallError> {
        let no_site = || InstallError::NoSite { path: base.to_owned() };
        // Links above the project are its owner's own affair.
        let base = base.canonicalize().ok().filter(|base| base.is_dir()).ok_or_else(no_site)?;
        Ok(Self { base, scope })
    }

    pub fn base(&self) -> &Path {
        &self.base
    }

    pub(super) fn store(&self) -> PathBuf {
        self.base.join(STORE)
    }

    pub(super) fn receipt(&self, name: &str) -> PathBuf {
        self.store().join(format!("{name}.json"))
    }

    /// Puts `package` under its name for `clients`, and wherever planish has put it before.
    ///
    /// # Errors
    /// A place that is refused; then nothing is changed anywhere.
    pub fn install(
        &self,
        name: &SkillName,
        package: &Package,
        clients: &[Client],
        mode: Mode,
    ) -> Result<Vec<Outcome>, InstallError> {
        self.change(name, mode, |receipt, force| {
            let mut wanted: Vec<Client> = clients.to_vec();
            let before = receipt.targets.values().filter(|target| target.standing.present.is_some());
            wanted.extend(before.filter_map(|target| target.client.parse::<Client>().ok()));
            wanted.sort_unstable();
            wanted.dedup();
            let digest = package.digest();
            self.plan(wanted.into_iter().map(|client| {
                let path = client.path(self.scope, name);
                let standing =
                    receipt.targets.get(&path).map(|target| target.standing.clone()).unwrap_or_default();
                self.put(path, client, standing, package, &digest, force)
            }))
        })
    }

    /// Takes a skill away from every place that planish put it into.
    ///
    /// # Errors
    /// As [`Site::install`].
    pub fn uninstall(&self, name: &SkillName, mode: Mode) -> Result<Vec<Outcome>, InstallError> {
        self.change(name, mode, |receipt, force| {
            let there = receipt.targets.iter().filter(|(_, target)| target.standing.present.is_some());
            let plan = self.plan(there.map(|(path, target)| self.take(path, target, force)))?;
            if plan.moves.is_empty() {
                return Err(InstallError::NotInstalled { name: name.clone(), base: self.base.clone() });
            }
            Ok(plan)
        })
    }

    /// Brings back what was there before the last change, at every place.
    ///
    /// # Errors
    /// As [`Site::install`]; a backup that is gone.
    pub fn roll_back(&self, name: &SkillName, mode: Mode) -> Result<Vec<Outcome>, InstallError> {
        self.change(name, mode, |receipt, force| {
            let back = receipt.targets.iter().filter(|(_, target)| !target.standing.earlier.is_empty());
            let plan = self.plan(back.map(|(path, target)| self.restore(name, path, target, force)))?;
            if plan.moves.is_empty() {
                return Err(InstallError::NothingEarlier { name: name.clone(), base: self.base.clone() });
            }
            Ok(plan)
        })
    }

    /// Reads the receipt, clears up what a crash left, plans and carries out.
    fn change(
        &self,
        name: &SkillName,
        mode: Mode,
        plan: impl FnOnce(&Receipt, bool) -> Result<Plan, InstallError>,
    ) -> Result<Vec<Outcome>, InstallError> {
        let force = mode.force();
        let store = self.store();
        let receipt_path = self.receipt(name.as_str());
        let own = Client::ALL.map(|client| store.join(client.name()));
        for path in own.iter().chain([&receipt_path, &store.join(moves::LOCK)]) {
            if let Some(link) = first_link(&self.base, path)? {
                return Err(InstallError::Refused(vec![Refusal::OwnLink { path: link }]));
            }
        }
        match mode {
            Mode::Rehearsal { .. } => {
                let mut receipt = Receipt::read(&receipt_path, name)?.unwrap_or_else(|| Receipt::new(name));
                moves::foresee(self, &mut receipt)?;
                Ok(self.outcomes(&plan(&receipt, force)?))
            }
            Mode::Real { step, .. } => {
                let known = Receipt::read(&receipt_path, name)?;
                // Nothing is made for a skill that planish never saw until its plan stands.
                let mut lock = None;
                let mut receipt = Receipt::new(name);
                if known.is_some() {
                    lock = Some(moves::lock(&store, &self.base)?);
                    receipt = Receipt::read(&receipt_path, name)?.unwrap_or(receipt);
                    moves::settle(self, &mut receipt, step)?;
                }
                let plan = plan(&receipt, force)?;
                if lock.is_none() {
                    lock = Some(moves::lock(&store, &self.base)?);
                    if Receipt::read(&receipt_path, name)?.is_some() {
                        return Err(InstallError::Busy { base: self.base.clone() });
                    }
                }
                let outcomes = self.outcomes(&plan);
                moves::carry_out(self, &mut receipt, plan, step)?;
                drop(lock);
                Ok(outcomes)
            }
        }
    }

    /// Every move, or every refusal.
    fn plan(&self, moves: impl Iterator<Item = Result<Move, PlanError>>) -> Result<Plan, InstallError> {
        let (mut planned, mut refused) = (Plan::default(), Vec::new());
        for one in moves {
            match one {
                Ok(one) => planned.moves.push(one),
                Err(PlanError::Refused(refusal)) => refused.push(refusal),
                Err(PlanError::Store(error)) => return Err(error.into()),
            }
        }
        if refused.is_empty() { Ok(planned) } else { Err(InstallError::Refused(refused)) }
    }

    fn put(
        &self,
        path: String,
        client: Client,
        standing: Standing,
        package: &Package,
        digest: &str,
        force: bool,
    ) -> Result<Move, PlanError> {
        let place = self.base.join(&path);
        let link = first_link(&self.base, &place)?;
        if let Some(link) = link.as_ref().filter(|_| !force) {
            return Err(Refusal::Link { path: link.clone() }.into());
        }
        // Behind a link in the path is nothing of this site.
        let found = match &link {
            Some(link) if *link != place => None,
            _ => tree::digest(&place)?,
        };
        let act = match &found {
            Some(found) if found == digest => Act::Nothing,
            Some(_) if standing.present.is_none() && !force => {
                return Err(Refusal::NotOurs { path: place }.into());
            }
            Some(found) if standing.present.as_ref() != Some(found) && !force => {
                return Err(Refusal::Changed { path: place }.into());
            }
            _ => Act::Put { package: package.clone(), at: link.unwrap_or(place) },
        };
        let mut then = Standing { present: Some(digest.to_owned()), ..standing };
        if !matches!(act, Act::Nothing) {
            then.earlier.push(found.clone());
        }
        Ok(Move { path, client: client.name().to_owned(), found, act, then })
    }

    fn take(&self, path: &str, target: &Target, force: bool) -> Result<Move, PlanError> {
        let found = self.unchanged(path, target, force)?;
        let mut then = Standing { present: None, ..target.standing.clone() };
        let act = match &found {
            Some(digest) => {
                then.earlier.push(Some(digest.clone()));
                Act::Empty
            }
            None => Act::Nothing,
        };
        Ok(Move { path: path.to_owned(), client: target.client.clone(), found, act, then })
    }

    fn restore(&self, name: &SkillName, path: &str, target: &Target, force: bool) -> Result<Move, PlanError> {
        let found = self.unchanged(path, target, force)?;
        let mut then = target.standing.clone();
        then.present = then.earlier.pop().flatten();
        let act = match &then.present {
            wanted if *wanted == found => Act::Nothing,
            None => Act::Empty,
            Some(digest) => {
                let file = moves::backup_name(name.as_str(), digest);
                let backup = self.store().join(&target.client).join(&file);
                if first_link(&self.base, &backup)?.is_some_and(|link| link != backup)
                    || tree::digest(&backup)?.as_ref() != Some(digest)
                {
                    return Err(Refusal::NoBackup { path: backup }.into());
                }
                Act::Swap { file, digest: digest.clone() }
            }
        };
        Ok(Move { path: path.to_owned(), client: target.client.clone(), found, act, then })
    }

    /// What lies at a place, which must be what planish left there unless `force`.
    fn unchanged(&self, path: &str, target: &Target, force: bool) -> Result<Option<String>, PlanError> {
        let place = self.base.join(path);
        match first_link(&self.base, &place)? {
            Some(link) if link != place || !force => return Err(Refusal::OwnLink { path: link }.into()),
            Some(_) | None => {}
        }
        let found = tree::digest(&place)?;
        if found.is_some() && found != target.standing.present && !force {
            return Err(Refusal::Changed { path: place }.into());
        }
        Ok(found)
    }

    fn outcomes(&self, plan: &Plan) -> Vec<Outcome> {
        let outcome = |one: &Move| {
            let (change, at) = match (&one.act, &one.found) {
                (Act::Nothing, _) => (Change::Unchanged, None),
                (Act::Put { at, .. }, None) => (Change::Installed, Some(at)),
                (Act::Put { at, .. }, Some(_)) => (Change::Replaced, Some(at)),
                (Act::Empty, _) => (Change::Removed, None),
                (Act::Swap { .. }, _) => (Change::Restored, None),
            };
            let name = one.path.rsplit('/').next().unwrap_or_default();
            let backup = one.found.as_ref().filter(|_| change != Change::Unchanged);
            let backup =
                backup.map(|digest| format!("{STORE}/{}/{}", one.client, moves::backup_name(name, digest)));
            let link = at.filter(|at| **at != self.base.join(&one.path)).map(|at| {
                let target = fs::read_link(at).unwrap_or_default();
                let inside = at.strip_prefix(&self.base).unwrap_or(at);
                (inside.display().to_string(), target.display().to_string())
            });
            Outcome { path: one.path.clone(), client: one.client.clone(), change, backup, link }
        };
        plan.moves.iter().map(outcome).collect()
    }
}

/// Where receipts, backups and copies on their way lie, below the site: no client looks there for skills.
pub(super) const STORE: &str = ".planish/skills";

/// Why one place cannot be planned for.
#[derive(Debug)]
pub(super) enum PlanError {
    Refused(Refusal),
    Store(StoreError),
}

impl From<Refusal> for PlanError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PlanError> for InstallError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Refused(refusal) => Self::Refused(vec![refusal]),
            PlanError::Store(error) => Self::Store(error),
        }
    }
}

/// The first symbolic link on the way from `base` down to `path`, which is below it.
fn first_link(base: &Path, path: &Path) -> Result<Option<PathBuf>, PlanError> {
    let inside = path.strip_prefix(base).unwrap_or(path);
    let mut at = base.to_owned();
    for part in inside.components() {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => return Ok(Some(at)),
            Ok(found) if !found.is_dir() && at != path => return Err(Refusal::NoFolder { path: at }.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("read", &at)(error).into()),
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
