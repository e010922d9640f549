//! Keeps the README true: runs what its transcripts run and compares what they show; follows the links of all pages.
//!
//! A transcript is a `console` fence after a line `<!-- tested: NAME -->`. Lines that begin with `$ ` are commands for
//! bash, run in the top folder of the repository with `planctl` on the `PATH`; the lines that follow are what the
//! command prints, standard output and standard error together. Times, digests and folders may differ.
//! `PLANCTL_README=write` puts what is printed in place of what is shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// A page whose transcripts were run.
#[derive(Default)]
struct Renewed {
    /// The page as it should be, with what is shown kept where it is true.
    text: String,
    /// How many transcripts it has.
    transcripts: usize,
    /// What is shown beside what is printed, where they differ.
    differences: String,
}

fn renewed(page: &str) -> Renewed {
    let mut lines = page.split_inclusive('\n').peekable();
    let Renewed { mut text, mut transcripts, mut differences } = Renewed::default();
    while let Some(line) = lines.next() {
        text.push_str(line);
        if !line.starts_with("<!-- tested: ") {
            continue;
        }
        assert_eq!(lines.peek(), Some(&"```console\n"), "a fence follows {line}");
        text.push_str(lines.next().unwrap_or_default());
        transcripts += 1;
        let (room, mut status) = (Room::new(), 0);
        while let Some(line) = lines.next_if(|line| *line != "```\n") {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("a command was expected: {line}"));
            let mut shown = String::new();
            while let Some(line) = lines.next_if(|line| *line != "```\n" && !line.starts_with("$ ")) {
                shown.push_str(line);
            }
            let (printed, ended) = room.run(command.trim_end(), status);
            status = ended;
            text.push_str(line);
            let is_true = normal(&shown) == normal(&printed);
            text.push_str(if is_true { &shown } else { &printed });
            if !is_true {
                differences.push_str(&format!("\n{line}--- shown\n{shown}--- printed\n{printed}"));
            }
        }
    }
    Renewed { text, transcripts, differences }
}

/// A folder that looks like the repository's top, where transcripts may leave what they like.
struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        // As root, Postgres runs as another user, who must be able to pass through.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["examples", "plans"] {
            std::os::unix::fs::symlink(repository().join(name), folder.path().join(name)).unwrap();
        }
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_planctl"), bin.join("planctl")).unwrap();
        Room { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command as a person would, after one that ended with `status`; returns what it prints, and its status.
    fn run(&self, command: &str, status: i32) -> (String, i32) {
        let tmp = self.path("tmp");
        std::fs::create_dir_all(&tmp).unwrap();
        let command = command.replace("/tmp/", &format!("{}/", tmp.display()));
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("PLANCTL_STATE_DIR", self.path("state"));
        bash.arg("-c").arg(format!("exec 2>&1; (exit {status}); {command}"));
        bash.env("PLANCTL_ACTOR", "ada");
        let output = bash.current_dir(self.folder.path()).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.replace(&format!("{}/", tmp.display()), "/tmp/");
        let text = text.replace(&self.path("state").display().to_string(), "~/.local/state/planctl");
        (text, output.status.code().unwrap_or(-1))
    }
}

/// Takes away what differs from run to run and from machine to machine: times, digests, widths of columns, which Postgres.
fn normal(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| match line.split_once(" in ~/.local/state/planctl") {
        Some(_) => "using a private Postgres".to_owned(),
        None => line.split_whitespace().map(word).collect::<Vec<_>>().join(" "),
    });
    lines.filter(|line| !line.is_empty()).collect()
}

fn word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let has_only = |text: &str, others: &str| text.chars().all(|c| c.is_ascii_digit() || others.contains(c));
    let is_clock = core.len() == 8 && core.split(':').count() == 3 && has_only(core, ":");
    let is_span = core.ends_with(['s', 'm', 'h'])
        && core.starts_with(|c: char| c.is_ascii_digit())
        && has_only(core, ".smh");
    let hex = core.strip_prefix("sha256:").unwrap_or(core);
    let is_digest = hex.len() >= 6 && has_only(hex, "abcdef") && hex.contains(|c: char| c.is_ascii_digit());
    match () {
        () if is_clock => word.replace(core, "CLOCK"),
        () if is_span => word.replace(core, "SPAN"),
        () if is_digest => word.replace(core, "DIGEST"),
        () => word.to_owned(),
    }
}

#[test]
fn every_transcript_shows_what_its_commands_print() {
    let path = repository().join("README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let Renewed { text, transcripts, differences } = renewed(&page);
    assert!(transcripts >= 4, "the README shows planctl at work");
    if std::env::var_os("PLANCTL_README").is_some_and(|wish| wish == "write") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let help = "to show what is printed: PLANCTL_README=write cargo test -p planctl --test readme";
    assert!(differences.is_empty(), "{differences}\n{help}");
}

#[test]
fn the_demo_ends_as_it_is_shown() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let shown =
        page.split("<!-- the end of the demo -->\n```\n").nth(1).unwrap().split("```").next().unwrap();
    let (printed, status) = Room::new().run("planctl demo", 0);
    assert_eq!(status, 0, "{printed}");
    let end = printed.rfind("── done ──").unwrap_or_else(|| panic!("{printed}"));
    // How many events there are depends on whether a lease had to be renewed.
    let uncounted = |text: &str| {
        normal(text)
            .into_iter()
            .map(|line| line.replace(|c: char| c.is_ascii_digit(), ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(uncounted(&printed[end..]), uncounted(shown));
}

#[test]
fn the_table_of_exit_codes_is_whole() {
    let page = std::fs::read_to_string(repository().join("docs/contracts.md")).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_planctl")).args(["help", "exit-codes"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let told: Vec<&str> = help.split_whitespace().filter(|word| word.parse::<u8>().is_ok()).collect();
    assert!(told.contains(&"143"), "{help}");
    let table = page.split("## Exit codes of planctl").nth(1).unwrap();
    for code in told {
        let is_there = table.split(|c: char| !c.is_ascii_digit()).any(|number| number == code);
        assert!(is_there, "docs/contracts.md lacks exit code {code}");
    }
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages(repository()) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap();
            let is_elsewhere = link.contains("://") || link.starts_with("mailto:") || path.is_empty();
            if !is_elsewhere && !page.parent().unwrap().join(path).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

fn pages(repository: &Path) -> Vec<PathBuf> {
    let mut pages = vec![repository.join("README.md")];
    let mut folders = vec![repository.join("docs"), repository.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => pages.push(path),
                false => {}
            }
        }
    }
    assert!(pages.len() > 10);
    pages
}
