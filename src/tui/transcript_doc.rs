//! One attempt as blocks (prompts, turns, thinking, reply) and as lines of a given width. Owns what is folded and where
//! a search finds something; draws nothing. All text in it is inert.

use std::collections::BTreeSet;
use std::ops::Range;

use super::live::{CallPhase, LiveCall, THINK, THINK_END};
use super::rows::RowBody;
use super::search::Pattern;
use super::theme::Role;
use crate::domain::{Rollout, Turn};
use crate::text::{reveal, sanitize, sanitize_line, wrap_ranges};

/// Most of one text that is laid out; `calls/` in the run folder has all of it.
const SHOWN: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A value beside its name.
    Fact,
    /// What the model was given.
    Prompt,
    /// What the model or somebody else said, or the environment answered.
    Speech,
    Thinking,
    Tool,
}

impl BlockKind {
    /// Folded until somebody asks.
    fn starts_folded(self, tools_open: bool) -> bool {
        match self {
            BlockKind::Prompt => true,
            BlockKind::Tool => !tools_open,
            BlockKind::Fact | BlockKind::Speech | BlockKind::Thinking => false,
        }
    }

    pub fn folds(self) -> bool {
        matches!(self, BlockKind::Prompt | BlockKind::Thinking | BlockKind::Tool)
    }
}

#[derive(Clone, Debug)]
pub struct Block {
    pub kind: BlockKind,
    pub title: String,
    pub text: String,
    pub role: Role,
    pub folded: bool,
}

/// One row of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Title(usize),
    /// A part of a block's text.
    Text(usize, Range<usize>),
    Blank,
}

/// How somebody looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub raw: bool,
    pub tools_open: bool,
    /// Blocks that stand the other way than they would.
    pub toggled: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct TranscriptDoc {
    pub blocks: Vec<Block>,
    pub lines: Vec<Line>,
}

impl TranscriptDoc {
    pub fn of(body: &RowBody<'_>, look: &Look, columns: usize) -> Self {
        let mut builder = Builder { raw: look.raw, blocks: Vec::new() };
        match body {
            RowBody::Done(_, rollout) => builder.rollout(rollout),
            RowBody::Missing(_, error) => {
                builder.add(BlockKind::Speech, "no answer after all retries", error, Role::Warn);
            }
            RowBody::Call(_, call) => builder.call(call),
        }
        let mut doc = Self { blocks: builder.blocks, lines: Vec::new() };
        for (index, block) in doc.blocks.iter_mut().enumerate() {
            let folded = block.kind.starts_folded(look.tools_open) && !look.raw;
            block.folded = block.kind.folds() && folded != look.toggled.contains(&index);
        }
        doc.lay_out(columns);
        doc
    }

    fn lay_out(&mut self, columns: usize) {
        let mut after_fact = false;
        for (index, block) in self.blocks.iter().enumerate() {
            let fact = block.kind == BlockKind::Fact;
            if after_fact && !fact {
                self.lines.push(Line::Blank);
            }
            after_fact = fact;
            self.lines.push(Line::Title(index));
            if fact || block.folded {
                continue;
            }
            let ranges = wrap_ranges(&block.text, columns);
            self.lines.extend(ranges.into_iter().map(|range| Line::Text(index, range)));
            self.lines.push(Line::Blank);
        }
    }

    /// Where a block begins.
    pub fn line_of(&self, block: usize) -> usize {
        self.lines.iter().position(|line| *line == Line::Title(block)).unwrap_or(0)
    }

    /// The line that shows a place of a block's text; its title while it is folded.
    pub fn line_of_text(&self, block: usize, at: usize) -> usize {
        let shows = |line: &Line| matches!(line, Line::Text(of, range) if *of == block && at < range.end.max(range.start + 1));
        self.lines.iter().position(shows).unwrap_or_else(|| self.line_of(block))
    }

    /// The block that a line belongs to, or the one before it.
    pub fn block_at(&self, line: usize) -> Option<usize> {
        let upto = &self.lines[..(line + 1).min(self.lines.len())];
        upto.iter().rev().find_map(|line| match line {
            Line::Title(block) | Line::Text(block, _) => Some(*block),
            Line::Blank => None,
        })
    }

    /// All places where `pattern` is found, in reading order.
    pub fn matches(&self, pattern: &Pattern) -> Vec<(usize, Range<usize>)> {
        let of_block = |(index, block): (usize, &Block)| {
            pattern.ranges(&block.text).map(move |range| (index, range)).collect::<Vec<_>>()
        };
        self.blocks.iter().enumerate().flat_map(of_block).collect()
    }
}

struct Builder {
    raw: bool,
    blocks: Vec<Block>,
}

impl Builder {
    fn add(&mut self, kind: BlockKind, title: impl Into<String>, text: &str, role: Role) {
        let shown = match text.char_indices().nth(SHOWN) {
            Some((at, _)) => &text[..at],
            None => text,
        };
        let mut clean = if self.raw { reveal(shown) } else { sanitize(shown).trim_end().to_owned() };
        if shown.len() < text.len() {
            clean.push_str("\n… cut here; the run's calls/ folder has all of it");
        }
        self.blocks.push(Block { kind, title: title.into(), text: clean, role, folded: false });
    }

    fn fact(&mut self, title: &str, text: &str, role: Role) {
        let shown: String = text.trim().chars().take(1000).collect();
        let text =
            if self.raw { reveal(&shown).replace('\n', "\\n") } else { sanitize_line(&shown).into_owned() };
        self.blocks.push(Block {
            kind: BlockKind::Fact,
            title: format!("{title:<9}"),
            text,
            role,
            folded: false,
        });
    }

    fn rollout(&mut self, rollout: &Rollout) {
        let answer = if rollout.score.failed() { Role::Bad } else { Role::Text };
        self.fact("answer", &rollout.answer, answer);
        self.fact("expected", &rollout.gold, Role::Text);
        self.fact("why", &rollout.score.reason, Role::Text);
        if !rollout.system_prompt.is_empty() {
            self.add(BlockKind::Prompt, "system prompt", &rollout.system_prompt, Role::Text);
        }
        if !rollout.user_prompt.is_empty() {
            self.add(BlockKind::Prompt, "user prompt", &rollout.user_prompt, Role::Text);
        }
        self.add(BlockKind::Speech, "task", &rollout.task, Role::Text);
        for turn in &rollout.turns {
            self.turn(turn);
        }
        self.speech("reply", &rollout.reply);
    }

    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::ToolCall { cmd, obs, exit } => {
                self.add(
                    BlockKind::Tool,
                    match exit {
                        Some(code) => format!("tool {} (exit {code})", first_line(cmd)),
                        None => format!("tool {}", first_line(cmd)),
                    },
                    &tool_text(cmd, obs),
                    Role::Tool,
                );
            }
            Turn::Step { step, reasoning, action, feedback } => {
                let number = step.map_or(String::new(), |step| format!(" {step}"));
                if !reasoning.is_empty() {
                    self.add(BlockKind::Thinking, format!("thinking{number}"), reasoning, Role::Thinking);
                }
                self.add(BlockKind::Speech, format!("action{number}"), action, Role::Text);
                let title = format!("environment{number}: {}", first_line(feedback));
                self.add(BlockKind::Tool, title, feedback, Role::Tool);
            }
            Turn::Verification { content } => self.add(BlockKind::Speech, "verification", content, Role::Dim),
            Turn::Message { role, content } => self.speech(role, content),
        }
    }

    fn call(&mut self, call: &LiveCall) {
        match &call.phase {
            CallPhase::Retrying { error } => {
                self.add(BlockKind::Speech, format!("retry {}", call.attempt), error, Role::Warn);
            }
            CallPhase::Running | CallPhase::Answered => self.speech("reply", &call.text),
        }
    }

    /// What was thought apart from what was said.
    fn speech(&mut self, title: &str, text: &str) {
        if self.raw {
            return self.add(BlockKind::Speech, sanitize_line(title), text, Role::Text);
        }
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(THINK) {
            if !before.trim().is_empty() {
                self.add(BlockKind::Speech, sanitize_line(title), before, Role::Text);
            }
            let (thought, said) = after.split_once(THINK_END).unwrap_or((after, ""));
            self.add(BlockKind::Thinking, "thinking", thought.trim_start_matches('\n'), Role::Thinking);
            rest = said.trim_start_matches('\n');
        }
        if !rest.trim().is_empty() || rest.len() == text.len() {
            self.add(BlockKind::Speech, sanitize_line(title), rest, Role::Text);
        }
    }
}

fn tool_text(cmd: &str, obs: &str) -> String {
    format!("$ {cmd}\n{obs}")
}

fn first_line(text: &str) -> String {
    let line: String = text.trim().lines().next().unwrap_or_default().chars().take(120).collect();
    sanitize_line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FinishReason, Score, Usage};
    use crate::tui::row_index::{ResultRef, Source};

    fn rollout(reply: &str, turns: Vec<Turn>) -> Rollout {
        Rollout {
            item: "i".into(),
            task_type: String::new(),
            task: "task".into(),
            gold: "7".into(),
            system_prompt: Default::default(),
            user_prompt: "prompt".into(),
            reply: reply.into(),
            answer: "7".into(),
            turns,
            score: Score { hard: 1.0, soft: 1.0, reason: String::new() },
            finish: FinishReason::Stop,
            usage: Usage::default(),
            ms: 1,
            judging: None,
        }
    }

    fn doc(rollout: &Rollout, look: &Look) -> TranscriptDoc {
        let at = ResultRef { source: Source::Step(0), place: 0 };
        TranscriptDoc::of(&RowBody::Done(at, rollout), look, 20)
    }

    fn kinds(doc: &TranscriptDoc) -> Vec<(BlockKind, &str, bool)> {
        let shown = doc.blocks.iter().filter(|block| block.kind != BlockKind::Fact);
        shown.map(|block| (block.kind, block.text.as_str(), block.folded)).collect()
    }

    #[test]
    fn thoughts_stand_apart_from_what_is_said() {
        let said = rollout("<think>\nhm\n</think>\nLima<think>more", Vec::new());
        let blocks = doc(&said, &Look::default());
        assert_eq!(
            kinds(&blocks)[2..],
            [
                (BlockKind::Thinking, "hm", false),
                (BlockKind::Speech, "Lima", false),
                (BlockKind::Thinking, "more", false)
            ]
        );
        let raw = doc(&said, &Look { raw: true, ..Look::default() });
        assert_eq!(kinds(&raw).last(), Some(&(BlockKind::Speech, said.reply.as_str(), false)));
    }

    #[test]
    fn tools_fold_alone_and_together() {
        let tool = Turn::tool("ls -l\nsecond", "a\nb");
        let one = rollout("done", vec![tool.clone(), tool]);
        let folded = doc(&one, &Look::default());
        assert_eq!(kinds(&folded)[2], (BlockKind::Tool, "$ ls -l\nsecond\na\nb", true));
        assert_eq!(folded.blocks[5].title, "tool ls -l");
        let open = Look { tools_open: true, ..Look::default() };
        let all = doc(&one, &open);
        assert_eq!(all.lines.len(), folded.lines.len() + 2 * 5);
        let but_one = doc(&one, &Look { toggled: [5].into(), ..open });
        assert!(but_one.blocks[5].folded && !but_one.blocks[6].folded);
    }

    #[test]
    fn raw_hides_nothing_and_stays_inert() {
        let hostile = rollout("a\x1b[31m\u{202e}b\tc", Vec::new());
        let raw = doc(&hostile, &Look { raw: true, ..Look::default() });
        assert_eq!(raw.blocks.last().unwrap().text, "a\\x1b[31m\\u{202e}b\\tc");
        assert_eq!(doc(&hostile, &Look::default()).blocks.last().unwrap().text, "ab  c");
    }

    #[test]
    fn a_match_over_a_line_break_is_found_where_it_begins() {
        let long = rollout("one two three four five six seven", Vec::new());
        let doc = doc(&long, &Look::default());
        let found = doc.matches(&Pattern::of("four five").unwrap());
        let [(block, range)] = found.as_slice() else { panic!("{found:?}") };
        let line = doc.line_of_text(*block, range.start);
        let Line::Text(_, shown) = &doc.lines[line] else { panic!() };
        assert_eq!(&doc.blocks[*block].text[shown.clone()], "one two three four");
        assert_eq!(doc.block_at(line), Some(*block));
        assert_eq!(doc.line_of(*block), line - 1);
    }
}
