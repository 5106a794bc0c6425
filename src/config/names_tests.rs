use super::load_tests::{Folder, demo};
use super::*;

#[test]
fn other_spellings_set_the_same_keys() {
    let folder = Folder::new(&[(
        "run.toml",
        "edit_budget = 6\n\
         [model]\noptimizer = \"gpt-5.5\"\nteacher_backend = \"openai_compatible\"\nstudent_backend = \"local\"\n\
         [optimizer]\nskill_update_mode = \"Rewrite\"\nlr_control_mode = \"auto\"\nlongitudinal_pair_policy = \"10_01\"\n\
         [env]\ndata_path = \"demo:city\"\nmax_completion_tokens = 99\n",
    )]);
    let loaded = folder.load(&["model.teacher.base_url=http://localhost:1/v1", "seed=3"]).unwrap();
    let config = &loaded.config;
    assert_eq!(config.model.optimizer.model, "gpt-5.5");
    assert_eq!(config.model.optimizer.backend, Backend::OpenaiCompatible);
    assert_eq!(config.model.optimizer.base_url, "http://localhost:1/v1");
    assert_eq!(config.model.target.backend, Backend::Local);
    assert_eq!(config.model.target.max_tokens, 99);
    assert_eq!((config.optimizer.learning_rate, config.train.seed), (6, 3));
    assert_eq!(serde_json::to_value(config.optimizer.skill_update_mode).unwrap(), "rewrite_from_suggestions");
    assert_eq!(serde_json::to_value(config.optimizer.lr_control_mode).unwrap(), "autonomous");
    assert_eq!(serde_json::to_value(config.optimizer.longitudinal_pair_policy).unwrap(), "changed");
    assert!(loaded.origins["optimizer.learning_rate"].to_string().ends_with("run.toml:1"));
    assert!(loaded.origins["model.optimizer.model"].to_string().ends_with("run.toml:3"));
}

#[test]
fn a_section_and_its_name_as_a_value_do_not_collide() {
    let text = "env = \"searchqa\"\nsplit_dir = \".\"\nsplit_mode = \"split_dir\"\n\
                [model.target]\nbackend = \"local\"\n[model.optimizer]\nbackend = \"edit_search\"\n";
    let loaded = Folder::new(&[("run.toml", text)]).load(&[]).unwrap();
    assert_eq!(loaded.config.env.benchmark.name, Benchmark::Searchqa);

    let text = "[env]\nname = \"searchqa\"\nsplit_dir = \".\"\nsplit_mode = \"split_dir\"\n\
                [model.student]\nbackend = \"local\"\n[model.teacher]\nbackend = \"edit_search\"\n";
    let config = Folder::new(&[("run.toml", text)]).load(&[]).unwrap().config;
    assert_eq!(config.env.benchmark.name, Benchmark::Searchqa);
    assert_eq!(config.env.split_mode, SplitMode::SplitDir, "the section survives its own name");
    assert_eq!(config.model.optimizer.backend, Backend::EditSearch);
}

#[test]
fn two_spellings_with_two_values_in_one_layer_are_one_error() {
    let folder = demo("[optimizer]\nlearning_rate = 4\n[teacher]\nlearning_rate = 5\n");
    assert_eq!(
        folder.told(&[]),
        [
            "run.toml:10: teacher.learning_rate: also set as optimizer.learning_rate (run.toml:8), to another value; \
          keep one of the two"
        ]
    );
    assert_eq!(
        demo("").told(&["seed=1", "train.seed=2"]),
        ["command line: train.seed: also set as seed (command line), to another value; keep one of the two"]
    );
    // The same value twice, or in two layers, is no conflict.
    let folder = demo("[optimizer]\nlearning_rate = 4\n[teacher]\nlearning_rate = 4\n");
    assert_eq!(folder.load(&["edit_budget=6"]).unwrap().config.optimizer.learning_rate, 6);
    let again = demo("").load(&["train.seed=1", "train.seed=2"]).unwrap();
    assert_eq!(again.config.train.seed, 2, "the later of two equal spellings wins");
}

#[test]
fn unknown_words_are_errors_everywhere() {
    for (key, expected) in [
        (
            "optimizer.skill_update_mode=typo",
            "unknown value \"typo\"; allowed: patch, rewrite_from_suggestions",
        ),
        ("optimizer.lr_control_mode=bogus", "unknown value \"bogus\"; allowed: fixed, autonomous, none"),
        ("optimizer.longitudinal_pair_policy=bogus", "allowed: mixed, changed, unchanged"),
        ("optimizer.skill_aware_appendix_source=some", "allowed: both, failure_only"),
        ("model.backend=openai", "unknown value \"openai\""),
        ("model.target.backend=codex", "unknown value \"codex\"; allowed: openai_chat, local"),
        ("env.name=seachqa", "did you mean \"searchqa\"?"),
        ("evaluation.use_gate=0", "expected a boolean"),
        ("model.codex_exec_sandbox=readonly", "did you mean \"read-only\"?"),
    ] {
        let told = demo("").told(&[key]).join("\n");
        assert!(told.contains(expected), "{key}: {told}");
    }
}

#[test]
fn keys_are_refused_with_the_variable_to_use_and_never_shown() {
    let told = demo("search_auth_env = \"Bearer hidden-4\"\n").told(&[]);
    assert!(
        told[0].starts_with("run.toml:7: env.search_auth_env: no name of an environment variable"),
        "{told:?}"
    );
    assert!(!told[0].contains("hidden"), "{told:?}");
    let folder = demo("[model]\nazure_openai_api_key = \"sk-hidden-1\"\nminimax_api_key = \"\"\n");
    let told =
        folder.told(&["model.optimizer_qwen_chat_api_key=sk-hidden-2", "model.target.api_key=sk-hidden-3"]);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[0].starts_with("run.toml:8: model.azure_openai_api_key: a key is never a value"),
        "{told:?}"
    );
    assert!(
        told[0].contains("AZURE_OPENAI_API_KEY") && told[1].contains("OPTIMIZER_QWEN_CHAT_API_KEY"),
        "{told:?}"
    );
    assert!(!told.join("\n").contains("sk-hidden"), "{told:?}");
}

#[test]
fn retired_keys_are_named_and_dropped() {
    let folder = demo("[gradient]\nmax_analyst_rounds = 3\n");
    let warnings = folder.load(&["model.codex_exec_full_auto=true", "steps_per_epoch=4"]).unwrap().warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(
        warnings[0].contains("run.toml:8: gradient.max_analyst_rounds: has no effect any more"),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("command line: model.codex_exec_full_auto"), "{warnings:?}");
    assert!(warnings[2].contains("steps_per_epoch"), "{warnings:?}");
}

/// Backends of optimizer and target of a config whose `[model]` section is `model`.
fn backends(model: &str, overrides: &[&str]) -> Result<(Loaded, Backend, Backend), String> {
    let text = format!("[env]\ndata_path = \"demo:city\"\n[model]\n{model}");
    let loaded = Folder::new(&[("run.toml", &text)]).load(overrides).map_err(|errors| errors.to_string())?;
    let (optimizer, target) = (loaded.config.model.optimizer.backend, loaded.config.model.target.backend);
    Ok((loaded, optimizer, target))
}

#[test]
fn one_label_fills_the_roles_that_name_no_backend() {
    let (loaded, optimizer, target) = backends("backend = \"Claude\"\n", &[]).unwrap();
    assert_eq!((optimizer, target), (Backend::ClaudeChat, Backend::ClaudeChat));
    assert_eq!(loaded.config.model.target.model, "claude-sonnet-4-6");
    assert!(loaded.origins["model.target.backend"].to_string().ends_with("run.toml:4"));
    assert_eq!(loaded.warnings, [""; 0]);

    let plain = "target.backend = \"local\"\n";
    let (loaded, optimizer, target) = backends(plain, &["model.backend=codex"]).unwrap();
    assert_eq!((optimizer, target), (Backend::CodexExec, Backend::Local));
    assert!(
        loaded.warnings[0].contains("has no effect on model.target.backend, which is set itself"),
        "{:?}",
        loaded.warnings
    );

    let server = "optimizer.model = \"m\"\noptimizer.base_url = \"https://server.example/v1\"\n";
    let (_, optimizer, target) = backends(&format!("backend = \"cursor\"\n{server}"), &[]).unwrap();
    assert_eq!((optimizer, target), (Backend::OpenaiChat, Backend::CursorExec));
    let told =
        backends("optimizer.backend = \"cursor_exec\"\ntarget.backend = \"local\"\n", &[]).unwrap_err();
    assert!(told.contains("cursor_exec runs tasks and answers no optimizer"), "{told}");
}

#[test]
fn a_stock_model_gives_way_to_the_backend_s_own_unless_both_were_chosen_together() {
    let model = "backend = \"qwen\"\ntarget.model = \"gpt-5.5\"\noptimizer.backend = \"edit_search\"\n\
                 worker_command = [\"w\"]\n";
    let (loaded, ..) = backends(model, &[]).unwrap();
    assert_eq!(loaded.config.model.target.model, "Qwen/Qwen3.5-4B");
    assert!(
        loaded.warnings[0].contains("model.target.model: no model of qwen_chat, which gets Qwen/Qwen3.5-4B")
    );
    let (loaded, ..) = backends(model, &["model.backend=minimax", "model.minimax_model=M9"]).unwrap();
    assert_eq!(loaded.config.model.target.model, "M9");
    // Named on the command line, and in what the run keeps of that.
    let (loaded, ..) = backends(model, &["model.target=gpt-5.5"]).unwrap();
    assert_eq!(loaded.config.model.target.model, "gpt-5.5");
    let folder = Folder::new(&[("run.toml", &loaded.config.resolved_toml().unwrap())]);
    assert_eq!(folder.load(&[]).unwrap().config, loaded.config);
    let (loaded, ..) = backends(
        "target.backend = \"local\"\ntarget.model = \"gpt-5.5\"\noptimizer.backend = \"edit_search\"\n",
        &["model.target.backend=claude_chat", "model.worker_command=[\"w\"]"],
    )
    .unwrap();
    assert_eq!(
        loaded.config.model.target.model, "claude-sonnet-4-6",
        "the model was chosen for another backend"
    );
}

#[test]
fn whole_candidates_force_their_budget_control() {
    let folder = demo("[optimizer]\nskill_update_mode = \"full_rewrite\"\nlr_control_mode = \"auto\"\n");
    let loaded = folder.load(&[]).unwrap();
    assert_eq!(serde_json::to_value(loaded.config.optimizer.lr_control_mode).unwrap(), "none");
    assert!(
        loaded.warnings[0].contains("run.toml:9: optimizer.lr_control_mode: is none whenever"),
        "{:?}",
        loaded.warnings
    );
    let quiet = demo("[optimizer]\nskill_update_mode = \"full_rewrite\"\n").load(&[]).unwrap();
    assert_eq!(quiet.warnings, [""; 0]);
    // What a run keeps says the same without a warning.
    let folder = demo("");
    std::fs::write(folder.path("run.toml"), loaded.config.resolved_toml().unwrap()).unwrap();
    assert_eq!(folder.load(&[]).unwrap().warnings, [""; 0]);
}

#[test]
fn settings_of_what_is_not_chosen_are_warned_about() {
    let loaded = demo("max_turns = 2\n")
        .load(&["model.codex_exec_path=/x", "model.azure_openai_endpoint=https://a"])
        .unwrap();
    let warnings = loaded.warnings.join("\n");
    for expected in [
        "env.max_turns: not used, since env.name is not babyvision or docvqa",
        "model.codex_exec_path: not used, since no role has the backend codex_exec",
        "model.azure_openai_endpoint: not used, since no role has the backend openai_chat or azure_openai",
    ] {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
    assert_eq!(loaded.warnings.len(), 3, "{warnings}");
}

#[test]
fn a_program_solves_a_spreadsheet_in_one_go() {
    let folder = demo("name = \"spreadsheetbench\"\nmode = \"multi\"\n");
    let overrides = ["model.target.backend=codex_exec", "model.worker_command=[\"w\"]", "env.data_path=."];
    let told = folder.told(&overrides);
    assert_eq!(
        told,
        [
            "run.toml:8: env.mode: the target codex_exec solves a task in one go; \
          set env.mode = \"single\", or another model.target.backend",
            "run.toml:7: env.name: the benchmark spreadsheetbench is not part of this version; leave env.name out and \
          describe the task with the other keys of [env]"
        ]
    );
}
