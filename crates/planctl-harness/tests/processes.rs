//! Runs real processes through the real helper: this program is the helper when its first argument is `__spawn`.
#![allow(clippy::unwrap_used, missing_docs)]

mod processes {
    pub mod endings;
    pub mod escapes;
    pub mod figures;
    pub mod support;
}

fn main() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__spawn") {
        std::process::exit(planctl_harness::helper_main());
    }
    let arguments = libtest_mimic::Arguments::from_args();
    let tests = [processes::endings::tests(), processes::escapes::tests(), processes::figures::tests()];
    libtest_mimic::run(&arguments, tests.into_iter().flatten().collect()).exit();
}
