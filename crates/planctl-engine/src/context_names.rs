//! The names of a run's context that planctl itself writes.

/// Whole names that the engine answers for (DOT X2, H2, S7).
const NAMES: [&str; 13] = [
    "outcome",
    "preferred_label",
    "current_node",
    "last_stage",
    "last_response",
    "exit_code",
    "failure_reason",
    "failure_class",
    "tool_stdout",
    "tool_stderr",
    "tool_output",
    "context",
    "steps",
];

/// The first parts of names that the engine sets itself; every name below one of them is reserved (DOT X5).
const FAMILIES: [&str; 10] =
    ["internal", "graph", "parallel", "human", "tool", "stack", "retry", "steps", "manager", "loop"];

/// The beginning of names that say how something failed.
const FAILURE: &str = "failure_";

/// Says whether conditions find under a name what planctl writes, so that no worker may set it (DOT X5).
///
/// Conditions look at `context.NAME` before `NAME`, so a name with that beginning is judged without it.
pub fn is_own(name: &str) -> bool {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("context.") {
        name = rest;
    }
    let family = name.split('.').next().unwrap_or(name);
    NAMES.contains(&name) || FAMILIES.contains(&family) || name.starts_with(FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hole_9_what_the_engine_reads_is_its_own() {
        let own = "tool.exit_code tool.output stack.child.status exit_code failure_class failure_reason failure_x outcome \
                   preferred_label current_node last_stage retry.remaining internal.retry_count.a graph.goal \
                   parallel.results human.gate.selected context.outcome context.context.tool.output steps.a.outcome";
        for name in own.split_whitespace() {
            assert!(is_own(name), "{name}");
        }
        for name in ["verdict", "my.tool.output", "outcomes", "toolbox", "exit", "failure", "x"] {
            assert!(!is_own(name), "{name}");
        }
    }
}
