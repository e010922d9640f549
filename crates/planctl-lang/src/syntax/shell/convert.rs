//! Turns what brush-parser reads into our own tree, with byte offsets for its character offsets.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{self, SourceLocation};
use brush_parser::word::{self, Parameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource};
use brush_parser::{ParseError, Parser, ParserOptions, SourceSpan};

use super::gaps::rewrite_unsupported;
use super::limits::{has_endless_number, is_uncertain, nests_too_deeply};
use super::text::Text;
use super::walk::{inline_at, runs_input};
use super::{
    Command, Compound, CompoundKind, Item, Join, Part, Pipeline, Reading, Redirect, Script, Simple, Test,
    Word,
};
use crate::text::Span;

const BYTES_MAX: usize = 16 * 1024;
const SUBSTITUTIONS_MAX: usize = 6;

pub(super) fn read(script: &str) -> Reading {
    if script.len() > BYTES_MAX || nests_too_deeply(script) || has_endless_number(script) {
        return Reading::TooDeep;
    }
    match attempt(&Text::of(script)) {
        Some(Ok(read)) => Reading::Read(read),
        None => Reading::TooDeep,
        Some(Err(fault)) => {
            // A script that the parser does not know is tried again in words that it knows.
            if is_uncertain(script)
                && let Some(Some(Ok(read))) = rewrite_unsupported(script).map(|text| attempt(&text))
            {
                return Reading::Read(read);
            }
            Reading::Refused {
                why: fault.why,
                offset: fault.offset.min(script.len()),
                is_uncertain: fault.is_uncertain || is_uncertain(script),
            }
        }
    }
}

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Says whether this thread is inside the bash parser, whose panics cost one finding and concern nobody else; for a
/// program's panic hook.
pub fn is_reading_contract() -> bool {
    IS_READING.get()
}

// The parser is young; a panic in it must cost one finding, not the whole verification.
fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    let was = IS_READING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(was);
    outcome.ok()
}

fn attempt(text: &Text) -> Option<Converted<Script>> {
    guarded(|| script_of(text, 0))
}

fn script_of(text: &Text, depth: usize) -> Converted<Script> {
    let program = Parser::new(text.as_str().as_bytes(), &ParserOptions::default()).parse_program();
    let program = program.map_err(|error| {
        let offset = match &error {
            ParseError::ParsingNear(position) => Some(position.index),
            ParseError::ParsingAtEndOfInput => None,
            ParseError::Tokenizing { position, .. } => position.as_ref().map(|position| position.index),
        };
        let offset = offset.map_or(text.whole().end, |index| text.span(index, index).start);
        Fault { why: describe(&error), offset, is_uncertain: false }
    })?;
    Converter { text, depth }.program(&program)
}

struct Fault {
    why: String,
    offset: usize,
    is_uncertain: bool,
}

fn describe(error: &ParseError) -> String {
    match error {
        ParseError::ParsingNear(_) => "bash can't go on from here".to_owned(),
        ParseError::ParsingAtEndOfInput => "the contract ends before its last command does".to_owned(),
        ParseError::Tokenizing { inner, .. } => {
            // The place is said by the span, in the plan's own lines.
            let said = inner.to_string();
            if said.contains("here document") {
                return "the here-document does not end: the word that closes it is missing".to_owned();
            }
            let is_place = |c: char| c.is_ascii_digit() || c == ',' || c == ' ';
            let said = said.trim_end_matches(is_place);
            said.trim_end_matches(" at").trim_end_matches(" near").to_owned()
        }
    }
}

struct Converter<'a> {
    text: &'a Text,
    depth: usize,
}

type Converted<T> = Result<T, Fault>;

impl Converter<'_> {
    fn program(&self, program: &ast::Program) -> Converted<Script> {
        let mut items = Vec::new();
        for list in &program.complete_commands {
            items.extend(self.list(list)?.items);
        }
        Ok(Script { items })
    }

    fn list(&self, list: &ast::CompoundList) -> Converted<Script> {
        let items = list.0.iter().map(|item| self.item(item)).collect::<Converted<_>>()?;
        Ok(Script { items })
    }

    fn item(&self, item: &ast::CompoundListItem) -> Converted<Item> {
        let ast::CompoundListItem(list, separator) = item;
        let mut rest = Vec::new();
        for next in &list.additional {
            rest.push(match next {
                ast::AndOr::And(pipeline) => (Join::And, self.pipeline(pipeline)?),
                ast::AndOr::Or(pipeline) => (Join::Or, self.pipeline(pipeline)?),
            });
        }
        let first = self.pipeline(&list.first)?;
        let end = rest.last().map_or(first.span, |(_, last)| last.span);
        let span = first.span.to(end);
        let is_background = matches!(separator, ast::SeparatorOperator::Async);
        Ok(Item { first, rest, is_background, span })
    }

    fn pipeline(&self, pipeline: &ast::Pipeline) -> Converted<Pipeline> {
        let commands: Vec<Command> =
            pipeline.seq.iter().map(|command| self.command(command)).collect::<Converted<_>>()?;
        let span = commands.iter().map(Command::span).reduce(Span::to);
        let span = span.unwrap_or_else(|| self.place(pipeline.location().as_ref()));
        Ok(Pipeline { is_negated: pipeline.bang, commands, span })
    }

    fn span(&self, span: &SourceSpan) -> Span {
        self.text.span(span.start.index, span.end.index)
    }

    fn place(&self, span: Option<&SourceSpan>) -> Span {
        span.map_or(Span::at(0), |span| self.span(span))
    }

    fn source(&self, span: &SourceSpan) -> Text {
        self.text.slice(span.start.index, span.end.index)
    }

    fn command(&self, command: &ast::Command) -> Converted<Command> {
        Ok(match command {
            ast::Command::Simple(simple) => Command::Simple(self.simple(simple)?),
            ast::Command::Compound(compound, redirects) => {
                Command::Compound(self.compound(compound, redirects.as_ref())?)
            }
            ast::Command::Function(function) => {
                let body = self.compound(&function.body.0, function.body.1.as_ref())?;
                let span = self.place(function.fname.loc.as_ref()).to(body.span);
                let body = Script { items: vec![item_of(Command::Compound(body), span)] };
                Command::Function { name: function.fname.value.clone(), body, span }
            }
            ast::Command::ExtendedTest(test, redirects) => Command::Test {
                test: self.test(&test.expr)?,
                redirects: self.redirects(redirects.as_ref())?,
                span: self.span(&test.loc),
            },
        })
    }

    fn simple(&self, simple: &ast::SimpleCommand) -> Converted<Simple> {
        let mut made = Simple {
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            inline: Vec::new(),
            arrays: Vec::new(),
            span: Span::at(0),
        };
        let mut literals = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.add_item(item, &mut made, &mut literals)?;
        }
        if let Some(name) = &simple.word_or_name {
            self.take_word(name, &mut made, &mut literals)?;
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.add_item(item, &mut made, &mut literals)?;
        }
        for at in inline_at(&made.words) {
            if let Some(Some(text)) = literals.get(at)
                && self.depth < SUBSTITUTIONS_MAX
                && let Ok(script) = script_of(text, self.depth + 1)
            {
                made.inline.push(script);
            }
        }
        if runs_input(&made.words)
            && let Some(text) = self.fed_text(simple)
            && self.depth < SUBSTITUTIONS_MAX
            && let Ok(script) = script_of(&text, self.depth + 1)
        {
            made.inline.push(script);
        }
        let words = made.assignments.iter().chain(&made.words).map(|word| word.span);
        let span = words.chain(made.redirects.iter().map(|redirect| redirect.span)).reduce(Span::to);
        made.span = span.unwrap_or_else(|| self.place(simple.location().as_ref()));
        Ok(made)
    }

    // The lines of a heredoc that bash leaves as they are.
    fn fed_text(&self, simple: &ast::SimpleCommand) -> Option<Text> {
        let items = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let mut items = items.chain(simple.suffix.iter().flat_map(|suffix| &suffix.0));
        items.find_map(|item| match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(ast::IoRedirect::HereDocument(_, document)) => {
                (!document.requires_expansion).then(|| self.here_text(document))
            }
            ast::CommandPrefixOrSuffixItem::IoRedirect(_)
            | ast::CommandPrefixOrSuffixItem::Word(_)
            | ast::CommandPrefixOrSuffixItem::AssignmentWord(..)
            | ast::CommandPrefixOrSuffixItem::ProcessSubstitution(..) => None,
        })
    }

    fn here_text(&self, document: &ast::IoHereDocument) -> Text {
        let here = document.doc.loc.as_ref().map(|loc| self.source(loc)).unwrap_or_default();
        here.map_to_source(&document.doc.value)
    }

    fn add_item(
        &self,
        item: &ast::CommandPrefixOrSuffixItem,
        made: &mut Simple,
        literals: &mut Vec<Option<Text>>,
    ) -> Converted<()> {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                made.redirects.extend(self.redirect(redirect)?)
            }
            ast::CommandPrefixOrSuffixItem::Word(word) => self.take_word(word, made, literals)?,
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if let ast::AssignmentValue::Array(values) = &assignment.value {
                    let values = values.iter().map(|(_, value)| Ok(self.word(value)?.0));
                    made.arrays.push((assignment.name.to_string(), values.collect::<Converted<_>>()?));
                }
                // After the command's name it is an argument (`env A=1`, `export A=1`).
                if made.words.is_empty() {
                    made.assignments.push(self.word(word)?.0)
                } else {
                    self.take_word(word, made, literals)?
                }
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                made.words.push(self.substitution(subshell)?);
                literals.push(None);
            }
        }
        Ok(())
    }

    fn take_word(
        &self,
        word: &ast::Word,
        made: &mut Simple,
        literals: &mut Vec<Option<Text>>,
    ) -> Converted<()> {
        let (word, literal) = self.word(word)?;
        made.words.push(word);
        literals.push(literal);
        Ok(())
    }

    fn substitution(&self, subshell: &ast::SubshellCommand) -> Converted<Word> {
        let nested = vec![self.list(&subshell.list)?];
        let span = self.span(&subshell.loc);
        let raw = self.source(&subshell.loc).as_str().to_owned();
        Ok(Word { raw, literal: None, parts: vec![Part::Unknown], nested, span })
    }

    fn redirects(&self, list: Option<&ast::RedirectList>) -> Converted<Vec<Redirect>> {
        let mut made = Vec::new();
        for redirect in list.iter().flat_map(|list| &list.0) {
            made.extend(self.redirect(redirect)?);
        }
        Ok(made)
    }

    fn redirect(&self, redirect: &ast::IoRedirect) -> Converted<Option<Redirect>> {
        let file = |target: Word, writes: bool, feeds_input: bool| Redirect {
            span: target.span,
            writes,
            target,
            feeds_input,
            is_document: false,
        };
        Ok(Some(match redirect {
            ast::IoRedirect::File(_, kind, ast::IoFileRedirectTarget::Filename(word)) => {
                let word = self.word(word)?.0;
                match kind {
                    ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::DuplicateInput => {
                        file(word, false, true)
                    }
                    ast::IoFileRedirectKind::ReadAndWrite => file(word, true, true),
                    ast::IoFileRedirectKind::Write
                    | ast::IoFileRedirectKind::Append
                    | ast::IoFileRedirectKind::Clobber
                    | ast::IoFileRedirectKind::DuplicateOutput => file(word, true, false),
                }
            }
            ast::IoRedirect::File(_, _, ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => {
                file(self.substitution(subshell)?, false, true)
            }
            // `>& FILE` is `&> FILE`; `>&2` and `>&-` name no file.
            ast::IoRedirect::File(_, kind, ast::IoFileRedirectTarget::Duplicate(word)) => {
                let word = self.word(word)?.0;
                let is_fd = word.raw.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                if is_fd || !matches!(kind, ast::IoFileRedirectKind::DuplicateOutput) {
                    return Ok(None);
                }
                file(word, true, false)
            }
            ast::IoRedirect::File(_, _, ast::IoFileRedirectTarget::Fd(_)) => return Ok(None),
            ast::IoRedirect::OutputAndError(word, _) => file(self.word(word)?.0, true, false),
            ast::IoRedirect::HereDocument(_, document) => {
                let text = self.here_text(document);
                let mut target =
                    Word { raw: text.as_str().to_owned(), span: text.whole(), ..Word::default() };
                if document.requires_expansion {
                    self.expansions(&text, &mut target.nested)?;
                }
                let span = self.place(document.here_end.loc.as_ref());
                Redirect { is_document: true, span, ..file(target, false, true) }
            }
            ast::IoRedirect::HereString(_, word) => {
                Redirect { is_document: true, ..file(self.word(word)?.0, false, true) }
            }
        }))
    }

    // The scripts in a text whose quotes mean nothing: a heredoc, an arithmetic expression.
    fn expansions(&self, text: &Text, scripts: &mut Vec<Script>) -> Converted<()> {
        if !text.as_str().contains(['$', '`']) {
            return Ok(());
        }
        match word::parse_heredoc(text.as_str(), &ParserOptions::default()) {
            Ok(pieces) => self.nested(&pieces, text, scripts),
            Err(_) => Ok(()),
        }
    }

    // An expression is a word without a literal; only the scripts in it count.
    fn expression(&self, expr: &ast::UnexpandedArithmeticExpr, loc: &SourceSpan) -> Converted<Word> {
        let text = self.source(loc);
        let mut nested = Vec::new();
        self.expansions(&text, &mut nested)?;
        let raw = expr.value.clone();
        Ok(Word { raw, literal: None, parts: vec![Part::Unknown], nested, span: text.whole() })
    }

    fn compound(
        &self,
        compound: &ast::CompoundCommand,
        redirects: Option<&ast::RedirectList>,
    ) -> Converted<Compound> {
        let mut made = Compound {
            kind: CompoundKind::Group,
            conditions: Vec::new(),
            bodies: Vec::new(),
            is_exhaustive: false,
            words: Vec::new(),
            variable: None,
            redirects: self.redirects(redirects)?,
            span: self.place(compound.location().as_ref()),
        };
        match compound {
            ast::CompoundCommand::Arithmetic(command) => {
                made.kind = CompoundKind::Arithmetic;
                made.words.push(self.expression(&command.expr, &command.loc)?);
            }
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                made.kind = CompoundKind::For;
                self.loop_head(&clause.loc)?;
                made.bodies.push(self.list(&clause.body.list)?);
            }
            ast::CompoundCommand::BraceGroup(group) => {
                made.is_exhaustive = true;
                made.bodies.push(self.list(&group.list)?);
            }
            ast::CompoundCommand::Subshell(subshell) => {
                made.kind = CompoundKind::Subshell;
                made.is_exhaustive = true;
                made.bodies.push(self.list(&subshell.list)?);
            }
            ast::CompoundCommand::ForClause(clause) => {
                made.kind = self.kind_of_for(&clause.loc);
                for value in clause.values.iter().flatten() {
                    made.words.push(self.word(value)?.0);
                }
                made.variable = Some(clause.variable_name.clone());
                made.bodies.push(self.list(&clause.body.list)?);
            }
            ast::CompoundCommand::CaseClause(clause) => {
                made.kind = CompoundKind::Case;
                made.words.push(self.word(&clause.value)?.0);
                for case in &clause.cases {
                    made.is_exhaustive |= case.patterns.iter().any(|pattern| pattern.value == "*");
                    made.bodies
                        .push(case.cmd.as_ref().map_or(Ok(Script::default()), |list| self.list(list))?);
                }
            }
            ast::CompoundCommand::IfClause(clause) => self.if_clause(clause, &mut made)?,
            ast::CompoundCommand::WhileClause(clause) | ast::CompoundCommand::UntilClause(clause) => {
                made.kind = CompoundKind::While;
                made.conditions.push(self.list(&clause.0)?);
                made.bodies.push(self.list(&clause.1.list)?);
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                made.kind = CompoundKind::Coprocess;
                let command = self.command(&coprocess.body)?;
                made.bodies.push(Script { items: vec![item_of(command, made.span)] });
            }
        }
        let inside = made.conditions.iter().chain(&made.bodies).flat_map(|script| &script.items);
        made.span = inside.map(|item| item.span).fold(made.span, Span::to);
        // The parser places an `if` at its first word.
        if made.kind == CompoundKind::If {
            let end = self.text.keyword_after(made.span.end, "fi");
            made.span = end.map_or(made.span, |end| made.span.to(end));
        }
        Ok(made)
    }

    // The parser takes `for ((a; b))` for a loop; bash wants both `;`.
    fn loop_head(&self, loc: &SourceSpan) -> Converted<()> {
        let (mut depth, mut count) = (0_usize, 0_usize);
        for (character, _) in self.source(loc).chars() {
            match character {
                '(' => depth += 1,
                ')' if depth == 1 => break,
                ')' => depth = depth.saturating_sub(1),
                ';' => count += 1,
                _ => {}
            }
        }
        let why = "the head of `for ((…))` needs two `;`".to_owned();
        let fault = Fault { why, offset: self.span(loc).start, is_uncertain: false };
        if count == 2 { Ok(()) } else { Err(fault) }
    }

    fn kind_of_for(&self, loc: &SourceSpan) -> CompoundKind {
        if self.text.was_select(loc.start.index) { CompoundKind::Select } else { CompoundKind::For }
    }

    fn if_clause(&self, clause: &ast::IfClauseCommand, made: &mut Compound) -> Converted<()> {
        made.kind = CompoundKind::If;
        made.conditions.push(self.list(&clause.condition)?);
        made.bodies.push(self.list(&clause.then)?);
        for other in clause.elses.iter().flatten() {
            match &other.condition {
                Some(condition) => made.conditions.push(self.list(condition)?),
                None => made.is_exhaustive = true,
            }
            made.bodies.push(self.list(&other.body)?);
        }
        Ok(())
    }

    fn test(&self, expr: &ast::ExtendedTestExpr) -> Converted<Test> {
        Ok(match expr {
            ast::ExtendedTestExpr::And(a, b) => Test::And(Box::new(self.test(a)?), Box::new(self.test(b)?)),
            ast::ExtendedTestExpr::Or(a, b) => Test::Or(Box::new(self.test(a)?), Box::new(self.test(b)?)),
            ast::ExtendedTestExpr::Not(inner) => Test::Not(Box::new(self.test(inner)?)),
            ast::ExtendedTestExpr::Parenthesized(inner) => self.test(inner)?,
            ast::ExtendedTestExpr::UnaryTest(predicate, word) => {
                Test::Unary(predicate.to_string(), self.word(word)?.0)
            }
            ast::ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                Test::Binary(self.word(left)?.0, predicate.to_string(), self.word(right)?.0)
            }
        })
    }

    // Returns a word, and its text with the places of its characters, where a shell that is given it can be read.
    fn word(&self, word: &ast::Word) -> Converted<(Word, Option<Text>)> {
        let here = word.loc.as_ref().map(|loc| self.source(loc)).unwrap_or_default();
        let written = here.map_to_source(&word.value);
        let span = written.whole();
        let mut made = Word { raw: word.value.clone(), span, ..Word::default() };
        let is_lone = matches!(word.value.as_str(), "[" | "{}");
        if is_lone || !word.value.contains(['$', '`', '\'', '"', '\\', '~', '*', '?', '[', '{']) {
            made.literal = Some(word.value.clone());
            made.parts.push(Part::Text(word.value.clone()));
            return Ok((made, Some(written)));
        }
        let Ok(pieces) = word::parse(&word.value, &ParserOptions::default()) else {
            return Err(Fault {
                why: "the quotes or expansions of this word are not complete".into(),
                offset: span.start,
                is_uncertain: false,
            });
        };
        let mut literal = Text::default();
        let is_plain = is_literal(&pieces, &written, &mut literal, false);
        made.literal = is_plain.then(|| literal.as_str().to_owned());
        parts(&pieces, false, &mut made.parts);
        self.nested(&pieces, &written, &mut made.nested)?;
        let script = if is_plain { Some(literal) } else { quoted_script(&pieces, &written) };
        Ok((made, script))
    }

    fn nested(
        &self,
        pieces: &[WordPieceWithSource],
        text: &Text,
        scripts: &mut Vec<Script>,
    ) -> Converted<()> {
        for piece in pieces {
            let whole = || text.bytes(piece.start_index, piece.end_index);
            match &piece.piece {
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.nested(inner, text, scripts)?;
                }
                WordPiece::CommandSubstitution(script) => scripts
                    .push(self.substituted(&text.bytes(piece.start_index + 2, piece.end_index), script)?),
                WordPiece::BackquotedCommandSubstitution(script) => {
                    let inside = text.bytes(piece.start_index + 1, piece.end_index);
                    // Bash looks into backticks when it runs them, not before.
                    let read = self.substituted(&inside, script);
                    scripts.push(read.map_err(|fault| Fault { is_uncertain: true, ..fault })?);
                }
                WordPiece::ParameterExpansion(ParameterExpr::Parameter { .. }) => {}
                WordPiece::ParameterExpansion(_) => {
                    let inside = text.bytes(piece.start_index + 2, piece.end_index.saturating_sub(1));
                    self.expansions(&inside, scripts)?;
                }
                WordPiece::ArithmeticExpression(_) => {
                    let inside = whole();
                    let length = inside.chars().count();
                    self.expansions(&inside.slice(2, length), scripts)?;
                }
                WordPiece::Text(_)
                | WordPiece::SingleQuotedText(_)
                | WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::EscapeSequence(_) => {}
            }
        }
        Ok(())
    }

    fn substituted(&self, here: &Text, script: &str) -> Converted<Script> {
        if self.depth >= SUBSTITUTIONS_MAX {
            return Ok(Script::default());
        }
        let text = here.map_to_source(script);
        script_of(&text, self.depth + 1).map_err(|fault| Fault {
            why: format!("the command inside `$(…)` is not valid: {}", fault.why),
            ..fault
        })
    }
}

fn is_literal(pieces: &[WordPieceWithSource], from: &Text, text: &mut Text, is_quoted: bool) -> bool {
    pieces.iter().all(|piece| {
        let (start, end) = (piece.start_index, piece.end_index);
        match &piece.piece {
            WordPiece::Text(plain) => {
                text.extend(&from.bytes(start, end).map_to_source(plain));
                is_quoted || !plain.contains(['*', '?', '[', '{'])
            }
            WordPiece::SingleQuotedText(plain) => {
                text.extend(&from.bytes(start + 1, end).map_to_source(plain));
                true
            }
            WordPiece::EscapeSequence(escape) => {
                let plain = escape.strip_prefix('\\').unwrap_or(escape);
                text.extend(&from.bytes(start + escape.len() - plain.len(), end).map_to_source(plain));
                true
            }
            WordPiece::DoubleQuotedSequence(inner) => is_literal(inner, from, text, true),
            // Kept as written: no home is in the workspace.
            WordPiece::TildeExpansion(word::TildeExpr::Home | word::TildeExpr::UserHome(_)) => {
                text.extend(&from.bytes(start, end));
                true
            }
            WordPiece::AnsiCQuotedText(_)
            | WordPiece::GettextDoubleQuotedSequence(_)
            | WordPiece::TildeExpansion(_)
            | WordPiece::ParameterExpansion(_)
            | WordPiece::CommandSubstitution(_)
            | WordPiece::BackquotedCommandSubstitution(_)
            | WordPiece::ArithmeticExpression(_) => false,
        }
    })
}

/// Returns a script in double quotes that begins with plain text, its variables as they are written: bash puts in what they hold before
/// the script is read, so only where one holds code is it another script.
fn quoted_script(pieces: &[WordPieceWithSource], from: &Text) -> Option<Text> {
    let [WordPieceWithSource { piece: WordPiece::DoubleQuotedSequence(inner), .. }] = pieces else {
        return None;
    };
    let mut text = Text::default();
    let reads = |piece: &WordPieceWithSource| {
        let is_variable = matches!(piece.piece, WordPiece::ParameterExpansion(_));
        if is_variable {
            text.extend(&from.bytes(piece.start_index, piece.end_index));
        }
        is_variable || is_literal(std::slice::from_ref(piece), from, &mut text, true)
    };
    let begins_with_text = matches!(inner.first()?.piece, WordPiece::Text(_));
    (begins_with_text && inner.iter().all(reads)).then_some(text)
}

fn parts(pieces: &[WordPieceWithSource], is_quoted: bool, into: &mut Vec<Part>) {
    for piece in pieces {
        match &piece.piece {
            WordPiece::Text(plain) if !is_quoted && plain.contains(['*', '?', '[', '{']) => {
                into.push(Part::Pattern(plain.clone()));
            }
            WordPiece::Text(plain) | WordPiece::SingleQuotedText(plain) => {
                into.push(Part::Text(plain.clone()));
            }
            WordPiece::EscapeSequence(escape) => {
                into.push(Part::Text(escape.strip_prefix('\\').unwrap_or(escape).to_owned()));
            }
            WordPiece::DoubleQuotedSequence(inner) => parts(inner, true, into),
            WordPiece::ParameterExpansion(parameter) => into.push(of_parameter(parameter)),
            WordPiece::TildeExpansion(word::TildeExpr::Home) => into.push(Part::Text("~".into())),
            WordPiece::CommandSubstitution(script) | WordPiece::BackquotedCommandSubstitution(script) => {
                into.push(Part::Output(script.clone()));
            }
            WordPiece::TildeExpansion(_)
            | WordPiece::AnsiCQuotedText(_)
            | WordPiece::GettextDoubleQuotedSequence(_)
            | WordPiece::ArithmeticExpression(_) => into.push(Part::Unknown),
        }
    }
}

fn of_parameter(expression: &ParameterExpr) -> Part {
    if let ParameterExpr::Parameter { parameter, indirect: false }
    | ParameterExpr::IndicateErrorIfNullOrUnset { parameter, indirect: false, .. } = expression
    {
        return variable(parameter).map_or(Part::Unknown, Part::Variable);
    }
    if let ParameterExpr::UseDefaultValues { parameter, indirect: false, default_value, .. }
    | ParameterExpr::AssignDefaultValues { parameter, indirect: false, default_value, .. } = expression
        && let Ok(pieces) =
            word::parse(default_value.as_deref().unwrap_or_default(), &ParserOptions::default())
    {
        let mut default = Vec::new();
        parts(&pieces, false, &mut default);
        return variable(parameter).map_or(Part::Unknown, |name| Part::Default { name, default });
    }
    Part::Unknown
}

/// Returns the name of a parameter: `1` for the first argument, `@` for all of them, that of an array for its elements.
fn variable(parameter: &Parameter) -> Option<String> {
    match parameter {
        Parameter::Named(name)
        | Parameter::NamedWithIndex { name, .. }
        | Parameter::NamedWithAllIndices { name, .. } => Some(name.clone()),
        Parameter::Positional(number) => Some(number.to_string()),
        Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => Some("@".to_owned()),
        Parameter::Special(SpecialParameter::ShellName) => Some("0".to_owned()),
        Parameter::Special(_) => None,
    }
}

fn item_of(command: Command, span: Span) -> Item {
    let first = Pipeline { is_negated: false, commands: vec![command], span };
    Item { first, rest: Vec::new(), is_background: false, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_parser_is_caught_and_told_apart_from_others() {
        assert!(!is_reading_contract());
        assert_eq!(guarded(is_reading_contract), Some(true));
        // `resume_unwind` panics without calling the hook.
        let outcome: Option<()> = guarded(|| std::panic::resume_unwind(Box::new("young")));
        assert_eq!(outcome, None);
        assert!(!is_reading_contract());
        assert_eq!(read("cat ~+99999999999999999999/x"), Reading::TooDeep);
    }
}
