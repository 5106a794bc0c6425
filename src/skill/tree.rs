//! Whatever lies at a path, told by a digest and taken away, without following a link. A folder that holds nothing but a
//! package's files has the package's digest.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::package::hex;
use crate::store::StoreError;

/// The digest of what lies at `path`; `None`: nothing.
pub fn digest(path: &Path) -> Result<Option<String>, StoreError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read", path)(error)),
    };
    let mut hasher = Sha256::new();
    if found.is_dir() {
        let mut files = Vec::new();
        walk(path, &mut files)?;
        files.sort_by(|left, right| left.0.cmp(&right.0));
        for (inside, file) in files {
            part(&mut hasher, &inside);
            leaf(&mut hasher, &file)?;
        }
    } else {
        // No package is of one file without a name.
        part(&mut hasher, b"");
        leaf(&mut hasher, path)?;
    }
    Ok(Some(hex(&hasher.finalize())))
}

/// Files, links and the like below `folder`, with their paths inside it.
fn walk(folder: &Path, out: &mut Vec<(Vec<u8>, PathBuf)>) -> Result<(), StoreError> {
    let mut open = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, inside)) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(StoreError::io("read", &folder))? {
            let entry = entry.map_err(StoreError::io("read", &folder))?;
            let name = entry.file_name();
            let mut path: Vec<u8> = inside.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            let kind = entry.file_type().map_err(StoreError::io("read", &folder))?;
            match kind.is_dir() {
                true => open.push((entry.path(), path)),
                false => out.push((path, entry.path())),
            }
        }
    }
    Ok(())
}

fn part(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn leaf(hasher: &mut Sha256, path: &Path) -> Result<(), StoreError> {
    let failed = || StoreError::io("read", path);
    let found = fs::symlink_metadata(path).map_err(failed())?;
    if found.is_symlink() {
        let target = fs::read_link(path).map_err(failed())?;
        part(hasher, b"link");
        part(hasher, target.as_os_str().as_bytes());
    } else if found.is_file() {
        part(hasher, &[u8::from(found.permissions().mode() & 0o111 != 0)]);
        let mut file = File::open(path).map_err(failed())?;
        hasher.update(found.len().to_le_bytes());
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer).map_err(failed())? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
    } else {
        part(hasher, b"other");
    }
    Ok(())
}

/// Takes away what lies at `path`, itself and not what it leads to.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(StoreError::io("remove", path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::skill::{Package, PackageFile};

    #[test]
    fn a_written_package_has_its_own_digest_and_any_change_another() {
        let file =
            |path: &str, executable| PackageFile { path: path.into(), bytes: b"x\n".to_vec(), executable };
        let package =
            Package::new(vec![file("SKILL.md", false), file("a/b.sh", true), file("a-b.md", false)]);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("s");
        package.write(&folder, &mut || Ok(())).unwrap();
        assert_eq!(Package::read(&folder).unwrap(), package);
        let whole = digest(&folder).unwrap();
        assert_eq!(whole, Some(package.digest()));
        fs::set_permissions(folder.join("a/b.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(digest(&folder).unwrap(), whole);
        fs::set_permissions(folder.join("a/b.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(digest(&folder).unwrap(), whole);
        symlink("SKILL.md", folder.join("link")).unwrap();
        assert_ne!(digest(&folder).unwrap(), whole);
        let link = place.path().join("to");
        symlink(&folder, &link).unwrap();
        assert_ne!(digest(&link).unwrap(), digest(&folder).unwrap());
        remove(&link).unwrap();
        assert!(folder.is_dir());
        remove(&folder).unwrap();
        remove(&folder).unwrap();
        assert_eq!(digest(&folder).unwrap(), None);
    }
}
