//! `planctl topic`: notes that people, programs and other plans leave for steps.

use std::io::{IsTerminal, Read};

use planctl_api::wire::{NoteView, TopicView};
use planctl_server::NOTE_BYTES_MAX;

use super::Context;
use crate::args::TopicCommand;
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::gutter::{self, Cut};
use crate::show::{self, BOLD, FAINT, styled};

/// How many notes are asked for at once.
const AT_ONCE: usize = 1_000;

/// Does what was asked about topics.
pub async fn run(context: &Context, command: TopicCommand) -> Answer {
    match command {
        TopicCommand::Post { name, note } => post(context, &name, note).await,
        TopicCommand::Ls => list(context).await,
        TopicCommand::Show { name, since, tail } => print_topic(context, &name, since, tail).await,
    }
}

async fn post(context: &Context, name: &str, note: Option<String>) -> Answer {
    let is_json = context.is_json()?;
    let text = match note {
        Some(note) => note,
        None => read_piped_note(name)?,
    };
    let client = Client::open(context).await?;
    let posted = client.post_note(name, &text).await?;
    if is_json {
        show::print_json(&posted)?;
    } else {
        show::print(&format!("note {} of {}\n", posted.total, styled(BOLD, &show::safe(&posted.topic))))?;
    }
    Ok(Exit::Yes)
}

/// Reads the note from standard input, no further than a note may be long.
fn read_piped_note(name: &str) -> Result<String, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Failure::usage("no note was given")
            .help(format!("planctl topic post {} --note 'what to know', or pipe it in", show::safe(name))));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(NOTE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    input
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not read the note: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("the note is not UTF-8 from its byte {at} on"))
    })
}

async fn list(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let list = client.topics().await?;
    if is_json {
        show::print_json(&list)?;
        return Ok(Exit::Yes);
    }
    let rows: Vec<Vec<String>> = list
        .topics
        .iter()
        .map(|topic| vec![topic.topic.clone(), topic.notes.to_string(), topic.posted_at.clone()])
        .collect();
    let table = || show::table(&["TOPIC", "NOTES", "NEWEST"], rows);
    show::print(&if list.topics.is_empty() { "no topics yet\n".to_owned() } else { table() })?;
    Ok(Exit::Yes)
}

async fn print_topic(context: &Context, name: &str, since: u64, tail: Option<u64>) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let view = client.topic(name, since, AT_ONCE).await;
    let mut view = view.map_err(|failure| failure.or_list("planctl topic ls"))?;
    if let Some(tail) = tail {
        let since = since.max(view.total.saturating_sub(tail));
        view = client.topic(name, since, AT_ONCE).await?;
    }
    while let Some(last) = view.notes.last().map(|note| note.number)
        && last < view.total
    {
        let more = client.topic(name, last, AT_ONCE).await?;
        view.notes.extend(more.notes);
    }
    if is_json {
        show::print_json(&view)?;
    } else {
        show::print(&draw(&view))?;
    }
    Ok(Exit::Yes)
}

fn draw(view: &TopicView) -> String {
    let note = |note: &NoteView| {
        let mut text = format!(
            "{} {} {}\n",
            styled(BOLD, &note.number.to_string()),
            show::safe(&note.by),
            styled(FAINT, &show::safe(&note.at)),
        );
        text.push_str(&gutter::labelled(&note.by, &note.text, Cut::Nothing));
        text
    };
    if view.notes.is_empty() { "no notes\n".to_owned() } else { view.notes.iter().map(note).collect() }
}
