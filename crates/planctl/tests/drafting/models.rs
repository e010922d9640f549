//! Models over real HTTP: both forms, what is sent, what is counted, and one error per cause.

use std::fs;

use serde_json::{Value, json};

use super::home::{GOAL, Home, KEY, Said, app, good};
use super::service::{Form, Reply, Service};

const WORDS: [&str; 6] = ["plan", "draft", GOAL, "--model", "writer", "--json"];

#[test]
fn both_forms_are_spoken_and_their_tokens_and_money_counted() {
    for form in [Form::Messages, Form::Chat] {
        let home = app();
        let service = Service::start(form, vec![Reply::Structured(good())]);
        home.models(&[("writer", &service)]);
        let view = home.json(&WORDS, 0);
        assert_eq!(view["state"], "done", "{view:#}");
        assert_eq!(view["spent"]["input_tokens"], 1000);
        assert_eq!(view["spent"]["cached_tokens"], 100);
        assert_eq!(view["spent"]["output_tokens"], 200);
        // 900 tokens for $1 a million, 100 for $0.1, 200 for $10.
        assert_eq!(view["spent"]["usd"], 0.00291);
        assert_eq!(view["estimate"]["runs"], 0, "{view:#}");
        assert!(view["estimate"]["tokens"].as_u64().unwrap() > 0);
        let calls = service.calls();
        assert_eq!(calls.len(), 1);
        let call = &calls[0];
        match form {
            Form::Messages => {
                assert_eq!((call.path.as_str(), call.headers["x-api-key"].as_str()), ("/v1/messages", KEY));
                assert_eq!(call.headers["anthropic-version"], "2023-06-01");
                assert_eq!(call.body["tool_choice"]["name"], "draft");
                assert!(call.body["system"].as_str().unwrap().contains("fails today"));
            }
            Form::Chat | Form::Embeddings => {
                let bearer = format!("Bearer {KEY}");
                let sent = (call.path.as_str(), call.headers["authorization"].as_str());
                assert_eq!(sent, ("/v1/chat/completions", bearer.as_str()));
                assert_eq!(call.body["response_format"]["json_schema"]["strict"], true);
            }
        }
        assert_eq!((&call.body["model"], &call.body["max_tokens"]), (&json!("m-1"), &json!(4000)));
        assert!(
            call.prompt().contains("src/app.sh") && call.prompt().contains("R2: document it in README.md")
        );
        assert!(home.state_files_with(KEY).is_empty());
        let (is_verified, codes) = home.verified(view["file"].as_str().unwrap());
        assert!(is_verified && !codes.iter().any(|code| code == "P103"), "{codes:?}");
        assert!(home.read("plans/a-json-flag.md").contains("status: draft"));
    }
}

/// The tokens of a service that counts none are an estimate, which holds the budget as a count does.
#[test]
fn a_service_that_counts_no_tokens_is_held_to_the_budget_by_the_length_of_what_was_said() {
    let answer = |value: &Value| {
        let content = value.to_string();
        Reply::Body(
            json!({ "choices": [{ "message": { "role": "assistant", "content": content } }] }).to_string(),
        )
    };
    let mut wrong = good();
    wrong["requirements"] = json!([]);
    let home = app();
    let service = Service::start(Form::Chat, vec![answer(&wrong), answer(&good())]);
    home.models(&[("writer", &service)]);
    let words = |budget| ["plan", "draft", GOAL, "--model", "writer", "--budget", budget];
    let held = home.planctl(&words("8000 tokens"));
    assert_eq!((held.code, service.calls().len()), (6, 1), "{held:?}");
    assert!(held.err.contains("tokens are used, up to"), "{held:?}");
    let done = home.planctl(&words("100k tokens, $5"));
    assert_eq!((done.code, service.calls().len()), (0, 2), "{done:?}");
    assert!(done.out.contains("2 answers") && done.out.contains(" (estimated)"), "{done:?}");
    let spent = home.json(&["plan", "draft", GOAL, "--model", "writer", "--json"], 0)["spent"].clone();
    assert_eq!((&spent["estimated"], &spent["unmetered"]), (&json!(2), &json!(0)), "{spent}");
    let length = |text: &str| text.len() as u64 / 3;
    let prompts: u64 = service.calls().iter().map(|call| length(&call.prompt())).sum();
    assert!(spent["input_tokens"].as_u64().unwrap() >= prompts, "{spent}: {prompts}");
    let written = length(&wrong.to_string()) + length(&good().to_string());
    assert_eq!(spent["output_tokens"].as_u64().unwrap(), written, "{spent}");
    assert!(spent["usd"].as_f64().unwrap() > 0.0, "{spent}");
}

#[test]
fn a_service_without_structured_output_is_asked_for_json_in_a_fence() {
    for form in [Form::Messages, Form::Chat] {
        let home = app();
        let fenced = format!("Here is the plan.\n\n```json\n{:#}\n```\n", good());
        let refusal =
            Reply::Status(400, "x-a: 1", "{\"error\": {\"message\": \"response_format is not supported\"}}");
        let service = Service::start(form, vec![refusal, Reply::Text(fenced)]);
        home.models(&[("writer", &service)]);
        home.json(&WORDS, 0);
        let second = &service.calls()[1].body;
        assert!(second.get("tools").is_none() && second.get("response_format").is_none(), "{second}");
    }
}

#[test]
fn a_server_that_asks_to_wait_is_waited_for() {
    let home = app();
    let wait = |status| Reply::Status(status, "retry-after: 0", "{\"error\": {\"message\": \"slow down\"}}");
    let service =
        Service::start(Form::Messages, vec![wait(429), wait(529), wait(503), Reply::Structured(good())]);
    home.models(&[("writer", &service)]);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("slow down") && said.err.contains("asked again in"), "{said:?}");
    assert_eq!(service.calls().len(), 4);
}

#[test]
fn each_cause_has_an_error_of_its_own() {
    let status = |status, header, body| vec![Reply::Status(status, header, body)];
    let message = "{\"error\": {\"message\": \"nope\"}}";
    for (replies, code, says) in [
        (status(401, "x-a: 1", message), 77, "its key is refused (401): nope"),
        (status(429, "retry-after: 3600", message), 75, "it asks to wait 3600 s"),
        (status(404, "x-a: 1", message), 78, "it refuses the call (404): nope"),
        (
            status(301, "location: http://127.0.0.1:9/", ""),
            78,
            "it sends calls to http://127.0.0.1:9/, where planctl does not",
        ),
        (vec![Reply::Body(String::new())], 75, "its response can't be read: it is empty"),
        (vec![Reply::Body("<html>".into())], 75, "its response can't be read"),
        (vec![Reply::Body("{\"choices\": 3}".into())], 75, "its response can't be read"),
        (vec![Reply::Body("x".repeat(2_000_000))], 75, "longer than"),
    ] {
        let home = app();
        let service = Service::start(Form::Chat, replies);
        home.models(&[("writer", &service)]);
        let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
        assert_eq!(said.code, code, "{says}: {said:?}");
        assert!(said.err.contains(says), "{says}: {said:?}");
        assert!(!said.err.contains(KEY) && !home.has("plans"), "{said:?}");
    }
}

#[test]
fn a_call_counts_also_where_its_answer_does_not_come_or_can_t_be_read() {
    let refused = Reply::Status(401, "x-a: 1", "{}");
    for (replies, codes, lost) in [
        (vec![Reply::Gone], &[0][..], 1),
        (vec![Reply::Status(500, "x-a: 1", "{}")], &[0], 1),
        (vec![Reply::Body("<html>".into())], &[75, 0], 1),
        // A service that says that it did not take the call is paid for nothing.
        (vec![Reply::Status(429, "retry-after: 0", "{}")], &[0], 0),
        (vec![Reply::Status(400, "x-a: 1", "{}")], &[0], 0),
        (vec![refused], &[77, 0], 0),
    ] {
        let home = app();
        let context = format!("{replies:?}");
        let service =
            Service::start(Form::Chat, replies.into_iter().chain([Reply::Structured(good())]).collect());
        home.models(&[("writer", &service)]);
        for code in codes {
            assert_eq!(home.planctl(&WORDS).code, *code, "{context}");
        }
        let view = home.json(&WORDS, 0);
        assert_eq!(
            (&view["spent"]["answers"], &view["spent"]["lost"]),
            (&json!(1), &json!(lost)),
            "{context}"
        );
        assert_eq!(service.calls().len(), 2, "{context}");
    }
}

#[test]
fn a_service_that_is_not_there_is_tried_again_and_named() {
    let home = app();
    let service = Service::start(Form::Chat, Vec::new());
    home.models(&[("writer", &service)]);
    let config = home.path("home/.config/planctl/planctl.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace(&service.url(), "http://127.0.0.1:1");
    std::fs::write(&config, text).unwrap();
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    assert_eq!(said.code, 75, "{said:?}");
    let again = |seconds| {
        format!("it can't be reached: Connection refused (os error 111); asked again in {seconds} s\n")
    };
    let last = "could not ask the model writer: it can't be reached: Connection refused (os error 111)\n\
                help: the same goal goes on where it was\n";
    let shown = [&again("0.5"), &again("1"), &again("2"), last].concat();
    assert!(said.err.ends_with(&shown), "{shown}: {said:?}");
    // Nothing was sent, so nothing counts.
    home.models(&[("writer", &Service::start(Form::Chat, vec![Reply::Structured(good())]))]);
    assert_eq!(home.json(&WORDS, 0)["spent"]["lost"], 0);
}

#[test]
fn trouble_that_passes_is_one_sentence_of_what_it_is() {
    let trouble = |status| Reply::Status(status, "x-a: 1", "{\"error\": {\"message\": \"out of memory\"}}");
    let replies = [trouble(500), Reply::Gone, trouble(502), Reply::Structured(good())];
    let home = app();
    let service = Service::start(Form::Chat, replies.into());
    home.models(&[("writer", &service)]);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    let again: Vec<&str> =
        said.err.lines().filter_map(|line| line.split_once("; asked again")).map(|(why, _)| why).collect();
    let expected = [
        "it has trouble of its own (500): out of memory",
        "it broke off: connection closed before message completed",
        "it has trouble of its own (502): out of memory",
    ];
    assert_eq!((said.code, again.as_slice()), (0, &expected[..]), "{said:?}");
    // An address that speaks no TLS, and one that wants a key.
    let service = Service::start(Form::Chat, vec![Reply::Status(401, "x-a: 1", "{}")]);
    let address = format!("{}/v1/chat/completions#m", service.url());
    let said = home.planctl(&["plan", "draft", GOAL, "--model", &address]);
    assert!(said.code == 77 && said.err.contains("it wants a key (401)"), "{said:?}");
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/v1/chat/completions#m", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut caller, _) = plain.accept().unwrap();
        assert!(caller.read(&mut [0; 1024]).unwrap() > 0);
        caller.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let said = home.planctl(&["plan", "draft", GOAL, "--model", &address]);
    assert!(
        said.code == 78 && said.err.contains("it can't be reached: received corrupt message"),
        "{said:?}"
    );
    assert!(said.err.contains("help: it does not speak TLS there: is the port right?"), "{said:?}");
}

#[test]
fn a_key_follows_no_redirect_and_travels_to_no_other_machine_unencrypted() {
    let home = app();
    let elsewhere = Service::start(Form::Messages, Vec::new());
    let header: &'static str =
        Box::leak(format!("location: {}/v1/messages", elsewhere.url()).into_boxed_str());
    let service = Service::start(Form::Messages, vec![Reply::Status(307, header, "{}")]);
    home.models(&[("writer", &service)]);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    assert_eq!((said.code, elsewhere.calls().len()), (78, 0), "{said:?}");
    let config = home.path("home/.config/planctl/planctl.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace(&service.url(), "http://models.example");
    std::fs::write(&config, text).unwrap();
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    assert!(said.code == 78 && said.err.contains("unencrypted"), "{said:?}");
}

#[test]
fn a_budget_stops_before_the_call_that_would_pass_it() {
    let home = app();
    let service =
        Service::start(Form::Messages, vec![Reply::Text("no plan".into()), Reply::Structured(good())]);
    home.models(&[("writer", &service)]);
    let words = |budget| ["plan", "draft", GOAL, "--model", "writer", "--budget", budget];
    let said = home.planctl(&words("100 tokens"));
    assert!(said.code == 6 && service.calls().is_empty(), "{said:?}");
    assert!(said.err.contains("100 are allowed"), "{said:?}");
    let said = home.planctl(&words("$0.0001"));
    assert!(said.code == 6 && service.calls().is_empty(), "{said:?}");
    // The first answer is used and counted; what is left does not suffice for a second.
    let said = home.planctl(&words("7000 tokens"));
    assert_eq!((said.code, service.calls().len()), (6, 1), "{said:?}");
    assert!(said.err.contains("1200 tokens are used"), "{said:?}");
    let said = home.planctl(&words("1M tokens, $5"));
    assert_eq!((said.code, service.calls().len()), (0, 2), "{said:?}");
}

#[test]
fn a_model_of_a_project_that_nobody_trusts_is_not_asked() {
    let home = app();
    let service = Service::start(Form::Messages, vec![Reply::Structured(good())]);
    let table = format!(
        "[models.writer]\napi = \"messages\"\nurl = \"{}\"\nmodel = \"m\"\nkey_env = \"HOME\"\n",
        service.url()
    );
    home.write("planctl.toml", &table);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", "writer"]);
    assert_eq!((said.code, service.calls().len()), (78, 0), "{said:?}");
    assert!(said.err.contains("planctl trust"), "{said:?}");
}

#[test]
fn an_address_names_a_model_of_this_machine_without_any_configuration() {
    for (form, end) in [(Form::Messages, "messages"), (Form::Chat, "chat/completions")] {
        let home = app();
        let service = Service::start(form, vec![Reply::Structured(good())]);
        let address = format!("{}/v1/{end}#m-9", service.url());
        let said = home.planctl(&["plan", "draft", GOAL, "--model", &address]);
        assert_eq!(said.code, 0, "{said:?}");
        let call = &service.calls()[0];
        assert_eq!((call.path.as_str(), &call.body["model"]), (format!("/v1/{end}").as_str(), &json!("m-9")));
        for header in ["authorization", "x-api-key"] {
            assert!(!call.headers.contains_key(header), "no key is known: {:?}", call.headers);
        }
    }
}

#[test]
fn an_address_that_planctl_toml_has_is_asked_with_its_key_and_what_else_stands_there() {
    let home = app();
    let service = Service::start(Form::Messages, vec![Reply::Structured(good())]);
    home.models(&[("writer", &service)]);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", &service.url()]);
    assert_eq!(said.code, 0, "{said:?}");
    let call = &service.calls()[0];
    assert_eq!((call.headers["x-api-key"].as_str(), &call.body["model"]), (KEY, &json!("m-1")));
    home.models(&[("first", &service), ("second", &service)]);
    let said = home.planctl(&["plan", "draft", GOAL, "--model", &service.url()]);
    assert!(said.code == 78 && said.err.contains("name one: first, second"), "{said:?}");
    // A person is asked about each prompt to an address, too.
    home.models(&[("writer", &service)]);
    asks_first(&home);
    let address = format!("{}/v1/messages#m-1", service.url());
    waiting(&home.planctl(&["plan", "draft", "remove README.md, please", "--model", &address]));
    assert_eq!(service.calls().len(), 1, "nothing was sent");
}

#[test]
fn an_address_of_which_something_is_unknown_is_refused_with_what_to_write() {
    let home = app();
    let service = Service::start(Form::Chat, vec![Reply::Status(401, "x-a: 1", "{}")]);
    let unfit = |address: &str| home.planctl(&["plan", "draft", GOAL, "--model", address]);
    for (address, code, says) in [
        ("https://models.example", 78, "end the address with /messages or /chat/completions"),
        (
            "https://models.example",
            78,
            "[models.writer]\napi = \"messages\"\nurl = \"https://models.example\"",
        ),
        ("https://models.example/v1/messages", 78, "https://models.example/v1/messages#MODEL"),
        ("http://models.example/v1/messages#m", 78, "unencrypted to another machine"),
        ("ftp://models.example/v1/messages#m", 2, "begins with https:// or http://"),
        ("https://ann:secret@models.example/v1/messages#m", 2, "no login"),
        ("https://models.example/v1/messages?key=secret#m", 2, "no parameters"),
    ] {
        let said = unfit(address);
        assert!(said.code == code && said.err.contains(says), "{address}: {says}: {said:?}");
        assert!(!said.err.contains("secret"), "{said:?}");
    }
    let said = unfit(&format!("{}/v1/chat/completions#m", service.url()));
    assert!(said.code == 77 && said.err.contains("key_env = \"MODEL_KEY\""), "{said:?}");
    assert!(!home.has("plans"), "nothing is written");
}

#[test]
fn m_30_a_reviewer_of_the_rules_choice_is_asked_once_after_them() {
    let home = app();
    let mut untraced = good();
    untraced["requirements"] = json!([]);
    let writer = Service::start(Form::Messages, vec![Reply::Structured(untraced), Reply::Structured(good())]);
    let verdict: Value = json!({ "verdict": "warning", "findings": ["any brace would do for step 1"] });
    let reviewer = Service::start(Form::Chat, vec![Reply::Structured(verdict)]);
    home.models(&[("writer", &writer), ("second", &reviewer)]);
    let words = ["plan", "draft", GOAL, "--model", "writer", "--reviewer", "second", "--json"];
    let view = home.json(&words, 0);
    assert_eq!((writer.calls().len(), reviewer.calls().len()), (2, 1));
    assert!(view["findings"].to_string().contains("any brace would do"), "{view:#}");
    assert!(reviewer.calls()[0].prompt().contains("### 1. Add the flag"));
    assert_eq!(view["spent"]["answers"], 3);
}

/// Has a person asked before each prompt to the models.
fn asks_first(home: &Home) {
    let file = home.path("home/.config/planctl/planctl.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("max_tokens = 4000", "max_tokens = 4000\nask = true")).unwrap();
}

/// Returns the digest of the prompt that waits.
fn waiting(said: &Said) -> String {
    assert_eq!(said.code, 3, "{said:?}");
    let digest = said.err.split("--send ").nth(1).unwrap_or_else(|| panic!("{said:?}"));
    digest.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn m_35_a_prompt_of_a_draft_is_shown_whole_and_sent_only_once_a_person_approved_that_very_prompt() {
    let home = app();
    let bad = json!({ "title": "x" });
    let service = Service::start(Form::Messages, vec![Reply::Structured(bad), Reply::Structured(good())]);
    home.models(&[("writer", &service)]);
    asks_first(&home);
    let words = ["plan", "draft", GOAL, "--model", "writer"];
    let said = home.planctl(&words);
    let first = waiting(&said);
    for part in
        ["what would be sent", "R2: document it in README.md", "writer (m-1)", "/v1/messages", first.as_str()]
    {
        assert!(said.out.contains(part), "{part}: {said:?}");
    }
    let sent = |digest: &str| home.planctl(&[&words[..], &["--send", digest]].concat());
    assert_eq!(waiting(&sent("sha256:0000")), first, "another digest approves nothing");
    assert!(service.calls().is_empty(), "nothing was sent");

    // The second round has another prompt, which tells what was found.
    let second = waiting(&sent(&first));
    assert_eq!(service.calls().len(), 1);
    assert_ne!(first, second);
    assert_eq!(waiting(&sent(&first)), second, "an approval is for one prompt");
    let done = sent(&second);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(service.calls().len(), 2);
}

#[test]
fn m_35_a_prompt_of_a_draft_waits_in_the_inbox_and_the_same_command_goes_on_with_the_answer() {
    let home = app();
    let bad = json!({ "title": "x" });
    let service = Service::start(Form::Messages, vec![Reply::Structured(bad), Reply::Structured(good())]);
    home.models(&[("writer", &service)]);
    asks_first(&home);
    let words = ["plan", "draft", GOAL, "--model", "writer"];
    let digest = waiting(&home.planctl(&words));
    assert_eq!(waiting(&home.planctl(&words)), digest, "the same prompt waits");
    assert!(
        home.path("state/pg").exists(),
        "a state directory that a draft made serves the database of root, too"
    );
    let listed = home.json(&["approvals", "ls", "--category", "LlmPromptApproval", "--json"], 0);
    assert_eq!(listed["asks"].as_array().unwrap().len(), 1, "asked once: {listed:#}");
    let shown = home.json(&["approvals", "show", "--json"], 0);
    assert_eq!(shown["prompt"]["digest"], digest.as_str());
    assert!(shown["prompt"]["text"].as_str().unwrap().contains("R2: document it in README.md"), "{shown:#}");
    assert_eq!(shown["title"], GOAL);
    assert_eq!(home.planctl(&["approvals", "approve", "--note", "fine"]).code, 0);
    assert!(service.calls().is_empty(), "an answer sends nothing by itself");

    let second = waiting(&home.planctl(&words));
    assert_eq!((service.calls().len(), second != digest), (1, true), "another prompt asks anew");
    let open = home.json(&["approvals", "ls", "--json"], 0);
    assert_eq!((&open["asks"][0]["id"], open["asks"].as_array().unwrap().len()), (&json!(2), 1), "{open:#}");
    let rejected = home.planctl(&["approvals", "reject", "2", "--note", "it names the customer"]);
    assert_eq!(rejected.code, 0, "{rejected:?}");
    for more in [&[][..], &["--send", &second]] {
        let said = home.planctl(&[&words[..], more].concat());
        assert!(said.code == 1 && said.err.contains("ann rejected the prompt"), "{said:?}");
        assert!(said.err.contains("it names the customer"), "{said:?}");
    }
    assert_eq!(service.calls().len(), 1, "nothing was sent");
}

#[test]
fn m_35_a_prompt_that_breaks_a_goal_up_waits_for_a_person_too() {
    let home = app();
    let pieces = json!({ "intents": [
        { "id": "I1", "text": "list issues", "kind": "act", "needs": [], "topic": null, "tool": null }
    ], "confidence": 0.9 });
    let service = Service::start(Form::Chat, vec![Reply::Structured(pieces)]);
    home.models(&[("writer", &service)]);
    asks_first(&home);
    let words = ["goal", "decompose", "tidy the issues up a bit", "--model", "writer"];
    let digest = waiting(&home.planctl(&words));
    assert_eq!(waiting(&home.planctl(&words)), digest, "the same prompt waits");
    assert!(service.calls().is_empty(), "nothing was sent");
    home.planctl(&[&words[..], &["--send", &digest]].concat());
    assert_eq!(service.calls().len(), 1);
}
