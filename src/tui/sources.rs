//! The files that the attached run was made from: configurations and the seed skill. A run holds copies, so that a change
//! of one is only worth a word.

use std::path::{Path, PathBuf};

use super::action::Action;
use super::app::App;
use super::controls::global::GlobalAction;
use super::theme::Role;

impl App {
    /// Files whose change matters to who looks at this run; none when it runs elsewhere.
    pub fn watched(&self) -> Vec<PathBuf> {
        if self.attached.is_none() {
            return Vec::new();
        }
        let mut files: Vec<PathBuf> = Vec::new();
        let origins = self.state.info.iter().flat_map(|info| info.origins.values());
        let skill = self.state.config.pointer("/env/skill_init").and_then(|path| path.as_str());
        let named = origins.filter_map(|origin| file_of(origin)).chain(skill.filter(|path| !path.is_empty()));
        for file in named.map(PathBuf::from) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// One of [`App::watched`] is another now.
    pub(super) fn file_changed(&mut self, file: &Path) {
        let is_skill = self.state.config.pointer("/env/skill_init").and_then(|path| path.as_str());
        let words = if is_skill.is_some_and(|skill| Path::new(skill) == file) {
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
