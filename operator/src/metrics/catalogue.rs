//! Every metric that the operator serves: its name, labels and meaning.

use prometheus_client::metrics::MetricType;

/// The subject of a series, which determines its first labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Operator,
    Benchmark,
    Trial,
}

impl Of {
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Operator => &[],
            Self::Benchmark => &["namespace", "benchmark"],
            Self::Trial => &["namespace", "benchmark", "target", "trial", "cell"],
        }
    }
}

#[derive(Debug)]
pub struct Metric {
    /// The name of its samples; of a histogram without `_bucket`, `_sum` and `_count`.
    pub name: &'static str,
    pub kind: MetricType,
    pub of: Of,
    /// The labels after those of [`Self::of`].
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

impl Metric {
    /// The name of the family in `OpenMetrics`, where counters have no suffix.
    pub fn family(&self) -> &'static str {
        self.name.strip_suffix("_total").unwrap_or(self.name)
    }
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $of:ident $name:literal [$($label:literal)*] $help:literal;)*) => {
        $(pub static $constant: Metric =
            Metric { name: $name, kind: MetricType::$kind, of: Of::$of, labels: &[$($label),*], help: $help };)*

        #[cfg(test)]
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    REQUESTS = Counter Trial "redisbench_requests_total" ["outcome"]
        "Measured requests by outcome: succeeded, error, unsent; after the trial also unknown (no outcome, or of a lost shard).";
    ERRORS = Counter Trial "redisbench_errors_total" ["kind"]
        "Errors of measured requests by kind: the first 32 kinds of the trial, and Other for the rest. All kinds sum to the requests with outcome error.";
    VERIFICATION = Counter Trial "redisbench_verification_total" ["outcome"]
        "Results of checking replies, with spec.verify: checked, mismatched, corrupt, lost_write, lost_key, indeterminate.";
    BYTES = Counter Trial "redisbench_bytes_total" ["direction"]
        "Bytes sent and received while measuring. Unknown after a restart of the operator.";
    RESPONSE_TIME = Histogram Trial "redisbench_response_time_seconds" []
        "Response time of successful measured requests of all shards. Classic buckets from 10 us to 60 s, 7 per decade; native buckets of schema 3, 8 per doubling. Requests beyond 600 s count as 600 s.";
    TARGET_RATE = Gauge Trial "redisbench_target_requests_per_second" []
        "Mean rate that the trial asks for. Absent in a closed loop.";
    RECENT_RATE = Gauge Trial "redisbench_recent_requests_per_second" []
        "While the trial runs: successful requests per second over the last 5 s, warm-up included.";
    RECENT_RESPONSE_TIME = Gauge Trial "redisbench_recent_response_time_seconds" ["percentile"]
        "While the trial runs: response time of successful requests over the last 5 s. Absent with too few requests.";
    RECENT_SERVICE_TIME = Gauge Trial "redisbench_recent_service_time_seconds" ["percentile"]
        "While the trial runs: service time of successful requests over the last 5 s. Absent in a closed loop.";
    RECENT_CACHE_RATE = Gauge Trial "redisbench_recent_cache_events_per_second" ["event"]
        "While a trial with spec.workload.caching is measured: events of client-side caches per second over the last 5 s: hit, invalidation.";
    RECENT_OPERATION_RATE = Gauge Trial "redisbench_recent_operation_requests_per_second" ["operation"]
        "While the trial runs: successful measured requests per second of each operation over the last 5 s.";
    RECENT_OPERATION_RESPONSE_TIME = Gauge Trial "redisbench_recent_operation_response_time_seconds" ["operation" "percentile"]
        "While the trial runs: response time of each operation over the last 5 s.";
    RECENT_NODE_RATE = Gauge Trial "redisbench_recent_node_requests_per_second" ["node"]
        "While a trial with thresholds per node runs: requests per second of each node over the last 5 s. At most 32 nodes.";
    RECENT_NODE_SERVICE_TIME = Gauge Trial "redisbench_recent_node_service_time_seconds" ["node" "percentile"]
        "While a trial with thresholds per node runs: service time of each node over the last 5 s. At most 32 nodes.";
    SNAPSHOT_AGE = Gauge Trial "redisbench_snapshot_age_seconds" []
        "While the trial runs: age of the oldest snapshot of a running shard. Live numbers are this old.";
    START_TIME = Gauge Trial "redisbench_trial_start_timestamp_seconds" []
        "When all shards began together, in seconds since the Unix epoch.";
    TRIAL_INFO = Gauge Trial "redisbench_trial_info" ["preset" "parameters" "repeat"]
        "1 for each trial with its setting: preset, swept fields and repeat.";
    RESULT_RATE = Gauge Trial "redisbench_result_requests_per_second" []
        "After the trial: mean of successful requests per second over the common window.";
    RESULT_RESPONSE_TIME = Gauge Trial "redisbench_result_response_time_seconds" ["percentile"]
        "After the trial: response time over all scheduled requests. Absent if unknown.";
    RESULT_SERVICE_TIME = Gauge Trial "redisbench_result_service_time_seconds" ["percentile"]
        "After the trial: service time of successful requests. Absent in a closed loop.";
    RESULT_CACHE = Gauge Trial "redisbench_result_cache_events" ["event"]
        "After the trial: counts of client-side caches, with spec.workload.caching: hit, miss, invalidation, unused (invalidated before any hit), flush, stale_hit.";
    RESULT_INVALIDATION_TIME = Gauge Trial "redisbench_result_invalidation_time_seconds" ["percentile"]
        "After the trial: from sending a write to the push that invalidates another connection's entry.";
    RESULT_CONNECTIONS = Gauge Trial "redisbench_result_connections" ["event"]
        "After the trial: connections made and closed while measuring, with spec.load.connectionLifetime: made, closed.";
    RESULT_CONNECT_TIME = Gauge Trial "redisbench_result_connect_time_seconds" ["percentile"]
        "After the trial: from the begin of a connection until it was ready.";
    RESULT_TLS_HANDSHAKE_TIME = Gauge Trial "redisbench_result_tls_handshake_time_seconds" ["percentile"]
        "After the trial: TLS handshakes of the connections made. Absent without TLS.";
    RESULT_OPERATION_REQUESTS = Gauge Trial "redisbench_result_operation_requests" ["operation" "outcome"]
        "After the trial: measured requests of each operation by outcome.";
    RESULT_OPERATION_BANDWIDTH = Gauge Trial "redisbench_result_operation_bytes_per_second" ["operation" "direction"]
        "After the trial: bytes per second of each operation's commands (sent) and replies (received).";
    RESULT_OPERATION_RESPONSE_TIME = Gauge Trial "redisbench_result_operation_response_time_seconds" ["operation" "percentile"]
        "After the trial: response time of each operation.";
    RESULT_NODE_REQUESTS = Gauge Trial "redisbench_result_node_requests" ["node"]
        "After the trial: requests of each node. At most 32 nodes.";
    RESULT_NODE_SERVICE_TIME = Gauge Trial "redisbench_result_node_service_time_seconds" ["node" "percentile"]
        "After the trial: service time of each node. At most 32 nodes.";
    TRIAL_VERDICT = Gauge Trial "redisbench_trial_verdict" ["verdict"]
        "After the trial: 1 for its verdict (Valid, Degraded or Invalid), 0 for the others.";

    PHASE = Gauge Benchmark "redisbench_phase" ["phase"]
        "1 for the current phase of the benchmark, 0 for the others.";
    VERDICT = Gauge Benchmark "redisbench_verdict" ["verdict"]
        "1 for the verdict on the benchmark, the worst of all trials; 0 for the others. Absent until there is one.";
    FINISHED_TIME = Gauge Benchmark "redisbench_finished_timestamp_seconds" []
        "When the benchmark ended, in seconds since the Unix epoch. Absent before.";
    THRESHOLDS = Gauge Benchmark "redisbench_thresholds" ["outcome"]
        "Entries of spec.thresholds by outcome.";
    SHARDS = Gauge Benchmark "redisbench_shards" ["state"]
        "Shards by state: desired, armed, running, finished, lost, unreachable.";
    START_SKEW = Gauge Benchmark "redisbench_start_skew_seconds" []
        "Time between the first and the last shard's start.";
    CLOCK_UNCERTAINTY = Gauge Benchmark "redisbench_clock_uncertainty_seconds" []
        "Largest clock uncertainty of a shard.";
    MEMORY = Gauge Benchmark "redisbench_benchmark_memory_bytes" ["part"]
        "Estimated memory of the operator for the benchmark by part: object, snapshots (the newest of its shards), merged (live histograms of all shards).";

    BENCHMARKS = Gauge Operator "redisbench_benchmarks" ["phase"]
        "All benchmarks by phase, those without series of their own included.";
    FINISHED_LIMIT = Gauge Operator "redisbench_finished_benchmarks_limit" []
        "Number of finished benchmarks that keep series, the newest: --metrics-finished-benchmarks.";
    HIDDEN = Gauge Operator "redisbench_hidden_benchmarks" []
        "Benchmarks without series of their own: older finished ones, and those beyond 50,000 samples.";
    BUILD_INFO = Gauge Operator "redisbench_build_info" ["version"]
        "1, with the version of the operator.";
    LEADER = Gauge Operator "redisbench_leader" []
        "1 if this operator holds the Lease.";
    LEASE_ROUNDS = Counter Operator "redisbench_lease_rounds_total" ["result"]
        "Attempts to take or renew the Lease: held, other (held by another operator), raced, failed.";
    LEASE_HELD = Gauge Operator "redisbench_lease_held_timestamp_seconds" []
        "When this operator last took or renewed the Lease, in seconds since the Unix epoch. Absent before.";
    RECONCILIATIONS = Counter Operator "redisbench_reconciliations_total" ["result"]
        "Reconciliations: success, or the class of error. Errors are retried.";
    RECONCILE_DURATION = Histogram Operator "redisbench_reconcile_duration_seconds" []
        "Duration of reconciliations.";
    QUEUE_LENGTH = Gauge Operator "redisbench_queue_length" []
        "Benchmarks with a change that wait for a reconciliation.";
    QUEUE_WAIT = Histogram Operator "redisbench_queue_wait_seconds" []
        "Time between a change and the start of the reconciliation.";
    SHARD_CALLS = Counter Operator "redisbench_shard_calls_total" ["call" "outcome"]
        "Calls to shards: success, refused, dial_timeout, connection, timeout, malformed, foreign (another process replied), no_memory (not called, because other results filled the memory).";
    WATCH_EVENTS = Counter Operator "redisbench_watch_events_total" ["resource" "scope"]
        "Events of the watches of the API server. The scope is the watched namespace; empty for all.";
    WATCH_ERRORS = Counter Operator "redisbench_watch_errors_total" ["resource" "scope"]
        "Failures of the watches. Each is followed by a pause and a new watch.";
    WATCH_AGE = Gauge Operator "redisbench_watch_age_seconds" ["resource" "scope"]
        "Time since the last event of the watch. Grows while nothing changes; with errors, the operator's view is this old.";
    WATCH_FAILING = Gauge Operator "redisbench_watch_failing" ["resource" "scope"]
        "1 if the last event of the watch is a failure.";
    MERGES = Counter Operator "redisbench_merges_total" []
        "Merges of the shards' snapshots.";
    RESULT_MEMORY = Gauge Operator "redisbench_result_memory_bytes" ["part"]
        "Memory reserved for final snapshots of shards: reading, kept (until their trial is merged; beyond 16 MiB of a trial they are merged as they arrive).";
    RESULT_WAITING = Gauge Operator "redisbench_result_reads_waiting" []
        "Final snapshots that wait for memory to be read.";
    RESIDENT_MEMORY = Gauge Operator "process_resident_memory_bytes" []
        "Resident memory of the operator.";
    PROCESS_START = Gauge Operator "process_start_time_seconds" []
        "When the operator started, in seconds since the Unix epoch.";
}
