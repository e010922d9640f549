//! Reads, resolves and writes whatever text comes, as a DOT file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planctl_lang::Source;
use planctl_lang::workflow::{Language, check};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source::new("plan.dot", text);
    for finding in check(&source, Language::Dot).1 {
        for label in &finding.spans {
            assert!(text.get(label.span.start..label.span.end).is_some(), "{finding:?}");
        }
    }
});
