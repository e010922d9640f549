//! The three example plans of the plan system's design read without loss, and become graphs.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{NodeId, On, Outcome, Priority, Subscription, WorkKind};
use planctl_lang::Severity;
use planctl_lang::{Code, Facts, Mark, PlanTree, Source, annotate, changes, digest, parse, show, verify};

const FIX: &str = include_str!("../fixtures/fix-auth-timeout.md");
const EXTRACT: &str = include_str!("../fixtures/extract-config.md");
const MIGRATE: &str = include_str!("../fixtures/migrate-httpx.md");

fn read(text: &str) -> PlanTree {
    let (tree, found) = parse(&Source::new("plan.md", text));
    assert_eq!(found, [], "an example is written as planctl writes plans");
    tree
}

fn commands(tree: &PlanTree) -> Vec<&str> {
    tree.steps
        .iter()
        .map(|step| step.node.contract.as_ref().expect("each step has one").command.as_str())
        .collect()
}

#[test]
fn p_13_the_first_example_reads_without_loss() {
    let tree = read(FIX);
    assert_eq!(tree.head.title.as_ref().unwrap().value, "Fix authentication timeout bug (#423)");
    assert_eq!(
        tree.head.attributes.goal.text().unwrap().value,
        "Login requests timeout after 30s on slow connections. Root cause unknown."
    );
    let budget = tree.head.budget.as_ref().unwrap().value;
    assert_eq!(
        (budget.tokens, budget.micro_usd, budget.time),
        (Some(200_000), Some(1_500_000), Some(Duration::from_secs(1200)))
    );
    assert_eq!(tree.head.priority.as_ref().unwrap().value, Priority::High);
    let titles: Vec<&str> = tree.steps.iter().map(|step| step.node.step_title()).collect();
    assert_eq!(titles, ["Analyze the bug", "Write the fix", "Lint and type check", "Create PR"]);
    assert_eq!(
        commands(&tree),
        [
            "test -f docs/analysis-423.md && test \"$(wc -l < docs/analysis-423.md)\" -gt 10",
            "uv run pytest tests/auth/ -x",
            "uv run ruff check src/auth/ && uv run pyright src/auth/",
            "gh pr view --json state -q '.state' | grep -q OPEN",
        ]
    );
    let first = &tree.steps[0].node;
    let subscriptions: Vec<_> =
        first.attributes.subscriptions.entries().iter().map(|entry| entry.value.clone()).collect();
    let file = |path: &str| Subscription::File { path: path.into() };
    let topic = Subscription::Topic { name: "fix-auth-timeout".into() };
    assert_eq!(subscriptions, [file("src/auth/handler.py"), file("src/auth/middleware.py"), topic]);
    assert_eq!(
        first.task.as_ref().unwrap().value,
        "Read the auth handler and middleware. Trace the timeout path. Write a root cause\n\
         analysis to `docs/analysis-423.md` with the specific code path that causes the timeout."
    );
}

#[test]
fn p_13_the_second_example_reads_without_loss_and_its_last_step_is_a_review() {
    let tree = read(EXTRACT);
    assert_eq!(tree.steps.len(), 3);
    assert!(
        commands(&tree)[2]
            .ends_with("grep -q \"APPROVED\\|CHANGES_REQUESTED\" docs/review-config-extract.md")
    );
    let graph =
        verify(&Source::new("plan.md", EXTRACT), &crate::sample::facts(), &planctl_lang::Levels::default())
            .graph
            .expect("it is verified");
    assert_eq!(graph.task(&NodeId::new("3")).unwrap().work, WorkKind::Review);
    assert_eq!(graph.task(&NodeId::new("2")).unwrap().work, WorkKind::Code);
}

#[test]
fn x_14_the_third_example_reads_without_loss_and_its_templates_are_reported() {
    let tree = read(MIGRATE);
    let nodes = tree.steps.iter().map(|step| &step.node);
    let numbers: Vec<_> = nodes.map(|node| (node.number, node.id.value.as_str())).collect();
    assert_eq!(numbers, [(Some(1), "1"), (Some(2), "2"), (None, "3–N"), (None, "N+1")]);
    assert_eq!(commands(&tree)[3], "! grep -r \"import requests\" src/ && uv run pytest tests/ -x");
    assert!(tree.steps[1].node.attributes.subscriptions.entries().is_empty(), "P-14");
    let found = crate::sample::found(MIGRATE);
    let codes: Vec<Code> = found.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::P012, Code::P012]);
    assert!(
        verify(&Source::new("plan.md", MIGRATE), &crate::sample::facts(), &planctl_lang::Levels::default())
            .graph
            .is_none()
    );
}

#[test]
fn the_first_example_becomes_a_graph_with_its_policies() {
    let graph =
        verify(&Source::new("plan.md", FIX), &crate::sample::facts(), &planctl_lang::Levels::default())
            .graph
            .expect("it is verified");
    let id = |name: &str| NodeId::new(name);
    assert_eq!(graph.task_count(), 4);
    let first = graph.task(&id("1")).unwrap();
    assert_eq!(
        (first.max_retries, first.on_exhausted, first.work_timeout),
        (2, Outcome::Failed, Duration::from_secs(600))
    );
    assert_eq!(graph.task(&id("4")).unwrap().max_retries, 0);
    let to: Vec<_> = graph.edges_from(&id("1")).iter().map(|edge| (edge.on, edge.to.as_str())).collect();
    assert_eq!(to, [(On::Success, "2"), (On::Exhaust, "ask")]);
    assert_eq!(graph.edges_from(&id("4"))[0].to, id("done"));
    assert_eq!(graph.budget().tokens, Some(200_000));
}

#[test]
fn policies_become_edges() {
    let text = crate::sample::with("retry(2), then escalate", "retry(3), then skip")
        .replace("on_fail:** escalate", "on_fail:** abort");
    let graph =
        verify(&Source::new("plan.md", text), &crate::sample::facts(), &planctl_lang::Levels::default())
            .graph
            .expect("it is verified");
    let exhaust = |name: &str| graph.edges_from(&NodeId::new(name))[1].to.as_str().to_owned();
    assert_eq!(
        (exhaust("1").as_str(), graph.task(&NodeId::new("1")).unwrap().on_exhausted),
        ("2", Outcome::Skipped)
    );
    assert_eq!(exhaust("2"), "failed");
}

#[test]
fn what_is_wanted_of_the_surroundings_is_asked_for() {
    let source = Source::new("plan.md", FIX);
    let wants = planctl_lang::read(&source).wants();
    assert_eq!(wants.commands.into_iter().collect::<Vec<_>>(), ["gh", "grep", "uv", "wc"]);
    assert!(wants.files.contains("src/auth/middleware.py") && wants.files.contains("docs/analysis-423.md"));
    assert_eq!(wants.scripts.len(), 0, "what is read here needs no bash");
    let menu = crate::sample::with("test -f one.txt", "echo `if`");
    let source = Source::new("plan.md", menu);
    let wants = planctl_lang::read(&source).wants();
    assert_eq!(wants.scripts.into_iter().collect::<Vec<_>>(), ["echo `if`"]);
}

#[test]
fn x_18_files_that_only_the_contract_names_are_candidates_for_protection() {
    let text = crate::sample::with(
        "test -f one.txt",
        "test -f one.txt && bash checks/one.sh && grep -q ok report.log",
    );
    let source = Source::new("plan.md", text);
    let judged_by = |setting: &&planctl_lang::Setting| setting.name == "judged by";
    let shown = show(&source).steps.swap_remove(0).settings;
    let of_first = shown.iter().find(judged_by).unwrap();
    assert_eq!(of_first.value, "checks/one.sh, report.log", "one.txt is named by the task");
}

#[test]
fn p_16_marks_change_neither_steps_nor_digest() {
    for text in [FIX, EXTRACT, MIGRATE] {
        let source = Source::new("plan.md", text);
        let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Failed), (3, Mark::Working)]);
        let marked = Source::new("plan.md", annotate(&source, "in-progress", &marks));
        assert_ne!(source.text(), marked.text());
        assert_eq!(digest(&source), digest(&marked));
        assert_eq!(changes(&show(&source), &show(&marked)), []);
        assert_eq!(annotate(&marked, "draft", &BTreeMap::new()), text);
    }
}

#[test]
fn marks_that_a_run_leaves_are_a_note_and_others_a_warning() {
    let source = Source::new("plan.md", crate::sample::PLAN);
    let one = BTreeMap::from([(1, Mark::Passed)]);
    let all = BTreeMap::from([(1, Mark::Passed), (2, Mark::Waived)]);
    let none = BTreeMap::new();
    let begun = BTreeMap::from([(1, Mark::Working)]);
    let levels = |status: &str, marks: &BTreeMap<u32, Mark>| -> Vec<Severity> {
        let found = crate::sample::found(&annotate(&source, status, marks));
        assert!(found.iter().all(|found| found.code == Code::P006), "{found:?}");
        found.iter().map(|found| found.level).collect()
    };
    for (status, marks) in [
        ("done", &all),
        // The other step was not on the run's path.
        ("done", &one),
        ("verified", &none),
        ("approved", &none),
        ("approved", &all),
        ("in-progress", &begun),
        ("in-progress", &none),
        ("failed", &begun),
        ("failed", &none),
    ] {
        assert_eq!(levels(status, marks), [Severity::Note], "{status}");
    }
    use Severity::Warning;
    assert_eq!(levels("done", &none), [Warning]);
    assert_eq!(levels("done", &begun), [Warning, Warning]);

    assert_eq!(levels("draft", &all), [Warning, Warning]);
}

#[test]
fn p_76_a_difference_is_told_by_meaning() {
    let source = Source::new("plan.md", crate::sample::PLAN);
    let changed = crate::sample::with("retry(2), then escalate", "retry(3), then abort")
        .replace("### 2. Make two", "### 2. Make three")
        + "\n### 3. More\n\n**target:** coder\n**task:**\nx\n\n**contract:**\n```\ntest -f x\n```\n";
    let changed = Source::new("plan.md", changed.replace("exit_code == 0\n", ""));
    let told: Vec<String> =
        changes(&show(&source), &show(&changed)).iter().map(ToString::to_string).collect();
    let expected = [
        "step 1: on_fail `retry(2), then escalate` → `retry(3), then abort`",
        "step 2: title `Make two` → `Make three`",
        "step 3 added: More",
    ];
    assert_eq!(told, expected);
}

#[test]
fn every_default_that_applies_is_shown_as_one() {
    let text = crate::sample::with("**on_fail:** retry(2), then escalate\n", "");
    let source = Source::new("plan.md", text);
    let shown = show(&source).to_string();
    for line in [
        "  on_fail           retry(2), then escalate  (default)",
        "  timeout           10 min  (default)",
        "  contract_timeout  10 min  (default)",
        "  exit_code         == 0\n",
        "  on_fail           escalate\n",
        "  budget            200k tokens, $1.50, 20 min\n",
    ] {
        assert!(shown.contains(line), "`{line}` is not in\n{shown}");
    }
}

#[test]
fn a_finding_is_drawn_as_rustc_draws_it() {
    let text = crate::sample::with("test -f one.txt", "test -f one.txt &&");
    let facts = Facts {
        syntax: [(
            "test -f one.txt &&".into(),
            Some("bash: -c: line 2: syntax error: unexpected end of file\n".into()),
        )]
        .into(),
        ..crate::sample::facts()
    };
    let source = Source::new("plans/two.md", text);
    let drawn = planctl_lang::render_all(
        &verify(&source, &facts, &planctl_lang::Levels::default()).diagnostics,
        &source,
        false,
    );
    insta::assert_snapshot!(drawn);
}

#[test]
fn the_json_of_a_verification_is_that_of_the_design() {
    let source = Source::new("two.md", crate::sample::with("**target:** coder", "**target:** codr"));
    let report = verify(&source, &crate::sample::facts(), &planctl_lang::Levels::default()).report(&source);
    insta::assert_snapshot!(format!("{:#}", serde_json::to_value(report).unwrap()));
}

#[test]
fn fields_that_come_later_are_refused_and_never_ignored() {
    let fields = ["**gate:** strict", "**workspace:** worktree"];
    for field in fields {
        let text = crate::sample::with("**subscriptions:**", &format!("{field}\n**subscriptions:**"));
        let refused: Vec<_> =
            crate::sample::found(&text).into_iter().filter(|found| found.code == Code::P017).collect();
        assert_eq!(refused.len(), 1, "{field}");
        assert!(refused[0].message.contains("is not supported yet"), "{field}");
        assert!(!crate::sample::is_verified(&text), "{field}");
    }
    let fine = "**workspace:** shared\n**type:** review\n**timeout:** 5 min\n**contract_timeout:** 90 s\n**guard:** yes\n\
                **protects:** tests/**, checks/*.sh\n**locks:** db/staging, printer-2\n**max_visits:** 3\n**ask_deadline:** 4 h, then abort\n**subscriptions:**";
    assert_eq!(crate::sample::found(&crate::sample::with("**subscriptions:**", fine)), []);
}

#[test]
fn p_63_all_problems_are_told_at_once() {
    let text = crate::sample::PLAN
        .replace("type: plan", "type: spec")
        .replacen("**target:** coder", "**target:** codr", 1)
        .replacen("exit_code == 0", "exit_code = 0", 1)
        .replace("**on_fail:** escalate", "**on_fail:** esclate")
        .replace("max 200k tokens", "max many tokens")
        .replace("file:one.txt", "fil:one.txt");
    let codes: Vec<Code> = crate::sample::found(&text).into_iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::P001, Code::P503, Code::P401, Code::P015, Code::P206, Code::P015]);
}

#[test]
fn p_15_headings_in_fences_and_comments_are_text() {
    let task = "Make `one.txt`:\n\n```markdown\n### 9. Not a step\n**target:** nobody\n```\n\n<!--\n### 8. Not one either\n-->";
    let text = crate::sample::with("Make `one.txt`.", task);
    assert_eq!(crate::sample::found(&text), []);
    let tree = read(&text);
    assert_eq!(tree.steps.len(), 2);
    assert_eq!(tree.steps[0].node.task.as_ref().unwrap().value, task);
}

#[test]
fn colons_case_and_blanks_are_read_as_people_write_them() {
    for field in [
        "**Target:**   coder",
        "**TARGET:** coder  ",
        "**target**: coder",
        "**target : coder**",
        "  **target:** coder",
    ] {
        let text = crate::sample::with("**target:** coder", field);
        assert_eq!(
            parse(&Source::new("p", &*text)).0.steps[0].node.role.as_ref().unwrap().value,
            "coder",
            "{field}"
        );
        assert!(crate::sample::is_verified(&text), "{field}");
    }
}

#[test]
fn p_61_a_budget_too_small_for_its_steps_is_a_warning() {
    for (budget, code) in [
        ("max 100 tokens", Code::P501),
        ("$0.01", Code::P501),
        ("$0", Code::P503),
        ("-3 tokens", Code::P503),
        ("a lot", Code::P503),
    ] {
        let text = crate::sample::with("max 200k tokens, $1.50, 20 minutes", budget);
        assert!(crate::sample::found(&text).iter().any(|found| found.code == code), "{budget}");
    }
}

#[test]
fn a_line_of_sixteen_kibibytes_is_cut_around_the_finding() {
    let long = format!("echo {} && grpe -q x && echo {}", "x".repeat(8_000), "y".repeat(7_000));
    let source = Source::new("plan.md", crate::sample::with("test -f one.txt", &long));
    let facts =
        planctl_lang::Facts { commands: [("grpe".to_owned(), false)].into(), ..crate::sample::facts() };
    let found = verify(&source, &facts, &planctl_lang::Levels::default()).diagnostics;
    let missing = found.iter().find(|found| found.code == Code::P102).unwrap();
    let drawn = missing.render(&source, false);
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 160), "{drawn}");
    let shown = lines.iter().position(|line| line.contains("grpe -q x &&")).unwrap();
    assert_eq!(lines[shown].find("grpe"), lines[shown + 1].find("^^^^"), "{drawn}");
}
