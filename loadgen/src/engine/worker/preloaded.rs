//! The progress of a worker's preload.

/// The progress of the preload.
#[derive(Debug, Default)]
pub(super) struct Preloaded {
    pub keys: u64,
    pub commands: u64,
    /// Parts of `keys` and `commands` that the cold side knows.
    pub told: (u64, u64),
    /// The next step.
    pub step: usize,
}
