//! `planish import` of configurations, and what a run says about what this version does not have.

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_configuration_runs() {
    let place = Place::new().await;
    let url = place.server.base_url();
    place.write("base.yaml", "model: {optimizer: mock, target: mock}\ntrain: {num_epochs: 1, seed: 7}\n");
    place.write(
        "run.yaml",
        &format!(
            "_base_: base.yaml\nmodel:\n  azure_openai_endpoint: {url}\n  azure_openai_auth_mode: compat\n\
             train: {{batch_size: 4}}\nenv:\n  name: \"\"\n  split_mode: ratio\n  split_ratio: 6:3:4\n  data_path: data.json\n\
             \x20 skill_init: seed.md\n  out_root: outputs/one\n"
        ),
    );
    let done = place.planish(&[
        "import",
        "run.yaml",
        "--out",
        "new.toml",
        "--cfg-options",
        "env.workers=4",
        "rewrite_reasoning_effort=",
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("wrote new.toml; 0 settings were left out"), "{done:?}");
    assert_eq!(done.err, "", "it loads as it is");
    let text = std::fs::read_to_string(place.path("new.toml")).unwrap();
    assert!(text.contains("data_path = \"data.json\"") && text.contains("workers = 4"), "{text}");

    let again = place.planish(&["import", "run.yaml", "--out", "new.toml"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("new.toml exists; remove it or give another --out"), "{again:?}");
    let printed = place.planish(&["import", "run.yaml"]);
    assert!(printed.out.lines().any(|line| line == "[model.target]"), "{printed:?}");

    let ran =
        place.planish(&["run", "new.toml", "--foreground", "--plain", "-o", "env.scorer=normalized_exact"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.path("outputs/one/best_skill.md").is_file(), "env.out_root is the run's folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_sources_are_refused() {
    let place = Place::new().await;
    place.write("loop.yaml", "_base_: loop.yaml\n");
    place.write("lost.yaml", "_base_: gone.yaml\n");
    place.write("bad.yaml", "train: {batch_size: x}\n");
    for (source, more, expected) in [
        ("nothing.yaml", None, "nothing.yaml: no such file"),
        ("loop.yaml", None, "loop.yaml: its _base_ chain comes back to it"),
        ("lost.yaml", None, "gone.yaml: no such file (the _base_ of lost.yaml)"),
        ("bad.yaml", None, "bad.yaml:1: train.batch_size: a text is no whole number"),
        ("run.toml", None, "run.toml:"),
        ("bad.yaml", Some("oops"), "--cfg-options oops: no `=`"),
    ] {
        let mut arguments = vec!["import", source];
        arguments.extend(more.iter().flat_map(|option| ["--cfg-options", option]));
        let done = place.planish(&arguments);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{done:?}");
        assert!(done.err.contains(expected), "{expected}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_programs_and_benchmarks_of_another_version_are_refused_before_anything_is_left() {
    let place = Place::new().await;
    for (set, expected) in [
        ("model.codex_exec_path=./none", "model.target: cannot find the program ./none; install it with"),
        ("env.name=officeqa", "the benchmark officeqa is not part of this version"),
    ] {
        let role = ["model.target.backend=codex_exec", "model.optimizer.backend=codex_exec"];
        let mut arguments = vec!["run", "run.toml", "--name", "bad", "--foreground", "--plain", "-o", set];
        if set.starts_with("model") {
            arguments.extend(role.iter().flat_map(|role| ["-o", role]));
        }
        let done = place.planish(&arguments);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains(expected), "{expected}: {done:?}");
        assert!(!place.path("runs/bad").exists());
    }
}
