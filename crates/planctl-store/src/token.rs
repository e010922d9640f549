//! The secret that proves a lease: shown once, stored hashed.

use std::fmt;

use data_encoding::HEXLOWER_PERMISSIVE;
use sha2::{Digest as _, Sha256};

use crate::random;

/// Proves that its bearer holds one generation of one item: 256 random bits, shown as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// Draws a new one.
    pub fn generate() -> Token {
        Token(random::bytes())
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Token> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Token)
    }

    /// Returns the digits, for the one who was given the lease and nobody else.
    pub fn reveal(&self) -> String {
        planctl_engine::hex(&self.0)
    }

    pub(crate) fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.0).to_vec()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
