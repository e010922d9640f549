//! The rules for each file, each with its exceptions, each exception with its reason.

use super::sources::{Source, all, texts, top};

/// A place where a rule does not hold, and why.
struct Exception {
    /// A file, or a folder with its slash.
    place: &'static str,
    why: &'static str,
}

const fn except(place: &'static str, why: &'static str) -> Exception {
    Exception { place, why }
}

/// File names that say nothing of their content.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "manager", "handler", "data", "info"];

const NAME_EXCEPTIONS: [Exception; 1] = [except(
    "crates/planctl-store/src/cluster/data.rs",
    "it is about the data folder of Postgres, its own word",
)];

/// Where this machine's clock may be read, beside planctl-server/src/clock.rs.
const CLOCK_EXCEPTIONS: [Exception; 5] = [
    except("crates/planctl-server/src/clock.rs", "the one place"),
    except("crates/planctl-harness/src/", "deadlines of child processes, on the monotonic clock"),
    except("crates/planctl-store/src/cluster/", "waits for the private Postgres, on the monotonic clock"),
    except("crates/planctl-store/src/connections.rs", "deadlines of an outage, on the monotonic clock"),
    except(
        "crates/planctl-store/src/server_clock.rs",
        "the age of the database's own time, on the monotonic clock",
    ),
];

/// Where child processes may be started.
const PROCESS_EXCEPTIONS: [Exception; 3] = [
    except("crates/planctl-harness/src/", "it owns every child process"),
    except("crates/planctl-store/src/cluster/", "it runs the private Postgres"),
    except("crates/planctl-store/src/cluster.rs", "it runs the private Postgres"),
];

/// Where SQL may stand.
const SQL_EXCEPTIONS: [Exception; 1] = [except("crates/planctl-store/", "it is the store")];

/// The most lines of a file, and of a function.
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 80;

/// Files that are longer, each since it is one thing.
const LONG_FILES: [Exception; 4] = [
    except("crates/planctl-server/src/http/routes.rs", "the one table of routes"),
    except(
        "crates/planctl-lang/src/syntax/shell/convert.rs",
        "one converter, a method for each kind of node",
    ),
    except("crates/planctl-lang/src/syntax/shell/following.rs", "one walk through a script"),
    except("crates/planctl-lang/src/tree/parse.rs", "one reader, a method for each kind of line"),
];

/// Functions that are longer, by file and name, each since it is one thing.
const LONG_FUNCTIONS: [Exception; 8] = [
    except("crates/planctl-config/src/schema.rs/schema", "one table: the keys of planctl.toml"),
    except("crates/planctl-config/src/layer.rs/drop_untrusted", "one list: the keys that need trust"),
    except("crates/planctl-view/src/sentence.rs/sentence", "one match: a sentence for each fact"),
    except("crates/planctl-engine/src/earned.rs/check_fact", "one match over all facts"),
    except("crates/planctl-sim/src/model/rules/harness.rs/harness_found", "one match over all results"),
    except("crates/planctl-sim/src/model/rules/clock.rs/time_passed", "one match over all ticks"),
    except("crates/planctl-sim/src/world/probe.rs/odd_event", "one match: an event of each kind"),
    except("crates/planctl-lang/src/tree/workflow/prose.rs/flow", "one loop that writes an edge in a line"),
];

/// The crates whose texts name no command of planctl: only the command line knows its own words.
const WORDLESS: [&str; 2] = ["crates/planctl-api/src/", "crates/planctl-server/src/"];

/// Names that this code base once had to itself, where the trade has a word of its own; docs/GLOSSARY.md has the words to use.
const OWN_WORDS: [&str; 24] = [
    "Bell",
    "Brings",
    "Card",
    "Desk",
    "Door",
    "Hands",
    "Lapse",
    "Parting",
    "Place",
    "Room",
    "Showing",
    "Terms",
    "Tie",
    "Told",
    "Turn",
    "Unwritten",
    "Way",
    "Ways",
    "bell",
    "desk",
    "find_straight",
    "is_way_on",
    "lost_folder",
    "moved_ways",
];

/// Words of that kind that are left nowhere: neither in tests and comments nor in pages, migrations and templates.
const LOST_WORDS: [&str; 21] = [
    "afterglow",
    "bury",
    "crew",
    "farewell",
    "furnish",
    "overtaken",
    "parted",
    "parting",
    "passage",
    "passes_again",
    "patience",
    "rung",
    "seat",
    "setback",
    "shelf",
    "station",
    "stranded_at",
    "taken_back_to",
    "tend",
    "tended",
    "told_time",
];

/// Where such words stay.
const LOST_WORD_EXCEPTIONS: [Exception; 4] = [
    except("crates/planctl-sim/tests/tidy/rules.rs", "the lists themselves"),
    except("docs/GLOSSARY.md", "it says which words are not used"),
    except("crates/planctl-store/tests/store/earlier/", "statements of earlier versions, as they were"),
    except("crates/planctl-store/tests/golden/", "histories of earlier versions, as they were"),
];

/// Of such words, those that are stored, or are the name of a program; and where they stay.
const STORED_WORDS: [&str; 2] = ["parted", "parting"];
const STORED_WORD_EXCEPTIONS: [Exception; 6] = [
    except("crates/planctl-lang/src/syntax/shell/programs/machines.rs", "a program is called so"),
    except("crates/planctl-engine/src/event.rs", "histories have it in their events"),
    except("crates/planctl-engine/src/effect.rs", "items have it as their purpose"),
    except("crates/planctl-sim/src/coverage.rs", "it lists the events by their names"),
    except("crates/planctl-sim/src/model/verbs.rs", "it says the purpose of an item as it is stored"),
    except("crates/planctl-sim/src/tell.rs", "it says the purpose of an item as it is stored"),
];

/// Names that say nothing where a type has them alone, though a variant may.
const OWN_TYPES: [&str; 6] = ["Found", "Held", "Known", "Line", "Waiting", "Writer"];

/// Words that are no subject of a sentence in a comment: docs/STYLE.md asks for the actor's name.
const NO_SUBJECTS: [&str; 5] = ["What ", "Whatever ", "Who ", "Whoever ", "Whose "];
/// The entries allowed at the top of the workspace, beside hidden files and the build's folder.
const TOP: [&str; 12] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "crates",
    "docs",
    "examples",
    "justfile",
    "packaging",
    "migrations",
    "plans",
    "target",
];

#[test]
fn every_file_says_in_its_first_line_what_it_is() {
    report(all().iter().filter_map(|source| {
        let first = source.text.lines().next().unwrap_or_default();
        let is_sentence = first.starts_with("//! ") && first.len() > 12;
        (!is_sentence).then(|| format!("{}: the first line is no `//!` sentence", source.path))
    }));
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    report(all().iter().filter_map(|source| {
        let path = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        let is_empty = path.split('/').any(|part| EMPTY_NAMES.contains(&part));
        let is_wrong = is_empty && !is_excepted(&NAME_EXCEPTIONS, &source.path);
        is_wrong.then(|| format!("{}: name it after what is inside", source.path))
    }));
}

#[test]
fn files_and_functions_are_short_or_one_thing() {
    let files = all().iter().filter(|source| !source.shipped.is_empty()).filter_map(|source| {
        let lines = source.text.lines().count();
        let is_long = lines > FILE_LINES_MAX && !is_excepted(&LONG_FILES, &source.path);
        is_long.then(|| format!("{}: {lines} lines; look for the two things that became one", source.path))
    });
    let functions = all().iter().flat_map(|source| {
        let long = functions(&source.shipped).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        let place = |name: &str| format!("{}/{name}", source.path);
        let long = long.filter(move |(name, _)| !is_excepted(&LONG_FUNCTIONS, &place(name)));
        long.map(|(name, lines)| format!("{}: `{name}` has {lines} lines", source.path)).collect::<Vec<_>>()
    });
    report(files.chain(functions));
}

#[test]
fn no_long_function_is_named_that_is_short_by_now() {
    report(LONG_FUNCTIONS.iter().filter_map(|exception| {
        let (path, name) = exception.place.rsplit_once('/')?;
        let source = all().iter().find(|source| source.path == path);
        let lines = source.and_then(|source| {
            functions(&source.shipped).into_iter().find(|(own, _)| own == name).map(|(_, lines)| lines)
        });
        let is_long = lines.is_some_and(|lines| lines > FUNCTION_LINES_MAX);
        (!is_long).then(|| format!("{}: {lines:?} lines, and {}", exception.place, exception.why))
    }));
}

#[test]
fn modules_stand_beside_their_folders() {
    report(all().iter().filter_map(|source| {
        let is_mod = source.path.ends_with("/mod.rs");
        is_mod.then(|| format!("{}: mod.rs is not used; `name.rs` sits beside `name/`", source.path))
    }));
}

#[test]
fn clocks_are_read_in_one_place() {
    let calls = ["SystemTime::now", "Instant::now", "Utc::now", "OffsetDateTime::now", "UNIX_EPOCH.elapsed"];
    report(all().iter().flat_map(|source| {
        let free = is_excepted(&CLOCK_EXCEPTIONS, &source.path);
        // Even where deadlines are kept, the time of day is nobody's business.
        let refused: Vec<&str> = calls.into_iter().filter(|call| !free || *call != "Instant::now").collect();
        let refused = if source.path.ends_with("planctl-server/src/clock.rs") { Vec::new() } else { refused };
        lines_with(source, &source.shipped, refused, "asks a clock; time is an argument")
    }));
}

#[test]
fn child_processes_are_started_by_the_harness() {
    let calls =
        vec!["process::Command", "process::{Command", "nix::unistd::fork", "libc::fork", "posix_spawn"];
    report(all().iter().filter(|source| !is_excepted(&PROCESS_EXCEPTIONS, &source.path)).flat_map(
        |source| {
            let shipped = source.shipped.replace("planctl_harness::process::", "harness ");
            lines_with(source, &shipped, calls.clone(), "starts a process; that is the harness's")
        },
    ));
}

#[test]
fn sql_stands_in_the_store() {
    report(all().iter().filter(|source| !is_excepted(&SQL_EXCEPTIONS, &source.path)).flat_map(|source| {
        let queries = source.literals.iter().filter(|(_, text)| is_sql(text));
        let mut wrong: Vec<String> = queries
            .map(|(line, text)| format!("{}:{line}: SQL outside the store: {text:.60}", source.path))
            .collect();
        wrong.extend(lines_with(
            source,
            &source.code,
            vec!["sqlx::"],
            "talks to the database beside the store",
        ));
        wrong
    }));
}

/// Statements that are prepared by no test: they make the schema, or begin before there is one.
const UNPREPARED: [Exception; 3] = [
    except("crates/planctl-store/src/cluster/", "they make the private database"),
    except("crates/planctl-store/src/migrate.rs", "they make the schema, several in one text"),
    except("crates/planctl-store/src/server.rs", "it takes a setting back at once, two in one text"),
];

#[test]
fn tests_prepare_and_explain_every_statement_of_the_store() {
    let source = |path: &str| all().iter().find(|source| source.path == path).expect("it is there");
    let listed = &source("crates/planctl-store/src/statements.rs").code;
    let of_store = all().iter().filter(|source| source.path.starts_with("crates/planctl-store/src/"));
    report(of_store.filter(|source| !is_excepted(&UNPREPARED, &source.path)).flat_map(|source| {
        let missing = statements(source).into_iter().filter(|name| !listed.contains(&format!("::{name})")));
        missing
            .map(|name| format!("{}: statements.rs doesn't list `{name}`", source.path))
            .collect::<Vec<_>>()
    }));
}

/// Returns the names of the constants of a file that hold SQL.
fn statements(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.shipped.lines().collect();
    let named = lines.iter().enumerate().filter_map(|(at, line)| {
        let (_, rest) = line.split_once("const ")?;
        let (name, _) = rest.split_once(": &str =")?;
        Some((at, name.to_owned()))
    });
    named
        .filter(|(at, _)| {
            let length = lines[*at..].iter().position(|line| line.trim_end().ends_with(';')).unwrap_or(0);
            let own = at + 1..=at + 1 + length;
            let is_macro = lines[*at..=at + length].iter().any(|line| line.contains('!'));
            let begins = |text: &str| {
                let verbs = ["select ", "insert ", "update ", "delete ", "with "];
                verbs.iter().any(|verb| text.trim_start().starts_with(verb))
            };
            is_macro || source.literals.iter().any(|(line, text)| own.contains(line) && begins(text))
        })
        .map(|(_, name)| name)
        .collect()
}

#[test]
fn only_the_command_line_names_its_commands() {
    let commands = commands();
    assert!(commands.iter().any(|command| command == "plan"), "the commands are read: {commands:?}");
    let texts = all().iter().filter(|source| WORDLESS.iter().any(|place| source.path.starts_with(place)));
    report(texts.flat_map(|source| {
        let wrong = source.literals.iter().filter(|(_, text)| names_command(text, &commands));
        let said = wrong.map(|(line, text)| {
            format!(
                "{}:{line}: a text names a command, where `planctl_api::Next` is meant: {text}",
                source.path
            )
        });
        said.collect::<Vec<_>>()
    }));
}

#[test]
fn what_is_left_to_do_names_its_issue() {
    let words = ["TODO", "FIXME", "XXX", "HACK"];
    report(all().iter().flat_map(|source| {
        let open = source.comments.iter().filter(|(_, text)| {
            let names_issue =
                text.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            words.iter().any(|word| text.contains(word)) && !names_issue
        });
        open.map(|(line, text)| format!("{}:{line}: {} (name the issue: #7)", source.path, text.trim()))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn comments_name_their_subject() {
    report(all().iter().flat_map(|source| {
        let riddles = source.comments.iter().filter(|(_, comment)| has_no_subject(comment));
        riddles.map(|(line, text)| {
            format!("{}:{line}: {} (name the actor in place of `what` or `who`)", source.path, text.trim())
        })
    }));
}

#[test]
fn names_are_those_that_other_engineers_know() {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    report(all().iter().flat_map(|source| {
        let lines = source.shipped.lines().enumerate();
        let names =
            lines.flat_map(|(line, code)| code.split(|c| !is_part(c)).map(move |name| (line + 1, name)));
        let own = names.filter(|(_, name)| OWN_WORDS.contains(name));
        own.map(|(line, name)| format!("{}:{line}: `{name}` is no word of the trade", source.path))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn words_that_nobody_else_knows_are_left_nowhere() {
    let rust = all().iter().map(|source| (source.path.clone(), source.text.clone()));
    let own = rust.chain(texts()).filter(|(path, _)| !is_excepted(&LOST_WORD_EXCEPTIONS, path));
    report(own.flat_map(|(path, text)| {
        let is_stored = is_excepted(&STORED_WORD_EXCEPTIONS, &path);
        let lines = text.lines().enumerate();
        let found = lines.flat_map(|(line, text)| lost_words(text).map(move |word| (line + 1, word)));
        found
            .filter(|(_, word)| !(is_stored && STORED_WORDS.contains(word)))
            .map(|(line, word)| format!("{path}:{line}: `{word}` is no word of the trade"))
            .collect::<Vec<_>>()
    }));
}

fn lost_words(line: &str) -> impl Iterator<Item = &'static str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = line.split(move |c| !is_part(c));
    words.filter_map(|word| LOST_WORDS.into_iter().find(|lost| word.eq_ignore_ascii_case(lost)))
}

#[test]
fn words_are_found_whole_in_any_letters() {
    assert_eq!(lost_words("-- The Crew's table.").collect::<Vec<_>>(), ["crew"]);
    assert_eq!(lost_words("a crewed_ship, unseated").next(), None);
}

#[test]
fn types_are_named_after_what_they_hold() {
    let kinds = ["enum ", "struct ", "trait ", "type "];
    report(all().iter().flat_map(|source| {
        let lines = source.shipped.lines().enumerate();
        let named = lines.filter_map(|(line, code)| {
            let (_, after) =
                kinds.iter().find_map(|kind| code.trim_start_matches("pub ").split_once(kind))?;
            let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            OWN_TYPES.contains(&name.as_str()).then_some((line + 1, name))
        });
        named.map(|(line, name)| format!("{}:{line}: `{name}` of what?", source.path)).collect::<Vec<_>>()
    }));
}

#[test]
fn the_engine_asks_nobody() {
    let words = vec![
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "async ",
        "tokio",
        "tracing",
        "rand::",
        "HashMap",
        "thread_local",
        // The bugs that tests plant stand in a patch.
        "planted(",
    ];
    report(all().iter().filter(|source| source.path.starts_with("crates/planctl-engine/src/")).flat_map(
        |source| {
            lines_with(
                source,
                &source.shipped,
                words.clone(),
                "the engine is pure, and the same on every machine",
            )
        },
    ));
}

#[test]
fn only_what_belongs_there_lies_at_the_top() {
    let entries = std::fs::read_dir(top()).expect("the workspace is there");
    let names = entries.map(|entry| entry.expect("a folder lists its entries").file_name());
    let strangers: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| !name.starts_with('.') && !TOP.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "these do not belong at the top: {strangers:?}");
}

#[test]
fn no_exception_outlives_its_reason() {
    let sources = all();
    let lists =
        [NAME_EXCEPTIONS.as_slice(), &CLOCK_EXCEPTIONS, &PROCESS_EXCEPTIONS, &SQL_EXCEPTIONS, &LONG_FILES];
    for exception in lists.into_iter().flatten() {
        assert!(!exception.why.is_empty(), "{} says why", exception.place);
        let is_there = sources.iter().any(|source| source.path.starts_with(exception.place));
        // The clock's own place is named before the first loop needs it.
        assert!(
            is_there || exception.why == "the one place",
            "{} is gone: {}",
            exception.place,
            exception.why
        );
    }
}

/// Reads the commands of planctl that stand at the top off its arguments.
fn commands() -> Vec<String> {
    let of = |file: &str, name: &str| {
        let path = format!("crates/planctl/src/{file}");
        let arguments = all().iter().find(|source| source.path == path);
        let code = arguments.map(|source| source.code.as_str()).unwrap_or_default();
        let body =
            code.split(&format!("pub enum {name} {{")).nth(1).and_then(|rest| rest.split("\n}").next());
        let variants = body.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("    "));
        let name = |line: &str| line.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
        let names = variants.filter(|line| line.starts_with(char::is_uppercase)).map(name);
        names.map(|name| name.to_lowercase()).collect::<Vec<_>>()
    };
    [of("args.rs", "Command"), of("args/plan.rs", "PlanVerb"), of("args/run.rs", "RunVerb")].concat()
}

/// Says whether a text has a command of planctl in it.
fn names_command(text: &str, commands: &[String]) -> bool {
    text.split("planctl ").skip(1).any(|rest| {
        let word: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
        commands.contains(&word)
    })
}

/// Says whether a sentence of a comment has `what` or `who` as its subject.
fn has_no_subject(comment: &str) -> bool {
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    let sentences =
        std::iter::once(text).chain(text.match_indices(". ").map(|(at, end)| &text[at + end.len()..]));
    sentences.into_iter().any(|sentence| NO_SUBJECTS.iter().any(|word| sentence.starts_with(word)))
}

/// Returns the functions of a file with their lines, from the one that names them to the one that closes them.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_named(line) else { continue };
        let own = indent(line);
        let ends = |line: &&str| indent(line) == own && (line.trim_start() == "}" || line.ends_with(';'));
        let end = lines[at..].iter().position(ends).filter(|_| !line.ends_with('}'));
        if let Some(end) = end.filter(|end| lines[at + end].trim_start() == "}") {
            found.push((name, end + 1));
        }
    }
    found
}

/// Returns the name of the function that begins in a line.
pub fn function_named(line: &str) -> Option<String> {
    const BEFORE: [&str; 5] = ["async", "const", "extern", "pub", "unsafe"];
    let (before, after) = line.split_once("fn ")?;
    let is_part = |word: &str| BEFORE.iter().any(|part| word.starts_with(part)) || word == "\"\"";
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (before.split_whitespace().all(is_part) && !name.is_empty()).then_some(name)
}

/// Says whether a text is a query, by how it begins.
fn is_sql(text: &str) -> bool {
    let words: Vec<String> = text.split_whitespace().take(200).map(str::to_ascii_lowercase).collect();
    let says = |word: &str| words.iter().any(|other| other == word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["select", ..] => says("from") && !text.contains('.') && text.to_ascii_lowercase() == text,
        ["insert", "into", ..] | ["delete", "from", ..] => text.to_ascii_lowercase() == text,
        ["update", _, "set", ..] => true,
        ["create" | "alter" | "drop", "table" | "index" | "schema" | "database" | "trigger", ..] => {
            text.to_ascii_lowercase() == text
        }
        _ => false,
    }
}

fn is_excepted(exceptions: &[Exception], path: &str) -> bool {
    exceptions.iter().any(|exception| {
        path == exception.place || (exception.place.ends_with('/') && path.starts_with(exception.place))
    })
}

fn lines_with(source: &Source, code: &str, words: Vec<&str>, why: &str) -> Vec<String> {
    let found = code.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
    found.map(|(index, line)| format!("{}:{}: {} {why}", source.path, index + 1, line.trim())).collect()
}

fn report(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{} against the rules of the house:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn queries_are_told_from_sentences() {
    assert!(is_sql("select seq from history where run = $1"));
    assert!(is_sql("update runs set head = $1"));
    assert!(is_sql("create table runs (id uuid)"));
    assert!(!is_sql("Select a plan from the list"));
    assert!(!is_sql("update the plan"));
}

#[test]
fn a_sentence_of_a_comment_needs_a_subject() {
    assert!(has_no_subject("/// What ran out: leases of the dead, timers."));
    assert!(has_no_subject("//! Leases. Whoever holds one renews it."));
    assert!(!has_no_subject("/// Says what ran out, and who held it."));
    assert!(!has_no_subject("// Whole files only."));
}

#[test]
fn commands_are_told_from_sentences() {
    let commands = ["resume".to_owned(), "db".to_owned()];
    assert!(names_command("put it back, then planctl resume {}", &commands));
    assert!(names_command("see `planctl db status`", &commands));
    assert!(!names_command("a defect of planctl in planning", &commands));
}

#[test]
fn functions_are_measured() {
    let code = "fn short() {}\n\nimpl A {\n    pub(crate) async fn one(\n        a: u8,\n    ) {\n        b();\n    }\n\n    \
                fn two() {\n        let f = |c: fn()| {\n        };\n    }\n}\ntype G = fn (u8);\n";
    let expected = [("one".to_owned(), 5), ("two".to_owned(), 4)];
    assert_eq!(functions(code), expected);
}
