//! `plan new` and `plan expand`: the files they write, their refusals, the next command they name.

use serde_json::Value;

use crate::fixture::{Fixture, plan};

fn templated() -> String {
    plan(
        "Three files",
        "90k tokens, $1.00, 5 minutes",
        &[
            ("First", "test -s one.txt", "retry(2), then escalate"),
            ("Write {item}", "test -s {item}", "abort"),
        ],
    )
    .replace("### 2. ", "### 2–N. ")
}

#[test]
fn a_new_plan_is_verified_as_it_stands_and_is_never_written_over() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["plan", "new"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "wrote plans/say-hello.md\nnext: planctl verify plans/say-hello.md\n");
    assert!(fixture.read("plans/say-hello.md").contains("owner: ann\n"));
    assert_eq!(fixture.planctl(&["plan", "verify", "plans/say-hello.md"]).code, 0);

    let again = fixture.planctl(&["plan", "new"]);
    assert_eq!(again.code, 5, "{again:?}");
    assert!(again.err.contains("is there already; nothing was written") && again.err.contains("--force"));
    let forced = fixture.planctl(&["plan", "new", "plans/say-hello.md", "--from", "review", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(fixture.read("plans/say-hello.md").contains("# Say hello\n\n**Context:** Say here which change"));
}

#[test]
fn a_new_plan_is_written_also_where_git_s_own_folder_is_a_mount_of_its_own() {
    let fixture = Fixture::new();
    fixture.shell("git init -q .");
    let apart = "unshare --map-root-user --mount bash -ec 'mount --bind .git .git;";
    if fixture.shell(&format!("{apart}'")).code != 0 {
        eprintln!("not tried: nothing can be mounted here");
        return;
    }
    let said = fixture.shell(&format!("export -f planctl; {apart} planctl new plans/x.md'"));
    assert!(said.code == 0 && fixture.path("plans/x.md").is_file(), "{said:?}");
}

#[test]
fn a_new_plan_names_the_input_that_is_to_be_written_before_its_run() {
    let fixture = Fixture::new();
    for file in ["fix.md", "fix.dot"] {
        let said = fixture.planctl(&["new", file, "--from", "bugfix_workflow"]);
        let input = "which is not there and no earlier step makes: write it before the run";
        let ending = format!("`BUG.md`, {input}\nnext: planctl verify {file}\n");
        assert!(said.out.starts_with(&format!("wrote {file}\n")) && said.out.ends_with(&ending), "{said:?}");
        assert_eq!(said.out.lines().count(), 3, "{said:?}");
    }
    fixture.write("BUG.md", "It fails.\n");
    let said = fixture.planctl(&["new", "again.md", "--from", "bugfix_workflow"]);
    assert_eq!(said.out, "wrote again.md\nnext: planctl verify again.md\n");
}

#[test]
fn a_plan_of_the_library_and_every_template_verify_where_only_one_role_is_configured() {
    let fixture = Fixture::new();
    assert_eq!(fixture.planctl(&["init"]).code, 0);
    let list = fixture.planctl(&["plan", "new", "--list"]);
    assert!(list.out.contains("dependency_update") && list.out.contains("(reads deps.lock)"), "{}", list.out);
    for name in ["bugfix", "bugfix_workflow"] {
        let file = format!("plans/{name}.md");
        let said = fixture.planctl(&["plan", "new", &file, "--from", name]);
        assert_eq!(said.code, 0, "{said:?}");
        let verified = fixture.planctl(&["plan", "verify", &file]);
        assert!(!verified.out.contains("error[P401]"), "{}", verified.out);
        assert!(
            verified.out.contains("warning[P401]: no agent serves the role `reviewer`"),
            "{}",
            verified.out
        );
    }
}

#[test]
fn a_new_plan_begins_from_a_template_or_from_a_plan() {
    let fixture = Fixture::new();
    let list = fixture.planctl(&["plan", "new", "--list"]);
    for name in ["hello", "bugfix", "refactor", "review"] {
        assert!(list.out.contains(name), "{}", list.out);
        let title = format!("Try {name}");
        let said = fixture.planctl(&["plan", "new", "--from", name, "--title", &title, "--owner", "bob"]);
        assert_eq!(said.code, 0, "{said:?}");
        let file = format!("plans/try-{name}.md");
        assert!(fixture.read(&file).contains(&format!("owner: bob\n---\n\n# Try {name}\n")));
        assert_eq!(fixture.planctl(&["plan", "verify", &file]).code, 0);
    }
    fixture.write(
        "ran.md",
        &templated().replace("status: draft", "status: done").replace("### 1. ", "### 1. ✅ "),
    );
    assert_eq!(fixture.planctl(&["plan", "new", "next.md", "--from", "ran.md"]).code, 0);
    assert_eq!(fixture.read("next.md"), templated().replace("# Three files", "# Next"));
    let said = fixture.planctl(&["plan", "new", "--from", "bugfx"]);
    assert_eq!(said.code, 4);
    assert!(said.err.contains("did you mean `bugfix`?"), "{said:?}");
}

// Markdown was written into files of any name, and the next command failed.
#[test]
fn a_plan_is_written_in_the_language_that_its_file_is_named_for() {
    let fixture = Fixture::new();
    fixture.write("todo.md", "- [ ] one\n").write("t.md", &templated());
    let refused: [&[&str]; 5] = [
        &["plan", "import", "todo.md", "-o", "x.json"],
        &["plan", "draft", "fix the failing test a.sh", "--out", "x.dot"],
        &["goal", "resolve", "read a.txt", "--out", "x.json"],
        &["expand", "t.md", "--item", "a", "-o", "x.json"],
        &["new", "plans/"],
    ];
    for args in refused {
        let said = fixture.planctl(args);
        assert_eq!(said.code, 2, "{args:?} {said:?}");
        let says = ["the plan is markdown, and x.", "plans/ is a folder, and a plan is a file"];
        assert!(says.iter().any(|says| said.err.contains(says)), "{args:?} {said:?}");
        assert!(!said.err.contains("--force"), "{said:?}");
    }
    for (file, from) in [("a.dot", "hello"), ("b.json", "hello"), ("c.md", "a.dot"), ("d.dot", "b.json")] {
        let said = fixture.planctl(&["new", file, "--from", from]);
        assert!(
            said.code == 0 && said.out == format!("wrote {file}\nnext: planctl verify {file}\n"),
            "{said:?}"
        );
        let verified = fixture.planctl(&["verify", file]);
        assert_eq!(verified.code, 0, "{file} {verified:?}");
    }
}

#[test]
fn a_template_of_steps_is_expanded_with_a_file_a_command_or_words() {
    let fixture = Fixture::new();
    fixture.write("p.md", &templated()).write("items", "a.txt\n\n  b c.txt\r\n");
    let verified = fixture.planctl(&["plan", "verify", "p.md"]);
    assert!(verified.out.contains("planctl expand p.md --items FILE"), "{}", verified.out);
    let by_file = fixture.planctl(&["plan", "expand", "p.md", "--items", "items"]);
    assert_eq!(by_file.code, 0, "{by_file:?}");
    assert!(by_file.out.contains("### 3. Write b c.txt\n") && by_file.out.contains("test -s 'b c.txt'\n"));
    let by_command = fixture.planctl(&["plan", "expand", "p.md", "--command", "cat items"]);
    let by_words = fixture.planctl(&["plan", "expand", "p.md", "--item", "a.txt", "--item", "b c.txt"]);
    assert_eq!((&by_command.out, &by_words.out), (&by_file.out, &by_file.out));
    assert_eq!(fixture.read("p.md"), templated(), "nothing is written unasked");

    let said = fixture.planctl(&["plan", "expand", "p.md", "--items", "items", "-o", "q.md"]);
    assert_eq!(said.out, "q.md: 1 template expanded, 3 steps in all\nnext: planctl verify q.md\n");
    assert_eq!(fixture.read("q.md"), by_file.out);
    assert_eq!(fixture.planctl(&["plan", "verify", "q.md"]).code, 0);
    assert_eq!(fixture.planctl(&["plan", "expand", "p.md", "--items", "items", "-o", "q.md"]).code, 5);
    assert_eq!(fixture.planctl(&["plan", "expand", "p.md", "--items", "items", "--write"]).code, 0);
    assert_eq!(fixture.read("p.md"), by_file.out);
}

#[test]
fn what_gives_no_items_says_why_and_writes_nothing() {
    let fixture = Fixture::new();
    fixture.write("p.md", &templated()).write("empty", "\n\n");
    for (words, says) in [
        (["--command", "echo half; echo why >&2; exit 3"], "ended with exit code 3; nothing was expanded"),
        (["--command", "true"], "printed no item"),
        (["--command", "yes"], "printed more than 1 MiB"),
        (["--items", "empty"], "names no item"),
        (["--item", "-rf"], "begins with `-`"),
    ] {
        let said = fixture.planctl(&["plan", "expand", "p.md", "--write", words[0], words[1]]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(format!("{}{}", said.out, said.err).contains(says), "{said:?}");
        assert_eq!(fixture.read("p.md"), templated());
    }
    assert_eq!(fixture.planctl(&["plan", "expand", "p.md", "--items", "none"]).code, 4);
    assert_eq!(fixture.planctl(&["plan", "expand", "none.md", "--item", "x"]).code, 4);
    let none = fixture.planctl(&["plan", "expand", "p.md"]);
    assert_eq!(none.code, 1);
    assert!(none.out.contains("nothing says what `2–N` stands for"), "{none:?}");
}

#[test]
fn a_project_begins_with_a_plan_that_verifies_clean_and_is_trusted() {
    let fixture = Fixture::new();
    let said = fixture.planctl(&["init"]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "created planctl.toml, plans/hello.md, .gitignore (+2 lines)");
    assert!(lines[1].starts_with("trusted /"), "{said:?}");
    assert!(lines[2] == "next: planctl verify plans/hello.md", "{said:?}");
    assert!(fixture.read("plans/hello.md").contains("owner: ann\n"));
    assert!(fixture.read(".gitignore").ends_with("\n.planctl-*.tmp\n"));
    let settings = fixture.read("planctl.toml");
    assert!(settings.contains("# allow = [") && settings.contains("\"Bash(cargo test*)\""), "d5: {settings}");
    let verified = fixture.planctl(&["verify", "plans/hello.md"]).out;
    let next = "no agent is named for the role coder: name one here, or in planctl.toml below [roles.coder]\n\
                next: planctl run plans/hello.md --agent NAME\n";
    assert!(verified.ends_with(next), "what it says to type can work: {verified}");
    let report = fixture.json(&["plan", "verify", "plans/hello.md", "--json"]);
    assert_eq!(report["diagnostics"].as_array().map(Vec::len), Some(0), "{report}");
    let files = fixture.json(&["config", "path", "--json"])["files"].clone();
    assert_eq!(files[1]["trusted"], true, "{files}");
}

#[test]
fn d15_the_budget_of_each_plan_that_is_shipped_has_room_for_a_real_agent() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["plans", "crates/planctl-lang/templates"] {
        let entries = std::fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|file| file.extension().is_some_and(|end| end == "md")));
    }
    assert!(files.len() > 12, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let steps = text.lines().filter(|line| line.starts_with("### ")).count() as u64;
        let (_, rest) = text.split_once("max ").unwrap();
        let tokens = 1000 * rest.split_once("k tokens").unwrap().0.parse::<u64>().unwrap();
        // An attempt of the least step, which is three requests of 7k to 14k tokens; a real step has ten and more.
        let a_step = if file.ends_with("hello.md") { 3 * 28_000 } else { 12 * 14_000 };
        assert!(tokens >= a_step * steps, "{}: {tokens} tokens for {steps} steps", file.display());
    }
}

#[test]
fn beginning_again_says_what_is_there_and_writes_over_it_only_when_it_is_forced() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "# mine\n").write(".gitignore", "/target");
    let said = fixture.planctl(&["init"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("planctl.toml is there already") && said.err.contains("--force"), "{said:?}");
    assert_eq!(
        (fixture.read("planctl.toml").as_str(), fixture.read(".gitignore").as_str()),
        ("# mine\n", "/target")
    );
    assert!(!fixture.path("plans").exists(), "nothing was written");

    let said = fixture.planctl(&["init", "--force"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("created plans/hello.md, .gitignore (+2 lines)\nwrote over planctl.toml\n"));
    assert!(fixture.read(".gitignore").starts_with("/target\n# "), "{}", fixture.read(".gitignore"));
    let before = fixture.read(".gitignore");
    let said = fixture.planctl(&["init", "--force"]);
    assert!(said.out.starts_with("wrote over planctl.toml, plans/hello.md\ntrusted "), "{said:?}");
    assert_eq!(fixture.read(".gitignore"), before, "its lines are added once");
}

#[test]
fn the_example_runs_as_it_was_written_and_a_worker_may_not_begin_a_project() {
    let fixture = Fixture::new();
    assert_eq!(fixture.planctl(&["init", "--example"]).code, 0);
    let said = fixture.planctl(&["plan", "run", "plans/hello.md", "--approve", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("hello.txt"), "Hello from planctl\n");

    let other = Fixture::new();
    let said = other.command(&["init"]).env("PLANCTL_ITEM_ID", "x").output().unwrap();
    assert_eq!(said.status.code(), Some(77), "{said:?}");
    assert!(!other.path("planctl.toml").exists());
}

#[test]
fn a_task_list_of_another_tool_is_named_by_verify_and_becomes_a_plan_that_verifies_once_its_gaps_are_filled()
{
    let lists = [
        (
            "specs/001-albums/tasks.md",
            include_str!("../../../planctl-lang/tests/fixtures/import/spec-kit.md"),
            5,
        ),
        (
            "openspec/changes/add-2fa/tasks.md",
            include_str!("../../../planctl-lang/tests/fixtures/import/openspec.md"),
            2,
        ),
        (
            ".kiro/specs/storage/tasks.md",
            include_str!("../../../planctl-lang/tests/fixtures/import/kiro.md"),
            4,
        ),
        ("docs/plans/limits.md", include_str!("../../../planctl-lang/tests/fixtures/import/ralphex.md"), 0),
        (
            ".taskmaster/tasks/tasks.json",
            include_str!("../../../planctl-lang/tests/fixtures/import/taskmaster.json"),
            3,
        ),
        ("TODO.md", include_str!("../../../planctl-lang/tests/fixtures/import/checklist.md"), 4),
    ];
    for (file, text, gaps) in lists {
        let fixture = Fixture::new();
        fixture.write(file, text);
        fixture.write("specs/001-albums/spec.md", "# Albums\n");
        fixture.write("lint.sh", "exit 0\n").write("test.sh", "exit 0\n");
        let foreign = fixture.planctl(&["plan", "verify", file]);
        assert_eq!(foreign.code, 1, "{file}: {foreign:?}");
        assert!(foreign.out.contains(&format!("planctl plan import {file}")), "{file}: {}", foreign.out);

        let said = fixture.planctl(&["plan", "import", file, "-o", "plans/it.md"]);
        assert_eq!(said.code, 0, "{file}: {said:?}");
        assert!(said.out.starts_with("wrote plans/it.md: "), "{}", said.out);
        assert!(
            said.out.contains("already done, so not imported: ")
                && said.out.ends_with("next: planctl verify plans/it.md\n")
        );
        let said = fixture.planctl(&["plan", "verify", "plans/it.md", "--json"]);
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let found = report["diagnostics"].as_array().unwrap().clone();
        let errors: Vec<&Value> = found.iter().filter(|found| found["level"] == "error").collect();
        assert!(
            errors.iter().all(|error| error["message"] == "the contract is still to be written"),
            "{errors:#?}"
        );
        assert_eq!(errors.len(), gaps, "{file}");
        let imported = fixture.read("plans/it.md");
        let filled =
            imported.lines().enumerate().map(|(at, line)| match line.starts_with("**contract:** TODO") {
                true => format!("**contract:**\n```bash\ntest -s proof-{at}\n```\nexit_code == 0\n"),
                false => format!("{line}\n"),
            });
        fixture.write("plans/it.md", &filled.collect::<String>());
        let verified = fixture.planctl(&["plan", "verify", "plans/it.md"]);
        assert_eq!(verified.code, 0, "{file}: {}", verified.out);
    }
}

#[test]
fn what_is_no_task_list_or_is_done_is_not_imported_and_no_file_is_written_over() {
    let fixture = Fixture::new();
    fixture
        .write("notes.md", "# Notes\n\nText.\n")
        .write("done.md", "- [x] all\n")
        .write("todo.md", "- [ ] one\n");
    for (file, code, says) in [
        ("notes.md", 1, "notes.md is not a task list that planctl knows"),
        ("done.md", 1, "done.md has no open task; nothing was written"),
        ("none.md", 4, "could not read none.md"),
    ] {
        let said = fixture.planctl(&["plan", "import", file]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
    let tasks = r#"{"tasks": [{"id": 1, "title": "x", "dependencies": []}]}"#;
    fixture.write("tags.json", &format!("{{\"a\": {tasks}, \"b\": {tasks}}}"));
    fixture.write("many.md", &"- [ ] one\n".repeat(5_001)).write("doubt.md", "- [-] it\n");
    for (args, code, says) in [
        (&["tags.json"][..], 1, "tags.json has tasks with the tags a, b"),
        (&["tags.json", "--tag", "c"], 4, "it has a, b"),
        (&["todo.md", "--tag", "c"], 4, "leave --tag out"),
        (
            &["many.md"],
            1,
            "the plan of many.md would have 5001 steps, and a plan may have 5000; nothing was written",
        ),
        (&["doubt.md"], 1, "left out: it (marked `[-]`: under way, or given up?)"),
    ] {
        let said = fixture.planctl(&[&["plan", "import"], args].concat());
        assert!(said.code == code && said.err.contains(says), "{said:?}");
    }
    let circle = tasks.replace("[]", "[1]");
    fixture.write("list/circle.json", &circle);
    let said = fixture.planctl(&["plan", "import", "list/circle.json", "-o", "circle.md"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("error[P204]: tasks depend on each other in a circle: 1 → 1"), "{}", said.out);
    assert!(said.out.contains("list/circle.json:1:53"), "{}", said.out);
    assert!(said.err.contains("list/circle.json was not imported; nothing was written"), "{}", said.err);
    let tagged = fixture.planctl(&["plan", "import", "tags.json", "--tag", "b", "-o", "b.md"]);
    assert!(tagged.code == 0 && tagged.err.contains("not read: tasks with the tag a"), "{tagged:?}");
    assert_eq!(fixture.planctl(&["plan", "import", "todo.md"]).code, 0);
    let again = fixture.planctl(&["plan", "import", "todo.md"]);
    assert!(again.code == 5 && again.err.contains("name another file: -o FILE"), "{again:?}");
}
