//! What holds whatever the text; the property tests and the fuzzer ask the same.

use std::collections::BTreeMap;

use planctl_lang::{
    Facts, Levels, Mark, Reach, Source, annotate, apply_fixes, digest, lint, parse, render_all, show, verify,
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
    assert_eq!(verification.is_verified(), verification.diagnostics.iter().all(|found| !found.is_error()));
    render_all(&verification.diagnostics, &source, true);
    verification.report(&source);
    show(&source, &verification.tree);
    let marks = BTreeMap::from([(1, Mark::Passed), (2, Mark::Skipped), (3, Mark::Working)]);
    let marked = Source::new("plan.md", annotate(&source, "in-progress", &marks));
    assert_eq!(digest(&source), digest(&marked), "P-16 X-17");
    assert_eq!(annotate(&marked, "in-progress", &marks), marked.text());
    let titles = |source: &Source| -> Vec<String> {
        let told = |step: planctl_lang::StepTree| {
            format!("{:?} {:?}", step.title.value, step.task.map(|task| task.value))
        };
        parse(source).0.steps.into_iter().map(told).collect()
    };
    assert_eq!(titles(&source), titles(&marked));
    for reach in [Reach::Safe, Reach::Unsafe] {
        if let Some(mended) = apply_fixes(&source, &verification.diagnostics, reach) {
            verify(&Source::new("plan.md", mended), &facts(), &Levels::default());
        }
    }
}

fn facts() -> Facts {
    Facts { roles: Some(vec!["coder".into(), "reviewer".into()]), ..Facts::default() }
}
