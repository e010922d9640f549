//! `planctl explain`: the meaning of a code, with a plan that is wrong and one that is right.

use planctl_lang::{Code, Example, ExplainedCodes, Severity, did_you_mean};

use super::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BAD, BOLD, CARE, FAINT, GOOD, styled};

/// Explains a code, or lists all where none is named.
pub fn explain(context: &Context, name: &str) -> Answer {
    let codes = if name.is_empty() { Code::ALL } else { &[code_named(name)?] };
    if context.is_json()? {
        show::print_json(&ExplainedCodes::new(codes))?;
    } else if let [code] = codes {
        show::print(&draw(*code))?;
    } else {
        show::print(&listed(codes))?;
    }
    Ok(Exit::Yes)
}

fn code_named(name: &str) -> Result<Code, Failure> {
    Code::from_word(name.trim()).ok_or_else(|| {
        let near = did_you_mean(name, Code::ALL.iter().map(|code| code.as_str()));
        let help = near.map_or("the codes are listed by: planctl explain".to_owned(), |near| {
            format!("did you mean {near}?")
        });
        Failure::usage(format!("there is no code `{}`", show::safe(name))).help(help)
    })
}

/// Names a level for people.
pub fn level(code: Code) -> &'static str {
    match code.default_level() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn listed(codes: &[Code]) -> String {
    let mut text = String::new();
    for family in codes.chunk_by(|one, next| one.family() == next.family()) {
        let name = family.first().map_or("", |code| code.family());
        text.push_str(&format!("{}\n", styled(BOLD, name)));
        for code in family {
            text.push_str(&format!("  {code}  {:<8} {}\n", level(*code), code.title()));
        }
        text.push('\n');
    }
    text.push_str(&format!("{} planctl explain P104\n", styled(BOLD, "for more:")));
    text
}

fn draw(code: Code) -> String {
    let explained = code.explain();
    let level = format!("{}[{code}]", level(code));
    let level = match code.default_level() {
        Severity::Error => styled(BAD, &level),
        Severity::Warning => styled(CARE, &level),
        Severity::Note => styled(BOLD, &level),
    };
    let mut text = format!("{level}{}\n\n{}\n", styled(BOLD, &format!(": {}", code.title())), explained.text);
    text.push_str(&match code.guards() {
        _ if code.may_be_allowed() => {
            format!("\nA plan can allow it, with a reason: <!-- planctl: allow {code} REASON -->\n")
        }
        Some(why) => format!("\nNo plan can allow it: {why}.\n"),
        None => String::new(),
    });
    for (style, name, example) in [(BAD, "wrong", explained.bad), (GOOD, "right", explained.good)] {
        let Some(example) = example else { continue };
        text.push_str(&format!("\n{}\n", styled(style, name)));
        text.push_str(&draw_example(&example));
    }
    text
}

fn draw_example(example: &Example) -> String {
    let mut text = String::new();
    if !example.about.is_empty() {
        text.push_str(&format!("{}\n", example.about));
    }
    text.push('\n');
    for line in example.shown.lines() {
        let line = if line.is_empty() { String::new() } else { format!("    {}", styled(FAINT, line)) };
        text.push_str(&format!("{line}\n"));
    }
    text
}
