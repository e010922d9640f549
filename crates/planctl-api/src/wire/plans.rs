//! Plans that are known, and their kept revisions, as the daemon lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Plans, those that were met last first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanList {
    /// The plans.
    pub plans: Vec<PlanSummary>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One plan: a file of a workspace that was approved or run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanSummary {
    /// Its number, which names it in paths of the API.
    pub id: u64,
    /// Its path, relative to the workspace where it lies inside.
    pub plan: String,
    /// The title of its newest revision; empty where that does not read.
    pub title: String,
    /// The canonical path of the workspace.
    pub workspace: String,
    /// The id of the host that has the workspace.
    pub host: String,
    /// Where it stands.
    #[schemars(extend("enum" = ["draft", "verified", "approved", "in-progress", "done", "failed"]))]
    pub status: String,
    /// The digest of its newest revision.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first met, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When its status or its text last changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
}

/// The kept revisions of a plan, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevisionList {
    /// The revisions.
    pub revisions: Vec<KeptRevision>,
    /// Names the next page, where there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One exact text of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeptRevision {
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first kept, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The newest approval of it, whether or not that still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<KeptDecision>,
    /// The newest rejection of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<KeptDecision>,
}

/// A decision about a kept revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeptDecision {
    /// The person who decided, or the policy: `policy:NAME`.
    pub by: String,
    /// When, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A kept revision with its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevisionPage {
    /// The plan's path, relative to the workspace where it lies inside.
    pub plan: String,
    /// The digest of its canonical text.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// When it was first kept, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The text, as it was approved or run.
    pub source: String,
}
