use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::memory::reviewer_refusal;
use super::super::region::MARKERS;
use super::super::{
    ReplyFault, analyst_reply, consolidated_notes, extract_json, lr_decision, merge_reply,
    meta_reflect_reply, meta_skill_reply, probe_reply, ranked_edits, rewrite_reply, slow_update_reply,
};
use super::*;
use crate::domain::{
    ComparisonPair, Edit, EditOp, PairCategory, PairSide, Patch, StepMemory, Trajectory, Turn,
};

const LIMIT: usize = 12_000;
const MODES: [UpdateMode; 3] =
    [UpdateMode::Patch, UpdateMode::RewriteFromSuggestions, UpdateMode::FullRewriteMinibatch];
const SOURCES: [Option<SourceType>; 3] = [Some(SourceType::Failure), Some(SourceType::Success), None];

fn prompts(limit: usize) -> Prompts {
    Prompts::new(BTreeMap::new(), limit).unwrap()
}

fn messages(prompt: &Prompt) -> (String, String) {
    let Prompt::Chat(messages) = prompt else { panic!("not a chat") };
    let [system, user] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((system.role, user.role), (Speaker::System, Speaker::User));
    (system.content.text(), user.content.text())
}

fn rendered(brief: &Brief) -> (String, String) {
    messages(&prompts(LIMIT).render(brief))
}

/// What untrusted texts of a brief say.
struct Material {
    text: String,
    skill: String,
}

impl Material {
    fn typical() -> Self {
        Self { text: "Bo is in Rome.".into(), skill: "# Skill\n\n- a\n".into() }
    }

    fn empty() -> Self {
        Self { text: String::new(), skill: String::new() }
    }

    fn huge() -> Self {
        Self { text: format!("HEAD{}TAIL", "é".repeat(100_000)), skill: "# Skill\n".into() }
    }

    fn shown(&self) -> Trajectory {
        let text = || self.text.clone();
        Trajectory {
            item: "Bo".into(),
            task_type: text(),
            task: text(),
            gold: text(),
            system_prompt: text().into(),
            user_prompt: format!("{} Where?", self.text),
            reply: text(),
            answer: text(),
            hard: 0.0,
            soft: 0.25,
            reason: text(),
            turns: Vec::new(),
            reference: String::new(),
        }
    }

    fn patch(&self, mode: UpdateMode) -> Patch {
        let op = match mode {
            UpdateMode::Patch => EditOp::Append,
            UpdateMode::RewriteFromSuggestions => EditOp::Clarify,
            UpdateMode::FullRewriteMinibatch => EditOp::Rewrite,
        };
        let edit: Edit =
            serde_json::from_value(json!({"op": op, "target": "T", "content": "c", "rationale": self.text}))
                .unwrap();
        Patch { reasoning: "r".into(), edits: vec![edit.clone(), edit] }
    }

    fn memory(&self) -> Vec<StepMemory> {
        if self.text.is_empty() {
            return Vec::new();
        }
        vec![StepMemory {
            step: 1,
            action: "reject".into(),
            n_total: 4,
            n_fail: 2,
            failure_patterns: vec![("wrong answer".into(), 2, vec!["Bo".into(), "Al".into()])],
            scores: Some((0.5, 0.25)),
            at_most: false,
            failed_attempts: vec![reviewer_refusal(&self.patch(UpdateMode::Patch).edits[0], &self.text)],
            reviewer_notes: Vec::new(),
        }]
    }

    fn pairs(&self) -> Vec<ComparisonPair> {
        let pair = |category: PairCategory| {
            let side = |hard| PairSide {
                hard,
                soft: 0.5,
                predicted_answer: self.text.clone(),
                fail_reason: self.text.clone(),
            };
            ComparisonPair {
                id: category.name().into(),
                task: self.text.clone(),
                category,
                prev: side(1),
                curr: side(0),
                prev_trajectory: self.text.clone(),
                curr_trajectory: self.text.clone(),
            }
        };
        if self.text.is_empty() { Vec::new() } else { PairCategory::ALL.map(pair).to_vec() }
    }

    /// Every kind of brief.
    fn briefs(&self) -> Vec<Brief> {
        let (skill, meta_skill) = (|| self.skill.clone(), || self.text.clone());
        let mut briefs = Vec::new();
        for mode in MODES {
            for source in SOURCES {
                briefs.push(Brief::Merge {
                    mode,
                    source,
                    level: 1,
                    skill: skill(),
                    patches: vec![self.patch(mode), self.patch(mode)],
                    meta_skill: meta_skill(),
                });
            }
            for (source, appendix) in
                [SourceType::Failure, SourceType::Success].into_iter().flat_map(|s| [(s, false), (s, true)])
            {
                briefs.push(Brief::Analyze {
                    mode,
                    source,
                    skill: skill(),
                    budget: 3,
                    trajectories: if self.text.is_empty() { Vec::new() } else { vec![self.shown(); 2] },
                    memory: self.memory(),
                    meta_skill: meta_skill(),
                    appendix,
                });
            }
            briefs.push(Brief::MetaReflect {
                mode,
                skill: skill(),
                budget: 2,
                previous_summary: meta_skill(),
                history: "### Step 1".into(),
            });
        }
        for mode in [UpdateMode::Patch, UpdateMode::RewriteFromSuggestions] {
            let (patch, meta_skill) = (self.patch(mode), meta_skill());
            briefs.push(Brief::Rank { mode, skill: skill(), patch, budget: 1, meta_skill });
        }
        briefs.push(Brief::LearningRate {
            mode: UpdateMode::Patch,
            skill: skill(),
            patch: self.patch(UpdateMode::Patch),
            rollout_n: 4,
            rollout_hard: 0.5,
            rollout_soft: 2.0 / 3.0,
            memory: self.memory(),
            meta_skill: meta_skill(),
        });
        briefs.push(Brief::Rewrite {
            skill: skill(),
            suggestions: self.patch(UpdateMode::RewriteFromSuggestions),
            memory: self.memory(),
        });
        let (prev_skill, previous) = (self.skill.clone(), self.text.clone());
        briefs.push(Brief::SlowUpdate {
            prev_skill: prev_skill.clone(),
            skill: skill(),
            previous_guidance: previous.clone(),
            pairs: self.pairs(),
        });
        briefs.push(Brief::MetaSkill { prev_skill, skill: skill(), previous, pairs: self.pairs() });
        for reference in ["", "the theorem"] {
            let mut shown = self.shown();
            shown.reference = reference.into();
            briefs.push(Brief::Probe {
                skill: skill(),
                trajectories: vec![shown.clone(), shown],
                memory: self.memory(),
                meta_skill: meta_skill(),
            });
        }
        briefs.push(Brief::Consolidate { notes: vec!["one".into(), "two\n- three".into()] });
        briefs
    }
}

/// Reads the example of the JSON object in a system prompt as the stage reads a reply.
fn read_example(brief: &Brief, system: &str) -> Result<usize, ReplyFault> {
    let from = system.find("    {\"").unwrap();
    let to = from + system[from..].find("\n\n").unwrap_or(system.len() - from);
    let example = system[from..to]
        .replace("[edit, …]", r#"[{"op": "append", "content": "c"}]"#)
        .replace("[suggestion, …]", r#"[{"type": "clarify", "title": "t", "instruction": "i"}]"#)
        .replace("[candidate]", r#"[{"title": "t", "new_skill": "s"}]"#)
        .replace("number of trajectories you read", "1");
    assert!(extract_json(&example).is_some(), "{example}");
    let edits = |patch: Patch| patch.edits.len();
    match brief {
        Brief::Analyze { mode, source, budget, .. } => {
            analyst_reply(&example, *mode, *source, *budget, &[]).map(|reply| edits(reply.patch))
        }
        Brief::Merge { mode, source, patches, .. } => {
            merge_reply(&example, *mode, None, *source, patches).map(edits)
        }
        Brief::Rank { patch, .. } => {
            let patch = Patch { edits: [patch.edits.clone(), patch.edits.clone()].concat(), ..patch.clone() };
            ranked_edits(&patch, 1, &example).map(|selection| edits(selection.patch))
        }
        Brief::LearningRate { .. } => lr_decision(&example, 1).map(|decision| decision.learning_rate),
        Brief::Rewrite { .. } => rewrite_reply(&example).map(|rewrite| rewrite.change_summary.len()),
        Brief::SlowUpdate { .. } => slow_update_reply(&example).map(|(_, guidance)| guidance.len().min(1)),
        Brief::MetaSkill { .. } => meta_skill_reply(&example).map(|(_, memory)| memory.len().min(1)),
        Brief::MetaReflect { mode, budget, .. } => {
            meta_reflect_reply(&example, *mode, *budget).map(|(_, patch)| edits(patch))
        }
        Brief::Probe { .. } => probe_reply(&example, &[], None).map(|probe| probe.reasoning.len().min(1)),
        Brief::Consolidate { notes } => consolidated_notes(&example, notes.len()).map(|notes| notes.len()),
    }
}

#[test]
fn the_example_of_every_system_prompt_is_understood_by_the_reader_of_its_stage() {
    let mut systems = BTreeSet::new();
    for brief in Material::typical().briefs() {
        let (system, _) = rendered(&brief);
        assert_eq!(read_example(&brief, &system), Ok(1), "{system}");
        assert!(system.ends_with(prompts(LIMIT).text("answer_rules").trim()), "{system}");
        systems.insert(system);
    }
    // Analysts (no appendix in whole rewrites), merges, meta-reflections, rankings, and seven of one kind each.
    assert_eq!(systems.len(), 10 + 9 + 2 + 2 + 7, "stages have prompts of their own");
}

#[test]
fn every_prompt_that_leads_to_a_change_names_the_protected_regions() {
    for brief in Material::typical().briefs() {
        let (system, _) = rendered(&brief);
        let changes = !matches!(
            brief,
            Brief::LearningRate { .. }
                | Brief::MetaSkill { .. }
                | Brief::Probe { .. }
                | Brief::Consolidate { .. }
        );
        let names_all = MARKERS.iter().all(|(start, end)| system.contains(start) && system.contains(end));
        assert_eq!(names_all, changes, "{system}");
    }
}

#[test]
fn every_text_is_part_of_some_prompt() {
    let mut used: BTreeSet<String> = BTreeSet::from(["repair".into(), "deep_probe_trace".into()]);
    for brief in Material::typical().briefs() {
        used.extend(parts(&brief).into_iter().map(Cow::into_owned));
    }
    assert_eq!(used, Prompts::NAMES.iter().map(|name| (*name).to_owned()).collect());
    assert!(BUILT_IN.iter().all(|(_, text)| !text.trim().is_empty()));
}

#[test]
fn an_override_takes_the_place_of_one_text_and_keeps_the_rules() {
    let overrides = BTreeMap::from([("analyst_failure".to_owned(), " Find the fault.\n".to_owned())]);
    let prompts = Prompts::new(overrides, LIMIT).unwrap();
    let analyze = |source| {
        Material::typical().briefs().into_iter().find(|brief| {
        matches!(brief, Brief::Analyze { mode: UpdateMode::Patch, source: found, .. } if *found == source)
    })
    };
    let (system, _) = messages(&prompts.render(&analyze(SourceType::Failure).unwrap()));
    assert!(system.starts_with("Find the fault.\n\n## What an edit is"), "{system}");
    assert!(system.contains(MARKERS[0].0) && system.contains("## How to answer"));
    let (system, _) = messages(&prompts.render(&analyze(SourceType::Success).unwrap()));
    assert!(system.contains("successes"), "{system}");
    let unknown = Prompts::new(BTreeMap::from([("analyst".to_owned(), String::new())]), LIMIT).unwrap_err();
    assert!(
        unknown.to_string().starts_with("there is no prompt \"analyst\"; the prompts are analyst_failure,")
    );
}

#[test]
fn an_analyst_sees_skill_budget_memory_and_trajectories_in_order() {
    let brief = Brief::Analyze {
        mode: UpdateMode::Patch,
        source: SourceType::Failure,
        skill: "# Skill\n\n- a\n".into(),
        budget: 1,
        trajectories: vec![Trajectory {
            user_prompt: "Bo is in Rome.".into(),
            reason: "wrong answer: Paris".into(),
            ..Material::typical().shown()
        }],
        memory: Material::typical().memory(),
        meta_skill: "be brief".into(),
        appendix: false,
    };
    let (_, user) = rendered(&brief);
    assert_eq!(
        user,
        "## Current skill document\n\n<skill>\n# Skill\n\n- a\n</skill>\n\n## Budget\n\nAt most 1 edit.\n\n\
         ## Earlier steps of this epoch\n\nDo not repeat a change that was rejected or refused, and answer a \
         reviewer's reason.\n\n<steps>\n### Step 1 — REJECT (2/4 failed)\n  - \"wrong answer\" (×2, tasks: Bo, Al)\n  \
         Edits a reviewer refused:\n    1. [append] target=\"T\" → \"c\": rejected by reviewer because Bo is in \
         Rome.\n</steps>\n\n## Memory of the epoch before\n\nAdvice from earlier revisions. The evidence below and \
         above comes first; follow the advice only where the evidence is ambiguous.\n\n<memory>\nbe brief\n</memory>\
         \n\n## Trajectories (1)\n\n### Trajectory 1 (id=Bo)\n\n<task>\nBo is in Rome.\n</task>\n\n\
         Task type: Bo is in Rome.\nScore: hard 0, soft 0.25\nScorer's reason: wrong answer: Paris\n\
         Reference answer: Bo is in Rome.\nExtracted answer: Bo is in Rome.\n\n<system_prompt>\nBo is in Rome.\n\
         </system_prompt>\n\n<reply>\nBo is in Rome.\n</reply>"
    );
}

#[test]
fn empty_material_is_said_to_be_empty() {
    for brief in Material::empty().briefs() {
        let (_, user) = rendered(&brief);
        if !matches!(brief, Brief::Consolidate { .. }) {
            assert!(user.contains("## Current skill document\n\n<skill>\n(the document is empty)\n</skill>"));
        }
        assert!(!user.contains("Earlier steps") && !user.contains("Memory of the epoch before"), "{user}");
        match brief {
            Brief::Analyze { .. } => assert!(user.ends_with("## Trajectories (0)"), "{user}"),
            Brief::SlowUpdate { .. } => {
                assert!(user.contains("## Present guidance\n\n(there is none)"), "{user}");
                assert!(
                    user.ends_with("(0)\n\nimproved 0, regressed 0, persistent_fail 0, stable_success 0.")
                );
            }
            Brief::MetaReflect { .. } => assert!(user.contains("(this is the first epoch)"), "{user}"),
            _ => {}
        }
    }
}

#[test]
fn huge_material_is_cut_in_the_middle_and_says_so() {
    for brief in Material::huge().briefs() {
        let (_, user) = rendered(&brief);
        // Proposals, memories and guidance stay whole, to be copied or replaced.
        let whole = match &brief {
            Brief::Merge { .. } => 5,
            Brief::Rank { .. } | Brief::LearningRate { .. } => 3,
            Brief::Rewrite { .. } => 2,
            Brief::Analyze { .. } | Brief::Probe { .. } | Brief::MetaReflect { .. } => 1,
            Brief::SlowUpdate { .. } | Brief::MetaSkill { .. } => 1,
            Brief::Consolidate { .. } => 0,
        };
        let size = user.chars().count();
        assert!(size < whole * 100_100 + 100_000, "{size}: {}", user.chars().take(300).collect::<String>());
    }
    let (_, user) = rendered(&Brief::Analyze {
        mode: UpdateMode::Patch,
        source: SourceType::Failure,
        skill: String::new(),
        budget: 1,
        trajectories: vec![Material::huge().shown()],
        memory: Vec::new(),
        meta_skill: String::new(),
        appendix: false,
    });
    assert!(user.contains("<reply>\nHEADé") && user.contains("éTAIL\n</reply>"));
    assert!(user.contains("[… 88008 characters cut …]"), "100,008 less 12,000");
}

#[test]
fn a_limit_of_0_cuts_nothing_and_others_scale_the_rest() {
    let huge = Material::huge();
    let brief = |turns| Brief::Probe {
        skill: String::new(),
        trajectories: vec![Trajectory { turns, ..huge.shown() }, huge.shown()],
        memory: Vec::new(),
        meta_skill: String::new(),
    };
    let user = |limit, turns: &[Turn]| messages(&prompts(limit).render(&brief(turns.to_vec()))).1;
    assert!(!user(0, &[]).contains("characters cut"));
    assert_eq!(user(0, &[]).matches("TAIL").count(), 2 * 8);
    assert!(user(1_200, &[]).contains("<reply>\nHEADé"));
    assert!(user(1_200, &[]).chars().count() < user(12_000, &[]).chars().count() / 5);
    let calls = [Turn::tool("c".repeat(600), "ok")];
    assert!(user(12_000, &calls).contains("[… 100 characters cut …]"));
    assert!(user(0, &calls).contains(&"c".repeat(600)));
}

#[test]
fn proposals_to_rank_are_one_line_each_with_their_number() {
    let mode = UpdateMode::RewriteFromSuggestions;
    let (skill, patch) = ("s".to_owned(), Material { text: "a\nb".into(), skill: String::new() }.patch(mode));
    let (_, user) = rendered(&Brief::Rank { mode, skill, patch, budget: 1, meta_skill: String::new() });
    let row = r#"{"type":"clarify","title":"T","motivation":"a\nb","instruction":"c","source_type":"failure","support_count":1}"#;
    assert!(
        user.contains(&format!("(2, numbered from 0)\n\n<proposals>\n0: {row}\n1: {row}\n</proposals>")),
        "{user}"
    );
    assert!(user.ends_with("At most 1 suggestion."));
}

#[test]
fn the_final_merge_says_which_patch_has_priority() {
    let merge = |source| {
        let (_, user) = rendered(&Brief::Merge {
            mode: UpdateMode::Patch,
            source,
            level: 2,
            skill: String::new(),
            patches: vec![Material::typical().patch(UpdateMode::Patch); 2],
            meta_skill: String::new(),
        });
        user
    };
    let user = merge(None);
    let failure = user.find("### From failures (high priority)").unwrap();
    assert!(failure < user.find("### From successes (lower priority)").unwrap());
    let user = merge(Some(SourceType::Success));
    assert!(user.contains("## Patches to merge (2, merge level 2)\n\n### Patch 1\n\n<patch>\n{"), "{user}");
}

#[test]
fn a_comparison_shows_what_got_worse_first_and_stable_successes_without_conversations() {
    let (_, user) = rendered(&Brief::SlowUpdate {
        prev_skill: "# Before\n".into(),
        skill: "# Now\n".into(),
        previous_guidance: "check units".into(),
        pairs: Material::typical().pairs(),
    });
    let place = |text: &str| user.find(text).unwrap_or_else(|| panic!("{text} is not in {user}"));
    let headings = ["### Worse", "### Fail as before", "### Better", "### Succeed as before"];
    assert!(headings.windows(2).all(|pair| place(pair[0]) < place(pair[1])));
    assert!(place("<previous_skill>\n# Before\n") < place("<skill>\n# Now\n"));
    assert!(place("<guidance>\ncheck units\n") < place("(4)\n\nimproved 1, regressed 1, "));
    let wanted =
        "Before: PASS, soft 0.50, answer \"Bo is in Rome.\", reason \"Bo is in Rome.\"\nNow: FAIL, soft 0.50";
    assert!(user.contains(wanted), "{user}");
    assert_eq!(user.matches("<before>").count(), 3);
    assert!(!user[place("### Succeed as before")..].contains("<before>"));
}

#[test]
fn a_single_attempt_with_a_trace_can_be_asked_at_a_step() {
    let turns =
        vec![Turn::Message { role: "user".into(), content: "go\nthere".into() }, Turn::tool("ls", "a")];
    let probe = |trajectories| Brief::Probe {
        skill: String::new(),
        trajectories,
        memory: Vec::new(),
        meta_skill: String::new(),
    };
    let shown = Trajectory { turns, ..Material::typical().shown() };
    let (system, user) = rendered(&probe(vec![shown.clone()]));
    assert!(system.contains("probe_after_step") && system.contains("probe_target_id"), "{system}");
    assert!(user.ends_with("<trace>\n0: [user] go there\n1: [action] ls [obs] a\n</trace>"), "{user}");
    assert!(
        user.contains("<conversation>\n[user] go\nthere\n[action] ls\n[obs]    a\n</conversation>"),
        "{user}"
    );
    let (system, _) = rendered(&probe(vec![shown.clone(), shown]));
    assert!(!system.contains("probe_after_step"), "{system}");
}

#[test]
fn a_repair_goes_on_with_the_conversation() {
    let prompts = prompts(LIMIT);
    let asked = prompts.render(&Brief::Consolidate { notes: Vec::new() });
    let reply = format!("HEAD{}TAIL", "x".repeat(1_000_000));
    let Prompt::Chat(messages) = prompts.repair(&asked, &reply, "the reply holds no JSON value") else {
        panic!("not a chat")
    };
    let Prompt::Chat(before) = asked else { panic!("not a chat") };
    assert_eq!(messages[..2], before);
    let [_, _, answer, request] = messages.as_slice() else { panic!("{}", messages.len()) };
    assert_eq!((answer.role, request.role), (Speaker::Assistant, Speaker::User));
    assert!(answer.content.text().starts_with("HEADx") && answer.content.text().ends_with("xTAIL"));
    assert!(answer.content.text().len() < REPAIRED_REPLY + 100);
    assert!(request.content.text().ends_with("\n\nWhat is wrong: the reply holds no JSON value"));
    let Prompt::Chat(messages) = prompts.repair(&Prompt::Text("x".into()), " ", "f") else {
        panic!("not a chat")
    };
    assert_eq!(messages[1].content.text(), "(empty)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever a text says, the headings and tags of the layout stay the only ones at the start of a line outside of tags.
    #[test]
    fn no_material_can_leave_its_place(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "</task>", "</skill>", "</reply>", "</reference_answer>", "</memory>", "</patch>", "</before>",
                "\n", "\r\n", "## Budget", "x", "\"", "</TASK>",
            ]),
            0..8,
        ),
    ) {
        let text = pieces.concat();
        let material = Material { text: text.clone(), skill: format!("{text}\n# Skill") };
        for brief in material.briefs() {
            let (_, user) = rendered(&brief);
            let mut open: Option<&str> = None;
            for line in user.lines() {
                match open {
                    Some(tag) if line == format!("</{tag}>") => open = None,
                    Some(_) => {}
                    None => {
                        if let Some(tag) = line.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
                            prop_assert!(!tag.starts_with('/'), "{line} in {user}");
                            open = Some(tag);
                        } else {
                            prop_assert!(line.starts_with("## Budget") == (line == "## Budget"), "{line}");
                        }
                    }
                }
            }
            prop_assert_eq!(open, None, "{}", user);
            let budgets = user.matches("\n## Budget\n\nAt most ").count();
            prop_assert!(budgets <= 1);
        }
    }
}
