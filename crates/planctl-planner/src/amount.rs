//! Tokens and money that a draft has used.

use serde::{Deserialize, Serialize};

/// The tokens of one answer, as its sender counted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Read, those from a cache included.
    pub input: u64,
    /// Read from a cache.
    pub cached: u64,
    /// Written.
    pub output: u64,
}

/// All that was used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spending {
    /// How many answers there were.
    pub answers: u32,
    /// How many of them came without a count of tokens.
    pub unmetered: u32,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their money in millionths of a US dollar; `None` where no answer has a price.
    pub micro_usd: Option<u64>,
}

impl Spending {
    /// Adds one answer.
    pub fn add(&mut self, tokens: Option<Tokens>, micro_usd: Option<u64>) {
        self.answers += 1;
        match tokens {
            Some(more) => {
                self.tokens.input = self.tokens.input.saturating_add(more.input);
                self.tokens.cached = self.tokens.cached.saturating_add(more.cached);
                self.tokens.output = self.tokens.output.saturating_add(more.output);
            }
            None => self.unmetered += 1,
        }
        if let Some(more) = micro_usd {
            self.micro_usd = Some(self.micro_usd.unwrap_or(0).saturating_add(more));
        }
    }

    /// Returns both together.
    pub fn and(self, other: Spending) -> Spending {
        let sum = |one: u64, more: u64| one.saturating_add(more);
        let tokens = Tokens {
            input: sum(self.tokens.input, other.tokens.input),
            cached: sum(self.tokens.cached, other.tokens.cached),
            output: sum(self.tokens.output, other.tokens.output),
        };
        let micro_usd = [self.micro_usd, other.micro_usd].into_iter().flatten().reduce(sum);
        Spending {
            answers: self.answers.saturating_add(other.answers),
            unmetered: self.unmetered.saturating_add(other.unmetered),
            tokens,
            micro_usd,
        }
    }

    /// Returns the sum of what was read and written.
    pub fn all_tokens(&self) -> u64 {
        self.tokens.input.saturating_add(self.tokens.output)
    }
}
