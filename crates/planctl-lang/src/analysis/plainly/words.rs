//! The closed list of words, and what each does to a path.

use super::Token;

pub(super) fn is_judged(word: &str) -> bool {
    matches!(
        word,
        "pass"
            | "passes"
            | "passing"
            | "succeed"
            | "succeeds"
            | "agree"
            | "agrees"
            | "green"
            | "says"
            | "wants"
            | "requires"
            | "expects"
            | "expect"
            | "checks"
            | "tests"
            | "judges"
            | "proves"
            | "verifies"
            | "shows"
            | "reports"
            | "complains"
            | "describes"
            | "demands"
            | "asserts"
            | "asks"
            | "fails"
            | "fail"
            | "specifies"
    )
}

pub(super) fn is_made(word: &str) -> bool {
    matches!(
        word,
        "written"
            | "created"
            | "made"
            | "produced"
            | "generated"
            | "changed"
            | "updated"
            | "fixed"
            | "edited"
            | "extended"
            | "added"
            | "removed"
            | "deleted"
            | "renamed"
            | "replaced"
            | "rewritten"
            | "filled"
            | "completed"
            | "corrected"
            | "modified"
            | "mended"
            | "saved"
    )
}

pub(super) fn opens_clause(word: &str) -> bool {
    matches!(word, "but" | "then" | "afterwards" | "otherwise" | "else") || is_subordinate(word)
}

pub(super) fn is_subordinate(word: &str) -> bool {
    is_question(word)
        || matches!(
            word,
            "so" | "that"
                | "until"
                | "till"
                | "because"
                | "since"
                | "when"
                | "whenever"
                | "while"
                | "if"
                | "unless"
                | "once"
                | "before"
                | "after"
                | "which"
                | "whose"
                | "whatever"
                | "soon"
        )
}

pub(super) fn is_question(word: &str) -> bool {
    matches!(word, "what" | "how" | "why" | "whether" | "where" | "who")
}

pub(super) fn is_negation(word: &str) -> bool {
    matches!(
        word,
        "not"
            | "never"
            | "don't"
            | "dont"
            | "doesn't"
            | "cannot"
            | "can't"
            | "mustn't"
            | "shouldn't"
            | "won't"
            | "without"
            | "avoid"
            | "nor"
            | "neither"
            | "no"
            | "nothing"
            | "instead"
            | "rather"
            | "except"
            | "leave"
            | "keep"
            | "refrain"
            | "nobody"
            | "none"
    )
}

/// The effect of a verb on its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    /// Makes it; a path behind `to`, `in` or `as` is made too.
    Make,
    /// Changes it, or what is in it.
    Change,
    /// Puts something into what stands behind `to` or `in`; alone, it makes its object.
    Add,
    /// Takes its object away, or something from it.
    Remove,
    /// Takes its object away and makes what stands behind `to`.
    Move,
    /// Reads its object, and makes what stands behind `to` or `in`.
    Copy,
    /// Makes what stands behind `to`; whether its object stays is not said.
    Convert,
    /// Reads or runs it.
    Read,
}

pub(super) fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "write" | "writing" | "create" | "creating" | "save" | "saving" | "put" | "putting" | "produce"
        | "producing" | "generate" | "generating" | "make" | "making" | "output" | "record" | "recording"
        | "store" | "storing" | "export" | "emit" | "build" | "draft" | "dump" | "scaffold" | "touch"
        | "place" | "print" | "compose" | "set" | "capture" | "regenerate" => Verb::Make,
        "update" | "updating" | "change" | "changing" | "edit" | "editing" | "modify" | "modifying"
        | "fix" | "fixing" | "replace" | "replacing" | "rewrite" | "rewriting" | "adjust" | "refactor"
        | "correct" | "mend" | "raise" | "lower" | "increase" | "reduce" | "mending" | "repair"
        | "complete" | "implement" | "implementing" | "finish" | "fill" | "improve" | "simplify"
        | "format" | "reformat" | "tidy" | "patch" | "rework" | "shorten" | "clean" | "extend"
        | "translate" | "sort" | "bump" | "enable" | "disable" | "weaken" | "harden" | "speed"
        | "rearrange" | "configure" | "configuring" => Verb::Change,
        "add" | "adding" | "append" | "appending" | "insert" | "inserting" | "prepend" | "include"
        | "declare" | "register" => Verb::Add,
        "remove" | "removing" | "delete" | "deleting" | "drop" | "strip" | "cut" => Verb::Remove,
        "move" | "moving" | "rename" | "renaming" => Verb::Move,
        "copy" | "copying" | "extract" | "list" | "collect" | "summarize" | "summarise" | "document"
        | "describe" | "explain" | "note" | "apply" | "report" | "log" | "answer" | "sum" | "state" => {
            Verb::Copy
        }
        "convert" | "turn" | "port" | "migrate" | "split" | "merge" | "compile" | "render" | "transform" => {
            Verb::Convert
        }
        "read" | "reading" | "see" | "use" | "using" | "follow" | "following" | "check" | "compare"
        | "call" | "run" | "running" | "load" | "import" | "consult" | "review" | "study" | "analyze"
        | "analyse" | "inspect" | "look" | "open" | "parse" | "based" | "commit" | "test" | "lint"
        | "verify" | "given" | "match" | "satisfy" | "pass" | "meet" | "respect" | "obey" | "conform"
        | "trace" | "reproduce" | "investigate" | "find" | "search" | "understand" | "debug" | "measure"
        | "count" | "validate" | "confirm" | "prove" | "start" | "execute" | "judge" | "get" | "suit"
        | "fit" | "agree" | "examine" | "audit" | "mind" => Verb::Read,
        _ => return None,
    })
}

/// The relation of a path to the verb before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Object,
    /// Where something goes.
    To,
    /// Where something is, or is done.
    In,
    From,
    Of,
    /// A file that is looked at meanwhile.
    Other,
}

pub(super) fn relation(word: &str) -> Option<Relation> {
    Some(match word {
        "to" | "into" | "onto" | "as" => Relation::To,
        "in" | "inside" | "within" | "at" | "on" | "under" | "throughout" | "across" => Relation::In,
        "from" => Relation::From,
        "of" => Relation::Of,
        "per" | "than" | "against" | "like" | "by" | "with" | "via" | "for" | "about" | "through"
        | "beside" | "besides" | "between" | "over" | "behind" | "near" | "towards" | "above" | "below"
        | "following" | "using" => Relation::Other,
        _ => return None,
    })
}

// `as described in`, `based on`, `according to`.
pub(super) fn is_source(word: &str) -> bool {
    matches!(
        word,
        "according"
            | "based"
            | "given"
            | "described"
            | "listed"
            | "specified"
            | "documented"
            | "shown"
            | "said"
            | "stated"
            | "mentioned"
            | "reported"
            | "see"
            | "similar"
    )
}

// `fix the failure in x`, `fix the function used in x`: whether x itself is meant is not said.
pub(super) fn is_of_tests(word: &str) -> bool {
    matches!(
        word,
        "found"
            | "defined"
            | "required"
            | "used"
            | "tested"
            | "test"
            | "tests"
            | "failing"
            | "failure"
            | "failures"
            | "error"
            | "errors"
            | "check"
            | "checks"
            | "finding"
            | "findings"
            | "complaint"
            | "complaints"
            | "assertion"
            | "assertions"
    )
}

// Words that may stand beside a path without meaning anything for it.
pub(super) fn is_filler(token: &Token) -> bool {
    match token {
        Token::Path { .. } | Token::Code => true,
        Token::Word(word) => matches!(
            word.as_str(),
            "the"
                | "a"
                | "an"
                | "file"
                | "files"
                | "script"
                | "module"
                | "program"
                | "document"
                | "page"
                | "new"
                | "existing"
                | "both"
                | "all"
                | "only"
                | "and"
                | "or"
                | "also"
                | "named"
                | "called"
                | "our"
                | "your"
        ),
        Token::Comma | Token::Colon | Token::Break => false,
    }
}
