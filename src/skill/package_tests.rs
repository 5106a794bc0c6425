//! What is read of a folder and what is refused.

use std::os::unix::fs::symlink;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn refused(folder: &Path) -> String {
    Package::read(folder).unwrap_err().to_string()
}

#[test]
fn files_are_read_by_path_with_their_right_to_run() {
    let folder =
        folder(&[("SKILL.md", "a"), ("scripts/x.sh", "b"), ("references/r.md", "c"), (".git/config", "no")]);
    fs::set_permissions(folder.path().join("scripts/x.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let package = Package::read(folder.path()).unwrap();
    let rows: Vec<_> = package.files().iter().map(|file| (file.path.as_str(), file.executable)).collect();
    assert_eq!(rows, [("SKILL.md", false), ("references/r.md", false), ("scripts/x.sh", true)]);
    assert_eq!((package.document(), package.bytes()), (Some(&b"a"[..]), 3));
    assert!(
        package.has("scripts")
            && package.has("scripts/")
            && package.has("scripts/x.sh")
            && !package.has("script")
    );
    let (_, findings) = Package::survey(folder.path());
    assert!(findings.len() == 1 && !findings[0].is_error() && findings[0].file == ".git", "{findings:?}");
    assert_eq!(package.with_document(b"z".to_vec()).document(), Some(&b"z"[..]));
}

#[test]
fn links_are_not_followed_wherever_they_lead() {
    let outside = folder(&[("secret", "s")]);
    let skill = folder(&[("SKILL.md", "a"), ("b.md", "b")]);
    symlink(outside.path().join("secret"), skill.path().join("out.md")).unwrap();
    symlink(outside.path(), skill.path().join("references")).unwrap();
    symlink("b.md", skill.path().join("in.md")).unwrap();
    let told = refused(skill.path());
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(told.contains("out.md: error: is a symbolic link to"), "{told}");
    let link = outside.path().join("link");
    symlink(skill.path(), &link).unwrap();
    assert!(refused(&link).contains("/.: error: is a symbolic link"));
    let document = folder(&[]);
    symlink(skill.path().join("b.md"), document.path().join("SKILL.md")).unwrap();
    assert!(refused(document.path()).contains("SKILL.md: error: is a symbolic link"));
}

#[test]
fn limits_hold_before_the_memory_does() {
    let skill = folder(&[("SKILL.md", "a")]);
    for n in 0..MOST_FILES {
        fs::write(skill.path().join(format!("f{n}")), "").unwrap();
    }
    assert!(refused(skill.path()).contains("holds more than 256 files"));

    let skill = folder(&[("SKILL.md", "a")]);
    File::create(skill.path().join("big")).unwrap().set_len(1 << 40).unwrap();
    assert!(refused(skill.path()).contains("holds more than 10485760 bytes"));

    let skill = folder(&[]);
    File::create(skill.path().join("SKILL.md")).unwrap().set_len(LARGEST_DOCUMENT + 1).unwrap();
    assert!(refused(skill.path()).contains("SKILL.md: error: is larger than 1048576 bytes"));

    let skill = folder(&[("SKILL.md", "a"), ("1/2/3/4/5/6/7/8/9/x", "deep")]);
    assert!(refused(skill.path()).contains("more than 8 folders deep"));
}

#[test]
fn what_is_no_skill_says_what_it_is() {
    let skill = folder(&[("skill.md", "a")]);
    assert!(
        refused(skill.path())
            .contains("skill.md: error: the document's name is in other letters; rename it SKILL.md")
    );
    let file = skill.path().join("skill.md");
    assert!(refused(&file).contains("is no folder"));
    assert!(refused(&skill.path().join("none")).contains("cannot be read"));
    assert!(refused(folder(&[("x", "")]).path()).contains("holds no SKILL.md"));
    let odd = folder(&[("SKILL.md", "a"), ("a\nb", "x"), ("c\\d", "x")]);
    let told = refused(odd.path());
    assert!(told.contains("is no plain text") && told.contains("not every system takes"), "{told}");
    let pipe = folder(&[("SKILL.md", "a")]);
    let path = pipe.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert!(refused(pipe.path()).contains("neither a file nor a folder"));
}
