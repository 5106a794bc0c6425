//! What came with a skill that was read from a folder, in words and as data. Paths and sizes only, no content.

use serde_json::{Value, json};

use super::describe::{bytes, count};
use super::table::markdown_table;
use crate::domain::SkillFolder;
use crate::skill::FrontMatter;

/// As data: the skill's name and the files that the run carries.
pub fn skill_folder_summary(folder: &SkillFolder) -> Value {
    json!({ "name": name(folder), "front_matter": folder.front_matter.is_some(), "files": folder.files })
}

/// On one line: `cities: front matter and 2 files (12K)`.
pub fn skill_folder_line(folder: &SkillFolder) -> String {
    let size: u64 = folder.files.iter().map(|file| file.bytes).sum();
    let mut parts = Vec::new();
    if folder.front_matter.is_some() {
        parts.push("front matter".to_owned());
    }
    if !folder.files.is_empty() {
        parts.push(format!("{} ({})", count(folder.files.len(), "file"), bytes(size)));
    }
    let parts = if parts.is_empty() { "nothing".to_owned() } else { parts.join(" and ") };
    match name(folder) {
        Some(name) => format!("{name}: {parts}"),
        None => parts,
    }
}

/// The carried files as a table; nothing without any.
pub(super) fn skill_folder_rows(folder: &SkillFolder) -> Vec<String> {
    let mut out =
        vec![format!("Carried as they were, besides the skill's body: {}.", skill_folder_line(folder))];
    let row = |file: &crate::domain::CarriedFile| {
        vec![file.path.clone(), file.bytes.to_string(), file.sha256.chars().take(16).collect()]
    };
    let rows: Vec<Vec<String>> = folder.files.iter().map(row).collect();
    if !rows.is_empty() {
        out.push(String::new());
        out.extend(markdown_table(&["File", "Bytes", "SHA-256"], &rows));
    }
    out
}

fn name(folder: &SkillFolder) -> Option<String> {
    let (matter, _) = FrontMatter::parse(folder.front_matter.as_deref()?);
    matter.text("name").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CarriedFile;

    #[test]
    fn a_folder_is_told_without_its_content() {
        let file =
            CarriedFile { path: "a|b.md".into(), bytes: 2048, sha256: "ab".repeat(32), executable: false };
        let mut folder = SkillFolder {
            front_matter: Some("name: cities\nlicense: secret words\n".into()),
            files: vec![file],
        };
        assert_eq!(skill_folder_line(&folder), "cities: front matter and 1 file (2K)");
        let told = skill_folder_summary(&folder);
        assert_eq!((&told["name"], &told["files"][0]["path"]), (&json!("cities"), &json!("a|b.md")));
        assert!(!told.to_string().contains("secret words"));
        let table = skill_folder_rows(&folder).join("\n");
        assert!(table.contains("| a\\|b.md | 2048 | abababababababab |"), "{table}");
        folder.front_matter = None;
        assert_eq!(skill_folder_line(&folder), "1 file (2K)");
        assert_eq!(skill_folder_line(&SkillFolder::default()), "nothing");
    }
}
