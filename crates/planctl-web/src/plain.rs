//! Pages without data: signing in, and what went wrong.

use askama::Template;
use planctl_api::words;
use planctl_api::{Code, Problem};

use crate::draw;
use crate::frame::{Frame, Tab};

/// The way in.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub struct SignInScreen<'a> {
    /// The frame of the page.
    pub frame: Frame<'a>,
    /// Why the last try was refused.
    pub refused: Option<&'a str>,
}

/// A problem in place of the page that was wanted.
#[derive(Template)]
#[template(path = "problem.html")]
pub struct ProblemScreen<'a> {
    frame: Frame<'a>,
    problem: &'a Problem,
    heading: &'static str,
}

impl<'a> ProblemScreen<'a> {
    /// Shows a problem as what it is, never as an empty page.
    pub fn new(frame: Frame<'a>, problem: &'a Problem) -> ProblemScreen<'a> {
        let heading = match problem.code() {
            Some(Code::NotFound) => "There is no such page",
            Some(Code::DatabaseUnavailable) => "The database is away",
            Some(Code::Conflict) => "The state does not allow it",
            Some(Code::InsideWorker | Code::NotAsked | Code::Scope | Code::Origin) => "This is not let in",
            Some(_) | None => "This could not be done",
        };
        ProblemScreen { frame, problem, heading }
    }
}
