//! Agents' door, spoken to by scripted clients: over standard input and output, and over HTTP.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/hostile.rs"]
mod hostile;
#[path = "mcp/http.rs"]
mod http;
#[path = "mcp/install.rs"]
mod install;
#[path = "mcp/persons.rs"]
mod persons;
#[path = "mcp/planning.rs"]
mod planning;
#[path = "mcp/tools.rs"]
mod tools;
#[path = "mcp/versions.rs"]
mod versions;
