//! Asks that are shown and answered where a person follows the run.

use rustix::process::Signal;

use crate::console::{Console, screen};
use crate::fixture::{Fixture, plan};
use crate::http::house::House;

/// Does a step right where its prompt says so.
const WORKER: &str = "case $(cat) in *'use the force'*) touch done-$PLANCTL_STEP;; esac";

fn run(worker: &str) -> String {
    format!("planctl run p.md --approve --exec '{}'", worker.replace('\'', r"'\''"))
}

fn stuck(fixture: &Fixture) {
    fixture.write("p.md", &plan("Stuck", "5 minutes", &[("One", "test -e done-1", "escalate")]));
}

#[test]
fn an_escalation_is_shown_whole_and_answered_with_a_note() {
    let house = House::new();
    let alone = Fixture::new();
    // Beside a daemon, and without one.
    for fixture in [&house.fixture, &alone] {
        stuck(fixture);
        let mut console = Console::new(fixture, 100, &run(WORKER));
        console.hear("escalation ").hear("contract, which passes with exit code 0").hear("test -e done-1");
        console
            .hear("[")
            .hear("try once more, with your note in the prompt")
            .hear("your answer?")
            .keys("q\n");
        console.hear("Please type r, s, w, g, e or x.").hear("your answer?").keys("r\n");
        console.hear("a note for the worker?").keys("use the force\n").hear("recorded: retry by ann");
        let (code, printed) = console.end();
        assert_eq!(code, 0, "{printed}");
        let rows = screen(100, &printed);
        assert_eq!(rows.iter().filter(|row| row.contains(" 1  One ")).count(), 1, "{rows:#?}");
        assert!(!printed.contains("planctl approvals retry"), "it is answered here: {printed}");
    }
}

#[test]
fn several_asks_come_one_after_the_other() {
    let fixture = Fixture::new();
    let step = |number: u32, needs: &str| {
        format!(
            "\n### {number}. Step {number}\n\n**target:** coder\n{needs}\n**task:**\nDo it.\n\n**contract:**\n```bash\n\
             test -e done-{number}\n```\nexit_code == 0\n**on_fail:** escalate\n"
        )
    };
    let steps = [step(1, "**needs:** none\n"), step(2, "**needs:** none\n"), step(3, "**needs:** none\n")];
    fixture.write(
        "p.md",
        &format!(
            "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Three\n\n**parallel:** 3\n\n## Steps\n{}",
            steps.concat()
        ),
    );
    let said = fixture.run("true");
    assert_eq!(said.code, 3, "{said:?}");
    assert_eq!(fixture.json(&["approvals", "--json"])["asks"].as_array().unwrap().len(), 3);
    let mut console = Console::new(&fixture, 100, "planctl resume @last");
    for place in ["1 of 3", "2 of 3", "3 of 3"] {
        console
            .hear(place)
            .hear("your answer?")
            .keys("s\n")
            .hear("why?")
            .keys("not today\n")
            .hear("recorded: skip");
    }
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn later_leaves_an_ask_open_and_enter_comes_back_to_it() {
    let fixture = Fixture::new();
    stuck(&fixture);
    for later in ["\n", "\u{1b}"] {
        let mut console = Console::new(&fixture, 100, "planctl run p.md --approve --exec true");
        console
            .hear("your answer?")
            .keys(later)
            .hear("left open; Enter comes back to it, or: planctl approvals show");
        // Only the live view hears it, and it is there again with this.
        console.hear("waiting for you: planctl approvals show").keys("\n").hear("your answer?").keys(later);
        console.hear("left open").hear("waiting for you").keys("\u{3}");
        let (code, printed) = console.end();
        assert_eq!(code, 130, "{printed}");
    }
    fixture.ask();
}

#[test]
fn a_terminal_whose_input_ended_is_not_asked_again_and_nothing_is_drawn_anew() {
    let fixture = Fixture::new();
    stuck(&fixture);
    let mut console = Console::new(&fixture, 100, &run(WORKER));
    console.hear("your answer?").keys("\u{4}").hear("the input has ended; answer from elsewhere: planctl");
    console.hear("waiting for you: planctl approvals show ");
    // Nothing that is typed brings the question back, and an answer from elsewhere counts.
    console.keys("\n");
    let said = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "in vain"]);
    assert_eq!(said.code, 0, "{said:?}");
    console.hear("attempt 2 ").hear("waiting for you: planctl approvals show ");
    let said = fixture.planctl(&["approvals", "retry", &fixture.ask(), "--note", "use the force"]);
    assert_eq!(said.code, 0, "{said:?}");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed.matches("your answer?").count(), 1, "{printed}");
    let frames: Vec<&str> = printed.split("\u{1b}[J").collect();
    assert!(frames.windows(2).all(|pair| pair[0].trim_end() != pair[1].trim_end()), "{printed:?}");
}

#[test]
fn an_arrow_is_no_answer_and_ctrl_c_stops_the_run_while_it_asks() {
    let fixture = Fixture::new();
    stuck(&fixture);
    let mut console = Console::new(&fixture, 100, "planctl run p.md --approve --exec true");
    console.hear("your answer?").keys("\u{1b}[A").hear("your answer?").keys("\u{3}");
    let (code, printed) = console.end();
    assert_eq!(code, 130, "{printed}");
    assert!(printed.contains("planctl resume p-1"), "{printed}");
    fixture.ask();
}

#[test]
fn who_answers_elsewhere_is_named_and_the_run_goes_on() {
    let fixture = Fixture::new();
    stuck(&fixture);
    let mut console = Console::new(&fixture, 100, &run(WORKER));
    console.hear("your answer?");
    let mut command = fixture.command(&["approvals", "retry", &fixture.ask(), "--note", "use the force"]);
    assert!(command.env("PLANCTL_ACTOR", "bob").output().unwrap().status.success());
    console.hear("was answered meanwhile: retry by bob: use the force");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn a_watcher_is_asked_too_and_no_pipe_no_agent_and_nobody_who_forbids_input() {
    let house = House::new();
    let fixture = &house.fixture;
    stuck(fixture);
    let said = fixture.run(WORKER);
    assert_eq!(said.code, 3, "{said:?}");
    for line in ["planctl --no-input plan watch @last", "PLANCTL_ITEM_ID=1 planctl watch @last"] {
        let mut console = Console::new(fixture, 100, line);
        console.hear("waiting for you: planctl approvals show").keys("\u{3}");
        let (_, printed) = console.end();
        assert!(!printed.contains("your answer?"), "{printed}");
    }
    let mut piped = fixture.start(&["plan", "watch", "@last"]);
    piped.hear("waiting for you: planctl approvals show");
    piped.signal(Signal::TERM);
    assert!(!piped.end().err.contains("your answer?"));
    let mut console = Console::new(fixture, 100, "planctl watch @last");
    console.hear("your answer?").keys("retry\n").hear("a note").keys("use the force\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn a_workers_question_is_answered_in_ones_own_words() {
    let fixture = Fixture::new();
    fixture.write("p.md", &plan("Ask", "5 minutes", &[("One", "grep -qx blue colour", "abort")]));
    fixture.write(
        "worker.sh",
        r#"case $(cat) in *blue*) echo blue > colour;; *) echo '{"planctl":"result/1","outcome":"needs_input","question":"Which colour?"}' > $PLANCTL_RESULT_FILE;; esac"#,
    );
    let mut console = Console::new(&fixture, 100, &run("bash worker.sh"));
    console
        .hear("asks:")
        .hear("Which colour?")
        .hear("your answer? a letter or your own words")
        .keys("blue\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn a_budget_is_raised_by_what_is_short() {
    let fixture = Fixture::new();
    let step = |number: u32| format!("test -e done-{number}");
    let steps = [("One", &*step(1), "escalate"), ("Two", &*step(2), "escalate")];
    fixture.write("p.md", &plan("Spend", "max 1500 tokens, 5 minutes", &steps));
    fixture.write(
        "worker.sh",
        r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","text":"ok","usage":{"input_tokens":900,"output_tokens":100}}' > $PLANCTL_RESULT_FILE"#,
    );
    let mut console = Console::new(&fixture, 100, &run("bash worker.sh"));
    console.hear("budget ").hear("your answer?").keys("r\n").hear("by how many tokens?").keys("much\n");
    console.hear("could not read `much`").hear("your answer?").keys("r\n").hear("by how many").keys("2k\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    assert_eq!(fixture.status()["budget"]["tokens"], 3500);
}

#[test]
fn a_choice_is_made_by_name_or_number_and_says_what_follows() {
    const STEPS: &str = "---\ntype: plan\nstatus: draft\nowner: ada\n---\n\n# Names\n\n## Steps\n\n### 1. Keep the old names?\n\n\
        **type:** human\n**task:**\nShall they stay?\n\n### 2. Add aliases\n\n**type:** call\n**contract:**\n```bash\n\
        touch aliases\n```\nexit_code == 0\n\n### 3. Drop them\n\n**type:** call\n**contract:**\n```bash\ntouch dropped\n```\n\
        exit_code == 0\n\n## Flow\n\n- 1 -> 2 \"Keep the old names\"\n- 1 -> 3 \"Drop\"\n- 2 -> done\n";
    for (answer, file) in
        [("keep\n", "aliases"), ("2\n", "dropped"), ("step 2\n", "aliases"), ("nothing\n1\n", "aliases")]
    {
        let fixture = Fixture::new();
        fixture.write("p.md", STEPS);
        let mut console = Console::new(&fixture, 100, "planctl run p.md --approve");
        console.hear("Shall they stay?").hear("1  Keep the old names").hear("→ step 2 \"Add aliases\"");
        console
            .hear("2  Drop")
            .hear("→ step 3 \"Drop them\"")
            .hear("your answer? a number, a name or a letter");
        console.keys(answer);
        let (code, printed) = console.end();
        assert_eq!(code, 0, "{printed}");
        assert!(fixture.path(file).exists(), "{printed}");
    }
    // A number means the same where it is given to a command.
    let fixture = Fixture::new();
    fixture.write("p.md", STEPS);
    assert_eq!(fixture.planctl(&["run", "p.md", "--approve", "--no-wait"]).code, 3);
    let said = fixture.planctl(&["approvals", "choose", &fixture.ask(), "2"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(fixture.planctl(&["resume"]).code, 0);
    assert!(fixture.path("dropped").exists());
}

#[test]
fn a_file_that_was_tampered_with_shows_its_difference_is_restored_and_the_edit_that_allows_it_is_named() {
    let fixture = Fixture::new();
    fixture.write("check.sh", "test -e done-1\n");
    fixture.write("p.md", &plan("Cheat", "5 minutes", &[("One", "bash check.sh", "escalate")]));
    let worker = "if [ -e tried ]; then touch done-1; else touch tried; echo true > check.sh; fi";
    let mut console = Console::new(&fixture, 100, &run(worker));
    console.hear("protected file check.sh changed").hear("-test -e done-1").hear("+true");
    console.hear("name check.sh in the step's task or").hear("planctl approvals edit");
    console.hear("put the approved copies back").hear("your answer?").keys("t\n").hear("why?").keys("\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    assert_eq!(fixture.read("check.sh"), "test -e done-1\n");
}

#[test]
fn a_proposed_step_is_put_into_the_plan_and_an_edit_goes_on_with_the_plan() {
    let fixture = Fixture::new();
    stuck(&fixture);
    fixture.write("edit.sh", "sed -i 's/test -e done-1/true/' \"$1\"");
    let editor = format!("EDITOR='bash {}'", fixture.path("edit.sh").display());
    let mut console = Console::new(&fixture, 100, &format!("export {editor}; {}", run("true")));
    console.hear("your answer?").keys("e\n").hear("Approve this, and go on with p-1 at step 1?").keys("y\n");
    let (code, printed) = console.end();
    assert_eq!(code, 0, "{printed}");
    assert!(!printed.contains("planctl resume"), "it goes on here: {printed}");
}
