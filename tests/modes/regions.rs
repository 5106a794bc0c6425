//! Whatever the mode: what stands in a protected region changes only by the stage that owns the region.

use planish::domain::EpochStage;
use planish::event::{Event, RunState};

use crate::lanterns::Finished;

const SLOW: (&str, &str) = ("<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->");
const APPENDIX: (&str, &str) = ("<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->");

/// The regions of a document with their markers, in its order. Markers must come in pairs.
fn region(skill: &str, (start, end): (&str, &str)) -> Option<String> {
    assert_eq!(skill.matches(start).count(), skill.matches(end).count(), "a lone marker in {skill}");
    assert!(skill.matches(start).count() < 2, "two regions in {skill}");
    let from = skill.find(start)?;
    let to = skill[from..].find(end).unwrap() + from + end.len();
    Some(skill[from..to].to_owned())
}

/// Follows the current skill through the journal and compares every candidate with it.
pub fn survive(run: &Finished) {
    let mut state = RunState::default();
    for record in &run.records {
        let current = state.skill_text(&state.current_hash).unwrap_or_default().to_owned();
        let kept = |text: &str, of| {
            assert_eq!(region(text, of), region(&current, of), "after {}", record.event.kind())
        };
        match &record.event {
            Event::SkillUpdated { candidate, .. } => {
                kept(&candidate.text, SLOW);
                kept(&candidate.text, APPENDIX);
            }
            Event::AppendixUpdated { skill, .. } => kept(&skill.text, SLOW),
            Event::EpochStageFinished { stage, .. } => match stage {
                EpochStage::SlowUpdate(found) => {
                    if let Some(candidate) = &found.candidate {
                        kept(&candidate.text, APPENDIX);
                    }
                }
                EpochStage::MetaSkill(_) => {}
                EpochStage::MetaReflect(found) => {
                    if let Some(candidate) = &found.candidate {
                        kept(&candidate.text, SLOW);
                        kept(&candidate.text, APPENDIX);
                    }
                }
            },
            _ => {}
        }
        state.apply(record);
    }
}
