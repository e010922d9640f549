//! A run is served as it was approved: by the worker that an approval names, by agents' scripts that lie in the workspace,
//! and in the workspace itself.

use crate::fixture::{Fixture, plan};

fn two_steps(fixture: &Fixture) {
    let steps = [("Mend", "test -e done-1", "escalate"), ("Review", "test -e done-2", "escalate")];
    fixture.write("p.md", &plan("Mend it", "5 minutes", &steps));
}

#[test]
fn an_approval_that_names_a_worker_starts_no_other_one() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    let good = "touch done-$PLANCTL_STEP";
    let approved = fixture.planctl(&["plan", "approve", "p.md", "--exec", good]);
    let next = format!("recorded: approve by ann\nnext: planctl run p.md --exec '{good}'\n");
    assert!(approved.code == 0 && approved.err.contains(&next), "{approved:?}");
    for other in [&["--exec", "touch done-1 done-2 evil"][..], &[]] {
        let said = fixture.planctl(&[&["plan", "run", "p.md", "--no-wait"], other].concat());
        assert_eq!(said.code, 5, "{said:?}");
        for words in [
            "it was approved for touch done-$PLANCTL_STEP",
            "next: planctl run p.md --exec 'touch done-$PLANCTL_STEP'\n",
        ] {
            assert!(said.err.contains(words), "{words}: {said:?}");
        }
    }
    assert!(!fixture.path("evil").exists());
    // Approved anew it runs, and what was approved is what is taken up.
    assert_eq!(fixture.planctl(&["plan", "approve", "p.md", "--exec", "touch done-1"]).code, 0);
    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--exec", "touch done-1"]);
    assert_eq!(said.code, 3, "{said:?}");
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait", "--exec", good]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("it was approved for touch done-1"), "{said:?}");
}

#[test]
fn cheat_50_a_worker_that_rewrites_the_agents_script_is_caught_by_its_own_gate() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    let script = "touch done-$PLANCTL_STEP\n";
    fixture.write("agent.sh", &format!("{script}echo 'touch done-1 done-2 evil' > agent.sh\n"));
    let run = ["plan", "run", "p.md", "--no-wait", "--exec", "bash agent.sh"];
    assert_eq!(fixture.planctl(&run).code, 3);
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    assert!(page.contains("agent.sh"), "the ask shows the script: {page}");
    assert_eq!(fixture.planctl(&["approvals", "approve", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&run);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("contract=tampered") && said.out.contains("agent.sh changed"), "{said:?}");
    assert!(!fixture.path("evil").exists() && !fixture.path("done-2").exists());
    let ask = fixture.ask();
    assert_eq!(fixture.planctl(&["approvals", "restore", &ask]).code, 0);
    assert!(fixture.read("agent.sh").starts_with(script), "the sealed copy is back");
}

#[test]
fn cheat_50_no_worker_starts_with_another_script_until_a_person_names_it_again() {
    let fixture = Fixture::new();
    two_steps(&fixture);
    fixture.write("agent.sh", "touch tried\n");
    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--approve", "--exec", "bash agent.sh"]);
    assert_eq!(said.code, 3, "{said:?}");
    fixture.write("agent.sh", "touch done-$PLANCTL_STEP\n");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "@last", "--no-wait"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!fixture.path("done-1").exists());
    let page = fixture.planctl(&["approvals", "show", &fixture.ask()]).out;
    for words in ["agent.sh (changed)", "resume the run and name its worker again, exec:bash agent.sh"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let ask = fixture.ask();
    assert_eq!(fixture.planctl(&["approvals", "retry", &ask]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait", "--agent", "exec:bash agent.sh"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn hole_20_nothing_runs_in_a_folder_that_took_the_workspaces_place() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Mend it", "5 minutes", &[("Mend", "test -e done-1", "escalate")]));
    let said = fixture.planctl(&["plan", "run", "p.md", "--no-wait", "--approve", "--exec", "touch tried"]);
    assert_eq!(said.code, 3, "{said:?}");
    let around = fixture.state().parent().unwrap().to_owned();
    let (work, away, decoy) = (around.join("work"), around.join("away"), around.join("decoy"));
    std::fs::create_dir(&decoy).unwrap();
    for name in ["done-1", "p.md"] {
        std::fs::write(decoy.join(name), fixture.read("p.md")).unwrap();
    }
    let stands_there = |said: &str, what: &str| {
        for words in [&format!("{what} stands there now"), "approve p.md there"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    };
    for what in ["a link", "another folder"] {
        std::fs::rename(&work, &away).unwrap();
        match what {
            "a link" => std::os::unix::fs::symlink(&decoy, &work).unwrap(),
            _ => std::fs::rename(&decoy, &work).unwrap(),
        }
        assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
        let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
        assert_eq!(said.code, 3, "{said:?}");
        stands_there(&fixture.planctl(&["approvals", "show", &fixture.ask()]).out, what);
        assert!(!work.join("tried").exists() && !decoy.join("tried").exists(), "no worker started there");
        if what == "a link" {
            std::fs::remove_file(&work).unwrap();
            std::fs::rename(&away, &work).unwrap();
            // The folder that was put back is the one that was approved.
            assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
            let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
            assert!(said.code == 3 && !said.err.contains("stands there now"), "{said:?}");
        }
    }
    // Where a person means the other folder, they approve the plan in it: as after a fresh clone.
    let said = fixture.planctl(&["plan", "approve", "p.md"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["approvals", "retry", &fixture.ask()]).code, 0);
    let said = fixture.planctl(&["plan", "resume", "p-1", "--no-wait"]);
    assert_eq!(said.code, 0, "{said:?}");
}
