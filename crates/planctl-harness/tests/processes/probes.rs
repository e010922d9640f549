//! The answers of bash about scripts that it does not run.

use libtest_mimic::Trial;
use planctl_harness::{Syntax, probe_scripts};

use super::support::{block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![row_34_bash_tells_the_line_of_a_syntax_error_and_runs_nothing]
}

fn row_34_bash_tells_the_line_of_a_syntax_error_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let runs = format!("touch {}/ran; $(touch {0}/ran)", folder.path().display());
    let good = ["true", "[[ -f x ]] && select a in b; do :; done", "for ((;;)); do break; done", "", &runs];
    let bad =
        [("echo \"", Some(1)), ("if true\nthen\n", Some(3)), ("a\nb\n)", Some(3)), ("case x in", Some(2))];
    let scripts =
        good.iter().copied().chain(bad.iter().map(|(script, _)| *script)).map(str::to_owned).collect();
    let found = block_on(async { probe_scripts(&spawner(), scripts).await });
    for script in good {
        assert_eq!(found[script], Syntax::Accepted, "{script}");
    }
    for (script, line) in bad {
        let Syntax::Refused { message, line: found } = &found[script] else {
            panic!("{script}: {:?}", found[script])
        };
        assert!(message.contains("unexpected"), "{script}: {message}");
        assert_eq!(*found, line, "{script}: {message}");
    }
    assert!(!folder.path().join("ran").exists());
}
