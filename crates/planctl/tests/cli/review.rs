//! `plan review`: an agent reviews, the verifier decides (P-64).

use crate::fixture::{Fixture, Said, plan};

fn broken() -> String {
    plan("One file", "5 minutes", &[("One", "test -e done-1 && && true", "escalate")])
}

#[test]
fn p_64_a_reviewer_mends_a_plan_until_the_verifier_has_nothing_against_it() {
    let fixture = Fixture::new();
    fixture.write("plans/p.md", &broken());
    assert_eq!(fixture.planctl(&["plan", "verify", "plans/p.md"]).code, 1);
    // The first try changes nothing that matters; the second is told what the verifier said of it.
    fixture.write(
        "reviewer.sh",
        "cat > prompt-$PLANCTL_ATTEMPT\n[ $PLANCTL_ATTEMPT = 2 ] && sed -i 's/ && && true//' plans/p.md; true\n",
    );
    let said = fixture.planctl(&[
        "plan",
        "review",
        "plans/p.md",
        "--role",
        "reviewer",
        "--exec",
        "bash reviewer.sh",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("review-of-plans-p-1 done"), "{said:?}");
    assert!(said.out.contains("\nverified · 1 step"), "{said:?}");
    assert!(
        fixture.read("prompt-1").contains("One file"),
        "the plan's text is in the prompt: {}",
        fixture.read("prompt-1")
    );
    assert!(fixture.read("prompt-2").contains("error[P101]"), "{}", fixture.read("prompt-2"));
    let status = fixture.json(&["plan", "status", "@last", "--json"]);
    assert_eq!((status["state"].as_str(), status["steps"][0]["attempts"].as_u64()), (Some("done"), Some(2)));
}

#[test]
fn p_64_a_reviewer_who_mends_nothing_does_not_make_a_plan_verified() {
    let fixture = Fixture::new();
    fixture.write("p.md", &broken());
    let words = ["plan", "review", "p.md", "--role", "reviewer", "--exec", "echo all good", "--no-wait"];
    let said = fixture.planctl(&words);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("planctl approvals show"), "{said:?}");
    assert_eq!(fixture.planctl(&["plan", "verify", "p.md"]).code, 1);
}

#[test]
fn p_64_a_plan_outside_the_workspace_or_a_role_that_is_none_is_refused() {
    let fixture = Fixture::new();
    let outside = fixture.home().join("p.md");
    std::fs::write(&outside, broken()).unwrap();
    let outside = outside.to_string_lossy().into_owned();
    let said = fixture.planctl(&["plan", "review", &outside, "--role", "reviewer", "--exec", "true"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("lies outside the workspace"), "{said:?}");
    fixture.write("p.md", &broken());
    let said = fixture.planctl(&["plan", "review", "p.md", "--role", "no such role", "--exec", "true"]);
    assert!(said.code == 1 && said.err.contains("P403"), "{said:?}");
    assert_eq!(
        fixture.planctl(&["plan", "review", "gone.md", "--role", "reviewer", "--exec", "true"]).code,
        4
    );
}

#[test]
fn p_64_a_review_goes_on_where_the_configuration_takes_every_warning_for_an_error() {
    let fixture = Fixture::new();
    fixture.write("planctl.toml", "[roles.coder]\n[roles.reviewer]\n[verify]\ndeny = [\"warnings\"]\n");
    fixture.write("p.md", &plan("One file", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let words = ["plan", "review", "p.md", "--role", "reviewer", "--exec", "true", "--no-wait"];
    let said = fixture.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn p_64_the_earlier_flag_of_a_review_is_told_what_to_type() {
    let fixture = Fixture::new();
    fixture.write("p.md", &broken());
    let said = fixture.planctl(&["plan", "verify", "p.md", "--via", "reviewer", "--exec", "true"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("planctl plan review FILE --role ROLE"), "{said:?}");
}

#[test]
fn plans_that_planctl_writes_are_read_whatever_the_name_of_their_owner() {
    for actor in ["@ann", "CORP\\ann", "*all: \"of us\" # 1"] {
        let fixture = Fixture::new();
        fixture.write("p.md", &broken());
        let typed = |words: &[&str]| {
            let mut command = fixture.command(words);
            Said::from(command.env("PLANCTL_ACTOR", actor).output().unwrap())
        };
        let said = typed(&["review", "p.md", "--role", "reviewer", "--exec", "true", "--no-wait"]);
        assert_eq!(said.code, 3, "{said:?}");
        let said = typed(&["guard", &format!("test -e '{actor}'")]);
        assert_eq!(said.code, 0, "{said:?}");
    }
}
