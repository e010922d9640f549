//! `plan verify --fix`: the files it writes, its refusals, and its output.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::fixture::{Fixture, plan, steady};

fn good() -> String {
    plan(
        "Two steps",
        "10k tokens, $0.10, 5 minutes",
        &[("First", "test -s one.txt", "retry(2), then escalate"), ("Second", "test -s two.txt", "abort")],
    )
}

fn broken() -> String {
    good()
        .replacen("**target:** coder", "**taget:** coder", 1)
        .replace("### 2. Second", "### 3. Second")
        .replace("**on_fail:** abort", "**on_fail:** ignore")
}

fn fixture(text: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("p.md", text).write("planctl.toml", "[roles.coder]\ntimeout = \"1m\"\n");
    fixture
}

#[test]
fn a_plain_verification_says_how_many_findings_can_be_fixed() {
    let fixture = fixture(&broken());
    let said = fixture.planctl(&["plan", "verify", "p.md"]);
    assert_eq!(said.code, 1);
    let next = "not verified · status stays `draft`\nnext: planctl verify --fix p.md     (2 of 3 findings can be fixed)\n";
    assert!(said.out.contains(next), "{}", said.out);
    assert!(said.out.contains("did you mean `**target:**`?     (--fix does it)"), "{}", said.out);
    assert_eq!(fixture.read("p.md"), broken());
}

#[test]
fn what_can_be_fixed_is_fixed_and_what_is_left_decides() {
    let fixture = fixture(&broken());
    std::fs::set_permissions(fixture.path("p.md"), PermissionsExt::from_mode(0o640)).unwrap();
    let said = fixture.planctl(&["plan", "verify", "--fix", "p.md"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("fixed 2 of 3 findings\n") && said.out.contains("error[P015]"), "{}", said.out);
    assert_eq!(fixture.read("p.md"), good().replace("**on_fail:** abort", "**on_fail:** ignore"));
    let mode = std::fs::metadata(fixture.path("p.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    fixture.write("p.md", &broken().replace("**on_fail:** ignore", "**on_fail:** abrt"));
    let said = fixture.planctl(&["plan", "verify", "--fix", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        steady(&said.out, &fixture.path("")),
        "fixed 3 of 3 findings\n\
         p.md: 2 steps, contracts not tried · no problems\n\
         verified · 2 steps in order 1→2 · role coder · 10k tokens · $0.10 · 5m00s · sha256 …\n\
         no agent is named for the role coder: name one here, or in planctl.toml below [roles.coder]\n\
         next: planctl run p.md --agent NAME\n"
    );
    assert_eq!(fixture.read("p.md"), good());
    assert!(fixture.planctl(&["plan", "verify", "--fix", "p.md"]).out.starts_with("nothing to fix\n"));
}

#[test]
fn a_diff_shows_and_writes_nothing() {
    let fixture = fixture(&broken());
    for flag in ["--diff", "--dry-run"] {
        let said = fixture.planctl(&["plan", "verify", "--fix", flag, "p.md"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.out.contains("-**taget:** coder\n") && said.out.contains("+**target:** coder\n"),
            "{said:?}"
        );
        assert!(said.err.contains("would fix 2 of 3 findings; nothing was written"), "{said:?}");
        assert_eq!(fixture.read("p.md"), broken());
    }
    assert_eq!(fixture.planctl(&["plan", "verify", "--diff", "p.md"]).code, 2, "only with --fix");
}

#[test]
fn a_fix_that_a_person_has_to_look_at_is_applied_only_when_asked_for() {
    let text = good().replacen("**contract:**\n```bash\ntest -s one.txt\n```\nexit_code == 0\n", "", 1);
    let fixture = fixture(&text);
    let said = fixture.planctl(&["plan", "verify", "--fix", "p.md"]);
    assert_eq!((said.code, fixture.read("p.md")), (1, text), "{said:?}");
    assert!(said.out.contains("next: planctl verify --fix --unsafe-fixes --diff p.md"), "{}", said.out);
    let said = fixture.planctl(&["plan", "verify", "--fix", "--unsafe-fixes", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.read("p.md").contains("false  # write a check"), "{}", fixture.read("p.md"));
    assert!(said.out.contains("warning[P113]"), "the stub is found: {}", said.out);
}

#[test]
fn what_may_not_be_written_is_left_alone() {
    let fixture = fixture(&broken());
    std::fs::set_permissions(fixture.path("p.md"), PermissionsExt::from_mode(0o444)).unwrap();
    let said = fixture.planctl(&["plan", "verify", "--fix", "p.md"]);
    assert_eq!(said.code, 77, "{said:?}");
    assert!(said.err.contains("read-only") && said.err.contains("chmod"), "{said:?}");
    assert_eq!(fixture.read("p.md"), broken());

    let outside = fixture.home().join("elsewhere.md");
    std::fs::write(&outside, broken()).unwrap();
    symlink(&outside, fixture.path("link.md")).unwrap();
    let said = fixture.planctl(&["plan", "verify", "--fix", "link.md"]);
    assert_eq!(said.code, 77, "{said:?}");
    assert!(said.err.contains("a link out of the workspace"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), broken());

    fixture.write("inner.md", &broken());
    symlink("inner.md", fixture.path("near.md")).unwrap();
    assert_eq!(fixture.planctl(&["plan", "verify", "--fix", "near.md"]).code, 1);
    assert!(fixture.path("near.md").is_symlink() && fixture.read("inner.md").contains("**target:** coder"));
}

#[test]
fn line_ends_stay_and_json_counts() {
    let fixture = fixture(&broken().replace('\n', "\r\n"));
    let said = fixture.planctl(&["plan", "verify", "--fix", "--json", "p.md"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (said.code, report["fixed"].as_u64(), report["verified"].as_bool()),
        (1, Some(2), Some(false))
    );
    let text = fixture.read("p.md");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[test]
fn a_text_that_was_approved_is_said_to_be_another_one() {
    let done = good().replace("status: draft", "status: done").replace("### 1. ", "### 1. ✅ ");
    let fixture = fixture(&done.replace("### 2. ", "### 3. ✅ "));
    let said = fixture.planctl(&["plan", "verify", "--fix", "p.md"]);
    assert_eq!(fixture.read("p.md"), done.replace("### 2. ", "### 2. ✅ "));
    assert!(said.out.contains("an approval of the earlier one no longer holds"), "{}", said.out);
}
