//! Secrets and the page: none shows there, whatever link a person follows.

use std::collections::{BTreeSet, VecDeque};

use super::super::house::{Ask, House};
use super::{Browser, has, plan_of};

/// Texts that must show nowhere: the value of a variable that contract and worker print, a credential that the plan holds, the
/// secrets of a channel's address and of its signature.
const CANARIES: [&str; 4] = [
    "canary-of-a-variable",
    "ghp_pl4nc4n4rypl4nc4n4rypl4nc4n4rypl4nca",
    "canary-of-the-address",
    "Y2FuYXJ5LW9m",
];

/// Says whether a link leads to a page that people read. A plan's text is whole where a person changes it, and in the evidence of a
/// run, which programs read.
fn is_followed(link: &str) -> bool {
    let is_whole = link.ends_with("/edit") || link.contains("/bundle");
    link.starts_with('/') && !link.starts_with("/assets") && !is_whole
}

#[test]
fn i21_no_secret_is_on_a_page_that_links_lead_to_nor_in_a_metric() {
    let house = House::with(&[
        ("HOOK_URL", "http://127.0.0.1:9/hook?key=canary-of-the-address"),
        ("HOOK_SECRET", "whsec_Y2FuYXJ5LW9mLXRoZS1zaWduYXR1cmU="),
    ]);
    let folder = house.fixture.home().join(".config/planctl");
    std::fs::create_dir_all(&folder).unwrap();
    let configuration = "[contracts]\nenv = { SERVICE_KEY = \"canary-of-a-variable\" }\n[notify.team]\nto = \"webhook\"\n\
         url_env = \"HOOK_URL\"\nsecret_env = \"HOOK_SECRET\"\nallow_private = true\n";
    std::fs::write(folder.join("planctl.toml"), configuration).unwrap();
    let contract = "echo \"key $SERVICE_KEY\"; echo \"again $SERVICE_KEY\" >&2; exit 3";
    let text = plan_of("Leak", "max 1k tokens", &[("Log in", contract, "escalate")]);
    house.fixture.write(
        "leak.md",
        &text.replace("Log in, please.", "Log in with ghp_pl4nc4n4rypl4nc4n4rypl4nc4n4rypl4nca."),
    );
    let worker = "cat >/dev/null; echo $SERVICE_KEY canary-of-a-variable";
    let words = ["plan", "run", "leak.md", "--approve", "--no-wait", "--exec", worker];
    let said = house.fixture.planctl(&words);
    assert_eq!(said.code, 3, "{said:?}");
    house.until_sql("select count(*) > 0 from deliveries where tries > 0", "t");

    let browser = Browser::with_token(&house, "admin");
    // The first ask is answered, so that no page has to lead to it.
    let begin = ["/", "/asks/1"].map(str::to_owned);
    let (mut seen, mut stars) = (BTreeSet::from(begin.clone()), 0);
    let mut next = VecDeque::from(begin);
    while let Some(path) = next.pop_front() {
        let page = browser.get(&path);
        assert!(page.status < 400, "{path}: {page:?}");
        for canary in CANARIES {
            assert!(!page.body.contains(canary), "{canary} on {path}: {}", page.body);
        }
        stars += page.body.matches("****").count();
        let links = page.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in
            links.map(|link| link.split('#').next().unwrap().replace("&#38;", "&").replace("&amp;", "&"))
        {
            if is_followed(&link) && seen.insert(link.clone()) {
                next.push_back(link);
            }
        }
    }
    assert!(seen.len() > 20 && stars > 5, "{stars} {seen:?}");
    for kind in ["/asks/", "/runs/leak-1/steps/1/attempts/1/", "/plans/", "/runs/leak-1/history"] {
        assert!(seen.iter().any(|path| path.starts_with(kind)), "{kind}: {seen:?}");
    }
    has(&browser.get("/system"), "approval.opened");
    let metrics = house.local("GET", "/metrics", &Ask::default());
    assert!(metrics.status == 200 && metrics.body.contains("planctl_gates_total"), "{metrics:?}");
    for canary in CANARIES {
        assert!(!metrics.body.contains(canary), "{canary}: {metrics:?}");
    }
}
