//! What an agent is asked to do, and the words it is asked with. Must not know which agent it is.

use serde_json::Value;

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
    Agent { skill: Option<String>, attachments: Vec<Attachment> },
    /// As a plain model: one question, no tools, an empty folder. A reply of this JSON schema where there is one and the
    /// program can be told.
    Chat { schema: Option<Value> },
}

/// A file that belongs to the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Untrusted.
    pub name: String,
    pub content: Vec<u8>,
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
        let Work::Agent { skill, attachments } = &self.work else { return self.text() };
        let mut files = Vec::new();
        if skill.is_some() {
            files.push(format!("- `{skill_file}`: how such tasks are solved. Follow it."));
        }
        files.push("- `task.md`: the task.".to_owned());
        if !attachments.is_empty() {
            files.push("- `ATTACHMENTS.md`: the files that belong to the task.".to_owned());
        }
        format!(
            "Solve the one task of this folder. Before anything else, open and read in full:\n\n{}\n\nOpen them as \
             files; do not call a skill tool for it. Nobody can answer questions: decide yourself, and stay in this \
             folder. Your last message must hold your answer as <answer>YOUR ANSWER</answer>.\n",
            files.join("\n")
        )
    }
}
