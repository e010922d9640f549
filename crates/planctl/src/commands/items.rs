//! `planctl item …`: items of work for scripts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_api::wire::calls::{
    AcceptedView, AskCall, ClaimCall, ClaimedView, CompleteCall, FailCall, FailKind, UsageCall,
};

use super::Context;
use crate::api::{self, Api};
use crate::args::{HeldItem, ItemCommand, Used};
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::reports::{self, LeasedItem, Word};
use crate::show;

/// Longer than anybody waits, and short enough for a clock to add.
const WAIT_EVER: Duration = Duration::from_secs(86_400 * 365);
/// How the name of a file begins into which `claim` wrote a prompt.
const PROMPT: &str = "planctl-prompt-";
/// The longest that one request waits for work.
const WAIT_MOST: Duration = Duration::from_secs(30);

/// Does what was typed.
pub async fn run(context: &Context, command: ItemCommand) -> Answer {
    let is_held = !matches!(command, ItemCommand::Claim { .. });
    answer(context, command).await.map_err(|failure| {
        if !is_held || failure.exit != Exit::Denied {
            return failure;
        }
        Failure::new(Exit::Denied, "the daemon does not take the item's token").help(
            "an item that was reported or lost is claimed anew: eval \"$(planctl item claim --role ROLE --shell)\"",
        )
    })
}

async fn answer(context: &Context, command: ItemCommand) -> Answer {
    match command {
        ItemCommand::Claim { roles, wait, no_wait, lease, prompt_file, shell, name } => {
            let lease_seconds = lease.map(|lease| lease.as_secs());
            let call = ClaimCall {
                roles,
                plans: BTreeMap::new(),
                worker: Some(name.unwrap_or_else(machine)),
                lease_seconds,
                agent: Some("work claim".to_owned()),
                host: Some(machine()),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                capacity: None,
            };
            let wait = if no_wait { Duration::ZERO } else { wait };
            claim(context, &call, wait, &Shown { shell, prompt_file }).await
        }
        ItemCommand::Show(item) => show_item(context, &item).await,
        ItemCommand::Heartbeat { item, wait } => heartbeat(context, &item, wait.unwrap_or_default()).await,
        ItemCommand::Log { item, text } => {
            let text = text.map_or_else(|| read_text(Path::new("-")), Ok)?;
            held(context, &item).await?.log(&text).await?;
            Ok(Exit::Yes)
        }
        ItemCommand::Usage { item, used } => {
            held(context, &item).await?.send_usage(&used.call().unwrap_or_default()).await?;
            Ok(Exit::Yes)
        }
        ItemCommand::Complete {
            item,
            result,
            gave_up,
            exit_code,
            prefer,
            suggest,
            set,
            insert_step,
            used,
        } => {
            let text = result.as_deref().map(read_text).transpose()?;
            let text = text.unwrap_or_default();
            let insert_step = insert_step.as_deref().map(read_text).transpose()?;
            let call = CompleteCall {
                text,
                gave_up,
                usage: used.call(),
                exit_code,
                seconds: None,
                preferred_label: prefer,
                suggested_next_ids: suggest,
                context_updates: set.into_iter().collect(),
                insert_step,
                ..CompleteCall::default()
            };
            say(context, &item, &Word::Complete(call)).await
        }
        ItemCommand::Fail { item, reason, kind, transient, used } => {
            let kind = match kind.as_str() {
                _ if transient => FailKind::Transient,
                "transient" => FailKind::Transient,
                "permission" => FailKind::Permission,
                "permanent" => FailKind::Permanent,
                "overran" => FailKind::Overran,
                "silent" => FailKind::Silent,
                _ => FailKind::GaveUp,
            };
            say(context, &item, &Word::Fail(FailCall { kind, reason, usage: used.call(), seconds: None }))
                .await
        }
        ItemCommand::Ask { item, question } => {
            say(context, &item, &Word::Ask(AskCall { question, usage: None })).await
        }
        ItemCommand::Release(item) => say(context, &item, &Word::Release).await,
    }
}

/// Returns this machine's name, for people.
pub fn machine() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// How a claimed item is shown.
struct Shown {
    shell: bool,
    prompt_file: Option<PathBuf>,
}

async fn claim(context: &Context, call: &ClaimCall, wait: Duration, shown: &Shown) -> Answer {
    let is_json = context.is_json()?;
    if is_json && shown.shell {
        return Err(Failure::usage("--shell and --json are two answers: name one"));
    }
    let api = Client::open_daemon(context).await?;
    let Some(claimed) = claimed_within(&api, call, wait).await? else {
        context.say("no work");
        return Ok(Exit::Nothing);
    };
    if is_json && shown.prompt_file.is_none() {
        show::print_json(&claimed)?;
        return Ok(Exit::Yes);
    }
    let written = write_prompt(shown.prompt_file.as_deref(), &claimed.prompt);
    let file = match written {
        Ok(file) => file,
        Err(error) => {
            // Nobody would work on it until the lease is over.
            LeasedItem::new(&api, &claimed.item, &claimed.token)?.say(&Word::Release).await?;
            return Err(Failure::of_io("write the prompt", &error).help("the item was given back"));
        }
    };
    if is_json {
        show::print_json(&claimed)?;
    } else if shown.shell {
        show::print(&exports(&claimed, &file))?;
    } else {
        show::print(&draw(&claimed, Some(&file)))?;
        context.say("its token: planctl item claim --shell exports it, --json shows it");
    }
    Ok(Exit::Yes)
}

async fn claimed_within(api: &Api, call: &ClaimCall, wait: Duration) -> Result<Option<ClaimedView>, Failure> {
    let until = planctl_server::instant() + wait.min(WAIT_EVER);
    loop {
        let left = until.saturating_duration_since(planctl_server::instant());
        let seconds = left.min(WAIT_MOST).as_secs_f64().ceil().to_string();
        let query = [("wait", seconds.as_str())];
        let claimed = api.post_maybe("/v1/items/claim", &query, call, &api::uuid_of()).await?;
        if claimed.is_some() || left <= WAIT_MOST {
            return Ok(claimed);
        }
    }
}

fn write_prompt(file: Option<&Path>, prompt: &str) -> std::io::Result<PathBuf> {
    let Some(file) = file else {
        let mut made =
            tempfile::Builder::new().prefix(PROMPT).suffix(".md").disable_cleanup(true).tempfile()?;
        made.write_all(prompt.as_bytes())?;
        return Ok(made.path().to_owned());
    };
    let mut open = std::fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(prompt.as_bytes())?;
    std::path::absolute(file)
}

/// Writes what was claimed as variables; every value is quoted, since titles and paths are strangers' words.
fn exports(claimed: &ClaimedView, file: &Path) -> String {
    let mut text = String::new();
    let parent = claimed.traceparent.clone().map(|parent| ("TRACEPARENT", parent));
    let variables = [
        ("PLANCTL_ITEM", claimed.item.clone()),
        ("PLANCTL_ITEM_TOKEN", claimed.token.clone()),
        ("PLANCTL_PROMPT_FILE", file.to_string_lossy().into_owned()),
        ("PLANCTL_WORKSPACE", claimed.workspace.to_string_lossy().into_owned()),
        ("PLANCTL_RUN", claimed.run.clone()),
        ("PLANCTL_STEP", claimed.step.to_string()),
        ("PLANCTL_STEP_TITLE", claimed.step_title.clone()),
        ("PLANCTL_NODE", claimed.node.clone()),
        ("PLANCTL_ROLE", claimed.role.clone()),
        ("PLANCTL_ATTEMPT", claimed.attempt.to_string()),
        ("PLANCTL_MAX_ATTEMPTS", claimed.attempts_max.to_string()),
        ("PLANCTL_HEARTBEAT_SECONDS", claimed.heartbeat_seconds.to_string()),
        ("PLANCTL_DEADLINE", claimed.deadline.clone()),
    ];
    for (name, value) in variables.into_iter().chain(parent) {
        let value = value.replace('\'', r"'\''");
        writeln!(text, "export {name}='{value}'").unwrap_or(());
    }
    text
}

fn draw(claimed: &ClaimedView, file: Option<&Path>) -> String {
    let mut rows = vec![
        ("item", claimed.item.clone()),
        ("run", claimed.run.clone()),
        ("step", format!("{} {}", claimed.step, claimed.step_title)),
        ("attempt", format!("{} of {}", claimed.attempt, claimed.attempts_max)),
        ("role", claimed.role.clone()),
        ("workspace", claimed.workspace.display().to_string()),
        ("lease until", claimed.lease_until.clone()),
        ("deadline", claimed.deadline.clone()),
    ];
    if let Some(file) = file {
        rows.push(("prompt", file.display().to_string()));
    }
    rows.iter().map(|(name, value)| format!("{name:<12} {}\n", show::safe(value))).collect()
}

async fn held(context: &Context, item: &HeldItem) -> Result<LeasedItem, Failure> {
    let named = |given: &Option<String>, variable: &str| {
        let given = given.clone().or_else(|| std::env::var(variable).ok());
        given.map(|given| given.trim().to_owned()).filter(|given| !given.is_empty())
    };
    let missing = |what: &str| {
        Failure::usage(what).help("eval \"$(planctl item claim --role ROLE --shell)\" sets both")
    };
    let id = named(&item.item, "PLANCTL_ITEM");
    let id = id.ok_or_else(|| missing("name the item, or set PLANCTL_ITEM"))?;
    let token = named(&item.token, "PLANCTL_ITEM_TOKEN");
    let token = token.ok_or_else(|| missing("the item's token is missing: set PLANCTL_ITEM_TOKEN"))?;
    LeasedItem::new(&Client::open_daemon(context).await?, &id, &token)
}

async fn show_item(context: &Context, item: &HeldItem) -> Answer {
    let is_json = context.is_json()?;
    let claimed: ClaimedView = held(context, item).await?.show().await?;
    if is_json {
        show::print_json(&claimed)?;
    } else {
        show::print(&draw(&claimed, None))?;
        show::print(&format!("\n{}", show::safe_block(&claimed.prompt)))?;
    }
    Ok(Exit::Yes)
}

async fn heartbeat(context: &Context, item: &HeldItem, wait: Duration) -> Answer {
    let is_json = context.is_json()?;
    let view = held(context, item).await?.send_heartbeat(wait).await?;
    if is_json {
        show::print_json(&view)?;
    } else if let (Some(until), false) = (&view.lease_until, view.cancel) {
        show::print(&format!("{until}\n"))?;
    } else {
        context.say("the run is over, or the work was taken back: end the work, nobody waits for a report");
    }
    Ok(if view.cancel { Exit::Cancelled } else { Exit::Yes })
}

async fn say(context: &Context, item: &HeldItem, word: &Word) -> Answer {
    let is_json = context.is_json()?;
    let accepted: AcceptedView = held(context, item).await?.say(word).await?;
    if let Err(error) = remove_prompt(item) {
        context.say(&format!("its prompt stays in the file of PLANCTL_PROMPT_FILE: {error}"));
    }
    if is_json {
        show::print_json(&accepted)?;
    } else {
        let again = if accepted.repeated { " (heard before)" } else { "" };
        show::print(&format!("{}{again}\n", show::safe(&accepted.follows)))?;
    }
    Ok(Exit::Yes)
}

/// Removes the file into which `claim` wrote the prompt of an item that is reported, unless the worker said where to.
fn remove_prompt(item: &HeldItem) -> std::io::Result<()> {
    let is_another = item.item.is_some() && item.item != std::env::var("PLANCTL_ITEM").ok();
    let Some(file) = std::env::var_os("PLANCTL_PROMPT_FILE").map(PathBuf::from) else { return Ok(()) };
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let is_made = file.parent() == Some(&std::env::temp_dir()) && name.starts_with(PROMPT.as_bytes());
    if is_another || !is_made || !file.exists() {
        return Ok(());
    }
    std::fs::remove_file(&file)
}

impl Used {
    fn call(self) -> Option<UsageCall> {
        let says = self.input_tokens.is_some()
            || self.cached_tokens.is_some()
            || self.output_tokens.is_some()
            || self.cost.is_some();
        says.then(|| UsageCall {
            input_tokens: self.input_tokens.unwrap_or(0),
            cached_input_tokens: self.cached_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            cost_usd: self.cost,
            estimated: false,
            model: self.model,
        })
    }
}

fn read_text(file: &Path) -> Result<String, Failure> {
    reports::text_of(file)
        .map_err(|error| Failure::of_io(format!("read {}", show::safe(&file.display().to_string())), &error))
}
