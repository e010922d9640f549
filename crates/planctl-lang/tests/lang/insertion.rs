//! Steps that workers propose are put into a plan, and what follows is numbered anew.

use planctl_lang::{Source, insert_steps, parse};

const PLAN: &str = "---\ntype: plan\nstatus: in-progress\nowner: ann\n---\n\n# Two\n\n## Steps\n\n### 1. ✅ One\n\n**target:** coder\n**task:** do\n\
    **contract:**\n```shell\ntest -f a\n```\n\n### 2. Two\n\n**target:** coder\n**needs:** 1\n**task:** do\n**contract:**\n```shell\ntest -f b\n```\n\n\
    ### 3. Three\n\n**target:** coder\n**needs:** 2\n**task:** do\n**contract:**\n```shell\ntest -f c\n```\n";

const STEP: &str = "### 9. Between\n\n**target:** coder\n**task:** do\n**contract:**\n```shell\n# a comment\ntest -f x\n```\n";

fn inserted(plan: &str, after: u32, step: &str) -> Result<String, String> {
    insert_steps(&Source::new("p.md", plan), after, step)
        .map_err(|found| found.into_iter().map(|found| found.message).collect::<Vec<_>>().join("; "))
}

fn titles(text: &str) -> Vec<String> {
    let (tree, found) = parse(&Source::new("p.md", text));
    assert!(found.iter().all(|found| found.level != planctl_lang::Severity::Error), "{found:?}");
    let needs = |step: &planctl_lang::StepTree| step.needs.as_ref().map(|needs| needs.value.clone());
    tree.steps
        .iter()
        .map(|step| {
            format!("{} {} {:?}", step.number_text(), step.title.value, needs(step).unwrap_or_default())
        })
        .collect()
}

#[test]
fn h51_a_step_comes_after_the_one_that_proposed_it_and_references_follow() {
    let text = inserted(PLAN, 1, STEP).unwrap();
    assert_eq!(titles(&text), ["1 One []", "2 Between []", "3 Two [1]", "4 Three [3]"]);
    assert!(text.contains("# a comment\ntest -f x"), "{text}");
    let last = inserted(PLAN, 3, STEP).unwrap();
    assert_eq!(titles(&last), ["1 One []", "2 Two [1]", "3 Three [2]", "4 Between []"]);
    let several =
        inserted(PLAN, 2, &format!("{STEP}\n{}", STEP.replace("### 9. Between", "## Again"))).unwrap();
    assert_eq!(titles(&several).len(), 5, "{several}");
    let windows = inserted(&PLAN.replace('\n', "\r\n"), 1, STEP).unwrap();
    assert!(!windows.replace("\r\n", "").contains('\n'), "{windows:?}");
}

#[test]
fn h51_what_is_no_step_or_would_change_what_is_meant_is_refused() {
    assert_eq!(inserted(PLAN, 7, STEP).unwrap_err(), "the plan has no step 7");
    assert!(inserted(PLAN, 1, "please add a step").unwrap_err().contains("is the text of a step"));
    assert!(inserted(PLAN, 1, "").is_err());
    for unclear in
        ["1 -> 3 if steps.1.exit_code = 0", "1 -> 3 on always", "1, 2 -> 3 on success if outcome=success"]
    {
        let flow = format!("{PLAN}\n## Flow\n\n- {unclear}\n");
        let refused = inserted(&flow, 1, STEP).unwrap_err();
        assert_eq!(refused, "where the run goes from step 1 depends on more than its success", "{unclear}");
    }
}

/// The lines of a plan's flow, and the conditions of its steps.
fn ways(text: &str) -> Vec<&str> {
    let flow = text.split("## Flow").skip(1).flat_map(str::lines);
    let whens = text.lines().filter(|line| line.starts_with("**when:**"));
    whens.chain(flow).filter(|line| !line.is_empty()).collect()
}

#[test]
fn h51_ways_and_conditions_follow_and_what_led_on_leads_on_from_the_new_step() {
    let plan =
        PLAN.replace("**needs:** 1\n", "").replace("**needs:** 2\n", "**when:** steps.2.exit_code=0\n");
    let flow = format!(
        "{plan}\n## Flow\n\n- 3 -> 2 on fail if steps.3.exit_code = 7 && steps.1.outcome=success\n- 2 -> 3\n- step 1, 2 -> done, 3\n- 9 -> 1\n"
    );
    let first = inserted(&flow, 1, STEP).unwrap();
    assert_eq!(
        ways(&first),
        [
            "**when:** steps.3.exit_code=0",
            "- 4 -> 3 on fail if steps.4.exit_code = 7 && steps.1.outcome=success",
            "- 3 -> 4",
            "- 2, 3 -> done, 4",
            "- 9 -> 1"
        ]
    );
    let second = inserted(&flow, 2, &format!("{STEP}\n{STEP}")).unwrap();
    assert_eq!(
        ways(&second),
        [
            "**when:** steps.2.exit_code=0",
            "- 5 -> 2 on fail if steps.5.exit_code = 7 && steps.1.outcome=success",
            "- 4 -> 5",
            "- step 1, 4 -> done, 5",
            "- 9 -> 1"
        ]
    );
}
