//! The outputs of an attempt: in parts, and whole as a file.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use planctl_api::wire::calls::RunName;
use planctl_api::wire::{AttemptView, LogView, PromptList};
use planctl_api::{Code, Problem, words};
use planctl_web::{Output, OutputScreen, Screen as _, Tab, encoded, safe_text};

use super::Address;
use super::screens::{Texts, route_of};
use super::visit::Visit;

/// The run, step and attempt that an address names.
type Names<'a> = (&'a str, &'a str, &'a str);

/// An output, and the attempt that it is of.
struct FoundOutput {
    run: String,
    attempt: AttemptView,
    output: Output,
    text: String,
}

impl FoundOutput {
    fn file_name(&self) -> String {
        let run = file_name_of(&self.run);
        let (step, attempt) = (self.attempt.step.number, self.attempt.attempt);
        format!("{run}-step-{step}-attempt-{attempt}-{}.txt", self.output.as_str())
    }
}

/// Returns a run's name for a file: no letter in it means anything to a shell or a browser.
pub(super) fn file_name_of(run: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    run.chars().map(plain).collect()
}

/// Shows one part of an output: the one that the address names, else the last.
pub(super) async fn show_part(
    visit: &Visit,
    address: &Address,
    names: Names<'_>,
    output: &str,
) -> Result<String, Problem> {
    let found = find_output(visit, address, names, output).await?;
    let number = address.number("part");
    let texts = Texts::of(address);
    let (path, query) = (address.path_of(4), address.query_of(&["workspace"]));
    let frame = texts.frame_of(visit, Tab::Runs)?;
    let wanted = (found.output, found.text.as_str(), number);
    Ok(OutputScreen::new(frame, (&found.run, &found.attempt), wanted, (&path, &query)).html())
}

/// Sends an output as a file, which a browser keeps and doesn't show.
pub(super) async fn download(
    visit: &Visit,
    address: &Address,
    names: Names<'_>,
    output: &str,
) -> Result<Response, Problem> {
    let found = find_output(visit, address, names, output).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", found.file_name())),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, safe_text(&found.text)).into_response())
}

async fn find_output(
    visit: &Visit,
    address: &Address,
    (run, step, attempt): Names<'_>,
    output: &str,
) -> Result<FoundOutput, Problem> {
    let output = Output::of(output).ok_or_else(|| not_found("there is no such output"))?;
    let route = route_of(visit, address, run).await?;
    let name: RunName = visit.get(&format!("{route}/name")).await?;
    let (step, attempt) = (encoded(step), encoded(attempt));
    let logs: LogView = visit.get(&format!("{route}/logs?step={step}&attempt={attempt}")).await?;
    let attempt = logs.attempts.into_iter().next().ok_or_else(|| not_found("there is no such attempt"))?;
    let text = match output {
        Output::Prompt => prompt(visit, &route, &attempt).await?,
        Output::Stdout | Output::Stderr | Output::StdoutBefore | Output::StderrBefore | Output::Words => {
            output.text(&attempt).ok_or_else(|| not_found("the attempt has no such output"))?.to_owned()
        }
    };
    Ok(FoundOutput { run: name.run, attempt, output, text })
}

/// Returns the prompt of an attempt, as a part of its plan; one that was delivered from another machine is kept there.
async fn prompt(visit: &Visit, route: &str, attempt: &AttemptView) -> Result<String, Problem> {
    let (step, number) = (attempt.step.number, attempt.attempt);
    let list: PromptList = visit.get(&format!("{route}/prompts?step={step}&attempt={number}")).await?;
    let of_attempt = list.prompts.into_iter().rfind(|prompt| prompt.visit == attempt.visit);
    let of_attempt =
        of_attempt.ok_or_else(|| not_found("no prompt of this attempt is kept on this machine"))?;
    Ok(words::plan_block(&of_attempt.prompt))
}

fn not_found(what: &str) -> Problem {
    Problem::new(Code::NotFound, what)
}
