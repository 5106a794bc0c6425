//! What an agent is asked to do, and the words it is asked with. Must not know which agent it is.

use serde_json::Value;

use crate::domain::Workspace as Files;

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Goes before the task, without the skill document.
    pub system: Option<String>,
    pub task: String,
    pub work: Work,
}

/// How the job is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// In a folder that holds the skill and the task, with the agent's tools.
    Agent(Files),
    /// As a plain model: one question, no tools, an empty folder.
    Chat {
        /// The JSON schema of the reply, for the programs that can be told one.
        schema: Option<Value>,
        /// Bound of the reply, for the programs that can be told one.
        max_tokens: Option<u32>,
    },
}

impl Work {
    pub fn max_tokens(&self) -> Option<u32> {
        match self {
            Self::Agent(_) => None,
            Self::Chat { max_tokens, .. } => *max_tokens,
        }
    }
}

impl Job {
    /// What a model reads as its task.
    pub fn text(&self) -> String {
        match &self.system {
            Some(system) if !system.trim().is_empty() => format!("{system}\n\n{}", self.task),
            _ => self.task.clone(),
        }
    }

    /// What goes to the program's input; `skill_file` is where the agent finds its skill.
    pub fn prompt(&self, skill_file: &str) -> String {
        let Work::Agent(files) = &self.work else { return self.text() };
        let mut read = Vec::new();
        if !files.skill.trim().is_empty() {
            read.push(format!("- `{skill_file}`: how such tasks are solved. Follow it."));
        }
        read.push("- `task.md`: the task.".to_owned());
        if !files.attachments.is_empty() {
            read.push("- `ATTACHMENTS.md`: the files that belong to the task.".to_owned());
        }
        format!(
            "Solve the one task of this folder. Before anything else, open and read in full:\n\n{}\n\nOpen them as \
             files; do not call a skill tool for it. Nobody can answer questions: decide yourself, and stay in this \
             folder. Your last message must hold your answer as <answer>YOUR ANSWER</answer>.\n",
            read.join("\n")
        )
    }
}
