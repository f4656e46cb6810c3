//! The arguments of commands, from which requests are generated.

use serde::{Deserialize, Serialize};

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    /// Literal text.
    Literal(String),
    /// The request's key, including the prefix.
    Key,
    /// Another key of the request: the second, the third and so on, from 2.
    NthKey(u32),
    /// The request's value.
    Data,
    /// A random number, drawn anew at each place.
    Integer {
        /// The lowest.
        least: i64,
        /// The highest, no lower than the lowest.
        most: i64,
        /// The number is padded with zeros to this many digits; 0 means no padding. Only if `least` is not negative.
        width: u32,
    },
    /// The request's number, k.
    Sequence,
    /// A random number from 0 to 1, with nine decimals.
    Score,
}
