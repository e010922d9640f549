//! The database of a command that drafts: opened once, and used for all that the command keeps, asks and reads there.

use tokio::sync::OnceCell;

use crate::client::{ANSWERED_WITHIN, Client, NoAnswer};
use crate::context::Context;
use crate::failure::Failure;

/// The way to the database, once something needs it.
pub struct DraftDatabase<'a> {
    context: &'a Context,
    opened: OnceCell<Client>,
}

impl<'a> DraftDatabase<'a> {
    /// Opens nothing yet.
    pub fn of(context: &'a Context) -> DraftDatabase<'a> {
        DraftDatabase { context, opened: OnceCell::new() }
    }

    /// Returns what all commands share.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Returns the client, for what can't do without; a private database is made where there is none.
    pub async fn client(&self) -> Result<&Client, Failure> {
        self.opened.get_or_try_init(|| Client::open(self.context)).await
    }

    /// Asks a daemon or a database that is there already; does [`Client::ask_if_there_is_one`] with the one client.
    pub async fn ask_if_there_is_one<T>(
        &self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<Option<T>, NoAnswer> {
        if !Client::has_database(self.context) {
            return Ok(None);
        }
        let asked =
            async { ask(self.opened.get_or_try_init(|| Client::open_quietly(self.context)).await?).await };
        match tokio::time::timeout(ANSWERED_WITHIN, asked).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(_)) | Err(_) => Err(NoAnswer),
        }
    }
}
