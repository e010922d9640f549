//! The output of real tools that failed, and the line that planctl shows as the reason.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::Path;

use planctl_view::{strip_terminal_sequences, telling_line};

fn printed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed").join(name);
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_reason_is_the_line_that_says_why_whatever_tool_failed() {
    let told = [
        ("pytest", "FAILED tests/test_round.py::test_adds - assert -1 == 3"),
        ("pytestq", "FAILED tests/test_round.py::test_adds - assert -1 == 3"),
        ("python", "ValueError: no such rate"),
        ("pyassert", "AssertionError: assert total([1,2]) == 4"),
        ("pyassertsaid", "AssertionError: x is 3, wanted 4"),
        ("unittest", "AssertionError: 2 != 3 : sums differ"),
        ("doctest", "Failed example: 1+1"),
        ("pytestimport", "ModuleNotFoundError: No module named 'nosuchmod'"),
        ("pytestshort", "AssertionError: assert {'a': 1} == {'a': 2}"),
        ("node", "not ok 2 - rounds half up"),
        ("nodespec", "✖ rounds half up (1.581433ms)"),
        ("nodeassert", "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 2 !== 3"),
        ("nodethrow", "plain text"),
        ("java", "Exception in thread \"main\" java.lang.IllegalStateException: no rate"),
        ("jest", "✕ adds 1 + 2 to equal 4 (4 ms)"),
        ("tsc", "a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'."),
        ("eslint", "1:7  error    'a' is assigned a value but never used  no-unused-vars"),
        ("ruff", "I001 [*] Import block is un-sorted or un-formatted"),
        ("ruffc", "lint.py:1:1: I001 [*] Import block is un-sorted or un-formatted"),
        (
            "cargo",
            "thread 'tests::adds' (17393) panicked at src/lib.rs:5:17: assertion `left == right` failed",
        ),
        ("cargobuild", "error[E0277]: cannot subtract `&str` from `i32`"),
        ("go", "--- FAIL: TestAdds (0.00s): add_test.go:7: Add(1, 2) = -1, want 3"),
        ("make", "make: *** [Makefile:4: test] Error 1"),
        ("makecc", "a.c:1:25: error: ‘x’ undeclared (first use in this function)"),
        ("sh2", "bash: line 1: nosuchtool: command not found"),
    ];
    for (tool, line) in told {
        let (err, out) = (printed(&format!("{tool}.err")), printed(&format!("{tool}.out")));
        assert!(!err.is_empty() || !out.is_empty(), "{tool}");
        assert_eq!(telling_line(&err, &out).as_deref(), Some(line), "{tool}");
        assert!(!strip_terminal_sequences(&format!("{err}{out}")).contains('\u{1b}'), "{tool}");
    }
}
