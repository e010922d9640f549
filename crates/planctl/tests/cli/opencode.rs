//! The plugin that planctl installs for OpenCode, run by Node with a client that a test plays.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixture::Fixture;
use crate::guide::on;

/// Plays a session: a prompt, a tool, a turn that ends, a context that is made shorter, another prompt.
const SESSION: &str = r#"
import { Planctl } from "./planctl.mjs"
const sent = [], toasts = []
const client = {
  session: {
    get: async () => ({ data: {} }),
    prompt: async ({ body }) => {
      sent.push(body.parts[0].text)
      await plugin["chat.message"]({ sessionID: "s" }, { parts: body.parts })
    },
  },
  tui: { showToast: async ({ body }) => toasts.push(body.message) },
}
const plugin = await Planctl({ client, directory: process.cwd() })
const says = async (text) => {
  const output = { parts: [{ type: "text", text }] }
  await plugin["chat.message"]({ sessionID: "s" }, output)
  return output.parts[0].text
}
const ends = () => plugin.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
const first = await says("write the two files")
const second = await says("go on")
let refused = ""
try {
  await plugin["tool.execute.before"]({ sessionID: "s", tool: "write" }, { args: { filePath: "check.sh" } })
} catch (error) {
  refused = error.message
}
await ends()
const compacted = { context: [] }
await plugin["experimental.session.compacting"]({ sessionID: "s" }, compacted)
const third = await says("what now?")
console.log(JSON.stringify({ first, second, third, refused, sent, toasts, compacted: compacted.context }))
"#;

/// Plays the session in a workspace, with the database at this address; nothing where there is no Node.
fn played_at(fixture: &Fixture, database: Option<&str>) -> Option<Value> {
    assert_eq!(fixture.planctl(&["guide", "install", "opencode"]).code, 0);
    fixture.write("planctl.mjs", &fixture.read(".opencode/plugins/planctl.js")).write("session.mjs", SESSION);
    let planctl = fixture.command(&[]);
    let mut node = Command::new("node");
    node.arg("session.mjs").current_dir(fixture.path("")).env_clear().stdin(Stdio::null());
    node.envs(planctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
    node.envs(database.map(|address| ("PLANCTL_DATABASE_URL", address)));
    let said = node.output().ok()?;
    assert!(said.status.success(), "{said:?}");
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

fn played(fixture: &Fixture) -> Option<Value> {
    played_at(fixture, None)
}

#[test]
fn h_40_the_plugin_tells_the_plan_to_a_session_that_begins_or_was_made_shorter_and_sends_it_back() {
    let fixture = on();
    let Some(session) = played(&fixture) else {
        eprintln!("skipped: there is no node");
        return;
    };
    let first = session["first"].as_str().unwrap();
    assert!(first.starts_with("write the two files\n\n"), "{session:#}");
    assert!(first.contains("YOU ARE HERE") && first.contains("Write one.txt with the word one."));
    assert_eq!(session["second"], "go on", "it read the plan already");
    assert!(session["refused"].as_str().unwrap().contains("decides a contract"), "{session:#}");
    assert_eq!(session["sent"].as_array().unwrap().len(), 1, "{session:#}");
    assert!(session["sent"][0].as_str().unwrap().contains("one.txt is not right"), "{session:#}");
    assert!(session["compacted"][0].as_str().unwrap().contains("YOU ARE HERE"), "{session:#}");
    assert!(session["third"].as_str().unwrap().contains("YOU ARE HERE"), "{session:#}");
}

#[test]
fn the_plugin_has_the_first_prompt_of_a_session_matched_with_the_library() {
    let fixture = Fixture::new();
    let plan = include_str!("../../../../plans/hello.md").replacen(
        "owner:",
        "triggers: [two files]\ntrigger_threshold: 1\nowner:",
        1,
    );
    fixture.write("plans/two.md", &plan);
    assert_eq!(fixture.planctl(&["guide", "activate", "suggest"]).code, 0);
    let Some(session) = played(&fixture) else {
        eprintln!("skipped: there is no node");
        return;
    };
    assert!(session["first"].as_str().unwrap().contains("`planctl guide on two` begins it"), "{session:#}");
    assert_eq!(session["second"], "go on", "once");
}

#[test]
fn the_plugin_tells_the_person_once_that_the_database_is_away_and_keeps_nobody() {
    let fixture = on();
    let Some(session) = played_at(&fixture, Some("postgres://nobody@127.0.0.1:1/none")) else {
        eprintln!("skipped: there is no node");
        return;
    };
    assert_eq!(session["first"], "write the two files");
    let toasts = session["toasts"].as_array().unwrap();
    assert_eq!(toasts.len(), 1, "{session:#}");
    assert!(toasts[0].as_str().unwrap().contains("nothing has passed"), "{session:#}");
}
