//! Bounds of what the two sides accept from each other. A body beyond its bound is refused unread.

/// The largest request body that a shard reads, in bytes.
pub const REQUEST_BYTES: usize = 1 << 20;

/// The largest answer that a conductor reads, in bytes: a full snapshot with every operation, node and two days' series.
pub const ANSWER_BYTES: usize = 32 << 20;

/// The largest live snapshot that a conductor reads, in bytes: two histograms, the kinds of error, and the newest seconds,
/// or an hour of every node.
pub const LIVE_ANSWER_BYTES: usize = 6 << 20;

/// The largest answer to any other call, and the largest refusal, that a conductor reads, in bytes.
pub const SHORT_ANSWER_BYTES: usize = 64 << 10;

/// The most operations in a mix.
pub const OPERATIONS: usize = 64;

/// The most Redis nodes that are told apart.
pub const NODES: usize = 1024;

/// The most changes of a target's map that a shard tells.
pub const CHANGES: usize = 256;

/// The most ranges of slots in all of them: every second slot.
pub const RANGES: usize = 8192;

/// The most times without answers that a shard tells.
pub const OUTAGES: usize = 1024;

/// The most kinds of error that are told apart.
pub const ERROR_KINDS: usize = 64;

/// The most wrong answers that a snapshot describes.
pub const FINDINGS: usize = 64;

/// The longest text of a server or a failure that is kept, in bytes.
pub const MESSAGE_BYTES: usize = 256;

/// The most points of a throughput series: 10 minutes of 100 ms, then seconds up to two days.
pub const SERIES_POINTS: usize = 6_000 + 172_800;

/// The most spans of a timeline in one answer: some of every length.
pub const SPANS: usize = 16_384;

/// About the most bytes of a timeline in one answer; what is beyond is asked for again.
pub const TIMELINE_BYTES: usize = 1 << 20;

/// The longest trial that is believed, in seconds: 366 days.
pub const TRIAL_SECONDS: u32 = 366 * 86_400;

/// The most points of one length that a shard tells of its processor time: the hours of the longest trial, and more than the minutes
/// and seconds that are kept.
pub const STRAIN_POINTS: usize = 366 * 24;

/// Steps of the small histogram of delays: four in each power of two from 4 ns up to 69 s.
pub const DELAY_STEPS: usize = 136;

/// The most workers in a shard.
pub const WORKERS: usize = 256;

/// The longest name of an operation, node, machine, run or incarnation, in bytes.
pub const NAME_BYTES: usize = 1024;

/// The largest count that a shard can have come to: 4.5e15. The sum over 2,000 shards fits into 64 bits.
pub const LARGEST_COUNT: u64 = 1 << 52;

/// The largest reading of a monotonic clock that is believed, in nanoseconds: 73 years. Differences fit into 63 bits.
pub const LARGEST_INSTANT_NANOSECONDS: u64 = 1 << 61;

/// The highest rate of an open loop, in requests per second of the whole benchmark.
pub const RATE_PER_SECOND: u64 = 1_000_000_000;

/// The most stages of an open loop's rate.
pub const STAGES: usize = 64;

/// The longest load of an open loop, warm-up included: 60 hours. With the highest rate it keeps the arithmetic of a
/// ramp within 127 bits.
pub const OPEN_LOOP_NANOSECONDS: u64 = 60 * 3_600_000_000_000;

/// The highest number of an attempt that is believed.
pub const ATTEMPTS: u32 = 1 << 20;

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
