//! Properties of any text; the property tests and the fuzzer ask the same.

use std::collections::BTreeMap;

use planctl_lang::{
    Code, Facts, Levels, Mark, PlanTree, Reach, Source, annotate, apply_fixes, digest, format, lint, parse,
    render_all, verify,
};

/// Fails where something that holds for every text does not hold for this one.
pub fn sound(text: &str) {
    let source = Source::new("plan.md", text);
    let verification = verify(&source, &facts(), &Levels::default());
    // Verification cuts places to the text; they have to be right before that.
    let (tree, mut found) = parse(&source);
    found.extend(lint(&source, &tree, &facts()));
    for diagnostic in &found {
        for label in &diagnostic.spans {
            assert!(text.get(label.span.start..label.span.end).is_some(), "{diagnostic:?}");
        }
        for edit in diagnostic.fix.iter().flat_map(|fix| &fix.edits) {
            assert!(text.get(edit.span.start..edit.span.end).is_some(), "{diagnostic:?}");
        }
    }
    assert!(
        verification.diagnostics.iter().all(|found| found.code != Code::P301),
        "a list of steps is a graph"
    );
    assert_eq!(verification.is_verified(), verification.diagnostics.iter().all(|found| !found.is_error()));
    render_all(&verification.diagnostics, &source, true);
    for finding in &verification.diagnostics {
        finding.render_within(&source, false, 40);
    }
    verification.report(&source);
    verification.shown(&source);
    let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Skipped), (3, Mark::Working)]);
    let marked = Source::new("plan.md", annotate(&source, "in-progress", &marks));
    assert_eq!(digest(&source), digest(&marked), "P-16 X-17");
    assert_eq!(annotate(&marked, "in-progress", &marks), marked.text());
    let titles = |source: &Source| -> Vec<String> {
        let told = |step: planctl_lang::StepTree| {
            format!("{:?} {:?}", step.node.step_title(), step.node.task.as_ref().map(|task| &task.value))
        };
        parse(source).0.steps.into_iter().map(told).collect()
    };
    assert_eq!(titles(&source), titles(&marked));
    formatted(text);
    for reach in [Reach::Safe, Reach::Unsafe] {
        if let Some(mended) = apply_fixes(&source, &verification.diagnostics, reach) {
            verify(&Source::new("plan.md", mended), &facts(), &Levels::default());
        }
    }
}

/// Fails where formatting changes what a text means, loses a line, or would go on changing it.
pub fn formatted(text: &str) {
    let source = Source::new("plan.md", text);
    let formatted = Source::new("plan.md", format(&source));
    assert_eq!(format(&formatted), formatted.text(), "formatted twice: {text:?}");
    let told = |source: &Source| {
        let (tree, mut found) = parse(source);
        found.extend(lint(source, &tree, &facts()));
        let codes = found.iter().map(|found| (found.code, found.level));
        let mut codes: Vec<_> = codes.filter(|(code, _)| !matches!(code, Code::P005 | Code::P020)).collect();
        codes.sort_unstable();
        (tree, codes)
    };
    let ((old, found), (new, left)) = (told(&source), told(&formatted));
    assert_eq!(found, left, "{text:?}\nbecomes\n{:?}", formatted.text());
    assert_eq!(without_places(&old), without_places(&new), "{text:?}");
    let graph = |source| verify(source, &facts(), &Levels::default()).graph;
    assert_eq!(graph(&source), graph(&formatted), "{text:?}");
    assert_eq!(words(text), words(formatted.text()), "{text:?}");
}

// The words of a text in any order, less those that planctl's form has of its own: the fence's tag, `Step` before a
// number, and an exit code of 0.
fn words(text: &str) -> BTreeMap<String, usize> {
    const OWN: [&str; 7] = ["shell", "sh", "bash", "step", "exit", "code", ""];
    let mut words = BTreeMap::new();
    let lower = text.to_lowercase();
    for word in lower.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.trim_start_matches('0');
        if !OWN.contains(&word) {
            *words.entry(word.to_owned()).or_default() += 1;
        }
    }
    words
}

// The tree as text, without the places of things: an exit code that is left out means 0.
fn without_places(tree: &PlanTree) -> String {
    let mut tree = tree.clone();
    for step in &mut tree.steps {
        step.unread.sort_unstable();
        step.node.attributes.expect_exit = Default::default();
        if let Some(contract) = &mut step.node.contract {
            contract.line_starts.clear();
            let zero = planctl_lang::Spanned::new(0, planctl_lang::Span::default());
            contract.exit_code.get_or_insert(zero);
        }
    }
    let drawn = format!("{tree:?}");
    let mut pieces = drawn.split("Span { start: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |told, piece| told + piece.split_once(" }").map_or(piece, |(_, rest)| rest))
}

fn facts() -> Facts {
    Facts { roles: Some(vec!["coder".into(), "reviewer".into()]), ..Facts::default() }
}
