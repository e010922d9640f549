//! Finds the failures in a script that its status does not show: checks whose status is dropped, lost in a pipe, kept where
//! nothing reads it, or that let the script pass without another check.

use std::collections::BTreeSet;

use super::selecting::PackageScripts;
use super::status::{End, Judge, reads_lines};
use super::walk::last_of;
use super::{
    Call, Command, Compound, CompoundKind, Item, Join, Pipeline, Redirect, Script, Simple, Test, Trait, Word,
    wrapped_commands,
};
use crate::text::Span;

/// The most checks of which it is asked whether a script passes where they fail.
const SKIPS_MAX: usize = 40;

/// A failure that the script's status never shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Masked {
    pub span: Span,
    pub how: Lost,
}

/// Why a failure does not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// Another command follows.
    Dropped,
    /// Only the last part of a pipe counts.
    Piped,
    /// Only the last round of a loop counts.
    Round,
    /// Nothing is found in the output of a command that failed, and that is wanted.
    Unfound,
    /// `find … -exec … \;` succeeds even where its command fails.
    Found,
    /// `local x=$(…)` succeeds, and `$?` is asked for.
    Local,
    /// It is kept in a variable that nothing reads.
    Unread(String),
    /// `xargs -r` runs nothing where no name comes in.
    Empty,
    /// It prints nothing, which passes.
    Nothing,
    /// Both commands whose outputs are compared fail. Some of them only read files; where these outputs stand.
    Alike(Vec<Span>),
    /// No test has the name by which tests are chosen.
    Unselected,
    /// A file that was made is new, and only those that git tracks are compared.
    Untracked,
    /// The script ends as expected without another check.
    Skipped,
    /// Code that is run may take the rest of what the shell reads: its list, or its script.
    Input,
    /// The shell reads what code prints as more than text.
    Said,
}

/// Returns the failures in a script that do not count, where it is expected to end with a status, given the scripts of the `package.json`
/// beside it.
pub(crate) fn masked(script: &Script, expected: u8, package: PackageScripts<'_>) -> Vec<Masked> {
    let mut judge = Judge::of(script);
    let skipped = skipped(&mut judge, script, expected);
    let asked = asked_functions(script);
    let mut walk = Walk { judge: &judge, words: words(script), asked, scope: None, found: Vec::new() };
    walk.list(script, Context { counts: true, is_asked: false });
    let mut found = walk.found;
    found.extend(skipped.into_iter().map(|span| Masked { span, how: Lost::Skipped }));
    found.extend(super::led::led(script));
    found.extend(super::nothing::passing(script, judge.errexit));
    found.extend(unfound(script).into_iter().map(|span| Masked { span, how: Lost::Unfound }));
    found.extend(
        super::selecting::unselected(script, package)
            .into_iter()
            .map(|span| Masked { span, how: Lost::Unselected }),
    );
    found.extend(untracked(script).into_iter().map(|span| Masked { span, how: Lost::Untracked }));
    found.extend(empty(script).map(|span| Masked { span, how: Lost::Empty }));
    found
}

/// Says whether a script only asks about files: tests and searches, and nothing that runs what may have changed.
pub(crate) fn only_looks(script: &Script) -> bool {
    let mut looks = true;
    super::each(script, &mut |command| match command {
        Command::Simple(simple) => {
            looks &=
                matches!(simple.name(), Some("test" | "[" | "grep" | "ls" | "cat" | "wc" | "cmp" | "exit"));
        }
        Command::Test { .. } => {}
        Command::Compound(compound) => {
            looks &= matches!(compound.kind, CompoundKind::Group | CompoundKind::Subshell);
        }
        Command::Function { .. } => looks = false,
    });
    looks
}

/// The use that is made of a status.
#[derive(Clone, Copy)]
struct Context {
    /// The whole looks at it.
    counts: bool,
    /// A condition does, so that `set -e` is off.
    is_asked: bool,
}

struct Walk<'a, 'j> {
    judge: &'j Judge<'a>,
    words: Vec<&'a Word>,
    /// The functions that some condition calls.
    asked: BTreeSet<&'a str>,
    /// The subshell that is walked through: its assignments are lost behind it.
    scope: Option<Span>,
    found: Vec<Masked>,
}

impl<'a> Walk<'a, '_> {
    fn add_lost(&mut self, span: Span, how: Lost) {
        self.found.push(Masked { span, how });
    }

    fn list(&mut self, script: &'a Script, context: Context) {
        for (at, item) in script.items.iter().enumerate() {
            let is_last = at + 1 == script.items.len();
            let context = Context { counts: is_last && context.counts, ..context };
            if !item.is_background {
                self.item(item, script.items.get(at + 1), context);
            }
        }
    }

    fn item(&mut self, item: &'a Item, next: Option<&'a Item>, context: Context) {
        let last = last_of(item);
        let stops = self.judge.errexit && !context.is_asked && !last.is_negated;
        let counts = context.counts || stops;
        let is_looked_at = next.is_some_and(|next| looks_at_status(std::slice::from_ref(next)));
        if is_looked_at && let Some(Command::Simple(simple)) = item.first.commands.first() {
            let names =
                matches!(simple.name(), Some("local" | "declare" | "export" | "readonly" | "typeset"));
            if names && simple.words.iter().any(|word| !word.nested.is_empty()) {
                self.add_lost(item.span, Lost::Local);
            }
        }
        if !counts && !is_looked_at {
            self.check_dropped(item, context);
        } else if !context.counts && stops && is_and_of_checks(item) && !is_looked_at {
            // `set -e` looks at the last command of a list alone.
            self.add_lost(item.span, Lost::Dropped);
        }
        self.check_unread(item);
        let pipelines: Vec<&'a Pipeline> = pipelines(item).collect();
        for (at, pipeline) in pipelines.iter().enumerate() {
            let is_last = at + 1 == pipelines.len();
            let looks = item.rest.get(at).is_some_and(|(_, next)| looks_at(next));
            if !self.judge.pipefail && counts && loses_status(pipeline) && !looks && !is_looked_at {
                self.add_lost(pipeline.span, Lost::Piped);
            }
            let inner = Context {
                counts: !is_last || counts || is_looked_at,
                is_asked: context.is_asked || !is_last || pipeline.is_negated,
            };
            self.commands(pipeline, inner);
        }
    }

    // A check whose status nothing asks for.
    fn check_dropped(&mut self, item: &'a Item, context: Context) {
        let flow = self.judge.item(item, context.is_asked);
        let is_fixed = matches!(flow.single_status(), Some(End::Known(_)));
        let guards = !flow.exits.is_empty() || flow.on.is_empty();
        if !is_fixed && !guards && is_check_dropped(item) && !self.is_read_later(item) {
            self.add_lost(item.span, Lost::Dropped);
        }
    }

    // `grep -q x f || fail=1`: a variable that nothing reads keeps nothing.
    fn check_unread(&mut self, item: &'a Item) {
        let Some((_, last)) = item.rest.last() else { return };
        let [command] = last.commands.as_slice() else { return };
        let Some(name) = assigned(command) else { return };
        let is_check = pipelines(item).next().is_some_and(is_check);
        let is_own = |word: &&Word| last.span.contains(word.span);
        let is_seen = |word: &Word| self.scope.is_none_or(|scope| scope.contains(word.span));
        let mut others = self.words.iter().copied().filter(|word| !is_own(word));
        if is_check && !others.any(|word| names(word, &name) && is_seen(word)) {
            self.add_lost(last.span, Lost::Unread(name));
        }
    }

    // A command whose output goes to a file that is read later is no check.
    fn is_read_later(&self, item: &Item) -> bool {
        let [Command::Simple(simple)] = last_of(item).commands.as_slice() else { return false };
        let written = simple.redirects.iter().filter(|redirect| redirect.writes && !redirect.is_document);
        let mut targets: Vec<&str> = written.map(|redirect| redirect.target.text()).collect();
        // `--outputFile="$TMPDIR/a.json"`: where it fails, no earlier one is there.
        let values = simple.words.iter().filter_map(|word| word.raw.rsplit('=').next());
        let values = values.map(|value| value.trim_matches('"'));
        targets.extend(values.filter(|value| value.starts_with("$TMPDIR/")));
        self.words.iter().any(|word| {
            word.span.start >= item.span.end && targets.iter().any(|target| word.raw.contains(target))
        })
    }

    fn commands(&mut self, pipeline: &'a Pipeline, context: Context) {
        let is_pipe = pipeline.commands.len() > 1;
        for (at, command) in pipeline.commands.iter().enumerate() {
            let is_last = at + 1 == pipeline.commands.len();
            let inner = Context { counts: context.counts && (is_last || self.judge.pipefail), ..context };
            let outer = self.scope;
            if is_pipe && outer.is_none() {
                self.scope = Some(command.span());
            }
            match command {
                Command::Simple(simple) if finds(simple) => self.add_lost(simple.span, Lost::Found),
                Command::Compound(compound) => self.compound(compound, inner),
                Command::Function { name, body, .. } => {
                    let is_asked = self.asked.contains(name.as_str());
                    self.list(body, Context { counts: true, is_asked });
                }
                Command::Simple(_) | Command::Test { .. } => {}
            }
            self.scope = outer;
        }
    }

    fn compound(&mut self, compound: &'a Compound, context: Context) {
        let outer = self.scope;
        if compound.kind == CompoundKind::Subshell && outer.is_none() {
            self.scope = Some(compound.span);
        }
        for condition in &compound.conditions {
            self.list(condition, Context { counts: true, is_asked: true });
        }
        let is_loop = match compound.kind {
            CompoundKind::For => !matches!(compound.words.as_slice(), [word] if word.literal.is_some()),
            CompoundKind::While => reads_lines(compound),
            CompoundKind::Group
            | CompoundKind::Subshell
            | CompoundKind::If
            | CompoundKind::Select
            | CompoundKind::Case
            | CompoundKind::Arithmetic
            | CompoundKind::Coprocess => false,
        };
        for body in &compound.bodies {
            // `|| { diff a b; exit 1; }` tells why and then fails.
            if !self.judge.list(body, context.is_asked).on.is_empty() {
                self.list(body, context);
            }
            let stops = self.judge.errexit && !context.is_asked;
            if let Some(last) = body.items.last().filter(|_| is_loop && context.counts && !stops) {
                let before = self.found.len();
                self.check_dropped(last, context);
                self.found[before..].iter_mut().for_each(|masked| masked.how = Lost::Round);
            }
        }
        self.scope = outer;
    }
}

pub(super) fn pipelines(item: &Item) -> impl Iterator<Item = &Pipeline> {
    std::iter::once(&item.first).chain(item.rest.iter().map(|(_, pipeline)| pipeline))
}

// Of `a && b`, `b` counts; where `b` only prepares or keeps something, `a` chose whether it is done.
fn is_check_dropped(item: &Item) -> bool {
    let last = last_of(item);
    let prints = matches!(last.commands.as_slice(), [command] if prints_only(command));
    let are_and = item.rest.iter().all(|(how, _)| *how == Join::And);
    is_check(last) || (prints && are_and && is_check(&item.first))
}

// `cd src && make`: not `[ -f x ] && make`, which chooses.
fn is_and_of_checks(item: &Item) -> bool {
    let chooses = |pipeline: &Pipeline| match pipeline.commands.as_slice() {
        [Command::Simple(simple)] => Test::of(simple).is_some() || simple.name() == Some("command"),
        [Command::Test { .. }] => true,
        _ => false,
    };
    let are_and = item.rest.iter().all(|(how, _)| *how == Join::And);
    !item.rest.is_empty()
        && are_and
        && pipelines(item).all(|pipeline| is_check(pipeline) && !chooses(pipeline))
}

// Assignments, what prepares a check and what shows something are no checks themselves.
fn is_check(pipeline: &Pipeline) -> bool {
    match pipeline.commands.last() {
        Some(Command::Simple(simple)) => {
            let is_text = simple.redirects.iter().any(|redirect| redirect.writes)
                && simple.redirects.iter().any(|redirect| redirect.is_document);
            let is_named = simple.name().is_some();
            is_named && !is_text && !has_trait(simple, Trait::Prepares) && !has_trait(simple, Trait::Shows)
        }
        // A loop's body is looked at by itself.
        Some(Command::Compound(compound)) => {
            !matches!(compound.kind, CompoundKind::Arithmetic | CompoundKind::While | CompoundKind::For)
        }
        Some(Command::Function { .. }) => false,
        Some(Command::Test { .. }) | None => true,
    }
}

fn has_trait(simple: &Simple, what: Trait) -> bool {
    Call::of(&simple.words).does(what)
}

fn prints_only(command: &Command) -> bool {
    command.as_simple().is_some_and(|simple| has_trait(simple, Trait::Says))
}

// The variable that a command keeps something in: `n=1`, `((n++))`, `let n+=1`.
fn assigned(command: &Command) -> Option<String> {
    let identifier = |text: &str| {
        let text = text.trim_start_matches(['+', '-', ' ', '(', '"', '\'']);
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        (end > 0).then(|| text[..end].to_owned())
    };
    match command {
        Command::Simple(simple) => assigned_by(simple).or_else(|| match simple.texts().as_slice() {
            ["let", expression, ..] => identifier(expression),
            _ => None,
        }),
        Command::Compound(compound) if compound.kind == CompoundKind::Arithmetic => {
            let text = compound.words.first()?.raw.trim();
            (text.contains("++") || text.contains("--") || text.contains('=')).then(|| identifier(text))?
        }
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => None,
    }
}

fn assigned_by(simple: &Simple) -> Option<String> {
    let word = simple.assignments.first().filter(|_| simple.words.is_empty())?;
    Some(word.raw.split_once('=')?.0.trim_end_matches('+').to_owned())
}

// Says whether a word speaks of a variable; a word that only happens to be its name counts, too.
pub(super) fn names(word: &Word, name: &str) -> bool {
    let text = match word.raw.split_once('=') {
        Some((own, value)) if own.trim_end_matches('+') == name => value,
        Some(_) | None => word.raw.as_str(),
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

fn words(script: &Script) -> Vec<&Word> {
    let mut found = Vec::new();
    fn targets(redirects: &[Redirect]) -> impl Iterator<Item = &Word> {
        redirects.iter().map(|redirect| &redirect.target)
    }
    super::each(script, &mut |command| match command {
        Command::Simple(simple) => {
            found.extend(simple.assignments.iter().chain(&simple.words).chain(targets(&simple.redirects)));
            found.extend(simple.arrays.iter().flat_map(|(_, values)| values));
        }
        Command::Compound(compound) => {
            found.extend(compound.words.iter().chain(targets(&compound.redirects)));
        }
        Command::Test { test, redirects, .. } => {
            found.extend(test.words());
            found.extend(targets(redirects));
        }
        Command::Function { .. } => {}
    });
    found
}

// The functions that are called where their status is asked for.
fn asked_functions(script: &Script) -> BTreeSet<&str> {
    let mut asked = BTreeSet::new();
    let mut spans: Vec<Span> = Vec::new();
    super::each_list(script, &mut |list| {
        for item in &list.items {
            let before = item.rest.len();
            pipelines(item).take(before).for_each(|pipeline| spans.push(pipeline.span));
            pipelines(item)
                .filter(|pipeline| pipeline.is_negated)
                .for_each(|pipeline| spans.push(pipeline.span));
        }
    });
    super::each(script, &mut |command| {
        if let Command::Compound(compound) = command {
            let conditions = compound.conditions.iter().flat_map(|list| &list.items);
            spans.extend(conditions.map(|item| item.span));
        }
    });
    super::each_simple(script, &mut |simple| {
        let is_asked = spans.iter().any(|span| span.contains(simple.span));
        asked.extend(simple.name().filter(|_| is_asked));
    });
    asked
}

fn looks_at_status(items: &[Item]) -> bool {
    items.iter().any(|item| pipelines(item).any(looks_at))
}

// The command looks at `$?` or at the parts of the pipe before it.
pub(super) fn looks_at(pipeline: &Pipeline) -> bool {
    let one = Script {
        items: vec![Item {
            first: pipeline.clone(),
            rest: Vec::new(),
            is_background: false,
            span: pipeline.span,
        }],
    };
    words(&one).iter().any(|word| word.raw.contains("$?") || word.raw.contains("PIPESTATUS"))
}

// The last part of the pipe succeeds on any input, or on that of a command that failed.
fn loses_status(pipeline: &Pipeline) -> bool {
    let [first, .., Command::Simple(last)] = pipeline.commands.as_slice() else { return false };
    let does = |what: Trait| first.as_simple().is_some_and(|simple| has_trait(simple, what));
    let counts = first.as_simple().is_some_and(super::condition::prints_count);
    let is_text = does(Trait::PrintsText) || last.name() == Some("grep") && does(Trait::Prints);
    let tests = || {
        let first = first.as_simple();
        first.is_some_and(|simple| super::calls(simple).any(|call| call.does(Trait::Tests)))
    };
    has_trait(last, Trait::Filters) && !is_text
        || has_trait(last, Trait::Idles) && !does(Trait::Says) && !counts
        || super::patterns::asks_for_verdict(last) && tests()
}

// `find … -exec grep -q x {} \;`: a command that makes or removes something is not run for its status.
fn finds(simple: &Simple) -> bool {
    if simple.name() != Some("find") {
        return false;
    }
    let ends = |inner: &[Word]| {
        let behind =
            inner.last().and_then(|last| simple.words.iter().find(|word| word.span.start >= last.span.end));
        behind.is_some_and(|word| word.text() == ";")
    };
    let is_lost = |inner: &&[Word]| ends(inner) && Call::of(inner).does(Trait::Checks);
    // Where it prints what passes, a later part of the pipe may look.
    let is_printing = |word: &&str| matches!(*word, "-print" | "-quit" | "-print0" | "-printf");
    !simple.texts().iter().any(is_printing) && wrapped_commands(&simple.words).iter().skip(1).any(is_lost)
}

// `! make 2>&1 | grep -q warning`, where nothing else runs the same command for its status.
fn unfound(script: &Script) -> Vec<Span> {
    let (mut unwanted, mut run, mut found) = (Vec::new(), Vec::new(), Vec::new());
    super::walk::each_with_expectation(script, true, &mut |command, is_wanted| {
        let Command::Simple(simple) = command else { return };
        run.push(&simple.words);
        unwanted.extend(Some(simple.span).filter(|_| is_search(simple) && !is_wanted));
    });
    let is_once = |simple: &Simple| {
        let is_it =
            |words: &&&Vec<Word>| words.iter().map(Word::text).eq(simple.words.iter().map(Word::text));
        run.iter().filter(is_it).count() == 1
    };
    super::each_list(script, &mut |list| {
        for pipeline in list.items.iter().flat_map(pipelines) {
            if let [Command::Simple(first), .., last] = pipeline.commands.as_slice()
                && unwanted.contains(&last.span())
                && (super::led::runs_code(first) || super::revisions::names_revision(&Call::of(&first.words)))
                && is_once(first)
            {
                found.push(pipeline.span);
            }
        }
    });
    found
}

// `make gen && git diff --exit-code`, where nothing asks for files that git does not track.
fn untracked(script: &Script) -> Vec<Span> {
    let (mut found, mut makes, mut asks) = (Vec::new(), false, false);
    super::walk::each_with_expectation(script, true, &mut |command, is_wanted| {
        let Command::Simple(simple) = command else { return };
        for words in super::all_commands(&simple.words) {
            let call = Call::of(words);
            let has = |options: &[&str]| call.words().iter().any(|word| options.contains(word));
            if !call.is_of("git") {
                makes |= call.does(Trait::Makes) || super::is_run_by_path(words);
            } else if call.verb() != "diff" {
                asks |= matches!(call.verb(), "add" | "status" | "ls-files");
            } else if makes && is_wanted && has(&["--exit-code", "--quiet"]) {
                // Paths of files, not of folders, are those that are known.
                let is_of_files = call.words().last().is_some_and(|last| last.contains('.') && has(&["--"]));
                found.extend(Some(simple.span).filter(|_| !is_of_files && !has(&["--no-index"])));
            }
        }
    });
    found.retain(|_| !asks);
    found
}

pub(super) fn is_search(simple: &Simple) -> bool {
    matches!(simple.name(), Some("grep" | "egrep" | "fgrep" | "rg"))
}

// `ls *.md | xargs -r grep -q x`, where that is all that is checked.
fn empty(script: &Script) -> Option<Span> {
    let [item] = script.items.as_slice() else { return None };
    let last = item.first.commands.last()?.as_simple()?;
    let is_all = item.rest.is_empty() && !item.first.is_negated && last.name() == Some("xargs");
    let commands = wrapped_commands(&last.words);
    let (outer, inner) = (commands.first()?, commands.get(1)?);
    let own = &outer[..outer.len() - inner.len()];
    let may_be_empty = own.iter().any(|word| matches!(word.raw.as_str(), "-r" | "--no-run-if-empty"));
    (is_all && may_be_empty && Call::of(inner).does(Trait::Checks)).then_some(last.span)
}

// The checks that choose a way on which the script ends as expected without any other check.
fn skipped<'a>(judge: &mut Judge<'a>, script: &'a Script, expected: u8) -> Vec<Span> {
    let mut choices = Vec::new();
    choose_alternatives(script, &mut choices);
    let wanted = End::Known(expected);
    let may_be_wanted = |end: &End| match end {
        End::Any => true,
        End::Failing => expected != 0,
        End::Known(_) => *end == wanted,
    };
    let mut found = Vec::new();
    for choice in choices.into_iter().filter(|choice| is_check(choice)).take(SKIPS_MAX) {
        let passed = judge.ends_given(script, choice, End::Known(0));
        let failed = judge.ends_given(script, choice, End::Failing);
        let is_skipped = failed.iter().eq([&wanted]);
        if is_skipped && passed != failed && passed.iter().any(may_be_wanted) {
            found.push(choice.span);
        }
    }
    found
}

fn choose_alternatives<'a>(script: &'a Script, choices: &mut Vec<&'a Pipeline>) {
    for item in script.items.iter().filter(|item| !item.is_background) {
        choices.extend(pipelines(item).take(item.rest.len()));
        for command in pipelines(item).filter_map(|pipeline| pipeline.commands.first()) {
            let Command::Compound(compound) = command else { continue };
            let is_once =
                matches!(compound.kind, CompoundKind::If | CompoundKind::Group | CompoundKind::Subshell);
            if is_once {
                let conditions = compound.conditions.iter().filter_map(|list| list.items.last());
                choices.extend(conditions.flat_map(pipelines));
                compound.bodies.iter().for_each(|body| choose_alternatives(body, choices));
            }
        }
    }
}
