use std::fs::{Permissions, set_permissions};

use super::*;

async fn read(source: KeySource) -> Result<String, String> {
    let env = |name: &str| match name {
        "GOOD" => Some(" good-key-0001\n".to_owned()),
        "BLANK" => Some("  ".to_owned()),
        "SHORT" => Some("abc".to_owned()),
        "TWO" => Some("first-key-0001\nsecond-key-0002".to_owned()),
        _ => None,
    };
    let key = source.read("model.target", &env, &["HIDDEN_FROM_COMMANDS".to_owned()]).await;
    key.map(|key| key.secret.expose_secret().to_owned()).map_err(|error| error.to_string())
}

fn shell(script: &str) -> KeySource {
    KeySource::Command(["sh", "-c", script].map(str::to_owned).to_vec())
}

#[tokio::test]
async fn keys_come_from_variables() {
    let variable = |name: &str| KeySource::Variable(name.to_owned());
    assert_eq!(read(variable("GOOD")).await.as_deref(), Ok("good-key-0001"));
    for (name, expected) in [
        ("MISSING", "model.target.api_key_env names the environment variable MISSING, which is not set"),
        ("BLANK", "BLANK, which is not set"),
        (
            "SHORT",
            "model.target.api_key_env (environment variable SHORT): the key has fewer than 8 characters",
        ),
        ("TWO", "it holds more than one word or line"),
    ] {
        let told = read(variable(name)).await.unwrap_err();
        assert!(told.contains(expected) && !told.contains("abc") && !told.contains("first"), "{told}");
    }
}

#[tokio::test]
async fn a_file_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "file-key-0001\n").unwrap();
    set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let told = read(KeySource::File(file.clone())).await.unwrap_err();
    let remedy = format!("others may read it (mode 640); run `chmod 600 {}`", file.display());
    assert!(told.starts_with("model.target.api_key_file") && told.ends_with(&remedy), "{told}");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(
        read(KeySource::File(link.clone())).await.unwrap_err().contains("mode 640"),
        "what it leads to counts"
    );
    set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(KeySource::File(link)).await.as_deref(), Ok("file-key-0001"));
    assert!(read(KeySource::File(folder.path().into())).await.unwrap_err().contains("it is no file"));
    std::fs::write(&file, "").unwrap();
    assert!(read(KeySource::File(file)).await.unwrap_err().contains("there is nothing in it"));
}

#[tokio::test]
async fn a_command_prints_the_key_and_its_complaint_never_shows_one() {
    assert_eq!(
        read(shell("echo command-key-0001; echo chatter >&2")).await.as_deref(),
        Ok("command-key-0001")
    );
    let told = read(shell("echo 'the vault is locked' >&2; exit 3")).await.unwrap_err();
    assert!(told.contains("model.target.api_key_command (command sh): it ended with"), "{told}");
    assert!(told.contains("exit status: 3") && told.contains("the vault is locked"), "{told}");
    let told =
        read(shell("echo command-key-0001; echo key is command-key-0001 >&2; exit 1")).await.unwrap_err();
    assert!(!told.contains("command-key"), "{told}");
    let told = read(shell("echo 'leaked sk-abcdefgh12345678' >&2; exit 1")).await.unwrap_err();
    assert!(told.contains("leaked [redacted]"), "{told}");
    let nowhere = KeySource::Command(vec!["no-such-program-anywhere".into()]);
    assert!(read(nowhere).await.unwrap_err().contains("cannot start it"));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_asks_is_given_up() {
    // The clock is moved as soon as everything waits.
    let told = read(shell("exec sleep 1000")).await.unwrap_err();
    assert!(told.contains("no end within 10 s"), "{told}");
}

#[test]
fn a_key_is_named_in_one_way() {
    let config =
        RoleConfig { api_key_env: "A".into(), api_key_command: vec!["b".into()], ..RoleConfig::default() };
    let told = KeySource::of("model.judge", &config, Path::new(".")).unwrap_err().to_string();
    assert_eq!(told, "model.judge names a key in several ways (api_key_env, api_key_command); keep one");
}
