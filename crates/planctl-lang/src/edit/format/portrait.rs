//! The meaning of a text, section by section, so that two texts can be compared wherever their words stand.

use crate::diagnostic::{Code, Severity};
use crate::edit::placeless::{strip_head, strip_step};
use crate::facts::Facts;
use crate::lint::lint;
use crate::syntax::source::Source;
use crate::tree::parse::layout::{Layout, PartKind};
use crate::tree::parse::parse_with_layout;
use crate::tree::{PlanTree, StepTree};

use super::write;

/// A text's meaning. Section 0 is the plan's head; section N goes from the Nth step's heading to the next one.
pub(super) struct Portrait {
    pub layout: Layout,
    pub tree: PlanTree,
    /// The tree without places and steps.
    head: PlanTree,
    sections: Vec<Section>,
}

#[derive(PartialEq, Eq)]
struct Section {
    step: Option<StepTree>,
    codes: Vec<(Code, Severity)>,
    lines: Vec<String>,
}

/// Where two texts mean something else.
pub(super) enum Difference {
    Nothing,
    Sections(Vec<usize>),
}

impl Portrait {
    /// Reads a text; nothing where it is no plan at all.
    pub fn of(source: &Source) -> Option<Portrait> {
        if source.no_plan().is_some() {
            return None;
        }
        let (tree, mut found, layout) = parse_with_layout(source);
        let layout = layout?;
        found.extend(lint(source, &tree, &Facts::default()));
        let begins: Vec<usize> = tree.steps.iter().map(|step| step.heading.start).collect();
        let mut sections: Vec<Section> = std::iter::once(None)
            .chain(tree.steps.iter().map(|step| Some(strip_step(step.clone()))))
            .map(|step| Section { step, codes: Vec::new(), lines: Vec::new() })
            .collect();
        // A default that is written out, and a form that is planctl's own, leave no finding.
        for diagnostic in found.iter().filter(|found| !matches!(found.code, Code::P005 | Code::P020)) {
            let at = diagnostic.spans.first().map_or(0, |label| label.span.start);
            let section = begins.partition_point(|begin| *begin <= at);
            sections[section].codes.push((diagnostic.code, diagnostic.level));
        }
        for (section, line) in write::kept_lines(source, &layout, &tree) {
            if let Some(section) = sections.get_mut(section) {
                section.lines.push(line);
            }
        }
        for section in &mut sections {
            section.codes.sort_unstable();
            section.lines.sort_unstable();
        }
        let head = strip_head(tree.clone());
        Some(Portrait { layout, tree, head, sections })
    }

    /// Returns how many sections the text has.
    pub fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Compares two texts.
    pub fn difference(&self, other: &Portrait) -> Difference {
        let mut sections: Vec<usize> = if self.sections.len() == other.sections.len() {
            let pairs = self.sections.iter().zip(&other.sections).enumerate();
            pairs.filter(|(_, (before, after))| before != after).map(|(at, _)| at).collect()
        } else {
            // One step has become two or none, so that what follows can't be compared.
            let same =
                self.sections.iter().zip(&other.sections).take_while(|(before, after)| before == after);
            let at = same.count().min(self.sections.len() - 1);
            vec![at.saturating_sub(1), at]
        };
        if self.head != other.head {
            sections.push(0);
        }
        sections.sort_unstable();
        sections.dedup();
        if sections.is_empty() { Difference::Nothing } else { Difference::Sections(sections) }
    }
}

/// Returns the number of steps that begin up to a part, which is the part's section.
pub(super) fn steps_before_part(kind: PartKind, section: usize) -> usize {
    match kind {
        PartKind::Step { .. } => section + 1,
        PartKind::Title
        | PartKind::Steps
        | PartKind::Field { .. }
        | PartKind::Refused
        | PartKind::Allow
        | PartKind::Other => section,
    }
}
