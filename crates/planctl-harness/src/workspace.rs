//! The workspace: which one it is, who may run gates in it, and its plan files.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustix::fs::{AtFlags, CWD, FlockOperation, StatxFlags, flock, statx};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::beneath::{Unreadable, open_anywhere, read_capped};
use crate::digest::digest_of;
use crate::git::clean::GitFolders;
use crate::git::{git_folder, git_top_level};

/// The most bytes of a plan file (DESIGN 12).
pub const PLAN_BYTES_MAX: u64 = 1024 * 1024;

/// How the files begin and end that hold a plan's next text until it takes the plan's place.
const DRAFT: (&str, &str) = (".planctl-", ".tmp");
/// Leaves such files out of what git looks at: they come and go while a run is under way.
pub(crate) const NO_DRAFTS: &str = ":(exclude,glob)**/.planctl-*.tmp";

/// Returns what tells this host from others: `/etc/machine-id`, else its name. It is read once: a process stays what it was.
pub fn host_id() -> &'static str {
    static HOST: LazyLock<String> = LazyLock::new(|| {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        if !machine.trim().is_empty() {
            return machine.trim().to_owned();
        }
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    });
    &HOST
}

/// Returns what tells this start of the host from others; empty where the kernel doesn't say.
pub fn boot_id() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    });
    &BOOT
}

/// The identity of a folder, by which another one in its place is noticed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FolderIdentity {
    host: String,
    boot: String,
    device: u64,
    inode: u64,
}

impl FolderIdentity {
    /// Looks at a path; a link is not followed.
    ///
    /// # Errors
    ///
    /// When nothing stands there.
    pub fn of(path: &Path) -> io::Result<FolderIdentity> {
        let found = path.symlink_metadata()?;
        Ok(FolderIdentity {
            host: host_id().to_owned(),
            boot: boot_id().to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Says what stands under a path in place of this folder; `None` where it is this one, nothing stands there, or nobody
    /// on this host can tell.
    pub fn replaced_at(&self, path: &Path) -> Option<&'static str> {
        let now = FolderIdentity::of(path).ok().filter(|now| now.host == self.host)?;
        // Devices may be counted anew when the host starts.
        let is_same_device = now.device == self.device || now.boot != self.boot;
        if now.inode == self.inode && is_same_device {
            return None;
        }
        Some(if path.is_symlink() { "a link" } else { "another folder" })
    }
}

/// The identity of the git repository of a workspace, by which another one in its place is noticed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RepositoryIdentity {
    own: FolderIdentity,
    common: FolderIdentity,
    /// Where links lead that stand in place of what git keeps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    links: BTreeMap<String, String>,
}

impl RepositoryIdentity {
    /// Looks which repository a folder lies in; `None` where it lies in none.
    pub fn of(workspace: &Path) -> Option<RepositoryIdentity> {
        let (folders, _) = GitFolders::find(workspace)?;
        RepositoryIdentity::of_folders(&folders)
    }

    fn of_folders(folders: &GitFolders) -> Option<RepositoryIdentity> {
        let identity = |folder: &Path| FolderIdentity::of(folder).ok();
        let links = folders.links().map(|(name, target)| (name, target.to_string_lossy().into_owned()));
        Some(RepositoryIdentity {
            own: identity(&folders.own)?,
            common: identity(&folders.common)?,
            links: links.collect(),
        })
    }

    /// Says in which way a folder lies in another repository than this one, or in one whose parts links lead elsewhere; `None`
    /// where it is this one, or nobody on this host can tell.
    pub fn replaced_at(&self, workspace: &Path) -> Option<String> {
        let Some((folders, _)) = GitFolders::find(workspace) else {
            return Some("lies in no repository".to_owned());
        };
        let is_other =
            self.own.replaced_at(&folders.own).or_else(|| self.common.replaced_at(&folders.common));
        if is_other.is_some() {
            return Some(format!("lies in the repository {}", folders.own.display()));
        }
        let now = RepositoryIdentity::of_folders(&folders)?;
        let (link, target) = now.links.iter().find(|(link, target)| self.links.get(*link) != Some(target))?;
        Some(format!("has a link {} that leads to {target}", folders.common.join(link).display()))
    }
}

/// The right to run gates in a workspace, on this host (P9).
///
/// Hand [`descriptors`](WorkspaceLock::descriptors) to what runs there: the lock then lasts until the last of those
/// trees is dead, even when planctl is killed.
#[derive(Clone, Debug)]
pub struct WorkspaceLock {
    descriptors: Vec<Arc<OwnedFd>>,
}

impl WorkspaceLock {
    /// Takes the lock without waiting; `None` when somebody else has it.
    ///
    /// `folder` is of one state directory, and holds one small file per workspace. A process that runs gates under another
    /// state directory is kept out by a lock on the workspace's own git folder, else on the workspace, where the file system
    /// has such locks.
    ///
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn try_take(folder: &Path, workspace: &Path) -> io::Result<Option<WorkspaceLock>> {
        let Some(file) = try_lock(lock_file(folder, workspace)?)? else { return Ok(None) };
        let mut descriptors = vec![Arc::new(OwnedFd::from(file))];
        // A contract may lock the workspace itself, with `flock . make`, so the git folder goes before it.
        if let Ok(own) = File::open(workspace.join(".git")).or_else(|_| File::open(workspace)) {
            match flock(&own, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => descriptors.push(Arc::new(own.into())),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                // Such as a network file system; the lock of the state directory is held.
                Err(_) => {}
            }
        }
        Ok(Some(WorkspaceLock { descriptors }))
    }

    /// Returns the descriptors that carry the lock.
    pub fn descriptors(&self) -> Vec<Arc<OwnedFd>> {
        self.descriptors.clone()
    }
}

/// Keeps the marks in a plan's file as they are, in all processes of a state directory.
#[derive(Debug)]
pub struct PlanFileLock {
    _file: File,
}

impl PlanFileLock {
    /// Has nobody draw marks into a plan's file for as long as this lives; waits for whoever draws some at this moment.
    ///
    /// `folder` is of one state directory, and holds one small file per plan.
    ///
    /// # Errors
    ///
    /// When the file of the lock can't be made.
    pub fn share(folder: &Path, plan_file: &Path) -> io::Result<PlanFileLock> {
        let file = lock_file(folder, plan_file)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
        Ok(PlanFileLock { _file: file })
    }

    /// Takes the right to draw marks, without waiting; `None` while somebody has them stay as they are.
    ///
    /// # Errors
    ///
    /// As for [`PlanFileLock::share`].
    pub fn try_take(folder: &Path, plan_file: &Path) -> io::Result<Option<PlanFileLock>> {
        Ok(try_lock(lock_file(folder, plan_file)?)?.map(|file| PlanFileLock { _file: file }))
    }
}

/// Opens the file by which a path is locked within one state directory.
fn lock_file(folder: &Path, path: &Path) -> io::Result<File> {
    let digest = digest_of(path.as_os_str().as_encoded_bytes());
    let name = digest.as_str().trim_start_matches("sha256:");
    let path = folder.join(format!("{name}.lock"));
    let open = || File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder).and_then(|()| open())
        }
        opened => opened,
    }
}

/// Locks a file without waiting; `None` when somebody else has it.
fn try_lock(file: File) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a plan file.
///
/// # Errors
///
/// One of its own for each of: missing, a directory, a pipe, a device, unreadable, too large (row 64); never hangs.
pub fn read_plan(path: &Path) -> Result<Vec<u8>, Unreadable> {
    read_capped(open_anywhere(path)?, PLAN_BYTES_MAX)
}

/// Replaces a plan file whole: at each moment, either the old text or the new one is there.
///
/// Keeps mode and, where allowed, owner; a link is followed and stays a link. Returns `false`, and writes nothing, when the
/// file no longer holds `old`: another writer's change is never overwritten (DESIGN 4).
///
/// # Errors
///
/// When the folder or the file cannot be written; the old text is then still there.
pub fn write_plan(path: &Path, old: &[u8], new: &[u8]) -> io::Result<bool> {
    let path = path.canonicalize()?;
    let found = std::fs::metadata(&path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let folder = path.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    let mut file = draft_for(folder, &found.permissions())?;
    file.write_all(new)?;
    file.as_file().set_permissions(found.permissions())?;
    let ours = file.as_file().metadata()?;
    if (ours.uid(), ours.gid()) != (found.uid(), found.gid()) {
        // Giving a file away takes rights that most don't have; it stays ours then.
        std::os::unix::fs::fchown(file.as_file(), Some(found.uid()), Some(found.gid())).ok();
    }
    file.as_file().sync_all()?;
    if read_plan(&path).map_err(io::Error::other)? != old {
        return Ok(false);
    }
    file.persist(&path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    Ok(true)
}

/// Makes a plan file with its folders, whole or not at all. Returns `false`, and writes nothing, where there is a file already.
///
/// # Errors
///
/// When the folder or the file cannot be written.
pub fn create_plan(path: &Path, text: &[u8]) -> io::Result<bool> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // The umask of the person takes its part of these.
    let mut file = draft_for(folder, &Permissions::from_mode(0o666))?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error.error),
    }
    File::open(folder)?.sync_all()?;
    Ok(true)
}

/// Begins the draft of a plan: among git's own files where the plan is in a checkout, since `git add --all` fails where it finds an
/// entry that is gone when it reads it; beside the plan where they can't be written or a file can't be moved from there.
fn draft_for(folder: &Path, permissions: &Permissions) -> io::Result<NamedTempFile> {
    // A file is moved within one mount alone, also where another one is of the same device.
    let mount =
        |path: &Path| statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).map(|found| found.stx_mnt_id);
    let own = mount(folder)?;
    let git = git_top_level(folder).and_then(git_folder).filter(|git| mount(git) == Ok(own));
    match git.map(|git| draft_in(&git, permissions)) {
        Some(Ok(draft)) => Ok(draft),
        Some(Err(_)) | None => draft_in(folder, permissions),
    }
}

/// Begins a draft that is locked while its planctl lives, and removes those of killed ones.
fn draft_in(folder: &Path, permissions: &Permissions) -> io::Result<NamedTempFile> {
    sweep_drafts(folder)?;
    loop {
        let mut draft = tempfile::Builder::new();
        let draft = draft.prefix(DRAFT.0).suffix(DRAFT.1).permissions(permissions.clone());
        let file = draft.tempfile_in(folder)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if file.path().try_exists()? => return Ok(file),
            // The sweep of another planctl came before the lock.
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes drafts whose planctl was killed while it wrote them: nobody locks them any more.
fn sweep_drafts(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if !(name.starts_with(DRAFT.0.as_bytes()) && name.ends_with(DRAFT.1.as_bytes())) {
            continue;
        }
        let Ok(draft) = open_anywhere(&entry.path()) else { continue };
        if flock(&draft, FlockOperation::NonBlockingLockExclusive).is_ok() {
            match std::fs::remove_file(entry.path()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, Instant};

    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    use super::*;

    #[test]
    fn p9_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let take = |workspace: &str| WorkspaceLock::try_take(folder.path(), Path::new(workspace)).unwrap();
        let first = take("/one").unwrap();
        assert!(take("/one").is_none());
        assert!(take("/two").is_some());
        let inherited = first.descriptors();
        drop(first);
        assert!(take("/one").is_none(), "whoever inherited it still has it");
        drop(inherited);
        assert!(take("/one").is_some());
    }

    #[test]
    fn plans_that_several_write_at_once_into_one_folder_are_all_written() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let folder = folder.path();
                scope.spawn(move || {
                    for number in 0..50 {
                        let path = folder.join(format!("{writer}-{number}.md"));
                        assert!(create_plan(&path, b"# Plan").unwrap());
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 8 * 50, "no draft stays behind");
    }

    #[test]
    fn row_64_each_kind_of_plan_path_has_its_own_error_and_none_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let started = Instant::now();
        std::fs::write(path("plan.md"), "# Plan").unwrap();
        assert_eq!(read_plan(&path("plan.md")).unwrap(), b"# Plan");
        symlink("plan.md", path("link.md")).unwrap();
        assert_eq!(read_plan(&path("link.md")).unwrap(), b"# Plan");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
        std::fs::write(path("large.md"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert!(matches!(read_plan(&path("none.md")), Err(Unreadable::Missing)));
        assert!(matches!(read_plan(folder.path()), Err(Unreadable::NotRegular("directory"))));
        assert!(matches!(read_plan(&path("fifo")), Err(Unreadable::NotRegular("named pipe"))));
        assert!(matches!(read_plan(Path::new("/dev/zero")), Err(Unreadable::NotRegular("device"))));
        assert!(matches!(read_plan(&path("large.md")), Err(Unreadable::TooLarge { .. })));
        assert!(matches!(read_plan(&path("plan.md/x")), Err(Unreadable::Missing)));
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn row_64_an_unreadable_plan_is_refused() {
        if rustix::process::geteuid().is_root() {
            // Root reads everything; a loop of links is refused to it too.
            let folder = tempfile::tempdir().unwrap();
            symlink("loop", folder.path().join("loop")).unwrap();
            assert!(matches!(read_plan(&folder.path().join("loop")), Err(Unreadable::Refused(_))));
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan.md");
        std::fs::write(&plan, "# Plan").unwrap();
        std::fs::set_permissions(&plan, PermissionsExt::from_mode(0o000)).unwrap();
        assert!(matches!(read_plan(&plan), Err(Unreadable::Refused(_))));
    }

    #[test]
    fn a_plan_is_replaced_whole_and_keeps_mode_and_link() {
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan.md");
        let link = folder.path().join("link.md");
        std::fs::write(&plan, "old").unwrap();
        std::fs::set_permissions(&plan, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("plan.md", &link).unwrap();
        let reader = File::open(&plan).unwrap();
        assert!(!write_plan(&link, b"another", b"new").unwrap(), "somebody changed it");
        assert_eq!(std::fs::read(&plan).unwrap(), b"old");
        assert!(write_plan(&link, b"old", b"new").unwrap());
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&plan).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(io::read_to_string(reader).unwrap(), "old", "a reader keeps what it opened");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
        assert!(write_plan(&folder.path().join("none.md"), b"", b"x").is_err());
        assert!(write_plan(folder.path(), b"", b"x").is_err());
    }

    #[test]
    fn the_draft_of_a_plan_in_a_checkout_is_never_where_git_looks_for_files() {
        for has_git in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let plan = folder.path().join("plan.md");
            std::fs::write(&plan, "old").unwrap();
            if has_git {
                std::fs::create_dir(folder.path().join(".git")).unwrap();
            }
            let events = init(CreateFlags::NONBLOCK).unwrap();
            add_watch(&events, folder.path(), WatchFlags::CREATE).unwrap();
            assert!(write_plan(&plan, b"old", b"new").unwrap());
            assert!(create_plan(&folder.path().join("other.md"), b"new").unwrap());
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&events, &mut buffer);
            let drafts = std::iter::from_fn(|| reader.next().ok().map(drop)).count();
            assert_eq!(drafts, if has_git { 0 } else { 2 }, "a checkout: {has_git}");
        }
    }

    #[test]
    fn a_draft_left_by_a_killed_planctl_goes_and_one_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan.md");
        std::fs::write(&plan, "old").unwrap();
        let (left, used) = (folder.path().join(".planctl-a.tmp"), folder.path().join(".planctl-b.tmp"));
        std::fs::write(&left, "half").unwrap();
        std::fs::write(&used, "half").unwrap();
        let user = File::open(&used).unwrap();
        flock(&user, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(write_plan(&plan, b"old", b"new").unwrap());
        assert!(!left.exists() && used.exists());
    }
}
