//! Reading on the page: long outputs and histories in parts, home narrowed down, the library.

use serde_json::Value;

use super::{Browser, escalated, has, hidden};
use crate::fixture::plan as plan_of;
use crate::http::house::{Ask, House, plan};

#[test]
fn a_long_output_is_read_in_parts_and_downloaded_whole_and_safe() {
    let house = House::new();
    let contract =
        "for at in $(seq 1 5000); do echo \"line $at of it\"; done; printf '\\033[2Jend\\n'; test -e right";
    house.fixture.write("long.md", &plan_of("long", "5 minutes", &[("Print much", contract, "escalate")]));
    let said = house.fixture.planctl(&["run", "long.md", "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until("long-1", "waiting");
    let browser = Browser::with_token(&house, "read");
    let whole = "/runs/long-1/steps/1/attempts/1/stdout";
    let step = browser.get("/runs/long-1/steps/1");
    has(&step, &format!("<a href=\"{whole}\">all of it"));
    let last = browser.get(whole);
    has(&last, "line 5000 of it\nend");
    assert!(!last.body.contains("line 1 of it"), "{}", last.body);
    let first = browser.get(&format!("{whole}?part=1"));
    has(&first, "aria-label=\"Standard output\">\nline 1 of it");
    has(&first, "?part=2\">Later lines</a>");
    assert!(!first.body.contains("line 5000 of it"), "{}", first.body);
    let file = browser.get(&format!("{whole}/download"));
    assert_eq!(file.status, 200, "{file:?}");
    for header in [
        "content-type: text/plain; charset=utf-8",
        "content-disposition: attachment; filename=\"long-1-step-1-attempt-1-stdout.txt\"",
        "content-security-policy: default-src 'none'; sandbox",
        "x-content-type-options: nosniff",
    ] {
        assert!(file.headers.contains(header), "{header}: {}", file.headers);
    }
    assert!(file.body.starts_with("line 1 of it\n") && file.body.ends_with("\nend\n"), "{}", file.body);
    for missing in ["/runs/long-1/steps/1/attempts/9/stdout", "/runs/long-1/steps/1/attempts/1/nothing"] {
        assert_eq!(browser.get(missing).status, 404, "{missing}");
        assert_eq!(browser.get(&format!("{missing}/download")).status, 404, "{missing}");
    }
}

#[test]
fn the_history_of_a_run_is_read_page_by_page_to_its_first_line() {
    let house = House::new();
    let steps: Vec<(String, &str, &str)> =
        (1..=25).map(|step| (format!("Part {step}"), "true && test -d .", "escalate")).collect();
    let steps: Vec<(&str, &str, &str)> =
        steps.iter().map(|(title, contract, fails)| (title.as_str(), *contract, *fails)).collect();
    house.fixture.write("many.md", &plan_of("many", "5 minutes", &steps));
    let said = house.fixture.planctl(&["run", "many.md", "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until("many-1", "done");
    let browser = Browser::with_token(&house, "read");
    has(&browser.get("/runs/many-1"), "<a href=\"/runs/many-1/history\">The whole history</a>");
    let (mut path, mut pages, mut seen) = ("/runs/many-1/history".to_owned(), 0, String::new());
    loop {
        let page = browser.get(&path);
        assert_eq!(page.status, 200, "{page:?}");
        seen.push_str(&page.body);
        pages += 1;
        let Some((before, _)) = page.body.split_once("\">Older</a>") else { break };
        path = before.rsplit_once("href=\"").unwrap().1.to_owned();
    }
    assert!(pages > 1, "{seen}");
    let last: u64 = house.fixture.sql("select max(seq) from history").parse().unwrap();
    for line in 1..=last {
        assert_eq!(seen.matches(&format!("<td class=\"number\">{line}</td>")).count(), 1, "line {line}");
    }
    has(&browser.get("/runs/many-1/history?since=0"), ">Newest</a>");
}

/// Has a run fail by itself; returns its name.
fn failed(house: &House, name: &str) -> String {
    house.fixture.write(
        &format!("{name}.md"),
        &plan_of(name, "5 minutes", &[("Fail", "echo nothing is right >&2; test -e never", "abort")]),
    );
    let said = house.fixture.planctl(&["run", &format!("{name}.md"), "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    let run = said.out.trim().to_owned();
    house.until(&run, "failed");
    run
}

#[test]
fn a_failed_run_needs_somebody_until_a_person_acknowledges_it_on_the_page_or_in_a_terminal() {
    let house = House::new();
    let (one, other) = (failed(&house, "one"), failed(&house, "other"));
    let browser = Browser::with_token(&house, "approve");
    let home = browser.get("/");
    for words in ["<title>(2) needs you", "one-1 has failed", "nothing is right", "form=\"acknowledge\""] {
        has(&home, words);
    }
    has(&browser.get(&format!("/runs/{one}")), "Nobody has acknowledged this failure");
    let reader = Browser::with_token(&house, "read");
    assert!(!reader.get("/").body.contains("form=\"acknowledge\""), "a reader decides nothing");
    // From the list, without a note.
    let place = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let path = format!("/runs/{one}/acknowledge?workspace={}", place.replace('/', "%2F"));
    has(&home, &path);
    let sent = browser.decide(&home, &path, &[("run", &one)]);
    assert_eq!(sent.status, 303, "{sent:?}");
    assert!(sent.headers.contains("location: /?recorded=acknowledge&about=one-1"), "{}", sent.headers);
    let home = browser.get("/?recorded=acknowledge&about=one-1");
    for words in ["<title>(1) needs you", "the failure is acknowledged", "planctl run acknowledge one-1"] {
        has(&home, words);
    }
    assert!(!home.body.contains("one-1 has failed"), "{}", home.body);
    has(&browser.get(&format!("/runs/{one}")), "has acknowledged this failure");
    // In a terminal, with one; the second time nothing changes.
    let said = house.fixture.planctl(&["run", "acknowledge", &other, "--note", "known"]);
    assert_eq!((said.code, said.err.contains("recorded: acknowledge by")), (0, true), "{said:?}");
    let again = house.fixture.planctl(&["ack", &other]);
    assert!(again.err.contains("already recorded"), "{again:?}");
    assert_eq!(house.fixture.sql("select note from acknowledgements where note is not null"), "known");
    has(&browser.get("/"), "<title>nothing needs you");
    // A run that has not failed has nothing to acknowledge; one that fails anew has.
    let view = house.local("GET", &format!("/v1/runs/{one}"), &Ask::default()).json();
    assert_eq!(view["awaits_acknowledgement"], Value::Null, "{view}");
    let said = house.fixture.planctl(&["resume", &one, "--exec", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    has(&browser.get("/"), "one-1 has failed");
    let ask = escalated(&house, "fix");
    let refused = house.fixture.planctl(&["run", "acknowledge", "fix-1"]);
    assert_eq!((refused.code, refused.err.contains("it has not failed")), (5, true), "{ask}: {refused:?}");
}

#[test]
fn the_bundle_of_a_run_is_downloaded_and_is_what_the_command_line_writes() {
    let house = House::new();
    let run = failed(&house, "one");
    let browser = Browser::with_token(&house, "read");
    has(&browser.get(&format!("/runs/{run}")), &format!("/runs/{run}/bundle"));
    let file = browser.get(&format!("/runs/{run}/bundle"));
    assert_eq!(file.status, 200, "{file:?}");
    for header in
        ["content-disposition: attachment; filename=\"one-1.jsonl\"", "content-type: application/jsonl"]
    {
        assert!(file.headers.contains(header), "{header}: {}", file.headers);
    }
    let said = house.fixture.planctl(&["export", &run, "--bundle", "written.jsonl"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(file.body, std::fs::read_to_string(house.fixture.path("written.jsonl")).unwrap());
    assert_eq!(browser.get("/runs/nothing-1/bundle").status, 404);
}

#[test]
fn the_prompt_of_an_attempt_is_read_on_the_page() {
    let house = House::new();
    escalated(&house, "fix");
    let browser = Browser::with_token(&house, "read");
    has(&browser.get("/runs/fix-1/steps/1"), "/runs/fix-1/steps/1/attempts/1/prompt");
    let prompt = browser.get("/runs/fix-1/steps/1/attempts/1/prompt");
    assert_eq!(prompt.status, 200, "{prompt:?}");
    for words in ["The prompt that the worker was given", "Write the fix"] {
        has(&prompt, words);
    }
}

#[test]
fn a_plans_page_tells_of_its_runs_and_how_many_of_them_came_to_a_good_end() {
    let house = House::new();
    failed(&house, "one");
    house.fixture.write("here", "");
    let text = plan_of("other", "5 minutes", &[("Look", "test -e here", "abort")]);
    house.fixture.write("other.md", &text);
    let said = house.fixture.planctl(&["run", "other.md", "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until("other-1", "done");
    let browser = Browser::with_token(&house, "read");
    let plans = house.local("GET", "/v1/plans", &Ask::default()).json();
    for plan in plans["plans"].as_array().unwrap() {
        let (id, path) = (&plan["id"], plan["plan"].as_str().unwrap());
        let page = browser.get(&format!("/plans/{id}"));
        let (own, rate) =
            if path == "one.md" { ("one-1", "0 of 1 run done") } else { ("other-1", "1 of 1 run done") };
        has(&page, rate);
        assert_eq!(
            (page.body.contains(">one-1<"), page.body.contains(">other-1<")),
            (own == "one-1", own == "other-1")
        );
    }
}

/// Returns the page of the only plan.
fn only_plan(house: &House) -> String {
    let plans = house.local("GET", "/v1/plans", &Ask::default()).json();
    let plans = plans["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 1, "{plans:?}");
    format!("/plans/{}", plans[0]["id"])
}

#[test]
fn a_plan_runs_from_its_page_as_it_does_from_a_terminal_and_with_the_same_refusals() {
    let house = House::new();
    house.fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:echo hello >out.txt\"\n");
    assert_eq!(house.fixture.planctl(&["trust", "."]).code, 0);
    house.fixture.write("hello.md", &plan("hello", "hello"));
    assert_eq!(house.fixture.planctl(&["approve", "hello.md"]).code, 0);
    let (path, browser) = (only_plan(&house), Browser::with_token(&house, "approve"));
    let run = format!("{path}/run");
    assert!(!Browser::with_token(&house, "read").get(&path).body.contains("Run this text"));
    let sent = |more: &[(&str, &str)]| {
        let page = browser.get(&path);
        let digest = hidden(&page, "digest");
        browser.decide(&page, &run, &[&[("digest", digest.as_str())], more].concat())
    };
    let begun = sent(&[]);
    assert_eq!(begun.status, 303, "{begun:?}");
    assert!(begun.headers.contains("?recorded=run"), "{}", begun.headers);
    house.until("hello-1", "done");
    let refused = sent(&[]);
    assert_eq!(refused.status, 409, "{refused:?}");
    has(&refused, "hello-1 is done");
    assert_eq!(sent(&[("again", "yes")]).status, 303);
    house.until("hello-2", "done");

    // The file has another text than the page; once that is handed in, the page has it, and it asks.
    house.fixture.write("hello.md", &plan("hello", "goodbye"));
    let refused = sent(&[]);
    assert_eq!(refused.status, 409, "{refused:?}");
    has(&refused, "its file has another text than the one that you saw");
    assert_eq!(house.fixture.planctl(&["approve", "hello.md"]).code, 0);
    assert_eq!(house.fixture.planctl(&["reject", "hello.md", "--note", "too rude"]).code, 0);
    let asks = sent(&[]);
    assert_eq!(asks.status, 303, "{asks:?}");
    let to = asks.headers.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    assert!(to.starts_with("/asks/") && to.ends_with("?recorded=hand-in"), "{to}");
    has(&browser.get(to), "It runs once it is approved");
    assert_eq!(house.fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn p_20_the_reason_of_a_rejection_stands_with_the_run_and_beside_the_text() {
    let house = House::new();
    house.fixture.write("hello.md", &plan("hello", "hello"));
    let run = ["run", "hello.md", "-d", "--exec", "true"];
    assert_eq!(house.fixture.planctl(&run).code, 3);
    let said = house.fixture.planctl(&["approvals", "reject", "1", "--note", "too broad"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in [&["run", "show", "hello-1"] as &[&str], &["status", "hello-1"]] {
        let shown = house.fixture.planctl(words).out;
        assert!(shown.contains("rejected by ann: too broad"), "{shown}");
    }
    let browser = Browser::with_token(&house, "read");
    has(&browser.get("/runs/hello-1"), "rejected by ann: too broad");
    let page = browser.get(&only_plan(&house));
    has(&page, "rejected by ann ");
    has(&page, ": too broad");
    let shown = house.fixture.planctl(&["plan", "show", "hello.md"]).out;
    assert!(shown.contains("decided    rejected by ann ") && shown.contains(": too broad\n"), "{shown}");
    let shown = house.fixture.json(&["plan", "show", "hello.md", "--json"])["decided"].clone();
    assert_eq!((&shown["decision"], &shown["note"]), (&"rejected".into(), &"too broad".into()), "{shown}");
    let system = browser.get("/system");
    for words in ["Decided last", "<td>reject</td>", "too broad"] {
        has(&system, words);
    }
    assert_eq!(house.fixture.planctl(&["approve", "hello.md"]).code, 0);
    let page = browser.get(&only_plan(&house));
    has(&page, "approved by ann ");
    assert!(!page.body.contains("too broad"), "the newest decision counts: {}", page.body);

    // A run that a person ends from its ask says so, too.
    house.fixture.write("fix.md", &plan_of("fix", "5 minutes", &[("Fix", "test -e right", "escalate")]));
    let said = house.fixture.planctl(&["run", "fix.md", "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    house.until("fix-1", "waiting");
    assert_eq!(
        house.fixture.planctl(&["approvals", "cancel", &house.fixture.ask(), "--note", "no hope"]).code,
        0
    );
    let shown = house.fixture.planctl(&["run", "show", "fix-1"]).out;
    assert!(shown.contains("cancelled by ann: no hope"), "{shown}");
}

#[test]
fn h13_a_plans_page_has_the_findings_in_the_margin_of_their_lines() {
    let house = House::new();
    house.fixture.write("hello.md", &plan("hello", "hello"));
    assert_eq!(house.fixture.planctl(&["approve", "hello.md"]).code, 0);
    let browser = Browser::with_token(&house, "read");
    let page = browser.get(&only_plan(&house));
    for words in [
        "<h2 id=\"found-head\">Findings <span class=\"count\">1</span>",
        "<code>P402</code> no roles are configured",
        "data-line=\"15\"",
        "<code>**target:** coder</code>",
    ] {
        has(&page, words);
    }
    house.fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:true\"\n");
    assert_eq!(house.fixture.planctl(&["trust", "."]).code, 0);
    let page = browser.get(&format!("{}?part=2", only_plan(&house)));
    has(&page, "nothing is found");
}

#[test]
fn the_page_of_a_long_plan_shows_a_part_of_its_text_and_the_first_of_its_findings() {
    let house = House::new();
    let steps = (1..=600).map(|at| {
        format!("\n### {at}. Step {at}\n\n**target:** coder\n\n**task:** Do it.\n\n**contract:**\n```bash\ntest -e never; true\n```\nexit_code == 0\n")
    });
    let steps: String = steps.collect();
    let text = format!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Long\n\n## Steps\n{steps}");
    house.fixture.write("long.md", &text);
    assert_eq!(house.fixture.planctl(&["approve", "long.md", "--yes"]).code, 0);
    let browser = Browser::with_token(&house, "read");
    let mut address = only_plan(&house);
    let (mut shown, mut parts) = (String::new(), 0);
    loop {
        let page = browser.get(&address);
        assert!(page.status == 200 && page.body.len() < 60 << 10, "{address}: {} bytes", page.body.len());
        has(&page, " more findings.");
        let (_, rest) = page.body.split_once("<pre class=\"plan\"").unwrap();
        let (_, rest) = rest.split_once(">\n").unwrap();
        shown.push_str(rest.split_once("</pre>").unwrap().0);
        parts += 1;
        let Some((before, _)) = page.body.split_once("\">Later lines</a>") else { break };
        address = before.rsplit_once("href=\"").unwrap().1.replace("&#38;", "&").replace("#text", "");
    }
    assert!(parts > 1, "{parts}");
    assert_eq!(shown.trim_end(), text.trim_end());
}

#[test]
fn the_daemons_machine_is_looked_at_by_its_administrators() {
    let house = House::new();
    let admin = Browser::with_token(&house, "admin");
    has(&admin.get("/system"), "href=\"/system/doctor\"");
    let page = admin.get("/system/doctor");
    for words in ["<h1>This machine</h1>", "configuration", "child processes", "isolation", "postgres"] {
        has(&page, words);
    }
    let reader = Browser::with_token(&house, "read");
    assert!(!reader.get("/system").body.contains("/system/doctor"));
    assert_eq!(reader.get("/system/doctor").status, 403);
}

#[test]
fn runs_are_narrowed_down_by_state_plan_and_project() {
    let house = House::new();
    failed(&house, "one");
    let ask = escalated(&house, "other");
    let browser = Browser::with_token(&house, "read");
    let shows = |query: &str| {
        let page = browser.get(&format!("/runs{query}"));
        assert_eq!(page.status, 200, "{page:?}");
        (page.body.contains(">one-1</a>"), page.body.contains(">other-1</a>"))
    };
    assert_eq!(shows(""), (true, true));
    assert_eq!(shows("?state=failed"), (true, false));
    assert_eq!(shows("?state=waiting&plan="), (false, true));
    assert_eq!(shows("?plan=one.md"), (true, false));
    let place = house.fixture.path("").canonicalize().unwrap().display().to_string();
    assert_eq!(shows(&format!("?project={}", place.replace('/', "%2F"))), (true, true));
    let none = browser.get("/runs?state=paused");
    has(&none, "No run is like this.");
    has(&none, "<option value=\"paused\" selected>");
    let wrong = browser.get("/runs?state=well");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(ask.starts_with("/asks/"));
}

#[test]
fn a_run_is_shown_over_time_with_its_attempts_gates_and_waits() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "approve");
    has(&browser.get("/runs/fix-1"), "<a href=\"/runs/fix-1/timeline\">over time</a>");
    let page = browser.get("/runs/fix-1/timeline");
    for words in [
        "1. <a href=\"/runs/fix-1/steps/1\">Write the fix</a>",
        "<title>attempt 1: work ",
        "<title>attempt 1: contract ",
        ", failed</title><rect class=\"span gate failed\"",
        "wait for a person ",
        ", not over</title>",
        "1 attempt, 1 failed",
    ] {
        has(&page, words);
    }
    house.fixture.write("right", "");
    let form = browser.get(&ask);
    assert_eq!(browser.decide(&form, &ask, &[("answer", "retry"), ("note", "now")]).status, 303);
    house.until("fix-1", "done");
    let page = browser.get("/runs/fix-1/timeline");
    for words in ["2 attempts, 1 failed", ", retry</title>", "attempt 2: contract "] {
        has(&page, words);
    }
    assert!(!page.body.contains("not over"), "{}", page.body);
}

#[test]
fn home_says_what_was_used_today() {
    let house = House::new();
    house.fixture.sql(
        "insert into used (workspace, quarter, tokens, micro_usd) values \
         (1, clock_timestamp(), 1500, 250000), (1, clock_timestamp() - interval '2 days', 1, 1000000)",
    );
    has(&Browser::with_token(&house, "read").get("/"), "Used today: $0.25, 1500 tokens.");
}

#[test]
fn home_and_a_run_say_what_is_used_of_the_budget_of_a_day() {
    let house = House::new();
    house.fixture.write("planctl.toml", "[budget]\nper_day = \"1500 tokens\"\n");
    assert_eq!(house.fixture.planctl(&["trust", "."]).code, 0);
    house.fixture.write("one.md", &plan_of("one", "5 minutes", &[("Look", "test -e here", "escalate")]));
    let worker = r#"echo '{"planctl":"result/1","usage":{"input_tokens":900,"output_tokens":100}}' > $PLANCTL_RESULT_FILE"#;
    let said = house.fixture.planctl(&["run", "one.md", "--approve", "-d", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    let run = house.until("one-1", "waiting");
    let browser = Browser::with_token(&house, "read");
    for page in ["/".to_owned(), format!("/runs/{}", run["id"].as_str().unwrap())] {
        has(&browser.get(&page), "66 % of today's tokens for the runs of ");
    }
}

#[test]
fn home_is_narrowed_down_by_kind_project_and_role() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    house
        .fixture
        .write("hello.md", &plan_of("hello", "5 minutes", &[("Say it", "true && test -e x", "escalate")]));
    let said = house.fixture.planctl(&["run", "hello.md", "-d", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let browser = Browser::with_token(&house, "read");
    let shown = |query: &str| {
        let page = browser.get(&format!("/{query}"));
        assert_eq!(page.status, 200, "{page:?}");
        let escalation = page.body.contains(&format!("href=\"{ask}\""));
        (escalation, page.body.contains("Approve hello.md?"), page.body)
    };
    let place = house.fixture.path("").canonicalize().unwrap().display().to_string();
    for (query, escalation, plan) in [
        (String::new(), true, true),
        ("?kind=escalation".to_owned(), true, false),
        ("?kind=plan".to_owned(), false, true),
        ("?role=coder".to_owned(), true, false),
        ("?role=nobody".to_owned(), false, false),
        (format!("?project={place}"), true, true),
        ("?project=/nowhere".to_owned(), false, false),
        (format!("?kind=plan&project={place}&role="), false, true),
    ] {
        let (has_escalation, has_plan, body) = shown(&query);
        assert_eq!((has_escalation, has_plan), (escalation, plan), "{query}: {body}");
    }
    let (_, _, body) = shown("?kind=plan");
    assert!(body.contains("<option value=\"plan\" selected>"), "{body}");
    assert!(body.contains("data-live=\"/live?page=%2F%3Fkind%3Dplan\""), "{body}");
}

#[test]
fn h13_the_library_shows_its_entries_and_explains_what_a_sentence_finds() {
    let house = House::new();
    escalated(&house, "fix");
    let entry = "---\ntype: plan\nstatus: draft\nowner: ann\ntriggers: [login, timeout]\n---\n\n# Mend the login\n\n## Steps\n\n\
        ### 1. Mend it\n\n**target:** coder\n\n**task:** Mend it.\n\n**contract:**\n```bash\ntrue && test -e x\n```\nexit_code == 0\n";
    house.fixture.write("plans/login.md", entry);
    let browser = Browser::with_token(&house, "read");
    let list = browser.get("/library");
    for words in ["<strong>login</strong>", "Mend the login", "the project", "planctl", "no run yet"] {
        has(&list, words);
    }
    let place = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let found = browser.get(&format!("/library?project={place}&message=the+login+hits+a+timeout"));
    has(&found, "It calls for <strong>login</strong>.");
    has(&found, "“login”");
    let none = browser.get(&format!("/library?project={place}&message=nothing+of+that"));
    has(&none, "It calls for no plan.");
    // A folder that has no plans or runs is nobody's business.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = browser.get(&format!("/library?project={}", elsewhere.path().display()));
    assert_eq!(other.status, 404, "{other:?}");
}

#[test]
fn a_guard_is_shown_by_its_command_in_the_list_of_plans_and_on_its_own_page() {
    let house = House::new();
    assert_eq!(house.fixture.planctl(&["guard", "test -f 'a b'"]).code, 0);
    let list = house.local("GET", "/v1/plans", &Ask::default()).json();
    let plan = &list["plans"][0];
    assert_eq!(plan["title"], "Guard: test -f 'a b'");
    let browser = Browser::with_token(&house, "read");
    for path in ["/plans".to_owned(), format!("/plans/{}", plan["id"])] {
        let page = browser.get(&path);
        has(&page, "guard &#39;test -f &#39;a b&#39;&#39;");
        assert!(!page.body.contains("guard-1.md"), "{path}: {}", page.body);
    }
}
