//! The folder of one job, made anew: what the agent sees (`work`), and a home and a temporary folder of its own beside it.
//! Gone when dropped. Must not hold anything but this job's skill, task and attachments.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::ExecError;
use super::job::{Attachment, Job, Work};

/// Name of the folder of the skill under test.
pub const SKILL: &str = "target-skill";
const DESCRIPTION: &str =
    "How to solve the task in task.md. Use when you work on the task; read it before you begin.";
/// What clients read in every folder above the one they work in.
const INSTRUCTIONS: &[&str] = &[
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".agents",
    ".github/copilot-instructions.md",
    ".opencode",
    ".cursor",
    ".pi",
];

#[derive(Debug)]
pub struct Workspace {
    root: TempDir,
}

impl Workspace {
    /// `skills` is the folder in which the client looks for skills, relative to where it works.
    ///
    /// # Errors
    /// It cannot be written, or a client would read other people's instructions in a folder above.
    pub fn create(scratch: &Path, skills: &str, job: &Job) -> Result<Self, ExecError> {
        let fault = |path: &Path, error: &std::io::Error| ExecError::Workspace {
            path: path.to_owned(),
            why: error.to_string(),
        };
        std::fs::create_dir_all(scratch).map_err(|error| fault(scratch, &error))?;
        let scratch = scratch.canonicalize().map_err(|error| fault(scratch, &error))?;
        if let Some(file) = foreign_instructions(&scratch) {
            return Err(ExecError::Instructions { file });
        }
        let root = tempfile::Builder::new().prefix("job-").tempdir_in(&scratch);
        let workspace = Self { root: root.map_err(|error| fault(&scratch, &error))? };
        for folder in [workspace.work(), workspace.home(), workspace.temporary()] {
            std::fs::create_dir_all(&folder).map_err(|error| fault(&folder, &error))?;
        }
        if let Work::Agent { skill, attachments } = &job.work {
            if let Some(skill) = skill {
                workspace.write(&skill_file(skills), skill_document(skill).as_bytes())?;
            }
            workspace.write("task.md", job.text().as_bytes())?;
            workspace.attach(attachments)?;
        }
        Ok(workspace)
    }

    /// Where the agent works.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// A text no other job has: processes of this one carry it in their environment.
    pub fn mark(&self) -> String {
        self.root.path().to_string_lossy().into_owned()
    }

    /// Writes a file of the client's configuration.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, file: &str, text: &str) -> Result<(), ExecError> {
        put(&self.home().join(file), text.as_bytes())
    }

    fn write(&self, file: &str, bytes: &[u8]) -> Result<(), ExecError> {
        put(&self.work().join(file), bytes)
    }

    fn attach(&self, attachments: &[Attachment]) -> Result<(), ExecError> {
        if attachments.is_empty() {
            return Ok(());
        }
        let mut list = String::from("# Attachments\n\nFiles that belong to the task:\n\n");
        for (number, attachment) in attachments.iter().enumerate() {
            let file = format!("attachments/{:02}_{}", number + 1, file_name(&attachment.name));
            self.write(&file, &attachment.content)?;
            list.push_str(&format!("- `{file}` ({} bytes)\n", attachment.content.len()));
        }
        self.write("ATTACHMENTS.md", list.as_bytes())
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExecError> {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| ExecError::Workspace { path: path.to_owned(), why: error.to_string() })
}

pub fn skill_file(skills: &str) -> String {
    format!("{skills}/{SKILL}/SKILL.md")
}

fn skill_document(skill: &str) -> String {
    format!("---\nname: {SKILL}\ndescription: \"{DESCRIPTION}\"\n---\n\n{skill}\n")
}

/// The name without anything that could lead elsewhere or mislead a shell.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = last.chars().map(kept).collect();
    // The end tells the kind of file.
    let start = name.len().saturating_sub(80);
    let name = &name[start..];
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

fn foreign_instructions(scratch: &Path) -> Option<PathBuf> {
    let files = scratch.ancestors().flat_map(|folder| INSTRUCTIONS.iter().map(|name| folder.join(name)));
    files.into_iter().find(|file| file.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(skill: Option<&str>, attachments: Vec<Attachment>) -> Job {
        let work = Work::Agent { skill: skill.map(str::to_owned), attachments };
        Job { system: Some("Answer briefly.".into()), task: "What is 40+2?".into(), work }
    }

    fn attachment(name: &str) -> Attachment {
        Attachment { name: name.into(), content: b"x".to_vec() }
    }

    #[test]
    fn holds_the_skill_the_task_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let job = agent(Some("# Add\nAdd up."), Vec::new());
        let workspace = Workspace::create(scratch.path(), ".agents/skills", &job).unwrap();
        let read = |file: &str| std::fs::read_to_string(workspace.work().join(file)).unwrap();
        let skill = read(".agents/skills/target-skill/SKILL.md");
        assert!(skill.starts_with("---\nname: target-skill\ndescription: \""), "{skill}");
        assert!(skill.ends_with("---\n\n# Add\nAdd up.\n"), "{skill}");
        assert_eq!(read("task.md"), "Answer briefly.\n\nWhat is 40+2?");
        assert_eq!(std::fs::read_dir(workspace.work()).unwrap().count(), 2);
        assert_eq!(std::fs::read_dir(workspace.home()).unwrap().count(), 0);
        drop(workspace);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn attachments_stay_inside_whatever_their_names() {
        let scratch = tempfile::tempdir().unwrap();
        let names = ["../../etc/passwd", "a b;rm -rf.csv", "", "..", &"long".repeat(100)];
        let job = agent(None, names.iter().map(|name| attachment(name)).collect());
        let workspace = Workspace::create(scratch.path(), ".agents/skills", &job).unwrap();
        let folder = workspace.work().join("attachments");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files[..4], ["01_passwd", "02_a_b_rm_-rf.csv", "03_file", "04_.."]);
        assert_eq!(files[4].len(), 83);
        let list = std::fs::read_to_string(workspace.work().join("ATTACHMENTS.md")).unwrap();
        assert_eq!(list.matches("(1 bytes)").count(), 5, "{list}");
    }

    #[test]
    fn refuses_a_place_where_clients_read_other_instructions() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("CLAUDE.md"), "Say yes.").unwrap();
        let inner = scratch.path().join("runs/scratch");
        let error = Workspace::create(&inner, ".claude/skills", &agent(None, Vec::new())).unwrap_err();
        assert!(error.to_string().contains("CLAUDE.md"), "{error}");
    }
}
