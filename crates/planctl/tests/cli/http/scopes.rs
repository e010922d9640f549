//! Scopes: every route is listed here with the scope it needs, and every scope tries every route (P19, A41).

use planctl_server::http::{ROUTES, Route, Scope};

use super::house::{Ask, House};

/// Every route and the scope it needs. A route that is added has to be thought about, and written down here.
const LISTED: &str = "\
GET /healthz none
GET /readyz none
GET /metrics read
GET /v1/openapi.json none
GET /v1/problems none
GET /v1/daemon read
GET /v1/database read
GET /v1/doctor admin
POST /mcp any
POST /v1/page/link admin, a person decides
GET /v1/plans read
GET /v1/plans/{plan} read
GET /v1/plans/{plan}/revisions read
GET /v1/plans/{plan}/revisions/{digest} read
GET /v1/plans/{plan}/revisions/{digest}/findings read
POST /v1/plans/verify approve
POST /v1/plans/standing approve
POST /v1/plans/diff approve
POST /v1/plans/approve approve, a person decides
POST /v1/plans/reject approve, a person decides
POST /v1/plans/{plan}/run approve, a person decides
POST /v1/runs approve, a person decides
GET /v1/runs read
GET /v1/spent-today read
GET /v1/decisions read
GET /v1/runs/{run} read
GET /v1/runs/{run}/page read
GET /v1/runs/{run}/picture read
GET /v1/runs/{run}/timeline read
GET /v1/runs/{run}/name read
GET /v1/runs/{run}/plan read
GET /v1/runs/{run}/history read
GET /v1/runs/{run}/logs read
GET /v1/runs/{run}/output read
GET /v1/runs/{run}/prompts read
GET /v1/runs/{run}/salute read
GET /v1/runs/{run}/traversal read
GET /v1/runs/{run}/checkpoint read
GET /v1/runs/{run}/follow-up read
GET /v1/runs/{run}/why/{step} read
GET /v1/runs/{run}/context read
GET /v1/runs/{run}/session read
POST /v1/runs/{run}/session/turn approve
GET /v1/runs/{run}/audit read
GET /v1/runs/{run}/bundle read
POST /v1/runs/{run}/resume approve, a person decides
POST /v1/runs/{run}/pause approve, a person decides
POST /v1/runs/{run}/cancel approve, a person decides
POST /v1/runs/{run}/acknowledge approve, a person decides
GET /v1/audit read
GET /v1/events read
GET /v1/approvals read
GET /v1/approvals/{ask} read
POST /v1/approvals/{ask}/answer approve, a person decides
POST /v1/drafts/asks approve
GET /v1/drafts/{draft} approve
POST /v1/drafts/{draft} approve
POST /v1/drafts/{draft}/take approve
GET /v1/drafting approve
POST /v1/drafting approve, a person decides
GET /v1/drafting/{drafting} approve
POST /v1/drafting/{drafting}/stop approve, a person decides
GET /v1/approvals/{ask}/edit approve
POST /v1/approvals/{ask}/edit/check approve
POST /v1/approvals/{ask}/edit approve, a person decides
POST /v1/items/claim worker
GET /v1/items/{item} item
POST /v1/items/{item}/heartbeat item
POST /v1/items/{item}/complete item
POST /v1/items/{item}/fail item
POST /v1/items/{item}/ask item
POST /v1/items/{item}/release item
POST /v1/items/{item}/log item
POST /v1/items/{item}/usage item
GET /v1/library read
GET /v1/library/runs read
GET /v1/topics read
GET /v1/topics/{topic} read
POST /v1/topics/{topic} approve
POST /v1/worktrees/clean admin, a person decides
GET /v1/channels read
POST /v1/channels/test approve, a person decides
GET /v1/deliveries read
POST /v1/deliveries/{delivery}/replay approve, a person decides
GET /v1/roles read
GET /v1/workers read
POST /v1/workers/{worker}/pause admin, a person decides
POST /v1/workers/{worker}/resume admin, a person decides
GET /v1/tokens admin
POST /v1/tokens admin, a person decides
DELETE /v1/tokens/{token} admin, a person decides
";

fn line(route: &Route) -> String {
    let decides = if route.is_decision { ", a person decides" } else { "" };
    format!("{} {} {}{decides}\n", route.verb.as_str(), route.path, route.needs.as_str())
}

#[test]
fn p19_every_route_is_listed_with_its_scope() {
    let routes: String = ROUTES.iter().map(line).collect();
    assert_eq!(routes, LISTED);
}

#[test]
fn p19_a41_every_scope_reaches_its_routes_and_no_other() {
    let house = House::new();
    let tokens = ["read", "approve", "worker", "admin"].map(|scope| (scope, house.token(scope)));
    for route in ROUTES {
        let path = route.path.replace("{run}", "nothing-1").replace("{ask}", "999").replace("{step}", "1");
        let path = path.replace("{plan}", "1").replace("{digest}", "abcd");
        let path = path.replace("{item}", "nothing").replace("{worker}", "nobody").replace("{token}", "none");
        for (scope, secret) in &tokens {
            let ask = Ask { token: Some(secret), ..Ask::default() };
            let reply = house.network(route.verb.as_str(), &path, &ask);
            let is_let_in = reply.status != 403;
            assert_eq!(
                is_let_in,
                may(scope, route.needs),
                "{} {path} as {scope}: {reply:?}",
                route.verb.as_str()
            );
            if !is_let_in {
                assert_eq!(reply.code(), "scope");
                assert!(!reply.body.contains(secret.as_str()), "{reply:?}");
            }
        }
        let reply = house.network(route.verb.as_str(), &path, &Ask::default());
        assert_eq!(reply.status == 401, route.needs != Scope::Nobody, "{path} as nobody: {reply:?}");
        // The holder of an item is told of nothing else that there is.
        let lease = format!("planctl_item_1_{}", "0".repeat(64));
        let reply = house.network(route.verb.as_str(), &path, &Ask { token: Some(&lease), ..Ask::default() });
        if route.needs != Scope::Nobody {
            assert_eq!(reply.code(), "not_found", "{path} as the holder of an item: {reply:?}");
        }
    }
}

fn may(scope: &str, needs: Scope) -> bool {
    match needs {
        Scope::Nobody | Scope::Known => true,
        Scope::Read => ["read", "approve", "admin"].contains(&scope),
        Scope::Approve => ["approve", "admin"].contains(&scope),
        Scope::Worker => ["worker", "admin"].contains(&scope),
        Scope::Item => false,
        Scope::Admin => scope == "admin",
    }
}

#[test]
fn row_107_a_new_file_into_which_a_token_goes_is_readable_by_its_owner_alone() {
    let house = House::new();
    let planctl = env!("CARGO_BIN_EXE_planctl");
    let script = format!(
        "umask 022 && {planctl} token create worker --name a > one && echo kept > two && {planctl} token create read --name b >> two \
         && PLANCTL_TOKEN_FILE=one {planctl} --server http://{} item claim --role none --wait 0s; stat -c %a one two",
        house.port
    );
    let said = house.fixture.shell(&script);
    assert!(said.out.ends_with("600\n644\n") && !said.err.contains("others can read it"), "{said:?}");
}

#[test]
fn row_67_one_answer_for_no_bad_and_revoked_tokens() {
    let house = House::new();
    let secret = house.token("read");
    let list = house.local("GET", "/v1/tokens", &Ask::default()).json();
    let id = list["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert!(!list.to_string().contains(&secret), "the secret is shown once");
    let good = house.network("GET", "/v1/runs", &Ask { token: Some(&secret), ..Ask::default() });
    assert_eq!(good.status, 200, "{good:?}");
    let revoked =
        house.local("DELETE", &format!("/v1/tokens/{id}"), &Ask { key: Some("r"), ..Ask::default() });
    assert_eq!(revoked.status, 200, "{revoked:?}");

    let unknown = format!("planctl_read_{}", "0".repeat(64));
    let mut bodies = Vec::new();
    for token in
        [Some(secret.as_str()), Some(unknown.as_str()), Some("nonsense"), Some("planctl_read_é"), None]
    {
        let reply = house.network("GET", "/v1/runs", &Ask { token, ..Ask::default() });
        assert_eq!(reply.code(), "unauthenticated", "{token:?}");
        assert!(reply.headers.contains("www-authenticate: bearer"), "{reply:?}");
        bodies.push(reply.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "no oracle");
    assert!(bodies[0].contains(r#""next":{"do":"create_token"}"#), "{}", bodies[0]);
    // An expired one is alike.
    let body = r#"{"name": "short", "scope": "read", "seconds": 1}"#.to_owned();
    let made =
        house.local("POST", "/v1/tokens", &Ask { key: Some("s"), body: Some(body), ..Ask::default() }).json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    let mut reply = house.network("GET", "/v1/runs", &Ask { token: Some(&secret), ..Ask::default() });
    while reply.status == 200 {
        reply = house.network("GET", "/v1/runs", &Ask { token: Some(&secret), ..Ask::default() });
    }
    assert_eq!(reply.body, bodies[0]);
}
