//! A run is killed while a question to the optimizer is on its way, in every stage that asks one, repair rounds included.

use std::time::Duration;

use planish::model::mock::{Rule, SeenRequest};
use regex::Regex;
use serde_json::json;

use crate::host::{Task, outcome};
use crate::lanterns::{Lanterns, optimizer};

/// Generous: only a stage that is never reached gets there.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where a stage is asked: a pattern on its system prompt, and whether it is the repair round that hangs.
struct Question {
    config: &'static str,
    system: &'static str,
    repair: bool,
}

impl Question {
    fn rule(&self, answer: serde_json::Value, after_reply: bool) -> Rule {
        let rule = json!({"system": self.system, "after_reply": after_reply, "answers": [answer]});
        serde_json::from_value(rule).unwrap()
    }

    /// A repair round needs a first reply that cannot be used.
    fn rules(&self) -> Vec<Rule> {
        if self.repair { vec![self.rule(json!("{ unfinished"), false)] } else { Vec::new() }
    }

    fn is_asked_by(&self, request: &SeenRequest) -> bool {
        let messages = &request.body["messages"];
        let system = messages[0]["content"].as_str().unwrap_or_default();
        let repair = messages.as_array().unwrap().iter().any(|message| message["role"] == "assistant");
        repair == self.repair && Regex::new(self.system).unwrap().is_match(system)
    }
}

fn task(lanterns: &Lanterns) -> Task<'_> {
    Task {
        config: lanterns.config(),
        overrides: lanterns.overrides(),
        folder: lanterns.dir().to_owned(),
        servers: [&lanterns.target, &lanterns.optimizer],
    }
}

fn is_asked_again(config: &'static str, system: &'static str, repair: bool) {
    let question = Question { config, system, repair };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut rules = question.rules();
    rules.push(question.rule(json!({"fault": "hang"}), repair));
    let mut lanterns = runtime.block_on(Lanterns::with(question.config, optimizer(rules)));
    task(&lanterns).interrupt("killed", || {
        let asked = lanterns.optimizer.wait_for(|request| question.is_asked_by(request));
        let asked = runtime.block_on(async { tokio::time::timeout(DEADLINE, asked).await });
        assert!(asked.is_ok(), "{config}: the stage was never asked");
    });
    runtime.block_on(lanterns.replace_optimizer(optimizer(question.rules())));
    let task = task(&lanterns);
    task.drive("killed", None);
    let asked = lanterns.optimizer.requests();
    assert!(
        asked.iter().any(|request| question.is_asked_by(request)),
        "{config}: the stage was not asked again"
    );
    task.drive("undisturbed", None);
    let expected = outcome(&task.run("undisturbed"));
    for (file, text) in outcome(&task.run("killed")) {
        assert_eq!(text, expected[&file], "{config}, {system}: {file} differs from the undisturbed run");
    }
}

macro_rules! questions {
    ($($name:ident: $config:literal, $system:literal, $repair:literal;)*) => {$(
        #[test]
        fn $name() {
            is_asked_again($config, $system, $repair);
        }
    )*};
}

questions! {
    an_analyst: "patch", "\"failure_summary\"", false;
    a_merge: "patch", "list directly in it", false;
    a_ranking: "patch", "\"selected_indices\"", false;
    a_budget: "lr_autonomous", "\"learning_rate\"", false;
    a_rewrite: "rewrite_from_suggestions", "^You write a skill document", false;
    a_probe: "deep_reflect", "\"probe_instruction\"", false;
    a_consolidation: "skill_aware", "has an appendix of notes", false;
    a_slow_update: "slow_update_gated", "\"slow_update_content\"", false;
    a_meta_skill: "meta_skill", "\"meta_skill_content\"", false;
    a_meta_reflection: "meta_reflect", "\"meta_summary\"", false;
    the_repair_of_an_analysis: "full_rewrite_minibatch", "\"batch_size\"", true;
    the_repair_of_a_merge: "accumulation", "list directly in it", true;
    the_repair_of_a_ranking: "schedule_constant", "\"selected_indices\"", true;
    the_repair_of_a_slow_update: "slow_update_forced", "\"slow_update_content\"", true;
    the_repair_of_a_meta_reflection: "meta_reflect_suggestions", "\"meta_summary\"", true;
}
