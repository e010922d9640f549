//! Reads, judges, draws, marks and mends whatever bytes come, as a plan file.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use planctl_lang::{Facts, Levels, Source, verify};

#[path = "../../tests/lang/sound.rs"]
mod sound;

/// What a byte may cost at most; a text is small here, so something that grows with its square shows.
const COST: Duration = Duration::from_micros(20);

/// What every text may cost, however short; other work on the machine is part of it.
const COST_MIN: Duration = Duration::from_millis(500);

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("plan.md", bytes.to_vec()) else { return };
    let began = Instant::now();
    verify(&source, &Facts::default(), &Levels::default());
    let took = began.elapsed();
    let most = COST_MIN + COST * u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    assert!(took < most, "{} bytes took {took:?}", bytes.len());
    sound::sound(source.text());
});
