//! The resources: the codes of findings, plans as they were approved, and runs.

use planctl_api::wire::{RevisionList, RevisionPage};
use planctl_lang::{Code, ExplainedCodes};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::gateway::{ApiCall, ApiGateway, Refused};

const DIAGNOSTICS: &str = "planctl://diagnostics";
const PLANS: &str = "planctl://plans";
const RUNS: &str = "planctl://runs";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// Returns the resources that are always there: the lists of the others. They are listed without a look at the database, which
/// clients ask for as soon as they start.
pub fn listed() -> Vec<Resource> {
    let list = |uri: &str, name: &str, about: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type(JSON)
    };
    vec![
        list(DIAGNOSTICS, "diagnostics", "The codes of findings, each with its title"),
        list(PLANS, "plans", "The newest plans that were approved or run"),
        list(RUNS, "runs", "The newest runs"),
    ]
}

/// Returns the templates of the others.
pub fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: String, name: &str, about: &str, media: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(media)
    };
    vec![
        template(
            format!("{DIAGNOSTICS}/{{code}}"),
            "diagnostic",
            "What the code of a finding means",
            MARKDOWN,
        ),
        template(
            format!("{PLANS}/{{path}}"),
            "plan",
            "The newest text of a plan that was approved or run",
            MARKDOWN,
        ),
        template(format!("{RUNS}/{{run}}"), "run", "Where a run stands", JSON),
    ]
}

/// Reads one resource.
pub async fn read(gateway: &impl ApiGateway, uri: &str) -> Result<ResourceContents, Refused> {
    let contents = |media: &str, text: String| ResourceContents::text(text, uri).with_mime_type(media);
    let of = |base: &str| uri.strip_prefix(base)?.strip_prefix('/').filter(|name| !name.is_empty());
    let here = gateway.workspace();
    if uri == DIAGNOSTICS {
        return Ok(contents(JSON, text_of(&ExplainedCodes::new(Code::ALL))));
    }
    if let Some(code) = of(DIAGNOSTICS) {
        return Ok(contents(MARKDOWN, explained(named(code)?)));
    }
    if uri == PLANS || uri == RUNS {
        let path = if uri == PLANS { "/v1/plans" } else { "/v1/runs" };
        let call = ApiCall::get(path).with_query("workspace", here).with_query("limit", Some(NEWEST));
        return Ok(contents(JSON, text_of(&gateway.call(call).await?)));
    }
    if let Some(run) = of(RUNS) {
        let call =
            ApiCall::get(format!("/v1/runs/{}", segment(&decoded(run)?))).with_query("workspace", here);
        return Ok(contents(JSON, text_of(&gateway.call(call).await?)));
    }
    let Some(plan) = of(PLANS) else {
        return Err(Refused::new("not_found", format!("could not find the resource {uri}")));
    };
    Ok(contents(MARKDOWN, plan_text(gateway, &decoded(plan)?).await?))
}

/// How many plans or runs a list has.
const NEWEST: usize = 100;

async fn plan_text(gateway: &impl ApiGateway, plan: &str) -> Result<String, Refused> {
    let (path, here) = (format!("/v1/plans/{}/revisions", segment(plan)), gateway.workspace());
    let newest = ApiCall::get(&path).with_query("workspace", here.clone()).with_query("limit", Some(1));
    let list: RevisionList = read_as(gateway.call(newest).await?)?;
    let Some(newest) = list.revisions.first() else {
        return Err(Refused::new("not_found", format!("no text of the plan {plan} is kept")));
    };
    let call = ApiCall::get(format!("{path}/{}", newest.digest)).with_query("workspace", here);
    let page: RevisionPage = read_as(gateway.call(call).await?)?;
    Ok(page.source)
}

/// Returns the code of this name.
pub fn named(name: &str) -> Result<Code, Refused> {
    Code::from_word(name.trim()).ok_or_else(|| {
        Refused::new("not_found", format!("there is no code {name:?}"))
            .help(format!("the resource {DIAGNOSTICS} lists them"))
    })
}

/// Explains a code in markdown.
pub fn explained(code: Code) -> String {
    format!("# {code}: {}\n\n{}\n", code.title(), code.explain().markdown.trim_end())
}

fn read_as<T: serde::de::DeserializeOwned>(answer: Option<Value>) -> Result<T, Refused> {
    let read = serde_json::from_value(answer.unwrap_or_default());
    read.map_err(|error| Refused::new("defect", format!("could not read the answer: {error}")))
}

fn text_of(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Writes a name as one segment of a path.
pub fn segment(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Reads a name that may be written with percent signs.
fn decoded(name: &str) -> Result<String, Refused> {
    let read = percent_encoding::percent_decode_str(name).decode_utf8();
    read.map(Into::into)
        .map_err(|_| Refused::bad_request(format!("could not read {name:?}: it is not UTF-8")))
}
