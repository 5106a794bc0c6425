//! The workbench: start of the process, first frame, frames while rollouts stream, and charts of long runs.
//! Prints numbers, judges none.

mod support;

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use planish::domain::{
    Author, GateDecision, GateMetric, GateScore, Phase, StepRecord, StepRef, TokenUsage, Verdict,
};
use planish::event::{
    EvalPurpose, EvalState, Event, HostLine, ItemResult, Live, PROTOCOL, Record, StepState,
};
use planish::telemetry::Board;
use planish::tui::{App, ClientEvent, Depth, Identity, Msg, Screen, Theme, draw};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use support::timed;

const PROGRAM: &str = env!("CARGO_BIN_EXE_planish");
const SIZE: (u16, u16) = (120, 40);
const STREAMS: usize = 64;
const ROLLOUTS: usize = 100_000;
/// Points of each of four curves.
const POINTS: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let starts = sorted(20, || {
        let mut command = Command::new(PROGRAM);
        let (status, seconds) = timed(|| command.arg("--version").stdout(Stdio::null()).status());
        status.map(|_| seconds * 1e3)
    })?;
    println!("planish --version           {:>9.1} ms (median)", starts[10]);
    let args = ["replay", "--demo"];
    let empty = sorted(10, || first_frame(&args, false))?;
    println!("process to empty frame      {:>9.1} ms (median, in a terminal)", empty[5]);
    let useful = sorted(10, || first_frame(&args, true))?;
    println!("process to useful frame     {:>9.1} ms (median, shows the run; target 50)", useful[5]);

    let theme = Theme::dark(Depth::Ansi16)?;
    let mut sink = Count::default();
    let mut app = app_of(support::records(2));
    let (_, seconds) = timed(|| Screen::new(&mut sink).draw(SIZE, |buf| draw(&app, &theme, buf)));
    println!("first paint at 120x40       {:>9.2} ms, {} bytes (target 15000)", seconds * 1e3, sink.bytes);

    stream(&mut app, &theme)?;
    scroll(&theme)?;
    charts(&theme)?;
    for steps in [1_000, 10_000, 100_000, 1_000_000] {
        long_run(steps, &theme)?;
    }
    Ok(())
}

/// Frames of a run of many steps, each with an evaluation and a decision: none of them may depend on how many.
fn long_run(steps: u32, theme: &Theme) -> Result<(), Box<dyn Error>> {
    let mut app = app_of(support::records(2));
    app.state.steps = (1..=steps).map(finished_step).collect();
    app.board = board_of(&app.state.steps);
    for step in 1..=steps {
        let eval = format!("s{step:03}");
        app.state.evals.insert(eval.clone(), evaluation(step));
        app.state.eval_order.push(eval);
    }
    let mut screen = Screen::new(Count::default());
    let (first, seconds) = timed(|| screen.draw(SIZE, |buf| draw(&app, theme, buf)));
    first?;
    print!("frame with {steps:>7} steps: first {:>7.2} ms", seconds * 1e3);
    for (what, keys) in [("newest", "2"), ("oldest", "2Gj"), ("gate", "2Gj5z"), ("overview", "z0z")] {
        keys.chars().for_each(|letter| drop(app.update(key(letter))));
        let draws = sorted(21, || {
            screen.repaint();
            let (drawn, seconds) = timed(|| screen.draw(SIZE, |buf| draw(&app, theme, buf)));
            drawn.map(|()| seconds * 1e3)
        })?;
        print!(", {what} {:.2}", draws[10]);
    }
    keys_and_frames(&mut app, theme, &mut screen)?;
    Ok(())
}

/// Another step is selected, and a step begins: with their frames.
fn keys_and_frames(app: &mut App, theme: &Theme, screen: &mut Screen<Count>) -> Result<(), Box<dyn Error>> {
    "2G".chars().for_each(|letter| drop(app.update(key(letter))));
    let moves = sorted(21, || {
        let began = Instant::now();
        app.update(key('k'));
        screen.draw(SIZE, |buf| draw(app, theme, buf))?;
        Ok::<_, std::io::Error>(began.elapsed().as_secs_f64() * 1e3)
    })?;
    let phases = [Phase::Rollout, Phase::Reflect, Phase::Evaluate];
    let mut n = 0;
    let news = sorted(21, || {
        let step = app.state.steps.len() as u32 + u32::from(n % 3 == 0);
        let at = StepRef { epoch: 1, step, step_in_epoch: step - 1 };
        let event = Event::PhaseStarted { at, phase: phases[n % 3] };
        n += 1;
        let record = Record { seq: app.state.seq + 1, at: 1_760_000_000_000, event };
        let began = Instant::now();
        app.update(Msg::Client(ClientEvent::Line(HostLine::Event(Box::new(record)))));
        screen.draw(SIZE, |buf| draw(app, theme, buf))?;
        Ok::<_, std::io::Error>(began.elapsed().as_secs_f64() * 1e3)
    })?;
    println!(", key {:.2}, phase {:.2} ms (medians; target 2)", moves[10], news[10]);
    Ok(())
}

fn evaluation(step: u32) -> EvalState {
    EvalState {
        purpose: EvalPurpose::Candidate,
        at: StepRef { epoch: 1, step, step_in_epoch: step - 1 },
        skill_hash: format!("{step:08}"),
        n: 0,
        results: Vec::new(),
        score: None,
        curtailed: false,
        missing: 0,
    }
}

/// The four curves of a long run: from the arrival of one more point of each to the frame's bytes.
fn charts(theme: &Theme) -> Result<(), Box<dyn Error>> {
    for points in [1_000, 10_000, POINTS, 1_000_000] {
        let mut app = app_of(support::records(2));
        let (_, seconds) = timed(|| (1..=points).for_each(|step| app.board.hear(&metrics(step))));
        println!("{points:>7} x 4 points heard    {:>9.0} ns a point", seconds * 1e9 / (points * 4) as f64);
        for (what, keys) in
            [("four charts", "6z"), ("smoothed, crosshair", "6zSi"), ("zoomed 1/64", "6z>>>>>>")]
        {
            let mut app = app_of(support::records(2));
            (1..=points).for_each(|step| app.board.hear(&metrics(step)));
            keys.chars().for_each(|letter| drop(app.update(key(letter))));
            let mut screen = Screen::new(Count::default());
            screen.draw(SIZE, |buf| draw(&app, theme, buf))?;
            let mut step = points;
            let frames = sorted(200, || {
                step += 1;
                let record = Record { seq: app.state.seq + 1, ..metrics(step) };
                let began = Instant::now();
                app.update(Msg::Client(ClientEvent::Line(HostLine::Event(Box::new(record)))));
                screen.draw(SIZE, |buf| draw(&app, theme, buf))?;
                Ok::<_, std::io::Error>(began.elapsed().as_secs_f64() * 1e3)
            })?;
            println!(
                "{what:<20}{points:>8} {:>9.2} ms median, {:.2} ms worst of 200 (target 2)",
                frames[100], frames[199]
            );
        }
    }
    Ok(())
}

/// One step of a program that measures four numbers.
fn metrics(step: u64) -> Record {
    let x = step as f64;
    let values =
        [("kl", x / 1e6), ("loss", 1.0 / x), ("reward", (x / 700.0).sin()), ("noise", (x * 7.7).cos())];
    let values = values.map(|(name, value)| (name.to_owned(), value)).into();
    Record { seq: 0, at: 1_760_000_000_000 + step * 1000, event: Event::Metric { step: Some(step), values } }
}

fn board_of(steps: &[StepState]) -> Board {
    let mut board = Board::default();
    for step in steps {
        let Some(record) = step.record.clone() else { continue };
        let record = Box::new(record);
        let event = Event::StepFinished { record, current_hash: String::new(), best_hash: String::new() };
        board.hear(&Record { seq: 0, at: 1_760_000_000_000 + u64::from(step.at.step) * 1000, event });
    }
    board
}

/// A key arrives behind a delta of each stream: from the first message to the frame's bytes.
fn stream(app: &mut App, theme: &Theme) -> Result<(), Box<dyn Error>> {
    let path = |n: usize| format!("e01/s001/rollout/card {n:03}#0");
    for n in 0..STREAMS {
        live(app, Live::CallStarted { path: path(n), item: format!("card {n:03}"), attempt: 1 });
    }
    let mut screen = Screen::new(Count::default());
    app.update(key('3'));
    screen.draw(SIZE, |buf| draw(app, theme, buf))?;
    let answers = sorted(500, || {
        let began = Instant::now();
        for n in 0..STREAMS {
            live(app, Live::CallDelta { path: path(n), text: "a few more words of a reply ".into() });
        }
        app.update(key('j'));
        screen.draw(SIZE, |buf| draw(app, theme, buf))?;
        Ok::<_, std::io::Error>(began.elapsed().as_secs_f64() * 1e3)
    })?;
    println!(
        "key to frame, {STREAMS} streams    {:>9.2} ms median, {:.2} ms worst of 500, before the frame clock (target 33)",
        answers[250], answers[499]
    );
    Ok(())
}

/// A step of many rollouts: a key and its frame, a new result and its frame, and what a new order or filter costs once.
fn scroll(theme: &Theme) -> Result<(), Box<dyn Error>> {
    let mut app = app_of(support::records(2));
    let made = support::records(60).into_iter().find_map(|record| match record.event {
        Event::RolloutFinished { result: ItemResult::Scored(rollout), .. } => Some(rollout),
        _ => None,
    });
    let Some(made) = made else { return Err("no rollout in the made-up journal".into()) };
    let at = StepRef { epoch: 1, step: 1, step_in_epoch: 0 };
    let result = |n: usize| {
        let mut one = (*made).clone();
        one.item = format!("card {}", n * 7919 % ROLLOUTS);
        (one.score.hard, one.ms) = ((n % 3) as f64 / 2.0, (n * 31 % 5000) as u64);
        ItemResult::Scored(one.into())
    };
    app.state.steps =
        vec![StepState { at, rollouts: (0..ROLLOUTS).map(result).collect(), ..StepState::default() }];
    let mut screen = Screen::new(Count::default());
    app.update(key('3'));
    let mut frame = |app: &mut App, keys: &str| {
        let began = Instant::now();
        for letter in keys.chars() {
            app.update(key(letter));
        }
        screen.draw(SIZE, |buf| draw(app, theme, buf))?;
        Ok::<_, std::io::Error>(began.elapsed().as_secs_f64() * 1e3)
    };
    let first = frame(&mut app, "j")?;
    println!("{ROLLOUTS} rollouts: first frame {first:>9.2} ms");
    for order in ["newest", "score", "item", "time", "tokens"] {
        let keys = sorted(500, || frame(&mut app, "j"))?;
        let came = sorted(50, || {
            let n = app.state.steps[0].rollouts.len();
            app.state.steps[0].rollouts.push(result(n));
            frame(&mut app, "")
        })?;
        println!(
            "{ROLLOUTS} rollouts by {order:<7}   {:>9.2} ms a key and frame ({:.2} worst of 500; target 2), {:.2} ms with a new result",
            keys[250], keys[499], came[25]
        );
        let again = frame(&mut app, "S")?;
        println!("    the next order, once    {again:>9.2} ms");
    }
    Ok(())
}

fn app_of(records: Vec<Record>) -> App {
    let identity = Identity { name: Author("ann".into()), read_only: false, client_id: "bench".into() };
    let mut app = App::new(identity, SIZE, 1_760_000_000_000);
    let welcome = HostLine::Welcome {
        proto: PROTOCOL,
        run: "bench".into(),
        run_dir: String::new(),
        last_seq: records.len() as u64,
        version: String::new(),
    };
    app.update(Msg::Client(ClientEvent::Line(welcome)));
    for record in records {
        app.update(Msg::Client(ClientEvent::Line(HostLine::Event(Box::new(record)))));
    }
    app
}

fn live(app: &mut App, news: Live) {
    app.update(Msg::Client(ClientEvent::Line(HostLine::Live(news))));
}

fn key(letter: char) -> Msg {
    Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE))
}

fn finished_step(step: u32) -> StepState {
    let at = StepRef { epoch: 1, step, step_in_epoch: step - 1 };
    let score = f64::from(step * 7919 % 1000) / 1000.0;
    let record = StepRecord {
        candidate_at_most: false,
        accumulation_batches: Vec::new(),
        current_score_stale: false,
        lr_control_mode: Default::default(),
        lr_decision: None,
        n_deep_failure_patches: None,
        n_deep_success_patches: None,
        rewrite_change_summary: None,
        n_execution_lapse_notes: None,
        n_appendix_notes_added: None,
        n_appendix_notes_total: None,
        n_appendix_notes_consolidated: None,
        at,
        tokens: TokenUsage::default(),
        rollout_hard: score,
        rollout_soft: score,
        rollout_n: 40,
        n_patches: 0,
        n_failure_patches: 0,
        n_success_patches: 0,
        n_edits_merged: 0,
        n_edits_ranked: 0,
        edit_budget: None,
        support_counts: Vec::new(),
        candidate_hash: None,
        candidate_skill_len: None,
        edit_apply_summary: None,
        selection_hard: None,
        selection_soft: None,
        gate_metric: GateMetric::Hard,
        candidate_gate_score: None,
        action: Verdict::SkipNoPatches,
        current_score: score,
        best_score: score,
        best_step: step,
        current_origin: String::new(),
        best_origin: String::new(),
        skill_len: 0,
    };
    let measured = GateScore { hard: score, soft: score, gate: score, n: 40, done: 40 };
    let gate = GateDecision {
        verdict: Verdict::Reject,
        metric: GateMetric::Hard,
        candidate_hash: String::new(),
        candidate: measured.clone(),
        current: measured.clone(),
        best: measured,
        gained: Vec::new(),
        lost: Vec::new(),
        mid_p: None,
        interval: (-0.1, 0.1),
        smallest_visible_gain: 0.1,
        curtailed: false,
        why: String::new(),
    };
    let finished_at = Some(u64::from(step) * 1000);
    StepState {
        at,
        record: Some(record),
        gate: Some(gate),
        eval: Some(format!("s{step:03}")),
        finished_at,
        ..StepState::default()
    }
}

/// Milliseconds from the start of the program in a new terminal to its first frame, or (`useful`) to the first one
/// that knows a record of the run: the very first is drawn before any arrives.
fn first_frame(args: &[&str], useful: bool) -> Result<f64, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let acks = folder.path().join("acks");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &acks, rustix::fs::FileType::Fifo, mode, 0)?;
    // For writing too, so that opening does not wait for the program.
    let mut lines = BufReader::new(OpenOptions::new().read(true).write(true).open(&acks)?);
    let pty = native_pty_system();
    let pair = pty.openpty(PtySize { rows: SIZE.1, cols: SIZE.0, ..PtySize::default() })?;
    let mut output = pair.master.try_clone_reader()?;
    std::thread::spawn(move || while output.read(&mut [0; 65536]).is_ok_and(|n| n > 0) {});
    let mut command = CommandBuilder::new(PROGRAM);
    command.args(args);
    command.env("TERM", "xterm-256color");
    command.env("PLANISH_FRAME_ACK", &acks);
    let began = Instant::now();
    let mut child = pair.slave.spawn_command(command)?;
    let mut line = String::new();
    while line.is_empty() || (useful && line.trim_end().ends_with(" seq 0")) {
        line.clear();
        lines.read_line(&mut line)?;
    }
    let ms = began.elapsed().as_secs_f64() * 1e3;
    child.kill()?;
    child.wait()?;
    Ok(ms)
}

fn sorted<E>(n: usize, mut measure: impl FnMut() -> Result<f64, E>) -> Result<Vec<f64>, E> {
    let mut out = (0..n).map(|_| measure()).collect::<Result<Vec<f64>, E>>()?;
    out.sort_by(f64::total_cmp);
    Ok(out)
}

/// Counts what a terminal would get.
#[derive(Default)]
struct Count {
    bytes: usize,
}

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
