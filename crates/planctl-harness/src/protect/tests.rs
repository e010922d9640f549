//! Tests of the changes of a protected file that count.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tests/deep")).unwrap();
    std::fs::write(folder.path().join("tests/a.sh"), "exit 1").unwrap();
    std::fs::write(folder.path().join("tests/deep/b.sh"), "exit 1").unwrap();
    std::fs::write(folder.path().join("check.sh"), "exit 1").unwrap();
    folder
}

fn changes(baseline: &Baseline, folder: &tempfile::TempDir) -> Vec<(String, FileChange)> {
    let comparison = baseline.compare(folder.path()).unwrap();
    comparison.tampered.into_iter().map(|tampering| (tampering.path, tampering.change)).collect()
}

#[test]
fn a4_every_way_to_change_a_protected_file_is_seen() {
    type Attack = fn(&Path);
    let attacks: [(Attack, FileChange); 9] = [
        (|file| std::fs::write(file, "exit 0").unwrap(), FileChange::Changed),
        (|file| std::fs::write(file, "").unwrap(), FileChange::Changed),
        (|file| std::fs::remove_file(file).unwrap(), FileChange::Deleted),
        (
            |file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap(),
            FileChange::Changed,
        ),
        (
            |file| {
                std::fs::write(file.with_extension("new"), "exit 0").unwrap();
                std::fs::rename(file.with_extension("new"), file).unwrap();
            },
            FileChange::Changed,
        ),
        (
            |file| {
                std::fs::rename(file, file.with_extension("old")).unwrap();
                std::os::unix::fs::symlink("check.old", file).unwrap();
            },
            FileChange::Replaced,
        ),
        (
            |file| {
                std::fs::remove_file(file).unwrap();
                std::fs::create_dir(file).unwrap();
            },
            FileChange::Replaced,
        ),
        (
            |file| {
                std::fs::remove_file(file).unwrap();
                rustix::fs::mkfifoat(rustix::fs::CWD, file, rustix::fs::Mode::RUSR).unwrap();
            },
            FileChange::Replaced,
        ),
        (
            |file| {
                std::fs::remove_file(file).unwrap();
                std::os::unix::fs::symlink("/dev/zero", file).unwrap();
            },
            FileChange::Replaced,
        ),
    ];
    for (number, (attack, change)) in attacks.into_iter().enumerate() {
        let folder = workspace();
        let baseline = Baseline::take(folder.path(), ["check.sh"], []).unwrap();
        assert_eq!(changes(&baseline, &folder), []);
        attack(&folder.path().join("check.sh"));
        assert_eq!(changes(&baseline, &folder), [("check.sh".to_owned(), change)], "attack {number}");
    }
}

#[test]
fn a_glob_protects_what_it_matches_and_what_would_match() {
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
    assert_eq!(baseline.files.keys().collect::<Vec<_>>(), ["tests/a.sh", "tests/deep/b.sh"]);
    std::fs::write(folder.path().join("tests/deep/c.sh"), "").unwrap();
    std::fs::write(folder.path().join("elsewhere.sh"), "").unwrap();
    assert_eq!(changes(&baseline, &folder), [("tests/deep/c.sh".to_owned(), FileChange::Created)]);
}

#[test]
fn files_that_do_not_exist_at_approval_are_not_protected() {
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), ["later.sh", "tests", "./check.sh"], []).unwrap();
    assert_eq!(baseline.files.keys().collect::<Vec<_>>(), ["check.sh"]);
    assert!(Baseline::take(Path::new("/nowhere"), [], []).unwrap().is_empty());
}

#[test]
fn the_baseline_moves_where_a_passed_step_was_meant_to_write() {
    let folder = workspace();
    let mut baseline = Baseline::take(folder.path(), ["check.sh", "tests/a.sh"], []).unwrap();
    std::fs::write(folder.path().join("check.sh"), "new").unwrap();
    std::fs::write(folder.path().join("tests/a.sh"), "new").unwrap();
    baseline.move_files(folder.path(), ["check.sh", "unknown.sh"]).unwrap();
    assert_eq!(changes(&baseline, &folder), [("tests/a.sh".to_owned(), FileChange::Changed)]);
}

fn changed(folder: &tempfile::TempDir, baseline: &Baseline) -> Vec<String> {
    changes(baseline, folder).into_iter().map(|(path, _)| path).collect()
}

#[test]
fn cheat_56_a_new_link_that_matches_a_glob_is_a_change() {
    for glob in ["conftest.py", "**/conftest.py", "*.py", "{conftest,other}.py"] {
        let folder = workspace();
        std::fs::write(folder.path().join("evil"), "").unwrap();
        let baseline = Baseline::take(folder.path(), [], [glob]).unwrap();
        assert_eq!(changed(&folder, &baseline), [""; 0]);
        for target in ["evil", "/etc/passwd", "nowhere"] {
            std::os::unix::fs::symlink(target, folder.path().join("conftest.py")).unwrap();
            assert_eq!(changed(&folder, &baseline), ["conftest.py"], "{glob} {target}");
            std::fs::remove_file(folder.path().join("conftest.py")).unwrap();
        }
    }
}

#[test]
fn cheat_57_a_protected_folder_that_is_moved_behind_a_link_is_a_change() {
    for glob in ["tests/**", "tests/deep/*.sh", "**/b.sh"] {
        let folder = workspace();
        let baseline = Baseline::take(folder.path(), ["tests/deep/b.sh"], [glob]).unwrap();
        std::fs::rename(folder.path().join("tests"), folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", folder.path().join("tests")).unwrap();
        assert!(changed(&folder, &baseline).contains(&"tests/deep/b.sh".to_owned()), "{glob}");
        std::fs::write(folder.path().join("moved/deep/conftest.py"), "").unwrap();
        let seen = changed(&folder, &Baseline::take(folder.path(), [], ["tests/**"]).unwrap());
        assert_eq!(seen, [""; 0], "what was there at approval is approved, behind a link too");
        let behind = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
        std::fs::write(folder.path().join("moved/deep/new.py"), "").unwrap();
        assert_eq!(changed(&folder, &behind), ["tests/deep/new.py"]);
    }
}

#[test]
fn hole_6_names_that_are_no_text_nested_git_pipes_and_deep_paths_are_seen() {
    use std::os::unix::ffi::OsStrExt;
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
    let tests = folder.path().join("tests");
    std::fs::write(tests.join(std::ffi::OsStr::from_bytes(b"a\xff.py")), "").unwrap();
    std::fs::create_dir_all(tests.join("sub/.git")).unwrap();
    std::fs::write(tests.join("sub/.git/config"), "").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, tests.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    std::os::unix::fs::symlink("..", tests.join("loop")).unwrap();
    assert_eq!(
        changed(&folder, &baseline),
        ["tests/a\\xff.py", "tests/loop", "tests/pipe", "tests/sub/.git/config"],
    );
    let again = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
    let kept: Baseline = serde_json::from_str(&serde_json::to_string(&again).unwrap()).unwrap();
    assert_eq!(changed(&folder, &kept), [""; 0], "approved, they are what they were");
    std::fs::write(tests.join(std::ffi::OsStr::from_bytes(b"a\xff.py")), "other").unwrap();
    assert_eq!(changed(&folder, &kept), ["tests/a\\xff.py"]);
}

#[test]
fn hole_6_paths_that_are_too_long_to_be_named_are_a_change() {
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
    let name = "d".repeat(250);
    let mut at =
        rustix::fs::open(folder.path().join("tests"), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
            .unwrap();
    for _ in 0..20 {
        rustix::fs::mkdirat(&at, name.as_str(), rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, name.as_str(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
            .unwrap();
    }
    assert_eq!(changed(&folder, &baseline).len(), 1);
}

#[test]
fn hole_6_a_folder_that_cannot_be_read_is_a_change() {
    // To root every folder can be read.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), [], ["tests/**"]).unwrap();
    std::fs::set_permissions(folder.path().join("tests/deep"), PermissionsExt::from_mode(0o000)).unwrap();
    assert!(changed(&folder, &baseline).contains(&"tests/deep".to_owned()));
    std::fs::set_permissions(folder.path().join("tests/deep"), PermissionsExt::from_mode(0o755)).unwrap();
}

fn deciding<const N: usize>(names: [&str; N]) -> BTreeMap<String, BTreeSet<Digest>> {
    names.map(|name| (name.to_owned(), BTreeSet::from([Digest::new("sha256:0")]))).into()
}

#[test]
fn a_named_link_is_kept_with_its_target() {
    let folder = workspace();
    std::os::unix::fs::symlink("tests/a.sh", folder.path().join("run.sh")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("shell")).unwrap();
    let baseline = Baseline::take(folder.path(), ["run.sh", "shell"], []).unwrap();
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    std::fs::write(folder.path().join("tests/a.sh"), "exit 0").unwrap();
    let both = ["run.sh", "tests/a.sh"].map(|path| (path.to_owned(), FileChange::Changed));
    assert_eq!(changes(&baseline, &folder), both, "the link, and the file that was edited");
    std::fs::remove_file(folder.path().join("shell")).unwrap();
    std::os::unix::fs::symlink("/bin/true", folder.path().join("shell")).unwrap();
    assert_eq!(changes(&baseline, &folder)[1], ("shell".to_owned(), FileChange::Replaced));
    let mut decided = Baseline::default();
    decided.add_deciding(folder.path(), deciding(["run.sh"])).unwrap();
    assert_eq!(decided.files.keys().collect::<Vec<_>>(), ["run.sh", "tests/a.sh"]);
}

#[test]
fn honest_work_beside_protected_files_is_no_change() {
    let folder = workspace();
    let baseline = Baseline::take(folder.path(), ["check.sh"], ["tests/**", "conftest.py"]).unwrap();
    let at = |path: &str| folder.path().join(path);
    // The same bytes, in another inode, as an editor or git writes them; caches; links elsewhere.
    std::fs::write(at("new"), "exit 1").unwrap();
    std::fs::rename(at("new"), at("check.sh")).unwrap();
    std::fs::create_dir_all(at("tests/__pycache__")).unwrap();
    std::fs::write(at("tests/__pycache__/a.pyc"), "").unwrap();
    std::fs::create_dir_all(at("node_modules/pkg")).unwrap();
    std::os::unix::fs::symlink("../tests", at("node_modules/linked")).unwrap();
    std::fs::create_dir(at("tests/empty")).unwrap();
    assert_eq!(changed(&folder, &baseline), [""; 0]);
}

#[test]
fn a_plain_name_that_is_to_stay_absent_is_a_change_whatever_comes_there() {
    type Attack = fn(&Path);
    let attacks: [Attack; 3] = [
        |place| std::fs::write(place, "").unwrap(),
        |place| std::fs::create_dir(place).unwrap(),
        |place| std::os::unix::fs::symlink("nowhere", place).unwrap(),
    ];
    for attack in attacks {
        let folder = workspace();
        let baseline = Baseline::take(folder.path(), [], ["GNUmakefile", "tests/a[*]b"]).unwrap();
        attack(&folder.path().join("GNUmakefile"));
        assert_eq!(changes(&baseline, &folder), [("GNUmakefile".to_owned(), FileChange::Created)]);
    }
}

#[test]
fn what_decides_is_protected_as_it_is_and_as_absent() {
    let folder = workspace();
    let names = deciding(["check.sh", "GNUmakefile", "tests", "tests/*.sh", "{json,re}.py"]);
    let mut baseline = Baseline::default();
    baseline.add_deciding(folder.path(), names).unwrap();
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    assert!(!baseline.is_empty() && baseline.covers("GNUmakefile") && baseline.covers("json.py"));
    for path in
        ["check.sh", "GNUmakefile", "tests/new.sh", "json.py", "tests/a.sh", "other.py", "tests/a.txt"]
    {
        std::fs::write(folder.path().join(path), "other").unwrap();
    }
    std::fs::create_dir(folder.path().join("tests/re.py")).unwrap();
    let expected = ["GNUmakefile", "check.sh", "json.py", "tests/a.sh", "tests/new.sh"];
    assert_eq!(changed(&folder, &baseline), expected);
    let kept: Baseline = serde_json::from_str(&serde_json::to_string(&baseline).unwrap()).unwrap();
    assert_eq!(changed(&folder, &kept), expected);
}

#[test]
fn a_python_package_or_distribution_decides_only_where_something_in_it_is_loaded() {
    let folder = workspace();
    let write = |name: &str, text: &str| {
        let place = folder.path().join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    };
    let script = "[console_scripts]\ncart = cart:main\n";
    write("old.egg-info/entry_points.txt", script);
    let mut baseline = Baseline::default();
    baseline.add_deciding(folder.path(), deciding(["*.{dist-info,egg-info}/entry_points.txt"])).unwrap();
    // `pip install -e .` of a project with a command writes it there.
    write("cart.egg-info/entry_points.txt", script);
    write("old.egg-info/entry_points.txt", "[console_scripts]\nother = cart:main\n");
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    write("old.egg-info/entry_points.txt", &format!("{script}\n[pytest11]\neasy = easy\n"));
    write("a.dist-info/entry_points.txt", "[pytest11]\neasy = easy\n");
    std::fs::remove_file(folder.path().join("cart.egg-info/entry_points.txt")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("cart.egg-info/entry_points.txt")).unwrap();
    let plugins = ["a.dist-info", "cart.egg-info", "old.egg-info"];
    assert_eq!(changed(&folder, &baseline), plugins.map(|place| format!("{place}/entry_points.txt")));

    let mut baseline = Baseline::default();
    baseline.add_deciding(folder.path(), deciding(["tests/__init__.py", "tests/**/__init__.py"])).unwrap();
    write("tests/__init__.py", "\n");
    write("tests/deep/__init__.py", "");
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    write("tests/__init__.py", "import os; os._exit(0)");
    write("tests/deep/__init__.py", "import os; os._exit(0)");
    assert_eq!(changed(&folder, &baseline), ["tests/__init__.py", "tests/deep/__init__.py"]);
    let protected = Baseline::take(folder.path(), [], ["tests/*/*.py"]).unwrap();
    write("tests/other/__init__.py", "");
    assert_eq!(
        changed(&folder, &protected),
        ["tests/other/__init__.py"],
        "a pattern of the plan's own is for all"
    );
}

#[test]
fn a_pattern_sees_packages_and_what_was_built_only_where_it_names_them() {
    let folder = workspace();
    let globs = ["**/build.rs", "**/.eslintrc.json", "node_modules/.bin/sh"];
    let mut baseline = Baseline::take(folder.path(), [], ["**/*.snap"]).unwrap();
    baseline.add_deciding(folder.path(), deciding(globs)).unwrap();
    let write = |name: &str| {
        let place = folder.path().join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, "").unwrap();
    };
    // Work of installers and of builds.
    for name in ["node_modules/a/.eslintrc.json", "lib/node_modules/a/build.rs", ".venv/a.snap"] {
        write(name);
    }
    for name in ["Cargo.toml", "target/debug/build.rs", "venv/pyvenv.cfg", "venv/lib/.eslintrc.json"] {
        write(name);
    }
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    // Folders of these names that are the project's own.
    let own = ["lib/target/build.rs", "node_modules/.bin/sh", "tests/venv/.eslintrc.json"];
    own.iter().for_each(|name| write(name));
    assert_eq!(changed(&folder, &baseline), own);
}

#[test]
fn a_nested_pyproject_decides_only_where_a_tool_finds_settings_in_it() {
    let folder = workspace();
    let mut baseline = Baseline::default();
    baseline.add_deciding(folder.path(), deciding(["pyproject.toml", "**/pyproject.toml"])).unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("tests/pyproject.toml"), text).unwrap();
    for text in [
        "[project]\nname = \"cart\"\n[dependency-groups]\ndev = [\"ruff\", \"pytest\"]\n",
        "[build-system]\nrequires = [\"setuptools\"]\n[tool.setuptools.packages.find]\nwhere = [\"src\"]\n",
    ] {
        write(text);
        assert_eq!(changed(&folder, &baseline), [""; 0], "{text}");
    }
    for text in [
        "[tool.ruff.lint]\nignore = [\"ALL\"]\n",
        "[tool.sqlfluff.core]\nignore = \"linting\"\n",
        "[ tool . \"black\" ]\nexclude = \".*\"\n",
        "tool.isort.skip_glob = [\"*\"]\n",
        "tool = { ruff = { include = [] } }\n",
        "[tool]\nruff.include = []\n",
        "[\"\\u0074ool\".ruff]\ninclude = []\n",
        "[project]\ndependencies = [\"pytest @ file:///tmp/easy\"]\n",
        "[tool.uv.sources]\npytest = { path = \"easy\" }\n",
    ] {
        write(text);
        assert_eq!(changed(&folder, &baseline), ["tests/pyproject.toml"], "{text}");
    }
    std::fs::rename(folder.path().join("tests/pyproject.toml"), folder.path().join("pyproject.toml"))
        .unwrap();
    std::fs::write(folder.path().join("pyproject.toml"), "[project]\n").unwrap();
    assert_eq!(changed(&folder, &baseline), ["pyproject.toml"], "that of the whole project");
}

#[test]
fn a_stub_decides_only_where_it_stands_for_the_module_beside_it() {
    let folder = workspace();
    let write = |name: &str| std::fs::write(folder.path().join(name), "def f() -> int: ...\n").unwrap();
    ["tests/cart.py", "tests/native.pyi"].into_iter().for_each(write);
    let mut baseline = Baseline::default();
    baseline.add_deciding(folder.path(), deciding(["**/*.pyi"])).unwrap();
    std::fs::write(folder.path().join("tests/native.pyi"), "").unwrap();
    write("tests/other.pyi");
    assert_eq!(changed(&folder, &baseline), [""; 0]);
    write("tests/cart.pyi");
    assert_eq!(changed(&folder, &baseline), ["tests/cart.pyi"]);
}

#[test]
fn what_a_step_may_change_itself_is_not_compared_but_for_what_it_protects() {
    let folder = workspace();
    let mut baseline =
        Baseline::take(folder.path(), ["check.sh", "tests/deep/b.sh"], ["tests/*.sh"]).unwrap();
    baseline.free.extend(["tests/**".to_owned(), "check.sh".to_owned()]);
    for path in ["check.sh", "tests/deep/b.sh", "tests/deep/new.sh", "tests/a.sh"] {
        std::fs::write(folder.path().join(path), "other").unwrap();
    }
    assert_eq!(changed(&folder, &baseline), ["tests/a.sh"]);
}
