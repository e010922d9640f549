//! `planctl demo`: the main job on a throw-away workspace, by the same code as `plan run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use planctl_api::wire::calls::{Approving, Start};
use planctl_api::wire::{AskPage, RunState};
use planctl_config::{Agent, TerminalCall};
use planctl_engine::Answer as Word;
use planctl_harness::{Command, End, PATH_DEFAULT, Spawner};

use super::standing::exit_of;
use super::verify::Detail;
use super::work::{Manner, Work, Worked, work};
use super::{Context, approvals, verify};
use crate::checking;
use crate::client::{Client, Handle, How};
use crate::decide;
use crate::failure::{Answer, Exit, Failure};
use crate::gutter::{self, Cut};
use crate::next;
use crate::show::{self, BOLD, CARE, FAINT, GOOD, shell_word, styled};
use crate::stop::Stop;

const PLAN: &str = include_str!("demo/till.md");
const SETUP: &str = include_str!("demo/setup.sh");
const WORKER: &str = include_str!("demo/worker.sh");

/// A person's note to the worker, where the demo answers.
const SCRIPTED_NOTE: &str = "begin the line with \"- Fixed: \", as the other projects do";

/// Does the one step of the plan that `planctl new` writes.
const FIRST_WORKER: &str = "echo Hello > hello.txt";

/// How much of a run's id is shown: the time at which it began, to the millisecond.
const ID_SHOWN: usize = 12;

/// The throw-away project: a workspace, the worker, and what it was asked.
struct Project {
    folder: tempfile::TempDir,
    workspace: PathBuf,
    worker: PathBuf,
    prompts: PathBuf,
}

/// Shows verify, approve, work, a contract that fails, a retry that knows why, an escalation, and the end.
pub async fn run(context: &Context, keep: bool, asks: bool) -> Answer {
    let project = Project::make().await?;
    let context = context.in_workspace(&project.workspace)?;
    let ended = run_demo(&context, &project, asks && context.is_interactive(), keep).await;
    if keep {
        let place = project.folder.keep();
        context.say(&format!("the project is kept in {}", place.display()));
    }
    ended
}

async fn run_demo(context: &Context, project: &Project, asks: bool, keep: bool) -> Answer {
    heading("verify", "a plan is checked like a program, before anything runs")?;
    let plan = project.workspace.join("till.md");
    let scripted = Agent::Exec("a scripted worker".to_owned());
    let checked = checking::check(context, &plan, Some(&scripted), &planctl_lang::Levels::default()).await?;
    let Some(graph) = checked.verification.graph.as_ref() else {
        show::print(&verify::findings(&checked, false))?;
        return Err(super::plan::not_verified(&plan, &checked));
    };
    let view = verify::plan_view(context, &checked, graph)?;
    // It is the demo's own file, so nothing is proposed that a person would type in vain.
    show::print(&styled(CARE, "$ planctl verify till.md\n"))?;
    show::print(&show::folded(&verify::outcome(&checked, Path::new("till.md"))))?;

    heading("approve", "this is what will run, once a person approves it")?;
    let exec = project.exec();
    show::print(&show::folded(&verify::draw(&view, Some(&scripted), Detail::default())))?;
    if asks && decide::choose("\nrun this?", &[('a', "pprove"), ('n', "o")])? != 'a' {
        return Err(Failure::new(Exit::Cancelled, "not approved; nothing ran"));
    }
    if !asks {
        show::print(&styled(
            CARE,
            "\n(the demo approves; planctl demo --try asks you)\n$ planctl approve till.md\n",
        ))?;
    }
    let client = Client::open(context).await?;
    let approve = Some(Approving::with_note(Some("shown by the demo")));
    let start = Start { worker: Some(Agent::Exec(exec)), approve, ..Start::default() };
    let How::Ready { handle, run, .. } = client.start(&checked, &start).await? else {
        return Err(Failure::new(Exit::Conflict, "could not start the demo: its plan is in use"));
    };

    heading("run", "a worker does each step; then the harness runs its contract, whatever the worker says")?;
    show::print(&format!("run {}\n", styled(BOLD, &show::safe(&run))))?;
    let ended = go_through(&client, handle, project, asks).await;
    let ended = match ended {
        Err(stopped) if !keep => {
            // Its folder goes, so nobody could go on with it.
            client.cancel(handle, Some("the demo was stopped")).await?;
            Err(Failure { next: None, ..stopped })
        }
        ended => ended,
    };
    client.close().await;
    ended
}

/// Works on the run to its end, and answers for the person who is asked, or asks them.
async fn go_through(client: &Client, handle: Handle, project: &Project, asks: bool) -> Answer {
    let mut worked = work_on(client, handle, 0).await?;
    show_retry(project)?;
    while worked.view.state == RunState::Waiting {
        answer(client, handle, asks).await?;
        heading("go on", "the answer is stored, and the run goes on where it stood")?;
        worked = work_on(client, handle, worked.seq).await?;
    }
    let view = client.status(handle).await?;
    let audit = client.audit(Some(handle)).await?;
    ending(handle, &audit, exit_of(&view))
}

async fn work_on(client: &Client, handle: Handle, since: u64) -> Result<Worked, Failure> {
    let worked = work(
        client,
        handle,
        Work {
            no_wait: true,
            manner: Manner::Answer,
            since: Some(since),
            answers: false,
            call: TerminalCall::Off,
        },
        None,
        &mut Stop::listen()?,
    )
    .await?;
    match worked.asked {
        Some(exit) => Err(Failure::new(exit, "stopped").next(format!("planctl resume {}", short_id(handle)))),
        None => Ok(worked),
    }
}

fn show_retry(project: &Project) -> Result<(), Failure> {
    let prompt = project.prompts.join("step-2-attempt-2.txt");
    let Ok(text) = std::fs::read_to_string(&prompt) else { return Ok(()) };
    heading("retry", "the worker said \"All tests pass.\", the contract said no; the next prompt says why")?;
    show::print(&styled(FAINT, &gutter::labelled("prompt", &text, Cut::Nothing)))
}

async fn answer(client: &Client, handle: Handle, asks_person: bool) -> Result<(), Failure> {
    let asks = client.asks(Some(handle)).await?;
    let Some(ask) = asks.asks.first() else {
        return Err(Failure::new(Exit::Temporary, "could not find what the run waits for"));
    };
    let page: AskPage = client.ask(ask.id).await?;
    heading("escalation", "no attempt is left, so the run stops and asks a person")?;
    show::print(&show::folded(&approvals::page::draw_page(&page, false)))?;
    let (word, note) = if asks_person {
        ask_person()?
    } else {
        show::print(&styled(
            CARE,
            &format!(
                "\n(the demo answers; planctl demo --try asks you)\n$ planctl approvals retry {} --note '{SCRIPTED_NOTE}'\n",
                ask.id
            ),
        ))?;
        (Word::Retry, SCRIPTED_NOTE.to_owned())
    };
    let decided = client.answer(ask.id, word, Some(&note)).await?;
    show::print(&format!("{}\n", super::recorded::recorded_word(&decided)))
}

fn ask_person() -> Result<(Word, String), Failure> {
    let choices = [('r', "etry with a note"), ('w', "aive"), ('s', "kip")];
    let word = match decide::choose("\nyour answer?", &choices)? {
        'r' => Word::Retry,
        'w' => Word::Waive,
        _ => Word::Skip,
    };
    let typed = decide::read_line(&format!("note [{SCRIPTED_NOTE}] > "))?;
    let note = typed.filter(|note| !note.trim().is_empty()).unwrap_or_else(|| SCRIPTED_NOTE.to_owned());
    Ok((word, note))
}

fn ending(run: Handle, audit: &planctl_api::wire::AuditView, exit: Exit) -> Answer {
    let events: u64 = audit.runs.iter().map(|run| run.events).sum();
    let sound = if audit.is_sound() { styled(GOOD, "sound") } else { styled(show::BAD, "BROKEN") };
    heading("done", "no step passed because somebody said so")?;
    show::print(&format!(
        "  history: {events} events, {sound}: gap-free, hash chain intact, states follow from it\n\n"
    ))?;
    let run = short_id(run);
    let commands = [
        (format!("planctl logs {run} --step 2"), "what the worker said, what the contract printed"),
        (format!("planctl why {run} 3"), "why a step is where it is"),
        (format!("planctl events {run}"), "everything that happened"),
        ("planctl new plans/hello.md".to_owned(), "your own plan: write it,"),
        ("planctl verify plans/hello.md".to_owned(), "check it,"),
        (
            format!("planctl run plans/hello.md --exec {}", shell_word(FIRST_WORKER)),
            "and run it with any worker",
        ),
    ];
    show::print(&format!("{}\n{}", next::line("").trim_end(), show::commands(&commands)))?;
    Ok(exit)
}

/// Returns the beginning of a run's id, by which it is found anywhere: its name counts in its workspace, which goes away.
fn short_id(run: Handle) -> String {
    run.id().to_string().replace('-', "").chars().take(ID_SHOWN).collect()
}

fn heading(title: &str, what: &str) -> Result<(), Failure> {
    let line = format!("\n{} {}\n", styled(BOLD, &format!("── {title} ──")), styled(FAINT, what));
    show::print(&show::folded(&line))
}

impl Project {
    async fn make() -> Result<Project, Failure> {
        let temporary = std::env::temp_dir();
        let failed = |error| {
            let place = show::safe(&temporary.display().to_string());
            Failure::of_io(format!("make the demo's project in {place}"), &error)
                .help("TMPDIR names another folder")
        };
        let folder = tempfile::Builder::new().prefix("planctl-demo-").tempdir().map_err(failed)?;
        let (workspace, prompts) = (folder.path().join("till"), folder.path().join("prompts"));
        let worker = folder.path().join("worker.sh");
        std::fs::create_dir(&workspace).map_err(failed)?;
        std::fs::create_dir(&prompts).map_err(failed)?;
        std::fs::write(&worker, WORKER).map_err(failed)?;
        std::fs::write(workspace.join("till.md"), PLAN).map_err(failed)?;
        let project = Project { folder, workspace, worker, prompts };
        project.set_up().await?;
        Ok(project)
    }

    async fn set_up(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Temporary, format!("could not start the helper: {error}"))
        };
        let spawner = Spawner::start_self(None).map_err(failed)?;
        let mut command = Command::new(["bash", "-c", SETUP], &self.workspace);
        command.environment =
            vec![("PATH".into(), PATH_DEFAULT.into()), ("HOME".into(), self.folder.path().into())];
        command.deadline = Some(Duration::from_secs(20));
        let finished = spawner.run(&command, &mut |_, _| {}, std::future::pending()).await.map_err(failed)?;
        spawner.shutdown();
        if finished.end == End::Exited(0) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&finished.stderr.last(400)).into_owned();
        Err(Failure::new(Exit::Temporary, format!("could not make the demo's project: {}", said.trim()))
            .help("the demo needs bash and git"))
    }

    fn exec(&self) -> String {
        let word = |path: &Path| shell_word(&path.display().to_string());
        format!("DEMO_PROMPTS={} bash {}", word(&self.prompts), word(&self.worker))
    }
}
