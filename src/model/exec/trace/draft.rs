//! A trace while it grows: parsers add to it what they understand. Owns the bounds on what is kept.
//! Must not know any program's events.

use std::collections::{BTreeMap, HashMap};

use super::failure::FailureClass;
use super::{Cap, End, Trace};
use crate::domain::{Turn, Usage, one_line, shortened};

/// Characters kept of one text of a turn.
const TURN_CHARS: usize = 16_000;
/// Characters kept of a failure's message.
const MESSAGE_CHARS: usize = 600;
/// Kinds of unknown events told apart.
const KINDS: usize = 64;

/// What has just happened, for people who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Said(String),
    Called(String),
}

/// What the program said of its own end, or did on its way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub message: String,
    pub status: Option<u16>,
}

impl Trouble {
    fn end(&self) -> End {
        let class = FailureClass::of(&self.message, self.status);
        End::Failed { class, message: one_line(&self.message, MESSAGE_CHARS) }
    }
}

/// How the process ended, for [`Draft::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited; without a code when a signal ended it.
    Exited(Option<i32>),
    Cut(Cap),
}

/// What is known so far.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    turns: Vec<Turn>,
    final_text: String,
    pub usage: Usage,
    tool_calls: usize,
    unknown_events: BTreeMap<String, u64>,
    /// Turns of the tool calls, by the program's own id.
    calls: HashMap<String, usize>,
    /// The message whose blocks come one by one.
    reply: String,
    news: Vec<News>,
    done: bool,
    failure: Option<Trouble>,
    /// The last error that may yet pass; anything the agent does afterwards clears it.
    trouble: Option<Trouble>,
}

impl Draft {
    /// An event or line that means nothing here.
    pub fn unknown(&mut self, kind: &str) {
        let kind = one_line(kind, 60);
        let kind = if self.unknown_events.len() < KINDS || self.unknown_events.contains_key(&kind) {
            kind
        } else {
            "(other)".to_owned()
        };
        *self.unknown_events.entry(kind).or_default() += 1;
    }

    /// A reply of the model, told in one or several events with the same id: one call.
    pub fn count_reply(&mut self, id: &str) {
        if id.is_empty() || id != self.reply {
            self.usage.calls += 1;
            id.clone_into(&mut self.reply);
        }
    }

    pub fn has_spoken(&self) -> bool {
        !self.final_text.is_empty()
    }

    /// Dollars the program names: none for a model whose price it does not know.
    pub fn spend(&mut self, dollars: Option<f64>) {
        // The cast saturates, and takes what is no number for nothing.
        let nanodollars = (dollars.unwrap_or_default() * 1e9).round() as u64;
        self.usage.nanodollars = self.usage.nanodollars.saturating_add(nanodollars);
    }

    /// The agent spoke.
    pub fn say(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.trouble = None;
        text.clone_into(&mut self.final_text);
        self.news.push(News::Said(text.to_owned()));
        self.message("assistant", text);
    }

    /// More of what the agent is saying.
    pub fn say_on(&mut self, text: &str) {
        match self.turns.last_mut() {
            Some(Turn::Message { role, content }) if role == "assistant" => {
                self.final_text.push_str(text);
                *content = shortened(&self.final_text, TURN_CHARS);
                self.news.push(News::Said(text.to_owned()));
            }
            _ => self.say(text),
        }
    }

    /// The complete last word, where a program repeats it at its end.
    pub fn last_word(&mut self, text: &str) {
        if !text.trim().is_empty() && text != self.final_text {
            self.say(text);
        }
    }

    pub fn think(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.message("thinking", text);
        }
    }

    /// A tool call began.
    pub fn call(&mut self, id: &str, command: &str) {
        if self.calls.contains_key(id) {
            return;
        }
        self.trouble = None;
        self.tool_calls += 1;
        self.calls.insert(id.to_owned(), self.turns.len());
        let command = shortened(command, TURN_CHARS);
        self.news.push(News::Called(command.clone()));
        self.turns.push(Turn::tool(command, ""));
    }

    /// A tool call gave something back.
    pub fn called(&mut self, id: &str, output: &str, code: Option<i32>) {
        let turn = self.calls.get(id).and_then(|at| self.turns.get_mut(*at));
        if let Some(Turn::ToolCall { obs, exit, .. }) = turn {
            *obs = shortened(output, TURN_CHARS);
            *exit = code;
        }
    }

    /// Something went wrong that the program may overcome.
    pub fn trouble(&mut self, message: &str, status: Option<u16>) {
        self.trouble = Some(Trouble { message: message.to_owned(), status });
    }

    /// The program said that the job is done.
    pub fn done(&mut self) {
        self.done = true;
    }

    /// The program is done trying: the last trouble, if nothing came after it, is how it ended.
    pub fn settle(&mut self) {
        match self.trouble {
            Some(_) => self.fail("", None),
            None => self.done(),
        }
    }

    /// The program said that the job failed; the first word on it stands.
    pub fn fail(&mut self, message: &str, status: Option<u16>) {
        let trouble = self.trouble.take();
        let own = Trouble { message: message.to_owned(), status };
        self.failure.get_or_insert(match trouble {
            Some(trouble) if message.is_empty() => trouble,
            _ => own,
        });
    }

    /// No use to wait for the program's end: a login does not come back by trying again.
    pub fn is_hopeless(&self) -> bool {
        let told = self.failure.iter().chain(&self.trouble);
        told.map(Trouble::end).any(|end| matches!(end, End::Failed { class: FailureClass::Auth, .. }))
    }

    pub fn tool_calls(&self) -> usize {
        self.tool_calls
    }

    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn message(&mut self, role: &str, text: &str) {
        self.turns.push(Turn::Message { role: role.to_owned(), content: shortened(text, TURN_CHARS) });
    }

    /// The trace; `words` is the end of the program's error output.
    pub fn finish(self, ending: Ending, words: &str) -> Trace {
        let end = self.end(ending, words);
        Trace {
            turns: self.turns,
            final_text: self.final_text,
            usage: self.usage,
            tool_calls: self.tool_calls,
            unknown_events: self.unknown_events,
            end,
        }
    }

    /// An exit code alone is never success, and a cut that only waited for a server in trouble is not the agent's.
    fn end(&self, ending: Ending, words: &str) -> End {
        match (&self.failure, &self.trouble, ending) {
            (Some(failure), _, _) => failure.end(),
            (None, Some(trouble), Ending::Cut(Cap::WallClock)) => trouble.end(),
            (None, None, Ending::Cut(Cap::WallClock)) if self.turns.is_empty() => {
                let words = Trouble { message: words.to_owned(), status: None };
                match words.end() {
                    End::Failed { class: FailureClass::Unknown, .. } => End::Cut { cap: Cap::WallClock },
                    failed => failed,
                }
            }
            (None, _, Ending::Cut(cap)) => End::Cut { cap },
            (None, _, Ending::Exited(Some(0))) if self.done => {
                if self.final_text.trim().is_empty() {
                    End::Empty
                } else {
                    End::Completed
                }
            }
            (None, Some(trouble), Ending::Exited(_)) => trouble.end(),
            (None, None, Ending::Exited(code)) => {
                let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
                let said = if self.done { "" } else { " without a result" };
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                Trouble { message: format!("it ended with {code}{said}{words}"), status: None }.end()
            }
        }
    }
}
