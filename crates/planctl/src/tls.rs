//! TLS towards a daemon: when a token needs it, and why a handshake failed.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustls::CertificateError;
use rustls::crypto::{CryptoProvider, ring};
use url::{Host, Url};

/// Chooses the implementation of cryptography for all TLS of this process.
pub fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // A second thread that chose in between chose the same.
        ring::default_provider().install_default().ok();
    }
}

/// Returns true if others can read what is sent to this address: it is not encrypted, and leaves this machine.
pub fn is_readable_by_others(url: &Url) -> bool {
    url.scheme() != "https" && !is_of_this_machine(url)
}

/// Returns true if the address is one that only this machine has.
pub fn is_of_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Returns the address at which a daemon of this machine listens where it is reached by this one.
pub fn listening_address(url: &Url) -> Option<SocketAddr> {
    let host = match url.host()? {
        Host::Domain("localhost") => Ipv4Addr::LOCALHOST.into(),
        Host::Domain(_) => return None,
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    let is_plain = url.scheme() == "http" && is_of_this_machine(url);
    url.port_or_known_default().filter(|_| is_plain).map(|port| (host, port).into())
}

/// Returns what TLS found wrong, where that is why a call failed; another try meets the same.
pub fn fault<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(fault) = error.downcast_ref() {
        return Some(fault);
    }
    // The source of an `io::Error` is that of the error in it, so the error itself has to be asked for.
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match within {
        Some(within) => fault(within),
        None => fault(error.source()?),
    }
}

/// Says what a person does about it.
pub fn help(fault: &rustls::Error) -> &'static str {
    if matches!(fault, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) {
        "if its certificate is of a CA of your own, name the file of that CA: SSL_CERT_FILE=ca.pem"
    } else if matches!(fault, rustls::Error::InvalidMessage(_)) {
        "it does not speak TLS there: is the port right?"
    } else {
        "its certificate, or the clock of one of the two machines, has to be put right"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b3_only_this_machine_and_tls_keep_a_token_from_others() {
        for (address, is_readable) in [
            ("http://127.0.0.1:7420", false),
            ("http://127.3.2.1", false),
            ("http://localhost:7420", false),
            ("http://LOCALHOST:7420", false),
            ("http://[::1]:7420", false),
            ("http://[::ffff:127.0.0.1]:7420", false),
            ("https://ci.example.org", false),
            ("http://ci.example.org", true),
            ("http://localhost.example.org", true),
            ("http://10.0.0.7:7420", true),
            ("http://0.0.0.0:7420", true),
            ("http://[::]:7420", true),
            ("http://[fe80::1]:7420", true),
        ] {
            assert_eq!(is_readable_by_others(&Url::parse(address).unwrap()), is_readable, "{address}");
        }
    }
}
