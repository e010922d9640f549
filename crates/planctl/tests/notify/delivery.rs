//! How messages get to their channels: tried again, replayed, refused where they may not go, and in each form.

use std::fs;

use serde_json::Value;

use super::receiver::{Receiver, SECRET, WEBHOOK, configure, daemon, sql};
use crate::support::{Place, wait_until};

fn deliveries(place: &Place, more: &[&str]) -> Vec<Value> {
    let words = [&["notify", "deliveries", "--json"], more].concat();
    place.json(&words)["deliveries"].as_array().unwrap().clone()
}

fn ask(place: &Place) {
    assert_eq!(place.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", &place.exec()]).code, 3);
}

#[test]
fn a_failed_delivery_is_tried_again_under_its_id_and_can_be_replayed() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    receiver.answer(&["500 No", "503 Later\r\nretry-after: 900"]);
    configure(&place, WEBHOOK);
    let _daemon = daemon(&place, &receiver);
    ask(&place);
    let first = receiver.await_got(1)[0].clone();
    wait_until("the answer is on record", || {
        deliveries(&place, &["--failed"])
            .first()
            .is_some_and(|row| row["answer"] == "HTTP 500 Internal Server Error")
    });
    sql(&place, "update deliveries set due_at = clock_timestamp()");
    let second = receiver.await_got(2)[1].clone();
    wait_until("the receiver's wish is kept", || {
        deliveries(&place, &["--failed"])
            .first()
            .is_some_and(|row| row["tries"] == 2 && row["answer"] == "HTTP 503 Service Unavailable")
    });
    sql(
        &place,
        "select 1/(count(*) filter (where due_at > clock_timestamp() + interval '14 minutes'))::int from deliveries",
    );
    sql(&place, "update deliveries set due_at = clock_timestamp()");
    let third = receiver.await_got(3)[2].clone();
    for got in [&second, &third] {
        assert_eq!(got.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(got.body, first.body);
    }
    wait_until("it is delivered", || deliveries(&place, &[])[0]["state"] == "delivered");
    assert!(deliveries(&place, &["--failed"]).is_empty());

    let id = deliveries(&place, &[])[0]["id"].to_string();
    place.must(&["notify", "replay", &id]);
    let replayed = receiver.await_got(4)[3].clone();
    assert_eq!(replayed.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(place.planctl(&["notify", "replay", "999"]).code, 4);
}

#[test]
fn a42_no_message_goes_to_a_private_address_and_no_redirect_is_followed() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let port = receiver.port;
    // A name and numbers that all lead to this machine, and none that says it may.
    let forms = ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"];
    let mut channels = String::new();
    for (number, host) in forms.iter().enumerate() {
        channels
            .push_str(&format!("[notify.c{number}]\nto = \"webhook\"\nurl = \"https://{host}:{port}/\"\n"));
    }
    configure(&place, &channels);
    let said = place.planctl(&["notify", "test"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.out.matches("is not public").count(), forms.len(), "{said:?}");
    assert_eq!(receiver.connections(), 0, "{said:?}");

    configure(&place, "[notify.here]\nto = \"webhook\"\nurl = \"http://example.com/\"\n");
    let said = place.planctl(&["notify", "test"]);
    assert!(said.out.contains("must begin with https://"), "{said:?}");

    receiver.answer(&["302 Found\r\nlocation: /elsewhere"]);
    let url = receiver.url();
    configure(&place, &format!("[notify.here]\nto = \"webhook\"\nurl = \"{url}\"\nallow_private = true\n"));
    let said = place.planctl(&["notify", "test", "here"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("redirects are not followed"), "{said:?}");
    assert_eq!(receiver.got().len(), 1);
    // A proxy of the environment would see the message, and connect wherever the name leads it.
    let proxy = format!("http://127.0.0.1:{}", Receiver::new().port);
    let said = place.start_with(&["notify", "test"], &[("http_proxy", proxy.as_ref())]).end();
    assert_eq!((said.code, receiver.got().len()), (0, 2), "{said:?}");
}

#[test]
fn a_test_without_a_channel_says_how_to_set_one_up_and_exits_as_for_nothing_to_do() {
    let place = Place::new();
    place.plan(1, "");
    let said = place.planctl(&["notify", "test"]);
    assert_eq!(said.code, 10, "{said:?}");
    assert!(said.out.contains("[notify.NAME] in planctl.toml"), "{said:?}");
}

#[test]
fn each_kind_of_channel_gets_its_form() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let (seen, hook) = (place.path("seen"), place.path("hook"));
    let channels = format!(
        "[notify.chat]\nto = \"slack\"\nurl_env = \"HOOK_URL\"\nallow_private = true\non = [\"approval.opened\"]\n\
         [notify.own]\nto = \"exec\"\ncommand = \"cat > {hook}; echo \\\"$PLANCTL_EVENT $WORD ${{HOOK_SECRET:-none}}\\\" > {seen}; \
         echo \\\"$PLANCTL_MESSAGE\\\" >> {seen}; mv {seen} {seen}.done\"\nenv = [\"WORD\"]\non = [\"approval.opened\"]\n",
        hook = hook.display(),
        seen = seen.display()
    );
    configure(&place, &channels);
    let url = receiver.url();
    let variables =
        [("HOOK_URL", url.as_ref()), ("HOOK_SECRET", SECRET.as_ref()), ("WORD", "given".as_ref())];
    let mut daemon = place.start_with(&["daemon", "run"], &variables);
    daemon.hear("ready");
    ask(&place);

    let slack = receiver.await_got(1)[0].json();
    let text = slack["text"].as_str().unwrap();
    assert!(text.starts_with("*ask 1 waits for you: approve 1 step of \"Survive\"*\n"), "{text}");
    assert!(text.ends_with("```planctl approvals show 1```"), "{text}");
    assert_eq!(slack.as_object().unwrap().len(), 1);

    wait_until("the command ran", || place.path("seen.done").exists());
    let seen = fs::read_to_string(place.path("seen.done")).unwrap();
    assert!(seen.starts_with("approval.opened given none\nask 1 waits for you"), "{seen}");
    let read: Value = serde_json::from_str(&fs::read_to_string(hook).unwrap()).unwrap();
    assert_eq!(read["data"]["ask"]["id"], 1);
}

#[test]
fn a_command_that_fails_is_tried_again_and_one_that_hangs_is_ended() {
    let place = Place::new();
    configure(
        &place,
        "[notify.bad]\nto = \"exec\"\ncommand = \"exit 7\"\n[notify.slow]\nto = \"exec\"\ncommand = \"sleep 300\"\ntimeout = \"1s\"\n",
    );
    let said = place.planctl(&["notify", "test"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.out, "bad: failed: exit 7\nslow: failed: no end in time\n");
    assert_eq!(place.planctl(&["notify", "test", "other"]).code, 4);
    place.await_quiet();
}

#[test]
fn a_file_that_nobody_trusts_starts_and_sends_nothing() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    let mark = place.path("ran");
    let channels = format!(
        "[notify.own]\nto = \"exec\"\ncommand = \"touch {}\"\n[notify.out]\nto = \"webhook\"\nurl = \"{}\"\nallow_private = true\n",
        mark.display(),
        receiver.url()
    );
    fs::write(place.path("work/planctl.toml"), channels).unwrap();
    let said = place.planctl(&["notify", "test"]);
    assert!(said.err.contains("notify.out, notify.own"), "{said:?}");
    assert_eq!(said.out, "no channels: [notify.NAME] in planctl.toml sets one up\n");
    let _daemon = daemon(&place, &receiver);
    ask(&place);
    assert!(deliveries(&place, &[]).is_empty());
    place.must(&["trust", "."]);
    // The ask still waits, so the person hears of it once the file counts.
    receiver.await_got(1);
    wait_until("the command ran", || mark.exists());
}

#[test]
fn a_run_is_told_of_however_many_ended_before_it_of_which_nobody_wants_to_hear() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, WEBHOOK);
    let _daemon = daemon(&place, &receiver);
    ask(&place);
    // More than are looked at in one turn, of a folder that has no configuration.
    sql(
        &place,
        "with folder as (insert into workspaces (host, path) select host, '/nowhere' from workspaces limit 1 returning id), \
         plan as (insert into plans (workspace, path, status, digest) select id, 'q.md', 'done', 'd' from folder returning *) \
         insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, \
           created_at, started_at, ended_at) \
         select gen_random_uuid(), p.id, p.workspace, 'q', n, 'q-' || n, r.revision, r.graph, '{}', 'ended', r.head, 3, r.chain, \
           now(), now(), clock_timestamp() from plan p, (select * from runs limit 1) r, generate_series(1, 1200) n",
    );
    place.must(&["plan", "cancel", "@last"]);
    let is_it = |got: &Value| got["type"] == "run.cancelled" && got["data"]["run"] == "p-1";
    wait_until("a message of the run", || receiver.got().iter().any(|got| is_it(&got.json())));
}

#[test]
fn an_ask_is_told_of_however_many_wait_before_it_of_which_nobody_wants_to_hear() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, WEBHOOK);
    let _daemon = daemon(&place, &receiver);
    ask(&place);
    receiver.await_ask("plan");
    // More than are read at once, of a folder that has no configuration.
    sql(
        &place,
        "with folder as (insert into workspaces (host, path) select host, '/nowhere' from workspaces limit 1 returning id), \
         plan as (insert into plans (workspace, path, status, digest) select id, 'q.md', 'verified', 'd' from folder returning *), \
         made as (insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, \
           created_at) select gen_random_uuid(), p.id, p.workspace, 'q', n, 'q-' || n, r.revision, r.graph, '{}', r.status, r.head, \
           3, r.chain, now() from plan p, (select * from runs limit 1) r, generate_series(1, 501) n returning id) \
         insert into asks (item, run, node, visit, attempt, work, created_at) \
         select 'ask-' || m.id, m.id, a.node, a.visit, a.attempt, a.work, now() from made m, (select * from asks limit 1) a",
    );
    place.must(&["plan", "cancel", "@last"]);
    ask(&place);
    let is_second = |got: &Value| got["type"] == "approval.opened" && got["data"]["run"] == "p-2";
    wait_until("a message of the ask", || receiver.got().iter().any(|got| is_second(&got.json())));
}

#[test]
fn a_used_budget_is_told_of_however_many_wait_before_it_of_which_nobody_wants_to_hear() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}on = [\"budget.notice\"]\n"));
    let _daemon = daemon(&place, &receiver);
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    // More than are read at once, before it and in a folder that has no configuration.
    sql(&place, &runs_before("jsonb_set(r.head::jsonb, '{noticed}', 'true')::json", ""));
    sql(
        &place,
        "update runs set head = jsonb_set(head::jsonb, '{noticed}', 'true')::json where name = 'p-1'",
    );
    let told = receiver.await_got(1)[0].json();
    assert_eq!((&told["type"], &told["data"]["run"]), (&"budget.notice".into(), &"p-1".into()), "{told}");
}

#[test]
fn unserved_work_is_told_of_however_much_waits_before_it_of_which_nobody_wants_to_hear() {
    let place = Place::new();
    place.plan(1, "");
    let receiver = Receiver::new();
    configure(&place, &format!("{WEBHOOK}on = [\"worker.none_for_role\"]\n"));
    let _daemon = daemon(&place, &receiver);
    place.must(&["plan", "run", "p.md", "--approve", "-d"]);
    sql(
        &place,
        &runs_before(
            "r.head",
            "insert into items select (jsonb_populate_record(null::items, to_jsonb(i) || jsonb_build_object('id', 'before-' || m.id, \
               'run', m.id, 'available_at', clock_timestamp() - interval '2 minutes'))).* \
             from made m, (select * from items where lane = 'agent' limit 1) i",
        ),
    );
    sql(
        &place,
        "update items set available_at = clock_timestamp() - interval '2 minutes' where lane = 'agent'",
    );
    let told = receiver.await_got(1)[0].json();
    assert_eq!(
        (&told["type"], &told["data"]["run"]),
        (&"worker.none_for_role".into(), &"p-1".into()),
        "{told}"
    );
}

/// Writes 501 open runs like the one that there is, in another folder and with ids before its own; `then` may use them as `made`.
fn runs_before(head: &str, then: &str) -> String {
    let then = if then.is_empty() { "select from made" } else { then };
    format!(
        "with folder as (insert into workspaces (host, path) select host, '/nowhere' from workspaces limit 1 returning id), \
         plan as (insert into plans (workspace, path, status, digest) select id, 'q.md', 'verified', 'd' from folder returning *), \
         made as (insert into runs (id, plan, workspace, stem, number, name, revision, graph, settings, status, head, seq, chain, \
           created_at) select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, p.id, p.workspace, 'q', n, 'q-' || n, \
             r.revision, r.graph, '{{}}', r.status, {head}, 3, r.chain, now() \
           from plan p, (select * from runs limit 1) r, generate_series(1, 501) n returning id) {then}"
    )
}

#[test]
fn a_message_on_a_desktop_goes_to_the_program_that_shows_it_and_is_text_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.plan(1, "");
    let (folder, shown) = (place.path("programs"), place.path("shown"));
    fs::create_dir(&folder).unwrap();
    let program = folder.join("notify-send");
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$DISPLAY\" \"$@\" > {0}.new; mv {0}.new {0}\n", shown.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    configure(&place, "[notify.desk]\nto = \"desktop\"\non = [\"approval.opened\"]\n");
    let programs = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    let variables = [("PATH", programs.as_ref()), ("DISPLAY", ":9".as_ref())];
    let mut daemon = place.start_with(&["daemon", "run"], &variables);
    daemon.hear("ready");
    ask(&place);
    wait_until("the program ran", || shown.exists());
    let shown = fs::read_to_string(shown).unwrap();
    let begins = ":9\n--app-name=planctl\n--\nplanctl\nask 1 waits for you: approve 1 step of \"Survive\"\n";
    assert!(shown.starts_with(begins) && shown.contains("planctl approvals show 1"), "{shown}");
}
