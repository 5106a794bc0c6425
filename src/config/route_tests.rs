use std::collections::BTreeMap;

use super::load_tests::Folder;
use super::*;
use crate::domain::Role;

/// A configuration whose `[model]` section is `model`, with a judge that is asked.
fn load(model: &str) -> Result<Config, String> {
    let text = format!("[env]\ndata_path = \"demo:city\"\nscorer = \"judge\"\n[model]\n{model}");
    let folder = Folder::new(&[("run.toml", &text)]);
    folder.load(&[]).map(|loaded| loaded.config).map_err(|errors| errors.to_string())
}

/// Settings with which every backend is complete.
fn role(role: &str, backend: &str) -> String {
    let server = match backend {
        "openai_chat" | "openai_compatible" => "base_url = \"https://server.example/v1\"\n",
        "azure_openai" => "azure_openai_endpoint = \"https://res.openai.azure.com\"\n",
        _ => "",
    };
    format!("[model.{role}]\nbackend = \"{backend}\"\nmodel = \"m\"\n{server}")
}

fn roles(target: &str, optimizer: &str, judge: &str) -> String {
    let worker = "worker_command = [\"w\"]\n";
    format!("{worker}{}{}{}", role("target", target), role("optimizer", optimizer), role("judge", judge))
}

/// What a role that cannot have a backend is told to use instead; `None`: it can have it.
fn remedy(of: Role, backend: Backend) -> Option<&'static str> {
    let answers = matches!(of, Role::Optimizer | Role::Judge);
    match backend {
        Backend::EditSearch if of != Role::Optimizer => Some("use it as model.optimizer.backend"),
        Backend::ClaudeCodeExec if answers => Some("use claude_chat here"),
        Backend::CopilotExec if answers => Some("use copilot_chat here"),
        Backend::CursorExec | Backend::PiExec | Backend::OpencodeExec if answers => {
            Some("use openai_chat or claude_chat here")
        }
        Backend::GeminiExec if answers => Some("use openai_chat with dialect = \"gemini\" here"),
        _ => None,
    }
}

#[test]
fn every_backend_has_its_roles_and_wrong_ones_name_the_right_one() {
    for backend in Backend::WORDS.iter().filter_map(|word| Backend::from_word(word)) {
        let word = backend.word();
        for (of, model) in [
            (Role::Target, roles(word, "openai_chat", "openai_chat")),
            (Role::Optimizer, roles("openai_chat", word, "openai_chat")),
            (Role::Judge, roles("openai_chat", "openai_chat", word)),
        ] {
            let key = format!("model.{}.backend", of.name());
            match (load(&model), remedy(of, backend)) {
                (Ok(config), None) => assert!(config.model.route(of).is_ok(), "{key} = {word}"),
                (Err(told), Some(remedy)) => {
                    assert!(told.contains(&key) && told.contains(remedy), "{key} = {word}: {told}");
                }
                (Ok(_), Some(_)) => panic!("{key} = {word} was taken"),
                (Err(told), None) => panic!("{key} = {word} was refused: {told}"),
            }
        }
    }
}

#[test]
fn every_label_fills_roles_that_can_have_it() {
    // The label with what each role becomes, as SkillOpt publishes its combinations.
    let expected = BTreeMap::from([
        ("azure_openai", ("openai_chat", "openai_chat")),
        ("openai_compatible", ("openai_compatible", "openai_compatible")),
        ("claude_chat", ("claude_chat", "claude_chat")),
        ("qwen_chat", ("openai_chat", "qwen_chat")),
        ("minimax_chat", ("openai_chat", "minimax_chat")),
        ("copilot_chat", ("copilot_chat", "copilot_chat")),
        ("codex", ("codex_exec", "codex_exec")),
        ("claude_code_exec", ("openai_chat", "claude_code_exec")),
        ("cursor_exec", ("openai_chat", "cursor_exec")),
        ("copilot_exec", ("openai_chat", "copilot_exec")),
        ("pi_exec", ("openai_chat", "pi_exec")),
        ("opencode_exec", ("openai_chat", "opencode_exec")),
        ("gemini_exec", ("openai_chat", "gemini_exec")),
        ("handoff", ("handoff", "handoff")),
    ]);
    for label in BackendLabel::WORDS.iter().filter(|label| !label.is_empty()) {
        let server = "model = \"m\"\nbase_url = \"https://server.example/v1\"\n";
        let model = format!(
            "backend = \"{label}\"\n[model.optimizer]\n{server}[model.target]\n{server}{}",
            role("judge", "openai_chat")
        );
        let config = load(&model).unwrap_or_else(|told| panic!("{label}: {told}"));
        let found = (config.model.optimizer.backend.word(), config.model.target.backend.word());
        assert_eq!(Some(&found), expected.get(label), "{label}");
    }
}

fn route(model: &str) -> Result<Route, String> {
    load(&format!("{model}{}{}", role("optimizer", "openai_chat"), role("judge", "openai_chat")))
        .map(|config| config.model.route(Role::Target).unwrap())
}

fn server(dialect: DialectChoice, base_url: &str, model: &str) -> Route {
    Route::Server(Server { dialect, base_url: base_url.into(), model: model.into(), api: ApiChoice::Unset })
}

#[test]
fn addresses_come_from_the_role_the_backend_or_the_dialect() {
    let by_host = |otherwise| DialectChoice::OfHost { otherwise };
    for (model, expected) in [
        (
            "target = { backend = \"openai_chat\", model = \"m\", base_url = \"https://s.example/v1/\" }\n",
            server(by_host("openai_compatible"), "https://s.example/v1", "m"),
        ),
        (
            "target = { backend = \"openai_chat\", model = \"m\", dialect = \"openrouter\" }\n",
            server(DialectChoice::Named("openrouter".into()), "", "m"),
        ),
        ("target.backend = \"claude_chat\"\n", server(by_host("anthropic"), "", "claude-sonnet-4-6")),
        (
            "target.backend = \"qwen_chat\"\n",
            server(by_host("vllm"), "http://localhost:8000/v1", "Qwen/Qwen3.5-4B"),
        ),
        (
            "qwen_chat_base_url = \"http://gpu/v1\"\ntarget.backend = \"qwen_chat\"\n",
            server(by_host("vllm"), "http://gpu/v1", "Qwen/Qwen3.5-4B"),
        ),
        (
            "minimax_region = \"cn_zh\"\ntarget = { backend = \"minimax_chat\", minimax_model = \"M9\" }\n",
            server(by_host("minimax"), "https://api.minimaxi.com/v1", "M9"),
        ),
        (
            "target = { backend = \"minimax_chat\" }\n",
            server(by_host("minimax"), "https://api.minimax.io/v1", "MiniMax-M3"),
        ),
        (
            "azure_openai_endpoint = \"https://gw.example/v1\"\nazure_openai_auth_mode = \"compat\"\n\
             target = { backend = \"openai_chat\", model = \"m\" }\n",
            server(by_host("openai_compatible"), "https://gw.example/v1", "m"),
        ),
    ] {
        assert_eq!(route(model), Ok(expected), "{model}");
    }
    let cli = "claude_chat_via = \"cli\"\ntarget.backend = \"claude_chat\"\n";
    assert!(matches!(
        route(cli),
        Ok(Route::Program(Program { agent: Agent::ClaudeCode, as_chat: true, .. }))
    ));
    for (model, expected) in [
        (
            "target = { backend = \"openai_chat\", model = \"m\" }\n",
            "base_url: not set, but the backend openai_chat",
        ),
        ("target = { base_url = \"https://s.example/v1\" }\n", "model.target.model: not set"),
        (
            "target = { model = \"m\", dialect = \"gemini\", api = \"chat\" }\n",
            "model.target.api: set together with dialect",
        ),
        (
            "target = { backend = \"azure_openai\", model = \"m\" }\n",
            "model.target.azure_openai_endpoint: not set",
        ),
        (
            "azure_openai_endpoint = \"https://r.example\"\n\
             target = { backend = \"azure_openai\", model = \"m\", base_url = \"https://s.example\" }\n",
            "model.target.base_url: set together with azure_openai_endpoint",
        ),
        (
            "target = { model = \"m\", base_url = \"https://s.example/v1\", \
             azure_openai_endpoint = \"https://r.example\" }\n",
            "model.target.base_url: set together with azure_openai_endpoint of this role",
        ),
        (
            "target = { model = \"m\", dialect = \"openai\", azure_openai_endpoint = \"https://r.example\" }\n",
            "model.target.dialect: set together with azure_openai_endpoint of this role",
        ),
        (
            "target = { backend = \"openai_chat\", model = \"m\", base_url = \"https://me:pw@s.example/v1\" }\n",
            "model.target.base_url: holds a user name or password",
        ),
        (
            "target = { model = \"m\", base_url = \"https://s.example\", api_key_env = \"A\", api_key_command = [\"b\"] }\n",
            "model.target.api_key_command: set together with api_key_env",
        ),
    ] {
        let told = route(model).unwrap_err();
        assert!(told.contains(expected), "{model}: {told}");
        assert!(!told.contains("me:pw"), "{told}");
    }
}

fn azure(settings: &str, own: &str) -> Azure {
    let model = format!(
        "azure_openai_endpoint = \"https://res.openai.azure.com/\"\n{settings}\
         target = {{ backend = \"openai_chat\", {own} }}\n"
    );
    match route(&model) {
        Ok(Route::Azure(azure)) => azure,
        other => panic!("{model}: {other:?}"),
    }
}

#[test]
fn azure_has_versions_and_ways_to_log_in() {
    let classic = || "https://cognitiveservices.azure.com/.default".to_owned();
    let plain = azure("", "model = \"gpt-4o\"");
    assert_eq!(plain.endpoint, "https://res.openai.azure.com");
    assert_eq!((plain.deployment.as_str(), plain.responses), ("gpt-4o", false));
    assert_eq!(plain.version, AzureVersion::Dated("2024-12-01-preview".into()));
    assert_eq!(plain.auth, AzureLogin::Cli { scope: classic() });
    let codex = azure("", "model = \"gpt-5-codex\", api_key_env = \"K\"");
    assert!(codex.responses && codex.auth == AzureLogin::Key);
    assert_eq!(codex.version, AzureVersion::Dated("2025-04-01-preview".into()));
    assert!(!azure("", "model = \"gpt-5-codex\", api = \"chat\"").responses);
    let v1 = azure("azure_openai_api_version = \"v1\"\n", "model = \"m\", api = \"responses\"");
    assert!(v1.responses && v1.version == AzureVersion::V1);
    let own = "model = \"m\", azure_openai_endpoint = \"https://other.openai.azure.com/openai/v1\", \
               azure_openai_auth_mode = \"aad\", azure_openai_managed_identity_client_id = \"id\"";
    let own = azure("azure_openai_ad_scope = \"https://ai.azure.com/.default\"\n", own);
    assert_eq!((own.endpoint.as_str(), own.version), ("https://other.openai.azure.com", AzureVersion::V1));
    let scope = "https://ai.azure.com/.default".to_owned();
    assert_eq!(own.auth, AzureLogin::ManagedIdentity { scope, client_id: "id".into() });
    let told = route(
        "azure_openai_endpoint = \"https://r.example\"\n\
         target = { model = \"m\", azure_openai_auth_mode = \"key\" }\n",
    );
    assert!(
        told.unwrap_err()
            .contains("model.target.api_key_env: not set, but azure_openai_auth_mode is api_key")
    );
}

#[test]
fn effort_thinking_and_sampling_are_a_role_s_own_or_its_backend_s() {
    let config = load(&format!(
        "reasoning_effort = \"low\"\nqwen_chat_temperature = 0.3\nqwen_chat_max_tokens = 900\n\
         qwen_chat_enable_thinking = true\n[model.target]\nbackend = \"qwen_chat\"\nreasoning_effort = \"high\"\n\
         [model.optimizer]\nbackend = \"minimax_chat\"\n{}",
        role("judge", "openai_chat")
    ))
    .unwrap();
    let model = &config.model;
    assert_eq!(Role::ALL.map(|role| model.effort(role)), [Effort::High, Effort::Low, Effort::Low]);
    let thinking = [ThinkingMode::Enabled, ThinkingMode::Disabled, ThinkingMode::ServerDefault];
    assert_eq!(Role::ALL.map(|role| model.thinking(role)), thinking);
    assert_eq!(Role::ALL.map(|role| model.temperature(role)), [Some(0.3), Some(0.7), None]);
    assert_eq!(Role::ALL.map(|role| model.token_ceiling(role)), [Some(900), None, None]);
}

#[test]
fn a_judge_that_is_asked_is_configured_and_one_that_is_not_is_told() {
    let both = format!("{}{}", role("target", "openai_chat"), role("optimizer", "openai_chat"));
    let told = load(&both).unwrap_err();
    assert!(
        told.contains("env.scorer: the judge that it asks is not configured; write [model.judge]"),
        "{told}"
    );
    let text = format!("[env]\ndata_path = \"demo:city\"\n{both}{}", role("judge", "edit_search"));
    let loaded = Folder::new(&[("run.toml", &text)]).load(&[]).unwrap();
    assert!(loaded.warnings[0].contains("model.judge.backend: not used, since env.scorer is not judge"));
    assert!(loaded.warnings.len() == 2, "{:?}", loaded.warnings);
}

#[test]
fn further_fields_of_requests_are_tables() {
    let extra = "extra_body = { provider = { order = [\"a\"] }, seed = 1.5 }\n";
    let config = load(&format!("{}{extra}", roles("openai_chat", "openai_chat", "openai_chat"))).unwrap();
    assert_eq!(config.model.judge.extra_body["provider"]["order"][0].as_str(), Some("a"));
    let folder = Folder::new(&[("run.toml", &config.resolved_toml().unwrap())]);
    assert_eq!(folder.load(&[]).unwrap().config, config, "what a run keeps reads back");
    let loaded = folder.load(&["model.target.extra_body={\"a\": {\"b\": [1]}}"]).unwrap();
    assert_eq!(loaded.config.model.target.extra_body["a"]["b"][0].as_integer(), Some(1));
    let told = folder.told(&["model.target.extra_body=5"]);
    assert!(told[0].contains("expected a table, found integer; write a table like"), "{told:?}");
    for (field, remedy) in [
        ("max_tokens = 9", "set model.target.max_tokens instead"),
        ("n = 2", "leave it out"),
        ("stream = false", "set model.target.stream instead"),
        ("model = \"other\"", "set model.target.model instead"),
        ("messages = []", "env.system_template"),
    ] {
        let told = folder.told(&[&format!("model.target.extra_body={{ min_p = 0.5, {field} }}")]);
        let name = field.split(' ').next().unwrap();
        assert!(told[0].contains("model.target.extra_body: sets `") && told[0].contains(name), "{told:?}");
        assert!(told[0].contains(remedy), "{told:?}");
    }
    let text = format!("{}extra_body = {{ n = 2 }}\n", roles("openai_chat", "openai_chat", "openai_chat"));
    let told = load(&text).unwrap_err();
    assert!(told.contains("run.toml line ") || told.contains("run.toml:"), "{told}");
}
