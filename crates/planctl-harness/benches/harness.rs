//! Measures what the harness adds to a command and to a contract: isolation, and the look at tracked files.
//!
//! `just bench-isolation` and `just bench-gates`. The compared ways take turns, so that all see the same machine; compare
//! within one run.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where it cannot go on"
)]

#[path = "harness/gates.rs"]
mod gates;
#[path = "harness/tiers.rs"]
mod tiers;

use planctl_harness::Spawner;

/// The allocator of the program that is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == "__spawn") {
        std::process::exit(planctl_harness::helper_main());
    }
    let is_wanted = |part: &str| arguments.iter().any(|argument| argument == part);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let spawner = Spawner::start_self(None).unwrap();
        if is_wanted("tiers") {
            tiers::measure(&spawner).await;
        }
        if is_wanted("gates") {
            gates::measure(&spawner).await;
        }
        spawner.shutdown();
    });
}
