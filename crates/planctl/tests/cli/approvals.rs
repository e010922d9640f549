//! A person's answers, and their consequences.

use std::process::Stdio;

use rustix::process::Signal;

use crate::fixture::{Fixture, git, plan};
use serde_json::json;

fn stuck(fixture: &Fixture) -> String {
    fixture.write(
        "p.md",
        &plan(
            "Stuck",
            "5 minutes",
            &[("One", "test -e done-1", "escalate"), ("Two", "test -e done-2", "escalate")],
        ),
    );
    let worker = "case $(cat) in *'use the force'*) touch done-1;; esac; test $PLANCTL_STEP != 2 || touch done-2; test $PLANCTL_ROLE != senior || touch done-1";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    fixture.ask()
}

fn goes_on(fixture: &Fixture, answer: &[&str]) -> serde_json::Value {
    let said = fixture.planctl(answer);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains(" by ann"), "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    fixture.status()
}

#[test]
fn retry_puts_the_note_into_the_prompt() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    let status = goes_on(&fixture, &["approvals", "retry", &ask, "--note", "use the force"]);
    assert_eq!(
        (status["steps"][0]["state"].as_str(), status["steps"][0]["attempts"].as_u64()),
        (Some("passed"), Some(2))
    );
    let twice = fixture.planctl(&["approvals", "retry", &ask]);
    assert_eq!(twice.code, 5, "each decision is single-use: {twice:?}");
}

#[test]
fn an_ask_shows_what_each_attempt_brought_what_changed_and_what_the_worker_said_last() {
    let fixture = Fixture::new();
    let contract = "cat seen; grep -q ^right out.txt";
    fixture.write("p.md", &plan("Tell", "5 minutes", &[("One", contract, "retry(3), then escalate")]));
    fixture.write("notes", "nothing yet\n");
    let folder = fixture.path("");
    for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "start"]] {
        git(&folder, words);
    }
    // The second attempt prints the same but for a number, the third something else, the fourth what the second did.
    let worker = "echo wrong | tee out.txt > notes; case $PLANCTL_ATTEMPT in 3) echo 'assertion failed: left 3' ;; \
        *) echo took ${PLANCTL_ATTEMPT}ms ;; esac > seen; echo 'I have done all of it'";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    let told = |field: &str| {
        let attempts = page["attempts"].as_array().unwrap_or_else(|| panic!("{page}"));
        attempts.iter().map(|attempt| attempt[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("same_as"), [json!(null), json!(1), json!(null), json!(2)]);
    assert_eq!(
        told("first_difference"),
        [json!(null), json!(null), json!("assertion failed: left 3"), json!(null)]
    );
    let changes = &page["workspace_changes"];
    let files = changes["files"].as_array().unwrap_or_else(|| panic!("{page}"));
    let files: Vec<_> = files
        .iter()
        .map(|file| {
            (file["path"].as_str().unwrap_or(""), file["change"].as_str().unwrap_or(""), &file["protected"])
        })
        .collect();
    assert_eq!(
        files,
        [
            ("notes", "changed", &json!(false)),
            ("out.txt", "added", &json!(false)),
            ("seen", "added", &json!(false))
        ],
        "not the plan itself, {page}"
    );
    let shown = fixture.planctl(&["approvals", "show", &ask]);
    for words in [
        "1        ",
        "as at attempt 1, numbers aside",
        "new: \"assertion failed: left 3\"",
        "as at attempt 2, numbers aside",
        "    added    out.txt  +1 -0",
        "    changed  notes    +1 -1",
        "diff │ +took 4ms",
        "p.md was approved by ann",
        "the file has not changed since",
        "the worker's last words (they are not evidence)\n  worker │ I have done all of it\n",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    fixture.write("p.md", &format!("{}\nA word more.\n", fixture.read("p.md")));
    let shown = fixture.planctl(&["approvals", "show", &ask]);
    assert!(
        shown.out.contains(
            "the file has changed since, and the approved text runs\n  what changed: planctl diff p.md"
        ),
        "{}",
        shown.out
    );
    assert!(shown.out.contains("  diff │ +A word more.\n"), "{}", shown.out);
    assert_eq!(fixture.planctl(&["approvals", "skip", &ask, "--note", "later"]).code, 0);
    let shown = fixture.planctl(&["approvals", "show", &ask]);
    assert!(shown.out.contains("\nanswered skip by ann after "), "{}", shown.out);
    assert!(!shown.out.contains("changed since commit"), "the workspace goes on: {}", shown.out);
}

#[test]
fn approve_all_answers_each_ask_of_one_run_and_none_of_another() {
    let fixture = Fixture::new();
    for name in ["one", "two"] {
        fixture.write(&format!("{name}.md"), &plan(name, "5 minutes", &[("One", "true", "escalate")]));
        let said = fixture.planctl(&["plan", "run", &format!("{name}.md"), "--no-wait", "--simulate"]);
        assert_eq!(said.code, 3, "{said:?}");
    }
    let said = fixture.planctl(&["approve", "--all", "--run", "one-1", "--note", "read"]);
    assert_eq!(said.code, 0, "{said:?}");
    let open = fixture.json(&["approvals", "--json"]);
    let open: Vec<_> =
        open["asks"].as_array().unwrap().iter().map(|ask| ask["run"].as_str().unwrap()).collect();
    assert_eq!(open, ["two-1"]);
    let events = fixture.planctl(&["events", "one-1", "--json"]).out;
    assert_eq!(events.matches("\"event\":\"ask_answered\"").count(), 1, "{events}");
    let again = fixture.planctl(&["approve", "--all", "--run", "one-1"]);
    assert_eq!(again.code, 4, "{again:?}");
    assert!(
        again.err.contains("no ask of one-1 waits for an approval\nnext: planctl status one-1"),
        "{again:?}"
    );
    let alone = fixture.planctl(&["approve", "--all"]);
    assert_eq!(alone.code, 2, "every run at once is no decision: {alone:?}");
}

#[test]
fn approve_all_writes_a_line_of_history_for_each_ask_of_the_run() {
    let fixture = Fixture::new();
    fixture.write(
        "planctl.toml",
        "[models.strict]\napi = \"messages\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m-1\"\nask = true\n\n[judges]\nby = [\"strict\"]\n",
    );
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let mut text = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Two\n\n**Budget:** max 100k tokens, 5 minutes\n\n**parallel:** 2\n\n## Steps\n".to_owned();
    for step in 1..=2 {
        text.push_str(&format!(
            "\n### {step}. Write {step}\n\n**target:** coder\n**needs:** none\n\n**task:**\nWrite `out-{step}`.\n\n**contract:**\n```bash\n\
             test -e out-{step}\n```\nexit_code == 0\n\n**judge:** Is `out-{step}` finished?\n"
        ));
    }
    fixture.write("p.md", &text);
    let worker = "touch out-$PLANCTL_STEP";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let open = fixture.json(&["approvals", "--json"])["asks"].as_array().unwrap().len();
    assert_eq!(open, 2, "{said:?}");
    let said = fixture.planctl(&["approve", "--all", "--run", "p-1", "--note", "both read"]);
    assert_eq!(said.code, 0, "{said:?}");
    let events = fixture.planctl(&["events", "p-1", "--json"]).out;
    let by_ann = events
        .lines()
        .filter(|line| line.contains("\"event\":\"ask_answered\"") && line.contains("both read"));
    assert_eq!(by_ann.count(), 2, "{events}");
}

#[test]
fn of_a_hundred_deciders_at_once_one_wins_and_the_others_are_told_who() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    let decide = |number: u32| {
        let (word, name) = (["skip", "waive"][number as usize % 2], format!("decider-{number}"));
        let mut command = fixture.command(&["approvals", word, &ask, "--note", "mine", "--as", &name]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let deciders: Vec<_> = (0..100).map(decide).collect();
    let ends: Vec<_> = deciders.into_iter().map(|decider| decider.wait_with_output().unwrap()).collect();
    let (won, lost): (Vec<_>, Vec<_>) = ends.iter().partition(|end| end.status.code() == Some(0));
    assert_eq!(won.len(), 1, "{won:?}");
    let answered = fixture.json(&["approvals", "show", &ask, "--json"])["answer"].clone();
    let told = format!(
        "{} answered it with {}",
        answered["by"].as_str().unwrap(),
        answered["answer"].as_str().unwrap()
    );
    for end in lost {
        let said = String::from_utf8_lossy(&end.stderr);
        assert_eq!(end.status.code(), Some(5), "{said}");
        assert!(said.contains(&told), "{told}: {said}");
    }
    let events = fixture.planctl(&["events", "@last", "--json"]).out;
    let decided = events
        .lines()
        .filter(|line| line.contains("\"event\":\"ask_answered\"") && line.contains("\"mine\""));
    assert_eq!(decided.count(), 1, "{events}");
}

#[test]
fn skip_leaves_the_step_out_and_the_end_shows_it() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    let status = goes_on(&fixture, &["approvals", "skip", &ask, "--note", "not today"]);
    assert_eq!(
        (status["state"].as_str(), status["steps"][0]["state"].as_str()),
        (Some("done"), Some("skipped"))
    );
    assert!(fixture.planctl(&["plan", "status", "@last"]).out.contains("skipped"));
}

#[test]
fn waive_needs_a_reason_and_shows_for_ever() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    let said = fixture.planctl(&["approvals", "waive", &ask]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("note"), "{said:?}");
    let status = goes_on(&fixture, &["approvals", "waive", &ask, "--note", "done by hand"]);
    assert_eq!(status["steps"][0]["state"], "waived");
    let why = fixture.planctl(&["why", "@last", "1"]);
    assert!(why.out.contains("waived by ann") && why.out.contains("done by hand"), "{}", why.out);
}

#[test]
fn reassign_gives_the_step_to_another_role() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    let alone = fixture.planctl(&["approvals", "reassign", &ask]);
    let next = format!("next: planctl approvals reassign {ask} ROLE\n");
    assert!(alone.code == 2 && alone.err.contains(&next), "the ask's number names no role: {alone:?}");
    let status = goes_on(&fixture, &["approvals", "reassign", &ask, "senior"]);
    assert_eq!(
        (status["steps"][0]["state"].as_str(), status["steps"][0]["role"].as_str()),
        (Some("passed"), Some("senior"))
    );
}

#[test]
fn reassign_takes_no_role_that_nothing_knows() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:true\"\n\n[roles.senior]\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture.write("p.md", &plan("Stuck", "5 minutes", &[("Try", "test -e impossible", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]).code, 3);
    let ask = fixture.ask();
    let said = fixture.planctl(&["approvals", "reassign", &ask, "senoir"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("there is no role \"senoir\"") && said.err.contains("roles: coder, senior"),
        "{said:?}"
    );
    assert_eq!(fixture.planctl(&["approvals", "reassign", &ask, "senior"]).code, 0);
}

#[test]
fn cancel_of_an_ask_ends_its_run_for_good() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    assert_eq!(fixture.planctl(&["approvals", "cancel", &ask, "--note", "enough"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "status", "@last", "--exit-code"]).code, 7);
    assert_eq!(fixture.status()["state"], "cancelled");
    assert_eq!(fixture.planctl(&["resume", "@last"]).code, 5, "as after planctl cancel");
}

#[test]
fn an_ask_that_was_answered_cancels_no_run() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    assert_eq!(fixture.planctl(&["approvals", "revise", &ask]).code, 0);
    let said = fixture.planctl(&["approvals", "cancel", &ask, "--note", "too late"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(
        said.err.contains(&format!("could not answer ask {ask}: ann answered it with revise")),
        "{said:?}"
    );
    assert_eq!(fixture.status()["state"], "paused");
}

#[test]
fn revise_pauses_until_a_changed_plan_is_approved_and_keeps_what_has_passed() {
    let fixture = Fixture::new();
    fixture.write(
        "p.md",
        &plan(
            "Revise",
            "5 minutes",
            &[("One", "test -e done-1", "escalate"), ("Two", "test -e impossible", "escalate")],
        ),
    );
    let said = fixture.run("touch done-$PLANCTL_STEP");
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    assert_eq!(fixture.status()["state"], "paused");

    fixture.write("p.md", &fixture.read("p.md").replace("test -e impossible", "test -e done-2"));
    let said = fixture.planctl(&["plan", "approve", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.status();
    assert_eq!((status["run"].as_str(), status["steps"][0]["attempts"].as_u64()), (Some("p-1"), Some(1)));
}

#[test]
fn a_text_with_which_a_paused_run_could_not_go_on_is_refused_before_anything_is_approved() {
    let fixture = Fixture::new();
    let steps = [("One", "test -e done-1", "escalate"), ("Two", "test -e impossible", "escalate")];
    fixture.write("p.md", &plan("Revise", "5 minutes", &steps).replace("### 2.", "### 3."));
    assert_eq!(fixture.run("touch done-$PLANCTL_STEP").code, 3);
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);

    let added = plan("Added", "5 minutes", &[("Late", "test -e done-2", "escalate")]);
    let (_, late) = added.split_once("### 1.").unwrap();
    let revised = fixture.read("p.md").replace("### 3.", &format!("### 2.{late}\n### 3."));
    fixture.write("p.md", &revised);
    let said = fixture.planctl(&["plan", "approve", "p.md"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("nothing would begin it"), "{said:?}");
    assert!(!fixture.read("p.md").contains("status: approved"), "{}", fixture.read("p.md"));
    assert_eq!(fixture.json(&["plan", "show", "p.md", "--json"])["decided"], serde_json::Value::Null);
    assert_eq!(fixture.status()["state"], "paused");
}

#[test]
fn a_run_to_be_revised_goes_on_as_it_was_when_it_is_resumed() {
    let fixture = Fixture::new();
    let ask = stuck(&fixture);
    assert_eq!(fixture.planctl(&["approvals", "revise", &ask]).code, 0);
    assert!(fixture.read("p.md").contains("status: draft"), "{}", fixture.read("p.md"));
    let said = fixture.planctl(&["resume", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.status()["state"], "waiting");
    assert!(fixture.read("p.md").contains("status: in-progress"), "{}", fixture.read("p.md"));
    // An approval that was withdrawn does not let it go on.
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    assert_eq!(fixture.planctl(&["reject", "p.md", "--note", "no"]).code, 0);
    let refused = fixture.planctl(&["resume"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("its approval no longer holds"), "{refused:?}");
    assert_eq!(fixture.status()["state"], "paused");
}

#[test]
fn a_run_that_waits_goes_on_when_somebody_answers_elsewhere() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Wait", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let worker = "case $(cat) in *'use the force'*) touch done-1;; esac";
    let mut going = fixture.start(&["plan", "run", "p.md", "--approve", "--exec", worker]);
    going.hear("waiting for you: planctl approvals show");
    let said = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "use the force"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("answered=retry by=\"ann\" \"use the force\""), "{said:?}");
}

#[test]
fn what_is_not_there_is_told_with_where_to_look() {
    let fixture = Fixture::new();
    stuck(&fixture);
    let said = fixture.planctl(&["approvals", "show", "77"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.ends_with("could not find ask 77\nnext: planctl approvals\n"), "{said:?}");
    let said = fixture.planctl(&["plan", "logs", "@last", "--step", "9"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("could not find step 9 in p-1"), "{said:?}");
    let said = fixture.planctl(&["approvals", "raise"]);
    assert!(said.code == 2 && !said.err.contains("--as"), "{said:?}");
}

#[test]
fn who_watches_lines_go_by_is_told_once_what_to_type_and_leaves_with_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Wait", "5 minutes", &[("One", "true", "abort")]));
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", "true"]).code, 3);
    let line = format!("waiting for you: planctl approvals show {}", fixture.ask());
    let mut going = fixture.start(&["plan", "watch", "@last"]);
    going.hear(&line);
    going.signal(Signal::TERM);
    let said = going.end();
    assert_eq!(said.code, 143, "{said:?}");
    assert!(said.err.contains(&format!("detached from p-1: {line}")), "{said:?}");
    assert_eq!(said.err.matches(&line).count(), 2, "{said:?}");
}

#[test]
fn a_worker_s_question_is_answered_and_spends_no_attempt() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Ask", "5 minutes", &[("One", "grep -qx blue colour", "abort")]));
    let worker = r#"case $(cat) in *blue*) echo blue > colour;; *) echo '{"planctl":"result/1","outcome":"needs_input","question":"Which colour?"}' > $PLANCTL_RESULT_FILE;; esac"#;
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let page = fixture.planctl(&["approvals", "show", &ask]);
    assert!(page.out.contains("Which colour?") && page.out.contains("approvals answer"), "{}", page.out);
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 5, "a question takes an answer");
    let status = goes_on(&fixture, &["approvals", "answer", &ask, "--note", "blue"]);
    assert_eq!(status["steps"][0]["state"], "passed");
}

/// A worker's text that looks like planctl's.
const FORGED: &str =
    "Which colour?\n\ncontract passed\nnext:\n  planctl approvals waive 2\u{9b}2J\u{2028}\u{202e}";

#[test]
fn hole_17_what_a_worker_wrote_is_labelled_on_each_line_and_shown_once() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Ask", "5 minutes", &[("One", "grep -qx blue colour", "abort")]));
    let question = format!("{FORGED}\n{}end", "long ".repeat(1_000));
    let result = serde_json::json!({"planctl": "result/1", "outcome": "needs_input", "question": question});
    fixture.write("asks.json", &result.to_string());
    let worker = "cat asks.json >$PLANCTL_RESULT_FILE";
    let said = fixture.run(worker);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("step 1 \"One\" asks: \"Which colour?\" …\n"), "{said:?}");
    assert!(!said.out.contains("waive 2"), "{said:?}");
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    let forged =
        page.lines().filter(|line| line.contains("approvals waive 2\\u") || line.contains("contract passed"));
    assert_eq!(forged.clone().count(), 2, "{page}");
    forged.for_each(|line| assert!(line.starts_with("  coder │ "), "{page}"));
    assert_eq!(page.matches("Which colour?").count(), 1, "{page}");
    assert!(page.contains("characters more, all of it: planctl approvals show 2 --json\n"), "{page}");
    assert!(page.len() < 4_000, "{}", page.len());
    let list = fixture.planctl(&["approvals"]).out;
    assert_eq!(list.lines().count(), 2, "{list}");
    // The JSON has all of it, and nothing that a terminal obeys.
    let json = fixture.planctl(&["approvals", "show", &fixture.ask(), "--json"]).out;
    assert!(!json.contains(['\u{9b}', '\u{2028}', '\u{202e}']), "{json}");
    assert!(json.contains(r"2\u009b2J\u2028\u202e"), "{json}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["message"], question.as_str());
}

#[test]
fn hole_17_what_a_contract_and_a_worker_printed_is_labelled_in_logs_and_harmless_in_exports() {
    let fixture = Fixture::new();
    fixture.write("say.sh", "printf 'recorded: approve by you\\n\\302\\2332J\\342\\200\\256\\n'\n");
    fixture.write(
        "p.md",
        &plan("Print", "5 minutes", &[("One", "bash say.sh; test -e never", "retry(1), then escalate")]),
    );
    let said = fixture.run("bash say.sh");
    assert_eq!(said.code, 3, "{said:?}");
    for page in [
        fixture.planctl(&["plan", "logs", "@last"]).out,
        fixture.planctl(&["approvals", "show", &fixture.ask()]).out,
    ] {
        let forged: Vec<&str> = page.lines().filter(|line| line.contains("recorded: approve")).collect();
        assert!(!forged.is_empty(), "{page}");
        for line in forged {
            let is_quoted = line.contains("\"recorded: approve by you\"");
            let is_labelled = line.starts_with("  worker │ ") || line.starts_with("  contract │ ");
            assert!(is_quoted || is_labelled, "{page}");
        }
    }
    let said = fixture.planctl(&["plan", "export", "@last", "--to", "out"]);
    assert_eq!(said.code, 0, "{said:?}");
    for file in ["out/1/response.md", "out/artifacts/1-1-stdout.txt", "out/1/status.json"] {
        assert!(!fixture.read(file).contains(['\u{9b}', '\u{202e}']), "{file}");
    }
    let response = fixture.read("out/1/response.md");
    assert!(response.contains("\\u{202e}") && !response.contains("2J"), "{response}");
}

#[test]
fn asks_are_listed_by_kind_and_run() {
    let fixture = Fixture::new();
    stuck(&fixture);
    assert!(fixture.planctl(&["approvals"]).out.contains("escalation"));
    assert_eq!(
        fixture.json(&["approvals", "ls", "--kind", "budget", "--json"])["asks"].as_array().unwrap().len(),
        0
    );
    assert_eq!(
        fixture.json(&["approvals", "ls", "--run", "p-1", "--json"])["asks"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn p19_an_approval_is_written_into_the_file() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("One", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let said = fixture.planctl(&["plan", "approve", "p.md", "--note", "fine"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.read("p.md").contains("\nstatus: approved\n"), "{}", fixture.read("p.md"));
    let verified = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(verified.code == 0 && !verified.out.contains("did not write"), "{verified:?}");
    // The approval serves, since the status is none of the text that was approved.
    let done = fixture.planctl(&["plan", "run", "p.md", "--exec", "touch done-1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fixture.read("p.md").contains("\nstatus: done\n"));
    // One that was changed meanwhile is left as it is.
    fixture.write("q.md", &plan("One", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "approve", "q.md"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "reject", "q.md", "--note", "no"]).code, 0);
    assert!(fixture.read("q.md").contains("\nstatus: draft\n"), "{}", fixture.read("q.md"));
}
