//! The command line as people and scripts meet it: the real binary, a real Postgres, real workers in bash.
//!
//! One program holds the tests of several areas, since each program links the whole of planctl: those of `tests/cli/`, and a
//! module for each area beside it.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "cli/fixture.rs"]
mod fixture;

mod branching;
mod drafting;
mod examples;
mod flows;
mod killed;
mod lsp;
mod readme;

#[path = "cli/http.rs"]
mod http;

#[path = "cli/tls.rs"]
mod tls;

#[path = "cli/schemas.rs"]
mod schemas;

#[path = "cli/guarded.rs"]
mod guarded;
#[path = "cli/guide.rs"]
mod guide;

#[path = "cli/secrets.rs"]
mod secrets;

#[path = "cli/isolation.rs"]
mod isolation;

#[path = "cli/agent_scripts.rs"]
mod agent_scripts;
#[path = "cli/baselines.rs"]
mod baselines;
#[path = "cli/dialect.rs"]
mod dialect;
#[path = "../../planctl-lang/tests/lang/drawn.rs"]
mod drawn;
#[path = "cli/editing.rs"]
mod editing;
#[path = "cli/graph.rs"]
mod graph;
#[path = "cli/graph_rows.rs"]
mod graph_rows;
#[path = "cli/habits.rs"]
mod habits;
#[path = "cli/held.rs"]
mod held;
#[path = "cli/hints.rs"]
mod hints;
#[path = "cli/plan_rows.rs"]
mod plan_rows;
#[path = "cli/routing.rs"]
mod routing;

#[path = "cli/format.rs"]
mod format;
#[path = "cli/formats.rs"]
mod formats;

#[path = "cli/inbox.rs"]
mod inbox;
#[path = "cli/policies.rs"]
mod policies;

#[path = "cli/watching.rs"]
mod watching;

#[path = "cli/probe.rs"]
mod probe;

#[path = "cli/within.rs"]
mod within;
#[path = "cli/words.rs"]
mod words;

#[path = "cli/screens.rs"]
mod screens;

#[path = "cli/topics.rs"]
mod topics;
#[path = "cli/verify.rs"]
mod verify;

#[path = "cli/begin.rs"]
mod begin;

#[path = "cli/files.rs"]
mod files;
#[path = "cli/fix.rs"]
mod fix;

#[path = "cli/review.rs"]
mod review;

#[path = "cli/worktrees.rs"]
mod worktrees;

#[path = "cli/checks.rs"]
mod checks;
#[path = "cli/configuration.rs"]
mod configuration;

#[path = "cli/workers.rs"]
mod workers;

#[path = "cli/worked_on.rs"]
mod worked_on;

#[path = "cli/queued.rs"]
mod queued;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/taken_up.rs"]
mod taken_up;

#[path = "cli/pace.rs"]
mod pace;

#[path = "cli/blocked.rs"]
mod blocked;

#[path = "cli/red_first.rs"]
mod red_first;

#[path = "cli/approvals.rs"]
mod approvals;

#[path = "cli/budget.rs"]
mod budget;
#[path = "cli/bundle.rs"]
mod bundle;
#[path = "cli/recheck.rs"]
mod recheck;

#[path = "cli/swaps.rs"]
mod swaps;

#[path = "cli/surroundings.rs"]
mod surroundings;

#[path = "cli/console.rs"]
mod console;
#[path = "cli/narrow.rs"]
mod narrow;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/standstill.rs"]
mod standstill;
#[path = "support/tls.rs"]
mod support_tls;
#[path = "support/tty.rs"]
mod tty;

#[path = "cli/observed.rs"]
mod observed;
#[path = "cli/opencode.rs"]
mod opencode;

#[path = "cli/answer_prompt.rs"]
mod answer_prompt;
#[path = "cli/library.rs"]
mod library;
#[path = "cli/live.rs"]
mod live;

#[path = "cli/terminal.rs"]
mod terminal;

#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/download.rs"]
mod download;

#[path = "cli/quotes.rs"]
mod quotes;
