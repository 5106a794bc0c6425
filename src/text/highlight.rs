//! What each piece of a Markdown document is, code fenced in it included: kinds, not colours. A line is read when it is
//! asked for, with the block of lines around it and never the whole document. Input is sanitised text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

/// Longer lines, and longer blocks, stay plain: what nobody reads as code is not worth the time.
const LINE: usize = 400;
const BLOCK: usize = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    #[default]
    Text,
    Heading,
    Strong,
    Code,
    Keyword,
    String,
    Comment,
    Number,
}

/// Beginnings of scope names, and what they are. The innermost scope of a piece that is named here counts.
const SCOPES: [(&str, Syntax); 15] = [
    ("markup.heading", Syntax::Heading),
    ("markup.bold", Syntax::Strong),
    ("markup.italic", Syntax::Strong),
    ("punctuation.definition.list_item", Syntax::Keyword),
    ("markup.underline.link", Syntax::String),
    ("comment", Syntax::Comment),
    ("constant.numeric", Syntax::Number),
    ("constant.language", Syntax::Number),
    ("string", Syntax::String),
    ("keyword", Syntax::Keyword),
    ("storage", Syntax::Keyword),
    ("entity.name.tag", Syntax::Keyword),
    ("entity.name.function", Syntax::Strong),
    ("markup.raw", Syntax::Code),
    ("source", Syntax::Code),
];

/// The grammars; loading them takes a moment.
pub struct Grammars {
    set: SyntaxSet,
}

impl Grammars {
    pub fn load() -> Self {
        let grammars = Self { set: SyntaxSet::load_defaults_newlines() };
        // Patterns are compiled when first used: better here than in a frame.
        let warm = "- *b* **c** `d` [e](f)\n# a\n1. g\n> h <!-- i -->\n";
        Highlighted::new(warm).line(&grammars, 0);
        grammars
    }

    fn markdown(&self) -> Option<&SyntaxReference> {
        self.set.find_syntax_by_name("Markdown")
    }
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Grammars")
    }
}

/// A document whose lines are read as they come into view.
#[derive(Debug, Default)]
pub struct Highlighted {
    lines: Vec<String>,
    /// First line of each block: what comes before a block does not change how it reads.
    blocks: Vec<usize>,
    read: RefCell<HashMap<usize, Vec<Pieces>>>,
}

/// What a line is made of: kinds of pieces and how many bytes each is long.
pub type Pieces = Vec<(Syntax, usize)>;

impl Highlighted {
    pub fn new(text: &str) -> Self {
        let lines: Vec<String> = super::lines(text).into_iter().map(str::to_owned).collect();
        let blocks = blocks(&lines);
        Self { lines, blocks, read: RefCell::default() }
    }

    /// The pieces of line `number`, from 0; none for a plain line.
    pub fn line(&self, grammars: &Grammars, number: usize) -> Pieces {
        let Some(block) = self.blocks.partition_point(|first| *first <= number).checked_sub(1) else {
            return Pieces::new();
        };
        let first = self.blocks[block];
        let end = self.blocks.get(block + 1).copied().unwrap_or(self.lines.len());
        let mut read = self.read.borrow_mut();
        let pieces = read.entry(block).or_insert_with(|| pieces_of(grammars, &self.lines[first..end]));
        pieces.get(number - first).cloned().unwrap_or_default()
    }
}

/// Blocks begin after a blank line outside of a fence, and at a fence.
fn blocks(lines: &[String]) -> Vec<usize> {
    let mut blocks = Vec::new();
    let mut fence: Option<&str> = None;
    let mut begin = true;
    for (number, line) in lines.iter().enumerate() {
        let mark = fence_of(line);
        let opens = fence.is_none() && mark.is_some();
        if begin || opens {
            blocks.push(number);
        }
        begin = false;
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                begin = true;
            }
            (None, None) => begin = line.trim().is_empty(),
            (Some(_), _) => {}
        }
    }
    blocks
}

fn pieces_of(grammars: &Grammars, lines: &[String]) -> Vec<Pieces> {
    let Some(first) = lines.first().filter(|line| fence_of(line).is_some()) else {
        return grammars.markdown().map_or_else(Vec::new, |grammar| read(grammars, grammar, lines));
    };
    let fence = |line: &String| vec![(Syntax::Code, line.len())];
    let mut out = vec![fence(first)];
    let closed = lines.len() > 1 && lines.last().is_some_and(|last| fence_of(last) == fence_of(first));
    let inside = &lines[1..lines.len() - usize::from(closed)];
    let language = first.trim().trim_start_matches(['`', '~']).split_whitespace().next();
    let grammar = language.and_then(|language| grammars.set.find_syntax_by_token(language));
    let mut read = grammar.map_or_else(Vec::new, |grammar| read(grammars, grammar, inside));
    // What is nothing in particular is still code.
    for piece in read.iter_mut().flatten().filter(|piece| piece.0 == Syntax::Text) {
        piece.0 = Syntax::Code;
    }
    out.append(&mut read);
    out.extend(lines[out.len()..].iter().map(fence));
    out
}

/// The mark that opens or closes a fence.
fn fence_of(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark))
}

fn read(grammars: &Grammars, grammar: &SyntaxReference, lines: &[String]) -> Vec<Pieces> {
    let mut out = Vec::new();
    let (mut state, mut scopes) = (ParseState::new(grammar), ScopeStack::new());
    for line in lines.iter().take(BLOCK).take_while(|line| line.len() <= LINE) {
        let Ok(changes) = state.parse_line(line, &grammars.set) else { break };
        let mut pieces = Pieces::new();
        let mut at = 0;
        let mut piece = |range: Range<usize>, scopes: &ScopeStack| {
            let (kind, length) = (kind_of(scopes), range.len());
            match pieces.last_mut() {
                Some((last, so_far)) if *last == kind => *so_far += length,
                _ if length > 0 => pieces.push((kind, length)),
                _ => {}
            }
        };
        for (place, change) in changes {
            piece(at..place, &scopes);
            at = place;
            if scopes.apply(&change).is_err() {
                return out;
            }
        }
        piece(at..line.len(), &scopes);
        out.push(pieces);
    }
    out
}

fn kind_of(scopes: &ScopeStack) -> Syntax {
    let names = scopes.scopes.iter().rev().map(|scope| scope.build_string());
    let known = |name: String| {
        SCOPES.into_iter().find(|(prefix, _)| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    names.into_iter().find_map(known).map_or(Syntax::Text, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static GRAMMARS: LazyLock<Grammars> = LazyLock::new(Grammars::load);

    /// The words of a line that are of a kind.
    fn words(text: &str, line: usize, kind: Syntax) -> Vec<String> {
        let document = Highlighted::new(text);
        let mut at = 0;
        let mut out = Vec::new();
        for (found, length) in document.line(&GRAMMARS, line) {
            if found == kind {
                out.push(document.lines[line][at..at + length].trim().to_owned());
            }
            at += length;
        }
        out
    }

    const TEXT: &str = "# Rules\n\n- be **short** and use `code`\n\n```python\ndef f():\n    return 'x'  # 1\n```\n\nDone 5.\n";

    #[test]
    fn pieces_of_markdown_and_of_fenced_code() {
        assert_eq!(words(TEXT, 0, Syntax::Heading), ["# Rules"]);
        assert_eq!(words(TEXT, 2, Syntax::Strong), ["**short**"]);
        assert_eq!(words(TEXT, 2, Syntax::Code), ["`code`"]);
        assert_eq!(words(TEXT, 2, Syntax::Keyword), ["-"]);
        assert!(words(TEXT, 5, Syntax::Keyword).contains(&"def".to_owned()));
        assert_eq!(words(TEXT, 6, Syntax::String), ["'x'"]);
        assert_eq!(words(TEXT, 6, Syntax::Comment), ["# 1"]);
        assert_eq!(words(TEXT, 9, Syntax::Text), ["Done 5."]);
    }

    #[test]
    fn only_the_block_in_view_is_read() {
        let text = format!("{TEXT}\n{}", "- more\n\n".repeat(10_000));
        let document = Highlighted::new(&text);
        document.line(&GRAMMARS, 5_000);
        assert_eq!(document.read.borrow().len(), 1);
        assert!(document.line(&GRAMMARS, 1_000_000).is_empty());
        assert!(Highlighted::new("").line(&GRAMMARS, 0).is_empty());
    }

    #[test]
    fn every_line_is_covered_or_plain() {
        for text in [TEXT, "```\nopen\n", "~~~\n```\n~~~\nx\n", "a\n\n\n\nb", "日本 **語** `é`\n"] {
            let document = Highlighted::new(text);
            for (number, line) in document.lines.iter().enumerate() {
                let pieces = document.line(&GRAMMARS, number);
                let sum: usize = pieces.iter().map(|piece| piece.1).sum();
                assert_eq!(sum, line.len(), "{line:?}");
                let mut at = 0;
                for (_, length) in pieces {
                    assert!(line.is_char_boundary(at), "{line:?}");
                    at += length;
                }
            }
        }
        assert!(Highlighted::new(&"x".repeat(5_000)).line(&GRAMMARS, 0).is_empty());
        let odd = Highlighted::new("```no-such-language\nx = 1\n```\n");
        assert_eq!(odd.line(&GRAMMARS, 1), [(Syntax::Code, 6)]);
    }
}
