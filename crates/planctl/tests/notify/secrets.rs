//! No secret of a channel, and none that a program printed, is in any message, list, log or answer.

use super::receiver::{Receiver, WEBHOOK, configure, daemon};
use crate::support::{Place, wait_until};

/// Texts that must show nowhere: the address's own key, the signature's secret, and a credential that a contract prints.
const CANARIES: [&str; 4] = [
    "canary-of-the-address",
    "Y2FuYXJ5LW9m",
    "canary-of-the-signature",
    "ghp_c4n4ryc4n4ryc4n4ryc4n4ryc4n4ryc4n4ry",
];

#[test]
fn i21_no_secret_is_in_any_output_log_metric_or_message() {
    let place = Place::new();
    let text = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Leak\n\n**Budget:** 60 minutes\n\n## Steps\n\n\
         ### 1. Leak it\n\n**target:** coder\n**task:**\nDo it.\n\n**contract:**\n```bash\nprintf 'token ghp_'; \
         for part in 1 2 3 4 5 6; do printf c4n4ry; done; echo; exit 3\n```\nexit_code == 0\n**on_fail:** escalate\n";
    std::fs::write(place.path("work/p.md"), text).unwrap();
    let receiver = Receiver::new();
    receiver.answer(&["500 No"]);
    configure(&place, WEBHOOK);
    let daemon = daemon(&place, &receiver);
    place.planctl(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", &place.exec()]);
    let message = receiver.await_ask("escalation");
    assert!(message.body.contains("token "), "the line itself is there: {}", message.body);
    wait_until("the failed try is on record", || {
        !place.json(&["notify", "deliveries", "--failed", "--json"])["deliveries"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    let mut shown = vec![message.body, daemon.heard()];
    for words in [
        &["notify", "ls"][..],
        &["notify", "ls", "--json"],
        &["notify", "deliveries"],
        &["notify", "deliveries", "--json"],
        &["config", "show"],
        &["config", "show", "--json"],
        &["daemon", "status", "--json"],
    ] {
        let said = place.must(words);
        shown.extend([said.out, said.err]);
    }
    let url = format!("http://127.0.0.1:{}/x?canary-of-the-address", 1);
    let variables = [("HOOK_URL", url.as_ref()), ("HOOK_SECRET", "whsec_canary-of-the-signature!".as_ref())];
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.end().code, 0);
    let said = place.start_with(&["notify", "test"], &variables).end();
    assert_eq!(said.code, 1, "{said:?}");
    shown.extend([said.out, said.err]);
    for text in &shown {
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary}: {text}");
        }
    }
}
