//! SkillOpt's two ways to name a setting: in a section and flat. What both mean is read off the table of spellings.
//! The name of a section is never the flat name of a key inside that section unless it holds a plain value.

use crate::config::aliases::{self, Name};

pub const SECTIONS: [&str; 6] = ["model", "train", "gradient", "optimizer", "evaluation", "env"];

/// Older names of the Codex settings; the first that is present wins, the newest name over all.
pub const CODEX: [(&str, &[&str]); 2] = [
    ("codex_exec_path", &["codex_path", "codex_cli_bin", "codex_bin"]),
    ("codex_exec_sandbox", &["sandbox", "codex_sandbox"]),
];

/// Keys of `env` that are flat names outside of it too; an adapter takes every other one under its own name.
const COMMON_ENV: [&str; 9] = [
    "name",
    "skill_init",
    "out_root",
    "split_mode",
    "split_seed",
    "split_dir",
    "data_path",
    "split_output_dir",
    "exec_timeout",
];

/// Flat name of `section.key`; `None`: SkillOpt never reads it.
pub fn flat(section: &str, key: &str) -> Option<String> {
    match (section, key) {
        ("env", "name") => return Some("env".into()),
        ("env", _) => return Some(key.into()),
        // Present in its own base file, read by nothing.
        ("model", _) if key.starts_with("optimizer_minimax_") || key.starts_with("target_minimax_") => {
            return None;
        }
        _ => {}
    }
    match aliases::resolve(&format!("{section}.{key}"))? {
        // Older names have a flat name of their own, and count only where the newer one is blank.
        Name::Key(_) if key.starts_with("azure_") => Some(key.into()),
        Name::Key(found) => Some(aliases::flat_name(found.path)),
        Name::Retired { .. } | Name::Secret { .. } => Some(key.into()),
    }
}

/// Section and key of a flat name; `None`: it has no place in a section.
pub fn structured(flat_name: &str) -> Option<(&'static str, String)> {
    if let Some(key) = COMMON_ENV.iter().find(|key| flat("env", key).as_deref() == Some(flat_name)) {
        return Some(("env", (*key).to_owned()));
    }
    let path = aliases::by_flat_name(flat_name)?.path;
    let section =
        SECTIONS.into_iter().find(|section| path.split('.').next() == Some(*section) && *section != "env")?;
    let key = match path.split('.').collect::<Vec<_>>().as_slice() {
        [_, role, "model"] => (*role).to_owned(),
        [_, role, key] => format!("{role}_{key}"),
        _ => path.rsplit('.').next()?.to_owned(),
    };
    (flat(section, &key).as_deref() == Some(flat_name)).then_some((section, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_sections_and_flat_names_lead_to_each_other() {
        for (section, key, name) in [
            ("env", "name", "env"),
            ("env", "split_dir", "split_dir"),
            ("model", "backend", "model_backend"),
            ("model", "optimizer", "optimizer_model"),
            ("model", "target_backend", "target_backend"),
            ("model", "target_qwen_chat_base_url", "target_qwen_chat_base_url"),
            ("model", "codex_exec_path", "codex_exec_path"),
            ("train", "batch_size", "batch_size"),
            ("optimizer", "min_learning_rate", "min_edit_budget"),
            ("optimizer", "meta_learning_rate", "meta_edit_budget"),
            ("evaluation", "use_gate", "use_gate"),
        ] {
            assert_eq!(flat(section, key).as_deref(), Some(name));
            assert_eq!(structured(name), Some((section, key.to_owned())));
        }
        assert_eq!(flat("env", "workers").as_deref(), Some("workers"));
        assert_eq!(structured("workers"), None);
        assert_eq!(structured("max_completion_tokens"), None);
        assert_eq!(flat("model", "optimizer_minimax_model"), None);
        assert_eq!(flat("train", "typo"), None);
        assert_eq!(flat("model", "azure_openai_api_key").as_deref(), Some("azure_openai_api_key"));
    }
}
