//! The second pass over a DOT file: defaults, subgraphs, classes and the stylesheet, flattened into nodes and edges.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::attributes::{self, Attributes, EdgeAttributes, GraphAttributes, NodeAttributes, class_of_label};
use super::stylesheet::{self, Stylesheet};
use super::syntax::{Attribute, Digraph, Of, Statement};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::syntax::written::{Text, Written};
use crate::text::limits::{EDGES_MAX, STEPS_MAX};
use crate::text::{Span, Spanned};

/// The most bytes of a value that many nodes or edges share.
const SHARED_BYTES_MAX: usize = 16 * 1024;
/// The most classes that count for one node.
const CLASSES_MAX: usize = 20;

/// A DOT file with everything resolved that its text says in one place for many.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pipeline {
    /// The graph's name.
    pub name: Option<Spanned<String>>,
    /// The attributes of the graph (D16).
    pub graph: GraphAttributes,
    /// The nodes, in the order of their declarations.
    pub nodes: Vec<PipelineNode>,
    /// The edges, in the order of the text (D13, D20).
    pub edges: Vec<PipelineEdge>,
}

/// A node with all that is said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineNode {
    /// Its name.
    pub name: Spanned<String>,
    /// All of its declaration.
    pub span: Span,
    /// The attributes of its own declarations.
    pub own: NodeAttributes,
    /// The defaults that held where it was declared (D14).
    pub defaults: Rc<NodeAttributes>,
    /// The contracts that have names, by these.
    pub contracts: BTreeMap<String, Spanned<String>>,
    /// Its classes: those it names, and those of its subgraphs (D18, D19).
    pub classes: Vec<String>,
    /// The attributes of the stylesheet (T2).
    pub styled: NodeAttributes,
}

/// An edge with all that is said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineEdge {
    /// Where it leaves.
    pub from: Spanned<String>,
    /// Where it leads.
    pub to: Spanned<String>,
    /// All of its statement.
    pub span: Span,
    /// The attributes of its statement, and the defaults that held there (D15).
    pub attributes: Rc<EdgeAttributes>,
}

impl PipelineNode {
    /// Returns everything that is said of it: by itself, else by defaults (D15), else by the stylesheet (T2).
    pub fn attributes(&self) -> NodeAttributes {
        self.own.clone().or(&self.defaults).or(&self.styled)
    }

    /// Returns a text that it says itself, else the defaults.
    pub(crate) fn text(&self, field: fn(&NodeAttributes) -> &Written<Text>) -> Option<&Spanned<String>> {
        field(&self.own).raw().or_else(|| field(&self.defaults).raw())
    }
}

/// The defaults and the cluster at a statement.
#[derive(Clone, Default)]
struct Scope {
    node: Rc<NodeAttributes>,
    edge: Rc<EdgeAttributes>,
    classes: Rc<Vec<String>>,
}

struct Resolver<'d> {
    pipeline: Pipeline,
    places: BTreeMap<&'d str, usize>,
    found: Vec<Diagnostic>,
    is_full: bool,
}

/// Flattens what was read; the statements themselves stay as they are, with what nobody knows (D21).
pub fn resolve(digraph: &Digraph) -> (Pipeline, Vec<Diagnostic>) {
    let pipeline = Pipeline { name: digraph.name.clone(), ..Pipeline::default() };
    let mut resolver = Resolver { pipeline, places: BTreeMap::new(), found: Vec::new(), is_full: false };
    resolver.block(&digraph.statements, Scope::default(), true);
    resolver.style();
    (resolver.pipeline, resolver.found)
}

impl<'d> Resolver<'d> {
    // Nested as deep as the reader allows.
    fn block(&mut self, statements: &'d [Statement], scope: Scope, is_top: bool) {
        let mut scope = scope;
        if !is_top && let Some(class) = label_class(statements) {
            let mut classes = scope.classes.as_ref().clone();
            classes.push(class);
            scope.classes = Rc::new(classes);
        }
        for statement in statements {
            match statement {
                Statement::Defaults { of: Of::Graph, attributes, .. } => self.of_graph(attributes, is_top),
                Statement::Defaults { of: Of::Node, attributes, .. } => {
                    scope.node = self.defaults(&scope.node, attributes);
                }
                Statement::Defaults { of: Of::Edge, attributes, .. } => {
                    scope.edge = self.defaults(&scope.edge, attributes);
                }
                Statement::Assignment(attribute) => self.of_graph(std::slice::from_ref(attribute), is_top),
                Statement::Node { name, attributes, span } => self.node(name, attributes, *span, &scope),
                Statement::Edges { ends, attributes, span } => self.edges(ends, attributes, *span, &scope),
                Statement::Subgraph { statements, .. } => self.block(statements, scope.clone(), false),
            }
        }
    }

    fn of_graph(&mut self, attributes: &[Attribute], is_top: bool) {
        if is_top {
            let mut graph = std::mem::take(&mut self.pipeline.graph);
            self.take(attributes, false, &mut graph);
            self.pipeline.graph = graph;
        }
    }

    fn defaults<A: Attributes + Default>(&mut self, outer: &Rc<A>, attributes: &[Attribute]) -> Rc<A> {
        let mut said = A::default();
        self.take(attributes, true, &mut said);
        Rc::new(said.or(outer))
    }

    fn too_long(&mut self, key: &str, span: Span) {
        let message =
            format!("the value of `{key}` is longer than {SHARED_BYTES_MAX} bytes, and many would share it");
        self.found.push(
            Diagnostic::new(Code::P008, message).at(span, "").help("say it where it is needed, or in a file"),
        );
    }

    // Reads attributes; of one key the last counts, as in Graphviz. A long value is read where nothing else shares it.
    fn take<A: Attributes>(&mut self, attributes: &[Attribute], is_shared: bool, into: &mut A) {
        let mut here: BTreeMap<&str, &Attribute> = BTreeMap::new();
        // The dialect's own name counts before those that others have for it.
        let (own, others): (Vec<_>, Vec<_>) =
            attributes.iter().partition(|attribute| attributes::is_own_name(A::OF, &attribute.key.value));
        for attribute in others.into_iter().chain(own) {
            let Attribute { key, value } = attribute;
            if is_shared && value.value.len() > SHARED_BYTES_MAX {
                self.too_long(&key.value, value.span);
                continue;
            }
            attributes::read(into, key, value, &mut self.found);
            if let Some(before) = here.insert(&key.value, attribute)
                && before.value.value != value.value
            {
                let message = format!("`{}` is given twice", key.value);
                let twice = Diagnostic::new(Code::P009, message).level(Severity::Warning);
                let twice = twice.at(attributes::place(attribute), "this one counts");
                self.found
                    .push(twice.at(attributes::place(before), "given here first").help("keep one of them"));
            }
        }
    }

    fn node(&mut self, name: &'d Spanned<String>, attributes: &[Attribute], span: Span, scope: &Scope) {
        let at = match self.places.get(name.value.as_str()) {
            Some(at) => *at,
            None if self.pipeline.nodes.len() >= STEPS_MAX => {
                let message = format!("the graph has more than {STEPS_MAX} nodes");
                return self.full(message, name.span);
            }
            None => {
                let at = self.pipeline.nodes.len();
                self.places.insert(&name.value, at);
                self.pipeline.nodes.push(PipelineNode {
                    name: name.clone(),
                    span,
                    own: NodeAttributes::default(),
                    defaults: Rc::clone(&scope.node),
                    contracts: BTreeMap::new(),
                    classes: Vec::new(),
                    styled: NodeAttributes::default(),
                });
                at
            }
        };
        let mut own = std::mem::take(&mut self.pipeline.nodes[at].own);
        self.take(attributes, false, &mut own);
        let node = &mut self.pipeline.nodes[at];
        node.own = own;
        for Attribute { key, value } in attributes {
            if let Some(name) = key.value.strip_prefix("contract.") {
                node.contracts.insert(name.to_owned(), value.clone());
            }
        }
        for class in scope.classes.iter() {
            if node.classes.len() < CLASSES_MAX && !node.classes.contains(class) {
                node.classes.push(class.clone());
            }
        }
    }

    fn edges(&mut self, ends: &[Vec<Spanned<String>>], attributes: &[Attribute], span: Span, scope: &Scope) {
        let is_shared = ends.len() > 2 || ends.iter().any(|end| end.len() > 1);
        let mut own = EdgeAttributes::default();
        self.take(attributes, is_shared, &mut own);
        let attributes = Rc::new(own.or(&scope.edge));
        for pair in ends.windows(2) {
            let [from, to] = pair else { continue };
            for from in from {
                for to in to {
                    if self.pipeline.edges.len() >= EDGES_MAX {
                        return self.full(format!("the graph has more than {EDGES_MAX} edges"), span);
                    }
                    self.pipeline.edges.push(PipelineEdge {
                        from: from.clone(),
                        to: to.clone(),
                        span,
                        attributes: Rc::clone(&attributes),
                    });
                }
            }
        }
    }

    fn full(&mut self, message: String, span: Span) {
        if !self.is_full {
            self.is_full = true;
            let full = Diagnostic::new(Code::P008, message).at(span, "the first that is too many");
            self.found.push(full.help("split it into several plans"));
        }
    }

    // T1, T2: after all is read, before anything is judged.
    fn style(&mut self) {
        let sheet = match self.pipeline.graph.model_stylesheet.raw() {
            Some(text) => stylesheet::read(text, &mut self.found),
            None => Stylesheet::default(),
        };
        for node in &mut self.pipeline.nodes {
            let named = node.text(|said| &said.class).map(|class| class.value.clone()).unwrap_or_default();
            for class in named.split([',', ' ']).map(str::trim).filter(|class| !class.is_empty()) {
                if node.classes.len() < CLASSES_MAX && !node.classes.iter().any(|known| known == class) {
                    node.classes.push(class.to_owned());
                }
            }
            let shape = node.text(|said| &said.shape).map_or("box", |shape| &shape.value);
            node.styled = sheet.of(&node.name, shape, &node.classes);
        }
    }
}

// The label that stands directly in a subgraph, wherever in it.
fn label_class(statements: &[Statement]) -> Option<String> {
    let labels = statements.iter().filter_map(|statement| match statement {
        Statement::Assignment(attribute) => Some(std::slice::from_ref(attribute)),
        Statement::Defaults { of: Of::Graph, attributes, .. } => Some(attributes.as_slice()),
        Statement::Defaults { .. }
        | Statement::Node { .. }
        | Statement::Edges { .. }
        | Statement::Subgraph { .. } => None,
    });
    let label = labels.flatten().rfind(|attribute| attribute.key.value == "label")?;
    Some(class_of_label(&label.value.value)).filter(|class| !class.is_empty())
}
