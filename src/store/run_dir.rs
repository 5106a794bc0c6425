//! Paths of one run (DESIGN 4). A run folder may be moved or copied: nothing here is remembered as absolute.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::config::check_run_name;

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes the folder `root/name`. An empty one that is there already is taken (a start that got no further).
    ///
    /// # Errors
    /// A bad name, a folder with content, or the disk's.
    pub fn create(root: &Path, name: &str) -> Result<Self, StoreError> {
        check_run_name(name).map_err(|problem| StoreError::BadName { problem })?;
        let path = absolute(&root.join(name));
        fs::create_dir_all(&path).map_err(StoreError::io("create", &path))?;
        let mut entries = fs::read_dir(&path).map_err(StoreError::io("read", &path))?;
        if entries.next().is_some() {
            return Err(StoreError::Exists { path });
        }
        // Prompts, data and replies may be private, whatever the umask is. Nothing is in the folder yet.
        fs::set_permissions(&path, Permissions::from_mode(0o700))
            .map_err(StoreError::io("make private", &path))?;
        Ok(Self { path })
    }

    /// An existing run: a folder with a journal or at least a resolved config.
    ///
    /// # Errors
    /// [`StoreError::NotARun`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let run = Self { path: absolute(path) };
        if run.events().is_file() || run.config_toml().is_file() {
            Ok(run)
        } else {
            Err(StoreError::NotARun { path: run.path })
        }
    }

    /// Absolute: readers may work in another folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the folder.
    pub fn name(&self) -> String {
        let absolute = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        absolute.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The resolved config.
    pub fn config_toml(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The journal.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// What a run continues; read once, at its start.
    pub fn origin_json(&self) -> PathBuf {
        self.path.join("origin.json")
    }

    /// Where each setting came from, by key; written with the configuration, read once.
    pub fn origins_json(&self) -> PathBuf {
        self.path.join("config_origins.json")
    }

    pub fn snapshot(&self) -> PathBuf {
        self.path.join("snapshot.json")
    }

    pub fn host_json(&self) -> PathBuf {
        self.path.join("host.json")
    }

    pub fn host_log(&self) -> PathBuf {
        self.path.join("host.log")
    }

    pub fn lock(&self) -> PathBuf {
        self.path.join("run.lock")
    }

    /// Folder of recorded model calls.
    pub fn calls(&self) -> PathBuf {
        self.path.join("calls")
    }

    /// Prompts that wait for answers from files, and those answers.
    pub fn handoff(&self) -> PathBuf {
        self.path.join("handoff")
    }

    /// Prompts that replace built-in ones in this run.
    pub fn prompts(&self) -> PathBuf {
        self.path.join("prompts")
    }

    /// The folder that the seed skill was read from, as it was when the run began.
    pub fn skill_files(&self) -> PathBuf {
        self.path.join("skill_files")
    }

    pub fn best_skill(&self) -> PathBuf {
        self.path.join("best_skill.md")
    }

    /// The skill that was current after step `step`; step 0 is the start.
    pub fn skill_version(&self, step: u32) -> PathBuf {
        self.path.join(skill_version_name(step))
    }

    pub fn step(&self, step: u32) -> PathBuf {
        self.path.join(format!("steps/step_{step:04}"))
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Path of a skill version relative to its run.
pub(super) fn skill_version_name(step: u32) -> String {
    format!("skills/skill_v{step:04}.md")
}

/// Name of a run that was given none: the config's file name and the time (Unix milliseconds), as UTC.
pub fn default_run_name(config: &Path, now_ms: u64) -> String {
    let stem = plain_run_name(config);
    let time =
        jiff::Timestamp::from_millisecond(i64::try_from(now_ms).unwrap_or_default()).unwrap_or_default();
    format!("{stem}-{}", time.strftime("%Y%m%d-%H%M%S"))
}

/// The last part of a path, without extension, as a run name.
pub fn plain_run_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain: String =
        stem.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '-' }).take(40).collect();
    let stem = plain.trim_start_matches('-');
    if stem.is_empty() { "run".to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_refuses_what_is_there_and_open_what_is_not() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(&root.path().join("runs"), "one").unwrap();
        assert_eq!(run.name(), "one");
        assert!(matches!(RunDir::open(run.path()), Err(StoreError::NotARun { .. })));
        RunDir::create(&root.path().join("runs"), "one").unwrap();
        fs::write(run.config_toml(), "").unwrap();
        assert_eq!(RunDir::open(run.path()).unwrap(), run);
        let told = RunDir::create(&root.path().join("runs"), "one").unwrap_err().to_string();
        assert!(told.contains("planish resume"), "{told}");
        assert!(matches!(RunDir::create(root.path(), "../up"), Err(StoreError::BadName { .. })));
        assert!(matches!(RunDir::open(&root.path().join("none")), Err(StoreError::NotARun { .. })));
    }

    #[test]
    fn a_run_folder_is_private_and_its_path_absolute() {
        let root = tempfile::tempdir().unwrap();
        let made = root.path().join("two");
        fs::create_dir(&made).unwrap();
        fs::set_permissions(&made, Permissions::from_mode(0o777)).unwrap();
        for name in ["one", "two"] {
            let run = RunDir::create(root.path(), name).unwrap();
            assert_eq!(fs::metadata(run.path()).unwrap().permissions().mode() & 0o777, 0o700, "{name}");
        }
        let told = RunDir::open(Path::new("no/such")).unwrap_err();
        let StoreError::NotARun { path } = &told else { panic!("{told}") };
        assert!(path.is_absolute());
    }

    #[test]
    fn default_names_are_names() {
        for (file, expected) in [
            ("configs/demo.toml", "demo-20260309-141500"),
            ("..toml", "run-20260309-141500"),
            ("my run!.toml", "my-run--20260309-141500"),
        ] {
            let name = default_run_name(Path::new(file), 1_773_065_700_123);
            assert_eq!(name, expected);
            assert_eq!(check_run_name(&name), Ok(()));
        }
    }
}
