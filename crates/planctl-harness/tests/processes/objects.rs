//! Objects that a worker puts into a repository decide no contract, unless they are what their names say.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use planctl_engine::{HarnessResult, Inconclusive};
use planctl_harness::{Baseline, ContractRunner};

use super::gate_folders::{Place, exit_code};
use super::support::block_on;
use crate::trials;

pub fn tests() -> Vec<Trial> {
    trials![
        a10_an_object_that_a_worker_forged_is_believed_by_no_contract,
        a10_objects_that_came_before_a_run_is_taken_up_again_are_compared_too,
        a10_a_folder_that_a_worker_prepared_long_before_is_looked_into,
        a10_objects_that_a_worker_makes_as_git_does_are_believed,
        a10_the_git_of_a_contract_is_led_nowhere_by_the_code_under_test,
        a10_git_settings_that_code_under_test_writes_decide_nothing,
    ]
}

/// Says why a contract could not be judged.
fn nothing(runner: &ContractRunner, command: &str) -> String {
    let contract = super::support::contract(command, Duration::from_secs(60));
    let baseline = Arc::new(Baseline::default());
    let gate = block_on(runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()));
    let HarnessResult::Nothing(Inconclusive::ToolMissing { what }) = gate.found else {
        panic!("{command}: {:?}", gate.found)
    };
    what
}

/// Puts the content of one object in the place of another's.
fn forge(place: &Place, object: &str, other: &str) -> PathBuf {
    let file = |name: &str| place.work().join(".git/objects").join(&name[..2]).join(&name[2..]);
    let forged = std::fs::read(file(other)).unwrap();
    // Written in place: its folder says nothing of it.
    std::fs::set_permissions(file(object), PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(file(object), forged).unwrap();
    file(object)
}

fn assert_forged(runner: &ContractRunner, what: &str) {
    let said = nothing(runner, "git diff --quiet HEAD");
    assert!(said.contains("git would give other content") && said.contains(what), "{said}");
    assert_eq!(exit_code(runner, "test -f a.txt"), 0, "a contract that asks git nothing is judged");
}

fn a10_an_object_that_a_worker_forged_is_believed_by_no_contract() {
    let changed = || {
        let place = Place::repository();
        let runner = place.runner();
        assert_eq!(exit_code(&runner, "git diff --quiet HEAD"), 0);
        let tree = place.git(&["rev-parse", "HEAD:tests"]);
        place.write("tests/check.sh", "exit 0\n");
        place.git(&["add", "tests"]);
        assert_eq!(exit_code(&runner, "git diff --quiet HEAD"), 1, "the honest twin");
        let other = place.git(&["write-tree", "--prefix=tests/"]);
        (place, runner, tree, other)
    };
    // An object's own file.
    let (place, runner, tree, other) = changed();
    forge(&place, &tree, &other);
    place.git(&["diff", "--quiet", "HEAD"]);
    assert_forged(&runner, &tree);
    // A pack, which goes before it.
    let (place, runner, tree, other) = changed();
    let file = forge(&place, &tree, &other);
    let pack = format!("echo {tree} | git pack-objects -q .git/objects/pack/pack");
    let mut packed = Command::new("bash");
    assert!(packed.args(["-ec", &pack]).current_dir(place.work()).env_clear().status().unwrap().success());
    std::fs::remove_file(&file).unwrap();
    place.git(&["diff", "--quiet", "HEAD"]);
    assert_forged(&runner, "pack-");
}

fn a10_objects_that_came_before_a_run_is_taken_up_again_are_compared_too() {
    let place = Place::repository();
    let noted = place.at("notes").join("noted.json");
    let taken_up = || place.runner().with_repositories_noted(&noted).unwrap();
    assert_eq!(exit_code(&taken_up(), "git diff --quiet HEAD"), 0);
    let tree = place.git(&["rev-parse", "HEAD:tests"]);
    place.write("tests/check.sh", "exit 0\n");
    place.git(&["add", "tests"]);
    let other = place.git(&["write-tree", "--prefix=tests/"]);
    assert_eq!(exit_code(&taken_up(), "git diff --quiet HEAD"), 1, "the honest twin");
    forge(&place, &tree, &other);
    place.git(&["diff", "--quiet", "HEAD"]);
    // planctl ended, and another one takes the run up.
    assert_forged(&taken_up(), &tree);
    // Of settings the same is known.
    let place = Place::repository();
    let noted = place.at("notes").join("noted.json");
    let taken_up = || place.runner().with_repositories_noted(&noted).unwrap();
    drop(taken_up());
    place.write("new.txt", "new\n");
    std::fs::write(place.work().join(".git/info/exclude"), "new.txt\n").unwrap();
    assert_eq!(exit_code(&taken_up(), "test -z \"$(git status --porcelain)\""), 1);
    std::fs::write(&noted, "{").unwrap();
    assert!(
        place.runner().with_repositories_noted(&noted).is_err(),
        "notes that can't be read are not made anew"
    );
}

fn a10_a_folder_that_a_worker_prepared_long_before_is_looked_into() {
    // Exchanged, and borrowed from.
    for borrows in [false, true] {
        let place = Place::repository();
        let (tree, objects) = (place.git(&["rev-parse", "HEAD:tests"]), place.work().join(".git/objects"));
        place.write("tests/check.sh", "exit 0\n");
        place.git(&["add", "tests"]);
        let other = place.git(&["write-tree", "--prefix=tests/"]);
        let prepared = place.at("prepared").join(&tree[..2]);
        std::fs::create_dir_all(&prepared).unwrap();
        // Others whose names begin alike, such as that of the commit by chance, stay as they are.
        for entry in std::fs::read_dir(objects.join(&tree[..2])).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), prepared.join(entry.file_name())).unwrap();
        }
        std::fs::remove_file(prepared.join(&tree[2..])).unwrap();
        std::fs::copy(objects.join(&other[..2]).join(&other[2..]), prepared.join(&tree[2..])).unwrap();
        let changed = |object: &Path| {
            let found = object.metadata().unwrap();
            (found.ctime(), found.ctime_nsec())
        };
        let is_later = |round: &u32| {
            place.write("later", &round.to_string());
            let later = place.git(&["hash-object", "-w", "later"]);
            changed(&objects.join(&later[..2]).join(&later[2..])) > changed(&prepared.join(&tree[2..]))
        };
        (0..).find(is_later).unwrap();
        let runner = place.runner();
        if borrows {
            std::fs::write(objects.join("info/alternates"), format!("{}\n", place.at("prepared").display()))
                .unwrap();
            std::fs::remove_file(objects.join(&tree[..2]).join(&tree[2..])).unwrap();
        } else {
            std::fs::rename(objects.join(&tree[..2]), place.at("away")).unwrap();
            std::fs::rename(&prepared, objects.join(&tree[..2])).unwrap();
        }
        place.git(&["diff", "--quiet", "HEAD"]);
        assert_forged(&runner, if borrows { "alternates" } else { &tree });
    }
}

fn a10_objects_that_a_worker_makes_as_git_does_are_believed() {
    let place = Place::repository();
    let runner = place.runner();
    for ways in [&["repack", "-adq"][..], &["gc", "-q"], &["commit", "-q", "--allow-empty", "-m", "more"]] {
        place.write("a.txt", &format!("{ways:?}"));
        place.git(&["commit", "-qam", "work"]);
        place.git(ways);
        for _ in 0..2 {
            assert_eq!(
                exit_code(&runner, "git diff --quiet HEAD && git show HEAD:a.txt | cmp - a.txt"),
                0,
                "{ways:?}"
            );
        }
    }
}

fn a10_the_git_of_a_contract_is_led_nowhere_by_the_code_under_test() {
    let place = Place::repository();
    let runner = place.runner();
    let object = place.git(&["rev-parse", "HEAD:tests"]);
    let object = format!(".git/objects/{}/{}", &object[..2], &object[2..]);
    let bin = "$(dirname \"$(command -v git)\")";
    let settings = format!("d=$(realpath {bin}/../git); cat $d/gitconfig > .g; git");
    // Each puts back what it did.
    let led = [
        "w=$PWD; mv $w $w.x && cd $w.x && git status && mv $w.x $w".to_owned(),
        "mv .git .real && cp -r .real .git && git status && rm -rf .git && mv .real .git".to_owned(),
        "mv .git .real && echo gitdir: .real > .git && git status && rm .git && mv .real .git".to_owned(),
        "mv .git/objects .o && cp -r .o .git/objects && git status && rm -rf .git/objects && mv .o .git/objects".to_owned(),
        "echo /tmp > .git/objects/info/alternates && git status; rm .git/objects/info/alternates".to_owned(),
        format!("cp {object} .o && chmod u+w {object} && echo x > {object} && git status; cat .o > {object} && rm .o"),
        format!("cp {object} .o && chmod u+w {object} && ln {object} .l && echo x > .l && git status; cat .o > .l && rm .o .l"),
        format!("mv {object} .o && echo x > {object} && git status; mv -f .o {object}"),
        format!("cp {object} .o && cp {object} .x && mv -f .x {object} && git status && mv -f .o {object}"),
        "touch .git/objects/pack/pack-1.idx && git status && rm .git/objects/pack/pack-1.idx".to_owned(),
        format!("printf '#!/bin/sh\\n' > {bin}/grep && chmod +x {bin}/grep && grep -q bad a.txt && rm {bin}/grep"),
        format!("cat {bin}/git > .g && printf '#!/bin/sh\\n' > {bin}/git && git x && cat .g > {bin}/git && rm .g"),
        format!("d={bin}; mv $d .b && mkdir $d && rmdir $d && mv .b $d"),
        format!("{settings} config --file $d/gitconfig status.showUntrackedFiles no && git status; cat .g > $d/gitconfig"),
        format!("{settings} config --file $d/0/config status.showUntrackedFiles no && git status"),
        format!("{settings} -C .; echo new.txt >> $d/0/info/exclude && git status"),
        format!("{settings} -C .; echo '* -whitespace' > $d/0/info/attributes && git status && rm $d/0/info/attributes"),
        format!("{settings} -C .; rm $d/0/objects && ln -s $PWD/.o $d/0/objects; git log; ln -sfn $PWD/.git/objects $d/0/objects"),
        format!("{settings} -C .; mv $d $d.x && cp -a $d.x $d && git status && rm -r $d && mv $d.x $d"),
        format!("{settings} -C .; d=${{d%/*}}; mv $d $d.x && cp -a $d.x $d && git status && rm -r $d && mv $d.x $d"),
        // As between the making of an index and the look at it.
        format!(
            "{settings} -C .; for i in 1 2 3; do \
             GIT_INDEX_FILE=$d/0/index.2.1 /usr/bin/git update-index --force-write-index --refresh; done; git diff"
        ),
        format!("{settings} -C .; echo x > $d/0/index.2.1; git diff"),
    ];
    for command in &led {
        let contract = super::support::contract(command, Duration::from_secs(60));
        let baseline = Arc::new(Baseline::default());
        let gate = block_on(runner.evaluate(&contract, &baseline, &mut |_, _| (), std::future::pending()));
        let HarnessResult::Nothing(Inconclusive::Unstable { what }) = gate.found else {
            panic!("{command}: {:?}", gate.found)
        };
        assert!(what.ends_with("changed while the contract ran"), "{what}");
    }
    let honest = [
        "mv .git .real && mv .real .git",
        "echo new > new.txt && git add new.txt && git stash -q && git stash pop -q && git status",
        "git -c user.name=t -c user.email=t@example.org commit -qm new && git show HEAD && git gc -q --prune=now",
        "git init -q inner && cd inner && git status && mv .git .real && mv .real .git",
        "git branch one && git branch -m one two && git checkout -q two && git checkout -q - && git branch -q -D two",
        "git config --global user.email b@example.org && git commit -q --allow-empty -m b && git log -1 --format=%ae | grep -qx b@example.org",
        "git config user.name 'A B' && git commit -q --allow-empty -m b && git log -1 --format=%an | grep -qx 'A B'",
        "git -c user.name=C commit -q --allow-empty -m b && git log -1 --format=%an | grep -qx C",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" git status && env -i PATH=\"$PATH\" git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m c",
        "echo x > kept.txt && export new=$PWD/kept.txt run=true names=x && git checkout -q -b three && test -s kept.txt && git status && test -s kept.txt && git checkout -q - && git branch -qD three && rm kept.txt",
        "git config --global --add safe.directory '*' && git write-tree && git add new.txt && git write-tree && git status",
    ];
    for command in honest {
        assert_eq!(exit_code(&runner, command), 0, "{command}");
    }
}

fn a10_git_settings_that_code_under_test_writes_decide_nothing() {
    let place = Place::repository();
    place.write("b.txt", "trailing \n").write("extra.txt", "x\n");
    let runner = place.runner();
    let is_clean = "test -z \"$(git status --porcelain)\"";
    let is_staged_whole = "git add -A && git diff --cached --quiet";
    let attributes = "mkdir -p ~/.config/git && echo '* -whitespace' > ~/.config/git/attributes";
    // The code under test does the first, and the contract asks the second.
    let written = [
        ("git config --global status.showUntrackedFiles no", is_clean),
        ("git config --global core.fileMode false", "chmod +x a.txt; git diff --quiet HEAD"),
        (
            "echo b.txt > ~/x; echo extra.txt >> ~/x; git config --global core.excludesFile ~/x",
            is_staged_whole,
        ),
        (
            "printf '[status]\\nshowUntrackedFiles = no\\n' > ~/x; git config --global include.path ~/x",
            is_clean,
        ),
        (attributes, "! git diff --no-index --check /dev/null b.txt | grep -q whitespace"),
        (attributes, "git add -N b.txt; git diff --check"),
    ];
    for (write, ask) in written {
        assert_ne!(exit_code(&runner, &format!("{write}\n{ask}")), 0, "{write}; {ask}");
        assert_ne!(exit_code(&runner, ask), 0, "the honest twin: {ask}");
        place.git(&["reset", "--quiet"]);
        std::fs::set_permissions(place.work().join("a.txt"), PermissionsExt::from_mode(0o644)).unwrap();
    }
}
