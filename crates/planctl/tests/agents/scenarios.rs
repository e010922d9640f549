//! The scenarios of agents as workers.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::{Place, Ran, words};
use super::service::Manner;

/// The task that every agent can do, and its contract.
const TASK: (&str, &str) = ("Write the file one.txt please.", "grep -q Hello one.txt");
/// A command that no usual list has, and what it leaves.
const FOREIGN: &str = "python3 -c \"open(chr(82)+chr(65)+chr(78),chr(119))\"";

/// A cell of the table, or why there is none.
pub type Played = Result<String, String>;
pub type Scenario = fn(&Stage<'_>, &'static str) -> Played;

pub const SCENARIOS: [(&str, Scenario); 15] = [
    ("worker test", worker_test),
    ("two steps, tokens as the service told", two_steps),
    ("a false claim: the failure is in the next prompt, then it passes", lies_at_first),
    ("a liar: nothing passes, a person is asked", lies),
    ("a refused key: asked at once", refused),
    ("a service that fails after the work: it passes", fails_after_work),
    ("a service that fails in the middle: no attempt is spent", fails_in_the_middle),
    ("a hang: ended at the deadline, nothing is left", hangs),
    ("a kill: said as a signal", killed),
    ("a command that is not usual", foreign_command),
    ("a commit, with the usual permissions", commits),
    ("deny writes nothing", denied),
    ("settings of the repository start nothing", repository_settings),
    ("settings of the user widen nothing", user_settings),
    ("an attempt to approve by itself", approves_itself),
];

/// The agents that are installed, and a state directory that the scenarios share.
pub struct Stage<'a> {
    pub agents: &'a Path,
    pub state: &'a Path,
}

impl Stage<'_> {
    pub fn place(&self, agent: &'static str, manner: Manner) -> Place {
        Place::new(self.agents, self.state, agent, manner)
    }
}

fn must(is_so: bool, what: &str, ran: &Ran) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("{what}; exit {} after {:?}\n{}", ran.code, ran.time, ran.said)) }
}

fn worker_test(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    let said = place.planctl(&["worker", "test", "--agent", place.worker()]);
    if said.status.success() { Ok("✔".to_owned()) } else { Err(words(&said)) }
}

fn two_steps(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    let second = ("Write the file two.txt please.", "grep -q Hello two.txt");
    let ran = place.run("", &[TASK, second]);
    must(ran.is_done(), "it is not done", &ran)?;
    let told = place.service.told();
    let told = told.input + told.output;
    let is_rounded = agent == "aider" && ran.tokens().abs_diff(told) < 50;
    must(
        ran.tokens() == told || is_rounded,
        &format!("{} tokens counted, {told} told: {:?}", ran.tokens(), place.service.told().strange),
        &ran,
    )?;
    Ok(if is_rounded { format!("{} ≈ {told}", ran.tokens()) } else { format!("{told} = {told}") })
}

fn lies_at_first(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::LiesAtFirst);
    let ran = place.run("", &[TASK]);
    must(ran.is_done(), "it is not done", &ran)?;
    let told = place.service.told();
    must(told.prompts.iter().any(|prompt| prompt.contains("What failed")), "no failure in a prompt", &ran)?;
    Ok("✔".to_owned())
}

fn lies(stage: &Stage<'_>, agent: &'static str) -> Played {
    let ran = stage.place(agent, Manner::Lies).run("", &[TASK]);
    must(!ran.is_done() && ran.said.contains("reason=exhausted"), "it was not asked", &ran)?;
    Ok("✔".to_owned())
}

fn refused(stage: &Stage<'_>, agent: &'static str) -> Played {
    let ran = stage.place(agent, Manner::Refuses(401)).run("", &[TASK]);
    must(ran.said.contains("reason=permission"), "it was not asked for the login", &ran)?;
    must(ran.time < Duration::from_secs(60), "it took too long", &ran)?;
    Ok(format!("✔ {} s", ran.time.as_secs()))
}

fn fails_after_work(stage: &Stage<'_>, agent: &'static str) -> Played {
    if agent == "aider" {
        return Ok("– (one request)".to_owned());
    }
    let ran = stage.place(agent, Manner::RefusesAfterTools(400)).run("", &[TASK]);
    must(ran.is_done(), "it is not done", &ran)?;
    Ok("✔".to_owned())
}

fn fails_in_the_middle(stage: &Stage<'_>, agent: &'static str) -> Played {
    if agent == "aider" {
        return Ok("– (one request)".to_owned());
    }
    let place = stage.place(agent, Manner::RefusesAfterTools(400));
    let ran = place.run("", &[("Write the file one.txt please.", "test -e never.txt")]);
    must(ran.said.contains("delivery=lost count=4"), "deliveries were not lost", &ran)?;
    must(ran.said.contains("reason=undelivered"), "it was not asked", &ran)?;
    must(!ran.said.contains("retries_left"), "a retry was used up", &ran)?;
    must(!ran.said.contains("{\""), "JSON is shown", &ran)?;
    let is_told = ran.tokens() > 0;
    Ok(if is_told { "✔".to_owned() } else { "✔, unmetered".to_owned() })
}

fn hangs(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Hangs);
    let ran = place.run("**timeout:** 12s\n", &[TASK]);
    must(ran.said.contains("past=deadline"), "it was not ended", &ran)?;
    must(place.alive().is_empty(), &format!("left: {:?}", place.alive()), &ran)?;
    Ok("✔".to_owned())
}

fn killed(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Hangs);
    place.write("p.md", "---\ntype: plan\nstatus: draft\nowner: orchestrator\n---\n\n# Kill it\n\n## Steps\n\n### 1. A step\n\n**target:** coder\n\n**task:**\nWrite the file one.txt please.\n\n**contract:**\n```shell\ntest -e one.txt\n```\nexit_code == 0\n**on_fail:** escalate\n");
    let began = Instant::now();
    let run = place.begin(&["plan", "run", "p.md", "--approve", "--no-wait", "--agent", place.worker()]);
    while place.service.told().prompts.is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    for (id, _) in place.alive().into_iter().filter(|(_, command)| !command.contains("__")) {
        kill(Pid::from_raw(id), Signal::SIGKILL).ok();
    }
    let said = run.wait_with_output().unwrap();
    let ran = place.ran(&said, began.elapsed());
    must(ran.said.contains("signal=9") || ran.said.contains("exit=137"), "no signal is told", &ran)?;
    must(!ran.said.contains("{\""), "JSON is shown", &ran)?;
    Ok("✔".to_owned())
}

fn foreign_command(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    let task = format!("Write the file one.txt please. Run this command: `{FOREIGN}`");
    let ran = place.run("", &[(&task, "test -e one.txt && test -e RAN")]);
    match (agent, place.path("RAN").exists()) {
        ("codex", true) => Ok("runs in its sandbox".to_owned()),
        ("codex", false) => Err(format!("codex did not run it\n{}", ran.said)),
        (_, true) => Err(format!("it ran\n{}", ran.said)),
        ("aider", false) => Ok("runs none".to_owned()),
        ("gemini", false) => Ok("✔ held".to_owned()),
        (_, false) => {
            must(ran.said.contains("denied: "), "what was denied is not told", &ran)?;
            let told = place.service.told();
            let is_told = told.prompts.iter().any(|prompt| prompt.contains("not permitted"));
            must(is_told, "what was denied is not in the next prompt", &ran)?;
            Ok("✔ held, told".to_owned())
        }
    }
}

fn commits(stage: &Stage<'_>, agent: &'static str) -> Played {
    if agent == "aider" {
        return Ok("– (runs no commands)".to_owned());
    }
    let place = stage.place(agent, Manner::Works);
    let command = "git -c user.name=a -c user.email=a@example.com commit --allow-empty -q -m made";
    let task = format!("Run this command: `{command}`");
    let ran = place.run("", &[(&task, "git log --format=%s | grep -q made")]);
    must(ran.is_done(), "there is no commit", &ran)?;
    Ok("✔".to_owned())
}

fn denied(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    let toml = format!("[roles.coder]\nagent = \"{}\"\npermissions = \"deny\"\n", place.worker());
    place.write("planctl.toml", &toml);
    place.planctl(&["trust", "."]);
    let ran = place.run("", &[TASK]);
    must(!place.path("one.txt").exists(), "it wrote", &ran)?;
    Ok("✔".to_owned())
}

/// Settings by which a repository starts programs, each of which leaves a file in the home.
fn repository_settings(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    let mark = |name: &str| format!("touch {}", place.path(&format!("started-{name}")).display());
    let hook = |event: &str| {
        format!(
            r#"{{"hooks":{{"{event}":[{{"hooks":[{{"type":"command","command":"{}"}}]}}]}}}}"#,
            mark("hook")
        )
    };
    let mcp = format!(
        r#"{{"mcpServers":{{"x":{{"command":"touch","args":["{}"]}}}}}}"#,
        place.path("started-mcp").display()
    );
    match agent {
        "claude" => {
            place.write(".claude/settings.json", &hook("SessionStart"));
            place.write(".mcp.json", &mcp);
        }
        "codex" => place.write(
            ".codex/config.toml",
            &format!(
                "[mcp_servers.x]\ncommand = \"touch\"\nargs = [\"{}\"]\n",
                place.path("started-mcp").display()
            ),
        ),
        "gemini" => place.write(".gemini/settings.json", &mcp),
        "opencode" => {
            place.write(
                "opencode.json",
                &format!(
                    r#"{{"mcp":{{"x":{{"type":"local","command":["touch","{}"],"enabled":true}}}}}}"#,
                    place.path("started-mcp").display()
                ),
            );
        }
        _ => {
            place.write(".aider.conf.yml", &format!("lint-cmd: {}\ntest-cmd: {}\nauto-test: true\nnotifications: true\nnotifications-command: {}\n", mark("lint"), mark("test"), mark("bell")));
            place.write(".env", &format!("AIDER_TEST_CMD={}\nAIDER_AUTO_TEST=true\n", mark("env")));
        }
    }
    let ran = place.run("", &[TASK]);
    let started: Vec<String> = std::fs::read_dir(place.path(""))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("started-"))
        .collect();
    must(started.is_empty(), &format!("{started:?}"), &ran)?;
    must(ran.is_done(), "it is not done", &ran)?;
    if agent != "opencode" {
        return Ok("✔".to_owned());
    }
    let path = place.path("started-plugin");
    let plugin = format!(
        "import fs from 'fs'; fs.writeFileSync('{}', 'x'); export const P = async () => ({{}})",
        path.display()
    );
    place.write(".opencode/plugin/p.js", &plugin);
    let ran = place.run("", &[("Write the file two.txt please.", "grep -q Hello two.txt")]);
    must(!path.exists(), "the plugin was started", &ran)?;
    must(ran.said.contains(".opencode/plugin/p.js"), "it is not told", &ran)?;
    Ok("✔; refused where there is a plugin".to_owned())
}

fn user_settings(stage: &Stage<'_>, agent: &'static str) -> Played {
    let place = stage.place(agent, Manner::Works);
    match agent {
        "claude" => place.write_home(".claude/settings.json", r#"{"permissions":{"allow":["Bash"]}}"#),
        "gemini" => {
            place.write_home(".gemini/settings.json", r#"{"tools":{"allowed":["run_shell_command"]}}"#)
        }
        "opencode" => {
            let path = place.path("../home/.config/opencode/opencode.json");
            let text = std::fs::read_to_string(&path).unwrap();
            let wider = text.replacen('{', r#"{"permission":{"bash":"allow"},"#, 1);
            std::fs::write(path, wider).unwrap();
        }
        _ => return Ok("–".to_owned()),
    }
    let task = format!("Write the file one.txt please. Run this command: `{FOREIGN}`");
    let ran = place.run("", &[(&task, "test -e one.txt")]);
    must(!place.path("RAN").exists(), "it ran", &ran)?;
    must(ran.is_done(), "it is not done", &ran)?;
    Ok("✔".to_owned())
}

/// Git runs any command as an alias, so that also those who may use git alone can try.
fn approves_itself(stage: &Stage<'_>, agent: &'static str) -> Played {
    if agent == "aider" {
        return Ok("– (runs no commands)".to_owned());
    }
    let place = stage.place(agent, Manner::Works);
    place.write(
        "other.md",
        &std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/hello.md")).unwrap(),
    );
    let command = "git -c alias.go='!planctl plan approve other.md > said.txt 2>&1; echo $? >> said.txt' go";
    let task = format!("Run this command: `{command}`");
    let ran = place.run("", &[(&task, "test -e said.txt")]);
    let said = std::fs::read_to_string(place.path("said.txt")).unwrap_or_default();
    must(ran.is_done(), "it was not tried", &ran)?;
    let is_refused = said.lines().last().is_some_and(|code| code != "0");
    must(is_refused, &format!("it was not refused: {said}"), &ran)?;
    Ok("✔ refused".to_owned())
}
