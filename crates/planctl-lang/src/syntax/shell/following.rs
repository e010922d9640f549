//! Follows a script as bash would run it, without running it: in which folder each command runs, what its variables hold,
//! what it reads from a pipe, and whether its exit code decides.

mod printed;

use std::collections::{BTreeMap, BTreeSet};

use super::deciding::{Deciding, Look};
use super::files::FileUse;
use super::programs::{Program, program};
use super::values::{Input, Shell, VALUES_MAX, Value, of_text};
use super::walk::{fails, inline_at, pipeline_fails};
use super::{
    Arguments, Command, Compound, CompoundKind, Item, Join, Part, Pipeline, Redirect, Script, Simple, Test,
    Word, wrapped_commands,
};
use printed::LISTED_MAX;

/// How deep functions, and scripts that a tool's file names, are followed.
pub(super) const DEPTH_MAX: usize = 8;
/// The most commands that are followed, so that functions that call each other end.
const COMMANDS_MAX: usize = 20_000;

/// The state in which a command is looked at.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// Says that the script goes well where the command succeeds: not after `!`, before `&& exit 1`, or as the condition
    /// of `if … then exit 1`.
    pub(super) wanted: bool,
    /// Says that its exit code may decide: it feeds no pipe, and no text is made of its output.
    pub(super) decides: bool,
}

/// Follows one script.
pub(super) struct Follower<'a> {
    pub(super) look: &'a dyn Look,
    pub(super) shell: Shell,
    pub(super) found: Vec<FileUse>,
    pub(super) deciding: Deciding,
    /// Says that what is read is run: `cat X | bash`, `eval "$(cat X)"`.
    pub(super) feeds_program: bool,
    /// Says that an earlier command makes files: a file run afterwards may be one of them.
    pub(super) has_built: bool,
    /// Where copies and links of files are put: a file there, or below, may be one of them.
    pub(super) copied: BTreeSet<String>,
    pub(super) depth: usize,
    /// The scripts that were read for what they run.
    pub(super) scripts_read: BTreeSet<String>,
    /// The folder of the script that is being read.
    pub(super) script_folder: Option<String>,
    functions: BTreeMap<String, Script>,
    called: BTreeSet<String>,
    commands_left: usize,
}

impl<'a> Follower<'a> {
    /// Begins at the top of a workspace.
    pub(super) fn new(look: &'a dyn Look) -> Follower<'a> {
        Follower {
            look,
            shell: Shell::new(),
            found: Vec::new(),
            deciding: Deciding::default(),
            feeds_program: false,
            has_built: false,
            copied: BTreeSet::new(),
            depth: 0,
            scripts_read: BTreeSet::new(),
            script_folder: None,
            functions: BTreeMap::new(),
            called: BTreeSet::new(),
            commands_left: COMMANDS_MAX,
        }
    }

    /// Follows a whole script.
    pub(super) fn follow(script: &Script, look: &'a dyn Look) -> Follower<'a> {
        let mut follower = Follower::new(look);
        let at = At { wanted: true, decides: true };
        follower.script(script, at);
        let functions = std::mem::take(&mut follower.functions);
        for (name, body) in &functions {
            // Nothing calls it, as far as can be told: a trap might.
            if !follower.called.contains(name) {
                follower.scoped(|follower| {
                    follower.shell = Shell::new();
                    follower.script(body, At { decides: false, ..at });
                });
            }
        }
        follower
    }

    pub(super) fn script(&mut self, script: &Script, at: At) {
        for item in &script.items {
            self.item(item, at);
        }
    }

    /// Does something that changes neither folder nor variables of the shell at hand.
    pub(super) fn scoped(&mut self, inside: impl FnOnce(&mut Self)) {
        let shell = self.shell.clone();
        inside(self);
        self.shell = shell;
    }

    fn item(&mut self, item: &Item, at: At) {
        if item.is_background {
            return self.scoped(|inner| inner.pipelines(item, At { decides: false, ..at }));
        }
        self.pipelines(item, at);
    }

    fn pipelines(&mut self, item: &Item, at: At) {
        let flips = item.rest.first().is_some_and(|(how, next)| *how == Join::And && pipeline_fails(next));
        self.pipeline(&item.first, At { wanted: at.wanted != flips, ..at });
        for (_, pipeline) in &item.rest {
            self.pipeline(pipeline, at);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, at: At) {
        let at = At { wanted: at.wanted != pipeline.is_negated, ..at };
        if let [command] = pipeline.commands.as_slice() {
            return self.command(command, at);
        }
        let mut input = self.shell.input.clone();
        let last = pipeline.commands.len().saturating_sub(1);
        for (number, command) in pipeline.commands.iter().enumerate() {
            let feeds = pipeline.commands[number + 1..].iter().any(runs_its_input);
            let fed = self.feeds_program;
            self.feeds_program = fed || feeds;
            self.scoped(|inner| {
                inner.shell.input = input.clone();
                inner.command(command, At { decides: at.decides && number == last, ..at });
                inner.shell.input = input.clone();
                input = inner.shell.printed(command);
            });
            self.feeds_program = fed;
        }
    }

    fn command(&mut self, command: &Command, at: At) {
        self.commands_left = self.commands_left.saturating_sub(1);
        if self.commands_left == 0 {
            return;
        }
        match command {
            Command::Simple(simple) => self.simple(simple, at),
            Command::Compound(compound) => self.compound(compound, at),
            Command::Function { name, body, .. } => {
                self.functions.insert(name.clone(), body.clone());
            }
            Command::Test { test, redirects, .. } => {
                self.redirects(redirects);
                self.test(test, at.wanted);
                let redirected = redirects.iter().map(|redirect| &redirect.target);
                self.substitutions(test.words().into_iter().chain(redirected), false);
            }
        }
    }

    fn simple(&mut self, simple: &Simple, at: At) {
        let words = self.named(&simple.words);
        let feeds = simple.as_program().is_some_and(|name| matches!(name, "eval" | "source" | "."));
        let feeds = feeds || is_program_without_file(&words);
        let fed = self.feeds_program;
        self.feeds_program = fed || feeds;
        let input = self.shell.input.clone();
        self.redirects(&simple.redirects);
        let redirected = simple.redirects.iter().map(|redirect| &redirect.target);
        self.substitutions(simple.assignments.iter().chain(&simple.words).chain(redirected), feeds);
        self.feeds_program = fed;
        let before = self.shell.variables.clone();
        self.assign(&simple.assignments);
        for (name, values) in &simple.arrays {
            let values = values.iter().map(|value| self.shell.resolved(value)).collect::<Option<Vec<_>>>();
            let Some(values) = values else { continue };
            let values = values.into_iter().flatten().take(VALUES_MAX).collect();
            self.shell.variables.insert(name.clone(), values);
        }
        match Test::of(simple) {
            Some(test) => self.test(&test, at.wanted),
            None => self.run(&words, at),
        }
        self.inline(simple, at);
        if !simple.words.is_empty() && !simple.assignments.is_empty() {
            self.shell.variables = before;
        }
        self.shell.input = input;
    }

    /// Follows the scripts among a command's arguments.
    fn inline(&mut self, simple: &Simple, at: At) {
        match simple.name() {
            Some("eval") => simple.inline.iter().for_each(|script| self.script(script, at)),
            // A trap's command decides nothing.
            Some("trap") => simple.inline.iter().for_each(|script| {
                self.scoped(|inner| inner.script(script, At { decides: false, ..at }));
            }),
            Some(_) | None => {
                let mut places = inline_at(&simple.words).into_iter();
                for script in &simple.inline {
                    // The word after the script is its `$0`; one that is fed to its shell has no arguments.
                    let arguments = places.next().and_then(|place| simple.words.get(place + 2..));
                    let arguments = self.values_of(arguments.unwrap_or_default());
                    self.scoped(|inner| {
                        inner.folder_of_wrappers(&simple.words);
                        inner.shell.arguments = arguments;
                        inner.script(script, at);
                    });
                }
            }
        }
    }

    fn assign(&mut self, words: &[Word]) {
        for word in words {
            let Some((name, value)) = assignment(word) else { continue };
            let name = name.trim_end_matches('+').to_owned();
            match self.shell.resolved(&value) {
                Some(values) => self.shell.variables.insert(name, values),
                None => self.shell.variables.remove(&name),
            };
        }
    }

    fn substitutions<'w>(&mut self, words: impl Iterator<Item = &'w Word>, is_run: bool) {
        let fed = std::mem::replace(&mut self.feeds_program, is_run);
        for script in words.flat_map(|word| &word.nested) {
            self.scoped(|inner| inner.script(script, At { wanted: true, decides: false }));
        }
        self.feeds_program = fed;
    }

    fn compound(&mut self, compound: &Compound, at: At) {
        let input = self.shell.input.clone();
        self.redirects(&compound.redirects);
        let redirected = compound.redirects.iter().map(|redirect| &redirect.target);
        self.substitutions(compound.words.iter().chain(redirected), false);
        let flips = compound.kind == CompoundKind::If && compound.bodies.first().is_some_and(fails);
        let condition = At { wanted: at.wanted != flips, ..at };
        match compound.kind {
            CompoundKind::Subshell | CompoundKind::Coprocess => {
                self.scoped(|inner| compound.bodies.iter().for_each(|body| inner.script(body, at)));
            }
            CompoundKind::Group | CompoundKind::Arithmetic => {
                compound.bodies.iter().for_each(|body| self.script(body, at));
            }
            CompoundKind::For | CompoundKind::Select => {
                if let Some(name) = &compound.variable {
                    let values = match compound.words.is_empty() {
                        true => self.shell.arguments.clone(),
                        false => self.values_of(&compound.words),
                    };
                    match values {
                        Some(values) => self.shell.variables.insert(name.clone(), values),
                        None => self.shell.variables.remove(name),
                    };
                }
                self.branches(compound, at);
            }
            CompoundKind::While => {
                compound.conditions.iter().for_each(|script| self.script(script, condition));
                self.branches(compound, at);
            }
            CompoundKind::If | CompoundKind::Case => {
                if compound.kind == CompoundKind::Case {
                    compound.words.iter().for_each(|word| self.add(word, super::Use::Reads, false));
                }
                compound.conditions.iter().for_each(|script| self.script(script, condition));
                self.branches(compound, at);
            }
        }
        self.shell.input = input;
    }

    /// Follows bodies of which one, or none, is run.
    fn branches(&mut self, compound: &Compound, at: At) {
        let before = self.shell.clone();
        let mut after = None::<Shell>;
        for body in &compound.bodies {
            self.shell = before.clone();
            self.script(body, at);
            // A branch that ends the script leaves nothing behind.
            if fails(body) {
                continue;
            }
            match &mut after {
                Some(after) => after.merge(self.shell.clone()),
                None => after = Some(self.shell.clone()),
            }
        }
        self.shell = match after {
            Some(after) if compound.is_exhaustive => after,
            Some(after) => {
                let mut merged = before;
                merged.merge(after);
                merged
            }
            None => before,
        };
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            if !redirect.is_document {
                let how = if redirect.writes { super::Use::Writes } else { super::Use::Reads };
                self.add(&redirect.target, how, true);
            }
            if redirect.feeds_input {
                self.shell.input = self.input_of(redirect);
            }
        }
    }

    fn input_of(&self, redirect: &Redirect) -> Input {
        let word = &redirect.target;
        if let [script] = word.nested.as_slice()
            && word.literal.is_none()
        {
            return self.shell.printed_by(script);
        }
        if redirect.is_document {
            let values =
                self.shell.resolved(word).unwrap_or_else(|| vec![Value::plain(word.raw.clone(), word.span)]);
            let words = values.iter().flat_map(|value| {
                value.text.split_whitespace().map(|text| of_text(text.to_owned(), value.span))
            });
            return Input::Values(words.take(VALUES_MAX).collect());
        }
        self.shell.resolved(word).map_or(Input::Unknown, |values| self.listed(&values))
    }

    /// Returns the lines of files that list others. Where nobody looked, they are told when the plan is approved.
    fn listed(&self, values: &[Value]) -> Input {
        let files = values.iter().filter_map(|value| Some((self.shell.located(&value.text)?, value.span)));
        let lines = files.flat_map(|(path, span)| {
            let text = self.look.read(&path).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(|line| Value::plain(line, span)).collect::<Vec<_>>()
        });
        Input::Values(lines.take(LISTED_MAX).collect())
    }

    /// Puts what a variable in the place of the command's name holds there.
    fn named(&mut self, words: &[Word]) -> Vec<Word> {
        let Some(first) = words.first().filter(|first| first.literal.is_none()) else {
            return words.to_vec();
        };
        match self.shell.resolved(first).as_deref() {
            Some([value]) if !value.is_pattern => {
                // Outside of quotes, `$CHECK` may be a command with its arguments.
                let parts =
                    value.text.split_whitespace().map(|text| Value::plain(text, value.span).to_word());
                parts.chain(words[1..].iter().cloned()).collect()
            }
            Some(_) | None => words.to_vec(),
        }
    }

    /// Follows a command, and behind wrappers what it starts.
    pub(super) fn run(&mut self, words: &[Word], at: At) {
        let Some(first) = words.first() else { return };
        if first.literal.is_none() {
            return self.run_unnamed(words, at);
        }
        let folder = self.shell.folder.clone();
        let variables = self.shell.variables.clone();
        let slices = wrapped_commands(words);
        for (number, slice) in slices.iter().enumerate() {
            let inner = slices.get(number + 1);
            match (slice[0].text(), inner) {
                ("env" | "sudo" | "doas", Some(inner)) => {
                    let own = &slice[..slice.len() - inner.len()];
                    self.enter_wrapper(own);
                    self.assign(own);
                }
                ("xargs", Some(inner)) => {
                    self.operands(slice, at);
                    for inner in self.with_input(inner, &slice[..slice.len() - inner.len()]) {
                        self.run(&inner, at);
                    }
                    break;
                }
                ("find", Some(_)) => {
                    self.operands(slice, at);
                    let found = self.shell.found_by(slice);
                    for inner in &slices[number + 1..] {
                        self.run(&substitute_values(inner, "{}", found.as_deref()), at);
                    }
                    break;
                }
                _ => self.one(slice, at),
            }
        }
        let keeps = slices.len() == 1;
        if !keeps {
            self.shell.folder = folder;
            self.shell.variables = variables;
        }
    }

    // `"$t"`, `tests/*.sh`: each file that it may be is run, or nobody can tell which.
    fn run_unnamed(&mut self, words: &[Word], at: At) {
        let Some(values) = self.shell.resolved(&words[0]) else {
            if at.decides
                && words[0].parts.iter().all(|part| !matches!(part, Part::Text(_) | Part::Pattern(_)))
            {
                self.deciding.untold(words[0].span);
            } else {
                self.run_code(&words[0], at);
            }
            words[1..].iter().for_each(|word| self.add(word, super::Use::Reads, false));
            return;
        };
        for value in values {
            let mut inner = vec![value.to_word()];
            if value.is_pattern {
                self.run_code(&inner[0], at);
                continue;
            }
            inner.extend(words[1..].iter().cloned());
            self.run(&inner, at);
        }
    }

    fn folder_of_wrappers(&mut self, words: &[Word]) {
        let slices = wrapped_commands(words);
        for pair in slices.windows(2) {
            if matches!(pair[0][0].text(), "env" | "sudo" | "doas") {
                self.enter_wrapper(&pair[0][..pair[0].len() - pair[1].len()]);
            }
        }
    }

    // `env -C DIR`, `env --chdir=DIR`, `sudo -D DIR`
    fn enter_wrapper(&mut self, own: &[Word]) {
        for (at, word) in own.iter().enumerate().skip(1) {
            let (letter, long) = if own[0].text() == "env" { ("-C", "--chdir=") } else { ("-D", "--chdir=") };
            if word.raw == letter || word.raw == "--chdir" {
                if let Some(folder) = own.get(at + 1) {
                    self.change_folder(folder);
                }
            } else if let Some(rest) = word.text().strip_prefix(long) {
                self.change_folder(&Value::plain(rest, word.span).to_word());
            } else if let Some(rest) = word.text().strip_prefix(letter) {
                self.change_folder(&Value::plain(rest, word.span).to_word());
            }
        }
    }

    /// Goes into a folder; where it is one of several, or unknown, nobody can tell where the rest runs.
    pub(super) fn change_folder(&mut self, folder: &Word) {
        let values = self.shell.resolved(folder);
        self.shell.folder = match values.as_deref() {
            Some([value]) if !value.is_pattern => self.shell.located(&value.text),
            Some(_) | None => None,
        };
    }

    // Returns the commands of `xargs` with its input, behind the command or in the place of `{}`: one command for each.
    fn with_input(&self, inner: &[Word], own: &[Word]) -> Vec<Vec<Word>> {
        let values = match &self.shell.input {
            Input::Values(values) => values.iter().map(Value::to_word).collect(),
            Input::Unknown => vec![unknown(&inner[0])],
        };
        let sign = own.iter().enumerate().find_map(|(at, word)| match word.raw.strip_prefix("-I")? {
            "" => own.get(at + 1).map(|next| next.raw.clone()),
            sign => Some(sign.to_owned()),
        });
        let made = values.into_iter().map(|value| match &sign {
            Some(sign) => {
                let put = |word: &Word| if word.raw == *sign { value.clone() } else { word.clone() };
                inner.iter().map(put).collect()
            }
            None => inner.iter().cloned().chain([value]).collect(),
        });
        made.collect()
    }

    fn one(&mut self, words: &[Word], at: At) {
        let (name, rest) = (words[0].text(), &words[1..]);
        let positional = || rest.iter().filter(|word| !word.raw.starts_with('-') || word.raw == "-");
        match name {
            "cd" | "pushd" => {
                let before = self.shell.folder.clone();
                match positional().next() {
                    Some(word) if word.raw == "-" => {
                        self.shell.folder = self.shell.before.last().cloned().unwrap_or_default();
                    }
                    Some(word) => self.change_folder(word),
                    None => self.shell.folder = Some("~".to_owned()),
                }
                self.shell.before.push(before);
            }
            "popd" => self.shell.folder = self.shell.before.pop().unwrap_or_default(),
            "set" => {
                if let Some(place) = rest.iter().position(|word| word.raw == "--") {
                    self.shell.arguments = self.values_of(&rest[place + 1..]);
                } else if rest.first().is_some_and(|word| !word.raw.starts_with(['-', '+'])) {
                    self.shell.arguments = self.values_of(rest);
                }
            }
            "shift" => {
                if let Some(arguments) = self.shell.arguments.as_mut().filter(|all| !all.is_empty()) {
                    arguments.remove(0);
                }
            }
            "export" | "local" | "declare" | "readonly" | "typeset" => self.assign(rest),
            "read" | "mapfile" | "readarray" => {
                let read = Arguments::read(rest, "adinNptuOcCs", &[]);
                let arrays = read.values("a", "").map(Word::text);
                let names: Vec<String> =
                    read.positional.iter().map(|word| word.text()).chain(arrays).map(str::to_owned).collect();
                for name in names {
                    match &self.shell.input {
                        Input::Values(values) => self.shell.variables.insert(name, values.clone()),
                        Input::Unknown => self.shell.variables.remove(&name),
                    };
                }
            }
            _ => {
                if let Some(body) = self.functions.get(name).cloned() {
                    rest.iter().for_each(|word| self.add(word, super::Use::Reads, false));
                    return self.call(name.to_owned(), &body, rest, at);
                }
                self.operands(words, at);
            }
        }
    }

    fn call(&mut self, name: String, body: &Script, arguments: &[Word], at: At) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        self.called.insert(name);
        self.depth += 1;
        let arguments = self.values_of(arguments);
        let outer = std::mem::replace(&mut self.shell.arguments, arguments);
        self.script(body, at);
        self.shell.arguments = outer;
        self.depth -= 1;
    }

    fn values_of(&self, words: &[Word]) -> Option<Vec<Value>> {
        let values = words.iter().map(|word| self.shell.resolved(word)).collect::<Option<Vec<_>>>()?;
        Some(values.into_iter().flatten().take(VALUES_MAX).collect())
    }

    /// Follows a script that a file of a tool holds, in a folder.
    pub(super) fn follow_text(&mut self, folder: &str, text: &str) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        let super::Reading::Read(script) = super::read(text) else { return };
        self.depth += 1;
        // The places of its words are none of the contract's.
        let found = std::mem::take(&mut self.found);
        let untold = std::mem::take(&mut self.deciding.untold);
        let script_folder = self.script_folder.take();
        self.scoped(|inner| {
            inner.shell.folder = Some(folder.to_owned());
            inner.shell.arguments = None;
            inner.script(&script, At { wanted: true, decides: true });
        });
        self.script_folder = script_folder;
        self.deciding.untold = untold;
        self.found = found;
        self.depth -= 1;
    }
}

impl Simple {
    fn as_program(&self) -> Option<&str> {
        Some(program(wrapped_commands(&self.words).last()?.first()?.literal.as_deref()?))
    }
}

/// Says whether a command runs what it reads on its standard input.
fn runs_its_input(command: &Command) -> bool {
    match command {
        Command::Simple(simple) => is_program_without_file(&simple.words),
        Command::Compound(_) | Command::Function { .. } | Command::Test { .. } => false,
    }
}

fn is_program_without_file(words: &[Word]) -> bool {
    let slices = wrapped_commands(words);
    // They get names on their input, no script.
    if slices.iter().any(|slice| matches!(slice[0].text(), "xargs" | "find")) {
        return false;
    }
    let Some((first, rest)) = slices.last().and_then(|slice| slice.split_first()) else { return false };
    let is_program = first.literal.as_deref().is_some_and(Program::is_interpreter);
    let has = |flag: &str| rest.iter().any(|word| word.raw == flag);
    let names_one = rest.iter().any(|word| !word.raw.starts_with('-')) && !has("-s");
    is_program && (!names_one || rest.iter().all(|word| word.literal.is_none() && !word.nested.is_empty()))
}

/// Divides `NAME=value`.
fn assignment(word: &Word) -> Option<(&str, Word)> {
    let (name, _) = word.raw.split_once('=')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '+');
    if name.is_empty() || !name.chars().all(is_name) || word.raw[name.len() + 1..].starts_with('(') {
        return None;
    }
    let cut = name.len() + 1;
    let literal = word.literal.as_deref().and_then(|text| text.get(cut..)).map(str::to_owned);
    let mut parts = word.parts.clone();
    match parts.first_mut() {
        Some(Part::Text(text) | Part::Pattern(text)) if text.len() >= cut => *text = text[cut..].to_owned(),
        Some(_) | None => return None,
    }
    let start = (word.span.end - word.span.start).min(cut);
    let span = crate::text::Span::new(word.span.start + start, word.span.end);
    if parts.len() > 1 {
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    }
    Some((name, Word { raw: word.raw[cut..].to_owned(), literal, parts, nested: Vec::new(), span }))
}

fn unknown(like: &Word) -> Word {
    Word { raw: "…".to_owned(), parts: vec![Part::Unknown], span: like.span, ..Word::default() }
}

fn substitute_values(words: &[Word], sign: &str, values: Option<&[Value]>) -> Vec<Word> {
    let mut made = Vec::new();
    for word in words {
        match (word.raw.contains(sign), values) {
            (true, Some(values)) if word.raw == sign => made.extend(values.iter().map(Value::to_word)),
            (true, _) => made.push(unknown(word)),
            (false, _) => made.push(word.clone()),
        }
    }
    made
}
