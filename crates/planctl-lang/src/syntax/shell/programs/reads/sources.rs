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

pub(in crate::syntax::shell::programs) const RUFF: &[Reads] =
    &[nearest(&["ruff.toml", ".ruff.toml", "pyproject.toml", ".ignore"])];
pub(in crate::syntax::shell::programs) const BLACK: &[Reads] = &[nearest(&["pyproject.toml"])];
pub(in crate::syntax::shell::programs) const ISORT: &[Reads] =
    &[nearest(&[".isort.cfg", "pyproject.toml", "setup.cfg", "tox.ini", ".editorconfig"])];
pub(in crate::syntax::shell::programs) const MYPY: &[Reads] = &[Reads {
    below: &["*.pyi"],
    also: "no stub beside a module of its name (`cart.pyi` beside `cart.py`) in the folders that it is given (the one it works in, where none \
           is given), and below these: it is checked in the module's place",
    ..strictness(&["mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"])
}];
pub(in crate::syntax::shell::programs) const PYRIGHT: &[Reads] =
    &[strictness(&["pyrightconfig.json", "pyproject.toml"])];
pub(in crate::syntax::shell::programs) const PYLINT: &[Reads] = &[strictness(&[
    "{.pylintrc,pylintrc,.pylintrc.toml,pylintrc.toml}",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
])];
pub(in crate::syntax::shell::programs) const FLAKE8: &[Reads] =
    &[strictness(&[".flake8", "setup.cfg", "tox.ini"])];
pub(in crate::syntax::shell::programs) const CODESPELL: &[Reads] =
    &[strictness(&[".codespellrc", "setup.cfg", "pyproject.toml"])];
pub(in crate::syntax::shell::programs) const TYPOS: &[Reads] =
    &[strictness(&["{typos,_typos,.typos}.toml", "Cargo.toml", "pyproject.toml"])];
pub(in crate::syntax::shell::programs) const YAMLLINT: &[Reads] =
    &[strictness(&["{.yamllint,.yamllint.yaml,.yamllint.yml}"])];
pub(in crate::syntax::shell::programs) const SHELLCHECK: &[Reads] =
    &[nearest(&[".shellcheckrc", "shellcheckrc"])];
pub(in crate::syntax::shell::programs) const HADOLINT: &[Reads] = &[strictness(&[".hadolint.{yaml,yml}"])];
pub(in crate::syntax::shell::programs) const LUACHECK: &[Reads] = &[strictness(&[".luacheckrc"])];
pub(in crate::syntax::shell::programs) const RUBOCOP: &[Reads] = &[nearest(&[".rubocop.yml", ".rubocop"])];
pub(in crate::syntax::shell::programs) const RUSTFMT: &[Reads] =
    &[nearest(&["rustfmt.toml", ".rustfmt.toml"])];
pub(in crate::syntax::shell::programs) const GOLANGCI: &[Reads] =
    &[nearest(&[".golangci.{yml,yaml,toml,json}"])];
pub(in crate::syntax::shell::programs) const CLANG: &[Reads] =
    &[nearest(&[".clang-tidy", ".clang-format", "_clang-format", ".clang-format-ignore"])];
pub(in crate::syntax::shell::programs) const BIOME: &[Reads] =
    &[nearest(&["{biome,.biome}.{json,jsonc}", ".oxlintrc.json"])];
pub(in crate::syntax::shell::programs) const ESLINT: &[Reads] = &[Reads {
    below: &["eslint.config.{js,mjs,cjs,ts,mts,cts}", ".eslintrc", ".eslintrc.{js,cjs,yaml,yml,json}"],
    also: GIVEN,
    ..of_package(&[
        "eslint.config.{js,mjs,cjs,ts,mts,cts}",
        ".eslintrc",
        ".eslintrc.{js,cjs,yaml,yml,json}",
        ".eslintignore",
    ])
}];
pub(in crate::syntax::shell::programs) const STYLELINT: &[Reads] = &[Reads {
    below: &["stylelint.config.{js,mjs,cjs,ts}", ".stylelintrc", ".stylelintrc.{js,mjs,cjs,yaml,yml,json}"],
    also: GIVEN,
    ..of_package(&[
        "stylelint.config.{js,mjs,cjs,ts}",
        ".stylelintrc",
        ".stylelintrc.{js,mjs,cjs,yaml,yml,json}",
        ".stylelintignore",
    ])
}];
pub(in crate::syntax::shell::programs) const PRETTIER: &[Reads] = &[Reads {
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
pub(in crate::syntax::shell::programs) const MARKDOWNLINT: &[Reads] = &[nearest(&[
    "{.markdownlint,.markdownlint-cli2}.{json,jsonc,yaml,yml,cjs,mjs}",
    ".markdownlintrc",
    ".markdownlintignore",
])];
pub(in crate::syntax::shell::programs) const SEARCH: &[Reads] = &[Reads {
    below: &[".ignore", ".rgignore", ".agignore"],
    above: &[".ignore", ".rgignore", ".agignore"],
    also: "none in the folders that it is given (the one it works in, where none is given), and below these",
    why: "a folder that is ignored is not searched",
    ..READS
}];

// Settings of tools beyond those of one language, and of tools that look for secrets and weaknesses.
pub(in crate::syntax::shell::programs) const SEMGREP: &[Reads] = &[nearest(&[".semgrepignore"])];
pub(in crate::syntax::shell::programs) const BANDIT: &[Reads] = &[strictness(&[".bandit"])];
pub(in crate::syntax::shell::programs) const TRIVY: &[Reads] =
    &[strictness(&["trivy.yaml", ".trivyignore", ".trivyignore.yaml", "trivy-secret.yaml"])];
pub(in crate::syntax::shell::programs) const GITLEAKS: &[Reads] =
    &[strictness(&[".gitleaks.toml", ".gitleaksignore"])];
pub(in crate::syntax::shell::programs) const TFLINT: &[Reads] = &[strictness(&[".tflint.hcl"])];
pub(in crate::syntax::shell::programs) const CHECKOV: &[Reads] = &[strictness(&[".checkov.{yaml,yml}"])];
pub(in crate::syntax::shell::programs) const KUBE_LINTER: &[Reads] =
    &[strictness(&[".kube-linter.{yaml,yml}"])];
pub(in crate::syntax::shell::programs) const ANSIBLE_LINT: &[Reads] = &[strictness(&[
    "{.ansible-lint,.ansible-lint.yml,.ansible-lint.yaml,.ansible-lint-ignore}",
    ".config/ansible-lint*.yml",
])];
pub(in crate::syntax::shell::programs) const SPECTRAL: &[Reads] =
    &[strictness(&[".spectral.{yaml,yml,json,js}"])];
pub(in crate::syntax::shell::programs) const REDOCLY: &[Reads] =
    &[strictness(&["redocly.{yaml,yml}", ".redocly.lint-ignore.yaml"])];
pub(in crate::syntax::shell::programs) const BUF: &[Reads] = &[strictness(&["{buf,buf.work}.yaml"])];
pub(in crate::syntax::shell::programs) const VALE: &[Reads] = &[strictness(&["{.vale,_vale}.ini"])];
pub(in crate::syntax::shell::programs) const CSPELL: &[Reads] = &[of_package(&[
    "{cspell,.cspell}.{json,jsonc,yaml,yml}",
    "cspell.config.{js,cjs,mjs,json,jsonc,yaml,yml}",
])];
pub(in crate::syntax::shell::programs) const LYCHEE: &[Reads] =
    &[strictness(&["lychee.toml", ".lycheeignore"])];
pub(in crate::syntax::shell::programs) const DPRINT: &[Reads] =
    &[nearest(&["{dprint,.dprint}.{json,jsonc}"])];
pub(in crate::syntax::shell::programs) const TAPLO: &[Reads] = &[strictness(&["{taplo,.taplo}.toml"])];
pub(in crate::syntax::shell::programs) const REUSE: &[Reads] = &[strictness(&["REUSE.toml", ".reuse/dep5"])];
pub(in crate::syntax::shell::programs) const SQLFLUFF: &[Reads] =
    &[nearest(&[".sqlfluff", ".sqlfluffignore", "setup.cfg", "tox.ini", "pep8.ini", "pyproject.toml"])];
pub(in crate::syntax::shell::programs) const ACTIONLINT: &[Reads] =
    &[strictness(&[".github/actionlint.{yaml,yml}"])];
// Of single languages.
pub(in crate::syntax::shell::programs) const VULTURE: &[Reads] = &[strictness(&["pyproject.toml"])];
pub(in crate::syntax::shell::programs) const INTERROGATE: &[Reads] =
    &[strictness(&["pyproject.toml", "setup.cfg"])];
pub(in crate::syntax::shell::programs) const PYDOCSTYLE: &[Reads] = &[nearest(&[
    "{.pydocstyle,.pydocstyle.ini,.pydocstylerc,.pydocstylerc.ini}",
    "setup.cfg",
    "tox.ini",
    "pyproject.toml",
])];
pub(in crate::syntax::shell::programs) const DJLINT: &[Reads] =
    &[strictness(&["djlint.toml", ".djlintrc", "pyproject.toml"])];
pub(in crate::syntax::shell::programs) const HTMLHINT: &[Reads] = &[strictness(&[".htmlhintrc"])];
pub(in crate::syntax::shell::programs) const PHPSTAN: &[Reads] =
    &[strictness(&["phpstan.{neon,neon.dist,dist.neon}"])];
pub(in crate::syntax::shell::programs) const PSALM: &[Reads] = &[strictness(&["{psalm.xml,psalm.xml.dist}"])];
pub(in crate::syntax::shell::programs) const PHPCS: &[Reads] =
    &[strictness(&["{.phpcs.xml,phpcs.xml,.phpcs.xml.dist,phpcs.xml.dist}", "CodeSniffer.conf"])];
pub(in crate::syntax::shell::programs) const PHP_CS_FIXER: &[Reads] =
    &[strictness(&["{.php-cs-fixer,.php-cs-fixer.dist}.php"])];
pub(in crate::syntax::shell::programs) const CPPLINT: &[Reads] = &[nearest(&["CPPLINT.cfg"])];
pub(in crate::syntax::shell::programs) const STATICCHECK: &[Reads] = &[nearest(&["staticcheck.conf"])];
pub(in crate::syntax::shell::programs) const REVIVE: &[Reads] = &[strictness(&["revive.toml"])];
pub(in crate::syntax::shell::programs) const KTLINT: &[Reads] = &[nearest(&[".editorconfig"])];
pub(in crate::syntax::shell::programs) const SWIFTLINT: &[Reads] =
    &[nearest(&[".swiftlint.yml", ".swiftformat"])];
pub(in crate::syntax::shell::programs) const PERLCRITIC: &[Reads] = &[strictness(&[".perlcriticrc"])];
pub(in crate::syntax::shell::programs) const REEK: &[Reads] = &[nearest(&[".reek.yml"])];
pub(in crate::syntax::shell::programs) const STANDARD_RB: &[Reads] = &[strictness(&[".standard.yml"])];
pub(in crate::syntax::shell::programs) const CREDO: Reads = strictness(&["{.credo.exs,config/.credo.exs}"]);
pub(in crate::syntax::shell::programs) const DART_ANALYZER: Reads = nearest(&["analysis_options.yaml"]);
