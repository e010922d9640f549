//! Says what a worker reaches of the network: all that the host does, nothing, or a list of hosts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The ports of a host that is listed without one.
const PORTS: [u16; 2] = [443, 80];
/// The most bytes in a host's name, and in one part of it.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// The hosts that a worker can reach on the network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Reach {
    /// All that the host does.
    #[default]
    Host,
    /// Nothing but what it starts itself.
    Nothing,
    /// These hosts, through a proxy of planctl's.
    Hosts(Vec<HostPattern>),
}

/// As configurations and runs write it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Hosts(Vec<HostPattern>),
}

impl TryFrom<Written> for Reach {
    type Error = String;

    fn try_from(written: Written) -> Result<Reach, String> {
        match written {
            Written::Word(word) => Reach::of_word(&word).ok_or_else(|| format!("{word:?} is not a network")),
            Written::Hosts(hosts) => Ok(Reach::Hosts(hosts)),
        }
    }
}

impl From<Reach> for Written {
    fn from(reach: Reach) -> Written {
        match reach {
            Reach::Host => Written::Word("host".to_owned()),
            Reach::Nothing => Written::Word("none".to_owned()),
            Reach::Hosts(hosts) => Written::Hosts(hosts),
        }
    }
}

impl Reach {
    /// Reads `host` and `none`.
    pub fn of_word(word: &str) -> Option<Reach> {
        match word {
            "host" => Some(Reach::Host),
            "none" => Some(Reach::Nothing),
            _ => None,
        }
    }

    /// Says that it is all that the host reaches.
    pub fn is_host(&self) -> bool {
        *self == Reach::Host
    }

    /// Says it in a few words for people; `None` where it is the host's.
    pub fn describe(&self) -> Option<String> {
        match self {
            Reach::Host => None,
            Reach::Nothing => Some("no network".to_owned()),
            Reach::Hosts(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                Some(format!("network: {}", hosts.join(", ")))
            }
        }
    }
}

/// A host of a list, or all beneath a name: `api.example.com`, `*.example.org`, `example.net:8443`, `[::1]:8080`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    host: Listed,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Listed {
    Name(String),
    Beneath(String),
    Address(IpAddr),
}

/// Why a text can't be a host of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoHost {
    /// It has more than a host and a port.
    #[error("it has a scheme, a path or a login")]
    Address,
    /// Its port is no number from 1 to 65535.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// A star stands elsewhere than in `*.` at its beginning.
    #[error("a `*` can only stand for whole names before a dot, as in \"*.example.org\"")]
    Star,
    /// Its name has characters that names of hosts do not have.
    #[error("a name has ASCII letters, digits, `-`, `_` and dots; write others in their `xn--` form")]
    Characters,
    /// Its name is empty, too long, or has such a part.
    #[error(
        "a name has parts of 1 to 63 characters between dots, 253 in all, none of which begins or ends with `-`"
    )]
    Length,
    /// It ends as an address does, and is none.
    #[error("it ends in a number, and is not an IP address")]
    Number,
}

impl FromStr for HostPattern {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<HostPattern, NoHost> {
        if text.contains(['/', '@', '?', '#']) {
            return Err(NoHost::Address);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(HostPattern { host: Listed::Address(address.to_canonical()), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port_of(port).ok_or(NoHost::Port)?)),
            Some(_) | None => (text, None),
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match (inner, host.parse::<Ipv4Addr>(), host.strip_prefix("*.")) {
            (Some(inner), _, _) => {
                let address = inner.parse::<Ipv6Addr>().map_err(|_| NoHost::Number)?;
                Listed::Address(IpAddr::V6(address).to_canonical())
            }
            (None, Ok(address), _) => Listed::Address(IpAddr::V4(address)),
            (None, Err(_), Some(beneath)) => Listed::Beneath(name_of(beneath)?),
            (None, Err(_), None) => Listed::Name(name_of(host)?),
        };
        Ok(HostPattern { host, port })
    }
}

fn port_of(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

fn name_of(text: &str) -> Result<String, NoHost> {
    if text.contains('*') {
        return Err(NoHost::Star);
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return Err(NoHost::Characters);
    }
    let is_part = |part: &str| {
        (1..=LABEL_BYTES_MAX).contains(&part.len()) && !part.starts_with('-') && !part.ends_with('-')
    };
    if text.len() > NAME_BYTES_MAX || !text.split('.').all(is_part) {
        return Err(NoHost::Length);
    }
    // Resolvers read `127.1` and `0x7f000001` as addresses.
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NoHost::Number);
    }
    Ok(text.to_ascii_lowercase())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Listed::Name(name) => f.write_str(name)?,
            Listed::Beneath(name) => write!(f, "*.{name}")?,
            Listed::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Listed::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<HostPattern, String> {
        text.parse().map_err(|error| format!("{text:?} can't be a host: {error}"))
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> String {
        pattern.to_string()
    }
}

/// A host and a port that somebody wants to reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) host: WantedHost,
    pub(crate) port: u16,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WantedHost {
    Name(String),
    Address(IpAddr),
}

impl Wanted {
    /// Takes a host as the address of a request has it: an address of IPv6 in brackets, a name in any case.
    pub(crate) fn new(host: &str, port: u16) -> Wanted {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = match bare.parse::<IpAddr>() {
            Ok(address) => WantedHost::Address(address.to_canonical()),
            Err(_) => WantedHost::Name(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()),
        };
        Wanted { host, port }
    }

    /// Says whether a list has it. A name is beneath another only with a part of its own before it.
    pub(crate) fn is_listed(&self, hosts: &[HostPattern]) -> bool {
        let is_host = |listed: &Listed| match (listed, &self.host) {
            (Listed::Name(name), WantedHost::Name(wanted)) => name == wanted,
            (Listed::Beneath(name), WantedHost::Name(wanted)) => wanted
                .strip_suffix(name)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|own| !own.is_empty()),
            (Listed::Address(address), WantedHost::Address(wanted)) => address == wanted,
            (Listed::Name(_) | Listed::Beneath(_), WantedHost::Address(_))
            | (Listed::Address(_), WantedHost::Name(_)) => false,
        };
        let is_port = |port: Option<u16>| port.map_or(PORTS.contains(&self.port), |port| port == self.port);
        hosts.iter().any(|pattern| is_host(&pattern.host) && is_port(pattern.port))
    }

    /// Returns what a list has to have for it.
    pub(crate) fn entry(&self) -> String {
        let port = Some(self.port).filter(|port| !PORTS.contains(port));
        match &self.host {
            WantedHost::Address(address) => HostPattern { host: Listed::Address(*address), port }.to_string(),
            WantedHost::Name(name) => HostPattern { host: Listed::Name(name.clone()), port }.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(texts: &[&str]) -> Vec<HostPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_list_has_names_whole_names_beneath_others_and_addresses_at_their_ports() {
        let list = hosts(&["API.example.com", "*.example.org", "example.net:8443", "127.0.0.1:8080", "::1"]);
        for (host, port, is_listed) in [
            ("api.example.com", 443, true),
            ("Api.Example.Com.", 80, true),
            ("api.example.com", 8443, false),
            ("x.api.example.com", 443, false),
            ("xapi.example.com", 443, false),
            ("a.example.org", 443, true),
            ("a.b.example.org", 80, true),
            ("example.org", 443, false),
            (".example.org", 443, false),
            ("badexample.org", 443, false),
            ("example.org.evil.net", 443, false),
            ("example.net", 8443, true),
            ("example.net", 443, false),
            ("127.0.0.1", 8080, true),
            ("127.0.0.1", 443, false),
            ("127.1", 8080, false),
            ("2130706433", 8080, false),
            ("[::ffff:127.0.0.1]", 8080, true),
            ("[::1]", 443, true),
            ("[::2]", 443, false),
        ] {
            assert_eq!(Wanted::new(host, port).is_listed(&list), is_listed, "{host}:{port}");
        }
    }

    #[test]
    fn each_text_that_is_no_host_is_told_why() {
        for (text, why) in [
            ("https://example.com", NoHost::Address),
            ("example.com/path", NoHost::Address),
            ("me@example.com", NoHost::Address),
            ("example.com:0", NoHost::Port),
            ("example.com:65536", NoHost::Port),
            ("example.com:+1", NoHost::Port),
            ("example.com:", NoHost::Port),
            ("*", NoHost::Star),
            ("*.*.example.org", NoHost::Star),
            ("a*.example.org", NoHost::Star),
            ("exämple.org", NoHost::Characters),
            ("a b", NoHost::Characters),
            ("", NoHost::Length),
            ("a..b", NoHost::Length),
            ("example.com.", NoHost::Length),
            ("-a.example.org", NoHost::Length),
            ("*.", NoHost::Length),
            ("127.1", NoHost::Number),
            ("0x7f000001", NoHost::Number),
            ("1.2.3.400", NoHost::Number),
            ("[::g]:80", NoHost::Number),
            ("[127.0.0.1]:80", NoHost::Number),
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(why), "{text}");
        }
    }

    #[test]
    fn an_entry_reads_back_as_what_was_wanted() {
        for (host, port, entry) in [
            ("a.example.org", 443, "a.example.org"),
            ("a.example.org", 8443, "a.example.org:8443"),
            ("[::1]", 8080, "[::1]:8080"),
            ("10.0.0.1", 80, "10.0.0.1"),
        ] {
            let wanted = Wanted::new(host, port);
            assert_eq!(wanted.entry(), entry);
            assert!(wanted.is_listed(&hosts(&[entry])), "{entry}");
        }
    }

    #[test]
    fn it_is_stored_as_it_is_written() {
        for text in ["\"host\"", "\"none\"", "[\"*.example.org\",\"[::1]:8080\"]"] {
            let reach: Reach = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&reach).unwrap(), text);
        }
        assert!(serde_json::from_str::<Reach>("\"some\"").is_err());
        assert!(serde_json::from_str::<Reach>("[\"a b\"]").is_err());
    }
}
