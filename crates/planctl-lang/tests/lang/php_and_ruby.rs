//! The files that decide a contract whose tools are those of PHP and Ruby; each was tried with the real tool.

use std::collections::BTreeMap;

use planctl_glob::Glob;
use planctl_lang::{Deciding, deciding};

use super::deciding::Files;

fn matches(globs: impl IntoIterator<Item = impl AsRef<str>>, path: &str) -> bool {
    globs.into_iter().any(|glob| Glob::parse(glob.as_ref()).is_ok_and(|glob| glob.matches(path)))
}

fn protects(found: &Deciding, path: &str) -> bool {
    matches(found.paths_and_patterns(), path)
}

/// A contract, the files that decide it, those that would if they were new, and those that are the work.
type Case<'c> = (&'c str, &'c [&'c str], &'c [&'c str], &'c [&'c str]);

/// Fails where a file, one that is there or a new one, decides nothing, or where one decides that is the work.
fn check(workspace: &Files, cases: &[Case]) {
    let mut wrong = String::new();
    for (script, there, new, work) in cases {
        let found = deciding(script, workspace);
        for path in there.iter().filter(|path| !protects(&found, path)) {
            wrong.push_str(&format!("{script}: {path} is not protected\n"));
        }
        for path in new.iter().filter(|path| !matches(&found.fixed, path)) {
            wrong.push_str(&format!("{script}: {path} may be new\n"));
        }
        for path in work.iter().filter(|path| protects(&found, path)) {
            wrong.push_str(&format!("{script}: {path} is the work\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_script_is_found_behind_the_options_of_its_interpreter_and_their_values() {
    let workspace = Files(BTreeMap::from([
        ("tests/run.php", ""),
        ("tests/cases/all.json", ""),
        ("ci/php.ini", "auto_prepend_file = ci/first.php\n"),
        ("ci/first.php", ""),
        ("test/a_test.rb", ""),
        ("test/test_helper.rb", ""),
        ("ci/setup.rb", ""),
        ("t/a.t", ""),
        ("bin/check.php", ""),
        ("src/Cart.php", ""),
        ("lib/cart.rb", ""),
    ]));
    check(
        &workspace,
        &[
            (
                "php -d memory_limit=-1 tests/run.php",
                &["tests/run.php", "tests/cases/all.json"],
                &[],
                &["src/Cart.php"],
            ),
            ("php -n tests/run.php", &["tests/run.php"], &[], &[]),
            ("php -c ci/php.ini tests/run.php", &["tests/run.php", "ci/php.ini", "ci/first.php"], &[], &[]),
            ("php -c ci tests/run.php", &["tests/run.php", "ci/first.php"], &["ci/php-cli.ini"], &[]),
            (
                "php --php-ini=ci/php.ini tests/run.php",
                &["tests/run.php", "ci/php.ini", "ci/first.php"],
                &[],
                &[],
            ),
            ("php --define=auto_prepend_file=ci/first.php tests/run.php", &["ci/first.php"], &[], &[]),
            (
                "php -dauto_prepend_file=ci/first.php bin/check.php",
                &["ci/first.php"],
                &[],
                &["bin/other.php"],
            ),
            (
                "ruby -w -I test test/a_test.rb",
                &["test/a_test.rb", "test/test_helper.rb"],
                &[],
                &["lib/cart.rb"],
            ),
            ("ruby -I lib:test -r ./ci/setup test/a_test.rb", &["test/a_test.rb", "ci/setup.rb"], &[], &[]),
            ("rspec -r ./ci/setup.rb", &["ci/setup.rb"], &[], &[]),
            ("perl -I lib t/a.t", &["t/a.t"], &[], &[]),
            (
                "ruby -e 'puts 1' lib/cart.rb; php -r 'echo 1;' src/Cart.php",
                &[],
                &[],
                &["src/Cart.php", "lib/cart.rb"],
            ),
            ("php -l src/Cart.php && ruby -wc lib/cart.rb", &[], &[], &["lib/new.rb"]),
        ],
    );
}

#[test]
fn a_runner_that_an_interpreter_runs_as_its_script_reads_what_it_reads_by_itself() {
    let workspace = Files(BTreeMap::from([
        ("composer.json", r#"{"scripts": {"test": "phpunit"}}"#),
        ("tests/CartTest.php", ""),
        ("src/CartTest.php", ""),
        ("artisan", ""),
        ("spec/a_spec.rb", ""),
        ("ci/unit.xml", r#"<phpunit bootstrap="first.php"/>"#),
        ("ci/first.php", ""),
    ]));
    check(
        &workspace,
        &[
            ("php vendor/bin/phpunit", &["tests/CartTest.php", "vendor/bin/phpunit"], &["phpunit.xml"], &[]),
            (
                "php -d zend.assertions=1 vendor/bin/pest -c ci/unit.xml",
                &["ci/unit.xml", "ci/first.php", "src/CartTest.php"],
                &[],
                &[],
            ),
            (
                "php tools/phpunit.phar && ./phpunit.phar tests",
                &["tools/phpunit.phar"],
                &["phpunit.xml"],
                &[],
            ),
            ("php composer.phar test", &["composer.json", "tests/CartTest.php"], &["phpunit.xml"], &[]),
            ("php artisan test", &["artisan", "tests/CartTest.php"], &["phpunit.xml", "tests/Pest.php"], &[]),
            ("php artisan migrate", &["artisan"], &[], &["phpunit.xml", "tests/CartTest.php"]),
            ("ruby -S rspec", &["spec/a_spec.rb"], &[".rspec"], &[]),
        ],
    );
}

#[test]
fn a_configuration_of_phpunit_is_a_change_where_there_is_none_yet() {
    let workspace = Files(BTreeMap::from([("tests/CartTest.php", ""), ("src/Cart.php", "")]));
    check(
        &workspace,
        &[(
            "phpunit tests",
            &["tests/CartTest.php"],
            &["phpunit.xml", "phpunit.xml.dist"],
            &["src/Cart.php"],
        )],
    );
    let empty = Files(BTreeMap::from([("README.md", "")]));
    check(&empty, &[("vendor/bin/phpunit", &[], &[], &["phpunit.xml"])]);
}

#[test]
fn files_that_ruby_takes_before_its_library_and_its_runners_are_a_change() {
    let workspace = Files(BTreeMap::from([
        (
            "Rakefile",
            "require \"rake/testtask\"\nDir.glob('tasks/*.rake') { |file| load file }\nload \"ci/all.rake\"\n",
        ),
        ("ci/all.rake", ""),
        ("ci/Rakefile", ""),
        ("test/a_test.rb", ""),
        ("spec/a_spec.rb", ""),
        ("Gemfile", "gemspec\n"),
        ("cart.gemspec", ""),
        ("lib/cart.rb", ""),
    ]));
    let honest = ["lib/cart.rb", "lib/cart/total.rb", "Gemfile.lock"];
    check(
        &workspace,
        &[
            (
                "ruby -Ilib test/a_test.rb",
                &[],
                &["lib/minitest/autorun.rb", "lib/minitest/x_plugin.rb", "lib/optparse.rb"],
                &honest,
            ),
            (
                "bundle exec rake test",
                &["cart.gemspec", "Gemfile", "ci/all.rake"],
                &["test/minitest/autorun.rb", "lib/optparse.rb", "tasks/easy.rake", ".rspec-local"],
                &honest,
            ),
            ("rake -f ci/Rakefile", &["ci/Rakefile"], &["lib/test/unit.rb"], &honest),
            ("rspec", &[], &["lib/rspec/expectations.rb", "spec/rspec/mocks.rb", "lib/pp.rb"], &honest),
            ("bundle exec ruby -Itest test/a_test.rb", &[], &["test/minitest.rb"], &honest),
            ("bundle install && bundle exec rspec", &["Gemfile"], &[".bundle/config"], &honest),
        ],
    );
    // A project that extends a runner.
    let plugin = Files(BTreeMap::from([("lib/minitest/loud.rb", ""), ("test/a_test.rb", "")]));
    check(
        &plugin,
        &[(
            "ruby -Ilib test/a_test.rb",
            &[],
            &["lib/rspec.rb"],
            &["lib/minitest/loud.rb", "lib/minitest/new.rb"],
        )],
    );
}

#[test]
fn scripts_of_composer_decide_with_those_that_they_name_and_the_programs_of_its_packages() {
    let workspace = Files(BTreeMap::from([
        (
            "composer.json",
            r#"{"scripts": {"test": ["@unit", "@php tests/run.php"], "unit": ["@test", "phpunit -c ci/unit.xml"]}}"#,
        ),
        ("tests/run.php", ""),
        ("tests/CartTest.php", ""),
        ("ci/unit.xml", ""),
        ("vendor/autoload.php", ""),
    ]));
    let honest =
        ["vendor/autoload.php", "vendor/composer/autoload_real.php", "composer.lock", "src/Cart.php"];
    let files = ["composer.json", "ci/unit.xml", "tests/CartTest.php", "tests/run.php", "vendor/bin/phpunit"];
    check(
        &workspace,
        &[
            ("composer test", &files, &["vendor/bin/php", "vendor/bin/sh"], &honest),
            ("composer run-script unit", &files, &["vendor/bin/sh"], &honest),
            ("composer dump-autoload && phpunit tests", &["tests/run.php"], &["phpunit.xml"], &honest),
        ],
    );
}

#[test]
fn what_settings_of_linters_take_over_from_other_files_decides_as_they_do() {
    let workspace = Files(BTreeMap::from([
        (
            ".rubocop.yml",
            "inherit_from: .rubocop_todo.yml\nrequire:\n  - ./ci/cops.rb # ours\n  - rubocop-rake\nAllCops:\n  NewCops: enable\n",
        ),
        (".rubocop_todo.yml", ""),
        ("ci/cops.rb", ""),
        (
            "phpstan.neon",
            "includes:\n\t- phpstan-baseline.neon\n    - 'ci/strict.neon'\nparameters:\n  paths:\n    - src/a.php\n",
        ),
        ("phpstan-baseline.neon", ""),
        ("ci/strict.neon", ""),
        ("psalm.xml", "<psalm errorBaseline=\"ci/baseline.xml\"></psalm>"),
        ("ci/baseline.xml", ""),
        ("phpcs.xml", "<ruleset><rule ref=\"./ci/rules.xml\"/></ruleset>"),
        ("ci/rules.xml", ""),
        ("src/a.php", ""),
        ("NewCops", ""),
    ]));
    check(
        &workspace,
        &[
            ("rubocop lib", &[".rubocop_todo.yml", "ci/cops.rb"], &[], &["NewCops"]),
            ("vendor/bin/phpstan analyse", &["phpstan-baseline.neon", "ci/strict.neon"], &[], &["src/a.php"]),
            ("psalm", &["ci/baseline.xml"], &[], &[]),
            ("phpcs", &["ci/rules.xml"], &[], &[]),
        ],
    );
}
