//! Servers are asked once; their tools are listed, shown and tried.

use super::place::Place;

type Test = (&'static str, fn());

pub fn trials() -> Vec<Test> {
    vec![
        ("m_46_a_second_look_at_a_servers_tools_asks_no_server", second_look_asks_nobody),
        ("m_16_a_stdio_server_is_discovered_with_schemas_and_effects", stdio_server_is_discovered),
        ("m_37_a_tool_without_declared_effects_is_shown_as_one_that_asks", undeclared_asks),
        ("m_41_faults_are_told_apart_by_kind", faults_are_typed),
        ("m_27_arguments_that_do_not_fit_reach_no_server", misfits_reach_nobody),
        ("m_46_a_server_with_another_version_is_asked_again_and_a_changed_tool_is_not_used", newer_version),
        ("the_value_of_a_servers_variable_is_masked_in_what_it_answers", secrets_are_masked),
        ("a_server_of_an_untrusted_file_is_never_started", untrusted_starts_nothing),
    ]
}

fn second_look_asks_nobody() {
    let place = Place::new("");
    let first = place.planctl(&["tool", "ls"]);
    assert!(first.code == 0 && first.out.contains("list_issues"), "{first:?}");
    let asked = place.asked();
    assert_eq!(asked.iter().filter(|method| *method == "tools/list").count(), 1, "{asked:?}");
    let second = place.planctl(&["tool", "ls", "issues"]);
    assert_eq!(second.out, first.out);
    assert_eq!(place.asked(), asked, "it was asked again");
    place.planctl(&["tool", "refresh"]);
    assert_eq!(place.asked().len(), 2 * asked.len());
}

fn stdio_server_is_discovered() {
    let place = Place::new("effects = [\"read\"]\ntools.close_issue = [\"write\"]");
    let list = place.fixture.json(&["tool", "ls", "--json"]);
    let server = &list["servers"][0];
    assert_eq!((&server["server"], &server["version"]), (&"issues".into(), &"1.0.0".into()));
    let shown = place.fixture.json(&["tool", "show", "issues", "close_issue", "--json"]);
    assert_eq!(shown["asks"], "it may write");
    assert_eq!(shown["input"]["properties"]["number"]["type"], "integer");
    let shown = place.planctl(&["tool", "show", "issues", "list_issues"]);
    assert!(shown.out.contains("effects: read\n") && shown.out.contains("read only"), "{shown:?}");
    let missing = place.planctl(&["tool", "show", "issues", "list_issue"]);
    assert!(missing.code == 4 && missing.err.contains("did you mean list_issues?"), "{missing:?}");
    let missing = place.planctl(&["tool", "ls", "isues"]);
    assert!(missing.code == 4 && missing.err.contains("did you mean issues?"), "{missing:?}");
}

fn undeclared_asks() {
    let place = Place::new("");
    let shown = place.fixture.json(&["tool", "show", "issues", "list_issues", "--json"]);
    assert_eq!(shown["effects"], serde_json::Value::Null);
    assert_eq!(shown["asks"], "its effects are not declared");
}

fn faults_are_typed() {
    let place = Place::new("effects = []");
    // Each ends with the code that a step of a plan ends with.
    let said = |tool: &str, arguments: &str, code: i32| {
        let said = place.call(tool, arguments);
        assert_eq!(said.code, code, "{said:?}");
        said.err
    };
    let failed = |words: &str, code: i32| said("fail", &format!("{{\"words\": {words:?}}}"), code);
    assert!(failed("no HALF repository", 1).contains("tool error: no \u{fffd} repository"));
    assert!(failed("no such repository", 1).contains("tool error: no such repository"));
    let limited = failed("API rate limit exceeded, retry after 90 seconds", 75);
    assert!(limited.contains("rate limit: ") && limited.contains("asks to wait 90 s"), "{limited}");
    assert!(failed("Bad credentials", 77).contains("not authorised: Bad credentials"));
    let refused = said("refuse", "{\"words\": \"internal\"}", 76);
    assert!(refused.contains("protocol error: internal"), "{refused}");
    let gone = said("vanish", "{}", 69);
    assert!(gone.contains("network error: the server went away"), "{gone}");
    let unknown = said("nothing", "{}", 78);
    assert!(unknown.contains("changed tool: the server has no tool"), "{unknown}");
    let answer = place.call("list_issues", "{\"repo\": \"acme/shop\", \"perPage\": \"2\"}");
    assert!(answer.code == 0 && answer.out.contains("\"total\":2"), "{answer:?}");
}

fn misfits_reach_nobody() {
    let place = Place::new("effects = []");
    place.planctl(&["tool", "ls"]);
    let before = place.asked();
    let said = place.call("list_issues", "{\"repo\": \"a/b\", \"perPage\": \"ten\"}");
    assert!(said.code == 65 && said.err.contains("wrong arguments: perPage: "), "{said:?}");
    let said = place.call("list_issues", "{\"perPage\": 1, \"page\": 2}");
    assert!(said.err.contains("\"repo\" is a required property") && said.err.contains("page"), "{said:?}");
    let said = place.call("list_issues", "[1]");
    assert!(said.err.contains("wrong arguments"), "{said:?}");
    assert_eq!(place.asked(), before, "a server was started for nothing");
}

fn newer_version() {
    let place = Place::new("effects = []");
    place.planctl(&["tool", "ls"]);
    // The kept list goes by how the server is reached; this one is reached as the old one was.
    let folder = place.fixture.state().join("tools");
    let kept = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let list = std::fs::read(&kept).unwrap();
    place.serve("newer", "effects = []");
    place.planctl(&["tool", "ls"]);
    let newer = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let newer = newer.into_iter().find(|path| *path != kept).unwrap();
    std::fs::write(newer, list).unwrap();
    let said = place.call("list_issues", "{\"repo\": \"a/b\", \"perPage\": 1}");
    assert!(
        said.err.contains("changed tool: the arguments of list_issues are others in version 2.0.0"),
        "{said:?}"
    );
    assert!(!place.asked().iter().any(|asked| asked.starts_with("list_issues")), "{:?}", place.asked());
    let said = place.call("close_issue", "{\"number\": 1}");
    assert!(said.code == 0 && said.out.contains("closed 1"), "{said:?}");
}

fn secrets_are_masked() {
    let place = Place::new("env = [\"ISSUES_TOKEN\"]\neffects = []");
    let said = place.call("secret", "{}");
    assert!(said.code == 1 && said.err.contains("export ISSUES_TOKEN="), "{said:?}");
    let mut command = place.fixture.command(&["tool", "call", "issues", "secret"]);
    let said = crate::fixture::Said::from(command.env("ISSUES_TOKEN", "tok-5e1f0a97c3").output().unwrap());
    assert!(said.code == 0 && said.out.contains("it is ") && !said.out.contains("5e1f0a97c3"), "{said:?}");
}

fn untrusted_starts_nothing() {
    let place = Place::new("effects = []");
    let toml = place.fixture.read("planctl.toml");
    place.fixture.write("planctl.toml", &format!("{toml}\n# changed\n"));
    let said = place.planctl(&["tool", "ls", "issues"]);
    assert!(said.code == 4 && said.err.contains("has no server"), "{said:?}");
    assert_eq!(place.asked(), Vec::<String>::new());
}
