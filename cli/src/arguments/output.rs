//! How results are printed.

use clap::ValueEnum;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables for reading
    Table,
    /// The finished object with spec and status, as JSON
    Json,
    /// The finished object with spec and status, as YAML
    Yaml,
}
