//! Data that a real target loses, moves or evicts, compared with the target's own records.

use std::collections::BTreeSet;

use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{KeyPattern, TrialPlan, Values, Verify};
use redisbench_wire::snapshot::{FindingKind, Snapshot, Verification, VerificationCounts};

use crate::changes::{id, manage};
use crate::client::{Shard, eventually};
use crate::load::{assert_balanced, assert_sent};
use crate::plans::{SECOND, clustered, open_loop, operation, plan, steady};

fn verification(snapshot: &Snapshot) -> &Verification {
    snapshot.verification.as_ref().unwrap()
}

/// Writes each key of a cluster once after the preload, in order.
fn each_key_once(cluster: &RedisCluster) -> TrialPlan {
    let mut plan = steady(clustered(&cluster.nodes[1].endpoint()), 2_000, 10);
    plan.verify = Verify::Values;
    plan.workload_mut().operations = vec![operation("write", 1, "SET __key__ __data__")];
    plan.workload_mut().keys.count = 24_000;
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    plan.warmup_nanoseconds = 0;
    plan.timeouts.request_nanoseconds = 2 * SECOND;
    plan
}

/// Preloads, runs `before`, and then the load with `change` in the middle of it.
async fn under_load(
    cluster: &mut RedisCluster,
    plan: &TrialPlan,
    before: impl FnOnce(&mut RedisCluster),
    change: impl FnOnce(&mut RedisCluster),
) -> Snapshot {
    let shard = Shard::armed(plan).await;
    tokio::task::block_in_place(|| before(cluster));
    cluster.reset_statistics();
    shard.begin(1).await;
    eventually("the load runs", async || (cluster.nodes[0].calls("set") > 200).then_some(())).await;
    tokio::task::block_in_place(|| change(cluster));
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    snapshot
}

fn replication_offset(node: &RedisServer, field: &str) -> u64 {
    let info: String = node.ask(&["INFO", "replication"]);
    let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map_or(0, |offset| offset.trim().parse().unwrap())
}

/// The keys in a server's append-only file, once for each write.
fn logged_keys(node: &RedisServer, prefix: &str) -> Vec<String> {
    let log = node.directory().join("appendonlydir").join("appendonly.aof.1.incr.aof");
    let log = std::fs::read(log).unwrap();
    let needle = format!("\r\n{prefix}").into_bytes();
    let length = prefix.len() + 5;
    let at = log.windows(needle.len()).enumerate().filter(|(_, window)| *window == needle).map(|(at, _)| at + 2);
    at.map(|at| String::from_utf8_lossy(&log[at..at + length]).into_owned()).collect()
}

/// The number of a write to its key, from the value's stamp.
fn sequence(value: &[u8]) -> u32 {
    u32::from_le_bytes(value[16..20].try_into().unwrap())
}

/// The replica misses the last writes, and takes over when its primary is killed. Lost are the writes in the dead primary's log that the
/// replica lacks.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_dies_before_its_replica_heard_loses_what_its_own_log_has() {
    let mut cluster = RedisCluster::start(3);
    cluster.add_replica(0);
    let plan = each_key_once(&cluster);
    let snapshot = under_load(
        &mut cluster,
        &plan,
        |cluster| {
            let [primary, replica] = [&cluster.nodes[0], &cluster.nodes[3]];
            wait_until("the replica has the preload", || {
                let heard = replication_offset(replica, "slave_repl_offset");
                heard >= replication_offset(primary, "master_repl_offset")
            });
            // From here on the primary logs every write before it acknowledges it.
            primary.ask::<()>(&["CONFIG", "SET", "appendonly", "yes"]);
            wait_until("the log has begun", || {
                let info: String = primary.ask(&["INFO", "persistence"]);
                info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
            });
        },
        |cluster| {
            // Writes already sent to the replica still arrive; later ones are not sent.
            cluster.nodes[3].pause();
            cluster.nodes[0].ask::<()>(&["CLIENT", "KILL", "TYPE", "replica"]);
            let before = cluster.nodes[0].calls("set");
            wait_until("the primary has acknowledged more", || cluster.nodes[0].calls("set") > before + 300);
            cluster.nodes[0].kill();
            cluster.nodes[3].resume();
        },
    )
    .await;
    let Verification { counts: found, findings } = verification(&snapshot);
    let logged = logged_keys(&cluster.nodes[0], "rb:");
    let written: BTreeSet<_> = logged.iter().cloned().collect();
    assert_eq!(written.len(), logged.len(), "nothing is sent again");
    let heir = &cluster.nodes[3];
    let mut connection = heir.connection();
    let mut survives = |key: &String| {
        let value: Vec<u8> = redis::cmd("GET").arg(key).query(&mut connection).unwrap();
        sequence(&value) == 2
    };
    let lost: Vec<_> = written.iter().filter(|key| !survives(key)).collect();
    // Writes in flight may or may not have been acknowledged.
    let (lost, unanswered) = (lost.len() as u64, snapshot.total.unanswered);
    println!(
        "the dead primary logged {} writes, its heir lacks {lost}; found {} lost, {} ambiguous",
        written.len(),
        found.lost_writes,
        found.ambiguous_writes
    );
    assert!(lost >= 300, "{lost} of {}", written.len());
    assert!((lost.saturating_sub(unanswered)..=lost).contains(&found.lost_writes), "{found:?}, {lost}, {unanswered}");
    assert_eq!((found.lost_keys, found.corrupt, found.mismatched, found.unread_keys), (0, 0, 0, 0), "{found:?}");
    assert_eq!((found.read_keys, found.ambiguous_writes), (24_000, unanswered));
    let outages = &snapshot.topology.outages;
    assert!(!outages.is_empty() && outages.iter().all(|outage| !outage.lasting), "{outages:?}");
    for finding in findings {
        let told = (finding.kind, finding.expected.as_str(), finding.seen.as_str(), finding.node.as_str());
        assert_eq!(told, (FindingKind::LostWrite, "2", "1", heir.endpoint().as_str()));
        assert!(written.contains(&finding.key));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_lose_nothing() {
    let mut cluster = RedisCluster::steady(3);
    let mut plan = each_key_once(&cluster);
    plan.workload_mut().operations.push(operation("read", 1, "GET __key__"));
    plan.workload_mut().keys.count = 2_000;
    plan.workload_mut().keys.pattern = KeyPattern::Uniform;
    let snapshot = under_load(
        &mut cluster,
        &plan,
        |_| {},
        |cluster| {
            let (from, to) = (id(cluster, 0), id(cluster, 1));
            let words = ["--cluster-from", &from, "--cluster-to", &to, "--cluster-slots", "1000", "--cluster-yes"];
            manage(&[["reshard", &cluster.nodes[0].endpoint()].as_slice(), &words].concat());
        },
    )
    .await;
    assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
    assert_sent(&snapshot.total);
    assert!(snapshot.total.redirected > 0);
    let checked = snapshot.total.succeeded + 2_000;
    let counts = VerificationCounts { checked, read_keys: 2_000, ..VerificationCounts::default() };
    assert_eq!(*verification(&snapshot), Verification { counts, findings: Vec::new() });
}

#[tokio::test]
async fn what_a_server_evicts_is_not_lost() {
    let redis = RedisServer::start(&["--maxmemory", "6mb", "--maxmemory-policy", "allkeys-random"]);
    let mut plan = plan(&redis.endpoint());
    plan.verify = Verify::Values;
    plan.workload_mut().keys.count = 10_000;
    plan.workload_mut().values = Values::fixed(1_000);
    let snapshot = Shard::start(None).await.run_plan(&plan).await;
    let Verification { counts: found, findings } = verification(&snapshot);
    assert!(found.indeterminate > 0);
    assert_eq!((found.lost_keys, found.lost_writes, found.corrupt, found.mismatched), (0, 0, 0, 0), "{found:?}");
    assert_eq!(*findings, []);
}

#[tokio::test]
async fn what_expires_is_not_lost() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.verify = Verify::Values;
    plan.workload_mut().operations[1] = operation("write", 1, "SET __key__ __data__ PX 20");
    plan.load = open_loop(5_000);
    let snapshot = Shard::start(None).await.run_plan(&plan).await;
    let found = verification(&snapshot).counts;
    assert!(found.indeterminate > 0);
    assert_eq!((found.lost_keys, found.lost_writes, found.corrupt, found.mismatched), (0, 0, 0, 0), "{found:?}");
}
