//! The answers to INFO. Pure. Missing or unusual fields are unknown.

use std::collections::BTreeMap;

use redisbench_wire::limits;
use redisbench_wire::snapshot::ServerSample;

/// The most commands kept per server; modules add some hundreds.
const COMMANDS: usize = 4096;
/// Fields that show a running child process.
const CHILDREN: &[&str] = &["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "module_fork_in_progress"];

/// Products and the fields with their versions. Redis comes last, because others report a Redis that they are compatible with.
const PRODUCTS: &[(&str, &str)] =
    &[("Valkey", "valkey_version"), ("Dragonfly", "dragonfly_version"), ("Redis", "redis_version")];

/// One answer to INFO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Identifies the process; changes on a restart.
    pub run_id: Option<String>,
    /// Product and version, such as `Valkey 9.1.2`.
    pub version: Option<String>,
    /// True if the server is a replica.
    pub replica: bool,
    /// The server's clock, in microseconds.
    pub server_microseconds: Option<u64>,
    pub cpu: Option<Cpu>,
    /// Total time that the event loop was awake; reported since version 7.2.
    pub event_loop_microseconds: Option<u64>,
    /// Total number of forks; reported since version 6.2.
    pub forks: Option<u64>,
    /// The time for which the latest fork blocked the server.
    pub latest_fork_microseconds: u64,
    /// True while a child process writes: an RDB save, an AOF rewrite, or a module's fork.
    pub has_child: bool,
    /// Current rates in bytes per second.
    pub received_bytes_per_second: u64,
    pub sent_bytes_per_second: u64,
    /// The other fields, without the time.
    pub sample: ServerSample,
}

/// Processor time so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// True if only the main thread is counted.
    pub main_thread: bool,
    pub nanoseconds: u64,
}

/// A server's counts of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub executed: u64,
    pub failed: u64,
    /// `None` before version 6.2, which does not count them.
    pub rejected: Option<u64>,
    pub microseconds: u64,
}

impl Info {
    pub fn parse(text: &str) -> Self {
        let mut all = BTreeMap::new();
        let mut keys = 0_u64;
        for (name, value) in text.lines().filter_map(|line| line.trim_end().split_once(':')) {
            if is_database(name) {
                keys = keys.saturating_add(part(value, "keys").unwrap_or_default());
            } else {
                all.insert(name, value);
            }
        }
        let number = |name: &str| all.get(name).and_then(|value| value.parse::<u64>().ok());
        let is_one = |name: &str| all.get(name) == Some(&"1");
        let cpu = |main_thread: bool, end: &str| {
            let part = |kind: &str| nanoseconds(all.get(format!("used_cpu_{kind}{end}").as_str())?);
            Some(Cpu { main_thread, nanoseconds: part("user")?.checked_add(part("sys")?)? })
        };
        // From kibibytes with two decimals.
        let rate = |name: &str| {
            let value = all.get(name).and_then(|value| nanoseconds(value)).unwrap_or_default();
            value / 1_000_000 * 1024 / 1_000
        };
        Self {
            run_id: all.get("run_id").map(|id| (*id).to_owned()),
            version: PRODUCTS
                .iter()
                .find_map(|(product, field)| Some(format!("{product} {}", all.get(field)?)))
                .filter(|version| version.len() <= limits::NAME_BYTES),
            replica: all.get("role") == Some(&"slave"),
            server_microseconds: number("server_time_usec"),
            cpu: cpu(true, "_main_thread").or_else(|| cpu(false, "")),
            event_loop_microseconds: number("eventloop_duration_sum"),
            forks: number("total_forks"),
            latest_fork_microseconds: number("latest_fork_usec").unwrap_or_default(),
            has_child: CHILDREN.iter().any(|name| is_one(name)),
            received_bytes_per_second: rate("instantaneous_input_kbps"),
            sent_bytes_per_second: rate("instantaneous_output_kbps"),
            sample: ServerSample {
                taken_nanoseconds: 0,
                keys,
                used_memory_bytes: number("used_memory").unwrap_or_default(),
                connected_clients: number("connected_clients").unwrap_or_default(),
                evicted_keys: number("evicted_keys").unwrap_or_default(),
                expired_keys: number("expired_keys").unwrap_or_default(),
                keyspace_hits: number("keyspace_hits").unwrap_or_default(),
                keyspace_misses: number("keyspace_misses").unwrap_or_default(),
                cpu_nanoseconds: cpu(false, "").map(|process| process.nanoseconds),
                commands: number("total_commands_processed"),
                reads: number("total_reads_processed"),
                loading: is_one("loading") || is_one("async_loading"),
                io_threads_active: all.get("io_threads_active").map(|value| *value == "1"),
            },
        }
    }
}

/// Reads the answer to `INFO commandstats`: counts by the command's name in lower case, with a subcommand after `|`.
pub fn commands(text: &str) -> BTreeMap<String, Calls> {
    let line = |line: &str| {
        let (name, counts) = line.trim_end().strip_prefix("cmdstat_")?.split_once(':')?;
        let calls = Calls {
            executed: part(counts, "calls")?,
            failed: part(counts, "failed_calls").unwrap_or_default(),
            rejected: part(counts, "rejected_calls"),
            microseconds: part(counts, "usec").unwrap_or_default(),
        };
        Some((name.to_ascii_lowercase(), calls))
    };
    text.lines().filter_map(line).take(COMMANDS).collect()
}

/// `db0`, `db1` and so on.
fn is_database(name: &str) -> bool {
    name.strip_prefix("db").is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The number of `name` in a list such as `calls=1,usec=2`.
fn part(list: &str, name: &str) -> Option<u64> {
    list.split(',').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name)?.1.parse().ok())
}

/// Seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    let decimals: String = decimals.chars().chain("000000000".chars()).take(9).collect();
    whole.checked_mul(1_000_000_000)?.checked_add(decimals.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Server\r\nserver_time_usec:1795328000123456\r\nrun_id:abc\r\nio_threads_active:0\r\n\
        connected_clients:7\r\nused_memory:1048576\r\nloading:0\r\nasync_loading:0\r\nexpired_keys:3\r\nevicted_keys:2\r\n\
        keyspace_hits:11\r\nkeyspace_misses:5\r\ninstantaneous_input_kbps:2.50\r\ninstantaneous_output_kbps:1000.00\r\n\
        role:master\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.5\r\nused_cpu_sys_main_thread:1.250000\r\n\
        used_cpu_user_main_thread:2.000001\r\ntotal_forks:4\r\nlatest_fork_usec:812\r\nrdb_bgsave_in_progress:0\r\n\
        aof_rewrite_in_progress:1\r\neventloop_duration_sum:34231547\r\ntotal_commands_processed:90\r\n\
        total_reads_processed:60\r\ndb0:keys=5,expires=0,avg_ttl=0\r\ndb3:keys=7,expires=1,avg_ttl=0\r\n";

    #[test]
    fn an_answer_is_understood() {
        let info = Info::parse(TEXT);
        assert_eq!(info.cpu, Some(Cpu { main_thread: true, nanoseconds: 3_250_001_000 }));
        assert_eq!((info.run_id.as_deref(), info.replica), (Some("abc"), false));
        assert_eq!((info.received_bytes_per_second, info.sent_bytes_per_second), (2560, 1_024_000));
        assert_eq!((info.forks, info.latest_fork_microseconds, info.has_child), (Some(4), 812, true));
        assert_eq!(info.event_loop_microseconds, Some(34_231_547));
        let sample = info.sample;
        assert_eq!((sample.keys, sample.used_memory_bytes, sample.connected_clients), (12, 1 << 20, 7));
        assert_eq!((sample.evicted_keys, sample.expired_keys), (2, 3));
        assert_eq!((sample.keyspace_hits, sample.keyspace_misses), (11, 5));
        assert_eq!((sample.loading, sample.io_threads_active), (false, Some(false)));
        let ServerSample { cpu_nanoseconds, commands, reads, .. } = sample;
        assert_eq!((cpu_nanoseconds, commands, reads), (Some(4_000_000_000), Some(90), Some(60)));
    }

    #[test]
    fn a_server_that_does_not_tell_the_main_thread_has_its_process() {
        let info = Info::parse("role:slave\r\nused_cpu_sys:1\r\nused_cpu_user:2.25\r\nloading:1\r\n");
        assert_eq!(info.cpu, Some(Cpu { main_thread: false, nanoseconds: 3_250_000_000 }));
        assert!(info.replica && info.sample.loading);
        assert_eq!((info.forks, info.has_child, info.event_loop_microseconds), (None, false, None));
        assert_eq!(Info::parse("used_cpu_sys:1\r\n").cpu, None);
        assert_eq!(Info::parse("a\nb:\n:c\nused_memory:-1\ndb:keys=3\ndbx:keys=4\n"), Info::default());
    }

    #[test]
    fn a_server_is_named_by_its_own_version() {
        let version = |text: &str| Info::parse(text).version;
        assert_eq!(version("redis_version:8.2.1\r\n").as_deref(), Some("Redis 8.2.1"));
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(version(valkey).as_deref(), Some("Valkey 9.1.2"));
        assert_eq!(version("role:master\r\n"), None);
        assert_eq!(version(&format!("redis_version:{}\r\n", "9".repeat(5_000))), None);
    }

    #[test]
    fn counts_of_commands_are_understood() {
        let text = "# Commandstats\r\ncmdstat_get:calls=5,usec=9,usec_per_call=1.80,rejected_calls=1,failed_calls=2\r\n\
                    cmdstat_config|get:calls=3,usec=1,usec_per_call=0.10\r\ncmdstat_bad:usec=1\r\nother:calls=1\r\n";
        let found = commands(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found["get"], Calls { executed: 5, failed: 2, rejected: Some(1), microseconds: 9 });
        assert_eq!(found["config|get"], Calls { executed: 3, failed: 0, rejected: None, microseconds: 1 });
    }
}
