//! Workers and the network, with real servers, `curl`, and the proxy between them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use libtest_mimic::Trial;
use planctl_engine::{AgentSaid, Tier};
use planctl_harness::{Agent, Isolation, Program, Reach};

use super::agents::Place;
use super::sandbox::offered;
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        listed_hosts_are_reached_through_the_proxy_and_no_others,
        a_request_names_the_server_that_it_goes_to,
        no_name_leads_to_this_machine_unless_its_address_is_listed,
        without_a_network_nothing_is_reached,
        heads_and_connections_are_bounded,
        below_tier_1b_no_worker_starts_that_may_reach_less_than_the_host,
    ]
}

/// A server on the host's loopback that greets, and tells the heads of the requests that it got.
struct Server {
    port: u16,
    heads: Receiver<String>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, heads) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    match stream.read(&mut byte) {
                        Ok(1) => head.push(byte[0]),
                        Ok(_) | Err(_) => break,
                    }
                }
                if tell.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                    return;
                }
                let greeting = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
                // A caller that is gone needs no greeting.
                stream.write_all(greeting.as_bytes()).ok();
            }
        });
        Server { port, heads }
    }

    fn is_untouched(&self) -> bool {
        self.heads.try_recv().is_err()
    }
}

fn reach(hosts: &[String]) -> Reach {
    Reach::Hosts(hosts.iter().map(|host| host.parse().unwrap()).collect())
}

fn agent(place: &Place, tier: Tier, network: Reach, script: &str) -> Agent {
    let mut agent = place.agent(Program::Shell(format!("export NO_PROXY= no_proxy=\n{script}")));
    agent.isolation = Isolation { tier, ..Isolation::default() };
    agent.network = network;
    agent
}

/// Lets a worker run a script at tier 1b; `None` where this host does not offer it. `NO_PROXY` is empty, so that what is
/// asked of addresses of loopback goes through the proxy too.
fn said(network: Reach, script: &str) -> Option<String> {
    if !offered().contains(&Tier::Namespaces) {
        return None;
    }
    let place = Place::new();
    let agent = agent(&place, Tier::Namespaces, network, script);
    match place.work_with(&agent, &place.assignment("")).said {
        AgentSaid::Reported(report) => Some(report.text.tail),
        said @ (AgentSaid::Asked { .. }
        | AgentSaid::Overran { .. }
        | AgentSaid::Faulted(_)
        | AgentSaid::Released) => panic!("{said:?}"),
    }
}

fn listed_hosts_are_reached_through_the_proxy_and_no_others() {
    let (listed, other) = (Server::start(), Server::start());
    let (a, b) = (listed.port, other.port);
    let script = format!(
        "curl -sS http://127.0.0.1:{a}/x; curl -sS -p http://127.0.0.1:{a}/y
        curl -sS -w '%{{http_code}}\n' http://127.0.0.1:{b}/; curl -sp -w '%{{http_connect}}\n' http://127.0.0.1:{b}/
        curl -s --noproxy '*' http://127.0.0.1:{a}/; echo direct $?
        curl -s --noproxy '*' http://192.0.2.1/; echo away $?"
    );
    let Some(said) = said(reach(&[format!("127.0.0.1:{a}")]), &script) else { return };
    let refusal = format!(
        "planctl: the role `coder` may not reach 127.0.0.1:{b}; to allow it, add \"127.0.0.1:{b}\" to `network` of \
         [roles.coder] in planctl.toml"
    );
    assert_eq!(said, format!("hello\nhello\n{refusal}\n403\n403\ndirect 7\naway 7\n"));
    assert!(other.is_untouched());
    let paths = [(); 2].map(|()| listed.heads.recv().unwrap().lines().next().unwrap().to_owned());
    assert_eq!(paths, ["GET /x HTTP/1.1", "GET /y HTTP/1.1"]);
    assert!(listed.is_untouched(), "nothing else reached it");
}

fn a_request_names_the_server_that_it_goes_to() {
    let server = Server::start();
    let port = server.port;
    let script = format!(
        "curl -sS -H 'Host: evil.example' -H 'Proxy-Authorization: Basic x' http://127.0.0.1:{port}/
        env | grep -i proxy= | sort | tr '\n' ' '"
    );
    let Some(said) = said(reach(&[format!("127.0.0.1:{port}")]), &script) else { return };
    let proxy = "=http://127.0.0.1:3128";
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
        assert!(said.contains(&format!("{name}{proxy} ")), "{name}: {said}");
    }
    let head = server.heads.recv().unwrap().to_ascii_lowercase();
    assert!(head.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{head}");
    assert!(!head.contains("evil.example") && !head.contains("proxy-"), "{head}");
}

fn no_name_leads_to_this_machine_unless_its_address_is_listed() {
    let server = Server::start();
    let port = server.port;
    let script = format!(
        "curl -sS -w '%{{http_code}}\n' http://localhost:{port}/; curl -sp -w '%{{http_connect}}\n' http://localhost:{port}/"
    );
    let name = format!("localhost:{port}");
    let Some(alone) = said(reach(std::slice::from_ref(&name)), &script) else { return };
    assert!(alone.starts_with(&format!("planctl: {name} leads to ")), "{alone}");
    assert!(alone.ends_with("in planctl.toml\n403\n403\n"), "{alone}");
    assert!(server.is_untouched());
    let Some(both) = said(reach(&[name, format!("127.0.0.1:{port}")]), &script) else { return };
    assert_eq!(both, "hello\n200\nhello\n200\n");
}

fn without_a_network_nothing_is_reached() {
    let server = Server::start();
    let port = server.port;
    let script = format!(
        "env | grep -ci proxy=http; tail -n +3 /proc/net/dev | wc -l
        curl -s http://127.0.0.1:{port}/; echo $?; curl -s http://127.0.0.1:3128/; echo $?; curl -s http://192.0.2.1/; echo $?"
    );
    let Some(said) = said(Reach::Nothing, &script) else { return };
    assert_eq!(said, "0\n1\n7\n7\n7\n");
    assert!(server.is_untouched());
}

fn heads_and_connections_are_bounded() {
    // Each of the 64 is told that this is no request for a proxy, so it was taken; one more is not, until they are gone.
    let script = "long=$(printf '%020000d' 0)
        curl -s -o /dev/null -w '%{http_code}\\n' -H \"X: $long\" http://a.example/
        ( for _ in {1..64}; do
            exec {line}<> /dev/tcp/127.0.0.1/3128
            printf 'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' >&$line
            read -r _ status _ <&$line; test $status = 400 || echo $status
          done; curl -s -m 1 http://b.example/; echo $? )
        curl -s -o /dev/null -w '%{http_code}\\n' http://b.example/";
    let Some(said) = said(reach(&["a.example".to_owned()]), script) else { return };
    assert_eq!(said, "431\n28\n403\n");
}

fn below_tier_1b_no_worker_starts_that_may_reach_less_than_the_host() {
    let listed = reach(&["a.example".to_owned()]);
    for tier in [Tier::SameUser, Tier::Landlock] {
        for network in [Reach::Nothing, listed.clone()] {
            let place = Place::new();
            let agent = agent(&place, tier, network, "touch ran");
            let AgentSaid::Faulted(fault) = place.work_with(&agent, &place.assignment("")).said else {
                panic!("{tier}: it ran");
            };
            assert!(fault.message.contains("needs isolation tier 1b"), "{}", fault.message);
            assert!(!place.workspace.path().join("ran").exists(), "{tier}");
        }
    }
}
