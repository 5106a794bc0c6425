//! Writing files so that a reader, or a crash at any instant, sees the old content or the new one, never a part.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::StoreError;

/// Replaces `path` by `bytes`: temporary file in the same folder, fsync, rename, fsync of the folder. The folder
/// must exist.
///
/// # Errors
/// The disk's; the old content is then still there.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write(path, bytes, true)
}

/// Makes `path` hold `bytes` and leaves it alone when it does already. For projections: they can be made again
/// from the journal, so `durable` may be false for the many small ones.
pub(super) fn write_if_changed(path: &Path, bytes: &[u8], durable: bool) -> Result<(), StoreError> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
    }
    write(path, bytes, durable)
}

fn write(path: &Path, bytes: &[u8], durable: bool) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = || StoreError::io("write", path);
    // 0666 is narrowed by the umask, as for any file a program creates.
    let mut temporary = tempfile::Builder::new()
        .prefix(".tmp-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(failed())?;
    temporary.write_all(bytes).map_err(failed())?;
    if durable {
        temporary.as_file().sync_all().map_err(failed())?;
    }
    temporary.persist(path).map_err(|error| failed()(error.error))?;
    if durable { sync_folder(folder) } else { Ok(()) }
}

/// Makes the names in a folder durable.
///
/// # Errors
/// The disk's.
pub fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::io("sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_whole_files_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        atomic_write(&path, b"one").unwrap();
        atomic_write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_content_and_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        let told = atomic_write(&path, b"x").unwrap_err().to_string();
        assert!(told.contains(&path.display().to_string()), "{told}");
        assert_eq!(names(folder.path()), ["a"], "no temporary file stays behind");
    }

    #[test]
    fn an_equal_file_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/a");
        write_if_changed(&path, b"one", false).unwrap();
        let file = File::open(&path).unwrap();
        write_if_changed(&path, b"one", true).unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_eq!(file.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
        write_if_changed(&path, b"two", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn a_full_disk_says_so() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let told = StoreError::io("write", Path::new("runs/a/x"))(full).to_string();
        assert!(told.starts_with("disk full: cannot write runs/a/x"), "{told}");
        assert!(told.contains("free some space"), "{told}");
    }
}
