//! Finds the sources of configuration, reads them and lets each go before the next (INTERFACE 2.3).

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use planctl_engine::{Responder, Role};
use planctl_lang::did_you_mean;

use crate::ask_rule::OnDeadline;
use crate::config::{Config, ConfigError, DatabaseUrl, read_small, sha256};
use crate::layer::Layer;
use crate::origin::{FILE_NAME, Ignored, Origin, Origins};
use crate::read;
use crate::trust::{Standing, Trust};
use crate::workspace::WorkspaceMode;

/// Where to look.
pub struct Sources<'a> {
    /// The workspace; the project's file is found upward from it.
    pub workspace: &'a Path,
    /// The state directory, which holds the record of trusted directories.
    pub state_dir: &'a Path,
    /// The file of `--config`, read in place of the project's; naming it is trusting it.
    pub file: Option<&'a Path>,
    /// The address of `--database-url`.
    pub database_url: Option<&'a str>,
    /// The kind of place that `--workspace` names.
    pub workspace_mode: Option<WorkspaceMode>,
    /// Says that a project's file that can't be read and that nobody trusts is left aside with a warning.
    pub leaves_unread: bool,
    /// Answers for environment variables.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The effective configuration, and how it came about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// Warnings for a person, one line each.
    pub warnings: Vec<String>,
    /// The files that were read, the strongest first.
    pub files: Vec<PathBuf>,
    /// Where each value comes from.
    pub origins: Origins,
    /// The project's file, where it has keys that do not count until it is trusted.
    pub distrusted: Option<Distrusted>,
}

/// A project's file with keys that do not count until a person trusts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distrusted {
    /// The file.
    pub path: PathBuf,
    /// Its directory, which `planctl trust` is given.
    pub dir: PathBuf,
    /// Why they don't count: `is not trusted`.
    pub why: &'static str,
    /// The keys.
    pub keys: Vec<Ignored>,
}

impl Distrusted {
    fn warning(&self) -> String {
        let keys: Vec<&str> = self.keys.iter().map(|ignored| ignored.key.as_str()).collect();
        format!(
            "{} {}, so {} ignored: {}; read it, then type: planctl trust {}",
            self.path.display(),
            self.why,
            if keys.len() == 1 { "this key is" } else { "these keys are" },
            keys.join(", "),
            self.dir.display(),
        )
    }
}

/// A place where configuration may stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CandidateFile {
    /// The file.
    pub path: PathBuf,
    /// The owner of the file.
    pub of: FileOwner,
    /// Says that it is there.
    pub is_there: bool,
}

/// The owner of a configuration file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileOwner {
    /// The person's, for all their projects.
    User,
    /// The project's, and how far it is trusted.
    Project(Standing),
    /// The one that was named, in place of the project's.
    Named,
}

/// Names the files that are read, the strongest first, without reading them; and the person's own where there is none.
///
/// # Errors
///
/// [`ConfigError`] where a file can't be read.
pub fn places(sources: &Sources<'_>) -> Result<Vec<CandidateFile>, ConfigError> {
    let mut places = Vec::new();
    if let Some(path) = user_file(sources.env) {
        let is_there = read_small(&path)?.is_some();
        places.push(CandidateFile { path, of: FileOwner::User, is_there });
    }
    if let Some(path) = named_file(sources) {
        let is_there = read_small(&path)?.is_some();
        places.push(CandidateFile { path, of: FileOwner::Named, is_there });
    } else if let Some((path, text)) = find_upward(sources.workspace)? {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let standing = Trust::load(sources.state_dir)?.trust_of(dir, &sha256(text.as_bytes()));
        places.push(CandidateFile { path, of: FileOwner::Project(standing), is_there: true });
    }
    Ok(places)
}

fn named_file(sources: &Sources<'_>) -> Option<PathBuf> {
    sources.file.map(Path::to_owned).or_else(|| (sources.env)("PLANCTL_CONFIG").map(PathBuf::from))
}

/// Reads all sources: flags go before `PLANCTL_*`, the user's file, and the project's.
///
/// # Errors
///
/// [`ConfigError`], with every finding of the first file that has any.
pub fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let mut files = Vec::new();
    let user = match user_file(sources.env) {
        Some(path) => read_layer(&path, &mut files)?.unwrap_or_default(),
        None => Layer::default(),
    };
    let mut warnings = Vec::new();
    let (project, distrusted) = match project_layer(sources, &mut files) {
        Err(unread) if sources.leaves_unread && is_of_nobody_trusted(sources)? => {
            warnings.push(format!("left aside, since nobody trusts it: could not {unread}"));
            (Layer::default(), None)
        }
        read => read?,
    };
    let mut layer =
        flags(sources)?.layered_over(environment(sources)?).layered_over(user).layered_over(project);
    let origins = std::mem::take(&mut layer.origins);
    let config = layer.effective();
    warnings.extend(distrusted.iter().map(Distrusted::warning));
    warnings.extend(unknown_responders(&config));
    warnings.extend(responders_asked_twice(&config));
    warnings.extend(role_cycles(&config));
    warnings.extend(deadlines_without_effect(&config));
    Ok(Loaded { config, warnings, files, origins, distrusted })
}

/// Says which roles answer for another at some level and are nowhere configured.
fn unknown_responders(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for (role, settings) in &config.roles {
        for (level, responder) in settings.pace.levels() {
            let Responder::Role(named) = responder else { continue };
            if config.roles.contains_key(named) {
                continue;
            }
            let known = config.roles.keys().filter(|other| *other != role).map(|role| role.as_str());
            let near = did_you_mean(named.as_str(), known.chain(["human"]));
            let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            warnings.push(format!(
                "roles.{role}.pace.{level} is \"{named}\", and no [roles.{named}] says what serves it{near}"
            ));
        }
    }
    warnings
}

/// Says who answers for a role at two levels: the second time they would get what they gave up.
fn responders_asked_twice(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for (role, settings) in &config.roles {
        let levels: Vec<_> = settings.pace.levels().collect();
        for (at, (level, responder)) in levels.iter().enumerate() {
            let before = levels[..at].iter().find(|(_, earlier)| earlier == responder);
            if let Some((earlier, _)) = before {
                warnings.push(format!(
                    "roles.{role}.pace.{level} is \"{responder}\", who answers at {earlier} already and would get the \
                     step again that it gave up; name another"
                ));
            }
        }
    }
    warnings
}

/// Says which roles answer for each other in a circle.
///
/// A step climbs the levels of its own role alone, so it never goes round; but who wrote a circle may expect that.
fn role_cycles(config: &Config) -> Vec<String> {
    let answers = |role: &Role| -> Vec<&Role> {
        let levels = config.roles.get(role).into_iter().flat_map(|role| role.pace.levels());
        let roles = levels.filter_map(|(_, responder)| match responder {
            Responder::Role(role) => Some(role),
            Responder::Human => None,
        });
        roles.collect()
    };
    let mut said = BTreeSet::new();
    let mut warnings = Vec::new();
    for role in config.roles.keys() {
        let Some(circle) = cycle_from(role, &answers) else { continue };
        if circle.iter().any(|role| said.contains(role)) {
            continue;
        }
        let names: Vec<&str> = circle.iter().chain(circle.first()).map(|role| role.as_str()).collect();
        warnings.push(format!(
            "the roles answer for each other in a circle ({}): a step goes up the levels of its own role only, never \
             round; let one of them end with pace.emergency = \"human\"",
            names.join(" → ")
        ));
        said.extend(circle);
    }
    warnings
}

/// Says which rules set a deadline after which nothing happens.
fn deadlines_without_effect(config: &Config) -> Vec<String> {
    let rules = config.asks.iter();
    let idle = rules.filter(|(_, rule)| rule.deadline.is_some() && rule.on_deadline == OnDeadline::Wait);
    let warning = |(name, _)| {
        format!(
            "asks.{name}.deadline has no effect: set on_deadline = \"reject\" or \"abort\", or leave it out"
        )
    };
    idle.map(warning).collect()
}

/// Returns the shortest way from a role over those that answer for it back to itself.
fn cycle_from<'a>(role: &'a Role, answers: &impl Fn(&Role) -> Vec<&'a Role>) -> Option<Vec<&'a Role>> {
    let mut seen = BTreeSet::from([role]);
    let mut ways = VecDeque::from([vec![role]]);
    while let Some(way) = ways.pop_front() {
        for next in way.last().into_iter().flat_map(|last| answers(last)) {
            if next == role {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push_back(way.iter().copied().chain([next]).collect());
            }
        }
    }
    None
}

/// Refuses a file with a password in it that everybody may read.
fn refuse_exposed(path: &Path, layer: &Layer) -> Result<(), ConfigError> {
    use std::os::unix::fs::PermissionsExt;
    let holds_password = layer.database.as_ref().is_some_and(DatabaseUrl::has_password);
    let mode = std::fs::metadata(path).map(|meta| meta.permissions().mode()).unwrap_or(0);
    if holds_password && mode & 0o004 != 0 {
        return Err(ConfigError::Exposed { path: path.to_owned() });
    }
    Ok(())
}

fn project_layer(
    sources: &Sources<'_>,
    files: &mut Vec<PathBuf>,
) -> Result<(Layer, Option<Distrusted>), ConfigError> {
    if let Some(path) = named_file(sources) {
        let layer = read_layer(&path, files)?.ok_or(ConfigError::Missing { path })?;
        return Ok((layer, None));
    }
    let Some((path, text)) = find_upward(sources.workspace)? else {
        return Ok((Layer::default(), None));
    };
    let mut layer = read::layer(&path, &text)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    let standing = Trust::load(sources.state_dir)?.trust_of(dir, &sha256(text.as_bytes()));
    files.push(path.clone());
    let why = match standing {
        Standing::Trusted => {
            refuse_exposed(&path, &layer)?;
            return Ok((layer, None));
        }
        Standing::Unknown => "is not trusted",
        Standing::Changed => "has changed since it was trusted",
    };
    let keys = layer.drop_untrusted();
    let distrusted = Distrusted { dir: dir.to_owned(), path, why, keys };
    Ok((layer, Some(distrusted).filter(|distrusted| !distrusted.keys.is_empty())))
}

/// Says that the project's file is one that was found, and that nobody trusts as it is.
fn is_of_nobody_trusted(sources: &Sources<'_>) -> Result<bool, ConfigError> {
    if named_file(sources).is_some() {
        return Ok(false);
    }
    let Some((path, text)) = find_upward(sources.workspace)? else { return Ok(false) };
    let dir = path.parent().unwrap_or(Path::new("/"));
    Ok(Trust::load(sources.state_dir)?.trust_of(dir, &sha256(text.as_bytes())) != Standing::Trusted)
}

fn find_upward(workspace: &Path) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let start = workspace
        .canonicalize()
        .map_err(|source| ConfigError::Unreadable { path: workspace.to_owned(), source })?;
    for dir in start.ancestors() {
        let path = dir.join(FILE_NAME);
        if let Some(text) = read_small(&path)? {
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

fn read_layer(path: &Path, files: &mut Vec<PathBuf>) -> Result<Option<Layer>, ConfigError> {
    let Some(text) = read_small(path)? else {
        return Ok(None);
    };
    files.push(path.to_owned());
    let layer = read::layer(path, &text)?;
    refuse_exposed(path, &layer)?;
    Ok(Some(layer))
}

/// Names the user's file; there is none where no home directory is known.
fn user_file(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_folder(env)?.join(FILE_NAME))
}

/// Returns the folder of a user's own configuration; there is none where no home directory is known.
pub fn user_folder(env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(base.join("planctl"))
}

fn environment(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    Ok(isolation_variable(sources)?.layered_over(database_variable(sources)?))
}

fn isolation_variable(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    const NAME: &str = "PLANCTL_ISOLATION";
    let Some(value) = (sources.env)(NAME).filter(|value| !value.is_empty()) else {
        return Ok(Layer::default());
    };
    let text = value.to_string_lossy();
    let isolation = crate::config::Isolation::parse(&text)
        .ok_or_else(|| ConfigError::Value { name: NAME, what: crate::config::Isolation::expected(&text) })?;
    let origins = Origins::single(&["isolation"], Origin::Variable(NAME));
    Ok(Layer { isolation: Some(isolation), origins, ..Layer::default() })
}

fn database_variable(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    // An application's own DATABASE_URL is never looked at: it is not ours to write into.
    let Some(value) = (sources.env)("PLANCTL_DATABASE_URL").filter(|value| !value.is_empty()) else {
        return Ok(Layer::default());
    };
    database(&value.to_string_lossy(), "PLANCTL_DATABASE_URL", Origin::Variable)
}

fn flags(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    let database = sources
        .database_url
        .map_or(Ok(Layer::default()), |value| database(value, "--database-url", Origin::Flag))?;
    let Some(mode) = sources.workspace_mode else { return Ok(database) };
    let origins = Origins::single(&["workspace", "mode"], Origin::Flag("--workspace"));
    Ok(Layer { workspace_mode: Some(mode), origins, ..Layer::default() }.layered_over(database))
}

fn database(
    value: &str,
    name: &'static str,
    origin: fn(&'static str) -> Origin,
) -> Result<Layer, ConfigError> {
    let url = DatabaseUrl::parse(value).map_err(|what| ConfigError::Value { name, what })?;
    let origins = Origins::single(&["database", "url"], origin(name));
    Ok(Layer { database: Some(url), origins, ..Layer::default() })
}
