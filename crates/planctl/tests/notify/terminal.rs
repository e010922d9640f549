//! A person who watches a run is called back to the terminal, where it shows that.

use super::receiver::configure;
use crate::support::{Place, WAIT_MAX};
use crate::tty::Tty;

/// Runs the plan at a terminal with these variables; returns all that was printed there.
fn watched(place: &Place, variables: &[(&str, &str)]) -> String {
    let planctl = env!("CARGO_BIN_EXE_planctl");
    let line = format!("{planctl} plan run p.md --again --approve --exec '{}'", place.exec());
    let foreign = place.foreign("script");
    let mut terminal = Tty::open((80, 24), &line, |command| {
        command.current_dir(place.path("work"));
        command.envs(foreign.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("SHELL", "/bin/bash").env("TERM", "xterm").envs(variables.iter().copied());
    });
    let mut printed = Vec::new();
    while let Ok(bytes) = terminal.next(WAIT_MAX) {
        printed.extend(bytes);
    }
    assert_eq!(terminal.end(), 0);
    String::from_utf8(printed).unwrap()
}

#[test]
fn a_person_who_watches_is_called_at_a_terminal_that_shows_it_and_at_no_other() {
    let place = Place::new();
    place.plan(1, "");
    let wez = [("TERM_PROGRAM", "WezTerm")];
    let called = watched(&place, &wez);
    assert_eq!(called.matches("\x1b]9;planctl: p-1 is done\x1b\\").count(), 1, "{called:?}");
    let quiet = watched(&place, &[]);
    assert!(!quiet.contains("\x1b]") && !quiet.contains('\x07'), "{quiet:?}");
    configure(&place, "[terminal]\ncall = \"bell\"\n");
    assert_eq!(watched(&place, &[]).matches('\x07').count(), 1);
    configure(&place, "[terminal]\ncall = \"off\"\n");
    assert!(!watched(&place, &wez).contains("\x1b]9"));
}
