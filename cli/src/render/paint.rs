//! Colour, where it can be seen and is wanted.

/// Adds colour to text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    enabled: bool,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Titles and what matters most.
    Bold,
    /// What may be overlooked.
    Dim,
    /// All is well.
    Good,
    /// Look twice.
    Doubtful,
    /// Wrong.
    Bad,
}

impl Paint {
    /// With colour if `terminal` and the environment does not ask for none (<https://no-color.org>).
    pub fn for_stream(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { enabled: terminal && !refused }
    }

    /// Without colour.
    #[cfg(test)]
    pub fn none() -> Self {
        Self { enabled: false }
    }

    /// With colour.
    #[cfg(test)]
    pub fn always() -> Self {
        Self { enabled: true }
    }

    /// `text` in `style`.
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
