//! The plans that are run both ways, each with a worker who does the same whenever it is told the same.

use super::Script;

const PLAIN: Script = Script {
    plan: "",
    scenario: None,
    files: &[],
    worker: "true",
    answers: &[],
    waits_for_time: false,
    at_once: false,
    end: "done",
    met: &[],
};

macro_rules! markdown {
    ($title:literal, $steps:literal) => {
        concat!("---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# ", $title, "\n\n## Steps\n\n", $steps)
    };
}

pub const LOOP: Script = Script {
    plan: "loop.md",
    files: &[(
        "loop.md",
        markdown!(
            "Loop",
            "### 1. Count

**target:** coder
**max_visits:** 4
**task:**
Count on.

**contract:**
```bash
test -s count.txt
```
exit_code == 0

### 2. Look

**type:** call
**task:**
Is it three?

**contract:**
```bash
test \"$(cat count.txt)\" = 3
```
exit_code == 0

## Flow

- 2 -> 1 on fail
"
        ),
    )],
    worker: "echo $PLANCTL_ATTEMPT > count.txt",
    met: &["node_entered node=\"1\" visit=3"],
    ..PLAIN
};

pub const DECISIONS: Script = Script {
    plan: "decide.md",
    files: &[(
        "decide.md",
        markdown!(
            "Decide",
            "### 1. Begin

**target:** coder
**task:**
Begin.

**contract:**
```bash
test -f one.txt
```
exit_code == 0

### 2. How did it go?

**type:** decision

### 3. Twice

**target:** coder
**task:**
It took two attempts.

**contract:**
```bash
test -f three.txt
```
exit_code == 0

### 4. Is there a short way?

**type:** decision
**contract:**
```bash
test -f short.txt
```
exit_code == 0

### 5. Short

**target:** coder
**task:**
Go the short way.

**contract:**
```bash
test -f five.txt
```
exit_code == 0

### 6. End

**target:** coder
**task:**
Come to the end.

**contract:**
```bash
test -f six.txt
```
exit_code == 0

## Flow

- 2 -> 4 if steps.1.attempts=1
- 2 -> 3
- 4 -> 5
- 4 -> 6 on fail
"
        ),
    )],
    worker: "case $PLANCTL_STEP-$PLANCTL_ATTEMPT in 1-1) ;; 1-*) touch one.txt;; 3-*) touch three.txt;; \
             6-*) touch six.txt;; *) touch other.txt;; esac",
    met: &["from=\"2\" to=\"3\"", "from=\"4\" to=\"6\"", "node_decided"],
    ..PLAIN
};

pub const ALL: Script = Script {
    plan: "all.dot",
    files: &[(
        "all.dot",
        r#"digraph all {
    max_parallel=2
    start [shape=Mdiamond]
    fork  [shape=component]
    one   [prompt="Write one.txt.", contract="grep -q good one.txt", target=coder, max_retries=1]
    two   [prompt="Write two.", contract="test -f two.txt", target=coder]
    more  [prompt="Write more.", contract="test -f more.txt", target=coder]
    join  [shape=tripleoctagon]
    count [shape=parallelogram, tool_command="test $(cat one.txt two.txt more.txt | wc -l) = 3"]
    done  [shape=Msquare]
    start -> fork
    fork -> one -> join
    fork -> two -> more -> join
    join -> count -> done
}
"#,
    )],
    worker: "case $PLANCTL_STEP-$PLANCTL_ATTEMPT in 1-1) echo bad > one.txt;; 1-*) echo good > one.txt;; \
             2-*) echo 2 > two.txt;; *) echo 3 > more.txt;; esac",
    at_once: true,
    met: &["branches_joined node=\"join\" visit=1 met=2 failed=0", "retry_triggered"],
    ..PLAIN
};

pub const ANY: Script = Script {
    plan: "any.dot",
    files: &[(
        "any.dot",
        r#"digraph any {
    start [shape=Mdiamond]
    fork  [shape=component, max_parallel=1]
    one   [prompt="Write one.txt.", contract="test -f one.txt", target=coder]
    two   [prompt="Write two.", contract="test -f two.txt", target=coder]
    three [prompt="Write three.", contract="test -f three.txt", target=coder]
    join  [shape=tripleoctagon, join_policy=any]
    last  [prompt="Write last.", contract="test -f last.txt", target=coder]
    done  [shape=Msquare]
    start -> fork
    fork -> one -> join
    fork -> two -> join
    fork -> three -> join
    one -> join [on=exhaust]
    join -> last -> done
}
"#,
    )],
    worker: "case $PLANCTL_STEP in 1) ;; 2) touch two.txt;; 3) touch three.txt;; *) touch last.txt;; esac",
    met: &["branches_joined node=\"join\" visit=1 met=1 failed=1"],
    ..PLAIN
};

pub const APART: Script = Script {
    plan: "apart.dot",
    files: &[
        (
            "apart.dot",
            r#"digraph apart {
    max_parallel=2
    start   [shape=Mdiamond]
    prepare [prompt="Prepare.", contract="test -s base.txt", target=coder]
    fork    [shape=component, workspace=worktree]
    one     [prompt="One.", contract="test -f one.txt && ! test -f two.txt", target=coder]
    two     [prompt="Two.", contract="test -f two.txt && ! test -f one.txt", target=coder]
    join    [shape=tripleoctagon]
    after   [prompt="After.", contract="test -f one.txt && test -f two.txt", target=coder]
    done    [shape=Msquare]
    start -> prepare -> fork
    fork -> one -> join
    fork -> two -> join
    join -> after -> done
}
"#,
        ),
        ("a.txt", "one\ntwo\nthree\nfour\nfive\n"),
    ],
    worker: "case $PLANCTL_STEP in 1) echo base > base.txt;; 2) cat base.txt > one.txt; git show HEAD:a.txt | sed s/five/FIVE/ > a.txt;; \
             3) cat base.txt > two.txt; git show HEAD:a.txt | sed s/one/ONE/ > a.txt;; esac",
    at_once: true,
    met: &["branches_parted", "branches_merged node=\"join\" visit=1 attempt=1 files=3"],
    ..PLAIN
};

pub const CHECKPOINT: Script = Script {
    plan: "keep.dot",
    files: &[(
        "keep.dot",
        r#"digraph keep {
    start [shape=Mdiamond]
    first [prompt="Write base.", contract="test -s base.txt", target=coder]
    keep  [checkpoint=true]
    draft [prompt="Draft.", contract="test -s draft.txt", target=coder]
    check [shape=parallelogram, tool_command="test ! -f wrong.txt"]
    done  [shape=Msquare]
    start -> first -> keep -> draft -> check -> done
    check -> keep [on=fail]
}
"#,
    )],
    worker: "case $PLANCTL_STEP-$PLANCTL_ATTEMPT in 1-*) echo base > base.txt;; 3-1) echo 1 > draft.txt; \
             echo 1 > wrong.txt; rm base.txt;; *) echo 2 > draft.txt;; esac",
    met: &["checkpoint_saved", "checkpoint_restored"],
    ..PLAIN
};

pub const GOAL: Script = Script {
    plan: "goal.dot",
    files: &[(
        "goal.dot",
        r#"digraph goal {
    start [shape=Mdiamond]
    fix   [prompt="Fix.", contract="test -s n.txt", target=coder]
    test  [shape=parallelogram, tool_command="test $(cat n.txt) = 2", goal_gate=true, retry_target=fix]
    doc   [prompt="Document.", contract="test -s doc.txt", target=coder]
    done  [shape=Msquare]
    start -> fix -> test -> doc -> done
    test -> doc [on=fail]
}
"#,
    )],
    worker: "case $PLANCTL_STEP in 1) echo $PLANCTL_ATTEMPT > n.txt;; *) echo $PLANCTL_ATTEMPT > doc.txt;; esac",
    met: &["goal_unmet node=\"test\" visit=1 attempt=1 retry=\"fix\""],
    ..PLAIN
};

pub const DEFAULT: Script = Script {
    plan: "ask.dot",
    files: &[(
        "ask.dot",
        r#"digraph ask {
    start [shape=Mdiamond]
    first [prompt="First.", contract="test -f first.txt", target=coder]
    ship  [shape=hexagon, label="Ship it?", human.default_choice="[N] Not yet", timeout=1s]
    mend  [prompt="Mend.", contract="test -f mend.txt", target=coder]
    last  [prompt="Last.", contract="test -f last.txt", target=coder]
    done  [shape=Msquare]
    start -> first -> ship
    ship -> last [label="[Y] Yes"]
    ship -> mend [label="[N] Not yet"]
    mend -> last -> done
}
"#,
    )],
    worker: "case $PLANCTL_STEP in 1) touch first.txt;; 3) touch mend.txt;; *) touch mend.txt last.txt;; esac",
    waits_for_time: true,
    met: &["from=\"ship\" to=\"mend\""],
    ..PLAIN
};

pub const PEOPLE: Script = Script {
    plan: "people.md",
    files: &[(
        "people.md",
        markdown!(
            "People",
            "### 1. Work

**target:** coder
**task:**
Work.

**contract:**
```bash
test -f work.txt
```
exit_code == 0
**on_fail:** retry(1), then escalate

### 2. Is it good?

**type:** human
**task:**
Is it good?

### 3. Not good

**target:** coder
**task:**
Make it good.

**contract:**
```bash
test -f good.txt
```
exit_code == 0

## Flow

- 2 -> done
- 2 -> 3 on fail
"
        ),
    )],
    worker: "case $PLANCTL_STEP-$PLANCTL_ATTEMPT in 1-3) touch work.txt;; 3-*) touch good.txt;; esac",
    answers: &[&["retry"], &["choose", "not done"]],
    met: &["plan_escalated", "from=\"2\" to=\"3\""],
    ..PLAIN
};

const INNER: &str = markdown!(
    "Inner",
    "### 1. Inner step

**target:** coder
**task:**
Do the inner part.

**contract:**
```bash
test -f inner.txt
```
exit_code == 0
**on_fail:** abort

### 2. And one more

**type:** call
**task:**
Look.

**contract:**
```bash
test -f inner.txt
```
exit_code == 0
**on_fail:** abort
"
);

macro_rules! around {
    ($more:literal) => {
        concat!(
            "digraph outer {\n    start [shape=Mdiamond]\n    \
             first [prompt=\"First.\", contract=\"test -f first.txt\", target=coder]\n    \
             inner [shape=house, stack.child_dotfile=\"inner.md\", stack.child_workdir=\"within\"",
            $more,
            "]\n    last  [prompt=\"Last.\", contract=\"test -f within/inner.txt\", target=coder]\n    \
             done  [shape=Msquare]\n    start -> first -> inner -> last -> done\n}\n"
        )
    };
}

pub const NESTED: Script = Script {
    plan: "outer.dot",
    files: &[
        ("outer.dot", around!(", stack.child_approval=inherit")),
        ("inner.md", INNER),
        ("within/notes", ""),
    ],
    worker: "case $PLANCTL_PLAN in inner.md) touch inner.txt;; *) touch first.txt;; esac",
    met: &["sub_plan_began", "sub_plan_ended"],
    ..PLAIN
};

pub const NESTED_FAILS: Script = Script {
    files: &[("outer.dot", around!("")), ("inner.md", INNER), ("within/notes", "")],
    worker: "case $PLANCTL_RUN_ID in inner-1) ;; inner-2) touch inner.txt;; *) touch first.txt;; esac",
    answers: &[&["approve"], &["retry"], &["approve"]],
    met: &[
        "sub_plan_ended node=\"inner\" visit=1 attempt=1 end=\"failed\"",
        "sub_plan_ended node=\"inner\" visit=1 attempt=2 end=\"done\"",
    ],
    ..NESTED
};

pub const BUGFIX: Script = Script {
    plan: "plans/bugfix_workflow.md",
    scenario: Some("retry"),
    met: &["node_entered node=\"1\" visit=2", "node_entered node=\"4\" visit=2"],
    ..PLAIN
};

pub const API: Script = Script {
    plan: "plans/api_integration.md",
    scenario: Some("retry"),
    at_once: true,
    met: &["branches_joined", "node_entered node=\"5\" visit=2"],
    ..PLAIN
};
