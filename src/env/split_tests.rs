use serde_json::{Value, json};

use super::*;

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn load(&self, config: &EnvConfig) -> Result<Splits, String> {
        let mut config = config.clone();
        for path in [&mut config.data_path, &mut config.split_dir] {
            if !path.is_empty() && !path.starts_with("demo:") {
                *path = self.0.path().join(&path).display().to_string();
            }
        }
        Splits::load(&config, 42).map_err(|error| error.to_string().replace(&self.prefix(), ""))
    }

    fn prefix(&self) -> String {
        format!("{}/", self.0.path().display())
    }
}

fn ratio(data_path: &str) -> EnvConfig {
    EnvConfig { data_path: data_path.into(), ..EnvConfig::default() }
}

fn folders() -> EnvConfig {
    EnvConfig { split_mode: SplitMode::SplitDir, split_dir: "d".into(), ..EnvConfig::default() }
}

fn rows(ids: std::ops::Range<usize>) -> String {
    json!(ids.map(|id| json!({"id": id, "q": "x"})).collect::<Vec<_>>()).to_string()
}

fn ids(splits: &Splits) -> [Vec<&str>; 3] {
    splits.parts.each_ref().map(|part| part.iter().map(|placed| placed.item.id.as_str()).collect())
}

#[test]
fn ratio_mode_cuts_as_the_original_does() {
    let files = Files::new(&[("rows.json", &rows(0..23))]);
    let splits = files.load(&ratio("rows.json")).unwrap();
    let [train, val, test] = ids(&splits);
    assert_eq!(train, ["16", "15", "2", "14", "5"]);
    assert_eq!(val, ["13", "17"]);
    assert_eq!(test[..4], ["12", "22", "6", "9"]);
    assert_eq!(test.len(), 16);
}

#[test]
fn split_seed_zero_means_the_run_seed() {
    let files = Files::new(&[("rows.json", &rows(0..23))]);
    let with = |split_seed| EnvConfig { split_seed, ..ratio("rows.json") };
    assert_eq!(ids(&files.load(&with(0)).unwrap()), ids(&files.load(&with(42)).unwrap()));
    assert_ne!(ids(&files.load(&with(0)).unwrap()), ids(&files.load(&with(1)).unwrap()));
}

#[test]
fn ratio_splits_are_written_and_read_back_as_folders() {
    let files = Files::new(&[("rows.json", &rows(0..23))]);
    let splits = files.load(&ratio("rows.json")).unwrap();
    splits.write(&files.0.path().join("d")).unwrap();
    assert_eq!(ids(&files.load(&folders()).unwrap()), ids(&splits));
    let manifest = std::fs::read_to_string(files.0.path().join("d/split_manifest.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&manifest.replace(&files.prefix(), "")).unwrap(),
        json!({"source_data_path": "rows.json", "split_mode": "ratio", "split_ratio": "2:1:7", "split_seed": 42,
               "counts": {"train": 5, "val": 2, "test": 16}})
    );
}

#[test]
fn given_and_generated_splits_are_not_written() {
    let files = Files::new(&[]);
    files.load(&ratio("demo:city")).unwrap().write(&files.0.path().join("out")).unwrap();
    assert!(!files.0.path().join("out").exists());
}

#[test]
fn a_data_folder_must_hold_one_undivided_file() {
    let load = |files: &[(&str, &str)]| Files::new(files).load(&ratio("d"));
    assert_eq!(
        load(&[("d/a.jsonl", "{\"id\":1}"), ("d/notes.md", "")]).unwrap().parts.iter().flatten().count(),
        1
    );
    assert!(
        load(&[("d/a.json", "[]"), ("d/b.jsonl", "")])
            .unwrap_err()
            .starts_with("d: holds several data files")
    );
    assert!(load(&[("d/notes.md", "")]).unwrap_err().starts_with("d: holds no .json"));
    assert!(load(&[("d/val/a.json", "[]")]).unwrap_err().contains("env.split_mode = \"split_dir\""));
}

#[test]
fn split_folders_take_the_first_json_by_name() {
    let files = Files::new(&[
        ("d/train/b.json", &rows(10..12)),
        ("d/train/a.json", &rows(0..2)),
        ("d/val/rows.jsonl", "{\"id\":\"v\"}\n"),
        ("d/val/.hidden", ""),
        ("d/test/items.json", "{\"data\":[{\"id\":\"t\"}]}"),
    ]);
    assert_eq!(ids(&files.load(&folders()).unwrap()), [vec!["0", "1"], vec!["v"], vec!["t"]]);
}

#[test]
fn split_folders_are_all_needed() {
    let missing = Files::new(&[("d/train/a.json", "[]"), ("d/test/a.json", "[]")]);
    assert!(missing.load(&folders()).unwrap_err().starts_with("d/val: is not a folder"));
    let without = Files::new(&[("d/train/a.json", "[]"), ("d/val/a.txt", ""), ("d/test/a.json", "[]")]);
    assert!(without.load(&folders()).unwrap_err().starts_with("d/val: holds no .json"));
    let unnamed = EnvConfig { split_dir: String::new(), ..folders() };
    assert!(without.load(&unnamed).unwrap_err().starts_with("env.split_dir: is empty"));
}

#[test]
fn repeated_ids_name_both_rows() {
    let twice = Files::new(&[("rows.jsonl", "{\"id\":\"1\"}\n{\"id\":2}\n{\"id\":1}\n")]);
    let message = twice.load(&ratio("rows.jsonl")).unwrap_err();
    assert!(
        message.contains("rows.jsonl, line 3")
            && message.contains("id \"1\" is already used by")
            && message.contains("rows.jsonl, line 1"),
        "{message}"
    );
    let leaked = Files::new(&[
        ("d/train/a.json", &rows(0..3)),
        ("d/val/a.json", &rows(3..5)),
        ("d/test/a.json", &rows(2..3)),
    ]);
    assert_eq!(
        leaked.load(&folders()).unwrap_err(),
        "d/test/a.json, row 1: id \"2\" is already in the train split (d/train/a.json, row 3); an item may be in one split only"
    );
}

#[test]
fn settings_are_named() {
    let files = Files::new(&[("rows.json", &rows(0..23))]);
    let bad = EnvConfig { split_ratio: "2:1".into(), ..ratio("rows.json") };
    assert!(files.load(&bad).unwrap_err().starts_with("env.split_ratio: \"2:1\" is not three positive"));
    assert!(files.load(&ratio("")).unwrap_err().starts_with("env.data_path: is empty"));
    assert!(files.load(&ratio("absent.json")).unwrap_err().starts_with("absent.json: cannot be read"));
}
