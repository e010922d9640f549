//! How a person who watches a run at a terminal is called back to it.

/// The form of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TerminalCall {
    /// That which the terminal is known to show; none at others.
    #[default]
    Auto,
    /// A notification by the sequence OSC 9, as iTerm2 and others take it.
    Osc9,
    /// A notification by the sequence OSC 777, as foot and rxvt take it.
    Osc777,
    /// The bell.
    Sound,
    /// None.
    Off,
}

impl TerminalCall {
    /// All of them.
    pub const ALL: [TerminalCall; 5] = [
        TerminalCall::Auto,
        TerminalCall::Osc9,
        TerminalCall::Osc777,
        TerminalCall::Sound,
        TerminalCall::Off,
    ];

    /// Returns the word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            TerminalCall::Auto => "auto",
            TerminalCall::Osc9 => "osc9",
            TerminalCall::Osc777 => "osc777",
            TerminalCall::Sound => "bell",
            TerminalCall::Off => "off",
        }
    }
}
