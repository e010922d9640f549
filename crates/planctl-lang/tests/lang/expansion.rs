//! Templates become steps: the values filled in, the steps after them, and that no item ever becomes code.

use planctl_engine::Subscription;
use proptest::prelude::*;

use crate::sample::{PLAN, facts, with};
use planctl_lang::{
    Code, Levels, Source, Spanned, TEMPLATES, digest, expand, expand_in_batches, instantiate, parse, slug,
    verify,
};

const MIGRATE: &str = include_str!("../fixtures/migrate-httpx.md");

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn expanded(text: &str, items: &[&str]) -> String {
    let items = Some(list(items)).filter(|items| !items.is_empty());
    match expand(&Source::new("plan.md", text), items.as_deref()) {
        Ok(expanded) => expanded.text,
        Err(found) => panic!("{found:?}\n{text}"),
    }
}

fn refused(text: &str, items: Option<&[&str]>) -> String {
    let items = items.map(list);
    let found = expand(&Source::new("plan.md", text), items.as_deref()).expect_err("it is refused");
    format!("{}: {}", found[0].message, found[0].help.clone().unwrap_or_default())
}

/// The plan whose second step is a template, with this contract.
fn templated(contract: &str) -> String {
    with("### 2. Make two", "### 2–N. Make {item}").replace("test -f two.txt", contract)
}

#[test]
fn ways_and_conditions_follow_the_numbers_of_steps() {
    let batch =
        with("### 2. Make two\n", "### 2. Make {item}\n**for_each:** x, y\n**when:** steps.1.exit_code=0\n");
    let more = "\n### 3. Look\n\n**type:** call\n**contract:**\n```shell\ntest -f z\n```\n\n## Flow\n\n";
    let text = expanded(
        &format!("{batch}{more}- 1 -> 2\n- 2 -> 3\n- 3 -> 1 on fail if steps.3.outcome=fail\n"),
        &[],
    );
    let flow: Vec<&str> = text.split("## Flow").nth(1).unwrap().split_terminator('\n').skip(2).collect();
    assert_eq!(flow, ["- 1 -> 2, 3", "- 2, 3 -> 4", "- 4 -> 1 on fail if steps.4.outcome=fail"]);
    assert_eq!(text.matches("**when:** steps.1.exit_code=0").count(), 2);
    let unclear = format!("{batch}{more}- 3 -> 1 if steps.2.exit_code=1\n");
    assert!(refused(&unclear, None).starts_with("step 2 becomes several, and a condition is about one"));
}

#[test]
fn x_14_the_third_example_expands_to_a_plan_that_is_verified() {
    let text = expanded(MIGRATE, &["src/a.py", "src/b.py", "src/c.py"]);
    let source = Source::new("plan.md", text);
    let verification = verify(&source, &facts(), &Levels::default());
    assert!(verification.is_verified(), "{:?}", verification.diagnostics);
    let titles: Vec<String> = verification
        .tree
        .steps
        .iter()
        .map(|step| format!("{} {}", step.node.id.value, step.node.step_title()))
        .collect();
    assert_eq!(
        titles,
        [
            "1 Inventory all usage",
            "2 Add httpx dependency",
            "3 Migrate file batch (one step per batch of ~5 files): src/a.py",
            "4 Migrate file batch (one step per batch of ~5 files): src/b.py",
            "5 Migrate file batch (one step per batch of ~5 files): src/c.py",
            "6 Remove requests dependency",
        ]
    );
    let task = &verification.tree.steps[3].node.task.as_ref().unwrap().value;
    assert!(task.ends_with("\n\nThis step is for: src/b.py"), "{task}");
    let commands = |text: &str| {
        let steps = parse(&Source::new("p", text)).0.steps;
        steps.into_iter().map(|step| step.node.contract.unwrap().command).collect::<Vec<_>>()
    };
    let (before, after) = (commands(MIGRATE), commands(source.text()));
    assert_eq!(
        [&after[0], &after[1], &after[4], &after[5]],
        [&before[0], &before[1], &before[2], &before[3]]
    );
}

#[test]
fn placeholders_are_filled_in_and_what_refers_follows() {
    let text = templated("test -f out/{item}.txt && test {index} -le {count} && test -n \"${n}\"")
        .replace("file:one.txt", "file:in/{item}.txt");
    let last = "\n### N+1. Join\n\n**target:** coder\n**needs:** 1\n**subscriptions:**\n- file:out/{item}.txt\n- file:one.txt\n\n\
                **task:**\nJoin them, step {n}.\n\n**contract:**\n```shell\ntest -f all.txt\n```\n";
    let text = expanded(&(text + last), &["a", "b"]);
    let steps = parse(&Source::new("p", &*text)).0.steps;
    let shown: Vec<String> = steps
        .iter()
        .map(|step| {
            let words = |entry: &Spanned<Subscription>| match &entry.value {
                Subscription::File { path } => Some(path.clone()),
                Subscription::Topic { .. } => None,
            };
            let files: Vec<String> =
                step.node.attributes.subscriptions.entries().iter().filter_map(words).collect();
            format!("{} {} {}", step.node.id.value, step.node.step_title(), files.join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        ["1 Make one ", "2 Make a in/a.txt", "3 Make b in/b.txt", "4 Join out/a.txt out/b.txt one.txt"]
    );
    let command = &steps[2].node.contract.as_ref().unwrap().command;
    assert_eq!(command, "test -f out/b.txt && test 2 -le 2 && test -n \"${n}\"");
}

#[test]
fn a_list_in_the_step_is_taken_and_that_of_the_command_line_is_refused_beside_it() {
    for field in ["**for_each:** `x`, y", "**for_each:**\n- x\n- `y`\n"] {
        let text = with(
            "**target:** coder\n**subscriptions:**",
            &format!("{field}\n**target:** coder\n**subscriptions:**"),
        );
        let text = text.replace("Make two", "Make {item}");
        let source = Source::new("plan.md", &*text);
        let found = verify(&source, &facts(), &Levels::default()).diagnostics;
        assert_eq!(found[0].code, Code::P012);
        assert!(found[0].help.as_ref().unwrap().contains("planctl expand plan.md"), "{found:?}");
        let unused = refused(&text, Some(&["z"]));
        assert!(
            unused.starts_with("no template takes the items that the command line names: delete"),
            "{unused}"
        );
        let text = expand(&source, None).expect("its own list").text;
        assert!(text.contains("### 2. Make x") && text.contains("### 3. Make y"), "{text}");
        assert!(!text.contains("for_each") && !text.contains("z\n"), "{text}");
        assert!(crate::sample::is_verified(&text));
    }
}

#[test]
fn later_numbers_and_needs_follow() {
    let text = with("### 1. Make one", "### 1. Make {item}\n\n**for_each:** a, b");
    let text = text.replace("### 2. Make two\n", "### 2. Make two\n\n**needs:** 1\n");
    let text = expanded(&text, &[]);
    assert!(text.contains("### 3. Make two\n\n**needs:** 1, 2\n"), "{text}");
}

#[test]
fn d1_what_needs_a_template_needs_every_step_that_it_becomes() {
    let last = "\n### N+1. Remove\n\n**target:** coder\n**needs:** NEEDS\n\n**task:**\nRemove it.\n\n**contract:**\n```shell\n\
                test -f all.txt\n```\nexit_code == 0\n**on_fail:** escalate\n";
    let plan = |needs: &str| templated("test -f {item}.txt") + &last.replace("NEEDS", needs);
    for (needs, expected) in [
        ("1, 2", "1, 2, 3"),
        ("2", "2, 3"),
        ("2–N", "2, 3"),
        ("2-n", "2, 3"),
        ("none", "none"),
        ("1, 2–N", "1, 2, 3"),
    ] {
        let text = expanded(&plan(needs), &["a", "b"]);
        assert!(text.contains(&format!("**needs:** {expected}\n")), "{needs}: {text}");
        let steps = parse(&Source::new("p.md", &*text)).0.steps;
        assert_eq!(steps.len(), 4);
    }
    for (needs, says) in [
        (
            "1, 3",
            "step 3 may be one of `2–N`, and nothing says which: `2–N` names all of them, `N+1` the step after them",
        ),
        ("0", "step 0 is named, and is not there: mend the number"),
        ("3–N", "`**needs:**` names `3–N`, which is not the number of a step"),
    ] {
        let why = refused(&plan(needs), Some(&["a", "b"]));
        assert!(why.contains(says), "{needs}: {why}");
    }
    let range = plan("3").replace("### 2–N", "### 2–3").replace("### N+1", "### 4");
    assert!(expanded(&range, &["a", "b"]).contains("**needs:** 2, 3\n"));
    for (lines, expected) in [
        ("- 1 -> 2–N\n- 2-n -> N+1\n- N+1 -> 1 on fail\n", "- 1 -> 2, 3\n- 2, 3 -> 4\n- 4 -> 1 on fail\n"),
        ("- n+1 -> 1, done\n", "- 4 -> 1, done\n"),
    ] {
        let text = expanded(&(plan("1") + "\n## Flow\n\n" + lines), &["a", "b"]);
        assert!(text.ends_with(expected), "{text}");
    }
    let unknown = plan("1") + "\n## Flow\n\n- M+1 -> 1 on fail\n";
    let found = verify(&Source::new("plan.md", &*unknown), &facts(), &Levels::default()).diagnostics;
    assert!(found.iter().any(|found| found.code == Code::P015), "{found:?}");
    let flow = plan("1") + "\n## Flow\n\n- 1 -> 9 on fail\n";
    assert!(refused(&flow, Some(&["a"])).contains("step 9 may be one of"));
}

#[test]
fn d1_before_it_is_expanded_a_template_is_a_step_that_can_be_needed() {
    let plan = |needs: &str| with("### 2. Make two\n", &format!("### 2. Make two\n\n**needs:** {needs}\n"));
    let codes = |text: &str| -> Vec<Code> {
        let found = verify(&Source::new("plan.md", text), &facts(), &Levels::default()).diagnostics;
        found.into_iter().map(|found| found.code).filter(|code| *code != Code::P014).collect()
    };
    let template = |needs: &str| plan(needs).replace("### 1. Make one", "### 1–N. Make one");
    assert_eq!(codes(&template("1–N")), [Code::P012]);
    assert_eq!(codes(&template("1")), [Code::P012]);
    assert_eq!(codes(&plan("1–N")), [Code::P015]);
    assert_eq!(codes(&plan("one")), [Code::P015]);
    // Lines of `## Flow` that name a template were said to name no step.
    for flow in ["- start -> 1-N", "- 1–N -> 2", "- 2 -> 1–N on fail\n- 1–N -> failed on fail"] {
        let template = PLAN.replace("### 1. Make one", "### 1–N. Make one") + "\n## Flow\n\n" + flow + "\n";
        assert_eq!(codes(&template), [Code::P012], "{flow}");
    }
}

#[test]
fn d16_slips_in_templates_and_empty_items_are_refused() {
    for (slip, near) in [("{itme}", "{item}"), ("{cuont}", "{count}"), ("{idnex}", "{index}")] {
        let why = refused(&templated(&format!("test -f {slip}")), Some(&["a"]));
        assert_eq!(why, format!("`{slip}` stands for nothing: did you mean `{near}`?"));
    }
    for fine in ["test -f ${itme}", "test -f a{items}", "awk '{print}' x", "test -f {item}"] {
        expanded(&templated(fine), &["a"]);
    }
    for empty in ["", "  "] {
        assert!(
            refused(&templated("test -f {item}"), Some(&["a", empty])).contains("can't be used: an item has")
        );
    }
    assert!(refused(PLAN, Some(&["a"])).starts_with("no template takes the items"));
}

#[test]
fn what_can_not_be_expanded_says_why() {
    let text = templated("test -f x");
    assert!(
        refused(&text, None).contains("nothing says what `2–N` stands for: name the items: `--items FILE`")
    );
    assert!(refused(&text, Some(&[])).contains("the list of items is empty"));
    assert!(refused(&text, Some(&["a\u{202e}b"])).contains("can't be used: an item has"));
    let many: Vec<String> = (0..5_001).map(|at| at.to_string()).collect();
    let found = expand(&Source::new("p", &*text), Some(&many)).unwrap_err();
    assert_eq!(found[0].code, Code::P008);
    let command = with("### 2. Make two\n", "### 2. Make two\n\n**for_each:** command: ls\n");
    assert!(refused(&command, None).contains("--command 'ls'"), "what a plan names is not run");
    assert!(
        refused(&text.replace("Make `two.txt` from it.", "{item}"), Some(&["### 9. x"]))
            .contains("reads as a heading")
    );
    // A policy came from the list without a word.
    let listed = text.replace("Make `two.txt` from it.", "Do this:\n{item}");
    assert!(refused(&listed, Some(&["**on_fail:** skip"])).contains("a field or a fence"));
    assert!(expanded(&listed, &["skip"]).contains("Do this:\nskip\n"));
}

#[test]
fn an_item_that_a_heading_would_lose_a_part_of_is_refused() {
    let text = templated("test -f x");
    let first = text.replace("Make {item}", "{item}");
    for item in ["✅ x", "⚠", "❌x"] {
        assert!(
            refused(&first, Some(&["a", item])).contains("would be read as a mark, or as the end"),
            "{item}"
        );
        assert!(expanded(&text, &["a", item]).contains(&format!("### 3. Make {item}\n")), "{item}");
    }
    for item in [" #", "#", "a ##"] {
        assert!(refused(&text, Some(&[item])).contains("would be read as a mark, or as the end"), "{item}");
    }
    assert!(expanded(&text, &["c#"]).contains("### 2. Make c#\n"));
    let code = text.replace("Make {item}", "`{item}`");
    assert!(expanded(&code, &["✅ #"]).contains("### 2. `✅ #`\n"));
}

#[test]
fn an_item_in_a_list_of_globs_is_the_file_that_it_names() {
    let text = templated("test -f x")
        .replace("**task:**\nMake `two", "**changes:** out/{item}, {index}.txt\n**task:**\nMake `two");
    assert!(text.contains("out/{item}"), "{text}");
    assert!(expanded(&text, &["**"]).contains("**changes:** out/\\*\\*, 1.txt\n"));
    assert!(expanded(&text, &["a[1].txt"]).contains("**changes:** out/a\\[1\\].txt, 1.txt\n"));
    assert!(refused(&text, Some(&["a,b"])).contains("has a comma, which ends an entry of the list"));
}

#[test]
fn an_item_is_quoted_where_the_shell_needs_it() {
    for (contract, item, command) in [
        ("test -f {item}", "a b", "test -f 'a b'"),
        ("test -f {item}", "$(touch x)", "test -f '$(touch x)'"),
        ("test -f out/{item}.md", "it's; rm -r x", r"test -f out/'it'\''s; rm -r x'.md"),
        ("test -f '{item}'", "a/b.py", "test -f 'a/b.py'"),
        ("# {item}\ntest -f x", "$(x)", "# $(x)\ntest -f x"),
    ] {
        let text = expanded(&templated(contract), &[item]);
        let steps = parse(&Source::new("p", &*text)).0.steps;
        assert_eq!(steps[1].node.contract.as_ref().unwrap().command, command);
    }
    for (contract, item, says) in [
        ("test -f '{item}'", "it's", "inside quotes: take the quotes"),
        ("test -f \"{item}\"", "$(x)", "inside quotes"),
        ("test \\{item}", "x;y", "can't be quoted"),
        ("test \"$(cat \"{item}\")\"", "$(x)", "can't be quoted"),
        ("bash -c 'test -f {item}'", "$(x)", "can't be quoted"),
        ("cat {item}", "-rf", "begins with `-`"),
    ] {
        let why = refused(&templated(contract), Some(&[item]));
        assert!(why.contains(says), "{contract} with {item}: {why}");
    }
}

#[test]
fn every_template_is_verified_as_a_new_plan() {
    for (template, owner) in TEMPLATES
        .iter()
        .flat_map(|template| ["ann \"o'x\": y", "CORP\\ann", "@ann"].map(|owner| (template, owner)))
    {
        let source = Source::new("plan.md", template.text);
        let text = instantiate(&source, Some("Do it: #1"), owner, None);
        let verification = verify(&Source::new("plan.md", &*text), &facts(), &Levels::default());
        assert!(verification.is_verified(), "{}: {:?}", template.name, verification.diagnostics);
        assert_eq!(verification.tree.head.title.unwrap().value, "Do it: #1");
        assert_eq!(verification.tree.frontmatter.owner.unwrap().value, owner);
        let stubs = text.matches("false  #").count();
        let told = verification.diagnostics.iter().filter(|found| found.code == Code::P113).count();
        assert_eq!(stubs, told, "what is to be written is found in {}", template.name);
    }
}

#[test]
fn every_plan_of_the_library_is_a_template_and_its_line_names_the_file_it_reads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
    let files = std::fs::read_dir(folder).expect("the library is there").filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        Some(name.strip_suffix(".md")?.to_owned())
    });
    for name in files.filter(|name| name != "hello") {
        let template =
            TEMPLATES.iter().find(|template| template.name == name).unwrap_or_else(|| panic!("{name}"));
        let (_, reads) = template.about.rsplit_once(" (reads ").expect(template.about);
        assert!(template.text.contains(reads.trim_end_matches(')')), "{name}: {reads}");
    }
}

#[test]
fn a_plan_that_ran_becomes_a_draft_without_marks() {
    let ran = PLAN.replace("status: draft", "status: done").replace("### 1. ", "### 1. ✅ ");
    let ran = ran.replace("**target:** coder\n**task:**", "**status:** done\n**target:** coder\n**task:**");
    let text = instantiate(&Source::new("p", ran), None, "orchestrator", None);
    assert_eq!(text, PLAN);
    let none = PLAN.replace("owner: orchestrator\n", "");
    assert!(
        instantiate(&Source::new("p", none), None, "ann", None).contains("---\nowner: ann\ntype: plan\n")
    );
    assert_eq!(slug("Fix the login (#423)!"), "fix-the-login-423");
    assert_eq!(slug("…"), "plan");
    assert_ne!(
        digest(&Source::new("p", PLAN)),
        digest(&Source::new("p", instantiate(&Source::new("p", PLAN), Some("X"), "y", None)))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // Each item is refused, or it is one word of the contract and nothing else.
    #[test]
    fn no_item_becomes_code(item in "[ -~é]{1,24}") {
        prop_assume!(!item.trim().is_empty());
        let item = item.trim();
        let text = templated("printf %s {item}").replace("Make {item}", "Make it").replace("Make `two.txt` from it.", "Make `{item}`.");
        if let Ok(expanded) = expand(&Source::new("plan.md", text), Some(&list(&[item]))) {
            let steps = parse(&Source::new("plan.md", expanded.text)).0.steps;
            let command = &steps[1].node.contract.as_ref().unwrap().command;
            let said = std::process::Command::new("bash").args(["--norc", "-c", command]).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&said.stdout), item);
        }
    }

    #[test]
    fn any_text_is_expanded_or_refused(text in "(### [0-9N]–?N?\\. \\{item\\}\n|\\*\\*for_each:\\*\\* a, b\n|\\*\\*task:\\*\\*\n|x \\{n\\}\r\n|```\n|## Steps\n|---\n|\\*\\*contract:\\*\\*\n|é\\{item\\}){0,12}") {
        for items in [None, Some(list(&["a b", "é"]))] {
            if let Ok(expanded) = expand(&Source::new("plan.md", &*text), items.as_deref()) {
                prop_assert_eq!(parse(&Source::new("p", expanded.text)).0.steps.len(), expanded.steps);
            }
        }
    }
}

#[test]
fn p_79_a_step_for_each_batch_of_five() {
    let names: Vec<String> = (1..=7).map(|number| format!("src/{number} .py")).collect();
    let batches = |text: &str| {
        let batch = std::num::NonZeroUsize::new(5).unwrap();
        expand_in_batches(&Source::new("plan.md", text), Some(&names), batch)
    };
    let expanded = batches(MIGRATE).unwrap();
    assert_eq!(
        (expanded.templates, expanded.steps),
        (2, 5),
        "two of inventory and review, two batches, one at the end"
    );
    assert!(
        expanded.text.contains("This step is for: src/1 .py, src/2 .py, src/3 .py, src/4 .py, src/5 .py\n")
    );
    assert!(expanded.text.contains("This step is for: src/6 .py, src/7 .py\n"));
    let text = batches(&templated("ls {item}")).unwrap().text;
    assert!(text.contains("\nls 'src/1 .py' 'src/2 .py' 'src/3 .py' 'src/4 .py' 'src/5 .py'\n"), "{text}");
    assert!(text.contains("\nls 'src/6 .py' 'src/7 .py'\n"), "{text}");
    let told = batches(&templated("ls out/{item}")).unwrap_err();
    assert_eq!(told[0].message, "several items stand for what is one word here");
}
