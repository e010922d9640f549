//! Reads `[servers.NAME]`.

use std::collections::BTreeMap;

use crate::layer::Layer;
use crate::model::wrong_url;
use crate::server::{ServerConfig, ServerReach};

use super::{Reader, Value, is_role};

const KEYS: [&str; 6] = ["command", "url", "env", "token_env", "effects", "tools"];

impl Reader<'_> {
    pub(super) fn servers(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "servers") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't be the name of a server"), Some(help));
                continue;
            }
            let before = self.findings.len();
            let (mut command, mut url, mut env, mut token_env) = (None, None, None, None);
            let (mut effects, mut tools) = (None, BTreeMap::new());
            for (key, value) in self.table(value, &format!("servers.{name}")) {
                match key.get_ref().as_ref() {
                    "command" => command = self.strings(value, "a list: [\"npx\", \"server\"]"),
                    "url" => url = self.server_url(value),
                    "env" => env = self.inherited(value),
                    "token_env" => token_env = self.secret_variable(value, "token_env"),
                    "effects" => effects = Some(self.effect_names(value)),
                    "tools" => {
                        for (tool, value) in self.table(value, &format!("servers.{name}.tools")) {
                            let effects = self.effect_names(value);
                            tools.insert(tool.get_ref().to_string(), effects);
                        }
                    }
                    other => self.unknown(key.span(), other, KEYS),
                }
            }
            let reach = match (command, url, env, token_env) {
                (Some(command), None, env, None) if !command.is_empty() => {
                    Some(ServerReach::Command { command, env: env.unwrap_or_default() })
                }
                (None, Some(url), None, token_env) => Some(ServerReach::Url { url, token_env }),
                _ => None,
            };
            if let Some(reach) = reach {
                layer.servers.insert(name.to_owned(), ServerConfig { reach, effects, tools });
            } else if value.get_ref().is_table() && before == self.findings.len() {
                let message =
                    format!("the server {name:?} needs `command` (with `env`) or `url` (with `token_env`)");
                let help =
                    "command = [\"npx\", \"server\"] starts it, url = \"https://…\" goes to it".to_owned();
                self.report(key.span(), message, Some(help));
            }
        }
    }

    fn server_url(&mut self, value: &Value<'_>) -> Option<String> {
        let url = self.string(value)?;
        if wrong_url(url).is_some() {
            let message =
                "the address of a server is https://HOST/PATH, without a login and parameters".to_owned();
            self.report(value.span(), message, None);
            return None;
        }
        Some(url.to_owned())
    }

    fn inherited(&mut self, value: &Value<'_>) -> Option<Vec<String>> {
        let names = self.strings(value, "a list of variables that are passed on: [\"API_KEY\"]")?;
        for name in &names {
            self.variable_name(value.span(), name);
        }
        Some(names)
    }
}
