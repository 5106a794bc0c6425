//! One call before a fan-out: calls that share a new long system prompt wait for the first of them, so that the provider's
//! prompt cache serves the others. Must not change what any call says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::domain::{ChatRequest, Prompt, Speaker, fingerprint};

/// Shorter prompts are not cached by anybody.
const LONG: usize = 4096;
/// Prompts that are remembered.
const REMEMBERED: usize = 64;

/// What one model was asked of late.
#[derive(Default)]
pub struct WarmUp {
    /// Newest last; the flag rises once the first call has its answer or its fault.
    prompts: Mutex<VecDeque<(String, watch::Receiver<bool>)>>,
}

/// A call may go. The first one with its prompt lets the others go when this is dropped, or earlier.
#[derive(Clone, Default)]
pub struct Lead(Option<Arc<watch::Sender<bool>>>);

impl WarmUp {
    /// Waits while another call with the same new prompt is the first.
    pub async fn enter(&self, request: &ChatRequest) -> Lead {
        let Some(prompt) = long_prompt(request) else { return Lead(None) };
        let mut first = {
            let mut prompts = self.prompts();
            match prompts.iter().find(|(known, _)| *known == prompt) {
                Some((_, first)) => first.clone(),
                None => {
                    let (done, first) = watch::channel(false);
                    if prompts.len() == REMEMBERED {
                        prompts.pop_front();
                    }
                    prompts.push_back((prompt, first));
                    return Lead(Some(Arc::new(done)));
                }
            }
        };
        // A dropped sender means that the first call is over too.
        let _ = first.wait_for(|done| *done).await;
        Lead(None)
    }

    fn prompts(&self) -> MutexGuard<'_, VecDeque<(String, watch::Receiver<bool>)>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead {
    /// The answer has begun: the provider has read the prompt.
    pub fn done(&self) {
        if let Some(done) = &self.0 {
            done.send_replace(true);
        }
    }

    pub fn leads(&self) -> bool {
        self.0.is_some()
    }
}

fn long_prompt(request: &ChatRequest) -> Option<String> {
    let Prompt::Chat(messages) = &request.prompt else { return None };
    let system = messages.first().filter(|message| message.role == Speaker::System)?;
    let text = system.content.text();
    (text.len() >= LONG).then(|| fingerprint([&*text]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Asks, Message, Role, Sampling};

    fn call(system: &str, user: &str) -> ChatRequest {
        ChatRequest {
            path: "p".into(),
            role: Role::Target,
            stage: "rollout".into(),
            prompt: Prompt::Chat(vec![
                Message::new(Speaker::System, system),
                Message::new(Speaker::User, user),
            ]),
            sampling: Sampling {
                max_tokens: 1,
                temperature: None,
                top_p: None,
                top_k: None,
                seed: None,
                stop: Vec::new(),
            },
            asks: Asks::default(),
            workspace: None,
            brief: None,
        }
    }

    #[tokio::test]
    async fn the_first_call_with_a_long_prompt_goes_alone() {
        let warm_up = Arc::new(WarmUp::default());
        let long = "rule ".repeat(1000);
        let first = warm_up.enter(&call(&long, "a")).await;
        assert!(first.leads());
        let follow = |user: &'static str| {
            let (warm_up, long) = (warm_up.clone(), long.clone());
            tokio::spawn(async move { warm_up.enter(&call(&long, user)).await.leads() })
        };
        let (second, third) = (follow("b"), follow("c"));
        tokio::task::yield_now().await;
        assert!(!second.is_finished() && !third.is_finished());
        assert!(
            warm_up.enter(&call(&format!("other {long}"), "a")).await.leads(),
            "another prompt waits for nobody"
        );
        assert!(!warm_up.enter(&call("short", "a")).await.leads());
        first.done();
        assert!(!second.await.unwrap() && !third.await.unwrap());
    }

    #[tokio::test]
    async fn a_first_call_that_was_dropped_keeps_nobody() {
        let warm_up = WarmUp::default();
        let long = "x".repeat(LONG);
        drop(warm_up.enter(&call(&long, "a")).await);
        assert!(!warm_up.enter(&call(&long, "b")).await.leads());
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded() {
        let warm_up = WarmUp::default();
        for n in 0..1000 {
            warm_up.enter(&call(&format!("{n}{}", "x".repeat(LONG)), "a")).await;
        }
        assert_eq!(warm_up.prompts().len(), REMEMBERED);
    }
}
