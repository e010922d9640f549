//! Turns what brush-parser reads into our own tree, with byte offsets for its character offsets.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{self, SourceLocation};
use brush_parser::word::{self, WordPiece, WordPieceWithSource};
use brush_parser::{ParseError, Parser, ParserOptions, SourceSpan};

use super::limits::{is_uncertain, nests_too_deeply};
use super::{Command, Compound, CompoundKind, Item, Join, Pipeline, Reading, Redirect, Script, Simple, Word};
use crate::source::Span;

const BYTES_MAX: usize = 16 * 1024;
const SUBSTITUTIONS_MAX: usize = 6;

pub(super) fn read(script: &str) -> Reading {
    if script.len() > BYTES_MAX || nests_too_deeply(script) {
        return Reading::TooDeep;
    }
    // The parser is young; a panic in it must cost one finding, not the whole verification.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let offsets = Offsets::new(script);
        parse(script).map(|program| Converter { offsets: &offsets, depth: 0 }.program(&program))
    }));
    match outcome {
        Ok(Ok(Ok(script))) => Reading::Read(script),
        Ok(Ok(Err(fault))) => refused(script, fault.why, fault.offset),
        Ok(Err(error)) => {
            let offset = Offsets::new(script).of_error(&error);
            refused(script, describe(&error), offset)
        }
        Err(_) => Reading::TooDeep,
    }
}

struct Fault {
    why: String,
    offset: usize,
}

fn refused(script: &str, why: String, offset: usize) -> Reading {
    Reading::Refused { why, offset: offset.min(script.len()), is_uncertain: is_uncertain(script) }
}

fn parse(script: &str) -> Result<ast::Program, ParseError> {
    Parser::new(script.as_bytes(), &ParserOptions::default()).parse_program()
}

fn describe(error: &ParseError) -> String {
    match error {
        ParseError::ParsingNear(_) => "bash can't go on from here".to_owned(),
        ParseError::ParsingAtEndOfInput => "the contract ends before its last command does".to_owned(),
        ParseError::Tokenizing { inner, .. } => {
            // The place is said by the span, in the plan's own lines.
            let said = inner.to_string();
            let is_place = |c: char| c.is_ascii_digit() || c == ',' || c == ' ';
            let said = said.trim_end_matches(is_place);
            said.trim_end_matches(" at").trim_end_matches(" near").to_owned()
        }
    }
}

struct Offsets {
    bytes: Vec<usize>,
    end: usize,
}

impl Offsets {
    fn new(script: &str) -> Offsets {
        Offsets { bytes: script.char_indices().map(|(at, _)| at).collect(), end: script.len() }
    }

    fn byte(&self, index: usize) -> usize {
        self.bytes.get(index).copied().unwrap_or(self.end)
    }

    fn span(&self, span: &SourceSpan) -> Span {
        Span::new(self.byte(span.start.index), self.byte(span.end.index))
    }

    fn of_error(&self, error: &ParseError) -> usize {
        match error {
            ParseError::ParsingNear(position) => self.byte(position.index),
            ParseError::ParsingAtEndOfInput => self.end,
            ParseError::Tokenizing { position, .. } => {
                position.as_ref().map_or(self.end, |position| self.byte(position.index))
            }
        }
    }
}

struct Converter<'a> {
    offsets: &'a Offsets,
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
        let commands = pipeline.seq.iter().map(|command| self.command(command)).collect::<Converted<_>>()?;
        let span = self.place(pipeline.location().as_ref());
        Ok(Pipeline { is_negated: pipeline.bang, commands, span })
    }

    fn place(&self, span: Option<&SourceSpan>) -> Span {
        span.map_or(Span::at(0), |span| self.offsets.span(span))
    }

    fn command(&self, command: &ast::Command) -> Converted<Command> {
        Ok(match command {
            ast::Command::Simple(simple) => Command::Simple(self.simple(simple)?),
            ast::Command::Compound(compound, redirects) => {
                let mut compound = self.compound(compound)?;
                compound.redirects.extend(self.redirects(redirects.as_ref())?);
                Command::Compound(compound)
            }
            ast::Command::Function(function) => {
                let body = self.compound(&function.body.0)?;
                let mut items = Script::default();
                items.items.extend(compound_as_item(body));
                Command::Function { name: function.fname.value.clone(), body: items }
            }
            ast::Command::ExtendedTest(test, _) => {
                let (mut files, mut words) = (Vec::new(), Vec::new());
                self.test(&test.expr, &mut files, &mut words)?;
                Command::Test { files, words }
            }
        })
    }

    fn simple(&self, simple: &ast::SimpleCommand) -> Converted<Simple> {
        let mut made = Simple {
            assignments: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            span: self.place(simple.location().as_ref()),
        };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.take(item, &mut made)?;
        }
        if let Some(name) = &simple.word_or_name {
            made.words.push(self.word(name)?);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.take(item, &mut made)?;
        }
        Ok(made)
    }

    fn take(&self, item: &ast::CommandPrefixOrSuffixItem, made: &mut Simple) -> Converted<()> {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                made.redirects.extend(self.redirect(redirect)?)
            }
            ast::CommandPrefixOrSuffixItem::Word(word) => made.words.push(self.word(word)?),
            ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let word = self.word(word)?;
                // After the command's name it is an argument (`env A=1`, `export A=1`).
                if made.words.is_empty() { made.assignments.push(word) } else { made.words.push(word) }
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                made.words.push(self.substitution(subshell)?);
            }
        }
        Ok(())
    }

    fn substitution(&self, subshell: &ast::SubshellCommand) -> Converted<Word> {
        let nested = vec![self.list(&subshell.list)?];
        Ok(Word { raw: String::new(), literal: None, nested, span: self.offsets.span(&subshell.loc) })
    }

    fn redirects(&self, list: Option<&ast::RedirectList>) -> Converted<Vec<Redirect>> {
        let mut made = Vec::new();
        for redirect in list.iter().flat_map(|list| &list.0) {
            made.extend(self.redirect(redirect)?);
        }
        Ok(made)
    }

    fn redirect(&self, redirect: &ast::IoRedirect) -> Converted<Option<Redirect>> {
        Ok(match redirect {
            ast::IoRedirect::File(_, kind, ast::IoFileRedirectTarget::Filename(word)) => {
                let (writes, feeds_input) = match kind {
                    ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::DuplicateInput => (false, true),
                    ast::IoFileRedirectKind::ReadAndWrite => (true, true),
                    ast::IoFileRedirectKind::Write
                    | ast::IoFileRedirectKind::Append
                    | ast::IoFileRedirectKind::Clobber
                    | ast::IoFileRedirectKind::DuplicateOutput => (true, false),
                };
                Some(Redirect { writes, target: self.word(word)?, feeds_input })
            }
            ast::IoRedirect::File(_, _, ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => {
                Some(Redirect { writes: false, target: self.substitution(subshell)?, feeds_input: true })
            }
            ast::IoRedirect::File(..) => None,
            ast::IoRedirect::OutputAndError(word, _) => {
                Some(Redirect { writes: true, target: self.word(word)?, feeds_input: false })
            }
            ast::IoRedirect::HereDocument(_, document) => {
                let mut target =
                    Word { raw: String::new(), literal: None, nested: Vec::new(), span: Span::at(0) };
                if document.requires_expansion {
                    let pieces = word::parse_heredoc(&document.doc.value, &ParserOptions::default());
                    if let Ok(pieces) = pieces {
                        self.nested(&pieces, &mut target.nested, 0)?;
                    }
                }
                Some(Redirect { writes: false, target, feeds_input: true })
            }
            ast::IoRedirect::HereString(_, word) => {
                let word = Word { literal: None, ..self.word(word)? };
                Some(Redirect { writes: false, target: word, feeds_input: true })
            }
        })
    }

    fn compound(&self, compound: &ast::CompoundCommand) -> Converted<Compound> {
        let mut made = Compound {
            kind: CompoundKind::Group,
            conditions: Vec::new(),
            bodies: Vec::new(),
            is_exhaustive: false,
            words: Vec::new(),
            redirects: Vec::new(),
        };
        match compound {
            ast::CompoundCommand::Arithmetic(_) => made.kind = CompoundKind::Arithmetic,
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                made.kind = CompoundKind::Loop;
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
                made.kind = CompoundKind::Loop;
                for value in clause.values.iter().flatten() {
                    made.words.push(self.word(value)?);
                }
                made.bodies.push(self.list(&clause.body.list)?);
            }
            ast::CompoundCommand::CaseClause(clause) => {
                made.kind = CompoundKind::Case;
                made.words.push(self.word(&clause.value)?);
                for case in &clause.cases {
                    made.is_exhaustive |= case.patterns.iter().any(|pattern| pattern.value == "*");
                    made.bodies
                        .push(case.cmd.as_ref().map_or(Ok(Script::default()), |list| self.list(list))?);
                }
            }
            ast::CompoundCommand::IfClause(clause) => {
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
            }
            ast::CompoundCommand::WhileClause(clause) | ast::CompoundCommand::UntilClause(clause) => {
                made.kind = CompoundKind::Loop;
                made.conditions.push(self.list(&clause.0)?);
                made.bodies.push(self.list(&clause.1.list)?);
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                made.kind = CompoundKind::Coprocess;
                let command = self.command(&coprocess.body)?;
                let span = self.offsets.span(&coprocess.loc);
                made.bodies.push(Script { items: vec![item_of(command, span)] });
            }
        }
        Ok(made)
    }

    fn test(
        &self,
        expr: &ast::ExtendedTestExpr,
        files: &mut Vec<Word>,
        words: &mut Vec<Word>,
    ) -> Converted<()> {
        match expr {
            ast::ExtendedTestExpr::And(a, b) | ast::ExtendedTestExpr::Or(a, b) => {
                self.test(a, files, words)?;
                self.test(b, files, words)
            }
            ast::ExtendedTestExpr::Not(inner) | ast::ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, files, words)
            }
            ast::ExtendedTestExpr::UnaryTest(predicate, word) => {
                let word = self.word(word)?;
                let is_text = matches!(
                    predicate,
                    ast::UnaryPredicate::StringHasZeroLength
                        | ast::UnaryPredicate::StringHasNonZeroLength
                        | ast::UnaryPredicate::ShellOptionEnabled
                        | ast::UnaryPredicate::ShellVariableIsSetAndAssigned
                        | ast::UnaryPredicate::ShellVariableIsSetAndNameRef
                        | ast::UnaryPredicate::FdIsOpenTerminal
                );
                if is_text {
                    words.push(word)
                } else {
                    files.push(word)
                }
                Ok(())
            }
            ast::ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let is_file = matches!(
                    predicate,
                    ast::BinaryPredicate::FilesReferToSameDeviceAndInodeNumbers
                        | ast::BinaryPredicate::LeftFileIsNewerOrExistsWhenRightDoesNot
                        | ast::BinaryPredicate::LeftFileIsOlderOrDoesNotExistWhenRightDoes
                );
                let into = if is_file { files } else { words };
                into.push(self.word(left)?);
                into.push(self.word(right)?);
                Ok(())
            }
        }
    }

    fn word(&self, word: &ast::Word) -> Converted<Word> {
        let span = self.place(word.loc.as_ref());
        let mut made = Word { raw: word.value.clone(), literal: None, nested: Vec::new(), span };
        if !word.value.contains(['$', '`', '\'', '"', '\\', '~', '*', '?', '[', '{']) {
            made.literal = Some(word.value.clone());
            return Ok(made);
        }
        let Ok(pieces) = word::parse(&word.value, &ParserOptions::default()) else {
            return Err(Fault {
                why: "the quotes or expansions of this word are not complete".into(),
                offset: span.start,
            });
        };
        let mut text = String::new();
        let is_plain = literal(&pieces, &mut text, false);
        made.literal = is_plain.then_some(text);
        self.nested(&pieces, &mut made.nested, span.start)?;
        Ok(made)
    }

    fn nested(&self, pieces: &[WordPieceWithSource], scripts: &mut Vec<Script>, at: usize) -> Converted<()> {
        for piece in pieces {
            match &piece.piece {
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.nested(inner, scripts, at)?;
                }
                WordPiece::CommandSubstitution(text) | WordPiece::BackquotedCommandSubstitution(text) => {
                    scripts.push(self.substituted(text, at)?);
                }
                WordPiece::Text(_)
                | WordPiece::SingleQuotedText(_)
                | WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::ParameterExpansion(_)
                | WordPiece::EscapeSequence(_)
                | WordPiece::ArithmeticExpression(_) => {}
            }
        }
        Ok(())
    }

    // Places inside a substitution are those of the word it stands in: near enough to point at.
    fn substituted(&self, text: &str, at: usize) -> Converted<Script> {
        if self.depth >= SUBSTITUTIONS_MAX {
            return Ok(Script::default());
        }
        let program = parse(text).map_err(|error| Fault {
            why: format!("the command inside `$(…)` is not valid: {}", describe(&error)),
            offset: at,
        })?;
        let offsets = Offsets { bytes: Vec::new(), end: at };
        Converter { offsets: &offsets, depth: self.depth + 1 }.program(&program)
    }
}

fn literal(pieces: &[WordPieceWithSource], text: &mut String, is_quoted: bool) -> bool {
    pieces.iter().all(|piece| match &piece.piece {
        WordPiece::Text(plain) => {
            text.push_str(plain);
            is_quoted || !plain.contains(['*', '?', '[', '{'])
        }
        WordPiece::SingleQuotedText(plain) => {
            text.push_str(plain);
            true
        }
        WordPiece::EscapeSequence(escape) => {
            text.push_str(escape.strip_prefix('\\').unwrap_or(escape));
            true
        }
        WordPiece::DoubleQuotedSequence(inner) => literal(inner, text, true),
        // Kept as written: whatever home it is, it is not in the workspace.
        WordPiece::TildeExpansion(word::TildeExpr::Home) => {
            text.push('~');
            true
        }
        WordPiece::AnsiCQuotedText(_)
        | WordPiece::GettextDoubleQuotedSequence(_)
        | WordPiece::TildeExpansion(_)
        | WordPiece::ParameterExpansion(_)
        | WordPiece::CommandSubstitution(_)
        | WordPiece::BackquotedCommandSubstitution(_)
        | WordPiece::ArithmeticExpression(_) => false,
    })
}

fn compound_as_item(compound: Compound) -> Option<Item> {
    Some(item_of(Command::Compound(compound), Span::at(0)))
}

fn item_of(command: Command, span: Span) -> Item {
    let first = Pipeline { is_negated: false, commands: vec![command], span };
    Item { first, rest: Vec::new(), is_background: false, span }
}
