//! A skill folder as data: its files, read once and within limits, and its digest. Owns reading a folder that nobody
//! vouches for; links are never followed. Must not know what the files say.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::finding::Finding;
use crate::store::{StoreError, sync_folder};

/// The file that makes a folder a skill.
pub const DOCUMENT: &str = "SKILL.md";
/// Limits on a folder: files, bytes of all, bytes of the document, folders inside each other.
pub const MOST_FILES: usize = 256;
pub const MOST_BYTES: u64 = 10 << 20;
pub const LARGEST_DOCUMENT: u64 = 1 << 20;
const DEEPEST: usize = 8;
const LONGEST_PATH: usize = 240;
/// No part of a skill, and often huge.
const VERSION_CONTROL: &str = ".git";

/// A file of a skill folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageFile {
    /// Inside the folder, with `/` between its parts.
    pub path: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// The files of a skill folder, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    files: Vec<PackageFile>,
}

/// A folder that cannot be taken as it is.
#[derive(Debug, thiserror::Error)]
#[error("{}", told(.folder, .findings))]
pub struct Unfit {
    pub folder: String,
    pub findings: Vec<Finding>,
}

fn told(folder: &str, findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(|finding| format!("{folder}/{finding}")).collect();
    lines.join("\n")
}

impl Package {
    pub fn new(mut files: Vec<PackageFile>) -> Self {
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Self { files }
    }

    /// Everything in `folder` that can be read, and what cannot.
    pub fn survey(folder: &Path) -> (Self, Vec<Finding>) {
        let mut survey = Survey { files: Vec::new(), findings: Vec::new(), bytes: 0, full: false };
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_dir() => survey.folder(folder, "", 0),
            Ok(found) if found.is_symlink() => {
                survey.fault(".", "is a symbolic link", "name the folder that it leads to")
            }
            Ok(_) => survey.fault(".", "is no folder", "name the folder that holds SKILL.md"),
            Err(error) => {
                survey.fault(".", format!("cannot be read: {error}"), "name a folder that holds SKILL.md")
            }
        }
        (Self::new(survey.files), survey.findings)
    }

    /// The files of `folder`.
    ///
    /// # Errors
    /// Every fault of [`Package::survey`] that is no mere warning; a folder without `SKILL.md`.
    pub fn read(folder: &Path) -> Result<Self, Unfit> {
        let (package, mut findings) = Self::survey(folder);
        findings.retain(Finding::is_error);
        if findings.is_empty() && package.document().is_none() {
            findings.push(no_document(&package));
        }
        match findings.is_empty() {
            true => Ok(package),
            false => Err(Unfit { folder: folder.display().to_string(), findings }),
        }
    }

    pub fn files(&self) -> &[PackageFile] {
        &self.files
    }

    pub fn get(&self, path: &str) -> Option<&PackageFile> {
        let place = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.files.get(place)
    }

    /// Bytes of `SKILL.md`.
    pub fn document(&self) -> Option<&[u8]> {
        self.get(DOCUMENT).map(|file| file.bytes.as_slice())
    }

    /// Whether `path` is a file or a folder with files.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.get(path).is_some() || self.files.iter().any(|file| file.path.starts_with(&folder))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }

    /// SHA-256 over paths, rights to run and bytes, 64 hex digits.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for file in &self.files {
            for part in [file.path.as_bytes(), &[u8::from(file.executable)], &file.bytes] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hex(&hasher.finalize())
    }

    /// Writes the files into `folder`, which is made, and makes them durable. `reached` is asked before each one.
    ///
    /// # Errors
    /// The disk's, or what `reached` says; the folder is then incomplete.
    pub fn write(
        &self,
        folder: &Path,
        reached: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        fs::create_dir(folder).map_err(StoreError::io("create", folder))?;
        let mut folders = BTreeSet::from([folder.to_owned()]);
        for file in &self.files {
            reached()?;
            let path = folder.join(&file.path);
            for parent in path.ancestors().skip(1).take_while(|parent| parent.starts_with(folder)) {
                folders.insert(parent.to_owned());
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(StoreError::io("create", parent))?;
            }
            let mode = if file.executable { 0o777 } else { 0o666 };
            let options = OpenOptions::new().write(true).create_new(true).mode(mode).to_owned();
            let written = options.open(&path).and_then(|mut out| {
                out.write_all(&file.bytes)?;
                out.sync_all()
            });
            written.map_err(StoreError::io("write", &path))?;
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// Puts `bytes` in place of `SKILL.md`.
    pub fn with_document(&self, bytes: Vec<u8>) -> Self {
        let mut files: Vec<PackageFile> =
            self.files.iter().filter(|file| file.path != DOCUMENT).cloned().collect();
        files.push(PackageFile { path: DOCUMENT.into(), bytes, executable: false });
        Self::new(files)
    }
}

/// SHA-256 of a file's bytes, 64 hex digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder without `SKILL.md`, with a word on a file that may be meant.
pub(super) fn no_document(package: &Package) -> Finding {
    let near = package.files.iter().find(|file| file.path.eq_ignore_ascii_case(DOCUMENT));
    match near {
        Some(file) => {
            Finding::error(&file.path, "the document's name is in other letters", "rename it SKILL.md")
        }
        None => Finding::error(".", "holds no SKILL.md", "name a skill folder, or write its SKILL.md"),
    }
}

struct Survey {
    files: Vec<PackageFile>,
    findings: Vec<Finding>,
    bytes: u64,
    /// A limit was passed; nothing more is read.
    full: bool,
}

impl Survey {
    fn fault(&mut self, path: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::error(path, problem, remedy));
    }

    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) {
        let here = if inside.is_empty() { "." } else { inside };
        if depth > DEEPEST {
            return self.fault(here, format!("lies more than {DEEPEST} folders deep"), "flatten the folder");
        }
        let mut entries: Vec<_> = match fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>)
        {
            Ok(entries) => entries,
            Err(error) => return self.fault(here, format!("cannot be read: {error}"), "make it readable"),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if self.full {
                return;
            }
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.chars().any(char::is_control)) else {
                let shown = name.to_string_lossy().into_owned();
                self.fault(here, format!("the file name {shown:?} is no plain text"), "rename the file");
                continue;
            };
            let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
            if path.len() > LONGEST_PATH || name.contains('\\') {
                let remedy = format!("give a path of at most {LONGEST_PATH} bytes without backslashes");
                self.fault(&path, "has a path that not every system takes", remedy);
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.link(&entry.path(), &path),
                Ok(kind) if kind.is_dir() && name == VERSION_CONTROL => {
                    let remedy = "move the skill out of the top of its repository to be rid of this word";
                    self.findings.push(Finding::warn(&path, "is no part of the skill and left out", remedy));
                }
                Ok(kind) if kind.is_dir() => self.folder(&entry.path(), &path, depth + 1),
                Ok(kind) if kind.is_file() => self.file(&entry.path(), path),
                Ok(_) => self.fault(&path, "is neither a file nor a folder", "remove it"),
                Err(error) => self.fault(&path, format!("cannot be read: {error}"), "make it readable"),
            }
        }
    }

    fn link(&mut self, at: &Path, path: &str) {
        let target = fs::read_link(at).map_or_else(|_| "?".into(), |target| target.display().to_string());
        let remedy = "put the file itself there: loaders of skills skip or refuse links";
        self.fault(path, format!("is a symbolic link to {target:?}"), remedy);
    }

    fn file(&mut self, at: &Path, path: String) {
        if self.files.len() == MOST_FILES {
            self.full = true;
            return self.fault(
                ".",
                format!("holds more than {MOST_FILES} files"),
                "remove what the skill does not need",
            );
        }
        let limit = if path == DOCUMENT { LARGEST_DOCUMENT } else { MOST_BYTES - self.bytes };
        match read_up_to(at, limit) {
            Ok((bytes, executable)) if bytes.len() as u64 <= limit => {
                self.bytes += bytes.len() as u64;
                self.files.push(PackageFile { path, bytes, executable });
            }
            Ok(_) if path == DOCUMENT => {
                self.fault(&path, format!("is larger than {LARGEST_DOCUMENT} bytes"), "shorten it");
            }
            Ok(_) => {
                self.full = true;
                self.fault(
                    ".",
                    format!("holds more than {MOST_BYTES} bytes"),
                    "remove what the skill does not need",
                );
            }
            Err(error) => self.fault(&path, format!("cannot be read: {error}"), "make it readable"),
        }
    }
}

/// The bytes of a file, one more than `limit` at most, and whether it may be executed. A link that took the file's place
/// meanwhile is refused.
fn read_up_to(path: &Path, limit: u64) -> std::io::Result<(Vec<u8>, bool)> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes, executable))
}

#[cfg(test)]
#[path = "package_tests.rs"]
mod tests;
