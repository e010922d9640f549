//! `planctl daemon install-service`: the unit for systemd, each choice with its reason.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::{daemon_arguments, refuse_long, refuse_remote};
use crate::args::AtOnce;
use crate::context::Context;
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BOLD, GOOD, styled};

const NAME: &str = "planctl.service";
/// Begins every unit that was written here; the digest of all after that line follows. One whose text has another is
/// somebody's work and never overwritten.
const OURS: &str =
    "# Written by `planctl daemon install-service`, which rewrites it as long as nobody changes it: ";

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Wish {
    pub user: bool,
    pub system: bool,
    pub run_as: Option<String>,
    pub print: bool,
    pub work: AtOnce,
}

/// The parts of a unit.
struct Unit<'a> {
    program: &'a Path,
    /// The arguments of the program.
    words: &'a [OsString],
    state_dir: &'a Path,
    is_system: bool,
    run_as: Option<&'a str>,
}

/// Writes the unit, and says how to turn it on.
pub fn install(context: &Context, wish: Wish) -> Answer {
    refuse_remote(&wish.work)?;
    refuse_database(context)?;
    let is_root = rustix::process::geteuid().is_root();
    let is_system = wish.system || (is_root && !wish.user) || wish.run_as.is_some();
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Temporary, format!("could not find this program: {error}")))?;
    let state_dir = context.state_dir()?;
    refuse_long(&state_dir)?;
    let run_as = wish.run_as.as_deref();
    let words = daemon_arguments(context.config_named(), wish.work)?;
    let unit = Unit { program: &program, words: &words, state_dir: &state_dir, is_system, run_as };
    let text = unit_text(&unit)?;
    if wish.print {
        show::print(&text)?;
        return Ok(Exit::Yes);
    }
    let path = folder(is_system)?.join(NAME);
    let systemctl = if is_system { "systemctl" } else { "systemctl --user" };
    write_unit_file(&path, &text, systemctl)?;
    context.say(&format!("{} {}", styled(GOOD, "written"), path.display()));
    context.say(&format!(
        "{} {systemctl} daemon-reload && {systemctl} enable --now planctl",
        styled(BOLD, "next:")
    ));
    if !is_system {
        context.say("to have it run while you are not logged in: loginctl enable-linger");
    }
    Ok(Exit::Yes)
}

/// Refuses a database that was named here: everybody may read a unit, and its address may hold a password.
fn refuse_database(context: &Context) -> Result<(), Failure> {
    let named = context.named_database().is_some()
        || crate::secrecy::variable("PLANCTL_DATABASE_URL").is_some_and(|url| !url.is_empty());
    if !named {
        return Ok(());
    }
    Err(Failure::usage("could not tell the service of the database that is named here: a unit holds no secrets")
        .help(
            "put it into the planctl.toml of whoever runs the service, ~/.config/planctl/planctl.toml, or into one \
             that --config names: [database] url = \"…\"; then without PLANCTL_DATABASE_URL and --database-url",
        ))
}

fn folder(is_system: bool) -> Result<PathBuf, Failure> {
    if is_system {
        return Ok("/etc/systemd/system".into());
    }
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|path| Path::new(path).is_absolute());
    let config =
        named.map(PathBuf::from).or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")));
    config.map(|config| config.join("systemd/user")).ok_or_else(|| {
        Failure::new(Exit::Configuration, "could not find the folder of your units: HOME is not set")
    })
}

fn write_unit_file(path: &Path, text: &str, systemctl: &str) -> Result<(), Failure> {
    let wrong = |error: io::Error| {
        Failure::of_io(format!("write {}", path.display()), &error)
            .help("as root for the system (sudo), or for yourself with --user")
    };
    match std::fs::read_to_string(path) {
        Ok(there) if !there.starts_with(OURS) => {
            return Err(Failure::new(
                Exit::Conflict,
                format!("{} is there and was not written by planctl", path.display()),
            )
            .help("compare it with `planctl daemon install-service --print`, and move it away"));
        }
        Ok(there) if !is_as_written(&there) => {
            return Err(Failure::new(
                Exit::Conflict,
                format!("{} was changed since planctl wrote it", path.display()),
            )
            .help(format!("keep what was changed with `{systemctl} edit planctl`, and move the unit away")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(wrong(error)),
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    std::fs::write(path, text).map_err(wrong)
}

fn is_as_written(unit: &str) -> bool {
    unit.strip_prefix(OURS)
        .and_then(|rest| rest.split_once('\n'))
        .is_some_and(|(digest, text)| digest == digest_of(text))
}

fn digest_of(text: &str) -> String {
    planctl_harness::digest_of(text.as_bytes()).as_str().to_owned()
}

fn unit_text(unit: &Unit<'_>) -> Result<String, Failure> {
    // Systemd looks for variables in a command, and not in the values of others.
    let in_command =
        |text: &OsStr| quote_for_systemd(text).map(|word| format!("\"{}\"", word.replace('$', "$$")));
    let program = in_command(unit.program.as_os_str())?;
    let state_dir = quote_for_systemd(unit.state_dir.as_os_str())?;
    let mut command = program;
    for word in unit.words {
        let is_plain = word.to_str().is_some_and(|word| {
            word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte))
        });
        let written = if is_plain { word.to_string_lossy().into_owned() } else { in_command(word)? };
        command.push_str(&format!(" {written}"));
    }
    let person = match unit.run_as {
        Some(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) => {
            format!("# Whose rights the daemon has, and all that it starts.\nUser={name}\n")
        }
        Some(name) => return Err(Failure::usage(format!("`{}` is not a user's name", show::safe(name)))),
        None if unit.is_system => {
            "# Workers and contracts have root's rights; better: User=NAME, the person whose workspaces \
             it serves.\n#User=\n"
                .to_owned()
        }
        None => String::new(),
    };
    // A state directory of another person's daemon is theirs to choose.
    let place = if unit.run_as.is_some() {
        String::new()
    } else {
        format!("Environment=\"PLANCTL_STATE_DIR={state_dir}\"\n")
    };
    let (target, fences) =
        if unit.is_system { ("multi-user.target", SYSTEM) } else { ("default.target", USER) };
    let text = format!(
        "\n[Unit]\nDescription=planctl: runs plans with AI agents, contracts decide\n\
         # Where Postgres is the system's own, it is up first; the private one is started by planctl itself.\n\
         After=network.target postgresql.service\n\n[Service]\n{SERVICE}ExecStart={command}\n{place}{person}\n\
         {fences}\n[Install]\nWantedBy={target}\n"
    );
    Ok(format!("{OURS}{}\n{text}", digest_of(&text)))
}

const SERVICE: &str = "# Ready once the loops turn. They say so again and again; a daemon whose loops stand still is killed and
# started anew, which loses nothing.
Type=notify
NotifyAccess=main
WatchdogSec=90
Restart=on-failure
RestartSec=2
# 5: another daemon has the state directory. 78: the configuration is wrong, or the database is one that this version
# can't use. Neither mends itself.
RestartPreventExitStatus=5 78
# The first start makes the private Postgres.
TimeoutStartSec=120
# SIGTERM goes to the daemon alone, which hands back what it holds and ends its own processes within ten seconds; after
# that whatever is left is killed.
KillMode=mixed
TimeoutStopSec=15
# Contracts that are confined (tier 1b) get cgroups of their own, in which the kernel holds their limits.
Delegate=memory pids
";

const USER: &str = "# Contracts and workers can't gain rights by setuid programs, sudo included.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
# No file system fences: a user's manager can't set them up everywhere, and workspaces are anywhere in your home.
";

const SYSTEM: &str = "# Contracts and workers can't gain rights by setuid programs, sudo included. The private Postgres gives rights
# up, which stays allowed.
NoNewPrivileges=yes
# The system's programs and settings are read-only. Not `strict`: workspaces are anywhere.
ProtectSystem=full
ProtectKernelModules=yes
ProtectClock=yes
LockPersonality=yes
RestrictRealtime=yes
# Without ProtectKernelTunables, ProtectKernelLogs and ProtectHostname: they mount over parts of /proc, and then the kernel
# gives no command a /proc of its own, which isolation tiers 1b and 2 need.
# Left open, because work needs it: homes (workspaces, credentials of agents), /tmp (shared with the people who look at
# results), the network (agents), new programs in memory (interpreters that compile), setgid folders (shared git
# repositories).
";

/// Writes a text so that systemd reads it as one word.
fn quote_for_systemd(text: &OsStr) -> Result<String, Failure> {
    let text = text.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        Failure::new(Exit::Configuration, format!("systemd can't be told of {}", text.display()))
    })?;
    Ok(text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}
