//! The one door: text and facts in, a verdict with every finding and, where there is no error, the graph out.

use planctl_engine::{Digest, Graph};

use crate::analysis::Scripts;
use crate::analysis::order::Order;
use crate::analysis::wants_of;
use crate::diagnostic::levels::Levels;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::facts::{Facts, Wants};
use crate::graph::{Plan, findings, lower};
use crate::lint::allowed::{Allowed, Allowing};
use crate::lint::foreign::{fenced, of_tool};
use crate::lint::{self, Context};
use crate::syntax::Language;
use crate::syntax::source::{Source, Unreadable};
use crate::text::Span;
use crate::tree::PlanTree;
use crate::tree::digest::{digest, digest_of_plan};
use crate::tree::parse::{parse, sort};
use crate::tree::workflow::{Outlined, Workflow, folders, implied, next, outlined, serve, sub_plans};

/// The most findings that are listed.
const FINDINGS_MAX: usize = 1_000;

/// The result of verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verification {
    /// The text of a plan in markdown; empty in another language.
    pub tree: PlanTree,
    /// The plan's meaning, in any language.
    pub workflow: Workflow,
    /// The graph; absent where there is an error.
    pub graph: Option<Graph>,
    /// Every finding, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The findings that the plan allows, which are none of the others.
    pub allowed: Vec<Allowed>,
    /// The digest of the canonical text.
    pub digest: Digest,
    /// Says that the file is text, in whatever state; the digest of another one is that of the part which can be shown.
    pub is_text: bool,
}

/// A plan's text as read; it is judged when the facts that it asks for are known.
pub struct ReadPlan<'s> {
    pub(crate) source: &'s Source,
    pub(crate) tree: PlanTree,
    pub(crate) workflow: Workflow,
    diagnostics: Vec<Diagnostic>,
    scripts: Scripts,
    pub(crate) order: Order,
    /// Why it can't be a plan, where its look says so; nothing else is found then.
    no_plan: Option<Diagnostic>,
}

/// Reads a plan's text and its contracts, once for all that follows; its name says in which language it is written.
pub fn read(source: &Source) -> ReadPlan<'_> {
    let language = Language::of(source.path());
    let no_plan = source.no_plan().or_else(|| of_tool(source)).or_else(|| fenced(source));
    let outlined = match language {
        Some(language) => outlined(source, language),
        None => {
            let (tree, found) = if no_plan.is_none() { parse(source) } else { <_>::default() };
            implied(source, tree, found)
        }
    };
    let steps = outlined.workflow.steps();
    let scripts = Scripts::read(&steps);
    let mut order = Order::read(source, &steps, &scripts);
    if !outlined.is_linear {
        order = order.ordered_by_graph(&steps, &outlined.workflow);
    }
    let Outlined { tree, workflow, found: diagnostics, .. } = outlined;
    ReadPlan { source, tree, workflow, diagnostics, scripts, order, no_plan }
}

/// Verifies a plan against the facts. Pure, linear in the text, and never panics.
pub fn verify(source: &Source, facts: &Facts, levels: &Levels) -> Verification {
    read(source).judge(facts, levels)
}

impl ReadPlan<'_> {
    /// Returns what the lints want to know about the plan.
    pub fn wants(&self) -> Wants {
        let mut wants = wants_of(&self.workflow.steps(), &self.scripts, &self.order);
        wants.files.extend(folders::asked(&self.workflow));
        wants.sub_plans = sub_plans::asked(&self.workflow);
        wants.next = next::asked(&self.workflow);
        wants
    }

    /// Makes the graph of a plan, also of one with errors, as far as its nodes and edges make one.
    pub(crate) fn lowered(&self) -> Option<Graph> {
        let ReadPlan { source, workflow, scripts, order, .. } = self;
        let (steps, is_markdown) = (&workflow.steps(), Language::of(source.path()).is_none());
        Some(lower(&Plan { workflow, steps, scripts, order, is_markdown }).ok()?.0)
    }

    /// Judges the plan by what is true around it.
    pub fn judge(mut self, facts: &Facts, levels: &Levels) -> Verification {
        let source = self.source;
        if let Some(diagnostic) = self.no_plan {
            let source = source.clone();
            return Verification::unreadable(&Unreadable { source, diagnostic });
        }
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        serve(&mut self.workflow, &facts.types, &mut diagnostics);
        let is_markdown = Language::of(source.path()).is_none();
        let ReadPlan { tree, workflow, scripts, order, .. } = &self;
        let steps = &workflow.steps();
        let context = Context { source, tree, workflow, steps, scripts, order, facts };
        diagnostics.extend(lint::run(&context, levels));
        let mut allowing = Allowing::of(source, tree, levels);
        allowing.take(&mut diagnostics);
        levels.apply(&mut diagnostics);
        let plan = Plan { workflow, steps, scripts, order, is_markdown };
        let is_flawed = diagnostics.iter().any(Diagnostic::is_error);
        let (lowered, mut found) = match is_flawed {
            false => match lower(&plan) {
                Ok((lowered, found)) => (Some(lowered), found),
                Err(found) => (None, found),
            },
            true => (None, findings(&plan, &diagnostics)),
        };
        allowing.take(&mut found);
        let (mut allowed, idle) = allowing.end(source, facts);
        found.extend(idle);
        levels.apply(&mut found);
        let graph = lowered.filter(|_| !found.iter().any(Diagnostic::is_error));
        diagnostics.extend(found);
        sort(&mut diagnostics);
        cut(&mut diagnostics);
        for finding in diagnostics.iter_mut().chain(allowed.iter_mut().map(|allowed| &mut allowed.finding)) {
            finding.spans.iter_mut().for_each(|label| label.span = source.clamp(label.span));
            finding.make_printable();
        }
        let digest = digest_of_plan(source, &self.tree);
        let ReadPlan { tree, workflow, .. } = self;
        Verification { tree, workflow, graph, diagnostics, allowed, digest, is_text: true }
    }
}

// A text that is no plan at all can have more findings than anybody reads; errors are kept before warnings, and these before
// notes; limits before their like.
fn cut(diagnostics: &mut Vec<Diagnostic>) {
    let all = diagnostics.len();
    if all <= FINDINGS_MAX {
        return;
    }
    diagnostics.sort_by_key(|diagnostic| (diagnostic.level, diagnostic.code != Code::P008));
    let are_notes = diagnostics[FINDINGS_MAX].level == Severity::Note;
    diagnostics.truncate(FINDINGS_MAX);
    sort(diagnostics);
    let findings = if are_notes { "notes" } else { "findings" };
    let message = format!("{} more {findings} are not listed", all - FINDINGS_MAX);
    let end = diagnostics.last().and_then(|last| last.spans.first()).map_or(Span::at(0), |label| label.span);
    diagnostics.push(Diagnostic::new(Code::P008, message).level(Severity::Note).at(end, "after this one"));
}

impl Verification {
    /// Makes the verification of a file that is no plan text.
    pub fn unreadable(unreadable: &Unreadable) -> Verification {
        Verification {
            tree: PlanTree::default(),
            workflow: Workflow::default(),
            graph: None,
            diagnostics: vec![unreadable.diagnostic.clone()],
            allowed: Vec::new(),
            digest: digest(&unreadable.source),
            is_text: false,
        }
    }

    /// Makes the verification of a text that was verified before, with what came of it.
    pub fn restored(source: &Source, graph: Graph, digest: Digest) -> Verification {
        let ReadPlan { tree, workflow, .. } = read(source);
        let (diagnostics, allowed) = <_>::default();
        Verification { tree, workflow, graph: Some(graph), diagnostics, allowed, digest, is_text: true }
    }

    /// Returns every finding, also those that the plan allows.
    pub fn with_allowed(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().chain(self.allowed.iter().map(|allowed| &allowed.finding))
    }

    /// Says whether the plan is verified: no error among the findings.
    pub fn is_verified(&self) -> bool {
        self.graph.is_some() && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
