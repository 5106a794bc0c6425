//! Makes untrusted text inert: no escape sequence, control character or invisible format character survives.
//! Linear in the input; must not judge or shorten what is left.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Tabs become spaces up to the next multiple of this column.
const TAB: usize = 4;
/// Combining marks kept per base character; stacks beyond it only overdraw neighbouring rows.
const MARKS: usize = 3;

/// Inert multi-line text: whole escape sequences, controls (but `\n`), bidi and other invisible format characters
/// are gone, tabs are spaces, Unicode line separators are `\n`. U+FFFD from invalid UTF-8 stays visible.
pub fn sanitize(text: &str) -> String {
    if text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let mut cleaner = Cleaner::default();
    cleaner.run(text);
    cleaner.out
}

/// How many characters of `text` [`sanitize`] does not show: escape sequences, controls, invisible format characters.
pub fn hidden(text: &str) -> usize {
    let mut cleaner = Cleaner::default();
    cleaner.run(text);
    text.chars().count() - cleaner.shown
}

/// Inert text that hides nothing: what [`sanitize`] would drop or change shows as an escape, `\x1b` or `\u{202e}`.
/// Only `\n` breaks lines.
pub fn reveal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() && (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control()
                || is_invisible(c)
                || matches!(c, '\u{2028}' | '\u{2029}')
                || marks > MARKS =>
            {
                out.push_str(&format!("\\u{{{:x}}}", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

/// [`sanitize`] for one line: line breaks show as `⏎`.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let clean = sanitize(text);
    let clean = clean.trim_end_matches('\n');
    Cow::Owned(if clean.contains('\n') { clean.replace('\n', "⏎") } else { clean.to_owned() })
}

#[derive(Default)]
struct Cleaner {
    out: String,
    column: usize,
    marks: usize,
    has_base: bool,
    /// Characters of the input that are in the output, tabs as spaces.
    shown: usize,
}

impl Cleaner {
    fn run(&mut self, text: &str) {
        self.out.reserve(text.len());
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => rest = skip_escape(rest),
                '\u{9b}' => rest = skip_csi(rest),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => rest = skip_string(rest),
                '\n' | '\u{2028}' | '\u{2029}' => self.newline(),
                '\t' => self.tab(),
                c if c.is_control() || is_invisible(c) => {}
                c => self.push(c),
            }
        }
    }

    fn newline(&mut self) {
        self.shown += 1;
        self.out.push('\n');
        (self.column, self.marks, self.has_base) = (0, 0, false);
    }

    fn tab(&mut self) {
        self.shown += 1;
        let spaces = TAB - self.column % TAB;
        self.out.extend(std::iter::repeat_n(' ', spaces));
        self.column += spaces;
        (self.marks, self.has_base) = (0, true);
    }

    fn push(&mut self, c: char) {
        match c.width().unwrap_or(0) {
            0 => {
                self.marks += 1;
                if !self.has_base || self.marks > MARKS {
                    return;
                }
            }
            width => {
                self.column += width;
                (self.marks, self.has_base) = (0, true);
            }
        }
        self.shown += 1;
        self.out.push(c);
    }
}

/// After ESC. A sequence that is cut short by a newline or the end swallows nothing beyond it.
fn skip_escape(mut rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    let before = rest.clone();
    match rest.next() {
        Some('[') => skip_csi(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(rest),
        Some(' '..='/') => skip_until_final(rest, '0'..='~'),
        Some('0'..='~') => rest,
        _ => before,
    }
}

fn skip_csi(rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    skip_until_final(rest, '@'..='~')
}

/// Parameter and intermediate bytes, then one final byte. Anything else ends the sequence and is kept.
fn skip_until_final(
    mut rest: std::str::Chars<'_>,
    last: std::ops::RangeInclusive<char>,
) -> std::str::Chars<'_> {
    loop {
        let before = rest.clone();
        match rest.next() {
            Some(c) if last.contains(&c) => return rest,
            Some(' '..='?') => {}
            _ => return before,
        }
    }
}

/// OSC, DCS, SOS, PM or APC up to BEL or ST. An unterminated one ends with its line, so that a stray introducer
/// cannot hide the rest of a text.
fn skip_string(mut rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    loop {
        let before = rest.clone();
        match rest.next() {
            None | Some('\u{7}' | '\u{9c}') => return rest,
            Some('\n') => return before,
            Some('\u{1b}') => {
                let mut after = rest.clone();
                return if after.next() == Some('\\') { after } else { before };
            }
            Some(_) => {}
        }
    }
}

/// Format characters that reorder, hide or join what surrounds them. Joiners and variation selectors go too:
/// terminals disagree about the width of what they make, which is how columns drift.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_escape_sequences_vanish() {
        for (hostile, inert) in [
            ("a\x1b[31;1mred\x1b[0m b", "ared b"),
            ("x\x1b]52;c;ZXZpbA==\x07y", "xy"),
            ("x\x1b]0;title\x1b\\y", "xy"),
            ("x\u{9d}8;;http://e\u{9c}link", "xlink"),
            ("x\x1bP1$r0m\x1b\\y\x1b_apc\x1b\\z", "xyz"),
            ("\x1b(Ba\x1bcb\x1b[2J\x1b[?1049hc", "abc"),
            ("\u{9b}2Jclear", "clear"),
        ] {
            assert_eq!(sanitize(hostile), inert, "{hostile:?}");
        }
    }

    #[test]
    fn an_unterminated_sequence_hides_no_later_line() {
        assert_eq!(sanitize("a\x1b]52;c;AAAA\nvisible"), "a\nvisible");
        assert_eq!(sanitize("a\x1b[12\nvisible"), "a\nvisible");
        assert_eq!(sanitize("end\x1b"), "end");
    }

    #[test]
    fn controls_bidi_and_invisible_characters_go_and_newlines_stay() {
        assert_eq!(sanitize("a\0b\x08c\r\nd\u{85}e\x7f"), "abc\nde");
        assert_eq!(sanitize("pay \u{202e}001\u{202c} \u{2066}x\u{2069}\u{200b}y\u{feff}"), "pay 001 xy");
        assert_eq!(sanitize("one\u{2028}two"), "one\ntwo");
        assert_eq!(sanitize("bad \u{fffd} byte"), "bad \u{fffd} byte");
    }

    #[test]
    fn joined_emoji_become_their_parts_and_mark_stacks_are_cut() {
        assert_eq!(sanitize("👩\u{200d}🚀 ❤\u{fe0f}"), "👩🚀 ❤");
        assert_eq!(sanitize(&format!("e{}f", "\u{301}".repeat(500))), "e\u{301}\u{301}\u{301}f");
        assert_eq!(sanitize("\u{301}start"), "start");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        for (text, n) in [
            ("plain\ttext\n東京", 0),
            ("a\x1b[31mred", 5),
            ("pay \u{202e}001\u{202c}", 2),
            ("line\r\n", 1),
            ("zero\u{200b}width\0", 2),
        ] {
            assert_eq!(hidden(text), n, "{text:?}");
        }
    }

    #[test]
    fn tabs_align_to_columns_of_four() {
        assert_eq!(sanitize("\ta\n12\tb\n1234\tc"), "    a\n12  b\n1234    c");
    }

    #[test]
    fn one_line_form_shows_breaks() {
        assert_eq!(sanitize_line("a\nb\n"), "a⏎b");
        assert_eq!(sanitize_line("plain"), "plain");
    }

    #[test]
    fn huge_lines_are_linear() {
        let line = "\x1b[1mx".repeat(300_000);
        assert_eq!(sanitize(&line).len(), 300_000);
        let open = "\x1b]".repeat(300_000);
        assert_eq!(sanitize(&open), "");
    }

    proptest! {
        #[test]
        fn output_is_inert_and_stable(text in "(\\PC|[\\x00-\\x1f\\x7f-\\u{9f}]|\\x1b[\\[\\]P_]|\u{202e}|\u{200d}){0,60}") {
            let clean = sanitize(&text);
            prop_assert!(clean.chars().all(|c| c == '\n' || (!c.is_control() && !is_invisible(c))));
            prop_assert_eq!(sanitize(&clean), clean);
        }
    }
}
