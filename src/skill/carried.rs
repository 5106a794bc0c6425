//! A skill folder that a run begins with: its body is what the run works on, all else is kept in the run's folder and
//! comes out again with the skill. Owns that division and the copy; must not change any of it.

use std::fs;
use std::path::PathBuf;

use super::finding::Finding;
use super::front_matter::{Unclosed, divide};
use super::package::{DOCUMENT, Package, PackageFile, Unfit, sha256};
use crate::domain::{CarriedFile, SkillFolder};
use crate::store::{RunDir, StoreError, sync_folder};

/// A skill folder, divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What a run optimises.
    pub body: String,
    pub folder: SkillFolder,
}

#[derive(Debug, thiserror::Error)]
pub enum CarriedError {
    #[error("{0}")]
    Unfit(#[from] Unfit),
    #[error("{0}")]
    Unclosed(#[from] Unclosed),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{} is gone, which the run began with; restore it from a copy of the run", path.display())]
    Gone { path: PathBuf },
    #[error("{} is not as it was when the run began; restore it from a copy of the run", path.display())]
    Changed { path: PathBuf },
}

impl Carried {
    /// Divides a folder's document into front matter and body; CRLF becomes LF.
    ///
    /// # Errors
    /// A document that is not UTF-8, or whose front matter does not end.
    pub fn of(package: &Package) -> Result<Self, CarriedError> {
        let document = package.document().unwrap_or_default();
        let Ok(text) = std::str::from_utf8(document) else {
            let findings = vec![Finding::error(DOCUMENT, "is not UTF-8", "save the file as UTF-8")];
            return Err(Unfit { folder: "the skill".into(), findings }.into());
        };
        let text = text.replace("\r\n", "\n");
        let parts = divide(&text)?;
        let files = package.files().iter().filter(|file| file.path != DOCUMENT);
        let files = files.map(|file| CarriedFile {
            path: file.path.clone(),
            bytes: file.bytes.len() as u64,
            sha256: sha256(&file.bytes),
            executable: file.executable,
        });
        let folder = SkillFolder { front_matter: parts.front.map(str::to_owned), files: files.collect() };
        // The blank line behind the front matter belongs to neither.
        let body = if parts.front.is_some() { parts.body.trim_start_matches('\n') } else { parts.body };
        Ok(Self { body: body.to_owned(), folder })
    }
}

/// Copies the files of a skill into the folder of a run that has not begun.
///
/// # Errors
/// The disk's; nothing half is left.
pub fn keep_in_run(package: &Package, run: &RunDir) -> Result<(), StoreError> {
    let place = run.skill_files();
    let failed = || StoreError::io("write", &place);
    let scratch = tempfile::Builder::new().prefix(".tmp-").tempdir_in(run.path()).map_err(failed())?;
    let copy = scratch.path().join("skill");
    package.write(&copy, &mut || Ok(()))?;
    // Of a start that got no further.
    if place.exists() {
        fs::remove_dir_all(&place).map_err(StoreError::io("remove", &place))?;
    }
    fs::rename(&copy, &place).map_err(failed())?;
    sync_folder(run.path())
}

/// The files that a run was begun with.
///
/// # Errors
/// A copy that cannot be read any more.
pub fn kept_in_run(run: &RunDir) -> Result<Package, CarriedError> {
    let path = run.skill_files();
    if !path.is_dir() {
        return Err(CarriedError::Gone { path });
    }
    Ok(Package::read(&path)?)
}

/// The files besides the document that came with a run's skill, each as the journal tells it.
///
/// # Errors
/// A file that is gone or was changed since.
pub fn package_of_run(run: &RunDir, folder: &SkillFolder) -> Result<Vec<PackageFile>, CarriedError> {
    if folder.files.is_empty() {
        return Ok(Vec::new());
    }
    let kept = kept_in_run(run)?;
    let file = |told: &CarriedFile| {
        let path = run.skill_files().join(&told.path);
        let Some(file) = kept.get(&told.path) else { return Err(CarriedError::Gone { path }) };
        let same = sha256(&file.bytes) == told.sha256;
        let file = PackageFile { executable: told.executable, ..file.clone() };
        if same { Ok(file) } else { Err(CarriedError::Changed { path }) }
    };
    folder.files.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(document: &str) -> Package {
        let file = |path: &str, text: &str, executable| PackageFile {
            path: path.into(),
            bytes: text.as_bytes().to_vec(),
            executable,
        };
        Package::new(vec![
            file(DOCUMENT, document, false),
            file("scripts/x.sh", "run\n", true),
            file("a.md", "a\n", false),
        ])
    }

    #[test]
    fn a_folder_is_divided_and_its_other_files_are_listed() {
        let carried = Carried::of(&package("---\r\nname: a # b\r\n---\r\n\r\nDo it.\r\n")).unwrap();
        assert_eq!(carried.body, "Do it.\n");
        assert_eq!(carried.folder.front_matter.as_deref(), Some("name: a # b\n"));
        let files: Vec<_> = carried
            .folder
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.bytes, file.executable))
            .collect();
        assert_eq!(files, [("a.md", 2, false), ("scripts/x.sh", 4, true)]);
        let bare = Carried::of(&package("\nDo it.")).unwrap();
        assert_eq!((bare.body.as_str(), bare.folder.front_matter), ("\nDo it.", None));
        assert!(matches!(Carried::of(&package("---\nname: a\n")), Err(CarriedError::Unclosed(_))));
    }

    #[test]
    fn a_run_keeps_the_files_and_notices_a_change() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        let package = package("---\nname: a\n---\nDo it.\n");
        let folder = Carried::of(&package).unwrap().folder;
        assert!(matches!(package_of_run(&run, &folder), Err(CarriedError::Gone { .. })));
        keep_in_run(&package, &run).unwrap();
        keep_in_run(&package, &run).unwrap();
        assert_eq!(kept_in_run(&run).unwrap(), package);
        let files = package_of_run(&run, &folder).unwrap();
        assert_eq!(Package::new(files).with_document(package.document().unwrap().to_vec()), package);
        let names: Vec<_> =
            fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["skill_files"]);
        fs::write(run.skill_files().join("a.md"), "b\n").unwrap();
        let told = package_of_run(&run, &folder).unwrap_err().to_string();
        assert!(told.contains("skill_files/a.md is not as it was"), "{told}");
        fs::remove_file(run.skill_files().join("a.md")).unwrap();
        assert!(package_of_run(&run, &folder).unwrap_err().to_string().contains("skill_files/a.md is gone"));
    }
}
