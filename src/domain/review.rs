//! Human decisions about proposed edits.

use serde::{Deserialize, Serialize};

/// Who gave a command: `user@tty` as the client states it, checked to be the same uid by the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Author(pub String);

/// A reviewer's word on one edit. `Undecided` takes an earlier one back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Undecided,
    Accept,
    Reject {
        #[serde(default)]
        reason: String,
    },
    /// Accept with other text, which takes the place of the edit's `content`; see [`super::Edit::amended`].
    Amend {
        content: String,
        #[serde(default)]
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewMode {
    #[default]
    Auto,
    Manual,
}

/// Words of a reviewer for the optimizer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewComment {
    /// The edit it is about, from 0; `None`: the step as a whole.
    pub edit: Option<usize>,
    pub text: String,
    pub by: Author,
}

/// What happens to undecided edits when a manual review times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPolicy {
    #[default]
    Accept,
    Reject,
    Wait,
}

/// How a review ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewClose {
    Auto,
    Submitted { by: Author },
    TimedOut { policy: TimeoutPolicy },
}
