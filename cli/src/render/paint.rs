//! Colour, if it is supported and wanted.

use std::sync::OnceLock;

use clap::ColorChoice;

/// The choice of `--color`, for the whole program.
static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// Colours text if enabled.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    enabled: bool,
}

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
    /// Overrides what [`Self::for_stream`] finds, unless it is `Auto`.
    pub fn choose(choice: ColorChoice) {
        let _ = CHOICE.set(choice);
    }

    /// With colour if `terminal` and the environment does not disable it (<https://no-color.org>).
    pub fn for_stream(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let enabled = match CHOICE.get() {
            Some(ColorChoice::Always) => true,
            Some(ColorChoice::Never) => false,
            Some(ColorChoice::Auto) | None => terminal && !refused,
        };
        Self { enabled }
    }

    pub fn is_enabled(self) -> bool {
        self.enabled
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
