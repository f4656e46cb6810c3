//! All thresholds of the verdict, with reasons. `docs/results.md` documents them for users.

use std::time::Duration;

use redisbench_statistics::steady::Rule;
use redisbench_wire::snapshot::ServerCpu;

/// The whole of a share in hundredths of a per cent.
pub const WHOLE: u64 = 10_000;

/// In hundredths of a per cent: a target rate counts as met from 99 % on. A request more or less may be counted at the window's edges, and
/// repeated runs differ by up to 1 %.
pub const RATE_MET: u64 = 9_900;
/// In hundredths of a per cent: more failed requests than 0.01 % make a result doubtful, because they begin to decide its highest quantile,
/// p99.99.
pub const ERRORS_DOUBTFUL: u64 = 1;
/// More than 1 % make it useless: they decide its p99, and a failed request often costs the target less than another.
pub const ERRORS_INVALID: u64 = 100;

/// A warm-up at least twice as long as the start skew absorbs the skew on every shard.
pub const SKEW_OF_WARMUP: u32 = 2;

/// In per cent: a WAIT that times out for one write in a hundred decides p99.
pub const UNDER_REPLICATED: u64 = 1;
/// In per cent: more than half of an operation's reads found nothing.
pub const MISSES: u64 = 50;

/// In millionths: a worker that runs for more than 95 % of its load could do at most 5 % more.
pub const BUSY: u64 = 950_000;
/// A worker that ran, or waited for a processor or its quota, for 90 % of its load left at most a tenth of the time unused. Only then can
/// its processor have been the limit. One that slept for longer waited for something else, such as replies.
pub const USED_UP: u64 = 900_000;
/// From 70 % on, requests queue before the worker itself: the mean wait in such a queue is more than twice the worker's own time per
/// request.
pub const BUSY_FOR_LATENCIES: u64 = 700_000;
/// In nanoseconds: seconds in which a worker is so busy count if they are longer in total. One or two occur by chance, and are more than
/// 1 % of a short run.
pub const BUSY_SECONDS: u64 = 2_000_000_000;
/// In hundredths of a per cent: a latency with more than a fifth from the load generator depends on it more than two runs against the
/// target differ.
pub const OWN_SHARE: u32 = 2_000;
/// Waiting for a processor for more than 20 % of the load. Two threads that share a processor fairly wait half of the time; short waits are
/// usual on any machine with other work.
pub const WAITING: u64 = 200_000;
/// Throttled for more than 5 % of the load: requests that become due meanwhile wait for up to a whole quota period.
pub const THROTTLED: u64 = 50_000;
/// More than 10 % steal time.
pub const STOLEN: u64 = 100_000;
/// In millionths of the measurement of all shards: bad seconds of 1 % of it decide p99.
pub const SECONDS_DOUBTFUL: u64 = 10_000;
/// From 0.1 % on they decide p99.9, which is worth a note.
pub const SECONDS_TOLD: u64 = 1_000;
/// In nanoseconds: timers of virtual machines are late by up to a millisecond.
pub const LATE: u64 = 1_000_000;

/// Replies lay unread for 20 % of the time of their connections: this is also the shard's mean share of the response times, and a closed
/// loop could be faster by as much. Only delays of at least 1 ms and of more than twice the mean response time count, because replies that
/// arrive together are read one after another.
pub const HELD: u64 = 200_000;

/// In hundredths of a per cent: a server whose main thread ran for this share of the window or more was full.
pub const MAIN_THREAD: u32 = ServerCpu::FULL_BASIS_POINTS;
/// In millionths of the time in which requests fell behind their rate: a server, or the processors of a shard, that were full for nine
/// tenths of it were the cause. Servers are asked once a second, at other times than the seconds begin.
pub const FULL_WHILE_BEHIND: u64 = 900_000;
/// In millionths of that time: with a full server and a worker that was saturated for half of it, either may have been the cause.
pub const BUSY_WHILE_BEHIND: u64 = 500_000;
/// In hundredths of a per cent: from 75 % on, requests that queue before a server wait on average three times as long as it works on one.
/// Its slowest replies are late long before its throughput falls.
pub const MAIN_THREAD_NEAR: u32 = 7_500;
/// In nanoseconds: below a second, a server's processor time is too coarse.
pub const SHORTEST_CPU: u64 = 1_000_000_000;

/// In per cent of the stated capacity: a saturated shaped link carries between 95 and 105 % of it, by an interface's counters.
pub const LINK_FULL: u64 = 90;

/// In per cent of the stated capacity: below this, hardly anything queues before a link.
pub const LINK_ROOM: u64 = 50;

/// One unexplained command in a thousand.
pub const UNEXPLAINED: u64 = 1_000;
/// Fewer than this may come from a user who looked at a key.
pub const UNEXPLAINED_LEAST: u64 = 10;

/// Kendall's S over ten parts of the window, 45 at most: an S of 31 or more in either direction occurs by chance in fewer than one steady
/// run of 200 (Kendall 1970, appendix table 1). In addition, the throughput must have changed by a tenth of the median part from the first
/// part to the last: less does not make a mean doubtful.
pub const STEADY: Rule = Rule { trend: 31, tolerance: 0.1 };
/// For the median latency over time. Neighbouring seconds of a busy machine are correlated, so S must be higher: 39 and more occur in at
/// most one steady run of 200 with a correlation of one half between neighbouring seconds, with p99 judged as well. A seventh is far beyond
/// the width of a bucket.
pub const STEADY_P50: Rule = Rule { trend: 39, tolerance: 0.15 };
/// For p99, which is judged if the median is steady: p99 differs more between two runs than the median.
pub const STEADY_P99: Rule = Rule { trend: 39, tolerance: 0.25 };
/// In nanoseconds: the wake-up time of a processor moves a latency by tens of microseconds.
pub const STEADY_LATENCY_LEAST: f64 = 50_000.0;
/// In nanoseconds: a tenth of such a stage is at least a second, so the change of rate at its beginning affects only the first tenth.
pub const SHORTEST_STAGE: u64 = 10_000_000_000;
/// In per cent of the median part: a closed loop that did less than half as much for a tenth of the time hides a pause.
pub const PAUSE: u64 = 50;
/// In per cent of the median point: a closed loop below this stands still.
pub const STANDSTILL: u64 = 10;
/// Three points of 100 ms: schedulers cause shorter pauses, and p99.9 of a window of minutes contains them. Trials of more than 10 minutes
/// have points of 1 s.
pub const STANDSTILL_SHORTEST: Duration = Duration::from_millis(300);
/// If the median point has fewer requests, three empty points occur by chance.
pub const STANDSTILL_LEAST: u64 = 10;
/// Per second: below this, a tenth of a short window holds too few requests to compare.
pub const PAUSE_RATE: u64 = 100;

/// In per cent of the trial's throughput. With half of the connections and the same latency it would be 50. Up to this value the
/// connections were the limit.
pub const FALLEN: u128 = 70;
/// From here on it has not fallen: repeated runs of a few seconds differ by a tenth.
pub const SAME: u128 = 90;
/// In per cent of the trial's mean latency: the queue before a saturated target halves with half of the connections.
pub const SHORTER: u128 = 70;
/// Minimum number of requests for a rate.
pub const PROBE_LEAST: u128 = 100;
/// In hundredths of a per cent: a server whose main thread ran for less than half of the time, and whose commands took less than half of
/// it, had time for twice as much.
pub const IDLE: u32 = 5_000;
