//! Flags, help, streams and exit codes.

use std::os::fd::OwnedFd;

use crate::fixture::{Fixture, Said, plan};

#[test]
fn row_93_a_wrong_word_is_named_with_the_one_that_was_meant() {
    let fixture = Fixture::new();
    for (words, meant) in [
        (vec!["plan", "verfy", "x.md"], "verify"),
        (vec!["plan", "run", "--aprove", "x.md"], "--approve"),
        (vec!["plan", "run"], "planctl run FILE"),
        (vec!["nonsense"], "Usage"),
    ] {
        let said = fixture.planctl(&words);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(meant) && said.out.is_empty(), "{said:?}");
    }
}

#[test]
fn row_94_flags_that_exclude_each_other_are_both_named() {
    let said = Fixture::new().planctl(&["ls", "--json", "--quiet"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--json") && said.err.contains("--quiet"), "{said:?}");
}

#[test]
fn a_format_that_a_command_does_not_know_is_refused_with_those_it_knows() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["plan", "show", "x.md", "--format", "sarif"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("human, json"), "{said:?}");
    let picture = fixture.planctl(&["graph", "render", "x.md", "--format", "png"]);
    assert!(picture.code == 2 && !picture.err.contains("similar"), "nobody means `long`: {picture:?}");
    let slip = fixture.planctl(&["graph", "render", "x.md", "--format", "mermiad"]);
    assert!(slip.code == 2 && slip.err.contains("similar value exists: 'mermaid'"), "{slip:?}");
    for words in [
        &["new", "--list", "--json"][..],
        &["new", "x", "--json"],
        &["help", "exit-codes", "--json"],
        &["completions", "bash", "--json"],
        &["man", "pages", "--json"],
        &["trust", ".", "--json"],
        &["guard", "true", "--json"],
        &["demo", "--json"],
        &["db", "url", "--json"],
        &["library", "new", "x", "--json"],
        &["plan", "expand", "p.md", "--json"],
        &["daemon", "install-service", "--print", "--json"],
    ] {
        let said = Said::from(fixture.command(words).output().unwrap());
        assert!(said.code == 2 && said.out.is_empty(), "{words:?}: {said:?}");
        assert!(said.err.contains("does not answer as json"), "{words:?}: {said:?}");
    }
    assert!(!fixture.path("plans").exists() && !fixture.path("pages").exists());
}

#[test]
fn the_usual_format_is_a_variable_and_a_flag_goes_before_it() {
    let fixture = Fixture::new();
    let usual = |words: &[&str], format: &str| {
        Said::from(fixture.command(words).env("PLANCTL_FORMAT", format).output().unwrap()).out
    };
    assert!(usual(&["version"], "json").starts_with('{'));
    assert!(usual(&["version", "--format", "human"], "json").starts_with("planctl "));
    assert!(usual(&["version", "--json"], "human").starts_with('{'));
    assert!(usual(&["version"], "jsonl").starts_with("planctl "), "what a command does not know is no error");
}

#[test]
fn row_107_without_home_the_password_file_tells_where_it_is() {
    let fixture = Fixture::new();
    let homeless = |words: &[&str]| {
        let mut command = fixture.command(words);
        Said::from(command.env_remove("HOME").env_remove("PLANCTL_STATE_DIR").output().unwrap())
    };
    assert_eq!(homeless(&["version"]).code, 0);
    let said = homeless(&["ls"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.starts_with("no runs in ") && said.out.ends_with(" or in any other folder\n"),
        "{said:?}"
    );
    // Workers get it, and credentials are hidden by it at isolation tiers 1a and 1b.
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -s told", "escalate")]));
    let words = ["run", "p.md", "--approve", "--exec", "printf %s \"$HOME\" > told"];
    let mut run = fixture.command(&words);
    let said = run.env_remove("HOME").env("XDG_CONFIG_HOME", fixture.home()).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let mut tilde = std::process::Command::new("/bin/bash");
    let home = tilde.args(["-c", "printf %s ~"]).env_remove("HOME").output().unwrap().stdout;
    assert_eq!(fixture.read("told").as_bytes(), home);
}

#[test]
fn row_96_a_reader_that_goes_away_is_no_failure() {
    let fixture = Fixture::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = fixture.command(&["completions", "bash"]).stdout(OwnedFd::from(writer)).output().unwrap();
    let said = Said::from(output);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
}

#[test]
fn row_96_a_command_that_follows_ends_once_nobody_reads_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Waits", "5 minutes", &[("Wait", "test -e never", "escalate")]));
    let run = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(run.code, 3, "{run:?}");
    for words in [&["events", "-f"][..], &["logs", "-f"], &["watch", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = fixture.command(words).stdout(OwnedFd::from(writer)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
}

#[test]
fn row_97_a_full_disk_is_said_and_fails() {
    let fixture = Fixture::new();
    for words in [&["version"][..], &["help", "exit-codes"], &["plan", "run", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let said = Said::from(fixture.command(words).stdout(full).output().unwrap());
        assert_eq!(said.code, 75, "{words:?} {said:?}");
    }
}

#[test]
fn row_109_a_filter_that_cannot_be_read_is_said_once_and_left_aside() {
    let fixture = Fixture::new();
    let said = Said::from(fixture.command(&["version"]).env("PLANCTL_LOG", "a=b=c").output().unwrap());
    assert_eq!(said.code, 0);
    assert_eq!(said.err.matches("PLANCTL_LOG").count(), 1, "{said:?}");
}

#[test]
fn the_exit_codes_are_told() {
    let said = Fixture::new().planctl(&["help", "exit-codes"]);
    assert_eq!(said.code, 0);
    for line in [
        "\n0     yes: verified",
        "\n3     waiting for a human",
        "\n6     stopped by budget",
        "\n130   interrupted",
    ] {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
    }
}

#[test]
fn every_command_has_a_help_text() {
    let fixture = Fixture::new();
    let root = fixture.planctl(&["help"]);
    assert!(root.out.contains("\nExamples:\n") && root.out.contains("\nRun it:\n"), "{}", root.out);
    for words in ["plan run", "plan verify", "approvals", "approvals raise", "db", "events", "demo"] {
        let mut words: Vec<&str> = words.split(' ').collect();
        words.insert(0, "help");
        let said = fixture.planctl(&words);
        assert_eq!(said.code, 0, "{words:?}");
        assert!(said.out.contains("Usage:"), "{}", said.out);
    }
    assert_eq!(fixture.planctl(&["help", "nothing"]).code, 4);
}

#[test]
fn completions_and_version_need_no_database_and_no_state() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["completions", "zsh"]);
    assert!(said.out.contains("#compdef planctl"), "{said:?}");
    assert_eq!(fixture.json(&["version", "--json"])["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(std::fs::read_dir(fixture.state()).unwrap().count(), 0);
}

#[test]
fn there_is_a_man_page_for_each_command() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["man", "pages"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.read("pages/planctl.1").contains("planctl\\-plan"), "it names its subcommands");
    let page = fixture.read("pages/planctl-plan-run.1");
    assert!(page.contains(".TH planctl-plan-run 1") && page.contains("approve"), "{page}");
    assert!(page.contains("Answer with JSON"), "it describes the options of every command: {page}");
    assert!(page.contains(".SH EXAMPLES\n.nf\n\\&  planctl run plans/fix.md "), "{page}");
    // A verb that is reached with its noun and without it has one page.
    for (alias, page) in [("plan-verify", "verify"), ("plan-logs", "logs"), ("run-logs", "logs")] {
        let told = fixture.read(&format!("pages/planctl-{alias}.1"));
        assert!(told.is_empty() || told == format!(".so man1/planctl-{page}.1\n"), "{alias}: {told}");
        assert!(fixture.read(&format!("pages/planctl-{page}.1")).contains(".TH"), "{page}");
    }
    for page in std::fs::read_dir(fixture.path("pages")).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let other = text.strip_prefix(".so man1/").map(|other| fixture.path("pages").join(other.trim_end()));
        assert!(other.is_none_or(|other| other.exists()), "{text}");
    }
    let mut pages: Vec<String> = std::fs::read_dir(fixture.path("pages"))
        .unwrap()
        .map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap())
        .filter(|page| !page.starts_with(".so "))
        .map(|page| page.lines().filter(|line| !line.contains("planctl")).collect())
        .collect();
    let count = pages.len();
    pages.sort();
    pages.dedup();
    assert_eq!(pages.len(), count, "no page is written twice");
    fixture.write("file", "");
    let said = fixture.planctl(&["man", "file/pages"]);
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn p_28_a34_nothing_is_decided_inside_a_worker() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    for words in [
        &["plan", "approve", "p.md"][..],
        &["plan", "reject", "p.md"],
        &["plan", "run", "p.md", "--approve", "--exec", "touch one"],
        &["plan", "cancel", "@last"],
        &["approvals", "approve", "1"],
        &["approvals", "retry", "1"],
        &["approvals", "waive", "1", "--note", "x"],
        &["approvals", "raise", "1", "--tokens", "1k"],
        &["trust", "."],
        &["db", "reset", "--yes"],
        &["db", "url"],
        &["db", "psql", "--", "-c", "select 1"],
        &["db", "psql", "--owner", "--", "-c", "select 1"],
        &["plan", "resume", "@last"],
    ] {
        let said = Said::from(fixture.command(words).env("PLANCTL_ITEM_ID", "x").output().unwrap());
        assert_eq!(said.code, 77, "{words:?} {said:?}");
        assert!(said.err.contains("a person decides"), "{said:?}");
    }
}

#[test]
fn p12_without_a_daemon_a_shortage_of_the_database_is_told_within_seconds() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "true", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "p.md", "--no-wait", "--exec", "true"]).code, 3);
    for (code, sentence) in [
        ("53100", "the disk of the database is full"),
        ("53200", "the database is out of memory"),
        ("53400", "the database has reached a limit of its settings"),
    ] {
        fixture.sql(&format!(
            "create or replace function lacks() returns trigger language plpgsql as $$ begin \
             raise exception 'the words of the server' using errcode = '{code}'; end $$; \
             create or replace trigger lacks before insert on history for each row execute function lacks()"
        ));
        let asked = std::time::Instant::now();
        let said = fixture.planctl(&["cancel", "p-1"]);
        assert!(said.code == 69 && said.err.contains(sentence), "{said:?}");
        // A statement is tried for 60 s.
        assert!(asked.elapsed().as_secs() < 30, "{said:?}");
    }
}

#[test]
fn a_run_whose_plan_could_not_be_handed_in_is_taken_up_by_the_command_that_its_status_names() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "true", "escalate")]));
    assert_eq!(fixture.planctl(&["ls"]).code, 0);
    fixture.sql(
        "create function lacks() returns trigger language plpgsql as $$ begin \
         raise exception 'out of memory' using errcode = '53200'; end $$; \
         create trigger lacks before insert on history for each row execute function lacks()",
    );
    assert_eq!(fixture.planctl(&["run", "p.md", "--no-wait", "--exec", "true"]).code, 69);
    fixture.sql("drop trigger lacks on history");
    let said = fixture.planctl(&["status", "p-1"]);
    assert!(said.out.contains("next: planctl run p.md\n"), "{said:?}");
    let said = fixture.planctl(&["run", "p.md", "--approve", "--exec", "true"]);
    assert!(said.code == 0 && said.out.contains("p-1 done"), "{said:?}");
}

#[test]
fn row_98_without_a_terminal_a_confirmation_is_not_asked_for_but_refused() {
    let fixture = Fixture::new();
    let said =
        Said::from(fixture.command(&["db", "reset"]).env_remove("PLANCTL_DATABASE_URL").output().unwrap());
    assert_eq!(said.code, 2);
    assert!(said.err.contains("--yes"), "{said:?}");
}

#[test]
fn what_is_not_there_is_not_found() {
    let fixture = Fixture::new();
    for words in [
        &["plan", "status", "nothing-1"][..],
        &["plan", "watch", "@last"],
        &["plan", "logs", "@last"],
        &["approvals", "show", "99"],
        &["approvals", "retry", "99"],
        &["plan", "verify", "nothing.md"],
        &["plan", "run", "nothing.md"],
        &["why", "nothing", "1"],
        &["-C", "/nothing", "ls"],
    ] {
        let said = fixture.planctl(words);
        assert_eq!(said.code, 4, "{words:?} {said:?}");
        assert!(said.err.starts_with("could not") || said.err.contains("\ncould not"), "{said:?}");
    }
}

#[test]
fn a_revision_that_is_not_there_is_told_with_those_that_are() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "true", "escalate")]));
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--simulate"]).code, 0);
    for word in ["zzz", "c9", "fix-3"] {
        let said = fixture.planctl(&["diff", "p.md", "--since", word]);
        let sentence = format!("could not find a run or a revision `{word}`; kept are ");
        assert!(said.code == 4 && said.err.contains(&sentence), "{said:?}");
        assert!(said.err.ends_with("next: planctl show p.md\n"), "{said:?}");
    }
}

#[test]
fn an_empty_word_names_nothing_and_no_worker() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "true", "escalate")]));
    for words in [
        &["status", ""][..],
        &["show", ""],
        &["approve", ""],
        &["approvals", "--run", ""],
        &["topic", "post", "", "--note", "x"],
        &["token", "revoke", ""],
        &["worker", "pause", ""],
        &["new", "q.md", "--owner", ""],
        &["run", "p.md", "--approve", "--no-wait", "--exec", ""],
        &["worker", "test", "--exec", ""],
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 2 && said.err.contains("a value is required for"), "{words:?}: {said:?}");
    }
    let said = fixture.planctl(&["run", "p.md", "--approve", "--no-wait", "--agent", "exec:"]);
    assert!(said.code == 2 && said.err.contains("exec:COMMAND"), "{said:?}");
    assert_eq!(fixture.planctl(&["approve", "p.md", "--note", ""]).code, 0, "a note may be empty");
}

#[test]
fn a_word_that_begins_with_a_dash_is_a_number_or_is_told_how_it_is_passed() {
    let fixture = Fixture::new();
    for (words, flag) in [
        (&["logs", "--attempt", "-1"][..], "'--attempt <ATTEMPT>'"),
        (&["events", "-n", "-1"], "'--tail <EVENTS>'"),
        (&["events", "-n", "0"], "'--tail <EVENTS>'"),
        (&["approvals", "raise", "1", "--cost", "-1"], "'--cost <USD>'"),
        (&["approvals", "show", "-1"], "'[ID]'"),
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 2 && said.err.contains("invalid value") && said.err.contains(flag), "{said:?}");
        assert!(!said.err.contains("tip:"), "{said:?}");
    }
    for (words, tip) in [
        (&["new", "-x.md"][..], "a dash: -- -x.md\n"),
        (&["topic", "post", "-a", "--note", "y"], "a dash: -- -a\n"),
        (&["approve", "1", "--note", "-is read"], "a dash: --note='-is read'\n"),
        (&["approve", "1", "--note", "-read"], "a dash: --note=-read\n"),
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 2 && said.err.contains(tip), "{tip}: {said:?}");
    }
}

#[test]
fn a_hook_that_is_typed_wrong_and_its_help_are_answered() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["hook", "--help"]);
    assert!(said.code == 0 && said.out.contains("planctl hook"), "{said:?}");
    for (words, expected) in [
        (&["hook"][..], "<AGENT>"),
        (&["hook", "claude"], "<EVENT>"),
        (&["hook", "nobody", "stop"], "possible values"),
        (&["hook", "claude", "stop", "now"], "unexpected argument 'now'"),
    ] {
        let said = fixture.planctl(words);
        assert!(said.code == 2 && said.err.contains(expected), "{words:?}: {said:?}");
    }
}

#[test]
fn the_exit_code_of_a_run_needs_the_run() {
    let said = Fixture::new().planctl(&["status", "--exit-code"]);
    assert!(said.code == 2 && said.err.contains("<RUN>"), "{said:?}");
}

#[test]
fn findings_never_stand_where_json_was_asked_for() {
    let fixture = Fixture::new();
    fixture.write("p.md", "# Nothing\n");
    for words in [&["show", "p.md", "--json"][..], &["run", "-n", "p.md", "--json"]] {
        let said = fixture.planctl(words);
        assert!(said.code == 1 && said.out.is_empty() && said.err.contains("P0"), "{words:?}: {said:?}");
    }
}
