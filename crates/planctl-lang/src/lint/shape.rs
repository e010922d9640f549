//! P0xx: the parts that a plan and its steps must have, numbering, marks, defaults, and fields that come later.

use planctl_engine::{RedFirst, Subscription};

use super::numbers;
use super::subscriptions::SUBSCRIPTIONS_MAX;
use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::Language;
use crate::syntax::alike;
use crate::text::{Span, Spanned, escape};
use crate::tree::parse::CONTRACT_STUB;
use crate::tree::workflow::Kind;
use crate::tree::{Field, Mark, OnFail, PlanTree, StepTree};

/// The most locks that a step may ask for.
const LOCKS_MAX: usize = 20;

const TITLE_CHARACTERS_MAX: usize = 200;

pub(super) const LINT: Lint = Lint {
    codes: &[
        Code::P006,
        Code::P007,
        Code::P009,
        Code::P010,
        Code::P012,
        Code::P013,
        Code::P014,
        Code::P016,
        Code::P017,
        Code::P020,
    ],
    needs: Needs::Text,
    check,
};

pub(super) const PLACE: Lint = Lint { codes: &[Code::P603], needs: Needs::Surroundings, check: check_place };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for step in context.steps {
        let mut of_step = Vec::new();
        locks(step.attributes.locks.entries(), &mut of_step);
        subscriptions(step.attributes.subscriptions.entries(), &mut of_step);
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.step_name())));
    }
    // The required parts of a graph's nodes are judged with the graph.
    if Language::of(context.source.path()).is_some() {
        return;
    }
    plan(context, found);
    numbers::check(context, found);
    let is_like_ours = is_like_ours(context);
    for step in &context.tree.steps {
        let mut of_step = Vec::new();
        title(step, &mut of_step);
        lint_required(context, step, &mut of_step);
        lint_idle_fields(step, &mut of_step);
        lint_sub_plan(step, &mut of_step);
        policy(step, &mut of_step);
        lint_guard(step, &mut of_step);
        unsupported(step, &mut of_step);
        for_each(context, step, &mut of_step);
        marks(context, step, is_like_ours, &mut of_step);
        found.extend(of_step.into_iter().map(|diagnostic| diagnostic.step(step.node.step_name())));
    }
}

fn subscriptions(entries: &[Spanned<Subscription>], found: &mut Vec<Diagnostic>) {
    if let Some(surplus) = entries.get(SUBSCRIPTIONS_MAX) {
        let message = format!("the step has {} subscriptions, and the limit is 50", entries.len());
        let many = Diagnostic::new(Code::P008, message).at(surplus.span, "number 51");
        found.push(many.help("name the few files that matter; the worker can read the rest itself"));
    }
}

fn plan(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let tree = context.tree;
    if tree.steps.is_empty() && tree.steps_heading.is_none() && tree.steps_meant.is_none() {
        return found.push(super::foreign::finding(context));
    }
    idle_parallel(context, found);
    let top = tree.frontmatter.span.map_or(Span::at(0), |span| Span::new(span.end, span.end));
    match &tree.head.title {
        None => {
            let missing = Diagnostic::new(Code::P007, "the plan has no title");
            found.push(match underlined(context, top.end, '=', |_| true) {
                Some(heading) => hashed(missing, context, heading, "#"),
                None => missing
                    .at(top, "a `# Title` was expected below")
                    .help("write `# ` and what the plan is for"),
            });
        }
        Some(title) if title.value.is_empty() => {
            found.push(
                Diagnostic::new(Code::P007, "the plan's title is empty")
                    .at(title.span, "")
                    .help("write `# Title`"),
            );
        }
        Some(title) => long_title(title.value.chars().count(), title.span, found),
    }
    let after_head = tree.head.title.as_ref().map_or(top, |title| Span::at(title.span.end));
    match tree.steps_heading {
        None if let Some(meant) = meant_steps(tree) => {
            let written = escape(context.source.slice(meant).trim());
            let message = format!("the plan has no `## Steps` section, but `{written}`");
            let missing = Diagnostic::new(Code::P007, message).at(meant, "this section");
            found.push(match alike::in_ascii(context.source.slice(meant)) {
                Some(_) => alike::report(context.source.slice(meant).trim(), "## Steps", meant),
                None => missing.help("did you mean `## Steps`?").fix(meant, "## Steps", true),
            });
        }
        None => {
            let message = "the plan has no `## Steps` section";
            let missing = Diagnostic::new(Code::P007, message);
            if let Some(heading) =
                underlined(context, top.end, '-', |text| text.eq_ignore_ascii_case("steps"))
            {
                return found.push(hashed(missing, context, heading, "##"));
            }
            let missing = missing.at(after_head, "looked for below this, to the end of the file");
            let mut missing = missing.help("write `## Steps` on a line of its own before the first step");
            if let Some(first) = tree.steps.first() {
                missing = missing.fix(Span::at(first.heading.start), "## Steps\n\n", true);
            }
            found.push(missing);
        }
        Some(heading) if tree.steps.is_empty() => {
            let none =
                Diagnostic::new(Code::P007, "the plan has no step").at(heading, "no `### 1. Title` follows");
            found.push(none.help("write `### 1. Title`, then target, task and contract"));
        }
        Some(_) => {}
    }
    status(context, found);
}

/// Says that `**parallel:**` alone runs nothing at once: steps that name no others come one after another.
fn idle_parallel(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(many) = context.tree.head.attributes.max_parallel.raw() else { return };
    if context.order.is_linear() && context.tree.steps.len() > 1 {
        let message = "`**parallel:**` changes nothing here: each step waits for the one above it";
        let idle = Diagnostic::new(Code::P015, message).level(Severity::Warning).at(many.span, "");
        found.push(idle.help(
            "say in the steps what they wait for, `**needs:** none` or `**needs:** 1, 2`; or delete the line",
        ));
    }
}

fn check_place(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.facts.plan_is_inside == Some(false) {
        let outside =
            Diagnostic::new(Code::P603, "the plan lies outside the workspace; it runs all the same");
        found.push(
            outside
                .at(Span::at(context.source.bom_bytes()), "")
                .note("paths in it are relative to the workspace, not to the plan"),
        );
    }
}

/// Finds a heading above the first step that is written with a line of `=` or `-` below it; returns both lines.
fn underlined(
    context: &Context<'_>,
    from: usize,
    under: char,
    is_meant: impl Fn(&str) -> bool,
) -> Option<Span> {
    let end = context.tree.steps.first().map_or(context.source.text().len(), |step| step.heading.start);
    let lines = (0..context.source.line_count()).map(|line| context.source.line_span(line));
    let lines: Vec<Span> = lines.filter(|span| (from..end).contains(&span.start)).collect();
    let pair = lines.windows(2).find(|pair| {
        let [text, line] = [pair[0], pair[1]].map(|span| context.source.slice(span).trim());
        let is_line = line.len() > 1 && line.chars().all(|c| c == under);
        is_line && text.starts_with(char::is_alphanumeric) && is_meant(text)
    })?;
    Some(Span::new(pair[0].start, pair[1].end))
}

/// Says of a heading with a line below it how planctl reads headings.
fn hashed(missing: Diagnostic, context: &Context<'_>, heading: Span, hashes: &str) -> Diagnostic {
    let text = context.source.slice(heading).lines().next().unwrap_or_default().trim();
    let written = format!("{hashes} {text}");
    missing
        .at(heading, "a heading with a line below it is not read")
        .help(format!("write `{}`", escape(&written)))
        .fix(heading, written, true)
}

// A section after the first step is not the one that holds it.
fn meant_steps(tree: &PlanTree) -> Option<Span> {
    tree.steps_meant.filter(|meant| tree.steps.first().is_none_or(|first| meant.start < first.heading.start))
}

fn long_title(characters: usize, span: Span, found: &mut Vec<Diagnostic>) {
    if characters > TITLE_CHARACTERS_MAX {
        let message = format!("the title has {characters} characters, and the limit is 200");
        found.push(Diagnostic::new(Code::P008, message).at(span, "").help("say the rest in the task"));
    }
}

// The database is the record: a status typed into the file decides nothing (P-17, rows 6 and 7).
fn status(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let ignored = "the status and the marks of a run are ignored: the database is the record";
    let Some(status) = &context.tree.frontmatter.status else {
        let mark = context.tree.steps.iter().find_map(|step| step.mark.as_ref());
        let mark = mark.filter(|_| is_like_ours(context));
        found.extend(
            mark.map(|mark| Diagnostic::new(Code::P006, ignored).level(Severity::Note).at(mark.span, "")),
        );
        return;
    };
    let is_known = crate::tree::parse::STATUSES.contains(&status.value.as_str());
    if !is_known || status.value == "draft" {
        return;
    }
    if is_like_ours(context) {
        found.push(Diagnostic::new(Code::P006, ignored).level(Severity::Note).at(status.span, ""));
        return;
    }
    let message =
        format!("`status: {}` is ignored: the file has no marks of such a run", escape(&status.value));
    let ignored = Diagnostic::new(Code::P006, message).at(status.span, "the database is the record");
    found.push(ignored.help("leave it at `draft`; planctl sets it").fix(status.span, "draft", true));
}

// Verification asks no database, so a status and marks that a run can have left are taken for planctl's own. A run that waits for
// its first worker has marked no step, nor has one that was cancelled before it had any; a run that is done leaves steps
// unmarked that its path did not enter; a plan may be approved again after a run, or handed in anew in place of one.
fn is_like_ours(context: &Context<'_>) -> bool {
    let status = context.tree.frontmatter.status.as_ref().map(|status| status.value.as_str());
    let mut marks = context.tree.steps.iter().filter_map(|step| step.mark.as_ref()).peekable();
    match status {
        Some("done") => marks.peek().is_some() && marks.all(|mark| mark.value != Mark::Working.symbol()),
        Some("in-progress" | "failed" | "approved" | "verified") => true,
        Some(_) => false,
        // Marks are all that a run leaves where the frontmatter has no line for its status.
        None => context.tree.frontmatter.span.is_some(),
    }
}

fn title(step: &StepTree, found: &mut Vec<Diagnostic>) {
    if step.node.step_title().is_empty() {
        let empty =
            Diagnostic::new(Code::P009, "the step has no title").at(step.heading, "a title was expected");
        found.push(empty.help("write what the step achieves after its number"));
    }
    long_title(step.node.step_title().chars().count(), step.title_span(), found);
}

fn lint_required(context: &Context<'_>, step: &StepTree, found: &mut Vec<Diagnostic>) {
    let node = &step.node;
    let kind = node.kind.value;
    let is_work = kind == Kind::Task;
    let is_told = matches!(kind, Kind::Task | Kind::Human | Kind::Escalate);
    let is_run = matches!(kind, Kind::Task | Kind::Call);
    let name = &node.id.value;
    let missing = |field: Field| !step.unread.contains(&field);
    if is_work && node.role.is_none() && missing(Field::Target) {
        let diagnostic = Diagnostic::new(Code::P009, format!("step {name}: target is missing"));
        let diagnostic = diagnostic.at(step.heading, "this step");
        found.push(match context.facts.roles.as_deref() {
            Some(roles @ [first, ..]) => diagnostic
                .note(super::roles::known(roles))
                .help(format!("say who does it: `**target:** {}`", escape(first))),
            Some([]) | None => diagnostic.help("say who does it: `**target:** coder`"),
        });
    }
    if is_told && node.task.is_none() && missing(Field::Task) {
        let diagnostic = Diagnostic::new(Code::P009, format!("step {name}: task is missing"));
        found.push(
            diagnostic.at(step.heading, "this step").help("say what to do: `**task:**` and text below it"),
        );
    }
    if is_run && node.contract.is_none() && node.attributes.judge.raw().is_none() && missing(Field::Contract)
    {
        let diagnostic = Diagnostic::new(Code::P010, format!("step {name} has no contract"));
        let help =
            "say what proves it:\n**contract:**\n```shell\ntest -f docs/analysis.md\n```\nexit_code == 0";
        let missing = diagnostic.at(step.heading, "nothing can decide whether this step is done").help(help);
        found.push(match &node.task {
            Some(task) => {
                let end = context.source.line_span(context.source.line_of(task.span.end)).end;
                missing.fix(Span::at(end), format!("\n\n**contract:**\n{CONTRACT_STUB}"), false)
            }
            None => missing,
        });
    }
    let Some(contract) = &node.contract else { return };
    if contract.exit_code.is_none() && missing(Field::ExitCode) {
        let note = Diagnostic::new(Code::P020, "no exit code is given; `exit_code == 0` applies");
        found.push(note.at(contract.fence, "this contract"));
    }
}

// Fields that a step of its kind has no use for: their values would be dropped without a word.
fn lint_idle_fields(step: &StepTree, found: &mut Vec<Diagnostic>) {
    let (kind, said) = (&step.node.kind, &step.node.attributes);
    let (word, runs, is_told, is_tried) = match kind.value {
        Kind::Task | Kind::Start | Kind::Fork | Kind::Exit => return,
        // People read the task of a call, a checkpoint or a sub-plan.
        Kind::Call => ("call", true, true, true),
        Kind::Decision => ("decision", true, true, true),
        Kind::Human => ("human", false, true, false),
        Kind::Escalate => ("escalate", false, true, false),
        Kind::Checkpoint => ("checkpoint", false, true, false),
        Kind::Join => ("join", false, false, true),
        Kind::SubPlan => ("sub-plan", false, true, true),
    };
    if let Some(contract) = step.node.contract.as_ref().filter(|_| !runs) {
        let message = format!("no contract runs at a step of `type: {word}`");
        let dropped = Diagnostic::new(Code::P015, message).at(contract.fence, "nobody would run this");
        found.push(dropped.at(kind.span, "because of this type").help(
            "make it a step of its own behind this one, with `**type:** call`; or delete it, or the type",
        ));
    }
    if let Some(least) = said.min_tests.raw().filter(|_| !runs) {
        let message = format!("no tests are counted at a step of `type: {word}`");
        let dropped = Diagnostic::new(Code::P015, message).level(Severity::Warning);
        found.push(
            dropped.at(least.span, "").help("make it a field of the step whose contract runs the tests"),
        );
    }
    if let Some(task) = step.node.task.as_ref().filter(|_| !is_told) {
        let message = format!("nobody is given the task of a step of `type: {word}`");
        let dropped = Diagnostic::new(Code::P015, message).level(Severity::Warning);
        found.push(
            dropped.at(task.span, "").help("say it in the step's title, or in the task of another step"),
        );
    }
    if let Some(time) = said.timeout.raw().filter(|_| !runs) {
        let message = format!("no timeout acts at a step of `type: {word}`");
        let dropped = Diagnostic::new(Code::P015, message).level(Severity::Warning);
        found.push(
            dropped
                .at(time.span, "")
                .help("delete it; `**ask_deadline:**` says how long a person is waited for"),
        );
    }
    if let Some(policy) = said.on_fail.raw().filter(|_| !is_tried) {
        let message = format!("`on_fail` has no effect at a step of `type: {word}`");
        let dropped = Diagnostic::new(Code::P015, message).level(Severity::Warning);
        found.push(
            dropped.at(policy.span, "").help("delete it; a line of `## Flow` says where another edge leads"),
        );
    }
}

// The plan of a sub-plan is named there, and at no other step.
fn lint_sub_plan(step: &StepTree, found: &mut Vec<Diagnostic>) {
    let said = &step.node.attributes;
    if step.node.kind.value != Kind::SubPlan {
        let of_sub_plans = [
            (Field::Plan, said.child_dotfile.raw()),
            (Field::Folder, said.child_workdir.raw()),
            (Field::Approval, said.child_approval.raw()),
        ];
        for (field, words) in of_sub_plans {
            let Some(span) = words.map(|words| words.span) else { continue };
            let message = format!("`**{}:**` is of a sub-plan alone", field.as_str());
            let dropped = Diagnostic::new(Code::P015, message).at(span, "nobody would read this");
            found.push(dropped.help("write `**type:** sub-plan`, or delete the field"));
        }
        return;
    }
    if said.child_dotfile.raw().is_none() && !step.unread.contains(&Field::Plan) {
        let message = format!("step {}: plan is missing", step.node.id.value);
        let missing = Diagnostic::new(Code::P009, message).at(step.heading, "this step");
        found.push(
            missing.help("name the file of the plan that it carries out: `**plan:** plans/release.md`"),
        );
    }
    if let Some(policy) = said.on_fail.spanned().filter(|policy| policy.value.retries.is_some()) {
        let message =
            "a sub-plan is not tried again: what its run does about a failure stands in its own plan";
        let idle = Diagnostic::new(Code::P015, message).level(Severity::Warning).at(policy.span, "");
        found.push(idle.help("write what follows when its run fails: `escalate`, `abort`, `skip` or `warn`"));
    }
}

fn policy(step: &StepTree, found: &mut Vec<Diagnostic>) {
    let said = &step.node.attributes;
    let is_tried = matches!(step.node.kind.value, Kind::Task | Kind::Call);
    let missing = is_tried && !step.unread.contains(&Field::OnFail);
    match said.on_fail.spanned() {
        None if missing && step.node.contract.is_some() && said.max_retries.raw().is_none() => {
            let note =
                Diagnostic::new(Code::P020, "no `on_fail` is given; `retry(2), then escalate` applies");
            found.push(note.at(step.heading, "this step"));
        }
        None => {}
        Some(policy) => {
            if let OnFail { retries: Some(retries), then: None } = policy.value {
                let message = "`on_fail` does not say what follows the last retry; a person is asked";
                let open = Diagnostic::new(Code::P016, message).at(policy.span, "`then escalate` applies");
                let whole = format!("retry({retries}), then escalate");
                found.push(open.help(format!("write `{whole}`")).fix(policy.span, whole, true));
            }
            if let (Some(retries), Some(most)) = (policy.value.retries, said.max_retries.spanned())
                && retries != most.value
            {
                let message = format!("`on_fail` grants {retries} retries, and `max_retries` {}", most.value);
                let conflict = Diagnostic::new(Code::P015, message)
                    .at(most.span, "this one")
                    .at(policy.span, "and this one");
                found.push(conflict.help("both mean the same; keep one"));
            }
        }
    }
}

// A contract that is green before the work on purpose is not asked to be red.
fn lint_guard(step: &StepTree, found: &mut Vec<Diagnostic>) {
    let (Some(guard), Some(policy)) =
        (step.node.attributes.guard.spanned(), step.node.attributes.red_first.spanned())
    else {
        return;
    };
    if !guard.value || policy.value == RedFirst::Off {
        return;
    }
    let message = format!("`red_first: {}` has no effect on a step that is a guard", policy.value.as_str());
    let idle = Diagnostic::new(Code::P015, message).level(Severity::Warning);
    let idle = idle.at(policy.span, "asks that the contract fails before the work");
    let idle = idle.at(guard.span, "says that it passes before the work");
    found.push(idle.help("keep the one that is meant"));
}

fn locks(locks: &[Spanned<String>], found: &mut Vec<Diagnostic>) {
    let is_name = |name: &str| {
        name.len() <= 100
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    for lock in locks.iter().take(LOCKS_MAX).filter(|lock| !is_name(&lock.value)) {
        let message = format!("`{}` can't be the name of a lock", escape(&lock.value));
        let refused = Diagnostic::new(Code::P015, message).at(lock.span, "");
        found.push(refused.help(
            "locks have up to 100 letters, digits, `-`, `_`, `.` and `/`, the first a letter or digit",
        ));
    }
    if let Some(surplus) = locks.get(LOCKS_MAX) {
        let message = format!("a step has {} locks, and {LOCKS_MAX} are the most", locks.len());
        found.push(Diagnostic::new(Code::P008, message).at(surplus.span, "the first too many"));
    }
}

fn not_supported_yet(field: &str, what: &str, span: Span) -> Diagnostic {
    let message = format!("`{field}` ({what}) is not supported yet");
    Diagnostic::new(Code::P017, message).at(span, "refused, since ignoring it would change the plan")
}

fn unsupported(step: &StepTree, found: &mut Vec<Diagnostic>) {
    if let Some(gate) = &step.gate {
        found.push(not_supported_yet("gate", "a gate of another kind", gate.span).help("delete the field"));
    }
}

// A heading that is a template is reported for its number.
fn for_each(context: &Context<'_>, step: &StepTree, found: &mut Vec<Diagnostic>) {
    if let Some(items) = step.for_each.as_ref().filter(|_| step.node.number.is_some()) {
        let several =
            Diagnostic::new(Code::P012, "`**for_each:**` makes a step per item, and is not expanded")
                .at(items.span, "these are the items");
        let several = several.note("a plan that is approved must say exactly what will run");
        found.push(several.help(numbers::expand_help(context.source.path())));
    }
}

fn marks(context: &Context<'_>, step: &StepTree, is_like_ours: bool, found: &mut Vec<Diagnostic>) {
    if let Some(mark) = step.mark.as_ref().filter(|_| !is_like_ours) {
        let status = context.tree.frontmatter.status.as_ref().map_or("draft", |status| status.value.as_str());
        let message =
            format!("the mark `{}` is ignored: no run leaves it at `status: {}`", mark.value, escape(status));
        let ignored = Diagnostic::new(Code::P006, message).at(mark.span, "the database is the record");
        found.push(ignored.help("delete it").fix(mark.span, "", true));
    }
    if let Some(status) = &step.status {
        let message = format!("the step's status `{}` is ignored", escape(&status.value));
        let ignored = Diagnostic::new(Code::P006, message).at(status.span, "the database is the record");
        found.push(ignored.help("delete the line").fix(
            context.source.whole_line(status.span.start),
            "",
            true,
        ));
    }
}
