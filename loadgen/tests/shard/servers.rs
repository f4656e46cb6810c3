//! The servers' own statistics, and the probe after a closed loop: whole trials of a shard against real servers.

use redisbench_testkit::log::is_timed;
use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::{Bound, Preload, Transaction, TrialPlan};
use redisbench_wire::snapshot::{ServerCommands, ServerSample, Snapshot};
use redisbench_wire::{AbortThen, Detail, Probe, ShardPhase};

use crate::changes::hand_over;
use crate::client::{Shard, eventually};
use crate::load::assert_sent;
use crate::open_loop::open_loop;
use crate::plans::{SECOND, authenticated, clustered, operation, plan};

fn asking(mut plan: TrialPlan) -> TrialPlan {
    plan.measurement.server_stats = true;
    plan
}

async fn run(plan: &TrialPlan) -> (Shard, Snapshot) {
    let shard = Shard::start(None).await;
    shard.plan(1, plan).await.unwrap();
    let snapshot = measured(&shard).await;
    (shard, snapshot)
}

/// Runs an attempt from Armed to the full snapshot. Like a conductor, leaves time to query the servers before the start.
async fn measured(shard: &Shard) -> Snapshot {
    shard.phase(ShardPhase::Armed).await;
    let begin = shard.clock().await + 2 * SECOND;
    shard.start_at(1, 1, begin).await.unwrap();
    shard.finished().await
}

/// Sums the commands of the mix that all servers executed.
fn executed(snapshot: &Snapshot) -> ServerCommands {
    let mut sum = ServerCommands { rejected: Some(0), ..ServerCommands::default() };
    for node in &snapshot.servers.as_ref().unwrap().nodes {
        let commands = node.commands.unwrap_or_else(|| panic!("{node:?}"));
        sum.calls += commands.calls;
        sum.failed += commands.failed;
        sum.foreign += commands.foreign;
        *sum.rejected.as_mut().unwrap() += commands.rejected.unwrap();
    }
    sum
}

#[tokio::test]
async fn a_server_counts_what_was_sent_and_what_was_there_before_is_not_it() {
    let server = RedisServer::start(&[]);
    server.ask::<()>(&["SET", "before", "x"]);
    let (_, snapshot) = run(&asking(plan(&server.endpoint()))).await;
    let servers = snapshot.servers.as_ref().unwrap();
    assert!(servers.not_compared.is_empty() && servers.nodes.len() == 1, "{servers:?}");
    let commands = executed(&snapshot);
    assert_eq!(commands.calls, snapshot.total.succeeded + snapshot.warmup.succeeded);
    assert_eq!((commands.failed, commands.rejected, commands.foreign), (0, Some(0), 0));
    let node = &servers.nodes[0];
    let (before, after) = (node.before.unwrap(), node.after.unwrap());
    assert_eq!((before.keys, after.keys), (1001, 1001), "the preload was over before the first look");
    assert!(before.used_memory_bytes > 0 && after.connected_clients >= 4, "{node:?}");
    assert!(after.keyspace_hits > before.keyspace_hits && node.note.is_none(), "{node:?}");
    let risen =
        |of: fn(&ServerSample) -> Option<u64>| of(&after).zip(of(&before)).and_then(|(to, from)| to.checked_sub(from));
    assert!(risen(|sample| sample.cpu_nanoseconds).is_some(), "{node:?}");
    // Its own INFO is among them.
    let (processed, reads) = (risen(|sample| sample.commands).unwrap(), risen(|sample| sample.reads).unwrap());
    assert!(processed > commands.calls && reads > 0, "{node:?}");
}

#[tokio::test]
async fn processor_time_is_that_of_the_measurement() {
    let server = RedisServer::start(&[]);
    let mut plan = asking(plan(&server.endpoint()));
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let (_, snapshot) = run(&plan).await;
    let cpu = snapshot.servers.as_ref().unwrap().nodes[0].cpu.unwrap();
    assert!(cpu.main_thread, "{cpu:?}");
    let about = 28 * SECOND / 10..=35 * SECOND / 10;
    assert!(cpu.nanoseconds > 0 && (!is_timed() || about.contains(&cpu.nanoseconds)), "{cpu:?}");
    // Reported since version 7.2.
    let tells = server.ask::<String>(&["INFO", "everything"]).contains("eventloop_duration_sum:");
    assert_eq!(cpu.event_loop_basis_points.is_some(), tells, "{cpu:?}");
    // A closed loop with 16 requests in flight keeps a server busy on any machine.
    assert!((500..=10_500).contains(&cpu.mean_basis_points), "{cpu:?}");
    assert!(cpu.max_basis_points >= cpu.mean_basis_points, "{cpu:?}");
}

#[tokio::test]
async fn transactions_count_by_themselves() {
    let server = RedisServer::start(&[]);
    let mut plan = asking(plan(&server.endpoint()));
    plan.workload_mut().operations = vec![operation("write", 1, "SET __key__ __data__")];
    plan.workload_mut().options.transaction = Some(Transaction { size: 5, shared_keys: false });
    let (_, snapshot) = run(&plan).await;
    let commands = executed(&snapshot);
    assert_eq!(commands.calls, 5 * (snapshot.total.succeeded + snapshot.warmup.succeeded));
    assert_eq!(commands.foreign, 0);
}

#[tokio::test]
async fn what_a_script_executes_is_not_taken_for_somebody_elses() {
    let server = RedisServer::start(&[]);
    let mut plan = asking(plan(&server.endpoint()));
    let script = "return redis.call('INCR','counted')".to_owned();
    let mut eval = operation("script", 1, "EVAL text 0");
    eval.arguments[1] = vec![redisbench_wire::plan::Part::Literal(script)];
    plan.workload_mut().operations = vec![eval];
    plan.preload = Preload::None;
    let (_, snapshot) = run(&plan).await;
    let commands = executed(&snapshot);
    assert_eq!(commands.calls, snapshot.total.succeeded + snapshot.warmup.succeeded);
    assert_eq!(commands.foreign, 0);
    assert_eq!(server.calls("incr"), commands.calls);
}

#[tokio::test]
async fn commands_that_were_redirected_are_counted_as_refused() {
    let cluster = RedisCluster::steady(3);
    let plan = asking(clustered(&cluster.nodes[0].endpoint()));
    let shard = Shard::armed(&plan).await;
    // Slots that moved after the map was read: the old owner replies MOVED.
    let first = cluster.slots(0).start;
    for slot in first..first + 400 {
        hand_over(&cluster, slot, 0, 1);
    }
    let snapshot = measured(&shard).await;
    let total = snapshot.total;
    let hops = total.redirect_hops + snapshot.warmup.redirect_hops;
    assert!(hops > 0, "{total:?}");
    let commands = executed(&snapshot);
    assert_eq!(commands.calls, total.succeeded + snapshot.warmup.succeeded, "{total:?}");
    assert_eq!(commands.rejected, Some(hops));
    assert_eq!(commands.foreign, 0);
}

#[tokio::test]
async fn a_user_that_may_not_ask_is_told_of_and_harms_nothing() {
    let server = RedisServer::start(&[]);
    server.ask::<()>(&["ACL", "SETUSER", "shy", "on", ">secret", "~*", "+@all", "-info"]);
    let shard = Shard::start(Some(("shy", "secret"))).await;
    let plan = asking(authenticated(&server.endpoint()));
    shard.plan(1, &plan).await.unwrap();
    let snapshot = measured(&shard).await;
    assert_eq!(snapshot.total.succeeded, 5000);
    let node = &snapshot.servers.as_ref().unwrap().nodes[0];
    assert!(node.note.as_ref().unwrap().contains("does not allow INFO"), "{node:?}");
    assert_eq!((node.commands, node.before, node.cpu), (None, None, None));
}

#[tokio::test]
async fn nobody_is_asked_without_being_told_to() {
    let server = RedisServer::start(&[]);
    let before = server.calls("info");
    let (_, snapshot) = run(&plan(&server.endpoint())).await;
    assert!(snapshot.servers.is_none());
    // The look before the load also uses INFO, but queries commandstats only for a comparison.
    assert!(server.calls("info") <= before + 3);
}

/// Runs the probe of attempt 1 in a second, and returns its result.
async fn probed(shard: &Shard, snapshot: &Snapshot) -> Probe {
    let after = shard.clock().await + SECOND - snapshot.window.start_nanoseconds;
    let asked = shard.probe(1, after).await.unwrap().body;
    assert_eq!((asked.after_nanoseconds, asked.over, asked.probe), (after, false, None));
    let state = eventually("the probe is over", async || {
        // A repeated call does not change the instant.
        Some(shard.probe(1, after + SECOND).await.unwrap().body).filter(|state| state.over)
    });
    state.await.probe.unwrap()
}

/// From now on the server refuses and counts every client beyond the trial's connections and the test's `own`. A new connection for each
/// question could come before the server has noticed the end of the previous one.
fn admit(own: &mut redis::Connection, connections: u32) {
    let _: () = redis::cmd("CONFIG").arg(&["SET", "maxclients", &(connections + 1).to_string()]).query(own).unwrap();
    let _: () = redis::cmd("CONFIG").arg("RESETSTAT").query(own).unwrap();
}

fn refused_clients(own: &mut redis::Connection) -> String {
    let statistics: String = redis::cmd("INFO").arg("stats").query(own).unwrap();
    statistics.lines().find(|line| line.starts_with("rejected_connections:")).unwrap().to_owned()
}

#[tokio::test]
async fn a_probe_is_in_no_number_and_no_count_of_the_servers() {
    let server = RedisServer::start(&[]);
    let mut plan = asking(plan(&server.endpoint()));
    plan.bound = Bound::Duration { nanoseconds: SECOND };
    plan.measurement.probe_nanoseconds = SECOND;
    let (shard, snapshot) = run(&plan).await;
    let probe = probed(&shard, &snapshot).await;
    assert_eq!((probe.of_room, probe.room), (16, 8));
    assert!(probe.succeeded > 0 && probe.mean_nanoseconds > 0, "{probe:?}");
    assert!(probe.tally.succeeded > probe.succeeded, "its warm-up counts apart: {probe:?}");
    assert_eq!(probe.nanoseconds, SECOND);
    // A conductor that takes over now reads everything again.
    let again = shard.snapshot(Detail::Full).await.unwrap().body;
    assert_eq!((again.total, executed(&again)), (snapshot.total, executed(&snapshot)));
    assert_eq!(again.generator.receive_delay, snapshot.generator.receive_delay);
    assert_eq!(executed(&again).calls, snapshot.total.succeeded + snapshot.warmup.succeeded);
    shard.drain(1).await.unwrap();
    let clients: String = server.ask(&["CLIENT", "LIST"]);
    assert_eq!(clients.lines().count(), 1, "the probe's connections are closed: {clients}");
}

#[tokio::test]
async fn a_probe_of_an_open_loop_keeps_its_rate() {
    let server = RedisServer::start(&[]);
    let mut plan = plan(&server.endpoint());
    plan.load = open_loop(200);
    plan.workload_mut().operations = vec![operation("push", 97, "RPUSH l __data__"), operation("fail", 3, "INCR l")];
    plan.preload = Preload::None;
    plan.bound = Bound::Duration { nanoseconds: SECOND };
    plan.measurement.probe_nanoseconds = SECOND;
    let (shard, snapshot) = run(&plan).await;
    let mut own = server.connection();
    admit(&mut own, plan.connections);
    let probe = probed(&shard, &snapshot).await;
    assert_eq!(probe.tally.scheduled, 200, "a second of 200 per second");
    assert_sent(&probe.tally);
    assert_eq!(refused_clients(&mut own), "rejected_connections:0");
    let _: () = redis::cmd("CONFIG").arg(&["SET", "maxclients", "100"]).query(&mut own).unwrap();
    assert_eq!(server.calls("rpush") + server.calls("incr"), 200 - probe.tally.unsent);
}

#[tokio::test]
async fn the_connections_of_a_trial_are_closed_before_its_probe_and_made_again_for_the_next_attempt() {
    let server = RedisServer::start(&[]);
    let mut plan = plan(&server.endpoint());
    plan.connections = 9;
    plan.bound = Bound::Duration { nanoseconds: SECOND };
    plan.measurement.probe_nanoseconds = SECOND / 2;
    let (shard, snapshot) = run(&plan).await;
    let mut own = server.connection();
    admit(&mut own, plan.connections);
    let probe = probed(&shard, &snapshot).await;
    assert_eq!((probe.of_room, probe.room), (36, 16));
    assert_eq!(refused_clients(&mut own), "rejected_connections:0");
    shard.abort(AbortThen::Rearm).await.unwrap();
    shard.phase(ShardPhase::Armed).await;
    shard.start_at(1, 2, shard.clock().await + SECOND / 2).await.unwrap();
    let second = shard.finished().await;
    assert!(second.attempt == 2 && second.total.succeeded > 0 && second.total.errors == 0, "{second:?}");
}
