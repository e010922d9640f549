//! Reads `[notify.NAME]`.

use std::collections::BTreeSet;

use crate::channel::{
    CHANNEL_TIMEOUT, ChannelConfig, ChannelTarget, MailConfig, MailTls, MessageEvent, Quiet, TimeOfDay,
    WebAddress, WebShape, parse_hours, wrong_web_address,
};
use crate::layer::Layer;

use super::{Reader, Value, is_role};

/// The keys of every channel, and those of each kind.
const KEYS: [&str; 7] = ["to", "on", "timeout", "page", "quiet", "quiet_zone", "urgent"];
const KEYS_OF_WEB: [&str; 4] = ["url", "url_env", "secret_env", "allow_private"];
const KEYS_OF_MAIL: [&str; 8] =
    ["server", "port", "tls", "from", "recipients", "user", "password_env", "allow_private"];
const KEYS_OF_EXEC: [&str; 2] = ["command", "env"];

/// The values of a channel as they stand in the file.
#[derive(Default)]
struct Read {
    to: Option<&'static str>,
    on: Option<BTreeSet<MessageEvent>>,
    timeout: Option<std::time::Duration>,
    page: Option<String>,
    quiet: Option<(TimeOfDay, TimeOfDay)>,
    quiet_zone: Option<String>,
    urgent: Option<BTreeSet<MessageEvent>>,
    url: Option<String>,
    url_env: Option<String>,
    secret_env: Option<String>,
    allow_private: bool,
    server: Option<String>,
    port: Option<u16>,
    tls: Option<MailTls>,
    from: Option<String>,
    recipients: Vec<String>,
    user: Option<String>,
    password_env: Option<String>,
    command: Option<String>,
    env: Vec<String>,
}

impl Reader<'_> {
    pub(super) fn channels(&mut self, value: &Value<'_>, layer: &mut Layer) {
        for (key, value) in self.table(value, "notify") {
            let name = key.get_ref().as_ref();
            if !is_role(name) {
                let help = "use letters, digits, `-`, `_` and `.`, at most 64".to_owned();
                self.report(key.span(), format!("{name:?} can't be the name of a channel"), Some(help));
                continue;
            }
            let before = self.findings.len();
            let read = self.channel(name, value);
            if before < self.findings.len() {
                continue;
            }
            match read.target().and_then(|to| Ok((to, read.hours()?))) {
                Ok((to, quiet)) => {
                    let on = read.on.unwrap_or_else(|| MessageEvent::ALL.into_iter().collect());
                    let timeout = read.timeout.unwrap_or(CHANNEL_TIMEOUT);
                    let channel = ChannelConfig { to, on, timeout, page: read.page, quiet };
                    layer.channels.insert(name.to_owned(), channel);
                }
                Err(lacks) => self.report(key.span(), format!("the channel {name:?} {lacks}"), None),
            }
        }
    }

    fn channel(&mut self, name: &str, value: &Value<'_>) -> Read {
        let mut read = Read::default();
        let entries = self.table(value, &format!("notify.{name}"));
        let to = entries.iter().find(|(key, _)| key.get_ref() == "to");
        read.to = to.and_then(|(_, value)| self.read_word(value, "to", &ChannelTarget::WORDS, |word| word));
        let keys = match read.to {
            Some("exec") => [KEYS.as_slice(), &KEYS_OF_EXEC].concat(),
            Some("smtp") => [KEYS.as_slice(), &KEYS_OF_MAIL].concat(),
            Some("desktop") => KEYS.to_vec(),
            Some(_) => [KEYS.as_slice(), &KEYS_OF_WEB].concat(),
            None => [KEYS.as_slice(), &KEYS_OF_WEB, &KEYS_OF_MAIL, &KEYS_OF_EXEC].concat(),
        };
        for (key, value) in entries {
            match key.get_ref().as_ref() {
                "to" => {}
                other if !keys.contains(&other) => self.unknown(key.span(), other, keys.iter().copied()),
                "on" => read.on = self.message_events(value),
                "timeout" => read.timeout = self.duration(value),
                "page" => read.page = self.web_address(value),
                "quiet" => read.quiet = self.hours(value),
                "quiet_zone" => read.quiet_zone = self.time_zone(value),
                "urgent" => read.urgent = self.message_events(value),
                "url" => read.url = self.web_address(value),
                "url_env" => read.url_env = self.secret_variable(value, "url_env"),
                "secret_env" => read.secret_env = self.secret_variable(value, "secret_env"),
                "allow_private" => match value.get_ref().as_bool() {
                    Some(choice) => read.allow_private = choice,
                    None => self.wrong_type(value, "true or false"),
                },
                "server" => read.server = self.string(value).map(str::to_owned),
                "port" => read.port = self.port(value),
                "tls" => read.tls = self.read_word(value, "tls", &MailTls::ALL, MailTls::as_str),
                "from" => read.from = self.string(value).map(str::to_owned),
                "recipients" => {
                    let expected = "a list of addresses: [\"me@example.org\"]";
                    read.recipients = self.strings(value, expected).unwrap_or_default();
                }
                "user" => read.user = self.string(value).map(str::to_owned),
                "password_env" => read.password_env = self.secret_variable(value, "password_env"),
                "command" => read.command = self.string(value).map(str::to_owned),
                "env" => {
                    read.env = self.strings(value, "a list of names: [\"DISPLAY\"]").unwrap_or_default();
                }
                other => unreachable!("{other} is in the list of keys"),
            }
        }
        read
    }

    fn port(&mut self, value: &Value<'_>) -> Option<u16> {
        let port = self.count(value)?;
        let port = u16::try_from(port).ok();
        if port.is_none() {
            self.wrong_type(value, "a port from 1 to 65535");
        }
        port
    }

    fn hours(&mut self, value: &Value<'_>) -> Option<(TimeOfDay, TimeOfDay)> {
        let text = self.string(value)?;
        let hours = parse_hours(text);
        if hours.is_none() {
            let what = format!("expected hours such as \"22:00-08:00\", found {text:?}");
            self.report(value.span(), what, None);
        }
        hours
    }

    /// Reads the form alone: which zones there are, Postgres knows.
    pub(super) fn time_zone(&mut self, value: &Value<'_>) -> Option<String> {
        let text = self.string(value)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        if text.is_empty() || text.len() > 64 || !text.bytes().all(is_plain) {
            let what = format!("expected the name of a time zone such as \"Europe/Berlin\", found {text:?}");
            self.report(value.span(), what, None);
            return None;
        }
        Some(text.to_owned())
    }

    fn message_events(&mut self, value: &Value<'_>) -> Option<BTreeSet<MessageEvent>> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_type(value, "a list of events: [\"approval.opened\"]");
            return None;
        };
        Some(
            array
                .iter()
                .filter_map(|entry| self.read_word(entry, "on", &MessageEvent::ALL, MessageEvent::as_str))
                .collect(),
        )
    }

    pub(super) fn web_address(&mut self, value: &Value<'_>) -> Option<String> {
        let url = self.string(value)?;
        if let Some(wrong) = wrong_web_address(url) {
            self.report(value.span(), wrong.to_owned(), None);
            return None;
        }
        Some(url.to_owned())
    }
}

impl Read {
    /// Makes the target of its parts, or says what it lacks.
    fn target(&self) -> Result<ChannelTarget, String> {
        let Some(to) = self.to else {
            return Err(format!("needs `to`: one of {}", ChannelTarget::WORDS.join(", ")));
        };
        let shape = match to {
            "exec" => {
                let command = self.command.clone().filter(|command| !command.trim().is_empty());
                let command = command.ok_or("needs `command`")?;
                return Ok(ChannelTarget::Exec { command, env: self.env.clone() });
            }
            "desktop" => return Ok(ChannelTarget::Desktop),
            "smtp" => return self.mail(),
            "slack" => WebShape::Slack,
            _ => WebShape::Standard,
        };
        let address = match (&self.url, &self.url_env) {
            (Some(url), None) => WebAddress::Given(url.clone()),
            (None, Some(name)) => WebAddress::Variable(name.clone()),
            (Some(_), Some(_)) | (None, None) => {
                return Err("needs `url` or `url_env`, one of them".to_owned());
            }
        };
        if shape == WebShape::Slack && self.secret_env.is_some() {
            return Err("is for Slack, which takes no signature: remove `secret_env`".to_owned());
        }
        Ok(ChannelTarget::Web {
            shape,
            address,
            secret_env: self.secret_env.clone(),
            allow_private: self.allow_private,
        })
    }

    fn hours(&self) -> Result<Option<Quiet>, String> {
        match (self.quiet, self.quiet_zone.clone()) {
            (Some((begin, end)), Some(zone)) => {
                Ok(Some(Quiet { begin, end, zone, urgent: self.urgent.clone().unwrap_or_default() }))
            }
            (None, None) if self.urgent.is_none() => Ok(None),
            (Some(_), None) => Err("needs `quiet_zone` with `quiet`, such as \"Europe/Berlin\"".to_owned()),
            (None, _) => {
                Err("needs `quiet` with `quiet_zone` and `urgent`, such as \"22:00-08:00\"".to_owned())
            }
        }
    }

    fn mail(&self) -> Result<ChannelTarget, String> {
        let (Some(server), Some(from)) = (self.server.clone(), self.from.clone()) else {
            return Err("needs `server` and `from`".to_owned());
        };
        if self.recipients.is_empty() {
            return Err("needs `recipients`".to_owned());
        }
        if self.user.is_some() != self.password_env.is_some() {
            return Err("needs `user` and `password_env` together".to_owned());
        }
        let mail = MailConfig {
            server,
            port: self.port,
            tls: self.tls.unwrap_or_default(),
            from,
            recipients: self.recipients.clone(),
            user: self.user.clone(),
            password_env: self.password_env.clone(),
        };
        Ok(ChannelTarget::Mail { mail, allow_private: self.allow_private })
    }
}
