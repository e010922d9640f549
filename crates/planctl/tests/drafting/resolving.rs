//! `planctl goal resolve`: intents become calls of tools, what is unclear becomes a question, and the plan is written or not at all.

use std::time::{Duration, Instant};

use planctl_server::testing::TestDatabase;
use serde_json::{Value, json};

use super::home::{Home, app};
use super::service::{Form, Reply, Service};

const GOAL: &str = "list issues in mandubian/ccos but ask me for the page size";
const FILE: &str = "plans/list-issues-in-mandubian-ccos-but-ask-me-for-the-page-size.md";

fn tool(name: &str, about: &str, properties: &Value, required: &[&str]) -> Value {
    json!({ "name": name, "description": about, "annotations": { "readOnlyHint": true },
            "inputSchema": { "type": "object", "properties": properties, "required": required } })
}

fn github() -> Value {
    let properties = json!({
        "owner": { "type": "string" }, "repo": { "type": "string" }, "perPage": { "type": "integer" },
        "state": { "type": "string", "enum": ["open", "closed"] },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
        tool("list_issues", "Lists issues", &properties, &["owner", "repo"]),
        tool("list_issue_types", "Lists types of issues", &json!({ "owner": { "type": "string" } }), &["owner"]),
    ] } })
}

fn home() -> Home {
    let home = app();
    home.write("github.json", &github().to_string());
    home
}

fn resolve<'a>(goal: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["goal", "resolve", goal, "--tools", "github.json", "--json"];
    words.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn the_plan_of_a_goal_goes_to_the_plans_of_the_workspace_from_any_folder() {
    let home = home();
    home.write("sub/x", "");
    let words =
        ["-C", "sub", "--workspace", "..", "goal", "resolve", GOAL, "--tools", "../github.json", "--json"];
    assert_eq!(home.json(&words, 0)["file"], format!("../{FILE}"));
    assert!(home.has(FILE) && !home.has("sub/plans"));
    assert_eq!(home.json(&resolve(GOAL, &[]), 0)["file"], FILE, "it is the same plan");
}

#[test]
fn m_16_m_18_m_24_a_goal_becomes_a_plan_of_a_question_and_a_call() {
    let home = home();
    let view = home.json(&resolve(GOAL, &[]), 0);
    assert_eq!((&view["outcome"], &view["file"]), (&json!("ok"), &json!(FILE)));
    assert_eq!(view["steps"][0]["words"], "How many items per page? (e.g., 10, 25, 50)");
    let call = &view["steps"][1];
    assert_eq!((&call["capability"], &call["source"]), (&json!("github.list_issues"), &json!("mcp")));
    assert_eq!((&call["effects"], &call["needs"]), (&json!(["read"]), &json!([1])));
    assert_eq!(view["resolved"][0]["tried"][3]["candidates"][1]["why"], "it is also about type");
    let text = home.read(FILE);
    let expected = "**type:** call\n**needs:** 1\n**intent:** I2: list issues in mandubian/ccos\n**server:** github\n\
                    **tool:** list_issues\n**arguments:**\n```json\n{\n  \"owner\": \"mandubian\",\n  \
                    \"perPage\": \"${steps.1.output}\",\n  \"repo\": \"ccos\"\n}\n```\n";
    assert!(text.contains(expected), "{text}");
    let said = home.planctl(&["goal", "resolve", GOAL, "--tools", "github.json", "--explain"]);
    assert!(
        said.out.contains("0.69  github.list_issue_types") || said.out.contains("it is also about type"),
        "{said:?}"
    );
    home.write(FILE, "changed by hand\n");
    let refused = home.planctl(&resolve(GOAL, &[]));
    assert_eq!(refused.code, 5, "{refused:?}");
    assert_eq!(home.read(FILE), "changed by hand\n", "a file that somebody changed stays");
}

#[test]
fn m_15_a_strategy_that_is_named_is_the_only_one() {
    let home = home();
    home.write(
        "own.json",
        "[{\"name\": \"list_branches\", \"about\": \"Lists branches\", \"command\": \"git branch\"}]",
    );
    let words =
        ["goal", "resolve", "list branches", "--tools", "own.json", "--strategy", "catalog", "--json"];
    let view = home.json(&words, 0);
    assert_eq!(view["steps"][0]["source"], "catalog");
    assert!(home.read("plans/list-branches.md").contains("```shell\ngit branch\n```"));
    let view = home.json(&resolve("list issues in o/r", &["--strategy", "catalog"]), 3);
    assert_eq!(view["resolved"][0]["tried"].as_array().unwrap().len(), 1);
}

#[test]
fn m_38_m_39b_a_missing_capability_is_a_question_and_its_answer_is_heard_once() {
    let home = home();
    let goal = "list pull requests in o/r";
    let view = home.json(&resolve(goal, &[]), 3);
    assert_eq!((&view["outcome"], &view["file"]), (&json!("open"), &Value::Null));
    assert_eq!(view["asks"][0]["kind"], "alternatives");
    assert_eq!(view["asks"][0]["options"].as_array().unwrap().last().unwrap(), "None of the above");
    assert!(!home.has("plans/list-pull-requests-in-o-r.md"), "nothing is written while a question is open");
    let none = home.json(&resolve(goal, &["--answer", "I1-1=none"]), 3);
    assert_eq!(
        (&none["asks"][0]["kind"], &none["asks"][0]["id"]),
        (&json!("implementation"), &json!("I1-2"))
    );
    let again = home.json(&resolve(goal, &["--answer", "I1-1=none"]), 3);
    assert_eq!(again["asks"], none["asks"]);
    let stale = home.planctl(&resolve(goal, &["--answer", "I1-1=1"]));
    assert!(stale.code == 4 && stale.err.contains("the open question is I1-2"), "{stale:?}");
    let written = home.json(&resolve(goal, &["--answer", "I1-2=4", "--answer", "I1-3=gh pr list"]), 0);
    assert_eq!(written["steps"][0]["kind"], "run");
    assert!(home.read("plans/list-pull-requests-in-o-r.md").contains("```shell\ngh pr list\n```"));
}

#[test]
fn m_39a_an_agent_writes_a_missing_capability_only_once_a_person_approved_it_in_the_inbox() {
    let home = home();
    let goal = "list pull requests in o/r";
    home.json(&resolve(goal, &[]), 3);
    let asked = home.json(&resolve(goal, &["--answer", "I1-1=none", "--answer", "I1-2=1"]), 3);
    assert_eq!(
        (&asked["asks"][0]["kind"], &asked["asks"][0]["ask"]),
        (&json!("synthesis_approval"), &json!(1))
    );
    let inbox = |words: &[&str]| home.planctl(&[&["approvals"][..], words].concat());
    let listed = home.json(&["approvals", "ls", "--category", "SynthesisApproval", "--json"], 0);
    assert_eq!(listed["asks"][0]["kind"], "synthesis", "{listed:#}");
    assert!(inbox(&["show", "1"]).out.contains("tools/list-pull-requests"), "{:?}", inbox(&["show", "1"]));
    // After a rejection the other ways are offered again.
    assert_eq!(inbox(&["reject", "1", "--note", "no code of ours"]).code, 0);
    let ways = home.json(&resolve(goal, &[]), 3);
    assert_eq!(ways["asks"][0]["kind"], "implementation", "{ways:#}");
    let again = home
        .json(&resolve(goal, &["--answer", &format!("{}=1", ways["asks"][0]["id"].as_str().unwrap())]), 3);
    assert_eq!(again["asks"][0]["kind"], "synthesis_approval", "{again:#}");
    let number = again["asks"][0]["ask"].as_u64().unwrap().to_string();
    assert_ne!(number, "1", "it is asked anew");
    let said = home
        .planctl(&resolve(goal, &["--answer", &format!("{}=yes", again["asks"][0]["id"].as_str().unwrap())]));
    assert_eq!(said.code, 0, "{said:?}");
    let answer = home.json(&["approvals", "show", &number, "--json"], 0)["answer"].clone();
    assert_eq!(
        (&answer["answer"], &answer["by"]),
        (&json!("approve"), &json!("ann")),
        "the command answers the same ask"
    );
    assert!(home.read("plans/list-pull-requests-in-o-r.md").contains("tools/list-pull-requests"));
}

#[test]
fn m_39c_a_model_proposes_and_a_person_decides() {
    let home = home();
    let hint = json!({ "server": "github", "tool": "list_issues", "implementation": "", "input_schema": {},
                       "output_schema": {}, "permissions": ["read"] });
    let service = Service::start(Form::Messages, vec![Reply::Structured(hint)]);
    home.models(&[("writer", &service)]);
    let goal = "list problems in o/r";
    let ways = home.json(&resolve(goal, &["--model", "writer"]), 3);
    let first = ways["asks"][0]["options"].as_array().unwrap().len();
    let none = format!("I1-1={first}");
    home.json(&resolve(goal, &["--model", "writer", "--answer", &none]), 3);
    let alone = home.planctl(&resolve(goal, &["--answer", "I1-2=3"]));
    assert!(alone.code == 1 && alone.err.contains("--model NAME"), "{alone:?}");
    let within = ["--model", "writer", "--answer", "I1-2=3", "--budget", "100 tokens"];
    let held = home.planctl(&resolve(goal, &within));
    assert!(held.code == 6 && held.err.contains("100 are allowed") && service.calls().is_empty(), "{held:?}");
    let proposal = home.json(&resolve(goal, &["--model", "writer"]), 3);
    assert_eq!((&proposal["asks"][0]["kind"], service.calls().len()), (&json!("hint"), 1), "{proposal:#}");
    assert_eq!(
        (&proposal["spent"]["answers"], &proposal["spent"]["output_tokens"]),
        (&json!(1), &json!(200))
    );
    assert!(service.calls()[0].prompt().contains("the required permissions"));
}

#[test]
fn m_27_an_argument_that_does_not_fit_is_an_error_and_no_plan() {
    let home = home();
    let answer = json!({ "title": "x", "confidence": 0.9, "intents": [
        { "id": "a", "text": "list issues in o/r", "parameters": [{ "name": "per_page", "value": "ten" }] },
    ] });
    let service = Service::start(Form::Chat, vec![Reply::Structured(answer)]);
    home.models(&[("writer", &service)]);
    let said = home.planctl(&resolve("show me ten issues, please", &["--model", "writer"]));
    assert_eq!(said.code, 1, "{said:?}");
    let view: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(view["findings"][0]["message"], "`perPage` takes an integer, not \"ten\"");
    assert!(!home.has("plans"), "nothing is written");
}

#[test]
fn m_42_a_resolved_goal_is_verified_against_the_tools_that_there_are() {
    let home = home();
    let verify = ["goal", "verify", GOAL, "--tools", "github.json", "--json"];
    assert_eq!(home.planctl(&verify).code, 4, "it was not resolved yet");
    home.json(&resolve(GOAL, &[]), 0);
    assert_eq!(home.json(&verify, 0)["outcome"], "ok");
    let mut list = github();
    list["result"]["tools"][0]["inputSchema"]["properties"]["perPage"] = json!(null);
    let properties = list["result"]["tools"][0]["inputSchema"]["properties"].as_object_mut().unwrap();
    properties.remove("perPage");
    list["result"]["tools"][0]["inputSchema"]["additionalProperties"] = json!(false);
    home.write("github.json", &list.to_string());
    let view = home.json(&verify, 1);
    assert_eq!(view["findings"][0]["message"], "github.list_issues has no parameter `perPage`");
    list["result"]["tools"][0]["annotations"] = json!({});
    list["result"]["tools"][0]["inputSchema"]["additionalProperties"] = json!(true);
    home.write("github.json", &list.to_string());
    assert_eq!(home.json(&verify, 0)["outcome"], "warning", "it does not say what it changes");
}

#[test]
fn m_12_m_14_m_47_a_step_says_which_intent_it_serves_and_one_that_passed_serves_the_same_again() {
    let (home, database) = (app(), TestDatabase::migrated());
    let url = database.url();
    let said = |words: &[&str]| home.planctl_with(words, &[("PLANCTL_DATABASE_URL", url.as_str())]);
    let told = |words: &[&str]| {
        let said = said(words);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        super::schema::check(words, &said.out);
        serde_json::from_str::<Value>(&said.out).unwrap()
    };
    home.write(
        "own.json",
        "[{\"name\": \"gather\", \"about\": \"Lists the branches of the repository\", \"command\": \"git branch\"}]",
    );
    let resolve = |goal: &'static str| told(&["goal", "resolve", goal, "--tools", "own.json", "--json"]);
    let first = resolve("list branches");
    assert_eq!(first["steps"][0]["source"], "semantic", "{first:#}");
    let tally = || told(&["goal", "stats", "--json"])["strategies"][0].clone();
    assert_eq!(tally(), json!({ "name": "semantic", "resolved": 1, "passed": 0, "failed": 0, "rate": null }));
    let run = said(&["plan", "run", "plans/list-branches.md", "--approve"]);
    assert_eq!(run.code, 0, "{run:?}");
    let why = told(&["why", "list-branches-1", "1", "--json"]);
    assert_eq!(why["intent"], "I1: list branches");
    assert!(said(&["why", "list-branches-1", "1"]).out.contains("serves I1: list branches"));
    assert_eq!(tally()["passed"], 1);
    let again = resolve("show branches");
    assert_eq!(again["steps"][0]["source"], "history", "{again:#}");
    let types = told(&["goal", "stats", "--json"])["intent_types"].clone();
    assert_eq!((&types[0]["name"], &types[0]["resolved"]), (&json!("list"), &json!(2)));
}

#[test]
fn m_17_an_embeddings_endpoint_finds_what_no_word_does_and_is_asked_once() {
    let home = app();
    let list = json!({ "tools": [
        tool("fetch_weather", "Returns the weather", &json!({}), &[]),
        tool("list_issues", "Lists issues", &json!({}), &[]),
    ] });
    home.write("github.json", &list.to_string());
    // The texts come in the order of the alphabet: ask_person, the tools, the intent.
    let vectors = [[0.0, 1.0], [0.9, 0.1], [0.0, -1.0], [1.0, 0.0]];
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .rev()
        .map(|(index, vector)| json!({ "index": index, "embedding": vector }))
        .collect();
    let body = json!({ "data": data, "usage": { "prompt_tokens": 70, "total_tokens": 70 } });
    let service = Service::start(Form::Embeddings, vec![Reply::Body(body.to_string())]);
    let writer = Service::start(Form::Chat, Vec::new());
    home.models(&[("vectors", &service), ("writer", &writer)]);
    let goal = "show umbrellas";
    let without = home.json(&resolve(goal, &[]), 3);
    assert_eq!(without["outcome"], "open");
    let again = ["--again", "--embeddings", "vectors"];
    let held = home.planctl(&resolve(goal, &["--embeddings", "vectors", "--budget", "10 tokens"]));
    assert!(held.code == 6 && service.calls().is_empty(), "{held:?}");
    let view = home.json(&resolve(goal, &again), 0);
    assert_eq!((&view["spent"]["input_tokens"], &view["spent"]["usd"]), (&json!(70), &json!(0.00007)));
    assert_eq!(view["steps"][0]["capability"], "github.fetch_weather", "{view:#}");
    assert_eq!(view["steps"][0]["source"], "semantic");
    let call = &service.calls()[0];
    assert_eq!((call.path.as_str(), call.body["input"].as_array().unwrap().len()), ("/v1/embeddings", 4));
    assert_eq!(call.headers["authorization"], format!("Bearer {}", super::home::KEY));
    home.json(&resolve(goal, &again), 0);
    assert_eq!(service.calls().len(), 1, "no text is paid for twice");
    let wrong = home.planctl(&resolve(goal, &["--embeddings", "writer"]));
    assert!(wrong.code == 78 && wrong.err.contains("gives answers, and vectors are needed"), "{wrong:?}");
    let wrong = home.planctl(&["plan", "draft", "a goal", "--model", "vectors"]);
    assert!(wrong.code == 78 && wrong.err.contains("gives vectors, and answers are needed"), "{wrong:?}");
}

#[test]
fn who_looks_at_what_was_resolved_waits_for_no_model_that_another_command_asks() {
    let home = home();
    let service = Service::start(Form::Embeddings, vec![Reply::Silence]);
    home.models(&[("vectors", &service)]);
    let mut asking = home.start(&resolve("show umbrellas", &["--embeddings", "vectors"]));
    service.await_calls(1);
    let mut looking = home.start(&["goal", "stats", "--json"]);
    let began = Instant::now();
    let ended = loop {
        let ended = looking.try_wait().unwrap();
        if ended.is_some() || began.elapsed() > Duration::from_secs(60) {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    for process in [&mut asking, &mut looking] {
        process.kill().ok();
        process.wait().unwrap();
    }
    assert_eq!(ended.expect("it waits for nobody").code(), Some(0));
}

#[test]
fn a_plan_of_the_library_that_the_words_of_an_intent_call_for_is_a_sub_plan() {
    let home = home();
    let triggers = "---\ntype: plan\nowner: ann\ntriggers: [announce, release notes]\n---\n\n# Announce it\n\n## Steps\n\n\
                    ### 1. Write it\n\n**target:** coder\n**task:**\nWrite it.\n\n**contract:**\n```bash\ntest -s NOTES\n```\n";
    home.write("plans/announcing.md", triggers);
    let answer = json!({ "title": "x", "confidence": 0.9, "intents": [
        { "id": "a", "text": "announce the release notes" },
        { "id": "b", "text": "list issues in o/r" },
        { "id": "c", "text": "debug the login and fix its bug" },
    ] });
    let alone = json!({ "title": "x", "confidence": 0.9, "intents": [{ "id": "a", "text": "announce the release notes" }] });
    let service = Service::start(Form::Chat, vec![Reply::Structured(answer), Reply::Structured(alone)]);
    home.models(&[("writer", &service)]);
    let view =
        home.json(&resolve("list issues and announce", &["--model", "writer", "--out", "plans/x.md"]), 0);
    let within = &view["steps"][0];
    assert_eq!((&within["kind"], &within["words"]), (&json!("sub_plan"), &json!("announcing")), "{view:#}");
    assert_eq!((&within["source"], &within["capability"]), (&json!("library"), &Value::Null), "{view:#}");
    let text = home.read("plans/x.md");
    for name in ["announcing", "bugfix_workflow"] {
        assert!(text.contains(&format!("**plan:** plans/{name}.md\n")), "{text}");
    }
    assert!(
        home.has("plans/bugfix_workflow.md"),
        "an entry that is not of this project becomes a file of it"
    );
    let words = [
        "goal",
        "resolve",
        "list issues and announce",
        "--tools",
        "github.json",
        "--explain",
        "--model",
        "writer",
    ];
    let shown = home.planctl(&words);
    assert!(shown.out.contains("0.67  plan:announcing  2 of its triggers"), "{shown:?}");
    let only = ["goal", "resolve", "tell the world", "--tools", "github.json", "--model", "writer"];
    let only = home.planctl(&only);
    assert!(only.code == 0 && only.err.contains("planctl new --from announcing"), "{only:?}");
    assert!(!home.has("plans/tell-the-world.md"), "there is nothing to write beside it");
}

#[test]
fn a_model_or_a_question_that_is_not_there_is_answered_with_what_to_write() {
    let home = app();
    let said = home.planctl(&["goal", "resolve", "list issues", "--embeddings", "vectors"]);
    assert!(said.code == 78 && said.err.contains("api = \"embeddings\"\n"), "{said:?}");
    assert_eq!(home.planctl(&["goal", "resolve", "list issues"]).code, 3);
    let said = home.planctl(&["goal", "resolve", "list issues", "--answer", "Q9=x"]);
    assert_eq!(said.code, 4, "{said:?}");
    let shown = "there is no open question Q9\nnext: planctl goal resolve 'list issues'\n";
    assert!(said.err.ends_with(shown), "{said:?}");
}
