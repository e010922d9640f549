//! Programs of others around planctl, servers of tools and agents, played by this program itself: `servers serve-tools MANNER LOG` is a
//! server of tools, `servers serve-models MANNER` a service of models.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

mod agents;
#[path = "cli/fixture.rs"]
#[allow(dead_code, reason = "the command line's own tests need more of it")]
mod fixture;
mod tools;

use libtest_mimic::Arguments;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve-tools", manner, log] => tools::serve(manner, log),
        ["serve-models", manner @ ..] => agents::serve(manner),
        _ => {
            let trials = agents::trials().into_iter().chain(tools::trials()).collect();
            libtest_mimic::run(&Arguments::from_args(), trials).exit();
        }
    }
}
