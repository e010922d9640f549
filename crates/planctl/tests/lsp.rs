//! The language server, spoken to by a scripted editor.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "lsp/conversation.rs"]
mod conversation;
#[path = "lsp/editing.rs"]
mod editing;
#[path = "lsp/editor.rs"]
mod editor;
#[path = "lsp/reading.rs"]
mod reading;
#[path = "lsp/running.rs"]
mod running;

/// A plan of one step, with more lines of its contract.
fn plan(subscription: &str, contract: &str) -> String {
    format!(
        "---\ntype: plan\nstatus: draft\nowner: ann\n---\n\n# Mend it\n\n## Steps\n\n### 1. Find the cause\n\n\
         **target:** coder\n**subscriptions:**\n- file:{subscription}\n\n**task:**\nWrite `docs/cause.md`.\n\n\
         **contract:**\n```bash\n{contract}\n```\nexit_code == 0\n**on_fail:** retry(2), then escalate\n"
    )
}

/// Returns the findings of a code.
fn of_code(findings: &[serde_json::Value], code: &str) -> Vec<serde_json::Value> {
    findings.iter().filter(|found| found["code"] == code).cloned().collect()
}
