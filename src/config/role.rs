//! Settings of one role: who answers its calls, where, with which key, and how replies are sampled. A key is never a
//! value here: only the name of a variable, a file or a command that holds it.

use serde::{Deserialize, Serialize};

use super::backends::{
    ApiChoice, AzureOpenai, Backend, Effort, MinimaxChat, QwenChat, SERVERS, ThinkingMode,
};
use super::group::group;
use super::keys::{Expect, Key, Kind, UsedBy, at_least, key, number, small};

const EVERYONE: UsedBy = UsedBy::Everyone;
const SERVED: UsedBy = UsedBy::Backends(SERVERS);

group! {
    RoleConfig in [
        TARGET_ROWS "model.target", OPTIMIZER_ROWS "model.optimizer", JUDGE_ROWS "model.judge"
    ] {
    for EVERYONE {
        backend: Backend = Backend::OpenaiChat, Kind::Choice(Backend::WORDS),
            "Who answers: a server, a coding agent, the worker planish-torch (local), a person through files (handoff), or the built-in edit search (optimizer only).";
        model: String = String::new(), Kind::Text, "Model name as the server or program knows it.";
        base_url: String = String::new(), Kind::Text,
            "Address of the server, up to and including /v1; empty: that of the dialect or of the backend.";
    }
    for SERVED {
        dialect: String = String::new(), Kind::Text,
            "How the server wants to be spoken to, a name of `planish schema dialects`; empty: by the host of base_url and the backend.";
        api: ApiChoice = ApiChoice::Unset, Kind::Choice(ApiChoice::WORDS),
            "Chat completions or the Responses API; empty: Responses for models that OpenAI serves nowhere else.";
    }
    for EVERYONE {
        api_key_env: String = String::new(), Kind::Text,
            "Name of the environment variable that holds the key; with api_key_file and api_key_command empty as well, no key is sent." changes_on_resume;
        api_key_file: String = String::new(), Kind::Path(Expect::File),
            "File that holds the key and nobody else may read (chmod 600)." changes_on_resume;
        api_key_command: Vec<String> = Vec::new(), Kind::TextList,
            "Program and arguments that print the key; run once when a host starts, 10 seconds at most." changes_on_resume;
        temperature: Option<f64> = None, number(0.0, 100.0, false),
            "Sampling temperature, 0 is greedy; not set: the server decides.";
        top_p: Option<f64> = None, number(0.0, 1.0, true),
            "Nucleus sampling mass; not set: the server decides.";
        top_k: Option<u32> = None, small(1),
            "Sample among the K most likely tokens; not set: the server decides.";
        max_tokens: u32 = 4096, small(1), "Most tokens of one reply.";
        stop: Vec<String> = Vec::new(), Kind::TextList, "A reply ends before any of these texts.";
        send_seed: bool = true, Kind::Flag, "Send a seed per call, derived from train.seed.";
        stream: bool = true, Kind::Flag, "Stream replies.";
        max_concurrency: u32 = 0, small(0), "Most calls in flight; 0: as many as the host takes." changes_on_resume;
        requests_per_minute: u32 = 0, small(0), "Most calls begun within any minute; 0: no limit." changes_on_resume;
        tokens_per_minute: u64 = 0, at_least(0),
            "Most tokens (prompt and completion) within any minute; 0: no limit." changes_on_resume;
        warm_up: Option<bool> = None, Kind::Flag,
            "Calls that share a new long system prompt wait for the first of them, so that the server's prompt cache serves the others; not set: where the server has one." changes_on_resume;
        reasoning_effort: Effort = Effort::NotSent, Kind::Choice(Effort::WORDS),
            "How long the model of this role thinks; empty: as model.reasoning_effort.";
    }
    for SERVED {
        thinking: ThinkingMode = ThinkingMode::Unset, Kind::Choice(ThinkingMode::WORDS),
            "What the server is told about thinking; empty: server_default, which tells it nothing.";
        thinking_budget: Option<u32> = None, small(1),
            "Most tokens of thinking, where the server takes such a limit; not set: not sent.";
        extra_body: toml::Table = toml::Table::new(), Kind::Table,
            "Further fields of every request, as a table; they win over planish's own, but cannot set the model, the prompt or lengths: those have keys.";
    }
    }
    with azure: AzureOpenai;
    with qwen: QwenChat;
    with minimax: MinimaxChat;
}
