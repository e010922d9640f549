//! `planctl plan review`: an agent reviews a plan, and the verifier decides when it is done (P-64).

use std::path::{Path, PathBuf};

use planctl_api::wire::calls::{Approving, Start};
use planctl_lang::{Source, Wish, draft_frontmatter};
use planctl_server::check;

use super::plan::not_verified;
use super::run::{isolation, manner, work_to_the_end};
use super::work::Work;
use super::{Context, verify};
use crate::args::ReviewArgs;
use crate::checking;
use crate::client::{Client, How};
use crate::failure::{Answer, Exit, Failure};
use crate::person::must_be_human;
use crate::plan_files;
use crate::show::{self, BOLD, shell_word, styled};
use crate::stop::Stop;

/// Has each plan reviewed, one after another, and verifies what came of it.
pub async fn review(context: &Context, args: &ReviewArgs) -> Answer {
    must_be_human("start a review")?;
    let files = args.files.iter().map(|file| plan_files::plan_file_named(context, file));
    let files = files.collect::<Result<Vec<PathBuf>, Failure>>()?;
    for file in &files {
        let exit = review_file(context, file, args).await?;
        if exit != Exit::Yes {
            return Ok(exit);
        }
    }
    verify::files(context, &files, &args.levels.0).await
}

async fn review_file(context: &Context, file: &Path, args: &ReviewArgs) -> Answer {
    let role = &args.role;
    let manner = manner(context)?;
    let plan = check::plan_path(file, context.workspace());
    planctl_harness::read_plan(&context.workspace().join(&plan))
        .map_err(|error| plan_files::unreadable(file, &error))?;
    if Path::new(&plan).is_absolute() {
        let name = show::safe(&file.display().to_string());
        return Err(Failure::usage(format!(
            "{name} lies outside the workspace, so no worker can correct it"
        ))
        .help("name its directory with --workspace DIR"));
    }
    let text = review_plan(context, &plan, args)?;
    // A plan of ours, kept with its revisions like any other; there is no file to write marks into.
    let path = format!("review-of-{}", plan.replace('/', "-"));
    let source = Source::new(&path, text);
    let checked = checking::check_text(context, "", &path, source, args.worker().as_ref()).await?;
    if !checked.verification.is_verified() {
        show::say(verify::findings(&checked, context.is_quiet()).trim_end());
        return Err(not_verified(file, &checked));
    }
    isolation(context).await?;
    let client = Client::open(context).await?;
    let stop = Stop::listen()?;
    let note = Some(format!("asked for with plan review --role {role}"));
    let approve = Some(Approving { note, ..Approving::default() });
    let start = Start { worker: args.worker(), approve, again: true, ..Start::default() };
    let How::Ready { handle, run, is_taken_up } = client.start(&checked, &start).await? else {
        return Err(Failure::new(
            Exit::Conflict,
            format!("a review of {} is under way otherwise", show::safe(&plan)),
        )
        .next("planctl status --all"));
    };
    let verb = if is_taken_up { "taken up" } else { "review" };
    context.say(&format!(
        "{verb} {} · {} by {}",
        styled(BOLD, &show::safe(&run)),
        show::safe(&plan),
        show::safe(role)
    ));
    let call = context.config()?.config.terminal_call;
    let work =
        Work { no_wait: args.no_wait, manner, since: (!is_taken_up).then_some(0), answers: false, call };
    work_to_the_end(context, client, handle, work, stop).await
}

/// Writes the plan of one step whose contract is the verifier itself.
fn review_plan(context: &Context, plan: &str, args: &ReviewArgs) -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not find this program: {error}")))?;
    let mut verifier = vec![
        shell_word(&program.to_string_lossy()),
        "plan".to_owned(),
        "verify".to_owned(),
        "--workspace".to_owned(),
        ".".to_owned(),
    ];
    for (code, wish) in args.levels.0.wishes() {
        let flag = match wish {
            Wish::Allow => "-A",
            Wish::Warn => "-W",
            Wish::Deny => "-D",
        };
        verifier.extend([flag.to_owned(), code.to_owned()]);
    }
    verifier.push(shell_word(plan));
    Ok(format!(
        "{head}\n# Review {plan}\n\n## Steps\n\n\
         ### 1. Review {plan}\n\n**target:** {role}\n**type:** review\n**subscriptions:**\n- file:{plan}\n**changes:** {plan}\n\n\
         **task:**\n{TASK}\n\n**contract:**\n```shell\n{command}\n```\nexit_code == 0\n\
         **on_fail:** retry(2), then escalate\n",
        head = draft_frontmatter(&context.actor()),
        role = args.role,
        command = verifier.join(" "),
    ))
}

const TASK: &str = "\
You are given a plan. Check that each step's contract can be met by its task, that it fails as long as the task is not
done, that what each step reads exists or is made by a step before, and that the steps stand in the right order.

Mend the plan's file in place where it is wrong, and change nothing else. Keep what the plan is for, its steps' roles and
its budget; never make a contract weaker. Say at the end what you changed and why, and what a person should decide.";
