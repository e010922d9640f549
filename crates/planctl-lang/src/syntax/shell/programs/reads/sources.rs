//! The settings of programs that look at sources, and which files those pass over.

use super::{READS, Reads};

/// Why the settings of programs that look at sources are protected.
pub(super) const STRICTNESS: &str = "which files are checked, and how strictly, stands there";

/// The meaning of `below`, for people.
const GIVEN: &str = "no new settings of its own in the folders that it is given (the one it works in, where none is given), below these, \
                     and around the files that it is given";

/// The settings of a program that looks at sources, in the folder it works in and those above.
const fn strictness(above: &'static [&'static str]) -> Reads {
    Reads { above, why: STRICTNESS, ..READS }
}

/// The same where the settings that are nearest to a file count for it.
const fn nearest(names: &'static [&'static str]) -> Reads {
    Reads { below: names, also: GIVEN, ..strictness(names) }
}

/// The same beside a `package.json`, which may hold them, too.
const fn of_package(above: &'static [&'static str]) -> Reads {
    Reads { kept: &["package.json"], ..strictness(above) }
}

pub(crate) const RUFF: &[Reads] = &[nearest(&["ruff.toml", ".ruff.toml", "pyproject.toml", ".ignore"])];
pub(crate) const BLACK: &[Reads] = &[nearest(&["pyproject.toml"])];
pub(crate) const ISORT: &[Reads] =
    &[nearest(&[".isort.cfg", "pyproject.toml", "setup.cfg", "tox.ini", ".editorconfig"])];
pub(crate) const MYPY: &[Reads] = &[Reads {
    below: &["*.pyi"],
    also: "no stub beside a module of its name (`cart.pyi` beside `cart.py`) in the folders that it is given (the one it works in, where none \
           is given), and below these: it is checked in the module's place",
    ..strictness(&["mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"])
}];
pub(crate) const PYRIGHT: &[Reads] = &[strictness(&["pyrightconfig.json", "pyproject.toml"])];
pub(crate) const PYLINT: &[Reads] = &[strictness(&[
    "{.pylintrc,pylintrc,.pylintrc.toml,pylintrc.toml}",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
])];
pub(crate) const FLAKE8: &[Reads] = &[strictness(&[".flake8", "setup.cfg", "tox.ini"])];
pub(crate) const CODESPELL: &[Reads] = &[strictness(&[".codespellrc", "setup.cfg", "pyproject.toml"])];
pub(crate) const TYPOS: &[Reads] =
    &[strictness(&["{typos,_typos,.typos}.toml", "Cargo.toml", "pyproject.toml"])];
pub(crate) const YAMLLINT: &[Reads] = &[strictness(&["{.yamllint,.yamllint.yaml,.yamllint.yml}"])];
pub(crate) const SHELLCHECK: &[Reads] = &[nearest(&[".shellcheckrc", "shellcheckrc"])];
pub(crate) const HADOLINT: &[Reads] = &[strictness(&[".hadolint.{yaml,yml}"])];
pub(crate) const LUACHECK: &[Reads] = &[strictness(&[".luacheckrc"])];
pub(crate) const RUBOCOP: &[Reads] = &[nearest(&[".rubocop.yml", ".rubocop"])];
pub(crate) const RUSTFMT: &[Reads] = &[nearest(&["rustfmt.toml", ".rustfmt.toml"])];
pub(crate) const GOLANGCI: &[Reads] = &[nearest(&[".golangci.{yml,yaml,toml,json}"])];
pub(crate) const CLANG: &[Reads] =
    &[nearest(&[".clang-tidy", ".clang-format", "_clang-format", ".clang-format-ignore"])];
pub(crate) const BIOME: &[Reads] = &[nearest(&["{biome,.biome}.{json,jsonc}", ".oxlintrc.json"])];
pub(crate) const ESLINT: &[Reads] = &[Reads {
    below: &["eslint.config.{js,mjs,cjs,ts,mts,cts}", ".eslintrc", ".eslintrc.{js,cjs,yaml,yml,json}"],
    also: GIVEN,
    ..of_package(&[
        "eslint.config.{js,mjs,cjs,ts,mts,cts}",
        ".eslintrc",
        ".eslintrc.{js,cjs,yaml,yml,json}",
        ".eslintignore",
    ])
}];
pub(crate) const STYLELINT: &[Reads] = &[Reads {
    below: &["stylelint.config.{js,mjs,cjs,ts}", ".stylelintrc", ".stylelintrc.{js,mjs,cjs,yaml,yml,json}"],
    also: GIVEN,
    ..of_package(&[
        "stylelint.config.{js,mjs,cjs,ts}",
        ".stylelintrc",
        ".stylelintrc.{js,mjs,cjs,yaml,yml,json}",
        ".stylelintignore",
    ])
}];
pub(crate) const PRETTIER: &[Reads] = &[Reads {
    below: &[".prettierrc", ".prettierrc.{js,mjs,cjs,ts,mts,cts,yaml,yml,json,json5,toml}", ".editorconfig"],
    also: GIVEN,
    ..of_package(&[
        "prettier.config.{js,mjs,cjs,ts,mts,cts}",
        ".prettierrc",
        ".prettierrc.{js,mjs,cjs,ts,mts,cts,yaml,yml,json,json5,toml}",
        ".prettierignore",
        ".editorconfig",
    ])
}];
pub(crate) const MARKDOWNLINT: &[Reads] = &[nearest(&[
    "{.markdownlint,.markdownlint-cli2}.{json,jsonc,yaml,yml,cjs,mjs}",
    ".markdownlintrc",
    ".markdownlintignore",
])];
pub(crate) const SEARCH: &[Reads] = &[Reads {
    below: &[".ignore", ".rgignore", ".agignore"],
    above: &[".ignore", ".rgignore", ".agignore"],
    also: "none in the folders that it is given (the one it works in, where none is given), and below these",
    why: "a folder that is ignored is not searched",
    ..READS
}];

// Settings of tools beyond those of one language, and of tools that look for secrets and weaknesses.
pub(crate) const SEMGREP: &[Reads] = &[nearest(&[".semgrepignore"])];
pub(crate) const BANDIT: &[Reads] = &[strictness(&[".bandit"])];
pub(crate) const TRIVY: &[Reads] =
    &[strictness(&["trivy.yaml", ".trivyignore", ".trivyignore.yaml", "trivy-secret.yaml"])];
pub(crate) const GITLEAKS: &[Reads] = &[strictness(&[".gitleaks.toml", ".gitleaksignore"])];
pub(crate) const TFLINT: &[Reads] = &[strictness(&[".tflint.hcl"])];
pub(crate) const CHECKOV: &[Reads] = &[strictness(&[".checkov.{yaml,yml}"])];
pub(crate) const KUBE_LINTER: &[Reads] = &[strictness(&[".kube-linter.{yaml,yml}"])];
pub(crate) const ANSIBLE_LINT: &[Reads] = &[strictness(&[
    "{.ansible-lint,.ansible-lint.yml,.ansible-lint.yaml,.ansible-lint-ignore}",
    ".config/ansible-lint*.yml",
])];
pub(crate) const SPECTRAL: &[Reads] = &[strictness(&[".spectral.{yaml,yml,json,js}"])];
pub(crate) const REDOCLY: &[Reads] = &[strictness(&["redocly.{yaml,yml}", ".redocly.lint-ignore.yaml"])];
pub(crate) const BUF: &[Reads] = &[strictness(&["{buf,buf.work}.yaml"])];
pub(crate) const VALE: &[Reads] = &[strictness(&["{.vale,_vale}.ini"])];
pub(crate) const CSPELL: &[Reads] = &[of_package(&[
    "{cspell,.cspell}.{json,jsonc,yaml,yml}",
    "cspell.config.{js,cjs,mjs,json,jsonc,yaml,yml}",
])];
pub(crate) const LYCHEE: &[Reads] = &[strictness(&["lychee.toml", ".lycheeignore"])];
pub(crate) const DPRINT: &[Reads] = &[nearest(&["{dprint,.dprint}.{json,jsonc}"])];
pub(crate) const TAPLO: &[Reads] = &[strictness(&["{taplo,.taplo}.toml"])];
pub(crate) const REUSE: &[Reads] = &[strictness(&["REUSE.toml", ".reuse/dep5"])];
pub(crate) const SQLFLUFF: &[Reads] =
    &[nearest(&[".sqlfluff", ".sqlfluffignore", "setup.cfg", "tox.ini", "pep8.ini", "pyproject.toml"])];
pub(crate) const ACTIONLINT: &[Reads] = &[strictness(&[".github/actionlint.{yaml,yml}"])];
// Of single languages.
pub(crate) const VULTURE: &[Reads] = &[strictness(&["pyproject.toml"])];
pub(crate) const INTERROGATE: &[Reads] = &[strictness(&["pyproject.toml", "setup.cfg"])];
pub(crate) const PYDOCSTYLE: &[Reads] = &[nearest(&[
    "{.pydocstyle,.pydocstyle.ini,.pydocstylerc,.pydocstylerc.ini}",
    "setup.cfg",
    "tox.ini",
    "pyproject.toml",
])];
pub(crate) const DJLINT: &[Reads] = &[strictness(&["djlint.toml", ".djlintrc", "pyproject.toml"])];
pub(crate) const HTMLHINT: &[Reads] = &[strictness(&[".htmlhintrc"])];
pub(crate) const PHPSTAN: &[Reads] = &[strictness(&["phpstan.{neon,neon.dist,dist.neon}"])];
pub(crate) const PSALM: &[Reads] = &[strictness(&["{psalm.xml,psalm.xml.dist}"])];
pub(crate) const PHPCS: &[Reads] =
    &[strictness(&["{.phpcs.xml,phpcs.xml,.phpcs.xml.dist,phpcs.xml.dist}", "CodeSniffer.conf"])];
pub(crate) const PHP_CS_FIXER: &[Reads] = &[strictness(&["{.php-cs-fixer,.php-cs-fixer.dist}.php"])];
pub(crate) const CPPLINT: &[Reads] = &[nearest(&["CPPLINT.cfg"])];
pub(crate) const STATICCHECK: &[Reads] = &[nearest(&["staticcheck.conf"])];
pub(crate) const REVIVE: &[Reads] = &[strictness(&["revive.toml"])];
pub(crate) const KTLINT: &[Reads] = &[nearest(&[".editorconfig"])];
pub(crate) const SWIFTLINT: &[Reads] = &[nearest(&[".swiftlint.yml", ".swiftformat"])];
pub(crate) const PERLCRITIC: &[Reads] = &[strictness(&[".perlcriticrc"])];
pub(crate) const REEK: &[Reads] = &[nearest(&[".reek.yml"])];
pub(crate) const STANDARD_RB: &[Reads] = &[strictness(&[".standard.yml"])];
pub(crate) const CREDO: Reads = strictness(&["{.credo.exs,config/.credo.exs}"]);
pub(crate) const DART_ANALYZER: Reads = nearest(&["analysis_options.yaml"]);

// Languages whose scripts a contract runs.
pub(crate) const RUBY: &[Reads] = &[Reads {
    also: "the script, and in a folder of tests what is there already; what `-r` names; in the folders of `-I`, no new file takes \
           precedence over Ruby's library or a runner's (`minitest/**`, `optparse.rb`)",
    why: "what the script loads of elsewhere is the code under test",
    ..READS
}];

pub(crate) const PHP: &[Reads] = &[Reads {
    also: "the script, and in a folder of tests what is there already; what `-c` names, and the files that it has PHP load first",
    why: "what the script loads of elsewhere is the code under test",
    ..READS
}];
