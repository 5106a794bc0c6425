//! Reflect, aggregate and select: optimiser calls over training trajectories, their patches merged and ranked.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::Stop;
use super::calls::{Pending, Workshop};
use crate::domain::{
    Brief, EffectKey, FailureNote, Patch, Skill, SourceType, StepMemory, StepRef, Trajectory, Usage,
};
use crate::event::{Event, LogLevel};
use crate::optim::{
    FinalMerge, MergePlan, Minibatch, analyst_reply, final_fallback, final_merge, first_edits, merge_reply,
    minibatches, optimizer_prompt, ranked_edits, within_budget,
};

/// What one analyst call yielded.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub source: SourceType,
    pub items: Vec<String>,
    pub patch: Option<Patch>,
    pub failures: Vec<FailureNote>,
    pub usage: Usage,
}

/// Analyst calls of one batch, already running.
pub struct Analyses {
    calls: Vec<AnalystCall>,
}

struct AnalystCall {
    key: EffectKey,
    source: SourceType,
    minibatch: usize,
    items: Vec<String>,
    result: Pending<Answer>,
}

/// A patch, or why there is none, with what the call cost.
#[derive(Clone, Debug)]
struct Answer {
    patch: Option<Patch>,
    failures: Vec<FailureNote>,
    note: String,
    usage: Usage,
}

impl Answer {
    fn without_patch(note: String, usage: Usage) -> Self {
        Self { patch: None, failures: Vec::new(), note, usage }
    }
}

/// What the analysts of a step are shown besides trajectories.
pub struct Lesson<'a> {
    pub at: StepRef,
    pub skill: &'a Skill,
    pub memory: &'a [StepMemory],
}

/// Starts one analyst call per minibatch of trajectories.
pub fn start_analyses(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    batch: usize,
    batch_seed: u64,
    trajectories: &[Trajectory],
) -> Result<Analyses, Stop> {
    let gradient = &shop.config.gradient;
    let failed: Vec<bool> = trajectories.iter().map(|trajectory| trajectory.hard < 1e-9).collect();
    let groups = minibatches(&failed, gradient.minibatch_size, batch_seed, gradient.failure_only);
    let mut count = [0; 2];
    let calls = groups
        .into_iter()
        .map(|group| {
            let index = &mut count[usize::from(group.source == SourceType::Success)];
            *index += 1;
            start_analyst(shop, lesson, batch, group.source, *index - 1, members(trajectories, &group))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Analyses { calls })
}

fn start_analyst(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    batch: usize,
    source: SourceType,
    index: usize,
    trajectories: Vec<Trajectory>,
) -> Result<AnalystCall, Stop> {
    let items = trajectories.iter().map(|trajectory| trajectory.item.clone()).collect::<Vec<_>>();
    let budget = shop.config.optimizer.learning_rate;
    let brief = Brief::Analyze {
        source,
        skill: lesson.skill.text.clone(),
        budget,
        trajectories,
        memory: lesson.memory.to_vec(),
        mode: shop.config.optimizer.skill_update_mode,
        meta_skill: String::new(),
        appendix: false,
    };
    let path = format!("{}/analyst/b{batch}/{}{index:03}", lesson.at.path(), source_word(source));
    let request = shop.optimizer_request(path, "analyst", optimizer_prompt(&brief), brief);
    let key = request.key(shop.optimizer.label());
    let result = match shop.journal.effect(&key)? {
        Some(Event::AnalysisFinished { patch, failures, note, usage, .. }) => {
            Pending::Recalled(Answer { patch, failures, note, usage })
        }
        Some(_) | None => {
            let (shop, shown) = (shop.clone(), items.clone());
            Pending::Running(AbortOnDropHandle::new(tokio::spawn(async move {
                let reply = match shop.call_optimizer(&request).await? {
                    Ok(reply) => reply,
                    Err(note) => return Ok(Answer::without_patch(note, Usage::default())),
                };
                Ok(match analyst_reply(&reply.text, source, budget, &shown) {
                    Ok(answer) => Answer {
                        patch: Some(answer.patch),
                        failures: answer.failures,
                        note: answer.left_out.join("; "),
                        usage: reply.usage,
                    },
                    Err(fault) => Answer::without_patch(fault.to_string(), reply.usage),
                })
            })))
        }
    };
    Ok(AnalystCall { key, source, minibatch: index, items, result })
}

fn members(trajectories: &[Trajectory], group: &Minibatch) -> Vec<Trajectory> {
    group.members.iter().map(|member| trajectories[*member].clone()).collect()
}

impl Analyses {
    /// Collects and journals all calls in minibatch order.
    pub async fn collect(self, shop: &Workshop, at: StepRef) -> Result<Vec<Analysis>, Stop> {
        let mut analyses = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            let AnalystCall { key, source, minibatch, items, result } = call;
            let Answer { patch, failures, note, usage } = result.result().await?;
            shop.journal.emit(Event::AnalysisFinished {
                key,
                at,
                source,
                minibatch,
                items: items.clone(),
                patch: patch.clone(),
                failures: failures.clone(),
                success_patterns: Vec::new(),
                appendix_notes: Vec::new(),
                deep: false,
                note,
                usage,
            })?;
            analyses.push(Analysis { source, items, patch, failures, usage });
        }
        Ok(analyses)
    }
}

/// Merges all patches of a step into one: level by level within failures and within successes, then both.
pub async fn aggregate(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    analyses: &[Analysis],
) -> Result<(Patch, Usage), Stop> {
    let at = lesson.at;
    let recorded = shop.journal.recall(|event| match event {
        Event::MergeFinished { at: merged, patch, usage, .. } if *merged == at => {
            Some((patch.clone(), *usage))
        }
        _ => None,
    });
    if let Some(recorded) = recorded {
        return Ok(recorded);
    }
    let mut tally = Tally::default();
    let mut merged = Vec::with_capacity(2);
    for source in [SourceType::Failure, SourceType::Success] {
        let patches = analyses.iter().filter(|analysis| analysis.source == source);
        let patches = patches.filter_map(|analysis| analysis.patch.clone());
        let patches = patches.filter(|patch| !patch.edits.is_empty()).collect();
        let mut plan = MergePlan::new(patches, shop.config.gradient.merge_batch_size);
        loop {
            let tasks = plan.next_level();
            if tasks.is_empty() {
                break;
            }
            let calls = tasks.into_iter().map(|task| {
                let place = format!("{}/l{}/{}", source_word(source), task.level, task.chunk);
                merge_call(shop, lesson, Some(source), task.level, place, task.patches)
            });
            let results = futures_util::future::try_join_all(calls).await?;
            let merged = results.into_iter().map(|result| tally.count(shop, at, result));
            plan.complete(merged.collect::<Result<Vec<_>, _>>()?);
        }
        merged.push(plan.finish());
    }
    let success = merged.pop().unwrap_or_default();
    let failure = merged.pop().unwrap_or_default();
    let patch = match final_merge(failure, success) {
        FinalMerge::Done(patch) => patch,
        FinalMerge::Ask(pair) => {
            let result = merge_call(shop, lesson, None, 0, "final".into(), pair.to_vec()).await?;
            tally.count(shop, at, result)?.unwrap_or_else(|| final_fallback(pair))
        }
    };
    let Tally { model_merges, fallbacks, usage } = tally;
    shop.journal.emit(Event::MergeFinished { at, patch: patch.clone(), model_merges, fallbacks, usage })?;
    Ok((patch, usage))
}

/// What the merges of a step came to.
#[derive(Default)]
struct Tally {
    model_merges: usize,
    fallbacks: usize,
    usage: Usage,
}

impl Tally {
    /// `None`: that merge cannot be used; the log says why, and its edits stay unmerged.
    fn count(
        &mut self,
        shop: &Workshop,
        at: StepRef,
        (merged, usage): (Result<Patch, String>, Usage),
    ) -> Result<Option<Patch>, Stop> {
        self.usage += usage;
        match merged {
            Ok(patch) => {
                self.model_merges += 1;
                Ok(Some(patch))
            }
            Err(fault) => {
                self.fallbacks += 1;
                let message =
                    format!("step {}: a merge is unusable ({fault}); its edits stay unmerged", at.step);
                shop.journal.outside(|_| Ok(Event::Log { level: LogLevel::Warn, message }))?;
                Ok(None)
            }
        }
    }
}

/// One merge call; an error says why it failed or why its reply cannot be used.
async fn merge_call(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    source: Option<SourceType>,
    level: u32,
    place: String,
    patches: Vec<Patch>,
) -> Result<(Result<Patch, String>, Usage), Stop> {
    let brief = Brief::Merge {
        mode: shop.config.optimizer.skill_update_mode,
        source,
        level,
        skill: lesson.skill.text.clone(),
        patches: patches.clone(),
        meta_skill: String::new(),
    };
    let path = format!("{}/merge/{place}", lesson.at.path());
    let request = shop.optimizer_request(path, "merge", optimizer_prompt(&brief), brief);
    Ok(match shop.call_optimizer(&request).await? {
        Ok(reply) => {
            let level = source.is_some().then_some(level);
            let merged = merge_reply(&reply.text, level, source, &patches).map_err(|fault| fault.to_string());
            (merged, reply.usage)
        }
        Err(error) => (Err(error), Usage::default()),
    })
}

fn source_word(source: SourceType) -> &'static str {
    match source {
        SourceType::Failure => "fail",
        SourceType::Success => "succ",
    }
}

/// Ranks the merged edits and keeps at most `budget` of them.
pub async fn select(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    merged: &Patch,
    budget: usize,
) -> Result<(Patch, Usage), Stop> {
    let at = lesson.at;
    let recorded = shop.journal.recall(|event| match event {
        Event::EditsSelected { at: selected, patch, usage, .. } if *selected == at => {
            Some((patch.clone(), *usage))
        }
        _ => None,
    });
    if let Some(recorded) = recorded {
        return Ok(recorded);
    }
    let mut usage = Usage::default();
    let mut note = String::new();
    let patch = match within_budget(merged, budget) {
        Some(selection) => selection.patch,
        None => {
            let brief = Brief::Rank {
                mode: shop.config.optimizer.skill_update_mode,
                skill: lesson.skill.text.clone(),
                patch: merged.clone(),
                budget,
                meta_skill: String::new(),
            };
            let path = format!("{}/rank", at.path());
            let request = shop.optimizer_request(path, "ranking", optimizer_prompt(&brief), brief);
            let ranked = match shop.call_optimizer(&request).await? {
                Ok(reply) => {
                    usage = reply.usage;
                    ranked_edits(merged, budget, &reply.text).map_err(|fault| fault.to_string())
                }
                Err(error) => Err(error),
            };
            let selection = ranked.unwrap_or_else(|fault| {
                note = format!("ranking unusable ({fault}); the first {budget} edits were taken");
                first_edits(merged, budget)
            });
            selection.patch
        }
    };
    shop.journal.emit(Event::EditsSelected {
        at,
        budget: Some(budget),
        patch: patch.clone(),
        ranking: None,
        note,
        usage,
    })?;
    Ok((patch, usage))
}
