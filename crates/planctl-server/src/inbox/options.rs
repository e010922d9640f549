//! The options of a choice: where each leads, and which of them an answer means.

use planctl_api::wire::OptionView;
use planctl_engine::{Graph, Node, NodeId, NodeKind, match_option, plain_label};

/// The most routing nodes that lie between a question and the step behind an option.
const ROUTED_MAX: usize = 100;

/// An answer that might mean one of several options.
#[derive(Debug)]
pub(super) struct Ambiguous {
    /// The options that it might mean.
    pub(super) options: Vec<String>,
}

/// Returns the options of a question in their order, each with the step that it leads to.
pub(super) fn option_views(graph: &Graph, at: &NodeId, options: &[String]) -> Vec<OptionView> {
    let view = |option: &String| {
        let target = target(graph, at, option);
        OptionView {
            name: option.clone(),
            node: target.map(|node| node.id.as_str().to_owned()),
            number: target.and_then(Node::step),
            title: target.map(title),
        }
    };
    options.iter().map(view).collect()
}

/// Returns the option that an answer means: by what the engine knows an option by (words, key, place in the list, first
/// letter), by the step that it leads to, or by a prefix. A bare number that is a place in the list means that place, since
/// people read the list with its numbers; `step 2` and `#2` always mean a step. An answer that means none of the options is
/// returned as it is.
pub(super) fn option_chosen(options: &[OptionView], answer: &str) -> Result<String, Ambiguous> {
    let names: Vec<String> = options.iter().map(|option| option.name.clone()).collect();
    let wanted = plain_label(answer);
    let leads_to = |number: u32| options.iter().filter(move |option| option.number == Some(number));
    let number = wanted.trim_start_matches('#').trim_start_matches("step ").parse::<u32>().ok();
    let mut meant: Vec<&str> = match_option(&names, answer).into_iter().collect();
    if meant.is_empty() {
        meant.extend(number.into_iter().flat_map(leads_to).map(|option| option.name.as_str()));
    }
    if meant.is_empty() && !wanted.is_empty() {
        meant.extend(names.iter().map(String::as_str).filter(|name| plain_label(name).starts_with(&wanted)));
    }
    meant.dedup();
    match meant.as_slice() {
        [] => Ok(answer.to_owned()),
        // Words stand as the person wrote them.
        [only] if plain_label(only) == wanted => Ok(answer.to_owned()),
        [only] => Ok((*only).to_owned()),
        several => Err(Ambiguous { options: several.iter().map(|option| (*option).to_owned()).collect() }),
    }
}

// The first node behind an option that does something itself.
fn target<'g>(graph: &'g Graph, at: &NodeId, option: &str) -> Option<&'g Node> {
    let label = plain_label(option);
    let leads = |own: Option<&str>, to: &NodeId| plain_label(own.unwrap_or(to.as_str())) == label;
    let edge = graph.edges_from(at).iter().find(|edge| leads(edge.label.as_deref(), &edge.to))?;
    let mut node = graph.node(&edge.to)?;
    for _ in 0..ROUTED_MAX {
        let is_routing = matches!(&node.kind, NodeKind::Fork(_) | NodeKind::Join(_)) && node.step().is_none();
        match graph.edges_from(&node.id) {
            [only] if is_routing => node = graph.node(&only.to)?,
            _ => break,
        }
    }
    Some(node)
}

fn title(node: &Node) -> String {
    match &node.kind {
        NodeKind::Exit { success: true } => "the run ends as done".to_owned(),
        NodeKind::Exit { success: false } => "the run ends as failed".to_owned(),
        NodeKind::Start
        | NodeKind::Task(_)
        | NodeKind::Call(_)
        | NodeKind::Decision(_)
        | NodeKind::Human(_)
        | NodeKind::Checkpoint
        | NodeKind::Fork(_)
        | NodeKind::SubPlan(_)
        | NodeKind::Join(_)
        | NodeKind::Escalate { .. } => node.title.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(options: &[(&str, Option<u32>)], answer: &str) -> Result<String, Vec<String>> {
        let view = |(name, number): &(&str, Option<u32>)| OptionView {
            name: (*name).to_owned(),
            node: None,
            number: *number,
            title: None,
        };
        let options: Vec<OptionView> = options.iter().map(view).collect();
        option_chosen(&options, answer).map_err(|ambiguous| ambiguous.options)
    }

    #[test]
    fn an_option_is_meant_by_its_label_a_prefix_its_ordinal_or_the_number_of_its_step() {
        let options = [("Keep the old names", Some(5)), ("Drop them", Some(6)), ("Not yet", None)];
        for (answer, option) in [
            ("Keep the old names", "Keep the old names"),
            ("keep", "Keep the old names"),
            ("DROP", "Drop them"),
            ("1", "Keep the old names"),
            ("3", "Not yet"),
            ("5", "Keep the old names"),
            ("#6", "Drop them"),
            ("step 6", "Drop them"),
            ("not", "Not yet"),
        ] {
            assert_eq!(chosen(&options, answer).as_deref(), Ok(option), "{answer}");
        }
        for answer in ["7", "them", "", "keeps"] {
            assert_eq!(chosen(&options, answer).as_deref(), Ok(answer), "is left to the engine to refuse");
        }
    }

    #[test]
    fn an_answer_that_might_mean_two_options_means_none() {
        let options = [("Keep all", Some(2)), ("Keep some", Some(5))];
        let both = vec!["Keep all".to_owned(), "Keep some".to_owned()];
        assert_eq!(chosen(&options, "keep"), Err(both.clone()));
        assert_eq!(chosen(&options, "keep s").as_deref(), Ok("Keep some"));
    }

    #[test]
    fn a_number_is_the_place_that_the_list_shows_and_a_step_is_named_as_one() {
        let options = [("Keep all", Some(2)), ("Keep some", Some(5))];
        for (answer, option) in [
            ("1", "Keep all"),
            ("2", "Keep some"),
            ("step 2", "Keep all"),
            ("#2", "Keep all"),
            ("Step 5", "Keep some"),
            // There is no fifth place.
            ("5", "Keep some"),
        ] {
            assert_eq!(chosen(&options, answer).as_deref(), Ok(option), "{answer}");
        }
        assert_eq!(chosen(&[("2", Some(2)), ("Go", Some(3))], "2").as_deref(), Ok("2"), "its own name");
        assert_eq!(chosen(&[("5", Some(5)), ("6", Some(6))], "6").as_deref(), Ok("6"));
    }
}
