//! Votes of people on asks. A vote that decides is applied as a decision with [`Proof::Vote`](crate::Proof::Vote), so that it and
//! the transition that it causes are written together or not at all.

use planctl_engine::{Actor, Answer, Decision, Event, HumanEvent, ItemId, RunId, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::connections::repeated;
use crate::error::StoreError;
use crate::proof::{NewVote, Proof};
use crate::rows::{from_json, time_at, to_json};
use crate::store::Store;

pub(crate) const VOTES: &str =
    "select id, voter, answer, about, note, at, void from votes where item = $1 order by id";
pub(crate) const VOTE: &str = "select run, is_late, \"now\", generation, lease_until, hard_deadline, revision, approval, \
     settings, served from planctl_vote_1($1, $2, $3, $4, $5, $6, $7::json)";

/// A vote that was cast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoteRow {
    /// Its number.
    pub id: i64,
    /// The person.
    pub voter: String,
    /// Their answer.
    pub answer: Answer,
    /// The digest of what the ask showed.
    pub about: String,
    /// Why.
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Why it counts no more.
    pub void: Option<String>,
}

impl NewVote {
    /// Binds the values of [`VOTE`], with the transition that it causes.
    pub(crate) fn query<'q>(
        &'q self,
        transitions: String,
    ) -> sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments> {
        sqlx::query(VOTE)
            .bind(self.item.as_str())
            .bind(&self.voter)
            .bind(to_json(&self.answer))
            .bind(&self.about)
            .bind(&self.note)
            .bind(&self.seen)
            .bind(transitions)
    }
}

impl Store {
    /// Returns the votes on an ask, oldest first; those that count no more too.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn votes(&self, item: &ItemId) -> Result<Vec<VoteRow>, StoreError> {
        let rows = repeated!(self, connection => sqlx::query(VOTES).bind(item.as_str()).fetch_all(&mut *connection))?;
        let read = |row: &PgRow| {
            Ok(VoteRow {
                id: row.try_get("id")?,
                voter: row.try_get("voter")?,
                answer: from_json(row.try_get("answer")?, "the answer of a vote")?,
                about: row.try_get("about")?,
                note: row.try_get("note")?,
                at: time_at(row, "at")?,
                void: row.try_get("void")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Casts a vote that does not decide: a line of the run's history, and the row that is counted.
    ///
    /// # Errors
    ///
    /// [`StoreError::VotedMeanwhile`] where others voted since, or the ask is closed, and those of the connection.
    pub async fn cast_vote(&self, run: RunId, vote: &NewVote) -> Result<(), StoreError> {
        let decision = Decision::Vote {
            item: vote.item.clone(),
            answer: vote.answer.clone(),
            about: vote.about.clone(),
        };
        let by = Actor::new(vote.voter.as_str());
        let event = Event::Human(HumanEvent { by, note: vote.note.clone(), decision });
        let proof = Proof::Vote { key: None, vote: Box::new(vote.clone()) };
        self.apply(run, &event, &proof, None).await.map(drop)
    }
}
