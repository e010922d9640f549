//! A network of hosts on this machine, each a network namespace with a link of its own that can be cut. It needs root.

use std::fs::File;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A bridge of this test alone, at which the test's own process has the first address.
pub struct Network {
    bridge: String,
    subnet: String,
    hosts: Vec<String>,
}

/// One host.
#[derive(Clone)]
pub struct Host {
    pub namespace: String,
    pub address: String,
    /// The end of its link at the bridge.
    link: String,
}

/// Says whether this user may make networks.
pub fn may_make_networks() -> bool {
    rustix::process::geteuid().is_root()
}

fn ip(words: &str) {
    let said = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(said.status.success(), "ip {words}: {}", String::from_utf8_lossy(&said.stderr));
}

impl Network {
    pub fn new() -> Network {
        let own = std::process::id();
        let bridge = format!("pt{own:x}");
        let subnet = format!("10.{}.{}", 64 + own % 128, own / 128 % 256);
        ip(&format!("link add {bridge} type bridge"));
        let network = Network { bridge, subnet, hosts: Vec::new() };
        ip(&format!("addr add {}/24 dev {}", network.own_address(), network.bridge));
        ip(&format!("link set {} up", network.bridge));
        network
    }

    /// Returns the address of the test's own process.
    pub fn own_address(&self) -> String {
        format!("{}.1", self.subnet)
    }

    /// Adds a host with the next address.
    pub fn host(&mut self) -> Host {
        let number = self.hosts.len() + 2;
        let host = Host {
            namespace: format!("{}n{number}", self.bridge),
            address: format!("{}.{number}", self.subnet),
            link: format!("{}v{number}", self.bridge),
        };
        let (namespace, link) = (&host.namespace, &host.link);
        ip(&format!("netns add {namespace}"));
        self.hosts.push(namespace.clone());
        ip(&format!("link add {link} type veth peer name eth0 netns {namespace}"));
        ip(&format!("link set {link} master {}", self.bridge));
        ip(&format!("link set {link} up"));
        ip(&format!("-n {namespace} addr add {}/24 dev eth0", host.address));
        ip(&format!("-n {namespace} link set eth0 up"));
        ip(&format!("-n {namespace} link set lo up"));
        host
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in &self.hosts {
            Command::new("ip").args(["netns", "del", namespace]).status().ok();
        }
        Command::new("ip").args(["link", "del", &self.bridge]).status().ok();
    }
}

impl Host {
    /// Returns the words by which a program is started on it.
    pub fn through(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.namespace]
    }

    /// Returns what moves a thread to it.
    pub fn enter(&self) -> impl FnOnce() + Send + 'static {
        let namespace = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
        move || {
            use std::os::fd::AsFd as _;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        }
    }

    pub fn cut(&self) {
        ip(&format!("link set {} down", self.link));
    }

    pub fn mend(&self) {
        ip(&format!("link set {} up", self.link));
    }
}
