//! The ladder of ways to ask for a reply by schema: which rung comes first, and which one next. Must not know the wire.

use super::dialect::{Dialect, Feature};
use crate::domain::{Asks, Rung};

const LADDER: [Rung; 4] = [Rung::JsonSchema, Rung::JsonObject, Rung::ForcedTool, Rung::Text];

/// The strictest rung that the dialect has, not above `highest`. `None`: no schema is asked for.
pub(super) fn rung(dialect: &Dialect, asks: &Asks, highest: Rung) -> Option<Rung> {
    asks.output.as_ref()?;
    let has = |rung: Rung| match rung {
        Rung::JsonSchema => dialect.has(Feature::JsonSchema),
        Rung::JsonObject => dialect.has(Feature::JsonObject),
        // A tool that must be called leaves no room for others.
        Rung::ForcedTool => dialect.has(Feature::Tools) && asks.tools.is_empty(),
        Rung::Text => true,
    };
    LADDER.into_iter().filter(|rung| *rung >= highest).find(|rung| has(*rung))
}

/// The next one down. `None`: there is nothing to refuse about the last.
pub(super) fn below(rung: Rung) -> Option<Rung> {
    LADDER.into_iter().find(|lower| *lower > rung)
}

/// Words by which a refusal of this rung is known.
pub(super) fn marks(rung: Rung) -> &'static [&'static str] {
    match rung {
        Rung::JsonSchema => &[
            "response_format",
            "json_schema",
            "output_config",
            "output_format",
            "text.format",
            "structured output",
        ],
        Rung::JsonObject => &["response_format", "json_object", "text.format", "json mode"],
        Rung::ForcedTool => &["tool_choice", "tools", "tool use", "function call"],
        Rung::Text => &[],
    }
}

pub(super) fn word(rung: Rung) -> &'static str {
    match rung {
        Rung::JsonSchema => "a JSON schema",
        Rung::JsonObject => "a JSON object",
        Rung::ForcedTool => "a forced tool call",
        Rung::Text => "words in the prompt",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{OutputSchema, Tool};

    #[test]
    fn starts_at_the_best_rung_and_steps_down_to_text() {
        let output = Some(OutputSchema { name: "verdict".into(), schema: json!({}) });
        let tool = Tool { name: "t".into(), description: String::new(), parameters: json!({}) };
        let plain = Asks { output, ..Asks::default() };
        let with_tools = Asks { tools: vec![tool], ..plain.clone() };
        let mut dialect = Dialect::plain("test");
        assert_eq!(rung(&dialect, &Asks::default(), Rung::JsonSchema), None);
        let mut taken = Vec::new();
        let mut highest = Some(Rung::JsonSchema);
        while let Some(top) = highest {
            let next = rung(&dialect, &plain, top).unwrap();
            taken.push(next);
            highest = below(next);
        }
        assert_eq!(taken, LADDER);
        assert_eq!(rung(&dialect, &with_tools, Rung::ForcedTool), Some(Rung::Text));
        dialect.supports = vec![Feature::Tools];
        assert_eq!(rung(&dialect, &plain, Rung::JsonSchema), Some(Rung::ForcedTool));
        assert_eq!(rung(&dialect, &with_tools, Rung::JsonSchema), Some(Rung::Text));
    }
}
