//! Outages of slots as agreed between several shards, compared with the servers' logs.

use redisbench_testkit::log::{assert_begins, assert_ends, now};
use redisbench_testkit::servers::{RedisCluster, wait_until};
use serde_json::Value;

use crate::support::{Run, benchmark, list, number};

const SPEC: &str = "
  workload:
    operations: [{name: get, command: GET __key__}]
    keys: {count: 1000}
  preload: {mode: Always}
  load:
    type: OpenLoop
    openLoop: {rate: 1500, unsentAfter: 10s}
    connections: 18
    duration: 8s
    warmup: 0s
    timeouts: {request: 2s}
  shards: {count: 3}
";

/// An outage, in milliseconds since the Unix epoch.
#[derive(Debug)]
struct Window {
    node: String,
    ranges: Vec<String>,
    from: u64,
    until: u64,
}

fn windows(status: &Value) -> Vec<Window> {
    let window = |told: &Value| {
        let start: jiff::Timestamp = told["startAt"].as_str().unwrap().parse().unwrap();
        let from = u64::try_from(start.as_millisecond()).unwrap();
        let ranges = list(&told["ranges"]).iter().map(|range| range.as_str().unwrap().to_owned());
        Window {
            node: told["node"].as_str().unwrap().to_owned(),
            ranges: ranges.collect(),
            from,
            until: from + number(&told["lengthMilliseconds"]),
        }
    };
    list(&status["topology"]["unavailability"]).iter().map(window).collect()
}

#[test]
fn three_shards_say_together_what_the_servers_log() {
    let mut cluster = RedisCluster::start(3);
    cluster.add_replica(0);
    let target = format!("type: Cluster, endpoints: ['{}']", cluster.nodes[1].endpoint());
    let run = Run::local(&benchmark(&target, SPEC), &[]);
    wait_until("the load runs", || cluster.nodes[0].calls("get") > 200);
    let killed = now();
    cluster.nodes[0].kill();
    wait_until("the replica is under load", || cluster.nodes[3].calls("get") > 0);
    let finished = run.finish();
    finished.assert_balanced();
    let status = &finished.object["status"];
    assert_eq!(number(&status["result"]["requests"]["scheduled"]), 8 * 1500, "{}", finished.stderr);

    let windows = windows(status);
    let dead = cluster.nodes[0].endpoint();
    let lasting = |node: &str, at: u64| {
        let found = windows.iter().find(|window| window.node == node && window.until > at);
        found.unwrap_or_else(|| panic!("no window of {node} lasts beyond {at}: {windows:#?}"))
    };
    let own = lasting(&dead, killed);
    let slots = cluster.slots(0);
    assert_eq!(own.ranges, [format!("{}-{}", slots.start, slots.end - 1)]);
    assert_begins("the kill", own.from, killed);
    assert_ends("the failover", own.until, cluster.nodes[3].log().times_of("Failover election won")[0]);
    // A cluster without an owner of some slots serves no slots at all.
    for server in &cluster.nodes[1..3] {
        let down = server.log().times_of("Cluster state changed: fail").into_iter().find(|time| *time > killed);
        let Some(down) = down else { continue };
        let up = server.log().times_of("Cluster state changed: ok").into_iter().find(|time| *time > down).unwrap();
        let theirs = lasting(&server.endpoint(), down);
        assert_begins("the cluster is down", theirs.from, down);
        assert_ends("the cluster is up", theirs.until, up);
    }
}
