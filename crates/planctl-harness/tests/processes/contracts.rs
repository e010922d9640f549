//! The evidence of contracts, which no command can forge (A6–A13, P-41, X-04, X-15, X-20).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use planctl_engine::{Contract, Ending, Evidence, FileChange, HarnessResult, Inconclusive, Tier, Verdict};
use planctl_harness::{Baseline, ContractRunner, Isolation, PATH_DEFAULT, digest_of};

use super::support::{alive, block_on, spawner};
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a12_twenty_endings_and_their_verdicts,
        a7_no_start_up_file_variable_or_function_changes_the_shell,
        a8_a_fake_grep_in_the_workspace_is_not_found,
        a9_no_interpreter_variable_arrives,
        a10_a_repositorys_own_git_configuration_starts_nothing,
        a06_only_reports_of_this_evaluation_count_and_only_with_its_exit_code,
        a06_tests_are_counted_at_every_tier,
        a11_output_is_never_read_for_meaning,
        p_41_x_20_a_timed_out_contract_leaves_nothing,
        x_15_bash_without_pipefail_or_errexit,
        death_by_signal_never_passes_whatever_was_expected,
        a4_a_protected_file_changed_before_is_tampered_and_nothing_runs,
        a4_a_protected_file_changed_by_the_contract_is_tampered,
        b4_a_protected_file_of_eight_tebibytes_is_told_without_being_read,
        hole_8_what_the_contract_itself_creates_is_not_the_workers_tampering,
        cheat_48_a_protected_file_that_is_swapped_and_put_back_tells_nothing,
        sec_42_a_deciding_name_that_was_absent_is_made_by_no_code_under_test,
        an_interrupted_gate_tells_nothing,
        a_missing_workspace_tells_nothing_and_a_missing_command_fails,
        the_evidence_says_what_happened,
        a_long_output_is_stored_beside_its_tail,
        a17_a_contract_that_kills_its_parent_passes_nothing,
    ]
}

struct Place {
    folder: tempfile::TempDir,
    runner: ContractRunner,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let runner =
            ContractRunner::new(spawner(), folder.path(), None, [("CI".into(), "1".into())]).unwrap();
        Place { folder, runner }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn found(&self, contract: &Contract, baseline: Baseline) -> HarnessResult {
        block_on(async {
            let gate = self
                .runner
                .evaluate(contract, &Arc::new(baseline), &mut |_, _| (), std::future::pending())
                .await;
            gate.found
        })
    }

    fn evidence(&self, contract: &Contract) -> Evidence {
        match self.found(contract, Baseline::default()) {
            HarnessResult::Evidence(evidence) | HarnessResult::Rehearsed(evidence) => *evidence,
            HarnessResult::Nothing(inconclusive) => panic!("{}: {inconclusive:?}", contract.command),
            other @ (HarnessResult::Recorded { .. }
            | HarnessResult::Restored
            | HarnessResult::Forked { .. }
            | HarnessResult::Merged { .. }
            | HarnessResult::Conflicted(_)
            | HarnessResult::Begun { .. }
            | HarnessResult::Ended(_)) => panic!("{}: {other:?}", contract.command),
        }
    }

    fn verdict(&self, command: &str) -> Verdict {
        let contract = contract(command, 0);
        contract.judge(&self.evidence(&contract)).unwrap()
    }
}

fn contract(command: &str, expect: u8) -> Contract {
    Contract { expect, ..super::support::contract(command, Duration::from_secs(10)) }
}

fn a12_twenty_endings_and_their_verdicts() {
    let place = Place::new();
    let endings: &[(&str, u8, Verdict)] = &[
        ("true", 0, Verdict::Passed),
        ("false", 0, Verdict::Failed),
        ("false", 1, Verdict::Passed),
        ("exit 2", 2, Verdict::Passed),
        ("exit 255", 255, Verdict::Passed),
        ("exit 256", 0, Verdict::Passed),
        ("exit -1", 255, Verdict::Passed),
        ("kill $$", 0, Verdict::Failed),
        ("kill -9 $$", 137, Verdict::Failed),
        ("kill -TERM $$", 143, Verdict::Failed),
        ("trap 'exit 0' TERM; kill $$; exit 1", 0, Verdict::Passed),
        ("trap 'exit 0' EXIT; exit 1", 0, Verdict::Passed),
        ("exec true", 0, Verdict::Passed),
        ("exec false", 0, Verdict::Failed),
        ("no-such-command-at-all", 127, Verdict::Passed),
        ("no-such-command-at-all", 0, Verdict::Failed),
        ("if then", 0, Verdict::Failed),
        (": ${unset:?}", 0, Verdict::Failed),
        ("(exit 3)", 3, Verdict::Passed),
        ("false; true", 0, Verdict::Passed),
        ("ulimit -c 0; kill -SEGV $$", 139, Verdict::Failed),
        ("(kill -9 $BASHPID)", 137, Verdict::Passed),
        ("", 0, Verdict::Passed),
    ];
    for (command, expect, verdict) in endings {
        let contract = contract(command, *expect);
        assert_eq!(
            contract.judge(&place.evidence(&contract)),
            Some(*verdict),
            "{command}, expecting {expect}"
        );
    }
}

fn a7_no_start_up_file_variable_or_function_changes_the_shell() {
    let place = Place::new();
    for file in [".bashrc", ".bash_profile", ".profile", ".bash_login", ".inputrc", ".bash_logout"] {
        place.write(file, "exit 0\n");
    }
    for command in ["false", "test 1 = 2", "[ -e nowhere ]", "false || exit 1"] {
        assert_eq!(place.verdict(command), Verdict::Failed, "{command}");
    }
    for name in
        ["BASH_ENV", "ENV", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT", "BASH_COMPAT"]
    {
        assert_eq!(place.verdict(&format!("[ -z \"${{{name}+set}}\" ]")), Verdict::Passed, "{name}");
    }
    assert_eq!(place.verdict("[[ $- != *e* && $- != *n* ]] && ! declare -F | grep -q ."), Verdict::Passed);
}

fn a8_a_fake_grep_in_the_workspace_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let path = format!(":.:./bin:{}:{PATH_DEFAULT}", workspace.join("bin").display());
    let runner = ContractRunner::new(spawner(), &workspace, Some(path.as_ref()), []).unwrap();
    let place = Place { folder, runner };
    for fake in ["grep", "bin/grep"] {
        place.write(fake, "#!/bin/sh\nexit 0\n");
    }
    place.write("file", "nothing here\n");
    assert_eq!(place.verdict("grep -q TODO file"), Verdict::Failed);
    assert_eq!(
        place.verdict("[ \"$(command -v grep)\" = /usr/bin/grep ] || [ \"$(command -v grep)\" = /bin/grep ]"),
        Verdict::Passed
    );
}

fn a9_no_interpreter_variable_arrives() {
    assert!(std::env::var("PYTHONPATH").is_ok_and(|value| value.contains("evil")), "this program has it");
    assert_eq!(Place::new().verdict("! env | grep evil"), Verdict::Passed);
}

fn a10_a_repositorys_own_git_configuration_starts_nothing() {
    let place = Place::new();
    let script = place.write("evil.sh", &format!("#!/bin/sh\ntouch {}/started\n", place.path().display()));
    let set = format!(
        "git init -q . && git config user.name t && git config user.email t@example.org \
         && git config core.fsmonitor {0} && git config core.hooksPath {1} && git config core.sshCommand {0}",
        script.display(),
        place.path().join("hooks").display()
    );
    assert_eq!(place.verdict(&set), Verdict::Passed);
    for hook in ["pre-commit", "post-commit", "post-index-change", "commit-msg"] {
        place.write(&format!("hooks/{hook}"), &std::fs::read_to_string(&script).unwrap());
        place.write(&format!(".git/hooks/{hook}"), &std::fs::read_to_string(&script).unwrap());
    }
    assert_eq!(
        place.verdict("git status && git add evil.sh && git commit -qm x && git log"),
        Verdict::Passed
    );
    assert!(!place.path().join("started").exists());
    let head = place.evidence(&contract("true", 0)).git_head;
    assert!(head.is_some_and(|head| head.len() == 40));
}

fn a11_output_is_never_read_for_meaning() {
    let place = Place::new();
    for text in [
        "exit_code == 0",
        "::set-env name=PATH::.",
        "{\"planctl\":\"result/1\",\"outcome\":\"worked\"}",
        "PASSED",
        "✅",
    ] {
        assert_eq!(
            place.verdict(&format!("echo '{text}'; echo '{text}' >&2; exit 1")),
            Verdict::Failed,
            "{text}"
        );
    }
}

fn p_41_x_20_a_timed_out_contract_leaves_nothing() {
    let place = Place::new();
    let mark = format!("{}", place.path().display());
    let command = format!("export MARK={mark}; sleep 999 & sleep 999");
    let mut contract = contract(&command, 0);
    contract.timeout = Duration::from_millis(300);
    let started = Instant::now();
    let evidence = place.evidence(&contract);
    assert_eq!(contract.judge(&evidence), Some(Verdict::TimedOut));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(alive(&format!("MARK={mark}")), [0_i32; 0]);
}

fn x_15_bash_without_pipefail_or_errexit() {
    let place = Place::new();
    assert_eq!(place.verdict("[[ abc == a* ]] && [[ abc =~ ^a ]]"), Verdict::Passed);
    for _ in 0..20 {
        assert_eq!(place.verdict("seq 1 200000 | grep -q 5"), Verdict::Passed);
    }
    assert_eq!(
        place.verdict("false; [ \"$0\" != sh ]; shopt -qo pipefail || ! shopt -qo errexit"),
        Verdict::Passed
    );
}

fn death_by_signal_never_passes_whatever_was_expected() {
    let place = Place::new();
    for (signal, expect) in [(9, 137), (15, 143), (15, 15), (9, 0), (11, 139)] {
        let contract = contract(&format!("kill -{signal} $$"), expect);
        let evidence = place.evidence(&contract);
        assert_eq!(evidence.ending, Ending::Signalled { signal });
        assert_eq!(contract.judge(&evidence), Some(Verdict::Failed));
    }
}

fn a4_a_protected_file_changed_before_is_tampered_and_nothing_runs() {
    let place = Place::new();
    place.write("test.sh", "exit 1");
    let baseline = Baseline::take(place.path(), ["test.sh"], []).unwrap();
    let contract = contract("touch ran; bash test.sh", 0);
    place.write("test.sh", "exit 0");
    let HarnessResult::Evidence(evidence) = place.found(&contract, baseline) else { panic!("evidence") };
    assert_eq!(contract.judge(&evidence), Some(Verdict::Tampered));
    assert_eq!((evidence.ending, evidence.tampered[0].path.as_str()), (Ending::NotRun, "test.sh"));
    assert_eq!(evidence.protected["test.sh"], Some(digest_of(b"exit 0")));
    assert!(!place.path().join("ran").exists());
}

fn a4_a_protected_file_changed_by_the_contract_is_tampered() {
    let place = Place::new();
    place.write("tests/one.sh", "exit 1");
    let baseline = || Baseline::take(place.path(), ["tests/one.sh"], ["tests/*"]).unwrap();
    let passes = contract("! bash tests/one.sh", 0);
    let HarnessResult::Evidence(evidence) = place.found(&passes, baseline()) else { panic!("evidence") };
    assert_eq!(passes.judge(&evidence), Some(Verdict::Passed));
    let changes = contract("echo 'exit 0' >tests/one.sh", 0);
    let HarnessResult::Evidence(evidence) = place.found(&changes, baseline()) else { panic!("evidence") };
    assert_eq!(changes.judge(&evidence), Some(Verdict::Tampered));
    assert_eq!(evidence.tampered[0].change, FileChange::Changed);
}

fn b4_a_protected_file_of_eight_tebibytes_is_told_without_being_read() {
    let place = Place::new();
    let check = place.write("tests/check.sh", "true\n");
    let baseline = Baseline::take(place.path(), [], ["tests/*"]).unwrap();
    let grow = |path: &Path| {
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        file.set_len(8 << 40).unwrap();
    };
    grow(&check);
    grow(&place.path().join("tests/new.sh"));
    let began = Instant::now();
    let found = place.found(&contract("bash tests/check.sh", 0), baseline);
    let HarnessResult::Evidence(evidence) = found else { panic!("{found:?}") };
    let changes: Vec<_> = evidence.tampered.iter().map(|file| (file.path.as_str(), file.change)).collect();
    assert_eq!(
        changes,
        [("tests/check.sh", FileChange::Changed), ("tests/new.sh", FileChange::Created)],
        "{evidence:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let refused = Baseline::take(place.path(), [], ["tests/*"]).unwrap_err().to_string();
    assert!(refused.contains(".sh`") && refused.contains("more than 4 GiB"), "{refused}");
}

fn hole_8_what_the_contract_itself_creates_is_not_the_workers_tampering() {
    let place = Place::new();
    place.write("tests/one.sh", "exit 0");
    let mut baseline = Baseline::take(place.path(), [], ["tests/**"]).unwrap();
    let contract = contract(
        "mkdir -p tests/__pycache__ && touch tests/__pycache__/one.pyc && echo $$ >tests/.coverage",
        0,
    );
    let gate = |baseline: &Baseline| {
        block_on(place.runner.evaluate(
            &contract,
            &Arc::new(baseline.clone()),
            &mut |_, _| (),
            std::future::pending(),
        ))
    };
    let verdict = |found: &HarnessResult| {
        let HarnessResult::Evidence(evidence) = found else { panic!("{found:?}") };
        contract.judge(evidence)
    };
    let first = gate(&baseline);
    assert_eq!(verdict(&first.found), Some(Verdict::Passed));
    assert_eq!(first.made.keys().collect::<Vec<_>>(), ["tests/.coverage"], "caches are nobody's work");
    // Without knowing whose it is, it is taken for the worker's.
    assert_eq!(verdict(&gate(&baseline).found), Some(Verdict::Tampered));
    baseline.by_products.extend(first.made);
    assert_eq!(verdict(&gate(&baseline).found), Some(Verdict::Passed), "it was removed, and made anew");
    place.write("tests/conftest.py", "the worker's");
    assert_eq!(verdict(&gate(&baseline).found), Some(Verdict::Tampered));
}

fn cheat_48_a_protected_file_that_is_swapped_and_put_back_tells_nothing() {
    let place = Place::new();
    place.write("tests/deep/check.sh", "exit 1");
    place.write("evil/deep/check.sh", "exit 0");
    let baseline = || Baseline::take(place.path(), ["tests/deep/check.sh"], []).unwrap();
    let file = "tests/deep/check.sh";
    for swap in [
        // In place, with the times put back.
        format!(
            "cp -p {file} kept; echo exit 0 >{file}; bash {file}; r=$?; cat kept >{file}; touch -r kept {file}; exit $r"
        ),
        // The file itself moved away and back.
        format!("mv {file} kept; echo exit 0 >{file}; bash {file}; r=$?; mv kept {file}; exit $r"),
        // Folders on the way moved away and back: no inode of the file's own changes.
        format!("mv tests kept; mv evil tests; bash {file}; r=$?; mv tests evil; mv kept tests; exit $r"),
        format!(
            "mv tests/deep kept; ln -s ../evil/deep tests/deep; bash {file}; r=$?; rm tests/deep; mv kept tests/deep; exit $r"
        ),
    ] {
        let contract = contract(&swap, 0);
        let found = place.found(&contract, baseline());
        let HarnessResult::Nothing(Inconclusive::Unstable { what }) = &found else {
            panic!("{swap}: {found:?}")
        };
        assert!(what.contains(file) && what.contains("put back"), "{what}");
    }
    // Honest twins: a contract that does not change the file's bytes, even for a moment, is judged.
    for honest in [
        format!("chmod -x {file}; chmod +x {file}; ln {file} other; rm other; ! bash {file}"),
        format!("touch tests/deep/log; cp {file} tests/deep/copy; rm tests/deep/log; ! bash tests/deep/copy"),
        format!("for i in $(seq 200); do echo $i >tests/deep/$i; rm tests/deep/$i; done; ! bash {file}"),
    ] {
        let contract = contract(&honest, 0);
        let HarnessResult::Evidence(evidence) = place.found(&contract, baseline()) else {
            panic!("{honest}")
        };
        assert_eq!(contract.judge(&evidence), Some(Verdict::Passed), "{honest}: {evidence:?}");
    }
}

fn sec_42_a_deciding_name_that_was_absent_is_made_by_no_code_under_test() {
    let place = Place::new();
    place.write("tests/unit/one.py", "");
    let names = ["GNUmakefile", ".cargo/config.toml", "tests/**/conftest.py", "{json,re}.py"];
    let deciding = names.map(|name| (name.to_owned(), BTreeSet::from([digest_of(b"the contract")])));
    let mut baseline = Baseline::take(place.path(), [], ["tests/**"]).unwrap();
    baseline.add_deciding(place.path(), deciding.into()).unwrap();
    let baseline = Arc::new(baseline);
    let gate = |command: &str| {
        let contract = contract(command, 0);
        block_on(place.runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()))
    };
    for path in
        ["GNUmakefile", ".cargo/config.toml", "tests/unit/conftest.py", "tests/conftest.py", "json.py"]
    {
        let made = gate(&format!("mkdir -p .cargo; echo x >{path}"));
        let HarnessResult::Evidence(evidence) = &made.found else { panic!("{path}: {:?}", made.found) };
        let changes: Vec<_> =
            evidence.tampered.iter().map(|file| (file.path.as_str(), file.change)).collect();
        assert_eq!(changes, [(path, FileChange::Created)]);
        assert_eq!(made.made, BTreeMap::new(), "it is not removed as a by-product either");
        std::fs::remove_file(place.path().join(path)).unwrap();
        for put_back in [format!("echo x >{path}; rm {path}"), format!("touch x; mv x {path}; mv {path} x")] {
            let found = gate(&put_back).found;
            let HarnessResult::Nothing(Inconclusive::Unstable { what }) = &found else {
                panic!("{put_back}: {found:?}")
            };
            assert!(what.contains(path) && what.contains("put back"), "{what}");
        }
    }
    // Honest twins: names beside them, and folders that come and go.
    std::fs::remove_dir(place.path().join(".cargo")).unwrap();
    for honest in [
        "mkdir .cargo; touch .cargo/registry; rm -r .cargo",
        "touch GNUmakefile.in csv.py tests/unit/two.py; rm GNUmakefile.in csv.py tests/unit/two.py",
        "mkdir tests/work; touch tests/work/out; rm -r tests/work; mkdir -p tests/__pycache__",
    ] {
        let HarnessResult::Evidence(evidence) = gate(honest).found else { panic!("{honest}") };
        assert_eq!(contract(honest, 0).judge(&evidence), Some(Verdict::Passed), "{honest}: {evidence:?}");
    }
}

fn an_interrupted_gate_tells_nothing() {
    let place = Place::new();
    let gate = block_on(async {
        let contract = contract("sleep 999", 0);
        place.runner.evaluate(&contract, &Arc::default(), &mut |_, _| (), std::future::ready(())).await
    });
    assert_eq!(gate.found, HarnessResult::Nothing(Inconclusive::Interrupted));
}

fn a_missing_workspace_tells_nothing_and_a_missing_command_fails() {
    let place = Place::new();
    assert_eq!(place.evidence(&contract("no-such-command", 0)).ending, Ending::Exited { code: 127 });
    std::fs::remove_dir_all(place.path()).unwrap();
    let HarnessResult::Nothing(Inconclusive::ToolMissing { what }) =
        place.found(&contract("true", 0), Baseline::default())
    else {
        panic!("nothing");
    };
    assert!(what.contains("workspace"), "{what}");
}

fn the_evidence_says_what_happened() {
    let place = Place::new();
    let contract = contract("echo out; echo err >&2; setsid sleep 999 & sleep 0.05; exit 3", 3);
    let evidence = place.evidence(&contract);
    assert_eq!(evidence.contract, contract.digest);
    assert_eq!(evidence.ending, Ending::Exited { code: 3 });
    assert_eq!((evidence.stdout.tail.as_str(), evidence.stderr.tail.as_str()), ("out\n", "err\n"));
    assert_eq!((evidence.stragglers, evidence.isolation), (1, Tier::SameUser));
    assert!(evidence.duration >= Duration::from_millis(50) && evidence.resources.max_rss_kib > 0);
}

fn a_long_output_is_stored_beside_its_tail() {
    let place = Place::new();
    let contract = contract("seq 1 100000", 0);
    let gate = block_on(async {
        place.runner.evaluate(&contract, &Arc::default(), &mut |_, _| (), std::future::pending()).await
    });
    let HarnessResult::Evidence(evidence) = gate.found else { panic!("evidence") };
    assert_eq!(evidence.stdout.bytes, 588_895);
    assert!(evidence.stdout.tail.ends_with("\n99999\n100000\n") && evidence.stdout.tail.len() <= 4096);
    let stored =
        gate.outputs.iter().find(|output| Some(&output.digest) == evidence.stdout.stored.as_ref()).unwrap();
    assert!(stored.bytes.starts_with(b"1\n2\n") && stored.bytes.ends_with(b"\n100000\n"));
    assert_eq!(stored.digest, digest_of(&stored.bytes));
}

fn a17_a_contract_that_kills_its_parent_passes_nothing() {
    let place = Place::new();
    let found = place.found(&contract("kill -9 $PPID; exit 0", 0), Baseline::default());
    assert_eq!(found, HarnessResult::Nothing(Inconclusive::Interrupted));
    assert_eq!(place.verdict("true"), Verdict::Passed, "the next gate has a new guardian");
}

/// A contract of a step that asks for two tests.
fn counted(command: &str) -> Contract {
    Contract { min_tests: Some(2), ..contract(command, 0) }
}

fn a06_only_reports_of_this_evaluation_count_and_only_with_its_exit_code() {
    let place = Place::new();
    let shows = |command: &str| {
        let contract = counted(command);
        let evidence = place.evidence(&contract);
        (evidence.tests.map(|tests| (tests.passed, tests.least)), contract.judge(&evidence).unwrap())
    };
    let writes = |report: &str| format!("printf '{report}' > \"$PLANCTL_REPORTS/a.tap\"");
    assert_eq!(shows(&writes("ok 1\\nok 2\\n")), (Some((2, 2)), Verdict::Passed));
    assert_eq!(
        shows("test -z \"$(ls -A \"$PLANCTL_REPORTS\")\""),
        (Some((0, 2)), Verdict::Failed),
        "an old one"
    );
    assert_eq!(shows(&writes("ok 1\\nnot ok 2\\n")), (Some((1, 2)), Verdict::Failed));
    assert_eq!(shows("printf 'ok 1\\nok 2\\n'"), (Some((0, 2)), Verdict::Failed), "A11: output is no report");
    assert_eq!(shows(&format!("{}; exit 1", writes("ok 1\\nok 2\\n"))), (None, Verdict::Failed));
    let python = "import os; os._exit(0)";
    assert_eq!(shows(&format!("python3 -c '{python}'")), (Some((0, 2)), Verdict::Failed));
    assert_eq!(place.verdict("test -z \"${PLANCTL_REPORTS+x}\""), Verdict::Passed, "nobody asks for tests");
}

fn a06_tests_are_counted_at_every_tier() {
    let scratch = tempfile::tempdir().unwrap();
    for tier in [Tier::SameUser].into_iter().chain(super::sandbox::offered()) {
        let folder = tempfile::tempdir().unwrap();
        let runner =
            ContractRunner::new(spawner().with_scratch(scratch.path()), folder.path(), None, []).unwrap();
        let place =
            Place { folder, runner: runner.with_isolation(Isolation { tier, ..Isolation::default() }) };
        let contract = counted(
            "mkdir \"$PLANCTL_REPORTS/unit\" && printf 'ok 1\\nok 2\\n' > \"$PLANCTL_REPORTS/unit/a.tap\"",
        );
        let evidence = place.evidence(&contract);
        assert_eq!(
            (evidence.isolation, contract.judge(&evidence)),
            (tier, Some(Verdict::Passed)),
            "{evidence:?}"
        );
    }
}
