//! Why a command has no answer.

/// Why a command has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No answer; the text contains the cause.
    Silent(String),
    /// The peer closed the connection, or its reply is not RESP.
    Foreign(String),
    /// TLS failed for good. The text contains the field, the problem and the fix.
    Insecure(String),
    /// The server's error reply, in full.
    Refused(String),
}

impl Trouble {
    /// The first word of the server's error; empty without one.
    pub fn code(&self) -> &str {
        let Self::Refused(text) = self else { return "" };
        text.split(' ').next().unwrap_or_default()
    }

    /// True for a server's error that passes by itself.
    pub fn is_passing(&self) -> bool {
        ["LOADING", "BUSY", "MASTERDOWN"].contains(&self.code())
    }

    /// The text for messages.
    pub fn text(&self) -> &str {
        match self {
            Self::Silent(text) | Self::Foreign(text) | Self::Insecure(text) | Self::Refused(text) => text,
        }
    }
}
