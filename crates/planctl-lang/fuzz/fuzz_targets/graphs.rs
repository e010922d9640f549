//! Reads, judges and writes any text, as DOT and as JSON; the fuzzer's own limit of time for an input finds costs that grow
//! faster than the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planctl_lang::Source;
use planctl_lang::workflow::{Language, check, to_ascii, to_dot, to_json, to_markdown, to_mermaid};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for language in [Language::Dot, Language::Json] {
        let source = Source::new("plan", text);
        let (workflows, found) = check(&source, language);
        for finding in &found {
            for label in &finding.spans {
                assert!(text.get(label.span.start..label.span.end).is_some(), "{finding:?}");
            }
        }
        for workflow in &workflows {
            to_ascii(workflow);
            to_dot(workflow);
            to_json(workflow);
            to_markdown(workflow);
            to_mermaid(workflow);
        }
    }
});
