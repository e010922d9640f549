//! Each next step as it would be typed: in the workspace, below it, elsewhere, and behind `-C`.

use std::sync::LazyLock;

use clap::FromArgMatches as _;

use super::*;
use crate::args::Cli;

static ROOT: LazyLock<clap::Command> = LazyLock::new(|| {
    let mut root = crate::args::command();
    root.build();
    root
});

/// Names of plans that a shell, or planctl, could read as something else.
const PLANS: [&str; 6] =
    ["a.md", "plans/two words.md", "plans/it's.md", "plans/größer \"x\" $y.md", "-dash.md", "sub/-C x.md"];

/// One step of each kind that names a plan, a run or an ask, and can be typed as it stands.
fn steps(plan: &str) -> Vec<Next> {
    let (plan, run) = (plan.to_owned(), "größer-3".to_owned());
    let (worker, ask) = (Some("exec:./a 'b' planctl ls".to_owned()), 7);
    let start =
        |how, worker: &Option<String>| Next::StartRun { plan: plan.clone(), how, worker: worker.clone() };
    vec![
        Next::VerifyPlan { plan: plan.clone(), folder: None },
        Next::VerifyPlan { plan: plan.clone(), folder: Some("sub".to_owned()) },
        Next::EditPlan { plan: plan.clone() },
        Next::CheckGraph { plan: plan.clone() },
        Next::DiffPlan { plan: plan.clone() },
        Next::approve(&plan),
        start(Starting::Usual, &None),
        start(Starting::Again, &worker),
        start(Starting::Approved, &Some("claude".to_owned())),
        Next::StartRunHere { plan: plan.clone() },
        Next::CommitAndStartOver { run: run.clone(), plan: plan.clone() },
        Next::UseApprovedWorker {
            plan: plan.clone(),
            approved: "exec:./a b".to_owned(),
            named: worker.clone(),
        },
        Next::UseApprovedWorker { plan: plan.clone(), approved: "claude".to_owned(), named: None },
        Next::AcceptFiles {
            files: vec!["tests/a b.rs@12ab".to_owned()],
            with: Box::new(start(Starting::Approved, &None)),
        },
        Next::ServeRole { role: "coder".to_owned() },
        Next::ResumeWorker { worker: "pod 7".to_owned() },
        Next::TestWorker { agent: "codex:-m gpt-x".to_owned() },
        Next::ResumeRun { run: run.clone() },
        Next::cancel(&run),
        Next::AuditRun { run: run.clone() },
        Next::KeepStep { step: "2".to_owned(), run: run.clone() },
        Next::WatchRun { run: run.clone() },
        Next::show(&run),
        Next::ShowRuns,
        Next::ShowAllRuns,
        Next::ListRuns,
        Next::ShowAsks,
        Next::ShowAsk { ask },
        Next::AnswerAsk { ask, answers: ["approve", "reject", "retry", "abort"].map(str::to_owned).to_vec() },
        Next::RestoreAndRetry { ask },
        Next::ShowDatabase,
        Next::MigrateDatabase,
        Next::ListWorkers,
    ]
}

fn is_command(word: &str) -> bool {
    ROOT.find_subcommand(word).is_some()
}

/// Returns the commands of a text, each as the words that a shell makes of it.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let (mut rest, mut is_in) = (text, false);
    while let Some(word) = next_word(rest) {
        let typed = &rest[word.clone()];
        if typed == "planctl" {
            (is_in, rest) = (true, &rest[word.end..]);
            found.push(typed.to_owned());
            continue;
        }
        is_in &= typed != "&&";
        if let Some(command) = found.last_mut().filter(|_| is_in) {
            command.push_str(&format!(" {}", typed.trim_end_matches(',')));
        }
        is_in &= !typed.ends_with(',');
        rest = &rest[word.end..];
    }
    found.iter().map(|command| shlex::split(command).unwrap()).collect()
}

/// Returns the workspace that planctl finds in a directory.
fn workspace_at(directory: &Path) -> PathBuf {
    planctl_harness::git_top_level(directory).unwrap_or(directory).to_owned()
}

/// Returns a path without the `..` in it.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |whole, part| {
        if part == Component::ParentDir { whole.parent().unwrap().to_owned() } else { whole.join(part) }
    })
}

#[test]
fn each_next_step_can_be_typed_where_a_person_stands_and_means_the_plan_and_the_run_of_its_workspace() {
    let room = tempfile::tempdir().unwrap();
    let room = room.path().canonicalize().unwrap();
    let checkout = room.join("my checkout");
    for folder in ["my checkout/.git", "my checkout/sub/deep", "bare/sub", "elsewhere"] {
        std::fs::create_dir_all(room.join(folder)).unwrap();
    }
    let (sub, bare, elsewhere) = (checkout.join("sub"), room.join("bare"), room.join("elsewhere"));
    let at = |flags: &str, directory: &Path, workspace: &Path| Invocation {
        flags: flags.to_owned(),
        config: " --config 'a b.toml'".to_owned(),
        reached_by: " --server https://planctl.example.org".to_owned(),
        directory: directory.to_owned(),
        workspace: workspace.to_owned(),
        is_command,
    };
    let moved = |directory: &Path| format!(" -C {}", file_word(directory));
    // The workspace of a run, where a person stands, and what their command said of it.
    let places = [
        (&checkout, &checkout, at("", &checkout, &checkout)),
        (&checkout, &sub.join("deep"), at("", &sub.join("deep"), &checkout)),
        (&checkout, &elsewhere, at(&moved(&checkout), &checkout, &checkout)),
        (&checkout, &elsewhere, at(&moved(&sub), &sub, &checkout)),
        (&checkout, &elsewhere, at("", &elsewhere, &elsewhere)),
        (&checkout, &elsewhere, at(&moved(&bare), &bare, &bare)),
        (&bare, &bare, at("", &bare, &bare)),
        (&bare, &bare.join("sub"), at("", &bare.join("sub"), &bare.join("sub"))),
        (&sub, &checkout, at(" --workspace sub", &checkout, &sub)),
        (&sub, &checkout, at("", &checkout, &checkout)),
        (&sub, &elsewhere, at("", &elsewhere, &elsewhere)),
    ];
    let outside = room.join("outside any.md");
    let mut root = crate::args::command();
    for (workspace, stands, place) in places {
        for (at, plan) in PLANS.iter().copied().chain([outside.to_str().unwrap()]).enumerate() {
            // Each kind of step names plans in the same way, so the other names are tried with a few.
            for next in
                steps(plan).into_iter().skip(if at == 0 { 0 } else { 5 }).take(if at == 0 { 99 } else { 3 })
            {
                if matches!(next, Next::StartRunHere { .. })
                    && (place.flags.contains("--workspace") || !is_found(workspace))
                {
                    continue;
                }
                let words = place.command_words(&next, workspace).replace("NAME", "claude");
                let found = commands(&words);
                assert!(!found.is_empty(), "{next:?}: {words}");
                for command in found {
                    check(&mut root, &command, stands, workspace, &workspace.join(plan), &next, &place);
                }
            }
        }
    }
}

/// Checks that a command is one of planctl's, and is about the workspace and the plan that were meant.
fn check(
    root: &mut clap::Command,
    command: &[String],
    stands: &Path,
    workspace: &Path,
    plan: &Path,
    next: &Next,
    place: &Invocation,
) {
    let matches = root.try_get_matches_from_mut(command);
    let mut matches = matches.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let cli = Cli::from_arg_matches_mut(&mut matches).unwrap();
    let directory = cli.global.directory.as_deref().map_or(stands.to_owned(), |moved| stands.join(moved));
    let named = cli.global.named_workspace().map(|named| plain(&directory.join(named)));
    let found = named.unwrap_or_else(|| workspace_at(&directory));
    let is_of_folder = matches!(next, Next::VerifyPlan { folder: Some(_), .. });
    let meant = if is_of_folder { workspace.join("sub") } else { workspace.to_owned() };
    assert_eq!(found, meant, "{command:?} in {stands:?}");
    let is_of_machine = command.iter().any(|word| matches!(word.as_str(), "daemon" | "db"));
    let server = (!is_of_machine).then_some("https://planctl.example.org");
    assert_eq!(cli.global.server.as_deref(), server, "{command:?}");
    let config = (*workspace == place.workspace).then_some(Path::new("a b.toml"));
    assert_eq!(cli.global.config.as_deref(), config, "{command:?}");
    let is_plan = |word: &String| word.ends_with(".md") && plain(&directory.join(word)) == *plan;
    let names_plan = command.iter().any(|word| word.ends_with(".md"));
    assert_eq!(command.iter().any(is_plan), names_plan, "{command:?} in {stands:?} for {plan:?}");
}

#[test]
fn flags_come_into_commands_alone() {
    let place = Invocation { is_command, ..unknown_place() };
    let with_flags = |text: &str, flags: &str| place.with_flags(text, flags, flags);
    let text = "planctl reads no such file: `planctl verify x`, then planctl run x --exec 'planctl ls' && planctl ls";
    let with = "planctl reads no such file: `planctl -C d verify x`, then planctl -C d run x --exec 'planctl ls' && planctl -C d ls";
    assert_eq!(with_flags(text, " -C d"), with);
    assert_eq!(with_flags(with, " -C other"), with);
    assert_eq!(with_flags("x:\n      planctl ls\n", " -C d"), "x:\n      planctl -C d ls\n");
    assert_eq!(with_flags("it's planctl run it's", " -C d"), "it's planctl -C d run it's");
}
