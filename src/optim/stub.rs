use crate::domain::{Brief, Message, Prompt, Speaker};
use std::collections::BTreeMap;
pub struct Prompts;
impl Prompts {
    pub fn new(_: BTreeMap<String, String>, _: usize) -> Result<Self, String> {
        Ok(Self)
    }
    pub fn render(&self, brief: &Brief) -> Prompt {
        super::prompts::optimizer_prompt(brief)
    }
    pub fn repair(&self, prompt: &Prompt, reply: &str, fault: &str) -> Prompt {
        let Prompt::Chat(mut m) = prompt.clone() else { return prompt.clone() };
        m.push(Message::new(Speaker::Assistant, reply));
        m.push(Message::new(Speaker::User, fault));
        Prompt::Chat(m)
    }
}
