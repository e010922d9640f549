//! Hints are typed where they were printed: in the workspace, below it, elsewhere, and behind `-C`. A plan may be named in each
//! way wherever a command takes one.

use crate::fixture::{Fixture, Said, plan};

/// A checkout with a folder below it and one beside it, and a plan in it that runs without a person's word but the approval.
fn checkout(name: &str) -> Fixture {
    let fixture = Fixture::new();
    assert_eq!(fixture.shell("git init -q").code, 0);
    let steps = [("Write it", "test -s done.txt", "retry(1), then escalate")];
    fixture.write("planctl.toml", "[roles.coder]\nagent = \"exec:echo done > done.txt\"\n");
    fixture.write(name, &plan("Write it", "5 minutes", &steps)).write("sub/deep/x", "");
    assert_eq!(fixture.planctl(&["trust", "."]).code, 0);
    fixture
}

/// Types a line in a folder.
fn typed(fixture: &Fixture, folder: &str, line: &str) -> Said {
    fixture.shell(&format!("cd {folder} && {line}"))
}

/// Returns the commands that a text says to type, without those in which a word is to be filled in.
fn commands(text: &str) -> Vec<String> {
    let command = |line: &str| {
        let command = &line[line.find("planctl ")?..];
        let command = command.split("  ").next()?.trim_end_matches(" takes it up");
        let is_whole = !["NAME", "CMD", "FILE", "WHY", "'…'", " | ", "YOUR ANSWER"]
            .iter()
            .any(|hole| command.contains(hole));
        is_whole.then(|| command.trim().to_owned())
    };
    text.lines().filter_map(command).collect()
}

/// Types a command, then each that it says to type, and so on; none may be refused for how it is written or what it names.
fn follow(fixture: &Fixture, folder: &str, begin: &str) -> Vec<String> {
    let (mut open, mut seen) = (vec![begin.to_owned()], Vec::new());
    while let Some(line) = open.pop() {
        // Each is typed once. Those that wait for a worker or a person would not end.
        if seen.contains(&line)
            || seen.len() > 40
            || ["watch", "daemon", "worker", "explain"].iter().any(|word| line.contains(word))
        {
            continue;
        }
        let said = typed(fixture, folder, &line);
        assert!(![2, 4].contains(&said.code), "in {folder}, after {seen:#?}: {line}: {said:?}");
        seen.push(line);
        open.extend(commands(&format!("{}\n{}", said.out, said.err)));
    }
    seen
}

/// The folders to stand in, and what comes after `planctl` there.
fn stands(fixture: &Fixture) -> Vec<(String, String)> {
    let word = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let (work, home) = (word(fixture.path("")), word(fixture.home()));
    let work = work.trim_end_matches('/').to_owned();
    vec![
        (work.clone(), String::new()),
        (format!("{work}/sub/deep"), String::new()),
        (home.clone(), format!(" -C {work}")),
        (home.clone(), format!(" -C {work}/sub")),
        (home, format!(" --workspace {work}")),
    ]
}

#[test]
fn each_hint_can_be_typed_where_it_is_read_whatever_the_plan_is_called() {
    let names = [("plans/p.md", [2, 4]), ("plans/it's größer \"x\".md", [0, 1]), ("-dash.md", [1, 3])];
    let mut typed = Vec::new();
    for (name, places) in names {
        let fixture = checkout(name);
        for (folder, flags) in places.map(|at| stands(&fixture)[at].clone()) {
            let is_at = |words: &str| flags.ends_with(words);
            let file = match folder.as_str() {
                _ if flags.starts_with(" --workspace") => format!("{}/{name}", fixture.path("").display()),
                _ if is_at("/sub") => format!("../{name}"),
                folder if folder.ends_with("/deep") => format!("../../{name}"),
                _ => format!("./{name}"),
            };
            let file = format!("'{}'", file.replace('\'', r"'\''"));
            let begins = [
                format!("verify {file}"),
                format!("run {file} --no-wait --again"),
                "resume @last".to_owned(),
            ];
            for line in begins {
                typed.extend(follow(&fixture, &folder, &format!("planctl{flags} {line}")).split_off(1));
            }
        }
    }
    for hint in [" run ", " approvals show ", " approvals approve ", " run --again "] {
        assert!(typed.iter().any(|line: &String| line.contains(hint)), "{hint}: {typed:#?}");
    }
}

#[test]
fn a_hint_about_a_run_of_another_workspace_names_that_workspace() {
    let fixture = checkout("plans/p.md");
    let ran = fixture.planctl(&["run", "plans/p.md", "--approve"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let id = fixture.status()["id"].as_str().unwrap().to_owned();
    let home = fixture.home().to_string_lossy().into_owned();
    let refused = typed(&fixture, &home, &format!("planctl resume {id}"));
    let work = fixture.path("").canonicalize().unwrap();
    let next = format!("next: planctl -C {} run --again plans/p.md", work.display());
    assert!(refused.code == 5 && refused.err.contains(&next), "{refused:?}");
    let below = typed(&fixture, "sub/deep", "planctl resume p-1");
    assert!(below.code == 5 && below.err.contains("next: planctl run --again ../../plans/p.md"), "{below:?}");
    let there = typed(&fixture, &home, &format!("planctl -C {} verify plans/p.md", work.display()));
    assert!(there.out.contains(&format!("next: planctl -C {} run plans/p.md", work.display())), "{there:?}");
    follow(&fixture, &home, &format!("planctl resume {id}"));
    follow(&fixture, &home, "planctl ls --all");
}

#[test]
fn a_hint_repeats_the_configuration_and_the_database_that_were_named() {
    let fixture = checkout("plans/p.md");
    fixture.write("other.toml", "[roles.coder]\nagent = \"exec:true\"\n");
    let said = fixture.planctl(&["--config", "other.toml", "verify", "plans/p.md"]);
    assert!(said.out.contains("next: planctl --config other.toml run plans/p.md"), "{said:?}");
    for (url, named) in [("postgres://h/db", "postgres://h/db"), ("postgres://me:secret@h/db", "URL")] {
        let said = fixture.planctl(&["--database-url", url, "verify", "plans/p.md"]);
        let next = format!("next: planctl --database-url {named} run plans/p.md");
        assert!(said.out.contains(&next) && !said.out.contains("secret"), "{said:?}");
    }
}

#[test]
fn a_plan_is_named_by_its_path_or_its_name_in_each_command_and_in_each_folder() {
    let fixture = checkout("plans/hello.md");
    for folder in [".", "plans", "sub/deep"] {
        for name in ["hello.md", "plans/hello", "plans/hello.md"] {
            let said = typed(&fixture, folder, &format!("planctl verify {name}"));
            assert_eq!(said.code, 0, "in {folder}: {name}: {said:?}");
        }
        for command in [
            "verify",
            "show",
            "fmt --check",
            "approve",
            "reject",
            "graph check",
            "graph parallel",
            "graph render",
            "plan run --dry-run",
            "run --approve --again",
            "diff",
            "status",
            "logs",
            "why",
            "events -n 1",
            "audit",
        ] {
            let said = typed(&fixture, folder, &format!("planctl {command} hello"));
            assert!(said.code < 2, "in {folder}: {command}: {said:?}");
        }
    }
}

#[test]
fn a_plan_that_is_not_there_is_answered_with_the_near_one_and_new_only_where_none_is() {
    let fixture = checkout("plans/hello.md");
    fixture.write("plans/two.md", "x").write("plans/two.dot", "x");
    for command in [
        "verify",
        "show",
        "run",
        "approve",
        "diff",
        "fmt",
        "review",
        "graph check",
        "expand --item a",
        "edit",
    ] {
        let near = typed(&fixture, "sub", &format!("planctl {command} plans/helo.md"));
        assert_eq!(near.code, 4, "{command}: {near:?}");
        assert!(
            near.err.contains("did you mean ../plans/hello.md?") && !near.err.contains("planctl new"),
            "{command}: {near:?}"
        );
        let both = typed(&fixture, ".", &format!("planctl {command} two"));
        assert!(both.code == 2 && both.err.contains("plans/two.md or plans/two.dot"), "{command}: {both:?}");
        if !["show", "edit"].contains(&command) {
            let none = typed(&fixture, "sub", &format!("planctl {command} something-else"));
            assert!(
                none.code == 4 && none.err.contains("next: planctl new ../plans/something-else.md"),
                "{command}: {none:?}"
            );
        }
        if !["verify", "fmt"].contains(&command) {
            let input = typed(&fixture, ".", &format!("planctl {command} -"));
            assert!(input.code == 2 && input.err.contains("standard input"), "{command}: {input:?}");
        }
    }
    let near = typed(&fixture, ".", "planctl show helo");
    assert!(near.code == 4 && near.err.contains("did you mean the plan plans/hello.md?"), "{near:?}");
}

#[test]
fn a_new_plan_goes_to_the_plans_of_the_workspace() {
    let fixture = checkout("plans/p.md");
    let new = |line: &str| typed(&fixture, "sub", &format!("planctl new {line}"));
    let said = new("--title 'One more'");
    assert_eq!(
        said.out, "wrote ../plans/one-more.md\nnext: planctl verify ../plans/one-more.md\n",
        "{said:?}"
    );
    assert!(
        new("two").out.starts_with("wrote ../plans/two.md\n")
            && new("own/three").out.starts_with("wrote own/three.md\n")
    );
    for (file, why) in [("own/", "folder"), ("own", "folder"), ("-", "standard output")] {
        let refused = new(file);
        assert!(refused.code == 2 && refused.err.contains(why), "{file}: {refused:?}");
    }
    for line in
        ["run plans/p.md plans/one-more.md", "plan run plans/p.md plans/one-more.md", "diff a.md b.md"]
    {
        let said = fixture.shell(&format!("planctl {line}"));
        assert!(said.code == 2 && said.err.contains("one plan at a time"), "{line}: {said:?}");
    }
    fixture.write("-dash.md", "");
    let said = fixture.planctl(&["run", "-dash.md"]);
    assert!(said.code == 2 && said.err.contains("./-dash.md"), "{said:?}");
}

#[test]
fn the_help_of_a_finding_is_typed_where_it_is_read() {
    let fixture = Fixture::new();
    fixture.write("sub/to do/todo.md", "- [ ] one\n");
    let template = plan("Write it", "5 minutes", &[("Write it", "test -s done.txt", "escalate")]);
    fixture.write("sub/to do/many.md", &template.replace("### 1.", "### 1–N."));
    let said = fixture.planctl(&["-C", "sub", "verify", "to do/todo.md"]);
    assert!(said.out.contains("`planctl -C sub plan import 'to do/todo.md'`"), "{}", said.out);
    let said = fixture.planctl(&["-C", "sub", "verify", "to do/many.md"]);
    assert!(said.out.contains("`planctl -C sub expand 'to do/many.md' --items FILE`"), "{}", said.out);
}

#[test]
fn what_is_no_file_is_said_for_what_it_is_and_what_to_name() {
    let fixture = checkout("plans/p.md");
    std::os::unix::fs::symlink("loop.md", fixture.path("loop.md")).unwrap();
    fixture.write("notes/a.md", "").write("bad.dot", "digraph {").write("other.jsonl", "");
    for (words, code, expected) in [
        (
            &["verify", "notes"][..],
            1,
            "could not read notes: it is a directory\nhelp: name files in it: notes/a.md",
        ),
        (&["fmt", "notes"], 1, "help: name files in it: notes/a.md"),
        (&["expand", "notes"], 1, "help: name files in it: notes/a.md"),
        (&["review", "notes", "--exec", "true"], 1, "help: name files in it: notes/a.md"),
        (&["run", "-n", "notes"], 1, "help: name files in it: notes/a.md"),
        (
            &["show", "notes"],
            4,
            "could not find plan or run `notes`\nhelp: `notes` is a directory; name files in it: notes/a.md",
        ),
        (&["show", "nothing"], 4, "could not find plan or run `nothing`"),
        (&["edit", "nothing"], 4, "could not find plan or run `nothing`"),
        (&["graph", "render", "nothing"], 4, "could not find plan or run `nothing`"),
        (&["fmt", "loop.md"], 1, "Too many levels of symbolic links"),
        (&["show", "loop.md"], 1, "Too many levels of symbolic links"),
        (&["audit", "nothing.jsonl"], 4, "could not read nothing.jsonl: it does not exist"),
        (&["library", "import", "nothing.json"], 4, "could not read nothing.json: it does not exist"),
        (&["library", "import", "nothing"], 4, "could not read nothing: it does not exist"),
        (&["db", "restore", "notes"], 2, "notes is not a file"),
        (&["trust", "planctl.toml"], 2, "next: planctl trust ."),
        (&["trust", "nothing"], 4, "could not find nothing"),
        (
            &["item", "complete", "x", "--token", "y", "--result", "gone.txt"],
            4,
            "could not read gone.txt: No such file",
        ),
        (&["graph", "render", "bad.dot"], 1, "bad.dot has no graph that can be read: expected `}`"),
        (
            &["graph", "render", "plans/p.md", "-o", "p.png"],
            2,
            "help: name a file that ends with .svg, .dot, .mmd, .md or .json, or say --format",
        ),
        (&["graph", "render", "plans/p.md", "--entry", "x"], 4, "help: it has one graph: leave --entry out"),
        (&["daemon", "start", "--listen", "localhost"], 2, "such as 127.0.0.1:7420"),
        (&["--server", "ftp://x", "ls"], 2, "a URL begins with http:// or https://"),
        (
            &["token", "create", "worker", "--name", "a", "--expires", "99999d"],
            2,
            "valid for at most 3650 days",
        ),
        (&["token", "create", "read", "--name", "a", "--role", "b"], 2, "--role"),
    ] {
        let mut command = fixture.command(words);
        if words[0] == "--server" {
            command.env_remove("PLANCTL_DATABASE_URL");
        }
        let said = Said::from(command.output().unwrap());
        assert!(said.code == code && said.err.contains(expected), "{words:?}: {said:?}");
    }
    assert!(!fixture.path("p.png").exists());
}

#[test]
fn what_is_not_found_in_a_run_or_by_its_name_leads_to_the_list_of_what_is_there() {
    let fixture = checkout("plans/p.md");
    assert_eq!(fixture.planctl(&["run", "p", "--approve"]).code, 0);
    for (words, expected) in [
        (&["why", "9"][..], "could not find step 9 in p-1\nnext: planctl status p-1"),
        (&["logs", "--step", "9"], "could not find step 9 in p-1\nnext: planctl status @last"),
        (
            &["logs", "--step", "1", "--attempt", "9"],
            "could not find attempt 9 in p-1\nnext: planctl logs p-1",
        ),
        (&["topic", "show", "nothing"], "next: planctl topic ls"),
        (&["notify", "test", "nothing"], "next: planctl notify ls"),
        (&["diff", "plans/q.md"], "it was never approved or run here\nnext: planctl show plans/q.md"),
        (&["reject", "plans/q.md"], "it was never approved or run here\nnext: planctl show plans/q.md"),
    ] {
        fixture.write("plans/q.md", &fixture.read("plans/p.md"));
        let said = fixture.planctl(words);
        assert!(said.code == 4 && said.err.contains(expected), "{words:?}: {said:?}");
    }
    fixture.write("plans/q.md", &fixture.read("plans/p.md").replace("test -s done.txt", "test -e never"));
    assert_eq!(fixture.planctl(&["run", "q", "--approve", "--no-wait"]).code, 3);
    let said = fixture.planctl(&["run", "q", "--again", "--no-wait"]);
    let expected = "q-1 is not over, so no new run begins; to end it: planctl cancel q-1";
    assert!(said.code == 3 && said.err.contains(expected), "{said:?}");
}
