//! `planish doctor CONFIG`: what is said of each role's key, server or program.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::place::{Done, Place};

const KEY: &str = "key-that-is-never-shown-0001";

fn doctor(place: &Place, more: &[&str]) -> Done {
    let arguments = [&["doctor", "run.toml", "--json"], more].concat();
    let mut command = place.command(&arguments);
    Done::of(command.env("PLACE_KEY", KEY).env("PLANISH_HOME", place.path("home")).output().unwrap())
}

/// The checks of one role, as verdict and detail with remedy.
fn of_role(done: &Done, role: &str) -> Vec<(String, String)> {
    assert!(!done.out.contains(KEY) && !done.err.contains(KEY), "{done:?}");
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let checks = done.json();
    let of_role = checks.iter().filter(|check| check["name"] == role);
    of_role
        .map(|check| (text(check, "verdict"), text(check, "detail") + "; " + &text(check, "remedy")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_works_has_a_key_an_address_and_a_latency() {
    let place = Place::new().await;
    let keyed =
        place.config().replacen("[model.optimizer]", "api_key_env = \"PLACE_KEY\"\n[model.optimizer]", 1);
    place.write("run.toml", &keyed);
    let done = doctor(&place, &[]);
    let target = of_role(&done, "target");
    assert_eq!(target.len(), 2, "{target:?}");
    assert!(target[0].1.contains("login: key from environment variable PLACE_KEY"), "{target:?}");
    assert!(target[1].0 == "ok" && target[1].1.contains(" answers in ") && target[1].1.contains("tokens"));
    assert!(of_role(&done, "optimizer")[0].1.contains("login: none"));
    assert!(of_role(&done, "judge").is_empty(), "nobody asks one");
    assert_eq!(place.server.count(), 2);
    assert_eq!(of_role(&doctor(&place, &["--no-ping"]), "target").len(), 1);
    assert_eq!(place.server.count(), 2, "no call was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_work_is_named_with_its_remedy() {
    let place = Place::new().await;
    let missing = doctor(&place, &["-o", "model.target.api_key_env=PLACE_NO_KEY"]);
    assert_eq!(missing.code, Some(1));
    let target = of_role(&missing, "target");
    assert!(target[0].0 == "fail" && target[0].1.contains("PLACE_NO_KEY, which is not set"), "{target:?}");
    // A port of this machine that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = format!("model.optimizer.base_url=http://127.0.0.1:{free}/v1");
    let optimizer = of_role(&doctor(&place, &["-o", &away]), "optimizer");
    assert!(optimizer[1].0 == "fail" && optimizer[1].1.contains("cannot connect"), "{optimizer:?}");
    let unknown = of_role(&doctor(&place, &["-o", "model.target.dialect=klingon"]), "target");
    assert!(unknown[0].1.contains("model.target.dialect: no dialect is called \"klingon\""), "{unknown:?}");
    let broken = doctor(&place, &["-o", "train.batch_size=0"]);
    assert!(broken.json().iter().any(|check| check["name"] == "configuration" && check["verdict"] == "fail"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_found_with_its_version_or_how_to_get_it() {
    let place = Place::new().await;
    let (backend, path) = ("model.target.backend=codex_exec", "model.codex_exec_path=./no-such-codex");
    let target = of_role(&doctor(&place, &["-o", backend, "-o", path]), "target");
    assert!(target[0].0 == "fail" && target[0].1.contains("npm install -g @openai/codex"), "{target:?}");
    let program = place.path("fake-codex");
    place.write("fake-codex", "#!/bin/sh\necho codex-cli 0.171.0\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("model.codex_exec_path={}", program.display());
    let target = of_role(&doctor(&place, &["-o", backend, "-o", &path, "--no-ping"]), "target");
    assert!(target[0].0 == "ok" && target[0].1.contains("0.171.0"), "{target:?}");
}
