//! The kinds of loads.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Preload,
    Trial,
    /// The final read of everything that a trial wrote.
    LastRead,
}
