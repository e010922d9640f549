//! Refuses what a worker and a contract may not do to planctl, with the real binary.

use std::os::unix::fs::PermissionsExt as _;

use crate::fixture::{Fixture, Said, plan};

/// The arguments of commands that need some; the others take none.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("trust", &["."]),
    ("plan approve", &["a.md"]),
    ("plan reject", &["a.md"]),
    ("plan run", &["a.md"]),
    ("run cancel", &["@last"]),
    ("run acknowledge", &["@last"]),
    ("plan review", &["a.md"]),
    ("plan draft", &["a goal"]),
    ("goal decompose", &["a goal"]),
    ("goal graph", &["a goal"]),
    ("goal resolve", &["a goal"]),
    ("goal verify", &["a goal"]),
    ("tool show", &["x", "y"]),
    ("tool call", &["x", "y"]),
    ("approvals edit", &["1"]),
    ("approvals approve", &["1"]),
    ("approvals reject", &["1"]),
    ("approvals retry", &["1"]),
    ("approvals skip", &["1"]),
    ("approvals waive", &["1"]),
    ("approvals cancel", &["1"]),
    ("approvals revise", &["1"]),
    ("approvals allow", &["1"]),
    ("approvals restore", &["1"]),
    ("approvals answer", &["1", "--note", "x"]),
    ("approvals choose", &["1", "x"]),
    ("approvals reassign", &["1", "x"]),
    ("approvals raise", &["1", "--cost", "1"]),
    ("worker pause", &["x"]),
    ("worker resume", &["x"]),
    ("token create", &["admin", "--name", "x"]),
    ("token revoke", &["x"]),
    ("db backup", &["x"]),
    ("db restore", &["x"]),
    ("db prune", &["--older-than", "1d"]),
    ("notify test", &[]),
    ("notify replay", &["1"]),
    ("library edit", &["x"]),
    ("library import", &["x"]),
    ("guard", &["true"]),
    ("guard rm", &["1"]),
    ("guide activate", &["suggest"]),
    ("guide on", &["x"]),
    ("guide install", &["claude"]),
    ("mcp install", &["claude"]),
];

#[test]
fn hole_5_every_command_that_is_a_persons_is_refused_to_a_worker() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]));
    let page = include_str!("../../../../docs/security.md");
    let (_, from) = page.split_once("<!-- person: begin -->").unwrap();
    let (listed, _) = from.split_once("<!-- person: end -->").unwrap();
    let commands: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        let more = ARGUMENTS.iter().find(|(words, _)| *words == command).map_or(&[][..], |(_, more)| more);
        let words: Vec<&str> = command.split(' ').chain(more.iter().copied()).collect();
        let said = Said::from(fixture.command(&words).env("PLANCTL_ITEM_ID", "x").output().unwrap());
        assert_eq!(said.code, 77, "{command}: {said:?}");
        let expected = format!("could not run `planctl {command}`: this is a worker's process");
        assert!(said.err.contains(&expected), "{command}: {said:?}");
    }
}

#[test]
fn hole_5_a_worker_opens_no_database_and_starts_no_run_by_itself() {
    let fixture = Fixture::new();
    let program = env!("CARGO_BIN_EXE_planctl");
    let state = fixture.state();
    // The variable that marks a worker is unset, and the second try has left its parent.
    fixture.write(
        "agent.sh",
        &format!(
            "unset PLANCTL_ITEM_ID\nexport PLANCTL_STATE_DIR={state}\n\
             {program} db psql -c \"copy (select 1) to program 'touch psql.ran'\" >psql.txt 2>&1\n\
             {program} daemon stop >stop.txt 2>&1\n\
             (setsid bash -c '{program} plan run other.md --exec true >run.txt 2>&1; touch run.done' &)\n\
             for i in $(seq 600); do [ -e run.done ] && break; sleep 0.1; done\n\
             touch a\n",
            state = state.display()
        ),
    );
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]));
    fixture.write("other.md", &plan("other", "max 1k tokens", &[("b", "test -e b", "abort")]));
    let said = fixture.planctl(&["plan", "run", "a.md", "--approve", "--exec", "bash agent.sh"]);
    assert_eq!(said.code, 0, "{said:?}");
    for file in ["psql.txt", "stop.txt", "run.txt"] {
        assert!(fixture.read(file).contains("this is a worker's process"), "{file}: {}", fixture.read(file));
    }
    assert!(!fixture.path("psql.ran").exists());
}

#[test]
fn hole_4_a_glob_beyond_the_limits_is_a_finding_wherever_it_stands() {
    let deep = format!("{}x{}", "{a,".repeat(220), "}".repeat(220));
    let deeper = format!("{}x{}", "{a,".repeat(60_000), "}".repeat(60_000));
    for glob in [&deep, &deeper] {
        let fixture = Fixture::new();
        let text = plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]);
        fixture
            .write("a.md", &text.replace("**contract:**", &format!("**protects:** {glob}\n\n**contract:**")));
        let said = fixture.planctl(&["plan", "verify", "a.md"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.out.contains("is not a valid glob") || said.err.contains("is not a valid glob"),
            "{said:?}"
        );
        let subscribed = format!("**subscriptions:**\n- file:{glob}\n\n**contract:**");
        fixture.write("a.md", &text.replace("**contract:**", &subscribed));
        let said = fixture.planctl(&["plan", "verify", "a.md"]);
        assert_eq!(said.code, 1, "{said:?}");
        // A configuration that nobody has trusted.
        fixture.write("planctl.toml", &format!("[roles.coder]\nplans = [\"{glob}\"]\n"));
        let said = fixture.planctl(&["config", "show"]);
        assert_eq!(said.code, 78, "{said:?}");
        assert!(said.err.contains("is not a glob: "), "{said:?}");
        assert!(said.err.len() < 2_000, "the message does not repeat all of it: {}", said.err.len());
    }
}

#[test]
fn a_comma_within_braces_is_part_of_a_protected_glob() {
    let fixture = Fixture::new();
    let text = plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]);
    fixture
        .write("a.md", &text.replace("**contract:**", "**protects:** {tests,lib}/**, x.sh\n\n**contract:**"));
    let shown = fixture.planctl(&["plan", "show", "a.md"]);
    assert!(shown.out.contains("protected  x.sh, {tests,lib}/**\n"), "{shown:?}");
}

#[test]
fn hole_7_commands_that_were_changed_by_sql_start_nothing_and_audit_names_the_row() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "retry(1), then escalate")]));
    fixture.write("agent.sh", "true\n");
    let said = fixture.planctl(&["plan", "run", "a.md", "--approve", "--no-wait", "--exec", "bash agent.sh"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    fixture
        .sql("update runs set settings = replace(settings::text, 'bash agent.sh', 'touch forged a')::json");
    let audit = fixture.planctl(&["audit", "@last"]);
    assert_eq!(audit.code, 1, "{audit:?}");
    assert!(audit.out.contains("the column `settings` of this run's row in `runs`"), "{audit:?}");
    let said = fixture.planctl(&["approvals", "retry", &fixture.ask()]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("is not what was approved"), "{said:?}");
    assert!(!fixture.path("forged").exists(), "what was put into the database never ran");
    // Neither does one who changes what was sealed with it.
    let refused = fixture.psql().args(["-c", "update run_settings set digest = ''"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("history is only ever added to"),
        "{refused:?}"
    );
    fixture.sql(
        "set session_replication_role = replica; update run_settings s set digest = sha256(convert_to(r.settings::text, \
         'UTF8')) from runs r where r.id = s.run",
    );
    let audit = fixture.planctl(&["audit", "@last"]);
    assert!(
        audit.out.contains("row 1 of run_settings") || audit.out.contains("row 2 of run_settings"),
        "{audit:?}"
    );
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert!(said.err.contains("of run_settings for this run was changed beside planctl"), "{said:?}");
    assert!(!fixture.path("forged").exists());
}

#[test]
fn hole_7_a_run_that_is_taken_up_with_another_command_goes_on() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "retry(1), then escalate")]));
    let said = fixture.planctl(&["plan", "run", "a.md", "--approve", "--no-wait", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", "touch a"]);
    assert_eq!(said.code, 0, "{said:?}");
    let audit = fixture.planctl(&["audit", "@last"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

/// Acts as a worker that looks for the token of a person in every process.
const SEARCH: &str = "for pid in /proc/[0-9]*; do\n\
     grep -qa canary-4711 $pid/environ 2>/dev/null && echo $pid $(tr '\\0' ' ' <$pid/cmdline) >>found\n\
     done\nhead -c 1 /proc/$PPID/environ >/dev/null 2>&1; touch a\n";

#[test]
fn hole_14_no_process_of_planctl_shows_its_environment() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]));
    fixture.write("agent.sh", SEARCH);
    let mut command = fixture.command(&["plan", "run", "a.md", "--approve", "--exec", "bash agent.sh"]);
    let said = Said::from(
        command.env("PLANCTL_TOKEN", "canary-4711").env("OPERATOR", "canary-4711").output().unwrap(),
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!fixture.path("found").exists(), "{}", fixture.read("found"));
}

#[test]
fn hole_14_an_ordinary_user_runs_plans_and_its_processes_are_closed_to_their_workers() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("planctl");
    std::fs::copy(env!("CARGO_BIN_EXE_planctl"), &program).unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(work.join("a.md"), plan("a", "max 1k tokens", &[("a", "test -e a", "abort")])).unwrap();
    // The helper is the worker's parent, planctl the helper's.
    let search = format!(
        "{SEARCH}planctl=$(awk '{{print $4}}' /proc/$PPID/stat); planctl=$(awk '{{print $4}}' /proc/$planctl/stat)\n\
         for pid in $(pgrep -x planctl); do cat /proc/$pid/environ >/dev/null 2>>closed || true; done\n"
    );
    std::fs::write(work.join("agent.sh"), search).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
        .arg(&program)
        .args(["plan", "run", "a.md", "--approve", "--exec", "bash agent.sh"])
        .current_dir(&work)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &work)
        .env("PLANCTL_STATE_DIR", folder.path().join("state"))
        .env("PLANCTL_TOKEN", "canary-4711")
        .output()
        .unwrap();
    let said = Said::from(output);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!work.join("found").exists(), "{:?}", std::fs::read_to_string(work.join("found")));
    let closed = std::fs::read_to_string(work.join("closed")).unwrap_or_default();
    assert!(closed.contains("Permission denied"), "planctl's own environ is closed: {closed:?}");
}

#[test]
fn hole_15_a_password_in_a_daemons_address_is_not_shown() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["--server", "http://ann:hunter2@127.0.0.1:1", "ls"]);
    assert_eq!(said.code, 69, "{said:?}");
    assert!(said.err.contains("http://…@127.0.0.1:1") && !said.err.contains("hunter2"), "{said:?}");
}

/// Asks the private Postgres what each role and each user of this machine may do; `$1` is its socket's folder.
const PROBE: &str = "unset PGOPTIONS\n\
     as() { psql \"postgresql:///planctl?host=$1&port=5432&user=$2\" -qAt -c \"$3\" 2>&1 | head -1; }\n\
     for sql in 'update history set seq = 0' 'delete from history' 'update run_settings set number = 9' \\\n\
       'truncate history' \"copy (select 1) to program 'touch /tmp/planctl-probe'\" 'alter table history disable trigger all' \\\n\
       'set session_replication_role = replica' 'drop table history' 'create role x superuser'; do\n\
     echo \"app: $(as $1 planctl_app \"$sql\")\"; echo \"read: $(as $1 planctl_read \"$sql\")\"; done\n\
     echo \"app may: $(as $1 planctl_app 'update runs set number = number')\"\n\
     echo \"read may not: $(as $1 planctl_read 'update runs set number = number')\"\n\
     for role in planctl planctl_app planctl_read; do\n\
     echo \"postgres as $role: $(setpriv --reuid=postgres --regid=postgres --clear-groups psql \"postgresql:///planctl?host=$1&port=5432&user=$role\" -c 'select 1' 2>&1 | tail -1)\"; done\n";

#[test]
fn holes_5_7_the_private_postgres_has_roles_and_lets_in_nobody_else() {
    let fixture = Fixture::new();
    let private = |words: &[&str]| {
        Said::from(fixture.command(words).env_remove("PLANCTL_DATABASE_URL").output().unwrap())
    };
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]));
    let said = private(&["plan", "run", "a.md", "--approve", "--exec", "touch a"]);
    assert_eq!(said.code, 0, "{said:?}");
    let read = private(&["db", "psql", "-Atc", "select count(*) > 0 from history"]);
    assert_eq!((read.code, read.out.trim()), (0, "t"), "{read:?}");
    for sql in ["update runs set number = number", "copy (select 1) to program 'true'"] {
        let refused = private(&["db", "psql", "-c", sql]);
        let reasons = ["permission denied", "read-only transaction", "must be superuser"];
        let is_refused = reasons.iter().any(|reason| refused.err.contains(reason));
        assert!(refused.code != 0 && is_refused, "{sql}: {refused:?}");
    }
    assert_eq!(private(&["db", "psql", "--owner", "-c", "update runs set number = number"]).code, 0);
    // With one server up, every role and the user that runs it for root are tried.
    fixture.write("probe.sh", PROBE);
    let socket = fixture.state().join("pg/run");
    let probe = format!("\\! PATH=/usr/lib/postgresql/15/bin:$PATH bash probe.sh {}", socket.display());
    let probed = private(&["db", "psql", "-c", &probe]);
    let denied = probed.out.lines().filter(|line| line.starts_with("app: ") || line.starts_with("read: "));
    assert_eq!(denied.clone().count(), 18, "{probed:?}");
    for line in denied {
        assert!(line.contains("ERROR"), "{line}: {probed:?}");
    }
    assert!(probed.out.contains("app may: \n"), "{probed:?}");
    assert!(probed.out.contains("read may not: ERROR:  permission denied"), "{probed:?}");
    if rustix::process::geteuid().is_root() {
        let let_in = probed.out.lines().filter(|line| line.starts_with("postgres as "));
        for line in let_in {
            assert!(line.contains("Peer authentication failed"), "{line}: {probed:?}");
        }
    }
    let doctor = private(&["doctor"]);
    assert!(doctor.out.contains("planctl_app: changes no history, starts no programs"), "{doctor:?}");
    // One that somebody else runs may have a role with more rights, which is said.
    let doctor = fixture.planctl(&["doctor"]);
    assert!(doctor.out.contains("may do everything, as a superuser, change history"), "{doctor:?}");
}

#[test]
fn hole_5_what_postgres_starts_counts_as_a_worker_also_when_its_parents_are_gone() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("planctl");
    std::fs::copy(env!("CARGO_BIN_EXE_planctl"), &program).unwrap();
    let late = folder.path().join("late.sh");
    let text = format!(
        "cd {folder}\nwhile [ ! -e go ]; do sleep 0.05; done\n\
         HOME={folder} PLANCTL_STATE_DIR={folder}/state {program} approvals waive 2 >said 2>&1; echo $? >code.tmp; mv code.tmp code\n",
        folder = folder.path().display(),
        program = program.display()
    );
    std::fs::write(&late, text).unwrap();
    let start = format!("copy (select 1) to program 'setsid bash {} >/dev/null 2>&1 &'", late.display());
    let wait = format!(
        "\\! touch {folder}/go; for i in $(seq 600); do [ -e {folder}/code ] && break; sleep 0.1; done",
        folder = folder.path().display()
    );
    let words = ["db", "psql", "--owner", "-c", start.as_str(), "-c", wait.as_str()];
    let said = Said::from(fixture.command(&words).env_remove("PLANCTL_DATABASE_URL").output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    let told = std::fs::read_to_string(folder.path().join("said")).unwrap_or_default();
    assert!(told.contains("this is a worker's process"), "{told}: {said:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("code")).unwrap().trim(), "77");
}

#[test]
fn as_root_a_command_that_starts_work_says_once_what_that_means() {
    let fixture = Fixture::new();
    fixture.write("a.md", &plan("a", "max 1k tokens", &[("a", "test -e a", "abort")]));
    let said = fixture.planctl(&["plan", "run", "a.md", "--approve", "--exec", "touch a"]);
    let expected = usize::from(rustix::process::geteuid().is_root());
    assert_eq!(said.err.matches("warning: planctl runs as root").count(), expected, "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "status", "@last"]).err.matches("runs as root").count(), 0);
}

#[test]
fn a_source_text_that_was_changed_by_sql_is_shown_to_nobody_and_audit_names_it() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("P", "5 minutes", &[("One", "test -e one", "escalate")]));
    assert_eq!(fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", "touch one"]).code, 3);
    assert_eq!(fixture.planctl(&["audit", "@last"]).code, 0);
    let ask = fixture.ask();
    fixture.sql("update revisions set source = replace(source, 'test -e one', 'test -e two')");
    let audit = fixture.planctl(&["audit", "@last"]);
    assert_eq!(audit.code, 1, "{audit:?}");
    assert!(audit.out.contains("I12: the source text of revision sha256:"), "{audit:?}");
    // A person who approves must see the text whose graph runs.
    let shown = fixture.planctl(&["approvals", "show", &ask]);
    assert!(shown.code != 0 && !shown.out.contains("test -e two"), "{shown:?}");
}
