//! `spec.workload.caching`: client-side caches that the servers keep up to date. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::{self, CacheScope, Caching, CachingMode, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::problem::Problem;
use super::reads;
use super::spec::RedisBenchmarkSpec;
use super::validate::{Durations, HOUR, MILLISECOND, nanoseconds};

/// Client-side caching: `CLIENT TRACKING` on every connection, and caches that the servers' invalidation messages keep up to date. Cached
/// are the replies to commands that read a single key, such as `GET __key__` and `HGET __key__ field`. A read whose key is cached is not
/// sent: it is a hit in `status.result.cache`, and counts for no latency and no throughput, but for `load.requests` and the rate. Requires
/// `protocol: RESP3` of every target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CachingSpec {
    /// Keys that the servers track. `Default`: every key that a connection has read. `OptIn`: the same by `CLIENT CACHING YES` before each
    /// read that may be cached, an additional command. `Broadcast`: all keys that begin with one of `prefixes`, read or not, without memory
    /// for them on the server.
    #[serde(rename = "type")]
    pub kind: CachingMode,
    /// Sharing of caches. `Connection`: each connection has one, like a pool of clients. `Shard`: all connections of a shard share one, as
    /// those of one process do; the shard then has one worker. Default `Connection`.
    #[serde(default)]
    pub scope: CacheScope,
    /// Maximum entries of a cache, 1 to 100000000; a full cache drops an entry that was not used for long. All caches of a shard together
    /// may have 16777216, which take 1 GiB of its memory; a cache needs no more entries than there are keys. Default 100000.
    #[serde(default = "default_entries")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub entries: u32,
    /// Age at which an entry is dropped even without an invalidation, 1ms to 24h. A long one shows invalidations alone. Default 60s.
    #[serde(default = "default_ttl")]
    pub ttl: GoDuration,
    /// Prefixes of the keys to track, up to 16, none of which begins with another. Only for type `Broadcast`. Not set by default: all keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "set"))]
    pub prefixes: Vec<String>,
    /// Whether servers do not report a connection's own writes to it (`NOLOOP`). The connection then drops its entry when its write is
    /// acknowledged. Default true.
    #[serde(default = "default_no_loop")]
    pub no_loop: bool,
}

fn default_entries() -> u32 {
    100_000
}

fn default_ttl() -> GoDuration {
    GoDuration::new("60s")
}

fn default_no_loop() -> bool {
    true
}

/// Checks `spec.workload.caching` for `operations`. None without it.
pub(super) fn check(
    spec: &RedisBenchmarkSpec,
    operations: &[plan::Operation],
    problems: &mut Vec<Problem>,
) -> Option<Caching> {
    let CachingSpec { kind, scope, entries, ttl, prefixes, no_loop } = spec.workload.caching.as_ref()?;
    let mut durations = Durations { problems: &mut *problems, within: "spec.workload.caching" };
    let ttl = durations.between("ttl", ttl, MILLISECOND, 24 * HOUR);
    let indices = |is: fn(&plan::Operation) -> bool| {
        let numbered = (0..).zip(operations);
        numbered.filter(move |(_, operation)| is(operation)).map(|(index, _)| index).collect::<Vec<u32>>()
    };
    let caching = Caching {
        mode: *kind,
        scope: *scope,
        entries: *entries,
        ttl_nanoseconds: nanoseconds(ttl),
        prefixes: prefixes.clone(),
        no_loop: *no_loop,
        operations: indices(is_cacheable),
        writes: indices(|operation| !reads::only_reads(&operation.arguments)),
    };
    if caching.operations.is_empty() && !operations.is_empty() {
        let message = "has no effect: no operation reads a single key by a command without other placeholders; remove it, or \
                       add one, such as GET __key__";
        problems.push(Problem::new("spec.workload.caching", "", message));
    }
    for (at, prefix) in prefixes.iter().enumerate() {
        if let Some(other) =
            prefixes.iter().enumerate().find(|(place, other)| *place != at && prefix.starts_with(*other))
        {
            let message = format!("begins with another, {:?}, which servers refuse: remove one of the two", other.1);
            problems.push(Problem::new(
                format!("spec.workload.caching.prefixes[{at}]"),
                format!("{prefix:?}"),
                message,
            ));
        }
    }
    let connections = u64::from(spec.load.connections).div_ceil(u64::from(spec.shards.count.max(1)));
    let keys = operations.iter().filter_map(|operation| operation.keys.as_ref().map(|keys| keys.count));
    let keys = keys.chain([spec.workload.keys.count]).max().unwrap_or_default();
    let (all, most) = (caching.entries_in_all(connections, keys), Caching::BYTES_PER_SHARD / Caching::BYTES_PER_ENTRY);
    if all > most {
        let message = format!(
            "makes {all} entries in the caches of a shard with its {connections} connections, more than {most}, which take 1 \
             GiB: lower it, raise shards.count, or set scope to Shard"
        );
        problems.push(Problem::new("spec.workload.caching.entries", entries, message));
    }
    Some(caching)
}

/// Whether a command's reply depends on the value of one key alone, so that it can be cached.
fn is_cacheable(operation: &plan::Operation) -> bool {
    /// Commands whose replies are random, or change with time.
    const CHANGING: [&str; 9] =
        ["PTTL", "TTL", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "TOUCH", "DUMP", "XREAD", "XPENDING"];
    let arguments = &operation.arguments;
    let Some([Part::Literal(name)]) = arguments.first().map(Vec::as_slice) else { return false };
    let keys = arguments.iter().filter(|argument| argument.contains(&Part::Key)).count();
    let plain = arguments.iter().flatten().all(|part| matches!(part, Part::Literal(_) | Part::Key));
    let whole = arguments.iter().filter(|argument| argument.contains(&Part::Key)).all(|argument| argument.len() == 1);
    plan::only_reads(name)
        && !CHANGING.iter().any(|changing| changing.eq_ignore_ascii_case(name))
        && keys == 1
        && plain
        && whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_one_key_alone_are_cached() {
        let is = |command: &str| {
            let arguments = super::super::command::parse(command, None).unwrap();
            is_cacheable(&plan::Operation { name: "one".into(), weight: 1, arguments, keys: None })
        };
        for command in ["GET __key__", "hget __key__ f1", "LRANGE __key__ 0 9", "HGETALL __key__"] {
            assert!(is(command), "{command}");
        }
        for command in [
            "SET __key__ __data__",
            "MGET __key__ __key:2__",
            "GETRANGE __key__ 0 __integer:1:9__",
            "TTL __key__",
            "GET a__key__",
            "PING",
            "GETDEL __key__",
        ] {
            assert!(!is(command), "{command}");
        }
    }
}
