//! The page for people, as a browser without script meets it: signing in, reading, deciding, and what is refused.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::Ask;
use super::house::{House, Reply, plan, wait_until};
use crate::fixture::{Said, plan as plan_of};

#[path = "page/drafts.rs"]
mod drafts;
#[path = "page/edit.rs"]
mod edit;
#[path = "page/reading.rs"]
mod reading;
#[path = "page/secrets.rs"]
mod secrets;

/// A browser that keeps one cookie, at one address of the page.
pub(super) struct Browser<'h> {
    house: &'h House,
    cookie: String,
}

impl<'h> Browser<'h> {
    /// Signs in with a token, as somebody at another machine does.
    pub(super) fn with_token(house: &'h House, scope: &str) -> Browser<'h> {
        let secret = house.token(scope);
        let nobody = Browser { house, cookie: String::new() };
        let reply = nobody.post("/sign-in", &[("token", &secret)]);
        assert_eq!(reply.status, 303, "{reply:?}");
        let cookie = set_cookie(&reply);
        assert!(!reply.body.contains(&secret), "{reply:?}");
        Browser { house, cookie }
    }

    pub(super) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        self.send("POST", path, &[], Some(form.finish()))
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], form: Option<String>) -> Reply {
        let text = request(method, path, &self.house.port, &self.cookie, headers, form.as_deref());
        self.house.raw(text.as_bytes())
    }

    /// Fills in the form of an ask's page, and sends it.
    pub(super) fn decide(&self, page: &Reply, path: &str, fields: &[(&str, &str)]) -> Reply {
        let (form, key) = (hidden(page, "form"), hidden(page, "key"));
        let hidden = [("form", form.as_str()), ("key", key.as_str())];
        self.post(path, &[&hidden[..], fields].concat())
    }
}

fn request(
    method: &str,
    path: &str,
    host: &str,
    cookie: &str,
    headers: &[(&str, &str)],
    form: Option<&str>,
) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str(&format!("host: {host}\r\n"));
    }
    if !cookie.is_empty() {
        text.push_str(&format!("cookie: other=1; {cookie}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(form) = form {
        let length = form.len();
        text.push_str(&format!(
            "content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n"
        ));
    }
    format!("{text}\r\n{}", form.unwrap_or_default())
}

/// Returns the cookie that an answer sets; no script may read it, and no other site sends it.
fn set_cookie(reply: &Reply) -> String {
    let line = reply.headers.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let line = line.unwrap_or_else(|| panic!("{reply:?}"));
    assert!(
        line.contains("httponly") && line.contains("samesite=strict") && line.contains("path=/"),
        "{line}"
    );
    line.split(';').next().unwrap().to_owned()
}

/// Returns the value of a hidden field.
fn hidden(page: &Reply, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    // The first form of a page is that of signing out.
    let (_, rest) = page.body.rsplit_once(&mark).unwrap_or_else(|| panic!("no {name}: {page:?}"));
    rest.split('"').next().unwrap().to_owned()
}

pub(super) fn has(page: &Reply, words: &str) {
    assert!(page.body.contains(words), "no {words:?} in {}", page.body);
}

/// Has a run wait at an escalation; returns the path of its ask.
fn escalated(house: &House, name: &str) -> String {
    let text = plan_of(
        name,
        "5 minutes",
        &[("Write the fix", "echo nothing is right >&2; test -e right", "escalate")],
    );
    house.fixture.write(&format!("{name}.md"), &text);
    let said = house.fixture.planctl(&["run", &format!("{name}.md"), "--approve", "-d", "--exec", "true"]);
    assert_eq!(said.code, 0, "{said:?}");
    let view = house.until(said.out.trim(), "waiting");
    format!("/asks/{}", view["waiting_on"]["id"])
}

#[test]
fn p19_the_page_signs_in_by_a_token_in_a_cookie_that_no_script_reads() {
    let house = House::new();
    let nobody = Browser { house: &house, cookie: String::new() };
    for path in ["/", "/runs", "/asks/1", "/system", "/live?page=/"] {
        let reply = nobody.get(path);
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        has(&reply, "<h1>Sign in</h1>");
    }
    for secret in [house.token("worker").as_str(), "planctl_admin_nothing", ""] {
        let reply = nobody.post("/sign-in", &[("token", secret)]);
        assert_eq!(reply.status, 401, "{reply:?}");
        has(&reply, "This token is not valid");
        assert!(!reply.headers.contains("set-cookie"), "{reply:?}");
    }
    let reader = Browser::with_token(&house, "read");
    has(&reader.get("/"), "Nothing waits for you");
    house.revoke("read");
    assert_eq!(reader.get("/").status, 401, "a revoked token ends its session");
}

#[test]
fn a37_every_page_is_html_with_a_strict_policy_and_strangers_hosts_are_not_let_in() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "admin");
    for path in [
        "/",
        "/?kind=escalation&role=coder",
        "/runs",
        "/runs/fix-1",
        "/runs/fix-1/graph",
        "/runs/fix-1/history",
        "/runs/fix-1/steps/1",
        "/runs/fix-1/steps/1/attempts/1/stderr",
        &ask,
        &format!("{ask}/edit"),
        "/plans",
        "/plans/1",
        "/library",
        "/system",
    ] {
        let page = browser.get(path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.headers.contains("content-type: text/html; charset=utf-8"), "{page:?}");
        assert!(page.headers.contains("content-security-policy: default-src 'none';"), "{page:?}");
        assert!(page.headers.contains("cache-control: no-store"), "{page:?}");
        // A browser that sends no referrer hides the origin of the page's own forms, which would be refused.
        assert!(page.headers.contains("referrer-policy: same-origin"), "{page:?}");
        for inline in ["<style", "style=\"", "<script>", "onclick", "http://cdn", "https://"] {
            assert!(!page.body.contains(inline), "{path} has {inline}: {}", page.body);
        }
        assert!(page.body.len() < 60 << 10, "{path} has {} bytes", page.body.len());
        let evil = browser.send("GET", path, &[("host", "evil.example")], None);
        assert_eq!(evil.status, 403, "{path}: {evil:?}");
    }
    for (asset, most) in
        [("page.css", 20 << 10), ("page.js", 10 << 10), ("graph.css", 10 << 10), ("icon.svg", 1 << 10)]
    {
        let reply = browser.get(&format!("/assets/{asset}"));
        assert!(
            reply.status == 200 && !reply.body.is_empty() && reply.body.len() < most,
            "{asset}: {}",
            reply.body.len()
        );
    }
    // The API beside it says what it always says.
    assert_eq!(browser.get("/v1/nothing").code(), "not_found");
}

#[test]
fn a34_a_link_signs_in_once_on_an_address_of_its_own() {
    let house = House::new();
    let said = house.fixture.planctl(&["open", "--print"]);
    assert_eq!(said.code, 0, "{said:?}");
    let link = said.out.trim().strip_prefix("http://").unwrap().to_owned();
    let (address, path) = link.split_once('/').unwrap();
    assert!(address.starts_with("127.") && !address.starts_with("127.0.0.1:"), "{address}");
    let asked = |method: &str, path: &str, cookie: &str, form: Option<&str>| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request(method, path, address, cookie, &[], form).as_bytes()).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, headers: head.to_lowercase(), body: body.to_owned() }
    };
    let send = |path: &str, cookie: &str| asked("GET", path, cookie, None);
    let opened = send(&format!("/{path}"), "");
    assert_eq!(opened.status, 303, "{opened:?}");
    let cookie = set_cookie(&opened);
    let home = send("/", &cookie);
    has(&home, "ann <span class=\"faint\">(admin)</span>");
    let again = send(&format!("/{path}"), "");
    assert_eq!(again.status, 401);
    has(&again, "used before");
    assert!(!again.headers.contains("set-cookie"), "{again:?}");
    // It is found again at the same address after a restart, and the session holds.
    let restarted = house.fixture.planctl(&["daemon", "restart"]);
    assert_eq!(restarted.code, 0, "{restarted:?}");
    let home = send("/", &cookie);
    assert_eq!(home.status, 200);
    // Signing out ends the session for everybody who has its cookie.
    let form = format!("form={}", hidden(&home, "form"));
    assert_eq!(asked("POST", "/sign-out", &cookie, Some(&form)).status, 303);
    assert_eq!(send("/", &cookie).status, 401);
}

#[test]
fn a_token_that_was_pasted_holds_after_its_browser_signed_out() {
    let house = House::new();
    let browser = Browser::with_token(&house, "read");
    let home = browser.get("/");
    let out = browser.post("/sign-out", &[("form", &hidden(&home, "form"))]);
    assert_eq!(out.status, 303, "{out:?}");
    assert!(out.headers.contains("set-cookie: planctl_session=; max-age=0"), "{out:?}");
    assert_eq!(browser.get("/").status, 200, "a token may be in use elsewhere");
}

#[test]
fn a34_an_agent_gets_nothing_from_the_page() {
    let house = House::new();
    let said = house.fixture.planctl(&["open", "--print"]);
    let link = said.out.trim();
    let admin = house.token("admin");
    let ask = escalated(&house, "fix");
    let person = Browser { house: &house, cookie: format!("planctl_session={admin}") };
    let page = person.get(&ask);
    let (form, key) = (hidden(&page, "form"), hidden(&page, "key"));
    // The agent has read the link, and the person's cookie and form besides.
    let attempts = format!(
        "unset PLANCTL_ITEM_ID\n\
         curl -s -i {link} >link.txt 2>&1\n\
         curl -s -i -H 'cookie: planctl_session={admin}' -d 'form={form}&key={key}&answer=waive&note=x' \
           http://{port}{ask} >form.txt 2>&1\n\
         PLANCTL_STATE_DIR={state} {program} open >open.txt 2>&1\n\
         echo hello >out.txt\n",
        port = house.port,
        state = house.fixture.state().display(),
        program = env!("CARGO_BIN_EXE_planctl"),
    );
    let other = house.fixture.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("agent.sh"), attempts).unwrap();
    std::fs::write(other.join("hello.md"), plan("hello", "hello")).unwrap();
    let there = other.display().to_string();
    let words = [
        "--workspace",
        there.as_str(),
        "-C",
        there.as_str(),
        "run",
        "hello.md",
        "--approve",
        "-d",
        "--exec",
        "bash agent.sh",
    ];
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 0, "{said:?}");
    house.until(said.out.trim(), "done");
    for (file, words) in [
        ("link.txt", "a person decides, and this comes from an agent&#39;s process"),
        ("form.txt", "a person decides, and this comes from an agent&#39;s process"),
        ("open.txt", "worker's process"),
    ] {
        let text = std::fs::read_to_string(other.join(file)).unwrap();
        assert!(text.contains(words) && !text.contains("set-cookie"), "{file}: {text}");
    }
    has(&person.get(&ask), "Decide as");
    // The link was not used up by it.
    let fetched = Said::from(std::process::Command::new("curl").args(["-s", "-i", link]).output().unwrap());
    assert!(fetched.out.contains("303 See Other") && fetched.out.contains("set-cookie"), "{fetched:?}");
}

#[test]
fn a38_a_form_of_another_site_decides_nothing() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "approve");
    let page = browser.get(&ask);
    let (form, key) = (hidden(&page, "form"), hidden(&page, "key"));
    let good = format!("form={form}&key={key}&answer=retry&note=again");
    let without = format!("form=&key={key}&answer=retry&note=again");
    let refused: [(&[(&str, &str)], &str); 3] = [
        (&[], &without),
        (&[("origin", "https://evil.example")], &good),
        (&[("sec-fetch-site", "cross-site")], &good),
    ];
    for (headers, form) in refused {
        let reply = browser.send("POST", &ask, headers, Some(form.to_owned()));
        assert_eq!(reply.status, 403, "{headers:?}: {reply:?}");
    }
    // A GET decides nothing, whatever it says.
    assert_eq!(browser.get(&format!("{ask}?{good}")).status, 200);
    has(&browser.get(&ask), "Decide as");
    let reply = browser.send("POST", &ask, &[("origin", &format!("http://{}", house.port))], Some(good));
    assert_eq!(reply.status, 303, "{reply:?}");
}

#[test]
fn an_ask_is_read_and_answered_and_the_second_tab_is_told_who_was_first() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "approve");
    let home = browser.get("/");
    has(&home, "<title>(1) needs you – planctl</title>");
    has(&home, &format!("<a href=\"{ask}\">Step 1 “Write the fix” needs a decision</a>"));
    let (one, other) = (browser.get(&ask), browser.get(&ask));
    has(&one, "nothing is right");
    has(&one, "contract exit 1");
    assert!(!one.body.contains("checked"), "no answer is chosen beforehand: {}", one.body);

    let without = browser.decide(&one, &ask, &[("answer", "retry"), ("note", "  ")]);
    assert_eq!(without.status, 400);
    has(&without, "retry needs a note");
    has(&without, "value=\"retry\" required checked");

    house.fixture.write("right", "");
    let note = "Mind the <clock> & the \"cache\".\r\nThen stop.";
    let decided = browser.decide(&one, &ask, &[("answer", "retry"), ("note", note)]);
    assert_eq!(decided.status, 303, "{decided:?}");
    let to = decided.headers.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    has(&browser.get(to), "Recorded: retry");
    house.until("fix-1", "done");
    // The very same form once more changes nothing, and says the same.
    assert_eq!(browser.decide(&one, &ask, &[("answer", "retry"), ("note", note)]).status, 303);

    let late = browser.decide(&other, &ask, &[("answer", "waive"), ("note", "fine")]);
    assert_eq!(late.status, 409);
    has(&late, "This changed while you were reading");
    has(&late, "Answered <strong>retry</strong> by approve-test");
    has(&late, "Mind the &#60;clock&#62; &#38; the &#34;cache&#34;.");
    assert!(!late.body.contains("Decide as"), "{}", late.body);
}

#[test]
fn a_form_whose_answer_was_refused_takes_another_one() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "approve");
    let page = browser.get(&ask);
    let refused = browser.decide(&page, &ask, &[("answer", "retry"), ("note", "a\0b")]);
    assert_eq!(refused.status, 400, "{refused:?}");
    // As the browser's way back shows it.
    let decided = browser.decide(&page, &ask, &[("answer", "abort"), ("note", "enough")]);
    assert_eq!(decided.status, 303, "{decided:?}");
}

#[test]
fn the_page_of_a_run_whose_only_worker_is_paused_says_where_it_is_resumed() {
    let house = House::new();
    let browser = Browser::with_token(&house, "approve");
    let claim = ["item", "claim", "--role", "coder", "--name", "mole", "--no-wait"];
    assert_eq!(house.fixture.planctl(&claim).code, 10);
    assert_eq!(house.fixture.planctl(&["worker", "pause", "mole"]).code, 0);
    let run = house.run("p", "word");
    let waits =
        || house.local("GET", &format!("/v1/runs/{run}"), &Ask::default()).json()["waiting_on"].take();
    wait_until(|| (waits()["kind"] == "worker").then_some(())).expect("it waits for a worker");
    has(&browser.get(&format!("/runs/{run}")), "mole is paused; resume it under System.");
    has(&browser.get("/runs"), "waits for the worker mole, which is paused");
}

#[test]
fn a_plan_is_approved_and_a_run_is_cancelled_from_the_page_alone() {
    let house = House::new();
    house.fixture.write("hello.md", &plan("hello", "hello"));
    let said = house.fixture.planctl(&["run", "hello.md", "-d", "--exec", "sleep 600"]);
    assert_eq!(said.code, 3, "{said:?}");
    let browser = Browser::with_token(&house, "approve");
    let page = browser.get("/asks/1");
    has(&page, "Approve hello.md?");
    has(&page, "Write hello into out.txt.");
    has(&page, "sleep 600");
    has(&page, "Nothing of this plan was approved before.");
    let decided = browser.decide(&page, "/asks/1", &[("answer", "approve")]);
    assert_eq!(decided.status, 303, "{decided:?}");
    house.until("hello-1", "running");
    let run = browser.get("/runs/hello-1");
    has(&run, "Pause or cancel");
    let cancelled = browser.decide(&run, "/runs/hello-1/steer", &[("do", "cancel"), ("note", "not now")]);
    assert_eq!(cancelled.status, 303, "{cancelled:?}");
    house.until("hello-1", "cancelled");
    has(&browser.get("/"), "hello-1");
}

#[test]
fn a_reader_s_page_has_no_forms_and_its_posts_are_refused() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "read");
    let page = browser.get(&ask);
    has(&page, "token that only reads");
    assert!(!page.body.contains("name=\"answer\""), "{}", page.body);
    // Its own form of signing out proves the session, and gives no right to decide.
    let form = hidden(&page, "form");
    let reply = browser.post(&ask, &[("form", &form), ("key", "k"), ("answer", "waive"), ("note", "x")]);
    assert_eq!(reply.status, 403, "{reply:?}");
    let system = browser.get("/system");
    assert!(system.status == 200 && !system.body.contains("Tokens that hold"), "{}", system.body);
}

#[test]
fn an_error_is_shown_as_an_error_and_an_empty_list_says_that_it_is_empty() {
    let house = House::new();
    let browser = Browser::with_token(&house, "read");
    has(&browser.get("/runs"), "There is no run yet.");
    has(&browser.get("/plans"), "No plan was approved or run yet.");
    for (path, words) in [
        ("/nowhere", "There is no such page"),
        ("/runs/nothing-1", "could not find run `nothing-1`"),
        ("/asks/99", "could not find"),
        ("/asks/x", "the number of an ask"),
        ("/runs/nothing-1/graph", "could not find run"),
    ] {
        let page = browser.get(path);
        assert!([404, 400].contains(&page.status), "{path}: {page:?}");
        has(&page, words);
        has(&page, "role=\"alert\"");
    }
    assert_eq!(browser.send("DELETE", "/", &[], None).status, 405);
}

#[test]
fn a31_a_stranger_s_text_is_text() {
    let house = House::new();
    let evil = "<script>alert(1)</script>\u{202e}<!--/live--><img src=x onerror=y>";
    house.fixture.write("evil.sh", &format!("cat <<'END'\n{evil}\u{1b}[31m\nEND\n"));
    let text = plan_of(
        "Evil",
        "5 minutes",
        &[("Write it", "bash evil.sh; bash evil.sh >&2; test -e never", "escalate")],
    );
    house.fixture.write("evil.md", &text);
    let said = house.fixture.planctl(&["run", "evil.md", "--approve", "-d", "--exec", "bash evil.sh"]);
    assert_eq!(said.code, 0, "{said:?}");
    let ask = house.until("evil-1", "waiting")["waiting_on"]["id"].to_string();
    let browser = Browser::with_token(&house, "approve");
    for path in
        [format!("/asks/{ask}"), "/runs/evil-1/steps/1".to_owned(), "/".to_owned(), "/runs/evil-1".to_owned()]
    {
        let page = browser.get(&path);
        assert_eq!(page.status, 200, "{path}");
        for raw in ["<script>alert", "\u{202e}", "<img", "\u{1b}"] {
            assert!(!page.body.contains(raw), "{path} has {raw:?}: {}", page.body);
        }
    }
    has(&browser.get(&format!("/asks/{ask}")), "&#60;script&#62;alert(1)&#60;/script&#62;");
}

#[test]
fn live_updates_are_the_parts_of_the_page_that_changed() {
    let house = House::new();
    let ask = escalated(&house, "fix");
    let browser = Browser::with_token(&house, "approve");
    let text = request("GET", "/live?page=%2F", &house.port, &browser.cookie, &[], None);
    let mut stream = TcpStream::connect(&house.port).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut until = |words: &str| {
        let mut seen = Vec::new();
        for line in lines.by_ref() {
            let line = line.unwrap();
            seen.push(line.clone());
            if line.contains(words) {
                return seen;
            }
        }
        panic!("no {words:?}: {seen:?}")
    };
    until("text/event-stream");
    until("event: part");
    until("Step 1 “Write the fix” needs a decision");
    until("event: title");
    let page = browser.get(&ask);
    assert_eq!(browser.decide(&page, &ask, &[("answer", "waive"), ("note", "good enough")]).status, 303);
    until("Nothing waits for you");
    until("nothing needs you");
    // Once the session is over, the page says so and nothing more.
    house.revoke("approve");
    until("event: signed-out");
}

/// Opens a link in Chromium as a person does; returns the page as it is by then, and what its console says.
fn in_chromium(link: &str) -> Option<Said> {
    let profile = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("chromium");
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--timeout=3000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(link);
    match command.output() {
        Ok(output) => Some(Said::from(output)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_page_works_in_a_real_browser_and_its_console_is_silent() {
    let house = House::new();
    escalated(&house, "fix");
    let said = house.fixture.planctl(&["open", "--print"]);
    let Some(seen) = in_chromium(said.out.trim()) else {
        eprintln!(
            "NOT TESTED: chromium is not installed (apt-get install chromium); `just page` needs it, too"
        );
        return;
    };
    assert!(seen.out.contains("Step 1 “Write the fix” needs a decision"), "{seen:?}");
    // The script has connected for live updates: what it says of a lost connection is not there.
    assert!(seen.out.contains("id=\"connection\" role=\"status\"></p>"), "{}", seen.out);
    let errors: Vec<&str> = seen.err.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
