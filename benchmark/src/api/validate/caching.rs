//! Validation of `spec.workload.caching`.

use redisbench_wire::plan::{self, Caching, Part};

use crate::api::caching::CachingSpec;
use crate::api::duration::{Durations, HOUR, MILLISECOND, nanoseconds};
use crate::api::problem::Problem;
use crate::api::reads;
use crate::api::spec::RedisBenchmarkSpec;

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

/// Returns whether a command's reply depends on the value of one key alone, so that it can be cached.
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
    use crate::api::command::parse;

    #[test]
    fn reads_of_one_key_alone_are_cached() {
        let is = |command: &str| {
            let arguments = parse(command, None).unwrap();
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
