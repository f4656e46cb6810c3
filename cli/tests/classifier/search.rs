//! What a search says of a target at its end.

use std::fs;

use crate::group::Group;
use crate::servers::RedisServer;
use crate::situation::{Manifest, as_others, go_first};
use crate::support::{Run, number};

/// How many requests a second [`SCRIPT`] lets through.
const CAPACITY: u64 = 250;

/// Takes the server's main thread until the request's time has come by the clock: 4 ms after the one before. So the capacity is
/// the same on every machine. A server that was kept from its processor makes up for 40 ms of that.
const SCRIPT: &str = "local function now() local t = redis.call('TIME'); return t[1] * 1000000 + t[2] end \
    local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now() - 40000) + 4000 \
    while now() < due do end \
    redis.call('SET', KEYS[1], string.format('%.0f', due)) \
    return 1";

/// A search takes more than a minute: it is not made again as often as other situations.
const ATTEMPTS: usize = 3;

/// A server that waited for less than this in the whole search had at least 96 % of the 10 s that a step measures.
const WAITED: u64 = 400_000_000;

/// The lowest rate holds, the highest does not, and they are less than half of the tolerance apart: the answer is confirmed, and the
/// failure tried again.
fn manifest(server: &RedisServer) -> Manifest {
    Manifest {
        operations: "[{name: paced, command: EVALSHA __script:paced__ 1 due}]".into(),
        workload: format!("scripts: [{{name: paced, source: \"{SCRIPT}\"}}]"),
        load: "type: OpenLoop, connections: 4, pipeline: 16, warmup: 2s".into(),
        spec:
            "search: {objective: {quantile: '0.9', max: 200ms}, rate: {min: 238, max: 260, toleranceBasisPoints: 2000}}"
                .into(),
        ..Manifest::new(&server.endpoint())
    }
}

#[test]
fn a_search_that_ends_at_a_full_server() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let waited = waited(&server);
        let finished = Run::local(&manifest(&server).text(), &[]).finish();
        let waited = self::waited(&server).zip(waited).map(|(after, before)| after - before);
        let status = &finished.object["status"];
        let found = &status["search"];
        let kept = waited.is_none_or(|waited| waited >= WAITED);
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let right = finished.code == Some(0)
            && text("ending") == "Found"
            && text("limitedBy") == "Target"
            // Where other work kept the main thread from its processor the probe tells, which knows no thread.
            && (text("component").ends_with("/MainThread") || (kept && text("component") != "Path"))
            && text("message").contains("limited by Target")
            && text("why").contains("p90 was")
            && (number(&found["lastGoodPerSecond"])..number(&found["firstBadPerSecond"])).contains(&CAPACITY);
        if right {
            return;
        }
        last = format!("attempt {attempt}, the server waited for {waited:?} ns: {status:#}\n{}", finished.stderr);
        assert!(kept, "{last}");
    }
    panic!("no attempt had the machine: {last}");
}

/// How long the server's main thread was ready and had no processor, in nanoseconds, if the kernel says.
fn waited(server: &RedisServer) -> Option<u64> {
    let of = fs::read_to_string(format!("/proc/{0}/task/{0}/schedstat", server.pid())).ok()?;
    of.split_whitespace().nth(1)?.parse().ok()
}
