//! The first hour at a terminal, by the README alone: planctl installed, the demo, a first plan with a slip, a contract that fails,
//! and its mending.

use std::path::Path;
use std::time::{Duration, Instant};

use super::terminal::Terminal;

/// How fast a person types.
const KEYS_PER_SECOND: f64 = 3.0;

/// Makes an empty home.
pub fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    // As root, Postgres runs as another user, who must be able to pass through.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).unwrap();
    home
}

/// A first plan of one's own, as the README's example has it; its contract has a slip.
const PLAN: &str = "---
type: plan
status: draft
owner: ada
---

# Greet the visitors

## Steps

### 1. Write the greeting

**target:** coder

**task:**
Write a file `hello.txt` with one line that greets the visitors.

**contract:**
```bash
grpe -q '^Hello' hello.txt
```
exit_code == 0
**on_fail:** retry(1), then escalate
";

/// Packs the binary as the release does: one folder, and the program in it.
fn pack(home: &Path) {
    let folder = home.join("planctl-0.1.0-linux");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_planctl"), folder.join("planctl")).unwrap();
    let packed = std::process::Command::new("tar")
        .args(["cf", "planctl-0.1.0-linux.tar.gz", "planctl-0.1.0-linux"])
        .current_dir(home)
        .status()
        .unwrap();
    assert!(packed.success());
    std::fs::remove_dir_all(folder).unwrap();
}

/// A person who types what the README says and nothing else.
struct Reader {
    readme: String,
    terminal: Terminal,
}

impl Reader {
    /// Types a command that the README has, and returns the screen when it has ended.
    fn run(&mut self, command: &str) -> String {
        self.find(command);
        self.terminal.run(command)
    }

    /// Makes sure that the README has a command of planctl, and its flags.
    fn find(&self, command: &str) {
        let words = || command.split(' ');
        if words().next() == Some("planctl") {
            let verb = words().take(2).collect::<Vec<&str>>().join(" ");
            assert!(self.readme.contains(&verb), "the README does not say `{verb}`");
        }
        let unknown = words().filter(|word| word.starts_with("--")).find(|flag| !self.readme.contains(flag));
        assert_eq!(unknown, None, "the README does not say this of `{command}`");
    }
}

/// Plays the first hour; returns how long the machine took, and how long the person.
fn play(home: &Path, columns: u16) -> (Duration, Duration) {
    pack(home);
    let began = Instant::now();
    let readme = std::fs::read_to_string(super::repository().join("README.md")).unwrap();
    let mut reader = Reader { readme, terminal: Terminal::open(home, columns, &home.join(".local/bin")) };
    let missing = reader.terminal.run("planctl demo");
    assert!(missing.contains("not found"), "an empty home has no planctl: {missing}");
    for line in ["tar xf planctl-*.tar.gz", "mkdir -p ~/.local/bin && cp planctl-*/planctl ~/.local/bin"] {
        assert!(reader.readme.contains(line), "{line}");
        reader.terminal.run(line);
    }

    let demo = Instant::now();
    let shown = reader.run("planctl demo");
    assert!(shown.contains("no step passed because somebody said so"), "{shown}");
    let demo = demo.elapsed();

    reader.terminal.run("mkdir greet && cd greet && git init --quiet && mkdir plans");
    reader.terminal.begin("cat > plans/greet.md <<'END'");
    PLAN.lines().chain(["END"]).for_each(|line| reader.terminal.enter_further(line));
    reader.terminal.end();
    assert_eq!(std::fs::read_to_string(home.join("greet/plans/greet.md")).unwrap(), PLAN);
    let shown = reader.run("planctl verify plans/greet.md");
    assert!(shown.contains("did you mean `grep`?") && shown.contains("not verified"), "{shown}");
    reader.terminal.run("sed -i s/grpe/grep/ plans/greet.md");
    let shown = reader.run("planctl verify plans/greet.md");
    assert!(shown.contains("\nverified · "), "{shown}");

    let run = "planctl run plans/greet.md --exec 'grep -q properly && echo Hello > hello.txt || echo Bye > hello.txt'";
    reader.find(run);
    let terminal = &mut reader.terminal;
    terminal.begin(run);
    terminal.see("run this?");
    terminal.enter("y");
    // Its attempts are used up, and the run asks where the person is.
    let shown = terminal.see("your answer?");
    assert!(shown.contains("contract exit 1"), "{shown}");
    terminal.enter("r");
    terminal.see("a note for the worker?");
    terminal.enter("do it properly");
    let shown = terminal.end();
    assert!(shown.contains("✓ greet-1 done"), "{shown}");
    let rows = shown.lines().filter(|row| row.contains("Write the greeting  coder")).count();
    assert!(rows <= 2, "the live view leaves one picture before the ask and one after it: {shown}");
    let shown = reader.run("planctl why");
    assert!(shown.contains("do it properly") || shown.contains("retry"), "{shown}");
    let plan = std::fs::read_to_string(home.join("greet/plans/greet.md")).unwrap();
    assert!(plan.contains("status: done") && plan.contains("### 1. ✅ Write the greeting"), "{plan}");
    assert!(demo < Duration::from_secs(10) || is_busy(), "the demo took {demo:?}");
    let typing = Duration::from_secs_f64(reader.terminal.keys() as f64 / KEYS_PER_SECOND);
    (began.elapsed(), typing)
}

/// Says whether others use this machine, so that times say nothing.
fn is_busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).is_none_or(|load| load > 1.0)
}

#[test]
fn the_first_hour_takes_less_than_five_minutes_at_80_columns() {
    let home = home();
    let (machine, person) = play(home.path(), 80);
    assert!(person < Duration::from_secs(300), "typing takes {person:?}, and the machine {machine:?}");
}

#[test]
fn the_first_hour_takes_less_than_five_minutes_at_100_columns() {
    let home = home();
    let (machine, person) = play(home.path(), 100);
    assert!(person < Duration::from_secs(300), "typing takes {person:?}, and the machine {machine:?}");
}
