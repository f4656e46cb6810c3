//! The format of logs, which operator and shard have in common.

/// Format of a program's log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The values of the option `--log-format`. Operator and shard list them in their help; this crate has no command line.
    pub const NAMES: [&str; 2] = ["text", "json"];

    /// The format of one of [`Self::NAMES`].
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_a_format() {
        assert_eq!(LogFormat::NAMES.map(LogFormat::named), [Some(LogFormat::Text), Some(LogFormat::Json)]);
        assert_eq!(LogFormat::named("JSON"), None);
    }
}
