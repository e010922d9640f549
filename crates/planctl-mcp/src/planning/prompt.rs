//! The section of a prompt that tells an agent of the planning tools, in the words of one strategy.

/// The planning tools, in the order in which the prompt names them.
pub const PROMPT_TOOLS: [&str; 6] = [
    "planning_setup_plan",
    "planning_add_step",
    "planning_update_step",
    "planning_mark_step",
    "planning_clear_plan",
    "planning_read_plan",
];

/// A way of working that the prompt asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// Reason, act, observe, repeat.
    #[default]
    React,
    /// The whole plan first, then a reflection after each step.
    PlanActReflect,
    /// The goal in one's own words, its parts, a tool for each, and one answer of all.
    GoalDecomposeRouteSynthesise,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 3] =
        [Strategy::React, Strategy::PlanActReflect, Strategy::GoalDecomposeRouteSynthesise];

    fn mindset(self) -> &'static str {
        match self {
            Strategy::React => {
                "Alternate between a short thought, one tool call, and a look at its result.\n\
                 Record each observation that matters as a note on its step.\n"
            }
            Strategy::PlanActReflect => {
                "Outline the whole plan before the first tool call, then carry out its steps.\n\
                 After each tool call or finished step, add a short reflection as a note or a status.\n"
            }
            Strategy::GoalDecomposeRouteSynthesise => {
                "Restate the goal in your own words first.\n\
                 Break it into concrete sub-problems before you choose a tool for each, and note the choice.\n\
                 At the end, bring the results together into one coherent answer.\n"
            }
        }
    }
}

const HEAD: &str = "## Planning tools\n\n";
const BODY: &str = "
1. Plan when the work has several steps or has to be remembered between tool calls. Answer directly when one step is enough.
2. Begin with `planning_setup_plan`: an objective of at most 240 characters, and first steps if you know them.
3. Add steps with `planning_add_step`. Refine a title (at most 160 characters) or details (at most 512) with `planning_update_step`.
4. Each step has an id of the form S###, such as S001. Name it whenever you update or mark a step.
5. Keep the status true with `planning_mark_step`: pending, in_progress, blocked or done. The list completes itself when all its steps are done.
6. `planning_clear_plan` discards the current plan. Use it only when you give up the objective.
7. Look at the list with `planning_read_plan`. Be brief, and write ASCII only.

The list is your own notebook for this session. It decides nothing: no step of a run passes because you mark one here.
";

/// Returns the section; the strategies differ in the words about the way of working alone.
pub fn prompt(strategy: Strategy) -> String {
    format!("{HEAD}{}{BODY}", strategy.mindset())
}
