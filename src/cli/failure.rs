//! Exit codes and the one message a failed command prints.

use crate::client::ClientError;
use crate::config::ConfigErrors;
use crate::engine::Stop;
use crate::event::{EndStatus, RunState, RunStatus};
use crate::store::StoreError;

/// Exit codes of the command line (a stable contract).
pub mod exit {
    pub const DONE: u8 = 0;
    pub const RUN_FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const NO_IMPROVEMENT: u8 = 3;
    pub const BUDGET: u8 = 4;
    pub const INTERRUPTED: u8 = 130;
}

/// Why a command ends early.
#[derive(Debug, PartialEq)]
pub enum Failure {
    Message {
        code: u8,
        text: String,
    },
    /// Whoever read our output has gone; there is nobody to tell.
    Quiet,
}

impl Failure {
    /// Bad usage, configuration or input.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Message { code: exit::USAGE, text: text.into() }
    }

    /// The run, or something it needs, failed.
    pub fn run(text: impl Into<String>) -> Self {
        Self::Message { code: exit::RUN_FAILED, text: text.into() }
    }

    /// The engine stopped before its end.
    pub fn stop(stop: &Stop) -> Self {
        let code = match stop.status() {
            EndStatus::BudgetExhausted => exit::BUDGET,
            EndStatus::Cancelled => exit::INTERRUPTED,
            EndStatus::Failed | EndStatus::Completed | EndStatus::Imported => exit::RUN_FAILED,
        };
        Self::Message { code, text: stop.to_string() }
    }

    /// Says so on stderr and gives the exit code.
    pub fn report(self) -> u8 {
        match self {
            Self::Message { code, text } => {
                super::output::complain(&text);
                code
            }
            Self::Quiet => exit::DONE,
        }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::usage(errors.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Store(error) => error.into(),
            ClientError::Target(_) | ClientError::Elsewhere { .. } => Self::usage(error.to_string()),
            ClientError::Refused(_) | ClientError::Unreachable(_) | ClientError::Announce(_) => {
                Self::run(error.to_string())
            }
        }
    }
}

/// Exit code that tells how a run ended; a run that goes on is no failure of the client that left it.
pub fn code_of(state: &RunState, require_improvement: bool) -> u8 {
    match &state.status {
        RunStatus::Ended { status: EndStatus::Completed, .. } => {
            let improved = match (state.best_score, state.baseline_score) {
                (Some(best), Some(baseline)) => best > baseline,
                _ => false,
            };
            if require_improvement && !improved { exit::NO_IMPROVEMENT } else { exit::DONE }
        }
        RunStatus::Ended { status: EndStatus::Cancelled, .. } => exit::INTERRUPTED,
        RunStatus::Ended { status: EndStatus::Failed, .. } => exit::RUN_FAILED,
        RunStatus::Ended { status: EndStatus::BudgetExhausted, .. } => exit::BUDGET,
        RunStatus::Ended { status: EndStatus::Imported, .. } => exit::DONE,
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => exit::DONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells_how_the_run_ended() {
        let ended = |status, best: f64| RunState {
            status: RunStatus::Ended { status, reason: String::new() },
            best_score: Some(best),
            baseline_score: Some(0.5),
            ..RunState::default()
        };
        assert_eq!(code_of(&ended(EndStatus::Completed, 0.5), false), exit::DONE);
        assert_eq!(code_of(&ended(EndStatus::Completed, 0.5), true), exit::NO_IMPROVEMENT);
        assert_eq!(code_of(&ended(EndStatus::Completed, 0.6), true), exit::DONE);
        assert_eq!(code_of(&ended(EndStatus::Cancelled, 0.6), false), exit::INTERRUPTED);
        assert_eq!(code_of(&ended(EndStatus::Failed, 0.6), false), exit::RUN_FAILED);
        assert_eq!(code_of(&ended(EndStatus::BudgetExhausted, 0.6), false), exit::BUDGET);
        assert_eq!(code_of(&RunState::default(), true), exit::DONE);
    }
}
