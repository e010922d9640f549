//! The configuration, as JSON says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use planctl_config::{CandidateFile, Distrusted, Entry, FileOwner, Loaded, Origin, Standing, prices_known};

/// The effective configuration: the answer of `config show --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigView {
    /// Every value, defaults included, in the order of a file.
    pub values: Vec<ConfigValue>,
    /// The keys that do not count, since the project's file is not trusted as it stands.
    pub ignored: Option<IgnoredView>,
}

/// One value of the configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigValue {
    /// Its key, as planctl.toml writes it: `contracts.env.CI`.
    pub key: String,
    /// The value; credentials are masked.
    pub value: Value,
    /// Where it comes from; a list may come from several places.
    pub origins: Vec<OriginView>,
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OriginView {
    /// `flag`, `variable`, `file`, `price_table` (the prices that planctl knows by itself), or `default`.
    #[schemars(extend("enum" = ["flag", "variable", "file", "price_table", "default"]))]
    pub from: String,
    /// The flag, the variable, the path of the file, or the date and the source of the prices.
    pub name: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<usize>,
}

/// Keys that do not count until a person trusts the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IgnoredView {
    /// The file.
    pub path: String,
    /// Why: `is not trusted`, `has changed since it was trusted`.
    pub why: String,
    /// The argument for `planctl trust`, once the file was read.
    pub trust: String,
    /// The keys.
    pub keys: Vec<IgnoredKey>,
}

/// A key that does not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IgnoredKey {
    /// The key.
    pub key: String,
    /// Its first line.
    pub line: Option<usize>,
}

/// Where configuration stands: the answer of `config path --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigPaths {
    /// The files, the strongest first.
    pub files: Vec<ConfigFile>,
}

/// One file of configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigFile {
    /// Its path.
    pub path: String,
    /// `user`, `project`, or `named` (with --config or `PLANCTL_CONFIG`, in place of the project's).
    #[schemars(extend("enum" = ["user", "project", "named"]))]
    pub of: String,
    /// Says that it is there.
    pub exists: bool,
    /// Says that all of its keys count; a project's file has to be trusted as it stands.
    pub trusted: bool,
}

impl ConfigView {
    /// Says what is in force.
    pub fn of(loaded: &Loaded) -> ConfigView {
        let value = |entry: Entry| ConfigValue {
            key: entry.key.to_string(),
            value: entry.value,
            origins: entry.origins.iter().map(OriginView::of).collect(),
        };
        ConfigView {
            values: loaded.entries().into_iter().map(value).collect(),
            ignored: loaded.distrusted.as_ref().map(IgnoredView::of),
        }
    }
}

impl OriginView {
    fn of(origin: &Origin) -> OriginView {
        let (from, name, line) = match origin {
            Origin::Flag(name) => ("flag", Some((*name).to_owned()), None),
            Origin::Variable(name) => ("variable", Some((*name).to_owned()), None),
            Origin::File { path, line } => ("file", Some(path.display().to_string()), Some(*line)),
            Origin::PriceTable => ("price_table", Some(prices_known()), None),
            Origin::Default => ("default", None, None),
        };
        OriginView { from: from.to_owned(), name, line }
    }
}

impl IgnoredView {
    fn of(distrusted: &Distrusted) -> IgnoredView {
        let keys = distrusted.keys.iter();
        IgnoredView {
            path: distrusted.path.display().to_string(),
            why: distrusted.why.to_owned(),
            trust: distrusted.dir.display().to_string(),
            keys: keys.map(|key| IgnoredKey { key: key.key.clone(), line: key.line }).collect(),
        }
    }
}

impl ConfigPaths {
    /// Says which files are read.
    pub fn of(places: &[CandidateFile]) -> ConfigPaths {
        let file = |place: &CandidateFile| ConfigFile {
            path: place.path.display().to_string(),
            of: match place.of {
                FileOwner::User => "user",
                FileOwner::Project(_) => "project",
                FileOwner::Named => "named",
            }
            .to_owned(),
            exists: place.is_there,
            trusted: match place.of {
                FileOwner::User | FileOwner::Named => true,
                FileOwner::Project(standing) => standing == Standing::Trusted,
            },
        };
        ConfigPaths { files: places.iter().map(file).collect() }
    }
}
