//! The files that decide a contract: its script in every form of naming it, and the files that its tools read.

use std::collections::BTreeMap;
use std::path::Path;

use planctl_glob::Glob;
use planctl_lang::{Look, Unseen, deciding, named_files, reading_programs};

/// A workspace with these files.
pub(super) struct Files(pub(super) BTreeMap<&'static str, &'static str>);

impl Look for Files {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).map(|text| (*text).to_owned())
    }

    fn has(&self, path: &str) -> Option<bool> {
        let folder = format!("{path}/");
        Some(self.0.keys().any(|file| *file == path || file.starts_with(&folder)))
    }

    fn inside(&self, absolute: &str) -> Option<String> {
        absolute.strip_prefix("/work/shop/").map(str::to_owned)
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let Ok(glob) = Glob::parse(pattern) else { return Vec::new() };
        self.0.keys().filter(|path| glob.matches(path)).map(|path| (*path).to_owned()).collect()
    }
}

fn decided(script: &str, look: &dyn Look) -> Vec<String> {
    deciding(script, look).paths_and_patterns().map(str::to_owned).collect()
}

#[test]
fn a_contract_protects_its_script_in_whatever_form_it_names_it() {
    let forms: [(&str, &[&str]); 68] = [
        ("bash tests/check.sh", &["tests/check.sh"]),
        ("./tests/check.sh", &["tests/check.sh"]),
        ("bash ./tests//check.sh", &["tests/check.sh"]),
        ("bash < tests/check.sh", &["tests/check.sh"]),
        ("cat tests/check.sh | bash", &["tests/check.sh"]),
        ("cat tests/*.sh | bash -s", &["tests/*.sh"]),
        ("bash <<'EOF'\nbash tests/check.sh\nEOF", &["tests/check.sh"]),
        ("cd tests && sh -e <<'EOF'\n./check.sh\nEOF", &["tests/check.sh"]),
        ("eval \"$(cat tests/check.sh)\"", &["tests/check.sh"]),
        ("bash <(cat tests/check.sh)", &["tests/check.sh"]),
        ("source tests/check.sh", &["tests/check.sh"]),
        (". tests/check.sh", &["tests/check.sh"]),
        ("bash -c 'bash tests/check.sh'", &["tests/check.sh"]),
        ("bash -c 'bash \"$1\"' _ tests/check.sh", &["tests/check.sh"]),
        ("eval 'bash tests/check.sh'", &["tests/check.sh"]),
        ("T=tests; timeout 60 bash -c \"cd $T && ./check.sh\"", &["tests/check.sh"]),
        ("check() { bash \"$1\"; }; check tests/check.sh", &["tests/check.sh"]),
        ("check() { bash tests/check.sh; }; check", &["tests/check.sh"]),
        ("T=tests; bash $T/check.sh", &["tests/check.sh"]),
        ("T=tests/check.sh; \"$T\"", &["tests/check.sh"]),
        ("RUN='bash tests/check.sh'; $RUN", &["tests/check.sh"]),
        ("export T=tests && bash \"$T/check.sh\"", &["tests/check.sh"]),
        ("bash \"${CHECK:-tests/check.sh}\"", &["tests/check.sh"]),
        (": \"${CHECK:=tests/check.sh}\"; bash ${CHECK:=tests/check.sh}", &["tests/check.sh"]),
        ("set -- tests/check.sh; bash \"$1\"", &["tests/check.sh"]),
        ("set -- tests/a.sh tests/b.sh; for t; do bash \"$t\"; done", &["tests/a.sh", "tests/b.sh"]),
        (
            "tests=(tests/a.sh tests/b.sh); for t in \"${tests[@]}\"; do bash \"$t\"; done",
            &["tests/a.sh", "tests/b.sh"],
        ),
        ("FILES='tests/a.sh tests/b.sh'; for t in $FILES; do bash $t; done", &["tests/a.sh", "tests/b.sh"]),
        ("for t in tests/check*.sh; do bash \"$t\" || exit 1; done", &["tests/check*.sh"]),
        ("for t in tests/{check,other}.sh; do bash \"$t\"; done", &["tests/check.sh", "tests/other.sh"]),
        ("bash tests/check_{1..9}.sh", &["tests/check_*.sh"]),
        ("bash tests/*.sh", &["tests/*.sh"]),
        ("for t in $(ls tests/*.sh); do bash $t; done", &["tests/*.sh"]),
        ("for t in $(find tests -name '*.sh'); do bash $t; done", &["tests/**/*.sh"]),
        ("bash \"$PWD/tests/check.sh\"", &["tests/check.sh"]),
        ("bash \"$(pwd)/tests/check.sh\"", &["tests/check.sh"]),
        ("bash \"`pwd`/tests/check.sh\"", &["tests/check.sh"]),
        ("bash \"$(git rev-parse --show-toplevel)/tests/check.sh\"", &["tests/check.sh"]),
        ("bash src/../tests/check.sh", &["tests/check.sh"]),
        ("bash /work/shop/tests/check.sh", &["tests/check.sh"]),
        ("echo tests/check.sh | xargs -n 1 bash", &["tests/check.sh"]),
        ("printf '%s\\n' tests/check.sh | xargs -I{} bash {}", &["tests/check.sh"]),
        ("ls tests/*.sh | sort | xargs -n 1 bash", &["tests/*.sh"]),
        ("find tests -name \"check*.sh\" -exec bash {} \\;", &["tests/**/check*.sh"]),
        ("find tests -maxdepth 1 -name '*.sh' -print0 | xargs -0 -n 1 bash", &["tests/*.sh"]),
        ("find tests -name '*.sh' | while read -r t; do bash \"$t\" || exit 1; done", &["tests/**/*.sh"]),
        (
            "while read -r t; do bash \"$t\" || exit 1; done < tests/list.txt",
            &["tests/one.sh", "tests/two.sh"],
        ),
        ("xargs -n 1 bash < tests/list.txt", &["tests/one.sh", "tests/two.sh"]),
        ("while read t; do bash $t; done <<< tests/check.sh", &["tests/check.sh"]),
        ("while read t; do bash $t; done < <(ls tests/*.sh)", &["tests/*.sh"]),
        ("cd tests && bash check.sh", &["tests/check.sh"]),
        ("cd ./tests; cd ..; bash check.sh", &["check.sh"]),
        ("( cd tests && bash check.sh ); bash run.sh", &["run.sh", "tests/check.sh"]),
        ("cd tests || exit 1\n./check.sh", &["tests/check.sh"]),
        ("cd \"$PWD/tests\" && ../run.sh", &["run.sh"]),
        ("pushd tests >/dev/null && bash check.sh && popd && bash run.sh", &["run.sh", "tests/check.sh"]),
        ("env -C tests bash check.sh", &["tests/check.sh"]),
        ("env --chdir=tests bash -c 'bash check.sh'", &["tests/check.sh"]),
        ("env -i PATH=\"$PATH\" bash tests/check.sh", &["tests/check.sh"]),
        ("timeout 60 bash tests/check.sh", &["tests/check.sh"]),
        ("exec bash tests/check.sh", &["tests/check.sh"]),
        ("command bash \"tests\"/'check.sh'", &["tests/check.sh"]),
        ("if bash tests/check.sh; then exit 0; else exit 1; fi", &["tests/check.sh"]),
        ("test -x tests/check.sh && tests/check.sh", &["tests/check.sh"]),
        ("bash 'app/[id]/check.sh'", &["app/[[]id]/check.sh"]),
        ("cp -r . \"$TMPDIR/w\" && cd \"$TMPDIR/w\" && bash tests/check.sh", &["tests/check.sh"]),
        (
            "d=$(mktemp -d) && git clone -q . \"$d/c\" && for t in $d/c/tests/*.sh; do bash $t; done",
            &["tests/*.sh"],
        ),
        ("cp -r tests /tmp/a && cd /tmp/a/tests && ./check.sh", &["tests/check.sh"]),
    ];
    let workspace = Files(BTreeMap::from([("tests/list.txt", "# All.\ntests/one.sh\ntests/two.sh\n")]));
    let mut wrong = String::new();
    for (script, expected) in forms {
        let mut found = decided(script, &workspace);
        found.sort();
        let untold = deciding(script, &workspace).untold;
        if found != expected || !untold.is_empty() {
            wrong.push_str(&format!("{script}: {found:?}, untold {untold:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_a_script_sources_and_runs_from_its_own_folder_decides_as_it_does() {
    let here = "#!/usr/bin/env bash\nhere=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &>/dev/null && pwd)\n. \"$here/lib.sh\"\n";
    let workspace = Files(BTreeMap::from([
        ("ci/check.sh", ". ./ci/lib.sh\nsource ci/lib/helpers.sh\n. /etc/profile\n"),
        ("ci/lib.sh", "#!/bin/bash\n. ci/lib/more.sh\n. ./ci/check.sh\n"),
        ("ci/lib/helpers.sh", ""),
        ("ci/lib/more.sh", ""),
        ("test.sh", ". ./greet.sh\n"),
        ("greet.sh", ""),
        ("tests/check", here),
        (
            "tests/lib.sh",
            ". src/greet.sh\nmain() { . \"$(dirname \"$0\")/main.sh\"; }\nmain\nbash tests/deep/all.sh\n",
        ),
        ("tests/deep/all.sh", "source tests/deep/own.sh && make -f tests/rules.mk\n"),
        ("bin/selftest", ""),
        ("tests/main.sh", ""),
        ("tests/deep/own.sh", ""),
        ("tests/rules.mk", "all:\n\tbash bin/selftest\n"),
        (
            "scripts/ci.sh",
            "#!/bin/bash\ncd \"$(dirname \"$0\")/..\" || exit 1\n./scripts/lint.sh\nnode \"$PWD/scripts/check.mjs\" && python3 scripts/c.py\n\
             for t in scripts/cases/*.sh; do bash \"$t\"; done\n[ \"$(bash scripts/slug.sh A)\" = a ] && bash bin/app --selftest\n",
        ),
        ("scripts/lint.sh", "pytest tests && bash scripts/lib/deep.sh && bash \"$NOBODY\"\n"),
        ("src/greet.sh", ""),
        ("ci/check.py", ". ci/lib.sh"),
        ("Makefile", "check:\n\tbash tests/check\n"),
    ]));
    let of_tests = [
        "tests/check",
        "tests/lib.sh",
        "tests/main.sh",
        "tests/deep/all.sh",
        "tests/deep/own.sh",
        "tests/rules.mk",
        "bin/selftest",
        "GNUmakefile",
        "Makefile",
        "makefile",
    ];
    let of_ci = ["ci/check.sh", "ci/lib.sh", "ci/lib/helpers.sh", "ci/lib/more.sh"];
    let cases: [(&str, &[&str]); 8] = [
        ("bash ci/check.sh", &of_ci),
        (". ci/check.sh", &of_ci),
        ("bash test.sh", &["test.sh"]),
        ("tests/check", &of_tests),
        (
            "cd tests && ./check",
            &[
                "tests/check",
                "tests/lib.sh",
                "tests/main.sh",
                "tests/src/greet.sh",
                "tests/tests/deep/all.sh",
            ],
        ),
        ("test \"$(tests/check)\" = ok", &["tests/check"]),
        ("bash ci/check.sh > check.log; bash -n tests/check", &of_ci),
        (
            "make check",
            &[
                "GNUmakefile",
                "Makefile",
                "check",
                "makefile",
                "tests/check",
                "tests/lib.sh",
                "tests/main.sh",
                "tests/deep/all.sh",
                "tests/deep/own.sh",
                "tests/rules.mk",
                "bin/selftest",
            ],
        ),
    ];
    for (script, expected) in cases {
        let mut found = decided(script, &workspace);
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{script}");
    }
    let found = deciding("scripts/ci.sh", &workspace);
    assert!(found.untold.is_empty(), "{found:?}");
    let paths: Vec<&str> = found.paths_and_patterns().filter(|path| !path.contains("{")).collect();
    let of_pytest = ["tests/**/test_*.py", "pytest.ini", "tests/conftest.py"];
    let own =
        ["scripts/lint.sh", "scripts/check.mjs", "scripts/c.py", "scripts/cases/*.sh", "scripts/lib/deep.sh"];
    own.iter().chain(&of_pytest).for_each(|path| assert!(paths.contains(path), "{path}: {paths:?}"));
    ["scripts/slug.sh", "bin/app"].iter().for_each(|path| assert!(!paths.contains(path), "{path}"));
    assert!(!decided("python3 ci/check.py", &workspace).contains(&"ci/lib.sh".to_owned()));
}

#[test]
fn settings_that_settings_of_a_tool_extend_decide_as_they_do() {
    let workspace = Files(BTreeMap::from([
        ("package.json", r#"{"main": "./src/a.js", "exports": {"import": "./src/a.js"}}"#),
        ("tsconfig.json", r#"{ "extends": ["./config/base.json", "@a/b"], "files": ["./src/a.js"] }"#),
        ("config/base.json", "{\n\"extends\" :\n  \"../config/deep\"\n}"),
        ("config/deep.json", "{}"),
        (
            "eslint.config.mjs",
            "import js from 'js';\nimport rules from \"./config/rules.mjs\";\nimport './config/more.mjs'\n",
        ),
        ("config/rules.mjs", "export * from './all/index.js';"),
        ("config/all/index.js", ""),
        ("config/more.mjs", "const a = [...require('../src/b')]"),
        (
            "ruff.toml",
            "extend = 'config/ruff.toml'\nextend-exclude = ['src/a.js']\nextend_skip = ['src/a.js']",
        ),
        ("config/ruff.toml", ""),
        ("lib/.eslintrc.json", r#"{ "extends": "../config/lib.json" }"#),
        ("config/lib.json", ""),
        ("app/tsconfig.json", "{ \"extends\": \"../tsconfig.json\" }"),
        ("src/a.js", ""),
        ("src/b.js", ""),
    ]));
    let of_tsc = ["config/base.json", "config/deep.json"];
    let cases: [(&str, &[&str]); 6] = [
        ("npx tsc --noEmit", &of_tsc),
        ("npx tsc -p app/tsconfig.json", &["tsconfig.json", "config/base.json", "config/deep.json"]),
        ("cd app && tsc", &["tsconfig.json", "config/base.json", "config/deep.json"]),
        ("eslint src", &["config/rules.mjs", "config/all/index.js", "config/more.mjs", "src/b.js"]),
        ("ruff check .", &["config/ruff.toml"]),
        ("eslint lib", &["config/lib.json", ".eslintignore"]),
    ];
    for (script, expected) in cases {
        let found = decided(script, &workspace);
        expected
            .iter()
            .for_each(|path| assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}"));
        assert!(!found.iter().any(|one| one == "src/a.js"), "{script}: {found:?}");
    }
}

#[test]
fn what_settings_of_cargo_include_and_run_decides_as_they_do() {
    let workspace = Files(BTreeMap::from([
        ("Cargo.toml", ""),
        (
            ".cargo/config.toml",
            "include = [\"all.toml\", { path = \"../mine.toml\", optional = true }]\n\
             [target.'cfg(all())']\nrunner = [\"tools/run.sh\", \"--fast\"]\n",
        ),
        (".cargo/all.toml", "[[include]]\npath = \"deep/more.toml\"\n"),
        (".cargo/deep/more.toml", "[build]\nrustc-wrapper = '../tools/wrap.sh'\n"),
        ("ci.toml", "[target.x86_64-unknown-linux-gnu]\nlinker = \"./tools/link.sh\"\n"),
        ("tools/run.sh", ""),
        ("tools/wrap.sh", ""),
        ("tools/link.sh", ""),
    ]));
    let expected = [".cargo/all.toml", ".cargo/deep/more.toml", "mine.toml", "tools/run.sh", "tools/wrap.sh"];
    for script in ["cargo test", "cargo nextest run --locked", "cargo +nightly clippy"] {
        let found = decided(script, &workspace);
        for path in expected {
            assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}");
        }
        assert!(!found.iter().any(|one| one == "tools/link.sh"), "{script}: {found:?}");
    }
    for script in ["cargo --config ci.toml test", "cargo test --config=ci.toml --config build.jobs=1"] {
        let found = decided(script, &workspace);
        for path in ["ci.toml", "tools/link.sh"] {
            assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}");
        }
    }
}

#[test]
fn tests_of_cargo_decide_also_where_only_their_manifest_names_them() {
    let workspace = Files(BTreeMap::from([
        (
            "Cargo.toml",
            "[package]\nname = \"cart\"\nbuild = \"make/build.rs\"\n\n[lib]\npath = \"src/cart.rs\"\n\n\
             [[test]]\nname = \"total\"\nrequired-features = [\"a\"]\npath = \"checks/total.rs\"\n\n\
             [workspace]\nmembers = [\n    \"shop\",\n    \"more/*\",\n]\n",
        ),
        ("shop/Cargo.toml", "# of the shop\n[[bench]]\npath = '../speed/shop.rs'\n"),
        ("more/mail/Cargo.toml", "[[test]]\nname = \"sent\"\npath = \"sent.rs\"\n"),
    ]));
    for script in ["cargo test", "cargo nextest run", "cargo test --manifest-path Cargo.toml"] {
        let found = decided(script, &workspace);
        for path in ["make/build.rs", "checks/total.rs", "speed/shop.rs", "more/mail/sent.rs"] {
            assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}");
        }
        assert!(!found.iter().any(|one| one == "src/cart.rs"), "{script}: {found:?}");
    }
}

#[test]
fn scripts_of_the_packages_that_a_command_names_decide() {
    let workspace = Files(BTreeMap::from([
        ("package.json", r#"{"workspaces": ["packages/*"]}"#),
        ("packages/cart/package.json", r#"{"name": "@shop/cart", "scripts": {"test": "node check.js"}}"#),
        (
            "packages/mail/package.json",
            r#"{"name": "mail", "scripts": {"test": "bash check/all.sh && jest"}}"#,
        ),
    ]));
    let (cart, mail) = ("packages/cart/check.js", "packages/mail/check/all.sh");
    for script in [
        "npm -w @shop/cart test",
        "npm test --workspace=packages/cart",
        "npm run test -w ./packages/cart --silent",
        "pnpm --filter cart test",
        "pnpm -F @shop/cart run test",
        "yarn workspace @shop/cart test",
        "bun run --filter @shop/cart test",
    ] {
        let found = decided(script, &workspace);
        assert!(found.iter().any(|path| path == cart), "{script}: {found:?}");
        assert!(!found.iter().any(|path| path == mail), "{script}: {found:?}");
    }
    for script in [
        "npm test -ws",
        "npm test --workspaces",
        "pnpm -r test",
        "pnpm --filter '*' test",
        "yarn workspaces run test",
    ] {
        let found = decided(script, &workspace);
        for path in [cart, mail, "packages/mail/node_modules/.bin/jest", "node_modules/.bin/jest"] {
            assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}");
        }
    }
}

#[test]
fn settings_of_a_linter_decide_without_a_package_beside_them() {
    let workspace = Files(BTreeMap::from([
        (".eslintrc.json", r#"{ "extends": "./config/base.json" }"#),
        ("config/base.json", ""),
        ("lib", ""),
    ]));
    let found = decided("node_modules/.bin/eslint lib", &workspace);
    for path in [".eslintrc.{js,cjs,yaml,yml,json}", ".eslintignore", "config/base.json"] {
        assert!(found.iter().any(|one| one == path), "{path}: {found:?}");
    }
}

#[test]
fn code_that_settings_have_a_runner_load_decides_as_the_tests_do() {
    let workspace = Files(BTreeMap::from([
        (
            "package.json",
            r#"{"jest": {"setupFiles": ["<rootDir>/jest/first.js"], "transform": {"\\.js$": "./jest/to.js"},
                "moduleNameMapper": {"^@/(.*)$": "<rootDir>/src/$1"}, "testEnvironment": "node"},
                "exports": {"require": "./src/a.js"}, "main": "./src/a.js"}"#,
        ),
        (
            "jest.config.js",
            "module.exports = {\n  setupFilesAfterEnv: ['./jest/after'],\n  roots: ['./src/a.js'],\n}",
        ),
        (
            "vitest.config.ts",
            "export default { test: { setupFiles: './vi/setup.ts', globalSetup: [\n'./vi/all.ts' ] } }",
        ),
        (
            "playwright.config.ts",
            "export default { globalSetup: require.resolve('./pw/start'), reporter: './pw/report.ts' }",
        ),
        (".mocharc.json", r#"{"require": ["./mo/a.js", "ts-node/register"], "file": "mo/b.js"}"#),
        ("Gemfile", ""),
        (".rspec", "--color\n--require ./rb/support.rb\n-r ./rb/more\n"),
        ("phpunit.xml", "<phpunit bootstrap=\"php/boot.php\" colors=\"true\"><extensions/></phpunit>"),
        ("phpunit.xml.dist", "<phpunit bootstrap=\"vendor/autoload.php\"/>"),
        (
            "composer.json",
            r#"{"scripts": {"test": ["@lint", "vendor/bin/phpunit -c php/unit.xml"], "lint": "phpcs src"}}"#,
        ),
        ("jest/first.js", "require('./second')"),
        ("jest/second.js", ""),
        ("jest/to.js", ""),
        ("jest/after.js", ""),
        ("vi/setup.ts", ""),
        ("vi/all.ts", ""),
        ("pw/start.ts", ""),
        ("pw/report.ts", ""),
        ("mo/a.js", ""),
        ("mo/b.js", ""),
        ("rb/support.rb", ""),
        ("rb/more.rb", ""),
        ("php/boot.php", ""),
        ("php/unit.xml", ""),
        ("vendor/autoload.php", ""),
        ("vendor/bin/phpunit", ""),
        ("src/a.js", ""),
    ]));
    let cases: [(&str, &[&str]); 8] = [
        ("npx jest", &["jest/first.js", "jest/second.js", "jest/to.js", "jest/after.js"]),
        ("vitest run", &["vi/setup.ts", "vi/all.ts"]),
        ("npx playwright test", &["pw/start.ts", "pw/report.ts"]),
        ("mocha", &["mo/a.js", "mo/b.js"]),
        ("bundle exec rspec", &["rb/support.rb", "rb/more.rb", "Gemfile", ".bundle/config"]),
        ("phpunit", &["php/boot.php"]),
        ("composer test", &["php/unit.xml", "composer.json"]),
        ("composer run-script lint", &["composer.json", "CodeSniffer.conf"]),
    ];
    for (script, expected) in cases {
        let found = decided(script, &workspace);
        expected
            .iter()
            .for_each(|path| assert!(found.iter().any(|one| one == path), "{script}: {path}: {found:?}"));
        let is_work = |path: &String| path.starts_with("src/") || path == "vendor/autoload.php";
        assert!(!found.iter().any(is_work), "{script}: {found:?}");
    }
    assert!(!decided("composer install", &workspace).contains(&"composer.json".to_owned()));
}

#[test]
fn what_comes_before_the_tests_in_a_folder_of_them_decides_too() {
    let workspace = Files(BTreeMap::from([
        (
            "Makefile",
            "include $(wildcard rules/*.mk)\ninclude *.mak\n-include $(wildcard *.d)\ncheck:\n\tbash check.sh\n",
        ),
        ("package.json", "{}"),
        ("tests/unit/test_a.py", ""),
        ("tests", ""),
    ]));
    let fixes = |script: &str, path: &str| {
        let globs = deciding(script, &workspace).fixed;
        globs.iter().any(|glob| Glob::parse(glob).unwrap_or_else(|_| panic!("{glob}")).matches(path))
    };
    for (script, path) in [
        ("pytest tests", "tests/unit/fractions.py"),
        ("pytest", "shop/tests/unit/decimal/__init__.py"),
        ("python3 -m pytest tests/", "tests/random.py"),
        ("npx jest", "tests/.babelrc.js"),
        ("make check", "rules/new.mk"),
        ("make check", "new.mak"),
    ] {
        assert!(fixes(script, path), "{script}: {path}");
    }
    for (script, path) in [
        ("pytest tests", "shop/queue.py"),
        ("pytest", "shop/types.py"),
        ("pytest tests", "tests/unit/helpers.py"),
        ("make check", "src/a.mk"),
        ("make check", "a.d"),
    ] {
        assert!(!fixes(script, path), "{script}: {path}");
    }
}

#[test]
fn settings_of_tools_that_judge_sources_and_run_tests_are_known() {
    let workspace = Files(BTreeMap::from([("src/a.py", ""), ("package.json", "{}"), ("tests/a.bats", "")]));
    for (script, settings) in [
        ("semgrep scan --config rules.yml --error src", "src/**/{.semgrepignore}"),
        ("sqlfluff lint src", ".sqlfluffignore"),
        ("bandit -r .", ".bandit"),
        ("trivy fs --exit-code 1 .", ".trivyignore"),
        ("gitleaks detect", ".gitleaksignore"),
        ("pydocstyle src", "setup.cfg"),
        ("vendor/bin/phpstan analyse src", "phpstan.{neon,neon.dist,dist.neon}"),
        ("phpcs src", "CodeSniffer.conf"),
        ("ansible-lint", ".config/ansible-lint*.yml"),
        ("npx cspell src", "cspell.config.{js,cjs,mjs,json,jsonc,yaml,yml}"),
        ("uvx vulture src", "pyproject.toml"),
        ("npx playwright test", "**/{tsconfig,jsconfig}.json"),
        ("npx jest", ".npmrc"),
        ("npm exec -- jest", ".npmrc"),
        ("bats tests", "**/setup_suite.bash"),
        ("behave", "features/**/environment.py"),
        ("bundle exec cucumber", "features/support/**"),
        ("mix credo", "{.credo.exs,config/.credo.exs}"),
    ] {
        let found = deciding(script, &workspace);
        assert!(found.fixed.contains(settings), "{script}: {:?}", found.fixed);
    }
}

#[test]
fn what_is_run_and_cannot_be_told_is_said() {
    let scripts = [
        "bash \"$(curl -s example.org/name)\"",
        "\"$CHECK\"",
        "$CHECK tests",
        "bash \"tests/$NAME.sh\"",
        "cd \"$PLACE\" && bash check.sh",
        "sed -n 1p tests/names.txt | xargs bash",
        "sed -n 1p tests/names.txt | while read -r t; do bash \"$t\"; done",
        "if [ -d a ]; then cd a; fi; bash check.sh",
    ];
    for script in scripts {
        assert_eq!(deciding(script, &Unseen).untold.len(), 1, "{script}");
    }
    let told = [
        "bash \"$(mktemp)\"",
        "t=$(mktemp); echo true > \"$t\"; bash $t",
        "bash /opt/check.sh",
        "cd /tmp && ./x",
    ];
    for script in told {
        let found = deciding(script, &Unseen);
        assert_eq!((found.untold.as_slice(), found.paths_and_patterns().count()), (&[][..], 0), "{script}");
    }
}

#[test]
fn a_new_file_is_a_change_where_it_would_decide_and_not_where_it_is_made() {
    let fixed = |script: &str| deciding(script, &Unseen).fixed.into_iter().collect::<Vec<_>>();
    assert_eq!(fixed("if [ -f x.sh ]; then bash x.sh; else bash y.sh; fi"), ["x.sh", "y.sh"]);
    // A command that only feeds a pipe or a comparison decides nothing.
    assert_eq!(fixed("bash slug.sh 'A b' | grep -qx a-b"), [""; 0]);
    assert_eq!(fixed("test \"$(./app)\" = 3"), [""; 0]);
    // A file that was built is run.
    assert_eq!(fixed("make && ./count"), ["GNUmakefile", "makefile"]);
    assert_eq!(fixed("cc -o count count.c && ./count"), [""; 0]);
    assert_eq!(fixed("echo 'exit 0' > made.sh && bash made.sh"), [""; 0]);
}

#[test]
fn what_an_honest_contract_makes_before_it_runs_it_may_be_new() {
    let forms = [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/python -m pytest",
        "virtualenv -q venv && venv/bin/pytest",
        "uv venv && .venv/bin/python check.py",
        "uv sync && .venv/bin/pytest",
        "poetry install && .venv/bin/pytest",
        "composer install && vendor/bin/phpunit",
        "npm ci && node_modules/.bin/jest",
        "vite build && node dist/check.js",
        "npx vite build && node dist/check.js",
        "cargo build && ./target/debug/app --check",
        "go build -o bin/app . && bin/app --check",
        "mkdir -p build && cp src/check.sh build/ && bash build/check.sh",
        "cp src/check.sh . && bash check.sh",
        "cp -r src build && bash build/deep/check.sh",
        "install -t build src/check.sh && build/check.sh",
        "install -m 755 src/check.sh build && build/check.sh",
        "ln -sf ../src/check.sh build/ && bash build/check.sh",
        "git worktree add old HEAD && bash old/check.sh",
        "git apply tests.patch && bash tests/new.sh",
        "git restore --source v1 -- tests && bash tests/new.sh",
        "patch -p1 < tests.patch && bash tests/new.sh",
        "bundle install && bin/rspec",
        "nix build && ./result/bin/app --check",
        "rsync -a src/ build/ && bash build/check.sh",
    ];
    // Of a project where they are not there yet.
    let workspace = Files(BTreeMap::from([
        ("src/check.sh", ""),
        ("package.json", "{}"),
        ("Cargo.toml", ""),
        ("go.mod", ""),
        ("check.py", ""),
    ]));
    let mut wrong = String::new();
    for script in forms {
        let found = deciding(script, &workspace).fixed;
        let is_product = |path: &&String| {
            let places = [".venv", "venv", "vendor", "node_modules", "dist", "bin", "build", "old", "result"];
            let places = places.iter().chain(&["target", "tests/new.sh", "check.sh"]);
            // Python finds its own module first all the same.
            !path.ends_with("__.py") && places.into_iter().any(|place| Path::new(path).starts_with(place))
        };
        let products: Vec<&String> = found.iter().filter(is_product).collect();
        if !products.is_empty() {
            wrong.push_str(&format!("{script}: {products:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // make makes what it includes where a rule says how.
    let makefile = "-include config.mk\n-include local.mk\ncheck:\n\tbash check.sh\nconfig.mk: configure\n\t./configure\n";
    let fixed = deciding("make check", &Files(BTreeMap::from([("Makefile", makefile)]))).fixed;
    assert!(fixed.contains("local.mk") && !fixed.contains("config.mk"), "{fixed:?}");
}

#[test]
fn what_a_tool_reads_by_itself_decides_too() {
    let package = r#"{"workspaces": ["packages/*"], "scripts": {"pretest": "bash tests/clean.sh",
                      "test": "node test/slug.js && jest", "lint": "eslint .", "all": "npm test --workspaces"}}"#;
    let makefile = "include config.mk\n-include local.mk deps.d\nTESTS = tests\n\ncheck: count\n\t@bash $(TESTS)/check.sh && ./count\n\
                    count: count.c\n\tcc -o count count.c\ndeploy:\n\tbash deploy.sh\n";
    let justfile = "import 'ci/tests.just'\nmod? deploy\ntests := 'tests'\n\ncheck: (build '-g')\n    @bash {{tests}}/check.sh\n\
                    build how:\n    cc {{how}} -o count count.c\n";
    let workspace = Files(BTreeMap::from([
        ("package.json", package),
        ("pnpm-workspace.yaml", "packages:\n  - packages/*\n"),
        ("packages/cart/package.json", "{}"),
        ("Makefile", makefile),
        ("config.mk", ""),
        ("tests/check.sh", "#!/bin/sh"),
        ("tests/__init__.py", ""),
        ("tests/test_cart.py", ""),
        ("count", "ELF"),
        ("deploy.sh", ""),
        ("Cargo.toml", ""),
        ("go.mod", ""),
        ("justfile", justfile),
        ("ci/tests.just", "lint *args:\n    #!/usr/bin/env bash\n    cd tests\n    bash lint.sh\n"),
        ("tests/lint.sh", "#!/bin/sh"),
    ]));
    let cases: [(&str, &[&str], &[&str]); 32] = [
        (
            "make check",
            &["Makefile", "config.mk", "tests/check.sh"],
            &["GNUmakefile", "makefile", "local.mk"],
        ),
        ("make -f build.mk check", &[], &["build.mk"]),
        (
            "git archive HEAD | tar x -C \"$TMPDIR\" && cd \"$TMPDIR\" && make check",
            &["Makefile", "tests/check.sh"],
            &["GNUmakefile"],
        ),
        ("make -C app check", &["app/Makefile"], &["app/GNUmakefile"]),
        (
            "npm test --silent",
            &["package.json", "node_modules/.bin/jest"],
            &[".npmrc", "test/slug.js", "tests/clean.sh"],
        ),
        (
            "cd app && npm test",
            &["app/package.json", "package.json"],
            &["app/.npmrc", ".npmrc", "test/slug.js"],
        ),
        ("npm ci && npm test", &["package-lock.json"], &[".npmrc"]),
        ("npm test --workspace=cart", &["packages/*/package.json"], &[".npmrc"]),
        ("npm run all", &["packages/*/package.json"], &[]),
        ("pnpm -w run lint", &["package.json", "node_modules/.bin/eslint"], &[".npmrc"]),
        ("cd packages/cart && pnpm -w run lint", &["package.json", "node_modules/.bin/eslint"], &[".npmrc"]),
        ("pnpm -rF cart test", &["packages/*/package.json"], &[]),
        (
            "yarn workspace cart run test",
            &["packages/*/package.json", "node_modules/.bin/jest"],
            &["test/slug.js"],
        ),
        (
            "yarn workspaces foreach -A run lint",
            &["packages/*/package.json", "node_modules/.bin/eslint"],
            &[],
        ),
        ("yarn install --immutable", &["yarn.lock"], &[]),
        ("bun test", &["package.json", "**/*{.test,_test,.spec,_spec}.*"], &["bunfig.toml"]),
        (
            "npx jest src/a.test.js",
            &["node_modules/.bin/jest", "src/a.test.js"],
            &["jest.config.{js,ts,mjs,cjs,mts,cts,json}"],
        ),
        ("node --test test/", &["package.json", "test", "test/**/*.{js,mjs,cjs,ts,mts,cts}"], &[]),
        (
            "cargo test --test total",
            &["Cargo.toml", "tests/total.rs", "**/tests/**"],
            &[".cargo/config.toml", "build.rs"],
        ),
        ("cargo build --locked", &["Cargo.lock"], &[".cargo/config.toml"]),
        ("go test ./...", &["go.mod"], &["go.work", "**/*_test.go"]),
        ("cd cmd && go test ./app", &["cmd/go.mod"], &["cmd/app/*_test.go", "go.work"]),
        ("just check", &["justfile", "ci/tests.just", "tests/check.sh"], &[".justfile", "deploy.just"]),
        ("just lint --fast", &["justfile", "tests/lint.sh"], &[".justfile"]),
        (
            "python3 -m unittest tests.test_cart.Cart",
            &[],
            &["tests/test_cart.py", "tests/__init__.py", "unittest.py"],
        ),
        ("python3 -m unittest discover -s tests", &["tests/**/test*.py"], &["tests/__init__.py"]),
        ("python3 -m shop.check", &[], &["shop/check.py"]),
        (
            "pytest tests/test_cart.py::test_total -x",
            &[],
            &["tests/test_cart.py", "conftest.py", "tests/conftest.py", "pytest.ini"],
        ),
        (
            "uv run pytest tests",
            &["tests/**/test_*.py"],
            &["tests/**/conftest.py", "setup.cfg", "pyproject.toml"],
        ),
        ("timeout 60 .venv/bin/python3 -m pytest", &["**/test_*.py"], &[".venv/bin/python3", "conftest.py"]),
        ("tsc -p app/tsconfig.json", &[], &["app/tsconfig.json"]),
        ("tsc -b", &["**/tsconfig*.json"], &["tsconfig.json"]),
    ];
    let matches =
        |glob: &str, path: &str| glob == path || planctl_glob::Glob::parse(glob).unwrap().matches(path);
    let mut wrong = String::new();
    for (script, kept, fixed) in cases {
        let found = deciding(script, &workspace);
        for path in kept.iter().filter(|path| !found.kept.contains(**path)) {
            wrong.push_str(&format!("{script}: {path} is not kept\n"));
        }
        for path in fixed.iter().filter(|path| !found.fixed.iter().any(|glob| matches(glob, path))) {
            wrong.push_str(&format!("{script}: {path} is not fixed\n"));
        }
        let products = ["count", "deploy.sh", "deps.d", "count.c", "src/lib.rs", "lib/slug.js", "Cargo.lock"];
        for path in products.iter().filter(|path| found.paths_and_patterns().any(|glob| matches(glob, path)))
        {
            if !(*path == "Cargo.lock" && script.contains("--locked")) {
                wrong.push_str(&format!("{script}: {path} is protected\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_new_file_that_a_tool_would_load_before_the_projects_own_is_a_change() {
    let package = r#"{"scripts": {"test": "node test/cart.js && jest"}}"#;
    let workspace = Files(BTreeMap::from([
        ("package.json", package),
        ("Cargo.toml", ""),
        ("go.mod", ""),
        ("pyproject.toml", ""),
        ("build.gradle.kts", ""),
        ("phpunit.xml.dist", ""),
        ("tsconfig.json", ""),
        ("CMakeLists.txt", ""),
        ("compose.yml", ""),
        ("meson.build", ""),
        ("Rakefile", ""),
        ("MODULE.bazel", ""),
        ("app/main.c", ""),
        ("app/main.sh", "x"),
        ("app/main.rs", "x"),
        ("tests/test_cart.py", ""),
    ]));
    let cases: [(&str, &[&str]); 68] = [
        ("ruff check .", &["app/deep/ruff.toml", "app/pyproject.toml", ".ignore", "app/.ignore"]),
        ("mypy app && python3 -m mypy tests/test_cart.py", &["app/deep/cart.pyi", "tests/test_cart.pyi"]),
        ("cd app && ruff format --check", &["app/deep/.ruff.toml"]),
        ("npx eslint && shellcheck **/*.sh", &["app/deep/.eslintrc.json", "app/deep/.shellcheckrc"]),
        ("git ls-files '*.js' | xargs npx prettier --check", &["app/.prettierrc.json", "app/.editorconfig"]),
        ("cd app && rg -q TODO ..", &["tests/.ignore"]),
        ("black --check app && isort --check app", &["app/deep/pyproject.toml", "app/.isort.cfg"]),
        ("pytest && golangci-lint run ./...", &["app/deep/conftest.py", "app/.golangci.yml"]),
        ("shellcheck app/main.sh", &["app/.shellcheckrc", ".shellcheckrc"]),
        ("shellcheck app/*.sh", &["app/.shellcheckrc", "app/deep/.shellcheckrc"]),
        ("! rg -q TODO app", &["app/.ignore", "app/deep/.rgignore"]),
        (
            "clang-format --dry-run -Werror app/main.c && npx stylelint app",
            &["app/.clang-format", "app/.stylelintrc"],
        ),
        ("rubocop app && npx prettier --check app", &["app/.rubocop.yml", "app/.editorconfig"]),
        ("rustfmt --check app/main.rs", &["app/rustfmt.toml"]),
        ("cargo fmt --check && cargo clippy", &["src/rustfmt.toml", "crates/a/clippy.toml"]),
        ("cd app && git diff --check", &[".gitattributes", "app/.gitattributes"]),
        ("git -C app diff v1 | grep -q x", &[".gitattributes", "app/deep/.gitattributes"]),
        ("git diff --check", &["app/deep/.gitattributes"]),
        ("git log -p -1 | grep -q x; git archive HEAD | tar x -C /tmp/a", &["app/.gitattributes"]),
        ("! git grep -qI TODO && ! git diff v1 | grep -q '^+.*TODO'", &[".gitattributes"]),
        ("perl -Ilib t/a.t", &["lib/Test/More.pm"]),
        ("cc -Iapp -I include tests/a.c -o a && ./a", &["app/assert.h", "include/string.h"]),
        ("ruff check src", &["ruff.toml", ".ruff.toml", "pyproject.toml"]),
        ("cd app && ruff format --check .", &["ruff.toml", "app/.ruff.toml"]),
        ("ruff check app && npx eslint app", &["app/deep/ruff.toml", "app/eslint.config.mjs"]),
        ("mypy --strict src", &["mypy.ini", ".mypy.ini", "setup.cfg"]),
        ("python3 -m mypy src && uv run black --check .", &["mypy.ini", "pyproject.toml"]),
        (
            "npx eslint . && prettier --check .",
            &["eslint.config.mjs", ".eslintrc.json", ".prettierrc", ".prettierignore"],
        ),
        ("flake8 src && pylint src", &[".flake8", ".pylintrc"]),
        ("yamllint . && shellcheck a.sh", &[".yamllint", ".shellcheckrc"]),
        ("! rg -q TODO src", &[".ignore", ".rgignore"]),
        ("cargo fmt --check", &[".rustfmt.toml", "build.rs"]),
        ("cargo clippy -- -D warnings", &["clippy.toml"]),
        ("cd app && tsc --noEmit", &["app/tsconfig.json"]),
        ("coverage report --fail-under 90", &[".coveragerc"]),
        ("ctest --test-dir build", &["CMakeUserPresets.json", "CTestCustom.cmake"]),
        ("meson test -C build", &["meson.options"]),
        ("rake test", &["rakefile", "rakelib/easy.rake"]),
        ("task test", &["Taskfile.yml", "taskfile.dist.yaml"]),
        ("dotnet test", &["Directory.Build.targets", "global.json"]),
        ("bazel test //...", &[".bazelrc"]),
        (
            "pre-commit run --all-files && npx playwright test",
            &[".pre-commit-config.yaml", "playwright.config.ts"],
        ),
        ("pytest tests", &["pytest.toml", "tests/.pytest.toml"]),
        (
            "python3 -m pytest tests",
            &[
                "a.dist-info/entry_points.txt",
                "a.egg-info/entry_points.txt",
                "pytest_a.py",
                "packaging/__init__.py",
            ],
        ),
        ("PYTHONPATH=lib pytest tests", &["lib/a.dist-info/entry_points.txt"]),
        ("npm test", &["node_modules/.bin/sh", "node_modules/.bin/node"]),
        ("cd app && npm test", &["app/package.json", "app/node_modules/.bin/sh"]),
        ("cd app && cargo test", &["app/Cargo.toml"]),
        ("cargo nextest run", &[".config/nextest.toml", "build.rs"]),
        ("go test ./...", &["cart/go.mod", "vendor/modules.txt"]),
        ("cargo test -p cart", &["crates/cart/build.rs"]),
        (
            "gradle test",
            &["app/build.gradle", "settings.gradle", "buildSrc/src/main/java/A.java", "buildSrc/a.kts"],
        ),
        ("npx jest", &["babel.config.js", ".babelrc.json", "__mocks__/axios.js"]),
        ("npx vitest run", &["vite.config.ts"]),
        ("npx c8 --check-coverage --lines 80 jest", &["jest.config.js", ".c8rc.json"]),
        ("npx cross-env CI=1 vitest run && npx nyc mocha", &["vite.config.ts", ".nycrc", ".mocharc.js"]),
        ("pytest --cov=src --cov-fail-under 90", &[".coveragerc"]),
        ("coverage run -m pytest && coverage json", &[".coveragerc", "conftest.py"]),
        ("cargo llvm-cov --fail-under-lines 80 && cargo tarpaulin", &["build.rs", "tarpaulin.toml"]),
        ("cargo deny check", &["deny.toml"]),
        ("cargo lint && cargo +nightly xtask ci", &[".cargo/config.toml"]),
        ("docker compose run --rm test", &["compose.override.yaml"]),
        ("pnpm vitest run && yarn eslint .", &["vite.config.ts", "app/.eslintrc.json"]),
        ("cargo +nightly fmt --check", &["src/rustfmt.toml"]),
        ("rspec", &[".rspec-local"]),
        ("prove -l t/a.t", &[".proverc", "lib/Test/More.pm"]),
        ("shellspec spec/a.sh && busted spec/a.lua", &[".shellspec", ".busted"]),
        ("tox && phpunit", &["tox.ini", "phpunit.dist.xml"]),
    ];
    let fixed = |script: &str| -> Vec<planctl_glob::Glob> {
        let fixed = deciding(script, &workspace).fixed;
        fixed.iter().map(|glob| planctl_glob::Glob::parse(glob).unwrap()).collect()
    };
    let has = |globs: &[planctl_glob::Glob], path: &str| globs.iter().any(|glob| glob.matches(path));
    // An honest worker installs, and makes folders.
    let honest = [
        "node_modules/.bin/jest",
        "new/package.json",
        "src/cart.egg-info/PKG-INFO",
        "app/pytest.py",
        "app/cart.h",
    ];
    let mut wrong = String::new();
    for (script, new) in cases {
        let fixed = fixed(script);
        for path in new.iter().filter(|path| !has(&fixed, path)) {
            wrong.push_str(&format!("{script}: {path} may be new\n"));
        }
        for path in honest.iter().filter(|path| has(&fixed, path)) {
            wrong.push_str(&format!("{script}: {path} may not be new\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(!has(&fixed("pytest tests"), "cart.egg-info/entry_points.txt"), "pytest alone does not find it");
    assert!(!has(&fixed("cd new && npm test"), "new/package.json"), "it is the work");
    for command in [
        "git diff --quiet HEAD",
        "git diff --name-only v1 | grep -qx a.txt",
        "! git grep -q TODO",
        "git log -1 --format=%s | grep -q mend",
        "git show HEAD:a.txt | grep -q x",
    ] {
        assert!(!has(&fixed(command), ".gitattributes"), "{command}");
    }
}

#[test]
fn a_new_file_with_the_name_of_a_check_has_make_run_nothing_so_it_is_a_change() {
    let fixed = |makefile: &'static str, script: &str| -> Vec<String> {
        let look = Files(BTreeMap::from([("Makefile", makefile), ("tests/check.sh", "")]));
        deciding(script, &look).fixed.iter().filter(|name| !name.contains("akefile")).cloned().collect()
    };
    let unit = "all: unit-tests\nunit-tests: src/a\n\tbash tests/check.sh\n";
    assert_eq!(fixed("test:\n\tbash tests/check.sh\n", "make -s test"), ["test"]);
    assert_eq!(fixed(unit, "make"), ["unit-tests"]);
    assert_eq!(fixed(unit, "make -C app"), [""; 0]);
    for (makefile, script) in [
        (".PHONY: all test\ntest:\n\tbash tests/check.sh\n", "make test"),
        ("P = test\n.PHONY: $(P)\ntest:\n\tbash tests/check.sh\n", "make test"),
        ("check: count\ncount: count.c\n\t$(CC) -o count count.c\n", "make check"),
        ("test: test.c\n\tcc -o test test.c\n", "make test"),
        ("test.log: a\n\tbash tests/check.sh > $@\n", "make test.log"),
        ("build:\n\t./gen\ntest:\n\tbash tests/check.sh\n", "make build"),
    ] {
        assert_eq!(fixed(makefile, script), [""; 0], "{makefile}");
    }
}

#[test]
fn a_project_that_has_yet_to_be_made_is_the_work() {
    let empty = Files(BTreeMap::from([("README.md", "")]));
    for script in ["cargo test", "npm test", "make check", "pytest tests", "go test ./...", "just check"] {
        let fixed = deciding(script, &empty).fixed;
        assert!(fixed.is_empty(), "{script}: {fixed:?}");
    }
}

#[test]
fn modules_that_are_there_are_the_projects_own_and_new_ones_go_before_the_library() {
    let workspace = Files(BTreeMap::from([("json/tool.py", ""), ("types.py", "")]));
    let fixed = deciding("python3 -m unittest tests.a", &workspace).fixed;
    let is_fixed =
        |path: &str| fixed.iter().any(|glob| planctl_glob::Glob::parse(glob).unwrap().matches(path));
    for path in ["unittest.py", "unittest/__init__.py", "re.py", "argparse.pyc", "csv.cpython-311.so"] {
        assert!(is_fixed(path), "{path}");
    }
    for path in ["types.py", "json/__init__.py", "shop.py", "shop/__init__.py", "tests/re.py"] {
        assert!(!is_fixed(path), "{path}");
    }
    let beside = deciding("PYTHONPATH=lib python3 tests/run.py", &workspace).fixed;
    for path in ["tests/unittest.py", "lib/sitecustomize.py"] {
        assert!(beside.iter().any(|glob| planctl_glob::Glob::parse(glob).unwrap().matches(path)), "{path}");
    }
}

#[test]
fn the_table_of_tools_is_the_documentations() {
    const OPENING: &str = "<!-- tools: written by crates/planctl-lang/tests/lang/deciding.rs -->\n";
    const CLOSING: &str = "<!-- end of tools -->";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contracts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(OPENING).expect("docs/contracts.md has a table of tools");
    let (shown, after) = rest.split_once(CLOSING).expect("the table has an end");
    let mut table = "| Program | Protected if it is there | A new one is a change too | What it names | Why |\n|---|---|---|---|---|\n".to_owned();
    let listed = |names: &[&str]| {
        let name = |name: &&str| if name.contains(' ') { (*name).to_owned() } else { format!("`{name}`") };
        names.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    for (calls, tool) in reading_programs() {
        let mut fixed = listed(tool.fixed);
        if !tool.above.is_empty() {
            let comma = if fixed.is_empty() { "" } else { ", " };
            fixed.push_str(&format!("{comma}{}, in the folders above too", listed(tool.above)));
        }
        let verbs = if tool.verbs.is_empty() { String::new() } else { format!(" {}", tool.verbs.join(", ")) };
        let verbs = tool.with.iter().fold(verbs, |verbs, sign| format!("{verbs} {sign}"));
        let programs: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
        let (kept, also, why) = (listed(tool.kept), tool.also, tool.why);
        table.push_str(&format!("| {}{verbs} | {kept} | {fixed} | {also} | {why} |\n", programs.join(", ")));
    }
    if table == shown {
        return;
    }
    assert!(
        std::env::var_os("PLANCTL_DOCS").is_some_and(|wish| wish == "write"),
        "PLANCTL_DOCS=write writes it:\n{table}"
    );
    std::fs::write(path, format!("{before}{OPENING}{table}{CLOSING}{after}")).unwrap();
}

#[test]
fn files_that_a_command_only_looks_at_are_told_from_those_that_it_runs_or_may_run() {
    let examined =
        |script: &str| named_files(script, &Unseen).examined.into_iter().collect::<Vec<_>>().join(" ");
    let looks = [
        ("gcc -fsyntax-only src.c", "src.c"),
        ("gcc -c src.c -o /dev/null && bash check.sh", "src.c"),
        ("gcc -fsyntax-only src.c && ./check", "src.c"),
        ("bash -n run.sh", "run.sh"),
        ("diff src.c want.txt", "src.c want.txt"),
        ("test \"$(wc -l < src.c)\" -gt 5", "src.c"),
        ("grep -q ok src.c", "src.c"),
        ("! grep -q TODO ./src/a.c src/b.c >/dev/null 2>&1", "src/a.c src/b.c"),
        ("cd src && grep -q ok a.c", "src/a.c"),
        ("cat src.c | sort | grep -q ok", "src.c"),
        ("diff <(sort a.txt) b.txt", "a.txt b.txt"),
        ("if [ -s src.c ]; then grep -q ok src.c; else exit 1; fi", "src.c"),
        ("timeout 60 xargs -n 1 grep -q ok src.c", "src.c"),
        ("bash -c 'grep -q ok src.c'", "src.c"),
        ("uv run ruff check --config ruff.toml src/a.py", "src/a.py"),
        ("python3 -m py_compile src/a.py", "src/a.py"),
        ("find . -name x -exec grep -q ok src.c {} +", "src.c"),
        ("git diff --exit-code -- src.c", "src.c"),
        ("git show HEAD:src.c | diff - src.c", "src.c"),
        ("sort src.txt | diff - want.txt", "src.txt want.txt"),
    ];
    let mut wrong = String::new();
    for (script, expected) in looks {
        let found = examined(script);
        if found != expected {
            wrong.push_str(&format!("{script}: {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let runs = [
        "bash check.sh",
        "bash check.sh -n",
        "bash check.sh src.c",
        "./check.sh",
        "bash < check.sh",
        "cat check.sh | bash",
        "cat check.tcl | tclsh",
        "grep -v '^#' check.tcl | sort | tclsh",
        "{ cat check.tcl; } | tclsh",
        "cat check.tcl > now && tclsh now",
        "bash -n check.sh && bash check.sh",
        "grep -q exit check.tcl && tclsh check.tcl",
        "eval \"$(cat check.sh)\"",
        "psql -f check.sql",
        "psql -c \"$(cat check.sql)\"",
        "q=$(cat check.sql); psql -c \"$q\"",
        "psql < check.sql",
        "while read -r t; do grep -q \"$t\" src; done < check.txt",
        "awk -f check.awk src",
        "awk -fcheck.awk src",
        "sed -n -f check.sed src",
        "jq -e -f check.jq src",
        "grep -qf check.txt src",
        "ruff check --config check.toml src",
        "eslint -c check.json src",
        "gcc -o check check.c && ./check",
        "gcc check.c; \"$PWD/a.out\"",
        "find . -name check.sh -exec grep -q ok {} \\; -exec bash check.sh \\;",
        "check() { tclsh \"$1\"; }; check check.tcl",
        "mycheck check.rules",
        "./count | diff - check.txt",
        "make && ./count < in.txt | diff -u check.txt -",
        "diff <(./count) check.txt",
        "diff check.txt - < <(python3 count.py)",
        "test \"$(./count)\" = \"$(cat check.txt)\"",
        "[[ $(./count) == $(< check.txt) ]]",
        "./count > out.txt && cmp out.txt check.txt",
        "curl -sf localhost:80 | cmp - check.txt",
    ];
    for script in runs {
        let found = examined(script);
        if found.contains("check") {
            wrong.push_str(&format!("{script}: {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
