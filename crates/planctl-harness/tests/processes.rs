//! Runs real processes through the real helper: this program is the helper when its first argument is `__spawn`.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod processes {
    pub mod adapters;
    pub mod agents;
    pub mod checkpoints;
    pub mod committed;
    pub mod contracts;
    pub mod endings;
    pub mod escapes;
    pub mod figures;
    pub mod gate_folders;
    pub mod joins;
    pub mod limits;
    pub mod networks;
    pub mod objects;
    pub mod probes;
    pub mod sandbox;
    pub mod shortage;
    pub mod stability;
    pub mod support;
    pub mod swaps;
    pub mod trials;
    pub mod worktrees;
}

fn main() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__spawn") {
        std::process::exit(planctl_harness::helper_main());
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__attack") {
        std::process::exit(processes::sandbox::attack_main());
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__short") {
        processes::shortage::short_main();
        return;
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__few") {
        processes::shortage::few_main(&std::env::args().nth(2).unwrap());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    make_environment_hostile(folder.path());
    let arguments = libtest_mimic::Arguments::from_args();
    let tests = [
        processes::adapters::tests(),
        processes::agents::tests(),
        processes::committed::tests(),
        processes::joins::tests(),
        processes::contracts::tests(),
        processes::endings::tests(),
        processes::escapes::tests(),
        processes::figures::tests(),
        processes::gate_folders::tests(),
        processes::limits::tests(),
        processes::networks::tests(),
        processes::objects::tests(),
        processes::probes::tests(),
        processes::sandbox::tests(),
        processes::shortage::tests(),
        processes::stability::tests(),
        processes::swaps::tests(),
        processes::trials::tests(),
        processes::checkpoints::tests(),
        processes::worktrees::tests(),
    ];
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().flatten().collect());
    drop(folder);
    conclusion.exit();
}

/// Gives this program every variable that could change how a shell, an interpreter or git starts (A7, A9, A10), so that
/// each test shows that commands get none of them.
fn make_environment_hostile(folder: &std::path::Path) {
    let evil = folder.join("evil.sh");
    std::fs::write(&evil, "#!/bin/sh\nexit 0\n").unwrap();
    let names = [
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "PS4",
        "SHELLOPTS",
        "BASHOPTS",
        "CDPATH",
        "GLOBIGNORE",
        "BASH_COMPAT",
        "POSIXLY_CORRECT",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "NODE_OPTIONS",
        "NODE_PATH",
        "RUBYOPT",
        "RUBYLIB",
        "PERL5OPT",
        "PERL5LIB",
        "GCONV_PATH",
        "JAVA_TOOL_OPTIONS",
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "PLANCTL_DATABASE_URL",
        "PLANCTL_TOKEN",
        "DATABASE_URL",
    ];
    let home = folder.join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join(".npmrc"), format!("script-shell={}\n", evil.display())).unwrap();
    let user = "[user]\n\tname = The User\n\temail = user@example.org\n[alias]\n\tyes = !true\n";
    std::fs::write(home.join(".gitconfig"), user).unwrap();
    std::fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // SAFETY: this program has one thread yet.
    unsafe {
        std::env::set_var("HOME", &home);
        for name in names {
            std::env::set_var(name, &evil);
        }
        std::env::set_var("ANTHROPIC_API_KEY", "the agent's own key");
        std::env::set_var("BASH_FUNC_test%%", "() { return 0; }");
        std::env::set_var("BASH_FUNC_false%%", "() { return 0; }");
    }
}
