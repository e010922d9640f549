//! The files that pages load: one stylesheet, one script, one icon.

/// The stylesheet.
pub const STYLE: &str = include_str!("../assets/page.css");
/// The script. Pages work without it.
pub const SCRIPT: &str = include_str!("../assets/page.js");
/// The icon.
pub const ICON: &str = include_str!("../assets/icon.svg");
