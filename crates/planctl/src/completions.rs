//! Answers shells that ask for completions.

use clap_complete::env::Shells;

use crate::completing::flag_typed;
use crate::failure::{Answer, Exit, Failure};
use crate::{args, show};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "PLANCTL_COMPLETE";

/// Quotes words for bash, which takes them as they are: names with blanks and quotes would be several words, or none.
const BASH_QUOTES: &str = r#"
_planctl_quoted() {
    local begun=${COMP_WORDS[COMP_CWORD]} at
    if [[ $begun == [\"\']* ]]; then
        _clap_complete_planctl "$@"
        return
    fi
    _clap_complete_planctl "$1" "${2//\\/}" "${@:3}"
    for at in "${!COMPREPLY[@]}"; do
        printf -v 'COMPREPLY[at]' %q "${COMPREPLY[at]}"
    done
}
"#;

/// Answers a shell that asks for completions, and ends the process; returns where no shell does.
pub fn answer() {
    if std::env::var_os(VARIABLE).is_some()
        && let Some(directory) = flag_typed("-C", std::env::args_os())
    {
        // Where there is no such directory, nothing in it is known.
        std::env::set_current_dir(directory).unwrap_or(());
    }
    clap_complete::CompleteEnv::with_factory(args::command).var(VARIABLE).completer("planctl").complete();
}

/// Prints the script by which a shell asks for completions.
pub fn script(shell: clap_complete::Shell) -> Answer {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let Some(writer) = shells.completer(&name) else {
        return Err(Failure::usage(format!("there are no completions for {name}")));
    };
    let mut text = Vec::new();
    writer
        .write_registration(VARIABLE, "planctl", "planctl", "planctl", &mut text)
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not write completions: {error}")))?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if shell == clap_complete::Shell::Bash {
        text = BASH_QUOTES.to_owned() + &text.replace("-F _clap_complete_planctl", "-F _planctl_quoted");
    }
    show::print(&text)?;
    Ok(Exit::Yes)
}
