//! `planctl approvals …`: lists and answers the asks that wait for a person.

mod evidence;
pub(super) mod page;

use planctl_api::wire::calls::Approving;
use planctl_api::wire::{AskView, Decided};
use planctl_api::words::{asker, blocked};
use planctl_engine::{Answer as Word, Budget, Role};

use super::recorded::{print_recorded, recorded_exit, recorded_word};
use super::{Context, editing};
use crate::args::{ApprovalsCommand, AskFilter, Noted};
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::next;
use crate::show::{self, BOLD, Cell, shell_word};

use page::draw_page;

/// Does what was typed.
pub async fn run(context: &Context, list: AskFilter, command: Option<ApprovalsCommand>) -> Answer {
    match command {
        None => ls(context, list).await,
        Some(ApprovalsCommand::Ls(list)) => ls(context, list).await,
        Some(ApprovalsCommand::Show { id }) => show_ask(context, id).await,
        Some(ApprovalsCommand::Edit(args)) => editing::run(context, &args).await,
        Some(ApprovalsCommand::Approve { ids, note, accept_changed }) => {
            approve(context, &ids, &Approving { note, accept_changed, worker: None }).await
        }
        Some(ApprovalsCommand::Reject(noted)) => reject(context, &noted.ids, noted.note.as_deref()).await,
        Some(ApprovalsCommand::Retry(noted)) => answer_several(context, &noted, &Word::Retry).await,
        Some(ApprovalsCommand::Allow { what, note }) => {
            let (id, files) = ask_and_files(what);
            answer(context, id.as_slice(), &Word::Allow { files }, note.as_deref()).await
        }
        Some(ApprovalsCommand::Restore(noted)) => answer_several(context, &noted, &Word::Restore).await,
        Some(ApprovalsCommand::Skip(noted)) => answer_several(context, &noted, &Word::Skip).await,
        Some(ApprovalsCommand::Waive(noted)) => answer_several(context, &noted, &Word::Waive).await,
        Some(ApprovalsCommand::Cancel(noted)) => cancel(context, &noted).await,
        Some(ApprovalsCommand::Revise(noted)) => answer_several(context, &noted, &Word::Revise).await,
        Some(ApprovalsCommand::Answer { id, note }) => {
            answer(context, id.as_slice(), &Word::Reply, Some(&note)).await
        }
        Some(ApprovalsCommand::Choose { id, option, note }) => {
            answer(context, id.as_slice(), &Word::Choose { option }, note.as_deref()).await
        }
        Some(ApprovalsCommand::Reassign { id, role, note }) => {
            let word = Word::Reassign { role: Role::new(role) };
            answer(context, id.as_slice(), &word, note.as_deref()).await
        }
        Some(ApprovalsCommand::Raise { id, tokens, cost, time, note }) => {
            let word = Word::Raise { by: Budget { tokens, micro_usd: cost, time } };
            answer(context, id.as_slice(), &word, note.as_deref()).await
        }
    }
}

/// Parts the number of an ask, which comes first where it is given, from files.
fn ask_and_files(mut words: Vec<String>) -> (Option<u64>, Vec<String>) {
    let id = words.first().and_then(|word| word.parse().ok());
    let files = words.split_off(usize::from(id.is_some()));
    (id, files)
}

/// Returns the asks that are meant: those that are named, else the only open one of this workspace that takes this answer.
/// A look, for which no answer is given, may be at one of another workspace.
///
/// # Errors
///
/// When none is named, and no ask is open, or more than one.
pub async fn resolve_asks(client: &Client, ids: &[u64], word: Option<&str>) -> Result<Vec<u64>, Failure> {
    if !ids.is_empty() {
        return Ok(ids.to_vec());
    }
    let mut open = client.asks(None).await?.asks;
    open.retain(|ask| word.is_none_or(|word| takes_answer(ask, word)));
    let (here, elsewhere): (Vec<AskView>, Vec<AskView>) =
        open.into_iter().partition(|ask| ask.workspace == client.workspace());
    // Without a number nobody decides about another folder by accident.
    let meant = if here.is_empty() && word.is_none() { &elsewhere } else { &here };
    match meant.as_slice() {
        [only] => Ok(vec![only.id]),
        [] => {
            let of = word.map(|word| format!(" that takes the answer `{word}`")).unwrap_or_default();
            let place = match elsewhere.len() {
                0 => String::new(),
                1 => " in this folder; 1 is open elsewhere".to_owned(),
                several => format!(" in this folder; {several} are open elsewhere"),
            };
            Err(Failure::not_found(format!("no ask is open{of}{place}")).next("planctl approvals"))
        }
        several => {
            let ids: Vec<String> = several.iter().map(|ask| ask.id.to_string()).collect();
            let message = format!("{} asks are open: {}; name one", ids.len(), ids.join(", "));
            Err(Failure::usage(message).next("planctl approvals"))
        }
    }
}

/// Says whether an ask is open to this answer; a proposed step is put in by what is called an approval.
fn takes_answer(ask: &AskView, word: &str) -> bool {
    let is_proposal = ask.kind == "insertion" && word == "approve";
    is_proposal || ask.answers.iter().any(|answer| answer == word)
}

async fn ls(context: &Context, filter: AskFilter) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let run = match &filter.run {
        Some(run) => Some(client.find(run).await?),
        None => None,
    };
    let mut list = client.asks(run).await?;
    let all = list.asks.len();
    list.asks.retain(|ask| filter.kind.as_ref().is_none_or(|kind| ask.kind == *kind));
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    if list.asks.is_empty() {
        show::print(&nothing_waits(&filter, all))?;
        return Ok(Exit::Yes);
    }
    let now = client::now_unix_seconds();
    let has_deadlines = list.asks.iter().any(|ask| ask.deadline.is_some());
    // Names of runs count in their workspace.
    let has_others = list.asks.iter().any(|ask| ask.workspace != client.workspace());
    let rows = list.asks.iter().map(|ask| {
        let step = ask.step.as_ref().map(|step| format!("{} {}", step.number, step.title));
        let reason = show::brief_failure(&ask.about);
        let mut row: Vec<Cell> = vec![
            Cell::styled(BOLD, &ask.id.to_string()),
            ask.kind.as_str().into(),
            asker(ask).as_str().into(),
            step.unwrap_or_else(|| "-".to_owned()).into(),
            reason.as_str().into(),
            ask.blocks.map_or_else(|| "-".to_owned(), blocked).into(),
        ];
        row.extend(has_deadlines.then(|| Cell::from(deadline_cell(ask, now))));
        row.push(show::age(&ask.opened_at, now).unwrap_or_else(|| "-".to_owned()).into());
        row.extend(has_others.then(|| Cell::from(ask.workspace.as_str())));
        row
    });
    let mut header = vec!["ID", "KIND", "RUN", "STEP", "REASON", "BLOCKS"];
    header.extend(has_deadlines.then_some("DEADLINE"));
    header.push("AGE");
    header.extend(has_others.then_some("WORKSPACE"));
    show::print(&show::list(&header, rows.collect()))?;
    Ok(Exit::Yes)
}

/// Says that no ask waits that is wanted, and how many others of the run, or of all, do.
fn nothing_waits(filter: &AskFilter, others: usize) -> String {
    if filter.run.is_none() && filter.kind.is_none() {
        return "nothing waits for you, in any folder\n".to_owned();
    }
    let what = filter.kind.as_ref().map_or("nothing".to_owned(), |kind| format!("no {}", show::safe(kind)));
    let of_run = filter.run.as_ref().map(|run| format!(" of {}", show::safe(run))).unwrap_or_default();
    let others = match others {
        0 => String::new(),
        others => format!("; {others} of other kinds: planctl approvals"),
    };
    format!("{what}{of_run} waits for you{others}\n")
}

/// Says in how long a rule answers an ask, and how.
fn deadline_cell(ask: &AskView, now: f64) -> String {
    let left = ask.deadline.as_ref().and_then(|deadline| {
        let left = show::unix_seconds(&deadline.at)? - now;
        let in_time = planctl_lang::duration_words(std::time::Duration::from_secs_f64(left.max(0.0).round()));
        Some(format!("{} in {in_time}", show::safe(&deadline.answer)))
    });
    left.unwrap_or_else(|| "-".to_owned())
}

async fn show_ask(context: &Context, id: Option<u64>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    for id in resolve_asks(&client, id.as_slice(), None).await? {
        let page = client.ask(id).await?;
        if is_json {
            show::print_json(&page)?;
        } else {
            show::print(&show::folded(&draw_page(&page, context.verbosity() > 0)))?;
        }
    }
    Ok(Exit::Yes)
}

async fn answer_several(context: &Context, noted: &Noted, word: &Word) -> Answer {
    answer(context, &noted.ids, word, noted.note.as_deref()).await
}

/// Does not let plans run, and leaves proposed steps out.
pub async fn reject(context: &Context, ids: &[u64], note: Option<&str>) -> Answer {
    answer(context, ids, &Word::Reject, note).await
}

/// Ends the runs of asks for good.
async fn cancel(context: &Context, noted: &Noted) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    for id in resolve_asks(&client, &noted.ids, Some(Word::Abort.as_str())).await? {
        let ask = client.ask(id).await?.ask;
        print_recorded(context, &cancel_run_of_ask(&client, &ask, noted.note.as_deref()).await?, is_json)?;
    }
    Ok(Exit::Yes)
}

/// Cancels the run of an ask, which ends it for good whatever the ask is about; refused once the ask is answered, as its run goes on.
pub async fn cancel_run_of_ask(
    client: &Client,
    ask: &AskView,
    note: Option<&str>,
) -> Result<Decided, Failure> {
    let handle = client::run_of(ask)?;
    if let Some(answer) = &ask.answer {
        let (id, by, answer) = (ask.id, show::safe(&answer.by), show::safe(&answer.answer));
        let run = ask.run.as_ref().map_or_else(|| handle.id().to_string(), |run| show::safe(run));
        let message = format!("could not answer ask {id}: {by} answered it with {answer}");
        let failure =
            Failure::new(Exit::Conflict, message).help(format!("planctl cancel {run} ends its run"));
        return Err(failure.next(format!("planctl status {run}")));
    }
    client.cancel(handle, note).await
}

/// Lets plans run, and puts proposed steps into theirs.
pub async fn approve(context: &Context, ids: &[u64], given: &Approving) -> Answer {
    let client = Client::open(context).await?;
    let ids = resolve_asks(&client, ids, Some(Word::Approve.as_str())).await?;
    let mut others = Vec::with_capacity(ids.len());
    for id in ids {
        let page = client.ask(id).await?;
        if page.ask.kind == "insertion" && page.ask.answer.is_none() {
            editing::insert(context, &client, &page, given.note.as_deref()).await?;
        } else {
            others.push(id);
        }
    }
    if others.is_empty() {
        Ok(Exit::Yes)
    } else {
        answer_all(context, &client, &others, &Word::Approve, given).await
    }
}

/// Approves every ask of a run that waits for an approval, one after another: each is a decision of its own.
pub async fn approve_all_of(context: &Context, run: &str, given: &Approving) -> Answer {
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let open = client.asks(Some(handle)).await?.asks;
    let ids: Vec<u64> = open.iter().filter(|ask| takes_answer(ask, "approve")).map(|ask| ask.id).collect();
    if ids.is_empty() {
        let run = shell_word(run);
        let message = format!("no ask of {} waits for an approval", show::safe(&run));
        return Err(Failure::not_found(message).next(format!("planctl status {run}")));
    }
    approve(context, &ids, given).await
}

async fn answer(context: &Context, ids: &[u64], word: &Word, note: Option<&str>) -> Answer {
    let client = Client::open(context).await?;
    if ids.is_empty() {
        refuse_number_alone(&client, word).await?;
    }
    let ids = resolve_asks(&client, ids, Some(word.as_str())).await?;
    answer_all(context, &client, &ids, word, &Approving::with_note(note)).await
}

/// Refuses an answer in words that is the number of an open ask: the words were forgotten behind it.
async fn refuse_number_alone(client: &Client, word: &Word) -> Result<(), Failure> {
    let said = if let Word::Choose { option } = word {
        option.as_str()
    } else if let Word::Reassign { role } = word {
        role.as_str()
    } else {
        return Ok(());
    };
    let asks = if client::is_number(said) { client.asks(None).await?.asks } else { Vec::new() };
    if asks.iter().all(|ask| ask.id.to_string() != said) {
        return Ok(());
    }
    let (word, what) = (word.as_str(), format!("{said} is the number of an ask, and no answer follows it"));
    Err(Failure::usage(what).next(format!("planctl approvals {word} {said}{}", next::needs(word))))
}

async fn answer_all(
    context: &Context,
    client: &Client,
    ids: &[u64],
    word: &Word,
    given: &Approving,
) -> Answer {
    let is_json = context.is_json()?;
    let (mut next, mut waits) = (None, false);
    for id in ids {
        let decided = client.answer_given(*id, word.clone(), given).await?;
        if recorded_exit(&decided) == Exit::Waiting {
            print_recorded(context, &decided, is_json)?;
            waits = true;
            continue;
        }
        match &decided.run {
            // The consequence is said below, once.
            Some(_) if !is_json => context.say(&recorded_word(&decided)),
            Some(_) | None => print_recorded(context, &decided, is_json)?,
        }
        next = decided.run_id;
    }
    let exit = if waits { Exit::Waiting } else { Exit::Yes };
    let Some(run) = next.filter(|_| !is_json) else { return Ok(exit) };
    let view = client.status(client::handle_of(&run)?).await?;
    let next = if view.state.is_over() {
        context.say(&format!("{} is {}", show::safe(&view.run), show::run_state(view.state)));
        super::standing::next_of(&view)
    } else {
        let words = super::run::end::after_answer(&view, word);
        Some(next::typed_in(&words, &view.workspace))
    };
    if let Some(next) = next {
        context.say(&next::line(&next));
    }
    Ok(exit)
}
