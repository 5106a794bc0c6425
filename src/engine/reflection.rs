//! Reflect, aggregate and select: optimiser calls over training trajectories, their patches merged and ranked.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::Stop;
use super::calls::{Asked, Pending, Workshop};
use crate::domain::{
    AppendixSource, Brief, EffectKey, FailureNote, Patch, Skill, SourceType, StepMemory, StepRef, Trajectory,
    Usage,
};
use crate::event::{Event, LogLevel, Ranking};
use crate::optim::{
    AnalystReply, FinalMerge, MergePlan, Minibatch, analyst_reply, final_fallback, final_merge, first_edits,
    merge_reply, minibatches, ranked_edits, within_budget,
};

/// What one analyst call yielded.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub source: SourceType,
    pub items: Vec<String>,
    pub patch: Option<Patch>,
    pub failures: Vec<FailureNote>,
    pub appendix_notes: Vec<String>,
    pub usage: Usage,
}

impl Analysis {
    /// Has something to merge.
    pub fn proposes(&self) -> bool {
        self.patch.as_ref().is_some_and(|patch| !patch.edits.is_empty())
    }
}

/// Analyst calls of one batch, already running.
pub struct Analyses {
    calls: Vec<AnalystCall>,
}

struct AnalystCall {
    place: AnalystPlace,
    result: Pending<Answer>,
}

/// A reply, or why there is none, with what the call cost.
#[derive(Clone, Debug)]
struct Answer {
    reply: Option<AnalystReply>,
    note: String,
    /// False: the call failed for good.
    heard: bool,
    usage: Usage,
}

/// What the optimizer is shown besides trajectories.
pub struct Lesson<'a> {
    pub at: StepRef,
    pub skill: &'a Skill,
    pub memory: &'a [StepMemory],
    /// The memory of the previous epoch; "" without one.
    pub meta_skill: &'a str,
}

/// Rollouts that are reflected upon together.
pub struct Batch<'a> {
    pub number: usize,
    pub seed: u64,
    pub trajectories: &'a [Trajectory],
    /// They were probed: a second look at representative items.
    pub deep: bool,
}

/// Starts one analyst call per minibatch of trajectories.
pub fn start_analyses(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    batch: &Batch<'_>,
) -> Result<Analyses, Stop> {
    let config = shop.config();
    let gradient = &config.gradient;
    let failed: Vec<bool> = batch.trajectories.iter().map(|trajectory| trajectory.hard < 1e-9).collect();
    let groups = minibatches(&failed, gradient.minibatch_size, batch.seed, gradient.failure_only);
    let mut count = [0; 2];
    let calls = groups
        .into_iter()
        .map(|group| {
            let index = &mut count[usize::from(group.source == SourceType::Success)];
            *index += 1;
            start_analyst(shop, lesson, batch, &group, *index - 1)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Analyses { calls })
}

fn start_analyst(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    batch: &Batch<'_>,
    group: &Minibatch,
    index: usize,
) -> Result<AnalystCall, Stop> {
    let trajectories: Vec<Trajectory> =
        group.members.iter().map(|member| batch.trajectories[*member].clone()).collect();
    let items = trajectories.iter().map(|trajectory| trajectory.item.clone()).collect::<Vec<_>>();
    let config = shop.config();
    let optimizer = &config.optimizer;
    let (mode, source, budget) = (optimizer.skill_update_mode, group.source, optimizer.learning_rate);
    let brief = Brief::Analyze {
        mode,
        source,
        skill: lesson.skill.text.clone(),
        budget,
        trajectories,
        memory: lesson.memory.to_vec(),
        meta_skill: lesson.meta_skill.to_owned(),
        appendix: optimizer.use_skill_aware_reflection
            && (source == SourceType::Failure
                || optimizer.skill_aware_appendix_source == AppendixSource::Both),
    };
    let (stage, number) = (if batch.deep { "deep/" } else { "" }, batch.number);
    let path = format!("{}/{stage}analyst/b{number}/{}{index:03}", lesson.at.path(), source_word(source));
    let request = shop.optimizer_request(path, "analyst", brief);
    let key = request.key(shop.optimizer.label());
    let result = match shop.journal.effect(&key)? {
        Some(Event::AnalysisFinished {
            patch,
            failures,
            success_patterns,
            appendix_notes,
            note,
            usage,
            ..
        }) => {
            let reply = patch.map(|patch| AnalystReply {
                patch,
                failures,
                success_patterns,
                appendix_notes,
                left_out: Vec::new(),
            });
            Pending::Recalled(Answer { reply, note, heard: true, usage })
        }
        Some(_) | None => {
            let (shop, shown) = (shop.clone(), items.clone());
            Pending::Running(AbortOnDropHandle::new(tokio::spawn(async move {
                let read = |text: &str| analyst_reply(text, mode, source, budget, &shown);
                let Asked { answer, heard, usage } = shop.ask(&request, read).await?;
                Ok(match answer {
                    Ok(reply) => Answer { note: reply.left_out.join("; "), reply: Some(reply), heard, usage },
                    Err(note) => Answer { reply: None, note, heard, usage },
                })
            })))
        }
    };
    let place = AnalystPlace { key, source, minibatch: index, items, deep: batch.deep };
    Ok(AnalystCall { place, result })
}

/// Which analyst call an answer belongs to.
struct AnalystPlace {
    key: EffectKey,
    source: SourceType,
    minibatch: usize,
    items: Vec<String>,
    deep: bool,
}

impl AnalystPlace {
    fn journal(self, shop: &Workshop, at: StepRef, answer: Answer) -> Result<Analysis, Stop> {
        let Self { key, source, minibatch, items, deep } = self;
        let Answer { reply, note, usage, .. } = answer;
        let (patch, found) = match reply {
            Some(AnalystReply { patch, failures, success_patterns, appendix_notes, .. }) => {
                (Some(patch), (failures, success_patterns, appendix_notes))
            }
            None => (None, Default::default()),
        };
        let (failures, success_patterns, appendix_notes) = found;
        shop.journal.emit(Event::AnalysisFinished {
            key,
            at,
            source,
            minibatch,
            items: items.clone(),
            patch: patch.clone(),
            failures: failures.clone(),
            success_patterns,
            appendix_notes: appendix_notes.clone(),
            deep,
            note,
            usage,
        })?;
        Ok(Analysis { source, items, patch, failures, appendix_notes, usage })
    }
}

impl Analyses {
    /// Collects and journals all calls in minibatch order. When not one of them was answered, the run stops before any is
    /// journaled, so that a resume asks again.
    pub async fn collect(self, shop: &Workshop, at: StepRef) -> Result<Vec<Analysis>, Stop> {
        let mut analyses = Vec::with_capacity(self.calls.len());
        let (mut heard, mut held) = (false, Vec::new());
        for AnalystCall { place, result } in self.calls {
            let answer = result.result().await?;
            heard |= answer.heard;
            held.push((place, answer));
            if heard {
                for (place, answer) in held.drain(..) {
                    analyses.push(place.journal(shop, at, answer)?);
                }
            }
        }
        if let Some((_, answer)) = held.first() {
            let (step, why) = (at.step, &answer.note);
            return Err(Stop::Failed(format!("no analyst of step {step} answered; the first: {why}")));
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
        let mut plan = MergePlan::new(patches, shop.config().gradient.merge_batch_size);
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
    let mode = shop.config().optimizer.skill_update_mode;
    let brief = Brief::Merge {
        mode,
        source,
        level,
        skill: lesson.skill.text.clone(),
        patches: patches.clone(),
        meta_skill: lesson.meta_skill.to_owned(),
    };
    let path = format!("{}/merge/{place}", lesson.at.path());
    let request = shop.optimizer_request(path, "merge", brief);
    let level = source.is_some().then_some(level);
    let Asked { answer, usage, .. } =
        shop.ask(&request, |text| merge_reply(text, mode, level, source, &patches)).await?;
    Ok((answer, usage))
}

fn source_word(source: SourceType) -> &'static str {
    match source {
        SourceType::Failure => "fail",
        SourceType::Success => "succ",
    }
}

/// Ranks the merged proposals and keeps at most `budget` of them; all of them without a budget.
pub async fn select(
    shop: &Arc<Workshop>,
    lesson: &Lesson<'_>,
    merged: &Patch,
    budget: Option<usize>,
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
    let selection = match budget.map(|budget| (budget, within_budget(merged, budget))) {
        None => None,
        Some((_, Some(selection))) => Some(selection),
        Some((budget, None)) => {
            let brief = Brief::Rank {
                mode: shop.config().optimizer.skill_update_mode,
                skill: lesson.skill.text.clone(),
                patch: merged.clone(),
                budget,
                meta_skill: lesson.meta_skill.to_owned(),
            };
            let request = shop.optimizer_request(format!("{}/rank", at.path()), "ranking", brief);
            let asked = shop.ask(&request, |text| ranked_edits(merged, budget, text)).await?;
            usage = asked.usage;
            Some(asked.answer.unwrap_or_else(|fault| {
                note = format!("ranking unusable ({fault}); the first {budget} were taken");
                first_edits(merged, budget)
            }))
        }
    };
    let (patch, ranking) = match selection {
        None => (merged.clone(), None),
        Some(selection) => {
            let selected_indices = selection.indices;
            let ranking = selection.ranking.map(|reasoning| Ranking { reasoning, selected_indices });
            (selection.patch, ranking)
        }
    };
    shop.journal.emit(Event::EditsSelected { at, budget, patch: patch.clone(), ranking, note, usage })?;
    Ok((patch, usage))
}
