//! Bounds of what the two sides accept from each other. A body beyond its bound is refused unread.

/// The largest request body that a shard reads, in bytes.
pub const REQUEST_BYTES: usize = 1 << 20;

/// The largest answer that a conductor reads, in bytes: a full snapshot with every operation, node and a day's series.
pub const ANSWER_BYTES: usize = 32 << 20;

/// The most operations in a mix.
pub const OPERATIONS: usize = 64;

/// The most Redis nodes that are told apart.
pub const NODES: usize = 1024;

/// The most kinds of error that are told apart.
pub const ERROR_KINDS: usize = 64;

/// The longest text of a server or a failure that is kept, in bytes.
pub const MESSAGE_BYTES: usize = 256;

/// The most points of a throughput series: 10 minutes of 100 ms, then seconds up to two days.
pub const SERIES_POINTS: usize = 6_000 + 172_800;

/// The most workers in a shard.
pub const WORKERS: usize = 256;

/// Cuts `text` to [`MESSAGE_BYTES`] at a character's edge.
pub fn message(text: &str) -> String {
    text[..edge(text, MESSAGE_BYTES)].to_owned()
}

/// The last edge between characters of `text` at or before `most` bytes.
pub fn edge(text: &str, most: usize) -> usize {
    let mut edge = text.len().min(most);
    while !text.is_char_boundary(edge) {
        edge -= 1;
    }
    edge
}
