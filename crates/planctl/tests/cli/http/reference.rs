//! docs/api.md lists the routes as they are; `PLANCTL_DOCS=write` writes them anew.

use planctl_api::Code;
use planctl_server::http::ROUTES;

const BEGIN: &str = "<!-- routes: begin -->\n";
const END: &str = "<!-- routes: end -->\n";
const PROBLEMS_BEGIN: &str = "<!-- problems: begin -->\n";
const PROBLEMS_END: &str = "<!-- problems: end -->\n";

fn routes() -> String {
    let mut text = String::from("| Route | Scope | Key | What it does |\n|---|---|---|---|\n");
    for route in ROUTES {
        let query = match route.query {
            [] => String::new(),
            parameters => {
                let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
                format!("?{}", names.join("&"))
            }
        };
        let key = if route.is_keyed { "yes" } else { "" };
        let decides = if route.is_decision { " †" } else { "" };
        text.push_str(&format!(
            "| `{} {}{query}` | {}{decides} | {key} | {} |\n",
            route.verb.as_str(),
            route.path,
            route.needs.as_str(),
            route.summary
        ));
    }
    text
}

fn problems() -> String {
    let mut text = String::from("| Status | `type` | Meaning |\n|---|---|---|\n");
    for code in Code::ALL {
        let (word, status, title) = code.meaning();
        text.push_str(&format!("| {} | `/problems/{word}` | {title} |\n", status));
    }
    text
}

fn with(text: &str, begin: &str, end: &str, part: &str) -> String {
    let start = text.find(begin).expect("the page has its marks") + begin.len();
    let stop = text.find(end).expect("the page has its marks");
    format!("{}{part}{}", &text[..start], &text[stop..])
}

#[test]
fn the_reference_lists_every_route_and_every_problem() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let fresh = with(&text, BEGIN, END, &routes());
    let fresh = with(&fresh, PROBLEMS_BEGIN, PROBLEMS_END, &problems());
    if std::env::var("PLANCTL_DOCS").is_ok_and(|word| word == "write") {
        std::fs::write(&path, fresh).unwrap();
        return;
    }
    assert!(
        text == fresh,
        "docs/api.md is not what the routes are: PLANCTL_DOCS=write cargo test -p planctl --test cli"
    );
}
