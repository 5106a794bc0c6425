//! Tokens per second of the worker with the demo model: decoding at batch 1, 8 and 32, and prefill. Run with
//! `make bench`; `PLANISH_BENCH_THREADS` sets the threads (default 2).

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use planish::config::ModelConfig;
use planish::domain::{Prompt, Sampling};
use planish::model::local::{LocalModel, LocalSettings};
use planish::model::worker_protocol::{Generate, Reply, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let threads = std::env::var("PLANISH_BENCH_THREADS").map_or(Ok(2), |value| value.parse())?;
    let config = ModelConfig {
        worker_command: vec![env!("CARGO_BIN_EXE_planish-torch").into()],
        worker_threads: threads,
        worker_batch: 32,
        ..ModelConfig::default()
    };
    let model = LocalModel::start(LocalSettings::resolve(&config)?, Arc::new(|_, _| {})).await?;
    for (batch, target) in [(1, 25), (8, 110), (32, 180)] {
        let prompts = (0..batch).map(|i| Prompt::Text(format!("Story {i}: Once upon a time"))).collect();
        let (tokens, seconds) = run(&model, prompts, 64).await?;
        println!("decode  batch {batch:>2}  {:>6.1} tokens/s  (target {target})", tokens / seconds);
    }
    let words = ["cat", "house", "blue", "run"];
    let text: Vec<&str> = (0..512).map(|i| words[(i * i + i / 7) % 4]).collect();
    let (tokens, seconds) = run(&model, vec![Prompt::Text(text.join(" "))], 1).await?;
    println!("prefill {:>6.1} tokens/s over {:.0} tokens", tokens / seconds, tokens);
    Ok(())
}

/// Tokens (sampled ones, or those of the prompts when only one is sampled) and wall seconds.
async fn run(
    model: &LocalModel,
    prompts: Vec<Prompt>,
    max_tokens: u32,
) -> Result<(f64, f64), Box<dyn Error>> {
    let sampling = Sampling {
        max_tokens,
        temperature: Some(1.0),
        top_p: None,
        top_k: None,
        seed: Some(1),
        stop: Vec::new(),
    };
    let request = Generate { prompts, sampling, want_logprobs: false, top_logprobs: 0, stream: false };
    let began = Instant::now();
    let reply = model.call(Request::Generate(request), None).await?;
    let seconds = began.elapsed().as_secs_f64();
    let Reply::Generated { sequences, .. } = reply else { return Err("unexpected reply".into()) };
    let tokens = sequences.iter().map(|sequence| match max_tokens {
        1 => sequence.prompt_tokens,
        _ => sequence.tokens.len(),
    });
    Ok((tokens.sum::<usize>() as f64, seconds))
}
