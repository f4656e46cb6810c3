//! Conclusions of a search about a target.

use redisbench_testkit::servers::RedisServer;

use crate::group::Group;
use crate::situation::{Given, Manifest, go_first, run_search};
use crate::support::number;

/// The capacity that [`SCRIPT`] allows, in requests per second.
const CAPACITY: u64 = 250;

/// Occupies the server's main thread until the request's due time: 4 ms after the previous one. So the capacity is the same on every
/// machine. A delayed server may catch up 40 ms.
const SCRIPT: &str = "local function now() local t = redis.call('TIME'); return t[1] * 1000000 + t[2] end \
    local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now() - 40000) + 4000 \
    while now() < due do end \
    redis.call('SET', KEYS[1], string.format('%.0f', due)) \
    return 1";

/// The lowest rate holds and the highest does not, and they differ by less than half of the tolerance. So the answer is confirmed, and the
/// failed rate is tried again.
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

pub fn a_search_that_ends_at_a_full_server() -> Given {
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    let given = run_search(&server, &manifest(&server));
    let found = &given.finished.object["status"]["search"];
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let rates = number(&found["lastGoodPerSecond"])..number(&found["firstBadPerSecond"]);
    let right = given.finished.code == Some(0)
        && text("message").contains("limited by Target")
        && text("why").contains("p90 was")
        && rates.contains(&CAPACITY);
    let said = found.to_string();
    given.must(right, || said)
}
