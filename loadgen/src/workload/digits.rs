//! The decimal form of numbers in keys.

/// The maximum number of digits of a key's number, including padding.
pub(super) const DIGITS: usize = 32;
