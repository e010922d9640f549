//! Reads the fields of a step, and of the plan's head.

use planctl_engine::{ChildApproval, Priority, WorkKind};

use super::field::RawField;
use super::{Reader, heading};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::dot::{GraphAttributes, NodeAttributes, PARALLEL, RETRIES, TESTS, VISITS};
use crate::syntax::values::{self, Unread};
use crate::syntax::written::{FieldValue as _, ValueForm, Written};
use crate::text::near::nearest;
use crate::text::{Spanned, escape};
use crate::tree::workflow::{Kind, NamedContract, NodeTree, ToolFields};
use crate::tree::{ContractTree, Field, Form, StepNumber, StepTree, WorkspaceMode};

const KINDS: [(&str, Kind, Option<WorkKind>); 9] = [
    ("code", Kind::Task, Some(WorkKind::Code)),
    ("review", Kind::Task, Some(WorkKind::Review)),
    ("decision", Kind::Decision, None),
    ("human", Kind::Human, None),
    ("call", Kind::Call, None),
    ("checkpoint", Kind::Checkpoint, None),
    ("join", Kind::Join, None),
    ("escalate", Kind::Escalate, None),
    ("sub-plan", Kind::SubPlan, None),
];

/// Returns a kind of step as authors write it.
pub(crate) fn kind_word(kind: Kind, work: WorkKind) -> &'static str {
    let is_kind =
        |(_, known, of): &&(&str, Kind, Option<WorkKind>)| *known == kind && of.is_none_or(|of| of == work);
    KINDS.iter().find(is_kind).map_or("", |(word, ..)| word)
}

impl Reader<'_> {
    pub(super) fn take_field(&mut self, known: Field, field: &RawField, end: usize) {
        match known.form() {
            Form::Line if known == Field::Budget => self.take_budget(field, end),
            Form::Line => match self.single(field, end) {
                Some(value) => self.take_value(known, value, field.in_step),
                None => self.report_empty(known, field),
            },
            Form::Text => {
                let text = self.text(field, end);
                if known == Field::Context {
                    self.tree.head.attributes.goal = text.into();
                    return;
                }
                if known == Field::Arguments {
                    return match text {
                        Some(text) => self.tool_fields().arguments = Some(text),
                        None => self.report_empty(known, field),
                    };
                }
                self.set(known, field, text, |step, text| {
                    if known == Field::Task {
                        step.node.task = Some(text);
                    } else if known == Field::Judge {
                        step.node.attributes.judge = text.into();
                    } else {
                        step.for_each = Some(text);
                    }
                });
            }
            Form::List if known == Field::Subscriptions => self.take_subscriptions(field, end),
            Form::List => {
                let entries = self.list(field, end);
                if entries.iter().all(|entry| entry.value.is_empty()) {
                    return self.report_empty(known, field);
                }
                self.say(|said| {
                    let list = if known == Field::Changes {
                        &mut said.changes
                    } else if known == Field::Protects {
                        &mut said.protects
                    } else {
                        &mut said.locks
                    };
                    *list = Written::list(&entries);
                });
            }
            Form::Contract => self.take_contract(field, end),
        }
    }

    fn take_value(&mut self, known: Field, value: Spanned<String>, in_step: bool) {
        match known {
            Field::Priority => self.tree.head.priority = self.read(known, &value, Priority::FORM).spanned(),
            Field::StaleAfter => {
                self.tree.head.attributes.stale_after =
                    self.phrase(known, &value, values::duration(&value.value));
            }
            Field::Parallel => self.tree.head.attributes.max_parallel = self.read(known, &value, PARALLEL),
            Field::Target => self.on_step(|step| step.node.role = Some(value)),
            Field::Server => self.tool_fields().server = Some(value),
            Field::Tool => self.tool_fields().tool = Some(value),
            Field::Plan => self.say(|said| said.child_dotfile = value.into()),
            Field::Folder => self.say(|said| said.child_workdir = value.into()),
            Field::Approval => {
                let approval = self.read(known, &value, ChildApproval::FORM);
                self.say(|said| said.child_approval = approval);
            }
            Field::Kind => self.take_kind(value),
            Field::Intent => self.on_step(|step| step.intent = Some(value)),
            Field::OnFail => self.take_on_fail(value),
            Field::ExitCode => self.take_exit_code_field(value),
            Field::Timeout => {
                let limit = self.phrase(known, &value, values::duration(&value.value));
                self.say(|said| said.timeout = limit);
            }
            Field::ContractTimeout => {
                let limit = self.phrase(known, &value, values::duration(&value.value));
                self.say(|said| said.contract_timeout = limit);
            }
            Field::Guard => self.take_guard(value),
            Field::JudgeBy => self.say(|said| said.judge_by = value.into()),
            Field::RedFirst => {
                let policy = self.red_first(&value);
                self.say_there(in_step, policy, |of| &mut of.red_first, |of| &mut of.red_first);
            }
            Field::AskDeadline => {
                let deadline = self.phrase(known, &value, values::ask_deadline(&value.value));
                self.say_there(in_step, deadline, |of| &mut of.ask_deadline, |of| &mut of.ask_deadline);
            }
            Field::MaxRetries => {
                let number = self.read(known, &value, RETRIES);
                self.say(|said| said.max_retries = number);
            }
            Field::MaxVisits => {
                let number = self.read(known, &value, VISITS);
                self.say_there(in_step, number, |of| &mut of.max_visits, |of| &mut of.max_visits);
            }
            Field::MinTests => {
                let number = self.read(known, &value, TESTS);
                self.say(|said| said.min_tests = number);
            }
            Field::Needs => self.take_needs(value),
            Field::When => self.say(|said| drop(said.when.read(value.span, value, ValueForm::Text))),
            Field::Gate => self.on_step(|step| step.gate = Some(value)),
            Field::Workspace => {
                let mode = self.read(known, &value, WorkspaceMode::FORM);
                self.say(|said| said.workspace = mode);
            }
            Field::Status => self.on_step(|step| step.status = Some(value)),
            // These are no single line.
            Field::Context
            | Field::Budget
            | Field::Task
            | Field::Contract
            | Field::Subscriptions
            | Field::Changes
            | Field::Protects
            | Field::Locks
            | Field::Arguments
            | Field::Judge
            | Field::ForEach => {}
        }
    }

    /// Returns what the newest step says of a tool.
    fn tool_fields(&mut self) -> &mut ToolFields {
        self.tools.entry(self.tree.steps.len().saturating_sub(1)).or_default()
    }

    /// Makes the commands of the calls that name a tool in place of a contract.
    pub(super) fn take_tools(&mut self) {
        for (at, mut fields) in std::mem::take(&mut self.tools) {
            let Some(step) = self.tree.steps.get_mut(at) else { continue };
            // A list in words makes several steps of a template; one that refers to a result is gone through when it runs.
            fields.for_each =
                step.for_each.take_if(|list| list.value.contains("${") || list.value.starts_with('['));
            let is_call = step.node.kind.value == Kind::Call;
            let name = step.node.step_name();
            let at = fields.tool.as_ref().or(fields.server.as_ref()).or(fields.arguments.as_ref());
            let at = at.map_or(step.heading, |field| field.span);
            let refused = match (&step.node.contract, fields.command()) {
                (Some(_), _) => Diagnostic::new(Code::P015, "the step has a contract and a tool").at(at, "").help(
                    "keep one of them: a call is a tool or a command; another step can look at what the tool gave",
                ),
                (None, _) if !is_call => {
                    Diagnostic::new(Code::P015, "only a call uses a tool").at(at, "").help("write `**type:** call`")
                }
                (None, Err(refused)) => *refused,
                (None, Ok(command)) => {
                    step.node.contract = Some(ContractTree {
                        command: command.value,
                        line_starts: Vec::new(),
                        span: command.span,
                        fence: command.span,
                        exit_code: Some(Spanned::new(0, command.span)),
                    });
                    continue;
                }
            };
            step.unread.push(Field::Contract);
            self.found.push(refused.step(name));
        }
    }

    /// Says a value of the step, or of the plan.
    fn say_there<T>(
        &mut self,
        in_step: bool,
        value: Written<T>,
        of_step: fn(&mut NodeAttributes) -> &mut Written<T>,
        of_plan: fn(&mut GraphAttributes) -> &mut Written<T>,
    ) {
        match in_step {
            true => self.say(|said| *of_step(said) = value),
            false => *of_plan(&mut self.tree.head.attributes) = value,
        }
    }

    fn say(&mut self, change: impl FnOnce(&mut NodeAttributes)) {
        self.on_step(|step| change(&mut step.node.attributes));
    }

    pub(super) fn on_step(&mut self, change: impl FnOnce(&mut StepTree)) {
        if let Some(step) = self.tree.steps.last_mut() {
            change(step);
        }
    }

    fn set(
        &mut self,
        known: Field,
        field: &RawField,
        value: Option<Spanned<String>>,
        change: impl FnOnce(&mut StepTree, Spanned<String>),
    ) {
        match value {
            Some(value) => self.on_step(|step| change(step, value)),
            None => self.report_empty(known, field),
        }
    }

    fn take_kind(&mut self, value: Spanned<String>) {
        let word = value.value.to_lowercase().replace('_', "-");
        match KINDS.iter().find(|(name, ..)| *name == word) {
            Some((_, kind, work)) => self.on_step(|step| {
                (step.node.kind, step.node.work) = (Spanned::new(*kind, value.span), *work);
            }),
            None => {
                let near = nearest(&word, KINDS.iter().map(|(name, ..)| *name));
                let list = KINDS.map(|(name, ..)| name).join(", ");
                let message = format!("`{}` is not a type of step", escape(&value.value));
                let refused = Diagnostic::new(Code::P015, message).at(value.span, "");
                let otherwise = format!("the types are {list}");
                self.report_value(Field::Kind, refused.near(near, value.span, str::to_owned, otherwise));
            }
        }
    }

    fn take_on_fail(&mut self, value: Spanned<String>) {
        match values::on_fail(&value.value) {
            Ok(policy) => self.say(|said| said.on_fail = Written::with_words(value, Some(policy))),
            Err(unread) => {
                let why = format!("`**on_fail:**` can't be read: {}", unread.why);
                self.report_unread_value(Field::OnFail, &value, Unread { why, ..unread });
            }
        }
    }

    fn take_guard(&mut self, value: Spanned<String>) {
        let guard = match value.value.to_lowercase().as_str() {
            "yes" | "true" | "on" => Some(true),
            "no" | "false" | "off" => Some(false),
            _ => None,
        };
        match guard {
            Some(guard) => self.say(|said| said.guard = Written::of(Spanned::new(guard, value.span))),
            None => {
                let message = format!("`{}` is not a value of `**guard:**`", escape(&value.value));
                let refused =
                    Diagnostic::new(Code::P015, message).at(value.span, "").help("write `yes` or `no`");
                self.report_value(Field::Guard, refused);
            }
        }
    }

    fn take_needs(&mut self, value: Spanned<String>) {
        if value.value.ends_with(',') {
            let message = "`**needs:**` ends with a comma, and is read up to the end of its line";
            let cut = Diagnostic::new(Code::P015, message).at(value.span, "");
            return self
                .report_value(Field::Needs, cut.help("write all numbers on one line: `**needs:** 1, 2`"));
        }
        let parts = value.value.split([',', ' ']).map(|part| part.trim().trim_start_matches('#'));
        let parts = parts.filter(|part| !part.is_empty() && !matches!(*part, "and" | "none"));
        let named: Option<Vec<StepNumber>> =
            parts.map(|part| Some(heading::read_number(part, value.span)?.ok()?.value)).collect();
        match named {
            Some(named) => self.on_step(|step| {
                let mut numbers = Vec::new();
                for need in named {
                    match need {
                        StepNumber::Fixed(number) => numbers.push(number.to_string()),
                        StepNumber::Template(text) => {
                            step.needed_templates.push(Spanned::new(text, value.span));
                        }
                    }
                }
                let words = Spanned::new(numbers.join(", "), value.span);
                step.node.attributes.needs = Written::with_words(words, Some(numbers));
            }),
            None => {
                let refused = Diagnostic::new(Code::P015, "`**needs:**` names steps by their numbers")
                    .at(value.span, "");
                self.report_value(Field::Needs, refused.help("write `**needs:** 1, 2`, or `none`"));
            }
        }
    }

    fn take_subscriptions(&mut self, field: &RawField, end: usize) {
        let entries = self.list(field, end);
        if entries.is_empty() {
            return self.report_empty(Field::Subscriptions, field);
        }
        let is_none = entries.len() == 1 && entries[0].value.eq_ignore_ascii_case("none");
        if is_none {
            return;
        }
        let mut read = Vec::with_capacity(entries.len());
        for entry in entries {
            match values::subscription(&entry.value) {
                Ok(subscription) => read.push(Spanned::new(subscription, entry.span)),
                Err(unread) => self.report_unread_value(Field::Subscriptions, &entry, unread),
            }
        }
        self.say(|said| said.subscriptions = Written::list(&read));
    }
}

/// Says the task and the contract of a step where nodes of its kind have theirs.
pub(super) fn place_work(node: &mut NodeTree) {
    let (kind, said) = (&node.kind, &mut node.attributes);
    said.target = node.role.clone().into();
    let told = if kind.value == Kind::Escalate { &mut said.escalate } else { &mut said.prompt };
    *told = node.task.clone().into();
    // Code is what work is where nothing is said.
    let review = node.work.filter(|work| *work == WorkKind::Review);
    said.work = review.map(|work| Spanned::new(work, kind.span)).into();
    let Some(contract) = &node.contract else { return };
    said.expect_exit = contract.exit_code.clone().into();
    let command = Spanned::new(contract.command.trim_end().to_owned(), contract.span);
    // The command of a call, or of a decision, is no contract of somebody's work.
    if kind.value == Kind::Call {
        said.tool_command = command.into();
    } else if kind.value == Kind::Decision {
        said.command = command.into();
    } else {
        node.contracts.push(NamedContract { name: None, command });
    }
}
