//! Asks a model for one answer, or for vectors: the forms of calls, retries with the server's wait, and one error per cause.

use std::time::Duration;

use planctl_config::{ModelApi, ModelConfig, Price};
use planctl_engine::{Digest, Usage};
use planctl_planner::{ANSWER_BYTES_MAX, Answer, Charge, Prompt, Tokens, tokens_of};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use crate::failure::{Exit, Failure};
use crate::{secrecy, show, tls};

pub mod named;
mod wire;

/// How often one answer is asked for, the first time included.
const TRIES: u32 = 4;
/// A server that asks for a longer wait is not waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The most bytes of a response that are read: an answer, and what stands around it.
const RESPONSE_BYTES_MAX: usize = 4 * ANSWER_BYTES_MAX;
/// The most bytes of a response with vectors.
const VECTORS_BYTES_MAX: usize = 32 << 20;
/// The most characters of a server's own words that are shown.
const MESSAGE_CHARACTERS_MAX: usize = 300;
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// The key is refused.
    #[error("its key is refused ({status}): {message}")]
    Auth {
        /// The server's status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// It wants a key, and none was sent.
    #[error("it wants a key ({status}): {message}")]
    NoKey {
        /// The server's status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// It asks to wait longer than is waited for, or said so too often.
    #[error("it takes no more calls for now: {message}")]
    RateLimit {
        /// How long it asks to wait.
        wait: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// It can't be reached, broke off, or has trouble of its own.
    #[error("{message}")]
    Network {
        /// The fault, as a sentence about it.
        message: String,
        /// How to mend it, where that is known.
        help: Option<&'static str>,
        /// Says that it may have the call, and may have answered it.
        is_sent: bool,
    },
    /// It does not take the call.
    #[error("it refuses the call ({status}): {message}")]
    Refused {
        /// The server's status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// Its response is not of the form.
    #[error("its response can't be read: {message}")]
    Malformed {
        /// The fault.
        message: String,
    },
}

impl ModelError {
    /// Says that nothing was used for certain: the service did not get the call, or says that it did not take it.
    fn used_nothing(&self) -> bool {
        match self {
            ModelError::Auth { .. }
            | ModelError::NoKey { .. }
            | ModelError::RateLimit { .. }
            | ModelError::Refused { .. } => true,
            ModelError::Network { is_sent, .. } => !is_sent,
            // A service may have been paid for a response that can't be read.
            ModelError::Malformed { .. } => false,
        }
    }
}

/// The account of calls. Each is entered before it is sent, so that a call whose answer is lost counts, too.
pub trait Account {
    /// Enters a call that is about to be sent; refuses one that does not fit.
    async fn enter(&mut self, most: Charge) -> Result<(), Failure>;

    /// Strikes the last call out, which used nothing.
    async fn strike(&mut self) -> Result<(), Failure>;

    /// Strikes the last call out in memory; its answer is stored in its place.
    fn strike_in_memory(&mut self);
}

/// A call that met trouble which passes, and is sent again.
#[derive(Debug)]
pub struct AskedAgain {
    /// Why there was no answer.
    pub trouble: String,
    /// How long is waited first.
    wait: Duration,
}

impl std::fmt::Display for AskedAgain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}; asked again in {} s", self.trouble, self.wait.as_secs_f64())
    }
}

/// Vectors, and what they took.
pub struct Embedded {
    /// One for each text, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their price, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
}

/// One call.
struct Call<'a> {
    /// Writes its body, with structured output or without.
    body: &'a dyn Fn(bool) -> Value,
    is_structured: bool,
    /// The most bytes of its response.
    bytes_max: usize,
    most: Charge,
}

/// A model that can be asked.
pub struct Model {
    name: String,
    config: ModelConfig,
    price: Option<Price>,
    client: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
}

impl Model {
    /// Prepares to ask a model of the configuration; connects to nothing yet.
    pub fn new(name: &str, config: &ModelConfig, price: Option<Price>) -> Result<Model, Failure> {
        let key =
            config.key_env.as_ref().and_then(|variable| secrecy::variable(variable)?.into_string().ok());
        Model::with_key(name, config, price, key)
    }

    /// Prepares to ask a model with a key.
    pub fn with_key(
        name: &str,
        config: &ModelConfig,
        price: Option<Price>,
        key: Option<String>,
    ) -> Result<Model, Failure> {
        let wrong = |what: String| {
            Failure::new(Exit::Configuration, format!("could not use the model {}: {what}", show::safe(name)))
        };
        let endpoint = Url::parse(&config.endpoint()).map_err(|error| wrong(error.to_string()))?;
        let mut headers = HeaderMap::new();
        if let Some(variable) = &config.key_env {
            let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
            let Some(key) = key else {
                return Err(wrong(format!("{variable} is not set"))
                    .help(format!("export {variable}=…"))
                    .page_help(format!("set {variable} where the daemon is started, and start it again")));
            };
            if tls::is_readable_by_others(&endpoint) {
                return Err(wrong("its key would travel unencrypted to another machine".to_owned())
                    .help("use an address that begins with https://"));
            }
            let key = match config.api {
                ModelApi::Messages => ("x-api-key", key),
                ModelApi::Chat | ModelApi::Embeddings => ("authorization", format!("Bearer {key}")),
            };
            let mut value = HeaderValue::from_str(&key.1)
                .map_err(|_| wrong(format!("{variable} holds characters that no key has")))?;
            value.set_sensitive(true);
            headers.insert(key.0, value);
        }
        if config.api == ModelApi::Messages {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        tls::choose_cryptography();
        // A redirect would take the key elsewhere.
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .timeout(config.timeout)
            .redirect(reqwest::redirect::Policy::none());
        // The certificates of the system are read only where they are asked for something.
        let builder = if endpoint.scheme() == "https" { builder } else { builder.tls_certs_only([]) };
        let client = builder.build().map_err(|error| wrong(innermost(&error)))?;
        Ok(Model { name: name.to_owned(), config: config.clone(), price, client, endpoint, headers })
    }

    /// Returns its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a word by which its vectors are told from those of others.
    pub fn key(&self) -> String {
        format!("{} {}", self.endpoint, self.config.model)
    }

    /// Says whether a person approves each prompt before it is sent.
    pub fn asks_person(&self) -> bool {
        self.config.ask
    }

    /// Returns the name by which its service knows it.
    pub fn model(&self) -> &str {
        &self.config.model
    }

    /// Returns the address of its calls.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Returns the digest of a call as it is sent, with the address that it goes to.
    pub fn digest(&self, prompt: &Prompt) -> Digest {
        let body = wire::request(self.config.api, &self.config, prompt, true);
        planctl_lang::digest_of_text(&format!("{}\n{body}", self.endpoint))
    }

    /// Returns the most tokens of one answer.
    pub fn tokens_max(&self) -> u64 {
        self.config.max_tokens
    }

    /// Returns what the answer to a prompt uses at most.
    pub fn most(&self, prompt: &Prompt) -> Charge {
        self.charge(Tokens { input: prompt.tokens(), output: self.tokens_max(), ..Tokens::default() })
    }

    fn charge(&self, tokens: Tokens) -> Charge {
        Charge { tokens: Some(tokens), micro_usd: self.cost(tokens) }
    }

    /// Returns what so many tokens cost, in millionths of a US dollar.
    pub fn cost(&self, tokens: Tokens) -> Option<u64> {
        let usage = Usage {
            input_tokens: tokens.input,
            cached_input_tokens: tokens.cached,
            output_tokens: tokens.output,
            ..Usage::default()
        };
        self.price.map(|price| price.micro_usd(&usage))
    }

    /// Asks for one answer, and again where the server or the network has trouble that passes.
    ///
    /// # Errors
    ///
    /// Says why there is none, and what to do about it: one exit for each cause.
    pub async fn ask(
        &self,
        prompt: &Prompt,
        say: &dyn Fn(&AskedAgain),
        account: &mut impl Account,
    ) -> Result<Answer, Failure> {
        let body = |is_structured| wire::request(self.config.api, &self.config, prompt, is_structured);
        let call =
            Call { body: &body, is_structured: true, bytes_max: RESPONSE_BYTES_MAX, most: self.most(prompt) };
        let value = self.call(call, say, account).await?;
        let answer = self.answer(&value, prompt).map_err(|error| failure(self, &error))?;
        account.strike_in_memory();
        Ok(answer)
    }

    /// Asks for the vectors of texts.
    ///
    /// # Errors
    ///
    /// Says why there are none, and what to do about it: one exit for each cause.
    pub async fn embed(
        &self,
        texts: &[String],
        say: &dyn Fn(&AskedAgain),
        account: &mut impl Account,
    ) -> Result<Embedded, Failure> {
        let body = |_| wire::to_embed(&self.config, texts);
        let input = texts.iter().map(|text| tokens_of(text)).sum();
        let estimated = Tokens { input, estimated: true, ..Tokens::default() };
        let most = self.charge(Tokens { estimated: false, ..estimated });
        let call = Call { body: &body, is_structured: false, bytes_max: VECTORS_BYTES_MAX, most };
        let value = self.call(call, say, account).await?;
        let vectors = wire::vectors(&value, texts.len())
            .map_err(|message| failure(self, &ModelError::Malformed { message }))?;
        account.strike_in_memory();
        let tokens = wire::tokens_of_texts(&value).unwrap_or(estimated);
        Ok(Embedded { vectors, tokens, micro_usd: self.cost(tokens) })
    }

    /// Sends a call until there is a response; each time counts, unless it used nothing for certain.
    async fn call(
        &self,
        mut call: Call<'_>,
        say: &dyn Fn(&AskedAgain),
        account: &mut impl Account,
    ) -> Result<Value, Failure> {
        let mut tried = 0;
        loop {
            tried += 1;
            account.enter(call.most).await?;
            let error = match self.send_once(&(call.body)(call.is_structured), call.bytes_max).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if error.used_nothing() {
                account.strike().await?;
            }
            let wait = match &error {
                // A server without structured output says so by refusing the call.
                ModelError::Refused { status: 400 | 422, .. } if call.is_structured => {
                    call.is_structured = false;
                    tried -= 1;
                    continue;
                }
                ModelError::Auth { .. }
                | ModelError::NoKey { .. }
                | ModelError::Refused { .. }
                | ModelError::Malformed { .. }
                // Another try meets the same.
                | ModelError::Network { help: Some(_), .. } => return Err(failure(self, &error)),
                ModelError::RateLimit { wait, .. } => wait.unwrap_or(Duration::from_secs(1 << tried)),
                ModelError::Network { help: None, .. } => Duration::from_millis(250 << tried),
            };
            if tried >= TRIES || wait > WAIT_MAX {
                return Err(failure(self, &error));
            }
            let again = AskedAgain { trouble: error.to_string(), wait };
            say(&again);
            tokio::time::sleep(again.wait).await;
        }
    }

    fn answer(&self, value: &Value, prompt: &Prompt) -> Result<Answer, ModelError> {
        let said = wire::answer(self.config.api, value, prompt.name)
            .map_err(|message| ModelError::Malformed { message })?;
        // A service that counts nothing is held to the budget all the same.
        let tokens = said.tokens.unwrap_or_else(|| Tokens::estimate(prompt.tokens(), &said.text));
        Ok(Answer { tokens: Some(tokens), micro_usd: self.cost(tokens), ..Answer::new(&said.text) })
    }

    async fn send_once(&self, body: &Value, bytes_max: usize) -> Result<Value, ModelError> {
        let network = |error: &reqwest::Error| self.trouble(error);
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).json(body);
        let mut response = request.send().await.map_err(|error| network(&error))?;
        let (status, wait) = (response.status(), wait_of(response.headers()));
        let elsewhere = response.headers().get("location").and_then(|place| place.to_str().ok());
        let elsewhere = elsewhere.filter(|_| status.is_redirection()).map(show::safe);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| network(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > bytes_max {
                let message = format!("it is longer than {bytes_max} bytes");
                return Err(ModelError::Malformed { message });
            }
        }
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|error| ModelError::Malformed {
                message: match bytes.is_empty() {
                    true => "it is empty".to_owned(),
                    false => format!("it is not JSON: {error}"),
                },
            });
        }
        Err(match (elsewhere, refusal(status, wait, &bytes)) {
            (Some(place), _) => {
                let message = format!("it sends calls to {place}, where planctl does not follow");
                ModelError::Refused { status: status.as_u16(), message }
            }
            (None, ModelError::Auth { status, message }) if self.config.key_env.is_none() => {
                ModelError::NoKey { status, message }
            }
            (None, refusal) => refusal,
        })
    }

    /// Says why a call brought no response.
    fn trouble(&self, error: &reqwest::Error) -> ModelError {
        let fault = innermost(error);
        let message = match (error.is_connect(), error.is_timeout()) {
            (true, true) => format!("it can't be reached: no connection within {} s", CONNECT.as_secs()),
            (true, false) => format!("it can't be reached: {fault}"),
            (false, true) => format!("it did not answer within {} s", self.config.timeout.as_secs_f64()),
            (false, false) => format!("it broke off: {fault}"),
        };
        ModelError::Network { message, help: tls::fault(error).map(tls::help), is_sent: !error.is_connect() }
    }
}

/// Says what a status means.
fn refusal(status: StatusCode, wait: Option<Duration>, body: &[u8]) -> ModelError {
    let message = words_of(body).unwrap_or_else(|| status.to_string());
    match status.as_u16() {
        401 | 403 => ModelError::Auth { status: status.as_u16(), message },
        // 529: overloaded.
        429 | 529 => ModelError::RateLimit { wait, message },
        503 if wait.is_some() => ModelError::RateLimit { wait, message },
        408 | 500..=599 => ModelError::Network {
            message: format!("it has trouble of its own ({}): {message}", status.as_u16()),
            help: None,
            is_sent: true,
        },
        status => ModelError::Refused { status, message },
    }
}

fn words_of(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let said = value.as_ref().and_then(|value| {
        let error = value.get("error").unwrap_or(value);
        error.get("message").and_then(Value::as_str).or_else(|| error.as_str())
    });
    let said = show::brief(&show::safe(said.unwrap_or(&text)), MESSAGE_CHARACTERS_MAX);
    (!said.trim().is_empty()).then_some(said)
}

/// Returns how long a server asks to wait, in seconds or milliseconds; a moment of a calendar is not waited for by its clock.
fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms")
        .map(|milliseconds| milliseconds / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

// The layers around it say that there was an error, where, and the address once more.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    show::safe(&error.to_string())
}

/// Says what to do about a model that gives no answer.
fn failure(model: &Model, error: &ModelError) -> Failure {
    let name = show::safe(model.name());
    let message = format!("could not ask the model {name}: {error}");
    let key = model.config.key_env.as_deref();
    match error {
        ModelError::Auth { .. } | ModelError::NoKey { .. } => {
            Failure::new(Exit::Denied, message).help(match key {
                Some(variable) => format!("put a key that holds into {variable}"),
                None if named::is_address(model.name()) => {
                    let config = &model.config;
                    let table = named::table(config.api, &config.url, &config.model);
                    format!("no key is sent to an address; write into planctl.toml:\n{table}")
                }
                None => format!("name the variable that holds its key: key_env in [models.{name}]"),
            })
        }
        ModelError::RateLimit { wait: Some(wait), .. } => Failure::new(Exit::Temporary, message)
            .help(format!("it asks to wait {} s; the same goal goes on where it was", wait.as_secs())),
        ModelError::Network { help: Some(help), .. } => Failure::new(Exit::Configuration, message).help(help),
        ModelError::RateLimit { wait: None, .. } | ModelError::Network { help: None, .. } => {
            Failure::new(Exit::Temporary, message).help("the same goal goes on where it was")
        }
        ModelError::Refused { .. } => {
            Failure::new(Exit::Configuration, message).help(match named::is_address(model.name()) {
                true => "look at the end of the address, and at the model behind the #".to_owned(),
                false => format!("look at url, api and model of [models.{name}] in planctl.toml"),
            })
        }
        ModelError::Malformed { .. } => Failure::new(Exit::Temporary, message).help(format!(
            "does {} speak api = \"{}\"?",
            show::safe(model.endpoint.as_str()),
            model.config.api
        )),
    }
}
