//! Sentences that once misled people, each in the situation that brought it about.

use crate::fixture::{Fixture, plan};

/// A loop that never comes to its end: the step that is entered too often is another one than the step that fails.
const LOOP: &str = r#"---
type: plan
status: draft
owner: ann
---

# Lint

**Budget:** 5 minutes
**max_visits:** 2

## Steps

### 1. Fix

**target:** coder

**task:**
Fix what lint found.

**contract:**
```bash
ls f-*
```
exit_code == 0
**on_fail:** escalate

### 2. Lint

**type:** call
**contract:**
```bash
words=(alpha beta gamma); n=$(ls f-* | wc -l); echo "${words[$n]} is broken"; test -e clean
```
exit_code == 0
**on_fail:** escalate

### 3. Ask for help

**type:** escalate

**task:**
The lint does not come clean.

## Flow

- 1 -> 2
- 1 -> 3 on exhaust
- 2 -> 1 on fail
- 2 -> done
"#;

/// A situation, the words that misled in it, and the words that stand there now.
struct Quote {
    situation: fn(&Fixture) -> String,
    gone: &'static [&'static str],
    now: &'static [&'static str],
}

/// Everything that a run of one step says, wherever a person may look.
fn screens(fixture: &Fixture, contract: &str, on_fail: &str) -> String {
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", contract, on_fail)]));
    let run = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    let mut all = vec![run.out, run.err];
    for words in [
        &["status", "@last"][..],
        &["why"],
        &["logs"],
        &["events"],
        &["approvals"],
        &["approvals", "show"],
        &["ls"],
    ] {
        let said = fixture.planctl(words);
        all.extend([said.out, said.err]);
    }
    all.join("\n")
}

const QUOTES: &[Quote] = &[
    Quote {
        situation: |fixture| {
            fixture.write("src/app.py", "old_helper\n");
            let text = plan(
                "P",
                "5 minutes",
                &[("Rename the helper", "! grep -q old_helper src/app.py", "escalate")],
            );
            fixture.write("p.md", &text);
            said(fixture, &["verify", "p.md"])
        },
        gone: &["no problems", "verified\n"],
        now: &["the contract wants `src/app.py` to change", "**changes:** src/app.py"],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "printf '\\033[31m\\033[1m1 failed\\033[0m, 139 passed\\n'; exit 1", "escalate")
        },
        gone: &["\u{1b}[31m", "\\u{1b}"],
        now: &["1 failed, 139 passed"],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "echo 'not ok 1 - slug'; echo '# duration_ms 211.045446'; exit 1", "escalate")
        },
        gone: &["contract exit 1 \"# duration_ms", "exit 1 \"# duration_ms"],
        now: &["contract exit 1 \"not ok 1 - slug\""],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "true", "escalate");
            said(fixture, &["verify", "p.md"])
        },
        gone: &["warning[P006]", "planctl did not write it"],
        now: &["note[P006]"],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "false", "escalate");
            fixture.planctl(&["cancel", "p-1"]);
            fixture.read("p.md")
        },
        gone: &["status: in-progress", "⏳"],
        now: &["status: failed"],
    },
    Quote {
        situation: |fixture| {
            fixture.planctl(&["init"]);
            fixture.planctl(&["new", "plans/b.md", "--from", "bugfix"]);
            said(fixture, &["verify", "plans/b.md"])
        },
        gone: &["not in the registry", "error[P401]"],
        now: &["verified"],
    },
    Quote {
        situation: |fixture| {
            let agent = "[roles.coder]\nagent = \"claude\"\n";
            fixture.write("planctl.toml", agent);
            fixture.planctl(&["trust", "."]);
            fixture.write("p.md", &plan("P", "5 minutes", &[("One", "true", "escalate")]));
            said(fixture, &["run", "p.md", "--approve", "--no-wait"]) + &said(fixture, &["ls"])
        },
        gone: &["delivery=lost", "os error 2", "no worker could run it"],
        now: &["claude is not found", "npm install -g @anthropic-ai/claude-code", "no runs"],
    },
    Quote {
        situation: |fixture| {
            let text = plan("P", "5 minutes", &[("One", "true", "escalate")]);
            fixture.write("p.md", &format!("{text}\n## Done when\n\n- all is well\n"));
            said(fixture, &["verify", "p.md"])
        },
        gone: &[],
        now: &["Done when"],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "true", "escalate");
            let elsewhere = fixture.home();
            let mut ls = fixture.command(&["ls"]);
            let said = crate::fixture::Said::from(ls.current_dir(elsewhere).output().unwrap());
            said.out + &said.err
        },
        gone: &["no runs\n"],
        now: &["planctl ls --all"],
    },
    Quote {
        situation: |fixture| screens(fixture, "true", "retry(2), then escalate"),
        gone: &["defaults:", "isolation tier 0", "no worker serves coder"],
        now: &["✓ p-1 done in"],
    },
    Quote {
        // The first plan of a newcomer, by the tips alone.
        situation: |fixture| {
            let missing = said(fixture, &["verify", "plans/hello.md"]);
            let new = said(fixture, &["new", "plans/hello.md"]);
            let verified = said(fixture, &["verify", "plans/hello.md"]);
            let one =
                said(fixture, &["run", "plans/hello.md", "--approve", "--exec", "echo Hello > hello.txt"]);
            let words =
                ["run", "--again", "plans/hello.md", "--approve", "--exec", "echo Hello 2 > hello.txt"];
            [missing, new, verified, one, said(fixture, &words), said(fixture, &["init"])].concat()
        },
        gone: &[
            "P119",
            "protected files were touched",
            "nobody may be there",
            "planctl run plans/hello.md\n",
        ],
        now: &[
            "next: planctl new plans/hello.md",
            "next: planctl verify plans/hello.md",
            "next: planctl run plans/hello.md --exec CMD",
            "✓ hello-2 done",
            "created planctl.toml",
            "left as it is: plans/hello.md",
        ],
    },
    Quote {
        situation: |fixture| screens(fixture, "echo FAIL one; exit 1", "retry(1), then escalate"),
        gone: &[
            "was escalated",
            "so the run went to a person",
            "escalation (its",
            "the plan is approved\n",
            "0 left after it",
            "contract, exit code 0",
        ],
        now: &[
            "waits for a person: its attempts are used up",
            "attempt 2, the last one",
            "contract, which passes with exit code 0",
        ],
    },
    Quote {
        situation: |fixture| screens(fixture, "echo FAIL one; exit 1", "abort"),
        gone: &["so the run went to failed", "failed · p.md\n  step"],
        now: &["the run failed at step 1"],
    },
    Quote {
        situation: |fixture| {
            fixture.write("check.sh", "test -e done-1\n");
            fixture.write("p.md", &plan("P", "5 minutes", &[("One", "bash check.sh", "escalate")]));
            let run = ["run", "p.md", "--approve", "--no-wait", "--exec", "echo true > check.sh"];
            assert_eq!(fixture.planctl(&run).code, 3);
            said(fixture, &["approvals"]) + &said(fixture, &["approvals", "show"])
        },
        gone: &["attempt 1: protected files were touched: check.sh", "escalation (its"],
        now: &[
            "tampered: check.sh",
            "attempt 1: protected files were touched\n  protected file check.sh changed",
        ],
    },
    Quote {
        situation: |fixture| {
            fixture.write(
                "p.md",
                &plan("P", "5 minutes", &[("One", "true", "abort"), ("Two", "false", "escalate")]),
            );
            assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
            assert_eq!(fixture.planctl(&["cancel", "p-1"]).code, 0);
            said(fixture, &["why"])
        },
        gone: &["p-1 step 1 One: passed"],
        now: &["p-1 was cancelled by ann\n", "p-1 step 2 Two: not finished"],
    },
    Quote {
        // An answer that nobody can give names each that somebody can, in a line of its own.
        situation: |fixture| {
            screens(fixture, "false", "escalate");
            said(fixture, &["approvals", "approve", &fixture.ask()])
        },
        gone: &["   or   "],
        now: &["next: planctl approvals retry ", "\n      planctl approvals skip "],
    },
    Quote {
        situation: |fixture| said(fixture, &["run"]),
        gone: &["planctl ls lists the plans"],
        now: &["planctl plan ls lists the plans"],
    },
    Quote {
        situation: |fixture| {
            screens(fixture, "true", "escalate");
            said(fixture, &["events"]) + &said(fixture, &["show", "p.md"])
        },
        gone: &["answered the plan", "the plan counts as met", "the plan passed", "defaults", "at most 10m"],
        now: &["ann approved the plan", "the plan is approved, so the run went to step 1"],
    },
    Quote {
        // A plan that is approved once more keeps the marks of its run.
        situation: |fixture| {
            screens(fixture, "true", "escalate");
            let again = said(fixture, &["approve", "p.md", "--exec", "true"]);
            again + &fixture.read("p.md") + &said(fixture, &["run", "p.md"])
        },
        gone: &["warning[P006]", "next: planctl run p.md"],
        now: &["planctl run --again p.md", "### 1. ✅ One", "p.md is done already"],
    },
    Quote {
        situation: |fixture| said(fixture, &["init"]),
        gone: &["--agent claude"],
        now: &["planctl run plans/hello.md --exec CMD"],
    },
    Quote {
        situation: |fixture| said(fixture, &["new", "x.md", "--from", "bugfix_workflow"]),
        gone: &["there is no template"],
        now: &["wrote x.md"],
    },
];

fn said(fixture: &Fixture, words: &[&str]) -> String {
    let said = fixture.planctl(words);
    format!("{}\n{}\n", said.out, said.err)
}

#[test]
fn sentences_that_misled_are_gone_and_what_is_true_stands_there() {
    let mut wrong = Vec::new();
    for (at, quote) in QUOTES.iter().enumerate() {
        let fixture = Fixture::new();
        let text = (quote.situation)(&fixture);
        let still =
            quote.gone.iter().filter(|words| text.contains(**words)).map(|words| ("still says", words));
        let missing =
            quote.now.iter().filter(|words| !text.contains(**words)).map(|words| ("does not say", words));
        wrong.extend(still.chain(missing).map(|(how, words)| format!("{at} {how} {words:?}:\n{text}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn why_says_once_that_a_step_waits_for_a_person_and_status_says_once_what_to_type() {
    let fixture = Fixture::new();
    screens(&fixture, "echo FAIL one; exit 1", "escalate");
    let why = fixture.planctl(&["why"]).out;
    assert_eq!(why.matches("its attempts are used up").count(), 1, "{why}");
    let status = fixture.planctl(&["status", "@last"]).out;
    assert_eq!(status.matches("planctl approvals show").count(), 1, "{status}");
    assert!(status.contains(" · waiting for you\nnext: planctl approvals show "), "{status}");
    assert_eq!(status.matches("FAIL one").count(), 1, "{status}");
}

#[test]
fn the_ask_of_a_loop_names_its_step_and_its_visits_and_the_step_that_asks_is_entered() {
    let fixture = Fixture::new();
    fixture.write("plan.md", LOOP);
    let run = ["run", "plan.md", "--approve", "--no-wait", "--exec", "touch f-$PLANCTL_ATTEMPT"];
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("step 1 \"Fix\": its visits are used up"), "{said:?}");
    let ask = fixture.planctl(&["approvals", "show"]).out;
    assert!(ask.contains("step 1 \"Fix\": its visits are used up"), "{ask}");
    assert!(ask.contains("plan │ The lint does not come clean."), "its own plan says so, no worker: {ask}");
    assert!(ask.contains("ls f-*"), "its own contract: {ask}");
    for quote in ["its attempts are used up", "is broken", "worker │"] {
        assert!(!ask.contains(quote), "{quote}: {ask}");
    }
    let view = fixture.status();
    let steps = view["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["state"], &steps[0]["failure"]), (&"waiting".into(), &serde_json::Value::Null));
    assert!(steps[1]["failure"].as_str().unwrap().contains("gamma is broken"), "{view}");
    assert_eq!(steps[2]["state"], "waiting", "{view}");
    let picture = fixture.planctl(&["status", "@last"]).out;
    assert!(picture.lines().any(|row| row.contains("✋ 3  Ask for help")), "{picture}");
    let why = fixture.planctl(&["why", "@last", "3"]).out;
    assert!(!why.contains("not started") && why.contains("waiting for you"), "{why}");
    // Its answer is what it was there for.
    let skip = fixture.planctl(&["approvals", "skip", "--note", "leave it"]);
    assert_eq!(skip.code, 0, "{skip:?}");
    assert_eq!(fixture.status()["steps"][2]["state"], "passed");
}

#[test]
fn a_contract_that_passes_with_another_exit_code_has_no_reason_for_a_failure() {
    let fixture = Fixture::new();
    let text = plan("P", "5 minutes", &[("One", "echo error: as it should; exit 3", "escalate")]);
    fixture.write("p.md", &text.replace("exit_code == 0", "exit_code == 3"));
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]).code, 0);
    let events = fixture.planctl(&["events"]).out;
    let ended = events.lines().find(|line| line.contains("ended: exit 3"));
    let ended = ended.unwrap_or_else(|| panic!("{events}"));
    assert!(ended.trim_end().ends_with("ended: exit 3"), "it passed: {ended}");

    // And one that exits with 0 where another code was expected failed, for a reason.
    let text = plan("P", "5 minutes", &[("One", "echo error: too well", "escalate")]);
    fixture.write("q.md", &text.replace("exit_code == 0", "exit_code == 3"));
    assert_eq!(fixture.planctl(&["run", "q.md", "--approve", "--no-wait", "--exec", "true"]).code, 3);
    let events = fixture.planctl(&["events"]).out;
    assert!(events.contains("ended: exit 0 \"error: too well\""), "{events}");
}
