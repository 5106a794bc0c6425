//! Other spellings of keys and words, as data: SkillOpt's flat names, ReflACT's vocabulary, names that moved. Files,
//! `-o` and the import all read names here, so there is one way in. Must not read values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::keys::{self, Key};

/// ReflACT's words for the two roles, as parts of any name.
const VOCABULARY: [(&str, &str); 2] = [("teacher", "optimizer"), ("student", "target")];

/// Names that moved, with their section. A section's name with a plain value is one of its keys.
const MOVED: &[(&str, &str)] = &[
    ("model.optimizer", "model.optimizer.model"),
    ("model.target", "model.target.model"),
    ("model.codex_path", "model.codex_exec_path"),
    ("model.codex_cli_bin", "model.codex_exec_path"),
    ("model.codex_bin", "model.codex_exec_path"),
    ("model.sandbox", "model.codex_exec_sandbox"),
    ("model.codex_sandbox", "model.codex_exec_sandbox"),
    ("model.azure_endpoint", "model.azure_openai_endpoint"),
    ("model.azure_api_version", "model.azure_openai_api_version"),
    ("env.max_completion_tokens", "model.target.max_tokens"),
    ("env.judge_model", "model.judge.model"),
    ("env.judge_max_completion_tokens", "model.judge.max_tokens"),
    ("env.analyst_workers", "gradient.analyst_workers"),
    ("env.train_size", "train.train_size"),
];

/// Flat names that are not the last part of their key.
const FLAT: &[(&str, &str)] = &[
    ("env", "env.name"),
    ("env_kind", "env.kind"),
    ("edit_budget", "optimizer.learning_rate"),
    ("min_edit_budget", "optimizer.min_learning_rate"),
    ("meta_edit_budget", "optimizer.meta_learning_rate"),
    ("model_backend", "model.backend"),
];

/// Sections whose keys are flat under their own names.
const FLAT_SECTIONS: [&str; 6] = ["model", "train", "gradient", "optimizer", "evaluation", "env"];

/// Sections whose keys are flat with the section in front.
const PREFIXED_SECTIONS: [&str; 6] =
    ["model.optimizer", "model.target", "model.judge", "run", "review", "budget"];

/// A name that was a key once, and why it is none now.
const RETIRED: &[(&str, &str)] = &[
    ("gradient.max_analyst_rounds", "analysts answer in one round"),
    ("model.codex_exec_full_auto", "sandbox and approval policy have keys of their own"),
    ("train.steps_per_epoch", "it follows from the size of the training split, batch_size and accumulation"),
];

/// What a written name means.
#[derive(Clone, Debug)]
pub enum Name {
    Key(&'static Key),
    /// Has no effect any more.
    Retired {
        why: &'static str,
    },
    /// Holds a key of a server: never a value of a configuration.
    Secret {
        variable: String,
    },
}

/// What a name means, with or without a section; `None`: nothing.
pub fn resolve(written: &str) -> Option<Name> {
    let path = in_own_words(written);
    if let Some(key) = keys::find(&path).or_else(|| keys::find(moved(&path)?)).or_else(|| flat_key(&path)) {
        return Some(Name::Key(key));
    }
    let last = |name: &'static str| name.rsplit_once('.').map_or(name, |(_, last)| last);
    if let Some((_, why)) = RETIRED.iter().find(|(name, _)| *name == path || last(name) == path) {
        return Some(Name::Retired { why });
    }
    secret_variable(&path).map(|variable| Name::Secret { variable })
}

/// The environment variable that holds what SkillOpt keeps under this name; `None`: it is no secret.
pub fn secret_variable(name: &str) -> Option<String> {
    let last = name.rsplit('.').next().unwrap_or(name).to_uppercase();
    match last.as_str() {
        // The oldest name; its variable has the newer one.
        "AZURE_API_KEY" => Some("AZURE_OPENAI_API_KEY".into()),
        _ => last.ends_with("API_KEY").then_some(last),
    }
}

fn moved(path: &str) -> Option<&'static str> {
    MOVED.iter().find(|(moved, _)| *moved == path).map(|(_, key)| *key)
}

/// `model.optimizer_backend` is the flat name of a key of a role with the section in front.
fn flat_key(path: &str) -> Option<&'static Key> {
    let flat = path.strip_prefix("model.").unwrap_or(path);
    by_flat_name(flat).filter(|key| flat == path || key.path.starts_with("model."))
}

/// The name in planish's vocabulary.
pub fn in_own_words(written: &str) -> Cow<'_, str> {
    if !VOCABULARY.iter().any(|(word, _)| written.contains(word)) {
        return Cow::Borrowed(written);
    }
    let in_own = |name: &str| {
        let parts: Vec<&str> = name.split('_').map(own_word).collect();
        parts.join("_")
    };
    let names: Vec<String> = written.split('.').map(in_own).collect();
    Cow::Owned(names.join("."))
}

fn own_word(word: &str) -> &str {
    VOCABULARY.iter().find(|(theirs, _)| *theirs == word).map_or(word, |(_, ours)| ours)
}

/// The flat name of a key, as SkillOpt writes it into `config.json`.
pub fn flat_name(key: &str) -> String {
    if let Some((flat, _)) = FLAT.iter().find(|(_, path)| *path == key) {
        return (*flat).to_owned();
    }
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let section = section.rsplit('.').next().filter(|_| PREFIXED_SECTIONS.contains(&section));
    section.map_or_else(|| name.to_owned(), |section| format!("{section}_{name}"))
}

/// The key of a flat name, in SkillOpt's six sections and the two role tables.
pub fn by_flat_name(flat: &str) -> Option<&'static Key> {
    static KEYS: LazyLock<HashMap<String, &'static Key>> = LazyLock::new(|| {
        let known = |key: &&'static Key| {
            let section = key.path.rsplit_once('.').map_or("", |(section, _)| section);
            FLAT_SECTIONS.contains(&section) || section.starts_with("model.")
        };
        // The name of a section is never the flat name of a key in it, except for those in FLAT.
        let moved = MOVED
            .iter()
            .filter(|(moved, _)| !keys::is_section(moved))
            .filter_map(|(moved, key)| Some((moved.rsplit_once('.')?.1.to_owned(), keys::find(key)?)));
        moved.chain(keys::keys().filter(known).map(|key| (flat_name(key.path), key))).collect()
    });
    KEYS.get(&*in_own_words(flat)).copied()
}

/// Other spellings of a key that SkillOpt has, with their sections where they have one.
pub fn spellings(key: &str) -> Vec<String> {
    let mut all: Vec<String> =
        MOVED.iter().filter(|(_, path)| *path == key).map(|(moved, _)| (*moved).to_owned()).collect();
    let flat = flat_name(key);
    if let Some((role, name)) = key.strip_prefix("model.").and_then(|rest| rest.split_once('.')) {
        // What both roles share under `model` has a name of its own for each role there.
        if name != "model" && keys::find(&format!("model.{name}")).is_some() {
            all.push(format!("model.{role}_{name}"));
        } else if name == "model" {
            all.push(flat);
        }
    } else if FLAT.iter().any(|(_, path)| *path == key) {
        all.push(flat);
    }
    all.sort();
    all
}

/// Words that stand for another word of the same key.
const WORDS: &[(&str, &[(&str, &str)])] = &[
    (
        "optimizer.skill_update_mode",
        &[
            ("", "patch"),
            ("edits", "patch"),
            ("rewrite", "rewrite_from_suggestions"),
            ("suggestions", "rewrite_from_suggestions"),
            ("rewrite_suggestions", "rewrite_from_suggestions"),
            ("full_rewrite", "full_rewrite_minibatch"),
            ("minibatch_full_rewrite", "full_rewrite_minibatch"),
            ("skill_rewrite_minibatch", "full_rewrite_minibatch"),
        ],
    ),
    (
        "optimizer.lr_control_mode",
        &[
            ("", "fixed"),
            ("manual", "fixed"),
            ("scheduler", "fixed"),
            ("scheduled", "fixed"),
            ("auto", "autonomous"),
            ("optimizer", "autonomous"),
            ("off", "none"),
            ("no_lr", "none"),
        ],
    ),
    (
        "optimizer.longitudinal_pair_policy",
        &[
            ("", "mixed"),
            ("default", "mixed"),
            ("random", "mixed"),
            ("all", "mixed"),
            ("change", "changed"),
            ("delta", "changed"),
            ("10_01", "changed"),
            ("01_10", "changed"),
            ("stable", "unchanged"),
            ("same", "unchanged"),
            ("00_11", "unchanged"),
        ],
    ),
    (
        "model.backend",
        &[
            ("azure", "azure_openai"),
            ("codex_exec", "codex"),
            ("claude", "claude_chat"),
            ("anthropic", "claude_chat"),
            ("cursor", "cursor_exec"),
            ("cursor_agent", "cursor_exec"),
            ("copilot", "copilot_chat"),
            ("copilot_cli", "copilot_chat"),
            ("github_copilot", "copilot_chat"),
            ("qwen", "qwen_chat"),
            ("minimax", "minimax_chat"),
            ("compat", "openai_compatible"),
            ("openai_compatible_chat", "openai_compatible"),
        ],
    ),
    ("model.target.backend", ROLE_BACKENDS),
    ("model.optimizer.backend", ROLE_BACKENDS),
    ("model.judge.backend", ROLE_BACKENDS),
    ("model.azure_openai_auth_mode", AZURE_AUTH),
    ("model.target.azure_openai_auth_mode", AZURE_AUTH),
    ("model.optimizer.azure_openai_auth_mode", AZURE_AUTH),
    ("model.judge.azure_openai_auth_mode", AZURE_AUTH),
];

const ROLE_BACKENDS: &[(&str, &str)] = &[("anthropic", "claude_chat")];

const AZURE_AUTH: &[(&str, &str)] = &[
    ("key", "api_key"),
    ("aad", "managed_identity"),
    ("azure_ad", "managed_identity"),
    ("compat", "openai_compatible"),
    ("openai", "openai_compatible"),
];

/// Words that stand for others at a key.
pub fn word_aliases(key: &str) -> &'static [(&'static str, &'static str)] {
    WORDS.iter().find(|(path, _)| *path == key).map_or(&[], |(_, words)| words)
}

/// The allowed word that `text` means at a key: case, blanks around it and `-` for `_` do not matter.
pub fn canonical_word(key: &str, allowed: &'static [&'static str], text: &str) -> Option<&'static str> {
    let plain = |word: &str| word.trim().to_lowercase().replace('-', "_");
    let text = plain(text);
    let known = |word: &&&'static str| plain(word) == text;
    allowed
        .iter()
        .find(known)
        .copied()
        .or_else(|| word_aliases(key).iter().find(|(alias, _)| *alias == text).map(|(_, word)| *word))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::config::Kind;

    fn key(written: &str) -> Option<&'static str> {
        match resolve(written) {
            Some(Name::Key(key)) => Some(key.path),
            _ => None,
        }
    }

    #[test]
    fn every_listed_name_leads_to_a_key() {
        for (written, expected) in MOVED.iter().chain(FLAT) {
            assert!(keys::find(expected).is_some(), "{written} leads to {expected}, which is no key");
            assert!(keys::find(written).is_none(), "{written} is itself a key");
            assert_eq!(key(written), Some(*expected));
        }
        for (name, words) in WORDS {
            let Some(Kind::Choice(allowed)) = keys::find(name).map(|key| key.kind) else { panic!("{name}") };
            for (alias, word) in *words {
                assert!(allowed.contains(word) && !allowed.contains(alias), "{name}: {alias} -> {word}");
                assert_eq!(canonical_word(name, allowed, &alias.to_uppercase()), Some(*word));
            }
        }
    }

    #[test]
    fn flat_names_and_spellings_lead_back() {
        let mut flat = HashSet::new();
        for row in keys::keys() {
            assert!(flat.insert(flat_name(row.path)), "{} shares its flat name", row.path);
            for spelling in spellings(row.path) {
                assert_eq!(key(&spelling), Some(row.path), "{spelling}");
            }
        }
        for row in keys::keys().filter(|key| FLAT_SECTIONS.contains(&key.path.rsplit_once('.').unwrap().0)) {
            assert_eq!(key(&flat_name(row.path)), Some(row.path));
        }
    }

    #[test]
    fn old_spellings_mean_the_keys_of_today() {
        for (written, expected) in [
            ("model.teacher", "model.optimizer.model"),
            ("model.student.backend", "model.target.backend"),
            ("teacher_model", "model.optimizer.model"),
            ("model.optimizer_backend", "model.optimizer.backend"),
            ("model.student_qwen_chat_base_url", "model.target.qwen_chat_base_url"),
            ("optimizer_azure_openai_endpoint", "model.optimizer.azure_openai_endpoint"),
            ("model.codex_trace_to_teacher", "model.codex_trace_to_optimizer"),
            ("model.copilot_chat_teacher_model", "model.copilot_chat_optimizer_model"),
            ("codex_bin", "model.codex_exec_path"),
            ("sandbox", "model.codex_exec_sandbox"),
            ("env", "env.name"),
            ("seed", "train.seed"),
            ("max_completion_tokens", "model.target.max_tokens"),
            ("teacher.learning_rate", "optimizer.learning_rate"),
        ] {
            assert_eq!(key(written), Some(expected), "{written}");
        }
        for written in [
            "optimizer",
            "target",
            "model.batch_size",
            "train.edit_budget",
            "model.optimizer.seed",
            "name",
            "moon",
        ] {
            assert!(resolve(written).is_none(), "{written}");
        }
        for written in ["max_analyst_rounds", "gradient.max_analyst_rounds", "model.codex_exec_full_auto"] {
            assert!(matches!(resolve(written), Some(Name::Retired { .. })), "{written}");
        }
        for written in ["model.teacher_azure_openai_api_key", "optimizer_azure_openai_api_key"] {
            let Some(Name::Secret { variable }) = resolve(written) else { panic!("{written}") };
            assert_eq!(variable, "OPTIMIZER_AZURE_OPENAI_API_KEY");
        }
    }
}
