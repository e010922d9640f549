//! For any text: no panic, every place inside the text, linear time, and marks that never change the digest.

use std::time::Duration;

use planctl_lang::{Source, verify};
use proptest::prelude::*;

use crate::sound::sound;

/// Enough for every build; a build with `PLANCTL_PROPERTY_CASES` set plays more.
const CASES: u32 = match option_env!("PLANCTL_PROPERTY_CASES") {
    None => 400,
    Some(_) => 4_000,
};

const SEEDS: [&str; 4] = [
    crate::sample::PLAN,
    include_str!("../fixtures/fix-auth-timeout.md"),
    include_str!("../fixtures/extract-config.md"),
    include_str!("../fixtures/migrate-httpx.md"),
];

/// A cut, a doubled, a swapped or an inserted piece.
fn mutate(text: &str, at: usize, length: usize, what: u8, piece: &str) -> String {
    let mut begin = at % (text.len() + 1);
    while !text.is_char_boundary(begin) {
        begin -= 1;
    }
    let mut end = (begin + length).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let (before, middle, after) = (&text[..begin], &text[begin..end], &text[end..]);
    match what % 4 {
        0 => format!("{before}{after}"),
        1 => format!("{before}{middle}{middle}{after}"),
        2 => format!("{before}{piece}{after}"),
        _ => format!("{before}{piece}{middle}{after}"),
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "```",
        "~~~\n",
        "```shell\n",
        "**",
        ":**",
        "**task:**",
        "### 1. ",
        "### N+1. ",
        "## Steps\n",
        "## Flow\n",
        "---\n",
        "exit_code == ",
        "\r\n",
        "\t",
        "\0",
        "\u{202e}",
        "✅ ",
        "- file:",
        "$(",
        "<<EOF\n",
        "'",
        "\"",
        "\\",
        "> ",
        "    ",
        "<!-- ",
        "é",
        "retry(",
        "**contract:**\n```\n",
        "**status:** done\n",
        "status:",
        "# ",
        "\u{feff}",
        "⚠\u{fe0f}",
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in "\\PC{0,400}") {
        sound(&text);
    }

    #[test]
    fn any_lines_are_read(pieces in proptest::collection::vec(pieces(), 0..60)) {
        sound(&pieces.concat());
        sound(&format!("---\ntype: plan\n---\n# T\n## Steps\n### 1. One\n{}", pieces.join("\n")));
    }

    #[test]
    fn any_mutated_plan_is_read(
        seed in 0..SEEDS.len(),
        edits in proptest::collection::vec((any::<usize>(), 0..80_usize, any::<u8>(), pieces()), 1..6),
    ) {
        let mut text = SEEDS[seed].to_owned();
        for (at, length, what, piece) in edits {
            text = mutate(&text, at, length, what, &piece);
        }
        sound(&text);
    }
}

/// Returns how long this thread has worked, without other work of the machine.
pub fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().expect("a thread has not worked for less than nothing")
}

#[test]
fn the_time_grows_with_the_text_and_no_faster() {
    let plan = |steps: usize| {
        let head = &crate::sample::PLAN[..crate::sample::PLAN.find("### 1.").expect("a step")];
        let body = |number: usize| {
            format!(
                "### {number}. Step\n\n**target:** coder\n**subscriptions:**\n- file:out/{}.txt\n\n**task:**\nWrite `out/{number}.txt`.\n\n\
                 **contract:**\n```shell\ntest -f out/{number}.txt\n```\nexit_code == 0\n**on_fail:** escalate\n\n",
                number.saturating_sub(1)
            )
        };
        head.to_owned() + &(1..=steps).map(body).collect::<String>()
    };
    let facts = |source: &Source| {
        let wants = planctl_lang::read(source).wants();
        let missing = |path| (path, planctl_lang::FileFact::Missing);
        planctl_lang::Facts {
            files: wants.files.into_iter().map(missing).collect(),
            ..crate::sample::facts()
        }
    };
    let time = |steps: usize| {
        let source = Source::new("plan.md", plan(steps));
        let facts = facts(&source);
        let began = worked();
        let found = verify(&source, &facts, &planctl_lang::Levels::default()).diagnostics;
        let took = worked().saturating_sub(began);
        assert!(
            found.iter().all(|found| found.step.as_ref().is_none_or(|step| step.number == "1")),
            "{:?}",
            found.last()
        );
        took
    };
    time(50);
    // The best of three, since other work on the machine only ever adds.
    let best = |steps: usize| (0..3).map(|_| time(steps)).min().unwrap_or_default();
    let (small, large) = (best(250), best(2_500));
    assert!(large < small * 30, "250 steps: {small:?}, 2,500 steps: {large:?}");
}
