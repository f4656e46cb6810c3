//! The depth to which connections are filled.

/// The depth to which a load fills connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// The maximum number of commands in flight.
    pub window: usize,
    /// The maximum number of commands in one send.
    pub batch: usize,
}
