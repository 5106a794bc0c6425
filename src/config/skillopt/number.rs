//! Values as SkillOpt reads them from an override (`K=V`): booleans by word, then Python's number syntax, else text.
//! Must not know keys.

use regex::Regex;

use super::node::Node;

/// An override's text as a value: true/yes and false/no in any case, else a whole number, else a number, else text.
pub fn cast_value(text: &str) -> Node {
    match text.to_lowercase().as_str() {
        "true" | "yes" => return Node::Bool(true),
        "false" | "no" => return Node::Bool(false),
        _ => {}
    }
    if let Some(number) = python_int(text) {
        return Node::Int(number);
    }
    python_float(text).map_or_else(|| Node::Text(text.to_owned()), Node::Float)
}

/// Python's `int(text)`; `None` also for what is beyond 64 bits.
fn python_int(text: &str) -> Option<i64> {
    let digits = plain_digits(text)?;
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let whole = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    if whole { digits.parse().ok() } else { None }
}

/// Python's `float(text)`.
fn python_float(text: &str) -> Option<f64> {
    let digits = plain_digits(text)?;
    // Rust reads all that Python reads, and the same words for what is no finite number.
    digits.parse().ok()
}

/// The text trimmed, with every decimal digit of Unicode as an ASCII digit and without underscores, which may only
/// stand between digits.
fn plain_digits(text: &str) -> Option<String> {
    let text = ascii_digits(text.trim());
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| digit(at.checked_sub(1)) && digit(Some(at + 1));
    let well_placed = bytes.iter().enumerate().all(|(at, byte)| *byte != b'_' || between(at));
    (well_placed && !text.is_empty()).then(|| text.replace('_', ""))
}

fn ascii_digits(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let Ok(decimal) = Regex::new(r"\A\p{Nd}\z") else { return text.to_owned() };
    let is_digit =
        |code: u32| char::from_u32(code).is_some_and(|c| decimal.is_match(c.encode_utf8(&mut [0; 4])));
    let value = |c: char| {
        let code = c as u32;
        // Decimal digits come in blocks of ten from zero to nine, one block after another.
        is_digit(code).then(|| (1..=code).take_while(|back| is_digit(code - back)).count() % 10)
    };
    text.chars().map(|c| value(c).and_then(|digit| char::from_digit(digit as u32, 10)).unwrap_or(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, expected) in [
            ("1_000", Node::Int(1000)),
            ("1__0", Node::Text("1__0".into())),
            ("_1", Node::Text("_1".into())),
            (" 5\n", Node::Int(5)),
            ("-0", Node::Int(0)),
            ("+-1", Node::Text("+-1".into())),
            ("٣٤", Node::Int(34)),
            ("𝟟", Node::Int(7)),
            ("1e3", Node::Float(1000.0)),
            (".5", Node::Float(0.5)),
            ("1_0.5", Node::Float(10.5)),
            ("Infinity", Node::Float(f64::INFINITY)),
            ("99999999999999999999", Node::Float(1e20)),
            ("", Node::Text(String::new())),
            ("x", Node::Text("x".into())),
        ] {
            assert_eq!(cast_value(text), expected, "{text:?}");
        }
    }
}
