//! One ask: the question, the evidence, the decision, in this order.

use askama::Template;
use planctl_api::Problem;
use planctl_api::wire::{AskPage, AttemptSummary};
use planctl_api::words::{self, answer_meaning, answer_needs_note};

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The fields that a reader has filled in, which stay where the answer is refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Draft {
    /// The answer's word.
    pub answer: String,
    /// The option of a choice.
    pub option: String,
    /// The role that the step is given to.
    pub role: String,
    /// US dollars that the budget is raised by.
    pub usd: String,
    /// Tokens that the budget is raised by.
    pub tokens: String,
    /// Minutes that the budget is raised by.
    pub minutes: String,
    /// Why, or words for the worker.
    pub note: String,
}

/// An answer that a form offers.
struct Offered {
    word: String,
    label: String,
    meaning: String,
    needs_note: bool,
}

/// An attempt in one row.
struct Row {
    number: String,
    path: String,
    result: String,
    took: String,
    tokens: String,
    cost: String,
    compared: String,
}

/// One ask.
#[derive(Template)]
#[template(path = "ask.html")]
pub struct AskScreen<'a> {
    frame: Frame<'a>,
    page: &'a AskPage,
    attempts: Vec<Row>,
    answers: Vec<Offered>,
    form: Option<Form<'a>>,
    draft: &'a Draft,
    refused: Option<&'a Problem>,
}

impl<'a> AskScreen<'a> {
    /// Prepares the page of an ask; without a form its reader only reads.
    pub fn new(
        frame: Frame<'a>,
        page: &'a AskPage,
        form: Option<Form<'a>>,
        (draft, refused): (&'a Draft, Option<&'a Problem>),
    ) -> AskScreen<'a> {
        let words = words::answer_words(&page.ask).into_iter();
        let answers = words.filter(|word| is_offered(page, word)).map(|word| offer_of(page, word)).collect();
        AskScreen { frame, page, attempts: rows(page), answers, form, draft, refused }
    }

    /// Returns by how much a form proposes to raise a part of the budget: what its reader filled in, else what the next step
    /// needs.
    fn raise_by(&self, part: &str, filled_in: &str) -> String {
        let is_new = self.draft.answer.is_empty();
        let short = self.page.shortfall.as_ref().filter(|short| is_new && short.part == part);
        short.map_or_else(|| filled_in.to_owned(), |short| draw::form_amount(part, short.needed))
    }

    /// Returns the line of the failed contract's output that says what is wrong.
    fn failure_line(&self) -> Option<String> {
        let failure = self.page.failure.as_ref()?;
        words::telling_line(&failure.stderr_tail, &failure.stdout_tail)
    }

    fn takes_answer(&self, word: &str) -> bool {
        self.page.ask.answers.iter().any(|answer| answer == word)
    }
}

/// Says whether a form offers an answer. An edit has a page of its own, and a step that can't be put in is edited.
fn is_offered(page: &AskPage, word: &str) -> bool {
    word != "edit" && !(word == "approve" && page.unfit.is_some())
}

fn offer_of(page: &AskPage, word: &str) -> Offered {
    let label = match word {
        "approve" if page.ask.kind == "insertion" => "put it in",
        "abort" => "cancel the run",
        "choose" if !page.ask.leads_to.is_empty() => "go on with the option chosen above",
        "choose" => "go on with your answer",
        word => word,
    };
    let meaning = match word {
        "choose" => "",
        "approve" if page.ask.kind == "effect" => "let the call be made, once",
        "reject" if page.ask.kind == "effect" => "let it fail; the plan takes its way for failures",
        word => answer_meaning(&page.ask, word),
    };
    let needs_note = answer_needs_note(&page.ask, word);
    Offered { word: word.to_owned(), label: label.to_owned(), meaning: meaning.to_owned(), needs_note }
}

fn rows(page: &AskPage) -> Vec<Row> {
    let step = page.ask.step.as_ref().map_or(0, |step| step.number);
    let row = |attempt: &AttemptSummary| {
        let spent = attempt.spent.as_ref();
        let (visit, number) = (attempt.visit, attempt.attempt);
        let result = attempt.failure.as_ref().or(attempt.verdict.as_ref());
        Row {
            number: number.to_string(),
            path: format!("{}/steps/{step}#attempt-{visit}-{number}", draw::ask_run_path(&page.ask)),
            result: result.map_or_else(|| "no verdict".to_owned(), |result| words::safe(result)),
            took: attempt.seconds.map(words::seconds).unwrap_or_default(),
            tokens: spent.map_or_else(|| "unmetered".to_owned(), |spent| words::tokens(spent.tokens)),
            cost: spent.map_or_else(|| "–".to_owned(), |spent| draw::dollars(&spent.usd)),
            compared: words::compared(attempt),
        }
    };
    page.attempts.iter().map(row).collect()
}
