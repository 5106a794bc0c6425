//! The files that the attached run was made from: configurations and the seed skill. A run holds copies, so that a change
//! of one is only worth a word.

use std::path::{Path, PathBuf};

use super::action::Action;
use super::app::App;
use super::controls::global::GlobalAction;
use super::theme::Role;
use crate::skill::DOCUMENT;

impl App {
    /// Files whose change matters to who looks at this run; none when it runs elsewhere.
    pub fn watched(&self) -> Vec<PathBuf> {
        if self.attached.is_none() {
            return Vec::new();
        }
        let mut files: Vec<PathBuf> = Vec::new();
        let origins = self.state.info.iter().flat_map(|info| info.origins.values());
        let named = origins.filter_map(|origin| file_of(origin)).map(PathBuf::from);
        for file in named.chain(self.seed_document()) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// The file whose text the run began with, or began with the body of.
    fn seed_document(&self) -> Option<PathBuf> {
        let named = self.state.config.pointer("/env/skill_init")?.as_str().filter(|path| !path.is_empty())?;
        let of_folder = self.state.info.as_ref().is_some_and(|info| info.folder.is_some());
        Some(if of_folder { Path::new(named).join(DOCUMENT) } else { PathBuf::from(named) })
    }

    /// One of [`App::watched`] is another now.
    pub(super) fn file_changed(&mut self, file: &Path) {
        let words = if self.seed_document().is_some_and(|skill| skill == file) {
            "the run goes on with its own versions of the skill".to_owned()
        } else {
            let keys = [GlobalAction::GoConfig, GlobalAction::NewRun];
            let [config, new_run] = keys.map(|action| self.press_for(Action::Global(action)));
            format!("the run uses the old one; {config} shows its settings, {new_run} starts another run")
        };
        self.say(Role::Warn, format!("{} changed: {words}", file.display()));
    }
}

/// The file in an origin like `configs/x.toml:12`.
fn file_of(origin: &str) -> Option<&str> {
    let (file, line) = origin.rsplit_once(':')?;
    (!file.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_name_files_or_none() {
        assert_eq!(file_of("configs/x.toml:12"), Some("configs/x.toml"));
        assert_eq!(file_of("command line"), None);
        assert_eq!(file_of("built-in"), None);
    }
}
