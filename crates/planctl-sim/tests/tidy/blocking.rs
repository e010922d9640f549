//! Async code of the loops and the API waits for no file on a thread of the runtime: a workspace may lie on a disk that hangs.
//!
//! The test reads which functions work on files, and which functions call those, and so on. In async code such a call stands within
//! `blocking`, `blocking_in_place` or `spawn_blocking`, or within `brief_file_work`, whose documentation says which. A method is known by its name alone, so names that types of the
//! standard library have as well are left out; calls through traits and pointers are not seen.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sources::{Source, all};

/// The crates whose async code runs in a daemon. Commands run on the main thread, where no loop is.
const CRATES: [&str; 4] = ["planctl-harness", "planctl-server", "planctl-store", "planctl-tools"];

/// Functions that may be called in async code though they open a file, and why.
const EXCEPTIONS: [(&str, &str); 1] = [("Streams::open", "it opens /dev/null, which is on no disk")];

/// Work on files, as it looks in the code; `fs::` stands for its functions. Users may be looked up in a directory far away.
const FILE_WORK: [&str; 16] = [
    ".canonicalize()",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".is_symlink()",
    ".read_dir()",
    ".read_link()",
    ".symlink_metadata()",
    ".sync_all()",
    "DirBuilder::new",
    "File::create",
    "File::open",
    "OpenOptions::new",
    "User::from_",
    "tempdir(",
    "tempfile(",
];

/// Functions that take work off the runtime's threads, and the one for work that is too brief for that.
const BLOCKING: [&str; 5] =
    ["blocking", "blocking_in_place", "brief_file_work", "spawn_blocking", "thread::spawn"];

/// Methods of the standard library, too.
const COMMON_METHODS: [&str; 9] =
    ["build", "create", "drain", "open", "process", "read", "remove", "spawn", "write"];

/// A function as far as the rule needs it.
struct Function {
    krate: String,
    path: String,
    module: String,
    /// The type whose `impl` it stands in.
    of: Option<String>,
    name: String,
    is_async: bool,
    /// The line at which its text begins.
    line: usize,
    /// Its code that runs when it is called, and the code that runs in a task; blocking work is blanked in both.
    sync_code: String,
    async_code: String,
}

/// A call: the word before `::`, whether it is a method, the name, and where it stands.
struct Call<'a> {
    qualifier: Option<&'a str>,
    is_method: bool,
    name: &'a str,
    at: usize,
}

#[test]
fn async_code_works_on_files_beside_the_runtimes_threads() {
    let functions: Vec<Function> = all().iter().flat_map(functions_of).collect();
    let wrong = blocking_calls(&functions);
    assert!(functions.len() > 1000, "the sources are read: {}", functions.len());
    assert!(wrong.is_empty(), "{} calls hold up a thread of the runtime:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the places in async code that work on files.
fn blocking_calls(functions: &[Function]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, function) in functions.iter().enumerate() {
        by_name.entry(&function.name).or_default().push(at);
    }
    let mut works: Vec<bool> = functions
        .iter()
        .map(|function| {
            !function.is_async && !is_excepted(function) && file_work(&function.sync_code).is_some()
        })
        .collect();
    loop {
        let calls_work = |function: &Function| {
            calls(&function.sync_code).any(|call| is_file_work(&call, function, functions, &by_name, &works))
        };
        let found: Vec<usize> = (0..functions.len())
            .filter(|at| !works[*at] && !functions[*at].is_async && !is_excepted(&functions[*at]))
            .filter(|at| calls_work(&functions[*at]))
            .collect();
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|at| works[at] = true);
    }
    let mut wrong = Vec::new();
    for function in functions {
        let place = |at: usize| {
            let line = function.line + function.async_code[..at].matches('\n').count();
            format!("{}:{line}: `{}`", function.path, function.name)
        };
        if let Some((at, word)) = file_work(&function.async_code) {
            wrong.push(format!("{} works on files: {word}", place(at)));
        }
        for call in calls(&function.async_code) {
            if is_file_work(&call, function, functions, &by_name, &works) {
                wrong.push(format!("{} calls `{}`, which works on files", place(call.at), call.name));
            }
        }
    }
    wrong
}

fn is_excepted(function: &Function) -> bool {
    EXCEPTIONS.iter().any(|(name, _)| match name.split_once("::") {
        Some((of, name)) => function.of.as_deref() == Some(of) && function.name == name,
        None => function.name == *name,
    })
}

/// Says whether a call reaches work on files: of a method, whether each that has its name does.
fn is_file_work(
    call: &Call<'_>,
    within: &Function,
    functions: &[Function],
    by_name: &BTreeMap<&str, Vec<usize>>,
    works: &[bool],
) -> bool {
    let named = by_name.get(call.name).map_or(&[][..], Vec::as_slice);
    let function = |at: &&usize| &functions[**at];
    if call.is_method {
        let mut methods = named.iter().filter(|at| function(at).of.is_some()).peekable();
        let is_known = methods.peek().is_some() && !COMMON_METHODS.contains(&call.name);
        return is_known && methods.all(|at| works[*at]);
    }
    let is_meant = |at: &&usize| {
        let other = function(at);
        match call.qualifier {
            Some("Self") => other.of == within.of && other.path == within.path,
            Some("self" | "crate" | "super") => other.of.is_none() && other.krate == within.krate,
            Some(named) if named.starts_with(char::is_uppercase) => other.of.as_deref() == Some(named),
            Some(named) => {
                other.of.is_none() && (other.module == named || other.krate == named.replace('_', "-"))
            }
            None => other.of.is_none() && (other.path == within.path || imports(within, other)),
        }
    };
    named.iter().filter(is_meant).any(|at| works[*at])
}

/// Says whether a function's file names another function in its imports.
fn imports(within: &Function, other: &Function) -> bool {
    let Some(source) = all().iter().find(|source| source.path == within.path) else { return false };
    let own = within.krate == other.krate;
    let root = if own { "crate".to_owned() } else { other.krate.replace('-', "_") };
    let uses = source.code.split(';').filter_map(|item| item.trim_start().strip_prefix("use "));
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut uses = uses.filter(|item| item.starts_with(&root) || own && item.starts_with("super"));
    uses.any(|item| item.split(|c| !is_name(c)).any(|word| word == other.name))
}

/// Returns the functions of a source of these crates.
fn functions_of(source: &Source) -> Vec<Function> {
    let Some((krate, _)) = source.path.trim_start_matches("crates/").split_once("/src/") else {
        return Vec::new();
    };
    if !CRATES.contains(&krate) || source.shipped.is_empty() {
        return Vec::new();
    }
    let lines: Vec<&str> = source.shipped.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let end_of = |at: usize| {
        let ends = |line: &&str| indent(line) == indent(lines[at]) && line.trim_start().starts_with('}');
        lines[at..].iter().position(ends).map(|length| at + length)
    };
    let mut impls: Vec<(Range<usize>, String)> = Vec::new();
    let mut bodies: Vec<(Range<usize>, String, bool)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("impl")
            && let Some(end) = end_of(at)
        {
            impls.push((at..end, type_of_impl(&lines[at..=end].join(" "))));
        }
        if let Some((name, is_async)) =
            super::rules::function_named(line).map(|name| (name, line.contains("async fn")))
            && !line.ends_with(';')
            && let Some(end) = end_of(at)
        {
            bodies.push((at..end + 1, name, is_async));
        }
    }
    let module = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let function = |(range, name, is_async): &(Range<usize>, String, bool)| {
        let mut own: Vec<&str> = lines[range.clone()].to_vec();
        for (inner, _, _) in
            bodies.iter().filter(|(inner, _, _)| range.contains(&inner.start) && inner != range)
        {
            own[inner.start - range.start..inner.end - range.start].fill("");
        }
        let code = without_blocking(&own.join("\n"));
        let (sync_code, async_code) = if *is_async { (String::new(), code) } else { by_when_it_runs(&code) };
        Function {
            krate: krate.to_owned(),
            path: source.path.clone(),
            module: module.to_owned(),
            of: impls.iter().find(|(of, _)| of.contains(&range.start)).map(|(_, of)| of.clone()),
            name: name.clone(),
            is_async: *is_async,
            line: range.start + 1,
            sync_code,
            async_code,
        }
    };
    bodies.iter().map(function).collect()
}

/// Returns the name of the type that an `impl` is of.
fn type_of_impl(text: &str) -> String {
    let head = text.split(" {").next().unwrap_or_default();
    let of = head.rsplit_once(" for ").map_or(head, |(_, of)| of);
    // Parameters of the `impl` stand before the type.
    let of = of.strip_prefix("impl<").and_then(|rest| rest.split_once("> ")).map_or(of, |(_, of)| of);
    let words = of.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned).next().unwrap_or_default()
}

/// Blanks what is handed to threads for blocking work, in place or as a closure with a name.
fn without_blocking(code: &str) -> String {
    let mut blanked = code.to_owned();
    for call in
        calls(code).filter(|call| BLOCKING.iter().any(|name| name.rsplit("::").next() == Some(call.name)))
    {
        if call.name == "spawn" && call.qualifier != Some("thread") {
            continue;
        }
        let Some(open) = code[call.at..].find('(').map(|open| call.at + open) else { continue };
        let given = open + 1..end_of_group(code, open);
        let named = code[given.clone()].trim();
        if !named.is_empty() && named.chars().all(|c| c.is_alphanumeric() || c == '_') {
            let bound = format!("let {named} =");
            let is_closure = |(at, _): &(usize, &str)| {
                let value = code[at + bound.len()..].trim_start();
                value.strip_prefix("move ").unwrap_or(value).starts_with('|')
            };
            let closure = code[..call.at].rmatch_indices(bound.as_str()).find(is_closure);
            if let Some((at, _)) = closure {
                blank(&mut blanked, at..end_of_statement(code, at));
            }
        }
        blank(&mut blanked, given);
    }
    blanked
}

/// Parts the code of a function that is not async: what runs when it is called, and what its async blocks do.
fn by_when_it_runs(code: &str) -> (String, String) {
    let (mut sync_code, mut async_code) = (code.to_owned(), code.to_owned());
    let mut at = 0;
    while let Some(found) = code[at..].find("async ").map(|found| at + found) {
        let end = match code[found..].find(['{', ';']).map(|open| found + open) {
            Some(open) if code.as_bytes()[open] == b'{' => end_of_group(code, open),
            Some(end) => end,
            None => code.len(),
        };
        blank(&mut sync_code, found..end);
        blank(&mut async_code, at..found);
        at = end;
    }
    blank(&mut async_code, at..code.len());
    (sync_code, async_code)
}

fn blank(text: &mut String, range: Range<usize>) {
    let blanks: String =
        text[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
    text.replace_range(range, &blanks);
}

/// Returns where the bracket closes that opens here.
fn end_of_group(code: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        depth += i32::from(b"([{".contains(&byte)) - i32::from(b")]}".contains(&byte));
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

fn end_of_statement(code: &str, begin: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(begin) {
        depth += i32::from(b"([{".contains(&byte)) - i32::from(b")]}".contains(&byte));
        if depth == 0 && byte == b';' {
            return at;
        }
    }
    code.len()
}

/// Returns the first work on files in a text, and where.
fn file_work(code: &str) -> Option<(usize, &str)> {
    let known = FILE_WORK.iter().filter_map(|word| Some((code.find(word)?, *word)));
    let functions = code.match_indices("fs::").filter(|(at, word)| {
        let is_tokio = code[..*at].ends_with("tokio::");
        !is_tokio && code[at + word.len()..].starts_with(|c: char| c.is_ascii_lowercase())
    });
    known.chain(functions).min()
}

/// Returns the calls in a text.
fn calls(code: &str) -> impl Iterator<Item = Call<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.match_indices('(').filter_map(move |(open, _)| {
        let mut head = &code[..open];
        // `name::<T>(…)`
        if head.ends_with('>')
            && let Some(generic) = head.rfind("::<")
        {
            head = &head[..generic];
        }
        let begin = head
            .rfind(|c| !is_name(c))
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let (before, name) = head.split_at(begin);
        let qualifier =
            before.strip_suffix("::").map(|path| path.rsplit(|c| !is_name(c)).next().unwrap_or_default());
        let is_call = !name.is_empty() && !before.ends_with("fn ");
        is_call.then_some(Call { qualifier, is_method: before.ends_with('.'), name, at: begin })
    })
}

#[test]
fn work_on_files_is_found_through_calls() {
    let read = |text: &str| {
        let source = Source::new("crates/planctl-server/src/a.rs".to_owned(), format!("//! Says.\n{text}"));
        blocking_calls(&functions_of(&source))
    };
    let held_up = read(
        "fn look() -> bool {\n    path.exists()\n}\nfn ask() -> bool {\n    look()\n}\nasync fn serve() {\n    ask();\n}\n",
    );
    assert_eq!(held_up, ["crates/planctl-server/src/a.rs:9: `serve` calls `ask`, which works on files"]);
    let block = read("fn serve() {\n    tokio::spawn(async move {\n        fs::read(path);\n    });\n}\n");
    assert_eq!(block, ["crates/planctl-server/src/a.rs:4: `serve` works on files: fs::"]);
    let beside = read(
        "async fn serve() {\n    let look = move || path.exists();\n    blocking(look).await;\n    \
         blocking_in_place(|| fs::read(path));\n    tokio::fs::read(path).await;\n}\n",
    );
    assert_eq!(beside, [""; 0]);
}
