//! Words that hands know from git, gh, docker, kubectl, cargo and systemctl: each does what is expected, or is told what to
//! type.

use crate::fixture::{Fixture, Said, plan};

/// A project with a plan and a run of it that is done.
fn project() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("plans/p.md", &plan("Greets", "5 minutes", &[("Greet", "test -e done-1", "escalate")]));
    let said = fixture.planctl(&["run", "plans/p.md", "--approve", "--exec", "touch done-1"]);
    assert_eq!(said.code, 0, "{said:?}");
    fixture
}

/// A run whose first step waits for a person, and the number of its ask.
fn held(fixture: &Fixture, name: &str) -> String {
    fixture.write(name, &plan("Waits", "5 minutes", &[("Wait", "test -e never", "escalate")]));
    let said = fixture.planctl(&["run", name, "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let asks = fixture.json(&["inbox", "--json"])["asks"].clone();
    let mut asks = asks.as_array().unwrap().iter().filter(|ask| ask["plan"] == name);
    asks.next_back().unwrap()["id"].to_string()
}

#[test]
fn words_of_other_tools_do_what_is_expected() {
    let fixture = project();
    for (typed, code, shown) in [
        ("status", 0, ""),
        ("status p-1", 0, "p-1"),
        ("status @last --watch", 0, "p-1"),
        ("plan status p-1 -w", 0, "p-1"),
        ("ls", 0, "p-1"),
        ("list", 0, "p-1"),
        ("ps", 0, "p-1"),
        ("runs", 0, "p-1"),
        ("run ls", 0, "p-1"),
        ("run list", 0, "p-1"),
        ("run show", 0, "Greet"),
        ("run show p-1", 0, "Greet"),
        ("plan ls", 0, "plans/p.md"),
        ("plan list", 0, "plans/p.md"),
        ("logs", 0, "Greet"),
        ("plan logs", 0, "Greet"),
        ("run logs plans/p.md", 0, "Greet"),
        ("verify plans/p.md", 0, "verified"),
        ("explain P402", 0, "P402"),
        ("plan explain", 0, "P402"),
        ("fmt --check plans/p.md", 1, "plans/p.md"),
        ("show plans/p.md", 0, "Greet"),
        ("show p-1", 0, "Greet"),
        ("show", 0, "Greet"),
        ("cancel", 5, "the newest run, p-1, is over"),
        ("watch", 0, "p-1"),
        ("history", 0, "passed"),
        ("log", 0, "passed"),
        ("plan history", 0, "passed"),
        ("logs -f", 0, "p-1 is done"),
        ("plan logs --follow", 0, "p-1 is done"),
        ("resume", 5, "next: planctl run --again plans/p.md"),
        ("plan resume p-1", 5, "next: planctl run --again plans/p.md"),
        ("pause", 5, "could not pause p-1: it is over"),
        ("plan edit", 2, "next: planctl edit FILE"),
        ("approve plans/p.md", 0, "recorded: approve"),
        ("man planctl", 2, "next: planctl help"),
        ("events p-1", 0, "passed"),
        ("events -n 1", 0, ""),
        ("events p-1 --tail 5 --json", 0, "plan_completed"),
        ("why", 0, "Greet"),
        ("why p-1", 0, "Greet"),
        ("why p-1 Greet", 0, "Greet"),
        ("why p-1 1", 0, "Greet"),
        ("why 1", 0, "p-1 step 1 Greet"),
        ("why 7", 4, "could not find step 7"),
        ("status 1", 4, "of step 1: planctl why 1; of ask 1: planctl approvals show 1"),
        ("resume 1", 4, "next: planctl ls"),
        ("plan why p-1 1", 0, "Greet"),
        ("plan pause p-1", 5, "could not pause p-1: it is over"),
        ("audit p-1", 0, "sound"),
        ("run audit", 0, "sound"),
        ("new --list", 0, "bugfix"),
        ("run plans/p.md --dry-run", 0, "Greet"),
        ("plan run -n plans/p.md", 0, "Greet"),
        ("plan run -f plans/p.md", 0, "done"),
        ("approvals list", 0, "nothing waits"),
        ("inbox", 0, "nothing waits"),
        ("worker list", 0, "no worker"),
        ("roles list", 0, ""),
        ("completion bash", 0, "planctl"),
        ("-v", 0, "planctl 0."),
        ("help options", 0, "--json"),
        ("work --help", 0, "heartbeat"),
        ("item --help", 0, "heartbeat"),
        ("worker start --help", 0, "planctl worker run"),
        ("daemon restart --help", 0, "planctl daemon restart"),
    ] {
        let said = fixture.planctl(&typed.split(' ').collect::<Vec<&str>>());
        assert_eq!(said.code, code, "planctl {typed}: {said:?}");
        assert!(format!("{}{}", said.out, said.err).contains(shown), "planctl {typed}: {said:?}");
    }
    assert!(!fixture.planctl(&["run", "plans/p.md", "--dry-run"]).out.contains("p-2"), "nothing ran");
    assert_eq!(fixture.json(&["ls", "--json"])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn words_that_planctl_does_not_have_are_told_what_to_type() {
    let fixture = Fixture::new();
    for (typed, tip) in [
        ("create", "planctl new"),
        ("goal list issues", "planctl goal resolve 'list issues'"),
        ("goal --repair p-1", "planctl goal resolve GOAL --repair RUN"),
        ("daemon log", "did you mean `planctl daemon logs`?"),
        ("guard cargo test", "one command is one word: guard 'cargo test'"),
        ("guard test -f x", "one command is one word: guard 'test -f x'"),
        (
            "run p.md --exec ./work.sh fast -v2 --approve",
            "one command is one word: --exec './work.sh fast -v2'",
        ),
        ("worker run --role coder --exec claude -p", "one command is one word: --exec 'claude -p'"),
        ("daemon kill", "planctl daemon stop"),
        ("library search bug", "planctl library match MESSAGE"),
        ("approvals accept 1", "planctl approvals approve ASK"),
        ("worker stop one", "planctl worker pause NAME"),
        ("token delete 1", "planctl token revoke ID"),
        ("guide stop", "planctl guide off"),
        ("graph validate x.md", "planctl graph check FILE"),
        ("setup", "planctl init"),
        ("dashboard", "planctl open"),
        ("validate x.md", "planctl verify FILE"),
        ("lint x.md", "planctl verify FILE"),
        ("check x.md", "planctl verify FILE"),
        ("plan validate x.md", "planctl verify FILE"),
        ("plan lint", "planctl verify FILE"),
        ("plan check", "planctl verify FILE"),
        ("stop", "planctl cancel RUN"),
        ("plan stop", "planctl cancel RUN"),
        ("plan kill", "planctl cancel RUN"),
        ("plan abort", "planctl cancel RUN"),
        ("plan rm", "planctl cancel RUN"),
        ("kill", "planctl cancel RUN"),
        ("tail", "planctl logs"),
        ("approvals abort 1", "planctl approvals cancel ASK"),
        ("run x.md --parallel 3", "**parallel:** 3, and **needs:** in its steps"),
        ("plan retry", "planctl approvals retry"),
        ("plan rerun", "planctl run FILE --again"),
        ("plan restart", "planctl run FILE --again"),
        ("plan continue", "planctl resume RUN"),
        ("plan hold", "planctl pause RUN"),
        ("get runs", "planctl ls"),
        ("apply", "planctl run FILE"),
        ("up", "planctl daemon start"),
        ("serve", "planctl daemon start"),
        ("start", "planctl daemon start"),
        ("config get x", "planctl config show"),
        ("config set x y", "planctl config path"),
        ("config edit", "planctl config path"),
        ("config list", "planctl config show"),
        ("config view", "planctl config show"),
        ("login", "planctl token create"),
        ("auth status", "planctl token create"),
        ("update", "the way it was installed"),
        ("self update", "the way it was installed"),
        ("plan verfiy x.md", "planctl plan verify"),
        ("plan events --folow", "--follow"),
        ("plan doctor", "planctl doctor"),
        ("import tasks.md", "planctl plan import"),
        ("draft 'a goal'", "planctl plan draft"),
        ("generate 'a goal'", "planctl plan draft"),
        ("waive 3", "planctl approvals waive"),
        ("claim", "planctl item claim"),
        ("new --template bugfix", "planctl new FILE --from TEMPLATE"),
        ("plan new --template", "planctl new FILE --from TEMPLATE"),
        ("approvals retry -m again", "--note TEXT"),
        ("run x.md --auto-approve", "--approve"),
        ("run x.md --cmd true", "--exec CMD"),
        ("run x.md -y", "--yes"),
        ("logs -n 5", "--tail N"),
        ("ls --watch", "planctl watch RUN"),
        ("plans/p.md", "planctl run plans/p.md"),
        ("approvals 17", "planctl approvals show 17"),
    ] {
        let said = fixture.planctl(&typed.split(' ').collect::<Vec<&str>>());
        assert_eq!(said.code, 2, "planctl {typed}: {said:?}");
        let told = said.err.lines().find(|line| line.trim_start().starts_with("tip:"));
        assert!(told.is_some_and(|told| told.contains(tip)), "planctl {typed}: {said:?}");
    }
    for typed in
        ["trsut", "clena", "cleen", "plan reste", "db rest", "reset", "plan bogus", "run x.md --bogus"]
    {
        let said = fixture.planctl(&typed.split(' ').collect::<Vec<&str>>());
        assert!(said.code == 2 && !said.err.contains("tip:"), "planctl {typed}: {said:?}");
        assert!(!said.err.contains("\n\n\n"), "no gap where a tip would stand: {said:?}");
    }
}

#[test]
fn the_only_open_ask_needs_no_number_and_several_are_named() {
    let fixture = Fixture::new();
    let none = fixture.planctl(&["approvals", "retry"]);
    assert!(none.code == 4 && none.err.contains("no ask is open"), "{none:?}");
    let first = held(&fixture, "a.md");
    assert!(fixture.planctl(&["approvals", "show"]).out.contains(&format!("escalation {first}")));
    let said = fixture.planctl(&["approvals", "retry", "--note", "again"]);
    assert!(said.code == 0 && said.err.contains("recorded: retry"), "{said:?}");
    for name in ["b.md", "c.md"] {
        fixture.write(name, &plan("Asks", "5 minutes", &[("One", "test -e never", "escalate")]));
        assert_eq!(fixture.planctl(&["run", name, "--no-wait", "--exec", "true"]).code, 3);
    }
    let asks = fixture.json(&["approvals", "--json"])["asks"].clone();
    let ids: Vec<String> = asks.as_array().unwrap().iter().map(|ask| ask["id"].to_string()).collect();
    let said = fixture.planctl(&["approvals", "reject"]);
    assert!(said.code == 2 && said.err.contains("2 asks are open"), "{said:?}");
    assert!(ids.iter().all(|id| said.err.contains(id)), "{said:?}");
    let said = fixture.planctl(&["approvals", "reject", &ids[0], &ids[1], "--note", "both"]);
    assert!(said.code == 0 && said.err.matches("recorded: reject").count() == 2, "{said:?}");
}

#[test]
fn approve_takes_a_plan_or_an_ask_and_cancel_without_a_run_wants_a_yes() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let said = fixture.planctl(&["approve", "p.md", "--exec", "touch done-1"]);
    assert!(said.code == 0 && said.err.contains("recorded: approve"), "{said:?}");
    fixture.write("q.md", &plan("Q", "5 minutes", &[("One", "test -e done-2", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "q.md", "--no-wait", "--exec", "touch done-2"]).code, 3);
    let said = fixture.planctl(&["approve"]);
    assert!(said.code == 0 && said.err.contains("recorded: approve"), "{said:?}");

    let said = fixture.planctl(&["cancel"]);
    assert!(said.code == 2 && said.err.contains("--yes") && said.err.contains("q-1"), "{said:?}");
    let said = fixture.planctl(&["cancel", "--yes"]);
    assert!(said.code == 0 && said.err.contains("recorded: cancel"), "{said:?}");
    assert_eq!(fixture.json(&["status", "q-1", "--json"])["state"], "cancelled");

    fixture.write("r.md", &plan("R", "5 minutes", &[("One", "test -e done-3", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "r.md", "--no-wait", "--exec", "touch done-3"]).code, 3);
    let said = fixture.planctl(&["approve", &fixture.ask()]);
    assert!(said.code == 0 && said.err.contains("recorded: approve"), "by its number: {said:?}");
}

#[test]
fn edit_opens_a_plan_that_no_run_waits_with_and_verifies_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let edit = |by: &str| {
        let mut command = fixture.command(&["plan", "edit", "p.md"]);
        crate::fixture::Said::from(command.env("EDITOR", by).output().unwrap())
    };
    let said = edit("sed -i s/done-1/done-2/");
    assert!(said.code == 0 && said.out.contains("verified"), "{said:?}");
    assert!(fixture.read("p.md").contains("done-2"));
    let said = edit("sed -i s/escalate/shrug/");
    assert!(said.code == 1, "{said:?}");
    let said = fixture.planctl(&["edit", "nothing-1"]);
    assert_eq!(said.code, 4, "{said:?}");
    let said = fixture.planctl(&["edit"]);
    assert!(said.code == 2 && said.err.contains("next: planctl edit FILE"), "{said:?}");
}

#[test]
fn the_newest_run_is_one_of_this_folder_and_the_newest_elsewhere_is_never_meant() {
    let fixture = Fixture::new();
    let text = plan("Waits", "5 minutes", &[("Wait", "test -e never", "escalate")]);
    fixture.write("one/p.md", &text).write("two/p.md", &text);
    let here = |folder: &str, words: &[&str]| {
        fixture.planctl(&[&["-C", folder, "--workspace", "."][..], words].concat())
    };
    let run = ["run", "p.md", "--approve", "--no-wait", "--exec", "true"];
    assert_eq!(here("one", &run).code, 3);
    assert!(!fixture.planctl(&["audit"]).out.contains("/one"), "of one folder its name is enough");
    for words in [&["cancel", "--yes"][..], &["why"], &["logs"], &["show"], &["pause"], &["resume"]] {
        let said = here("two", words);
        assert_eq!(said.code, 4, "{words:?}: {said:?}");
        assert!(said.err.contains("has none yet"), "{words:?}: {said:?}");
        assert!(said.err.contains("next: planctl -C two --workspace . ls --all"), "{words:?}: {said:?}");
    }
    assert_eq!(here("one", &["cancel", "--yes"]).code, 0);
    assert_eq!(here("two", &run).code, 3);
    let audited = fixture.planctl(&["audit"]).out;
    let places: Vec<_> =
        audited.lines().filter_map(|line| line.rsplit_once(" · ")).map(|(_, at)| at).collect();
    assert_eq!(places, ["two", "one"].map(|folder| fixture.path(folder).display().to_string()), "{audited}");
}

#[test]
fn a_number_that_is_none_and_a_word_in_place_of_a_folder_are_said_in_plain_words() {
    let fixture = Fixture::new();
    for (words, usage) in [
        (&["logs", "--step", "x"][..], "planctl logs"),
        (&["approvals", "retry", "lint-3"], "planctl approvals retry"),
        (&["events", "-n", "five"], "planctl events"),
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 2 && said.err.contains("a whole number is expected"), "{words:?}: {said:?}");
        assert!(said.err.contains(&format!("Usage: {usage} [")), "{words:?}: {said:?}");
    }
    for (word, next) in [("run", "planctl help run"), ("planctl", "planctl help")] {
        let said = fixture.planctl(&["man", word]);
        assert!(said.code == 2 && said.err.contains(&format!("next: {next}")), "{said:?}");
        assert!(!fixture.path(word).exists(), "no folder is made");
    }
    assert_eq!(fixture.planctl(&["man", "./run"]).code, 0);
}

#[test]
fn completions_know_runs_asks_roles_and_plans() {
    let fixture = project();
    fixture.write("planctl.toml", "[roles.tester]\nagent = \"exec:true\"\n");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let ask = held(&fixture, "plans/w.md");
    let completed = |line: &[&str]| {
        let last = (line.len() - 1).to_string();
        let mut command = fixture.command(&[&["--"], line].concat());
        command.env("PLANCTL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", last).env("_CLAP_IFS", "\n");
        crate::fixture::Said::from(command.output().unwrap()).out
    };
    assert!(
        completed(&["planctl", "status", ""]).contains("p-1"),
        "{}",
        completed(&["planctl", "status", ""])
    );
    assert!(completed(&["planctl", "resume", "@"]).contains("@last"));
    assert!(completed(&["planctl", "verify", "pl"]).contains("plans/p.md"));
    assert!(completed(&["planctl", "approvals", "retry", ""]).contains(&ask));
    assert!(completed(&["planctl", "worker", "run", "--role", "te"]).contains("tester"));
    assert!(completed(&["planctl", "new", "--from", "bug"]).contains("bugfix"));
    assert!(completed(&["planctl", "library", "show", "refac"]).contains("refactor_safe"));
    assert!(completed(&["planctl", "run", "--agent", "co"]).contains("codex"));
    assert!(completed(&["planctl", "explain", "P10"]).contains("P104"));
    // Another folder of the same project, and another database, are those that the line names.
    std::fs::create_dir_all(fixture.path("elsewhere")).unwrap();
    let here = fixture.path("").display().to_string();
    let in_folder = completed(&["planctl", "-C", "elsewhere", "--workspace", &here, "verify", ""]);
    assert!(
        in_folder.contains("plans/p.md"),
        "a plan of the workspace is named so in any folder: {in_folder}"
    );
    let other = Fixture::new();
    let nothing = completed(&["planctl", "--database-url", &other.database_url(), "status", ""]);
    assert!(nothing.contains("@last") && !nothing.contains("p-1"), "{nothing}");
    let there = completed(&["planctl", "status", &format!("--database-url={}", fixture.database_url()), "p"]);
    assert!(there.contains("p-1"), "{there}");
    let script = fixture.planctl(&["completions", "bash"]);
    assert!(script.out.contains("PLANCTL_COMPLETE"), "{script:?}");
}

#[test]
fn bash_completes_names_with_blanks_and_quotes_to_one_word() {
    let fixture = Fixture::new();
    fixture.write("plans/a plan.md", "").write("plans/it's.md", "").write("plans/plain.md", "");
    let completed = |word: &str| {
        let word = word.replace('\'', r"'\''");
        fixture.shell(&format!(
            "source <(planctl completions bash); \
             COMP_WORDS=(planctl verify '{word}') COMP_CWORD=2 COMP_TYPE=9; \
             \"$(complete -p planctl | sed 's/.*-F \\([^ ]*\\).*/\\1/')\" planctl '{word}' verify; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        ))
    };
    for (word, whole) in [
        ("plans/a", r"plans/a\ plan.md"),
        (r"plans/a\ p", r"plans/a\ plan.md"),
        ("plans/i", r"plans/it\'s.md"),
        ("plans/p", "plans/plain.md"),
    ] {
        let said = completed(word);
        assert_eq!(said.out.trim_end(), whole, "{word}: {said:?}");
    }
}

#[test]
fn each_project_counts_its_own_runs_and_an_answer_from_elsewhere_finds_the_right_one() {
    let fixture = Fixture::new();
    let text = plan("Waits", "5 minutes", &[("Wait", "test -e never", "escalate")]);
    fixture.write("one/p.md", &text);
    fixture.write("two/p.md", &text);
    let run = ["run", "p.md", "--approve", "--no-wait", "--exec", "true", "--workspace", "."];
    for folder in ["one", "two"] {
        let said = fixture.planctl(&[&["-C", folder][..], &run].concat());
        assert!(said.code == 3 && said.out.contains("p-1 "), "{said:?}");
    }
    let status = |folder: &str| {
        fixture.json(&["-C", folder, "status", "p-1", "--workspace", ".", "--json"])["state"].clone()
    };
    let asks = fixture.json(&["inbox", "--json"])["asks"].clone();
    let of_two = asks
        .as_array()
        .unwrap()
        .iter()
        .find(|ask| ask["workspace"].as_str().is_some_and(|workspace| workspace.ends_with("/two")));
    let ask = of_two.unwrap()["id"].to_string();
    let said = fixture.planctl(&["-C", "one", "approvals", "retry", &ask]);
    assert!(said.code == 0 && said.err.contains("planctl -C ") && said.err.contains("/two "), "{said:?}");
    assert_eq!((status("one").as_str(), status("two").as_str()), (Some("waiting"), Some("running")));
    let said = fixture.planctl(&["-C", "two", "cancel", "p-1", "--workspace", "."]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!((status("one").as_str(), status("two").as_str()), (Some("waiting"), Some("cancelled")));
    let said = fixture.planctl(&["status", "p-1"]);
    assert!(said.code == 4 && said.err.contains("/one") && said.err.contains("/two"), "{said:?}");
    // Without a number, the ask of another folder may be looked at, and not answered.
    let inbox = fixture.planctl(&["inbox"]).out;
    assert!(inbox.contains("WORKSPACE") && inbox.contains("/one"), "{inbox}");
    assert_eq!(fixture.planctl(&["approvals", "show"]).code, 0);
    for answer in ["skip", "cancel", "retry"] {
        let said = fixture.planctl(&["approvals", answer, "--note", "no"]);
        assert!(said.code == 4 && said.err.contains("1 is open elsewhere"), "{answer}: {said:?}");
    }
    assert_eq!(status("one").as_str(), Some("waiting"));
}

#[test]
fn where_a_folder_above_became_a_checkout_the_workspace_without_runs_is_named() {
    let fixture = Fixture::new();
    let runs = |words: &[&str]| {
        Said::from(fixture.command(words).current_dir(fixture.path("app")).output().unwrap())
    };
    fixture.write("app/p.md", &plan("Waits", "5 minutes", &[("Wait", "test -e never", "escalate")]));
    let said = runs(&["plan", "run", "p.md", "--approve", "--no-wait", "--exec", "false"]);
    assert_eq!(said.code, 3, "{said:?}");
    std::fs::create_dir(fixture.path(".git")).unwrap();
    let said = runs(&["plan", "resume", "@last", "--no-wait"]);
    let work = fixture.path("").canonicalize().unwrap();
    let line = format!("could not find a run: the workspace {} has none yet", work.display());
    assert_eq!((said.code, said.err.contains(&line)), (4, true), "{line}: {said:?}");
    assert!(said.err.contains("next: planctl ls --all"), "{said:?}");
    assert!(runs(&["ls", "--all"]).out.contains("/app"));
}
