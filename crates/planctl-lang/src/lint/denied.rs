//! P404: contracts that do what the step's role may not bring about.

use super::safety::{Located, first_destructive, first_network};
use super::{Context, Lint, Needs, changes};
use crate::diagnostic::{Code, Diagnostic};
use crate::syntax::shell::{self, Script, Trait};
use crate::text::escape;

/// One thing that a contract can be seen to bring about.
struct Effect {
    /// The names under which a role may be denied it.
    names: &'static [&'static str],
    /// The effect of the command, in words.
    does: &'static str,
    /// Finds the first command that does it.
    first: fn(&Script) -> Located,
}

const EFFECTS: [Effect; 4] = [
    Effect { names: &["network"], does: "reaches other machines", first: first_network },
    Effect { names: &["delete", "filesystem"], does: "destroys", first: first_destructive },
    Effect { names: &["write", "filesystem"], does: "changes files", first: changes::first_change },
    Effect { names: &["system"], does: "changes the system", first: first_of_system },
];

pub(super) const LINT: Lint = Lint { codes: &[Code::P404], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.facts.denied.is_empty() {
        return;
    }
    for (at, step) in context.each_step() {
        let Some(role) = step.role.as_ref().map(|role| role.value.as_str()) else { continue };
        let (Some(denied), Some(contract)) = (context.facts.denied.get(role), &step.contract) else {
            continue;
        };
        let Some(script) = context.scripts.read_of(at) else { continue };
        let mut said = Vec::new();
        for Effect { names, does, first } in EFFECTS {
            let Some(name) = names.iter().find(|name| denied.contains(**name)) else { continue };
            let Some((command, span)) = first(script).filter(|(_, span)| !said.contains(span)) else {
                continue;
            };
            said.push(span);
            let message = format!("the role `{role}` is denied `{name}`, and its contract needs it");
            let label = format!("`{}` {does}", escape(&command));
            found.push(
                Diagnostic::new(Code::P404, message)
                    .at(contract.in_plan(span), label)
                    .step(step.step_name())
                    .help(format!(
                        "write a contract that only looks at what is here, or take `{name}` out of \
                         `effects.deny` of `[roles.{role}]` in planctl.toml"
                    )),
            );
        }
    }
}

fn first_of_system(script: &Script) -> Located {
    let mut first = None;
    shell::each_simple(script, &mut |simple| {
        if first.is_none() {
            let call = shell::calls(simple).find(|call| call.does(Trait::System));
            first = call.map(|call| (call.name().to_owned(), simple.span));
        }
    });
    first
}
