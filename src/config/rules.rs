//! Rules that span keys or look at the disk. Types and ranges of single values are checked in `value`.

use std::path::Path;

use super::error::{ConfigError, Origin, Place};
use super::keys::{self, Expect, Kind};
use super::layer::{DEMO, Layers};
use super::value::Complaint;
use super::{AnswerRule, Backend, Config, RoleConfig, ScorerKind, SplitMode};
use crate::domain::{ReviewMode, TimeoutPolicy};

/// Checks a configuration whose single values are right. Complaints go to `layers`, warnings come back.
pub fn check(config: &Config, file: &Path, layers: &mut Layers) -> Vec<String> {
    let mut rules = Rules { config, file, layers, warnings: Vec::new() };
    rules.run_name();
    rules.role("target", &config.model.target);
    rules.role("optimizer", &config.model.optimizer);
    rules.edit_search();
    rules.schedule();
    rules.review();
    rules.data();
    rules.answers();
    rules.paths();
    rules.warnings
}

struct Rules<'a> {
    config: &'a Config,
    file: &'a Path,
    layers: &'a mut Layers,
    warnings: Vec<String>,
}

impl Rules<'_> {
    /// One complaint per key: a later one is most likely a consequence of the first.
    fn refuse(&mut self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        if self.layers.errors.iter().any(|error| error.key == key) {
            return;
        }
        let place = match self.layers.entries.get(key).map(|entry| &entry.origin) {
            Some(Origin::File { path, line }) => Place::Line { path: path.clone(), line: *line },
            Some(Origin::CommandLine) => Place::CommandLine,
            Some(Origin::BuiltIn) | None => Place::File(self.file.to_owned()),
        };
        let Complaint { problem, remedy } = Complaint::new(problem, remedy);
        self.layers.errors.push(ConfigError { place, key: key.to_owned(), problem, remedy });
    }

    fn warn(&mut self, key: &str, text: &str) {
        let origin = self.layers.entries.get(key).map_or(Origin::BuiltIn, |entry| entry.origin.clone());
        self.warnings.push(format!("{origin}: {key}: {text}"));
    }

    /// Whether somebody chose the value: a written default, as in the resolved config of a run, is no choice.
    fn is_set(&self, key: &str) -> bool {
        let built_in = || {
            keys::flatten(&Config::default())
                .into_iter()
                .find(|(row, _)| row.path == key)
                .map(|(_, value)| value)
        };
        self.layers
            .entries
            .get(key)
            .is_some_and(|entry| serde_json::to_value(&entry.value).ok() != built_in())
    }

    fn run_name(&mut self) {
        let name = &self.config.run.name;
        if !name.is_empty()
            && let Err(problem) = check_run_name(name)
        {
            self.refuse("run.name", problem, "use letters, digits, `-`, `_` and `.`");
        }
    }

    fn role(&mut self, name: &str, role: &RoleConfig) {
        let key = |field: &str| format!("model.{name}.{field}");
        match role.backend {
            Backend::OpenaiChat => {
                let url = &role.base_url;
                let form = "give the server's address, like https://server.example/v1";
                if url.is_empty() {
                    self.refuse(&key("base_url"), "not set, but the backend openai_chat needs it", form);
                } else if !(url.starts_with("https://") || url.starts_with("http://")) {
                    self.refuse(&key("base_url"), "no http:// or https:// address", form);
                } else if url.split('/').nth(2).is_some_and(|host| host.contains('@')) {
                    let remedy = format!("take it out and name it in {}", key("api_key_env"));
                    self.refuse(&key("base_url"), "holds a user name or password", remedy);
                }
                if role.model.is_empty() {
                    let remedy = "give the model's name as the server knows it";
                    self.refuse(&key("model"), "not set, but the backend openai_chat needs it", remedy);
                }
            }
            Backend::EditSearch if name == "target" => {
                let remedy = "use it as model.optimizer.backend; for the target use openai_chat or local";
                self.refuse(&key("backend"), "the built-in edit search cannot run tasks", remedy);
            }
            Backend::EditSearch | Backend::Local => {}
        }
        if !role.api_key_env.is_empty() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !role.api_key_env.chars().all(plain)
                || role.api_key_env.starts_with(|c: char| c.is_ascii_digit())
            {
                let remedy = "give the variable's name, never the key itself";
                self.refuse(&key("api_key_env"), "no name of an environment variable", remedy);
            }
            if !role.api_key_file.is_empty() {
                self.refuse(&key("api_key_file"), "set together with api_key_env", "keep one of the two");
            }
        }
    }

    /// The edit search orders its proposals by the worker's log-likelihood.
    fn edit_search(&mut self) {
        let model = &self.config.model;
        let has_worker = model.target.backend == Backend::Local
            || !model.worker_command.is_empty()
            || !model.model_file.is_empty();
        if model.optimizer.backend == Backend::EditSearch && !has_worker {
            self.refuse(
                "model.optimizer.backend",
                "the built-in edit search needs a local model for its log-likelihoods",
                "set model.target.backend = \"local\", or name a model.model_file for the worker",
            );
        }
    }

    fn schedule(&mut self) {
        let optimizer = &self.config.optimizer;
        if optimizer.min_learning_rate > optimizer.learning_rate {
            let text = "above optimizer.learning_rate, so every step has this budget";
            self.warn("optimizer.min_learning_rate", text);
        }
    }

    fn review(&mut self) {
        let review = &self.config.review;
        if review.mode == ReviewMode::Auto {
            return;
        }
        match (review.timeout_s, review.on_timeout) {
            (0, TimeoutPolicy::Accept | TimeoutPolicy::Reject) => {
                self.warn("review.on_timeout", "never applies, since review.timeout_s is 0");
            }
            (1.., TimeoutPolicy::Wait) => {
                let remedy = "set review.on_timeout to accept or reject, or timeout_s to 0";
                self.refuse("review.timeout_s", "has no effect: review.on_timeout is wait", remedy);
            }
            (0, TimeoutPolicy::Wait) | (1.., TimeoutPolicy::Accept | TimeoutPolicy::Reject) => {}
        }
    }

    fn data(&mut self) {
        let env = &self.config.env;
        match env.split_mode {
            SplitMode::Ratio => {
                if env.data_path.is_empty() {
                    let remedy = "name a JSON or JSONL file, or demo:city, or set env.split_mode";
                    self.refuse("env.data_path", "not set, but env.split_mode ratio needs it", remedy);
                }
                let parts: Vec<&str> = env.split_ratio.split(':').collect();
                let positive = |part: &&str| part.trim().parse::<u32>().is_ok_and(|weight| weight > 0);
                if parts.len() != 3 || !parts.iter().all(positive) {
                    let problem = format!("{:?} is no ratio", env.split_ratio);
                    self.refuse("env.split_ratio", problem, "write three positive numbers like 2:1:7");
                }
                if self.is_set("env.split_dir") {
                    self.warn("env.split_dir", "not used, since env.split_mode is ratio");
                }
            }
            SplitMode::SplitDir => {
                if env.split_dir.is_empty() {
                    let remedy = "name a folder with train/, val/ and test/";
                    self.refuse("env.split_dir", "not set, but env.split_mode split_dir needs it", remedy);
                }
                if self.is_set("env.data_path") {
                    self.warn("env.data_path", "not used, since env.split_mode is split_dir");
                }
            }
        }
    }

    fn answers(&mut self) {
        let env = &self.config.env;
        if env.user_template.trim().is_empty() {
            let remedy = "write how an item becomes a prompt, like \"{{ question }}\"";
            self.refuse("env.user_template", "is empty", remedy);
        }
        if env.answer_field.is_empty() {
            self.refuse("env.answer_field", "is empty", "name the item field with the reference answer");
        }
        match env.answer_rule {
            AnswerRule::Tag | AnswerRule::TagOrLastLine if env.answer_tag.is_empty() => {
                let problem = "is empty, but env.answer_rule looks for a tag";
                self.refuse("env.answer_tag", problem, "give the tag's name");
            }
            AnswerRule::Regex if env.answer_pattern.is_empty() => {
                let problem = "is empty, but env.answer_rule is regex";
                self.refuse("env.answer_pattern", problem, "give a regular expression");
            }
            AnswerRule::Regex => {
                if let Err(error) = regex::Regex::new(&env.answer_pattern) {
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    let problem = format!("no regular expression: {reason}");
                    self.refuse("env.answer_pattern", problem, "correct the pattern");
                }
            }
            AnswerRule::Tag | AnswerRule::TagOrLastLine | AnswerRule::LastLine | AnswerRule::Whole => {}
        }
        // 0 is the built-in value: a resolved configuration, which writes every key, is not told off for it.
        let used = env.scorer == ScorerKind::Numeric || env.numeric_tolerance == 0.0;
        if self.is_set("env.numeric_tolerance") && !used {
            self.warn("env.numeric_tolerance", "not used, since env.scorer is not numeric");
        }
    }

    /// Everything named must exist before the first call is paid for.
    fn paths(&mut self) {
        for key in keys::keys() {
            let Kind::Path(expect) = key.kind else { continue };
            let Some(path) = self.layers.entries.get(key.path).and_then(|entry| entry.value.as_str()) else {
                continue;
            };
            let unused = match key.path {
                "env.split_dir" => self.config.env.split_mode == SplitMode::Ratio,
                "env.data_path" => self.config.env.split_mode == SplitMode::SplitDir,
                _ => false,
            };
            if path.is_empty() || unused {
                continue;
            }
            let (wanted, there) = match expect {
                Expect::File => ("file", Path::new(path).is_file()),
                Expect::Folder => ("folder", Path::new(path).is_dir()),
                Expect::FileOrDemo => ("file", path.starts_with(DEMO) || Path::new(path).is_file()),
            };
            if !there {
                let problem = format!("no such {wanted}: {path}");
                let remedy = "relative paths start at the folder of the file that names them";
                self.refuse(key.path, problem, remedy);
            }
        }
    }
}

/// A run's name is one plain folder name.
pub fn check_run_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        Err("the name is empty".into())
    } else if name.starts_with(['.', '-']) {
        Err(format!("{name:?} begins with {:?}", &name[..1]))
    } else if let Some(odd) = name.chars().find(|c| !plain(*c)) {
        Err(format!("{name:?} contains {odd:?}"))
    } else if name.len() > 100 {
        Err("the name is longer than 100 bytes".into())
    } else {
        Ok(())
    }
}
