//! The library of one project: its entries, and what a sentence finds there.

use planctl_api::Problem;
use planctl_api::wire::{LibraryPage, PlanList};
use planctl_web::{LibraryScreen, Screen as _, Tab, encoded};

use super::Address;
use super::screens::Texts;
use super::visit::Visit;

/// How many plans tell which projects there are.
const PLANS: usize = 500;

/// Shows the library of the project that the address names, else of the newest one.
pub(super) async fn list(visit: &Visit, address: &Address) -> Result<String, Problem> {
    let plans = known_plans(visit).await?;
    let mut projects: Vec<&str> = plans.plans.iter().map(|plan| plan.workspace.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    // Without a choice it is the project whose plan was met last.
    let newest = plans.plans.first().map(|plan| plan.workspace.as_str());
    let chosen = address.query("project").filter(|project| !project.is_empty()).or(newest);
    let message = address.query("message").unwrap_or_default();
    let page: Option<LibraryPage> = match chosen {
        Some(project) => {
            let asked = match message {
                "" => String::new(),
                message => format!("&message={}", encoded(message)),
            };
            Some(visit.get(&format!("/v1/library?workspace={}{asked}", encoded(project))).await?)
        }
        None => None,
    };
    let texts = Texts::of(address);
    let frame = texts.frame_of(visit, Tab::Library)?;
    Ok(LibraryScreen::new(frame, (&projects, chosen), message, page.as_ref()).html())
}

/// Returns plans that tell which projects there are, those that were met last first.
pub(super) async fn known_plans(visit: &Visit) -> Result<PlanList, Problem> {
    visit.get(&format!("/v1/plans?limit={PLANS}")).await
}
