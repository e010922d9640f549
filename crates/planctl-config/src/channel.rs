//! Channels on which people get messages: where each leads, and the variables that hold its secrets.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// How long one try may take, where nothing is said.
pub const CHANNEL_TIMEOUT: Duration = Duration::from_secs(10);

/// One channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelConfig {
    /// Where it leads.
    pub to: ChannelTarget,
    /// The events that it carries.
    pub on: BTreeSet<MessageEvent>,
    /// How long one try may take.
    pub timeout: Duration,
    /// The address under which people reach the daemon's page, for links to it.
    pub page: Option<String>,
    /// When messages are held, but for urgent ones.
    pub quiet: Option<Quiet>,
}

/// Hours of each day in which a channel is quiet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quiet {
    /// When they begin.
    pub begin: TimeOfDay,
    /// When they end; where that is earlier, on the next day.
    pub end: TimeOfDay,
    /// The name of the time zone, such as `Europe/Berlin`.
    pub zone: String,
    /// The events that are told all the same.
    pub urgent: BTreeSet<MessageEvent>,
}

/// A time of day to the minute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeOfDay {
    minutes: u16,
}

impl TimeOfDay {
    fn parse(text: &str) -> Option<TimeOfDay> {
        let (hours, minutes) = text.split_once(':')?;
        let number = |digits: &str, most: u16| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|number: &u16| is_number && *number <= most)
        };
        Some(TimeOfDay { minutes: number(hours, 23)? * 60 + number(minutes, 59)? })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

/// Reads hours such as `22:00-08:00`.
pub(crate) fn parse_hours(text: &str) -> Option<(TimeOfDay, TimeOfDay)> {
    let (begin, end) = text.split_once('-')?;
    let hours = (TimeOfDay::parse(begin.trim())?, TimeOfDay::parse(end.trim())?);
    (hours.0 != hours.1).then_some(hours)
}

/// Where a channel leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChannelTarget {
    /// A request of HTTP.
    Web {
        /// The form of its body.
        shape: WebShape,
        /// Where it is sent.
        address: WebAddress,
        /// The variable that holds the secret of its signature.
        secret_env: Option<String>,
        /// Says that it may be sent to this machine and to private networks.
        allow_private: bool,
    },
    /// Mail.
    Mail {
        /// The server and the addresses.
        mail: MailConfig,
        /// Says that the server may be on this machine or in a private network.
        allow_private: bool,
    },
    /// The desktop on which the daemon runs.
    Desktop,
    /// A shell command, which reads the message on its input.
    Exec {
        /// The command.
        command: String,
        /// Variables that it gets of planctl's own.
        env: Vec<String>,
    },
}

/// How mail is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailConfig {
    /// The host of the server that takes it.
    pub server: String,
    /// The port, where it is not the usual one.
    pub port: Option<u16>,
    /// How the connection is encrypted.
    pub tls: MailTls,
    /// The sender.
    pub from: String,
    /// Those who get it.
    pub recipients: Vec<String>,
    /// The name to log in with.
    pub user: Option<String>,
    /// The variable that holds the password.
    pub password_env: Option<String>,
}

impl MailConfig {
    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            MailTls::Wrapped => 465,
            MailTls::StartTls => 587,
            MailTls::None => 25,
        })
    }
}

/// How a connection for mail is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MailTls {
    /// From the first byte.
    Wrapped,
    /// After a greeting, and never without.
    #[default]
    StartTls,
    /// Not at all.
    None,
}

impl MailTls {
    /// All of them.
    pub const ALL: [MailTls; 3] = [MailTls::StartTls, MailTls::Wrapped, MailTls::None];

    /// Returns the word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            MailTls::Wrapped => "tls",
            MailTls::StartTls => "starttls",
            MailTls::None => "none",
        }
    }
}

/// The form of a request's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WebShape {
    /// That of Standard Webhooks.
    Standard,
    /// That of Slack's incoming webhooks, which others take as well.
    Slack,
}

/// The address of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WebAddress {
    /// This one.
    Given(String),
    /// The value of this variable, of an address that is a secret itself.
    Variable(String),
}

impl ChannelTarget {
    /// The words of the configuration.
    pub const WORDS: [&str; 5] = ["webhook", "slack", "smtp", "desktop", "exec"];

    /// Returns the word of the configuration.
    pub fn as_str(&self) -> &'static str {
        match self {
            ChannelTarget::Web { shape: WebShape::Standard, .. } => "webhook",
            ChannelTarget::Web { shape: WebShape::Slack, .. } => "slack",
            ChannelTarget::Mail { .. } => "smtp",
            ChannelTarget::Desktop => "desktop",
            ChannelTarget::Exec { .. } => "exec",
        }
    }
}

/// The events that people get messages about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MessageEvent {
    /// An ask waits for a person.
    ApprovalOpened,
    /// It still waits.
    ApprovalReminder,
    /// It was answered or taken back.
    ApprovalDecided,
    /// A run is done.
    RunDone,
    /// A run failed.
    RunFailed,
    /// A run was cancelled.
    RunCancelled,
    /// Most of a run's budget is used.
    BudgetNotice,
    /// Work waits for a role that nobody serves.
    WorkerNoneForRole,
    /// Somebody tries the channel.
    Test,
}

impl MessageEvent {
    /// Those that a channel may be for; each gets a test.
    pub const ALL: [MessageEvent; 8] = [
        MessageEvent::ApprovalOpened,
        MessageEvent::ApprovalReminder,
        MessageEvent::ApprovalDecided,
        MessageEvent::RunDone,
        MessageEvent::RunFailed,
        MessageEvent::RunCancelled,
        MessageEvent::BudgetNotice,
        MessageEvent::WorkerNoneForRole,
    ];

    /// Returns its name, which is the `type` of a webhook.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageEvent::ApprovalOpened => "approval.opened",
            MessageEvent::ApprovalReminder => "approval.reminder",
            MessageEvent::ApprovalDecided => "approval.decided",
            MessageEvent::RunDone => "run.done",
            MessageEvent::RunFailed => "run.failed",
            MessageEvent::RunCancelled => "run.cancelled",
            MessageEvent::BudgetNotice => "budget.notice",
            MessageEvent::WorkerNoneForRole => "worker.none_for_role",
            MessageEvent::Test => "test",
        }
    }
}

impl fmt::Display for MessageEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says what is wrong with the address of a channel, without repeating it: a secret may stand in it.
pub fn wrong_web_address(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return Some("an address begins with https:// or http://") };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("an address has a host and no blanks");
    }
    host.contains('@').then_some("an address has no login; a secret one stands in a variable: url_env")
}
