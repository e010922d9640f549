//! The real agents, driven through planctl against model services of our own on loopback: `just agents`. The harness has their
//! output in such cases, recorded, and its tests read it again.
//!
//! `servers serve-models MANNER` is such a service alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(clippy::print_stdout, reason = "the table is what one runs it for")]

#[path = "agents/guided.rs"]
mod guided;
#[path = "agents/place.rs"]
mod place;
#[path = "agents/scenarios.rs"]
mod scenarios;
#[path = "agents/served.rs"]
mod served;
#[path = "agents/service.rs"]
mod service;
#[path = "agents/session.rs"]
mod session;
#[path = "agents/table.rs"]
mod table;

use std::path::PathBuf;

use libtest_mimic::Trial;

use self::service::{Manner, Service};

/// Returns the tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("agents::the_service_answers_in_every_dialect", || {
            service::answers_in_every_dialect();
            Ok(())
        }),
        Trial::test("agents::the_documentation_has_each_scenario", || {
            table::documentation_has_each_scenario();
            Ok(())
        }),
        Trial::test("agents::the_real_agents", || {
            let folder = std::env::var_os("PLANCTL_AGENTS").ok_or("PLANCTL_AGENTS names no folder")?;
            table::play(&PathBuf::from(folder)).map_err(Into::into)
        })
        .with_ignored_flag(true),
    ]
}

/// Serves until it is ended, and prints what came of it at each line of standard input.
pub fn serve(manner: &[&str]) {
    let manner = match manner {
        ["lies"] => Manner::Lies,
        ["lies-at-first"] => Manner::LiesAtFirst,
        ["refuses", status] => Manner::Refuses(status.parse().unwrap()),
        ["refuses-after-tools", status] => Manner::RefusesAfterTools(status.parse().unwrap()),
        ["hangs"] => Manner::Hangs,
        _ => Manner::Works,
    };
    let service = Service::start(manner);
    println!("{}", service.port);
    for _ in std::io::stdin().lines() {
        println!("{:?}", service.told());
    }
}
