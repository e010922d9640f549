//! Editing a plan on the page: checked, compared, approved; and a proposed step that is put in.

use super::{Browser, escalated, has, hidden};
use crate::fixture::plan as plan_of;
use crate::http::house::{House, Reply};

/// Returns the text in the form of an edit.
fn text_of(page: &Reply) -> String {
    let (_, rest) = page.body.split_once("autocomplete=\"off\">\n").unwrap_or_else(|| panic!("{page:?}"));
    let (text, _) = rest.split_once("</textarea>").unwrap();
    let codes = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    codes.iter().fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}

/// Sends the form of an edit as a browser does, whose lines end with two characters.
fn send(browser: &Browser<'_>, page: &Reply, path: &str, word: &str, text: &str) -> Reply {
    let (file, checked) = (hidden(page, "file"), hidden(page, "checked"));
    let text = text.replace('\n', "\r\n");
    let fields = [("do", word), ("text", &text), ("file", &file), ("checked", &checked), ("note", "mended")];
    browser.decide(page, path, &fields)
}

#[test]
fn an_edit_is_checked_compared_and_approved_and_the_run_goes_on_with_it() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let path = format!("{ask}/edit");
    let browser = Browser::with_token(&house, "approve");
    has(&browser.get(&ask), &format!("<a href=\"{path}\">edit the plan</a>"));
    let begun = browser.get(&path);
    let text = text_of(&begun);
    assert!(text.contains("test -e right"), "{text}");
    assert!(!begun.body.contains("value=\"approve\""), "nothing was compared yet: {}", begun.body);

    let broken = send(&browser, &begun, &path, "check", &text.replace("**contract:**", "**kontract:**"));
    has(&broken, "It can't be approved yet");
    let line = 1 + text.lines().position(|line| line == "**contract:**").unwrap();
    has(
        &broken,
        &format!(
            "<a href=\"#text\" data-line=\"{line}\"><span class=\"unseen\">line </span>{line}</a> <code>**kontract:**</code><div><p><strong>"
        ),
    );
    assert!(!broken.body.contains("value=\"approve\""), "{}", broken.body);

    let mended = text.replace("test -e right", "test -e README");
    house.fixture.write("README", "");
    let checked = send(&browser, &broken, &path, "check", &mended);
    has(&checked, "It is verified");
    assert!(text.contains("status: in-progress"), "{text}");
    assert!(!checked.body.contains("P006"), "planctl's own marks are no news: {}", checked.body);
    has(&checked, "test -e README</code>");
    has(&checked, "Approve as approve-test");
    assert!(!house.fixture.read("fix.md").contains("README"), "checking writes nothing");

    // A text that was not compared is not approved.
    let other = send(&browser, &checked, &path, "approve", &mended.replace("README", "elsewhere"));
    assert_eq!(other.status, 400);
    has(&other, "changed after it was compared");
    has(&other, "test -e elsewhere");

    let done = send(&browser, &checked, &path, "approve", &mended);
    assert_eq!(done.status, 303, "{done:?}");
    let to = done.headers.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    has(&browser.get(to), "the changed plan is approved");
    house.until("fix-1", "done");
    assert!(house.fixture.read("fix.md").contains("test -e README"), "{}", house.fixture.read("fix.md"));
    assert_eq!(house.fixture.planctl(&["audit", "@last"]).code, 0);
    // A second tab with the same edit is told, and keeps its text.
    let late = send(&browser, &checked, &path, "approve", &mended.replace("README", "other"));
    assert_eq!(late.status, 409, "{late:?}");
    has(&late, "This changed while you were reading");
    has(&late, "test -e other");
}

#[test]
fn a_file_that_was_changed_during_an_edit_is_not_overwritten() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let path = format!("{ask}/edit");
    let browser = Browser::with_token(&house, "approve");
    let begun = browser.get(&path);
    let mended = text_of(&begun).replace("test -e right", "true && test -e README");
    let checked = send(&browser, &begun, &path, "check", &mended);
    has(&checked, "It is verified");
    let theirs = house.fixture.read("fix.md").replace("Write the fix, please.", "Write another fix, please.");
    house.fixture.write("fix.md", &theirs);
    let refused = send(&browser, &checked, &path, "approve", &mended);
    assert_eq!(refused.status, 409, "{refused:?}");
    has(&refused, "somebody changed the file meanwhile");
    has(&refused, "true &#38;&#38; test -e README");
    assert_eq!(house.fixture.read("fix.md"), theirs);
    assert_eq!(house.until("fix-1", "waiting")["state"], "waiting");
}

#[test]
fn an_edit_needs_a_token_that_decides_and_a_form_of_its_own_session() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let path = format!("{ask}/edit");
    let reader = Browser::with_token(&house, "read");
    let refused = reader.get(&path);
    assert_eq!(refused.status, 403, "{refused:?}");
    let browser = Browser::with_token(&house, "approve");
    let begun = browser.get(&path);
    let key = hidden(&begun, "key");
    let foreign = [("form", "0"), ("key", key.as_str()), ("do", "check"), ("text", "x")];
    assert_eq!(browser.post(&path, &foreign).status, 403);
    assert_eq!(browser.get("/asks/999/edit").status, 404);
    // A plan that no answer changes has no edit.
    house
        .fixture
        .write("hello.md", &plan_of("hello", "5 minutes", &[("Say it", "true && test -e x", "escalate")]));
    let said = house.fixture.planctl(&["run", "hello.md", "-d", "--exec", "true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let number: u64 = ask["/asks/".len()..].parse().unwrap();
    let none = browser.get(&format!("/asks/{}/edit", number + 1));
    assert_eq!(none.status, 409);
    has(&none, "no answer to it changes the plan");
}

/// Its first step's worker proposes another, after its own.
const PROPOSING: &str = r####"touch done-$PLANCTL_STEP; [ $PLANCTL_STEP = 1 ] || exit 0; [ -e said ] && exit 0; touch said
cat > "$PLANCTL_RESULT_FILE" <<'END'
{"planctl": "result/1", "text": "A third is needed.",
 "insert_step": "### Between\n\n**target:** coder\n**task:** do it\n**contract:**\n\n```shell\ntest -e done-2\n```\n\nexit_code == 0"}
END"####;

#[test]
fn h51_a_proposed_step_is_put_in_from_the_page_unless_the_file_was_changed() {
    let house = House::new();
    let steps =
        [("One", "test -e done-1", "escalate"), ("Two", "test -e done-3 || test -e done-2", "escalate")];
    house.fixture.write("p.md", &plan_of("Two files", "5 minutes", &steps));
    let said = house.fixture.planctl(&["run", "p.md", "--approve", "-d", "--exec", PROPOSING]);
    assert_eq!(said.code, 0, "{said:?}");
    let ask = format!("/asks/{}", house.until("p-1", "waiting")["waiting_on"]["id"]);
    let browser = Browser::with_token(&house, "approve");
    let page = browser.get(&ask);
    has(&page, "### 2. Between");
    has(&page, "<strong>put it in</strong>");
    let approved = house.fixture.read("p.md");
    house.fixture.write("p.md", &approved.replace("Two files", "Three files"));
    let refused = browser.decide(&page, &ask, &[("answer", "approve")]);
    assert_eq!(refused.status, 409, "{refused:?}");
    has(&refused, "changed since it was approved");
    has(&browser.get(&format!("{ask}/edit")), "The plan's file was changed since it was approved");
    house.fixture.write("p.md", &approved);
    let page = browser.get(&ask);
    let decided = browser.decide(&page, &ask, &[("answer", "approve"), ("note", "good")]);
    assert_eq!(decided.status, 303, "{decided:?}");
    let done = house.until("p-1", "done");
    let titles: Vec<&str> =
        done["steps"].as_array().unwrap().iter().map(|step| step["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["One", "Between", "Two"]);
    assert!(house.fixture.read("p.md").contains("Between"));
    assert_eq!(house.fixture.planctl(&["audit", "@last"]).code, 0);
}
