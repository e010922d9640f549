//! The second pass over a DOT file: defaults, subgraphs, classes and the stylesheet, flattened into nodes and edges.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::attributes::{self, class_of_label};
use super::stylesheet::{self, Stylesheet};
use super::syntax::{Attribute, Digraph, Of, Statement};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::text::limits::{EDGES_MAX, STEPS_MAX};
use crate::text::{Span, Spanned};

/// The most bytes of a value that many nodes or edges share.
const SHARED_BYTES_MAX: usize = 16 * 1024;
/// The most classes that count for one node.
const CLASSES_MAX: usize = 20;

/// A value with its key's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attr {
    /// Where its key stands.
    pub key: Span,
    /// The value.
    pub value: Spanned<String>,
}

type Attributes = BTreeMap<String, Rc<Attr>>;

/// A DOT file with everything resolved that its text says in one place for many.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pipeline {
    /// The graph's name.
    pub name: Option<Spanned<String>>,
    /// The attributes of the graph (D16).
    pub graph: BTreeMap<String, Rc<Attr>>,
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
    pub own: BTreeMap<String, Rc<Attr>>,
    /// The defaults that held where it was declared (D14).
    pub defaults: Rc<BTreeMap<String, Rc<Attr>>>,
    /// Its classes: those it names, and those of its subgraphs (D18, D19).
    pub classes: Vec<String>,
    /// The attributes of the stylesheet (T2).
    pub styled: BTreeMap<&'static str, String>,
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
    /// The attributes of its statement.
    pub own: Rc<BTreeMap<String, Rc<Attr>>>,
    /// The defaults that held there.
    pub defaults: Rc<BTreeMap<String, Rc<Attr>>>,
}

impl PipelineNode {
    /// Returns what is said under a name or one of its aliases: by the node itself, else by defaults (D15).
    pub fn get(&self, name: &str) -> Option<&Attr> {
        said(Of::Node, &self.own, name).or_else(|| said(Of::Node, &self.defaults, name))
    }
}

impl PipelineEdge {
    /// Returns what is said under a name: by the edge itself, else by defaults (D15).
    pub fn get(&self, name: &str) -> Option<&Attr> {
        said(Of::Edge, &self.own, name).or_else(|| said(Of::Edge, &self.defaults, name))
    }
}

impl Pipeline {
    /// Returns what is said of the graph under a name or one of its aliases (A2).
    pub fn get(&self, name: &str) -> Option<&Attr> {
        said(Of::Graph, &self.graph, name)
    }
}

fn said<'a>(of: Of, attributes: &'a Attributes, name: &str) -> Option<&'a Attr> {
    let own = attributes.get(name);
    let found = own.or_else(|| attributes::aliases(of, name).find_map(|alias| attributes.get(alias)));
    found.map(Rc::as_ref)
}

/// The defaults and the cluster at a statement.
#[derive(Clone, Default)]
struct Scope {
    node: Rc<Attributes>,
    edge: Rc<Attributes>,
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
                    scope.node = self.defaults(Of::Node, &scope.node, attributes);
                }
                Statement::Defaults { of: Of::Edge, attributes, .. } => {
                    scope.edge = self.defaults(Of::Edge, &scope.edge, attributes);
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
            self.take(Of::Graph, attributes, &mut graph);
            self.pipeline.graph = graph;
        }
    }

    // Only attributes that planctl knows are inherited, so that unknown ones cost nothing.
    fn defaults(&mut self, of: Of, outer: &Rc<Attributes>, attributes: &[Attribute]) -> Rc<Attributes> {
        let mut said = Attributes::new();
        self.take(of, attributes, &mut said);
        let mut defaults = outer.as_ref().clone();
        for (key, attr) in said {
            let is_known = attributes::find(of, &key).is_some();
            if attr.value.value.len() > SHARED_BYTES_MAX {
                self.too_long(&key, attr.value.span);
            } else if is_known {
                defaults.insert(key, attr);
            }
        }
        Rc::new(defaults)
    }

    fn too_long(&mut self, key: &str, span: Span) {
        let message =
            format!("the value of `{key}` is longer than {SHARED_BYTES_MAX} bytes, and many would share it");
        self.found.push(
            Diagnostic::new(Code::P008, message).at(span, "").help("say it where it is needed, or in a file"),
        );
    }

    // Judges attributes and adds them; of one key the last counts, as in Graphviz.
    fn take(&mut self, of: Of, attributes: &[Attribute], into: &mut Attributes) {
        let mut here: BTreeMap<&str, &Attribute> = BTreeMap::new();
        for attribute in attributes {
            attributes::check_attribute(of, attribute, &mut self.found);
            let key = attribute.key.value.as_str();
            if let Some(before) = here.insert(key, attribute)
                && before.value.value != attribute.value.value
            {
                let message = format!("`{key}` is given twice");
                let twice = Diagnostic::new(Code::P009, message).level(Severity::Warning);
                let twice = twice.at(attributes::place(attribute), "this one counts");
                self.found
                    .push(twice.at(attributes::place(before), "given here first").help("keep one of them"));
            }
            let attr = Attr { key: attribute.key.span, value: attribute.value.clone() };
            into.insert(key.to_owned(), Rc::new(attr));
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
                    own: Attributes::new(),
                    defaults: Rc::clone(&scope.node),
                    classes: Vec::new(),
                    styled: BTreeMap::new(),
                });
                at
            }
        };
        let mut own = std::mem::take(&mut self.pipeline.nodes[at].own);
        self.take(Of::Node, attributes, &mut own);
        let node = &mut self.pipeline.nodes[at];
        node.own = own;
        for class in scope.classes.iter() {
            if node.classes.len() < CLASSES_MAX && !node.classes.contains(class) {
                node.classes.push(class.clone());
            }
        }
    }

    fn edges(&mut self, ends: &[Vec<Spanned<String>>], attributes: &[Attribute], span: Span, scope: &Scope) {
        let mut own = Attributes::new();
        self.take(Of::Edge, attributes, &mut own);
        let many = ends.len() > 2 || ends.iter().any(|end| end.len() > 1);
        if many {
            let long: Vec<String> = own
                .iter()
                .filter(|(_, attr)| attr.value.value.len() > SHARED_BYTES_MAX)
                .map(|(key, _)| key.clone())
                .collect();
            for key in long {
                if let Some(attr) = own.remove(&key) {
                    self.too_long(&key, attr.value.span);
                }
            }
        }
        let own = Rc::new(own);
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
                        own: Rc::clone(&own),
                        defaults: Rc::clone(&scope.edge),
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
        let sheet = match self.pipeline.get("model_stylesheet") {
            Some(attr) => stylesheet::read(&attr.value.clone(), &mut self.found),
            None => Stylesheet::default(),
        };
        for node in &mut self.pipeline.nodes {
            let named = node.get("class").map(|attr| attr.value.value.clone()).unwrap_or_default();
            for class in named.split([',', ' ']).map(str::trim).filter(|class| !class.is_empty()) {
                if node.classes.len() < CLASSES_MAX && !node.classes.iter().any(|known| known == class) {
                    node.classes.push(class.to_owned());
                }
            }
            let shape = node.get("shape").map_or("box", |attr| attr.value.value.as_str()).to_owned();
            let styled = sheet.of(&node.name.value, &shape, &node.classes);
            node.styled = styled.into_iter().filter(|(property, _)| node.get(property).is_none()).collect();
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
