//! The rules for what the harness found.

use planctl_engine::{
    AskKind, ChildEnd, Contract, Digest, End, Ending, Evidence, HarnessEvent, HarnessResult, Inconclusive,
    Judge, NodeId, NodeKind, Outcome, RedFirst, RehearsalResult, Signal,
};

use super::super::journal::Entry;
use super::super::verbs::evaluation;
use super::super::{Before, Knowledge, Model, NodePosition};
use super::{Fits, No};

impl Model {
    pub(super) fn harness_found(&mut self, event: &HarnessEvent) -> Fits {
        self.check_try(&event.at)?;
        let node = &event.at.node;
        match (&event.found, self.place(node)) {
            (HarnessResult::Evidence(evidence), NodePosition::WithHarness { gave_up }) => {
                self.evaluated(node, evidence, gave_up)
            }
            (HarnessResult::Rehearsed(evidence), NodePosition::Rehearsed) => self.rehearsed(node, evidence),
            (HarnessResult::Recorded { .. }, NodePosition::Rehearsed)
                if self.red_first(node) == RedFirst::Off =>
            {
                let known = Before::Kept(self.contract(node).ok_or(No)?.digest);
                self.journal.push(Entry::Before { node: node.clone(), known });
                self.begin(node);
                Ok(())
            }
            (HarnessResult::Recorded { name }, NodePosition::Saved { restores: false }) => {
                self.journal.push(Entry::Saved { node: node.clone(), name: name.clone() });
                self.tell(format!("saved {node}"));
                self.put(node, NodePosition::Over(Outcome::Passed));
                self.leave(node, Signal::Success);
                Ok(())
            }
            (HarnessResult::Restored, NodePosition::Saved { restores: true }) => {
                self.tell(format!("restored {node}"));
                self.put(node, NodePosition::Over(Outcome::Passed));
                self.leave(node, Signal::Success);
                Ok(())
            }
            (HarnessResult::Forked { base }, NodePosition::Forking { merges: false }) => {
                self.journal.push(Entry::Saved { node: node.clone(), name: base.clone() });
                self.tell(format!("forked {node}"));
                self.spread(node);
                Ok(())
            }
            (HarnessResult::Merged { files, .. }, NodePosition::Forking { merges: true }) => {
                let outcome = self.merging(node).ok_or(No)?;
                self.tell(format!("merged {node} {files}"));
                self.tell_next(node, None);
                self.journal.push(Entry::Merging { node: node.clone(), outcome: None });
                self.end_join(node, outcome);
                Ok(())
            }
            (HarnessResult::Conflicted(_), NodePosition::Forking { merges: true }) => {
                self.tell(format!("conflicted {node}"));
                self.ask(node, AskKind::Escalation, "conflict");
                Ok(())
            }
            (HarnessResult::Begun { run, budget, waits }, NodePosition::Within) => {
                let is_known = self.child(node) == Some(*run);
                self.promise_what_a_run_may_use(node, *budget, is_known);
                if !is_known {
                    self.tell(format!("began {node}"));
                }
                self.journal.push(Entry::Child { node: node.clone(), run: *run, waits: *waits });
                Ok(())
            }
            (HarnessResult::Ended(child), NodePosition::Within) => {
                self.child_ended(node, child);
                Ok(())
            }
            (
                HarnessResult::Nothing(why),
                place @ (NodePosition::Rehearsed
                | NodePosition::Saved { .. }
                | NodePosition::Forking { .. }
                | NodePosition::Within
                | NodePosition::WithHarness { .. }),
            ) => {
                match why {
                    Inconclusive::Interrupted => self.interrupted(node, place),
                    Inconclusive::Unheard { usage } => {
                        self.charge_judge(node, Some(usage));
                        self.interrupted(node, place);
                    }
                    Inconclusive::ToolMissing { .. } | Inconclusive::Unstable { .. } => {
                        self.told_nothing(node, &place);
                    }
                    Inconclusive::Unjudged { usage, .. } => {
                        self.charge_judge(node, usage.as_ref());
                        self.told_nothing(node, &place);
                    }
                    Inconclusive::Unapproved { prompt } => {
                        let NodePosition::WithHarness { gave_up } = place else { return Err(No) };
                        self.judge_of(node).filter(|judge| judge.approval).ok_or(No)?;
                        self.journal.push(Entry::Proposed { node: node.clone(), gave_up: Some(gave_up) });
                        self.journal
                            .push(Entry::Prompted { node: node.clone(), prompt: prompt.digest.clone() });
                        self.ask(node, AskKind::Prompt, "prompt");
                    }
                    Inconclusive::Unfunded { estimate } => {
                        let NodePosition::WithHarness { gave_up } = place else { return Err(No) };
                        self.judge_of(node).ok_or(No)?;
                        if self.can_pay(estimate.tokens, estimate.micro_usd) {
                            self.told_nothing(node, &place);
                        } else {
                            self.journal.push(Entry::Proposed { node: node.clone(), gave_up: Some(gave_up) });
                            self.ask(node, AskKind::Budget, "budget");
                        }
                    }
                }
                Ok(())
            }
            (
                HarnessResult::Evidence(_)
                | HarnessResult::Rehearsed(_)
                | HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_),
                _,
            ) => Err(No),
        }
    }

    fn judge_of(&self, node: &NodeId) -> Option<Judge> {
        self.contract(node)?.judge.map(|judge| *judge)
    }

    fn evaluated(&mut self, node: &NodeId, evidence: &Evidence, gave_up: bool) -> Fits {
        let contract = self.contract(node).ok_or(No)?;
        let verdict = verdict(&contract, evidence).ok_or(No)?;
        let judgement = evidence.judgement.as_deref();
        let verdict = match (verdict, &contract.judge) {
            ("passed", Some(judge)) => {
                let answer = judgement.filter(|answer| answer.question == judge.digest).ok_or(No)?;
                let approved = self.prompt(node).filter(|(_, is_approved)| *is_approved);
                if judge.approval && approved.map(|(prompt, _)| prompt) != answer.prompt {
                    return Err(No);
                }
                if judge.approval && answer.prompt.is_none() {
                    return Err(No);
                }
                if answer.passes { "passed" } else { "failed" }
            }
            (verdict, _) => verdict,
        };
        self.charge_judge(node, judgement.and_then(|judgement| judgement.usage.as_ref()));
        if self.graph.is_watched(node) {
            let code = if let Ending::Exited { code } = evidence.ending { Some(code) } else { None };
            let output = Some(evidence.stdout.tail.trim().to_owned());
            let known = self.known(node).unwrap_or_default();
            let known = Some(Knowledge { exit_code: code, output, ..known });
            self.journal.push(Entry::Known { node: node.clone(), known });
        }
        if matches!(self.kind(node), NodeKind::Call(_)) && self.graph.conditions_ask_for("tool.") {
            let mut context = self.context(node);
            let code =
                if let Ending::Exited { code } = evidence.ending { code.to_string() } else { String::new() };
            context.insert("tool.exit_code".to_owned(), code);
            context.insert("tool.output".to_owned(), evidence.stdout.tail.trim().to_owned());
            self.set_context(node, context);
        }
        let is_answer = matches!(evidence.ending, Ending::Exited { .. }) && verdict != "tampered";
        if is_answer && matches!(self.kind(node), NodeKind::Decision(_)) {
            let is_met = verdict == "passed";
            self.tell(format!("decided {node} {is_met}"));
            self.put(node, NodePosition::Over(Outcome::Passed));
            self.leave(node, if is_met { Signal::Success } else { Signal::Exhausted });
            return Ok(());
        }
        let was_green = matches!(self.before(node), Before::Showed(_, RehearsalResult::Green));
        let vacuous = if was_green && verdict == "passed" { " vacuous" } else { "" };
        self.tell(format!("verified {node}#{} {verdict}{vacuous}", self.attempt(node)));
        if verdict == "passed" {
            self.settle(node, Outcome::Passed);
            self.leave(node, Signal::Success);
        } else {
            let printed: String =
                [&evidence.stdout.tail, &evidence.stderr.tail].map(String::as_str).join("|");
            let words: String = printed.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            let how = match judgement {
                Some(_) => format!("judged {words}"),
                None if evidence.tests.is_some() && verdict == "failed" => format!("too few tests {words}"),
                None => format!("{verdict} {:?} {words}", evidence.ending),
            };
            self.attempt_failed(node, &how, gave_up);
        }
        Ok(())
    }

    /// Goes on from a plan within the plan as its run ended, and counts what that used.
    fn child_ended(&mut self, node: &NodeId, child: &ChildEnd) {
        let spent = &child.spent;
        self.journal.push(Entry::ChildCharged {
            tokens: spent.tokens,
            micro_usd: spent.micro_usd,
            metered: spent.metered as usize,
            unmetered: spent.unmetered as usize,
        });
        self.journal.push(Entry::Child { node: node.clone(), run: child.run, waits: false });
        self.tell(format!("ended {node} {:?}", child.end));
        let NodeKind::SubPlan(plan) = self.kind(node) else { return };
        let is_met = plan.until.is_none_or(|until| self.is_true_at(node, &until));
        if child.end == End::Done && is_met {
            self.settle(node, Outcome::Passed);
            self.leave(node, Signal::Success);
        } else if child.end == End::Done && self.failed(node) + 1 < usize::from(plan.cycles) {
            self.journal.push(Entry::Failed { node: node.clone() });
            self.tell(format!("retry {node}#{}", self.attempt(node) + 1));
            self.begin(node);
        } else {
            self.journal.push(Entry::Failed { node: node.clone() });
            self.tell_next(node, Some(self.attempt(node)));
            self.exhausted(node, Some(&format!("{:?}", child.end)));
        }
    }

    fn rehearsed(&mut self, node: &NodeId, evidence: &Evidence) -> Fits {
        let contract = self.contract(node).ok_or(No)?;
        let showed = match verdict(&contract, evidence).ok_or(No)? {
            "passed" => RehearsalResult::Green,
            "tampered" => RehearsalResult::Tampered,
            _ => RehearsalResult::Red,
        };
        self.tell(format!("rehearsed {node} {}", showed.as_str()));
        let known = Before::Showed(contract.digest, showed);
        self.journal.push(Entry::Before { node: node.clone(), known });
        if self.awaits_rehearsal(node) {
            self.ask(node, AskKind::Escalation, "not_red");
        } else {
            self.begin(node);
        }
        Ok(())
    }

    fn told_nothing(&mut self, node: &NodeId, place: &NodePosition) {
        self.journal.push(Entry::Repeated { node: node.clone() });
        if self.repeats(node) < usize::from(self.graph.limits().repeats) {
            self.tell(format!("{} repeated {node}#{}", evaluation(place), self.attempt(node)));
            return;
        }
        // A worker is told of attempts alone, and nothing else that is evaluated is one.
        if matches!(place, NodePosition::WithHarness { .. }) {
            self.tell_next(node, Some(self.attempt(node)));
        }
        self.ask(node, AskKind::Escalation, "inconclusive");
    }
}

/// The verdict by the prose: other contract, no verdict; protected file changed, tampered; only the expected exit passes, with as
/// many tests as the contract asks for.
fn verdict(contract: &Contract, evidence: &Evidence) -> Option<&'static str> {
    let same: &Digest = &contract.digest;
    if *same != evidence.contract {
        return None;
    }
    Some(match evidence.ending {
        _ if !evidence.tampered.is_empty() => "tampered",
        Ending::TimedOut => "timed out",
        Ending::Exited { code } if code == i32::from(contract.expect) => {
            let passed = evidence.tests.map_or(0, |tests| tests.passed);
            if contract.min_tests.unwrap_or(0) > passed { "failed" } else { "passed" }
        }
        Ending::Exited { .. } | Ending::Signalled { .. } | Ending::OverLimit { .. } | Ending::NotRun => {
            "failed"
        }
    })
}
