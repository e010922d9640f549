//! Reads one planctl.toml into a layer, and reports everything that is wrong with it at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_engine::{RedFirst, Resource, Role};
use planctl_harness::ResourceLimits;
use planctl_lang::{Levels, Wish, did_you_mean};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::{ConfigError, DatabaseUrl, Isolation};
use crate::finding::Finding;
use crate::layer::Layer;
use crate::origin::Origins;
use crate::terminal::TerminalCall;
use crate::trace::TraceProtocol;
use crate::workspace::{Commits, WorkspaceMode};

mod ask_rule;
mod channel;
mod day;
mod model;
mod policy;
mod role;
mod server;

/// Reads a text into a layer.
pub(crate) fn layer(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let mut reader = Reader { text, findings: Vec::new() };
    let layer = match DeTable::parse(text) {
        Ok(table) => {
            let layer = reader.root(table.get_ref());
            Layer { origins: Origins::read(path, text, table.get_ref()), ..layer }
        }
        Err(error) => {
            reader.report(error.span().unwrap_or(0..0), error.message().to_owned(), None);
            Layer::default()
        }
    };
    if reader.findings.is_empty() {
        return Ok(layer);
    }
    reader.findings.sort_by_key(|finding| (finding.line, finding.column));
    Err(ConfigError::Invalid { path: path.to_owned(), findings: reader.findings })
}

/// Reads a span of time as people write it: `90s`, `10m`, `1h30m`.
///
/// # Errors
///
/// Says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse_span(text).and_then(|span| {
        if span.is_zero() { Err("a time must be more than zero".to_owned()) } else { Ok(span) }
    })
}

/// Reads a span of time, which may be nothing: `0s`.
fn parse_span(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as \"90s\", \"10m\" or \"1h30m\", found {text:?}");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(expected());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().map_err(|_| expected())?;
        rest = rest[digits..].trim_start();
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let seconds = match &rest[..letters] {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            _ => return Err(expected()),
        };
        rest = rest[letters..].trim_start();
        let part = number.checked_mul(seconds).ok_or_else(expected)?;
        total = total.checked_add(Duration::from_secs(part)).ok_or_else(expected)?;
    }
    Ok(total)
}

/// Reads a size such as `512MiB`.
fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit = match text[digits..].trim() {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

type Value<'i> = Spanned<DeValue<'i>>;

struct Reader<'t> {
    text: &'t str,
    findings: Vec<Finding>,
}

const TABLES: [&str; 20] = [
    "project",
    "workspace",
    "contracts",
    "roles",
    "models",
    "prices",
    "approval",
    "asks",
    "groups",
    "budget",
    "servers",
    "judges",
    "mcp",
    "database",
    "postgres",
    "verify",
    "library",
    "notify",
    "terminal",
    "traces",
];
const TABLES_LATER: [&str; 1] = ["daemon"];

impl Reader<'_> {
    fn root(&mut self, table: &DeTable<'_>) -> Layer {
        let mut layer = Layer::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "project" => self.project(value, &mut layer),
                "workspace" => self.workspace(value, &mut layer),
                "contracts" => self.contracts(value, &mut layer),
                "roles" => self.roles(value, &mut layer),
                "models" => self.models(value, &mut layer),
                "prices" => self.prices(value, &mut layer),
                "approval" => self.policies(value, &mut layer),
                "asks" => self.ask_rules(value, &mut layer),
                "groups" => self.groups(value, &mut layer),
                "budget" => self.day_budgets(value, &mut layer),
                "servers" => self.servers(value, &mut layer),
                "judges" => self.judges(value, &mut layer),
                "mcp" => self.mcp(value, &mut layer),
                "database" => self.database(value, &mut layer),
                "postgres" => self.postgres(value, &mut layer),
                "verify" => layer.verify = self.verify(value),
                "library" => self.library(value, &mut layer),
                "notify" => self.channels(value, &mut layer),
                "terminal" => self.terminal(value, &mut layer),
                "traces" => self.traces(value, &mut layer),
                "isolation" => layer.isolation = self.isolation(value),
                other if TABLES_LATER.contains(&other) => self.later(key.span(), other),
                other => self.unknown(key.span(), other, TABLES.iter().copied().chain(["isolation"])),
            }
        }
        layer
    }

    fn project(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "project") {
            match key.get_ref().as_ref() {
                "name" => layer.project = self.string(value).map(str::to_owned),
                other @ ("plans" | "library") => self.later(key.span(), &format!("project.{other}")),
                other => self.unknown(key.span(), other, ["name"]),
            }
        }
    }

    fn contracts(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "contracts") {
            match key.get_ref().as_ref() {
                "timeout" => layer.contract_timeout = self.duration(value),
                "env" => layer.contract_env = self.variables(value),
                "path" => layer.contract_path = Some(self.directories(value)),
                "red_first" => layer.red_first = self.red_first(value),
                "limits" => layer.limits = self.limits(value),
                other @ ("secrets" | "network") => {
                    self.later(key.span(), &format!("contracts.{other}"));
                }
                other => self.unknown(key.span(), other, ["timeout", "env", "path", "red_first", "limits"]),
            }
        }
    }

    fn mcp(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "mcp") {
            match key.get_ref().as_ref() {
                "asks_at_client" => match value.get_ref().as_bool() {
                    Some(choice) => layer.asks_at_client = Some(choice),
                    None => self.wrong_type(value, "true or false"),
                },
                other => self.unknown(key.span(), other, ["asks_at_client"]),
            }
        }
    }

    fn judges(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "judges") {
            match key.get_ref().as_ref() {
                "by" => layer.judges = self.strings(value, "a list: [\"strict\"]"),
                "alone" => match value.get_ref().as_bool() {
                    Some(choice) => layer.judges_alone = Some(choice),
                    None => self.wrong_type(value, "true or false"),
                },
                other => self.unknown(key.span(), other, ["by", "alone"]),
            }
        }
    }

    fn workspace(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "workspace") {
            match key.get_ref().as_ref() {
                "mode" => {
                    layer.workspace_mode =
                        self.read_word(value, "mode", &WorkspaceMode::ALL, |mode| mode.as_str());
                }
                "git" => {
                    layer.workspace_git = self.read_word(value, "git", &Commits::ALL, |git| git.as_str())
                }
                other => self.unknown(key.span(), other, ["mode", "git"]),
            }
        }
    }

    fn limits(&mut self, value: &Value<'_>) -> ResourceLimits {
        let mut limits = ResourceLimits::default();
        for (key, value) in self.table(value, "contracts.limits") {
            let name = key.get_ref().as_ref();
            match Resource::ALL.into_iter().find(|resource| resource.key() == name) {
                Some(Resource::Cpu) => limits.cpu = self.duration(value),
                Some(Resource::Memory) => limits.memory = self.bytes(value),
                Some(Resource::Processes) => limits.processes = self.count(value),
                Some(Resource::FileSize) => limits.file_size = self.bytes(value),
                Some(Resource::OpenFiles) => limits.open_files = self.count(value),
                None => self.unknown(key.span(), name, Resource::ALL.map(Resource::key)),
            }
        }
        limits
    }

    fn bytes(&mut self, value: &Value<'_>) -> Option<u64> {
        let text = self.string(value)?;
        let bytes = parse_bytes(text);
        if bytes.is_none() {
            let what = format!("expected a size such as \"512MiB\" or \"2GiB\", found {text:?}");
            self.report(value.span(), what, None);
        }
        bytes
    }

    fn count(&mut self, value: &Value<'_>) -> Option<u64> {
        let number = value.get_ref().as_integer().and_then(|number| number.as_str().parse().ok());
        let number = number.filter(|number: &u64| *number > 0);
        if number.is_none() {
            self.wrong_type(value, "a whole number from 1");
        }
        number
    }

    fn red_first(&mut self, value: &Value<'_>) -> Option<RedFirst> {
        self.read_word(value, "red_first", &RedFirst::ALL, |policy| policy.as_str())
    }

    /// Reads one of a few words.
    fn read_word<T: Copy>(
        &mut self,
        value: &Value<'_>,
        key: &str,
        all: &[T],
        word: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.string(value)?;
        let found = all.iter().copied().find(|one| word(*one) == text);
        if found.is_none() {
            let words: Vec<&str> = all.iter().map(|one| word(*one)).collect();
            let help = match did_you_mean(text, words.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write one of: {}", words.join(", ")),
            };
            self.report(value.span(), format!("{key} can't be {text:?}"), Some(help));
        }
        found
    }

    fn roles(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "roles") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't be a role"), Some(help));
                continue;
            }
            let role = self.role(name, value);
            layer.roles.insert(Role::new(name), role);
        }
    }

    fn database(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "database") {
            match key.get_ref().as_ref() {
                "url" => {
                    let Some(text) = self.string(value) else { continue };
                    match DatabaseUrl::parse(text) {
                        Ok(url) => layer.database = Some(url),
                        Err(what) => self.report(value.span(), what, None),
                    }
                }
                other => self.unknown(key.span(), other, ["url"]),
            }
        }
    }

    fn postgres(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "postgres") {
            match key.get_ref().as_ref() {
                "bin_dir" => layer.bin_dir = self.directory(value),
                "download" => match value.get_ref().as_bool() {
                    Some(choice) => layer.download = Some(choice),
                    None => self.wrong_type(value, "true or false"),
                },
                "stop_after" => layer.stop_after = self.span_by(parse_span, value),
                other => self.unknown(key.span(), other, ["bin_dir", "download", "stop_after"]),
            }
        }
    }

    fn library(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "library") {
            match key.get_ref().as_ref() {
                "learn" => match value.get_ref().as_bool() {
                    Some(choice) => layer.learn = Some(choice),
                    None => self.wrong_type(value, "true or false"),
                },
                other => self.unknown(key.span(), other, ["learn"]),
            }
        }
    }

    fn terminal(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "terminal") {
            match key.get_ref().as_ref() {
                "call" => {
                    layer.terminal_call =
                        self.read_word(value, "call", &TerminalCall::ALL, |word| word.as_str());
                }
                other => self.unknown(key.span(), other, ["call"]),
            }
        }
    }

    fn traces(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "traces") {
            match key.get_ref().as_ref() {
                "endpoint" => layer.trace_endpoint = self.web_address(value),
                "protocol" => {
                    layer.trace_protocol =
                        self.read_word(value, "protocol", &TraceProtocol::ALL, |word| word.as_str());
                }
                "service" => layer.trace_service = self.string(value).map(str::to_owned),
                other => self.unknown(key.span(), other, ["endpoint", "protocol", "service"]),
            }
        }
    }

    fn verify(&mut self, value: &Value<'_>) -> Levels {
        let mut wished = Vec::new();
        for (key, value) in self.table(value, "verify") {
            let wish = match key.get_ref().as_ref() {
                "allow" => Wish::Allow,
                "warn" => Wish::Warn,
                "deny" => Wish::Deny,
                other => {
                    self.unknown(key.span(), other, ["allow", "warn", "deny"]);
                    continue;
                }
            };
            let Some(array) = value.get_ref().as_array() else {
                self.wrong_type(value, "a list of codes: [\"P104\"]");
                continue;
            };
            for entry in array {
                wished.extend(self.string(entry).map(|name| (wish, name, entry.span())));
            }
        }
        self.levels(wished)
    }

    // A table has no order, so a code may stand in one list only, and goes before `warnings` wherever it stands.
    fn levels(&mut self, mut wished: Vec<(Wish, &str, Range<usize>)>) -> Levels {
        wished.sort_by_key(|(_, _, span)| span.start);
        let mut seen: BTreeMap<String, Wish> = BTreeMap::new();
        let is_code = |name: &str| !name.eq_ignore_ascii_case("warnings");
        wished.sort_by_key(|(_, name, _)| is_code(name));
        let mut levels = Levels::default();
        for (wish, name, span) in wished {
            if let Err(unknown) = levels.add(wish, name) {
                self.report(span, unknown.to_string(), None);
            } else if let Some(before) = seen.insert(name.to_ascii_uppercase(), wish)
                && before != wish
            {
                let message = format!("`{name}` stands in two lists, and can only have one level");
                self.report(span, message, Some("leave it in one".to_owned()));
            }
        }
        levels
    }

    fn isolation(&mut self, value: &Value<'_>) -> Option<Isolation> {
        let text = self.string(value)?;
        let isolation = Isolation::parse(text);
        if isolation.is_none() {
            self.report(value.span(), Isolation::expected(text), None);
        }
        isolation
    }

    fn table<'v, 'i>(
        &mut self,
        value: &'v Value<'i>,
        name: &str,
    ) -> Vec<(&'v Spanned<TomlKey<'i>>, &'v Value<'i>)> {
        match value.get_ref().as_table() {
            Some(table) => table.iter().collect(),
            None => {
                self.wrong_type(value, &format!("a table: [{name}]"));
                Vec::new()
            }
        }
    }

    fn string<'v>(&mut self, value: &'v Value<'_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(value, "a text in quotes");
        }
        text
    }

    fn duration(&mut self, value: &Value<'_>) -> Option<Duration> {
        self.span_by(parse_duration, value)
    }

    fn span_by(
        &mut self,
        parse: fn(&str) -> Result<Duration, String>,
        value: &Value<'_>,
    ) -> Option<Duration> {
        let text = self.string(value)?;
        match parse(text) {
            Ok(span) => Some(span),
            Err(what) => {
                self.report(value.span(), what, None);
                None
            }
        }
    }

    fn variables(&mut self, value: &Value<'_>) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        for (key, value) in self.table(value, "env") {
            let name = key.get_ref().as_ref();
            self.variable_name(key.span(), name);
            if let Some(text) = self.string(value) {
                if text.contains('\0') {
                    self.report(value.span(), "a variable can't hold U+0000".to_owned(), None);
                }
                variables.insert(name.to_owned(), text.to_owned());
            }
        }
        variables
    }

    fn variable_name(&mut self, span: Range<usize>, name: &str) {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !is_name {
            self.report(span, format!("{name:?} can't be the name of a variable"), None);
        } else if name.starts_with("PLANCTL_") {
            self.report(span, format!("{name} is planctl's own to set"), None);
        }
    }

    fn directories(&mut self, value: &Value<'_>) -> Vec<PathBuf> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, "a list of directories");
            return Vec::new();
        };
        array.iter().filter_map(|entry| self.directory(entry)).collect()
    }

    fn directory(&mut self, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.string(value)?;
        // A colon would split one entry of PATH into two.
        if text.starts_with('/') && !text.contains([':', '\0']) {
            return Some(PathBuf::from(text));
        }
        self.report(value.span(), format!("expected an absolute directory, found {text:?}"), None);
        None
    }

    fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        let message = format!("expected {expected}, found a value of type {}", value.get_ref().type_str());
        self.report(value.span(), message, None);
    }

    fn later(&mut self, span: Range<usize>, key: &str) {
        let help = "remove it, or put `#` before it".to_owned();
        self.report(span, format!("`{key}` is not supported yet"), Some(help));
    }

    fn unknown<'k>(&mut self, span: Range<usize>, key: &str, known: impl IntoIterator<Item = &'k str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let help = match did_you_mean(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.report(span, format!("unknown key `{}`", planctl_lang::escape(key)), Some(help));
    }

    fn report(&mut self, span: Range<usize>, message: String, help: Option<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        self.findings.push(Finding {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
            help,
        });
    }
}

type TomlKey<'i> = toml::de::DeString<'i>;

fn is_role(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
