//! The meaning, the values and the default of each field of a plan: for hovers and completion.

/// The help for a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldHelp {
    /// Its name as the reader knows it: lower case, with underscores.
    pub name: &'static str,
    /// Its name as authors write it.
    pub label: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The value that applies where it is not given; `required` where it has to be.
    pub default: &'static str,
    /// Values worth offering.
    pub values: &'static [&'static str],
    /// An example of its value.
    pub example: &'static str,
}

/// The frontmatter's keys.
pub const FRONTMATTER: &[FieldHelp] = &[
    FieldHelp {
        name: "type",
        label: "type",
        meaning: "Says that this markdown file is a plan.",
        default: "required",
        values: &["plan"],
        example: "plan",
    },
    FieldHelp {
        name: "status",
        label: "status",
        meaning: "Where the plan stands. planctl writes it; the database is the record.",
        default: "draft",
        values: &["draft"],
        example: "draft",
    },
    FieldHelp {
        name: "owner",
        label: "owner",
        meaning: "Who answers for the plan; free text.",
        default: "orchestrator",
        values: &[],
        example: "orchestrator",
    },
    FieldHelp {
        name: "domains",
        label: "domains",
        meaning: "The domains that the plan is for, as an entry of the library; with none it is for all.",
        default: "none",
        values: &[],
        example: "[bugfix]",
    },
    FieldHelp {
        name: "triggers",
        label: "triggers",
        meaning: "The words by which a message calls for the plan: in order, with up to two others between.",
        default: "none",
        values: &[],
        example: "[fix bug, debug]",
    },
    FieldHelp {
        name: "trigger_threshold",
        label: "trigger_threshold",
        meaning: "How many of the triggers a message must have.",
        default: "2",
        values: &["1", "2", "3"],
        example: "1",
    },
    FieldHelp {
        name: "stale_after_turns",
        label: "stale_after_turns",
        meaning: "Asks a person after so many reports and gates without one more step that passed.",
        default: "never",
        values: &["10", "15"],
        example: "15",
    },
    FieldHelp {
        name: "library",
        label: "library",
        meaning: "The entry of the library that the plan was made of; its runs count as that entry's.",
        default: "none",
        values: &[],
        example: "bugfix_workflow",
    },
    FieldHelp {
        name: "then",
        label: "then",
        meaning: "The plan that gets a run when this one's is done: an entry of the library, or a path. A person approves it first.",
        default: "none",
        values: &[],
        example: "git_feature_branch",
    },
];

/// The plan's own fields, between the title and the steps.
pub const OF_PLAN: &[FieldHelp] = &[
    FieldHelp {
        name: "context",
        label: "Context",
        meaning: "What a reader has to know before the first step.",
        default: "none",
        values: &[],
        example: "Logins time out after 30 s on slow connections.",
    },
    FieldHelp {
        name: "budget",
        label: "Budget",
        meaning: "The most that a run may use: tokens, money and time, with commas. Time stops while a person is asked.",
        default: "no limit",
        values: &["max 200k tokens, $1.50, 20 minutes"],
        example: "max 200k tokens, $1.50, 20 minutes",
    },
    FieldHelp {
        name: "priority",
        label: "Priority",
        meaning: "Which plan's steps go first when several wait.",
        default: "normal",
        values: &["low", "normal", "high", "urgent"],
        example: "high",
    },
    FieldHelp {
        name: "max_visits",
        label: "max_visits",
        meaning: "How often a step may be entered, 1 to 100.",
        default: "10",
        values: &[],
        example: "5",
    },
    FieldHelp {
        name: "stale_after",
        label: "stale_after",
        meaning: "Asks a person when nothing moved for this long.",
        default: "never",
        values: &["1 h", "1 day"],
        example: "1 h",
    },
    FieldHelp {
        name: "ask_deadline",
        label: "ask_deadline",
        meaning: "How long an ask of a run waits for a person, and the answer then: `reject` or `abort`, where it takes it, else \
                  the other one. Nothing is approved because nobody answered.",
        default: "waits for ever",
        values: &["24 h, then reject", "24 h, then abort"],
        example: "24 h, then reject",
    },
    FieldHelp {
        name: "parallel",
        label: "parallel",
        meaning: "How many steps may run at once.",
        default: "1",
        values: &[],
        example: "1",
    },
    FieldHelp {
        name: "red_first",
        label: "red_first",
        meaning: "Run contracts before the work too: a contract that passes already proves nothing.",
        default: "the configuration's, else off",
        values: &["off", "warn", "deny"],
        example: "warn",
    },
];

/// The fields of steps.
pub const OF_STEP: &[FieldHelp] = &[
    FieldHelp {
        name: "target",
        label: "target",
        meaning: "The role that does the step; planctl.toml says which agent serves it.",
        default: "required",
        values: &[],
        example: "coder",
    },
    FieldHelp {
        name: "task",
        label: "task",
        meaning: "What to do: markdown, up to the next field.",
        default: "required",
        values: &[],
        example: "Trace the timeout. Write what causes it to `docs/cause.md`.",
    },
    FieldHelp {
        name: "contract",
        label: "contract",
        meaning: "The shell script that decides whether the step passed, in a `shell` fence. Nothing else passes a step.",
        default: "required",
        values: &[],
        example: "\n```shell\ngrep -q '^## Cause' docs/cause.md\n```\nexit_code == 0",
    },
    FieldHelp {
        name: "server",
        label: "server",
        meaning: "The MCP server whose tool a `call` uses in place of a contract, by its name in planctl.toml.",
        default: "none",
        values: &[],
        example: "github",
    },
    FieldHelp {
        name: "tool",
        label: "tool",
        meaning: "The tool of that server.",
        default: "none",
        values: &[],
        example: "list_issues",
    },
    FieldHelp {
        name: "arguments",
        label: "arguments",
        meaning: "The tool's arguments: a JSON object, or a list of `- name: value`. `${steps.2.output.items[0].id}` is \
                  what step 2 gave.",
        default: "{}",
        values: &[],
        example: "{\"repo\": \"acme/shop\", \"perPage\": \"${steps.1.output}\"}",
    },
    FieldHelp {
        name: "plan",
        label: "plan",
        meaning: "The file of the plan that a `sub-plan` carries out, relative to the workspace.",
        default: "none",
        values: &[],
        example: "plans/release.md",
    },
    FieldHelp {
        name: "folder",
        label: "folder",
        meaning: "The folder in which a `sub-plan` works, relative to where this plan works.",
        default: "where this plan works",
        values: &[],
        example: "services/api",
    },
    FieldHelp {
        name: "approval",
        label: "approval",
        meaning: "Who approves the plan of a `sub-plan`: `ask` a person when its turn comes, or `inherit` the approval \
                  of this plan.",
        default: "ask",
        values: &["ask", "inherit"],
        example: "inherit",
    },
    FieldHelp {
        name: "exit_code",
        label: "exit_code",
        meaning: "The exit code of the contract that passes, 0 to 255; written `exit_code == N` after the fence.",
        default: "exit_code == 0",
        values: &[],
        example: "exit_code == 0",
    },
    FieldHelp {
        name: "on_fail",
        label: "on_fail",
        meaning: "What happens when the contract fails: `retry(N)` tries again with the failure in the prompt, \
                  `escalate` asks a person, `abort` ends the run, `skip` leaves the step out, `warn` goes on and shows it.",
        default: "retry(2), then escalate",
        values: &["retry(2), then escalate", "retry(2), then abort", "escalate", "abort", "skip", "warn"],
        example: "retry(2), then escalate",
    },
    FieldHelp {
        name: "ask_deadline",
        label: "ask_deadline",
        meaning: "How long an ask of this step waits for a person, and the answer then.",
        default: "the plan's",
        values: &["24 h, then reject", "24 h, then abort"],
        example: "4 h, then abort",
    },
    FieldHelp {
        name: "subscriptions",
        label: "subscriptions",
        meaning: "Files (`file:PATH`, relative, may be a glob) and topics (`topic:NAME`) that go into the prompt; a list.",
        default: "none",
        values: &[],
        example: "\n- file:src/auth/handler.py",
    },
    FieldHelp {
        name: "type",
        label: "type",
        meaning: "What kind of work the step is, or what happens there in place of an agent's work.",
        default: "review for roles that begin with \"review\", else code",
        values: &[
            "code",
            "review",
            "call",
            "decision",
            "human",
            "checkpoint",
            "join",
            "escalate",
            "sub-plan",
        ],
        example: "code",
    },
    FieldHelp {
        name: "intent",
        label: "intent",
        meaning: "The piece of a goal that the step serves; `planctl why` tells it, and it changes nothing.",
        default: "none",
        values: &[],
        example: "I2: list the issues",
    },
    FieldHelp {
        name: "needs",
        label: "needs",
        meaning: "The numbers of the steps that must pass first; `none` begins at once. Steps that need the same one may run side by side.",
        default: "the step before",
        values: &["none"],
        example: "1, 2",
    },
    FieldHelp {
        name: "when",
        label: "when",
        meaning: "The condition under which the step applies; else the run goes past it.",
        default: "always",
        values: &["steps.1.outcome=success", "steps.1.exit_code!=0"],
        example: "steps.1.exit_code!=0",
    },
    FieldHelp {
        name: "for_each",
        label: "for_each",
        meaning: "Makes the step a template, one step per item: a list with commas or bullets. `planctl expand` writes them out.",
        default: "one step",
        values: &[],
        example: "src/a.py, src/b.py",
    },
    FieldHelp {
        name: "workspace",
        label: "workspace",
        meaning: "Where the step works: in the run's workspace, or in a git worktree that is merged where branches meet.",
        default: "shared",
        values: &["shared", "worktree"],
        example: "worktree",
    },
    FieldHelp {
        name: "timeout",
        label: "timeout",
        meaning: "How long the work of one attempt may take.",
        default: "10 min",
        values: &["90 s", "10 min", "1h30m"],
        example: "10 min",
    },
    FieldHelp {
        name: "contract_timeout",
        label: "contract_timeout",
        meaning: "How long the contract may take.",
        default: "10 min",
        values: &["90 s", "10 min", "1h30m"],
        example: "5 min",
    },
    FieldHelp {
        name: "changes",
        label: "changes",
        meaning: "Files and globs that the worker may change, though a contract is judged by them; `none` allows nothing.",
        default: "what the task plainly makes or changes",
        values: &["none"],
        example: "\n- src/**",
    },
    FieldHelp {
        name: "protects",
        label: "protects",
        meaning: "Globs of files that the worker may not change, beside those that its contract names.",
        default: "none",
        values: &[],
        example: "\n- tests/**",
    },
    FieldHelp {
        name: "locks",
        label: "locks",
        meaning: "What no two steps may use at once, in whatever runs they are: names of your choice, as of a database or a device.",
        default: "none",
        values: &[],
        example: "staging-database",
    },
    FieldHelp {
        name: "guard",
        label: "guard",
        meaning: "`yes`: the contract is meant to be green before the work, too.",
        default: "no",
        values: &["yes", "no"],
        example: "yes",
    },
    FieldHelp {
        name: "min_tests",
        label: "min_tests",
        meaning: "How many tests must pass by the reports that the contract writes into `$PLANCTL_REPORTS`.",
        default: "none",
        values: &[],
        example: "12",
    },
    FieldHelp {
        name: "judge",
        label: "judge",
        meaning: "What a model is asked about the work once the contract has passed. Its no fails the attempt.",
        default: "none",
        values: &[],
        example: "Does every error message say what to do next?",
    },
    FieldHelp {
        name: "judge_by",
        label: "judge_by",
        meaning: "Who is asked: a model or a role that `[judges] by` lists. The agent of a role then only reads.",
        default: "the first of `[judges] by`",
        values: &[],
        example: "strict",
    },
    FieldHelp {
        name: "red_first",
        label: "red_first",
        meaning: "Run this contract before the work too: one that passes already proves nothing.",
        default: "the plan's",
        values: &["off", "warn", "deny"],
        example: "warn",
    },
    FieldHelp {
        name: "max_retries",
        label: "max_retries",
        meaning: "Attempts beyond the first, 0 to 20, where `on_fail` has no `retry(N)`.",
        default: "from on_fail",
        values: &[],
        example: "3",
    },
    FieldHelp {
        name: "max_visits",
        label: "max_visits",
        meaning: "How often this step may be entered, 1 to 100.",
        default: "the plan's",
        values: &[],
        example: "5",
    },
    FieldHelp {
        name: "status",
        label: "status",
        meaning: "Drawn by planctl; ignored when read, the database is the record.",
        default: "none",
        values: &[],
        example: "done",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Field;

    /// The field that is read and refused (P017): nothing to offer yet.
    const REFUSED: [&str; 1] = ["gate"];

    #[test]
    fn every_field_that_is_supported_has_its_words_once() {
        let (of_plans, of_steps) = (Field::OF_PLANS.to_vec(), Field::of_steps().collect());
        for (known, helps) in [(of_plans, OF_PLAN), (of_steps, OF_STEP)] {
            let known: Vec<&str> = known.into_iter().map(Field::as_str).collect();
            for name in known.iter().filter(|name| !REFUSED.contains(name)) {
                assert_eq!(helps.iter().filter(|help| help.name == *name).count(), 1, "{name}");
            }
            for help in helps {
                assert!(known.contains(&help.name), "{} is no field", help.name);
            }
        }
    }

    #[test]
    fn the_page_names_the_same_fields_and_defaults() {
        let page = include_str!("../../../../docs/plan-format.md");
        for help in OF_PLAN.iter().chain(OF_STEP).filter(|help| !["status", "parallel"].contains(&help.name))
        {
            let label = format!("| `**{}:**` |", help.label);
            let rows = page
                .lines()
                .filter(|line| line.starts_with(&label) || line.starts_with("| `exit_code == N`"));
            let mut defaults = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
            let bare = |text: &str| text.replace('`', "");
            let expected = bare(help.default);
            // Behind a semicolon stands where it is otherwise.
            let of_most = |default: &str| bare(default.split("; ").next().unwrap_or_default());
            let is_told = defaults.any(|default| bare(default) == expected || of_most(default) == expected);
            assert!(is_told, "{}: {}", help.name, help.default);
        }
    }
}
