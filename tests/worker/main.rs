//! The real worker with the real model: exactness against recorded vectors, independence of batch and cache,
//! protocol behaviour, and crashes seen through the client.
#![allow(clippy::unwrap_used, clippy::panic)]

mod client;
mod epochs;
mod process;

use std::collections::HashMap;

use planish::domain::{Message, Prompt, Sampling, Speaker};
use planish::model::worker_protocol::{
    ErrorKind, Finish, Generate, Reply, Request, Score, ScorePair, Sequence,
};
use process::{Worker, generate, greedy, text};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    greedy_text: String,
    last_position_top10: Vec<Top>,
}

#[derive(Deserialize)]
struct Top {
    id: u32,
    logprob: f32,
}

fn cases() -> Vec<Case> {
    serde_json::from_str::<Vectors>(include_str!("smollm2.json")).unwrap().cases
}

/// The chat a ChatML text was rendered from; other text stays text.
fn prompt(rendered: &str) -> Prompt {
    let turns: Vec<Message> = rendered
        .split("<|im_start|>")
        .filter_map(|turn| turn.strip_suffix("<|im_end|>\n"))
        .map(|turn| {
            let (role, content) = turn.split_once('\n').unwrap();
            let role = match role {
                "system" => Speaker::System,
                "user" => Speaker::User,
                other => panic!("{other}"),
            };
            Message::new(role, content)
        })
        .collect();
    if turns.is_empty() { text(rendered) } else { Prompt::Chat(turns) }
}

fn sampled(max_tokens: u32, seed: u64) -> Sampling {
    Sampling { temperature: Some(1.0), seed: Some(seed), ..greedy(max_tokens) }
}

fn stories(count: usize) -> Vec<Prompt> {
    let lead = ["Once", "The old man said that the", "A list of colours: red,", "def add(a, b):\n    "];
    (0..count).map(|i| text(&format!("{}{}", lead[i % 4], " and then".repeat(i / 4)))).collect()
}

#[test]
fn vectors_match() {
    let mut worker = Worker::loaded(4);
    for case in cases() {
        let request = Generate {
            top_logprobs: 10,
            ..generate(vec![prompt(&case.prompt)], greedy(case.greedy_ids.len() as u32))
        };
        let sequence = worker.generate(request).remove(0);
        assert_eq!(sequence.prompt_ids.as_ref(), Some(&case.prompt_ids), "{}", case.prompt);
        assert_eq!(sequence.tokens, case.greedy_ids, "{}", case.prompt);
        assert_eq!(sequence.text, case.greedy_text);
        let top: HashMap<u32, f32> = sequence.top_logprobs.unwrap()[0].iter().copied().collect();
        for Top { id, logprob } in case.last_position_top10 {
            let found = top[&id];
            assert!((found - logprob).abs() < 0.05, "token {id}: {found} {logprob}");
        }
    }
}

#[test]
fn log_probabilities_sum_to_one() {
    let mut worker = Worker::loaded(2);
    let request = Generate { top_logprobs: 49152, ..generate(stories(2), sampled(3, 1)) };
    for sequence in worker.generate(request) {
        for (position, all) in sequence.top_logprobs.unwrap().iter().enumerate() {
            assert_eq!(all.len(), 49152);
            let sum: f64 = all.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            let chosen = all.iter().find(|(token, _)| *token == sequence.tokens[position]).unwrap().1;
            assert_eq!(chosen, sequence.logprobs.as_ref().unwrap()[position]);
        }
    }
}

#[test]
fn batch_one_and_batch_sixteen_give_the_same_tokens_and_log_probabilities() {
    let prompts = stories(16);
    let run = |max_batch: usize, sampling: fn(u64) -> Sampling| -> Vec<Sequence> {
        let mut worker = Worker::loaded(max_batch);
        // One request each, all at once: their seeds do not depend on a place in a list.
        let ids: Vec<u64> = prompts
            .iter()
            .enumerate()
            .map(|(i, prompt)| {
                worker.send(Request::Generate(generate(vec![prompt.clone()], sampling(i as u64))))
            })
            .collect();
        let mut by_id: HashMap<u64, Sequence> = ids
            .iter()
            .map(|_| match worker.next() {
                (id, Reply::Generated { mut sequences, .. }) => (id, sequences.remove(0)),
                other => panic!("{other:?}"),
            })
            .collect();
        ids.iter().map(|id| by_id.remove(id).unwrap()).collect()
    };
    for sampling in [|_| greedy(12), |seed| sampled(12, seed)] as [fn(u64) -> Sampling; 2] {
        let (alone, together) = (run(1, sampling), run(16, sampling));
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!(alone.tokens, together.tokens);
            // Bit for bit: rows are computed independently of their neighbours.
            assert_eq!(alone.logprobs, together.logprobs);
        }
    }
}

#[test]
fn a_shared_skill_is_computed_once_and_changes_nothing() {
    let skill = "Reply with only the name of the city in the text.\n".repeat(12);
    let prompts: Vec<Prompt> = ["Rome", "Oslo", "Lima", "Cairo"]
        .map(|city| text(&format!("{skill}Text: Zoe is in {city}.\n")))
        .into();
    let mut worker = Worker::loaded(4);
    let together = worker.generate(generate(prompts.clone(), greedy(6)));
    assert_eq!(together[0].cached_tokens, 0);
    for sequence in &together[1..] {
        assert!(sequence.cached_tokens > 100, "{} of {}", sequence.cached_tokens, sequence.prompt_tokens);
    }
    for (prompt, cached) in prompts.into_iter().zip(together) {
        let fresh = Worker::loaded(1).generate(generate(vec![prompt], greedy(6))).remove(0);
        assert_eq!(fresh.cached_tokens, 0);
        assert_eq!((fresh.tokens, fresh.logprobs), (cached.tokens, cached.logprobs));
    }
}

#[test]
fn seeds_reproduce_and_differ() {
    let mut worker = Worker::loaded(8);
    let prompts = vec![text("The best thing about the sea is"); 4];
    let mut draw = |seed| -> Vec<Vec<u32>> {
        worker.generate(generate(prompts.clone(), sampled(12, seed))).into_iter().map(|s| s.tokens).collect()
    };
    let (first, again, other) = (draw(5), draw(5), draw(6));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_ne!(first[0], first[1], "sequences of one request draw from different streams");
}

#[test]
fn sequences_of_different_lengths_end_on_their_own() {
    let mut worker = Worker::loaded(8);
    let long = worker.send(Request::Generate(generate(stories(3), greedy(30))));
    let short = worker.send(Request::Generate(generate(vec![text("One, two,")], greedy(2))));
    let (first, reply) = worker.next();
    assert_eq!(first, short);
    let Reply::Generated { sequences, .. } = reply else { panic!("{reply:?}") };
    assert_eq!((sequences[0].tokens.len(), sequences[0].finish), (2, Finish::Length));
    assert_eq!(worker.next().0, long);
}

#[test]
fn stop_texts_end_a_reply_before_them_and_deltas_add_up() {
    let mut worker = Worker::loaded(2);
    let case = &cases()[0];
    let sampling = Sampling { stop: vec!["Par".into(), "\n".into()], ..greedy(20) };
    let request = Generate { stream: true, ..generate(vec![prompt(&case.prompt)], sampling) };
    worker.send(Request::Generate(request));
    let mut streamed = String::new();
    loop {
        match worker.next().1 {
            Reply::Delta { text, .. } => streamed.push_str(&text),
            Reply::Generated { sequences, .. } => {
                assert_eq!(sequences[0].text, "The capital of France is ");
                assert_eq!(sequences[0].finish, Finish::Stop);
                assert_eq!(streamed, sequences[0].text);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn score_equals_the_log_probabilities_of_generate() {
    let mut worker = Worker::loaded(4);
    let prompts = [text("The capital of France is"), text("Text: Zoe moved to Tokyo in May.\n")];
    let generated = worker.generate(generate(prompts.to_vec(), greedy(8)));
    let mut pairs: Vec<ScorePair> = prompts
        .iter()
        .zip(&generated)
        .map(|(prompt, sequence)| ScorePair { prompt: prompt.clone(), continuation: sequence.text.clone() })
        .collect();
    pairs.push(ScorePair { prompt: prompts[0].clone(), continuation: String::new() });
    pairs.push(ScorePair { prompt: text(""), continuation: " Paris".into() });
    let reply = worker.ask(Request::Score(Score { pairs }));
    let Reply::Scored { scores, .. } = reply else { panic!("{reply:?}") };
    for (score, sequence) in scores.iter().zip(&generated) {
        assert_eq!(score.tokens, sequence.tokens);
        assert_eq!(Some(&score.logprobs), sequence.logprobs.as_ref());
    }
    assert!(scores[2].tokens.is_empty());
    assert!(scores[3].logprobs.iter().all(|logprob| *logprob < 0.0 && logprob.is_finite()));
}

#[test]
fn cancel_ends_a_request_and_leaves_the_others() {
    let mut worker = Worker::loaded(4);
    let doomed =
        worker.send(Request::Generate(Generate { stream: true, ..generate(stories(1), sampled(4000, 1)) }));
    let kept = worker.send(Request::Generate(generate(vec![text("One, two,")], greedy(40))));
    assert!(matches!(worker.next(), (id, Reply::Delta { .. }) if id == doomed));
    let cancel = worker.send(Request::Cancel { target: doomed });
    let mut finals = Vec::new();
    while finals.len() < 3 {
        match worker.next() {
            (id, Reply::Delta { .. }) => assert_eq!((id, finals.len()), (doomed, 0)),
            (id, reply) => finals.push((id, reply)),
        }
    }
    assert_eq!(finals[0], (doomed, Reply::Cancelled {}));
    assert_eq!(finals[1], (cancel, Reply::Cancel { found: true }));
    assert!(matches!(&finals[2], (id, Reply::Generated { .. }) if *id == kept));
    assert_eq!(worker.ask(Request::Cancel { target: doomed }), Reply::Cancel { found: false });
    let Reply::Stats(stats) = worker.ask(Request::Stats {}) else { panic!("no stats") };
    assert_eq!((stats.active, stats.waiting), (0, 0));
}

#[test]
fn bad_lines_get_an_error_line_and_the_worker_goes_on() {
    let mut worker = Worker::start();
    let mut error = |line: &[u8], id: Option<u64>, part: &str| {
        worker.write_raw(line);
        let reply = worker.read().unwrap();
        assert_eq!(reply.id, id, "{reply:?}");
        let Reply::Error { kind: ErrorKind::BadRequest, message } = reply.body else { panic!("{reply:?}") };
        assert!(message.contains(part), "{message}");
    };
    error(b"nonsense", None, "not a request line");
    error(b"\xff\xfe{", None, "not a request line");
    error(br#"{"id":77,"dance":{}}"#, Some(77), "one of hello, load, generate");
    error(br#"{"id":78,"hello":{"proto":99}}"#, Some(78), "protocol 99");
    let call = |sampling: &str| {
        format!(r#"{{"id":79,"generate":{{"prompts":[{{"text":"a"}}],"sampling":{sampling}}}}}"#)
    };
    error(call(r#"{"max_tokens":4,"stop":[]}"#).as_bytes(), Some(79), "load first");
    let reply = worker.load("no/such/model.gguf".into(), 1);
    let Reply::Error { kind: ErrorKind::Model, message } = reply else { panic!("{reply:?}") };
    assert!(message.contains("no/such/model.gguf"), "{message}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"this is not a model").unwrap();
    let reply = worker.load(file.path().to_string_lossy().into_owned(), 1);
    assert!(matches!(&reply, Reply::Error { message, .. } if message.contains("GGUF")), "{reply:?}");
    assert!(matches!(worker.load(process::model_file(), 2), Reply::Loaded(_)));
    let mut error = |line: String, part: &str| {
        worker.write_raw(line.as_bytes());
        let (_, reply) = worker.next();
        assert!(matches!(&reply, Reply::Error { message, .. } if message.contains(part)), "{reply:?}");
    };
    error(call(r#"{"max_tokens":0,"stop":[]}"#), "max_tokens");
    error(call(r#"{"max_tokens":1,"temperature":-2.0,"stop":[]}"#), "temperature");
    let long = format!(
        r#"{{"id":80,"generate":{{"prompts":[{{"text":"{}"}}],"sampling":{{"max_tokens":1,"stop":[]}}}}}}"#,
        "word ".repeat(9000)
    );
    error(long, "context of 8192");
    assert_eq!(worker.generate(generate(stories(1), greedy(2)))[0].tokens.len(), 2);
}

#[test]
fn the_worker_ends_on_shutdown_and_on_end_of_input() {
    let mut worker = Worker::start();
    assert_eq!(worker.ask(Request::Shutdown {}), Reply::Bye {});
    assert!(worker.wait().success());
    let mut worker = Worker::loaded(1);
    worker.send(Request::Generate(generate(stories(1), sampled(4000, 1))));
    worker.stdin = None;
    assert!(worker.wait().success(), "a running request must not keep it alive");
}
