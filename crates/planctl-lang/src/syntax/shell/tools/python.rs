//! Python: scripts, modules, and the two usual runners of tests.

use super::super::deciding::FileLocation;
use super::super::following::{At, Follower};
use super::super::values::{Value, joined, parent};
use super::super::{Arguments, Call, Trait, Word};
use super::upward;

/// Modules of Python's library that tests, and what runs them, import: a file of that name that comes first replaces them.
const LIBRARY: [&[&str]; 2] = [
    &[
        "sitecustomize",
        "usercustomize",
        "unittest",
        "doctest",
        "pytest",
        "_pytest",
        "pluggy",
        "iniconfig",
        "argparse",
        "array",
        "ast",
        "asyncio",
        "base64",
        "bdb",
        "bisect",
        "bz2",
        "cProfile",
        "calendar",
        "cmd",
        "code",
        "codeop",
        "collections",
        "compileall",
        "concurrent",
        "configparser",
        "contextlib",
        "contextvars",
        "copy",
        "copyreg",
        "csv",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "dis",
        "email",
        "enum",
        "fcntl",
        "filecmp",
        "fnmatch",
        "fractions",
        "functools",
        "getopt",
        "getpass",
        "gettext",
        "glob",
        "gzip",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "http",
        "imp",
        "importlib",
        "inspect",
        "ipaddress",
        "itertools",
        "json",
        "keyword",
        "linecache",
        "locale",
        "logging",
        "lzma",
        "math",
        "mimetypes",
    ],
    &[
        "multiprocessing",
        "numbers",
        "opcode",
        "operator",
        "optparse",
        "pathlib",
        "pdb",
        "pickle",
        "pkgutil",
        "platform",
        "pprint",
        "profile",
        "py_compile",
        "pyexpat",
        "queue",
        "quopri",
        "random",
        "re",
        "reprlib",
        "resource",
        "runpy",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shelve",
        "shlex",
        "shutil",
        "signal",
        "smtplib",
        "socket",
        "socketserver",
        "sqlite3",
        "sre_compile",
        "sre_parse",
        "ssl",
        "statistics",
        "string",
        "struct",
        "subprocess",
        "sysconfig",
        "tarfile",
        "tempfile",
        "termios",
        "textwrap",
        "threading",
        "timeit",
        "token",
        "tokenize",
        "tomllib",
        "trace",
        "traceback",
        "tracemalloc",
        "types",
        "typing",
        "unicodedata",
        "urllib",
        "uuid",
        "venv",
        "warnings",
        "weakref",
        "xml",
        "xmlrpc",
        "zipfile",
        "zipimport",
        "zlib",
        "zoneinfo",
    ],
];
/// Where pytest finds its configuration.
const CONFIGURATION: [&str; 7] =
    ["pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"];
/// Files that pytest loads before the tests of a folder. An empty `__init__.py` does not count as a change.
const LOADED_FIRST: [&str; 2] = ["conftest.py", "__init__.py"];
/// Files that pytest loads by itself out of a folder in which Python finds modules: plugins that a distribution names, and modules of its
/// own and of its plugins.
const PLUGINS: [&str; 3] = [
    "*.{dist-info,egg-info}/entry_points.txt",
    "{pytest_*,packaging,pygments,exceptiongroup,tomli}.{py,pyc,*.so,so}",
    "{pytest_*,packaging,pygments,exceptiongroup,tomli}/__init__.{py,pyc}",
];

impl Follower<'_> {
    /// `python FILE`, `python -m MODULE`, `python -c …`
    pub(super) fn python(&mut self, rest: &[Word], at: At) {
        let mut words = rest.iter().enumerate();
        let mut first = self.folder_here();
        while let Some((place, word)) = words.next() {
            let text = word.text();
            match text {
                "-W" | "-X" | "--check-hash-based-pycs" => drop(words.next()),
                "-c" => break,
                "-m" => {
                    if let Some((place, module)) = words.next() {
                        self.module_run(module.text(), &rest[place + 1..], at);
                        self.has_built |= Call::of(&rest[place..]).does(Trait::Makes);
                    }
                    break;
                }
                _ if text.starts_with("-m") => {
                    self.module_run(&text[2..], &rest[place + 1..], at);
                    break;
                }
                _ if text.starts_with('-') => {}
                _ => {
                    self.run_code(word, at);
                    first = None;
                    for value in self.shell.resolved(word).unwrap_or_default() {
                        if let FileLocation::Inside(path) = self.place(&value.text, value.is_pattern) {
                            self.protect_from_shadowing(parent(&path));
                        }
                    }
                    break;
                }
            }
        }
        if let Some(folder) = first {
            self.protect_from_shadowing(&folder);
        }
        for folder in self.python_path() {
            self.protect_from_shadowing(&folder);
        }
    }

    /// Returns the folders of the workspace that `PYTHONPATH` names.
    fn python_path(&self) -> Vec<String> {
        let values = self.shell.variables.get("PYTHONPATH").into_iter().flatten();
        let folders = values.flat_map(|value| value.text.split(':')).filter(|folder| !folder.is_empty());
        let within = folders.filter_map(|folder| match self.place(folder, false) {
            FileLocation::Inside(path) => Some(path),
            FileLocation::Outside if folder == "." => Some(String::new()),
            FileLocation::Outside | FileLocation::Unknown => None,
        });
        within.collect()
    }

    fn module_run(&mut self, module: &str, rest: &[Word], at: At) {
        match module {
            "unittest" => self.unittest(rest, at),
            "pytest" | "py.test" => {
                self.pytest_run(rest, at);
                if let Some(folder) = self.folder_here() {
                    self.protect_from_plugins(&folder);
                }
            }
            "coverage" if rest.first().is_some_and(|word| word.raw == "run") => {
                return self.python(&rest[1..], at);
            }
            "trace" | "cProfile" | "profile" | "pdb" => {
                if let Some(place) = rest.iter().position(|word| word.raw == "-m") {
                    return self.python(&rest[place..], at);
                }
            }
            _ => self.read_by(module, rest, at),
        }
        let Some(folder) = self.folder_here() else {
            return self.deciding.untold(rest.first().map_or_else(Default::default, |word| word.span));
        };
        let path = module.replace('.', "/");
        self.packages(&folder, &path);
        self.protect_from_namesakes(&folder, &path);
        for file in [format!("{path}.py"), format!("{path}/__init__.py"), format!("{path}/__main__.py")] {
            let file = joined(&folder, &file);
            if at.decides && !self.has_built { self.fix(file) } else { self.keep(file) }
        }
    }

    // The `__init__.py` of the packages on the way to a module.
    fn packages(&mut self, folder: &str, path: &str) {
        for package in upward(parent(path)).filter(|package| !package.is_empty()) {
            // Where there is no such folder, the module is the library's, or has yet to be made.
            let package = joined(folder, package);
            if self.look.has(&package) != Some(false) {
                self.fix(format!("{package}/__init__.py"));
            }
        }
    }

    /// Protects a module that is there from new ones of its name, and of the names of its packages, which Python takes first: a
    /// package before a file, compiled code before a text, and either before a folder without `__init__.py`.
    fn protect_from_namesakes(&mut self, folder: &str, path: &str) {
        for path in upward(path).filter(|path| !path.is_empty()) {
            let module = joined(folder, path);
            let has = |end: &str| self.look.has(&format!("{module}{end}")) == Some(true);
            match (has("/__init__.py"), has(".py"), has("")) {
                (false, true, _) => {
                    self.fix(format!("{module}.{{*.so,so}}"));
                    self.fix(format!("{module}/__init__.{{py,pyc}}"));
                }
                (false, false, true) => self.fix(format!("{module}.{{py,pyc,*.so,so}}")),
                _ => {}
            }
        }
    }

    /// Protects a folder from new files that go before the library's modules. Existing files are the project's own.
    fn protect_from_shadowing(&mut self, folder: &str) {
        self.protect_from_shadowing_in(folder, folder);
    }

    /// Does so in the folders that a pattern matches.
    fn protect_from_shadowing_in(&mut self, folders: &str, folder: &str) {
        for names in LIBRARY {
            let is_free = |name: &&&str| {
                ["", ".py"]
                    .iter()
                    .all(|end| self.look.has(&joined(folder, &format!("{name}{end}"))) != Some(true))
            };
            let free: Vec<&str> = names.iter().filter(is_free).copied().collect();
            let list = free.join(",");
            self.fix(joined(folders, &format!("{{{list}}}.{{py,pyc,*.so,so}}")));
            self.fix(joined(folders, &format!("{{{list}}}/__init__.{{py,pyc}}")));
        }
    }

    fn protect_from_plugins(&mut self, folder: &str) {
        PLUGINS.iter().for_each(|names| self.fix(joined(folder, names)));
    }

    fn unittest(&mut self, rest: &[Word], at: At) {
        let read = Arguments::read(rest, "kspt", &["start-directory", "pattern", "top-level-directory"]);
        let mut positional = read.positional.iter().copied().peekable();
        let discovers =
            positional.next_if(|word| word.raw == "discover").is_some() || positional.peek().is_none();
        if discovers {
            let start = read.values("s", "start-directory").chain(positional.next()).next();
            let pattern = read.values("p", "pattern").chain(positional.next()).next();
            let pattern = pattern.map_or("test*.py", Word::text);
            let start = match start {
                Some(word) if word.text() != "." => match self.place(word.text(), false) {
                    FileLocation::Inside(path) => path,
                    FileLocation::Outside | FileLocation::Unknown => return self.deciding.untold(word.span),
                },
                Some(_) | None => self.folder_here().unwrap_or_default(),
            };
            self.keep(joined(&start, &format!("**/{pattern}")));
            self.keep(joined(&start, "**/__init__.py"));
            if !start.is_empty() && self.look.has(&start) != Some(false) {
                self.fix(joined(&start, "__init__.py"));
                self.protect_from_shadowing(&start);
            }
            return;
        }
        for word in positional {
            let text = word.text();
            if text.contains('/') || text.ends_with(".py") {
                self.run_file(word, at);
                continue;
            }
            let Some(folder) = self.folder_here() else { return self.deciding.untold(word.span) };
            // `tests.test_cart.Cart.test_total`: the parts after the module are classes and methods.
            let is_class = |part: &&str| part.starts_with(|c: char| c.is_uppercase());
            let module: Vec<&str> = text.split('.').take_while(|part| !is_class(part)).collect();
            let path = module.join("/");
            self.packages(&folder, &path);
            self.protect_from_namesakes(&folder, &path);
            let file = joined(&folder, &path);
            if self.look.has(&file) == Some(true) {
                self.keep(format!("{file}/**/*.py"));
                self.fix(format!("{file}/__init__.py"));
            } else if at.decides && !self.has_built {
                self.fix(format!("{file}.py"));
            } else {
                self.keep(format!("{file}.py"));
            }
        }
    }

    /// Takes note of the files that pytest runs and reads.
    pub(super) fn pytest_run(&mut self, rest: &[Word], at: At) {
        let long = [
            "maxfail",
            "deselect",
            "ignore",
            "rootdir",
            "tb",
            "durations",
            "config-file",
            "junitxml",
            "cov",
            "timeout",
        ];
        let read = Arguments::read(rest, "kmnpcoWr", &long);
        read.values("c", "config-file").for_each(|word| self.run_file(word, at));
        for folder in self.python_path() {
            self.protect_from_plugins(&folder);
        }
        if let Some(folder) =
            self.folder_here().filter(|_| rest.iter().any(|word| word.raw.starts_with("--cov")))
        {
            self.fix(joined(&folder, ".coveragerc"));
        }
        let mut targets = Vec::new();
        for word in &read.positional {
            let Some(values) = self.shell.resolved(word) else {
                self.deciding.untold(word.span);
                continue;
            };
            for value in values {
                let text =
                    value.text.split_once("::").map_or(value.text.as_str(), |(path, _)| path).to_owned();
                let text = text.trim_end_matches('/').to_owned();
                targets.push(Value { text, ..value });
            }
        }
        if targets.is_empty() {
            targets.push(Value::plain(".", rest.first().map_or_else(Default::default, |word| word.span)));
        }
        for target in targets {
            let path = match self.place(&target.text, target.is_pattern) {
                FileLocation::Inside(path) => path,
                FileLocation::Outside => self.folder_here().unwrap_or_default(),
                FileLocation::Unknown => {
                    self.deciding.untold(target.span);
                    continue;
                }
            };
            self.pytest_target(&path, &target, at);
        }
    }

    fn pytest_target(&mut self, path: &str, target: &Value, at: At) {
        let is_file = path.ends_with(".py") || target.is_pattern;
        let folder = if is_file { parent(path) } else { path };
        let folder = if folder.contains('*') { "" } else { folder };
        if is_file {
            self.decides_by(&target.text, target.is_pattern, target.span, at);
        } else {
            for name in ["test_*.py", "*_test.py", "conftest.py", "__init__.py"] {
                self.keep(joined(folder, &format!("**/{name}")));
            }
        }
        // Where the tests have yet to be written, so has what configures them.
        if !path.is_empty() && !target.is_pattern && self.look.has(path) == Some(false) {
            return;
        }
        let top = self.folder_here().unwrap_or_default();
        for folder in upward(folder).chain([top.as_str()]) {
            for name in CONFIGURATION.iter().chain(&LOADED_FIRST) {
                self.fix(joined(folder, name));
            }
        }
        let packages = if folder.is_empty() { "{test,tests}" } else { folder };
        self.fix(joined(folder, "**/conftest.py"));
        self.fix(format!("{packages}/**/__init__.py"));
        // Each folder of tests comes before the library.
        match folder.rsplit('/').next() {
            Some("test" | "tests") if !is_file => {
                self.protect_from_shadowing_in(&joined(folder, "**"), folder)
            }
            Some(_) | None if !is_file => {
                self.protect_from_shadowing(folder);
                self.protect_from_shadowing_in(&joined(folder, "**/{test,tests}/**"), folder);
            }
            Some(_) | None => self.protect_from_shadowing(folder),
        }
    }
}
