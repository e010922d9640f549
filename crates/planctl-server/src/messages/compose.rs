//! Finds what people were not told of, and writes the messages: of asks that open, wait and end, of runs that end, and of
//! budgets of which most is used.
//!
//! Nothing is written for a workspace without a channel that wants it. An ask stays untold there, so that somebody who sets
//! up a channel hears of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planctl_api::wire::messages::{MessageAsk, MessageView};
use planctl_api::wire::{AskView, DeadlineView};
use planctl_api::{Next, words};
use planctl_config::{ChannelConfig, MessageEvent};
use planctl_engine::{Actor, End, Excerpt, Fact, Graph, NodeId, Role, RunId, RunStatus, Timestamp};
use planctl_lang::printable;
use planctl_store::{AskRow, Follows, NewMessage, RunRow, StoreError, ToChannel, Untold, WorkspaceId};

use super::channels_wanting;
use super::deliver::reminder_after;
use crate::inbox::draft_asks::draft_ask_view;
use crate::node::ServerNode;
use crate::node::services::{Caller, Caps, ServiceError, Services};
use crate::runs::words::failure_line;
use crate::workspaces::worktrees::is_worktree_end_due;

/// How many asks or runs are read at once.
const AT_ONCE: i64 = 500;
/// How many of the last lines of an output a message has, and how long each is at most.
const LINES_MAX: usize = 10;
const LINE_CHARACTERS_MAX: usize = 300;
/// How long work waits before people are told that nobody serves its role, and how long a worker counts after it was seen.
const UNSERVED_FOR: Duration = Duration::from_secs(60);
const WORKER_SEEN_FOR: Duration = Duration::from_secs(60);
/// How long the message of a run's end waits for the look at its worktree, which says whether its result is to be merged.
const LOOKED_AT_WITHIN: Duration = Duration::from_secs(60);
/// How far back the fact is looked for that says how a run ended.
const FACTS_LOOKED_AT: i64 = 20;

/// Writes messages of one host's runs.
#[derive(Clone)]
pub(crate) struct Composer {
    server_node: ServerNode,
    /// Says what to type for a next step in a workspace; only the command line knows.
    command: fn(&Next, &str) -> String,
}

/// The channels of each workspace, read once in a turn.
type Channels = BTreeMap<String, BTreeMap<String, ChannelConfig>>;

impl Composer {
    pub(crate) fn new(server_node: ServerNode, command: fn(&Next, &str) -> String) -> Composer {
        Composer { server_node, command }
    }

    /// Writes the messages that are due; says whether asks, or ends of runs, may be left of which nobody was told.
    ///
    /// # Errors
    ///
    /// Those of the store. A message that can't be written is logged, and keeps back no other.
    pub(crate) async fn write_due(&self) -> Result<bool, ServiceError> {
        let (store, host) = (self.server_node.store(), self.server_node.host());
        let mut channels = Channels::new();
        for decided in store.asks_decided(host, AT_ONCE).await? {
            self.skip_unreadable(&decided.key, self.compose_decision(&decided, &mut channels).await)?;
        }
        let has_untold = self.write_opened(&mut channels).await?;
        for due in store.asks_to_remind(host, AT_ONCE).await? {
            let event = MessageEvent::ApprovalReminder;
            self.skip_unreadable(&due.key, self.compose_ask(&due, event, &mut channels).await)?;
        }
        let has_untold = self.write_ends(&mut channels).await? || has_untold;
        self.write_near_budget(&mut channels).await?;
        // A daemon whose command line names an agent for every role does all work of its host.
        if !self.server_node.daemon().is_some_and(|daemon| daemon.serves_all) {
            self.write_unserved(&mut channels).await?;
        }
        Ok(has_untold)
    }

    fn skip_unreadable(&self, key: &str, told: Result<(), ServiceError>) -> Result<(), ServiceError> {
        match told {
            Err(ServiceError::Store(error)) if error.is_retryable() => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, message.key = key, "a message could not be written");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the channels of a workspace that want to hear of an event.
    async fn channels_for(
        &self,
        workspace: &str,
        event: MessageEvent,
        channels: &mut Channels,
    ) -> Vec<ToChannel> {
        channels_wanting(self.channels_of(workspace, channels).await, event)
    }

    /// Returns the channels of a workspace. A configuration that does not read has none.
    async fn channels_of<'c>(
        &self,
        workspace: &str,
        channels: &'c mut Channels,
    ) -> &'c BTreeMap<String, ChannelConfig> {
        if !channels.contains_key(workspace) {
            let read = self.server_node.channels_of(workspace).await;
            let read = read.unwrap_or_else(|error| {
                tracing::debug!(%error, workspace, "the channels of a workspace are not known");
                BTreeMap::new()
            });
            channels.insert(workspace.to_owned(), read);
        }
        &channels[workspace]
    }

    async fn compose_ask(
        &self,
        untold: &Untold<i64>,
        event: MessageEvent,
        channels: &mut Channels,
    ) -> Result<(), ServiceError> {
        let reminders = untold.reminders + u32::from(event == MessageEvent::ApprovalReminder);
        let wanted = self.channels_for(&untold.workspace_path, event, channels).await;
        if wanted.is_empty() && event == MessageEvent::ApprovalOpened {
            return Ok(());
        }
        let ask = self.ask(untold.of, event, reminders).await?;
        if !ask.is_open {
            return Ok(());
        }
        let follows = Follows::Reminder { sent: reminders, after: reminder_after(reminders) };
        self.write(&ask.about, event, &untold.key, &wanted, &ask.message, follows).await
    }

    async fn compose_decision(
        &self,
        decided: &Untold<i64>,
        channels: &mut Channels,
    ) -> Result<(), ServiceError> {
        let event = MessageEvent::ApprovalDecided;
        let wanted = self.channels_for(&decided.workspace_path, event, channels).await;
        if wanted.is_empty() {
            return Ok(self.server_node.store().cancel_ask_messages(decided.of).await?);
        }
        let ask = self.ask(decided.of, event, decided.reminders).await?;
        self.write(&ask.about, event, &decided.key, &wanted, &ask.message, Follows::Decision).await
    }

    /// Writes of all asks that nobody was told of. Those without a channel stay untold, and hold back none that opened later.
    async fn write_opened(&self, channels: &mut Channels) -> Result<bool, ServiceError> {
        let (store, host) = (self.server_node.store(), self.server_node.host());
        let mut last = None;
        loop {
            let opened = store.unannounced_asks(host, last, AT_ONCE).await?;
            for ask in &opened {
                let told = self.compose_ask(ask, MessageEvent::ApprovalOpened, channels).await;
                self.skip_unreadable(&ask.key, told)?;
            }
            let Some(after) = after_page(&opened) else { return Ok(last.is_some() || !opened.is_empty()) };
            last = Some(after.of);
        }
    }

    /// Writes of all runs of whose budget most is used.
    async fn write_near_budget(&self, channels: &mut Channels) -> Result<(), ServiceError> {
        let (store, host) = (self.server_node.store(), self.server_node.host());
        let mut last = None;
        loop {
            let noticed = store.runs_near_budget(host, last, AT_ONCE).await?;
            for run in &noticed {
                self.skip_unreadable(&run.key, self.compose_budget(run, channels).await)?;
            }
            let Some(after) = after_page(&noticed) else { return Ok(()) };
            last = Some(after.of);
        }
    }

    /// Writes of all roles whose work waits and that nobody serves.
    async fn write_unserved(&self, channels: &mut Channels) -> Result<(), ServiceError> {
        let (store, host) = (self.server_node.store(), self.server_node.host());
        let mut last = None;
        loop {
            let page = (last.as_deref(), AT_ONCE);
            let unserved = store.roles_unserved(host, page, UNSERVED_FOR, WORKER_SEEN_FOR).await?;
            for role in &unserved {
                self.skip_unreadable(&role.key, self.compose_unserved(role, channels).await)?;
            }
            let Some(after) = after_page(&unserved) else { return Ok(()) };
            last = Some(after.key.clone());
        }
    }

    /// Writes of all runs that ended since the mark, and moves the mark: a workspace without channels has no message that would
    /// keep its runs from being looked at again. Says whether some wait for the look at their worktrees.
    async fn write_ends(&self, channels: &mut Channels) -> Result<bool, ServiceError> {
        let (store, host) = (self.server_node.store(), self.server_node.host());
        let (mut last, mut announced_until, mut has_untold) = (None, None, false);
        loop {
            let ended = store.unannounced_ended_runs(host, last, AT_ONCE).await?;
            for run in &ended {
                match self.compose_end(run, channels).await {
                    Ok(false) => has_untold = true,
                    composed => self.skip_unreadable(&run.key, composed.map(drop))?,
                }
                if !has_untold {
                    announced_until = Some(run.of.1);
                }
            }
            last = ended.last().map(|run| run.of).or(last);
            if after_page(&ended).is_none() {
                break;
            }
        }
        if announced_until.is_some() {
            store.mark_ended_runs(host, announced_until).await?;
        }
        Ok(has_untold)
    }

    /// Writes of a run's end; says no where its worktree has to be looked at first.
    async fn compose_end(
        &self,
        ended: &Untold<(RunId, Timestamp)>,
        channels: &mut Channels,
    ) -> Result<bool, ServiceError> {
        if self.channels_of(&ended.workspace_path, channels).await.is_empty() {
            return Ok(true);
        }
        let store = self.server_node.store();
        let run = store.run(ended.of.0).await?;
        let RunStatus::Ended { end } = run.head.status else { return Ok(true) };
        let event = match end {
            End::Done => MessageEvent::RunDone,
            End::Failed | End::Aborted => MessageEvent::RunFailed,
            End::Cancelled => MessageEvent::RunCancelled,
        };
        let wanted = self.channels_for(&ended.workspace_path, event, channels).await;
        if wanted.is_empty() {
            return Ok(true);
        }
        if is_worktree_end_due(&run) && store.now().await?.since(ended.of.1) < LOOKED_AT_WITHIN {
            return Ok(false);
        }
        let graph = store.graph_of(&run).await?;
        let facts = store.newest_facts(run.id, FACTS_LOOKED_AT).await?;
        let last = facts.iter().rev().find(|fact| is_end(fact));
        let sentence =
            last.map_or_else(|| "it is over".to_owned(), |fact| planctl_view::sentence(&graph, fact));
        let trouble = run.worktree.as_ref().and_then(|worktree| worktree.trouble.as_deref());
        let trouble = trouble.map(|why| format!("; not to be merged: {why}")).unwrap_or_default();
        let mut message = self.of_run(&run, &graph, event, &format!("{}: {sentence}{trouble}", run.name));
        if let Some(Fact::PlanFailed { node, .. }) = last {
            message.lines = self.lines_of(run.id, node).await?;
        }
        self.write(&About::of(&run), event, &ended.key, &wanted, &message, Follows::Nothing).await?;
        Ok(true)
    }

    async fn compose_budget(
        &self,
        noticed: &Untold<RunId>,
        channels: &mut Channels,
    ) -> Result<(), ServiceError> {
        let event = MessageEvent::BudgetNotice;
        let wanted = self.channels_for(&noticed.workspace_path, event, channels).await;
        if wanted.is_empty() {
            return Ok(());
        }
        let store = self.server_node.store();
        let run = store.run(noticed.of).await?;
        let graph = store.graph_of(&run).await?;
        let sentence = format!("{}: most of the budget is used", run.name);
        let message = self.of_run(&run, &graph, event, &sentence);
        self.write(&About::of(&run), event, &noticed.key, &wanted, &message, Follows::Nothing).await
    }

    async fn compose_unserved(
        &self,
        unserved: &Untold<(RunId, Role)>,
        channels: &mut Channels,
    ) -> Result<(), ServiceError> {
        let event = MessageEvent::WorkerNoneForRole;
        let wanted = self.channels_for(&unserved.workspace_path, event, channels).await;
        if wanted.is_empty() {
            return Ok(());
        }
        let (run, role) = &unserved.of;
        let store = self.server_node.store();
        let run = store.run(*run).await?;
        let graph = store.graph_of(&run).await?;
        let paused = store.paused_workers(&[role], WORKER_SEEN_FOR).await?.remove(role);
        let why = match &paused {
            Some(worker) => format!("its worker {worker} is paused"),
            None => "no worker serves it".to_owned(),
        };
        let sentence = format!("{}: work for the role {role} waits, and {why}", run.name);
        let mut message = self.of_run(&run, &graph, event, &sentence);
        let serve = || Next::ServeRole { role: role.as_str().to_owned() };
        let next = paused.map_or_else(serve, |worker| Next::ResumeWorker { worker });
        message.command = Some((self.command)(&next, &run.workspace_path));
        self.write(&About::of(&run), event, &unserved.key, &wanted, &message, Follows::Nothing).await
    }

    async fn write(
        &self,
        about: &About,
        event: MessageEvent,
        key: &str,
        channels: &[ToChannel],
        message: &MessageView,
        follows: Follows,
    ) -> Result<(), ServiceError> {
        let body = serde_json::to_string(message).map_err(|error| ServiceError::broken(error.to_string()))?;
        let new = NewMessage {
            workspace: about.workspace,
            run: about.run,
            ask: about.ask,
            event: event.as_str(),
            key,
            body: &body,
            channels,
        };
        Ok(self.server_node.store().enqueue_message(&new, follows).await?)
    }

    /// Reads an ask, and says in a message what it is about.
    async fn ask(
        &self,
        number: i64,
        event: MessageEvent,
        reminders: u32,
    ) -> Result<AskMessage, ServiceError> {
        let services = self.services().await?;
        let row = match services.store.ask(number).await {
            Err(StoreError::NoAsk { number }) => return self.draft_ask(number, event, reminders).await,
            row => row?,
        };
        let run = services.store.run(row.run).await?;
        let graph = services.store.graph_of(&run).await?;
        let answer = if row.is_open { None } else { services.answer_of(&row).await? };
        let view = crate::inbox::ask_view::ask_view(&row, &graph, answer);
        let sentence = ask_sentence(&view, event);
        let mut message = self.of_run(&run, &graph, event, &sentence);
        message.step = view.step.clone();
        message.lines = lines_of_ask(&row);
        message.lines.extend(view.deadline.as_ref().map(deadline_line));
        message.command = Some((self.command)(&Next::ShowAsk { ask: view.id }, &run.workspace_path));
        message.ask = Some(message_ask(view, reminders));
        let about = About { ask: Some(row.number), ..About::of(&run) };
        Ok(AskMessage { about, is_open: row.is_open, message })
    }

    /// Reads an ask of a draft, and says in a message what it is about.
    async fn draft_ask(
        &self,
        number: i64,
        event: MessageEvent,
        reminders: u32,
    ) -> Result<AskMessage, ServiceError> {
        let row = self.server_node.store().draft_ask(number).await?;
        let view = draft_ask_view(&row);
        // A prompt holds texts of the workspace, which channels need not know.
        let lines = if row.ask.prompt.is_some() { Vec::new() } else { beginning(&row.ask.text) };
        let message = MessageView {
            event: event.as_str().to_owned(),
            sentence: line(&ask_sentence(&view, event)),
            workspace: row.workspace_path.clone(),
            plan: None,
            title: Some(line(&row.goal)),
            run: None,
            run_id: None,
            step: None,
            lines: lines.into_iter().chain(view.deadline.as_ref().map(deadline_line)).collect(),
            command: Some((self.command)(&Next::ShowAsk { ask: view.id }, &row.workspace_path)),
            link: None,
            ask: Some(message_ask(view, reminders)),
        };
        let about = About { workspace: row.workspace, run: None, ask: Some(number) };
        Ok(AskMessage { about, is_open: row.is_open, message })
    }

    fn of_run(&self, run: &RunRow, graph: &Arc<Graph>, event: MessageEvent, sentence: &str) -> MessageView {
        MessageView {
            event: event.as_str().to_owned(),
            sentence: line(sentence),
            workspace: run.workspace_path.clone(),
            plan: Some(run.plan_path.clone()),
            title: Some(line(graph.title())),
            run: Some(run.name.clone()),
            run_id: Some(run.id.to_string()),
            step: None,
            ask: None,
            lines: Vec::new(),
            command: Some((self.command)(&Next::show(&run.name), &run.workspace_path)),
            link: None,
        }
    }

    async fn lines_of(&self, run: RunId, node: &NodeId) -> Result<Vec<String>, ServiceError> {
        let mut records = self.server_node.store().records_of(run, std::slice::from_ref(node)).await?;
        let failure = records.remove(node).and_then(|record| record.failure);
        Ok(failure.map(|failure| last_lines(&failure.stderr, &failure.stdout)).unwrap_or_default())
    }

    async fn services(&self) -> Result<Services, ServiceError> {
        let caller = Caller {
            workspace: None,
            config: planctl_config::Config::default(),
            actor: Actor::new("planctl"),
            person: "planctl".to_owned(),
            caps: Caps::default(),
            is_looking: true,
            request: None,
        };
        self.server_node.services(caller).await
    }
}

fn deadline_line(deadline: &DeadlineView) -> String {
    line(&words::deadline(deadline))
}

/// The ids that a message is stored under.
struct About {
    workspace: WorkspaceId,
    run: Option<RunId>,
    ask: Option<i64>,
}

impl About {
    fn of(run: &RunRow) -> About {
        About { workspace: run.workspace, run: Some(run.id), ask: None }
    }
}

struct AskMessage {
    about: About,
    is_open: bool,
    message: MessageView,
}

fn message_ask(view: AskView, reminders: u32) -> MessageAsk {
    MessageAsk {
        id: view.id,
        kind: view.kind,
        answers: view.answers,
        usual: view.usual,
        opened_at: view.opened_at,
        reminders,
        answer: view.answer,
    }
}

/// Returns the one after which the next page begins, where there may be one.
fn after_page<T>(page: &[Untold<T>]) -> Option<&Untold<T>> {
    page.last().filter(|_| page.len() as i64 >= AT_ONCE)
}

fn is_end(fact: &Fact) -> bool {
    matches!(fact, Fact::PlanCompleted { .. } | Fact::PlanFailed { .. } | Fact::PlanCancelled { .. })
}

fn ask_sentence(ask: &AskView, event: MessageEvent) -> String {
    let id = ask.id;
    match (&ask.answer, event) {
        (Some(answer), _) => format!("{} answered ask {id} with {}: {}", answer.by, answer.answer, ask.asks),
        (None, MessageEvent::ApprovalDecided) => format!("ask {id} was taken back: {}", ask.asks),
        (None, MessageEvent::ApprovalReminder) => format!("ask {id} still waits for you: {}", ask.asks),
        (None, _) => format!("ask {id} waits for you: {}", ask.asks),
    }
}

/// Returns the end of what failed, or the beginning of what is asked.
fn lines_of_ask(row: &AskRow) -> Vec<String> {
    match (&row.ask.failure, &row.ask.message) {
        (Some(failure), _) => {
            let lines = last_lines(&failure.stderr, &failure.stdout);
            if lines.is_empty() { vec![line(&failure_line(failure))] } else { lines }
        }
        (None, Some(message)) => beginning(message),
        (None, None) => Vec::new(),
    }
}

fn beginning(text: &str) -> Vec<String> {
    text.lines().map(line).take(LINES_MAX).collect()
}

/// Returns the last lines of what a program said, on standard error where it said something there.
fn last_lines(stderr: &Excerpt, stdout: &Excerpt) -> Vec<String> {
    let said = if stderr.tail.trim().is_empty() { stdout } else { stderr };
    let plain = planctl_view::strip_terminal_sequences(&said.tail);
    let lines: Vec<&str> = plain.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].iter().map(|text| line(text)).collect()
}

/// Makes one line that holds no credential and no character that nobody sees.
fn line(text: &str) -> String {
    let text = printable(text.trim_end()).replace(['\n', '\t'], " ");
    match text.char_indices().nth(LINE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
