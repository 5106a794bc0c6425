//! Carrying out a plan so that a crash between any two steps leaves every place as it was or as it is to be: copies are
//! made beside, changes are written down, each place changes in one rename, and what was begun is settled later. Owns
//! that order; must not decide what is done.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::install::{InstallError, Site, Step};
use super::package::Package;
use super::receipt::{Holder, Pending, Receipt, Standing, Target};
use super::tree;
use crate::store::{StoreError, sync_folder};

/// In the store: held by the planish that changes skills.
pub(super) const LOCK: &str = ".lock";

#[derive(Default)]
pub(super) struct Plan {
    pub moves: Vec<Move>,
}

/// What is done at one place.
pub(super) struct Move {
    /// Relative to the site.
    pub path: String,
    pub client: String,
    /// Digest of what lies there.
    pub found: Option<String>,
    pub act: Act,
    pub then: Standing,
}

pub(super) enum Act {
    /// It is right already; only the receipt may not know.
    Nothing,
    /// `at`: the place, or the link on the way to it that a folder takes the place of.
    Put {
        package: Package,
        at: PathBuf,
    },
    /// The backup of that name changes places with what is there.
    Swap {
        file: String,
        digest: String,
    },
    Empty,
}

/// The file name of a backup.
pub(super) fn backup_name(name: &str, digest: &str) -> String {
    format!("{name}.bak-{}", digest.get(..16).unwrap_or(digest))
}

fn staged_name(name: &str) -> String {
    format!("{name}.new")
}

/// What a place is emptied into.
fn outgoing_name(name: &str) -> String {
    format!("{name}.out")
}

/// Keeps other planishes away as long as it lives.
pub(super) fn lock(store: &Path, base: &Path) -> Result<File, InstallError> {
    fs::create_dir_all(store).map_err(StoreError::io("create", store))?;
    let path = store.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        // The site may have come from others: neither a link nor a pipe of theirs is to be opened.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(&path)
        .map_err(StoreError::io("write", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(InstallError::Busy { base: base.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &path)(error).into()),
    }
}

/// Does what is planned.
pub(super) fn carry_out(
    site: &Site,
    receipt: &mut Receipt,
    plan: Plan,
    step: &mut Step,
) -> Result<(), InstallError> {
    let done = begin_and_move(site, receipt, plan, step);
    // Also after a failure, so that nothing half is left where that can be helped; the next command tries again.
    let settled = settle(site, receipt, step);
    done.and(settled)
}

fn begin_and_move(
    site: &Site,
    receipt: &mut Receipt,
    plan: Plan,
    step: &mut Step,
) -> Result<(), InstallError> {
    let name = receipt.name.clone();
    for one in &plan.moves {
        let store = site.store().join(&one.client);
        // Known before anything is made for it, so that a failure can be cleared up.
        receipt.targets.entry(one.path.clone()).or_default().client.clone_from(&one.client);
        step()?;
        fs::create_dir_all(&store).map_err(StoreError::io("create", &store))?;
        let holder = match &one.act {
            Act::Put { package, at } => {
                Some(stage(site, one, package, at, &store.join(staged_name(&name)), step)?)
            }
            Act::Swap { file, digest } => Some(Holder { file: file.clone(), digest: digest.clone() }),
            Act::Empty | Act::Nothing => None,
        };
        let target = receipt.targets.entry(one.path.clone()).or_default();
        match one.act {
            Act::Nothing => target.standing = one.then.clone(),
            Act::Put { .. } | Act::Swap { .. } | Act::Empty => {
                target.pending = Some(Pending { holder, then: one.then.clone() });
            }
        }
    }
    step()?;
    receipt.write(&site.receipt(&name))?;
    for one in &plan.moves {
        let (place, store) = (site.base().join(&one.path), site.store().join(&one.client));
        step()?;
        match &one.act {
            Act::Nothing => {}
            Act::Put { at, .. } => change_places(&store.join(staged_name(&name)), at)?,
            Act::Swap { file, .. } => change_places(&store.join(file), &place)?,
            Act::Empty => rename(&place, &store.join(outgoing_name(&name)))?,
        }
    }
    Ok(())
}

/// Makes the copy that is to take the place of `at`: the skill itself, or a folder that has it where the link led.
fn stage(
    site: &Site,
    one: &Move,
    package: &Package,
    at: &Path,
    staged: &Path,
    step: &mut Step,
) -> Result<Holder, InstallError> {
    step()?;
    tree::remove(staged)?;
    let place = site.base().join(&one.path);
    let inside = place.strip_prefix(at).unwrap_or(Path::new(""));
    let copy = if inside.as_os_str().is_empty() { staged.to_owned() } else { staged.join(inside) };
    if let Some(folder) = copy.parent() {
        step()?;
        fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
    }
    step()?;
    package.write(&copy, step)?;
    let digest = tree::digest(staged)?.unwrap_or_default();
    let file = staged.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Holder { file, digest })
}

/// Brings the receipt to what is on the disk after a change that was begun, and keeps what it replaced as a backup.
pub(super) fn settle(site: &Site, receipt: &mut Receipt, step: &mut Step) -> Result<(), InstallError> {
    let name = receipt.name.clone();
    for (path, target) in &mut receipt.targets {
        let store = site.store().join(&target.client);
        let (staged, outgoing) = (staged_name(&name), outgoing_name(&name));
        let Some(pending) = target.pending.clone() else {
            step()?;
            tree::remove(&store.join(staged))?;
            continue;
        };
        let done = is_done(site, path, target, &pending)?;
        let mut aside = vec![outgoing];
        match pending.holder {
            Some(holder) if done => aside.push(holder.file),
            Some(holder) if holder.file == staged => {
                step()?;
                tree::remove(&store.join(staged))?;
            }
            Some(_) | None => {}
        }
        for file in aside {
            step()?;
            keep_aside(&store, &file, &name)?;
        }
        if done {
            target.standing = pending.then;
        }
        target.pending = None;
    }
    step()?;
    receipt.write(&site.receipt(&name))?;
    Ok(())
}

/// What [`settle`] would make of the receipt.
pub(super) fn foresee(site: &Site, receipt: &mut Receipt) -> Result<(), InstallError> {
    for (path, target) in &mut receipt.targets {
        let Some(pending) = target.pending.take() else { continue };
        if is_done(site, path, target, &pending)? {
            target.standing = pending.then;
        }
    }
    Ok(())
}

fn is_done(site: &Site, path: &str, target: &Target, pending: &Pending) -> Result<bool, StoreError> {
    match &pending.holder {
        Some(holder) => {
            let found = tree::digest(&site.store().join(&target.client).join(&holder.file))?;
            Ok(found.as_ref() != Some(&holder.digest))
        }
        None => Ok(tree::digest(&site.base().join(path))?.is_none()),
    }
}

/// Makes `file` of the store a backup under the name of its content.
fn keep_aside(store: &Path, file: &str, name: &str) -> Result<(), InstallError> {
    let from = store.join(file);
    let Some(digest) = tree::digest(&from)? else { return Ok(()) };
    let to = store.join(backup_name(name, &digest));
    if from == to {
        return Ok(());
    }
    if tree::digest(&to)?.as_ref() == Some(&digest) {
        return Ok(tree::remove(&from)?);
    }
    // Whatever has that name is no backup of it.
    tree::remove(&to)?;
    rename(&from, &to)
}

/// `holder` takes the place `at`, and what was there, if anything, takes the holder's.
fn change_places(holder: &Path, at: &Path) -> Result<(), InstallError> {
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
    }
    if fs::symlink_metadata(at).is_err() {
        return rename(holder, at);
    }
    match renameat_with(CWD, holder, CWD, at, RenameFlags::EXCHANGE) {
        Ok(()) => sync_both(holder, at),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(InstallError::NoSwap { path: at.to_owned() })
        }
        Err(error) => Err(StoreError::io("replace", at)(error.into()).into()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), InstallError> {
    fs::rename(from, to).map_err(StoreError::io("move", from))?;
    sync_both(from, to)
}

fn sync_both(one: &Path, other: &Path) -> Result<(), InstallError> {
    for folder in [one.parent(), other.parent()].into_iter().flatten() {
        sync_folder(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_takes_the_place_of_the_lock_is_not_followed() {
        let (store, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("made");
        std::os::unix::fs::symlink(&target, store.path().join(LOCK)).unwrap();
        assert!(lock(store.path(), store.path()).is_err());
        assert!(!target.exists());
    }
}
