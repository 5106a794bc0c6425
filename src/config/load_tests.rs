use std::path::{Path, PathBuf};

use super::*;
use crate::domain::TimeoutPolicy;

/// A folder with the given files; `demo` fills in what every config needs.
pub struct Folder(tempfile::TempDir);

const DEMO: &str = "[model.target]\nbackend = \"local\"\n[model.optimizer]\nbackend = \"edit_search\"\n";

impl Folder {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn load(&self, overrides: &[&str]) -> Result<Loaded, ConfigErrors> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Config::load(&self.path("run.toml"), &overrides)
    }

    /// The complaints, one per line, without the folder.
    pub fn told(&self, overrides: &[&str]) -> Vec<String> {
        let errors = self.load(overrides).unwrap_err().to_string();
        let folder = format!("{}/", self.0.path().display());
        errors.lines().map(|line| line.replace(&folder, "")).collect()
    }
}

pub fn demo(rest: &str) -> Folder {
    Folder::new(&[("run.toml", &format!("{DEMO}[env]\ndata_path = \"demo:city\"\n{rest}"))])
}

#[test]
fn registry_and_settings_have_the_same_keys() {
    fn leaves(prefix: &str, value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) if !map.is_empty() => {
                for (name, inner) in map {
                    let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    leaves(&path, inner, into);
                }
            }
            _ => into.push(prefix.to_owned()),
        }
    }
    let mut settings = Vec::new();
    leaves("", &serde_json::to_value(Config::default()).unwrap(), &mut settings);
    let mut registry: Vec<_> = keys().map(|key| key.path.to_owned()).collect();
    settings.sort();
    registry.sort();
    assert_eq!(registry, settings);
    registry.dedup();
    assert_eq!(registry.len(), settings.len(), "a key is listed twice");
}

#[test]
fn registry_choices_are_the_variants_of_the_enums() {
    for key in keys() {
        let Kind::Choice(allowed) = key.kind else { continue };
        let mut tree = serde_json::to_value(Config::default()).unwrap();
        *tree.pointer_mut(&format!("/{}", key.path.replace('.', "/"))).unwrap() = "?".into();
        let error = serde_json::from_value::<Config>(tree).unwrap_err().to_string();
        let variants: Vec<_> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(variants, allowed, "{}: {error}", key.path);
    }
}

#[test]
fn defaults_pass_their_own_checks() {
    let config = Config::default();
    let table = toml::Table::try_from(&config).unwrap();
    for key in keys() {
        let value = key.path.split('.').try_fold(toml::Value::Table(table.clone()), |value, part| {
            value.as_table().and_then(|table| table.get(part)).cloned()
        });
        if let Some(value) = value {
            super::value::check(key, value).unwrap_or_else(|complaint| panic!("{}: {complaint:?}", key.path));
        }
    }
}

#[test]
fn layers_win_in_order_and_keep_their_origins() {
    let folder = Folder::new(&[
        (
            "base/base.toml",
            &format!("{DEMO}[env]\nskill_init = \"seed.md\"\n[train]\nseed = 1\nbatch_size = 5\n"),
        ),
        ("base/seed.md", "hello"),
        ("run.toml", "inherits = \"base/base.toml\"\n[env]\ndata_path = \"items.json\"\n[train]\nseed = 2\n"),
        ("items.json", "[]"),
    ]);
    let loaded = folder.load(&["train.accumulation = 3"]).unwrap();
    assert_eq!(loaded.config.train.seed, 2);
    assert_eq!(loaded.config.train.batch_size, 5);
    assert_eq!(loaded.config.train.accumulation, 3);
    assert_eq!(loaded.config.train.num_epochs, 4);
    let real = folder.0.path().canonicalize().unwrap();
    assert_eq!(
        Path::new(&loaded.config.env.skill_init),
        real.join("base/seed.md"),
        "relative to its own file"
    );
    assert_eq!(Path::new(&loaded.config.env.data_path), real.join("items.json"));
    assert_eq!(loaded.base_dir, real);
    let origin = |key: &str| loaded.origins[key].to_string();
    assert!(origin("train.seed").ends_with("run.toml:5"), "{}", origin("train.seed"));
    assert!(origin("train.batch_size").ends_with("base/base.toml:9"), "{}", origin("train.batch_size"));
    assert_eq!(origin("train.accumulation"), "command line");
    assert_eq!(origin("train.num_epochs"), "built-in");
    assert_eq!(loaded.origins.len(), keys().count());
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn all_complaints_come_at_once_with_line_key_and_remedy() {
    let folder = demo(
        "scorer = \"exat\"\n[train]\nbatchsize = 4\naccumulation = -1\n[gradient]\nmerge_batch_size = 1\n",
    );
    assert_eq!(
        folder.told(&["evaluation.gate_mixed_weight=2", "moon.phase=1", "train"]),
        [
            "run.toml:7: env.scorer: unknown value \"exat\", did you mean \"exact\"?; \
             allowed: exact, normalized_exact, f1, contains, regex, numeric, choice, judge",
            "run.toml:9: train.batchsize: unknown key, did you mean train.batch_size?; \
             remove it, or see `planish schema` for all keys",
            "run.toml:10: train.accumulation: -1 is out of range; give a whole number that is at least 1",
            "run.toml:12: gradient.merge_batch_size: 1 is out of range; give a whole number that is at least 2",
            "command line: evaluation.gate_mixed_weight: 2 is out of range; give a number from 0 to 1",
            "command line: moon.phase: unknown key; remove it, or see `planish schema` for all keys",
            "command line: train: no `=` in this override; write -o section.key=value",
        ]
    );
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    for (toml, expected) in [
        ("bacth_size = 4", "bacth_size: unknown key, did you mean train.batch_size?"),
        ("[train]\nmerge_batch_size = 4", "did you mean gradient.merge_batch_size?"),
        ("[trian]\nsomething = 4", "trian: unknown section, did you mean train?"),
        ("[model.targt]\nx = 4", "did you mean model.target?"),
        ("[model.target]\napi_keys = \"sk-secret-1234\"", "did you mean model.target.api_key_env?"),
        ("[review]\nzzzzzzzz = 4", "review.zzzzzzzz: unknown key; remove it"),
        ("train = 5", "train: expected a section, found integer; write its keys under [train]"),
    ] {
        let folder = Folder::new(&[("run.toml", toml)]);
        let told = folder.told(&[]);
        assert!(told[0].contains(expected), "{toml}: {told:?}");
        assert!(!told.join(" ").contains("sk-secret"), "{told:?}");
    }
}

#[test]
fn complaints_cannot_steer_the_terminal() {
    let folder = Folder::new(&[("run.toml", "\"\\u001b[31mred\\u0007\" = 1\n")]);
    let told = folder.load(&["x\u{1b}]52;c;aGk=\u{7}"]).unwrap_err().to_string();
    assert!(told.contains("\\u{1b}[31mred\\u{7}: unknown key"), "{told}");
    assert!(!told.contains(['\u{1b}', '\u{7}']), "{told:?}");
}

#[test]
fn unreadable_files_are_one_clear_complaint() {
    let folder = Folder::new(&[("run.toml", "[train]\nseed = 1\nbatch_size = = 2\n")]);
    let told = folder.told(&[]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("run.toml:3:14: not valid TOML: "), "{told:?}");

    let folder = Folder::new(&[("run.toml", "[train]\nseed = 1\nseed = 2\n")]);
    assert!(
        folder.told(&[])[0].starts_with("run.toml:3:1: not valid TOML: duplicate key"),
        "{:?}",
        folder.told(&[])
    );

    let folder = Folder::new(&[]);
    assert_eq!(folder.told(&[]), ["run.toml: no such file; check the path of the config"]);

    let folder = Folder::new(&[("run.toml", "\ninherits = \"gone.toml\"")]);
    assert_eq!(folder.told(&[]), ["run.toml:2: no such file: gone.toml; check the path of the config"]);

    let folder =
        Folder::new(&[("run.toml", "inherits = \"b.toml\""), ("b.toml", "\n\ninherits = \"run.toml\"")]);
    let told = folder.told(&[]);
    assert!(told[0].starts_with("b.toml:3: inherits: run.toml inherits from itself"), "{told:?}");

    std::fs::write(folder.path("run.toml"), [0xff, 0xfe]).unwrap();
    assert_eq!(folder.told(&[]), ["run.toml: not UTF-8; save it as UTF-8"]);
    std::fs::rename(folder.path("run.toml"), folder.path("odd.toml")).unwrap();
    std::fs::write(folder.path("run.toml"), "inherits = \"odd.toml\"").unwrap();
    assert_eq!(folder.told(&[]), ["run.toml:1: odd.toml is not UTF-8; save it as UTF-8"]);
}

#[test]
fn overrides_are_toml_or_text() {
    let loaded = demo("")
        .load(&[
            "model.target.stop=[\"\\n\", \"#\"]",
            "model.target.temperature=0",
            "run.name=2026",
            "env.answer_field=true",
            "env.user_template=a=b",
            "review.mode=manual",
            "evaluation.eval_test=false",
        ])
        .unwrap();
    assert_eq!(loaded.config.model.target.stop, ["\n", "#"]);
    assert_eq!(loaded.config.model.target.temperature, Some(0.0));
    assert_eq!(loaded.config.run.name, "2026");
    assert_eq!(loaded.config.env.answer_field, "true");
    assert_eq!(loaded.config.env.user_template, "a=b");
    assert!(!loaded.config.evaluation.eval_test);
    let told = demo("").told(&["train.batch_size=-4", "train.seed=1\nbatch_size=3", "train=4"]);
    assert_eq!(
        told,
        [
            "command line: train.batch_size: -4 is out of range; give a whole number that is at least 1",
            "command line: train.seed: expected a whole number, found string; \
             write a number without quotes, 0 or more",
            "command line: train: this is a section; write -o train.KEY=VALUE",
        ]
    );
}

#[test]
fn rules_across_keys() {
    for (overrides, expected) in [
        (
            &["model.target.backend=openai_chat", "model.model_file="][..],
            "model.target.base_url: not set, but",
        ),
        (&["model.target.backend=openai_chat"], "model.target.model: not set, but"),
        (
            &["model.target.backend=openai_chat", "model.target.base_url=server/v1"],
            "no http:// or https:// address",
        ),
        (
            &["model.target.backend=openai_chat", "model.target.base_url=https://me:pw@server/v1"],
            "holds a user name or password",
        ),
        (&["model.target.backend=edit_search"], "the built-in edit search cannot run tasks"),
        (
            &["model.target.backend=openai_chat"],
            "model.optimizer.backend: the built-in edit search needs a local model",
        ),
        (&["model.target.api_key_env=sk-live-1"], "no name of an environment variable"),
        (
            &["model.target.api_key_env=A", "model.target.api_key_file=/etc/passwd"],
            "set together with api_key_env",
        ),
        (&["review.mode=manual", "review.timeout_s=60"], "review.timeout_s: has no effect"),
        (&["env.data_path="], "env.data_path: not set, but env.split_mode ratio needs it"),
        (&["env.data_path=nowhere.json"], "nowhere.json; relative paths start at"),
        (&["env.split_mode=split_dir"], "env.split_dir: not set"),
        (&["env.split_mode=split_dir", "env.split_dir=nowhere"], "env.split_dir: no such folder"),
        (&["env.split_ratio=2:1"], "\"2:1\" is no ratio; write three positive numbers like 2:1:7"),
        (&["env.split_ratio=2:0:1"], "is no ratio"),
        (&["env.skill_init=nowhere.md"], "env.skill_init: no such file"),
        (&["env.answer_rule=regex"], "env.answer_pattern: is empty"),
        (&["env.answer_rule=regex", "env.answer_pattern=(a"], "no regular expression: unclosed group"),
        (&["env.answer_rule=tag", "env.answer_tag="], "env.answer_tag: is empty"),
        (&["env.user_template= "], "env.user_template: is empty"),
        (&["run.name=../x"], "run.name: \"../x\" begins with \".\""),
        (&["run.name=a/b"], "contains '/'"),
    ] {
        let told = demo("").told(overrides);
        assert!(told.iter().any(|line| line.contains(expected)), "{overrides:?}: {told:?}");
        assert!(!told.join(" ").contains("sk-live") && !told.join(" ").contains("pw@"), "{told:?}");
    }
    let loaded =
        demo("").load(&["review.mode=manual", "review.timeout_s=60", "review.on_timeout=reject"]).unwrap();
    assert_eq!(loaded.config.review.on_timeout, TimeoutPolicy::Reject);
}

#[test]
fn a_value_of_the_wrong_type_is_one_complaint() {
    let told = demo("").told(&[
        "model.target.backend=openai_chat",
        "model.target.base_url=x",
        "model.target.model=m",
    ]);
    assert_eq!(told.iter().filter(|line| line.contains("base_url")).count(), 1, "{told:?}");
    let folder = Folder::new(&[("run.toml", "[env]\ndata_path = 5\n[model.target]\nbackend = \"local\"\n")]);
    let told = folder.told(&[]);
    assert_eq!(told.iter().filter(|line| line.contains("data_path")).count(), 1, "{told:?}");
}

#[test]
fn settings_without_effect_are_warned_about() {
    let loaded = demo("numeric_tolerance = 0.1\n").load(&["optimizer.learning_rate=1"]).unwrap();
    let warnings = loaded.warnings.join("\n");
    assert!(
        warnings.contains("built-in: optimizer.min_learning_rate: above optimizer.learning_rate"),
        "{warnings}"
    );
    assert!(warnings.contains("run.toml:7: env.numeric_tolerance: not used"), "{warnings}");
    let loaded = demo("").load(&["review.mode=manual", "review.on_timeout=accept"]).unwrap();
    let expected = "command line: review.on_timeout: never applies, since review.timeout_s is 0";
    assert_eq!(loaded.warnings, [expected]);
}

#[test]
fn the_resolved_config_reads_back_as_it_was() {
    let folder = demo("");
    let loaded = folder.load(&["model.target.top_p=0.9", "env.system_template=a\nb"]).unwrap();
    let text = loaded.config.resolved_toml().unwrap();
    let path = folder.path("resolved.toml");
    std::fs::write(&path, &text).unwrap();
    let again = Config::read_resolved(&path).unwrap();
    assert_eq!(again, loaded.config);
    assert_eq!(again.resolved_toml().unwrap(), text);
    assert!(changed_keys(&loaded.config, &again).is_empty());
}

#[test]
fn the_reference_is_a_config_with_the_defaults() {
    let folder = Folder::new(&[("run.toml", &reference_toml())]);
    assert_eq!(Config::read_resolved(&folder.path("run.toml")).unwrap(), Config::default());
    let rows = reference_json();
    assert_eq!(rows.as_array().unwrap().len(), keys().count());
    assert!(rows.as_array().unwrap().iter().all(|row| !row["doc"].as_str().unwrap().is_empty()));
}

#[test]
fn the_resolved_config_of_a_run_warns_no_more_than_its_source() {
    let folder = demo("");
    let loaded = folder.load(&["review.mode=manual"]).unwrap();
    assert_eq!(loaded.warnings, [""; 0]);
    std::fs::write(folder.path("run.toml"), loaded.config.resolved_toml().unwrap()).unwrap();
    assert_eq!(folder.load(&[]).unwrap().warnings, [""; 0]);
}

#[test]
fn numbers_beyond_integers_are_out_of_range_and_not_of_another_type() {
    let huge = "99999999999999999999";
    let told = demo("").told(&[&format!("train.batch_size={huge}")]);
    assert_eq!(
        told,
        [format!(
            "command line: train.batch_size: {huge} is out of range; give a smaller whole number (at least 1)"
        )]
    );
    assert!(demo("").told(&[&format!("train.batch_size=-{huge}")])[0].contains("out of range"));
    let told = demo(&format!("limit = {huge}\n")).told(&[]);
    assert!(told[0].contains(&format!("env.limit: {huge} is out of range")), "{told:?}");
    let tolerance =
        demo(&format!("numeric_tolerance = {huge}\n")).load(&[]).unwrap().config.env.numeric_tolerance;
    assert_eq!(tolerance, 1e20);
    let loaded = demo("").load(&[&format!("env.numeric_tolerance={huge}")]).unwrap();
    assert_eq!(loaded.config.env.numeric_tolerance, 1e20);
    assert_eq!(demo("").load(&[&format!("run.name={huge}")]).unwrap().config.run.name, huge);
}
