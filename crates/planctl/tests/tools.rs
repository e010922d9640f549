//! Tools of MCP servers, with the real planctl and real servers over standard streams: this program is the server, too
//! (`tools serve MANNER LOG`).

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "cli/fixture.rs"]
#[allow(dead_code, reason = "the command line's own tests need more of it")]
mod fixture;
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

use libtest_mimic::{Arguments, Trial};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, manner, log] = words.as_slice()
        && word == "serve"
    {
        return server::serve(manner, log);
    }
    let trials = listing::trials()
        .into_iter()
        .chain(running::trials())
        .chain(resolved::trials())
        .chain(web::trials())
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        });
    let published = Trial::test("published_servers_run_behind_calls", || {
        published::published_servers();
        Ok(())
    });
    let trials = trials.chain([published.with_ignored_flag(true)]).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
