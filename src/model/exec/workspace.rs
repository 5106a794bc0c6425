//! The folder of one job, made anew: what the agent sees (`work`), and a home and a temporary folder of its own beside it.
//! Gone when dropped. Must not hold anything but this job's skill, task and attachments.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::ExecError;
use super::job::{Job, Work};
use crate::skill::{divide, quoted};

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
        own_folder(scratch).map_err(|error| fault(scratch, &error))?;
        let scratch = scratch.canonicalize().map_err(|error| fault(scratch, &error))?;
        if let Some(file) = foreign_instructions(&scratch) {
            return Err(ExecError::Instructions { file });
        }
        let root = tempfile::Builder::new().prefix("job-").tempdir_in(&scratch);
        let workspace = Self { root: root.map_err(|error| fault(&scratch, &error))? };
        for folder in [workspace.work(), workspace.home(), workspace.temporary()] {
            std::fs::create_dir_all(&folder).map_err(|error| fault(&folder, &error))?;
        }
        if let Work::Agent(files) = &job.work {
            for (name, content) in &files.skill_files {
                workspace.write(&skill_part(skills, name)?, content)?;
            }
            if !files.skill.trim().is_empty() {
                workspace.write(&skill_file(skills), skill_document(&files.skill).as_bytes())?;
            }
            workspace.write("task.md", job.text().as_bytes())?;
            workspace.attach(&files.attachments)?;
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

    fn attach(&self, attachments: &[(String, Vec<u8>)]) -> Result<(), ExecError> {
        if attachments.is_empty() {
            return Ok(());
        }
        let mut list = String::from("# Attachments\n\nFiles that belong to the task:\n\n");
        for (number, (name, content)) in attachments.iter().enumerate() {
            let file = format!("attachments/{:02}_{}", number + 1, file_name(name));
            self.write(&file, content)?;
            list.push_str(&format!("- `{file}` ({} bytes)\n", content.len()));
        }
        self.write("ATTACHMENTS.md", list.as_bytes())
    }
}

/// Makes the folder, for this user alone; one that is another user's would let them change what agents run.
fn own_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let owner = path.symlink_metadata()?.uid();
    if owner != rustix::process::getuid().as_raw() {
        return Err(std::io::Error::other(format!(
            "it belongs to the user {owner}; remove it, or set TMPDIR"
        )));
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExecError> {
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| ExecError::Workspace { path: path.to_owned(), why: error.to_string() })
}

pub fn skill_file(skills: &str) -> String {
    format!("{skills}/{SKILL}/SKILL.md")
}

/// Where a further file of the skill goes. Its path must stay inside the skill's folder.
fn skill_part(skills: &str, name: &str) -> Result<String, ExecError> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    let path = Path::new(name);
    let outside = path.components().next().is_none() || !path.components().all(inside) || name.contains('\\');
    if outside || path == Path::new("SKILL.md") {
        let message = format!("the skill's folder cannot hold a file {name:?}; rename it or take it out");
        return Err(ExecError::Settings { message });
    }
    Ok(format!("{skills}/{SKILL}/{name}"))
}

/// Front matter of its own is replaced: its name would not be that of the folder, and clients would pass it over.
fn skill_document(skill: &str) -> String {
    let body = divide(skill).map_or(skill, |parts| parts.body).trim_start_matches('\n');
    format!("---\nname: {SKILL}\ndescription: {}\n---\n\n{body}\n", quoted(DESCRIPTION))
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
    use crate::domain::Workspace as Files;

    fn agent(skill: &str, attachments: &[&str]) -> Job {
        let attachments = attachments.iter().map(|name| ((*name).to_owned(), b"x".to_vec())).collect();
        let files = Files { skill: skill.into(), skill_files: Vec::new(), attachments };
        Job { system: Some("Answer briefly.".into()), task: "What is 40+2?".into(), work: Work::Agent(files) }
    }

    #[test]
    fn holds_the_skill_the_task_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let job = agent("# Add\nAdd up.", &[]);
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
        let job = agent("", &names);
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
        let error = Workspace::create(&inner, ".claude/skills", &agent("", &[])).unwrap_err();
        assert!(error.to_string().contains("CLAUDE.md"), "{error}");
    }

    #[test]
    fn files_of_the_skill_stay_in_its_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let with = |name: &str| {
            let mut job = agent("---\nname: mine\n---\n# Add", &[]);
            let Work::Agent(files) = &mut job.work else { unreachable!() };
            files.skill_files.push((name.into(), b"x".to_vec()));
            Workspace::create(scratch.path(), ".agents/skills", &job)
        };
        let workspace = with("references/table.csv").unwrap();
        let folder = workspace.work().join(".agents/skills/target-skill");
        assert_eq!(std::fs::read(folder.join("references/table.csv")).unwrap(), b"x");
        let skill = std::fs::read_to_string(folder.join("SKILL.md")).unwrap();
        assert!(!skill.contains("mine") && skill.ends_with("---\n\n# Add\n"), "{skill}");
        for name in ["../x", "/etc/x", "a/../../x", "", ".", "SKILL.md", "a\\..\\x"] {
            let error = with(name).unwrap_err().to_string();
            assert!(error.starts_with("the skill's folder cannot hold"), "{name}: {error}");
        }
    }
}
