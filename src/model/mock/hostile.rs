//! Replies that try to harm a terminal or a reader.

/// Colours, cursor movement, a window title, and a clear screen.
pub const ANSI: &str = "\u{1b}[31mred\u{1b}[2J\u{1b}[1;1H\u{1b}]0;owned\u{7}plain";
/// Writes to the clipboard.
pub const OSC52: &str = "before\u{1b}]52;c;b3duZWQ=\u{7}after";
/// Direction overrides and isolates that reorder what a person reads.
pub const BIDI: &str = "safe\u{202e}evil\u{2066}x\u{2069}\u{200f}";
