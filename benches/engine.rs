//! The engine over HTTP on loopback: rollouts per second without latency, memory, and how close a latency-bound
//! evaluation comes to its lower bound. Prints numbers, judges none.
//!
//! The mock server runs in a process of its own, so that the CPU time and memory shown are planish's alone.

mod support;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use planish::cli::run_setup::start_run;
use planish::config::Config;
use planish::engine::RunService;
use planish::event::Event;
use planish::model::mock::MockServer;
use planish::store::RunDir;
use serde_json::json;
use support::memory_mb;
use tokio::sync::broadcast::error::RecvError;

const ROLLOUTS: usize = 20_000;
const REPEATS: usize = 7;
/// Names the script of the server in the process that is to be one.
const SERVE: &str = "PLANISH_BENCH_SERVE";

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(script) = std::env::var(SERVE) {
        return serve(&script);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (latency_ms, n, workers) = (50, 64, 16);
    let slow = Mock::start(latency_ms)?;
    let mut walls = Vec::new();
    for _ in 0..REPEATS {
        walls.push(runtime.block_on(evaluate(&slow, n, workers))?.wall_s * 1e3);
    }
    walls.sort_by(f64::total_cmp);
    let (median, bound) = (walls[REPEATS / 2], n.div_ceil(workers) as f64 * latency_ms as f64);
    let over = (median / bound - 1.0) * 100.0;
    println!(
        "latency-bound, n={n} c={workers}    {median:>9.0} ms (bound {bound:.0}, {over:+.1} %, target +5 %)"
    );
    drop(slow);

    let before = memory_mb("VmRSS").unwrap_or_default();
    let fast = Mock::start(0)?;
    let measured = runtime.block_on(evaluate(&fast, ROLLOUTS, 64))?;
    let grown = memory_mb("VmHWM").unwrap_or_default() - before;
    let count = ROLLOUTS as f64;
    println!("zero-latency rollouts       {:>9.0} /s of wall time", count / measured.wall_s);
    println!(
        "                            {:>9.0} /s per core of CPU time (target 5000)",
        count / measured.cpu_s
    );
    println!("CPU time                    {:>9.0} us per rollout", measured.cpu_s / count * 1e6);
    println!("CPU time of projections     {:>9.0} us per rollout", measured.rest_cpu_s / count * 1e6);
    println!("memory growth, peak         {grown:>9.0} MB for {ROLLOUTS} rollouts");
    println!("                            {:>9.0} MB per 100000 (target 50)", grown / count * 1e5);
    Ok(())
}

struct Measured {
    /// From the baseline's start to its last result, by the journal's clock.
    wall_s: f64,
    /// User and system time of this process from the run's start to the same moment.
    cpu_s: f64,
    /// User and system time of what follows: one more step, and the projections of all rollouts.
    rest_cpu_s: f64,
}

/// A run that measures its baseline on `n` items and has next to nothing to do after it.
async fn evaluate(mock: &Mock, n: usize, workers: usize) -> Result<Measured, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let items: Vec<_> = (0..n + 2)
        .map(|i| {
            json!({"id": format!("card {i:06}"), "question": format!("What colour is card {i}?"), "answers": ["red"]})
        })
        .collect();
    let path = dir.path().join("run.toml");
    std::fs::write(dir.path().join("data.json"), serde_json::to_vec(&items)?)?;
    std::fs::write(dir.path().join("seed.md"), "Answer with one word. Every card has one colour.\n")?;
    std::fs::write(&path, config(&mock.base_url, n, workers))?;
    let run = RunDir::create(&dir.path().join("runs"), "bench")?;
    std::fs::write(run.config_toml(), Config::load(&path, &[])?.config.resolved_toml()?)?;
    let start = cpu_seconds();
    let engine = start_run(&run).await?;
    let (_, mut later) = engine.records(0);
    let mut measured_at = start;
    loop {
        match later.recv().await {
            Ok(record) => {
                if matches!(record.event, Event::EvaluationFinished { .. }) {
                    measured_at = cpu_seconds();
                    break;
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => break,
        }
        if *engine.ended().borrow() {
            break;
        }
    }
    engine.ended().wait_for(|ended| *ended).await?;
    let rest_cpu_s = cpu_seconds() - measured_at;
    let (records, _) = engine.records(0);
    let at = |wanted: fn(&Event) -> bool| {
        records.iter().find(|record| wanted(&record.event)).map(|record| record.at)
    };
    let began = at(|event| matches!(event, Event::EvaluationStarted { .. }));
    match (began, at(|event| matches!(event, Event::EvaluationFinished { missing: 0, .. }))) {
        (Some(began), Some(ended)) => {
            let wall_s = (ended - began) as f64 / 1e3;
            Ok(Measured { wall_s, cpu_s: measured_at - start, rest_cpu_s })
        }
        _ => Err(format!("no full baseline; the run ended with {:?}", records.last()).into()),
    }
}

fn config(base_url: &str, n: usize, workers: usize) -> String {
    let server = format!("model = \"mock\"\nbase_url = \"{base_url}\"\n");
    format!(
        "[model.target]\n{server}[model.optimizer]\n{server}\
         [train]\nnum_epochs = 1\nbatch_size = 1\nseed = 7\n\
         [evaluation]\neval_test = false\n\
         [env]\ndata_path = \"data.json\"\nsplit_ratio = \"1:{n}:1\"\nskill_init = \"seed.md\"\n\
         scorer = \"normalized_exact\"\nworkers = {workers}\n"
    )
}

/// User and system time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15; the name in field 2 may hold spaces but ends with the last parenthesis.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    // The kernel's unit in this file, whatever its own tick.
    ticks / 100.0
}

/// A mock server in a child process; it ends with this value.
struct Mock {
    child: Child,
    base_url: String,
}

impl Mock {
    fn start(latency_ms: u64) -> Result<Self, Box<dyn Error>> {
        let script = json!({"latency_ms": latency_ms, "rules": [{"answers": ["red"]}]}).to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .env(SERVE, script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut base_url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut base_url)?;
        }
        Ok(Self { child, base_url: base_url.trim().to_owned() })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until standard input closes.
fn serve(script: &str) -> Result<(), Box<dyn Error>> {
    let script = serde_json::from_str(script)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = MockServer::start(0, script).await?;
        println!("{}", server.base_url());
        tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await?;
        Ok(())
    })
}
