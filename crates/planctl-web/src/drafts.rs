//! Plans drafted from a goal: who may write one, and how one comes about.

use askama::Template;
use planctl_api::Problem;
use planctl_api::wire::AskView;
use planctl_api::wire::draft::EstimateView;
use planctl_api::wire::drafting::{DraftingCall, DraftingList, DraftingState, DraftingView};
use planctl_api::words;

use crate::draw;
use crate::frame::{Form, Frame, Tab};

/// The most characters of a goal in a list and in a title.
const GOAL_CHARACTERS_MAX: usize = 100;

/// The drafts of the daemon, and the form that begins one.
#[derive(Template)]
#[template(path = "drafts.html")]
pub struct DraftsScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The folders in which plans are known.
    pub projects: &'a [&'a str],
    /// The fields of the form, as its reader left them; the workspace is the chosen project.
    pub call: &'a DraftingCall,
    /// Those who may write there, and the drafts; an error is shown as one.
    pub list: Result<&'a DraftingList, &'a Problem>,
    /// Why no draft began.
    pub refused: Option<&'a Problem>,
    /// The hidden fields, for a reader who may draft.
    pub form: Option<Form<'a>>,
}

impl DraftsScreen<'_> {
    fn project(&self) -> String {
        self.call.workspace.to_string_lossy().into_owned()
    }

    fn writers(&self) -> &[String] {
        self.list.map(|list| list.writers.as_slice()).unwrap_or_default()
    }

    fn drafts(&self) -> &[DraftingView] {
        self.list.map(|list| list.drafts.as_slice()).unwrap_or_default()
    }
}

/// One draft.
#[derive(Template)]
#[template(path = "draft.html")]
pub struct DraftScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// The draft.
    pub view: &'a DraftingView,
    /// The asks that it waits for in the inbox.
    pub asks: &'a [AskView],
    /// The hidden fields, for a reader who may draft.
    pub form: Option<Form<'a>>,
}

impl DraftScreen<'_> {
    fn is_working(&self) -> bool {
        self.view.state == DraftingState::Working
    }

    /// Says whether a writer can write it again: a form of words writes once.
    fn takes_hint(&self) -> bool {
        self.view.call.writer.is_some() && self.view.draft.is_some()
    }

    /// Says what the draft itself took; a form of words takes nothing.
    fn spent(&self) -> Option<String> {
        let draft = self.view.draft.as_ref().filter(|draft| draft.writer.is_some())?;
        let spent = &draft.spent;
        let answers = words::counted(usize::try_from(spent.answers).unwrap_or(usize::MAX), "answer");
        let tokens = words::tokens(spent.input_tokens.saturating_add(spent.output_tokens));
        let usd = spent.usd.map(|usd| format!(", {}", words::dollars(usd))).unwrap_or_default();
        let unmetered = match spent.unmetered {
            0 => String::new(),
            count => format!(", {count} unmetered"),
        };
        let estimated = words::estimated_answers(spent.estimated, spent.answers);
        Some(format!("{answers}, {tokens} tokens{usd}{estimated}{unmetered}"))
    }

    /// Returns its file as a path of the workspace.
    fn file(&self) -> Option<String> {
        let file = self.view.draft.as_ref()?.file.as_deref()?;
        let inside = std::path::Path::new(file).strip_prefix(&self.view.call.workspace);
        Some(words::safe(&inside.map_or_else(|_| file.into(), |inside| inside.to_string_lossy())))
    }
}

/// Says in words where a draft stands.
fn state_word(state: &DraftingState) -> &'static str {
    match state {
        DraftingState::Working => "being written",
        DraftingState::Done => "written",
        DraftingState::Waiting => "waiting for you",
        DraftingState::GivenUp => "given up",
        DraftingState::Failed => "not written",
        DraftingState::Interrupted => "interrupted",
    }
}

/// Returns the folder in which a plan is drafted.
fn folder(call: &DraftingCall) -> String {
    words::safe(&call.workspace.to_string_lossy())
}

/// Returns the same for an address.
fn folder_encoded(call: &DraftingCall) -> String {
    draw::encoded(&call.workspace.to_string_lossy())
}

/// Returns a goal in one short line.
fn goal(call: &DraftingCall) -> String {
    words::brief(&words::safe(&call.goal), GOAL_CHARACTERS_MAX)
}

/// Says what a run of the plan may take, and on what that rests.
fn estimate(view: &EstimateView) -> String {
    let money = view.usd.map_or_else(|| "money unknown".to_owned(), words::dollars);
    let basis = match view.runs {
        0 => "by planctl's default for a step".to_owned(),
        runs => format!("by {} here", words::counted(usize::try_from(runs).unwrap_or(usize::MAX), "run")),
    };
    let time = words::seconds(view.seconds as f64);
    format!("{} tokens, {money}, {time}: {basis}", words::tokens(view.tokens))
}
