//! planctl itself: its database, its health, its schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The database in use: the answer of `db status --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DatabaseView {
    /// `private` or `given`.
    #[schemars(extend("enum" = ["private", "given"]))]
    pub kind: String,
    /// Where it is, without any password.
    pub place: String,
    /// The server's version.
    pub version: Option<String>,
    /// Says that it answers.
    pub is_up: bool,
    /// Migrations applied.
    pub schema: Option<u32>,
    /// Migrations this program knows.
    pub schema_known: Option<u32>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// Warnings, one line each: durability settings that are off.
    pub warnings: Vec<String>,
    /// The role as which planctl works; `null` while the private cluster rests.
    #[serde(default)]
    pub role: Option<String>,
    /// The privileges of that role that planctl does not need.
    #[serde(default)]
    pub role_may: Vec<String>,
}

/// The answer of `version --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VersionView {
    /// The version of planctl.
    pub version: String,
}

/// The features that this machine has and lacks: the answer of `doctor --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DoctorView {
    /// How many checks found what keeps planctl from working.
    pub problems: usize,
    /// How many checks found what a person should look at.
    pub warnings: usize,
    /// The checks.
    pub checks: Vec<HealthView>,
}

/// One check of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HealthView {
    /// The name of the check.
    pub check: String,
    /// The result.
    pub health: Health,
    /// The observation, in one line.
    pub found: String,
    /// How to mend it.
    pub help: Option<String>,
}

/// The result of one check of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// Not there, and nothing needs it.
    Absent,
    /// A person should look.
    Warning,
    /// planctl can't work so.
    Problem,
}

/// The names of all JSON Schemas: the answer of `schema --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SchemaList {
    /// The schemas.
    pub schemas: Vec<SchemaName>,
}

/// One JSON Schema.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SchemaName {
    /// The name to give `planctl schema`.
    pub name: String,
    /// The subject of the schema.
    pub describes: String,
}
