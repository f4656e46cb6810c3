//! The options of the tools: one table each, as read from their sources.

#[derive(Debug)]
pub struct Row {
    /// The spellings.
    pub names: &'static [&'static str],
    /// An example of its value; none if it takes no value.
    pub value: Option<&'static str>,
    pub meaning: Meaning,
}

/// The translation of an option.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// A whole number at this path below the spec.
    Number(&'static str),
    /// A duration in seconds at this path.
    Seconds(&'static str),
    /// This text at this path.
    Is(&'static str, &'static str),
    /// A part of something that several options make.
    Part(Part),
    /// Nothing: there is no counterpart. The text is the nearest alternative.
    Without(&'static str),
}

/// Parts of what several options make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Host,
    Port,
    Socket,
    Uri,
    User,
    Password,
    Tls,
    Insecure,
    Authorities,
    Certificate,
    Key,
    Sni,
    Cluster,
    Protocol,
    TlsVersions,
    Clients,
    Threads,
    Requests,
    Rate,
    Duration,
    Endless,
    Pipeline,
    KeepAlive,
    Reconnect,
    ValueBytes,
    ValueRange,
    ValueList,
    RandomData,
    Keys,
    KeyPrefix,
    KeyMinimum,
    KeyMaximum,
    KeyPattern,
    KeyDeviation,
    KeyMedian,
    ZipfExponent,
    Ratio,
    MultiGet,
    Expiry,
    Command,
    CommandRatio,
    CommandPattern,
    Tests,
    ReadFrom,
    Replicas,
    WaitTimeout,
    Waits,
    Percentiles,
    ClientsStart,
    ClientsStep,
    StepDuration,
    Verify,
}

use Meaning::{Is, Number, Seconds, Without};

const fn row(names: &'static [&'static str], value: &'static str, meaning: Meaning) -> Row {
    Row { names, value: Some(value), meaning }
}

const fn flag(names: &'static [&'static str], meaning: Meaning) -> Row {
    Row { names, value: None, meaning }
}

const fn part(names: &'static [&'static str], value: &'static str, part: Part) -> Row {
    row(names, value, Meaning::Part(part))
}

const fn switch(names: &'static [&'static str], part: Part) -> Row {
    flag(names, Meaning::Part(part))
}

const RESULT: &str = "the result is a table, or all numbers with -o json";
const CIPHERS: &str = "those of rustls; spec.targets.tls.minimumVersion sets the version";
const EXPLAIN: &str = "see kubectl explain redisbenchmark.spec";

/// redis-benchmark 8.
pub const REDIS: &[Row] = &[
    part(&["-h"], "redis", Part::Host),
    part(&["-p"], "7000", Part::Port),
    part(&["-s"], "/run/redis.sock", Part::Socket),
    part(&["-a"], "hunter2", Part::Password),
    part(&["--user"], "bob", Part::User),
    part(&["-u"], "redis://redis:7000/3", Part::Uri),
    row(&["-c"], "7", Number("load/connections")),
    part(&["-n"], "5000", Part::Requests),
    part(&["-d"], "9", Part::ValueBytes),
    row(&["--dbnum"], "3", Number("targets/0/database")),
    flag(&["-3"], Is("targets/0/protocol", "RESP3")),
    part(&["--threads"], "3", Part::Threads),
    switch(&["--cluster"], Part::Cluster),
    flag(&["--enable-tracking"], Without("there is no client-side cache to invalidate")),
    part(&["-k"], "0", Part::KeepAlive),
    part(&["-r"], "1000", Part::Keys),
    part(&["-P"], "16", Part::Pipeline),
    flag(&["-e"], Without("errors are always counted, by kind; the verdict reports them")),
    flag(&["-q"], Without(RESULT)),
    row(&["--precision"], "3", Without(RESULT)),
    flag(&["--csv"], Without("use export --format csv")),
    switch(&["-l"], Part::Endless),
    part(&["-t"], "set,lpop", Part::Tests),
    flag(
        &["-I"],
        Without(
            "idle connections measure nothing; spec.load.connections with a low spec.load.openLoop.rate comes near",
        ),
    ),
    flag(&["-x"], Without("write the argument into spec.workload.operations.command, or use __data__")),
    switch(&["--tls"], Part::Tls),
    part(&["--sni"], "name", Part::Sni),
    part(&["--cacert"], "ca.pem", Part::Authorities),
    row(
        &["--cacertdir"],
        "/certificates",
        Without("put the certificates into a Secret for spec.targets.tls.caSecretRef"),
    ),
    switch(&["--insecure"], Part::Insecure),
    part(&["--cert"], "client.pem", Part::Certificate),
    part(&["--key"], "client.key", Part::Key),
    row(&["--tls-ciphers"], "DEFAULT", Without(CIPHERS)),
    row(&["--tls-ciphersuites"], "TLS_AES_128_GCM_SHA256", Without(CIPHERS)),
    row(&["--seed"], "42", Number("workload/seed")),
    flag(&["--help"], Without(EXPLAIN)),
    flag(&["--version", "-v"], Without("see kubectl redisbench --version")),
];

/// Additional options of valkey-benchmark 9.1.
pub const VALKEY: &[Row] = &[
    part(&["--duration"], "30", Part::Duration),
    row(&["--warmup"], "4", Seconds("load/warmup")),
    part(&["--rfr"], "yes", Part::ReadFrom),
    flag(&["--sequential"], Is("workload/keys/pattern/type", "Sequential")),
    part(&["--rps"], "900", Part::Rate),
    row(&["--num-functions"], "4", Without("put the libraries into spec.workload.functions")),
    row(&["--num-keys-in-fcall"], "2", Without("write FCALL with its keys into spec.workload.operations.command")),
    row(&["--dataset"], "data.csv", Without(NO_FILE)),
    row(&["--maxdocs"], "10", Without(NO_FILE)),
    flag(&["--rdma"], Without(TCP)),
    flag(&["--mptcp"], Without(TCP)),
    flag(&["--fuzz"], Without(VALID)),
    row(&["--fuzz-mode"], "malformed-commands", Without(VALID)),
    row(&["--fuzz-loglevel"], "info", Without(VALID)),
];

const NO_FILE: &str =
    "write its keys and values as lines of ConfigMaps, for spec.workload.keys.file and values.content.file";
const TCP: &str = "TCP and UNIX sockets only";
const VALID: &str = "a load test sends valid commands; spec.verify.mode Replies checks the replies";
const LOGS: &str = "shards log as JSON; REDISBENCH_LOG=debug with local";
const SAVED: &str = "use export --format memtier-json";
const METRICS: &str = "the operator serves Prometheus metrics";
const HITS: &str = "hits and misses are always counted; the verdict reports many misses";
const RECONNECT: &str = "connections are kept; lost ones are always made again, with backoff";
const NO_RETRY: &str = "a retry would be another request; spec.thresholds can limit the errors";
const REPLAY: &str = "write the lines into a ConfigMap, and name it in spec.workload.trace instead of operations";
const NO_SCAN: &str = "requests do not depend on earlier replies; SCAN 0 can be an operation";
const SEEDED: &str = "spec.workload.seed sets it: request k depends on the seed and k only";
const JITTER: &str = "spec.load.connectRate limits new connections per second";
const LIVE: &str = "status.progress has the last 5 s; spec.thresholds.window judges the last seconds";
const READS: &str = "all replicas in the cluster's map take turns; see spec.targets.cluster.readFrom";

/// `memtier_benchmark` 2.4, and what it got after that for Prometheus and for reading from replicas.
pub const MEMTIER: &[Row] = &[
    part(&["-h", "--host", "-s", "--server"], "redis", Part::Host),
    part(&["-p", "--port"], "7000", Part::Port),
    part(&["-S", "--unix-socket"], "/run/redis.sock", Part::Socket),
    part(&["-u", "--uri"], "redis://redis:7000/3", Part::Uri),
    flag(&["-4", "--ipv4"], Without("write an address of that family into spec.targets.endpoints")),
    flag(&["-6", "--ipv6"], Without("write an address of that family into spec.targets.endpoints")),
    part(&["-P", "--protocol"], "resp3", Part::Protocol),
    part(&["-a", "--authenticate"], "bob:hunter2", Part::Password),
    switch(&["--tls"], Part::Tls),
    part(&["--cert"], "client.pem", Part::Certificate),
    part(&["--key"], "client.key", Part::Key),
    part(&["--cacert"], "ca.pem", Part::Authorities),
    switch(&["--tls-skip-verify"], Part::Insecure),
    part(&["--tls-protocols"], "TLSv1.3", Part::TlsVersions),
    part(&["--sni"], "name", Part::Sni),
    row(&["-x", "--run-count"], "3", Number("repeats/count")),
    flag(&["-D", "--debug"], Without(LOGS)),
    flag(&["-v", "--version"], Without("see kubectl redisbench --version")),
    flag(&["--help"], Without(EXPLAIN)),
    switch(&["--cluster-mode"], Part::Cluster),
    row(&["-o", "--out-file"], "out.txt", Without(SAVED)),
    row(&["--json-out-file"], "out.json", Without(SAVED)),
    row(&["--client-stats"], "stats", Without("spec.measurement.breakdown has results by operation and Redis node")),
    row(&["--hdr-file-prefix"], "hdr", Without("use export --format hgrm or hlog")),
    flag(&["--show-config"], Without("the manifest is the configuration")),
    flag(&["--hide-histogram"], Without("the table has percentiles only; status.result.histogram has the rest")),
    part(&["--print-percentiles"], "50,99.9", Part::Percentiles),
    flag(&["--print-all-runs"], Without("status.trials has all runs")),
    row(&["--command-stats-breakdown"], "line", Without("results are by operation; see spec.measurement.breakdown")),
    row(&["--command-miss-tracking"], "off", Without(HITS)),
    row(&["--miss-rate-threshold"], "0.5", Without(HITS)),
    row(&["--statsd-host"], "statsd", Without(METRICS)),
    row(&["--statsd-port"], "8125", Without(METRICS)),
    row(&["--statsd-prefix"], "memtier", Without(METRICS)),
    row(&["--statsd-run-label"], "label", Without(METRICS)),
    row(&["--graphite-port"], "80", Without(METRICS)),
    row(&["--prometheus-port"], "9091", Without(METRICS)),
    row(&["--prometheus-bind-addr"], "0.0.0.0", Without(METRICS)),
    row(&["--prometheus-run-label"], "run=a", Without(METRICS)),
    row(&["--prometheus-latency-buckets"], "0.001,0.01", Without(METRICS)),
    part(&["-n", "--requests"], "500", Part::Requests),
    part(&["--rate-limiting"], "10", Part::Rate),
    part(&["-c", "--clients"], "7", Part::Clients),
    part(&["-t", "--threads"], "3", Part::Threads),
    part(&["--test-time"], "30", Part::Duration),
    part(&["--clients-start"], "10", Part::ClientsStart),
    part(&["--clients-step"], "20", Part::ClientsStep),
    part(&["--step-duration"], "15", Part::StepDuration),
    part(&["--ratio"], "1:4", Part::Ratio),
    row(&["--pipeline"], "8", Number("load/pipeline")),
    part(&["--reconnect-interval"], "100", Part::Reconnect),
    flag(&["--reconnect-on-error"], Without(RECONNECT)),
    row(&["--max-reconnect-attempts"], "3", Without(RECONNECT)),
    row(&["--reconnect-backoff-factor"], "2", Without(RECONNECT)),
    row(&["--connection-timeout"], "3", Seconds("load/timeouts/connect")),
    row(
        &["--connection-stage-timeout"],
        "30",
        Without("spec.shards.prepareTimeout limits the time to connect and to preload"),
    ),
    row(&["--thread-conn-start-min-jitter-micros"], "5", Without(JITTER)),
    row(&["--thread-conn-start-max-jitter-micros"], "9", Without(JITTER)),
    part(&["--multi-key-get"], "3", Part::MultiGet),
    row(&["--select-db"], "3", Number("targets/0/database")),
    flag(&["--distinct-client-seed"], Without(SEEDED)),
    flag(&["--randomize"], Without(SEEDED)),
    part(&["--command"], "INCR __key__", Part::Command),
    part(&["--command-ratio"], "4", Part::CommandRatio),
    part(&["--command-key-pattern"], "S", Part::CommandPattern),
    row(&["--monitor-input"], "log", Without(REPLAY)),
    row(&["--monitor-pattern"], "S", Without("spec.workload.trace keeps the order of the lines")),
    flag(&["--scan-incremental-iteration"], Without(NO_SCAN)),
    row(&["--scan-incremental-max-iterations"], "9", Without(NO_SCAN)),
    part(&["-d", "--data-size"], "64", Part::ValueBytes),
    row(&["--data-offset"], "10", Without("use the command SETRANGE __key__ 10 __data__")),
    switch(&["-R", "--random-data"], Part::RandomData),
    part(&["--data-size-range"], "30-90", Part::ValueRange),
    part(&["--data-size-list"], "30:1,90:4", Part::ValueList),
    row(&["--data-size-pattern"], "S", Without("sizes follow from spec.workload.seed")),
    part(&["--expiry-range"], "10-20", Part::Expiry),
    row(&["--data-import"], "data.csv", Without(NO_FILE)),
    switch(&["--data-verify"], Part::Verify),
    flag(&["--verify-only"], Without("a run verifies only its own writes, with spec.verify.mode Values")),
    flag(&["--generate-keys"], Without(NO_FILE)),
    flag(&["--no-expiry"], Without(NO_FILE)),
    part(&["--key-prefix"], "mine:", Part::KeyPrefix),
    part(&["--key-minimum"], "5", Part::KeyMinimum),
    part(&["--key-maximum"], "5000", Part::KeyMaximum),
    part(&["--key-pattern"], "G:Z", Part::KeyPattern),
    part(&["--key-stddev"], "100", Part::KeyDeviation),
    part(&["--key-median"], "3000", Part::KeyMedian),
    part(&["--key-zipf-exp"], "1.5", Part::ZipfExponent),
    part(&["--wait-ratio"], "1:1", Part::Waits),
    part(&["--num-slaves"], "1-2", Part::Replicas),
    part(&["--wait-timeout"], "10-100", Part::WaitTimeout),
    flag(&["--realtime-latencies"], Without(LIVE)),
    row(&["--latency-window"], "60", Without(LIVE)),
    flag(&["--retry-on-error"], Without(NO_RETRY)),
    row(&["--max-retries"], "3", Without(NO_RETRY)),
    row(&["--retry-backoff-ms"], "3", Without(NO_RETRY)),
    row(&["--retry-backoff-factor"], "2", Without(NO_RETRY)),
    row(&["--retry-on"], "LOADING", Without(NO_RETRY)),
    row(&["--max-retry-queue"], "10", Without(NO_RETRY)),
    row(&["--failed-keys-file"], "failed", Without(NO_RETRY)),
    flag(&["--transaction"], Without("spec.workload.transaction.size makes transactions, of one operation each")),
    part(&["--read-preference"], "secondary", Part::ReadFrom),
    row(
        &["--read-preference-fallback"],
        "primary",
        Without("PreferReplica reads from a primary without a replica; Replica fails before the load"),
    ),
    row(&["--replica-clients"], "3", Without("reads use the same connections; see spec.load.connections")),
    row(&["--replicas-per-shard"], "1", Without(READS)),
    row(&["--read-server"], "other:6379", Without("spec.comparison compares standalone servers")),
    flag(&["--command-is-read"], Without("the server's own flag readonly decides")),
];
