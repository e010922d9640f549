//! A library's check of an output, as part of the contract whose output it is (rulings ).

use planctl_engine::{Contract, OutputCheck};

use crate::syntax::written::VerifyType;
use crate::text::shell_quoted;
use crate::tree::digest::digest_of_text;
use crate::tree::workflow::NodeTree;

/// Adds to a contract what its node asks of the output: both streams are looked at, the exit code must be the expected one as
/// well, and letter case counts for nothing.
pub(super) fn with_output_check(node: &NodeTree, contract: Contract) -> Contract {
    let Some((test, what)) = test(node).filter(|_| !contract.command.trim().is_empty()) else {
        return contract;
    };
    let command = format!(
        "output=$(exec 2>&1\n{}\n)\ncode=$?\nprintf '%s\\n' \"$output\"\nshopt -s nocasematch\n\
         if [ \"$code\" -ne {} ]; then echo \"the command exited with $code\" >&2; exit 1; fi\n\
         if ! {test}; then printf '%s\\n' {} >&2; exit 1; fi",
        contract.command,
        contract.expect,
        shell_quoted(&what)
    );
    Contract { digest: digest_of_text(&command), command, expect: 0, ..contract }
}

/// Returns the test of an output in bash, and what an output that fails it is like.
fn test(node: &NodeTree) -> Option<(String, String)> {
    let value = || node.attributes.verify_value.text().map(|value| value.value.clone());
    match node.attributes.verify_type.value()? {
        VerifyType::OutputContains => {
            let value = value()?;
            Some((
                format!("[[ $output == *{}* ]]", shell_quoted(&value)),
                format!("the output does not contain: {value}"),
            ))
        }
        VerifyType::OutputNotContains => {
            let value = value()?;
            Some((
                format!("[[ $output != *{}* ]]", shell_quoted(&value)),
                format!("the output contains: {value}"),
            ))
        }
        VerifyType::AnyOutput => Some((
            "[[ $output == *[![:space:]]* ]]".to_owned(),
            "the command printed nothing but space".to_owned(),
        )),
        VerifyType::ExitCodeZero | VerifyType::FileExists | VerifyType::Manual => None,
    }
}

/// Returns the check that a node makes of an output, where nobody but a person or an agent's own program sees one.
pub(super) fn check_of(node: &NodeTree) -> Option<OutputCheck> {
    let value = || node.attributes.verify_value.text().map(|value| value.value.clone()).unwrap_or_default();
    match node.attributes.verify_type.value()? {
        VerifyType::OutputContains => Some(OutputCheck::OutputContains(value())),
        VerifyType::OutputNotContains => Some(OutputCheck::OutputNotContains(value())),
        VerifyType::AnyOutput => Some(OutputCheck::AnyOutput),
        VerifyType::ExitCodeZero => Some(OutputCheck::ExitCodeZero),
        VerifyType::FileExists | VerifyType::Manual => None,
    }
}
