//! Gives a command a view of the host of its own: mounts, processes, devices, loopback.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use nix::libc;

use super::restrict::DEVICES;
use super::users::Range;
use super::wire::Confinement;

/// Folders that are empty inside and that the command may write: its files there go with it.
const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];
/// A folder of sockets by which services of the host are reached; empty inside.
const SERVICES: &str = "/run";
/// Names the entries of the services' folder that a command needs to find its programs.
const SERVICES_SHOWN: [&str; 2] = ["/run/current-system", "/run/wrappers"];
/// Names those that it needs to find hosts by name. Their sockets lead out of a network of its own.
const RESOLVERS: [&str; 4] = ["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/nscd"];
/// The attributes of mounts that a command is shown.
const SHOWN: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
/// The most bytes in a private folder in memory.
const PRIVATE_OPTIONS: &CStr = c"mode=1777,size=50%";

/// The namespaces that tier 1b has, as flags of `clone`.
pub(super) fn flags(confinement: &Confinement) -> i32 {
    let network = if confinement.has_own_network { libc::CLONE_NEWNET } else { 0 };
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | network
}

/// Maps the users of a new namespace to a range of their own; where there is none to themselves: all of them where we are
/// root, else our own alone.
pub(super) fn map_users(process: i32, range: Option<&Range>) -> io::Result<()> {
    let write = |name: &str, text: &str| std::fs::write(format!("/proc/{process}/{name}"), text);
    if let Some(range) = range {
        write("uid_map", &range.map())?;
        return write("gid_map", &range.map());
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        write("uid_map", &identity_map("uid_map")?)?;
        return write("gid_map", &identity_map("gid_map")?);
    }
    write("setgroups", "deny")?;
    write("uid_map", &format!("{0} {0} 1\n", user.as_raw()))?;
    write("gid_map", &format!("{0} {0} 1\n", group.as_raw()))
}

/// Reads which ids there are here, and maps each to itself.
fn identity_map(map: &str) -> io::Result<String> {
    let ours = std::fs::read_to_string(format!("/proc/self/{map}"))?;
    let lines = ours.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some(format!("{first} {first} {count}\n"))
    });
    Ok(lines.collect())
}

/// Copies the trees that a command may write or is shown.
pub(super) fn copy_trees(confinement: &Confinement) -> io::Result<Vec<Tree>> {
    let mut copies = Vec::new();
    for path in &confinement.writable {
        copies.extend(Tree::clone_mounts(path, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV)?);
    }
    for path in &confinement.shown {
        copies.extend(Tree::clone_mounts(path, SHOWN)?);
    }
    Ok(copies)
}

/// Arranges mounts and loopback in the namespaces that this process is the first one of. The trees are given where they
/// had to be made outside.
pub(super) fn set_up_mounts(confinement: &Confinement, given: Option<Vec<Tree>>) -> io::Result<()> {
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let mut attached = match given {
        Some(trees) => trees,
        None => copy_trees(confinement)?,
    };
    let resolvers = if confinement.has_own_network { &[][..] } else { &RESOLVERS[..] };
    let services = SERVICES_SHOWN.iter().chain(resolvers).filter_map(|path| CString::new(*path).ok());
    for path in services {
        attached.extend(Tree::clone_mounts(&path, SHOWN)?);
    }
    let devices = DEVICES.iter().filter_map(|name| CString::new(format!("/dev/{name}")).ok());
    let mut nodes = Vec::new();
    for device in devices {
        nodes.extend(Tree::clone_mounts(&device, 0)?);
    }
    set_attributes(
        libc::AT_FDCWD,
        c"/",
        libc::AT_RECURSIVE,
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID,
    )?;
    let closed = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(Some(c"proc"), c"/proc", Some(c"proc"), closed | libc::MS_RDONLY, None)?;
    make_devices(&nodes)?;
    mount_layers(confinement, &attached)?;
    pin_folders(confinement)?;
    if confinement.has_own_network {
        raise_loopback()?;
    }
    Ok(())
}

/// Covers what is private or hidden and attaches what is shown or writable, from the outermost path to the innermost, so
/// that of two that lie in each other the inner one decides.
fn mount_layers(confinement: &Confinement, attached: &[Tree]) -> io::Result<()> {
    enum Layer<'a> {
        Private(&'a CStr),
        Hidden(&'a CStr),
        Attached(&'a Tree),
    }
    let private = PRIVATE.map(CString::new).into_iter().collect::<Result<Vec<_>, _>>()?;
    let services = CString::new(SERVICES)?;
    let mut layers: Vec<(&CStr, Layer<'_>)> =
        private.iter().map(|path| (path.as_c_str(), Layer::Private(path))).collect();
    layers.extend(
        [&services].into_iter().chain(&confinement.hidden).map(|path| (path.as_c_str(), Layer::Hidden(path))),
    );
    layers.extend(attached.iter().map(|tree| (tree.path.as_c_str(), Layer::Attached(tree))));
    // The sort is stable: a mount at the very path of a cover comes after it.
    layers.sort_by_key(|(path, _)| path.to_bytes().len());
    let mut covered = Vec::new();
    for (_, layer) in layers {
        match layer {
            // A link leads to a folder that is covered by its own name, or is read-only.
            Layer::Private(path) if is_folder(path) => mount_memory(path, PRIVATE_OPTIONS)?,
            Layer::Hidden(path) if is_folder(path) => {
                mount_memory(path, c"mode=0755,size=1m")?;
                covered.push(path);
            }
            Layer::Hidden(path)
                if path_of(path).symlink_metadata().is_ok_and(|found| !found.is_symlink()) =>
            {
                // An empty file that nobody can fill.
                if let Some(mut empty) = Tree::clone_mounts(c"/dev/null", 0)? {
                    path.clone_into(&mut empty.path);
                    empty.attach()?;
                }
            }
            Layer::Private(_) | Layer::Hidden(_) => {}
            Layer::Attached(tree) => {
                tree.attach()?;
                covered.retain(|path| *path != tree.path.as_c_str());
            }
        }
    }
    for path in covered {
        set_attributes(libc::AT_FDCWD, path, 0, libc::MOUNT_ATTR_RDONLY)?;
    }
    Ok(())
}

fn mount_memory(path: &CStr, options: &CStr) -> io::Result<()> {
    mount(Some(c"tmpfs"), path, Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV, Some(options))
}

fn is_folder(path: &CStr) -> bool {
    path_of(path).symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Makes a folder of the few devices that a command needs; without it root could open every disk.
fn make_devices(nodes: &[Tree]) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount(Some(c"tmpfs"), c"/dev", Some(c"tmpfs"), flags, Some(c"mode=0755,size=1m"))?;
    for node in nodes {
        node.attach()?;
    }
    for (link, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        std::os::unix::fs::symlink(target, Path::new("/dev").join(link))?;
    }
    for folder in ["/dev/pts", "/dev/shm"] {
        std::fs::create_dir(folder)?;
    }
    let options = Some(c"newinstance,ptmxmode=0666,mode=620");
    mount(Some(c"devpts"), c"/dev/pts", Some(c"devpts"), flags, options)?;
    mount_memory(c"/dev/shm", PRIVATE_OPTIONS)?;
    set_attributes(libc::AT_FDCWD, c"/dev", 0, libc::MOUNT_ATTR_RDONLY)
}

/// Makes folders that can't be moved away, and files in them that can't be written.
fn pin_folders(confinement: &Confinement) -> io::Result<()> {
    let mut pinned: Vec<&CString> = confinement.pinned.iter().collect();
    pinned.sort_by_key(|path| path.as_bytes().len());
    for (paths, attributes) in
        [(pinned, 0), (confinement.read_only.iter().collect(), libc::MOUNT_ATTR_RDONLY)]
    {
        for path in paths {
            if path_of(path).symlink_metadata().is_ok_and(|found| !found.is_symlink())
                && let Some(tree) = Tree::clone_mounts(path, attributes)?
            {
                tree.attach()?;
            }
        }
    }
    Ok(())
}

/// Brings the loopback device up.
fn raise_loopback() -> io::Result<()> {
    // SAFETY: the kernel gets a structure of its own layout, and the descriptor is ours alone.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request).into())
    }
}

/// A copy of a part of the host's files, to be attached where it was.
pub(super) struct Tree {
    pub(super) path: CString,
    pub(super) copy: OwnedFd,
}

impl Tree {
    /// Copies what is at a path, with the mounts beneath it; `None` where nothing is there.
    fn clone_mounts(path: &CStr, attributes: u64) -> io::Result<Option<Tree>> {
        let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE.cast_unsigned();
        // SAFETY: the path ends with NUL; the call returns a new descriptor or an error.
        let copy = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
        if let Err(error) = check(copy) {
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: the number is a descriptor that nobody else has.
        let copy = unsafe { OwnedFd::from_raw_fd(copy as i32) };
        if attributes != 0 {
            let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
            set_attributes(copy.as_raw_fd(), c"", flags, attributes)?;
        }
        Ok(Some(Tree { path: path.to_owned(), copy }))
    }

    /// Has its owners be other users, as the user namespace maps them, and cuts it off from the mounts that it was copied
    /// from, so that nothing that is mounted in it shows on the host.
    pub(super) fn map_owners(&self, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let change = libc::mount_attr {
            attr_set: libc::MOUNT_ATTR_IDMAP,
            attr_clr: 0,
            propagation: libc::MS_PRIVATE,
            userns_fd: u64::from(namespace.as_raw_fd().cast_unsigned()),
        };
        change_mount(self.copy.as_raw_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, &change)
    }

    /// Attaches it, in a private or hidden folder under a name made for it.
    fn attach(&self) -> io::Result<()> {
        let place = path_of(&self.path);
        if place.symlink_metadata().is_err() {
            if let Some(parent) = place.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if self.is_folder()? {
                std::fs::create_dir(&place)?;
            } else {
                std::fs::File::create(&place)?;
            }
        }
        /// `MOVE_MOUNT_F_EMPTY_PATH`.
        const FROM_DESCRIPTOR: u32 = 4;
        // SAFETY: both paths end with NUL and the descriptor is open.
        check(unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.copy.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                self.path.as_ptr(),
                FROM_DESCRIPTOR,
            )
        })
    }

    fn is_folder(&self) -> io::Result<bool> {
        let found = rustix::fs::fstat(&self.copy)?;
        Ok(rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Directory)
    }
}

fn path_of(text: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.to_bytes()))
}

pub(super) fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let text = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: every text ends with NUL or is absent.
    check(unsafe {
        libc::mount(text(source), target.as_ptr(), text(kind), flags, text(options).cast()).into()
    })
}

/// Adds attributes to a mount.
fn set_attributes(folder: i32, path: &CStr, flags: i32, attributes: u64) -> io::Result<()> {
    change_mount(
        folder,
        path,
        flags,
        &libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 },
    )
}

fn change_mount(folder: i32, path: &CStr, flags: i32, change: &libc::mount_attr) -> io::Result<()> {
    // SAFETY: the path ends with NUL, and the structure is passed with its size.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(change),
            size_of::<libc::mount_attr>(),
        )
    })
}
