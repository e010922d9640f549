//! Reads one line of a conversation: `agent reported a#1 500 tokens`, `human skip "not needed"`.

use std::collections::BTreeMap;
use std::time::Duration;

use planctl_engine::{
    Actor, AgentEvent, AgentSaid, Answer, At, Attempt, Budget, BudgetPart, ChildEnd, Circumstances,
    ClockEvent, Conflict, Day, DayScope, Decision, Digest, End, Ending, Event, Evidence, Excerpt, Fault,
    FaultKind, FileChange, Graph, HarnessEvent, HarnessResult, Hints, HumanEvent, Inconclusive, ItemId,
    Judgement, NodeId, Observation, Outcomes, Overrun, PromptToJudge, Report, Reserved, Resources, Role, Run,
    RunId, Spent, Tampering, TestCount, TimerId, Timestamp, Usage,
};

use super::plan::number;

/// The state that a line is read against: the run so far, its plan, and the asks that were opened.
pub struct Context<'a> {
    pub graph: &'a Graph,
    /// The next revision, where somebody revises the plan.
    pub revised: &'a Graph,
    pub run: &'a Run,
    pub asks: &'a [ItemId],
    pub now: Timestamp,
}

/// Reads one line of speech.
pub fn read(context: &Context<'_>, text: &str) -> Event {
    let (text, quoted) = match text.split_once('"') {
        Some((before, rest)) => (before, Some(rest.trim_end().trim_end_matches('"').to_owned())),
        None => (text, None),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["agent", said @ ..] => agent(context, said, quoted),
        ["harness", "found", at, found @ ..] => {
            let at = the_try(context, at, found);
            Event::Harness(HarnessEvent { found: finding(context, &at, found), at })
        }
        ["harness", "rehearsed", at, found @ ..] => {
            let at = the_try(context, at, found);
            let found = match finding(context, &at, found) {
                HarnessResult::Evidence(evidence) => HarnessResult::Rehearsed(evidence),
                other @ (HarnessResult::Rehearsed(_)
                | HarnessResult::Recorded { .. }
                | HarnessResult::Restored
                | HarnessResult::Forked { .. }
                | HarnessResult::Merged { .. }
                | HarnessResult::Conflicted(_)
                | HarnessResult::Begun { .. }
                | HarnessResult::Ended(_)
                | HarnessResult::Nothing(_)) => other,
            };
            Event::Harness(HarnessEvent { at, found })
        }
        ["human", decision @ ..] => {
            let decision = decided(context, decision);
            Event::Human(HumanEvent { by: Actor::from("the owner"), note: quoted, decision })
        }
        ["clock", "admitted"] => Event::Clock(ClockEvent::Admitted),
        ["clock", "unanswered", node] => {
            Event::Clock(ClockEvent::Due { timer: TimerId::Answer(NodeId::from(*node)) })
        }
        ["clock", "budget"] => Event::Clock(ClockEvent::Due { timer: TimerId::Budget }),
        ["clock", "metered"] => Event::Clock(ClockEvent::Metered),
        ["clock", "day", "spent", at] => Event::Clock(ClockEvent::DaySpent {
            at: the_try(context, at, &[]),
            part: BudgetPart::Tokens,
            limit: 50_000,
            spent: 51_000,
            day: Day { of: DayScope::Project, until: Timestamp::from_micros(0) },
        }),
        ["clock", "day", "allows", node] => Event::Clock(ClockEvent::DayAllows { node: NodeId::from(*node) }),
        ["clock", "sets", "aside", node, may_use @ ..] => Event::Clock(ClockEvent::SetAside {
            node: NodeId::from(*node),
            run: RunId::from_u128(2),
            budget: Budget { tokens: usage(may_use).map(|usage| usage.input_tokens), ..Budget::default() },
        }),
        ["clock", "unattended", seconds, "seconds"] => Event::Clock(ClockEvent::Unattended {
            since: Timestamp::from_micros(context.now.as_micros() - 1_000_000 * number(seconds) as i64),
        }),
        ["clock", "stale"] => Event::Clock(ClockEvent::Due { timer: TimerId::Stale }),
        ["clock", "lease", "lost", at, more @ ..] => Event::Clock(ClockEvent::LeaseLost {
            at: the_try(context, at, &[]),
            interrupted: false,
            noted: usage(more),
        }),
        ["clock", "own", "lease", "lost", at, more @ ..] => Event::Clock(ClockEvent::LeaseLost {
            at: the_try(context, at, &[]),
            interrupted: true,
            noted: usage(more),
        }),
        ["clock", "overran", at] => {
            Event::Clock(ClockEvent::Overran { at: the_try(context, at, &[]), noted: None })
        }
        _ => panic!("who says “{text}”?"),
    }
}

fn agent(context: &Context<'_>, said: &[&str], quoted: Option<String>) -> Event {
    let fault = |kind| {
        let message = quoted.clone().unwrap_or_else(|| "rate limited".to_owned());
        Fault::new(kind, message)
    };
    let (at, said) = match said {
        ["reported", at, more @ ..] => {
            let gave_up = more.contains(&"gave");
            let cut_off = more.contains(&"cut").then(|| fault(FaultKind::Transient));
            let lacking = more.contains(&"unauthorized").then(|| fault(FaultKind::Permission));
            let denied = more.windows(2).filter(|pair| pair[0] == "denied").map(|pair| pair[1].to_owned());
            let circumstances =
                Circumstances { cut_off: cut_off.or(lacking), denied: denied.collect(), session: None };
            let report = Report {
                gave_up,
                usage: usage(more),
                hints: hints(more),
                observation: (more.contains(&"saw")).then(|| {
                    Box::new(Observation::new(
                        Some("make".to_owned()),
                        (!more.contains(&"uncoded")).then_some(0),
                        quoted.as_deref().unwrap_or_default(),
                    ))
                }),
                circumstances: (circumstances != Circumstances::default()).then(|| Box::new(circumstances)),
                ..report()
            };
            (at, AgentSaid::Reported(report))
        }
        ["asked", at, more @ ..] => {
            (at, AgentSaid::Asked { question: quoted.clone().unwrap_or_default(), usage: usage(more) })
        }
        ["overran", at, more @ ..] => {
            let past = if more.contains(&"silent") { Overrun::Silence } else { Overrun::Deadline };
            (at, AgentSaid::Overran { past, duration: Duration::from_secs(600), usage: usage(more) })
        }
        ["faulted", at, more @ ..] => {
            (at, AgentSaid::Faulted(Fault { usage: usage(more), ..fault(FaultKind::Transient) }))
        }
        ["can", "not", "start", at] => (at, AgentSaid::Faulted(fault(FaultKind::Permanent))),
        ["lacks", "permission", at] => (at, AgentSaid::Faulted(fault(FaultKind::Permission))),
        ["released", at] => (at, AgentSaid::Released),
        other => panic!("what does the agent say: {other:?}?"),
    };
    Event::Agent(AgentEvent::new(the_try(context, at, &[]), said))
}

/// Reads `prefers yes`, `suggests b`, `notes name=value` and `proposes text` behind a report.
fn hints(words: &[&str]) -> Option<Box<Hints>> {
    let after = |word: &str| words.windows(2).find(|pair| pair[0] == word).map(|pair| pair[1].to_owned());
    let (label, suggested, note) = (after("prefers"), after("suggests"), after("notes"));
    let insert_step = after("proposes");
    let says = [&label, &suggested, &note, &insert_step].into_iter().any(Option::is_some);
    says.then(|| {
        let notes = note.iter().filter_map(|note| note.split_once('='));
        Box::new(Hints {
            label,
            suggested: suggested.iter().map(|node| NodeId::from(node.as_str())).collect(),
            context: notes.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            insert_step,
        })
    })
}

/// Reads `500 tokens` and `$2` behind a report.
pub(super) fn usage(words: &[&str]) -> Option<Usage> {
    let tokens = words.windows(2).find(|pair| pair[1] == "tokens").map(|pair| number(pair[0]));
    let dollars = words.iter().find_map(|word| word.strip_prefix('$')).map(|word| number(word) * 1_000_000);
    (tokens.is_some() || dollars.is_some()).then(|| Usage {
        input_tokens: tokens.unwrap_or(0),
        micro_usd: dollars,
        ..Usage::default()
    })
}

/// Reads `a#2` as the second try at `a`, in the visit the node is in, or the one that `visit N` names.
fn the_try(context: &Context<'_>, text: &str, more: &[&str]) -> At {
    let (node, attempt) = text.split_once('#').unwrap_or_else(|| panic!("“{text}” is no try"));
    let node = NodeId::from(node);
    let named = more.windows(2).find(|pair| pair[0] == "visit").map(|pair| number(pair[1]) as u16);
    let visit = named.unwrap_or_else(|| context.run.record(&node).unwrap().tally.visits);
    At { node, visit, attempt: Attempt::from_number(number(attempt) as u16) }
}

fn finding(context: &Context<'_>, at: &At, found: &[&str]) -> HarnessResult {
    let digest = context.graph.gated(&at.node).map(|gated| gated.contract.digest.clone());
    let mut evidence = evidence(digest.unwrap_or_else(|| Digest::from("sha256:none")), 0);
    match found {
        ["exit", code, "printing", printed] => {
            evidence.ending = Ending::Exited { code: number(code) as i32 };
            evidence.stdout.tail = (*printed).to_owned();
        }
        ["exit", code, "judged", word, used @ ..] => {
            evidence.ending = Ending::Exited { code: number(code) as i32 };
            let (prompt, used) = match used {
                ["to", prompt, used @ ..] => (Some(Digest::from(*prompt)), used),
                used => (None, used),
            };
            evidence.judgement = Some(Box::new(Judgement {
                question: Digest::from(if *word == "another" { "sha256:other" } else { "sha256:judge" }),
                by: "strict".to_owned(),
                passes: *word != "no",
                reason: "so it is".to_owned(),
                quotes: Vec::new(),
                prompt,
                usage: usage(used),
            }));
        }
        ["exit", code, "tests", passed, "of", least, ..] => {
            evidence.ending = Ending::Exited { code: number(code) as i32 };
            evidence.tests = Some(TestCount { passed: number(passed) as u32, least: number(least) as u32 });
        }
        ["exit", code, ..] => evidence.ending = Ending::Exited { code: number(code) as i32 },
        ["signal", signal] => evidence.ending = Ending::Signalled { signal: number(signal) as i32 },
        ["timeout"] => evidence.ending = Ending::TimedOut,
        ["tampered", path] => {
            let tampering = Tampering { path: (*path).to_owned(), change: FileChange::Changed, digest: None };
            evidence.tampered.push(tampering);
        }
        ["another", "contract"] => evidence.contract = Digest::from("sha256:another"),
        ["recorded", name] => return HarnessResult::Recorded { name: (*name).to_owned() },
        ["restored"] => return HarnessResult::Restored,
        ["begun", "waiting"] => {
            return HarnessResult::Begun { run: RunId::from_u128(2), budget: Budget::default(), waits: true };
        }
        ["begun", may_use @ ..] => {
            let tokens = usage(may_use).map(|usage| usage.input_tokens);
            let budget = Budget { tokens, ..Budget::default() };
            return HarnessResult::Begun { run: RunId::from_u128(2), budget, waits: false };
        }
        ["ended", end, ..] => {
            let end = match *end {
                "done" => End::Done,
                "failed" => End::Failed,
                other => panic!("how does a run end: {other}?"),
            };
            let spent = Spent { tokens: 300, metered: 1, ..Spent::default() };
            let (run, name, settled) = (RunId::from_u128(2), "child-1".to_owned(), Outcomes::default());
            return HarnessResult::Ended(Box::new(ChildEnd { run, name, end, settled, spent }));
        }
        ["forked"] => return HarnessResult::Forked { base: "base".to_owned() },
        ["merged"] => return HarnessResult::Merged { files: 2, protected: BTreeMap::new() },
        ["conflict", file] => {
            return HarnessResult::Conflicted(Box::new(Conflict {
                branch: Some(1),
                files: vec![(*file).to_owned()],
                folder: "/state/merge".to_owned(),
                hunks: Excerpt::default(),
            }));
        }
        ["nothing:", "interrupted"] => return HarnessResult::Nothing(Inconclusive::Interrupted),
        ["nothing:", "no", what] => {
            return HarnessResult::Nothing(Inconclusive::ToolMissing { what: (*what).to_owned() });
        }
        ["nothing:", "unjudged", used @ ..] => {
            let what = "no answer".to_owned();
            return HarnessResult::Nothing(Inconclusive::Unjudged { what, usage: usage(used) });
        }
        ["nothing:", "unheard", used @ ..] => {
            return HarnessResult::Nothing(Inconclusive::Unheard { usage: usage(used).unwrap() });
        }
        ["nothing:", "unapproved", prompt] => {
            let prompt = Box::new(PromptToJudge {
                digest: Digest::from(*prompt),
                by: "strict".to_owned(),
                model: "m-large".to_owned(),
                url: "https://models.example/v1/messages".to_owned(),
                tokens: 9_000,
            });
            return HarnessResult::Nothing(Inconclusive::Unapproved { prompt });
        }
        ["nothing:", "unfunded", tokens] => {
            let estimate = Reserved { tokens: number(tokens), ..Reserved::default() };
            return HarnessResult::Nothing(Inconclusive::Unfunded { estimate });
        }
        ["nothing:", "unstable", what] => {
            return HarnessResult::Nothing(Inconclusive::Unstable { what: (*what).to_owned() });
        }
        other => panic!("what does the harness find: {other:?}?"),
    }
    HarnessResult::Evidence(Box::new(evidence))
}

/// Returns evidence of a contract that exited with a code.
pub fn evidence(contract: Digest, code: i32) -> Evidence {
    Evidence {
        contract,
        ending: Ending::Exited { code },
        duration: Duration::from_secs(2),
        resources: Resources::default(),
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        isolation: planctl_engine::Tier::SameUser,
        git_head: None,
        protected: BTreeMap::new(),
        tampered: Vec::new(),
        stragglers: 0,
        tests: None,
        judgement: None,
    }
}

/// Returns what a worker says that reports its work done.
pub fn report() -> Report {
    Report {
        text: Excerpt { bytes: 4, tail: "done".to_owned(), stored: None },
        duration: Duration::from_secs(1),
        ..Report::default()
    }
}

fn decided(context: &Context<'_>, words: &[&str]) -> Decision {
    let (words, item) = match words {
        [words @ .., "to", "ask", number_of_ask] => {
            (words, context.asks.get(number(number_of_ask) as usize - 1).cloned())
        }
        words => (words, context.asks.last().cloned()),
    };
    let answer = match words {
        ["submits"] => return Decision::Submit,
        ["cancels"] => return Decision::Cancel,
        ["pauses"] => return Decision::Pause,
        ["resumes"] => return Decision::Resume { from: None },
        ["resumes", "from", node] => return Decision::Resume { from: Some(NodeId::from(*node)) },
        ["revises", ..] => {
            return Decision::revise(Digest::from("sha256:next"), context.graph, context.revised, None);
        }
        ["approve"] => Answer::Approve,
        ["reject"] => Answer::Reject,
        ["retry"] => Answer::Retry,
        ["skip"] => Answer::Skip,
        ["waive"] => Answer::Waive,
        ["abort"] => Answer::Abort,
        ["revise"] => Answer::Revise,
        ["answer"] => Answer::Reply,
        ["allow", files @ ..] => {
            Answer::Allow { files: files.iter().map(|file| (*file).to_owned()).collect() }
        }
        ["restore"] => Answer::Restore,
        ["choose", option] => Answer::Choose { option: (*option).to_owned() },
        ["reassign", role] => Answer::Reassign { role: Role::from(*role) },
        ["raise", amount @ ..] => Answer::Raise { by: amount_of(amount) },
        other => panic!("what does the human decide: {other:?}?"),
    };
    Decision::Answer { item: item.unwrap_or_else(|| ItemId::from("none")), answer }
}

fn amount_of(words: &[&str]) -> Budget {
    match words {
        [amount, "tokens"] => Budget { tokens: Some(number(amount)), ..Budget::default() },
        [amount, "seconds"] => {
            Budget { time: Some(Duration::from_secs(number(amount))), ..Budget::default() }
        }
        [dollars] => {
            let dollars = number(dollars.trim_start_matches('$'));
            Budget { micro_usd: Some(dollars * 1_000_000), ..Budget::default() }
        }
        other => panic!("how much is {other:?}?"),
    }
}
