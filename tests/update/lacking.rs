//! What was not answered is said where it is looked for, and reviews are counted as they ended.

use planish::domain::{ReviewClose, StepRef, TimeoutPolicy};
use planish::event::{EndStatus, EvalPurpose, Event};
use planish::tui::{App, Pane};

use super::client::{played, press, text};
use super::fixture::{self, Tape};

const SIZE: (u16, u16) = (120, 40);
const WHY: &str = "the baseline lacks 2 of 6 items, so nothing can be compared with it";

/// The engine journals no item from the first one on that lacked an answer.
fn ended_in_baseline() -> App {
    let mut tape = fixture::begun();
    let seed = tape.current.clone();
    let at = StepRef::default();
    fixture::evaluate_part(&mut tape, "baseline", EvalPurpose::Baseline, at, &seed, (4, 6), 2);
    tape.push(10, fixture::finished(EndStatus::Failed, WHY));
    played(SIZE, &tape)
}

#[test]
fn a_baseline_without_all_items_is_not_under_way_after_the_end() {
    let mut app = ended_in_baseline();
    let shown = text(&app);
    assert!(shown.contains("the baseline lacks 2 of 6 items"), "{shown}");
    assert!(shown.contains("! baseline") && shown.contains("4/6  incomplete"), "{shown}");
    assert!(!shown.contains("▸ baseline"), "{shown}");
    press(&mut app, "3");
    assert!(text(&app).contains("! 2 items without a result"), "{}", text(&app));
    assert!(text(&played(SIZE, &baseline_under_way())).contains("▸ baseline"));
}

fn baseline_under_way() -> Tape {
    let mut tape = fixture::begun();
    let seed = tape.current.clone();
    let at = StepRef::default();
    fixture::evaluate_part(&mut tape, "baseline", EvalPurpose::Baseline, at, &seed, (4, 6), 2);
    tape
}

#[test]
fn reviews_are_counted_as_they_ended() {
    let mut tape = fixture::reviewing();
    let kept = fixture::edits()[..1].to_vec();
    tape.push(
        10,
        Event::ReviewClosed {
            at: fixture::step(3),
            close: ReviewClose::TimedOut { policy: TimeoutPolicy::Accept },
            kept,
            rejected: Vec::new(),
            comments: Vec::new(),
        },
    );
    let mut before = played((200, 60), &fixture::reviewing());
    let mut app = played((200, 60), &tape);
    for app in [&mut before, &mut app] {
        (app.arrangement.focus, app.arrangement.main) = (Pane::Overview, Pane::Overview);
    }
    assert!(text(&before).contains("3 reviews: 2 by people, 1 open"), "{}", text(&before));
    assert!(text(&app).contains("3 reviews: 2 by people, 1 timed out"), "{}", text(&app));
    let kept = |app: &App| app.tally().kept;
    assert_eq!(kept(&app), kept(&before) + 1, "what the time-out kept counts");
}
