//! Bounds of the data that the two sides accept from each other. A body beyond its bound is refused unread.

/// The largest request body that a shard reads, in bytes.
pub const REQUEST_BYTES: usize = 1 << 20;

/// The longest plan that a benchmark may have, in bytes of JSON. The request has room for its other fields.
pub const PLAN_BYTES: usize = REQUEST_BYTES - (4 << 10);

/// The largest answer that a conductor reads, in bytes: a full snapshot with every operation and node and the series of two days.
pub const ANSWER_BYTES: usize = 32 << 20;

/// The largest live snapshot that a conductor reads, in bytes: two histograms, the kinds of error, and the latest seconds, or one hour of
/// every node.
pub const LIVE_ANSWER_BYTES: usize = 6 << 20;

/// The largest refusal, and the largest answer to any other call, that a conductor reads, in bytes.
pub const SHORT_ANSWER_BYTES: usize = 64 << 10;

/// The most operations in a mix.
pub const OPERATIONS: usize = 64;

/// The most commands in a transaction.
pub const TRANSACTION: u32 = 1000;

/// The most elements of a preloaded key, and so the most commands for each key in one step. Most types take them in one command.
pub const ELEMENTS: u32 = 1000;

/// The most steps of a preload.
pub const PRELOAD_STEPS: usize = 64;

/// The most entries in a weighted list of value sizes.
pub const VALUE_SIZES: usize = 64;

/// The largest value that Redis accepts, in bytes.
pub const VALUE_BYTES: u32 = 512 << 20;

/// The most Redis nodes that are reported separately.
pub const NODES: usize = 1024;

/// The most topology changes that a shard reports.
pub const CHANGES: usize = 256;

/// The most slot ranges in all changes together: every second slot.
pub const RANGES: usize = 8192;

/// The most outages that a shard reports.
pub const OUTAGES: usize = 1024;

/// The most kinds of error that are counted separately.
pub const ERROR_KINDS: usize = 64;

/// The most wrong replies that a snapshot describes.
pub const FINDINGS: usize = 64;

/// The longest error message that is kept, in bytes.
pub const MESSAGE_BYTES: usize = 256;

/// The most points of a throughput series: 10 minutes of 100 ms, then seconds up to two days.
pub const SERIES_POINTS: usize = 6_000 + 172_800;

/// The most spans of a timeline in one answer: some of each length.
pub const SPANS: usize = 16_384;

/// The approximate size limit of a timeline in one answer, in bytes. The rest takes another call.
pub const TIMELINE_BYTES: usize = 1 << 20;

/// The longest trial that is accepted, in seconds: 366 days.
pub const TRIAL_SECONDS: u32 = 366 * 86_400;

/// The most points of one length in a shard's processor times: the hours of the longest trial. The minutes and seconds that are kept are
/// fewer.
pub const STRAIN_POINTS: usize = 366 * 24;

/// Steps of the small histogram of delays: four per power of two, from 4 ns to 69 s.
pub const DELAY_STEPS: usize = 136;

/// The most workers in a shard.
pub const WORKERS: usize = 256;

/// The longest name of an operation, node, machine, run or incarnation, in bytes.
pub const NAME_BYTES: usize = 1024;

/// The most shards of a benchmark.
pub const SHARDS: u32 = 5_000;

/// The largest count that is accepted from a shard: 2.3e15. The sum over all shards fits into 64 bits.
pub const LARGEST_COUNT: u64 = 1 << 51;

/// The largest reading of a monotonic clock that is accepted, in nanoseconds: 73 years. Differences fit into 63 bits.
pub const LARGEST_INSTANT_NANOSECONDS: u64 = 1 << 61;

/// The highest rate of an open loop, in requests per second of the whole benchmark.
pub const RATE_PER_SECOND: u64 = 1_000_000_000;

/// Bits of a request's number where a shard draws keys again, until they are on its nodes: the bits above number the draws.
pub const REDRAWN_BITS: u32 = 48;

/// The most stages of an open loop's rate.
pub const STAGES: usize = 64;

/// The longest load of an open loop, including the warm-up: 60 hours. With the highest rate, the arithmetic of a ramp stays within 127
/// bits.
pub const OPEN_LOOP_NANOSECONDS: u64 = 60 * 3_600_000_000_000;

/// The highest number of an attempt that is accepted.
pub const ATTEMPTS: u32 = 1 << 20;

/// Cuts `text` to [`MESSAGE_BYTES`] at a character boundary.
pub fn message(text: &str) -> String {
    text[..edge(text, MESSAGE_BYTES)].to_owned()
}

/// The last character boundary of `text` at or before `most` bytes.
pub fn edge(text: &str, most: usize) -> usize {
    let mut edge = text.len().min(most);
    while !text.is_char_boundary(edge) {
        edge -= 1;
    }
    edge
}
