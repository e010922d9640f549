//! The conversation that makes a draft: what was asked, answered and found, and what has to happen next.

mod questions;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::amount::{Spending, Tokens, Unanswered};
use crate::goal::Goal;
use crate::judge::{Finding, Judgement, Looked, Outcome, Rule, Traced, judge, traced};
use crate::prompt::Prompt;
use crate::proposal::{ANSWER_BYTES_MAX, Proposal, Question};
use crate::repair::{FailedRun, REPAIRS_MAX, Repair};
use crate::review::{Review, ReviewVerdict};
use crate::write::{self, Around};

/// Below this a writer is not sure enough for its draft to go on without a person's word (M-09).
const CONFIDENCE_MIN: f64 = 0.5;

/// The goal, and what is true where the plan will run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Brief {
    /// The goal.
    pub goal: Goal,
    /// The workspace.
    pub workspace: WorkspaceFacts,
    /// The person who answers for the plan.
    pub owner: String,
    /// The budget that the plan gets, as it is written there.
    pub budget: Option<String>,
    /// Says that a reviewer reads what the rules let pass.
    pub has_reviewer: bool,
    /// The limits.
    pub limits: Limits,
    /// A random text, so that nobody foresees the fences of prompts.
    pub key: String,
}

/// The facts of the workspace that the writer is told.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WorkspaceFacts {
    /// Its files.
    pub files: Vec<String>,
    /// Says that it has more.
    pub has_more_files: bool,
    /// Programs that contracts find.
    pub commands: Vec<String>,
    /// Usual programs that they don't.
    pub absent: Vec<String>,
    /// The roles of planctl.toml.
    pub roles: Vec<String>,
    /// The beginnings of files that say how the project is built and tested.
    pub excerpts: Vec<(String, String)>,
}

/// The limits of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// How often the writer is asked, before a person has to say something.
    pub rounds: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { rounds: 3 }
    }
}

/// The reader of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The one who writes the draft.
    Writer,
    /// The one who reads it.
    Reviewer,
}

/// An answer as it came.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Its text, cut where it is longer than what is read.
    pub text: String,
    /// How long it was.
    pub bytes: u64,
    /// Its tokens; none of an agent that told none.
    pub tokens: Option<Tokens>,
    /// Its price, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
}

impl Answer {
    /// Takes an answer; what is beyond the most that is read is let go.
    pub fn new(text: &str) -> Answer {
        let mut end = text.len().min(ANSWER_BYTES_MAX + 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        Answer { text: text[..end].to_owned(), bytes, tokens: None, micro_usd: None }
    }
}

/// A person's word between two rounds (M-10).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hint {
    /// The question that it answers; without one it is about the draft.
    pub question: Option<String>,
    /// The person's words.
    pub text: String,
    /// How many rounds there were before it.
    pub after: usize,
}

/// One answer of the writer, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Round {
    /// The answer.
    pub answer: Answer,
    /// The judgement of the rules.
    pub judgement: Option<Judgement>,
    /// The reviewer's answer, and the judgement that follows.
    pub review: Option<(Answer, Judgement)>,
}

impl Round {
    /// Returns all findings, the reviewer's included.
    pub fn findings(&self) -> Vec<Finding> {
        let rules = self.judgement.iter().flat_map(|judgement| judgement.findings.clone());
        let review = self.review.iter().flat_map(|(_, judgement)| judgement.findings.clone());
        rules.chain(review).collect()
    }

    fn outcome(&self) -> Option<Outcome> {
        let review = self.review.as_ref().map(|(_, judgement)| judgement.outcome);
        self.judgement.as_ref().map(|judgement| judgement.outcome.max(review.unwrap_or(Outcome::Ok)))
    }
}

/// The next thing to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// Ask, and say the answer to [`Conversation::apply_answer`].
    Ask {
        /// The one to ask.
        who: Asked,
        /// The question.
        prompt: Prompt,
    },
    /// Verify this text and try its contracts, and say what that showed to [`Conversation::apply_verification`].
    Verify {
        /// The plan.
        text: String,
    },
    /// There is a draft.
    Done(Box<Draft>),
    /// There is none.
    GiveUp(GiveUp),
}

/// A draft that a person may read.
#[derive(Clone, PartialEq, Debug)]
pub struct Draft {
    /// The plan.
    pub text: String,
    /// Its title.
    pub title: String,
    /// How many steps it has.
    pub steps: usize,
    /// The verdict.
    pub outcome: Outcome,
    /// The findings that a person should know.
    pub findings: Vec<Finding>,
    /// The proof of each requirement.
    pub requirements: Vec<Traced>,
    /// The questions that nobody answered, with their ids.
    pub questions: Vec<(String, Question)>,
    /// How sure the writer is, from 0 to 1.
    pub confidence: f64,
}

/// Why there is no draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GiveUp {
    /// How often the writer was asked since a person said something last.
    pub rounds: u32,
    /// The findings about the last answer.
    pub findings: Vec<Finding>,
    /// The last text, where there was one.
    pub text: Option<String>,
}

/// A conversation. It is whole after each call, and can be stored and taken up then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conversation {
    brief: Brief,
    rounds: Vec<Round>,
    hints: Vec<Hint>,
    /// Requirements that a person took out.
    without: BTreeSet<String>,
    /// Runs of the draft that failed.
    #[serde(default)]
    repairs: Vec<Repair>,
    #[serde(default)]
    unanswered: Unanswered,
}

impl Conversation {
    /// Begins one.
    pub fn new(brief: Brief) -> Conversation {
        Conversation {
            brief,
            rounds: Vec::new(),
            hints: Vec::new(),
            without: BTreeSet::new(),
            repairs: Vec::new(),
            unanswered: Unanswered::default(),
        }
    }

    /// Returns what it is about.
    pub fn brief(&self) -> &Brief {
        &self.brief
    }

    /// Returns the writer's answers so far.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Returns what a person said.
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Returns the failed runs that the writer was told.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// Sees the workspace as it is now: the last text is verified anew, since what was red then may be green by now.
    pub fn set_workspace(&mut self, workspace: WorkspaceFacts) {
        self.brief.workspace = workspace;
        if let Some(last) = self.rounds.last_mut()
            && Proposal::read(&last.answer.text).is_ok()
        {
            last.judgement = None;
        }
    }

    /// Gives the plan a budget; its text is verified anew.
    pub fn set_budget(&mut self, budget: String) {
        if self.brief.budget.as_ref() != Some(&budget) {
            self.brief.budget = Some(budget);
            if let Some(last) =
                self.rounds.last_mut().filter(|last| Proposal::read(&last.answer.text).is_ok())
            {
                last.judgement = None;
            }
        }
    }

    /// Sets other limits; they count from here on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.brief.limits = limits;
    }

    /// Returns the calls without an answer, to be changed.
    pub fn unanswered_mut(&mut self) -> &mut Unanswered {
        &mut self.unanswered
    }

    /// Adds up what the answers have used, and what calls without one may have used.
    pub fn spent(&self) -> Spending {
        let mut spent = Spending::default();
        for round in &self.rounds {
            spent.add(round.answer.tokens, round.answer.micro_usd);
            if let Some((answer, _)) = &round.review {
                spent.add(answer.tokens, answer.micro_usd);
            }
        }
        spent.plus_unanswered(&self.unanswered)
    }

    /// Says what has to happen next. It changes nothing: asked again it says the same.
    pub fn next(&self) -> Next {
        let Some(last) = self.rounds.last() else { return self.ask_writer() };
        if self.rounds_answered_after().any(|after| after == self.rounds.len()) {
            return self.ask_writer();
        }
        let proposal = Proposal::read(&last.answer.text).ok();
        let text = proposal.as_ref().map(|proposal| self.text_of(proposal));
        match (last.outcome(), proposal, text) {
            (None, Some(_), Some(text)) => Next::Verify { text },
            (Some(Outcome::Ok | Outcome::Warning), Some(_), Some(text))
                if self.brief.has_reviewer && last.review.is_none() =>
            {
                let prompt = questions::to_reviewer(&self.brief, &text);
                Next::Ask { who: Asked::Reviewer, prompt }
            }
            (Some(outcome @ (Outcome::Ok | Outcome::Warning)), Some(proposal), Some(text)) => {
                Next::Done(Box::new(self.draft(&proposal, text, outcome, last)))
            }
            (Some(Outcome::Invalid) | None, _, text) | (Some(Outcome::Ok | Outcome::Warning), _, text) => {
                let rounds = self.rounds_since_hint();
                match rounds < self.brief.limits.rounds {
                    true => self.ask_writer(),
                    false => Next::GiveUp(GiveUp { rounds, findings: last.findings(), text }),
                }
            }
        }
    }

    /// Hears an answer to what [`Conversation::next`] asked.
    pub fn apply_answer(&mut self, who: Asked, answer: Answer) {
        match who {
            Asked::Writer => {
                let judgement = Proposal::read(&answer.text).err().map(|unreadable| {
                    let faults = unreadable.faults.into_iter();
                    Judgement::from_findings(faults.map(|fault| Finding::error(Rule::Form, fault)).collect())
                });
                self.rounds.push(Round { answer, judgement, review: None });
            }
            Asked::Reviewer => {
                let Some(last) = self.rounds.last_mut() else { return };
                last.review = Some((answer.clone(), judged_by_reviewer(&answer)));
            }
        }
    }

    /// Hears what verifying and trying the last text showed.
    pub fn apply_verification(&mut self, looked: Looked<'_>) {
        let Some(last) = self.rounds.last() else { return };
        let Ok(proposal) = Proposal::read(&last.answer.text) else { return };
        let text = self.text_of(&proposal);
        let passed: BTreeSet<&str> =
            self.repairs.iter().flat_map(|repair| &repair.passed).map(String::as_str).collect();
        let judgement = judge(&self.brief.goal, &proposal, &text, looked, &self.without)
            .without_green(&proposal, &passed);
        if let Some(last) = self.rounds.last_mut() {
            last.judgement = Some(judgement);
        }
    }

    /// Hears what a person says of the draft; the writer is asked again. Words that were heard already change nothing.
    pub fn apply_hint(&mut self, text: &str) {
        self.hint(None, text);
    }

    /// Hears that a run of the draft failed; the writer is asked again. A failure that was heard already changes nothing.
    /// Returns how many repairs there were, this one included.
    ///
    /// # Errors
    ///
    /// How many repairs there were, where there may be no more.
    pub fn apply_failed_run(&mut self, failed: FailedRun) -> Result<usize, usize> {
        if let Some(at) = self.repairs.iter().position(|repair| repair.failed == failed) {
            return Ok(at + 1);
        }
        if self.repairs.len() >= REPAIRS_MAX {
            return Err(self.repairs.len());
        }
        let last = self.rounds.last().and_then(|round| Proposal::read(&round.answer.text).ok());
        let steps = last.map(|proposal| proposal.steps).unwrap_or_default();
        let place = |number: &u32| usize::try_from(*number).ok()?.checked_sub(1);
        let passed = failed.passed.iter().filter_map(place).filter_map(|at| steps.get(at));
        let passed = passed.map(|step| step.contract.trim().to_owned()).collect();
        self.repairs.push(Repair { failed, passed, after: self.rounds.len() });
        Ok(self.repairs.len())
    }

    /// Hears a person's answer to a question of the draft.
    ///
    /// # Errors
    ///
    /// The ids of the questions that there are, where this is none of them.
    pub fn answer_question(&mut self, id: &str, text: &str) -> Result<(), Vec<String>> {
        let all = self.all_questions();
        let found = all.iter().find(|(own, _)| own.eq_ignore_ascii_case(id));
        let Some((_, question)) = found else {
            return Err(all.into_iter().map(|(id, _)| id).collect());
        };
        self.hint(Some(question.text.clone()), text);
        Ok(())
    }

    /// Takes a requirement out: a person says that it is none. The draft is judged anew.
    ///
    /// # Errors
    ///
    /// The ids that there are, where this is none of them.
    pub fn take_out(&mut self, id: &str) -> Result<(), Vec<String>> {
        let known = self.brief.goal.requirements.iter();
        let Some(own) = known.clone().find(|own| own.id.eq_ignore_ascii_case(id)) else {
            return Err(known.map(|own| own.id.clone()).collect());
        };
        if self.without.insert(own.id.clone())
            && let Some(last) = self.rounds.last_mut()
            && Proposal::read(&last.answer.text).is_ok()
        {
            (last.judgement, last.review) = (None, None);
        }
        Ok(())
    }

    fn hint(&mut self, question: Option<String>, text: &str) {
        let text = text.trim().to_owned();
        let is_known = self.hints.iter().any(|hint| hint.question == question && hint.text == text);
        if !is_known && !text.is_empty() {
            self.hints.push(Hint { question, text, after: self.rounds.len() });
        }
    }

    fn rounds_since_hint(&self) -> u32 {
        let from = self.rounds_answered_after().max().unwrap_or(0);
        u32::try_from(self.rounds.len().saturating_sub(from)).unwrap_or(u32::MAX)
    }

    /// Returns after how many rounds each word of a person's and each failed run came.
    fn rounds_answered_after(&self) -> impl Iterator<Item = usize> {
        let hints = self.hints.iter().map(|hint| hint.after);
        hints.chain(self.repairs.iter().map(|repair| repair.after))
    }

    fn ask_writer(&self) -> Next {
        Next::Ask { who: Asked::Writer, prompt: questions::to_writer(self) }
    }

    fn text_of(&self, proposal: &Proposal) -> String {
        let open = self.questions_of(proposal).into_iter().map(|(id, question)| (id, question.text));
        let open: Vec<(String, String)> = open.collect();
        let budget = self.brief.budget.as_deref();
        write::plan(
            proposal,
            &Around { goal: &self.brief.goal, owner: &self.brief.owner, budget, open: &open },
        )
    }

    fn draft(&self, proposal: &Proposal, text: String, outcome: Outcome, last: &Round) -> Draft {
        Draft {
            text,
            title: proposal.title.clone(),
            steps: proposal.steps.len(),
            outcome,
            findings: last.findings(),
            requirements: traced(&self.brief.goal, proposal, &self.without),
            questions: self.questions_of(proposal),
            confidence: proposal.confidence,
        }
    }

    // The questions of the last readable answer.
    fn all_questions(&self) -> Vec<(String, Question)> {
        let proposals = self.rounds.iter().rev().filter_map(|round| Proposal::read(&round.answer.text).ok());
        proposals.take(1).flat_map(|proposal| numbered(&proposal)).collect()
    }

    fn questions_of(&self, proposal: &Proposal) -> Vec<(String, Question)> {
        let answered = |question: &Question| {
            self.hints.iter().any(|hint| hint.question.as_ref() == Some(&question.text))
        };
        numbered(proposal).into_iter().filter(|(_, question)| !answered(question)).collect()
    }
}

fn numbered(proposal: &Proposal) -> Vec<(String, Question)> {
    let own = proposal.questions.iter().cloned();
    let doubt = (proposal.confidence < CONFIDENCE_MIN).then(|| Question {
        text: format!(
            "The writer is not sure that this plan reaches the goal ({:.1} of 1). What should it know?",
            proposal.confidence
        ),
        options: Vec::new(),
    });
    own.chain(doubt).enumerate().map(|(at, question)| (format!("Q{}", at + 1), question)).collect()
}

// A reviewer that can't be understood is no reason to throw a draft away; a person is told.
fn judged_by_reviewer(answer: &Answer) -> Judgement {
    let finding =
        |is_error: bool, message: String| Finding { is_error, ..Finding::error(Rule::Review, message) };
    let findings = match Review::read(&answer.text) {
        Err(unreadable) => {
            vec![finding(false, format!("the review could not be read: {}", unreadable.faults.join("; ")))]
        }
        Ok(Review { verdict: ReviewVerdict::Ok, .. }) => Vec::new(),
        Ok(Review { verdict, findings }) => {
            let is_error = verdict == ReviewVerdict::Invalid;
            let findings =
                if findings.is_empty() { vec!["the reviewer gave no reason".to_owned()] } else { findings };
            findings.into_iter().map(|text| finding(is_error, text)).collect()
        }
    };
    Judgement::from_findings(findings)
}
