//! Which backend and model each role may have, and which it has under one label for both, as SkillOpt decides it. Pure;
//! must not read layers.

use super::aliases::canonical_word;
use super::backends::{Backend, BackendLabel};
use crate::domain::Role;

/// SkillOpt's reading of `model.backend`: its own aliases, everything unknown as it is written.
pub fn label(text: Option<&str>) -> String {
    let plain = text.unwrap_or_default().trim().to_lowercase().replace('-', "_");
    match plain.as_str() {
        "" => BackendLabel::AzureOpenai.word().to_owned(),
        // To SkillOpt this is the program, not the server; in planish's own files it is an error.
        "openai" => BackendLabel::Codex.word().to_owned(),
        "codex_exec" => plain,
        other => {
            canonical_word("model.backend", BackendLabel::WORDS, other).map_or(plain.clone(), str::to_owned)
        }
    }
}

/// Backends of optimizer and target, in SkillOpt's words: the label fills a role that names none, or `openai_chat`.
pub fn role_backends(label_text: &str, optimizer: Option<&str>, target: Option<&str>) -> [String; 2] {
    const PLAIN: &str = "openai_chat";
    let label = label(Some(label_text));
    let [for_optimizer, for_target] = match label.as_str() {
        "codex" | "codex_exec" => ["codex_exec"; 2],
        "claude_chat" | "copilot_chat" | "openai_compatible" | "handoff" => [label.as_str(); 2],
        "claude_code_exec" | "cursor_exec" | "copilot_exec" | "pi_exec" | "opencode_exec" | "gemini_exec"
        | "qwen_chat" | "minimax_chat" => [PLAIN, label.as_str()],
        _ => [PLAIN; 2],
    };
    let choose = |named: Option<&str>, filled: &str| {
        named.filter(|named| !named.is_empty() && *named != PLAIN).unwrap_or(filled).to_owned()
    };
    [choose(optimizer, for_optimizer), choose(target, for_target)]
}

/// Why a role cannot have a backend, and what it can have instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    pub problem: String,
    pub remedy: &'static str,
}

/// # Errors
/// The backend does not do what the role is for.
pub fn check_place(role: Role, backend: Backend) -> Result<(), Misplaced> {
    let instead = match (role, backend) {
        (Role::Target, Backend::EditSearch) => {
            let problem = "the built-in edit search cannot run tasks".to_owned();
            let remedy = "use it as model.optimizer.backend; for the target use openai_chat or local";
            return Err(Misplaced { problem, remedy });
        }
        (Role::Judge, Backend::EditSearch) => {
            let problem = "the built-in edit search cannot judge answers".to_owned();
            let remedy = "use it as model.optimizer.backend; for the judge use openai_chat or local";
            return Err(Misplaced { problem, remedy });
        }
        (Role::Target, _) => return Ok(()),
        (Role::Optimizer | Role::Judge, Backend::ClaudeCodeExec) => {
            "use claude_chat here, or claude_code_exec as model.target.backend"
        }
        (Role::Optimizer | Role::Judge, Backend::CopilotExec) => {
            "use copilot_chat here, or copilot_exec as model.target.backend"
        }
        (Role::Optimizer | Role::Judge, Backend::CursorExec) => {
            "use openai_chat or claude_chat here, or cursor_exec as model.target.backend"
        }
        (Role::Optimizer | Role::Judge, Backend::PiExec) => {
            "use openai_chat or claude_chat here, or pi_exec as model.target.backend"
        }
        (Role::Optimizer | Role::Judge, Backend::OpencodeExec) => {
            "use openai_chat or claude_chat here, or opencode_exec as model.target.backend"
        }
        (Role::Optimizer | Role::Judge, Backend::GeminiExec) => {
            "use openai_chat with dialect = \"gemini\" here, or gemini_exec as model.target.backend"
        }
        (
            Role::Optimizer | Role::Judge,
            Backend::OpenaiChat
            | Backend::OpenaiCompatible
            | Backend::AzureOpenai
            | Backend::Local
            | Backend::Handoff
            | Backend::ClaudeChat
            | Backend::QwenChat
            | Backend::MinimaxChat
            | Backend::CopilotChat
            | Backend::CodexExec,
        )
        | (Role::Optimizer, Backend::EditSearch) => return Ok(()),
    };
    let problem = format!("{} runs tasks and answers no {}", backend.word(), role.name());
    Err(Misplaced { problem, remedy: instead })
}

/// The model of a backend that serves no other vendor's; `None`: any name may be right.
pub fn own_model(backend: Backend) -> Option<&'static str> {
    match backend {
        Backend::ClaudeChat | Backend::ClaudeCodeExec => Some("claude-sonnet-4-6"),
        Backend::QwenChat => Some("Qwen/Qwen3.5-4B"),
        Backend::MinimaxChat => Some("MiniMax-M3"),
        Backend::CursorExec => Some("composer-2.5"),
        // Its own choice.
        Backend::CopilotExec => Some(""),
        Backend::OpenaiChat
        | Backend::OpenaiCompatible
        | Backend::AzureOpenai
        | Backend::Local
        | Backend::EditSearch
        | Backend::Handoff
        | Backend::CopilotChat
        | Backend::CodexExec
        | Backend::PiExec
        | Backend::OpencodeExec
        | Backend::GeminiExec => None,
    }
}

/// SkillOpt's model under a label when a configuration names none.
pub fn default_model(label_text: &str) -> &'static str {
    let label = label(Some(label_text));
    let own = || Backend::from_word(&role_backends(&label, None, None)[1]).and_then(own_model);
    match label.as_str() {
        "openai_compatible" => "gpt-4o-mini",
        _ => own().filter(|model| !model.is_empty()).unwrap_or("gpt-4o"),
    }
}

/// Models that another vendor's backend cannot have: SkillOpt's configurations name them whatever the backend is.
pub fn is_stock_model(model: &str) -> bool {
    matches!(model, "gpt-5.4" | "gpt-5.5")
}

/// The vendor serves this model only through its Responses API.
pub fn needs_responses_api(model: &str) -> bool {
    let model = model.to_lowercase();
    let parts: Vec<&str> = model.split('-').collect();
    match parts.as_slice() {
        ["codex", "mini", ..] => true,
        ["gpt", rest @ ..] => rest.contains(&"codex") || rest.last() == Some(&"pro"),
        _ => false,
    }
}
