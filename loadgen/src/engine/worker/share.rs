//! The part of one operation in a send.

/// The bytes of consecutive requests of one operation in a send.
#[derive(Debug)]
pub(super) struct Share {
    pub operation: u16,
    pub bytes: usize,
}
