//! `plan status RUN --traversal`: the way of a run through its graph.

use planctl_api::wire::{TraversalEvent, TraversalView};

use super::{Context, standing};
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::show::{self, BOLD, FAINT, styled};

/// Draws the way.
pub async fn run(context: &Context, run: &str, exit_code: bool) -> Answer {
    let is_json = context.is_json()?;
    let client = Client::open(context).await?;
    let handle = client.find(run).await?;
    let way = client.traversal(handle).await?;
    if is_json {
        show::print_json(&way)?;
    } else {
        show::print(&page(&way))?;
    }
    if !exit_code {
        return Ok(Exit::Yes);
    }
    Ok(standing::exit_of(&client.status(handle).await?))
}

fn page(way: &TraversalView) -> String {
    let here = way.current_node.as_deref().unwrap_or("nowhere");
    let mut page = format!(
        "{} {}: {} of {} nodes met, at {}\n",
        styled(BOLD, &show::safe(&way.run)),
        show::safe(&way.plan_name),
        way.completed_nodes,
        way.total_nodes,
        show::safe(here),
    );
    if !way.path.is_empty() {
        page.push_str(&format!("  path: {}\n", show::safe(&show::path(&way.path))));
    }
    for event in &way.events {
        page.push_str(&format!("  {} {}\n", styled(FAINT, &format!("{:>4}", event.turn)), line(event)));
    }
    page
}

fn line(event: &TraversalEvent) -> String {
    let mut words = vec![event.kind.clone()];
    words.extend(event.node.clone());
    if let (Some(from), Some(to)) = (&event.from, &event.to) {
        words.push(format!("{from} → {to}"));
    }
    words.extend(event.condition.clone());
    words.extend(event.outcome.clone());
    show::safe(&words.join(" "))
}
