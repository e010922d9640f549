//! Tokens and money that a draft has used.

use serde::{Deserialize, Serialize};

use crate::prompt::tokens_of;

/// The tokens of one answer, as its sender counted them, or as their number was estimated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Read, those from a cache included.
    pub input: u64,
    /// Read from a cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
    /// Says that its sender did not count them: their number was worked out from the length of question and answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Tokens {
    /// Estimates those of an answer by the most that its question has, and by its text.
    pub fn estimate(question: u64, answer: &str) -> Tokens {
        Tokens { input: question, output: tokens_of(answer), estimated: true, ..Tokens::default() }
    }

    /// Returns the sum of what was read and written.
    pub fn sum(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// All that was used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spending {
    /// How many answers there were.
    pub answers: u32,
    /// How many of them came without a count of tokens.
    pub unmetered: u32,
    /// The tokens of how many of them were estimated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated: u32,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their money in millionths of a US dollar; `None` where no answer has a price.
    pub micro_usd: Option<u64>,
    /// How many calls got no answer. Tokens and money count the most that each may have used.
    #[serde(default)]
    pub lost: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The most that one call uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Charge {
    /// Tokens; `None` where nothing limits them.
    pub tokens: Option<Tokens>,
    /// Money in millionths of a US dollar; `None` where no price is known.
    pub micro_usd: Option<u64>,
}

/// The calls of a record that have no answer in it. A call is entered before it is sent: while it is under way it is the last one,
/// and one that a later process finds here was lost, and may have been paid for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Unanswered(Vec<Charge>);

impl Unanswered {
    /// Enters a call that is about to be sent.
    pub fn enter(&mut self, most: Charge) {
        self.0.push(most);
    }

    /// Strikes the last call out: its answer counts in its place, or it used nothing.
    pub fn strike(&mut self) {
        self.0.pop();
    }

    /// Puts what the last call used in the place of the most that it could.
    pub fn correct(&mut self, used: Charge) {
        if let Some(last) = self.0.last_mut() {
            *last = used;
        }
    }
}

impl Spending {
    /// Adds one answer.
    pub fn add(&mut self, tokens: Option<Tokens>, micro_usd: Option<u64>) {
        self.answers += 1;
        match tokens {
            None => self.unmetered += 1,
            Some(tokens) => self.estimated += u32::from(tokens.estimated),
        }
        self.count(tokens.unwrap_or_default(), micro_usd);
    }

    fn count(&mut self, more: Tokens, micro_usd: Option<u64>) {
        self.tokens.input = self.tokens.input.saturating_add(more.input);
        self.tokens.cached = self.tokens.cached.saturating_add(more.cached);
        self.tokens.output = self.tokens.output.saturating_add(more.output);
        if let Some(more) = micro_usd {
            self.micro_usd = Some(self.micro_usd.unwrap_or(0).saturating_add(more));
        }
    }

    /// Returns these and the calls without an answer together.
    pub fn plus_unanswered(mut self, unanswered: &Unanswered) -> Spending {
        for most in &unanswered.0 {
            self.lost = self.lost.saturating_add(1);
            self.count(most.tokens.unwrap_or_default(), most.micro_usd);
        }
        self
    }

    /// Returns both together.
    pub fn plus(self, other: Spending) -> Spending {
        let sum = |one: u64, more: u64| one.saturating_add(more);
        let tokens = Tokens {
            input: sum(self.tokens.input, other.tokens.input),
            cached: sum(self.tokens.cached, other.tokens.cached),
            output: sum(self.tokens.output, other.tokens.output),
            estimated: false,
        };
        let micro_usd = [self.micro_usd, other.micro_usd].into_iter().flatten().reduce(sum);
        Spending {
            answers: self.answers.saturating_add(other.answers),
            unmetered: self.unmetered.saturating_add(other.unmetered),
            estimated: self.estimated.saturating_add(other.estimated),
            tokens,
            micro_usd,
            lost: self.lost.saturating_add(other.lost),
        }
    }

    /// Returns the sum of what was read and written.
    pub fn all_tokens(&self) -> u64 {
        self.tokens.sum()
    }
}
