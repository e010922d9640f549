//! The language from outside: text and facts in, findings and a graph out.

#[path = "lang/allowing.rs"]
mod allowing;
#[path = "lang/bash.rs"]
mod bash;
#[path = "lang/budgets.rs"]
mod budgets;
#[path = "lang/conditions.rs"]
mod conditions;
#[path = "lang/contracts.rs"]
mod contracts;
#[path = "lang/converting.rs"]
mod converting;
#[path = "lang/deciding.rs"]
mod deciding;
#[path = "lang/dialect.rs"]
mod dialect;
#[path = "lang/dot.rs"]
mod dot;
#[path = "lang/drawn.rs"]
mod drawn;
#[path = "lang/examples.rs"]
mod examples;
#[path = "lang/expansion.rs"]
mod expansion;
#[path = "lang/fixes.rs"]
mod fixes;
#[path = "lang/flows.rs"]
mod flows;
#[path = "lang/formatting.rs"]
mod formatting;
#[path = "lang/graph_rows.rs"]
mod graph_rows;
#[path = "lang/hidden.rs"]
mod hidden;
#[path = "lang/implied.rs"]
mod implied;
#[path = "lang/importing.rs"]
mod importing;
#[path = "lang/insertion.rs"]
mod insertion;
#[path = "lang/judges.rs"]
mod judges;
#[path = "lang/levels.rs"]
mod levels;
#[path = "lang/library.rs"]
mod library;
#[path = "lang/lowering.rs"]
mod lowering;
#[path = "lang/order.rs"]
mod order;
#[path = "lang/php_and_ruby.rs"]
mod php_and_ruby;
#[path = "lang/properties.rs"]
mod properties;
#[path = "lang/routing.rs"]
mod routing;
#[path = "lang/rows_facts.rs"]
mod rows_facts;
#[path = "lang/rows_format.rs"]
mod rows_format;
#[path = "lang/same_path.rs"]
mod same_path;
#[path = "lang/sample.rs"]
mod sample;
#[path = "lang/several_contracts.rs"]
mod several_contracts;
#[path = "lang/sound.rs"]
mod sound;
#[path = "lang/sub_plans.rs"]
mod sub_plans;
#[path = "lang/trials.rs"]
mod trials;
#[path = "lang/unicode.rs"]
mod unicode;
#[path = "lang/walk.rs"]
mod walk;
#[path = "lang/workflows.rs"]
mod workflows;
