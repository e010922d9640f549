//! Mail: a small server of the test takes it, with and without a login.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::receiver::configure;
use crate::support::Place;

/// The lines that the server heard.
type Heard = Arc<Mutex<Vec<String>>>;

/// Begins a server of SMTP on loopback that takes every mail but those to `nobody`.
fn server() -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Heard::default();
    let shared = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            converse(stream.unwrap(), &shared);
        }
    });
    (port, heard)
}

fn converse(mut stream: TcpStream, heard: &Heard) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    stream.write_all(b"220 test ESMTP\r\n").unwrap();
    let mut is_content = false;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or(0) > 0 {
        let said = line.trim_end().to_owned();
        line.clear();
        heard.lock().unwrap().push(said.clone());
        let answer = match (is_content, said.as_str()) {
            (true, ".") => {
                is_content = false;
                "250 taken"
            }
            (true, _) => continue,
            (false, "DATA") => {
                is_content = true;
                "354 go on"
            }
            (false, "QUIT") => "221 bye",
            (false, command) if command.starts_with("EHLO") => "250-test\r\n250-8BITMIME\r\n250 AUTH PLAIN",
            (false, command) if command.starts_with("AUTH") => "235 known",
            (false, command) if command.contains("nobody@") => "550 no such user canary",
            (false, _) => "250 fine",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).unwrap();
    }
}

#[test]
fn a_message_by_mail_has_the_sentence_as_subject_and_a_login_from_a_variable() {
    let place = Place::new();
    let (port, heard) = server();
    let channel = |more: &str| {
        format!(
            "[notify.mail]\nto = \"smtp\"\nserver = \"127.0.0.1\"\nport = {port}\nfrom = \"planctl <planctl@example.org>\"\n{more}"
        )
    };
    let plain = "recipients = [\"ann@example.org\"]\ntls = \"none\"\nallow_private = true\nuser = \"ann\"\npassword_env = \"MAIL_PASSWORD\"\n";
    configure(&place, &channel(plain));
    let variables = [("MAIL_PASSWORD", "canary-password".as_ref())];
    let said = place.start_with(&["notify", "test"], &variables).end();
    assert_eq!((said.code, said.out.as_str()), (0, "mail: delivered: SMTP 250\n"), "{said:?}");
    let lines = heard.lock().unwrap().clone();
    let has = |wanted: &str| lines.iter().any(|line| line.contains(wanted));
    assert!(
        has("RCPT TO:<ann@example.org>") && has("Subject: [planctl] a test of the channel mail"),
        "{lines:?}"
    );
    let login = lines.iter().find_map(|line| line.strip_prefix("AUTH PLAIN ")).unwrap();
    assert_eq!(STANDARD.decode(login).unwrap(), b"\0ann\0canary-password");

    let said = place.planctl(&["notify", "test"]);
    assert!(said.out.contains("MAIL_PASSWORD is not set"), "{said:?}");
    configure(&place, &channel(&plain.replace("ann@", "nobody@")));
    let said = place.start_with(&["notify", "test"], &variables).end();
    assert_eq!((said.code, said.out.as_str()), (1, "mail: failed: SMTP 550\n"), "{said:?}");

    // In clear only where the configuration says so, and to this machine only then.
    let before = heard.lock().unwrap().len();
    configure(&place, &channel("recipients = [\"ann@example.org\"]\ntls = \"none\"\n"));
    assert!(place.planctl(&["notify", "test"]).out.contains("others could read it"));
    configure(&place, &channel("recipients = [\"ann@example.org\"]\n"));
    assert!(place.planctl(&["notify", "test"]).out.contains("is not public"));
    assert_eq!(heard.lock().unwrap().len(), before);
    // A server that offers no TLS gets no mail where TLS is asked for.
    configure(&place, &channel("recipients = [\"ann@example.org\"]\nallow_private = true\n"));
    let said = place.planctl(&["notify", "test"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!heard.lock().unwrap()[before..].iter().any(|line| line.starts_with("MAIL")), "{said:?}");
}
