//! Row A6: plans within plans that work in folders of the workspace.

use crate::fixture::{Fixture, git};

/// A plan with one step, which is right in a folder that has what it reads and is judged by.
const INNER: &str = "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Inner\n\n## Steps\n\n### 1. Inner step\n\n\
                     **target:** coder\n**subscriptions:**\n- file:notes.md\n\n**task:**\nDo the inner part in `made`.\n\n\
                     **contract:**\n```bash\nbash check.sh\n```\nexit_code == 0\n\n**on_fail:** abort\n";

/// Writes where it works into what it makes, and what it was told beside the workspace.
const WORK: &str = "cat > ../../told; basename \"$PWD\" > made";

fn digraph(statements: &str) -> String {
    format!("digraph outer {{ start [shape=Mdiamond] {statements} done [shape=Msquare] }}\n")
}

fn house(name: &str, folder: &str, more: &str) -> String {
    format!(
        "{name} [shape=house, stack.child_dotfile=\"plans/inner.md\", stack.child_workdir=\"{folder}\"{more}] "
    )
}

const INHERIT: &str = ", stack.child_approval=inherit";

/// A workspace in which the plan within is right in each of these folders, and nowhere else.
fn fixture(folders: &[&str]) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("plans/inner.md", INNER);
    for folder in folders {
        prepare(&fixture, folder);
    }
    fixture
}

fn prepare(fixture: &Fixture, folder: &str) {
    let name = folder.rsplit('/').next().unwrap();
    fixture.write(&format!("{folder}/notes.md"), &format!("Notes of {name}.\n"));
    fixture.write(&format!("{folder}/check.sh"), &format!("test \"$(cat made)\" = {name}\n"));
}

fn run<'w>(more: &[&'w str], exec: &'w str) -> Vec<&'w str> {
    [&["plan", "run", "outer.dot", "--no-wait", "--exec", exec], more].concat()
}

#[test]
fn a6_a_plan_within_works_in_its_folder_and_everything_shows_it() {
    let fixture = fixture(&["services/api"]);
    fixture
        .write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "services/api/", INHERIT))));
    let said = fixture.planctl(&["plan", "show", "outer.dot"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("plans/inner.md in services/api:"), "{said:?}");
    assert_eq!(fixture.planctl(&run(&[], WORK)).code, 3);
    let ask = fixture.ask();
    let page = fixture.json(&["approvals", "show", &ask, "--json"]);
    assert_eq!(page["will_run"]["plans"][0]["folder"], "services/api", "{page}");
    assert_eq!(page["will_run"].get("folder"), None, "{page}");
    let shown = fixture.planctl(&["approvals", "show", &ask]).out;
    assert!(shown.contains("1 step · in services/api · a part of outer.dot"), "{shown}");
    assert_eq!(fixture.planctl(&["approvals", "approve", &ask]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("services/api/made"), "api\n", "the worker's directory");
    assert!(fixture.read("told").contains("Notes of api."), "{}", fixture.read("told"));
    let status = fixture.json(&["plan", "status", "inner-1", "--json"]);
    assert_eq!((&status["state"], &status["folder"]), (&"done".into(), &"services/api".into()), "{status}");
    assert!(fixture.planctl(&["plan", "status", "inner-1"]).out.contains("works in the folder services/api"));
    assert_eq!(fixture.json(&["plan", "status", "outer-1", "--json"]).get("folder"), None);
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
    // An approval there is none here, where other files decide.
    let said = fixture.planctl(&["plan", "run", "plans/inner.md", "--again", "--no-wait", "--exec", WORK]);
    assert_ne!(said.code, 0, "{said:?}");
    prepare(&fixture, ".");
    let said = fixture.planctl(&["plan", "run", "plans/inner.md", "--again", "--no-wait", "--exec", WORK]);
    assert_eq!(said.code, 3, "{said:?}");
}

#[test]
fn a6_one_plan_in_two_folders_is_held_to_the_protected_files_of_each() {
    for (approval, asks) in [(INHERIT, 0), ("", 2)] {
        let fixture = fixture(&["at/one", "at/two"]);
        let houses = house("a", "at/one", approval) + &house("b", "at/two", approval);
        fixture.write("outer.dot", &digraph(&format!("{houses}start -> a -> b -> done")));
        let mut said = fixture.planctl(&run(&["--approve"], WORK));
        for _ in 0..asks {
            assert_eq!(said.code, 3, "{said:?}");
            let page = fixture.json(&["approvals", "show", &fixture.ask(), "--json"]);
            assert!(page["will_run"]["folder"].as_str().unwrap().starts_with("at/"), "{page}");
            assert_eq!(page["will_run"]["protected"], serde_json::json!(["check.sh"]), "{page}");
            assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
            said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
        }
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(
            (fixture.read("at/one/made").as_str(), fixture.read("at/two/made").as_str()),
            ("one\n", "two\n")
        );
        assert_eq!(fixture.planctl(&["audit"]).code, 0);
    }
}

#[test]
fn a6_a_protected_file_of_the_folder_that_was_changed_refuses_the_step() {
    let fixture = fixture(&["at/one", "at/two"]);
    let houses = house("a", "at/one", INHERIT) + &house("b", "at/two", INHERIT);
    fixture.write("outer.dot", &digraph(&format!("{houses}start -> a -> b -> done")));
    let tampering = format!("{WORK}; if [ $(cat made) = two ]; then echo true > check.sh; fi");
    let said = fixture.planctl(&run(&["--approve"], &tampering));
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.json(&["plan", "status", "inner-1", "--json"])["state"], "done");
    let status = fixture.json(&["plan", "status", "inner-2", "--json"]);
    assert_ne!(status["state"], "done", "{status}");
    assert!(status.to_string().contains("check.sh"), "{status}");
    // A file of that name in the workspace itself is another one.
    let fixture = self::fixture(&["at/one"]);
    fixture.write("check.sh", "false\n");
    fixture.write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "at/one", INHERIT))));
    let said = fixture.planctl(&run(&["--approve"], &format!("{WORK}; echo true > ../../check.sh")));
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a6_a_folder_that_is_not_there_is_told_and_asked_for_when_its_turn_comes() {
    let fixture = Fixture::new();
    let inner = INNER.replace("**subscriptions:**\n- file:notes.md\n", "");
    fixture.write("plans/inner.md", &inner);
    fixture.write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "later/one", INHERIT))));
    let said = fixture.planctl(&["plan", "verify", "outer.dot"]);
    assert_eq!(said.code, 0, "{said:?}");
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("P213") && told.contains("the folder `later/one` is not there"), "{said:?}");
    let said = fixture.planctl(&run(&["--approve"], WORK));
    assert_eq!(said.code, 3, "{said:?}");
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(shown.contains("the folder later/one of ") && shown.contains("it does not exist"), "{shown}");
    assert!(shown.contains("in which plans/inner.md works"), "{shown}");
    prepare(&fixture, "later/one");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("later/one/made"), "one\n");
}

#[test]
fn a6_an_earlier_step_may_make_the_folder() {
    let fixture = Fixture::new();
    fixture.write("plans/inner.md", &INNER.replace("**subscriptions:**\n- file:notes.md\n", ""));
    let make = "make [prompt=\"Make the folder.\", contract=\"test -d later/one\", target=coder] ";
    let house = house("a", "later/one", INHERIT);
    fixture.write("outer.dot", &digraph(&format!("{make}{house}start -> make -> a -> done")));
    let work = format!(
        "if [ $PLANCTL_PLAN = outer.dot ]; then mkdir -p later/one; echo test -f made > later/one/check.sh; else {WORK}; fi"
    );
    let said = fixture.planctl(&run(&["--approve"], &work));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("later/one/made"), "one\n");
}

#[test]
fn a6_a_folder_behind_a_link_out_of_the_workspace_is_refused_before_and_while_it_runs() {
    let fixture = fixture(&["real/one"]);
    std::fs::create_dir_all(fixture.home().join("one")).unwrap();
    let link = |name: &str, to: &std::path::Path| std::os::unix::fs::symlink(to, fixture.path(name)).unwrap();
    link("out", &fixture.home());
    link("inside", std::path::Path::new("real"));
    let outer = |folder: &str| digraph(&format!("{}start -> a -> done", house("a", folder, INHERIT)));
    fixture.write("outer.dot", &outer("out/one"));
    let said = fixture.planctl(&["plan", "verify", "outer.dot"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(format!("{}{}", said.out, said.err).contains("P205"), "{said:?}");
    assert_eq!(fixture.planctl(&run(&["--approve"], WORK)).code, 1);
    // One that stays inside is as good as the folder.
    fixture.write("outer.dot", &outer("inside/one"));
    let said = fixture.planctl(&run(&["--approve"], WORK));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("real/one/made"), "one\n");
    // It becomes one when the run is under way: before its turn, and while the plan within works in it.
    let away = format!("mv real away; ln -s {} real", fixture.home().display());
    let first = "first [prompt=\"First.\", contract=\"test -L real\", target=coder] ";
    let late = digraph(&format!("{first}{}start -> first -> a -> done", house("a", "real/one", INHERIT)));
    fixture.write("outer.dot", &late);
    let said =
        fixture.planctl(&run(&["--approve"], &format!("if [ $PLANCTL_PLAN = outer.dot ]; then {away}; fi")));
    assert_eq!(said.code, 3, "{said:?}");
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(shown.contains("it leads out of the workspace"), "{shown}");
    assert_eq!(fixture.planctl(&["plan", "cancel", "@last"]).code, 0);
    std::fs::remove_file(fixture.path("real")).unwrap();
    std::fs::rename(fixture.path("away"), fixture.path("real")).unwrap();
    fixture.write("outer.dot", &outer("real/one"));
    let said = fixture.planctl(&run(&["--approve"], &format!("cd ../..; {away}")));
    assert_eq!(said.code, 3, "{said:?}");
    let asks = fixture.json(&["approvals", "--json"]).to_string();
    let shown = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(shown.contains("it leads out of the workspace"), "{asks} {shown}");
    assert!(!fixture.home().join("one/made").exists());
}

#[test]
fn a6_folders_of_plans_within_plans_within_join() {
    let fixture = fixture(&["outer/deep/one"]);
    let middle = house("b", "deep/one", INHERIT);
    fixture.write(
        "middle.dot",
        &digraph(&format!("{middle}start -> b -> done")).replace("digraph outer", "digraph middle"),
    );
    let house = house("a", "outer", INHERIT).replace("plans/inner.md", "middle.dot");
    fixture.write("outer.dot", &digraph(&format!("{house}start -> a -> done")));
    let work = "cat > ../../../told; basename \"$PWD\" > made";
    let said = fixture.planctl(&run(&["--approve"], work));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("outer/deep/one/made"), "one\n");
    let folder = |run: &str| fixture.json(&["plan", "status", run, "--json"])["folder"].clone();
    assert_eq!((folder("middle-1"), folder("inner-1")), ("outer".into(), "outer/deep/one".into()));
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a6_the_folder_of_a_branch_is_that_of_its_worktree() {
    let fixture = fixture(&["at/one", "at/two"]);
    git(&fixture.path(""), &["init", "--quiet"]);
    let houses = house("a", "at/one", INHERIT) + &house("b", "at/two", INHERIT);
    fixture.write(
        "outer.dot",
        &digraph(&format!(
            "fork [shape=component, workspace=worktree] join [shape=tripleoctagon] {houses}\
             start -> fork fork -> a -> join fork -> b -> join join -> done"
        )),
    );
    git(&fixture.path(""), &["add", "-A"]);
    git(&fixture.path(""), &["commit", "--quiet", "-m", "all"]);
    let work = format!(
        "pwd >> {}; cat > /dev/null; basename \"$PWD\" > made",
        fixture.home().join("places").display()
    );
    let said = fixture.planctl(&run(&["--approve"], &work));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        (fixture.read("at/one/made").as_str(), fixture.read("at/two/made").as_str()),
        ("one\n", "two\n")
    );
    let places = std::fs::read_to_string(fixture.home().join("places")).unwrap();
    let mut places: Vec<&str> = places.lines().collect();
    places.sort_unstable_by_key(|place| place.ends_with("two"));
    assert_eq!(places.len(), 2, "{places:?}");
    for (place, end) in places.iter().zip(["/at/one", "/at/two"]) {
        assert!(place.starts_with(fixture.state().to_str().unwrap()) && place.ends_with(end), "{places:?}");
    }
}

#[test]
fn a6_a_plan_within_is_edited_and_verified_where_it_works() {
    let fixture = fixture(&["at/one"]);
    fixture.write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "at/one", INHERIT))));
    fixture.write("plans/inner.md", &INNER.replace("abort", "escalate"));
    // The files that it reads are there only, and its file is not the one that its contract asks for, until its task is
    // another.
    let work = "cat > ../../told; if grep -q 'Do it in' ../../told; then basename \"$PWD\" > made; else echo wrong > made; fi";
    let said = fixture.planctl(&run(&["--approve"], work));
    assert_eq!(said.code, 3, "{said:?}");
    let ask = fixture.ask();
    let editor = fixture.home().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nsed -i 's/Do the inner part/Do it/' \"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let edited =
        fixture.command(&["approvals", "edit", &ask, "--approve"]).env("EDITOR", &editor).output().unwrap();
    let said = crate::fixture::Said::from(edited);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(fixture.read("plans/inner.md").contains("Do it in `made`."));
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("at/one/made"), "one\n");
    assert_eq!(fixture.planctl(&["audit"]).code, 0);
}

#[test]
fn a6_who_approves_the_file_of_a_plan_that_waits_within_another_approves_it_for_its_folder() {
    let fixture = fixture(&["at/one"]);
    // It is verified in the workspace as well, where another file decides.
    prepare(&fixture, ".");
    fixture.write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "at/one", ""))));
    assert_eq!(fixture.planctl(&run(&["--approve"], WORK)).code, 3);
    assert_eq!(fixture.planctl(&["plan", "approve", "plans/inner.md"]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("at/one/made"), "one\n");
}

#[test]
fn a_plan_within_that_is_not_there_or_is_none_is_told_by_verification() {
    let fixture = fixture(&["at/one"]);
    let told = |file: &str| {
        let text = digraph(&format!("{}start -> a -> done", house("a", "at/one", INHERIT)));
        fixture.write("outer.dot", &text.replace("plans/inner.md", file));
        let said = fixture.planctl(&["plan", "verify", "outer.dot"]);
        (said.code, format!("{}{}", said.out, said.err))
    };
    assert_eq!(told("plans/inner.md").0, 0);
    let (code, said) = told("plans/iner.md");
    assert!(
        code == 1 && said.contains("P214") && said.contains("the plan `plans/iner.md` is not there"),
        "{said}"
    );
    assert!(said.contains("did you mean `plans/inner.md`?"), "{said}");
    // Its folder does not matter, since the file is one of the workspace.
    fixture.write("at/one/inner.md", INNER);
    let (code, said) = told("inner.md");
    assert!(code == 1 && said.contains("the plan `inner.md` is not there"), "{said}");
    std::fs::write(fixture.path("plans/binary.md"), b"\x7fELF\x02\x01\x01\0\0").unwrap();
    for (file, why) in [("plans", "it is a directory"), ("plans/binary.md", "a program")] {
        let (code, said) = told(file);
        assert!(code == 1 && said.contains("can't be read as a plan") && said.contains(why), "{said}");
    }
}

#[test]
fn a6_the_file_of_a_plan_that_waits_in_a_folder_is_verified_there_when_it_is_approved() {
    // The files that it reads are there only.
    let fixture = fixture(&["at/one"]);
    fixture.write("outer.dot", &digraph(&format!("{}start -> a -> done", house("a", "at/one", ""))));
    assert_eq!(fixture.planctl(&run(&["--approve"], WORK)).code, 3);
    assert_eq!(fixture.json(&["plan", "status", "inner-1", "--json"])["state"], "awaiting_approval");
    std::fs::remove_file(fixture.path("at/one/notes.md")).unwrap();
    let said = fixture.planctl(&["plan", "approve", "plans/inner.md"]);
    assert!(said.code == 1 && said.err.contains("P201"), "{said:?}");
    assert!(said.err.contains("could not verify plans/inner.md in the folder at/one"), "{said:?}");
    let typed = "planctl verify --workspace at/one plans/inner.md";
    assert!(said.err.contains(typed), "{said:?}");
    assert_eq!(fixture.planctl(&typed.split(' ').skip(1).collect::<Vec<_>>()).code, 1);
    prepare(&fixture, "at/one");
    let said = fixture.planctl(&["plan", "approve", "plans/inner.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "outer-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.read("at/one/made"), "one\n");
    // It is over: the approval is of the plan by itself, in the workspace.
    let said = fixture.planctl(&["plan", "approve", "plans/inner.md"]);
    assert!(said.code == 1 && said.err.contains("could not verify plans/inner.md:"), "{said:?}");
}
