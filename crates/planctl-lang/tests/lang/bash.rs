//! Our reading of contracts against bash's own, over a corpus: where both speak, they agree, but for what is listed.

use std::io::Write;
use std::process::{Command, Stdio};

use planctl_lang::{Code, Facts};

/// Scripts that bash accepts without a word.
const VALID: &str = include_str!("bash/valid.txt");
/// Scripts that bash refuses.
const BROKEN: &str = include_str!("bash/broken.txt");
/// Scripts that bash complains of, with an exit code of 0.
const NOISY: &str = include_str!("bash/noisy.txt");
/// Scripts that bash accepts and then can't run: it does not look into backticks, nor well at `[[`.
const LATE: &str = include_str!("bash/late.txt");

/// How many scripts that bash accepts may be said to be unchecked.
const UNCHECKED_MAX: usize = 2;

fn scripts(corpus: &str) -> Vec<&str> {
    corpus.trim_end_matches('\n').split("\n%%\n").collect()
}

/// Returns the output of `bash -n` and whether it accepts the script, asked as the harness asks it.
fn bash(script: &str) -> (String, bool) {
    let mut child = Command::new("bash")
        .args(["--noprofile", "--norc", "-p", "-n"])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash is there");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(script.as_bytes()).expect("bash reads");
    drop(input);
    let output = child.wait_with_output().expect("bash ends");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

fn codes(script: &str, facts: &Facts) -> Vec<Code> {
    let text = crate::sample::with("test -f one.txt", script);
    crate::sample::found_with(&text, facts).into_iter().map(|found| found.code).collect()
}

/// The facts without bash's word, and those with it.
fn both(script: &str) -> [Facts; 2] {
    let (said, accepts) = bash(script);
    let said = (!accepts || !said.is_empty()).then_some(said);
    let asked = Facts { syntax: [(script.to_owned(), said)].into(), ..crate::sample::facts() };
    [crate::sample::facts(), asked]
}

#[test]
fn the_corpus_is_large_and_bash_says_of_it_what_its_files_say() {
    let all = [(VALID, true, true), (BROKEN, false, false), (NOISY, true, false), (LATE, true, true)];
    let count: usize = all.iter().map(|(corpus, ..)| scripts(corpus).len()).sum();
    assert!(count >= 350, "{count}");
    for (corpus, accepts, is_silent) in all {
        for script in scripts(corpus) {
            let (said, accepted) = bash(script);
            assert_eq!((accepted, said.is_empty()), (accepts, is_silent), "{said}\n{script}");
        }
    }
}

#[test]
fn p_56_what_bash_accepts_is_accepted_or_said_to_be_unchecked() {
    let mut unchecked = Vec::new();
    for script in scripts(VALID).into_iter().chain(scripts(LATE)) {
        for facts in both(script) {
            let codes = codes(script, &facts);
            assert!(!codes.contains(&Code::P101), "we refuse:\n{script}");
            if codes.contains(&Code::P109) && !scripts(LATE).contains(&script) {
                unchecked.push(script);
            }
        }
    }
    unchecked.dedup();
    println!("{} of {} are not checked: {unchecked:#?}", unchecked.len(), scripts(VALID).len());
    assert!(unchecked.len() <= UNCHECKED_MAX, "{unchecked:#?}");
}

#[test]
fn p_56_what_bash_refuses_is_refused_with_and_without_bash() {
    let mut missed = Vec::new();
    for script in scripts(BROKEN).into_iter().chain(scripts(NOISY)) {
        let [alone, asked] = both(script);
        assert!(codes(script, &asked).contains(&Code::P101), "we accept:\n{script}");
        let codes = codes(script, &alone);
        assert!(
            codes.contains(&Code::P101) || codes.contains(&Code::P109) || scripts(BROKEN).contains(&script)
        );
        if !codes.contains(&Code::P101) {
            missed.push(script);
        }
    }
    println!("{} are only known to bash: {missed:#?}", missed.len());
    assert!(missed.len() <= MISSED_MAX, "{missed:#?}");
}

/// How many broken scripts our reader alone may not refuse.
const MISSED_MAX: usize = 8;

#[test]
fn patterns_that_a_script_turns_on_itself_are_no_error() {
    let script = "shopt -s extglob\nls !(*.txt)";
    let [alone, asked] = both(script);
    assert!(asked.syntax.values().all(Option::is_some), "bash -n does not run `shopt`");
    for facts in [alone, asked] {
        assert!(!codes(script, &facts).contains(&Code::P101));
    }
}

#[test]
fn d20_a_word_that_bash_does_not_expect_is_marked_and_a_here_document_without_end_is_named() {
    let refused = |script: &str| {
        let [_, asked] = both(script);
        let text = crate::sample::with("test -f one.txt", script);
        let all = crate::sample::found_with(&text, &asked);
        let refused = all.into_iter().find(|found| found.code == Code::P101).expect("bash refuses it");
        let span = refused.spans[0].span;
        (text[span.start..span.end].to_owned(), refused.spans[0].text.clone())
    };
    for (script, word) in
        [("test -f x\nfi\ntest -f y", "fi"), ("else\ntest -f x", "else"), ("test -f x; }", "}")]
    {
        assert_eq!(
            refused(script),
            (word.to_owned(), "bash does not expect this here".to_owned()),
            "{script}"
        );
    }
    let (_, label) = refused("cat <<EOF\ntest -f x");
    assert_eq!(label, "the here-document does not end: the word that closes it is missing");
}
