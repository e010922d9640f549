//! The gateway that an agent's calls go through: the API, and the few things for which the API has no call.

use std::borrow::Cow;

use planctl_api::Problem;
use serde_json::{Value, json};

/// A call of the API.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiCall {
    /// Its path, without a query.
    pub path: String,
    /// Its query.
    pub query: Vec<(&'static str, String)>,
    /// The body of a change; a call without one reads.
    pub body: Option<Value>,
    /// The token of an item's lease, for the routes that an item's holder has; else the caller's own authority counts.
    pub lease_token: Option<String>,
}

impl ApiCall {
    /// Reads a path.
    pub fn get(path: impl Into<String>) -> ApiCall {
        ApiCall { path: path.into(), query: Vec::new(), body: None, lease_token: None }
    }

    /// Changes something.
    pub fn post(path: impl Into<String>, body: Value) -> ApiCall {
        ApiCall { body: Some(body), ..ApiCall::get(path) }
    }

    /// Adds a parameter to the query, where there is a value for it.
    #[must_use]
    pub fn with_query(mut self, name: &'static str, value: Option<impl ToString>) -> ApiCall {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Shows the token of an item's lease.
    #[must_use]
    pub fn with_lease_token(mut self, token: &str) -> ApiCall {
        self.lease_token = Some(token.to_owned());
        self
    }
}

/// A plan that an agent names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanText {
    /// Its path in the workspace.
    pub path: String,
    /// Its text; the file's where it is left out.
    pub text: Option<String>,
    /// The workspace, where the gateway does not stand in one.
    pub workspace: Option<String>,
}

/// The owner of the screen that a gateway's client has, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Screens {
    /// Nobody says that it is a person's.
    Nobodys,
    /// It is a person's, and the client can be asked while a call waits.
    Persons,
    /// It is a person's, and each request stands alone.
    OfRequests,
}

/// Why a call was refused, as an agent reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Refused {
    /// The reason.
    pub error: String,
    /// The kind of the reason: a code of the API's problems.
    pub code: Cow<'static, str>,
    /// How to mend it.
    pub help: Option<String>,
    /// A step that leads on, as the API or the command line says it.
    pub next: Option<Value>,
}

impl Refused {
    /// Refuses with a reason.
    pub fn new(code: &'static str, error: impl Into<String>) -> Refused {
        Refused { error: error.into(), code: code.into(), help: None, next: None }
    }

    /// Refuses a call that is wrong in itself.
    pub fn bad_request(error: impl Into<String>) -> Refused {
        Refused::new("bad_request", error)
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Refused {
        self.help = Some(help.into());
        self
    }

    /// Returns it as the structured content of a tool's result.
    pub fn content(&self) -> Value {
        let mut content = json!({ "error": self.error, "code": self.code });
        if let Some(help) = &self.help {
            content["help"] = json!(help);
        }
        if let Some(next) = &self.next {
            content["next"] = next.clone();
        }
        content
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        let code = problem.kind.trim_start_matches("/problems/").to_owned();
        Refused {
            error: problem.detail.into(),
            code: code.into(),
            help: problem.help.map(Into::into),
            next: problem.next.and_then(|next| serde_json::to_value(next).ok()),
        }
    }
}

/// The way to planctl that one caller has. Nothing that it offers decides, approves, or changes how strictly work is judged.
pub trait ApiGateway: Send + Sync + 'static {
    /// Says whether plans can be drafted and submitted: the gateway stands in their workspace, and a person may start runs from
    /// where it stands.
    fn takes_plans(&self) -> bool;

    /// Says whose screen the client has. A client's own word does not count: a trusted configuration says so, or the caller's
    /// right to decide.
    fn screens(&self) -> Screens;

    /// Returns the workspace in which the gateway stands.
    fn workspace(&self) -> Option<String>;

    /// Calls the API with the caller's authority. `None` is an answer without content.
    fn call(&self, call: ApiCall) -> impl Future<Output = Result<Option<Value>, Refused>> + Send;

    /// Verifies a plan; writes nothing.
    fn verify(&self, plan: PlanText) -> impl Future<Output = Result<Value, Refused>> + Send;

    /// Writes a plan's text into a file that is not there yet, or that this caller drafted, and verifies it.
    fn draft(&self, path: String, text: String) -> impl Future<Output = Result<Value, Refused>> + Send;

    /// Submits a verified plan: a person is asked to approve it.
    fn submit(&self, path: String) -> impl Future<Output = Result<Value, Refused>> + Send;
}
