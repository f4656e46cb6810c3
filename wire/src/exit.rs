//! Exit codes of a shard. The failure policy of the operator's Job matches them.

/// The conductor has the result or does not need it.
pub const RELEASED: u8 = 0;

/// Bad plan, credential or target: a retry without a change would fail again.
pub const REFUSED: u8 = 64;

/// A fault of the load generator itself.
pub const INTERNAL: u8 = 70;

/// Stopped by a limit or a signal before the result was collected. A retry may succeed.
pub const STOPPED: u8 = 75;

/// Stopped by a limit after a start. A replacement could not take part in the started trial, and would only wait.
pub const ABANDONED: u8 = 76;
