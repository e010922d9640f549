//! Drafting from the page: the same draft as at a terminal, looked at while it is written, answered, and gone on with.

use serde_json::{Value, json};

use super::super::house::{House, Reply, wait_until};
use super::{Browser, has};

const GOAL: &str = "Add a --json flag to app.sh";

/// The answer of a writer: one step that proves the one requirement.
fn answer(contract: &str, questions: &Value) -> Value {
    json!({
        "title": "A json flag", "context": "", "confidence": 0.9,
        "steps": [{ "title": "Print JSON", "role": "coder", "task": "Teach `app.sh` the flag --json, which prints an object.",
            "contract": contract, "exit_code": 0, "changes": ["app.sh"], "reads": ["app.sh"], "needs": [] }],
        "requirements": [{ "id": "R1", "steps": [1], "quote": null }],
        "questions": questions,
    })
}

const RED: &str = "bash app.sh --json | grep -q '^{'";

/// A house whose role has an agent that runs this, with `app.sh` in the project; returns the agent as the page names it.
fn house_with(does: &str) -> (House, String) {
    let house = House::new();
    house.fixture.write("app.sh", "#!/bin/bash\necho hello\n");
    let folder = house.fixture.home().join(".config/planctl");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = format!("exec:{}", does.replace("HOME", &house.fixture.home().display().to_string()));
    std::fs::write(folder.join("planctl.toml"), format!("[roles.coder]\nagent = {}\n", json!(agent)))
        .unwrap();
    (house, format!("agent {agent}"))
}

fn answers_with(house: &House, answer: &Value) {
    std::fs::write(house.fixture.home().join("answer.json"), answer.to_string()).unwrap();
}

/// Asks for a draft by the form; returns its address.
fn begin(browser: &Browser<'_>, house: &House, writer: &str, more: &[(&str, &str)]) -> String {
    let project = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let page = browser.get(&format!("/drafts?project={project}"));
    let fields = [("project", project.as_str()), ("goal", GOAL), ("writer", writer)];
    address(&browser.decide(&page, "/drafts", &[&fields[..], more].concat()))
}

/// The browser of before, at a daemon that was started again.
fn with_cookie<'h>(house: &'h House, cookie: &str) -> Browser<'h> {
    Browser { house, cookie: cookie.to_owned() }
}

fn address(reply: &Reply) -> String {
    assert_eq!(reply.status, 303, "{reply:?}");
    let line = reply.headers.lines().find_map(|line| line.strip_prefix("location: "));
    line.unwrap().to_owned()
}

/// Waits until a draft is over; returns its page.
fn ended(browser: &Browser<'_>, draft: &str) -> Reply {
    let over = || Some(browser.get(draft)).filter(|page| !page.body.contains("</span> being written</span>"));
    wait_until(over).expect("the draft ends")
}

#[test]
fn a_draft_from_the_page_is_that_of_a_terminal_and_is_neither_approved_nor_run() {
    let (house, writer) = house_with("cat > HOME/prompt; cat HOME/answer.json");
    answers_with(&house, &answer(RED, &json!([])));
    let browser = Browser::with_token(&house, "approve");
    let page = ended(&browser, &begin(&browser, &house, &writer, &[("budget", "200k tokens")]));
    for words in [
        "written",
        "What proves each requirement",
        "R1 Add a --json flag to app.sh",
        "bash app.sh --json | grep -q &#39;^{&#39;",
        "Nobody has approved it.",
        "verifying, and trying every contract in a copy of the workspace",
        "for approve-test",
        "1 unmetered",
    ] {
        has(&page, words);
    }
    let prompt = std::fs::read_to_string(house.fixture.home().join("prompt")).unwrap();
    assert!(prompt.contains("R1: Add a --json flag") && prompt.contains("JSON Schema"), "{prompt}");
    assert_eq!(
        house.fixture.sql("select count(*) from approvals") + &house.fixture.sql("select count(*) from runs"),
        "00"
    );
    // Its plan has a page, from which it can be run: that asks for the approval first.
    let (_, rest) = page.body.split_once("href=\"/plans/").unwrap();
    let plan = format!("/plans/{}", rest.split('"').next().unwrap());
    let shown = browser.get(&plan);
    has(&shown, "### 1. Print JSON");
    has(&shown, "What proves each requirement");
    has(&shown, "bash app.sh --json | grep -q &#39;^{&#39;</code>");
    has(&shown, "not approved");
    let digest =
        shown.body.split("name=\"digest\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let run = browser.decide(&shown, &format!("{plan}/run"), &[("digest", &digest)]);
    assert!(address(&run).starts_with("/asks/"), "{run:?}");
    // The same command at a terminal shows the same draft, and asks nobody again.
    std::fs::remove_file(house.fixture.home().join("prompt")).unwrap();
    let agent = writer.strip_prefix("agent ").unwrap();
    let said = house.fixture.planctl(&["plan", "draft", GOAL, "--agent", agent, "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!house.fixture.home().join("prompt").exists(), "no answer is paid for twice");
}

#[test]
fn m_09_m_10_a_question_of_a_draft_waits_in_the_inbox_and_the_draft_is_written_again_with_its_answer_and_with_a_hint()
 {
    let (house, writer) = house_with("cat > HOME/prompt; cat HOME/answer.json");
    answers_with(
        &house,
        &answer(RED, &json!([{ "text": "Which fields shall it print?", "options": ["all", "name"] }])),
    );
    let browser = Browser::with_token(&house, "approve");
    let draft = begin(&browser, &house, &writer, &[]);
    let page = ended(&browser, &draft);
    has(&page, "waiting for you");
    has(&page, "Q1: Which fields shall it print?");
    let (_, rest) = page.body.split_once("answer it (ask ").unwrap();
    let ask = format!("/asks/{}", rest.split(')').next().unwrap());
    let asked = browser.get(&ask);
    let answered = browser.decide(&asked, &ask, &[("answer", "answer"), ("note", "all of them")]);
    assert_eq!(answered.status, 303, "{answered:?}");
    answers_with(&house, &answer(RED, &json!([])));
    let page = ended(&browser, &address(&browser.decide(&browser.get(&draft), &draft, &[("do", "go-on")])));
    has(&page, "Nobody has approved it.");
    let prompt = std::fs::read_to_string(house.fixture.home().join("prompt")).unwrap();
    assert!(prompt.contains("all of them"), "{prompt}");
    // A word about it has it written again.
    let again = browser.decide(&page, &draft, &[("do", "hint"), ("hint", "keep the old flag")]);
    ended(&browser, &address(&again));
    let prompt = std::fs::read_to_string(house.fixture.home().join("prompt")).unwrap();
    assert!(prompt.contains("keep the old flag"), "{prompt}");
}

#[test]
fn a_draft_from_the_page_is_refused_and_stopped_as_one_at_a_terminal_and_says_so() {
    let (house, writer) = house_with("touch HOME/began; sleep 600");
    let project = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let reader = Browser::with_token(&house, "read");
    has(
        &reader.get(&format!("/drafts?project={project}")),
        "Its scope has to be <code>approve</code> to draft.",
    );
    let browser = Browser::with_token(&house, "approve");
    let page = browser.get(&format!("/drafts?project={project}"));
    has(&page, &format!("value=\"{}\"", writer.replace('&', "&#38;")));
    for (fields, why) in [
        ([("project", project.as_str()), ("goal", " "), ("writer", "")], "the goal is empty"),
        ([("project", "/nowhere"), ("goal", GOAL), ("writer", "")], "can&#39;t be used on this host"),
    ] {
        let refused = browser.decide(&browser.get("/drafts?project=/"), "/drafts", &fields);
        assert_eq!(refused.status, 400, "{refused:?}");
        has(&refused, why);
    }
    // A browser starts no command that the configuration does not name, and a budget is one of tokens and money.
    for (writer, more, why) in [
        (
            "agent exec:touch HOME/stolen",
            &[][..],
            "no agent exec:touch HOME/stolen writes drafts in this workspace",
        ),
        (writer.as_str(), &[("budget", "soon")], "could not read the budget `soon`"),
        ("", &[], "could not draft this without a model"),
    ] {
        let page = ended(&browser, &begin(&browser, &house, writer, more));
        has(&page, "not written");
        has(&page, why);
    }
    let draft = begin(&browser, &house, &writer, &[]);
    wait_until(|| house.fixture.home().join("began").exists().then_some(())).expect("the agent begins");
    let page = browser.get(&draft);
    has(&page, "drafts …");
    let stopped = browser.decide(&page, &draft, &[("do", "stop")]);
    assert_eq!(stopped.status, 303, "{stopped:?}");
    let page = ended(&browser, &draft);
    has(&page, "what was answered is kept");
    let began = house.fixture.home().join("began").display().to_string();
    let alive = std::process::Command::new("pgrep").args(["-f", &format!("touch {began}")]).output().unwrap();
    assert!(alive.stdout.is_empty(), "the agent is gone: {alive:?}");
}

#[test]
fn a_draft_from_the_page_is_there_after_a_restart_says_that_it_was_interrupted_and_goes_on() {
    let (mut house, writer) =
        house_with("touch HOME/began; [ -e HOME/answer.json ] || sleep 600; cat HOME/answer.json");
    let began = house.fixture.home().join("began");
    let cookie = Browser::with_token(&house, "approve").cookie;
    let browser = with_cookie(&house, &cookie);
    let mut draft = begin(&browser, &house, &writer, &[("budget", "200k tokens")]);
    wait_until(|| began.exists().then_some(())).expect("the agent begins");
    has(&browser.get(&draft), "drafts …");
    // Killed, and stopped as it should be: the next daemon says the same.
    for is_killed in [true, false] {
        std::fs::remove_file(&began).unwrap();
        if is_killed {
            house.kill();
        } else {
            assert_eq!(house.fixture.planctl(&["daemon", "stop"]).code, 0);
        }
        house.start_again();
        let browser = with_cookie(&house, &cookie);
        let page = browser.get(&draft);
        for words in [
            "</span> interrupted</span>",
            GOAL,
            "for approve-test",
            "drafts …",
            "The daemon stopped while this draft was being written.",
            "Go on where it was",
        ] {
            has(&page, words);
        }
        let project = house.fixture.path("").canonicalize().unwrap().display().to_string();
        has(&browser.get(&format!("/drafts?project={project}")), "</span> interrupted</span>");
        if is_killed {
            // The call that was cut off may have been paid for, so it counts.
            let short = address(&browser.decide(&page, &draft, &[("do", "go-on")]));
            let page = ended(&browser, &short);
            has(&page, "the budget does not suffice for one more answer");
            has(&page, "allow more in the field below, and go on where it was");
            draft = address(&browser.decide(&page, &short, &[("do", "go-on"), ("budget", "400k tokens")]));
            wait_until(|| began.exists().then_some(())).expect("the agent begins");
        }
    }
    answers_with(&house, &answer(RED, &json!([])));
    let browser = with_cookie(&house, &cookie);
    let more = [("do", "go-on"), ("budget", "800k tokens")];
    let written = address(&browser.decide(&browser.get(&draft), &draft, &more));
    has(&ended(&browser, &written), "Nobody has approved it.");
    // One that is over is shown as it ended.
    house.kill();
    house.start_again();
    let page = with_cookie(&house, &cookie).get(&written);
    for words in
        ["</span> written</span>", "bash app.sh --json | grep -q &#39;^{&#39;", "1 unmetered", "/plans/"]
    {
        has(&page, words);
    }
}

#[test]
fn a_refused_draft_says_what_a_person_at_the_page_can_do_and_names_no_flag_of_a_command() {
    let (house, writer) = house_with("cat HOME/answer.json");
    answers_with(&house, &answer(RED, &json!([])));
    let configuration = house.fixture.home().join(".config/planctl/planctl.toml");
    let before = std::fs::read_to_string(&configuration).unwrap();
    let model = "[models.m]\napi = \"chat\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m\"\nkey_env = \"NO_SUCH_KEY\"\n";
    std::fs::write(&configuration, before + model).unwrap();
    house.fixture.write("plans/a-json-flag.md", "# Another plan\n");
    let browser = Browser::with_token(&house, "approve");
    let refused = |writer: &str, budget: &str, why: &str, help: &str| {
        let draft = begin(&browser, &house, writer, &[("budget", budget)]);
        let page = ended(&browser, &draft);
        has(&page, why);
        has(&page, help);
        for flag in ["--agent", "--model", "--budget", "--hint", "--again", "--rounds"] {
            assert!(!page.body.contains(flag), "{flag}: {page:?}");
        }
        (draft, page)
    };
    refused("", "", "could not draft this without a model", "choose a writer");
    refused("model m", "", "NO_SUCH_KEY is not set", "where the daemon is started");
    refused(&writer, "soon", "could not read the budget", "write tokens and money: 200k tokens, $1");
    let (draft, page) = refused(
        &writer,
        "",
        "plans/a-json-flag.md",
        "move that file, or name another in a terminal: planctl plan draft &#39;GOAL&#39; --out FILE",
    );
    std::fs::remove_file(house.fixture.path("plans/a-json-flag.md")).unwrap();
    // An answer with errors, three times.
    answers_with(&house, &answer("true", &json!([])));
    let again = browser.decide(&page, &draft, &[("do", "again")]);
    let page = ended(&browser, &address(&again));
    has(&page, "say below what should be different; the last text is in ");
}
