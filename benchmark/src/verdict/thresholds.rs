//! Every threshold of the verdict, and why it is what it is. `docs/results.md` says the same for people.

use std::time::Duration;

use redisbench_statistics::steady::Rule;

/// In hundredths of a per cent: a target rate counts as met from 99 % on. At the window's edges a request more or less is
/// counted, and what is less than 1 % short is within what a repeated run differs by.
pub const RATE_MET: u64 = 9_900;
/// In hundredths of a per cent: more failed requests than 0.01 % make a result doubtful: from there on they begin to decide
/// its highest quantile, p99.99.
pub const ERRORS_DOUBTFUL: u64 = 1;
/// More than 1 % make it useless: they decide its p99, and a failed request often costs the target less than another.
pub const ERRORS_INVALID: u64 = 100;

/// A warm-up at least twice as long as the shards started apart has outlasted it on every shard.
pub const SKEW_OF_WARMUP: u32 = 2;

/// In per cent: WAIT that ends before its time for one write in a hundred decides p99.
pub const UNDER_REPLICATED: u64 = 1;
/// In per cent: more than half of the reads of an operation found nothing.
pub const MISSES: u64 = 50;

/// In millionths: a worker that runs for longer than 95 % of its load could do at most 5 % more.
pub const BUSY: u64 = 950_000;
/// A worker that ran, or waited for a processor or its quota, for 90 % of its load left at most a tenth of the time unused: only
/// then can its processor have been the limit. One that slept for longer waited for something else, such as replies.
pub const USED_UP: u64 = 900_000;
/// From 70 % on, requests queue before the worker itself: of such a queue they wait for more than twice its own time, on the mean.
pub const BUSY_FOR_LATENCIES: u64 = 700_000;
/// In hundredths of a per cent: a latency of which more than a fifth is the load generator's own says more of it than two runs of
/// the target differ by.
pub const OWN_SHARE: u32 = 2_000;
/// Waiting for a processor for more than 20 % of the load. Two threads that share a processor fairly wait half of the time;
/// short waits are usual on any machine that does something else too.
pub const WAITING: u64 = 200_000;
/// Held back by a quota for more than 5 % of the load: requests that were due meanwhile wait for up to a whole period.
pub const THROTTLED: u64 = 50_000;
/// More than 10 % of the machine's processor time went to other machines.
pub const STOLEN: u64 = 100_000;
/// In millionths of the measurement of all shards: bad seconds of 1 % of it decide p99.
pub const SECONDS_DOUBTFUL: u64 = 10_000;
/// From 0.1 % on they decide p99.9, which is worth a note.
pub const SECONDS_TOLD: u64 = 1_000;
/// In nanoseconds: less than a millisecond of lateness is what timers of virtual machines do.
pub const LATE: u64 = 1_000_000;

/// Replies lay unread for 20 % of the time of their connections: as much of the response times is the shard's, on the mean, and
/// a closed loop could be faster by as much. What counts is 1 ms and more, and more than twice the mean response time:
/// replies that come together are read one after the other.
pub const HELD: u64 = 200_000;

/// In hundredths of a per cent: a server whose main thread ran for 95 % of the window or more could do at most 5 % more.
/// Redis sleeps when nothing is to be done, so this is work.
pub const MAIN_THREAD: u32 = 9_500;
/// In hundredths of a per cent: from 75 % on, requests that queue before a server wait for three times as long as it works on one,
/// on the mean. Its slowest answers are late long before it answers less.
pub const MAIN_THREAD_NEAR: u32 = 7_500;
/// In nanoseconds: over less than a second the processor time of a server is too coarse.
pub const SHORTEST_CPU: u64 = 1_000_000_000;

/// In per cent of the stated capacity: what a shaped link carries of it, as an interface counts, lies between 95 and 105 %.
pub const LINK_FULL: u64 = 90;

/// In per cent of the stated capacity: below this hardly anything queues before a link.
pub const LINK_ROOM: u64 = 50;

/// One command in a thousand that nobody can account for.
pub const UNEXPLAINED: u64 = 1_000;
/// Fewer than these are somebody who looked at a key.
pub const UNEXPLAINED_LEAST: u64 = 10;

/// Kendall's S over ten parts of the window, 45 at most: 31 and more, or less than that below 0, come about by chance in fewer
/// than one steady run of 200 (Kendall 1970, appendix table 1). And from the first part to the last the throughput must have
/// changed by a tenth of the median part: less is no reason to doubt a mean.
pub const STEADY: Rule = Rule { trend: 31, tolerance: 0.1 };
/// The same for the median latency over time. Seconds of a busy machine are alike, so S must be higher: 39 and more come about in
/// at most one steady run of 200 whose neighbouring seconds are alike by half, with p99 looked at as well. A seventh is far beyond the width of a bucket.
pub const STEADY_P50: Rule = Rule { trend: 39, tolerance: 0.15 };
/// For p99, which is looked at if the median is steady: two runs differ in p99 by more than in the median.
pub const STEADY_P99: Rule = Rule { trend: 39, tolerance: 0.25 };
/// In nanoseconds: a processor that wakes up later or sooner moves a latency by tens of microseconds.
pub const STEADY_LATENCY_LEAST: f64 = 50_000.0;
/// In per cent of the median part: a closed loop that did less than half as much for a tenth of the time hides a pause.
pub const PAUSE: u64 = 50;
/// In per cent of the median point: less is a closed loop that stands still.
pub const STANDSTILL: u64 = 10;
/// Three points of 100 ms: shorter pauses are within what schedulers do, and p99.9 of a window of minutes has them.
pub const STANDSTILL_SHORTEST: Duration = Duration::from_millis(300);
/// Of points with fewer requests on the middle, three empty ones come about by chance.
pub const STANDSTILL_LEAST: u64 = 10;
/// Per second: below this a tenth of a short window holds too few requests to compare.
pub const PAUSE_RATE: u64 = 100;

/// In per cent of the trial's throughput: with half of the connections and the same latency it would be 50. Up to here they
/// were the limit.
pub const FALLEN: u128 = 70;
/// From here on it has not fallen: repeated runs of seconds differ by a tenth.
pub const SAME: u128 = 90;
/// In per cent of the trial's mean latency: what queued before a full target halves with half of the connections.
pub const SHORTER: u128 = 70;
/// Fewer requests than these are no rate.
pub const PROBE_LEAST: u128 = 100;
/// In hundredths of a per cent: a server whose main thread ran for less than half of the time, and that took less than half of
/// it to execute commands, had time for twice as much.
pub const IDLE: u32 = 5_000;
