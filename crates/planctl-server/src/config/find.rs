//! Finds the sources of configuration, reads them and lets each go before the next (INTERFACE 2.3).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use planctl_lang::did_you_mean;

use super::layer::Layer;
use super::trust::Standing;
use super::{Config, ConfigError, DatabaseUrl, Responder, Trust, read, read_small, sha256};

/// The name of a configuration file, in a project and in the user's configuration directory.
pub const FILE_NAME: &str = "planctl.toml";

/// Where to look.
pub struct Sources<'a> {
    /// The workspace; the project's file is found upward from it.
    pub workspace: &'a Path,
    /// The state directory, which holds the record of trusted directories.
    pub state_dir: &'a Path,
    /// The file of `--config`, read in place of the project's; who names it trusts it.
    pub file: Option<&'a Path>,
    /// The address of `--database-url`.
    pub database_url: Option<&'a str>,
    /// Answers for environment variables.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The effective configuration, and how it came about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// What a person should know, one line each.
    pub warnings: Vec<String>,
    /// The files that were read, the strongest first.
    pub files: Vec<PathBuf>,
}

/// Reads all sources: flags go before `PLANCTL_*`, the user's file, and the project's.
///
/// # Errors
///
/// [`ConfigError`], with every finding of the first file that has any.
pub fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let mut warnings = Vec::new();
    let mut files = Vec::new();
    let user = match user_file(sources.env) {
        Some(path) => read_layer(&path, &mut files)?.unwrap_or_default(),
        None => Layer::default(),
    };
    let project = project_layer(sources, &mut warnings, &mut files)?;
    let layer = flags(sources)?.over(environment(sources)?).over(user).over(project);
    let config = layer.effective();
    warnings.extend(unknown_responders(&config));
    Ok(Loaded { config, warnings, files })
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
    warnings: &mut Vec<String>,
    files: &mut Vec<PathBuf>,
) -> Result<Layer, ConfigError> {
    let named =
        sources.file.map(Path::to_owned).or_else(|| (sources.env)("PLANCTL_CONFIG").map(PathBuf::from));
    if let Some(path) = named {
        return read_layer(&path, files)?.ok_or(ConfigError::Missing { path });
    }
    let Some((path, text)) = found_upward(sources.workspace)? else {
        return Ok(Layer::default());
    };
    let mut layer = read::layer(&path, &text)?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    let standing = Trust::load(sources.state_dir)?.standing(dir, &sha256(text.as_bytes()));
    files.push(path.clone());
    let why = match standing {
        Standing::Trusted => {
            refuse_exposed(&path, &layer)?;
            return Ok(layer);
        }
        Standing::Unknown => "is not trusted",
        Standing::Changed => "has changed since it was trusted",
    };
    let ignored = layer.distrust();
    if !ignored.is_empty() {
        warnings.push(format!(
            "{} {why}, so {} ignored: {}; read it, then type: planctl trust {}",
            path.display(),
            if ignored.len() == 1 { "this key is" } else { "these keys are" },
            ignored.join(", "),
            dir.display(),
        ));
    }
    Ok(layer)
}

fn found_upward(workspace: &Path) -> Result<Option<(PathBuf, String)>, ConfigError> {
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
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(base.join("planctl").join(FILE_NAME))
}

fn environment(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    // An application's own DATABASE_URL is never looked at: it is not ours to write into.
    let Some(value) = (sources.env)("PLANCTL_DATABASE_URL").filter(|value| !value.is_empty()) else {
        return Ok(Layer::default());
    };
    database(&value.to_string_lossy(), "PLANCTL_DATABASE_URL")
}

fn flags(sources: &Sources<'_>) -> Result<Layer, ConfigError> {
    sources.database_url.map_or(Ok(Layer::default()), |value| database(value, "--database-url"))
}

fn database(value: &str, name: &'static str) -> Result<Layer, ConfigError> {
    let url = DatabaseUrl::parse(value).map_err(|what| ConfigError::Value { name, what })?;
    Ok(Layer { database: Some(url), ..Layer::default() })
}
