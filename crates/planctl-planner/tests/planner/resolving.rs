//! Intents and the capabilities that serve them: found, bound, merged, and refused where they don't fit.

use std::collections::BTreeMap;

use planctl_lang::library::Entry;
use planctl_planner::{
    Action, ArgumentValue, Call, Capability, Catalog, Decision, History, Intent, IntentKind, Planned,
    Remembered, Resolution, Resolver, Served, Source, Vectors, Went, key_of, planned, text_to_embed, type_of,
    verified, write_plan,
};
use serde_json::{Value, json};

/// The answer of a server to `tools/list`, in the form that MCP has.
fn github() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let place = || json!({ "owner": text("Repository owner"), "repo": text("Repository name") });
    let with = |more: Value| {
        let mut properties = place();
        for (name, property) in more.as_object().into_iter().flatten() {
            properties[name] = property.clone();
        }
        properties
    };
    let tool = |name: &str, about: &str, properties: Value, required: &[&str]| {
        json!({ "name": name, "description": about,
                "inputSchema": { "type": "object", "properties": properties, "required": required } })
    };
    let mut list = tool(
        "list_issues",
        "List issues in a GitHub repository",
        with(json!({
            "state": { "type": "string", "enum": ["open", "closed", "all"] },
            "labels": { "type": "array", "items": { "type": "string" }, "description": "Filter by labels" },
            "sort": { "type": "string", "enum": ["created", "updated", "comments"] },
            "perPage": { "type": "integer", "description": "Results per page for pagination" },
            "page": { "type": "integer", "description": "Page number" },
            "withComments": { "type": "boolean" },
        })),
        &["owner", "repo"],
    );
    list["annotations"] = json!({ "readOnlyHint": true });
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [
        list,
        tool("list_issue_types", "List supported issue types for an owner", with(json!({})), &["owner"]),
        tool("get_issue", "Get one issue", with(json!({ "issue_number": { "type": "integer" } })), &["owner", "repo", "issue_number"]),
        tool("close_issue", "Close an issue", with(json!({ "issue_number": { "type": "integer" } })), &["owner", "repo", "issue_number"]),
        tool("create_issue", "Open an issue", with(json!({ "title": text("Title"), "body": text("Body") })), &["owner", "repo", "title"]),
        tool("ask_assistant", "Puts a prompt to the assistant", json!({ "prompt": text("The prompt") }), &["prompt"]),
        tool("fetch_weather", "Returns the weather forecast for a city: temperature, rain, wind", json!({ "city": text("The city") }), &["city"]),
    ] } })
}

fn read(list: &Value, server: &str) -> Vec<Capability> {
    Capability::read_all(&list.to_string(), server).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn capabilities() -> Vec<Capability> {
    let mut all = read(&github(), "github");
    let local =
        json!([{ "name": "run_tests", "about": "Runs the tests of the project", "command": "just test" }]);
    all.extend(read(&local, "local"));
    all.push(Capability::ask_person());
    all
}

fn act(id: &str, text: &str, needs: &[&str]) -> Intent {
    Intent {
        id: id.to_owned(),
        text: text.to_owned(),
        kind: IntentKind::Act,
        topic: None,
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        part_of: None,
        tool: None,
        parameters: BTreeMap::new(),
    }
}

fn ask(id: &str, topic: &str) -> Intent {
    Intent {
        kind: IntentKind::Ask,
        topic: Some(topic.to_owned()),
        ..act(id, &format!("ask for {topic}"), &[])
    }
}

fn transform(id: &str, text: &str, needs: &[&str]) -> Intent {
    Intent { kind: IntentKind::Transform, ..act(id, text, needs) }
}

fn with(mut intent: Intent, parameters: &[(&str, Value)]) -> Intent {
    intent.parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    intent
}

fn find(intent: &Intent, sources: &[Source]) -> Resolution {
    let catalog = Catalog::new(capabilities());
    Resolver { catalog: &catalog, history: &History::default(), sources, vectors: None, entries: &[] }
        .find(intent)
}

fn served(found: &Resolution) -> (&str, Source) {
    let Served::By(candidate, source) = &found.served else { panic!("{found:#?}") };
    (&candidate.capability, *source)
}

fn plan(intents: &[Intent]) -> Planned {
    let catalog = Catalog::new(capabilities());
    let history = History::default();
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries: &[] };
    planned(intents, &resolver, &BTreeMap::new())
}

fn call<'a>(planned: &'a Planned, id: &str) -> &'a Call {
    let step =
        planned.steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("{id} in {planned:#?}"));
    let Action::Call(call) = &step.action else { panic!("{step:?}") };
    call
}

fn given(call: &Call) -> BTreeMap<&str, Value> {
    let known = call.arguments.iter().filter_map(|argument| match &argument.value {
        ArgumentValue::Given(value) => Some((argument.parameter.as_str(), value.clone())),
        ArgumentValue::ResultOf(..) => None,
    });
    known.collect()
}

fn wired(call: &Call) -> BTreeMap<&str, &str> {
    let results = call.arguments.iter().filter_map(|argument| match &argument.value {
        ArgumentValue::ResultOf(id, _) => Some((argument.parameter.as_str(), id.as_str())),
        ArgumentValue::Given(_) => None,
    });
    results.collect()
}

fn ids(planned: &Planned) -> Vec<&str> {
    planned.steps.iter().map(|step| step.id.as_str()).collect()
}

#[test]
fn m_15_what_is_local_is_found_in_the_catalog() {
    assert_eq!(
        served(&find(&act("I1", "run the tests", &[]), &[Source::Catalog])),
        ("run_tests", Source::Catalog)
    );
    let found = find(&act("I1", "list issues", &[]), &[Source::Catalog]);
    assert!(matches!(found.served, Served::Missing(_)), "tools of servers are none: {found:?}");
}

#[test]
fn m_16_a_tool_of_a_server_is_found_by_its_name() {
    let found = find(&act("I1", "close the issue #12 in o/r", &[]), &[Source::Mcp]);
    assert_eq!(served(&found), ("github.close_issue", Source::Mcp));
    assert!(matches!(find(&act("I1", "run the tests", &[]), &[Source::Mcp]).served, Served::Missing(_)));
}

#[test]
fn m_17_a_description_is_found_by_words_and_by_letters_that_are_alike() {
    for text in ["get temperature and rain", "get the temperatures and the rain", "find temprature, rain"] {
        let found = find(&act("I1", text, &[]), &[Source::Semantic]);
        assert_eq!(served(&found).0, "github.fetch_weather", "{text}");
        let by_name = find(&act("I1", text, &[]), &[Source::Mcp]);
        assert!(matches!(by_name.served, Served::Missing(_)), "its name says nothing of it: {text}");
    }
}

#[test]
fn m_17_vectors_decide_where_an_endpoint_gave_them() {
    let catalog = Catalog::new(capabilities());
    let mut vectors = Vectors::default();
    vectors.insert("umbrella today?", vec![1.0, 0.1]);
    for capability in catalog.capabilities() {
        let is_weather = capability.name == "fetch_weather";
        vectors.insert(&text_to_embed(capability), if is_weather { vec![0.9, 0.1] } else { vec![0.0, 1.0] });
    }
    let (sources, history) = ([Source::Semantic], History::default());
    let intent = act("I1", "umbrella today?", &[]);
    let with = Resolver {
        catalog: &catalog,
        history: &history,
        sources: &sources,
        vectors: Some(&vectors),
        entries: &[],
    };
    assert_eq!(served(&with.find(&intent)).0, "github.fetch_weather");
    let without = Resolver { vectors: None, ..with };
    assert!(matches!(without.find(&intent).served, Served::Missing(_)));
}

#[test]
fn m_18_the_first_acceptable_strategy_wins_and_all_say_why() {
    let found = find(&act("I1", "list issues in o/r", &[]), &Source::ALL);
    assert_eq!(served(&found), ("github.list_issues", Source::Mcp));
    let tried: Vec<Source> = found.tried.iter().map(|tried| tried.source).collect();
    assert_eq!(tried, [Source::Hint, Source::History, Source::Catalog, Source::Mcp]);
    assert_eq!(found.tried[0].why, "the intent names no tool");
    assert!(found.tried.iter().all(|tried| !tried.why.is_empty()));
}

#[test]
fn m_18_two_that_serve_equally_well_are_a_question() {
    let list =
        json!({ "tools": [{ "name": "list_issues", "description": "Lists issues", "inputSchema": {} }] });
    let mut all = read(&list, "github");
    all.extend(read(&list, "tracker"));
    let catalog = Catalog::new(all);
    let history = History::default();
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries: &[] };
    let found = resolver.find(&act("I1", "list issues", &[]));
    let Served::Unclear(candidates) = &found.served else { panic!("{found:?}") };
    assert_eq!(candidates.len(), 2);
    let named = resolver.find(&act("I1", "list tracker issues", &[]));
    assert_eq!(served(&named).0, "tracker.list_issues", "the server's name decides");
    let decisions = BTreeMap::from([("I1".to_owned(), Decision::Use("github.list_issues".to_owned()))]);
    let decided = planned(&[act("I1", "list issues", &[])], &resolver, &decisions);
    assert_eq!(call(&decided, "I1").capability.id(), "github.list_issues");
    assert!(decided.open.is_empty());
}

#[test]
fn m_19_a_required_prompt_is_filled_from_the_intent() {
    let planned = plan(&[act("I1", "ask assistant what is left to do", &[])]);
    let call = call(&planned, "I1");
    assert_eq!(call.capability.name, "ask_assistant");
    assert_eq!(given(call)["prompt"], json!("ask assistant what is left to do"));
}

#[test]
fn m_20_a_writer_s_own_names_become_those_of_the_schema() {
    let intent =
        with(act("I1", "list issues in o/r", &[]), &[("per_page", json!(25)), ("Labels", json!("bug"))]);
    let planned = plan(&[intent]);
    assert_eq!(given(call(&planned, "I1"))["perPage"], json!(25));
    assert_eq!(given(call(&planned, "I1"))["labels"], json!(["bug"]));
    let unknown = plan(&[with(act("I1", "list issues in o/r", &[]), &[("colour", json!("red"))])]);
    assert!(unknown.faults[0].message.contains("no parameter `colour`"), "{:?}", unknown.faults);
}

#[test]
fn m_21_specificity_that_nobody_wants_costs_and_verbs_and_numbers_align() {
    let ranked = |text: &str| {
        let found = find(&act("I1", text, &[]), &[Source::Mcp]);
        let tried = found.tried.into_iter().next().unwrap();
        tried.candidates.into_iter().map(|one| (one.capability, one.score)).collect::<Vec<_>>()
    };
    for text in ["list issues", "list issue", "show the issues", "List all issues of o/r"] {
        let list = ranked(text);
        assert_eq!(list[0].0, "github.list_issues", "{text}: {list:?}");
        let types = list.iter().find(|(name, _)| name == "github.list_issue_types").unwrap();
        assert!(list[0].1 > types.1 + 0.1, "{text}: {list:?}");
    }
    assert_eq!(ranked("list issue types")[0].0, "github.list_issue_types");
    assert_eq!(ranked("open an issue")[0].0, "github.create_issue");
    assert_eq!(ranked("fetch issue 12")[0].0, "github.get_issue");
}

#[test]
fn m_22_a_suggested_tool_is_taken_at_once() {
    let hinted = with(act("I1", "do the usual", &[]), &[("_suggested_tool", json!("github.list_issues"))]);
    assert_eq!(served(&find(&hinted, &Source::ALL)), ("github.list_issues", Source::Hint));
    let named = Intent { tool: Some("github.get_issue".to_owned()), ..act("I1", "do the usual", &[]) };
    assert_eq!(served(&find(&named, &Source::ALL)), ("github.get_issue", Source::Hint));
    let invented = Intent { tool: Some("github.burn".to_owned()), ..act("I1", "list issues", &[]) };
    let found = find(&invented, &Source::ALL);
    assert_eq!(served(&found).0, "github.list_issues");
    assert!(found.tried[0].why.contains("there is no tool `github.burn`"));
}

#[test]
fn m_23_a_filter_that_the_call_can_do_is_part_of_the_call() {
    let list = || act("I1", "list issues in o/r", &[]);
    for (text, parameter, value) in [
        ("filter by label bug", "labels", json!(["bug"])),
        ("keep only those with the bug label", "labels", json!(["bug"])),
        ("filter the closed ones", "state", json!("closed")),
        ("sort by updated", "sort", json!("updated")),
        ("limit to 25", "perPage", json!(25)),
    ] {
        let planned = plan(&[list(), transform("I2", text, &["I1"])]);
        assert_eq!(ids(&planned), ["I1"], "{text}");
        assert_eq!(given(call(&planned, "I1")).get(parameter), Some(&value), "{text}");
        assert_eq!(planned.steps[0].merged, ["I2"]);
    }
    let asked = plan(&[list(), ask("I2", "labels"), transform("I3", "filter by them", &["I1", "I2"])]);
    assert_eq!(ids(&asked), ["I2", "I1"], "the question comes before the call that has its answer");
    assert_eq!(wired(call(&asked, "I1"))["labels"], "I2");
    let after = Intent { needs: vec!["I1".to_owned()], ..ask("I2", "labels") };
    let later = plan(&[list(), after, transform("I3", "filter by them", &["I1", "I2"])]);
    assert_eq!(later.open[0].intent.id, "I3", "an answer that needs the results can't be part of their call");
    let other = plan(&[list(), transform("I2", "sort by beauty", &["I1"])]);
    assert_eq!((ids(&other), other.open.len()), (vec!["I1"], 1), "what the call can't do is no part of it");
}

#[test]
fn m_24_every_dependency_is_wired() {
    let planned = plan(&[
        ask("I1", "page size"),
        ask("I2", "labels"),
        act("I3", "list issues in mandubian/ccos", &["I1", "I2"]),
    ]);
    let call = call(&planned, "I3");
    assert_eq!(wired(call), BTreeMap::from([("perPage", "I1"), ("labels", "I2")]));
    assert_eq!(given(call), BTreeMap::from([("owner", json!("mandubian")), ("repo", json!("ccos"))]));
    assert_eq!(planned.steps[2].needs, ["I1", "I2"]);
    assert!(planned.faults.is_empty(), "{:?}", planned.faults);
    let lost = plan(&[ask("I1", "colour of the sky"), act("I2", "list issues in o/r", &["I1"])]);
    assert_eq!(lost.faults[0].message, "no parameter of github.list_issues takes the answer to I1");
}

#[test]
fn m_25_a_topic_finds_the_parameter_that_is_meant() {
    for (topic, parameter) in [
        ("page size", "perPage"),
        ("results per page", "perPage"),
        ("page", "page"),
        ("label", "labels"),
        ("status", "state"),
        ("repository", "repo"),
        ("comments", "withComments"),
    ] {
        let planned = plan(&[ask("I1", topic), act("I2", "list issues", &["I1"])]);
        assert_eq!(wired(call(&planned, "I2")).get(parameter), Some(&"I1"), "{topic}");
    }
}

#[test]
fn m_26_each_value_becomes_what_its_own_parameter_takes() {
    let intent = with(
        act("I1", "list issues", &[]),
        &[
            ("owner", json!("10")),
            ("repo", json!("r")),
            ("perPage", json!("10")),
            ("withComments", json!("true")),
        ],
    );
    let planned = plan(&[intent]);
    let call = call(&planned, "I1");
    assert_eq!(given(call)["perPage"], json!(10));
    assert_eq!(given(call)["withComments"], json!(true));
    assert_eq!(given(call)["owner"], json!("10"), "a text stays a text");
}

#[test]
fn m_27_a_text_that_is_no_number_is_an_error_before_anything_runs() {
    let planned = plan(&[with(act("I1", "list issues in o/r", &[]), &[("perPage", json!("ten"))])]);
    assert_eq!(planned.faults[0].message, "`perPage` takes an integer, not \"ten\"");
    let planned = plan(&[with(act("I1", "list issues in o/r", &[]), &[("state", json!("ajar"))])]);
    assert_eq!(planned.faults[0].message, "`state` takes one of open, closed, all, not \"ajar\"");
}

#[test]
fn m_31_a_required_parameter_that_nothing_gives_is_asked_for_once() {
    let planned = plan(&[act("I1", "list issues", &[]), act("I2", "list issue types", &[])]);
    assert_eq!(ids(&planned), ["I1/owner", "I1/repo", "I1", "I2"]);
    let Action::Ask { question } = &planned.steps[0].action else { panic!("{planned:?}") };
    assert_eq!(question, "Owner? (Repository owner)");
    assert_eq!(wired(call(&planned, "I2")), BTreeMap::from([("owner", "I1/owner")]));
    let sized = plan(&[ask("I1", "page size"), act("I2", "list issues in o/r", &["I1"])]);
    let Action::Ask { question } = &sized.steps[0].action else { panic!("{sized:?}") };
    assert_eq!(question, "How many items per page? (e.g., 10, 25, 50)");
}

#[test]
fn m_42_a_call_is_held_to_the_capabilities_that_there_are() {
    let planned = plan(&[act("I1", "list issues in o/r", &[])]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut list = github();
        change(&mut list["result"]["tools"][0]);
        Catalog::new(read(&list, "github"))
    };
    let said = |catalog: &Catalog| {
        let errors = verified(&planned, catalog).errors;
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    assert!(said(&with(&|_| ())).is_empty());
    let gone = with(&|tool| tool["name"] = json!("find_issues"));
    assert_eq!(said(&gone), ["there is no capability github.list_issues"]);
    let renamed = with(&|tool| {
        let properties = tool["inputSchema"]["properties"].as_object_mut().unwrap();
        let owner = properties.remove("owner").unwrap();
        properties.insert("organisation".to_owned(), owner);
        tool["inputSchema"]["required"] = json!(["organisation", "repo"]);
    });
    assert_eq!(
        said(&renamed),
        [
            "github.list_issues has no parameter `owner`",
            "github.list_issues needs `organisation`, and nothing gives it"
        ]
    );
    let undescribed =
        with(&|tool| tool["inputSchema"]["required"] = json!(["owner", "repo", "organisation"]));
    assert_eq!(said(&undescribed), ["github.list_issues needs `organisation`, and nothing gives it"]);
    let retyped = with(&|tool| tool["inputSchema"]["properties"]["repo"] = json!({ "type": "integer" }));
    assert_eq!(said(&retyped), ["`repo` takes an integer, not \"r\""]);
    let silent = with(&|tool| tool["annotations"] = json!({}));
    assert_eq!(
        verified(&planned, &silent).warnings[0].message,
        "github.list_issues does not say what it changes"
    );
}

fn remembered(intent: &Intent, source: Source, capability: &str, went: Went, step: u32) -> Remembered {
    Remembered {
        key: key_of(intent),
        intent_type: type_of(intent),
        source,
        capability: capability.to_owned(),
        went,
        step: Some(("plans/a.md".to_owned(), step)),
    }
}

#[test]
fn m_14_what_passed_before_serves_the_same_intent_again() {
    let catalog = Catalog::new(capabilities());
    let mut history = History::default();
    let before = act("I1", "show the forecast for \"Bern\"", &[]);
    history.remember(remembered(&before, Source::Semantic, "github.fetch_weather", Went::Unknown, 1));
    let again = act("I7", "list forecasts for \"Basel\"", &[]);
    let find = |history: &History| {
        Resolver { catalog: &catalog, history, sources: &Source::ALL, vectors: None, entries: &[] }
            .find(&again)
    };
    assert_ne!(find(&history).tried[1].why, "it served the same intent, and passed once");
    history.ended("plans/a.md", 1, Went::Passed);
    assert_eq!(served(&find(&history)), ("github.fetch_weather", Source::History));
    history.remember(remembered(&before, Source::Semantic, "github.fetch_weather", Went::Failed, 2));
    assert!(!matches!(find(&history).served, Served::By(_, Source::History)), "it failed as often");
}

#[test]
fn m_47_a_strategy_that_fails_for_a_type_of_intent_comes_later() {
    let catalog = Catalog::new(capabilities());
    let mut history = History::default();
    let intent = act("I1", "list something else", &[]);
    for step in 0..4 {
        history.remember(remembered(&intent, Source::Mcp, "github.list_issues", Went::Failed, step));
    }
    let order = |text: &str| {
        let resolver = Resolver {
            catalog: &catalog,
            history: &history,
            sources: &Source::ALL,
            vectors: None,
            entries: &[],
        };
        let found = resolver.find(&act("I2", text, &[]));
        found.tried.into_iter().map(|tried| tried.source).collect::<Vec<_>>()
    };
    assert_eq!(order("list unicorns").last(), Some(&Source::Mcp));
    assert_eq!(order("create unicorns").last(), Some(&Source::Semantic), "other types keep their order");
    let tally = history.by_type()["list"];
    assert_eq!((tally.resolved, tally.failed, tally.rate()), (4, 4, Some(0.0)));
    assert_eq!(history.by_source()[&Source::Mcp].failed, 4);
}

#[test]
fn a_part_needs_what_its_whole_needs_and_gives_what_it_gives() {
    let whole = act("I2", "tidy the issues", &["I1"]);
    let parts = [("I2.1", "list issues"), ("I2.2", "list issue types")];
    let mut intents = vec![ask("I1", "owner"), whole];
    intents.extend(parts.map(|(id, text)| Intent { part_of: Some("I2".to_owned()), ..act(id, text, &[]) }));
    intents.push(act("I3", "run the tests", &["I2"]));
    let planned = plan(&intents);
    assert_eq!(ids(&planned), ["I2.1/repo", "I1", "I2.1", "I2.2", "I3"]);
    assert_eq!(wired(call(&planned, "I2.2")), BTreeMap::from([("owner", "I1")]));
    assert_eq!(planned.steps[4].needs, ["I2.2"]);
}

#[test]
fn lists_of_tools_in_either_form_are_read_and_faults_named() {
    let named = json!([{ "name": "github.list_issues", "about": "Lists issues", "parameters": ["owner"] }]);
    let read = read(&named, "file");
    assert_eq!((read[0].id().as_str(), read[0].parameters[0].name.as_str()), ("github.list_issues", "owner"));
    let twice = json!({ "tools": [{ "name": "a" }, { "name": "a" }, { "description": "b" }] });
    let faults = Capability::read_all(&twice.to_string(), "s").unwrap_err();
    assert_eq!(faults, ["s.a is there twice", "tool 3: it has no name"]);
    assert!(Capability::read_all("{\"tools\": 3}", "s").is_err());
    assert!(Capability::read_all("nonsense", "s").is_err());
}

#[test]
fn an_intent_among_10_000_tools_is_found_by_looking_at_few_of_them() {
    let things = [
        "issue",
        "pull request",
        "branch",
        "commit",
        "page",
        "invoice",
        "customer",
        "ticket",
        "device",
        "report",
    ];
    let verbs = ["list", "get", "create", "update", "delete", "search", "close", "send", "run", "merge"];
    let tools: Vec<Value> = (0..10_000)
        .map(|at| {
            let (thing, verb) = (things[at / 10 % 10].replace(' ', "_"), verbs[at % 10]);
            json!({ "name": format!("{verb}_{thing}_{}", letters(at / 100)), "description": format!("Does {verb} for {thing}"),
                    "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } } })
        })
        .collect();
    let mut tools = tools;
    tools.push(json!({ "name": "list_unicorns", "description": "Lists unicorns" }));
    let list = json!({ "tools": tools });
    let catalog = Catalog::new(read(&list, "big"));
    let history = History::default();
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries: &[] };
    let found = resolver.find(&act("I1", "list unicorns in o/r", &[]));
    assert_eq!(served(&found).0, "big.list_unicorns");
    assert!(found.looked_at < 12_000, "{}", found.looked_at);
    let misspelt = resolver.find(&act("I1", "list unicornes", &[]));
    assert!(misspelt.looked_at < 12_000, "{}", misspelt.looked_at);
}

/// Writes a number in letters, so that it is a word of its own.
fn letters(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'k')).collect()
}

fn entry(id: &str, triggers: &[&str]) -> Entry {
    let triggers = triggers.iter().map(|trigger| (*trigger).to_owned()).collect();
    Entry { id: id.to_owned(), title: id.to_owned(), triggers, ..Entry::default() }
}

/// Resolves intents with plans of the library beside the tools.
fn plan_with(entries: &[Entry], intents: &[Intent]) -> Planned {
    let catalog = Catalog::new(capabilities());
    let history = History::default();
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries };
    planned(intents, &resolver, &BTreeMap::new())
}

#[test]
fn a_plan_of_the_library_serves_an_intent_as_a_sub_plan_where_the_resolution_puts_it() {
    let entries = [entry("release", &["release", "publish crate"]), entry("other", &["release", "docs"])];
    let intents =
        [act("I1", "publish the crate of the release", &[]), act("I2", "list issues in o/r", &["I1"])];
    let planned = plan_with(&entries, &intents);
    let ids: Vec<&str> = planned.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["I1", "I2"], "{planned:#?}");
    assert_eq!(planned.steps[0].action, Action::SubPlan { entry: "release".to_owned(), score: 2.0 / 3.0 });
    assert!(planned.faults.is_empty(), "{:?}", planned.faults);
    let tried = planned.found["I1"].tried.last().unwrap();
    assert_eq!((tried.source, tried.candidates[0].capability.as_str()), (Source::Library, "plan:release"));
    assert_eq!(tried.candidates[0].why, "2 of its triggers, and it asks for 2: release, publish crate");
    assert_eq!(tried.candidates[1].capability, "plan:other");
    let files = BTreeMap::from([("release".to_owned(), "plans/to release.md".to_owned())]);
    let text = write_plan("list issues and release", "me", None, &planned, &files);
    let step = "### 1. Publish the crate of the release\n\n**type:** sub-plan\n**needs:** none\n\
                **intent:** I1: publish the crate of the release\n**plan:** plans/to release.md\n";
    assert!(text.contains(step) && !text.contains("then:"), "{text}");
    assert!(text.contains("### 2. List issues in o/r") && text.contains("**needs:** 1\n"), "{text}");
}

#[test]
fn the_output_of_a_plan_of_the_library_is_an_argument_of_the_call_that_needs_it() {
    let entries = [entry("choosing", &["choose", "repository"])];
    let choose = Intent { topic: Some("repo".to_owned()), ..act("I1", "choose the repository", &[]) };
    let list = Intent {
        parameters: BTreeMap::from([("owner".to_owned(), json!("acme"))]),
        ..act("I2", "list issues", &["I1"])
    };
    let planned = plan_with(&entries, &[choose.clone(), list]);
    let text = write_plan("list issues of a repository", "me", None, &planned, &BTreeMap::new());
    assert!(text.contains("**plan:** plans/choosing.md\n"), "{text}");
    assert!(text.contains("\"repo\": \"${steps.1.output}\""), "{text}");
    // Two plans may serve two intents, and one that needs a result is told to come after it.
    let again = Intent { id: "I2".to_owned(), needs: vec!["I1".to_owned()], ..choose.clone() };
    let twice = plan_with(&entries, &[choose, again]);
    assert!(twice.faults.is_empty(), "{:?}", twice.faults);
    assert_eq!(twice.steps.len(), 2);
    let warned = &twice.warnings[0].message;
    assert_eq!(warned, "the plan choosing of the library comes after I1, and is given no result");
}

#[test]
fn m_23_results_that_are_there_are_shown_and_not_listed_once_more() {
    let list = act("I1", "list issues in o/r", &[]);
    let sorted = transform("I2", "sort them by update", &["I1"]);
    for text in ["show them", "show the issues", "display the results", "print the list"] {
        let sorted =
            Intent { parameters: BTreeMap::from([("sort".to_owned(), json!("updated"))]), ..sorted.clone() };
        // Whether results are shown by an intent of its own or as a change of results makes no difference.
        for kind in [IntentKind::Act, IntentKind::Transform] {
            let show = Intent { kind, ..act("I3", text, &["I2"]) };
            let planned = plan_with(&[], &[list.clone(), sorted.clone(), show]);
            assert!(planned.open.is_empty() && planned.faults.is_empty(), "{text}: {planned:#?}");
            let actions: Vec<&Action> = planned.steps.iter().map(|step| &step.action).collect();
            assert_eq!(actions.len(), 2, "{text}: {actions:#?}");
            assert_eq!(*actions[1], Action::Show { of: "I1".to_owned() }, "{text}");
            let plan = write_plan("list issues and show them", "me", None, &planned, &BTreeMap::new());
            assert!(plan.contains("```shell\ncat \"$PLANCTL_OUTPUTS/1\"\n```"), "{plan}");
        }
    }
    // Something else is looked for, also where something is there.
    for text in ["show the weather forecast for a city", "get issue #7 in o/r"] {
        let planned = plan_with(&[], &[list.clone(), act("I2", text, &["I1"])]);
        assert!(planned.steps.iter().all(|step| !matches!(step.action, Action::Show { .. })), "{planned:#?}");
    }
}

#[test]
fn m_24_results_that_were_changed_are_about_what_they_were_about_and_a_command_takes_them() {
    let own = json!([{ "name": "keep_bugs", "about": "Keeps the bugs of issues", "command": "bugs {issues} {label}",
                       "parameters": ["issues", "label"] }]);
    let mut capabilities = capabilities();
    capabilities.extend(read(&own, "own"));
    let catalog = Catalog::new(capabilities);
    let history = History::default();
    let resolver =
        Resolver { catalog: &catalog, history: &history, sources: &Source::ALL, vectors: None, entries: &[] };
    let keep = Intent {
        tool: Some("keep_bugs".to_owned()),
        topic: Some("bugs".to_owned()),
        parameters: BTreeMap::from([("label".to_owned(), json!("it's {issues}"))]),
        ..transform("I2", "keep the bugs", &["I1"])
    };
    let again = Intent { id: "I3".to_owned(), needs: vec!["I2".to_owned()], ..keep.clone() };
    let intents = [act("I1", "list issues in o/r", &[]), keep, again];
    let planned = planned(&intents, &resolver, &BTreeMap::new());
    assert!(planned.faults.is_empty() && planned.open.is_empty(), "{planned:#?}");
    let text = write_plan("keep the bugs", "me", None, &planned, &BTreeMap::new());
    for number in [1, 2] {
        let command = format!("bugs \"$(cat \"$PLANCTL_OUTPUTS/{number}\")\" 'it'\\''s {{issues}}'\n");
        assert!(text.contains(&command), "{command}: {text}");
    }
}
