//! The formats of printed results.

use clap::ValueEnum;

/// The format of a printed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables for reading
    Table,
    /// The finished object with spec and status, as JSON
    Json,
    /// The finished object with spec and status, as YAML
    Yaml,
}
