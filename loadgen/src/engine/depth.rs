//! How far connections are filled.

/// How far a load fills connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// The maximum number of commands in flight.
    pub window: usize,
    /// The maximum number of commands in one send.
    pub batch: usize,
}
