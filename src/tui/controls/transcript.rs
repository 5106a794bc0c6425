//! Controls of the transcript of one rollout.

use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::msg::Effect;
use crate::tui::rows::RowBody;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TranscriptAction {
    Fold,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Transcript TranscriptAction:
    Fold          "transcript.fold"      "prompt"    ["t"]              None, false, always, "show or fold the prompt";
};

pub const HINTS: &[Action] = &[
    Action::Transcript(TranscriptAction::Fold),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::Copy),
    Action::Global(GlobalAction::Back),
    Action::Global(GlobalAction::Zoom),
];

#[derive(Clone, Debug)]
pub struct TranscriptView {
    pub scroll: Scroll,
    pub show_prompt: bool,
    /// Keep the end of a streaming reply in view.
    pub follow: bool,
}

impl Default for TranscriptView {
    fn default() -> Self {
        Self { scroll: Scroll::default(), show_prompt: false, follow: true }
    }
}

impl App {
    pub(in crate::tui) fn act_transcript(&mut self, action: TranscriptAction) -> Vec<Effect> {
        match action {
            TranscriptAction::Fold => self.transcript.show_prompt = !self.transcript.show_prompt,
        }
        Vec::new()
    }

    pub(in crate::tui) fn move_in_transcript(&mut self, lines: isize) {
        self.transcript.scroll.by(lines);
        self.transcript.follow = lines > 0 && self.transcript.scroll.at_end();
    }

    pub(in crate::tui) fn copied_from_transcript(&self) -> String {
        let rows = self.rows();
        match rows.get(self.selected_row(&rows)).map(|row| &row.body) {
            Some(RowBody::Done(rollout)) => rollout.reply.clone(),
            Some(RowBody::Missing(error)) => (*error).to_owned(),
            Some(RowBody::Call(call)) => call.text.clone(),
            None => String::new(),
        }
    }
}
