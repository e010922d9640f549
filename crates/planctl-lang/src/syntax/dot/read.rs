//! Reads DOT text: leniently where the meaning is clear, with every complaint at its place where it is not.

mod attributes;
mod leniency;
mod recovery;

use super::lexemes::{self, is_name};
use super::syntax::{Attribute, Digraph, Of, Statement};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::source::Source;
use crate::text::{Span, Spanned, escape};
use leniency::{Leniency, named_in};

/// How deep subgraphs may be nested.
pub const DEPTH_MAX: usize = 16;
/// The most errors of form that are listed.
const ERRORS_MAX: usize = 50;

const KEYWORDS: [&str; 6] = ["graph", "node", "edge", "subgraph", "digraph", "strict"];

/// Says whether a word is one of DOT's own.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Reads a DOT file; an unreadable part is absent in the result and named by a finding.
pub fn read(source: &Source) -> (Digraph, Vec<Diagnostic>) {
    let mut reader = Reader {
        text: source.text(),
        at: source.bom_bytes(),
        found: Vec::new(),
        lenient: Leniency::default(),
        unclosed: None,
        is_over: false,
        is_torn: false,
    };
    let mut digraph = reader.file();
    digraph.is_torn = reader.is_torn || reader.is_over;
    let Reader { mut found, lenient, .. } = reader;
    lenient.report(&mut found);
    (digraph, found)
}

/// An error that was reported already, so that the reader goes on at the next border.
struct Lost;

struct Reader<'s> {
    text: &'s str,
    at: usize,
    found: Vec<Diagnostic>,
    lenient: Leniency,
    /// A text whose closing quote is probably missing: it ends where another one begins.
    unclosed: Option<Span>,
    /// Says that nothing more can be read.
    is_over: bool,
    /// Says that part of the text was left out.
    is_torn: bool,
}

/// A subgraph that is being read.
struct Open {
    name: Option<Spanned<String>>,
    start: usize,
    /// The statements before it, where it stands.
    before: Vec<Statement>,
}

impl<'s> Reader<'s> {
    fn file(&mut self) -> Digraph {
        let mut digraph = Digraph::default();
        let Ok(start) = self.head(&mut digraph) else { return digraph };
        let body = self.at;
        digraph.statements = self.body(Span::new(body.saturating_sub(1), body));
        digraph.span = Span::new(start, self.at);
        self.skip();
        if !self.is_over && self.at < self.text.len() {
            self.after_the_graph();
        }
        digraph
    }

    // `digraph Name {`, and what stands there instead (D1, D2).
    fn head(&mut self, digraph: &mut Digraph) -> Result<usize, Lost> {
        self.skip_from_line_start();
        let start = self.at;
        let mut word = self.take_word();
        if word.value.eq_ignore_ascii_case("strict") {
            let refused = Diagnostic::new(Code::P302, "`strict` graphs are not read").at(word.span, "");
            let help = "delete `strict`: several edges between two nodes are kept apart";
            self.report(refused.help(help).fix(Span::new(word.span.start, self.next_at()), "", true));
            self.skip();
            word = self.take_word();
        }
        match word.value.to_ascii_lowercase().as_str() {
            "digraph" => {
                if word.value != "digraph" {
                    self.lenient.keywords.push((word.span, "digraph"));
                }
            }
            "graph" => {
                let refused = Diagnostic::new(Code::P302, "expected `digraph`, found `graph`");
                let refused = refused.at(word.span, "an undirected graph");
                self.report(
                    refused.help("write `digraph`, and `->` for each edge").fix(word.span, "digraph", false),
                );
            }
            _ => {
                self.at = word.span.start;
                self.expected("`digraph`");
                self.is_over = true;
                return Err(Lost);
            }
        }
        self.skip();
        digraph.name = self.graph_name();
        self.skip();
        if !self.take("{") {
            self.expected("`{`");
            self.is_over = true;
            return Err(Lost);
        }
        Ok(start)
    }

    fn graph_name(&mut self) -> Option<Spanned<String>> {
        if self.rest().starts_with('"') {
            return self.string().ok();
        }
        let name = lexemes::bare(self.rest());
        let span = Span::new(self.at, self.at + name.len());
        self.at = span.end;
        (!name.is_empty()).then(|| Spanned::new(name.to_owned(), span))
    }

    fn after_the_graph(&mut self) {
        let word = lexemes::word(self.rest());
        let is_graph = matches!(word, "digraph" | "graph" | "strict");
        let length = self.rest().chars().next().map_or(0, char::len_utf8).max(word.len());
        let span = Span::new(self.at, self.at + length);
        let refused = if is_graph {
            Diagnostic::new(Code::P302, "expected the end of the file, found a second graph")
                .at(span, "a file holds one graph")
                .help("move it to a file of its own")
        } else {
            Diagnostic::new(
                Code::P302,
                format!("expected the end of the file, found {}", self.next_as_people_see_it()),
            )
            .at(span, "after the graph's closing `}`")
            .help("delete it, or move it before the last `}`")
        };
        self.report(refused);
    }

    fn body(&mut self, opening: Span) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        while !self.is_over {
            self.skip();
            if self.take(";") || self.take(",") {
                continue;
            }
            if self.take("}") {
                let Some(closed) = open.pop() else { return statements };
                self.close(closed, &mut statements);
                continue;
            }
            if self.at >= self.text.len() {
                let inner = open.last().map_or(opening, |open| Span::new(open.start, open.start + 1));
                let message = "expected `}`, found the end of the file";
                let unclosed = Diagnostic::new(Code::P302, message).at(Span::at(self.at), "");
                self.report(unclosed.at(inner, "opened here").help("close it with `}`"));
                self.is_over = true;
                break;
            }
            let before = self.at;
            if self.statement(&mut statements, &mut open).is_err() {
                self.recover();
            }
            // The reader goes forward in every case.
            if self.at == before {
                self.at += self.rest().chars().next().map_or(1, char::len_utf8);
            }
        }
        while let Some(unclosed) = open.pop() {
            self.close(unclosed, &mut statements);
        }
        statements
    }

    fn close(&mut self, open: Open, statements: &mut Vec<Statement>) {
        let inner = std::mem::replace(statements, open.before);
        let span = Span::new(open.start, self.at);
        let end = self.at;
        self.skip();
        let is_end_of_edge = self.rest().starts_with("->");
        let mut names = Vec::new();
        if is_end_of_edge {
            named_in(&inner, &mut names);
        }
        statements.push(Statement::Subgraph { name: open.name, statements: inner, span });
        if !is_end_of_edge {
            return;
        }
        if names.is_empty() {
            self.expected("a statement: nothing stands between these braces that an edge could leave");
            self.recover();
            return;
        }
        self.lenient.groups.push(span);
        self.at = end;
        if self.edges_from(names, open.start, statements).is_err() {
            self.recover();
        }
    }

    fn open(
        &mut self,
        name: Option<Spanned<String>>,
        start: usize,
        statements: &mut Vec<Statement>,
        open: &mut Vec<Open>,
    ) -> Result<(), Lost> {
        if open.len() >= DEPTH_MAX {
            let message = format!("subgraphs are nested more than {DEPTH_MAX} deep");
            let deep = Diagnostic::new(Code::P008, message).at(Span::new(start, self.at), "");
            self.report(deep.help("a graph of fewer levels is enough: edges may cross them"));
            self.is_over = true;
            return Err(Lost);
        }
        open.push(Open { name, start, before: std::mem::take(statements) });
        Ok(())
    }

    fn statement(&mut self, statements: &mut Vec<Statement>, open: &mut Vec<Open>) -> Result<(), Lost> {
        let start = self.at;
        if self.take("{") {
            return self.open(None, start, statements, open);
        }
        let word = lexemes::word(self.rest());
        match word {
            "subgraph" => {
                self.at += word.len();
                self.skip();
                let name = self.graph_name();
                self.skip();
                if !self.take("{") {
                    return self.fail_expecting("`{`");
                }
                self.open(name, start, statements, open)
            }
            "graph" | "node" | "edge" => {
                let keyword = self.take_word().span;
                self.skip();
                if !self.rest().starts_with('[') {
                    return self
                        .fail_expecting(&format!("`[` after `{word}`, which can't be the name of a node"));
                }
                let of = [Of::Graph, Of::Node, Of::Edge].into_iter().find(|of| of.as_str() == word);
                let attributes = self.attribute_lists();
                statements.push(Statement::Defaults { of: of.unwrap_or(Of::Graph), keyword, attributes });
                Ok(())
            }
            "digraph" | "strict" => {
                let refused = Diagnostic::new(Code::P302, "expected a statement, found the start of a graph");
                let refused = refused.at(Span::new(start, start + word.len()), "a file holds one graph");
                self.report(
                    refused
                        .help("close the graph before it with `}`, and move this one to a file of its own"),
                );
                self.is_over = true;
                Err(Lost)
            }
            _ => self.node_or_edge(statements),
        }
    }

    fn node_or_edge(&mut self, statements: &mut Vec<Statement>) -> Result<(), Lost> {
        let start = self.at;
        if let Some(key) = self.assigned_key() {
            let value = self.value()?;
            statements.push(Statement::Assignment(Attribute { key, value }));
            return Ok(());
        }
        let first = self.node_name("the name of a node, `subgraph` or `}`")?;
        self.edges_from(vec![first], start, statements)
    }

    // Reads the text after the first end: edges, or nothing where it is one node.
    fn edges_from(
        &mut self,
        first: Vec<Spanned<String>>,
        start: usize,
        statements: &mut Vec<Statement>,
    ) -> Result<(), Lost> {
        let mut ends = vec![first];
        let mut end;
        loop {
            end = self.at;
            self.skip();
            if self.take("->") {
                self.skip();
                ends.push(self.end_of_edge()?);
            } else if self.rest().starts_with("--") {
                let span = Span::new(self.at, self.at + 2);
                let refused = Diagnostic::new(Code::P302, "expected `->`, found `--`").at(span, "");
                self.report(refused.help("edges have a direction: write `->`").fix(span, "->", false));
                self.at += 2;
                self.skip();
                ends.push(self.end_of_edge()?);
            } else {
                break;
            }
        }
        let mut attributes = Vec::new();
        if self.rest().starts_with('[') {
            attributes = self.attribute_lists();
            end = self.at;
        }
        let span = Span::new(start, end);
        if ends.len() > 1 {
            statements.push(Statement::Edges { ends, attributes, span });
        } else if let Some(name) = ends.pop().and_then(|mut names| names.pop()) {
            statements.push(Statement::Node { name, attributes, span });
        }
        Ok(())
    }

    // `key =` or `a.b =` at the level of statements; the reader stays where it is if there is none.
    fn assigned_key(&mut self) -> Option<Spanned<String>> {
        let start = self.at;
        let (errors, over) = (self.found.len(), self.is_over);
        let key = if self.rest().starts_with('"') { self.string().ok() } else { self.bare_key() };
        let end = self.at;
        self.skip();
        if let Some(key) = key
            && self.take("=")
        {
            self.skip();
            return Some(Spanned::new(key.value, Span::new(start, end)));
        }
        self.at = start;
        self.found.truncate(errors);
        self.is_over = over;
        None
    }

    fn end_of_edge(&mut self) -> Result<Vec<Spanned<String>>, Lost> {
        let start = self.at;
        if !self.take("{") {
            return Ok(vec![self.node_name("the name of a node")?]);
        }
        let mut names = Vec::new();
        loop {
            self.skip();
            if self.take(";") || self.take(",") {
                continue;
            }
            if self.take("}") {
                break;
            }
            names.push(self.node_name("the name of a node or `}`")?);
        }
        self.lenient.groups.push(Span::new(start, self.at));
        Ok(names)
    }

    // D3, and what people write instead.
    fn node_name(&mut self, expected: &str) -> Result<Spanned<String>, Lost> {
        let start = self.at;
        let name = if self.rest().starts_with('"') {
            let name = self.string()?;
            // Graphviz reads its own words in any case, so these need their quotes.
            if is_name(&name.value) && !is_keyword(&name.value.to_ascii_lowercase()) {
                self.lenient.quoted_names.push((name.span, name.value.clone()));
            }
            name
        } else {
            self.bare_name(expected)?
        };
        if is_keyword(&name.value) {
            let message = format!("`{}` is a word of DOT, so no node can have this name", name.value);
            self.report(Diagnostic::new(Code::P302, message).at(name.span, "").help("choose another name"));
        } else if !is_name(&name.value) {
            let message = format!("`{}` can't be the name of a node", escape(&shortened(&name.value)));
            let refused = Diagnostic::new(Code::P302, message).at(name.span, "");
            let plain = plain(&name.value);
            let help = format!(
                "names are ASCII letters, digits and `_`, and begin with no digit: write `{plain}`, and put what \
                 people read into `label`"
            );
            self.report(refused.help(help));
        }
        if self.rest().starts_with(':') {
            let at = self.at;
            while self.take(":") {
                self.at += lexemes::word(self.rest()).len();
            }
            self.lenient.ports.push(Span::new(at, self.at));
        }
        Ok(Spanned::new(name.value, Span::new(start, name.span.end)))
    }

    // A name with `-` or `.` inside is taken whole, so that one finding tells it.
    fn bare_name(&mut self, expected: &str) -> Result<Spanned<String>, Lost> {
        let start = self.at;
        self.at += lexemes::word(self.rest()).len();
        if self.at == start {
            return self.fail_expecting(expected);
        }
        loop {
            let rest = self.rest();
            let joined = rest.strip_prefix(['-', '.']).map(lexemes::word).filter(|word| !word.is_empty());
            let Some(word) = joined else { break };
            self.at += 1 + word.len();
        }
        let span = Span::new(start, self.at);
        Ok(Spanned::new(self.text[start..self.at].to_owned(), span))
    }

    fn skip_trivia(&mut self, at_line: bool) {
        let trivia = lexemes::trivia(self.rest(), at_line);
        if let Some(hash) = trivia.hash {
            let start = self.at + hash;
            self.lenient.hashes.push(Span::new(start, start + 1));
        }
        if trivia.is_unclosed && !self.is_over {
            let start = self.at + self.rest().rfind("/*").unwrap_or(0);
            let message = "expected `*/`, found the end of the file";
            let unclosed = Diagnostic::new(Code::P302, message)
                .at(Span::new(start, start + 2), "this comment is not closed");
            self.report(unclosed.help("close it with `*/`"));
        }
        self.at += trivia.bytes;
    }

    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn next_at(&self) -> usize {
        self.at + lexemes::trivia(self.rest(), false).bytes
    }

    fn take(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn take_word(&mut self) -> Spanned<String> {
        let word = lexemes::word(self.rest()).to_owned();
        let span = Span::new(self.at, self.at + word.len());
        self.at = span.end;
        Spanned::new(word, span)
    }

    fn fail_expecting<T>(&mut self, what: &str) -> Result<T, Lost> {
        self.expected(what);
        Err(Lost)
    }

    fn expected(&mut self, what: &str) {
        let rest = self.rest();
        let length = match lexemes::word(rest) {
            "" => rest.chars().next().map_or(0, char::len_utf8),
            word => word.len(),
        };
        let message = format!("expected {what}, found {}", self.next_as_people_see_it());
        self.report(Diagnostic::new(Code::P302, message).at(Span::new(self.at, self.at + length), ""));
    }

    fn next_as_people_see_it(&self) -> String {
        let rest = self.rest();
        match (lexemes::word(rest), rest.chars().next()) {
            (_, None) => "the end of the file".to_owned(),
            ("", Some('"')) => "a quoted text".to_owned(),
            ("", Some(_)) if rest.starts_with("->") => "`->`".to_owned(),
            ("", Some(other)) => format!("`{}`", escape(&other.to_string())),
            (word, Some(_)) => format!("`{}`", escape(&shortened(word))),
        }
    }

    fn report(&mut self, finding: Diagnostic) {
        if self.is_over {
            return;
        }
        // From a missing quote on, texts and what stands between them have changed places: nothing else is worth a word.
        if let Some(span) = self.unclosed.take() {
            let message = "a `\"` is missing: this text ends where another one begins";
            let unclosed =
                Diagnostic::new(Code::P302, message).at(Span::new(span.start, span.start + 1), "not closed");
            let end = Span::new(span.end - 1, span.end);
            let help = "close it with `\"` where it ends; a quote inside of a text is written `\\\"`";
            self.found.push(unclosed.at(end, "taken for its end").help(help));
            self.is_over = true;
            return;
        }
        if self.found.len() >= ERRORS_MAX {
            let more = Diagnostic::new(Code::P302, "more errors of this kind may follow and are not listed");
            self.found.push(more.at(Span::at(self.at), "reading ended here").level(Severity::Note));
            self.is_over = true;
            return;
        }
        self.found.push(finding);
    }
}

// `label="Fix it]` and, later, `b [label="…`: the quote that closes the first text was meant to open the second.
fn ends_where_another_begins(text: &str, rest: &str) -> bool {
    let is_border = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ']' | '}' | '+' | '/');
    text.trim_end().ends_with('=') && !rest.starts_with(is_border) && !rest.is_empty()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Makes a name that a node can have of any text.
pub(crate) fn plain(text: &str) -> String {
    let letters = text.chars().take(60);
    let plain: String = letters.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_');
    if plain.is_empty() || plain.starts_with(|c: char| c.is_ascii_digit()) {
        format!("n_{plain}")
    } else {
        plain.to_owned()
    }
}
