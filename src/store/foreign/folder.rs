//! Read-only, bounded access to a foreign folder: nothing outside of it is looked at, whatever names and links say.
//! Everything odd that is met becomes one note with its file and line. Must not know what the files mean.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::python_json;

/// Larger files are left out.
const LARGEST: u64 = 256 << 20;
/// Notes kept of one file; more would hide those of the others.
const NOTES_PER_FILE: usize = 20;

/// Something in the folder that could not be taken as it is, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// Relative to the folder.
    pub file: String,
    /// From 1; `None` when the whole file is meant.
    pub line: Option<usize>,
    pub what: String,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// An opened folder and what was odd in it so far.
#[derive(Debug)]
pub struct Folder {
    /// Without links, so that what lies inside can be told.
    root: PathBuf,
    oddities: Vec<Oddity>,
    counts: HashMap<String, usize>,
}

impl Folder {
    /// # Errors
    /// It is not there, is no folder, or cannot be looked at.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let root = path.canonicalize()?;
        if !fs::metadata(&root)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, oddities: Vec::new(), counts: HashMap::new() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything noted so far.
    pub fn into_oddities(self) -> Vec<Oddity> {
        self.oddities
    }

    pub fn note(&mut self, file: &str, line: Option<usize>, what: impl Into<String>) {
        let count = self.counts.entry(file.to_owned()).or_default();
        *count += 1;
        let what = match (*count).cmp(&(NOTES_PER_FILE + 1)) {
            std::cmp::Ordering::Less => what.into(),
            std::cmp::Ordering::Equal => "more of the kind; not listed".into(),
            std::cmp::Ordering::Greater => return,
        };
        self.oddities.push(Oddity { file: file.to_owned(), line, what });
    }

    /// Whether a regular file of that name lies in the folder.
    pub fn has(&self, name: &str) -> bool {
        self.resolve(name).is_some_and(|path| path.is_file())
    }

    /// Last change in Unix milliseconds.
    pub fn changed_at(&self, name: &str) -> Option<u64> {
        let changed = fs::metadata(self.resolve(name)?).ok()?.modified().ok()?;
        u64::try_from(changed.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    }

    /// The text of a file; `None` when it is absent or was noted as unusable. Bytes that are no UTF-8 are replaced.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let path = self.resolve(name)?;
        // Opening a pipe or a device would wait or do worse.
        let refused = match fs::metadata(&path) {
            Ok(meta) if !meta.is_file() => Some("is no regular file; left out".to_owned()),
            Ok(meta) if meta.len() > LARGEST => {
                Some(format!("is larger than {} MiB; left out", LARGEST >> 20))
            }
            Ok(_) => None,
            Err(error) => Some(format!("cannot be read ({error}); left out")),
        };
        let bytes = match refused {
            None => fs::read(&path).map_err(|error| format!("cannot be read ({error}); left out")),
            Some(why) => Err(why),
        };
        match bytes.map(String::from_utf8) {
            Ok(Ok(text)) => Some(text),
            Ok(Err(error)) => {
                let line =
                    memchr::memchr_iter(b'\n', &error.as_bytes()[..error.utf8_error().valid_up_to()]).count();
                self.note(name, Some(line + 1), "holds bytes that are no UTF-8; they are replaced");
                Some(String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
            Err(why) => {
                self.note(name, None, why);
                None
            }
        }
    }

    /// A JSON file; `None` when it is absent or was noted as torn.
    pub fn json(&mut self, name: &str) -> Option<Value> {
        let text = self.text(name)?;
        python_json::value(&text)
            .map_err(|error| self.note(name, Some(error.line()), format!("is no JSON ({error}); left out")))
            .ok()
    }

    /// Names of what lies in a subfolder, sorted; empty when it is not there.
    pub fn names(&mut self, name: &str) -> Vec<String> {
        let Some(path) = self.resolve(name) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Where a name leads, if it is there and inside the folder.
    fn resolve(&self, name: &str) -> Option<PathBuf> {
        let name = Path::new(name);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let path = self.root.join(name).canonicalize().ok()?;
        path.starts_with(&self.root).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        let folder = Folder::open(&dir.path().join("in")).unwrap();
        (dir, folder)
    }

    #[test]
    fn nothing_outside_is_read() {
        let (dir, mut folder) = folder();
        fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), dir.path().join("in/link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("in/up")).unwrap();
        fs::write(dir.path().join("in/own"), "own").unwrap();
        std::os::unix::fs::symlink("own", dir.path().join("in/alias")).unwrap();
        let absolute = dir.path().join("secret").display().to_string();
        for name in ["../secret", "link", "up/secret", "./own", "a/../own", "", absolute.as_str(), "a\0b"] {
            assert_eq!(folder.text(name), None, "{name:?}");
            assert!(!folder.has(name), "{name:?}");
        }
        assert_eq!(folder.text("alias").as_deref(), Some("own"));
        assert_eq!(folder.names("up"), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_read_is_one_note_with_its_line() {
        let (dir, mut folder) = folder();
        let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join("in").join(name), bytes).unwrap();
        fs::create_dir(dir.path().join("in/dir")).unwrap();
        put("torn.json", b"[\n{\"a\": 1},\n{\"b\"");
        put("latin.txt", b"one\ntw\xf6\n");
        put("empty.json", b"");
        put("nan.json", b"{\"a\": NaN}");
        assert_eq!(folder.json("absent.json"), None);
        assert_eq!(folder.json("torn.json"), None);
        assert_eq!(folder.json("empty.json"), None);
        assert_eq!(folder.text("dir"), None);
        assert_eq!(folder.text("latin.txt").as_deref(), Some("one\ntw\u{fffd}\n"));
        assert_eq!(folder.json("nan.json"), Some(serde_json::json!({"a": "NaN"})));
        let told: Vec<String> = folder.into_oddities().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].starts_with("torn.json:3: is no JSON"), "{told:?}");
        assert!(told[1].starts_with("empty.json:1: is no JSON"), "{told:?}");
        assert_eq!(told[2], "dir: is no regular file; left out");
        assert_eq!(told[3], "latin.txt:2: holds bytes that are no UTF-8; they are replaced");
    }

    #[test]
    fn one_bad_file_does_not_drown_the_notes_of_others() {
        let (_dir, mut folder) = folder();
        for line in 1..1000 {
            folder.note("bad", Some(line), "odd");
        }
        folder.note("other", None, "odd");
        let told = folder.into_oddities();
        assert_eq!(told.len(), NOTES_PER_FILE + 2);
        assert_eq!(told[NOTES_PER_FILE].what, "more of the kind; not listed");
    }
}
