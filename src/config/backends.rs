//! Names of backends, and the settings that belong to one of them: the programs of coding agents, Azure OpenAI, Qwen and
//! MiniMax servers. Names are SkillOpt's where SkillOpt has them.

use serde::{Deserialize, Serialize};

use super::group::{group, words};
use super::keys::{Key, Kind, UsedBy, key, number, small};

words! {
    /// Which program answers a role's calls.
    Backend {
        OpenaiChat = "openai_chat",
        Local = "local",
        EditSearch = "edit_search",
        OpenaiCompatible = "openai_compatible",
        AzureOpenai = "azure_openai",
        Handoff = "handoff",
        ClaudeChat = "claude_chat",
        QwenChat = "qwen_chat",
        MinimaxChat = "minimax_chat",
        CopilotChat = "copilot_chat",
        CodexExec = "codex_exec",
        ClaudeCodeExec = "claude_code_exec",
        CursorExec = "cursor_exec",
        CopilotExec = "copilot_exec",
        PiExec = "pi_exec",
        OpencodeExec = "opencode_exec",
        GeminiExec = "gemini_exec",
    }
}

/// Backends that are servers, or may be.
pub const SERVERS: &[Backend] = &[
    Backend::OpenaiChat,
    Backend::OpenaiCompatible,
    Backend::AzureOpenai,
    Backend::ClaudeChat,
    Backend::QwenChat,
    Backend::MinimaxChat,
];

words! {
    /// One word for both roles, SkillOpt's way: it fills the roles that name no backend themselves.
    BackendLabel {
        None = "",
        AzureOpenai = "azure_openai",
        OpenaiCompatible = "openai_compatible",
        ClaudeChat = "claude_chat",
        QwenChat = "qwen_chat",
        MinimaxChat = "minimax_chat",
        CopilotChat = "copilot_chat",
        Codex = "codex",
        ClaudeCodeExec = "claude_code_exec",
        CursorExec = "cursor_exec",
        CopilotExec = "copilot_exec",
        PiExec = "pi_exec",
        OpencodeExec = "opencode_exec",
        GeminiExec = "gemini_exec",
        Handoff = "handoff",
    }
}

words! {
    /// Which of OpenAI's two wire formats; empty: by the model.
    ApiChoice { Unset = "", Chat = "chat", Responses = "responses", }
}

words! {
    /// Where claude_chat gets its replies.
    ClaudeVia { Api = "api", Cli = "cli", }
}

words! {
    /// How long a model thinks; empty: not sent.
    Effort {
        NotSent = "",
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
        Max = "max",
    }
}

words! {
    /// What Codex may touch; empty: workspace-write.
    CodexSandbox {
        Unset = "",
        ReadOnly = "read-only",
        WorkspaceWrite = "workspace-write",
        DangerFullAccess = "danger-full-access",
    }
}

words! {
    /// When Codex asks; empty: never.
    CodexApproval {
        Unset = "",
        Untrusted = "untrusted",
        OnFailure = "on-failure",
        OnRequest = "on-request",
        Never = "never",
    }
}

words! {
    /// Whether a program is driven through its SDK.
    SdkUse { Auto = "auto", Always = "true", Never = "false", }
}

words! {
    /// Whether Cursor runs in its sandbox; empty: enabled.
    CursorSandbox { Unset = "", Enabled = "enabled", Disabled = "disabled", }
}

words! {
    /// How a role logs in to Azure; empty: with its key if it names one, else azure_cli.
    AzureAuth {
        Unset = "",
        ApiKey = "api_key",
        AzureCli = "azure_cli",
        ManagedIdentity = "managed_identity",
        OpenaiCompatible = "openai_compatible",
    }
}

words! {
    /// What is said to a server about thinking; empty: server_default.
    ThinkingMode { Unset = "", ServerDefault = "server_default", Enabled = "enabled", Disabled = "disabled", }
}

words! {
    /// Which MiniMax service; empty: global_en.
    MinimaxRegion { Unset = "", GlobalEn = "global_en", CnZh = "cn_zh", }
}

const EFFORT: UsedBy = UsedBy::Backends(&[
    Backend::OpenaiChat,
    Backend::OpenaiCompatible,
    Backend::AzureOpenai,
    Backend::ClaudeChat,
    Backend::QwenChat,
    Backend::MinimaxChat,
    Backend::CopilotChat,
    Backend::CodexExec,
]);
const AZURE: UsedBy = UsedBy::Backends(&[Backend::OpenaiChat, Backend::AzureOpenai]);
const NOT_YET: UsedBy = UsedBy::NotYet;
/// Those that work on the files of a task.
const AGENTS: UsedBy = UsedBy::Backends(&[
    Backend::CodexExec,
    Backend::ClaudeCodeExec,
    Backend::CursorExec,
    Backend::CopilotExec,
    Backend::PiExec,
    Backend::OpencodeExec,
    Backend::GeminiExec,
]);
const PI: UsedBy = UsedBy::Backends(&[Backend::PiExec]);
const OPENCODE: UsedBy = UsedBy::Backends(&[Backend::OpencodeExec]);
const GEMINI: UsedBy = UsedBy::Backends(&[Backend::GeminiExec]);
const CODEX: UsedBy = UsedBy::Backends(&[Backend::CodexExec]);
const CLAUDE_CHAT: UsedBy = UsedBy::Backends(&[Backend::ClaudeChat]);
const CLAUDE_CODE: UsedBy = UsedBy::Backends(&[Backend::ClaudeChat, Backend::ClaudeCodeExec]);
const CURSOR: UsedBy = UsedBy::Backends(&[Backend::CursorExec]);
const COPILOT: UsedBy = UsedBy::Backends(&[Backend::CopilotExec, Backend::CopilotChat]);
const QWEN: UsedBy = UsedBy::Backends(&[Backend::QwenChat]);
const MINIMAX: UsedBy = UsedBy::Backends(&[Backend::MinimaxChat]);

group! {
    Codex in [CODEX_ROWS "model"] {
    for CODEX {
        codex_exec_path: String = String::new(), Kind::Text, "Codex program; empty: codex.";
        codex_exec_sandbox: CodexSandbox = CodexSandbox::Unset, Kind::Choice(CodexSandbox::WORDS),
            "What Codex may touch; empty: workspace-write.";
        codex_exec_reasoning_effort: Effort = Effort::NotSent, Kind::Choice(Effort::WORDS),
            "How long Codex thinks; empty: as reasoning_effort.";
        codex_exec_network_access: Option<bool> = None, Kind::Flag, "Codex may use the network; not set: no.";
        codex_exec_web_search: Option<bool> = None, Kind::Flag, "Codex may search the web; not set: no.";
        codex_exec_approval_policy: CodexApproval = CodexApproval::Unset, Kind::Choice(CodexApproval::WORDS),
            "When Codex asks before it acts; empty: never.";
    }
    for NOT_YET {
        codex_exec_profile: String = String::new(), Kind::Text, "Codex configuration profile.";
        codex_exec_use_sdk: SdkUse = SdkUse::Auto, Kind::Choice(SdkUse::WORDS), "Drive Codex through its SDK.";
    }
    for AGENTS {
        codex_trace_to_optimizer: bool = true, Kind::Flag,
            "Show the optimizer what an agent did on its way to an answer.";
    }
    }
}

group! {
    ClaudeCode in [CLAUDE_CODE_ROWS "model"] {
    for CLAUDE_CHAT {
        claude_chat_via: ClaudeVia = ClaudeVia::Api, Kind::Choice(ClaudeVia::WORDS),
            "Whether claude_chat calls the vendor's server or the Claude Code program.";
    }
    for CLAUDE_CODE {
        claude_code_exec_path: String = "claude".into(), Kind::Text, "Claude Code program.";
        claude_code_exec_effort: Effort = Effort::Medium, Kind::Choice(Effort::WORDS),
            "How long Claude Code thinks.";
        claude_code_exec_max_thinking_tokens: u32 = 16384, small(0), "Most thinking tokens of Claude Code; 0: its own choice.";
    }
    for NOT_YET {
        claude_code_exec_profile: String = String::new(), Kind::Text, "Claude Code profile.";
        claude_code_exec_use_sdk: SdkUse = SdkUse::Auto, Kind::Choice(SdkUse::WORDS),
            "Drive Claude Code through its SDK.";
    }
    }
}

group! {
    Cursor in [CURSOR_ROWS "model"] {
    for CURSOR {
        cursor_exec_path: String = String::new(), Kind::Text, "Cursor program; empty: cursor-agent.";
        cursor_exec_sandbox: CursorSandbox = CursorSandbox::Unset, Kind::Choice(CursorSandbox::WORDS),
            "Cursor's own sandbox; empty: enabled.";
    }
    }
}

group! {
    Agents in [AGENT_ROWS "model"] {
    for PI {
        pi_exec_path: String = String::new(), Kind::Text, "Pi program; empty: pi.";
    }
    for OPENCODE {
        opencode_exec_path: String = String::new(), Kind::Text, "OpenCode program; empty: opencode.";
    }
    for GEMINI {
        gemini_exec_path: String = String::new(), Kind::Text, "Gemini program; empty: gemini.";
    }
    }
}

group! {
    Copilot in [COPILOT_ROWS "model"] {
    for COPILOT {
        copilot_exec_path: String = String::new(), Kind::Text, "Copilot program; empty: copilot.";
        copilot_exec_home: String = String::new(), Kind::Text, "Copilot's home folder; empty: its own.";
        copilot_exec_allow_all_tools: Option<bool> = None, Kind::Flag, "Copilot may use every tool; not set: no.";
        copilot_chat_optimizer_model: String = String::new(), Kind::Text, "Model of an optimizer behind Copilot.";
        copilot_chat_target_model: String = String::new(), Kind::Text, "Model of a target behind Copilot.";
        copilot_chat_timeout: Option<u32> = None, small(1), "Seconds of one Copilot call; not set: 600.";
    }
    }
}

group! {
    /// For all roles under `model`, for one role (which wins) in its table.
    AzureOpenai in [
        AZURE_ROWS "model", TARGET_AZURE_ROWS "model.target", OPTIMIZER_AZURE_ROWS "model.optimizer",
        JUDGE_AZURE_ROWS "model.judge"
    ] {
    for AZURE {
        azure_openai_endpoint: String = String::new(), Kind::Text, "Azure resource, like https://NAME.openai.azure.com.";
        azure_openai_api_version: String = String::new(), Kind::Text, "Dated API version, or v1; empty: 2024-12-01-preview, for the Responses API 2025-04-01-preview.";
        azure_openai_auth_mode: AzureAuth = AzureAuth::Unset, Kind::Choice(AzureAuth::WORDS),
            "How to log in to Azure; empty: with the role's key if it names one, else azure_cli.";
        azure_openai_ad_scope: String = String::new(), Kind::Text,
            "Scope of the login; empty: the cognitive services scope.";
        azure_openai_managed_identity_client_id: String = String::new(), Kind::Text,
            "Client id of a managed identity; empty: the machine's own.";
    }
    }
}

group! {
    /// For all roles under `model`, for one role (which wins) in its table.
    QwenChat in [
        QWEN_ROWS "model", TARGET_QWEN_ROWS "model.target", OPTIMIZER_QWEN_ROWS "model.optimizer",
        JUDGE_QWEN_ROWS "model.judge"
    ] {
    for QWEN {
        qwen_chat_base_url: String = String::new(), Kind::Text, "Qwen server; empty: http://localhost:8000/v1.";
        qwen_chat_temperature: Option<f64> = None, number(0.0, 100.0, false), "Sampling temperature of a Qwen server.";
    }
    for NOT_YET {
        qwen_chat_timeout_seconds: Option<f64> = None, number(0.0, 86_400.0, true),
            "Seconds of one Qwen call; total_timeout_s limits those of all servers.";
    }
    for QWEN {
        qwen_chat_max_tokens: Option<u32> = None, small(1), "Most tokens of any reply; not set: as max_tokens.";
        qwen_chat_enable_thinking: Option<bool> = None, Kind::Flag, "Thinking as yes or no; qwen_chat_thinking_mode wins.";
        qwen_chat_thinking_mode: ThinkingMode = ThinkingMode::Unset, Kind::Choice(ThinkingMode::WORDS),
            "What a Qwen server is told about thinking; empty: server_default.";
    }
    }
}

group! {
    /// For all roles under `model`, for one role (which wins) in its table.
    MinimaxChat in [
        MINIMAX_ROWS "model", TARGET_MINIMAX_ROWS "model.target", OPTIMIZER_MINIMAX_ROWS "model.optimizer",
        JUDGE_MINIMAX_ROWS "model.judge"
    ] {
    for MINIMAX {
        minimax_region: MinimaxRegion = MinimaxRegion::Unset, Kind::Choice(MinimaxRegion::WORDS),
            "MiniMax service; empty: global_en.";
        minimax_base_url: String = String::new(), Kind::Text, "MiniMax server; empty: that of the region.";
        minimax_model: String = String::new(), Kind::Text, "MiniMax model; empty: MiniMax-M3.";
        minimax_temperature: Option<f64> = None, number(0.0, 100.0, false), "Sampling temperature; not set: 0.7.";
        minimax_max_tokens: Option<u32> = None, small(1), "Most tokens of any reply; not set: as max_tokens.";
        minimax_enable_thinking: Option<bool> = None, Kind::Flag, "Adaptive thinking; not set: off.";
    }
    }
}

group! {
    Reasoning in [REASONING_ROWS "model"] {
    for EFFORT {
        reasoning_effort: Effort = Effort::NotSent, Kind::Choice(Effort::WORDS),
            "How long the models of all roles think; empty: not sent.";
        rewrite_reasoning_effort: Effort = Effort::NotSent, Kind::Choice(Effort::WORDS),
            "How long the optimizer thinks when it rewrites the skill; empty: as reasoning_effort.";
    }
    }
}
