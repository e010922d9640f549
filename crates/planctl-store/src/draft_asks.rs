//! Asks of drafts (migration 0025): opened and taken back by their drafts, answered once, in the same inbox as those of runs.

use planctl_engine::{Answer, AskKind, ItemId, PromptToJudge, Timestamp};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::rows::{from_json, optional_time_at, time_at, to_json};
use crate::runs::{AskDeadline, ask_deadline};
use crate::store::Store;

macro_rules! draft_asks_where {
    ($which:literal) => {
        concat!(
            "select a.number, a.item, a.work::text as work, a.created_at, a.closed_at is null as is_open, a.deadline_at, a.deadline_answer, ",
            "a.deadline_rule, d.goal, d.rules, ",
            "d.workspace, w.path as workspace_path, x.answer, x.by, x.note, x.at from asks a join drafts d on d.id = a.draft ",
            "join workspaces w on w.id = d.workspace left join draft_answers x on x.item = a.item where ",
            $which,
            " order by a.number"
        )
    };
}
pub(crate) const DRAFT_ASKS: &str =
    draft_asks_where!("a.closed_at is null and ($1::bigint is null or d.workspace = $1)");
pub(crate) const DRAFT_ASKS_NUMBERED: &str = draft_asks_where!("a.number = any($1)");
pub(crate) const OPEN_DRAFT_ASKS: &str =
    "select number from planctl_draft_asks_1($1, $2, $3, $4, $5::json) as number";
pub(crate) const ANSWER_DRAFT: &str = "select planctl_answer_draft_1($1, $2, $3, $4, $5, $6, $7)::text";

/// A question of a draft to a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DraftAsk {
    /// The kind, which decides the answers it takes.
    pub kind: AskKind,
    /// The question; of a prompt, the whole of it.
    pub text: String,
    /// The options of a choice; none means that any text answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The place to which a prompt would be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<PromptToJudge>>,
}

/// An ask that a draft waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NewDraftAsk {
    /// The place of the ask in its draft. The next ask in the same slot takes the place of this one.
    pub slot: String,
    /// The digest of what is asked, by which the draft knows it again.
    pub digest: String,
    /// The question; without one, the slot is only cleared.
    pub ask: Option<DraftAsk>,
}

/// The asks that a draft waits for.
#[derive(Clone, Copy, Debug)]
pub struct NewDraftAsks<'a> {
    /// The workspace of the draft.
    pub workspace: WorkspaceId,
    /// The key that tells it from other drafts of its workspace.
    pub key: &'a str,
    /// Its goal, in a person's words.
    pub goal: &'a str,
    /// The rules for its asks, as JSON.
    pub rules: &'a str,
    /// The asks.
    pub asks: &'a [NewDraftAsk],
}

/// An ask of a draft, open or over.
#[derive(Clone, PartialEq, Debug)]
pub struct DraftAskRow {
    /// The number people say.
    pub number: i64,
    /// Its item.
    pub item: ItemId,
    /// The goal of the draft.
    pub goal: String,
    /// The rules for asks of the draft, as JSON.
    pub rules: String,
    /// The workspace of the draft.
    pub workspace: WorkspaceId,
    /// Its canonical path.
    pub workspace_path: String,
    /// The question.
    pub ask: DraftAsk,
    /// Says that nobody has answered yet.
    pub is_open: bool,
    /// When it was asked.
    pub created_at: Timestamp,
    /// The answer of a rule, where nobody gives one in time.
    pub deadline: Option<AskDeadline>,
    /// The answer; none where it is open, or was taken back.
    pub answer: Option<DraftAnswer>,
}

/// The answer to an ask of a draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DraftAnswer {
    /// The answer.
    pub answer: Answer,
    /// The person.
    pub by: String,
    /// Why, or the answer in words.
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// An answer about to be given, or a vote for one.
#[derive(Clone, Copy, Debug)]
pub struct NewDraftAnswer<'a> {
    /// The ask.
    pub item: &'a ItemId,
    /// The person.
    pub by: &'a str,
    /// Their answer.
    pub answer: &'a Answer,
    /// The digest of what the ask showed.
    pub about: &'a str,
    /// Why, or the answer in words.
    pub note: Option<&'a str>,
    /// The votes that counted when the caller looked; none where the answer takes no votes.
    pub seen: Option<&'a [i64]>,
    /// Says that it decides; a vote need not.
    pub decides: bool,
}

impl Store {
    /// Opens the asks that a draft waits for, each once as long as it stays the same, and takes back what the draft asked before in
    /// their slots. Returns them in the same order, with the answers that were given.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn open_draft_asks(&self, wanted: NewDraftAsks<'_>) -> Result<Vec<DraftAskRow>, StoreError> {
        let asks = to_json(&wanted.asks);
        let rows = repeated!(self, connection => sqlx::query(OPEN_DRAFT_ASKS)
            .bind(wanted.workspace.0)
            .bind(wanted.key)
            .bind(wanted.goal)
            .bind(wanted.rules)
            .bind(&asks)
            .fetch_all(&mut *connection))?;
        self.notify_everybody().await;
        let numbers = rows.iter().map(|row| row.try_get("number")).collect::<Result<Vec<i64>, _>>()?;
        let mut found = self.draft_asks_numbered(&numbers).await?;
        found.sort_by_key(|row| numbers.iter().position(|number| *number == row.number));
        Ok(found)
    }

    /// Returns the open asks of drafts, of a workspace or all, by number.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn draft_asks(&self, workspace: Option<WorkspaceId>) -> Result<Vec<DraftAskRow>, StoreError> {
        let workspace = workspace.map(|workspace| workspace.0);
        let rows = repeated!(self, connection => sqlx::query(DRAFT_ASKS).bind(workspace).fetch_all(&mut *connection))?;
        rows.iter().map(draft_ask_row).collect()
    }

    /// Returns the ask of a draft that has this number, open or over.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoAsk`] and those of the connection.
    pub async fn draft_ask(&self, number: i64) -> Result<DraftAskRow, StoreError> {
        self.draft_asks_numbered(&[number]).await?.pop().ok_or(StoreError::NoAsk { number })
    }

    async fn draft_asks_numbered(&self, numbers: &[i64]) -> Result<Vec<DraftAskRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(DRAFT_ASKS_NUMBERED)
            .bind(numbers)
            .fetch_all(&mut *connection))?;
        rows.iter().map(draft_ask_row).collect()
    }

    /// Answers an ask of a draft, or votes for an answer. Of several who answer at once, one decides.
    ///
    /// # Errors
    ///
    /// [`StoreError::VotedMeanwhile`] where the ask is closed, or others voted since, and those of the connection.
    pub async fn answer_draft(&self, given: NewDraftAnswer<'_>) -> Result<(), StoreError> {
        repeated!(self, connection => sqlx::query(ANSWER_DRAFT)
            .bind(given.item.as_str())
            .bind(given.by)
            .bind(to_json(given.answer))
            .bind(given.about)
            .bind(given.note)
            .bind(given.seen)
            .bind(given.decides)
            .execute(&mut *connection))?;
        self.notify_everybody().await;
        Ok(())
    }
}

fn draft_ask_row(row: &PgRow) -> Result<DraftAskRow, StoreError> {
    let answer = match row.try_get::<Option<String>, _>("answer")? {
        Some(answer) => Some(DraftAnswer {
            answer: from_json(&answer, "an answer to a draft")?,
            by: row.try_get("by")?,
            note: row.try_get("note")?,
            at: optional_time_at(row, "at")?.ok_or_else(|| StoreError::corrupt("an answer has no time"))?,
        }),
        None => None,
    };
    Ok(DraftAskRow {
        number: row.try_get("number")?,
        item: ItemId::new(row.try_get::<String, _>("item")?),
        goal: row.try_get("goal")?,
        rules: row.try_get("rules")?,
        workspace: WorkspaceId(row.try_get("workspace")?),
        workspace_path: row.try_get("workspace_path")?,
        ask: from_json(row.try_get("work")?, "an ask of a draft")?,
        is_open: row.try_get("is_open")?,
        created_at: time_at(row, "created_at")?,
        deadline: ask_deadline(row)?,
        answer,
    })
}
