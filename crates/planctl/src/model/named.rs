//! Finds a model as a person names it: by its name in planctl.toml, or by its address.

use planctl_config::{Config, MODEL_TIMEOUT, MODEL_TOKENS, ModelApi, ModelConfig, Price, wrong_url};
use url::Url;

use super::Model;
use crate::failure::{Exit, Failure};
use crate::{show, tls};

/// Finds a model that gives answers.
pub fn answering(config: &Config, named: &str) -> Result<Model, Failure> {
    find(config, named, Gives::Answers)
}

/// Finds a model that gives vectors.
pub fn embedding(config: &Config, named: &str) -> Result<Model, Failure> {
    find(config, named, Gives::Vectors)
}

/// Says whether a person named a model by its address.
pub(super) fn is_address(named: &str) -> bool {
    named.contains("://")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Answers,
    Vectors,
}

impl Gives {
    fn of(api: ModelApi) -> Gives {
        match api {
            ModelApi::Messages | ModelApi::Chat => Gives::Answers,
            ModelApi::Embeddings => Gives::Vectors,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Gives::Answers => "answers",
            Gives::Vectors => "vectors",
        }
    }

    /// Returns the forms of calls that give it.
    fn forms(self) -> &'static [ModelApi] {
        match self {
            Gives::Answers => &[ModelApi::Messages, ModelApi::Chat],
            Gives::Vectors => &[ModelApi::Embeddings],
        }
    }
}

fn find(config: &Config, named: &str, wanted: Gives) -> Result<Model, Failure> {
    let Some(known) = config.models.get(named) else {
        return match is_address(named) {
            true => find_by_address(config, named, wanted),
            false => Err(unknown(config, named, wanted)),
        };
    };
    let gives = Gives::of(known.api);
    if gives != wanted {
        let message = format!(
            "the model {} gives {}, and {} are needed",
            show::safe(named),
            gives.as_str(),
            wanted.as_str()
        );
        let forms: Vec<String> = wanted.forms().iter().map(|api| format!("\"{api}\"")).collect();
        return Err(Failure::new(Exit::Configuration, message)
            .help(format!("name one with api = {}", forms.join(" or "))));
    }
    Model::new(named, known, Price::of(&config.prices, &known.model))
}

fn unknown(config: &Config, named: &str, wanted: Gives) -> Failure {
    let names: Vec<&str> = config.models.keys().map(String::as_str).collect();
    let near = planctl_lang::did_you_mean(named, names.iter().copied());
    let help = match (near, names.is_empty()) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, true) => table(wanted.forms()[0], "https://…", "…"),
        (None, false) => format!("there are {}", names.join(", ")),
    };
    Failure::new(Exit::Configuration, format!("planctl.toml has no model {}", show::safe(named))).help(help)
}

/// Finds the model at an address: the one that planctl.toml has there, with its key, its limits and its asks; else one that is asked
/// without a key, in the form of calls that the address ends with.
fn find_by_address(config: &Config, address: &str, wanted: Gives) -> Result<Model, Failure> {
    let (url, model) = address.split_once('#').unwrap_or((address, ""));
    // Neither message repeats the address: a key may stand in it.
    if let Some(wrong) = wrong_url(url) {
        return Err(Failure::usage(wrong));
    }
    if let Some(name) = configured_at(config, url, model, wanted)? {
        return find(config, name, wanted);
    }
    let Some(api) = wanted.forms().iter().find(|api| api.is_endpoint(url)).copied() else {
        let ends: Vec<String> = wanted.forms().iter().map(|api| format!("/{}", api.path())).collect();
        let message = format!("could not tell in which form {} is called", show::safe(url));
        return Err(Failure::new(Exit::Configuration, message).help(format!(
            "end the address with {}, or write into planctl.toml:\n{}",
            ends.join(" or "),
            table(wanted.forms()[0], url, model)
        )));
    };
    if model.is_empty() {
        let message = format!("could not tell which model to ask at {}", show::safe(url));
        let help = format!("name it behind the address: {}#MODEL", show::safe(url));
        return Err(Failure::new(Exit::Configuration, message).help(help));
    }
    let is_readable = Url::parse(url).is_ok_and(|url| tls::is_readable_by_others(&url));
    if is_readable {
        let message = "the prompt would travel unencrypted to another machine";
        return Err(
            Failure::new(Exit::Configuration, message).help("use an address that begins with https://")
        );
    }
    let found = ModelConfig {
        api,
        url: url.to_owned(),
        model: model.to_owned(),
        key_env: None,
        max_tokens: MODEL_TOKENS,
        timeout: MODEL_TIMEOUT,
        ask: false,
    };
    Model::new(address, &found, Price::of(&config.prices, model))
}

/// Returns the name of the model that planctl.toml has at an address; refuses to choose among several.
fn configured_at<'c>(
    config: &'c Config,
    url: &str,
    model: &str,
    wanted: Gives,
) -> Result<Option<&'c str>, Failure> {
    let plain = url.trim_end_matches('/');
    let is_there = |known: &ModelConfig| {
        Gives::of(known.api) == wanted
            && (known.url.trim_end_matches('/') == plain || known.endpoint() == plain)
            && (model.is_empty() || known.model == model)
    };
    let found: Vec<&str> =
        config.models.iter().filter_map(|(name, known)| is_there(known).then_some(name.as_str())).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let message = format!("planctl.toml has several models at {}", show::safe(url));
            Err(Failure::new(Exit::Configuration, message).help(format!("name one: {}", several.join(", "))))
        }
    }
}

/// Returns the lines of planctl.toml for a model.
pub(super) fn table(api: ModelApi, url: &str, model: &str) -> String {
    let model = if model.is_empty() { "MODEL" } else { model };
    format!(
        "[models.writer]\napi = \"{api}\"\nurl = \"{}\"\nmodel = \"{}\"\nkey_env = \"MODEL_KEY\"   # the variable that holds the key",
        show::safe(url),
        show::safe(model)
    )
}
