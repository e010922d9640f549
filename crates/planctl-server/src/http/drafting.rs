//! Drafts that this daemon writes for people at the page.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use futures_util::FutureExt as _;
use planctl_api::wire::calls::PlanCall;
use planctl_api::wire::draft::DraftView;
use planctl_api::wire::drafting::{DraftingCall, DraftingList};
use planctl_api::{Code, Problem};
use planctl_store::News;

use super::parameters::WORKSPACE;
use super::{Answer, Call, canonical, json, plans};
use crate::node::drafter::Drafter;
use crate::node::quarantine::words_of;

pub(super) async fn list(call: Call) -> Answer {
    let drafter = drafter(&call)?;
    let workspace = match call.query(&WORKSPACE) {
        Some(workspace) => Some(canonical(PathBuf::from(workspace)).await?),
        None => None,
    };
    let writers = match &workspace {
        Some(workspace) => drafter.writers(workspace.clone()).await?,
        None => Vec::new(),
    };
    json(&DraftingList { writers, drafts: drafter.list(workspace.as_deref()) })
}

pub(super) async fn show(call: Call) -> Answer {
    json(&drafter(&call)?.find(call.parameter("drafting")).ok_or_else(no_such_draft)?)
}

pub(super) async fn stop(call: Call) -> Answer {
    let (drafter, id) = (drafter(&call)?, call.parameter("drafting"));
    let view = drafter.find(id).ok_or_else(no_such_draft)?;
    drafter.stop(id);
    json(&view)
}

/// Begins a draft, and answers at once.
pub(super) async fn begin(call: Call) -> Answer {
    let mut wanted: DraftingCall = call.body()?;
    wanted.workspace = canonical(wanted.workspace).await?;
    if wanted.goal.trim().is_empty() {
        return Err(Problem::new(Code::BadRequest, "the goal is empty").help("say what is to be reached"));
    }
    let drafter = drafter(&call)?;
    let begun = drafter.begin(wanted, call.actor().as_str())?;
    let view = begun.clone();
    tokio::spawn(async move {
        let (stop, store) = (call.api.options().stop.clone(), call.server_node().store().clone());
        let tells = {
            let store = store.clone();
            move || store.wake_listeners(News::Any)
        };
        let written = drafter.write(&begun, stop.clone(), tells).await;
        if written.is_err() && *stop.borrow() {
            // The next daemon says that it was interrupted.
            return;
        }
        let plan = match &written {
            Ok(draft) => {
                // The draft has to end whatever becomes of its page: as long as it is written it takes another one's place.
                let kept = AssertUnwindSafe(keep_plan(&call, &begun.call.workspace, draft)).catch_unwind();
                kept.await.unwrap_or_else(|panic| {
                    tracing::error!("a defect of planctl at the page of a draft: {}", words_of(&*panic));
                    None
                })
            }
            Err(_) => None,
        };
        drafter.end(&begun.id, written, plan);
        store.wake_listeners(News::Any);
    });
    json(&view)
}

/// Keeps the text of a draft as one of its plan, so that it has a page; nobody approves it thereby. A text that does not verify, as with
/// open questions that are errors there, is shown as the draft alone.
async fn keep_plan(call: &Call, workspace: &Path, draft: &DraftView) -> Option<u64> {
    let file = PathBuf::from(draft.file.as_ref()?);
    let path = file.strip_prefix(workspace).ok()?.to_str()?.to_owned();
    let kept = async {
        let text = tokio::fs::read_to_string(&file).await;
        let text = text.map_err(|error| Problem::new(Code::Unreadable, error.to_string()))?;
        let config = call.server_node().config_there(workspace.to_owned()).await?;
        let workspace = workspace.to_owned();
        let plan = PlanCall { workspace, path, text, folder: None, config: Some(config), worker: None };
        let checked = plans::checked(call, &plan).await?;
        let kept = call.services_of_plan(&plan).await?.store_revision(&checked).await?;
        Ok::<u64, Problem>(kept.id.number().unsigned_abs())
    };
    kept.await.inspect_err(|problem| tracing::debug!(problem = %problem.detail, "a draft has no page")).ok()
}

fn drafter(call: &Call) -> Result<Drafter, Problem> {
    let drafter = call.api.options().drafter.clone();
    drafter.ok_or_else(|| Problem::new(Code::Conflict, "only a daemon drafts plans for others"))
}

fn no_such_draft() -> Problem {
    Problem::new(Code::NotFound, "there is no such draft")
        .help("a daemon keeps the newest 50 drafts of its page")
}
