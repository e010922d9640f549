//! planctl.toml, trust and databases, through the command line.

use std::os::unix::fs::MetadataExt;

use crate::fixture::{Fixture, Said, plan};

#[test]
fn row_108_a_wrong_configuration_is_told_with_line_and_column() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    fixture.write(
        "planctl.toml",
        "[contracts]\ntimeout = 10\ntimout = \"1m\"\n[roles.coder]\nagent = \"claud\"\n",
    );
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("planctl.toml:2:11") && said.err.contains("planctl.toml:3:1"), "{said:?}");
    assert!(
        said.err.contains("did you mean `timeout`?") && said.err.contains("planctl.toml:5:9"),
        "{said:?}"
    );
    assert!(said.err.contains("did you mean claude?"), "{said:?}");
    assert_eq!(fixture.planctl(&["version"]).code, 0, "what needs no configuration goes on");
}

#[test]
fn a_stranger_s_project_starts_nothing_until_it_is_trusted() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:touch one\"\n");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("is not trusted") && said.err.contains("roles.coder.agent"), "{said:?}");
    assert!(!fixture.path("one").exists());

    let said = fixture.planctl(&["trust", "."]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("one").exists() && !said.err.contains("trusted"), "{said:?}");
}

#[test]
fn p18_an_approval_is_of_the_configuration_that_its_ask_shows() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    let configured = |word: &str| {
        fixture.write("planctl.toml", &format!("[roles.coder]\nagent = \"exec:touch one {word}\"\n"));
        assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    };
    let handed_in = || fixture.planctl(&["plan", "run", "p.md", "--no-wait"]);
    configured("shown");
    assert_eq!(handed_in().code, 3);
    let first = fixture.ask();
    configured("other");
    let said = fixture.planctl(&["approvals", "show", &first]);
    assert!(said.out.contains("touch one shown"), "{said:?}");
    let said = fixture.planctl(&["approvals", "approve", &first]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("(roles.coder.agent)") && said.err.contains("planctl run p.md"), "{said:?}");
    // Nor does what was trusted since go unseen where the file's keys are not used any more.
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:touch one unread\"\n");
    assert_eq!(fixture.planctl(&["approvals", "approve", &first]).code, 5);

    configured("other");
    assert_eq!(handed_in().code, 3);
    let second = fixture.ask();
    assert_ne!(first, second, "what is handed in otherwise is asked anew");
    let said = fixture.planctl(&["approvals", "show", &second]);
    assert!(said.out.contains("touch one other"), "{said:?}");
    assert_eq!(handed_in().code, 3);
    assert_eq!(fixture.ask(), second, "and what is the same is not");
    // Another command at the prompt is as much another run.
    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", "touch one third"]);
    assert_eq!(said.code, 3, "{said:?}");
    let third = fixture.ask();
    assert!(fixture.planctl(&["approvals", "show", &third]).out.contains("touch one third"));
    assert_eq!(fixture.planctl(&["approvals", "approve", &third]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "resume", "@last", "--no-wait"]).code, 0);
    assert!(
        fixture.path("third").exists() && !fixture.path("shown").exists() && !fixture.path("other").exists()
    );
}

#[test]
fn p18_what_a_paused_run_goes_on_with_is_the_configuration_that_was_approved() {
    let fixture = Fixture::new();
    let text =
        plan("P", "5 minutes", &[("One", "test -e one", "escalate"), ("Two", "test -e no", "escalate")]);
    fixture.write("p.md", &text);
    let configured = |command: &str| {
        fixture.write("planctl.toml", &format!("[roles.coder]\nagent = \"exec:{command}\"\n"));
        assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    };
    configured("touch one");
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--approve", "--no-wait"]).code, 3);
    assert_eq!(fixture.planctl(&["approvals", "revise", &fixture.ask()]).code, 0);
    configured("touch two");
    fixture.write("p.md", &text.replace("test -e no", "test -e two"));
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.path("two").exists());
}

#[test]
fn trusting_a_folder_without_configuration_is_refused() {
    let said = Fixture::new().planctl(&["trust", "."]);
    assert_eq!(said.code, 4, "{said:?}");
}

#[test]
fn nothing_runs_below_the_isolation_that_is_demanded() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    fixture.write("planctl.toml", "isolation = \"require:2\"\n");
    let said = fixture.planctl_below_tier_2(&["plan", "run", "p.md", "--approve", "--exec", "touch one"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("require:2") && !fixture.path("one").exists(), "{said:?}");
}

/// Workers and contracts are confined, the verdict says by what, and the run's settings carry it.
#[test]
fn row_114_the_isolation_that_is_required_holds_and_stands_in_the_verdict() {
    let fixture = Fixture::new();
    let outside = fixture.home().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    let (by_worker, by_contract) = (outside.join("by-worker"), outside.join("by-contract"));
    let contract = format!("test -e one && ! touch {} && test -w . && mktemp", by_contract.display());
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", &contract, "escalate")]));
    fixture.write("planctl.toml", "isolation = \"require:1a\"\n");
    let exec = format!("touch one; touch {}; mktemp; true", by_worker.display());
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", &exec]);
    if said.code == 78 && said.err.contains("this host offers tier 0") {
        eprintln!("not run: this host offers no isolation");
        return;
    }
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.err.contains("isolation tier"), "the best tier of the host needs no word: {said:?}");
    assert!(!by_worker.exists() && !by_contract.exists() && fixture.path("one").exists());
    let status = fixture.planctl(&["plan", "status", "@last", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    let tier = status["steps"][0]["isolation"].as_str().unwrap();
    assert!(["1a", "1b"].contains(&tier), "{status}");
    let page = fixture.planctl(&["plan", "logs", "@last"]);
    assert!(page.out.contains(&format!("isolation tier {tier}")), "{page:?}");

    // A person may name one tier for everything that is asked here; the project's requirement counts all the same.
    let exact = |wanted: &str| {
        let mut command = fixture.command(&["config", "show"]);
        String::from_utf8(command.env("PLANCTL_ISOLATION", wanted).output().unwrap().stdout).unwrap()
    };
    assert!(exact("0").contains("isolation = \"require:1a\""), "{}", exact("0"));
    assert!(exact("1b").contains("isolation = \"1b\""), "{}", exact("1b"));
}

/// Worker and contract have users of their own, and their files are those of the workspace's owner.
#[test]
fn row_114_tier_2_is_taken_where_it_is_named() {
    let fixture = Fixture::new();
    let own = "grep -qx ' *0 *20[0-9]* *65536' /proc/self/uid_map";
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", &format!("{own} && test -O one"), "escalate")]));
    fixture.write("planctl.toml", "isolation = \"require:2\"\n");
    let exec = format!("{own} && touch one");
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", &exec]);
    if said.code == 78 && said.err.contains("this host offers tier") {
        eprintln!("not run: {}", said.err);
        return;
    }
    assert_eq!(said.code, 0, "{said:?}");
    let status = fixture.json(&["plan", "status", "@last", "--json"]);
    assert_eq!(status["steps"][0]["isolation"], "2");
    let owner = |name: &str| fixture.path(name).metadata().unwrap().uid();
    assert_eq!(owner("one"), owner(""));
    let found = fixture.planctl(&["doctor"]);
    assert!(found.out.contains("tier 2, the best that this host offers; wanted: require:2"), "{found:?}");
    // A project that demands less gets tier 1b, and is told of the other.
    fixture.write("planctl.toml", "isolation = \"require:1a\"\n");
    let found = fixture.planctl(&["doctor"]);
    assert!(found.out.contains("tier 1b, the best that is taken unnamed"), "{found:?}");
}

#[test]
fn what_a_role_may_reach_is_shown_approved_and_refused_where_it_is_not_held() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    let configure = |isolation: &str, network: &str| {
        let role = format!("[roles.coder]\nagent = \"exec:env | grep -i _proxy=http > one\"\n{network}\n");
        fixture.write("planctl.toml", &format!("isolation = \"{isolation}\"\n{role}"));
        assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    };
    let list = "network = [\"api.example.com\", \"*.example.org:8443\"]";
    for network in [list, "network = \"none\""] {
        configure("0", network);
        let said = fixture.planctl(&["plan", "run", "p.md", "--approve"]);
        assert_eq!(said.code, 78, "{said:?}");
        for words in [
            "`network` of [roles.coder] needs isolation tier 1b, and this is tier 0",
            "isolation = \"require:1b\"",
            "network = \"host\" in [roles.coder]",
        ] {
            assert!(said.err.contains(words), "{words}: {said:?}");
        }
        assert!(!fixture.path("one").exists());
    }
    let shown = "network: api.example.com, *.example.org:8443";
    configure("require:1b", list);
    let roles = fixture.json(&["roles", "ls", "--json"]);
    assert_eq!(roles["roles"][0]["network"], serde_json::json!(["api.example.com", "*.example.org:8443"]));
    assert!(fixture.planctl(&["roles", "ls"]).out.contains("api.example.com, *.example.org:8443"));
    let page = fixture.planctl(&["plan", "show", "p.md"]);
    assert!(page.out.contains(shown), "{page:?}");
    let worker = fixture.planctl(&["worker", "run", "--role", "coder", "--exec", "true", "--once"]);
    assert_eq!(worker.code, 78, "{worker:?}");
    assert!(worker.err.contains("`network` of [roles.coder]"), "{worker:?}");

    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait"]);
    if said.code == 78 && said.err.contains("this host offers tier") {
        eprintln!("not run: this host does not offer tier 1b");
        return;
    }
    let ask = fixture.planctl(&["approvals", "show", &fixture.ask()]);
    assert!(ask.out.contains(shown), "{ask:?}");
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "run", "p.md"]).code, 0);
    assert!(fixture.read("one").contains("HTTPS_PROXY=http://127.0.0.1:"), "{}", fixture.read("one"));
    // Another list is another approval.
    configure("require:1b", "network = [\"api.example.com\"]");
    let said = fixture.planctl(&["plan", "run", "p.md", "--again", "--no-wait"]);
    assert!(
        fixture.planctl(&["approvals", "show", &fixture.ask()]).out.contains("network: api.example.com"),
        "{said:?}"
    );
}

#[test]
fn row_101_a_database_that_cannot_be_used_is_told_without_its_password() {
    let fixture = Fixture::new();
    for (url, code) in [
        ("postgres://me:hunter2@127.0.0.1:1/none", 69),
        ("mysql://me:hunter2@127.0.0.1/none", 78),
        ("postgres://me:hunter2@no-such-host.invalid/none", 69),
    ] {
        let said = Said::from(fixture.command(&["ls"]).env("PLANCTL_DATABASE_URL", url).output().unwrap());
        assert_eq!(said.code, code, "{said:?}");
        assert!(!said.err.contains("hunter2") && said.err.starts_with("could not"), "{said:?}");
    }
}

#[test]
fn the_application_s_own_database_is_left_alone() {
    let fixture = Fixture::new();
    let said = Said::from(
        fixture
            .command(&["db", "url"])
            .env_remove("PLANCTL_DATABASE_URL")
            .env("DATABASE_URL", "postgres://app@127.0.0.1:1/live")
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains("live"), "{said:?}");
}

#[test]
fn the_database_in_use_is_told() {
    let fixture = Fixture::new();
    let view = fixture.json(&["db", "status", "--json"]);
    assert_eq!(view["kind"], "given");
    assert_eq!(view["is_up"], true);
    assert_eq!(view["schema"], view["schema_known"]);
    assert!(
        view["warnings"][0].as_str().unwrap().contains("fsync"),
        "the tests' own server has it off: {view}"
    );
}

#[test]
fn the_doctor_finds_what_is_missing() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "isolation = \"require:2\"\n[roles.reviewer]\ntimeout = \"1m\"\n");
    let said = fixture.planctl_below_tier_2(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let of = |check: &str| -> Vec<&str> {
        let checks = report["checks"].as_array().unwrap().iter().filter(|found| found["check"] == check);
        checks.map(|found| found["health"].as_str().unwrap()).collect()
    };
    assert_eq!(of("bash"), ["good"]);
    assert_eq!(of("isolation"), ["problem"]);
    assert_eq!(of("role"), ["warning"]);
    assert_eq!(of("child processes"), ["good"]);
}

#[test]
fn the_configuration_in_force_is_shown_as_a_file_says_it_with_the_origin_of_each_value() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[contracts]\ntimeout = \"1m\"\n[roles.coder]\nagent = \"exec:./x\"\n");
    let said = fixture.planctl(&["config", "show", "--origin"]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<String> =
        said.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "isolation = \"auto\" # default",
        "[contracts]",
        "timeout = \"1m\" # planctl.toml:2",
        "# planctl.toml is not trusted, so what it says here is ignored:",
        "# roles.coder.agent planctl.toml:4",
    ] {
        assert!(lines.iter().any(|said| said == line), "{line}\n{}", said.out);
    }
    assert!(said.out.contains("# PLANCTL_DATABASE_URL\n"), "{}", said.out);
    assert!(said.out.contains("read it, then type: planctl trust "), "{}", said.out);
    assert!(said.err.is_empty(), "{said:?}");

    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let shown = fixture.json(&["config", "show", "--json"]);
    let values = shown["values"].as_array().unwrap();
    let agent = values.iter().find(|value| value["key"] == "roles.coder.agent").unwrap();
    assert_eq!(agent["value"], "exec:./x");
    assert_eq!((&agent["origins"][0]["from"], &agent["origins"][0]["line"]), (&"file".into(), &4.into()));
    assert!(shown["ignored"].is_null());

    // The output is a configuration again, and the same.
    let before = fixture.planctl(&["config", "show"]);
    fixture.write("again.toml", &before.out);
    let again = fixture.planctl(&["config", "show", "--config", "again.toml"]);
    assert_eq!(again.out, before.out, "{again:?}");
    assert!(again.out.contains("[roles.coder]\nagent = \"exec:./x\"\n"), "{}", again.out);
}

#[test]
fn p73_a_price_that_planctl_knows_is_shown_with_its_date_and_source_where_a_role_counts_by_it() {
    let fixture = Fixture::new();
    fixture.write(
        "planctl.toml",
        "[roles.coder]\nagent = \"codex:-m gpt-5\"\n[roles.other]\nagent = \"claude\"\n",
    );
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let said = fixture.planctl(&["config", "show"]);
    assert!(said.out.contains("\n[prices.gpt-5]\n"), "{}", said.out);
    let line = said.out.lines().find(|line| line.starts_with("input = 1.25 ")).expect("the price of input");
    assert!(
        line.contains("# planctl's own price, as of 2026-") && line.contains(", from github.com/"),
        "{line}"
    );
    let shown = fixture.json(&["config", "show", "--json"]);
    let values = shown["values"].as_array().unwrap();
    let price = values.iter().find(|value| value["key"] == "prices.gpt-5.output").unwrap();
    assert_eq!((&price["value"], &price["origins"][0]["from"]), (&10.0.into(), &"price_table".into()));

    // A price that is set goes before it.
    fixture.write(
        "planctl.toml",
        "[roles.coder]\nagent = \"codex:-m gpt-5\"\n[prices.gpt-5]\ninput = 2\noutput = 3\n",
    );
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    let said = fixture.planctl(&["config", "show"]);
    assert!(said.out.contains("output = 3.0") && !said.out.contains("own price"), "{}", said.out);
}

#[test]
fn row_101_the_shown_configuration_has_no_password_and_a_flag_goes_before_the_variable() {
    let fixture = Fixture::new();
    let url = "postgres://me:hunter2@127.0.0.1:1/none";
    for words in [&["config", "show", "--origin"][..], &["config", "show", "--json"]] {
        let said = fixture.planctl(&[words, &["--database-url", url]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        assert!(!said.out.contains("hunter2") && said.out.contains("--database-url"), "{said:?}");
    }
}

#[test]
fn where_configuration_stands_is_told_also_when_it_is_wrong() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["config", "path"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains(".config/planctl/planctl.toml") && said.out.contains("not there"),
        "{}",
        said.out
    );
    assert!(said.out.contains("planctl init"), "{}", said.out);
    fixture.write("planctl.toml", "[roles.x.pace]\nalternat = \"human\"\n");
    let files = fixture.json(&["config", "path", "--json"])["files"].clone();
    assert_eq!((&files[1]["of"], &files[1]["trusted"]), (&"project".into(), &false.into()), "{files}");
    let said = fixture.planctl(&["config", "show"]);
    assert_eq!(said.code, 78, "{said:?}");
    assert!(
        said.err.contains("planctl.toml:2:1") && said.err.contains("did you mean `alternate`?"),
        "{said:?}"
    );
}

#[test]
fn sec_19_a_file_that_nobody_trusts_and_that_does_not_read_keeps_no_person_from_deciding() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Stuck", "5 minutes", &[("One", "test -e done", "retry(1), then escalate")]));
    assert_eq!(fixture.run("true").code, 3);
    // A worker leaves it, or a pull brings it.
    fixture.write("planctl.toml", "no_such_key = 1\n");
    for (words, code) in [
        (&["approvals"][..], 0),
        (&["approvals", "show", "2"], 0),
        (&["plan", "status", "@last"], 0),
        (&["plan", "logs", "@last"], 0),
        (&["plan", "cancel", "@last"], 0),
    ] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        assert!(said.err.contains("left aside, since nobody trusts it: could not "), "{words:?}: {said:?}");
    }
    // A run that would work under it is refused all the same.
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--exec", "true"]).code, 78);
}

#[test]
fn a_state_directory_that_is_another_one_in_each_folder_is_refused_with_the_one_that_is_meant() {
    let fixture = Fixture::new();
    for words in [&["ls"][..], &["daemon", "start"], &["guide", "status"]] {
        let said = fixture.command(words).env("PLANCTL_STATE_DIR", "state").output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(78), "{words:?}: {err}");
        assert!(err.contains("PLANCTL_STATE_DIR has to be an absolute path"), "{words:?}: {err}");
        let meant = format!("help: export PLANCTL_STATE_DIR={}\n", fixture.path("state").display());
        assert!(err.contains(&meant), "{words:?}: {err}");
    }
    assert!(!fixture.path("state").exists());
}
