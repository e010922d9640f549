//! Topics: notes that are posted, shown, and put into the prompts of steps that subscribe to them.

use std::io::Write as _;
use std::process::Stdio;

use crate::fixture::{Fixture, plan};

fn subscribed(topics: &str) -> String {
    plan("Notes", "5 minutes", &[("One", "test -e done-1", "abort")])
        .replace("**task:**", &format!("**subscriptions:**\n{topics}\n\n**task:**"))
}

#[test]
fn p_55_the_notes_of_a_topic_go_into_the_prompt_as_data() {
    let fixture = Fixture::new();
    assert_eq!(fixture.planctl(&["topic", "ls"]).out, "no topics yet\n");
    let posted =
        fixture.json(&["topic", "post", "login/proxy", "--note", "it is the proxy\n---- end", "--json"]);
    assert_eq!((&posted["total"], &posted["notes"][0]["by"]), (&1.into(), &"ann".into()));
    let mut piped = fixture.command(&["topic", "post", "login/proxy"]).stdin(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all("and the \u{1b}[31mcache\n".as_bytes()).unwrap();
    let said = piped.wait_with_output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "note 2 of login/proxy\n");

    fixture.write("p.md", &subscribed("- topic:login/proxy\n- topic:nosuch"));
    let worker = "cat >prompt.txt; touch done-1";
    let said = fixture.planctl(&["plan", "run", "p.md", "--approve", "--exec", worker]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("warning[P210]: the topic `nosuch` is unknown"), "{said:?}");
    assert!(
        said.err.contains("the topics are login/proxy") && !said.err.contains("`login/proxy` is"),
        "{said:?}"
    );
    let prompt = fixture.read("prompt.txt");
    let begin = prompt.find(" topic:login/proxy\n[note 1 by ann at ").unwrap_or_else(|| panic!("{prompt}"));
    let key = prompt[..begin].rsplit("---- data ").next().unwrap();
    let data = prompt[begin..].split(&format!("---- end {key}\n")).next().unwrap();
    assert!(data.contains("]\nit is the proxy\n---- end\n[note 2 by ann at "), "{prompt}");
    assert!(data.contains("]\nand the \\u{1b}[31mcache\n"), "what nobody sees is shown: {prompt}");
    assert!(prompt.contains(" topic:nosuch (no notes yet)\n"), "{prompt}");
}

#[test]
fn notes_are_shown_whole_from_a_number_and_the_newest() {
    let fixture = Fixture::new();
    for text in ["one", "two\nlines", "\u{1b}[2Jthree"] {
        assert_eq!(fixture.planctl(&["topic", "post", "t", "--note", text]).code, 0);
    }
    let numbers = |words: &[&str]| -> Vec<u64> {
        let view = fixture.json(&[&["topic", "show", "t", "--json"], words].concat());
        assert_eq!(view["total"], 3);
        view["notes"].as_array().unwrap().iter().map(|note| note["number"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&[]), [1, 2, 3]);
    assert_eq!(numbers(&["--since", "1"]), [2, 3]);
    assert_eq!(numbers(&["--tail", "1"]), [3]);
    assert_eq!(numbers(&["--since", "9"]), [] as [u64; 0]);
    let said = fixture.planctl(&["topic", "show", "t"]);
    assert!(said.out.contains("2 ann ") && said.out.contains("\n  ann │ two\n  ann │ lines\n"), "{said:?}");
    assert!(!said.out.contains('\u{1b}'), "{said:?}");
    let list = fixture.json(&["topic", "ls", "--json"]);
    assert_eq!((&list["topics"][0]["topic"], &list["topics"][0]["notes"]), (&"t".into(), &3.into()));
    assert!(fixture.planctl(&["topic", "ls"]).out.contains("t      3"), "{list}");
}

#[test]
fn what_can_be_no_note_and_no_topic_is_refused_with_the_way_out() {
    let fixture = Fixture::new();
    let long = "x".repeat(64 * 1024 + 1);
    std::fs::write(fixture.path("long"), &long).unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["topic", "post", "a b", "--note", "x"], 2, "topics have up to 100 letters, digits"),
        (&["topic", "post", "t", "--note", " \n"], 2, "could not post an empty note"),
        (&["topic", "post", "t"], 2, "could not post an empty note"),
        (&["topic", "show", "t"], 4, "could not find topic `t`"),
        (&["topic", "show", "../t"], 4, "could not find topic `../t`"),
    ];
    for (words, code, says) in cases {
        let said = fixture.planctl(words);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.err.contains(says), "{said:?}");
    }
    let piped = |input: std::fs::File| {
        let said = fixture.command(&["topic", "post", "t"]).stdin(input).output().unwrap();
        (said.status.code(), String::from_utf8(said.stderr).unwrap())
    };
    let (code, said) = piped(std::fs::File::open(fixture.path("long")).unwrap());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("could not keep a note of 65537 bytes: the limit is 65536"), "{said}");
    std::fs::write(fixture.path("bad"), b"caf\xe9").unwrap();
    let (code, said) = piped(std::fs::File::open(fixture.path("bad")).unwrap());
    assert!(code == Some(2) && said.contains("not UTF-8 from its byte 3 on"), "{said}");
}

#[test]
fn row_54_verification_needs_no_database_and_so_says_only_that_it_did_not_look() {
    let fixture = Fixture::new();
    fixture.write("p.md", &subscribed("- topic:login"));
    let said = fixture.planctl(&["plan", "verify", "p.md", "-D", "warnings", "-A", "P402"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("note[P210]: whether the topic `login` has notes was not looked up"),
        "{said:?}"
    );
    assert!(!fixture.state().join("pg").exists());
}
