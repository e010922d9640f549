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
    let flow = format!("{PLAN}\n## Flow\n\n- 2 -> 1 on fail\n");
    assert!(inserted(&flow, 1, STEP).unwrap_err().contains("numbers of steps"));
}
