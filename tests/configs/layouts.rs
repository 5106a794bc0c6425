//! One file per layout that SkillOpt and ReflACT read, imported and loaded.

use planish::config::skillopt::{Imported, import};
use planish::config::{Config, Loaded};
use serde_json::{Value, json};

use super::{changed, project};

/// The imported file and the configuration it loads to. Paths in it are shown from the folder of the layouts.
fn round_trip(layout: &str, options: &[&str], overrides: &[&str]) -> (Imported, Loaded, Value) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/run.toml");
    std::fs::create_dir(out.parent().unwrap()).unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let source = project("tests/configs/layouts").join(layout);
    let imported =
        import(&source, &texts(options), Some(&out), &no_variables).unwrap_or_else(|error| panic!("{error}"));
    std::fs::write(&out, &imported.toml).unwrap();
    let loaded =
        Config::load(&out, &texts(overrides)).unwrap_or_else(|errors| panic!("{errors}\n{}", imported.toml));
    let base = format!("{}/", project("tests/configs/layouts").canonicalize().unwrap().display());
    let settings = serde_json::to_string(&changed(&loaded)).unwrap().replace(&base, "");
    let settings = serde_json::from_str(&settings).unwrap();
    (imported, loaded, settings)
}

/// An environment without variables.
fn no_variables(_: &str) -> Option<String> {
    None
}

const SERVER: &str = "https://api.openai.com/v1";

#[test]
fn sections() {
    let (imported, loaded, settings) = round_trip("structured.yaml", &[], &[]);
    assert_eq!(
        settings,
        json!({
            "model.target.model": "small", "model.target.base_url": SERVER, "model.target.max_tokens": 512,
            "model.target.backend": "openai_compatible", "model.target.api_key_env": "OPENAI_COMPATIBLE_API_KEY",
            "model.optimizer.model": "big", "model.optimizer.base_url": SERVER,
            "model.optimizer.backend": "openai_compatible",
            "model.optimizer.api_key_env": "OPENAI_COMPATIBLE_API_KEY",
            "model.reasoning_effort": "high", "model.rewrite_max_completion_tokens": 32000,
            "train.num_epochs": 2, "train.batch_size": 10, "train.accumulation": 2, "train.seed": 7,
            "gradient.minibatch_size": 4, "gradient.merge_batch_size": 3, "gradient.analyst_workers": 2,
            "gradient.failure_only": true,
            "optimizer.learning_rate": 6, "optimizer.min_learning_rate": 1, "optimizer.lr_scheduler": "linear",
            "optimizer.lr_control_mode": "none", "optimizer.slow_update_samples": 5,
            "optimizer.slow_update_gate_with_selection": true, "optimizer.longitudinal_pair_policy": "changed",
            "optimizer.use_meta_skill": false, "optimizer.use_skill_aware_reflection": true,
            "optimizer.skill_aware_appendix_source": "failure_only",
            "optimizer.skill_aware_consolidate_threshold": 12,
            "evaluation.gate_metric": "mixed", "evaluation.gate_mixed_weight": 0.25,
            "evaluation.use_semantic_density": true, "evaluation.leading_words": ["always", "never"],
            "evaluation.sel_env_num": 30, "evaluation.eval_test": false,
            "env.split_ratio": "3:2:5", "env.split_seed": 9, "env.data_path": "data/items.json",
            "env.skill_init": "seed.md", "env.workers": 3, "env.limit": 50,
        })
    );
    assert_eq!(loaded.warnings, [""; 0]);
    assert_eq!(imported.left_out, 0, "{}", imported.toml);
    assert!(
        imported.toml.contains("# was env.max_completion_tokens (structured.yaml:46)\nmax_tokens = 512"),
        "{}",
        imported.toml
    );
}

#[test]
fn flat() {
    let (imported, loaded, settings) = round_trip("flat.yaml", &[], &[]);
    assert_eq!(
        settings,
        json!({
            "model.target.model": "small", "model.azure_openai_endpoint": "https://old.example/",
            "model.target.api_key_env": "AZURE_OPENAI_API_KEY", "model.optimizer.model": "big",
            "model.optimizer.api_key_env": "AZURE_OPENAI_API_KEY",
            "train.num_epochs": 3, "train.batch_size": 20,
            "optimizer.learning_rate": 8, "optimizer.min_learning_rate": 3, "optimizer.lr_scheduler": "constant",
            "optimizer.slow_update_samples": 10,
            "env.name": "searchqa", "env.data_path": "data/items.json", "env.skill_init": "seed.md",
            "env.workers": 5, "env.max_turns": 2, "env.exec_timeout": 60,
        })
    );
    assert_eq!(loaded.warnings, [""; 0]);
    let text = &imported.toml;
    assert!(!text.contains("never-to-be-written"), "{text}");
    assert!(text.contains("# was edit_budget (flat.yaml:10)\nlearning_rate = 8"), "{text}");
    let left_out = text.split("# Not taken over:\n").nth(1).unwrap();
    assert_eq!(
        left_out,
        "#   azure_api_key (flat.yaml:7): a key is never taken over: put it into the environment variable that the role's\n\
         #     api_key_env names\n\
         #   max_analyst_rounds (flat.yaml:23): analysts answer in one round\n\
         #   home_made (flat.yaml:24): planish has no such setting\n"
    );
    assert_eq!(imported.left_out, 3);
}

#[test]
fn a_chain_of_three() {
    let (_, loaded, settings) = round_trip("chain/child.yaml", &[], &[]);
    assert_eq!(
        settings,
        json!({
            "model.target.model": "first", "model.target.base_url": SERVER,
            "model.target.backend": "openai_compatible", "model.target.api_key_env": "OPENAI_COMPATIBLE_API_KEY",
            "model.optimizer.model": "second", "model.optimizer.base_url": SERVER,
            "model.optimizer.backend": "openai_compatible",
            "model.optimizer.api_key_env": "OPENAI_COMPATIBLE_API_KEY", "model.rewrite_reasoning_effort": "low",
            "train.num_epochs": 9, "train.batch_size": 30, "train.seed": 3,
            "optimizer.learning_rate": 7,
            "evaluation.leading_words": ["three"],
            "env.data_path": "data/items.json", "env.skill_init": "seed.md", "env.workers": 4, "env.limit": 20,
        })
    );
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn the_words_of_reflact() {
    let (imported, _, settings) = round_trip("reflact.yaml", &[], &[]);
    assert_eq!(
        settings,
        json!({
            "model.target.model": "small", "model.target.base_url": SERVER,
            "model.target.backend": "openai_compatible", "model.target.api_key_env": "OPENAI_COMPATIBLE_API_KEY",
            "model.optimizer.model": "big", "model.optimizer.base_url": SERVER,
            "model.optimizer.backend": "openai_compatible",
            "model.optimizer.api_key_env": "OPENAI_COMPATIBLE_API_KEY",
            "model.codex_trace_to_optimizer": false,
            "train.batch_size": 12,
            "gradient.use_deep_reflect": true, "gradient.deep_reflect_failures": 3,
            "gradient.deep_reflect_successes": 1,
            "optimizer.meta_learning_rate": 5, "optimizer.use_meta_reflect": true,
            "optimizer.slow_update_gate_with_selection": true,
            "env.data_path": "data/items.json", "env.skill_init": "seed.md",
        })
    );
    let text = &imported.toml;
    assert!(
        text.contains(
            "# was model.codex_trace_to_teacher (reflact.yaml:6)\ncodex_trace_to_optimizer = false"
        ),
        "{text}"
    );
    assert!(text.contains("# ReflACT always gates the slow update\n"), "{text}");
}

#[test]
fn every_alias_at_once() {
    let (imported, loaded, settings) = round_trip("aliases.yaml", &[], &[]);
    assert_eq!(
        settings,
        json!({
            "model.target.backend": "codex_exec", "model.target.model": "gpt-5.5",
            "model.optimizer.backend": "qwen_chat", "model.optimizer.model": "big",
            "model.optimizer.api_key_env": "QWEN_CHAT_API_KEY",
            "model.optimizer.qwen_chat_base_url": "http://127.0.0.1:9/v1",
            "model.qwen_chat_thinking_mode": "server_default", "model.qwen_chat_max_tokens": 4096,
            "model.codex_exec_path": "/opt/codex-2", "model.codex_exec_sandbox": "read-only",
            "model.codex_exec_network_access": true, "model.codex_exec_use_sdk": "true",
            "train.batch_size": 12,
            "optimizer.skill_update_mode": "full_rewrite_minibatch", "optimizer.lr_control_mode": "none",
            "optimizer.longitudinal_pair_policy": "changed",
            "evaluation.leading_words": ["always", "never"],
            "env.data_path": "data/items.json", "env.skill_init": "seed.md",
        })
    );
    let warnings = loaded.warnings.join("\n");
    assert!(warnings.contains("model.optimizer.thinking: not set, so the server decides"), "{warnings}");
    assert!(warnings.contains("model.codex_exec_use_sdk: not used by this version"), "{warnings}");
    assert_eq!(loaded.warnings.len(), 2, "{warnings}");
    let text = &imported.toml;
    assert!(!text.contains("never-to-be-written"), "{text}");
    for expected in [
        "# from model.backend = \"Codex\" (aliases.yaml:2)\nbackend = \"codex_exec\"",
        "# was model.codex_cli_bin (aliases.yaml:6)\ncodex_exec_path = \"/opt/codex-2\"",
        "#   model.codex_bin (aliases.yaml:7): a newer name of the same setting wins",
        "#   batch_size (aliases.yaml:21): the same file sets it in a section, which wins",
        "#   model.target_minimax_model (aliases.yaml:18): SkillOpt never reads it",
        "#   model.codex_exec_full_auto (aliases.yaml:11): ",
        "#   train.steps_per_epoch (aliases.yaml:20): ",
        "#   gradient.max_analyst_rounds (aliases.yaml:22): ",
        "#   evaluation.use_gate (aliases.yaml:30): only a plain false turns SkillOpt's gate off, so it is on",
        "#   model.qwen_chat_api_key (aliases.yaml:13): a key is never taken over",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert_eq!(imported.left_out, 8, "{text}");
}

#[test]
fn options_win_over_files_and_the_rest_is_what_the_code_does() {
    let options = ["train.batch_size=1e1", "edit_budget=2", "model.backend=minimax", "env.workers=٣"];
    let address = ["model.optimizer.base_url=http://127.0.0.1:9/v1"];
    let (imported, _, settings) = round_trip("chain/far/grandparent.yaml", &options, &address);
    assert_eq!(settings["train.batch_size"], 10);
    assert_eq!(settings["optimizer.learning_rate"], 2);
    assert_eq!(settings["env.workers"], 3);
    assert_eq!(settings["model.target.backend"], "minimax_chat");
    assert_eq!(settings["model.rewrite_reasoning_effort"], "high");
    assert!(
        imported
            .toml
            .contains("# not set there: what SkillOpt does then\nrewrite_reasoning_effort = \"high\"")
    );

    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.yaml");
    std::fs::write(&empty, "").unwrap();
    let text = import(&empty, &[], None, &no_variables).unwrap().toml;
    for expected in [
        "lr_scheduler = \"constant\"",
        "use_slow_update = false",
        "use_meta_skill = false",
        "# base_url = \"\"",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
}

#[test]
fn values_that_skillopt_would_refuse_are_named_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    let text = "train: {batch_size: many, seed: -1}\noptimizer:\n  lr_scheduler: Bogus\n  skill_update_mode: typo\n\
                model: {optimizer_backend: nobody}\n";
    std::fs::write(&file, text).unwrap();
    let told =
        import(&file, &["gradient.minibatch_size=0".into()], None, &no_variables).unwrap_err().to_string();
    let told: Vec<String> =
        told.lines().map(|line| line.replace(&format!("{}/", folder.path().display()), "")).collect();
    assert_eq!(
        told,
        [
            "bad.yaml:1: train.batch_size: a text is no whole number; give a whole number, at least 1",
            "bad.yaml:1: train.seed: -1 is out of range; give a whole number that is 0 or more",
            "command line: gradient.minibatch_size: 0 is out of range; give a whole number that is at least 1",
            "bad.yaml:3: optimizer.lr_scheduler: unknown value \"Bogus\"; allowed: constant, linear, cosine, autonomous",
            "bad.yaml:5: model.optimizer.backend: an unknown backend; allowed: openai_chat, local, edit_search, \
             openai_compatible, azure_openai, handoff, claude_chat, qwen_chat, minimax_chat, copilot_chat, codex_exec, \
             claude_code_exec, cursor_exec, copilot_exec, pi_exec, opencode_exec, gemini_exec",
        ]
    );
}

#[test]
fn what_others_wrote_cannot_break_out_of_a_comment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.yaml");
    std::fs::write(&file, "\"x\\n[train]\\nseed = 666\\n\\e[31m\": 1\nskill_update_mode: \"a\\nb\"\n")
        .unwrap();
    let text = import(&file, &[], None, &no_variables).unwrap().toml;
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!table.contains_key("train"), "{text}");
    assert!(text.contains("x\\n[train]\\nseed = 666\\n\\u{1b}[31m (odd.yaml:1)"), "{text}");
    assert!(
        text.contains("#   skill_update_mode (odd.yaml:2): an unknown word, which SkillOpt takes for patch"),
        "{text}"
    );
}

#[test]
fn addresses_with_passwords_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.yaml");
    let text = "qwen_chat_base_url: https://me:hush@host/v1\nazure_openai_endpoint: https://me:hush@azure\n\
                search_auth_env: Bearer hush\n";
    std::fs::write(&file, text).unwrap();
    let imported = import(&file, &[], None, &no_variables).unwrap();
    assert!(!imported.toml.contains("hush"), "{}", imported.toml);
    assert!(
        imported.toml.contains("qwen_chat_base_url (odd.yaml:1): holds a user name or password"),
        "{}",
        imported.toml
    );
    assert!(
        imported.toml.contains("azure_openai_endpoint (odd.yaml:2): holds a user name or password"),
        "{}",
        imported.toml
    );
}

#[test]
fn every_key_of_the_shipped_configurations_is_known() {
    for name in [
        "_base_",
        "alfworld",
        "docvqa",
        "features",
        "livemathematicianbench",
        "officeqa",
        "searchqa",
        "spreadsheetbench",
    ] {
        let file = if name == "features" { "soft_gate" } else { "default" };
        let source = project("tests/configs/skillopt").join(format!("{name}/{file}.yaml"));
        let imported = import(&source, &[], None, &no_variables).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(imported.left_out, 0, "{}", imported.toml);
        let table: toml::Table = imported.toml.parse().unwrap();
        let env = table["env"].as_table().unwrap();
        match name {
            "_base_" => assert!(!env.contains_key("name"), "{}", imported.toml),
            "features" => assert_eq!(table["evaluation"]["gate_metric"].as_str(), Some("soft")),
            name => assert_eq!(env["name"].as_str(), Some(name)),
        }
    }
}

#[test]
fn variables_that_skillopt_reads_are_taken_over_and_keys_only_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.yaml");
    let import_with = |yaml: &str, variables: &[(&str, &str)]| {
        std::fs::write(&file, yaml).unwrap();
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        import(&file, &[], None, &env).unwrap().toml
    };
    let text = import_with(
        "model: {optimizer: big, target: small}\n",
        &[
            ("AZURE_OPENAI_ENDPOINT", "https://shared.openai.azure.com"),
            ("TARGET_AZURE_OPENAI_ENDPOINT", "https://own.openai.azure.com"),
            ("AZURE_OPENAI_AUTH_MODE", "aad"),
            ("OPTIMIZER_AZURE_OPENAI_API_KEY", "never-to-be-written-1"),
        ],
    );
    for expected in [
        "# from the environment variable TARGET_AZURE_OPENAI_ENDPOINT where this was imported\n\
         azure_openai_endpoint = \"https://own.openai.azure.com\"",
        "azure_openai_endpoint = \"https://shared.openai.azure.com\"",
        "azure_openai_auth_mode = \"managed_identity\"",
        "api_key_env = \"OPTIMIZER_AZURE_OPENAI_API_KEY\"",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(!text.contains("never-to-be-written"), "{text}");

    let text = import_with(
        "model: {optimizer_backend: azure_openai, optimizer: big, target: small}\noptimizer: {learning_rte: 3}\n",
        &[
            ("AZURE_OPENAI_ENDPOINT", "https://shared.openai.azure.com"),
            ("OPTIMIZER_AZURE_OPENAI_ENDPOINT", "https://big.openai.azure.com"),
            ("OPTIMIZER_AZURE_OPENAI_API_KEY", "never-to-be-written-1"),
        ],
    );
    for expected in [
        "azure_openai_endpoint = \"https://big.openai.azure.com\"",
        "api_key_env = \"OPTIMIZER_AZURE_OPENAI_API_KEY\"",
        "optimizer.learning_rte (c.yaml:2): SkillOpt never reads it; did you mean optimizer.learning_rate?",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }

    let text = import_with(
        "model: {backend: openai_compatible, target: small}\n",
        &[
            ("OPENAI_COMPATIBLE_BASE_URL", "https://me:hush@server.example/v1"),
            ("OPTIMIZER_OPENAI_COMPATIBLE_BASE_URL", "https://server.example/v1"),
            ("OPENAI_COMPATIBLE_MODEL", "from-variable"),
            ("OPENAI_COMPATIBLE_TEMPERATURE", "0.5"),
            ("OPENAI_COMPATIBLE_MAX_TOKENS", "many"),
            ("OPENAI_COMPATIBLE_TIMEOUT_SECONDS", "120"),
        ],
    );
    for expected in [
        "base_url = \"https://server.example/v1\"",
        "model = \"small\"",
        "model = \"from-variable\"",
        "temperature = 0.5",
        "total_timeout_s = 120",
        "OPENAI_COMPATIBLE_BASE_URL (environment): holds a user name or password",
        "OPENAI_COMPATIBLE_MAX_TOKENS (environment): a text is no whole number",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(!text.contains("hush"), "{text}");

    let text = import_with(
        "model: {backend: qwen, qwen_chat_base_url: 'http://in-the-file/v1'}\n",
        &[("QWEN_CHAT_BASE_URL", "http://variable/v1"), ("TARGET_QWEN_CHAT_THINKING_MODE", "disabled")],
    );
    assert!(text.contains("http://in-the-file/v1") && !text.contains("http://variable/v1"), "{text}");
    assert!(text.contains("qwen_chat_thinking_mode = \"disabled\""), "{text}");

    let text = import_with("model: {backend: claude}\n", &[("ANTHROPIC_API_KEY", "never-to-be-written-2")]);
    assert!(
        text.contains("claude_chat_via = \"cli\"") && text.contains("api_key_env = \"ANTHROPIC_API_KEY\"")
    );
    assert!(!text.contains("never-to-be-written"), "{text}");
}
