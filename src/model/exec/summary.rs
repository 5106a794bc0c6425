//! What an agent did, as a short plain text for the optimizer. Bounded; must not judge.

use crate::domain::{Turn, one_line};

/// Characters of one call and of one message.
const LINE: usize = 160;

/// Calls in order with what failed, and the last words; the middle is left out where `limit` characters are too few.
pub fn summary(turns: &[Turn], limit: usize) -> String {
    let calls = turns.iter().filter(|turn| matches!(turn, Turn::ToolCall { .. })).count();
    let failed = turns.iter().filter(|turn| matches!(turn, Turn::ToolCall { exit: Some(1..), .. })).count();
    let head = format!("{calls} tool calls, {failed} with an exit code other than 0");
    let lines: Vec<String> = turns.iter().filter_map(line).collect();
    let mut room = limit.saturating_sub(head.chars().count());
    let mut fits = |line: &&String| {
        let needed = line.chars().count() + 1;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    // The end tells most: it is kept first, then the beginning.
    let half = lines.len() / 2;
    let end = lines[half..].iter().rev().take_while(&mut fits).count();
    let start =
        if end == lines.len() - half { lines[..half].iter().take_while(&mut fits).count() } else { 0 };
    let left_out = lines.len() - start - end;
    let gap = (left_out > 0).then(|| format!("… {left_out} left out …"));
    let parts = lines[..start].iter().cloned().chain(gap).chain(lines[lines.len() - end..].iter().cloned());
    std::iter::once(head).chain(parts).collect::<Vec<_>>().join("\n")
}

fn line(turn: &Turn) -> Option<String> {
    match turn {
        Turn::ToolCall { cmd, obs, exit } => {
            let result = match exit {
                Some(0) => String::new(),
                Some(code) => format!(" (exit {code}: {})", one_line(obs, LINE / 2)),
                None => format!(" -> {}", one_line(obs, LINE / 2)),
            };
            Some(format!("- ran {}{result}", one_line(cmd, LINE)))
        }
        Turn::Message { role, content } if role == "assistant" => {
            Some(format!("- said {}", one_line(content, LINE)))
        }
        // Thoughts are long, and the scorer's word is not the agent's.
        Turn::Message { .. } | Turn::Step { .. } | Turn::Verification { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(cmd: &str, obs: &str, exit: Option<i32>) -> Turn {
        Turn::ToolCall { cmd: cmd.into(), obs: obs.into(), exit }
    }

    #[test]
    fn tells_calls_failures_and_last_words() {
        let said = Turn::Message { role: "assistant".into(), content: "It is\n42.".into() };
        let thought = Turn::Message { role: "thinking".into(), content: "hm".into() };
        let turns = [ran("cat task.md", "x", Some(0)), thought, ran("make", "no rule", Some(2)), said];
        let want = "2 tool calls, 1 with an exit code other than 0\n- ran cat task.md\n\
                    - ran make (exit 2: no rule)\n- said It is 42.";
        assert_eq!(summary(&turns, 1000), want);
        assert_eq!(summary(&[], 1000), "0 tool calls, 0 with an exit code other than 0");
    }

    #[test]
    fn a_long_trace_keeps_its_ends_within_bounds() {
        let turns: Vec<_> =
            (0..500).map(|n| ran(&format!("step {n} {}", "é".repeat(900)), "", Some(0))).collect();
        let text = summary(&turns, 4000);
        assert!(text.chars().count() < 4100, "{}", text.chars().count());
        assert!(text.contains("left out") && text.lines().last().unwrap().contains("step 499"), "{text}");
        assert_eq!(summary(&turns, 10).lines().count(), 2);
    }
}
