//! The scripts of PHP, Ruby and their kin, and what takes the place of the library that they load.

use planctl_glob::is_glob;

use super::super::deciding::FileLocation;
use super::super::following::{At, Follower};
use super::super::programs::{Program, program};
use super::super::values::{Value, escape_glob, joined, normalise, parent};
use super::super::{Arguments, Word};
use super::values_of;

/// The options by which each takes a program from its command line, or only looks at a script.
const WITHOUT_SCRIPT: [(&str, &str); 7] = [
    ("ruby", "ec"),
    ("perl", "eEc"),
    ("php", "rRBEl"),
    ("lua", "e"),
    ("Rscript", "e"),
    ("tsx", "ep"),
    ("ts-node", "ep"),
];
/// The names of folders that hold tests.
const TESTS: [&str; 4] = ["test", "tests", "spec", "t"];
/// The runners of Ruby's tests, and what of its library they load behind the folders that they add to its path.
const RUNNERS: [&str; 4] = ["minitest", "rspec", "test/unit", "diff/lcs"];
const LIBRARY: [&str; 8] =
    ["delegate", "erb", "monitor", "optparse", "pp", "ripper", "shellwords", "tempfile"];

impl Follower<'_> {
    /// `php -d x=y tests/run.php`, `ruby -I test test/a_test.rb`, `php vendor/bin/phpunit`
    pub(super) fn interpreted(&mut self, name: &str, rest: &[Word], at: At) {
        let read = Program::arguments(name, rest);
        let without = WITHOUT_SCRIPT.iter().find(|(one, _)| *one == name).map_or("", |(_, letters)| letters);
        match name {
            "php" => self.settings_of_php(&read, at),
            "ruby" => self.ruby_paths(rest, &[]),
            _ => {}
        }
        if read.letters.contains(|letter| without.contains(letter))
            || read.valued.iter().any(|(option, _)| without.contains(option.as_str()))
        {
            return;
        }
        let Some(script) = read.positional.first() else { return };
        self.run_code(script, at);
        if let FileLocation::Inside(path) = self.place(script.text(), false) {
            let folders = std::iter::successors(Some(parent(&path)), |folder| Some(parent(folder)));
            let is_of_tests = |folder: &&str| TESTS.contains(&folder.rsplit('/').next().unwrap_or_default());
            if let Some(tests) = folders.take_while(|folder| !folder.is_empty()).find(is_of_tests) {
                self.keep(format!("{tests}/**"));
            }
        }
        // A runner of tests that is a script itself.
        let place = rest.iter().position(|word| std::ptr::eq(word, *script)).unwrap_or_default();
        if Program::reads(program(script.text()), &rest[place + 1..]).is_some() {
            self.tools(&rest[place..], at);
        }
    }

    // `-c FILE`, `-c FOLDER`, `-d auto_prepend_file=a.php`
    fn settings_of_php(&mut self, read: &Arguments<'_>, at: At) {
        for (named, word) in read.value_texts("c", "php-ini") {
            let Some(path) = self.within(named) else { continue };
            if self.is_folder(named) {
                self.fix(joined(&path, "{php,php-cli}.ini"));
                self.settings(&joined(&path, "{php,php-cli}.ini"));
            } else {
                self.run_file(&Value::plain(named, word.span).to_word(), at);
                self.settings(&path);
            }
        }
        for (setting, _) in read.value_texts("d", "define") {
            let named = setting.split_once('=').and_then(|(_, value)| self.within(value));
            if let Some(path) = named.filter(|path| self.look.read(path).is_some()) {
                self.keep(escape_glob(&path));
            }
        }
    }

    /// Protects the folders that Ruby looks into first from new files that go before its library and that of its runners, and the files
    /// that it is to load.
    pub(super) fn ruby_paths(&mut self, rest: &[Word], own: &[&str]) {
        let read = Program::arguments("ruby", rest);
        let given = read.value_texts("I", "I").flat_map(|(folders, _)| folders.split(':'));
        let given: Vec<&str> = given.chain(own.iter().copied()).collect();
        let folders: Vec<String> = given.iter().filter_map(|folder| self.within(folder)).collect();
        for folder in &folders {
            // Where the project is such a library, its files are the work.
            let is_new = |name: &&str| {
                let has = |ending| self.look.has(&joined(folder, &format!("{name}{ending}"))) == Some(true);
                !has("") && !has(".rb")
            };
            let runners: Vec<&str> = RUNNERS.into_iter().filter(is_new).collect();
            let files = LIBRARY.into_iter().filter(is_new).chain(runners.iter().copied());
            files.for_each(|name| self.fix(joined(folder, &format!("{name}.rb"))));
            runners.iter().for_each(|name| self.fix(joined(folder, &format!("{name}/**"))));
        }
        for (named, _) in read.value_texts("r", "require") {
            let here = self.within(named).into_iter();
            let places = here.chain(folders.iter().map(|folder| normalise(&joined(folder, named))));
            let files = places.flat_map(|place| [format!("{place}.rb"), place]);
            let found = files.filter(|path| self.look.read(path).is_some()).collect::<Vec<_>>();
            found.iter().for_each(|path| self.keep(escape_glob(path)));
        }
    }

    /// `rake test`: also what its file loads besides, in quotes: `import "tasks/a.rake"`, `Dir.glob("tasks/*.rake")`.
    pub(super) fn rake(&mut self, rest: &[Word]) {
        self.ruby_paths(rest, &["lib", "test", "spec"]);
        let Some(folder) = self.folder_here() else { return };
        let named = values_of(rest, &["-f", "--rakefile"]);
        let own = ["rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"].map(|name| joined(&folder, name));
        let files: Vec<String> = match named.is_empty() {
            true => own.into(),
            false => named.iter().filter_map(|file| self.within(file.text())).collect(),
        };
        let texts: Vec<String> = files.iter().filter_map(|path| self.look.read(path)).collect();
        for name in
            texts.iter().flat_map(|text| text.split(['"', '\''])).filter(|name| name.ends_with(".rake"))
        {
            let path = normalise(&joined(&folder, name));
            if is_glob(&path) { self.fix(path) } else { self.keep(path) }
        }
    }
}
