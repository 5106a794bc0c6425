//! Guidance from a comparison of two epochs: the sentences of the library that make known right answers likeliest. Must
//! not look at anything but the brief.

use serde_json::{Value, json};

use super::measure::{Trial, compare, score};
use super::rules::{fitting, library};
use super::search::{MIN_GAIN, SAMPLE};
use crate::domain::{ComparisonPair, PairCategory, Trajectory};
use crate::model::{Likelihood, ModelError};

const START: &str = "<!-- SLOW_UPDATE_START -->";
const END: &str = "<!-- SLOW_UPDATE_END -->";

/// The reply of a slow update: of the present guidance and the library's sentences the one that gains most over no
/// guidance, and a second sentence where it gains on top of that. Measured on tasks whose right answer one of the two
/// skills gave, those that got worse first; a task that failed both times has no known answer.
pub async fn slow_update(
    likelihood: &dyn Likelihood,
    skill: &str,
    present: &str,
    pairs: &[ComparisonPair],
) -> Result<Value, ModelError> {
    let tasks = known(pairs);
    let bare = with_guidance(skill, "");
    let all: Vec<usize> = (0..tasks.len()).collect();
    let measured = async |guidances: &[String]| -> Result<Vec<(f64, String)>, ModelError> {
        let trial = |guidance: &str| Trial { skill: with_guidance(skill, guidance), items: all.clone() };
        let mut trials = vec![Trial { skill: bare.clone(), items: all.clone() }];
        trials.extend(guidances.iter().map(|guidance| trial(guidance)));
        let mut scores = score(likelihood, &tasks, &trials).await?.into_iter();
        let before = scores.next().unwrap_or_default();
        let gains = scores.map(|after| compare(&before, &after).map_or(0.0, |measured| measured.gain()));
        Ok(gains.zip(guidances.iter().cloned()).collect())
    };
    let sentences: Vec<String> = fitting(library()?, &tasks)
        .into_iter()
        .map(|rule| rule.text.clone())
        .filter(|sentence| !bare.contains(sentence.as_str()))
        .collect();
    let mut first = sentences.clone();
    if !present.trim().is_empty() {
        first.insert(0, present.trim().to_owned());
    }
    let mut chosen = (0.0, String::new());
    if !tasks.is_empty() {
        chosen = best(chosen, measured(&first).await?);
        if !chosen.1.is_empty() {
            let more = sentences.iter().filter(|sentence| !chosen.1.contains(sentence.as_str()));
            let pairs: Vec<String> = more.map(|sentence| format!("{}\n{sentence}", chosen.1)).collect();
            chosen = best(chosen, measured(&pairs).await?);
        }
    }
    let (gain, guidance) = chosen;
    let reasoning = format!(
        "built-in edit search (no model wrote this): {} sentences measured on {} tasks with a known answer; log \
         p(answer) per token gains {gain:.3}",
        first.len(),
        tasks.len()
    );
    Ok(json!({"reasoning": reasoning, "slow_update_content": guidance}))
}

/// The first of the candidates that gains most, if that is worth it.
fn best(so_far: (f64, String), candidates: Vec<(f64, String)>) -> (f64, String) {
    let enough = so_far.0 + MIN_GAIN;
    let better = candidates.into_iter().filter(|(gain, _)| *gain > enough);
    better.fold(so_far, |best, candidate| if candidate.0 > best.0 { candidate } else { best })
}

/// Tasks with the answer that was right under one of the two skills, as the search knows training items.
fn known(pairs: &[ComparisonPair]) -> Vec<Trajectory> {
    let order = [PairCategory::Regressed, PairCategory::Improved, PairCategory::StableSuccess];
    let ordered =
        order.iter().flat_map(|category| pairs.iter().filter(move |pair| pair.category == *category));
    ordered.take(SAMPLE).map(known_task).collect()
}

fn known_task(pair: &ComparisonPair) -> Trajectory {
    let right = if pair.category == PairCategory::Regressed { &pair.prev } else { &pair.curr };
    Trajectory {
        item: pair.id.clone(),
        task_type: String::new(),
        task: pair.task.clone(),
        gold: right.predicted_answer.clone(),
        system_prompt: Default::default(),
        user_prompt: String::new(),
        reply: String::new(),
        answer: String::new(),
        hard: 0.0,
        soft: 0.0,
        reason: String::new(),
        turns: Vec::new(),
        reference: String::new(),
    }
}

/// The skill with `guidance` in its region, or at its end.
fn with_guidance(skill: &str, guidance: &str) -> String {
    let inner = if guidance.is_empty() { "\n".to_owned() } else { format!("\n{guidance}\n") };
    let place = skill.find(START).and_then(|start| {
        let from = start + START.len();
        Some((from, from + skill[from..].find(END)?))
    });
    match place {
        Some((from, to)) => format!("{}{inner}{}", &skill[..from], &skill[to..]),
        None => format!("{}\n\n{START}{inner}{END}\n", skill.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guidance_takes_its_place() {
        let skill = with_guidance("Intro.\n", "Be brief.");
        assert_eq!(skill, format!("Intro.\n\n{START}\nBe brief.\n{END}\n"));
        assert_eq!(with_guidance(&skill, ""), format!("Intro.\n\n{START}\n{END}\n"));
    }
}
