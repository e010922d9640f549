//! Ways out of a sandbox, each as a function that returns whether it got out.

use std::ffi::{CString, c_void};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::libc;
use planctl_engine::Tier;
use planctl_harness::{End, Spawner};

use super::Ground;
use crate::processes::support::{block_on, run};

/// One way out.
pub struct Attack {
    /// The act, which is also its argument.
    pub name: &'static str,
    /// The rows of docs/security.md that it belongs to.
    pub rows: &'static str,
    /// The weakest tier that holds it; `None` where none does.
    holds_from: Option<Tier>,
    /// Says that it works at tier 0 on every host, so that a way out that never worked is found.
    works_bare: bool,
    /// Returns whether it got out.
    run: fn(&Places) -> io::Result<bool>,
}

const LANDLOCK: Option<Tier> = Some(Tier::Landlock);
const NAMESPACES: Option<Tier> = Some(Tier::Namespaces);

/// Builds the table; the third column says whether tier 0 is sure to let it through, the last one names the rows of
/// docs/security.md that it belongs to.
macro_rules! attacks {
    ($($name:ident $tier:ident $bare:literal $rows:literal),* $(,)?) => {
        &[$(Attack { name: stringify!($name), rows: $rows, holds_from: $tier, works_bare: $bare, run: $name }),*]
    };
}

/// The table of attacks. The classes are those of published sandboxes and their known holes.
pub const ATTACKS: &[Attack] = attacks![
    // Files outside.
    make_a_file_outside LANDLOCK true "R-07",
    write_outside_through_a_link LANDLOCK true "R-02, CVE-2026-39861",
    write_outside_through_a_swapped_folder LANDLOCK true "A3, CVE-2026-88968",
    move_a_file_out LANDLOCK true "R-30",
    truncate_a_file_outside LANDLOCK true "R-31",
    remove_a_file_outside LANDLOCK true "R-30",
    change_the_mode_of_a_file_outside NAMESPACES true "R-05",
    change_the_times_of_a_file_outside NAMESPACES true "R-05",
    plant_a_login_script LANDLOCK true "R-07, R-23",
    make_an_absent_settings_file LANDLOCK true "R-07, CVE-2026-25725",
    replace_a_program_of_the_host LANDLOCK false "R-26, A8",
    // Secrets.
    read_a_credential LANDLOCK true "R-24",
    read_a_credential_through_a_link LANDLOCK true "R-02",
    read_a_credential_through_proc_root LANDLOCK true "R-02",
    link_a_credential_into_the_workspace LANDLOCK true "R-08",
    list_a_credential_folder NAMESPACES true "R-24",
    read_the_environment_of_another_process LANDLOCK true "R-24, R-25, A51",
    read_through_the_root_of_another_process LANDLOCK true "R-25",
    // Judges.
    rewrite_a_protected_file NAMESPACES true "A4",
    replace_a_protected_file NAMESPACES true "A4, R-30",
    move_the_folder_of_a_protected_file NAMESPACES true "A4, R-04",
    write_through_the_memory_of_the_shell LANDLOCK false "A17",
    trace_the_shell LANDLOCK false "A17",
    write_into_the_shell LANDLOCK false "A17",
    // Other processes.
    signal_a_process_outside LANDLOCK true "A17, R-25",
    stop_the_guardian LANDLOCK true "A17, A20",
    trace_a_process_outside LANDLOCK false "A17, R-25",
    take_a_descriptor_of_a_process_outside LANDLOCK false "R-21, R-25",
    limit_a_process_outside LANDLOCK true "A17",
    // Network and sockets.
    reach_a_server_of_the_host NAMESPACES true "A16, R-09, R-36",
    reach_an_abstract_socket LANDLOCK true "R-09, R-34",
    reach_a_socket_by_its_path NAMESPACES true "R-06, R-09, R-34",
    reach_the_hypervisor LANDLOCK false "R-28, R-36",
    // Mounts, namespaces, devices, kernel.
    mount_over_a_folder LANDLOCK false "R-29",
    uncover_what_is_hidden LANDLOCK false "R-29",
    change_the_root LANDLOCK false "R-29",
    make_a_user_namespace LANDLOCK false "R-29",
    make_a_namespace_by_clone3 LANDLOCK false "R-29",
    enter_the_namespace_of_another LANDLOCK false "R-29",
    open_a_disk LANDLOCK false "R-28",
    make_a_device LANDLOCK false "R-28",
    open_a_file_by_its_handle LANDLOCK false "R-28",
    write_a_kernel_setting LANDLOCK false "R-28",
    load_a_program_into_the_kernel LANDLOCK false "R-28",
    watch_the_kernel_by_perf LANDLOCK false "R-28",
    handle_page_faults LANDLOCK false "R-28",
    use_the_ring LANDLOCK false "R-28",
    keep_a_key_in_the_kernel LANDLOCK false "R-28",
    gain_rights_at_exec LANDLOCK true "R-25",
    find_an_open_descriptor LANDLOCK false "R-21",
    share_memory_with_the_host NAMESPACES true "R-10",
];

impl Attack {
    /// Says whether the table promises that a tier holds it; `None` where that depends on the host.
    pub fn promise(&self, tier: Tier) -> Option<bool> {
        match tier {
            Tier::SameUser => self.works_bare.then_some(false),
            Tier::Landlock | Tier::Namespaces | Tier::OwnUser => {
                let holds = self.holds_from.is_some_and(|from| tier >= from);
                (holds || self.works_bare).then_some(holds)
            }
        }
    }
}

/// How an attack ended.
pub struct Played {
    pub is_held: bool,
    pub why: String,
}

/// Describes the surroundings of the attacker.
struct Places {
    ground: PathBuf,
    victim: i32,
    port: u16,
    name: String,
    segment: i32,
}

impl Places {
    fn path(&self, name: &str) -> PathBuf {
        self.ground.join(name)
    }
}

/// Plays one attack at a tier. Its own report is held against the files that it left behind.
pub fn play(spawner: &Spawner, ground: &Ground, tier: Tier, attack: &Attack) -> Played {
    // SAFETY: between fork and exec the child makes one system call.
    let mut victim = unsafe {
        std::process::Command::new("/bin/sleep")
            .arg("999")
            .env_clear()
            .env("CANARY", "the secret")
            .stdin(Stdio::null())
            .pre_exec(|| {
                // Every process may trace it: where the attack fails, the sandbox did it.
                libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX, 0, 0, 0);
                Ok(())
            })
            .spawn()
            .unwrap()
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let name = format!("planctl-attack-{}", victim.id());
    let abstract_socket = UnixListener::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
    let by_path = UnixListener::bind(socket_of(&name)).unwrap();
    // SAFETY: makes a segment that is removed below.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600 | libc::IPC_CREAT) };
    let mut command = ground.confined(tier, "");
    // A shell stands between, as in a contract.
    let attacker = std::env::current_exe().unwrap();
    let text = format!("{} __attack {}; exit $?", attacker.display(), attack.name);
    *command.arguments.last_mut().unwrap() = text.into();
    for (variable, value) in [
        ("ATTACK_GROUND", ground.path("").into_os_string()),
        ("ATTACK_VICTIM", victim.id().to_string().into()),
        ("ATTACK_PORT", listener.local_addr().unwrap().port().to_string().into()),
        ("ATTACK_NAME", name.clone().into()),
        ("ATTACK_SEGMENT", segment.to_string().into()),
    ] {
        command.environment.push((variable.into(), value));
    }
    let finished = block_on(run(spawner, &command));
    let mut got_out = match finished.end {
        End::Exited(0) => Some("it says so".to_owned()),
        End::Exited(_) | End::Signalled(_) => None,
        // Its guardian was ended or stopped.
        End::HelperLost | End::TimedOut => Some(format!("{:?}", finished.end)),
        ref other @ (End::IdleTimedOut
        | End::Flooded
        | End::OverLimit(_)
        | End::Cancelled
        | End::NotStarted { .. }) => {
            panic!("{}: {other:?}", attack.name)
        }
    };
    if std::fs::read_to_string(ground.path("outside/victim")).ok().as_deref() != Some("untouched\n") {
        got_out = Some("a file outside was changed".to_owned());
    }
    if victim.try_wait().unwrap().is_some() {
        got_out = Some("a process outside is gone".to_owned());
    }
    victim.kill().ok();
    victim.wait().unwrap();
    // SAFETY: the segment is ours.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
    drop((abstract_socket, by_path));
    std::fs::remove_file(socket_of(&name)).unwrap();
    let errors = String::from_utf8_lossy(&finished.stderr.head).into_owned();
    Played { is_held: got_out.is_none(), why: got_out.unwrap_or_default() + " " + errors.trim() }
}

/// Plays the attack that the second argument names; the life of a process within the sandbox.
pub fn attack_main() -> i32 {
    let name = std::env::args().nth(2).unwrap();
    if name == "serve_itself" {
        return i32::from(!serves_itself().unwrap_or_default());
    }
    match name.as_str() {
        "start_many" => return start_many(false),
        "start_many_as_others" => return start_many(true),
        "fork_bomb" => fork_bomb(),
        _ => {}
    }
    let variable = |name: &str| std::env::var(name).unwrap();
    let places = Places {
        ground: variable("ATTACK_GROUND").into(),
        victim: variable("ATTACK_VICTIM").parse().unwrap(),
        port: variable("ATTACK_PORT").parse().unwrap(),
        name: variable("ATTACK_NAME"),
        segment: variable("ATTACK_SEGMENT").parse().unwrap(),
    };
    let attack = ATTACKS.iter().find(|attack| attack.name == name).unwrap();
    match (attack.run)(&places) {
        Ok(true) => 0,
        Ok(false) => 10,
        Err(error) => {
            eprintln!("{error}");
            10
        }
    }
}

fn made() -> std::fs::File {
    std::fs::OpenOptions::new().create(true).append(true).open("made").unwrap()
}

/// Starts at most 200 threads, which count as processes to the kernel and not to a guardian, each as another user where
/// that is wanted; notes how many it got.
fn start_many(as_others: bool) -> i32 {
    let mut made = made();
    for user in 1..=200 {
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            if as_others {
                // SAFETY: changes this thread alone, as the C library's own call would not.
                unsafe { libc::syscall(libc::SYS_setresuid, user, 0, 0) };
            }
            tell.send(()).ok();
            std::thread::sleep(Duration::from_secs(999));
        });
        if thread.is_err() {
            return 0;
        }
        told.recv().unwrap();
        made.write_all(b"x").unwrap();
    }
    10
}

/// Forks as fast as it goes, and becomes users by the way.
fn fork_bomb() -> ! {
    let mut made = made();
    loop {
        // SAFETY: this process has one thread.
        if unsafe { libc::fork() } == 0 {
            made.write_all(b"x").ok();
            // SAFETY: changes this process alone, which stays root beside.
            unsafe { libc::setresuid(std::process::id() % 60_000, 0, 0) };
        }
    }
}

fn serves_itself() -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut caller = TcpStream::connect(listener.local_addr()?)?;
    let (mut called, _) = listener.accept()?;
    caller.write_all(b"x")?;
    let mut byte = [0];
    called.read_exact(&mut byte)?;
    Ok(byte == *b"x")
}

/// Sockets of services lie in folders that every user can enter.
fn socket_of(name: &str) -> PathBuf {
    Path::new("/tmp").join(name)
}

fn check(result: i64) -> io::Result<bool> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(true) }
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn make_a_file_outside(places: &Places) -> io::Result<bool> {
    std::fs::write(places.path("outside/made"), "x").map(|()| true)
}

/// CVE-2026-39861: a link in the workspace is followed out of it.
fn write_outside_through_a_link(places: &Places) -> io::Result<bool> {
    std::os::unix::fs::symlink(places.path("outside/victim"), "link")?;
    std::fs::write("link", "x").map(|()| true)
}

/// CVE-2026-88968: the file that was looked at is another one when it is written.
fn write_outside_through_a_swapped_folder(places: &Places) -> io::Result<bool> {
    std::fs::create_dir("folder")?;
    std::fs::write("folder/victim", "mine")?;
    let looked_at = std::fs::metadata("folder/victim")?;
    std::fs::rename("folder", "old")?;
    std::os::unix::fs::symlink(places.path("outside"), "folder")?;
    std::fs::write("folder/victim", "x").map(|()| looked_at.is_file())
}

fn move_a_file_out(places: &Places) -> io::Result<bool> {
    std::fs::write("mine", "x")?;
    std::fs::rename("mine", places.path("outside/victim")).map(|()| true)
}

fn truncate_a_file_outside(places: &Places) -> io::Result<bool> {
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::truncate(text(&places.path("outside/victim")).as_ptr(), 0) }.into())
}

fn remove_a_file_outside(places: &Places) -> io::Result<bool> {
    std::fs::remove_file(places.path("outside/victim")).map(|()| true)
}

fn change_the_mode_of_a_file_outside(places: &Places) -> io::Result<bool> {
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(places.path("outside/victim"), everybody).map(|()| true)
}

fn change_the_times_of_a_file_outside(places: &Places) -> io::Result<bool> {
    let old = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    let path = text(&places.path("outside/victim"));
    // SAFETY: the path ends with NUL, and there are two times.
    check(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), [old, old].as_ptr(), 0) }.into())
}

fn plant_a_login_script(places: &Places) -> io::Result<bool> {
    std::fs::write(places.path("home/.bashrc"), "evil").map(|()| true)
}

/// CVE-2026-25725: settings that are protected only where they exist.
fn make_an_absent_settings_file(places: &Places) -> io::Result<bool> {
    std::fs::create_dir(places.path("home/.agent"))?;
    std::fs::write(places.path("home/.agent/settings.json"), "{}").map(|()| true)
}

fn replace_a_program_of_the_host(_: &Places) -> io::Result<bool> {
    let path = format!("/usr/local/bin/planctl-attack-{}", std::process::id());
    std::fs::write(&path, "evil")?;
    std::fs::remove_file(path).map(|()| true)
}

fn read_a_credential(places: &Places) -> io::Result<bool> {
    let key = std::fs::read_to_string(places.path("home/.ssh/id")).is_ok_and(|text| text == "the key\n");
    let word = std::fs::read_to_string(places.path("home/.netrc")).is_ok_and(|text| text == "the password\n");
    Ok(key || word)
}

fn read_a_credential_through_a_link(places: &Places) -> io::Result<bool> {
    std::os::unix::fs::symlink(places.path("home"), "link")?;
    std::fs::read_to_string("link/.ssh/id").map(|text| text == "the key\n")
}

fn read_a_credential_through_proc_root(places: &Places) -> io::Result<bool> {
    let path = format!("/proc/self/root{}", places.path("home/.ssh/id").display());
    std::fs::read_to_string(path).map(|text| text == "the key\n")
}

fn link_a_credential_into_the_workspace(places: &Places) -> io::Result<bool> {
    std::fs::hard_link(places.path("home/.ssh/id"), "id")?;
    std::fs::read_to_string("id").map(|text| text == "the key\n")
}

fn list_a_credential_folder(places: &Places) -> io::Result<bool> {
    Ok(std::fs::read_dir(places.path("home/.ssh"))?.count() > 0)
}

fn read_the_environment_of_another_process(places: &Places) -> io::Result<bool> {
    let environment = std::fs::read(format!("/proc/{}/environ", places.victim))?;
    Ok(environment.windows(10).any(|window| window == b"the secret"))
}

fn read_through_the_root_of_another_process(places: &Places) -> io::Result<bool> {
    let path = format!("/proc/{}/root{}", places.victim, places.path("home/.ssh/id").display());
    std::fs::read_to_string(path).map(|text| text == "the key\n")
}

fn rewrite_a_protected_file(_: &Places) -> io::Result<bool> {
    std::fs::write("tests/check.sh", "exit 0\n").map(|()| true)
}

fn replace_a_protected_file(_: &Places) -> io::Result<bool> {
    std::fs::write("mine", "exit 0\n")?;
    std::fs::rename("mine", "tests/check.sh").map(|()| true)
}

fn move_the_folder_of_a_protected_file(_: &Places) -> io::Result<bool> {
    std::fs::rename("tests", "old").map(|()| true)
}

fn shell() -> i32 {
    std::os::unix::process::parent_id().cast_signed()
}

fn write_through_the_memory_of_the_shell(_: &Places) -> io::Result<bool> {
    std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/mem", shell())).map(|_| true)
}

fn trace(process: i32) -> io::Result<bool> {
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: attaches without touching memory; our end detaches.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, none, none) })
}

/// Cheat 49: code under test ends the contract's own shell as it likes.
fn trace_the_shell(_: &Places) -> io::Result<bool> {
    trace(shell())
}

fn write_into_the_shell(_: &Places) -> io::Result<bool> {
    let mut byte = [0_u8];
    let ours = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let program = std::fs::read_to_string(format!("/proc/{}/maps", shell()))?;
    let stack = program.lines().find(|line| line.ends_with("[stack]")).unwrap_or_default();
    let address = usize::from_str_radix(stack.split('-').next().unwrap_or_default(), 16).unwrap_or_default();
    let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: 1 };
    // SAFETY: reads a byte of the shell into ours, then writes the same byte back.
    unsafe {
        check(libc::process_vm_readv(shell(), &raw const ours, 1, &raw const theirs, 1, 0) as i64)?;
        check(libc::process_vm_writev(shell(), &raw const ours, 1, &raw const theirs, 1, 0) as i64)
    }
}

fn signal_a_process_outside(places: &Places) -> io::Result<bool> {
    // SAFETY: signals our own victim.
    check(unsafe { libc::kill(places.victim, libc::SIGTERM) }.into())
}

/// Cheats 52 and 53: every process above the shell is planctl's.
fn stop_the_guardian(_: &Places) -> io::Result<bool> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", shell()))?;
    let line = status.lines().find(|line| line.starts_with("PPid:")).unwrap_or_default();
    let guardian: i32 =
        line.split_ascii_whitespace().nth(1).and_then(|pid| pid.parse().ok()).unwrap_or_default();
    if guardian <= 1 {
        // The first process of the namespace: the kernel shields it, and its guardian isn't in view.
        return Ok(false);
    }
    // SAFETY: signal 0 only asks whether a signal may be sent.
    check(unsafe { libc::kill(guardian, 0) }.into())
}

fn trace_a_process_outside(places: &Places) -> io::Result<bool> {
    trace(places.victim)
}

fn take_a_descriptor_of_a_process_outside(places: &Places) -> io::Result<bool> {
    // SAFETY: calls that return new descriptors.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, places.victim, 0);
        check(process)?;
        check(libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0))
    }
}

fn limit_a_process_outside(places: &Places) -> io::Result<bool> {
    let limit = libc::rlimit { rlim_cur: 512, rlim_max: 512 };
    // SAFETY: sets a limit that the victim never meets.
    check(
        unsafe { libc::prlimit(places.victim, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) }
            .into(),
    )
}

fn reach_a_server_of_the_host(places: &Places) -> io::Result<bool> {
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, places.port));
    TcpStream::connect_timeout(&server, Duration::from_secs(5)).map(|_| true)
}

fn reach_an_abstract_socket(places: &Places) -> io::Result<bool> {
    UnixStream::connect_addr(&UnixAddress::from_abstract_name(&places.name)?).map(|_| true)
}

/// The socket of a container engine, a session bus, a terminal multiplexer (cheat 54).
fn reach_a_socket_by_its_path(places: &Places) -> io::Result<bool> {
    UnixStream::connect(socket_of(&places.name)).map(|_| true)
}

fn mount(kind: &str, target: &Path) -> io::Result<bool> {
    let (kind, target) = (CString::new(kind)?, text(target));
    // SAFETY: all texts end with NUL.
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) }.into())
}

/// A socket of the virtual machine's own kind passes every rule about addresses and files.
fn reach_the_hypervisor(_: &Places) -> io::Result<bool> {
    // SAFETY: makes a socket that goes with the process.
    check(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) }.into())
}

fn mount_over_a_folder(places: &Places) -> io::Result<bool> {
    std::fs::create_dir("point")?;
    mount("tmpfs", &places.path("workspace/point"))?;
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::umount2(text(&places.path("workspace/point")).as_ptr(), libc::MNT_DETACH) }.into())
}

fn uncover_what_is_hidden(places: &Places) -> io::Result<bool> {
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::umount2(text(&places.path("home/.ssh")).as_ptr(), libc::MNT_DETACH) }.into())?;
    read_a_credential(places)
}

fn change_the_root(places: &Places) -> io::Result<bool> {
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::chroot(text(&places.path("workspace")).as_ptr()) }.into())
}

fn make_a_user_namespace(_: &Places) -> io::Result<bool> {
    // SAFETY: changes this process alone.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into())
}

fn make_a_namespace_by_clone3(_: &Places) -> io::Result<bool> {
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER.cast_unsigned().into();
    arguments[4] = libc::SIGCHLD.cast_unsigned().into();
    // SAFETY: the child of this process of one thread ends at once.
    let child = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) };
    if child == 0 {
        std::process::exit(0);
    }
    check(child)
}

fn enter_the_namespace_of_another(places: &Places) -> io::Result<bool> {
    let namespace = std::fs::File::open(format!("/proc/{}/ns/mnt", places.victim))?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) }.into())
}

fn open_a_disk(_: &Places) -> io::Result<bool> {
    let is_disk = |path: &Path| {
        use std::os::unix::fs::FileTypeExt;
        path.metadata().is_ok_and(|found| found.file_type().is_block_device())
    };
    let mut disks =
        std::fs::read_dir("/dev")?.flatten().map(|entry| entry.path()).filter(|path| is_disk(path));
    Ok(disks.any(|disk| std::fs::File::open(disk).is_ok()))
}

fn make_a_device(_: &Places) -> io::Result<bool> {
    // SAFETY: the path ends with NUL; the device is the one of the memory's zeroes.
    check(unsafe { libc::mknod(c"device".as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 5)) }.into())?;
    std::fs::File::open("device").map(|_| true)
}

fn open_a_file_by_its_handle(places: &Places) -> io::Result<bool> {
    // The kernel's file_handle: its length, a kind, and room for the rest.
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0;
    let path = text(&places.path("home"));
    // SAFETY: the handle is as long as it says.
    unsafe {
        check(libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        ))?;
        let folder = std::fs::File::open(places.path("workspace"))?;
        check(libc::syscall(libc::SYS_open_by_handle_at, folder.as_raw_fd(), handle.as_ptr(), libc::O_RDONLY))
    }
}

fn write_a_kernel_setting(_: &Places) -> io::Result<bool> {
    let paths = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"];
    Ok(paths.iter().any(|path| std::fs::OpenOptions::new().write(true).open(path).is_ok()))
}

fn load_a_program_into_the_kernel(_: &Places) -> io::Result<bool> {
    // BPF_MAP_CREATE: an array of one entry.
    let map = [2_u32, 4, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the kernel reads as many bytes as it is told.
    check(unsafe { libc::syscall(libc::SYS_bpf, 0, map.as_ptr(), size_of_val(&map)) })
}

fn watch_the_kernel_by_perf(_: &Places) -> io::Result<bool> {
    // PERF_TYPE_SOFTWARE, the size of the first version, PERF_COUNT_SW_CPU_CLOCK.
    let mut event = [0_u32; 16];
    (event[0], event[1]) = (1, 64);
    // SAFETY: the structure is as long as it says.
    check(unsafe { libc::syscall(libc::SYS_perf_event_open, event.as_ptr(), 0, -1, -1, 0) })
}

fn handle_page_faults(_: &Places) -> io::Result<bool> {
    // SAFETY: returns a descriptor.
    check(unsafe { libc::syscall(libc::SYS_userfaultfd, 1) })
}

fn use_the_ring(_: &Places) -> io::Result<bool> {
    let mut parameters = [0_u32; 30];
    // SAFETY: the kernel's structure has 120 bytes.
    check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

fn keep_a_key_in_the_kernel(_: &Places) -> io::Result<bool> {
    /// `KEY_SPEC_PROCESS_KEYRING`.
    const KEYRING: i32 = -2;
    // SAFETY: all texts end with NUL, and the payload has one byte.
    check(unsafe {
        libc::syscall(libc::SYS_add_key, c"user".as_ptr(), c"a".as_ptr(), c"x".as_ptr(), 1_usize, KEYRING)
    })
}

fn gain_rights_at_exec(_: &Places) -> io::Result<bool> {
    // SAFETY: asks a question.
    Ok(unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 0)
}

fn find_an_open_descriptor(_: &Places) -> io::Result<bool> {
    // SAFETY: asks about numbers, whether they are open or not.
    Ok((3..256).any(|number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0))
}

fn share_memory_with_the_host(places: &Places) -> io::Result<bool> {
    // SAFETY: maps a segment of the test's; nothing is written.
    let at = unsafe { libc::shmat(places.segment, std::ptr::null(), libc::SHM_RDONLY) };
    check(at as i64)
}
