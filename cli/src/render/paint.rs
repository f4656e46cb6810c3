//! Colour, if it is supported and wanted.

/// Colours text if enabled.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    enabled: bool,
}

/// The style of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Unchanged.
    #[default]
    Plain,
    /// Titles and the most important values.
    Bold,
    /// Less important text.
    Dim,
    Good,
    /// Needs attention.
    Doubtful,
    Bad,
}

impl Paint {
    /// With colour if `terminal` and the environment does not disable it (<https://no-color.org>).
    pub fn for_stream(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { enabled: terminal && !refused }
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self { enabled: false }
    }

    #[cfg(test)]
    pub fn always() -> Self {
        Self { enabled: true }
    }

    pub fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "1;32",
            Style::Doubtful => "1;33",
            Style::Bad => "1;31",
        };
        if self.enabled && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
