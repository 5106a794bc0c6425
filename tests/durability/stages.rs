//! Every mode and option: a run is killed in every stage that it goes through, also between a reply that is stored in
//! `calls/` and the event that journals it.

use std::collections::BTreeMap;

use planish::domain::Phase;
use planish::event::Event;

use crate::host::{Task, cut, outcome};
use crate::lanterns::Lanterns;
use crate::scenario::records;

/// Engine events after which the run is killed, in order: one in every phase that all runs have, and of everything that
/// only some configurations do the first and the last event of each kind.
fn places(events: &[Event]) -> Vec<u64> {
    let mut phase = None;
    let mut common: BTreeMap<Option<Phase>, Vec<u64>> = BTreeMap::new();
    let mut added: BTreeMap<(Option<Phase>, String), Vec<u64>> = BTreeMap::new();
    for (place, event) in (1..).zip(events) {
        if let Event::PhaseStarted { phase: started, .. } = event {
            phase = Some(*started);
        }
        let what = match event {
            Event::OptimizerAnswered { stage, .. } => Some(stage.clone()),
            Event::AnalysisFinished { source, deep: true, .. } => Some(format!("deep {source:?}")),
            Event::EvaluationStarted { purpose, .. } => Some(format!("{purpose:?}")),
            Event::EpochStageFinished { stage, .. } => Some(format!("{:?}", stage.action())),
            Event::AppendixUpdated { .. } => Some("appendix".to_owned()),
            _ => (!phase.is_some_and(of_all_runs)).then(|| event.kind()),
        };
        match what {
            Some(what) => added.entry((phase, what)).or_default().push(place),
            None => common.entry(phase).or_default().push(place),
        }
    }
    let middle = common.values().map(|places| places[places.len() / 2]);
    let ends = added.values().flat_map(|places| [places[0], places[places.len() - 1]]);
    // The last event is the end of the run.
    let mut places: Vec<u64> = middle.chain(ends).filter(|place| *place < events.len() as u64).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn of_all_runs(phase: Phase) -> bool {
    Phase::STEP.contains(&phase) || matches!(phase, Phase::Baseline | Phase::Test)
}

/// Whether an event follows at once upon a reply that was stored before it.
fn journals_a_reply(event: &Event) -> bool {
    matches!(
        event,
        Event::RolloutFinished { .. }
            | Event::AnalysisFinished { .. }
            | Event::OptimizerAnswered { .. }
            | Event::MergeFinished { .. }
            | Event::EditsSelected { .. }
            | Event::EvaluationItemFinished { .. }
    )
}

fn survives(config: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lanterns = runtime.block_on(Lanterns::new(config));
    let task = Task {
        config: lanterns.config(),
        overrides: lanterns.overrides(),
        folder: lanterns.dir().to_owned(),
        servers: [&lanterns.target, &lanterns.optimizer],
    };
    task.drive("undisturbed", None);
    let expected = outcome(&task.run("undisturbed"));
    let recorded = records(&task.run("undisturbed")).into_iter().map(|record| record.event);
    let events: Vec<Event> = recorded.filter(|event| !event.is_outside()).collect();

    let run = task.run("killed");
    let places = places(&events);
    let mut in_time = 0;
    for place in &places {
        let completed = task.drive("killed", Some(*place));
        in_time += usize::from(!completed);
        // The host may have gone on for a moment.
        let reply_only = journals_a_reply(&events[*place as usize - 1]);
        cut(&run, if reply_only { place - 1 } else { *place });
    }
    assert!(in_time * 2 > places.len(), "{config}: only {in_time} of {} kills came in time", places.len());
    task.drive("killed", None);
    for (file, text) in outcome(&run) {
        assert_eq!(text, expected[&file], "{config}: {file} differs from the undisturbed run");
    }
}

macro_rules! modes {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            survives(stringify!($name));
        }
    )*};
}

every_configuration!(modes);
