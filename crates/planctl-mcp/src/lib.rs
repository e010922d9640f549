//! Serves planctl to agents, by the Model Context Protocol.
//!
//! The server is an adapter: a tool is a call of the API through a [`ApiGateway`], and what the API refuses is refused here. No tool
//! decides, approves, or changes how strictly work is judged; that a person alone may do.

mod arguments;
mod gateway;
mod http;
pub mod planning;
mod prompts;
mod resources;
mod scratch;
mod screen;
mod server;
mod stdio;
mod tools;

pub use gateway::{ApiCall, ApiGateway, PlanText, Refused, Screens};
pub use http::answer;
pub use scratch::Scratch;
pub use server::Server;
pub use stdio::{Mend, serve_stdio};
