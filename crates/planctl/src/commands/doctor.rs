//! `planctl doctor`: planctl's needs on this machine, checked one by one.

use std::ffi::OsStr;

use planctl_config::Isolation;
use planctl_engine::Tier;
use planctl_harness::{KnownAgent, NamedAgent, PATH_DEFAULT, Primitive, Spawner, find_program};
use planctl_server::agent_check::{check_program, installed_agents};
use planctl_server::{database, room_in};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use planctl_api::wire::{DoctorView, Health, HealthView as Finding};

use super::run as running;
use super::{Context, daemon};
use crate::client::{self, Client};
use crate::failure::{Answer, Exit, Failure};
use crate::show::{self, BAD, CARE, FAINT, GOOD, styled};

/// From 2026 to 2100, in seconds after 1970: outside of it a clock was never set.
const SENSIBLE_SECONDS: std::ops::Range<f64> = 1_767_225_600.0..4_102_444_800.0;

/// With less room on a disk something fails soon: Postgres writes its log in files of 16 MB, and keeps several.
const ROOM_BYTES_MIN: u64 = 100_000_000;

/// Checks everything and says what to do about what is missing.
pub async fn run(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let DoctorView { problems, warnings, checks } = examine(context).await;
    if is_json {
        show::print_json(&DoctorView { problems, warnings, checks })?;
    } else {
        show::print(&show::folded(&checks.iter().map(draw).collect::<String>()))?;
        show::print(&format!(
            "{}, {}\n",
            show::counted(problems, "problem"),
            show::counted(warnings, "warning")
        ))?;
    }
    Ok(if problems == 0 { Exit::Yes } else { Exit::No })
}

/// Checks everything.
pub async fn examine(context: &Context) -> DoctorView {
    let mut findings = vec![configuration(context), state_dir(context)];
    findings.extend(disk(context));
    findings.push(clock());
    findings.extend(programs());
    findings.push(helper());
    findings.extend(isolation(context).await);
    findings.extend(roles(context));
    findings.extend(agents(context).await);
    findings.extend(postgres(context).await);
    let problems = findings.iter().filter(|finding| finding.health == Health::Problem).count();
    let warnings = findings.iter().filter(|finding| finding.health == Health::Warning).count();
    DoctorView { problems, warnings, checks: findings }
}

/// Draws one check, with how to mend what it found.
pub fn draw(finding: &Finding) -> String {
    let mark = match finding.health {
        Health::Good => styled(GOOD, "✔"),
        Health::Absent => styled(FAINT, "·"),
        Health::Warning => styled(CARE, "!"),
        Health::Problem => styled(BAD, "✖"),
    };
    let help =
        finding.help.as_ref().map(|help| format!("  help: {}\n", show::safe_block(help))).unwrap_or_default();
    format!("{mark} {:<16} {}\n{help}", finding.check, show::safe_block(&finding.found))
}

fn good_finding(check: &str, found: impl Into<String>) -> Finding {
    Finding { check: check.to_owned(), health: Health::Good, found: found.into(), help: None }
}

fn absent(check: &str, found: impl Into<String>) -> Finding {
    Finding { health: Health::Absent, ..good_finding(check, found) }
}

fn bad_finding(check: &str, failure: &Failure) -> Finding {
    let help = failure.help.clone().or_else(|| failure.next.clone());
    Finding { check: check.to_owned(), health: Health::Problem, found: failure.message.clone(), help }
}

fn configuration(context: &Context) -> Finding {
    match context.config() {
        Ok(loaded) if loaded.files.is_empty() => good_finding("configuration", "no planctl.toml; defaults"),
        Ok(loaded) => {
            let files: Vec<String> = loaded.files.iter().map(|file| file.display().to_string()).collect();
            let health = if loaded.warnings.is_empty() { Health::Good } else { Health::Warning };
            Finding {
                check: "configuration".to_owned(),
                health,
                found: files.join(", "),
                help: loaded.warnings.first().cloned(),
            }
        }
        Err(failure) => bad_finding("configuration", &failure),
    }
}

fn state_dir(context: &Context) -> Finding {
    let path = match context.state_dir() {
        Ok(path) => path,
        Err(failure) => return bad_finding("state", &failure),
    };
    if let Err(error @ (Errno::ACCESS | Errno::ROFS)) = access(&path, Access::WRITE_OK | Access::EXEC_OK) {
        let found = format!("{} can't be written: {error}", path.display());
        let help = "set PLANCTL_STATE_DIR to a directory that this user may write to";
        return Finding {
            health: Health::Problem,
            help: Some(help.to_owned()),
            ..good_finding("state", found)
        };
    }
    match daemon::refuse_long(&path) {
        Ok(()) => good_finding("state", path.display().to_string()),
        Err(failure) => Finding { health: Health::Warning, ..bad_finding("state", &failure) },
    }
}

/// Says how much room there is for what planctl writes, and for the data of its private Postgres, which may lie on another disk.
fn disk(context: &Context) -> Option<Finding> {
    let (loaded, state_dir) = (context.config().ok()?, context.state_dir().ok()?);
    let data_dir = match &loaded.config.database {
        None => database::status(&state_dir, &loaded.config.postgres).ok().map(|status| status.data_dir),
        Some(_) => None,
    };
    let rooms =
        [Some(state_dir), data_dir].into_iter().flatten().filter_map(|path| Some((room_in(&path)?, path)));
    let (bytes, path) = rooms.min_by_key(|(bytes, _)| *bytes)?;
    let found = format!("{} free for {}", show::bytes(bytes), path.display());
    Some(if bytes >= ROOM_BYTES_MIN {
        good_finding("disk", found)
    } else {
        Finding {
            check: "disk".to_owned(),
            health: Health::Problem,
            found,
            help: Some("make room there: on a full disk nothing is recorded, and work waits".to_owned()),
        }
    })
}

/// Nothing that decides reads this machine's clock; its logs do, and tokens of others (row 111).
fn clock() -> Finding {
    let seconds = client::now_unix_seconds();
    let now = time::OffsetDateTime::from_unix_timestamp(seconds as i64).map_or_else(
        |_| format!("{seconds} seconds after 1970"),
        |now| format!("{} {:02}:{:02} UTC", now.date(), now.hour(), now.minute()),
    );
    if SENSIBLE_SECONDS.contains(&seconds) {
        return good_finding("clock", now);
    }
    Finding {
        check: "clock".to_owned(),
        health: Health::Warning,
        found: format!("it says {now}"),
        help: Some("set this machine's clock; runs go by the database's, logs are wrong".to_owned()),
    }
}

fn programs() -> Vec<Finding> {
    let found = |name: &'static str, health: Health, help: &str| match find_program(
        OsStr::new(name),
        OsStr::new(PATH_DEFAULT),
    ) {
        Some(path) => good_finding(name, path.display().to_string()),
        None => Finding {
            check: name.to_owned(),
            health,
            found: format!("not found in {PATH_DEFAULT}"),
            help: Some(help.to_owned()),
        },
    };
    vec![
        found("bash", Health::Problem, "contracts run in bash: apt install bash"),
        found("git", Health::Warning, "workspaces are usually git checkouts: apt install git"),
    ]
}

fn helper() -> Finding {
    match Spawner::start_self(None) {
        Ok(spawner) => {
            spawner.shutdown();
            good_finding("child processes", "the helper starts")
        }
        Err(error) => bad_finding("child processes", &Failure::new(Exit::Temporary, error)),
    }
}

/// Shows the primitives of isolation, which tiers hold in a trial, and whether that is what is demanded.
async fn isolation(context: &Context) -> Vec<Finding> {
    let offered = match running::offered().await {
        Ok(offered) => offered,
        Err(failure) => return vec![bad_finding("isolation", &failure)],
    };
    let wanted = context.config().map(|loaded| loaded.config.isolation).unwrap_or_default();
    let best = Isolation::best(offered.tier);
    let summary = match wanted.tier(offered.tier) {
        Some(tier) if tier == offered.tier && tier > Tier::SameUser => good_finding(
            "isolation",
            format!("tier {tier}, the best that this host offers; wanted: {wanted}"),
        ),
        Some(tier) if tier == best && tier > Tier::SameUser => {
            let found = format!(
                "tier {tier}, the best that is taken unnamed; by name this host offers tier {}; wanted: {wanted}",
                offered.tier
            );
            good_finding("isolation", found)
        }
        Some(tier) => {
            let help = (best > tier).then(|| {
                format!("isolation = \"require:{best}\" in planctl.toml confines contracts and workers")
            });
            let runs = if tier == Tier::SameUser { "contracts and workers run as you; " } else { "" };
            let found =
                format!("tier {tier}: {runs}this host offers tier {}; wanted: {wanted}", offered.tier);
            Finding { help, ..good_finding("isolation", found) }
        }
        None => Finding {
            check: "isolation".to_owned(),
            health: Health::Problem,
            found: format!("this host offers tier {}, and the configuration demands {wanted}", offered.tier),
            help: Some("nothing runs below what is demanded; isolation = \"auto\" runs as you".to_owned()),
        },
    };
    let primitive = |primitive: Primitive| {
        let word = if primitive.is_there { "yes" } else { "no" };
        let found = format!("{}: {word} ({})", primitive.name, primitive.finding);
        if primitive.is_there { good_finding("isolation by", found) } else { absent("isolation by", found) }
    };
    std::iter::once(summary).chain(offered.primitives.into_iter().map(primitive)).collect()
}

fn roles(context: &Context) -> Vec<Finding> {
    let Ok(loaded) = context.config() else { return Vec::new() };
    loaded
        .config
        .roles
        .iter()
        .map(|(role, config)| match &config.agent {
            Some(agent) => {
                good_finding("role", format!("{role}: {}", planctl_lang::masked(&agent.to_string())))
            }
            None => Finding {
                check: "role".to_owned(),
                health: Health::Warning,
                found: format!("{role}: nothing serves it"),
                help: Some(format!(
                    "[roles.{role}] agent = \"claude\" or \"exec:CMD\", or plan run --agent NAME"
                )),
            },
        })
        .collect()
}

/// Lists the agents that are installed, each with its version and by which variables and files it is signed in.
async fn agents(context: &Context) -> Vec<Finding> {
    let installed: Vec<NamedAgent> = installed_agents().collect();
    if installed.is_empty() {
        let names: Vec<&str> = KnownAgent::all().map(KnownAgent::name).collect();
        return vec![absent("agent", format!("none of {} is on your PATH", names.join(", ")))];
    }
    let spawner = match Spawner::start_self(None) {
        Ok(spawner) => spawner,
        Err(error) => return vec![bad_finding("agent", &Failure::new(Exit::Temporary, error))],
    };
    let looked = installed.iter().map(|agent| check_program(agent, &spawner, context.workspace()));
    let found = futures_util::future::join_all(looked).await;
    spawner.shutdown();
    installed.iter().zip(found).map(|(agent, found)| signed_in(agent.agent, found)).collect()
}

/// Adds to an agent's version by what it is signed in: names alone, never values.
fn signed_in(agent: KnownAgent, version: std::io::Result<Finding>) -> Finding {
    let name = agent.name();
    let version = match version {
        Ok(version) => version,
        Err(error) => return bad_finding("agent", &Failure::new(Exit::Temporary, error)),
    };
    let found = format!("{name}: {}", version.found);
    if version.health == Health::Problem {
        return Finding { check: "agent".to_owned(), found, ..version };
    }
    match agent.logins_seen(&|name| std::env::var_os(name)).as_slice() {
        [] => Finding {
            check: "agent".to_owned(),
            health: Health::Warning,
            found: format!("{found}, no login seen"),
            help: Some(format!("{}; planctl worker test --agent {name} tries it", agent.sign_in_hint())),
        },
        seen => good_finding("agent", format!("{found}, login: {}", seen.join(", "))),
    }
}

/// Says as which role planctl works in its database, and what that role may do that planctl does not need.
fn role_finding(role: &str, may: &[String]) -> Finding {
    if may.is_empty() {
        return good_finding("database role", format!("{role}: changes no history, starts no programs"));
    }
    Finding {
        help: Some(
            "a role of its own, with fewer rights: docs/security.md, \"The database's roles\"".to_owned(),
        ),
        ..good_finding("database role", format!("{role} may {}", may.join(", ")))
    }
}

async fn postgres(context: &Context) -> Vec<Finding> {
    let (Ok(loaded), Ok(state_dir)) = (context.config(), context.state_dir()) else { return Vec::new() };
    if loaded.config.database.is_none()
        && let Err(error) = database::status(&state_dir, &loaded.config.postgres)
    {
        return vec![bad_finding("postgres", &client::cluster_failure(error))];
    }
    let client = match Client::open_quietly(context).await {
        Ok(client) => client,
        Err(failure) => return vec![bad_finding("postgres", &failure)],
    };
    let view = client.database().await;
    client.close().await;
    match view {
        Ok(view) => {
            let version = view.version.map(|version| format!(", Postgres {version}")).unwrap_or_default();
            let mut findings =
                vec![good_finding("postgres", format!("{} in {}{version}", view.kind, view.place))];
            findings.extend(view.role.map(|role| role_finding(&role, &view.role_may)));
            findings.extend(view.warnings.into_iter().map(|warning| Finding {
                check: "postgres".to_owned(),
                health: Health::Problem,
                found: warning,
                help: Some("planctl's promises need durable commits".to_owned()),
            }));
            findings
        }
        Err(failure) => vec![bad_finding("postgres", &failure)],
    }
}
