//! The account of a draft or a goal: what it may use, what it used, and the calls that were sent, each stored before it is.

use planctl_engine::Budget;
use planctl_planner::{Charge, Spending, Tokens, Unanswered};
use serde::Serialize;

use super::inbox::Inbox;
use super::writer::dollars;
use crate::failure::{Exit, Failure};
use crate::model::Account;
use crate::show;

/// A record that counts what it used.
pub trait Metered: Serialize {
    /// Returns all that it used.
    fn spent(&self) -> Spending;

    /// Returns its calls without an answer, to be changed.
    fn unanswered_mut(&mut self) -> &mut Unanswered;
}

/// The things that a person allows a draft: its budget, and a prompt that may be sent.
pub struct Allowance<'a, R> {
    /// The limits.
    pub budget: &'a Budget,
    /// The usage that counts beside the record's own.
    pub before: Spending,
    /// The digest of the prompt that the person approved beforehand.
    pub prompt: Option<&'a str>,
    /// The place where a prompt waits for a person.
    pub inbox: Inbox<'a>,
    /// The record.
    pub record: &'a mut R,
}

impl<R: Metered> Allowance<'_, R> {
    /// Makes sure that one more call fits.
    pub fn open(&self, most: Charge) -> Result<(), Failure> {
        let spent = self.spent();
        let lost = match spent.lost {
            0 => String::new(),
            lost => format!(" ({})", lost_words(lost)),
        };
        let over = |used: String, need: String, limit: String| {
            let message = format!(
                "the budget does not suffice for one more answer: {used} used{lost}, up to {need} needed, and {limit} allowed"
            );
            Failure::new(Exit::Budget, message)
                .help("allow more: --budget; the same goal then goes on where it was")
                .page_help("allow more in the field below, and go on where it was")
        };
        let (used, need) = (spent.all_tokens(), most.tokens.map_or(0, |most| most.sum()));
        if let Some(limit) = self.budget.tokens
            && used.saturating_add(need.max(1)) > limit
        {
            return Err(over(
                format!("{} tokens are", show::tokens(used)),
                format!("{} more are", show::tokens(need)),
                format!("{} are", show::tokens(limit)),
            ));
        }
        let (used, need) = (spent.micro_usd.unwrap_or(0), most.micro_usd.unwrap_or(0));
        if let Some(limit) = self.budget.micro_usd
            && used.saturating_add(need.max(1)) > limit
        {
            return Err(over(
                format!("{} is", dollars(used)),
                format!("{} more is", dollars(need)),
                format!("{} is", dollars(limit)),
            ));
        }
        Ok(())
    }

    /// Returns what is left of the budget.
    pub fn left(&self) -> Charge {
        let spent = self.spent();
        let tokens = self.budget.tokens.map(|limit| limit.saturating_sub(spent.all_tokens()));
        let micro_usd = self.budget.micro_usd.map(|limit| limit.saturating_sub(spent.micro_usd.unwrap_or(0)));
        Charge { tokens: tokens.map(|input| Tokens { input, ..Tokens::default() }), micro_usd }
    }

    /// Puts what the last call used in the place of the most that it could: it ended without an answer.
    pub async fn ended(&mut self, used: Charge) -> Result<(), Failure> {
        self.record.unanswered_mut().correct(used);
        self.store().await
    }

    fn spent(&self) -> Spending {
        self.before.plus(self.record.spent())
    }

    async fn store(&self) -> Result<(), Failure> {
        self.inbox.kept.keep(&*self.record, self.inbox.goal).await
    }
}

impl<R: Metered> Account for Allowance<'_, R> {
    async fn enter(&mut self, most: Charge) -> Result<(), Failure> {
        self.open(most)?;
        self.record.unanswered_mut().enter(most);
        self.store().await
    }

    async fn strike(&mut self) -> Result<(), Failure> {
        self.record.unanswered_mut().strike();
        self.store().await
    }

    fn strike_in_memory(&mut self) {
        self.record.unanswered_mut().strike();
    }
}

/// Says that calls have no answer.
pub fn lost_words(lost: u32) -> String {
    let calls = show::counted(usize::try_from(lost).unwrap_or(usize::MAX), "call");
    format!("{calls} without an answer counted at the most")
}
