//! Long contexts of several passages. Owns where they may be cut; must not know templates.

/// Begins every passage of a SearchQA context.
const PASSAGE: &str = "[DOC]";

/// Ends a passage that was cut within.
const CUT: &str = "\n...[truncated]";

/// `context` itself when it has at most `limit` characters; else its leading whole passages that fit, or the first `limit`
/// characters and a mark where not even one does.
pub fn leading_passages(context: &str, limit: usize) -> String {
    if context.chars().count() <= limit {
        return context.to_owned();
    }
    let (mut kept, mut length) = (String::new(), 0);
    for passage in context.split(PASSAGE).filter(|passage| !passage.trim().is_empty()) {
        let joint = if kept.is_empty() { "" } else { PASSAGE };
        length += joint.len() + passage.chars().count();
        if length > limit {
            break;
        }
        kept.push_str(joint);
        kept.push_str(passage);
    }
    if kept.is_empty() {
        kept = context.chars().take(limit).chain(CUT.chars()).collect();
    }
    kept
}
