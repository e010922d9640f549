//! The catalogue of findings: each code's wrong example has the finding, at the marked place, in every form a file can
//! have; its right one has none; its fix mends it; its explanation is shown; and the pages in docs/diagnostics are true.
//!
//! `PLANCTL_DOCS=write cargo test -p planctl --test catalogue pages` writes the pages anew.

#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect has failed")]

#[path = "catalogue/case.rs"]
mod case;
#[path = "catalogue/forms.rs"]
mod forms;
#[path = "catalogue/pages.rs"]
mod pages;
#[path = "catalogue/place.rs"]
mod place;
#[path = "catalogue/transcripts.rs"]
mod transcripts;
#[path = "catalogue/verified.rs"]
mod verified;

use case::Case;
use forms::Form;
use libtest_mimic::{Arguments, Failed, Trial};
use place::Place;
use planctl_lang::{Code, Severity};

/// Codes that no list of steps can have; that none does is a property test of the language.
const NO_EXAMPLE: &[Code] = &[Code::P301];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for code in Code::ALL.iter().copied() {
        trials.push(trial(code, "explain", explain));
        if NO_EXAMPLE.contains(&code) {
            trials.push(trial(code, "says_why_it_has_no_example", says_why_it_has_no_example));
        } else {
            trials.push(trial(code, "bad", bad));
            trials.push(trial(code, "good", good));
            trials.push(trial(code, "span", span));
            trials.push(trial(code, "fix", fix));
        }
    }
    trials.push(Trial::test("pages::are_up_to_date", || {
        pages::are_up_to_date();
        Ok(())
    }));
    for plan in transcripts::PLANS {
        trials.push(Trial::test(format!("broken::{}", plan.name), || {
            transcripts::is_mended(plan);
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(code: Code, name: &str, test: fn(&Case)) -> Trial {
    let test = move || {
        test(&Case::of(code));
        Ok::<(), Failed>(())
    };
    Trial::test(format!("{code}::{name}"), test)
}

fn bad(case: &Case) {
    let verified = case.verify_bad();
    let drawn = verified.drawn();
    let own = verified.of(case.code);
    assert_eq!(own.len(), 1, "findings of {}\n{drawn}", case.code);
    let level = if case.tested.noted { Severity::Note } else { case.code.default_level() };
    assert_eq!(own[0].level, level, "{drawn}");
    let mut others = verified.others_than(case.code);
    others.sort();
    assert_eq!(others, case.tested.also, "what else is found\n{drawn}");
}

fn good(case: &Case) {
    let verified = case.verify_good();
    let drawn = verified.drawn();
    assert!(verified.is_verified, "{drawn}");
    assert!(verified.of(case.code).is_empty(), "{drawn}");
    assert_eq!(verified.others_than(case.code), [""; 0], "{drawn}");
}

fn span(case: &Case) {
    let forms = forms::all(&case.bad_bytes(), &case.marks());
    // All at once, since some examples run contracts that take seconds.
    std::thread::scope(|scope| {
        for form in &forms {
            if !case.tested.without.iter().any(|name| name == form.name) {
                scope.spawn(|| span_in(case, form));
            }
        }
    });
}

fn span_in(case: &Case, form: &Form) {
    let verified = case.verify_form(form);
    let drawn = verified.drawn();
    let own = verified.of(case.code);
    assert!(!own.is_empty(), "{}: {} is not found\n{drawn}", form.name, case.code);
    let place = own[0].places.first().unwrap_or_else(|| panic!("{} points nowhere", case.code));
    let text =
        |place: &std::ops::Range<usize>| String::from_utf8_lossy(&form.bytes[place.clone()]).into_owned();
    assert_eq!(text(place), text(&form.marked), "{}\n{drawn}", form.name);
    assert_eq!(place, &form.marked, "{}: the same text elsewhere\n{drawn}", form.name);
}

fn fix(case: &Case) {
    let verified = case.verify_bad();
    let Some(fix) = verified.of(case.code).first().and_then(|found| found.fix.clone()) else { return };
    let mended = fix.apply(&case.bad_bytes());
    let after = case.verify_bytes(&mended);
    let shown = String::from_utf8_lossy(&mended);
    assert!(after.of(case.code).is_empty(), "{shown}\n{}", after.drawn());
    let left = [&case.tested.also[..], &case.tested.left].concat();
    assert_eq!(after.others_than(case.code), left, "{shown}\n{}", after.drawn());
    assert!(after.is_verified, "{shown}\n{}", after.drawn());
}

fn explain(case: &Case) {
    let place = Place::new();
    let said = place.planctl(&["plan", "verify", "--explain", case.code.as_str()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains(case.code.title()), "{}", said.out);
    for paragraph in case.explained.text.split("\n\n") {
        assert!(said.out.contains(paragraph), "{}", said.out);
    }
    let examples = [case.explained.bad, case.explained.good];
    for line in examples.iter().flatten().flat_map(|example| example.shown.lines()) {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
    }
    assert!(!said.out.contains("Tested"), "{}", said.out);
    let lower = case.code.as_str().to_lowercase();
    assert_eq!(place.planctl(&["plan", "verify", "--explain", &lower]).out, said.out);
}

fn says_why_it_has_no_example(case: &Case) {
    assert_eq!((case.explained.bad, case.explained.good), (None, None));
    assert!(case.explained.text.contains("no example"), "{}", case.explained.text);
}
