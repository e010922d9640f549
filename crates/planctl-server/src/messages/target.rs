//! Which addresses a message may be sent to: public ones, unless the channel allows private ones (A42).
//!
//! A name is resolved once, every address that it has is looked at, and the connection goes to these addresses, so that a name
//! can't mean one machine when it is looked at and another one when it is used.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::Host;

use super::SendError;

/// Resolves a host.
///
/// # Errors
///
/// Where it leads to this machine or to a private network and may not, and where the name is not known.
pub(super) async fn resolved<S: AsRef<str>>(
    host: Host<S>,
    port: u16,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, SendError> {
    let addresses = match host {
        Host::Ipv4(address) => vec![SocketAddr::from((address, port))],
        Host::Ipv6(address) => vec![SocketAddr::from((address, port))],
        Host::Domain(name) => tokio::net::lookup_host((name.as_ref(), port))
            .await
            .map_err(|_| SendError::retryable("the host's name could not be resolved"))?
            .collect(),
    };
    permitted(addresses, allow_private)
}

/// Refuses a host that is written as an address which is not public.
pub(super) fn refuse_private_number<S>(host: Option<&Host<S>>, allow_private: bool) -> Result<(), SendError> {
    let address: IpAddr = match host {
        Some(Host::Ipv4(address)) => (*address).into(),
        Some(Host::Ipv6(address)) => (*address).into(),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    permitted(vec![(address, 0).into()], allow_private).map(drop)
}

/// Refuses all addresses where one of them is not public.
pub(super) fn permitted(
    addresses: Vec<SocketAddr>,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, SendError> {
    if addresses.is_empty() {
        return Err(SendError::retryable("the host's name has no address"));
    }
    match addresses.iter().find(|address| !is_public(address.ip())) {
        Some(private) if !allow_private => Err(SendError::permanent(format!(
            "refused: the host has the address {}, which is not public (allow_private = true would allow it)",
            private.ip()
        ))),
        Some(_) | None => Ok(addresses),
    }
}

/// Says that an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_own_or_private = matches!(
        (a, b),
        (0 | 10 | 127 | 224.., _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168)
    );
    let is_set_aside = matches!(
        (a, b, c),
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113)
    );
    !is_own_or_private && !is_set_aside
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // An IPv4 address in one of IPv6, and the prefix of translators.
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => embedded(g, h),
        // 6to4 names the IPv4 address of its router.
        (0x2002, ..) => embedded(b, c),
        // Teredo, ORCHID, and what is for documentation.
        (0x2001, 0 | 0x10..=0x2f | 0xdb8, ..) | (0x3fff, 0..=0x0fff, ..) => false,
        // Everything else that is public begins with the bits 001.
        _ => (0x2000..=0x3fff).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    async fn resolved_url(url: &Url, allow_private: bool) -> Result<Vec<SocketAddr>, SendError> {
        resolved(url.host().unwrap(), 443, allow_private).await
    }

    /// Every way to write an address that is not public.
    const REFUSED: [&str; 46] = [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.255.255.254/",
        "https://0.0.0.0/",
        "https://0/",
        "https://0.1.2.3/",
        "https://10.0.0.1/",
        "https://10.255.255.255/",
        "https://167772161/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.168.0.1/",
        "https://0xc0a80001/",
        "https://169.254.169.254/",
        "https://2852039166/",
        "https://0xa9.0xfe.0xa9.0xfe/",
        "https://100.64.0.1/",
        "https://100.127.255.255/",
        "https://192.0.0.1/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        "https://198.51.100.7/",
        "https://203.0.113.7/",
        "https://224.0.0.1/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::127.0.0.1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001::1]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[ff02::1]/",
    ];

    #[tokio::test]
    async fn a42_no_form_of_an_address_leads_to_this_machine_or_a_private_network() {
        for text in REFUSED {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let refused = resolved_url(&url, false).await;
            assert!(refused.is_err_and(|error| error.is_final), "{text}");
            assert!(resolved_url(&url, true).await.is_ok(), "{text}");
        }
        let localhost = Url::parse("https://localhost/").unwrap();
        assert!(resolved_url(&localhost, false).await.is_err(), "a name is looked at as its addresses are");
    }

    #[tokio::test]
    async fn a42_public_addresses_are_taken() {
        for text in [
            "https://1.1.1.1/",
            "https://[2606:4700::1111]/",
            "https://[::ffff:1.1.1.1]/",
            "https://172.32.0.1/",
        ] {
            assert!(resolved_url(&Url::parse(text).unwrap(), false).await.is_ok(), "{text}");
        }
    }

    #[test]
    fn a42_a_name_with_one_private_address_is_refused_whole() {
        let mixed = ["1.1.1.1:443", "10.0.0.1:443"].map(|text| text.parse().unwrap());
        let refused = permitted(mixed.to_vec(), false).unwrap_err();
        assert!(refused.what.contains("10.0.0.1"), "{}", refused.what);
        assert_eq!(permitted(mixed.to_vec(), true).unwrap(), mixed);
    }
}
