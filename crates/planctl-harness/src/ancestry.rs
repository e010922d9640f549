//! Tells whether a process, or the other end of a connection, was started by a worker or a contract. It reads the kernel's
//! records, not the process's own.
//!
//! Everything that planctl starts hangs below its helper, which is a sub-reaper: a process can leave its parent, and is
//! then the helper's child. So the chain of parents tells, where a variable of the environment could be unset (A34).
//! It also describes a process for people who wait for it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The name that the helper gives itself, and that its guardians have from it.
pub(crate) const HELPER_NAME: &str = "planctl-spawn";
/// The setting by which planctl's own Postgres is known.
const PRIVATE_POSTGRES: &[u8] = b"cluster_name=planctl";
/// The longest chain of parents that is followed; a longer one is none that people make.
const GENERATIONS_MAX: usize = 512;
/// How many words of its command a process is described by, and how many characters.
const DESCRIBED_WORDS_MAX: usize = 2;
const DESCRIBED_CHARS_MAX: usize = 80;

/// Says whether a process, or one of its parents, was started by planctl's helper; one that is gone was.
pub fn is_inside_worker(process: i32) -> bool {
    let mut process = process;
    for _ in 0..GENERATIONS_MAX {
        // Of a process that ended meanwhile nothing can be said, so it decides nothing.
        let Some((name, parent)) = name_and_parent(process) else { return true };
        if name == HELPER_NAME || name == "postgres" && is_private_postgres(process) {
            return true;
        }
        if parent <= 1 {
            return false;
        }
        process = parent;
    }
    true
}

/// Says whether a process is planctl's own Postgres. The processes that it starts were asked for in SQL, not in a shell.
fn is_private_postgres(process: i32) -> bool {
    let arguments =
        fs::read(Path::new("/proc").join(process.to_string()).join("cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|word| word == PRIVATE_POSTGRES)
}

/// A connection over TCP, as the side sees it that was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The caller's address.
    pub from: SocketAddr,
    /// Where.
    pub to: SocketAddr,
}

/// One end of a connection, as the kernel lists it.
struct Socket {
    user: u32,
    inode: u64,
}

impl Connection {
    /// Says whether this process's own user has the calling end, or root.
    pub fn is_of_own_user(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.calling_socket()
            .is_some_and(|socket| socket.inode != 0 && (socket.user == own || socket.user == 0))
    }

    /// Says whether a process has the calling end that is inside of something, such as a worker; reads files of every process.
    ///
    /// Of an end on another machine or in another network, as in a container, and of one that another user's process has,
    /// nothing is known, and the answer is no. One whose process is gone, or can't be found though it is of this user, was a
    /// worker's: a person waits for the answer.
    pub fn is_of(&self, is_inside: impl Fn(i32) -> bool) -> bool {
        let Some(socket) = self.calling_socket() else {
            let (from, to) = (self.from.ip().to_canonical(), self.to.ip().to_canonical());
            return from.is_loopback() || from == to;
        };
        let holders = if socket.inode == 0 { Vec::new() } else { holders(socket.inode) };
        if holders.is_empty() {
            return socket.inode == 0 || socket.user == rustix::process::geteuid().as_raw();
        }
        holders.into_iter().any(is_inside)
    }

    /// Finds the calling end among the sockets of this network.
    fn calling_socket(&self) -> Option<Socket> {
        let canonical = |end: SocketAddr| (end.ip().to_canonical(), end.port());
        let ends = (canonical(self.from), canonical(self.to));
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
            let table = fs::read_to_string(table).ok()?;
            table.lines().skip(1).find_map(|line| {
                let mut fields = line.split_ascii_whitespace().skip(1);
                let of_line = (address(fields.next()?)?, address(fields.next()?)?);
                if of_line != ends {
                    return None;
                }
                Some(Socket { user: fields.nth(4)?.parse().ok()?, inode: fields.nth(1)?.parse().ok()? })
            })
        })
    }
}

/// Reads an address as the kernel writes it: words of four bytes in the machine's order, and a port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (digits, port) = text.split_once(':')?;
    let words = (0..digits.len()).step_by(8);
    let bytes: Option<Vec<[u8; 4]>> =
        words.map(|at| Some(u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?.to_ne_bytes())).collect();
    let bytes = bytes?.concat();
    let ip = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

/// Finds the processes that have a socket open, of those whose files may be seen.
fn holders(inode: u64) -> Vec<i32> {
    let link = format!("socket:[{inode}]");
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |process: &i32| {
        let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link.as_str()))
    };
    ids.filter(has).collect()
}

fn name_and_parent(process: i32) -> Option<(String, i32)> {
    let stat = fs::read(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in parentheses and may hold any character, a closing one too.
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

/// Names a process for people: its number, the first words of its command, and whether it was stopped.
pub fn describe_process(process: i32) -> String {
    let Some((name, _)) = name_and_parent(process) else { return format!("process {process}") };
    let words = fs::read(Path::new("/proc").join(process.to_string()).join("cmdline")).unwrap_or_default();
    let words = words.split(|byte| *byte == 0).skip(1).filter(|word| !word.is_empty());
    let words = words.take(DESCRIBED_WORDS_MAX).map(|word| String::from_utf8_lossy(word).into_owned());
    let command: String = std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ");
    let command: String =
        command.chars().filter(|shown| !shown.is_control()).take(DESCRIBED_CHARS_MAX).collect();
    let stopped = if stat_field(process, 0).as_deref() == Some("T") { ", stopped" } else { "" };
    format!("process {process} ({command}{stopped})")
}

/// Notes the agent of a session that is held to a plan, so that nothing that it starts decides in its person's place. Called
/// by the agent's hook; the agent is known by the name of its program, so no shell, terminal or editor around it is noted.
///
/// # Errors
///
/// When the note can't be written.
pub fn note_session_agent(state_dir: &Path, agent: &str) -> io::Result<()> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let Some(process) = ancestors(own).find(|process| is_program(*process, agent)) else { return Ok(()) };
    let Some(began) = start_time(process) else { return Ok(()) };
    let folder = session_agents(state_dir);
    let file = folder.join(process.to_string());
    if fs::read_to_string(&file).is_ok_and(|noted| noted == began) {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    // Agents that are gone are forgotten when another one comes.
    for entry in fs::read_dir(&folder)?.flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if process.and_then(start_time).is_none() {
            fs::remove_file(entry.path())?;
        }
    }
    fs::write(&file, &began)
}

/// Says whether the agent of a held session started a process.
pub fn is_inside_session(process: i32, state_dir: &Path) -> bool {
    let folder = session_agents(state_dir);
    folder.is_dir()
        && ancestors(process).any(|process| {
            let noted = fs::read_to_string(folder.join(process.to_string())).ok();
            noted.is_some() && noted == start_time(process)
        })
}

fn session_agents(state_dir: &Path) -> PathBuf {
    state_dir.join("guide/agents")
}

/// A process and those around it, the nearest first.
fn ancestors(process: i32) -> impl Iterator<Item = i32> {
    let parent =
        |process: &i32| name_and_parent(*process).map(|(_, parent)| parent).filter(|parent| *parent > 0);
    std::iter::successors(Some(process), parent).take(GENERATIONS_MAX)
}

/// Returns when a process began, in the kernel's ticks: with its number, this names it for ever.
fn start_time(process: i32) -> Option<String> {
    stat_field(process, 19)
}

/// Returns a field of a process's status, counted from the one after its name.
fn stat_field(process: i32, at: usize) -> Option<String> {
    let stat = fs::read(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(at).map(str::to_owned)
}

/// Says whether a process runs the program of this name, or has an interpreter run it.
fn is_program(process: i32, program: &str) -> bool {
    let words = fs::read(Path::new("/proc").join(process.to_string()).join("cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).take(2).any(|word| {
        let word = String::from_utf8_lossy(word);
        let name = Path::new(word.as_ref()).file_name().map(|name| name.to_string_lossy().into_owned());
        let rest = name.as_deref().and_then(|name| name.strip_prefix(program));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn this_process_was_not_started_by_a_helper_and_one_that_is_gone_might_have_been() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(name_and_parent(own).map(|(_, parent)| parent > 0), Some(true));
        assert!(is_inside_worker(i32::MAX));
    }

    #[test]
    fn the_process_at_the_other_end_of_a_connection_is_found_and_one_that_hung_up_might_be_a_workers() {
        for here in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let listener = match TcpListener::bind(here) {
                Ok(listener) => listener,
                // A machine without the newer protocol.
                Err(error) if here.starts_with('[') => {
                    eprintln!("{here}: {error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let port = listener.local_addr().unwrap().port();
            let there = if here == "[::1]:0" { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") };
            let caller = TcpStream::connect(&there).unwrap();
            let (called, from) = listener.accept().unwrap();
            let connection = Connection { from, to: called.local_addr().unwrap() };
            let socket = connection.calling_socket().unwrap();
            assert_eq!(socket.user, rustix::process::geteuid().as_raw(), "{here}");
            assert_eq!(holders(socket.inode), [i32::try_from(std::process::id()).unwrap()], "{here}");
            assert!(!connection.is_of(is_inside_worker), "{here}");
            assert!(connection.is_of_own_user(), "{here}");
            drop(caller);
            assert!(connection.is_of(is_inside_worker), "{here}: nobody waits for the answer");
        }
        let far = |text: &str| text.parse().unwrap();
        let other = Connection { from: far("192.0.2.7:4000"), to: far("192.0.2.1:7420") };
        assert!(!other.is_of(is_inside_worker), "of another machine nothing is known");
        assert!(!other.is_of_own_user(), "nor that it is of this user");
    }
}
