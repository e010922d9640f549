//! A plan's shape for the editor: steps as symbols, parts that fold, and a lens over each contract.

use gen_lsp_types as lsp;
use planctl_lang::{Span, escape};
use serde_json::json;

use super::contract::RUN_CONTRACT;
use super::document::{Document, Reading};

/// Returns the steps, inside the plan where it has a title.
pub fn symbols(document: &Document) -> Vec<lsp::DocumentSymbol> {
    let reading = document.reading();
    let places = document.text.places();
    let steps = reading.tree.steps.iter().enumerate().map(|(at, step)| {
        let whole = Span::new(step.heading.start, trimmed_end(&reading, at));
        let title = match step.node.step_title() {
            "" => "(no title)".to_owned(),
            title => escape(title),
        };
        let mut symbol = symbol(format!("{}. {title}", step.node.id.value), lsp::SymbolKind::Function);
        symbol.detail = step.node.role.as_ref().map(|target| escape(&target.value));
        symbol.range = places.range(whole);
        symbol.selection_range = places.range(step.heading);
        symbol
    });
    let steps: Vec<lsp::DocumentSymbol> = steps.collect();
    let Some(title) = reading.tree.head.title.as_ref().filter(|title| !title.value.is_empty()) else {
        return steps;
    };
    let mut plan = symbol(escape(&title.value), lsp::SymbolKind::Module);
    plan.range = places.range(Span::new(title.span.start, document.text.as_str().len()));
    plan.selection_range = places.range(title.span);
    plan.children = Some(steps);
    vec![plan]
}

#[allow(deprecated, reason = "the type has the field, and it is not used")]
fn symbol(name: String, kind: lsp::SymbolKind) -> lsp::DocumentSymbol {
    lsp::DocumentSymbol {
        name,
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range: lsp::Range::default(),
        selection_range: lsp::Range::default(),
        children: None,
    }
}

// The empty lines after a step are nobody's.
fn trimmed_end(reading: &Reading, at: usize) -> usize {
    let start = reading.tree.steps[at].heading.start;
    let text = reading.source.slice(Span::new(start, reading.end_of(at)));
    start + text.trim_end().len()
}

/// Returns the parts that fold: the frontmatter, each step, each contract.
pub fn folds(document: &Document) -> Vec<lsp::FoldingRange> {
    let reading = document.reading();
    let tree = &reading.tree;
    let mut spans: Vec<Span> = tree.frontmatter.span.into_iter().collect();
    for (at, step) in tree.steps.iter().enumerate() {
        spans.push(Span::new(step.heading.start, trimmed_end(&reading, at)));
        spans.extend(
            step.node.contract.as_ref().map(|contract| Span::new(contract.fence.start, contract.span.end)),
        );
    }
    let text = document.text.as_str();
    let lines = spans.into_iter().filter_map(|span| {
        let body = text.get(span.start..span.end)?.trim_end().len();
        let first = document.text.line_of(span.start);
        let last = document.text.line_of((span.start + body).saturating_sub(1));
        (first < last).then_some((first, last))
    });
    let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    lines
        .map(|(first, last)| lsp::FoldingRange {
            start_line: number(first),
            end_line: number(last),
            ..lsp::FoldingRange::default()
        })
        .collect()
}

/// Returns a lens over each contract that runs it.
pub fn lenses(document: &Document) -> Vec<lsp::CodeLens> {
    let reading = document.reading();
    let places = document.text.places();
    let contracts = reading.tree.steps.iter().filter_map(|step| Some((step, step.node.contract.as_ref()?)));
    contracts
        .map(|(step, contract)| lsp::CodeLens {
            range: places.range(contract.fence),
            command: Some(lsp::Command {
                title: "run contract".to_owned(),
                command: RUN_CONTRACT.to_owned(),
                arguments: Some(vec![json!({ "uri": document.uri, "step": step.node.id.value })]),
                tooltip: None,
            }),
            data: None,
        })
        .collect()
}
