//! P123, P124, P213–P216: what the nodes of the plan's graph name, held against what is there.

use super::{Lint, Needs};
use crate::diagnostic::Code;
use crate::tree::workflow::{folders, lint_judges, lint_tool_calls, next, sub_plans};

pub(super) const FOLDERS: Lint = Lint {
    codes: &[Code::P213],
    needs: Needs::Surroundings,
    check: |context, found| folders::lint_there(context.workflow, context.facts, found),
};

pub(super) const SUB_PLANS: Lint = Lint {
    codes: &[Code::P214],
    needs: Needs::Surroundings,
    check: |context, found| sub_plans::lint_there(context.workflow, context.facts, found),
};

pub(super) const NEXT: Lint = Lint {
    codes: &[Code::P216],
    needs: Needs::Surroundings,
    check: |context, found| next::lint_there(context.workflow, context.facts, found),
};

pub(super) const TOOL_CALLS: Lint = Lint {
    codes: &[Code::P215],
    needs: Needs::Surroundings,
    check: |context, found| lint_tool_calls(context.source, context.workflow, context.facts, found),
};

pub(super) const JUDGES: Lint = Lint {
    codes: &[Code::P123, Code::P124],
    needs: Needs::Surroundings,
    check: |context, found| lint_judges(context.steps, context.facts, found),
};
