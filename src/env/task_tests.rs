use crate::config::ScorerKind;
use crate::domain::Evaluator;

use super::*;

fn demo() -> Config {
    let mut config = Config::default();
    config.env.data_path = "demo:city".into();
    config
}

fn open(config: &Config) -> Result<Task, String> {
    Task::open(config, None).map_err(|error| error.to_string())
}

fn with_rows(text: &str, change: impl Fn(&mut Config)) -> Result<Task, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, text).unwrap();
    let mut config = Config::default();
    config.env.data_path = path.display().to_string();
    config.env.split_ratio = "1:1:1".into();
    change(&mut config);
    let prefix = format!("{}/", folder.path().display());
    Task::open(&config, None).map_err(|error| error.to_string().replace(&prefix, ""))
}

const ROW: &str = "{\"id\":1,\"question\":\"q\",\"answers\":[\"a\"]}\n";

#[test]
fn demo_tasks_open_with_default_templates() {
    let task = open(&demo()).unwrap();
    assert_eq!((task.data.train.len(), task.data.val.len(), task.data.test.len()), (40, 60, 100));
    assert!(task.environment.version().starts_with("qa-"));
}

#[test]
fn the_limit_takes_the_first_of_every_split() {
    let mut config = demo();
    config.env.limit = 3;
    let (all, few) = (open(&demo()).unwrap().data, open(&config).unwrap().data);
    assert_eq!(few.train, all.train[..3]);
    assert_eq!(few.val, all.val[..3]);
    let evaluator = Evaluator::for_evaluation_stage();
    assert_eq!(few.test[2].open(&evaluator), all.test[2].open(&evaluator));
    assert_eq!(few.test.len(), 3);
}

#[test]
fn a_train_size_that_is_not_the_splits_is_refused() {
    let mut config = demo();
    config.train.train_size = 40;
    assert!(open(&config).is_ok());
    config.train.train_size = 50;
    assert_eq!(
        open(&config).err().unwrap(),
        "train.train_size: is 50, but the train split has 40 items; set it to 40, or to 0 for all"
    );
}

#[test]
fn an_unusable_row_is_named_with_its_remedy() {
    let unanswered = format!("{ROW}{}", "{\"id\":2,\"question\":\"q\"}");
    assert_eq!(
        with_rows(&unanswered, |_| ()).err().unwrap(),
        "rows.jsonl, line 2: has no field `answers` (env.answer_field); it has `id`, `question`"
    );
    let unasked = format!("{ROW}{}", "{\"id\":2,\"answers\":\"a\"}");
    assert_eq!(
        with_rows(&unasked, |_| ()).err().unwrap(),
        "rows.jsonl, line 2: env.user_template asks for `question`, but the item has `id`, `answers`"
    );
    let message = with_rows(ROW, |config| config.env.scorer = ScorerKind::Numeric).err().unwrap();
    assert_eq!(message, "rows.jsonl, line 1: `answers`: \"a\" has no number");
}

#[test]
fn empty_splits_are_refused_where_they_are_needed() {
    let two = format!("{ROW}{}", ROW.replace(":1", ":2"));
    let three = format!("{two}{}", ROW.replace(":1", ":3"));
    assert!(with_rows(&three, |_| ()).is_ok());
    assert!(with_rows(&two, |_| ()).err().unwrap().contains("the test split is empty"));
    assert!(with_rows(&two, |config| config.evaluation.eval_test = false).is_ok());
    let message = with_rows(ROW, |_| ()).err().unwrap();
    assert!(message.starts_with("env.data_path: the selection split (val) is empty"), "{message}");
    assert!(with_rows("", |_| ()).err().unwrap().contains("the train split is empty"));
}

#[test]
fn shipped_demo_config_and_skills_fit_together() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("configs/demo.toml")).unwrap();
    let config: Config = toml::from_str(&text).unwrap();
    let skill = std::fs::read_to_string(root.join("configs").join(&config.env.skill_init)).unwrap();
    assert_eq!(skill.lines().count(), 1);
    let task = open(&config).unwrap();
    assert!(task.data.train.len() >= 40 && task.data.val.len() >= 60 && task.data.test.len() >= 100);
    for family in ["city", "domain", "upper"] {
        assert!(root.join("skills").join(family).join("SKILL.md").is_file());
        let mut config = config.clone();
        config.env.data_path = format!("demo:{family}");
        assert!(open(&config).is_ok());
    }
}

#[test]
fn the_first_unusable_row_of_the_file_is_named_whatever_the_shuffle() {
    let row = |id: usize, more: &str| format!("{{\"id\":{id},\"question\":\"q\"{more}}}\n");
    for seed in 1..20 {
        let bad: String =
            (1..=12).map(|id| row(id, if id < 4 { ",\"answers\":[\"a\"]" } else { "" })).collect();
        let told = with_rows(&bad, |config| config.train.seed = seed).err().unwrap();
        assert!(told.starts_with("rows.jsonl, line 4: "), "{told}");
        let twice: String = (1..=12).map(|id| row(id % 6, ",\"answers\":[\"a\"]")).collect();
        let told = with_rows(&twice, |config| config.train.seed = seed).err().unwrap();
        assert!(told.starts_with("rows.jsonl, line 7: ") && told.contains("rows.jsonl, line 1;"), "{told}");
    }
}

#[test]
fn a_division_is_kept_in_the_run_folder_and_rewritten_on_each_start() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    let text: String = (0..12).map(|id| ROW.replace(":1", &format!(":{id}"))).collect();
    std::fs::write(&rows, text).unwrap();
    let mut config = Config::default();
    config.env.data_path = rows.display().to_string();
    config.env.split_ratio = " 2:1 :1".into();
    let run = folder.path().join("run");
    let file = run.join("_generated_splits/qa_2-1-1_seed42/train/items.json");
    for _ in 0..2 {
        let task = Task::open(&config, Some(&run)).unwrap();
        let written: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let ids: Vec<String> = written.iter().map(|row| row["id"].to_string()).collect();
        assert_eq!(ids, task.data.train.iter().map(|item| item.id.clone()).collect::<Vec<_>>());
        std::fs::write(&file, "torn").unwrap();
    }
    // A start that is refused leaves nothing.
    config.train.train_size = 5;
    let refused = folder.path().join("refused");
    assert!(Task::open(&config, Some(&refused)).is_err() && !refused.exists());
    // A folder of one's own takes the place of the one in the run.
    config.train.train_size = 0;
    config.env.benchmark.split_output_dir = folder.path().join("own").display().to_string();
    assert!(Task::open(&config, Some(&refused)).is_ok() && !refused.exists());
    assert!(folder.path().join("own/split_manifest.json").is_file());
}

#[test]
fn a_benchmark_of_another_version_is_refused_by_name() {
    let mut config = demo();
    config.env.benchmark.name = Benchmark::Officeqa;
    let told = Task::open(&config, None).err().unwrap().to_string();
    assert!(told.starts_with("env.name: the benchmark officeqa is not part of this version"), "{told}");
}
