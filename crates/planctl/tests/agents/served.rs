//! The agents with planctl's MCP server, as `planctl mcp install` adds it.

use serde_json::Value;

use super::place::{Place, words};
use super::scenarios::{Played, Scenario, Stage};
use super::service::{Act, Manner};
use super::session::Session;

use Act::{Calls, Says};

pub const SCENARIOS: [(&str, Scenario); 2] = [
    ("a plan is drafted, verified and submitted; a person is asked, and nothing ran", submits),
    ("a scratch list is kept from call to call, and moves no run", keeps_a_list),
];

const DRAFT: &str = r##"{"path": "plans/hello.md", "text": "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Say hello\n\n**Budget:** max 100k tokens, $1, 10 minutes\n\n## Steps\n\n### 1. Write the greeting\n\n**target:** coder\n\n**task:**\nWrite `hello.txt`.\n\n**contract:**\n```shell\ngrep -q '^Hello' hello.txt\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n"}"##;

/// Claude Code offers the tools of a server to its model only after a search for them.
const SEARCH: Act = Calls(
    "ToolSearch",
    r#"{"query": "select:mcp__planctl__plan_draft,mcp__planctl__plan_submit,mcp__planctl__planning_setup_plan,mcp__planctl__planning_mark_step,mcp__planctl__planning_read_plan", "max_results": 5}"#,
);

/// Plays a script with an agent that has the server.
fn played(stage: &Stage<'_>, agent: &'static str, acts: &[Act]) -> Result<Place, String> {
    let place = stage.place(agent, Manner::Scripted);
    let search: &[Act] = if agent == "claude" { &[SEARCH] } else { &[] };
    place.service.script(&[search, acts].concat());
    let said = place.planctl(&["mcp", "install", agent, "--user"]);
    if !said.status.success() {
        return Err(words(&said));
    }
    Session::begin(&place, "Go on, please.")?.ends()?;
    Ok(place)
}

fn must(is_so: bool, what: &str, place: &Place) -> Result<(), String> {
    let read = place.service.told().bodies.last().cloned().unwrap_or_default();
    let last = &read[read.len().saturating_sub(4_000)..];
    if is_so { Ok(()) } else { Err(format!("{what}\n{}\nit read: …{last}", place.talk())) }
}

/// Says whether the agent handed these words on to its model.
fn read(place: &Place, words: &str) -> bool {
    place.service.told().bodies.iter().any(|body| body.contains(words))
}

fn submits(stage: &Stage<'_>, agent: &'static str) -> Played {
    let submit = Calls("plan_submit", r#"{"path": "plans/hello.md"}"#);
    let place = played(stage, agent, &[Calls("plan_draft", DRAFT), submit, Says("It is submitted.")])?;
    must(place.path("plans/hello.md").exists(), "it was not drafted", &place)?;
    must(read(&place, "a person's approval"), "the model does not know who is asked", &place)?;
    let asks: Value =
        serde_json::from_slice(&place.planctl(&["approvals", "--json"]).stdout).unwrap_or_default();
    let is_asked = asks["asks"].as_array().is_some_and(|asks| asks.iter().any(|ask| ask["kind"] == "plan"));
    must(is_asked, &format!("nobody is asked: {asks}"), &place)?;
    must(!place.path("hello.txt").exists(), "it ran", &place)?;
    Ok("✔".to_owned())
}

fn keeps_a_list(stage: &Stage<'_>, agent: &'static str) -> Played {
    let acts = [
        Calls("planning_setup_plan", r#"{"objective": "greet", "initial_steps": [{"title": "write"}]}"#),
        Calls("planning_mark_step", r#"{"step_id": "S001", "status": "done", "note": "observed"}"#),
        Calls("planning_read_plan", "{}"),
        Says("All is done."),
    ];
    let place = played(stage, agent, &acts)?;
    must(read(&place, "Retrieved the current plan with 1 step."), "the list was not read", &place)?;
    must(read(&place, "completed"), "it was not completed", &place)?;
    Ok("✔".to_owned())
}
