//! Graphs as pictures: laid out in layers, drawn as SVG without script, the same text for the same graph.

mod layouts;
mod letters;
mod path;
mod place;
mod shape;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use planctl_api::wire::{RunView, StepState};
use planctl_api::words::step_state;
use planctl_lang::workflow::{EdgeTree, Kind, NodeTree, Phase, Stage, Stages, Workflow, edge_words};

pub use layouts::Layouts;
use letters::{Line, SMALL, columns_for, escaped, wrapped};
use place::{Placed, Way};
use shape::Shape;

/// The most nodes of a picture.
pub const NODES_MAX: usize = 1_000;
/// The most edges of a picture.
pub const EDGES_MAX: usize = 4_000;

/// The margin, in pixels.
const MARGIN: f64 = 24.0;
/// How much wider bold letters are, at most.
const BOLD: f64 = 1.15;
/// The height of the title.
const HEAD: f64 = 44.0;
/// The most lines of a text; the title of its element has a longer one whole.
const LINES: usize = 8;
/// The longest word of a stage that most nodes come to.
const LONGEST_STAGE: &str = "‖ waiting for a worker";
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

/// A node as it is drawn.
struct Card<'w> {
    lines: Vec<Line>,
    shape: Shape,
    width: f64,
    height: f64,
    node: &'w NodeTree,
    stage: Option<&'w Stage>,
}

/// An edge as it is drawn.
struct Tie<'w> {
    from: usize,
    to: usize,
    edge: &'w EdgeTree,
    words: String,
    lines: Vec<String>,
}

/// Draws a graph; where stages are given, each node says where it stands.
///
/// # Errors
///
/// [`Undrawable`] where the graph is too large to be read as a picture.
pub fn svg(workflow: &Workflow, stages: &Stages) -> Result<String, Undrawable> {
    picture(workflow, stages, None)
}

/// Draws a graph as a part of a page: its nodes are links, by their ids, and its colours are those of [`style_within`]. Where
/// nothing has another size than in a picture before, it is not laid out again.
///
/// # Errors
///
/// Those of [`svg`].
pub fn linked(
    workflow: &Workflow,
    stages: &Stages,
    links: &Links,
    layouts: &Layouts,
) -> Result<String, Undrawable> {
    picture(workflow, stages, Some((links, layouts)))
}

/// Where the nodes of a picture lead, by their ids.
pub type Links = BTreeMap<String, String>;

/// Returns the colours of pictures as a stylesheet for those within an element.
pub fn style_within(selector: &str) -> String {
    let rules = STYLE.trim().trim_start_matches("<style>").trim_end_matches("</style>");
    format!("{selector}{{{rules}}}\n")
}

fn picture(
    workflow: &Workflow,
    stages: &Stages,
    page: Option<(&Links, &Layouts)>,
) -> Result<String, Undrawable> {
    let order = workflow.walk();
    let (nodes, edges) = (order.len(), workflow.edges.len());
    if nodes > NODES_MAX || edges > EDGES_MAX {
        return Err(Undrawable::TooLarge { nodes, edges });
    }
    let cards: Vec<Card<'_>> =
        order.iter().map(|at| card(&workflow.nodes[*at], stages, page.is_some())).collect();
    let mut position = vec![0; workflow.nodes.len()];
    for (place, at) in order.iter().enumerate() {
        position[*at] = place;
    }
    let out_edges = workflow.out_edges();
    let ties: Vec<Tie<'_>> = order
        .iter()
        .flat_map(|at| out_edges[*at].iter().map(|(to, edge)| tie(position[*at], position[*to], edge)))
        .collect();
    let placed = match page {
        Some((_, layouts)) => layouts.of(&cards, &ties)?,
        None => Arc::new(place::lay_out(&cards, &ties)?),
    };
    Ok(drawn(workflow, &cards, &ties, &placed, page.map(|(links, _)| links)))
}

/// Returns where the nodes of a run stand.
pub fn stages(view: &RunView) -> Stages {
    let steps = view.steps.iter().map(|step| {
        let tries = match step.attempts {
            0 | 1 => String::new(),
            count if step.state.is_settled() => format!(", {count} attempts"),
            count => format!(", attempt {count}"),
        };
        (step.node.clone(), stage(step.state, step.visits, &tries))
    });
    let others = view.passages.iter().map(|node| (node.node.clone(), stage(node.state, node.visits, "")));
    steps.chain(others).collect()
}

fn stage(state: StepState, visits: u32, tries: &str) -> Stage {
    let phase = match state {
        StepState::Pending => Phase::Ahead,
        StepState::Passed | StepState::Skipped | StepState::Waived | StepState::Warned => Phase::Done,
        StepState::Ready | StepState::Working | StepState::Checking | StepState::Resting => Phase::Current,
        StepState::Waiting => Phase::Waiting,
        StepState::Failed => Phase::Failed,
    };
    let round = if visits > 1 { format!(", visit {visits}") } else { String::new() };
    let words = match (state, visits) {
        // A node left without settling is come to again.
        (StepState::Pending, 1..) => format!("left{tries}{round}"),
        (StepState::Pending, 0) => String::new(),
        _ => format!("{}{tries}{round}", step_state(state)),
    };
    Stage { phase, words }
}

/// Makes the card of a node; one of a page has room for every word of a stage, so that it keeps its size while a run goes on.
fn card<'w>(node: &'w NodeTree, stages: &'w Stages, is_of_page: bool) -> Card<'w> {
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
        small.push(shape.word());
    }
    if let Some(role) = node.said.text("target") {
        small.push(role.value.as_str());
    }
    let mut lines = Vec::new();
    if !small.is_empty() {
        lines.extend(wrapped(&small.join(" · "), shape.columns(), LINES).into_iter().map(Line::small));
    }
    let columns = columns_for(title, shape.columns());
    lines.extend(wrapped(title, columns, LINES).into_iter().map(Line::text));
    if let Some(stage) = stage.filter(|stage| !stage.words.is_empty()) {
        let words = format!("{} {}", sign(stage.phase), stage.words);
        lines.extend(wrapped(&words, shape.columns() + 4, 2).into_iter().map(Line::stage));
    }
    let mut text_width = lines.iter().map(Line::width).fold(0.0, f64::max);
    let mut text_height: f64 = lines.iter().map(Line::height).sum();
    if is_of_page {
        let room = Line::stage(LONGEST_STAGE.to_owned());
        text_width = text_width.max(room.width());
        if stage.is_none_or(|stage| stage.words.is_empty()) {
            text_height += room.height();
        }
    }
    let (width, height) = shape.size(text_width, text_height);
    Card { lines, shape, width, height, node, stage }
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

fn tie(from: usize, to: usize, edge: &EdgeTree) -> Tie<'_> {
    let words = edge_words(edge);
    let lines = wrapped(&words, columns_for(&words, 26), LINES);
    Tie { from, to, edge, words, lines }
}

impl Tie<'_> {
    fn width(&self) -> f64 {
        let widest = self.lines.iter().map(|line| letters::width(line, SMALL)).fold(0.0, f64::max);
        if self.lines.is_empty() { 0.0 } else { widest + 8.0 }
    }

    fn height(&self) -> f64 {
        self.lines.len() as f64 * letters::line_height(SMALL)
    }

    /// Says whether it is for outcomes that are no success.
    fn is_trouble(&self) -> bool {
        self.edge.is_for_failure()
    }
}

fn drawn(
    workflow: &Workflow,
    cards: &[Card<'_>],
    ties: &[Tie<'_>],
    placed: &Placed,
    links: Option<&Links>,
) -> String {
    let title = wrapped(workflow.title(), 90, 1).pop().unwrap_or_default();
    let head = if title.is_empty() { 0.0 } else { HEAD };
    let title_width = letters::width(&title, TITLE) * BOLD;
    let width = placed.width.max(title_width) + 2.0 * MARGIN;
    let height = placed.height + head + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"{role}\">\n",
        // Links within an image would be hidden from those who hear it.
        role = if links.is_some() { "group" } else { "img" },
        w = number(width.ceil()),
        h = number(height.ceil()),
    );
    let name = if workflow.title().is_empty() { "Graph".to_owned() } else { escaped(workflow.title()) };
    put(&mut text, format_args!("<title>{name}</title>\n"));
    put(&mut text, format_args!("<desc>{} nodes, {} edges</desc>\n", cards.len(), ties.len()));
    if links.is_none() {
        text.push_str(STYLE);
    }
    text.push_str("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    if !title.is_empty() {
        let (x, y) = (number(MARGIN), number(MARGIN + TITLE));
        put(&mut text, format_args!("<text class=\"head\" x=\"{x}\" y=\"{y}\">{}</text>\n", escaped(&title)));
    }
    let left = MARGIN + (width - 2.0 * MARGIN - placed.width) / 2.0;
    put(&mut text, format_args!("<g transform=\"translate({} {})\">\n", number(left), number(MARGIN + head)));
    for (tie, way) in ties.iter().zip(&placed.ways) {
        edge_drawn(&mut text, cards, placed, tie, way);
    }
    for (card, centre) in cards.iter().zip(&placed.centres) {
        let link = links.and_then(|links| links.get(&card.node.id.value));
        if let Some(link) = link {
            put(&mut text, format_args!("<a href=\"{}\">", escaped(link)));
        }
        node_drawn(&mut text, card, *centre);
        if link.is_some() {
            text.push_str("</a>\n");
        }
    }
    for (tie, way) in ties.iter().zip(&placed.ways) {
        label_drawn(&mut text, tie, way);
    }
    text.push_str("</g>\n</svg>\n");
    text
}

fn edge_drawn(text: &mut String, cards: &[Card<'_>], placed: &Placed, tie: &Tie<'_>, way: &Way) {
    let (from, to) = (placed.centres[tie.from], placed.centres[tie.to]);
    let points =
        path::clipped(&way.points, (&cards[tie.from].outline(), from), (&cards[tie.to].outline(), to));
    let mut class = "edge".to_owned();
    if tie.is_trouble() {
        class.push_str(" trouble");
    }
    if to.1 <= from.1 {
        class.push_str(" back");
    }
    let (tip_class, tip) = (class.replacen("edge", "tip", 1), path::tip(&points));
    let names = [&cards[tie.from], &cards[tie.to]].map(|card| escaped(&card.node.id.value));
    let words = if tie.words.is_empty() { String::new() } else { format!(": {}", escaped(&tie.words)) };
    put(
        text,
        format_args!(
            "<g><title>{} → {}{words}</title><path class=\"{class}\" d=\"{}\"/><path class=\"{tip_class}\" d=\"{tip}\"/></g>\n",
            names[0],
            names[1],
            path::smooth(&points),
        ),
    );
}

fn node_drawn(text: &mut String, card: &Card<'_>, (x, y): (f64, f64)) {
    let kind = card.node.kind.value;
    let phase = card.stage.map_or("", |stage| match stage.phase {
        Phase::Ahead => " ahead",
        Phase::Done => " done",
        Phase::Current => " current",
        Phase::Waiting => " waiting",
        Phase::Failed => " failed",
    });
    let kind_class = kind.word().replace('_', "-");
    put(text, format_args!("<g class=\"node {kind_class}{phase}\">"));
    let mut about = escaped(&card.node.id.value);
    if card.node.title() != card.node.id.value {
        about.push_str(&format!(": {}", escaped(card.node.title())));
    }
    about.push_str(&format!(" ({})", kind.word().replace('_', "-")));
    if let Some(stage) = card.stage.filter(|stage| !stage.words.is_empty()) {
        about.push_str(&format!(", {}", escaped(&stage.words)));
    }
    put(text, format_args!("<title>{about}</title>"));
    card.shape.draw(text, (x, y), (card.width, card.height));
    let mut line_y =
        y + card.shape.text_shift(card.height) - card.lines.iter().map(Line::height).sum::<f64>() / 2.0;
    for line in &card.lines {
        line_y += line.height();
        let baseline = line_y - line.size() * 0.32;
        let (class, words) = (line.class(), escaped(&line.words));
        put(
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

fn label_drawn(text: &mut String, tie: &Tie<'_>, way: &Way) {
    if tie.lines.is_empty() {
        return;
    }
    let (x, y) = way.label;
    let (width, height) = (tie.width(), tie.height());
    let class = if tie.is_trouble() { "label trouble" } else { "label" };
    put(
        text,
        format_args!(
            "<g class=\"{class}\"><rect class=\"paper\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>",
            number(x - width / 2.0),
            number(y - height / 2.0),
            number(width),
            number(height)
        ),
    );
    for (index, line) in tie.lines.iter().enumerate() {
        let baseline = y - height / 2.0 + (index + 1) as f64 * letters::line_height(SMALL) - SMALL * 0.32;
        put(
            text,
            format_args!("<text x=\"{}\" y=\"{}\">{}</text>", number(x), number(baseline), escaped(line)),
        );
    }
    text.push_str("</g>\n");
}

impl Card<'_> {
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
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).unwrap_or_default();
}

/// Colours by class; a viewer that prefers dark gets them dark, and one that prints needs none of them.
const STYLE: &str = include_str!("picture/style.xml");

#[cfg(test)]
mod tests;
