//! P4xx: the roles of steps.

use std::collections::BTreeSet;

use super::{Context, Lint, Needs};
use crate::diagnostic::{Code, Diagnostic, Severity, did_you_mean};
use crate::text::{Spanned, escape};
use crate::tree::workflow::Kind;

const ROLE_CHARACTERS_MAX: usize = 64;

pub(super) const LINT: Lint =
    Lint { codes: &[Code::P401, Code::P402, Code::P403], needs: Needs::Surroundings, check };

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut is_said = false;
    let mut said = BTreeSet::new();
    for step in context.steps {
        // No agent does the step of a person, nor one that the harness does; a call only takes over what its role may do.
        let is_call = step.kind.value == Kind::Call;
        let is_work = step.kind.value == Kind::Task;
        let Some(target) = step.role.as_ref().filter(|_| is_work || is_call) else { continue };
        let name = target.value.as_str();
        if !is_role(name) {
            let message = format!("`{}` can't be a role", escape(name));
            let refused = Diagnostic::new(Code::P403, message).at(target.span, "").step(step.step_name());
            let form = "a role is one word of up to 64 ASCII letters, digits, `-`, `_` and `.`, and begins with a letter";
            let plain = name.trim_matches(['`', '"', '\'', '*', '@', '<', '>', '[', ']', ' ']);
            let joined = name.split_whitespace().collect::<Vec<_>>().join("-").to_ascii_lowercase();
            let known = context.facts.roles.iter().flatten().find(|role| **role == joined);
            found.push(match known {
                _ if is_role(plain) => {
                    let help = format!("write the name alone: `**target:** {plain}`");
                    refused.help(help).fix(target.span, plain, true)
                }
                Some(role) => {
                    refused.help(format!("did you mean `{role}`? {form}")).fix(target.span, role, false)
                }
                None => refused.help(form),
            });
            continue;
        }
        match &context.facts.roles {
            Some(roles) if is_call && !roles.iter().any(|role| role == name) => {
                found.push(without_effects(target, roles).step(step.step_name()));
            }
            _ if is_call => {}
            _ if context.facts.serves_every_role => {}
            Some(roles) if roles.iter().any(|role| role == name) => {}
            Some(roles) if said.insert(name) => found.push(unserved(target, roles).step(step.step_name())),
            Some(_) => {}
            None if !is_said => {
                is_said = true;
                let message = "no roles are configured, so no worker is known for the steps";
                let none = Diagnostic::new(Code::P402, message)
                    .at(target.span, "this role, and those of the other steps");
                found.push(none.help(ways_to_serve(name)));
            }
            None => {}
        }
    }
}

// A role whose name is nearly that of another is an error. Any other may be served by what `--exec` or `--agent` names.
fn unserved(target: &Spanned<String>, roles: &[String]) -> Diagnostic {
    let name = target.value.as_str();
    let unknown = Diagnostic::new(Code::P401, format!("no agent serves the role `{name}`"))
        .at(target.span, format!("planctl.toml has no `[roles.{name}]`"))
        .note(known(roles));
    match did_you_mean(name, roles.iter().map(String::as_str)) {
        Some(near) => unknown.help(format!("did you mean `{near}`?")).fix(target.span, near, false),
        None => unknown.level(Severity::Warning).help(ways_to_serve(name)),
    }
}

// A name that is nearly that of a role is an error: what that role is denied would not hold.
fn without_effects(target: &Spanned<String>, roles: &[String]) -> Diagnostic {
    let name = target.value.as_str();
    let message = format!("there is no role `{name}`, so nothing is allowed to this call or denied it");
    let unknown = Diagnostic::new(Code::P401, message)
        .at(target.span, format!("planctl.toml has no `[roles.{name}]`"))
        .note(known(roles));
    match did_you_mean(name, roles.iter().map(String::as_str)) {
        Some(near) => unknown.help(format!("did you mean `{near}`?")).fix(target.span, near, false),
        None => unknown.level(Severity::Warning).help(format!("add `[roles.{name}]` to planctl.toml")),
    }
}

fn ways_to_serve(role: &str) -> String {
    format!(
        "add `[roles.{role}]` to planctl.toml; or run with `--exec CMD` or `--agent NAME`, which serve every role; or have \
         `planctl worker run --role {role}` beside a daemon"
    )
}

/// Says which roles there are.
pub(super) fn known(roles: &[String]) -> String {
    format!("the roles are {}", roles.iter().map(|role| escape(role)).collect::<Vec<_>>().join(", "))
}

fn is_role(name: &str) -> bool {
    name.len() <= ROLE_CHARACTERS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
