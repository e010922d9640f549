//! Graphs as pictures: laid out in layers, drawn as SVG without script, the same text for the same graph.

mod fold;
mod layouts;
mod letters;
mod order;
mod path;
mod place;
mod shape;
mod sketch;

use std::collections::BTreeMap;
use std::fmt::Write;

use planctl_api::wire::{RunView, StepState};
use planctl_api::words::{stage_words, step_state};
use planctl_lang::workflow::{EdgeTree, Kind, NodeTree, Phase, Stage, Stages, Workflow, edge_words};

pub use layouts::Layouts;
use letters::{BOLD, SMALL, TextLine, columns_for, escaped, wrapped};
use place::{EdgePath, Placed};
use shape::Shape;
pub(crate) use sketch::{Addresses, Fitted, Sketch};

/// The most nodes of a picture.
pub const NODES_MAX: usize = 1_000;
/// The most edges of a picture.
pub const EDGES_MAX: usize = 4_000;

/// The margin, in pixels.
const MARGIN: f64 = 24.0;
/// The height of the title.
const HEAD: f64 = 44.0;
/// The most lines of a text; the title of its element has a longer one whole.
const LINES: usize = 8;
/// The longest word of a stage that most nodes come to.
const LONGEST_STAGE: &str = "‖ waiting for your session";
/// Where more nodes than these lead to one for their failures, a single line stands for those that did not fail: lines from
/// everywhere to one place hide all others, and take hundreds of times as long to lay out.
const TROUBLES_MAX: usize = 8;
/// How many edges of a page's picture there are to a box, at most.
const EDGES_TO_A_BOX: usize = 4;
/// How many lines say where folded nodes stand.
const FOLDED_LINES: usize = 2;
/// The height of a line of the title.
const TITLE: f64 = 17.0;

/// Why there is no picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Undrawable {
    /// Nobody could read it.
    #[error(
        "a picture of {nodes} nodes and {edges} edges is too large: at most {NODES_MAX} and {EDGES_MAX} are drawn"
    )]
    TooLarge {
        /// Nodes of the graph.
        nodes: usize,
        /// Edges of the graph.
        edges: usize,
    },
    /// The layout gave up.
    #[error("the graph could not be laid out: {0}")]
    Layout(String),
}

/// A box as it is drawn: a node, or several that are folded.
struct NodeBox {
    lines: Vec<TextLine>,
    shape: Shape,
    width: f64,
    height: f64,
    /// Its name where edges are told of.
    name: String,
    /// The words for those who hear the picture or point at it.
    about: String,
    /// Its kind and phase, for the stylesheet.
    class: String,
    link: Option<String>,
}

/// An edge as it is drawn.
struct DrawnEdge {
    from: usize,
    to: usize,
    words: String,
    lines: Vec<String>,
    /// Says that it is for outcomes that are no success.
    is_trouble: bool,
}

/// A graph to be drawn as a part of a page.
struct Drawing<'s> {
    workflow: Workflow,
    stages: &'s Stages,
    /// Where its nodes lead, by their ids.
    links: BTreeMap<String, String>,
    folds: Vec<FoldedBox>,
}

/// A box that stands for several nodes.
struct FoldedBox {
    title: String,
    stage: Stage,
    link: String,
    /// The nodes that lead into it, by their ids.
    from: Vec<String>,
    /// The nodes that it leads to.
    to: Vec<String>,
}

/// Draws a graph; where stages are given, each node says where it stands.
///
/// # Errors
///
/// [`Undrawable`] where the graph is too large to be read as a picture.
pub fn svg(workflow: &Workflow, stages: &Stages) -> Result<String, Undrawable> {
    let (nodes, edges) = (workflow.nodes.len(), workflow.edges.len());
    if nodes > NODES_MAX || edges > EDGES_MAX {
        return Err(Undrawable::TooLarge { nodes, edges });
    }
    let (boxes, drawn_edges) = boxes_and_edges(workflow, stages, None);
    let placed = place::lay_out(&boxes, &drawn_edges)?;
    Ok(draw(workflow.title(), &boxes, &drawn_edges, &placed, false))
}

/// Draws a graph as a part of a page: its boxes are links, and its colours are those of [`style_within`]. Where nothing has
/// another size than in a picture before, it is not laid out again.
fn on_page(drawing: &Drawing<'_>, layouts: &Layouts) -> Result<String, Undrawable> {
    let workflow = &drawing.workflow;
    let (mut boxes, mut drawn_edges) = boxes_and_edges(workflow, drawing.stages, Some(&drawing.links));
    let places: BTreeMap<String, usize> =
        boxes.iter().enumerate().map(|(at, node_box)| (node_box.name.clone(), at)).collect();
    for fold in &drawing.folds {
        let at = boxes.len();
        boxes.push(box_of_fold(fold));
        let into = fold.from.iter().filter_map(|node| Some((*places.get(node)?, at)));
        let out = fold.to.iter().filter_map(|node| Some((at, *places.get(node)?)));
        drawn_edges.extend(into.chain(out).map(|(from, to)| DrawnEdge {
            from,
            to,
            words: String::new(),
            lines: Vec::new(),
            is_trouble: false,
        }));
    }
    let (nodes, edges) = (boxes.len(), drawn_edges.len());
    if edges > nodes * EDGES_TO_A_BOX {
        return Err(Undrawable::TooLarge { nodes, edges });
    }
    let placed = layouts.of(&boxes, &drawn_edges)?;
    Ok(draw(workflow.title(), &boxes, &drawn_edges, &placed, true))
}

fn boxes_and_edges(
    workflow: &Workflow,
    stages: &Stages,
    links: Option<&BTreeMap<String, String>>,
) -> (Vec<NodeBox>, Vec<DrawnEdge>) {
    let order = workflow.walk();
    let boxes = order.iter().map(|at| box_of_node(&workflow.nodes[*at], stages, links)).collect();
    let mut position = vec![0; workflow.nodes.len()];
    for (place, at) in order.iter().enumerate() {
        position[*at] = place;
    }
    let out_edges = workflow.out_edges();
    let edges = order.iter().flat_map(|at| out_edges[*at].iter().map(|(to, edge)| (*at, *to, *edge)));
    let mut troubles = vec![0_usize; workflow.nodes.len()];
    for (_, to, edge) in edges.clone() {
        troubles[to] += usize::from(edge.is_for_failure());
    }
    let stopped = |at: usize| {
        let stage = stages.get(&workflow.nodes[at].id.value);
        stage.is_some_and(|stage| matches!(stage.phase, Phase::Failed | Phase::Waiting))
    };
    let (mut drawn_edges, mut alike) = (Vec::new(), BTreeMap::new());
    for (from, to, edge) in edges {
        let drawn = drawn_edge(position[from], position[to], edge);
        if !edge.is_for_failure() || troubles[to] <= TROUBLES_MAX || stopped(from) {
            drawn_edges.push(drawn);
        } else {
            // The last of them is the nearest.
            let (count, last) = alike.entry(to).or_insert((0_usize, None));
            (*count, *last) = (*count + 1, Some(drawn));
        }
    }
    let others = alike.into_values().filter_map(|(count, last)| Some(last?.standing_for(count - 1)));
    drawn_edges.extend(others);
    (boxes, drawn_edges)
}

/// Returns the colours of pictures as a stylesheet for those within an element.
pub fn style_within(selector: &str) -> String {
    let rules = STYLE.trim().trim_start_matches("<style>").trim_end_matches("</style>");
    format!("{selector}{{{rules}}}\n")
}

/// Returns where the nodes of a run stand.
pub fn stages(view: &RunView) -> Stages {
    let steps = view.steps.iter().map(|step| {
        let tries = match step.attempts {
            0 | 1 => String::new(),
            count if step.state.is_settled() => format!(", {count} attempts"),
            count => format!(", attempt {count}"),
        };
        (step.node.clone(), stage(step.state, stage_words(step), step.visits, &tries))
    });
    let others = view
        .passages
        .iter()
        .map(|node| (node.node.clone(), stage(node.state, step_state(node.state), node.visits, "")));
    steps.chain(others).collect()
}

/// Returns where a node stands, as far as colours and signs say it.
pub(crate) fn phase(state: StepState) -> Phase {
    match state {
        StepState::Pending => Phase::Ahead,
        StepState::Passed | StepState::Skipped | StepState::Waived | StepState::Warned => Phase::Done,
        StepState::Ready | StepState::Working | StepState::Checking | StepState::Resting => Phase::Current,
        StepState::Waiting => Phase::Waiting,
        StepState::Failed => Phase::Failed,
    }
}

fn stage(state: StepState, stands: &str, visits: u32, tries: &str) -> Stage {
    let phase = phase(state);
    let round = if visits > 1 { format!(", visit {visits}") } else { String::new() };
    let words = match (state, visits) {
        // A node left without settling is come to again.
        (StepState::Pending, 1..) => format!("left{tries}{round}"),
        (StepState::Pending, 0) => String::new(),
        _ => format!("{stands}{tries}{round}"),
    };
    Stage { phase, words }
}

/// Makes the box of a node; one of a page has room for every word of a stage, so that it keeps its size while a run goes on.
fn box_of_node(node: &NodeTree, stages: &Stages, links: Option<&BTreeMap<String, String>>) -> NodeBox {
    let kind = node.kind.value;
    let (id, title) = (node.id.value.as_str(), node.title());
    let stage = stages.get(id);
    let shape = Shape::of(kind, node.is_failed_exit());
    let mut small: Vec<&str> = Vec::new();
    let is_end = matches!(kind, Kind::Start | Kind::Exit);
    if title != id && !is_end {
        small.push(id);
    }
    if !is_end && kind != Kind::Task {
        small.push(shape.as_str());
    }
    if let Some(role) = node.attributes.target.text() {
        small.push(role.value.as_str());
    }
    let mut lines = Vec::new();
    if !small.is_empty() {
        lines.extend(wrapped(&small.join(" · "), shape.columns(), LINES).into_iter().map(TextLine::small));
    }
    let columns = columns_for(title, shape.columns());
    lines.extend(wrapped(title, columns, LINES).into_iter().map(TextLine::text));
    if let Some(stage) = stage.filter(|stage| !stage.words.is_empty()) {
        let words = format!("{} {}", sign(stage.phase), stage.words);
        lines.extend(wrapped(&words, shape.columns() + 4, 2).into_iter().map(TextLine::stage));
    }
    let mut text_width = lines.iter().map(TextLine::width).fold(0.0, f64::max);
    let mut text_height: f64 = lines.iter().map(TextLine::height).sum();
    if links.is_some() {
        let room = TextLine::stage(LONGEST_STAGE.to_owned());
        text_width = text_width.max(room.width());
        if stage.is_none_or(|stage| stage.words.is_empty()) {
            text_height += room.height();
        }
    }
    let (width, height) = shape.size(text_width, text_height);
    let kind = kind.as_str().replace('_', "-");
    let phase = stage.map_or("", |stage| phase_class(stage.phase));
    let mut about = id.to_owned();
    if title != id {
        about.push_str(&format!(": {title}"));
    }
    about.push_str(&format!(" ({kind})"));
    if let Some(stage) = stage.filter(|stage| !stage.words.is_empty()) {
        about.push_str(&format!(", {}", stage.words));
    }
    NodeBox {
        lines,
        shape,
        width,
        height,
        name: id.to_owned(),
        about,
        class: format!("{kind}{phase}"),
        link: links.and_then(|links| links.get(id)).cloned(),
    }
}

/// Makes the box of several nodes, with room for all that may be said of them while a run goes on.
fn box_of_fold(fold: &FoldedBox) -> NodeBox {
    let shape = Shape::Stack;
    let mut lines = vec![TextLine::text(fold.title.clone())];
    let said = format!("{} {}", sign(fold.stage.phase), fold.stage.words);
    lines.extend(wrapped(&said, shape.columns(), FOLDED_LINES).into_iter().map(TextLine::stage));
    let room = TextLine::stage("0".repeat(shape.columns()));
    let text_width = lines.iter().map(TextLine::width).fold(room.width(), f64::max);
    let text_height = TextLine::text(String::new()).height() + FOLDED_LINES as f64 * room.height();
    let (width, height) = shape.size(text_width, text_height);
    let class = format!("folded{}", phase_class(fold.stage.phase));
    let about = format!("{}: {}", fold.title, fold.stage.words);
    let (name, link) = (fold.title.clone(), Some(fold.link.clone()));
    NodeBox { lines, shape, width, height, name, about, class, link }
}

fn phase_class(phase: Phase) -> &'static str {
    match phase {
        Phase::Ahead => " ahead",
        Phase::Done => " done",
        Phase::Current => " current",
        Phase::Waiting => " waiting",
        Phase::Failed => " failed",
    }
}

/// Says with one sign where a node stands, so that colour is not needed.
fn sign(phase: Phase) -> char {
    match phase {
        Phase::Ahead => '○',
        Phase::Done => '✓',
        Phase::Current => '▶',
        Phase::Waiting => '‖',
        Phase::Failed => '✗',
    }
}

fn drawn_edge(from: usize, to: usize, edge: &EdgeTree) -> DrawnEdge {
    let words = edge_words(edge);
    let lines = wrapped(&words, columns_for(&words, 26), LINES);
    DrawnEdge { from, to, words, lines, is_trouble: edge.is_for_failure() }
}

impl DrawnEdge {
    fn width(&self) -> f64 {
        let widest = self.lines.iter().map(|line| letters::width(line, SMALL)).fold(0.0, f64::max);
        if self.lines.is_empty() { 0.0 } else { widest + 8.0 }
    }

    /// Stands for edges of so many others to the same node as well.
    fn standing_for(self, others: usize) -> DrawnEdge {
        let mark = if self.words.is_empty() { "" } else { ", " };
        let words = format!("{}{mark}as {others} others", self.words);
        let lines = wrapped(&words, columns_for(&words, 26), LINES);
        DrawnEdge { words, lines, ..self }
    }

    fn height(&self) -> f64 {
        self.lines.len() as f64 * letters::line_height(SMALL)
    }
}

fn draw(
    whole_title: &str,
    boxes: &[NodeBox],
    drawn_edges: &[DrawnEdge],
    placed: &Placed,
    is_of_page: bool,
) -> String {
    // A page has its title above the picture.
    let title = if is_of_page { None } else { wrapped(whole_title, 90, 1).pop() };
    let title = title.unwrap_or_default();
    let head = if title.is_empty() { 0.0 } else { HEAD };
    let title_width = letters::width(&title, TITLE) * BOLD;
    let width = placed.width.max(title_width) + 2.0 * MARGIN;
    let height = placed.height + head + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"{role}\">\n",
        // Links within an image would be hidden from those who hear it.
        role = if is_of_page { "group" } else { "img" },
        w = number(width.ceil()),
        h = number(height.ceil()),
    );
    let name = if whole_title.is_empty() { "Graph".to_owned() } else { escaped(whole_title) };
    push_fmt(&mut text, format_args!("<title>{name}</title>\n"));
    push_fmt(&mut text, format_args!("<desc>{} nodes, {} edges</desc>\n", boxes.len(), drawn_edges.len()));
    if !is_of_page {
        text.push_str(STYLE);
    }
    text.push_str("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    if !title.is_empty() {
        let (x, y) = (number(MARGIN), number(MARGIN + TITLE));
        push_fmt(
            &mut text,
            format_args!("<text class=\"head\" x=\"{x}\" y=\"{y}\">{}</text>\n", escaped(&title)),
        );
    }
    let left = MARGIN + (width - 2.0 * MARGIN - placed.width) / 2.0;
    push_fmt(
        &mut text,
        format_args!("<g transform=\"translate({} {})\">\n", number(left), number(MARGIN + head)),
    );
    for (drawn_edge, edge_path) in drawn_edges.iter().zip(&placed.paths) {
        draw_edge(&mut text, boxes, placed, drawn_edge, edge_path);
    }
    for (node_box, centre) in boxes.iter().zip(&placed.centres) {
        if let Some(link) = &node_box.link {
            push_fmt(&mut text, format_args!("<a href=\"{}\">", escaped(link)));
        }
        draw_node(&mut text, node_box, *centre);
        if node_box.link.is_some() {
            text.push_str("</a>\n");
        }
    }
    for (drawn_edge, edge_path) in drawn_edges.iter().zip(&placed.paths) {
        draw_label(&mut text, drawn_edge, edge_path);
    }
    text.push_str("</g>\n</svg>\n");
    text
}

fn draw_edge(
    text: &mut String,
    boxes: &[NodeBox],
    placed: &Placed,
    drawn_edge: &DrawnEdge,
    edge_path: &EdgePath,
) {
    let (from, to) = (placed.centres[drawn_edge.from], placed.centres[drawn_edge.to]);
    let points = path::clipped(
        &edge_path.points,
        (&boxes[drawn_edge.from].outline(), from),
        (&boxes[drawn_edge.to].outline(), to),
    );
    let mut class = "edge".to_owned();
    if drawn_edge.is_trouble {
        class.push_str(" trouble");
    }
    if to.1 <= from.1 {
        class.push_str(" back");
    }
    let (tip_class, tip) = (class.replacen("edge", "tip", 1), path::arrow_head(&points));
    let names = [&boxes[drawn_edge.from], &boxes[drawn_edge.to]].map(|node_box| escaped(&node_box.name));
    let words =
        if drawn_edge.words.is_empty() { String::new() } else { format!(": {}", escaped(&drawn_edge.words)) };
    push_fmt(
        text,
        format_args!(
            "<g><title>{} → {}{words}</title><path class=\"{class}\" d=\"{}\"/><path class=\"{tip_class}\" d=\"{tip}\"/></g>\n",
            names[0],
            names[1],
            path::smooth(&points),
        ),
    );
}

fn draw_node(text: &mut String, node_box: &NodeBox, (x, y): (f64, f64)) {
    let about = escaped(&node_box.about);
    push_fmt(text, format_args!("<g class=\"node {}\"><title>{about}</title>", node_box.class));
    node_box.shape.draw(text, (x, y), (node_box.width, node_box.height));
    let mut line_y =
        y + node_box.shape.text_shift() - node_box.lines.iter().map(TextLine::height).sum::<f64>() / 2.0;
    for line in &node_box.lines {
        line_y += line.height();
        let baseline = line_y - line.size() * 0.32;
        let (class, words) = (line.class(), escaped(&line.words));
        push_fmt(
            text,
            format_args!(
                "<text class=\"{class}\" x=\"{}\" y=\"{}\">{words}</text>",
                number(x),
                number(baseline)
            ),
        );
    }
    text.push_str("</g>\n");
}

fn draw_label(text: &mut String, drawn_edge: &DrawnEdge, edge_path: &EdgePath) {
    if drawn_edge.lines.is_empty() {
        return;
    }
    let (x, y) = edge_path.label;
    let (width, height) = (drawn_edge.width(), drawn_edge.height());
    let class = if drawn_edge.is_trouble { "label trouble" } else { "label" };
    push_fmt(
        text,
        format_args!(
            "<g class=\"{class}\"><rect class=\"paper\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>",
            number(x - width / 2.0),
            number(y - height / 2.0),
            number(width),
            number(height)
        ),
    );
    for (index, line) in drawn_edge.lines.iter().enumerate() {
        let baseline = y - height / 2.0 + (index + 1) as f64 * letters::line_height(SMALL) - SMALL * 0.32;
        push_fmt(
            text,
            format_args!("<text x=\"{}\" y=\"{}\">{}</text>", number(x), number(baseline), escaped(line)),
        );
    }
    text.push_str("</g>\n");
}

impl NodeBox {
    fn outline(&self) -> Vec<(f64, f64)> {
        self.shape.outline((self.width, self.height))
    }
}

/// Writes a number with one decimal at most, so that the text is the same on every machine.
fn number(value: f64) -> String {
    let tenths = (value * 10.0).round();
    let text = format!("{:.1}", if tenths == 0.0 { 0.0 } else { tenths / 10.0 });
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

// Writing into a string cannot fail.
fn push_fmt(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).unwrap_or_default();
}

/// Colours by class; a viewer that prefers dark gets them dark, and one that prints needs none of them.
const STYLE: &str = include_str!("picture/style.xml");

#[cfg(test)]
mod tests;
