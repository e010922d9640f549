//! Each kind of ask as a person meets it: `approvals show` and the page, word by word, and an answer from each alone.

use serde_json::json;

use super::draft_asks::asked;
use super::house::{House, plan};
use super::page::{Browser, has};
use crate::fixture::plan as plan_of;

/// Puts placeholders for what differs from run to run: times, digests, keys, the place.
fn timeless(house: &House, text: &str) -> String {
    let place = house.fixture.path("").canonicalize().unwrap().display().to_string();
    let text = text.replace(&place, "/place").replace("just now", "1s ago");
    // How far commands can be confined is another matter on each machine.
    let text = ["0", "1a", "1b", "2"]
        .iter()
        .fold(text, |text, tier| text.replace(&format!("tier {tier}\n"), "tier T\n"));
    text.lines().map(|line| timeless_line(line).trim_end().to_owned() + "\n").collect()
}

fn timeless_line(line: &str) -> String {
    line.split(' ').map(timeless_word).collect::<Vec<_>>().join(" ")
}

fn timeless_word(word: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    let mut shown = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..].find(|c| !is_part(c)).map_or(rest.len(), |length| start + length);
        shown.push_str(&rest[..start]);
        shown.push_str(&placeholder(&rest[start..end]));
        rest = &rest[end..];
    }
    shown + rest
}

/// Returns what stands for a moment, a time or hexadecimal digits; the text itself where it is none of them.
fn placeholder(text: &str) -> String {
    let (digits, rest) = text.split_at(text.trim_end_matches(['.', ':']).len());
    let bytes = digits.as_bytes();
    if bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && digits.ends_with('Z') {
        return format!("TIME{rest}");
    }
    let hex = digits.strip_prefix("sha256:").unwrap_or(digits);
    let is_hex = hex.len() >= 9 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && hex.bytes().any(|byte| byte.is_ascii_digit()) {
        return format!("HEX{rest}");
    }
    let number = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let is_time = ["ms", "s", "m", "h"].contains(&&digits[number.len()..]);
    if is_time
        && number.bytes().all(|byte| byte.is_ascii_digit() || b".mh".contains(&byte))
        && !number.is_empty()
    {
        return format!("TIME{rest}");
    }
    text.to_owned()
}

/// Returns a page's own part as a person reads it, who sees no markup.
fn text_of(page: &str) -> String {
    let main = page.split_once("<main").and_then(|(_, main)| main.split_once("</main>")).expect("a page").0;
    let mut text = String::new();
    for part in main.split('<').skip(1) {
        let (tag, words) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        match name {
            "input" if tag.contains("type=\"radio\"") => text.push_str("( ) "),
            "input" if tag.contains("type=\"checkbox\"") => text.push_str("[ ] "),
            "textarea" | "input" if !tag.contains("hidden") && !tag.starts_with('/') => text.push_str("[…]"),
            "a" | "code" | "strong" | "span" | "time" | "mark" | "b" | "em" => {}
            "td" | "th" => text.push_str("  "),
            _ => text.push('\n'),
        }
        text.push_str(words);
    }
    let signs = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    let text = signs.iter().fold(text, |text, (written, sign)| text.replace(written, sign));
    let lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// Holds what is shown of an ask against its transcript.
fn show(house: &House, browser: &Browser<'_>, kind: &str, ask: &str) {
    let terminal = house.fixture.planctl(&["approvals", "show", ask]);
    assert_eq!(terminal.code, 0, "{terminal:?}");
    let page = browser.get(&format!("/asks/{ask}"));
    assert_eq!(page.status, 200, "{page:?}");
    let text = format!(
        "$ planctl approvals show {ask}\n{}\n==> /asks/{ask} <==\n{}",
        timeless(house, &terminal.out),
        timeless(house, &text_of(&page.body))
    );
    insta::with_settings!({ snapshot_path => "transcripts", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(kind, text);
    });
}

/// Answers an ask by the form of its page, whose choice is among those that it offers.
fn answer_on_page(browser: &Browser<'_>, ask: &str, fields: &[(&str, &str)]) {
    let path = format!("/asks/{ask}");
    let page = browser.get(&path);
    has(&page, &format!("value=\"{}\" required", fields[0].1));
    let decided = browser.decide(&page, &path, fields);
    assert_eq!(decided.status, 303, "{decided:?}");
    has(&browser.get(&path), &format!("Answered <strong>{}</strong> by approve-test", fields[0].1));
}

/// Types the command that `approvals show` lists for an answer.
fn answer_in_terminal(house: &House, ask: &str, verb: &str) {
    let page = house.fixture.planctl(&["approvals", "show", ask]).out;
    let listed = format!("planctl approvals {verb} {ask}");
    let command = page.lines().map(str::trim).find(|line| line.starts_with(&listed));
    let command = command.unwrap_or_else(|| panic!("{listed:?} is not in\n{page}"));
    let words = command.split("  ").next().unwrap().split_whitespace().skip(1);
    let words: Vec<&str> = words.map(|word| if word == "'…'" { "because" } else { word }).collect();
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 0, "{words:?}: {said:?}");
}

/// Starts a run that stops at an ask; returns the ask's number.
fn stops(house: &House, words: &[&str]) -> String {
    let said = house.fixture.planctl(&[&["run", "p.md", "-d"], words].concat());
    assert!(matches!(said.code, 0 | 3), "{said:?}");
    open_ask(house)
}

fn open_ask(house: &House) -> String {
    house.until_sql("select count(*) from asks where closed_at is null", "1");
    house.fixture.ask()
}

fn trusted(house: &House, config: &str) {
    house.fixture.write("planctl.toml", config);
    assert_eq!(house.fixture.planctl(&["trust", "."]).code, 0);
}

#[test]
fn a_plan_is_shown_and_approved_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    house.fixture.write("p.md", &plan("p", "hello"));
    let ask = stops(&house, &["--exec", "echo hello >out.txt"]);
    show(&house, &browser, "plan", &ask);
    answer_on_page(&browser, &ask, &[("answer", "approve")]);
    house.until("p-1", "done");
}

#[test]
fn an_escalation_is_shown_and_answered_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let steps = [("One", "test -e done-1 || { echo no done-1; false; }", "escalate")];
    house.fixture.write("p.md", &plan_of("p", "5 minutes", &steps));
    let worker = "case $(cat) in *force*) touch done-1;; esac";
    let ask = stops(&house, &["--approve", "--exec", worker]);
    show(&house, &browser, "escalation", &ask);
    // A file that was changed since its approval is told with the lines.
    house.fixture.write("p.md", &format!("{}\nA word more.\n", plan_of("p", "5 minutes", &steps)));
    has(&browser.get(&format!("/asks/{ask}")), "<code>A word more.</code>");
    answer_on_page(&browser, &ask, &[("answer", "retry"), ("note", "use force")]);
    house.until("p-1", "done");
}

#[test]
fn a_budget_is_shown_and_raised_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let steps = [("One", "test -e done-1", "escalate"), ("Two", "test -e done-2", "escalate")];
    house.fixture.write("p.md", &plan_of("p", "max 1500 tokens, 5 minutes", &steps));
    let worker = r#"touch done-$PLANCTL_STEP; echo '{"planctl":"result/1","usage":{"input_tokens":900,"output_tokens":100}}' > $PLANCTL_RESULT_FILE"#;
    let ask = stops(&house, &["--approve", "--exec", worker]);
    show(&house, &browser, "budget", &ask);
    answer_on_page(&browser, &ask, &[("answer", "raise"), ("tokens", "2000")]);
    house.until("p-1", "done");
}

#[test]
fn a_question_of_a_worker_is_shown_and_answered_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    house.fixture.write("p.md", &plan_of("p", "5 minutes", &[("Paint", "grep -q blue colour", "escalate")]));
    let worker = r#"case $(cat) in *blue*) echo blue > colour;; *) echo '{"planctl":"result/1","outcome":"needs_input","question":"Which colour?"}' > $PLANCTL_RESULT_FILE;; esac"#;
    let ask = stops(&house, &["--approve", "--exec", worker]);
    show(&house, &browser, "question", &ask);
    answer_on_page(&browser, &ask, &[("answer", "answer"), ("note", "blue")]);
    house.until("p-1", "done");
}

#[test]
fn a_choice_of_the_plan_is_shown_and_made_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let call = |number: u32, title: &str, command: &str| {
        format!(
            "### {number}. {title}\n\n**type:** call\n**contract:**\n```bash\n{command}\n```\nexit_code == 0\n\n"
        )
    };
    let text = format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Choose\n\n**Budget:** 5 minutes\n\n## Steps\n\n### 1. Old names\n\n\
         **type:** human\n**task:**\nShall they stay?\n\n{}{}## Flow\n\n- 1 -> 2 \"Keep\"\n- 1 -> 3 \"Rename\"\n- 2 -> done\n- 3 -> done\n",
        call(2, "Add aliases", "touch kept"),
        call(3, "Rename", "touch renamed")
    );
    house.fixture.write("p.md", &text);
    let ask = stops(&house, &["--approve"]);
    show(&house, &browser, "choice", &ask);
    answer_on_page(&browser, &ask, &[("answer", "choose"), ("option", "Rename")]);
    house.until("p-1", "done");
    assert!(house.fixture.path("renamed").exists() && !house.fixture.path("kept").exists());
}

#[test]
fn a_proposed_step_is_shown_and_rejected_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    house.fixture.write("p.md", &plan_of("p", "5 minutes", &[("One", "test -e done-1", "escalate")]));
    let worker = r####"touch done-$PLANCTL_STEP; [ -e said ] && exit 0; touch said
echo '{"planctl": "result/1", "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0"}' > $PLANCTL_RESULT_FILE"####;
    let ask = stops(&house, &["--approve", "--exec", worker]);
    show(&house, &browser, "proposal", &ask);
    answer_on_page(&browser, &ask, &[("answer", "reject"), ("note", "not needed")]);
    house.until("p-1", "done");
}

/// A server of one tool that writes, as far as a call of it goes; its use always fails.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"issues","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"close","description":"Closes an issue.","inputSchema":{"type":"object","properties":{"number":{"type":"integer"}}}}]}' ;;
    *'"method":"tools/call"'*) echo used >>"$1"; result='{"content":[{"type":"text","text":"it is locked"}],"isError":true}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn m_35_an_effect_is_shown_and_decided_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let (server, used) = (house.fixture.path("../server.sh"), house.fixture.path("../used"));
    std::fs::write(&server, SERVER).unwrap();
    trusted(
        &house,
        &format!("[servers.issues]\ncommand = [\"bash\", {server:?}, {used:?}]\neffects = [\"write\"]\n"),
    );
    house.fixture.write(
        "p.md",
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Issues\n\n**Budget:** max 10k tokens\n\n## Steps\n\n### 1. Close it\n\n\
         **type:** call\n**task:**\nClose it.\n**server:** issues\n**tool:** close\n**arguments:**\n- number: 7\n\n\
         **on_fail:** retry(1), then abort\n",
    );
    let ask = stops(&house, &["--approve"]);
    show(&house, &browser, "effect", &ask);
    assert!(!used.exists(), "it happened before a person allowed it");
    answer_in_terminal(&house, &ask, "approve");
    // The second attempt asks anew, and is answered from the page.
    house.until_sql("select max(number) from asks", "3");
    let again = open_ask(&house);
    answer_on_page(&browser, &again, &[("answer", "reject"), ("note", "leave it")]);
    house.until("p-1", "failed");
    assert_eq!(std::fs::read_to_string(&used).unwrap(), "used\n");
}

#[test]
fn m_35_a_prompt_to_a_judge_is_shown_and_decided_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    trusted(
        &house,
        "[models.strict]\napi = \"messages\"\nurl = \"http://127.0.0.1:9\"\nmodel = \"m-1\"\nkey_env = \"MODEL_KEY\"\nmax_tokens = 4000\n\
         ask = true\n\n[judges]\nby = [\"strict\"]\n",
    );
    house.fixture.write(
        "p.md",
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Page\n\n**Budget:** max 100k tokens, $5\n\n## Steps\n\n### 1. Write the page\n\n\
         **target:** coder\n**task:**\nWrite `out.txt`: a greeting.\n\n**contract:**\n```shell\ngrep -q hello out.txt\n```\n\
         exit_code == 0\n\n**judge:** Is `out.txt` finished?\n\n**on_fail:** retry(1), then abort\n",
    );
    let ask = stops(&house, &["--approve", "--exec", "echo hello >out.txt"]);
    show(&house, &browser, "prompt", &ask);
    answer_in_terminal(&house, &ask, "reject");
    house.until("p-1", "failed");
    // Another attempt has another prompt, and is answered from the page.
    assert_eq!(house.fixture.planctl(&["resume", "p-1", "--no-wait"]).code, 3);
    let again = open_ask(&house);
    answer_on_page(&browser, &again, &[("answer", "reject"), ("note", "not to strangers")]);
    house.until("p-1", "failed");
}

#[test]
fn m_39a_a_synthesis_is_shown_and_decided_from_its_page_alone() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let wanted = |slot: &str, program: &str| {
        let text = format!("Write the program `tools/{program}`, which counts the words of a file.");
        json!([{ "slot": slot, "question": { "kind": "synthesis", "text": text } }])
    };
    asked(&house, "one", &wanted("I1", "count"));
    let ask = open_ask(&house);
    show(&house, &browser, "synthesis", &ask);
    answer_in_terminal(&house, &ask, "approve");
    asked(&house, "two", &wanted("I2", "weigh"));
    let other = open_ask(&house);
    answer_on_page(&browser, &other, &[("answer", "reject"), ("note", "look for another way")]);
}
