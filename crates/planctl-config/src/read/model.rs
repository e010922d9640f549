//! Reads `[models.NAME]`.

use crate::layer::Layer;
use crate::model::{MODEL_TIMEOUT, MODEL_TOKENS, ModelApi, ModelConfig, wrong_url};

use super::{Reader, Value, is_role};

const KEYS: [&str; 7] = ["api", "url", "model", "key_env", "max_tokens", "timeout", "ask"];

impl Reader<'_> {
    pub(super) fn models(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "models") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't be the name of a model"), Some(help));
                continue;
            }
            let before = self.findings.len();
            let (mut api, mut url, mut model, mut key_env) = (None, None, None, None);
            let (mut max_tokens, mut timeout, mut ask) = (MODEL_TOKENS, MODEL_TIMEOUT, false);
            for (key, value) in self.table(value, &format!("models.{name}")) {
                match key.get_ref().as_ref() {
                    "api" => api = self.read_word(value, "api", &ModelApi::ALL, ModelApi::as_str),
                    "url" => url = self.model_url(value),
                    "model" => model = self.string(value).map(str::to_owned),
                    "key_env" => key_env = self.secret_variable(value, "key_env"),
                    "max_tokens" => max_tokens = self.count(value).unwrap_or(max_tokens),
                    "timeout" => timeout = self.duration(value).unwrap_or(timeout),
                    "ask" => match value.get_ref().as_bool() {
                        Some(choice) => ask = choice,
                        None => self.wrong_type(value, "true or false"),
                    },
                    other => self.unknown(key.span(), other, KEYS),
                }
            }
            if ask && api == Some(ModelApi::Embeddings) {
                let message = "embeddings are not prompts, so `ask` has no effect here";
                self.report(key.span(), message.to_owned(), Some("take `ask` out".to_owned()));
            }
            if let (Some(api), Some(url), Some(model)) = (api, url, model) {
                let model = ModelConfig { api, url, model, key_env, max_tokens, timeout, ask };
                layer.models.insert(name.to_owned(), model);
            } else if value.get_ref().is_table() && before == self.findings.len() {
                let message = format!("the model {name:?} needs `api`, `url` and `model`");
                self.report(
                    key.span(),
                    message,
                    Some("api is \"messages\", \"chat\" or \"embeddings\"".to_owned()),
                );
            }
        }
    }

    fn model_url(&mut self, value: &Value<'_>) -> Option<String> {
        let url = self.string(value)?;
        if let Some(wrong) = wrong_url(url) {
            self.report(value.span(), wrong.to_owned(), None);
            return None;
        }
        Some(url.to_owned())
    }

    // A secret that stands here by mistake is not repeated.
    pub(super) fn secret_variable(&mut self, value: &Value<'_>, key: &str) -> Option<String> {
        let name = self.string(value)?;
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
                && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !is_name {
            let message = format!("{key} is the name of a variable in capitals, never its value");
            let help =
                format!("write the value into a variable, and the variable's name here: {key} = \"NAME\"");
            self.report(value.span(), message, Some(help));
            return None;
        }
        Some(name.to_owned())
    }
}
