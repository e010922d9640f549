//! Tools of MCP servers, with the real planctl and real servers over standard streams: this program is the server, too
//! (`servers serve-tools MANNER LOG`).

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "tools/listing.rs"]
mod listing;
#[path = "tools/place.rs"]
mod place;
#[path = "tools/published.rs"]
mod published;
#[path = "tools/resolved.rs"]
mod resolved;
#[path = "tools/running.rs"]
mod running;
#[path = "tools/server.rs"]
mod server;
#[path = "tools/web.rs"]
mod web;

use libtest_mimic::Trial;

pub use server::serve;

/// Returns the tests.
pub fn trials() -> Vec<Trial> {
    let trials = listing::trials()
        .into_iter()
        .chain(running::trials())
        .chain(resolved::trials())
        .chain(web::trials())
        .map(|(name, test)| {
            Trial::test(format!("tools::{name}"), move || {
                test();
                Ok(())
            })
        });
    let published = Trial::test("tools::published_servers_run_behind_calls", || {
        published::published_servers();
        Ok(())
    });
    trials.chain([published.with_ignored_flag(true)]).collect()
}
