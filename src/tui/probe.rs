//! What the terminal says about itself: whether it shows frames at once, whether its background is light. One bounded
//! question before the keys are read; keys that come meanwhile are handed on. Knows nothing of the run.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use super::colour::{Rgb, is_light};

/// Longest wait for all answers together.
const PATIENCE: Duration = Duration::from_millis(100);
/// Answers are short; more than this is something else.
const MOST_BYTES: usize = 4096;

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    pub synchronized: bool,
    pub background: bool,
}

#[derive(Debug, Default, PartialEq)]
pub struct Answers {
    pub synchronized: bool,
    pub light: Option<bool>,
    /// What was typed meanwhile.
    pub keys: Vec<KeyEvent>,
}

impl Questions {
    /// `None`: nothing is worth asking here. tmux answers for itself, and up to 3.6 its synchronized frames stall.
    pub fn for_terminal(background: bool, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let term = variable("TERM").unwrap_or_default();
        let tmux = variable("TMUX").is_some() || term.starts_with("tmux") || term.starts_with("screen");
        let newer = variable("TERM_PROGRAM").as_deref() == Some("tmux")
            && variable("TERM_PROGRAM_VERSION").is_some_and(|version| newer_than_3_6(&version));
        let questions = Self { synchronized: !tmux || newer, background };
        (questions.synchronized || background).then_some(questions)
    }

    /// The last question is one that every terminal answers, so that the others need not be waited for.
    pub fn text(self) -> String {
        let mut out = String::new();
        if self.synchronized {
            out.push_str("\x1b[?2026$p");
        }
        if self.background {
            out.push_str("\x1b]11;?\x07");
        }
        out + "\x1b[c"
    }
}

fn newer_than_3_6(version: &str) -> bool {
    let mut parts = version
        .split(['.', '-'])
        .map(|part| part.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) > (3, 6)
}

/// Reads the answers from a terminal in raw mode. Blocks for at most 100 ms.
///
/// # Errors
/// The terminal is gone.
pub fn read_answers() -> io::Result<Answers> {
    let stdin = io::stdin();
    let raw = tcgetattr(&stdin)?;
    let mut timed = raw.clone();
    timed.special_codes[SpecialCodeIndex::VMIN] = 0;
    timed.special_codes[SpecialCodeIndex::VTIME] = 1;
    tcsetattr(&stdin, OptionalActions::Now, &timed)?;
    let heard = listen(&mut io::stdin().lock());
    tcsetattr(&stdin, OptionalActions::Now, &raw)?;
    Ok(understand(&heard?))
}

fn listen(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let mut heard = Vec::new();
    let mut piece = [0; 256];
    while heard.len() < MOST_BYTES && !done(&heard) && Instant::now() < deadline {
        let n = input.read(&mut piece)?;
        heard.extend_from_slice(&piece[..n]);
    }
    Ok(heard)
}

/// The answer to the last question is there.
fn done(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard);
    text.rfind("\x1b[?").is_some_and(|at| {
        let rest = &text[at + 3..];
        rest.find('c').is_some_and(|end| rest[..end].chars().all(|c| c.is_ascii_digit() || c == ';'))
    })
}

fn understand(heard: &[u8]) -> Answers {
    let text = String::from_utf8_lossy(heard);
    let mut answers = Answers::default();
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        if let Some(answer) = rest.strip_prefix("\x1b[?") {
            let end = answer.find(|c: char| c.is_ascii_alphabetic()).map_or(answer.len(), |at| at + 1);
            if let Some(state) =
                answer[..end].strip_prefix("2026;").and_then(|state| state.strip_suffix("$y"))
            {
                answers.synchronized = matches!(state, "1" | "2" | "3");
            }
            rest = &answer[end..];
        } else if let Some(answer) = rest.strip_prefix("\x1b]") {
            let end = answer.find(['\x07', '\x1b']).unwrap_or(answer.len());
            answers.light = answer[..end].strip_prefix("11;rgb:").and_then(background).map(is_light);
            rest = answer[end..].trim_start_matches('\x07');
            rest = rest.strip_prefix("\x1b\\").unwrap_or(rest);
        } else {
            let (key, length) = key(rest, c);
            answers.keys.extend(key);
            rest = &rest[length..];
        }
    }
    answers
}

/// The key at the beginning of what was typed, and its length in bytes.
fn key(rest: &str, c: char) -> (Option<KeyEvent>, usize) {
    let plain = |code| Some(KeyEvent::new(code, KeyModifiers::NONE));
    let arrow = rest.strip_prefix("\x1b[").or_else(|| rest.strip_prefix("\x1bO")).and_then(|rest| {
        Some(match rest.chars().next()? {
            'A' => KeyCode::Up,
            'B' => KeyCode::Down,
            'C' => KeyCode::Right,
            'D' => KeyCode::Left,
            'H' => KeyCode::Home,
            'F' => KeyCode::End,
            'Z' => KeyCode::BackTab,
            _ => return None,
        })
    });
    if let Some(code) = arrow {
        return (plain(code), 3);
    }
    let key = match c {
        '\r' | '\n' => plain(KeyCode::Enter),
        '\t' => plain(KeyCode::Tab),
        '\x1b' => plain(KeyCode::Esc),
        '\x7f' => plain(KeyCode::Backspace),
        '\x01'..='\x1a' => {
            let letter = char::from(c as u8 - 1 + b'a');
            Some(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
        }
        c if c.is_control() || c == '\u{fffd}' => None,
        c => plain(KeyCode::Char(c)),
    };
    (key, c.len_utf8())
}

/// `RRRR/GGGG/BBBB`, of one to four digits each.
fn background(text: &str) -> Option<Rgb> {
    let mut parts = text.split('/').map(|part| {
        let most =
            16_u32.checked_pow(u32::try_from(part.len()).ok()?).filter(|most| (2..=65_536).contains(most))?
                - 1;
        let value = u32::from_str_radix(part, 16).ok()?;
        u8::try_from(value * 255 / most).ok()
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_keys() {
        let heard = b"j\x1b[?2026;2$y\x1b]11;rgb:fafa/fafa/f5f5\x1b\\\x1b[A\x1b[?64;1;2cq\x04";
        let answers = understand(heard);
        assert_eq!((answers.synchronized, answers.light), (true, Some(true)));
        let codes: Vec<KeyCode> = answers.keys.iter().map(|key| key.code).collect();
        assert_eq!(codes, [KeyCode::Char('j'), KeyCode::Up, KeyCode::Char('q'), KeyCode::Char('d')]);
        assert_eq!(answers.keys[3].modifiers, KeyModifiers::CONTROL);
        assert!(done(heard) && !done(b"\x1b[?2026;2$y"));
    }

    #[test]
    fn no_answer_and_refusals_change_nothing() {
        assert_eq!(understand(b""), Answers::default());
        assert!(!understand(b"\x1b[?2026;0$y\x1b[?1;2c").synchronized);
        assert!(!understand(b"\x1b[?2026;4$y").synchronized);
        assert_eq!(understand(b"\x1b]11;rgb:1d/21/26\x07").light, Some(false));
        assert_eq!(understand(b"\x1b]11;rgb:zz\x07\xff\xfe").light, None);
    }

    #[test]
    fn tmux_is_not_asked_up_to_3_6() {
        let asked = |variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            Questions::for_terminal(false, variable)
        };
        assert!(asked(&[("TERM", "xterm-256color")]).is_some_and(|questions| questions.synchronized));
        assert_eq!(asked(&[("TERM", "tmux-256color")]), None);
        let tmux = |version| {
            asked(&[
                ("TMUX", "x"),
                ("TERM", "tmux"),
                ("TERM_PROGRAM", "tmux"),
                ("TERM_PROGRAM_VERSION", version),
            ])
        };
        assert_eq!((tmux("3.4"), tmux("3.6a")), (None, None));
        assert!(tmux("3.7").is_some());
        let both = Questions { synchronized: true, background: true };
        assert!(both.text().ends_with("\x1b[c") && both.text().contains("]11;?"));
    }

    #[test]
    fn a_mute_terminal_is_waited_for_no_longer_than_allowed() {
        let began = Instant::now();
        assert_eq!(listen(&mut io::repeat(b'x')).unwrap().len(), MOST_BYTES);
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
