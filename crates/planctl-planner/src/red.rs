//! Whether a contract is red today for the right reason: since the work is not done, and not since the contract is wrong.

use planctl_engine::Ending;
use planctl_lang::{Tried, escape};

/// Why a contract fails today although no work would change that, in words that end a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongReason {
    /// The reason.
    pub why: String,
    /// The line of its output that shows it.
    pub shown: Option<String>,
}

impl WrongReason {
    fn new(why: impl Into<String>) -> WrongReason {
        WrongReason { why: why.into(), shown: None }
    }

    fn with_line(mut self, line: &str) -> WrongReason {
        self.shown = Some(escape(&line.chars().take(200).collect::<String>()));
        self
    }
}

/// Says what is wrong with a contract's failure; nothing where the missing work explains it.
///
/// `own` says whether a name is a file of the workspace or one that a step up to this one makes; `made` says the second alone.
pub fn wrong_reason(
    command: &str,
    tried: &Tried,
    own: &dyn Fn(&str) -> bool,
    made: &dyn Fn(&str) -> bool,
) -> Option<WrongReason> {
    let first = tried.runs.first()?;
    match first.ending {
        Ending::TimedOut => return Some(WrongReason::new("it ran past its time")),
        Ending::Signalled { signal } => {
            return Some(WrongReason::new(format!("it was ended by signal {signal}")));
        }
        Ending::OverLimit { .. } => return Some(WrongReason::new("it met a limit of contracts")),
        Ending::NotRun => return Some(WrongReason::new("it could not be run")),
        Ending::Exited { .. } => {}
    }
    let seen = Seen { command, own, made, output: &tried.output };
    tried.output.lines().map(str::trim).filter(|line| !line.is_empty()).find_map(|line| {
        let found = match seen.missing_file(line) {
            Missing::Nothing => {
                seen.missing_command(line).or_else(|| seen.complaint(line)).or_else(|| seen.outside(line))
            }
            Missing::Work => None,
            Missing::Wrong(why) => Some(WrongReason::new(why)),
        };
        found.map(|wrong| wrong.with_line(line))
    })
}

struct Seen<'a> {
    command: &'a str,
    own: &'a dyn Fn(&str) -> bool,
    made: &'a dyn Fn(&str) -> bool,
    output: &'a str,
}

/// The file that a line of output says is missing.
enum Missing {
    /// It says so of none.
    Nothing,
    /// One that the work makes.
    Work,
    /// One that no step makes; why that is wrong.
    Wrong(String),
}

impl Missing {
    fn of(is_work: bool, why: impl Into<String>) -> Missing {
        if is_work { Missing::Work } else { Missing::Wrong(why.into()) }
    }
}

/// Programs whose complaints are about how they are called, and never about the work.
const TOOLS: [&str; 21] = [
    "[", "awk", "basename", "comm", "cut", "diff", "dirname", "egrep", "expr", "find", "gawk", "grep",
    "head", "mawk", "sed", "seq", "sort", "tail", "test", "tr", "wc",
];
const USAGE: [&str; 13] = [
    "unrecognized option",
    "unrecognized argument",
    "invalid option",
    "unknown option",
    "unexpected argument",
    "no such option",
    "illegal option",
    "unknown argument",
    "unknown command",
    "no such command",
    "no such subcommand",
    "unrecognized subcommand",
    "is not a git command",
];

impl Seen<'_> {
    fn missing_command(&self, line: &str) -> Option<WrongReason> {
        let name = line
            .strip_suffix(": command not found")
            .or_else(|| line.strip_suffix(": not found"))
            .map(|before| before.rsplit(": ").next().unwrap_or(before).trim());
        if let Some(name) = name {
            return (!(self.made)(name))
                .then(|| WrongReason::new(format!("there is no command `{}`", escape(name))));
        }
        let is_denied = line.ends_with(": Permission denied");
        let file = line
            .strip_suffix(": Permission denied")
            .map(|before| before.rsplit(": ").next().unwrap_or(before));
        let is_made = file.is_some_and(|file| (self.made)(file));
        (is_denied && !is_made).then(|| WrongReason::new("a file can't be run or read"))
    }

    fn missing_file(&self, line: &str) -> Missing {
        const MISSING: [&str; 6] = [
            "No such file or directory",
            "file or directory not found",
            "cannot find the file",
            "Cannot find module",
            "can't open file",
            "cannot open file",
        ];
        if let Some((_, module)) = line.split_once("No module named ") {
            let module = module.split_whitespace().next().unwrap_or_default();
            let path = module.trim_matches(|c: char| !c.is_alphanumeric() && c != '_').replace('.', "/");
            let top = path.split('/').next().unwrap_or_default();
            let files = [path.as_str(), top].into_iter().flat_map(|name| {
                ["", "src/"]
                    .map(|folder| [format!("{folder}{name}.py"), format!("{folder}{name}/__init__.py")])
            });
            let is_work = files.flatten().any(|file| (self.made)(&file));
            return Missing::of(is_work, format!("there is no module `{}`", escape(module)));
        }
        if MISSING.iter().any(|words| line.contains(words)) {
            let is_break =
                |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ':' | ',' | '(' | ')');
            let mut names = line.split(is_break).filter(|name| !name.is_empty());
            let is_work =
                names.any(|name| (self.made)(name)) || line.split(": ").any(|part| (self.made)(part.trim()));
            return Missing::of(is_work, "it needs a file that is not there and that no step makes");
        }
        self.missing_target(line)
    }

    fn missing_target(&self, line: &str) -> Missing {
        const BY_FILE: [(&str, &str, &str); 6] = [
            ("missing script", "package.json", "package.json has no such script"),
            ("no rule to make target", "Makefile", "the Makefile has no such target"),
            ("could not find `cargo.toml`", "Cargo.toml", "there is no Cargo.toml"),
            ("no test target named", "tests/", "cargo has no such test target"),
            ("no bin target named", "src/bin/", "cargo has no such binary"),
            ("could not read package.json", "package.json", "there is no package.json"),
        ];
        let lower = line.to_lowercase();
        let Some((_, file, why)) = BY_FILE.into_iter().find(|(words, ..)| lower.contains(words)) else {
            return Missing::Nothing;
        };
        let is_work = match file.strip_suffix('/') {
            Some(folder) => {
                let name = line.split(['`', '\'']).nth(1).unwrap_or_default();
                (self.made)(&format!("{folder}/{name}.rs")) || (self.made)("Cargo.toml")
            }
            None => (self.made)(file),
        };
        Missing::of(is_work, why)
    }

    fn complaint(&self, line: &str) -> Option<WrongReason> {
        // bash says where in the script: `bash: line 3: [: missing `]'`.
        let plain = line.strip_prefix("bash: ").unwrap_or(line);
        let plain = match plain.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            Some(_) | None => plain,
        };
        let (name, said) = plain.split_once(':').unwrap_or(("", plain));
        let name = name.trim().rsplit('/').next().unwrap_or_default();
        if TOOLS.contains(&name) && self.calls(name) {
            return Some(WrongReason::new(format!("`{}` is called wrongly", escape(name))));
        }
        let lower = line.to_lowercase();
        if USAGE.iter().any(|words| lower.contains(words))
            && !name.is_empty()
            && self.calls(name)
            && !(self.own)(name)
        {
            return Some(WrongReason::new(format!(
                "`{}` is called wrongly: {}",
                escape(name),
                escape(said.trim())
            )));
        }
        let after_usage = lower.strip_prefix("usage:").or_else(|| lower.strip_prefix("error: usage:"));
        let program = after_usage.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        if !program.is_empty() && self.calls(program) && !(self.own)(program) {
            return Some(WrongReason::new(format!("`{}` is called wrongly", escape(program))));
        }
        let is_inline = ["File \"<string>\"", "File \"<stdin>\"", "[eval]"]
            .iter()
            .any(|place| self.output.contains(place));
        (is_inline && line.starts_with("SyntaxError"))
            .then(|| WrongReason::new("the program that stands in it can't be read"))
    }

    fn outside(&self, line: &str) -> Option<WrongReason> {
        const NETWORK: [&str; 6] = [
            "Could not resolve host",
            "Temporary failure in name resolution",
            "Connection refused",
            "Network is unreachable",
            "Name or service not known",
            "getaddrinfo",
        ];
        if NETWORK.iter().any(|words| line.contains(words)) {
            return Some(WrongReason::new("it needs the network"));
        }
        line.starts_with("fatal: not a git repository").then(|| WrongReason::new("it needs a git repository"))
    }

    /// Says whether the script calls a program by its bare name.
    fn calls(&self, name: &str) -> bool {
        let words = self
            .command
            .split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '$' | '"' | '`'));
        words.into_iter().any(|word| word == name)
    }
}
