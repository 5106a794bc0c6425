//! The dialect table for people: the meaning of every key, then every row in effect, as a file that could be loaded.

use serde::Serialize;

use super::dialect::Dialect;
use super::dialects::Dialects;

#[derive(Serialize)]
struct File<'a> {
    dialect: &'a [Dialect],
}

/// # Errors
/// A row has no form in TOML (only rows made by hand could).
pub fn dialect_reference(table: &Dialects) -> Result<String, toml::ser::Error> {
    let mut text =
        String::from("# Keys of a dialect. What a row does not say is as in the row it is `like`.\n");
    for key in Dialect::KEYS {
        text.push_str(&format!("#\n# {}:{}\n", key.name, key.lines.concat()));
        let width = key.terms.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        for (word, meaning) in key.terms {
            text.push_str(&format!("#   {word:width$} {meaning}\n"));
        }
    }
    text.push('\n');
    text.push_str(&toml::to_string(&File { dialect: table.rows() })?);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_explains_every_key_and_reads_back_as_the_table() {
        let table = Dialects::built_in().unwrap();
        let text = dialect_reference(&table).unwrap();
        for key in Dialect::KEYS {
            assert!(text.contains(&format!("# {}: ", key.name)), "{}", key.name);
        }
        let row = serde_json::to_value(&table.rows()[0]).unwrap();
        for field in row.as_object().unwrap().keys() {
            assert!(Dialect::KEYS.iter().any(|key| key.name == field), "{field}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dialects.toml");
        std::fs::write(&file, text).unwrap();
        assert_eq!(Dialects::load(&file).unwrap(), table);
    }
}
