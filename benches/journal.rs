//! How fast a run's journal is written, opened and folded, without and with a snapshot. Prints numbers, judges none.

mod support;

use std::error::Error;

use planish::domain::Author;
use planish::event::{HostLine, PROTOCOL, RunState};
use planish::store::{
    JournalFile, RunDir, RunLock, glance_run, glance_snapshot, read_records, write_snapshot,
};
use planish::tui::{App, ClientEvent, Depth, Identity, Msg, Screen, Theme, draw};
use support::{memory_mb, timed};

const EVENTS: usize = 1_000_000;
/// Events after the snapshot.
const TAIL: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let root = tempfile::tempdir()?;
    let run = RunDir::create(root.path(), "bench")?;
    let lock = RunLock::acquire(&run)?;
    let mut journal = JournalFile::open(&run, &lock)?.journal;
    let records = support::records(EVENTS);

    let (written, seconds) = timed(|| {
        records.chunks(512).try_for_each(|batch| journal.append(batch).and_then(|()| journal.sync()))
    });
    written?;
    println!("append + sync per 512       {:>9.0} events/s", EVENTS as f64 / seconds);
    println!("journal                     {:>9.1} MB", journal.len() as f64 / 1e6);
    drop(records);

    let (opened, open_s) = timed(|| JournalFile::open(&run, &lock));
    let opened = opened?;
    let (state, fold_s) = timed(|| RunState::fold(&opened.records));
    println!("open {EVENTS} events         {:>9.0} ms", open_s * 1e3);
    println!("fold                        {:>9.0} ms", fold_s * 1e3);
    println!("open and fold               {:>9.0} ms (target 2000)", (open_s + fold_s) * 1e3);
    if let Some(peak) = memory_mb("VmHWM") {
        println!("peak memory                 {peak:>9.0} MB");
    }
    drop((opened, state));

    let records = read_records(&run)?;
    let early = RunState::fold(&records[..EVENTS - TAIL]);
    let covers = journal.len() - bytes_of(&records[EVENTS - TAIL..])?;
    drop(records);
    let (written, seconds) = timed(|| write_snapshot(&run, &early, covers));
    written?;
    drop(early);
    println!("write a snapshot            {:>9.0} ms", seconds * 1e3);
    println!("snapshot                    {:>9.1} MB", std::fs::metadata(run.snapshot())?.len() as f64 / 1e6);
    let (state, seconds) = timed(|| glance_run(&run));
    println!("snapshot + tail of {TAIL}    {:>9.0} ms (target 300), seq {}", seconds * 1e3, state?.seq);
    let (drawn, seconds) = timed(|| first_frame(&run));
    println!("files to first useful frame {:>9.0} ms (target 300), {} bytes", seconds * 1e3, drawn?);
    Ok(())
}

/// The first frame of an attached workbench that shows the run, as a client without a host gets it.
fn first_frame(run: &RunDir) -> Result<usize, Box<dyn Error>> {
    let glance = glance_snapshot(run)?.ok_or("no snapshot")?;
    let identity = Identity { name: Author("ann".into()), read_only: true, client_id: "bench".into() };
    let mut app = App::new(identity, (120, 40), glance.updated_at);
    let welcome = HostLine::Welcome {
        proto: PROTOCOL,
        run: "bench".into(),
        run_dir: String::new(),
        last_seq: glance.seq,
        version: String::new(),
    };
    for line in [welcome, HostLine::Glance(Box::new(glance))] {
        app.update(Msg::Client(ClientEvent::Line(line)));
    }
    let theme = Theme::dark(Depth::Ansi256)?;
    let mut out = Vec::new();
    Screen::new(&mut out).draw((120, 40), |buf| draw(&app, &theme, buf))?;
    Ok(out.len())
}

fn bytes_of(records: &[planish::event::Record]) -> Result<u64, serde_json::Error> {
    records.iter().map(|record| Ok(planish::event::encode_line(record)?.len() as u64)).sum()
}
