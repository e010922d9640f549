//! A run that sessions are held to, as the person reads of it while no process waits for them.

use crate::guide;

#[test]
fn a_step_that_a_session_has_waits_for_it_and_is_not_said_to_be_interrupted() {
    // The command that switched it on has left, and so has the hook of the session.
    for fixture in [guide::on(), guide::held()] {
        let said = fixture.planctl(&["status", "@last"]);
        assert!(said.out.contains("waiting for your session  attempt 1 of 4"), "{said:?}");
        assert!(!said.out.contains("waiting for a worker"), "{said:?}");
        let why = fixture.planctl(&["why", "@last", "1"]);
        assert!(why.out.contains("waiting for your session") && !why.out.contains("interrupted"), "{why:?}");
        let names = fixture.event_names("@last");
        assert!(
            names.iter().all(|name| !name.contains("interrupted") && name != "agent.released"),
            "{names:?}"
        );
    }
}
