//! The coding agents planish can drive: their names, programs and the oldest version whose output is understood.
//! Must not know how they are called.

use serde::{Deserialize, Serialize};

/// A coding agent on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cli {
    Codex,
    Claude,
    Copilot,
    Cursor,
    Opencode,
    Pi,
    Gemini,
}

impl Cli {
    pub const ALL: [Self; 7] =
        [Self::Codex, Self::Claude, Self::Copilot, Self::Cursor, Self::Opencode, Self::Pi, Self::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            Self::Codex => "Codex",
            Self::Claude => "Claude Code",
            Self::Copilot => "Copilot CLI",
            Self::Cursor => "Cursor Agent",
            Self::Opencode => "OpenCode",
            Self::Pi => "Pi",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// What is started when the configuration names no program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor-agent",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
            Self::Gemini => "gemini",
        }
    }

    /// How a person gets the program.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Codex => "install it with `npm install -g @openai/codex`",
            Self::Claude => "install it with `npm install -g @anthropic-ai/claude-code`",
            Self::Copilot => "install it with `npm install -g @github/copilot`",
            Self::Cursor => "install Cursor's command line (the npm package cursor-agent is another program)",
            Self::Opencode => "install it with `npm install -g opencode-ai`",
            Self::Pi => "install it with `npm install -g @earendil-works/pi-coding-agent` (needs Node 22)",
            Self::Gemini => "install it with `npm install -g @google/gemini-cli`",
        }
    }

    /// The oldest version whose flags and events are those used here.
    pub fn oldest(self) -> Version {
        let (major, minor) = match self {
            Self::Codex => (0, 100),
            Self::Claude => (2, 1),
            Self::Copilot | Self::Opencode | Self::Pi => (1, 0),
            // Dated versions.
            Self::Cursor => (2025, 9),
            Self::Gemini => (0, 30),
        };
        Version([major, minor, 0])
    }
}

/// A version as programs print it: three numbers, compared in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl Version {
    /// The first thing in `text` that looks like a version; programs wrap it in their name and more.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
            let mut numbers = word.split('.').map(str::parse::<u32>);
            let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            let patch = numbers.next().and_then(Result::ok).unwrap_or_default();
            Some(Self([major, minor, patch]))
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_versions_as_the_programs_print_them() {
        for (text, want) in [
            ("codex-cli 0.171.0\n", Some([0, 171, 0])),
            ("2.1.332 (Claude Code)", Some([2, 1, 332])),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", Some([1, 0, 102])),
            ("2025.11.25-d5b3271", Some([2025, 11, 25])),
            ("v22.1", Some([22, 1, 0])),
            ("no version 7 here", None),
            ("99999999999.1.2", None),
            ("", None),
        ] {
            assert_eq!(Version::find(text), want.map(Version), "{text}");
        }
    }

    #[test]
    fn versions_compare_number_by_number() {
        assert!(Version([0, 99, 9]) < Version([0, 100, 0]));
        assert!(Version([1, 0, 0]) > Version([0, 171, 0]));
    }
}
