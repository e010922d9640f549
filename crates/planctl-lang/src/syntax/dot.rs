//! DOT pipelines: read with the place of every name, attribute and edge, resolved, and written again.
//!
//! [`read`] gives the statements as they stand in the file and every complaint at once. [`resolve`] is the second pass:
//! defaults, subgraphs, classes and the stylesheet, so that each node and edge has all that is said of it.

mod attributes;
mod lexemes;
mod read;
mod resolve;
mod stylesheet;
mod syntax;
mod write;

pub use read::read;
pub use resolve::{Pipeline, PipelineEdge, PipelineNode, resolve};
pub use syntax::{Attribute, Digraph, Of, Statement};
pub use write::write;

pub(crate) use attributes::find as find_attribute;
pub use attributes::{EdgeAttributes, GraphAttributes, NodeAttributes};
pub(crate) use attributes::{PARALLEL, RETRIES, TESTS, VISITS};
pub(crate) use attributes::{json_value, known_names as names_of, read as read_attribute};
pub(crate) use lexemes::is_name;
pub(crate) use read::{is_keyword, plain};
pub(crate) use write::{is_plain_name, value_text};
