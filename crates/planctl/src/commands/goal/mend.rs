//! `planctl goal resolve --repair RUN`: a run of the plan failed at a call, and a writer says what is to be different (M-40).

use planctl_planner::{Intent, MendNext, Planned, Resolver};

use super::resolve::{Asked, Record};
use crate::commands::draft::database::DraftDatabase;
use crate::commands::draft::failed::NamedRun;
use crate::commands::draft::kept::Kept;
use crate::failure::{Exit, Failure};
use crate::show;

/// The exit codes of calls that fail for a reason outside of the plan: the server is away, limits calls, breaks the protocol, or
/// wants a credential.
const OUTSIDE: [i32; 4] = [69, 75, 76, 77];

/// Takes the failed call of a run, unless it is known.
pub(super) async fn hear(
    database: &DraftDatabase<'_>,
    name: &str,
    record: &mut Record,
) -> Result<(), Failure> {
    let named = NamedRun::find(database, name).await?;
    if record.mending.knows(|failed| named.is_told(failed)) {
        return Ok(());
    }
    let written = record.written.as_ref().map(|(_, text)| text.as_str());
    let (failed, exit_code) = named.failed(written).await?;
    let run = show::safe(&failed.run);
    let step = record.planned.as_ref().and_then(|planned| step_of(planned, failed.step));
    let Some(intent) = step else {
        return Err(Failure::new(Exit::No, format!("step {} of {run} is not a call of a tool", failed.step)));
    };
    if exit_code.is_some_and(|code| OUTSIDE.contains(&code)) {
        let message =
            format!("step {} of {run} failed for a reason that no change of the plan can fix", failed.step);
        return Err(Failure::new(Exit::No, message)
            .help("planctl help exit-codes says which; set that right, then try the step again"));
    }
    match record.mending.failed(failed, &intent) {
        Ok(_) => Ok(()),
        Err(times) => {
            let failure =
                Failure::new(Exit::No, format!("the plan was repaired {times} times, and fails again"));
            Err(failure.help("change the plan yourself, or say the goal in other words"))
        }
    }
}

/// Returns the intent of a step that calls a capability; the plan that follows has no step.
fn step_of(planned: &Planned, number: u32) -> Option<String> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    let step = planned.steps.get(at)?;
    matches!(step.action, planctl_planner::Action::Call(_)).then(|| step.id.clone())
}

/// Asks the writer until the failed call is mended.
pub(super) async fn mend(
    (kept, record): (&Kept<'_>, &mut Record),
    resolver: &Resolver<'_>,
    (intents, asked): (&[Intent], Asked<'_>),
) -> Result<(), Failure> {
    let Some(planned) = record.planned.clone() else { return Ok(()) };
    loop {
        let open = record.mending.intent().and_then(|open| intents.iter().find(|intent| intent.id == open));
        let near = open.map(|intent| resolver.discover(intent, &[])).unwrap_or_default();
        let prompt = match record.mending.next(&planned, resolver.catalog, &near) {
            MendNext::Nothing => return Ok(()),
            MendNext::GivenUp(why) => {
                let why = show::safe(&why.join("; "));
                return Err(Failure::new(Exit::No, format!("no answer could be used: {why}"))
                    .help("another writer, or change the plan yourself"));
            }
            MendNext::Ask(prompt) => prompt,
        };
        let words = ("repairs the call that failed", "a writer is to say what should be different");
        let answer = asked.ask((kept, record), &prompt, words).await?;
        record.mending.take_answer(&answer, &planned, resolver.catalog, &near);
        kept.keep(&*record, asked.goal).await?;
    }
}
