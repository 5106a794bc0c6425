//! A real server as target, by hand (`make test-live`): `PLANISH_LIVE_LLAMA` is a Python that has llama.cpp's server,
//! `PLANISH_LIVE_MODEL` a GGUF file for it. The optimizer is scripted: what the model makes of an edit is not tested.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::place::Place;

const ITEMS: u64 = 4;
const MAX_TOKENS: u64 = 12;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `make test-live`"))
}

/// On a port that the system chose; ended with the test.
struct Llama {
    child: Child,
    url: String,
    accesses: PathBuf,
}

impl Llama {
    fn start(accesses: PathBuf) -> Self {
        let mut child = Command::new(variable("PLANISH_LIVE_LLAMA"))
            .args(["-m", "llama_cpp.server", "--model", &variable("PLANISH_LIVE_MODEL")])
            .args(["--host", "127.0.0.1", "--port", "0", "--n_ctx", "2048"])
            // Else a new request cuts the stream of the one before it.
            .args(["--interrupt_requests", "false"])
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(File::create(&accesses).unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let url = line.split_once("running on ").and_then(|(_, rest)| rest.split(' ').next());
            let url = url.map(str::to_owned);
            said.push(line);
            url
        });
        let server = Self { child, url: url.unwrap_or_default(), accesses };
        assert!(!server.url.is_empty(), "the server did not start:\n{}", said.join("\n"));
        // A full pipe would stop the server.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        server
    }

    /// Requests to `route` that it has answered well, by its own log.
    fn answered(&self, route: &str) -> u64 {
        let line = format!("\"POST {route} HTTP/1.1\" 200");
        let log = std::fs::read_to_string(&self.accesses).unwrap();
        log.lines().filter(|logged| logged.contains(&line)).count() as u64
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn optimizer() -> Value {
    let edit = json!({"op": "append", "content": "Never write a whole sentence."});
    let patch = json!({
        "batch_size": 1,
        "failure_summary": [{"failure_type": "mismatch", "count": 1, "description": "a sentence"}],
        "patch": {"reasoning": "too long", "edits": [edit]},
    });
    json!({"rules": [{"answers": [patch.to_string()]}]})
}

fn config(target: &str, optimizer: &str) -> String {
    format!(
        r#"[model.target]
backend = "openai_compatible"
dialect = "llama_cpp"
model = "smollm2"
base_url = "{target}/v1"
temperature = 0.0
max_tokens = {MAX_TOKENS}
[model.optimizer]
model = "mock"
base_url = "{optimizer}"
[train]
num_epochs = 1
batch_size = {ITEMS}
seed = 42
[gradient]
minibatch_size = {ITEMS}
[optimizer]
use_slow_update = false
use_meta_skill = false
[env]
data_path = "demo:city"
limit = {ITEMS}
skill_init = "seed.md"
scorer = "exact"
answer_field = "answers"
workers = 2
"#
    )
}

/// Every result in `events`, as (reply, usage).
fn results(events: &[Value]) -> Vec<(&str, &Value)> {
    let scored = events.iter().filter_map(|event| event["evaluation_item_finished"]["result"].get("scored"));
    scored.map(|scored| (scored["reply"].as_str().unwrap(), &scored["usage"])).collect()
}

fn run_to_the_end(place: &Place, llama: &Llama, style: &str, route: &str, streams: bool) {
    let name = format!("{style}-{}", if streams { "stream" } else { "whole" });
    let before = (llama.answered(route), place.server.count());
    let style = format!("env.prompt_style={style}");
    let stream = format!("model.target.stream={streams}");
    let started = ["run", "run.toml", "--name", &name, "--foreground", "--plain"];
    let done = place.planish(&[&started[..], &["-o", &style, "-o", &stream]].concat());
    assert_eq!(done.code, Some(0), "{name}: {done:?}");
    assert!(done.out.contains("run completed"), "{name}: {}", done.out);

    let shown = &place.planish(&["ctl", &name, "show", "--json"]).json()[0];
    assert_eq!((&shown["status"], &shown["test"]["n"]), (&json!("completed"), &json!(ITEMS)), "{name}");
    assert_eq!(shown["unanswered"]["calls"], 0, "{name}: {shown}");
    let (served, scripted) = (llama.answered(route) - before.0, place.server.count() - before.1);
    assert!(served >= 3 * ITEMS && scripted > 0, "{name}: {served} and {scripted} calls");
    assert_eq!(shown["usage"]["calls"], served + scripted, "{name}: the servers counted otherwise");

    let events = place.planish(&["ctl", &name, "events", "--content", "--json"]).json();
    let results = results(&events);
    let asked = results.iter().filter(|(_, usage)| usage["calls"] == 1).count() as u64;
    assert!(asked >= 2 * ITEMS, "{name}: {asked} asked of {results:?}");
    for (reply, usage) in &results {
        assert!(!reply.trim().is_empty(), "{name}: {results:?}");
        let tokens = (usage["prompt_tokens"].as_u64().unwrap(), usage["completion_tokens"].as_u64().unwrap());
        let told = match (usage["calls"].as_u64().unwrap(), streams) {
            // A prompt that was answered before; or this server, which says nothing of usage in a stream: none is made up.
            (0, _) | (1, true) => tokens == (0, 0),
            (1, false) => tokens.0 > 20 && (1..=MAX_TOKENS).contains(&tokens.1),
            _ => false,
        };
        assert!(told, "{name}: {reply:?} {usage}");
    }
    println!("{name}: {served} calls served, {} results, {}", results.len(), shown["usage"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real server: make test-live"]
async fn a_real_server_answers_the_items_of_whole_runs() {
    let place = Place::with(optimizer()).await;
    let llama = Llama::start(place.path("accesses.log"));
    place.write("seed.md", "Reply with only the name of the city in the text. One word, no punctuation.\n");
    place.write("run.toml", &config(&llama.url, &place.server.base_url()));
    for (style, route) in [("chat", "/v1/chat/completions"), ("document", "/v1/completions")] {
        for streams in [true, false] {
            run_to_the_end(&place, &llama, style, route, streams);
        }
    }
}
