//! The picture of the README: a run at a terminal whose first attempt claims success, drawn from the real screen.

use std::path::Path;

use super::likeness;
use super::repository;
use super::terminal::Terminal;

/// The columns of the terminal that is drawn.
const COLUMNS: u16 = 120;

fn drawn(screen: &[String]) -> String {
    let mut lines: Vec<&str> = screen.iter().map(String::as_str).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    // Each row is drawn from its own colours on.
    let rows: Vec<String> = lines.iter().map(|line| format!("\u{1b}[0m{line}")).collect();
    anstyle_svg::Term::new().min_width_px(840).render_svg(&rows.join("\n"))
}

/// Returns the words of a picture, without what differs from run to run.
fn words(svg: &str) -> String {
    let text: String = svg.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    text.split('\n').map(likeness::line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_picture_shows_a_false_claim_that_fails_its_contract_and_the_retry() {
    let folder = tempfile::tempdir().unwrap();
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let home = folder.path();
    std::os::unix::fs::symlink(repository().join("examples"), home.join("examples")).unwrap();
    let mut terminal =
        Terminal::open(home, COLUMNS, Path::new(env!("CARGO_BIN_EXE_planctl")).parent().unwrap());
    terminal.run("bash examples/bugfix/setup.sh slug && cd slug && cp ../examples/bugfix/worker.sh ..");
    // The database is there already, as it is for all but the very first command.
    terminal.run("planctl ls");
    let shown = terminal.run("planctl run bugfix.md --approve --exec ../worker.sh");
    for words in ["$ planctl run bugfix.md", "2 attempts", "contract exit 1", "done"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    let mut lines = terminal.coloured();
    if let Some(last) = lines.iter().rposition(|line| !line.trim().is_empty()) {
        lines.truncate(last);
    }
    lines.retain(|line| !line.contains("planctl runs as root"));
    let svg = drawn(&lines);
    let path: &Path = &repository().join("docs/demo.svg");
    if std::env::var_os("PLANCTL_README").is_some_and(|wish| wish == "write") {
        std::fs::write(path, svg).unwrap();
        return;
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let help = "to draw it anew: PLANCTL_README=write cargo test -p planctl --test cli readme::";
    assert_eq!(words(&there), words(&svg), "{help}");
}
