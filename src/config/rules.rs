//! Rules that span keys or look at the disk. Types and ranges of single values are checked in `value`.

use std::path::Path;

use super::benchmarks::SheetMode;
use super::body_fields::instead_of;
use super::error::{ConfigError, Origin, Place};
use super::keys::{self, Expect, Key, Kind, UsedBy};
use super::layer::{DEMO, Layers};
use super::value::Complaint;
use super::{
    AnswerRule, Backend, Benchmark, Config, Misrouted, RoleConfig, Route, ScorerKind, SplitMode, ThinkingMode,
};
use crate::domain::{ReviewMode, Role, TimeoutPolicy};

/// Checks a configuration whose single values are right. Complaints and warnings go to `layers`.
pub fn check(config: &Config, file: &Path, layers: &mut Layers) {
    let mut rules = Rules { config, file, layers };
    rules.run_name();
    for role in config.roles() {
        rules.role(role);
    }
    rules.edit_search();
    rules.schedule();
    rules.review();
    rules.data();
    rules.answers();
    rules.benchmark();
    rules.unused();
    rules.paths();
    rules.not_built();
}

struct Rules<'a> {
    config: &'a Config,
    file: &'a Path,
    layers: &'a mut Layers,
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
        self.layers.warnings.push(format!("{origin}: {key}: {text}"));
    }

    fn is_set(&self, key: &str) -> bool {
        self.layers.is_set(key)
    }

    fn run_name(&mut self) {
        let name = &self.config.run.name;
        if !name.is_empty()
            && let Err(problem) = check_run_name(name)
        {
            self.refuse("run.name", problem, "use letters, digits, `-`, `_` and `.`");
        }
    }

    fn role(&mut self, role: Role) {
        let model = &self.config.model;
        let (name, own) = (role.name(), model.role(role));
        let key = |field: &str| format!("model.{name}.{field}");
        if role == Role::Judge && *own == RoleConfig::default() {
            let remedy = "write [model.judge] with the backend and the model that judge";
            self.refuse("env.scorer", "the judge that it asks is not configured", remedy);
            return;
        }
        match model.route(role) {
            Ok(Route::Server(_)) if own.backend == Backend::QwenChat => {
                if model.thinking(role) == ThinkingMode::ServerDefault {
                    let text = "not set, so the server decides; most Qwen templates then think; set enabled or disabled";
                    self.warn(&key("thinking"), text);
                }
            }
            Ok(_) => {}
            Err(wrong) => {
                for Misrouted { field, problem, remedy } in wrong {
                    self.refuse(&key(field), problem, remedy);
                }
            }
        }
        let by_hand = own.extra_body.keys().find_map(|field| Some((field, instead_of(field)?)));
        if let Some((field, instead)) = by_hand {
            let problem = format!("sets `{field}`, which planish sets itself and budgets count on");
            let instead = instead.replace("ROLE", name);
            self.refuse(&key("extra_body"), problem, format!("take it out; {instead} instead"));
        }
        if !own.api_key_env.is_empty() {
            self.variable(&key("api_key_env"), &own.api_key_env);
        }
        let sources = [
            ("api_key_env", own.api_key_env.is_empty()),
            ("api_key_file", own.api_key_file.is_empty()),
            ("api_key_command", own.api_key_command.is_empty()),
        ];
        let mut named = sources.into_iter().filter(|(_, empty)| !empty).map(|(field, _)| field);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            self.refuse(&key(second), format!("set together with {first}"), "keep one of the two");
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
        if env.benchmark.name != Benchmark::None {
            return;
        }
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

    fn variable(&mut self, key: &str, name: &str) {
        if !is_variable_name(name) {
            let remedy = "give the variable's name, never the key itself";
            self.refuse(key, "no name of an environment variable", remedy);
        }
    }

    fn benchmark(&mut self) {
        let (env, target) = (&self.config.env.benchmark, self.config.model.target.backend);
        let is_program = matches!(self.config.model.route(Role::Target), Ok(Route::Program(_)));
        let search_auth = &env.search_auth_env;
        if !search_auth.is_empty() {
            self.variable("env.search_auth_env", search_auth);
        }
        let one_call = matches!(env.mode, SheetMode::Unset | SheetMode::Single);
        if env.name == Benchmark::Spreadsheetbench && is_program && !one_call {
            let problem = format!("the target {} solves a task in one go", target.word());
            self.refuse("env.mode", problem, "set env.mode = \"single\", or another model.target.backend");
        }
    }

    /// What nobody uses is said once, instead of doing nothing in silence.
    fn unused(&mut self) {
        let roles: Vec<Backend> =
            self.config.roles().into_iter().map(|role| self.config.model.role(role).backend).collect();
        let benchmark = self.config.env.benchmark.name;
        let judged = self.config.env.scorer == ScorerKind::Judge
            || matches!(benchmark, Benchmark::Babyvision | Benchmark::Mathverse);
        for key in keys::keys() {
            let of_judge = key.path.starts_with("model.judge.") || key.path == "env.judge_template";
            let is_idle = of_judge && !judged;
            if (key.used_by == UsedBy::Everyone && !is_idle) || !self.is_set(key.path) {
                continue;
            }
            if is_idle {
                self.warn(key.path, "not used, since env.scorer is not judge");
                continue;
            }
            let names = key.used_by.names();
            let text = match key.used_by {
                UsedBy::Backends(used_by) if !roles.iter().any(|role| used_by.contains(role)) => {
                    format!("not used, since no role has the backend {names}")
                }
                UsedBy::Benchmarks(used_by) if !used_by.contains(&benchmark) => {
                    format!("not used, since env.name is not {names}")
                }
                UsedBy::NotYet => "not used by this version".to_owned(),
                UsedBy::Everyone | UsedBy::Backends(_) | UsedBy::Benchmarks(_) => continue,
            };
            self.warn(key.path, &text);
        }
    }

    /// Whoever has to correct something anyway hears at once that it would not be enough. A configuration that is right
    /// otherwise loads: it may be for another version.
    fn not_built(&mut self) {
        if self.layers.errors.is_empty() {
            return;
        }
        let benchmark = self.config.env.benchmark.name;
        if benchmark != Benchmark::None {
            let problem = format!("the benchmark {} is not part of this version", benchmark.word());
            let remedy = "leave env.name out and describe the task with the other keys of [env]";
            self.refuse("env.name", problem, remedy);
        }
    }

    /// Everything named must exist before the first call is paid for.
    fn paths(&mut self) {
        for (key, text) in self.named_paths() {
            let path = Path::new(&text);
            let (wanted, there) = match key.kind {
                Kind::Path(Expect::File) => ("file", path.is_file()),
                Kind::Path(Expect::Skill) => {
                    ("file or skill folder", path.is_file() || path.join("SKILL.md").is_file())
                }
                Kind::Path(Expect::Folder) | Kind::Folders => ("folder", path.is_dir()),
                Kind::Path(Expect::DataOrDemo) if self.config.env.benchmark.name == Benchmark::None => {
                    ("file", text.starts_with(DEMO) || path.is_file())
                }
                Kind::Path(Expect::DataOrDemo) => ("file or folder", path.exists()),
                _ => continue,
            };
            if !there {
                let problem = format!("no such {wanted}: {}", path.display());
                let remedy = "relative paths start at the folder of the file that names them";
                self.refuse(key.path, problem, remedy);
            }
        }
    }

    /// Every path that is set and used.
    fn named_paths(&self) -> Vec<(&'static Key, String)> {
        let is_used = |key: &&'static Key| match key.path {
            "env.split_dir" => self.config.env.split_mode == SplitMode::SplitDir,
            "env.data_path" => self.config.env.split_mode == SplitMode::Ratio,
            _ => true,
        };
        let paths = |key: &'static Key| {
            let value = self.layers.entries.get(key.path).map(|entry| &entry.value);
            let list = match value {
                Some(toml::Value::Array(list)) if key.kind == Kind::Folders => list.as_slice(),
                Some(text) if matches!(key.kind, Kind::Path(_)) => std::slice::from_ref(text),
                Some(_) | None => &[],
            };
            list.iter().filter_map(move |text| Some((key, text.as_str()?.to_owned()))).collect::<Vec<_>>()
        };
        keys::keys().filter(is_used).flat_map(paths).filter(|(_, path)| !path.is_empty()).collect()
    }
}

/// What may name an environment variable here; a key of a server hardly ever does.
pub fn is_variable_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit())
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
