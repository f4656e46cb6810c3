//! The tools whose command lines can be translated.

use super::tables::Row;

/// The rules by which a tool's command lines are read.
pub struct Tool {
    pub name: &'static str,
    /// Its tables of options.
    pub tables: &'static [&'static [Row]],
    /// GNU's long options: `--name=value`, `-n5`, and unambiguous abbreviations.
    pub gnu: bool,
}
