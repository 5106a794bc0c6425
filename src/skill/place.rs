//! Where coding agents look for skills, by project and by user. Must not touch the disk.

use super::name::SkillName;

/// A family of clients with a folder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// The folder that most clients share.
    Agents,
    Claude,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Opencode,
    Pi,
}

/// Whose skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Project,
    User,
}

impl Client {
    pub const ALL: [Self; 8] = [
        Self::Agents,
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Cursor,
        Self::Gemini,
        Self::Opencode,
        Self::Pi,
    ];
    /// Together they reach every client; Claude Code looks into its own folder only.
    pub const ALWAYS: [Self; 2] = [Self::Agents, Self::Claude];

    pub fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
        }
    }

    /// Where it looks for the skill `name`.
    pub fn path(self, scope: Scope, name: &SkillName) -> String {
        format!("{}/{name}", self.folder(scope))
    }

    /// Its folder of skills, below the project or the home folder.
    pub fn folder(self, scope: Scope) -> &'static str {
        match (self, scope) {
            (Self::Agents, _) => ".agents/skills",
            (Self::Claude, _) => ".claude/skills",
            (Self::Codex, _) => ".codex/skills",
            (Self::Copilot, Scope::Project) => ".github/skills",
            (Self::Copilot, Scope::User) => ".copilot/skills",
            (Self::Cursor, _) => ".cursor/skills",
            (Self::Gemini, _) => ".gemini/skills",
            (Self::Opencode, Scope::Project) => ".opencode/skills",
            (Self::Opencode, Scope::User) => ".config/opencode/skills",
            (Self::Pi, Scope::Project) => ".pi/skills",
            (Self::Pi, Scope::User) => ".pi/agent/skills",
        }
    }
}

impl std::str::FromStr for Client {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|client| client.name() == name);
        found.ok_or_else(|| format!("no client {name:?}; use {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_name_and_have_folders_of_their_own() {
        for scope in [Scope::Project, Scope::User] {
            let mut folders: Vec<_> = Client::ALL.map(|client| client.folder(scope)).to_vec();
            folders.sort_unstable();
            folders.dedup();
            assert_eq!(folders.len(), Client::ALL.len());
        }
        for client in Client::ALL {
            assert_eq!(client.name().parse(), Ok(client));
        }
        assert!("vim".parse::<Client>().unwrap_err().contains("agents, claude, codex"));
    }
}
