//! A DOT file as its author wrote it: statements in their order, each with its place.

use crate::text::{Span, Spanned};

/// One `digraph`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Digraph {
    /// Its name.
    pub name: Option<Spanned<String>>,
    /// The statements between its braces.
    pub statements: Vec<Statement>,
    /// From `digraph` to its closing brace.
    pub span: Span,
    /// Says that part of the text could not be read, so that what is missing here may well be there.
    pub is_torn: bool,
}

/// One statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// `graph [k=v]`, `node [k=v]`, `edge [k=v]` (D14, D16).
    Defaults {
        /// The kind of element that they are for.
        of: Of,
        /// The word.
        keyword: Span,
        /// The attributes.
        attributes: Vec<Attribute>,
    },
    /// `k=v` (D16).
    Assignment(Attribute),
    /// `name [k=v]`
    Node {
        /// The node's name.
        name: Spanned<String>,
        /// Its attributes.
        attributes: Vec<Attribute>,
        /// All of it.
        span: Span,
    },
    /// `a -> b -> c [k=v]` (D13): every name of one end leads to every name of the next.
    Edges {
        /// The ends, each one name, or several in braces.
        ends: Vec<Vec<Spanned<String>>>,
        /// The attributes of each of the edges.
        attributes: Vec<Attribute>,
        /// All of it.
        span: Span,
    },
    /// `subgraph name { … }` (D17), nested at most [`super::read::DEPTH_MAX`] deep.
    Subgraph {
        /// Its name.
        name: Option<Spanned<String>>,
        /// The statements between its braces.
        statements: Vec<Statement>,
        /// All of it.
        span: Span,
    },
}

/// The kind of element that attributes are for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Of {
    /// The graph, or a subgraph.
    Graph,
    /// Nodes.
    Node,
    /// Edges.
    Edge,
}

impl Of {
    /// Returns the word as authors write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Of::Graph => "graph",
            Of::Node => "node",
            Of::Edge => "edge",
        }
    }
}

/// One `key=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// The key, without quotes (D12).
    pub key: Spanned<String>,
    /// The value: the text between quotes, escapes resolved, or the bare word.
    pub value: Spanned<String>,
}
