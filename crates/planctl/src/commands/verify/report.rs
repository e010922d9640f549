//! Answers with what was found, in the format that was asked for.

use planctl_lang::{ProbeReport, Report};

use super::{Looked, github, human, plain, print_reports, sarif, unreadable};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::Format;
use crate::show;

/// Prints what was found.
pub fn print(context: &Context, looked: &[Looked], format: Format) -> Result<(), Failure> {
    match format {
        Format::Human
        | Format::Ascii
        | Format::Dot
        | Format::Mermaid
        | Format::Markdown
        | Format::Svg
        | Format::Long
        | Format::Compact
        | Format::Workflow => human::print(context, looked),
        Format::Plain => plain::report(looked),
        Format::Json | Format::Jsonl => {
            let reports: Vec<Report> = looked.iter().map(for_programs).collect();
            print_reports(&reports, format)
        }
        Format::Sarif => show::print_json(&sarif::log(context.workspace(), looked)),
        Format::Github => show::print(&github::commands(context.workspace(), looked)),
    }
}

fn for_programs(one: &Looked) -> Report {
    match &one.found {
        Ok(checked) => Report {
            probe: checked.probed.map(|probed| ProbeReport {
                contracts: probed.contracts,
                tried: probed.tried,
                seconds: probed.duration.as_secs_f64(),
            }),
            ..checked.verification.report(&checked.source)
        },
        Err(failure) => Report::unreadable(one.file.to_string_lossy(), &unreadable(failure)),
    }
}
