//! `planctl init`: writes the files that a project needs to begin, where nothing is yet.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use planctl_engine::Tier;
use planctl_lang::{Source, TEMPLATES, instantiate};
use planctl_server::agent_check::installed_agents;

use super::run::offered;
use super::{Context, expand, new, write};
use crate::context::config_failure;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::show;

const PLAN: &str = "plans/hello.md";
const WORKER: &str = "work.sh";
const IGNORE: &str = ".gitignore";

const SETTINGS: &str = r#"# What planctl does in this project. Every key is optional; `planctl config show --origin` says what is in force.
# After a change here, read it and type: planctl trust .

ISOLATION

# Who does the steps whose target is `coder`.
[roles.coder]
AGENT
# allow = ["Edit", "Bash(git *)", "Bash(cargo test*)"]   # all that claude, gemini, opencode may do; the usual is to edit and git
# timeout = "10m"               # how long one attempt may take

[contracts]
# timeout = "10m"               # how long one evaluation may take
# env = { CI = "1" }            # added to their clean environment
# red_first = "warn"            # run them before the work too: a pass then proves nothing
"#;
const NO_AGENT: &str = r#"# agent = "claude"              # or codex, gemini, opencode, aider; or "exec:./work.sh" for a command of your own"#;
const EXAMPLE_AGENT: &str =
    r#"agent = "exec:./work.sh"        # stands in for an agent; or claude, codex, gemini, opencode, aider"#;

const EXAMPLE_WORKER: &str = r#"#!/bin/bash
# Stands in for an agent: reads the prompt, does the one step of plans/hello.md.
cat > /dev/null
echo "Hello from planctl" > hello.txt
"#;

/// The files that a git checkout is to leave out.
const IGNORED: [&str; 2] = ["# drafts of planctl, left where it was killed while it wrote", ".planctl-*.tmp"];

/// One file that is written.
struct Made {
    name: &'static str,
    text: String,
    is_program: bool,
}

/// Writes the files that a project needs, and trusts them on behalf of the caller.
pub async fn run(context: &Context, with_example: bool, is_forced: bool) -> Answer {
    context.format(&[Format::Human])?;
    let folder = context.workspace();
    let state_dir = context.state_dir()?;
    // The host's present tier is demanded from now on: less of it is refused, never taken in silence.
    let tier = planctl_config::Isolation::best(offered().await?.tier);
    let files = files(context, with_example, tier);
    let is_there = |made: &&Made| folder.join(made.name).symlink_metadata().is_ok();
    let present: Vec<&str> = files.iter().filter(is_there).map(|made| made.name).collect();
    if present.contains(&planctl_config::FILE_NAME) && !is_forced {
        let message = format!(
            "{} is there already in {}; nothing was written",
            planctl_config::FILE_NAME,
            display_path(folder)
        );
        return Err(Failure::new(Exit::Conflict, message)
            .help("write over with --force, or begin a plan with: planctl new"));
    }
    // A plan that somebody wrote before the project was set up is theirs.
    let (files, kept): (Vec<Made>, Vec<Made>) =
        files.into_iter().partition(|made| is_forced || !present.contains(&made.name));
    let replaced: Vec<&str> =
        files.iter().map(|made| made.name).filter(|name| present.contains(name)).collect();
    for made in &files {
        write_made(context, made)?;
    }
    let added = ignore(context)?;
    planctl_config::trust(&state_dir, folder).map_err(|error| config_failure(&error))?;
    let kept: Vec<&str> = kept.iter().map(|made| made.name).collect();
    print_result(folder, &files, (&replaced, &kept), added, with_example)?;
    Ok(Exit::Yes)
}

fn files(context: &Context, with_example: bool, tier: Tier) -> Vec<Made> {
    let agent = if with_example { EXAMPLE_AGENT } else { NO_AGENT };
    let template = &TEMPLATES[0];
    let plan = instantiate(&Source::new(template.name, template.text), None, &context.actor(), None);
    let made = |name, text, is_program| Made { name, text, is_program };
    let mut files = vec![
        made(
            planctl_config::FILE_NAME,
            SETTINGS.replace("ISOLATION", &isolation_line(tier)).replace("AGENT", agent),
            false,
        ),
        made(PLAN, plan, false),
    ];
    if with_example {
        files.push(made(WORKER, EXAMPLE_WORKER.to_owned(), true));
    }
    files
}

/// Writes what contracts and workers are confined by; a host that offers nothing has nothing to demand.
fn isolation_line(tier: Tier) -> String {
    match tier {
        Tier::SameUser => {
            "# isolation = \"require:1a\"      # this host confines nothing: `planctl doctor` says why"
                .to_owned()
        }
        Tier::Landlock | Tier::Namespaces | Tier::OwnUser => format!(
            "isolation = \"require:{tier}\"        # what this host offers; below it nothing runs (docs/security.md)"
        ),
    }
}

fn write_made(context: &Context, made: &Made) -> Result<(), Failure> {
    let path = context.workspace().join(made.name);
    new::put(context, &path, &made.text, true)?;
    if !made.is_program {
        return Ok(());
    }
    let refused = |error: std::io::Error| Failure::of_io(format!("make {} a program", made.name), &error);
    let mode = std::fs::metadata(&path).map_err(refused)?.permissions().mode();
    // Every user with read permission gets execute permission.
    let mode = mode | (mode & 0o444) >> 2;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(refused)
}

/// Adds the lines that git is to leave out; returns how many were missing.
fn ignore(context: &Context) -> Result<usize, Failure> {
    let path = context.workspace().join(IGNORE);
    if path.symlink_metadata().is_err() {
        write::create(&path, &format!("{}\n", IGNORED.join("\n")))?;
        return Ok(IGNORED.len());
    }
    let old = expand::read(&path)?;
    if old.text().lines().any(|line| line.trim_end() == IGNORED[1]) {
        return Ok(0);
    }
    let gap = if old.text().is_empty() || old.text().ends_with('\n') { "" } else { "\n" };
    let text = format!("{}{gap}{}\n", old.text(), IGNORED.join("\n"));
    write::replace(context, &path, old.text(), &text)?;
    Ok(IGNORED.len())
}

fn print_result(
    folder: &Path,
    files: &[Made],
    (replaced, kept): (&[&str], &[&str]),
    added: usize,
    with_example: bool,
) -> Result<(), Failure> {
    let mut created: Vec<String> = files
        .iter()
        .map(|made| made.name)
        .filter(|name| !replaced.contains(name))
        .map(str::to_owned)
        .collect();
    if added > 0 {
        created.push(format!("{IGNORE} (+{added} lines)"));
    }
    let mut text = String::new();
    let kept = kept.join(", ");
    for (verb, names) in
        [("created", created.join(", ")), ("wrote over", replaced.join(", ")), ("left as it is:", kept)]
    {
        if !names.is_empty() {
            text.push_str(&format!("{verb} {names}\n"));
        }
    }
    text.push_str(&format!(
        "trusted {}, until its {} changes\n",
        display_path(folder),
        planctl_config::FILE_NAME
    ));
    let worker = match installed_agents().next() {
        _ if with_example => String::new(),
        Some(agent) => format!(" --agent {}", agent.agent.name()),
        None => " --exec CMD".to_owned(),
    };
    let plan = next::path_word(PLAN);
    let commands = format!("planctl verify {plan}\n      planctl run {plan}{worker}");
    text.push_str(&format!("{}\n", next::line(&commands)));
    show::print(&text)
}

fn display_path(path: &Path) -> String {
    show::safe(&path.display().to_string())
}
