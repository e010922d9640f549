//! Reads, judges, draws, marks and mends any bytes, as a plan file; the fuzzer's own limit of time for an input finds costs
//! that grow faster than the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planctl_lang::Source;

#[path = "../../tests/lang/sound.rs"]
mod sound;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("plan.md", bytes.to_vec()) else { return };
    sound::sound(source.text());
});
