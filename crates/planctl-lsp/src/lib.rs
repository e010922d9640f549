//! Serves plans to one editor, by the language server protocol.

mod client;
mod completion;
mod contract;
mod document;
mod findings;
mod frames;
mod host;
mod hover;
mod outline;
mod places;
mod serve;
mod session;
mod text;

pub use host::Host;
pub use serve::serve;
