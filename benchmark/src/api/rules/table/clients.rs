//! Rules of `load.clients`: what the type of a client needs, and what it does not support.

use super::super::forms::{union, unsupported};
use super::super::rule::{Rule, SPEC};

const CLIENT: &str = "spec.load.clients.[]";
const CLIENTS: &str = "load.clients";

/// CEL for a condition that every client meets, written for `client`.
macro_rules! all_clients {
    ($condition:literal) => {
        concat!("(!has(self.load.clients) || self.load.clients.all(client, ", $condition, "))")
    };
}

pub(super) fn all() -> Vec<Rule> {
    [of_types(), of_topologies(), of_targets(), of_callers(), of_the_engine()].into_iter().flatten().collect()
}

fn of_types() -> Vec<Rule> {
    let members: [(&str, &[&str], &str); 3] = [
        ("redisRs", &["RedisRs"], ""),
        ("smartBatching", &["SmartBatching"], ""),
        ("driver", &["Driver"], "driver: go-redis"),
    ];
    let mut rules = union(CLIENT, "type", &members);
    rules.extend([
        Rule::new(
            CLIENT,
            "pool",
            "!(self.type in ['Engine', 'Null']) || \
             self.pool.type == 'RoundRobin' && !has(self.pool.size) && self.pool.sharing == 'Shared'",
            "is not used by type %s: remove it",
        )
        .showing(["self.type"]),
        Rule::new(
            CLIENT,
            "pool.type",
            "self.pool.type == 'RoundRobin' || self.type in ['Engine', 'Null'] || self.type == 'RedisRs' && \
             (!has(self.redisRs) || !has(self.redisRs.connection) || self.redisRs.connection == 'Multiplexed')",
            "%s is a pool of Multiplexed connections of type RedisRs: set it to RoundRobin",
        )
        .showing(["self.pool.type"]),
        Rule::new(
            CLIENT,
            "pool.sharing",
            "self.pool.type == 'RoundRobin' || self.pool.sharing == 'Shared'",
            "is only valid for pool.type RoundRobin, because other pools are always exclusive: remove it",
        ),
        Rule::new(
            CLIENT,
            "runtime",
            "!(self.type in ['Engine', 'Driver']) || self.runtime.threads == 1 && self.runtime.flavour == 'CurrentThread'",
            "is not used by type %s: remove it",
        )
        .showing(["self.type"]),
        Rule::new(
            SPEC,
            "comparison.metric",
            concat!("!has(self.comparison) || self.comparison.metric != 'CpuPerRequest' || ", filled!("self.load.clients")),
            "CpuPerRequest requires load.clients, whose processor time is measured: set them, or another metric",
        ),
    ]);
    rules
}

/// Rules that depend on whether the target is a Cluster, as the default of `redisRs.connection` does.
fn of_topologies() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            CLIENTS,
            concat!(
                all_clients!(
                    "client.type != 'SmartBatching' && (client.type != 'RedisRs' || client.pool.type == 'RoundRobin') && \
                     (!has(client.redisRs) || !has(client.redisRs.connection) || client.redisRs.connection == 'Cluster')"
                ),
                " || self.targets.all(target, target.type != 'Cluster')"
            ),
            "have one that does not know clusters: set its type to RedisRs, Fred, Driver or Null, redisRs.connection to Cluster, \
             and pool.type to RoundRobin",
        ),
        Rule::new(
            SPEC,
            CLIENTS,
            concat!(
                all_clients!(
                    "!has(client.redisRs) || !has(client.redisRs.connection) || client.redisRs.connection != 'Cluster'"
                ),
                " || self.targets.all(target, target.type == 'Cluster')"
            ),
            "have one with redisRs.connection Cluster, which requires a target of type Cluster: set it to Multiplexed",
        ),
        Rule::new(
            SPEC,
            CLIENTS,
            all_clients!(
                "client.retries == 0 || client.type in ['Fred', 'Driver'] || client.type == 'RedisRs' && \
                 (has(client.redisRs) && has(client.redisRs.connection) ? client.redisRs.connection == 'Cluster' : \
                 self.targets.all(target, target.type == 'Cluster'))"
            ),
            "have retries for one that does not retry: remove them, or set its type to Fred, Driver, or for a Cluster RedisRs",
        ),
    ]
}

/// The contract of drivers has neither TLS nor replicas. redis-rs verifies the host to which it connects, and reads from the primary where a
/// slot has no replica.
fn of_targets() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            "targets",
            concat!(
                all_clients!("client.type != 'Driver'"),
                " || self.targets.all(target, \
                 !has(target.tls) && (!has(target.cluster) || target.cluster.readFrom == 'Primary'))"
            ),
            "have tls or cluster.readFrom, which clients of type Driver do not support: remove it, or the client",
        ),
        Rule::new(
            SPEC,
            "targets",
            concat!(
                all_clients!("client.type != 'RedisRs'"),
                " || self.targets.all(target, \
                 (!has(target.tls) || !has(target.tls.serverName) && target.tls.minimumVersion == 'TLS12') && \
                 (!has(target.cluster) || target.cluster.readFrom != 'Replica'))"
            ),
            "have tls.serverName, tls.minimumVersion or cluster.readFrom Replica, which clients of type RedisRs do not support: \
             remove it, set PreferReplica, or remove the client",
        ),
    ]
}

/// Each caller is a task with room for a request, or with a driver a part of another program: see docs/drivers.md.
fn of_callers() -> Vec<Rule> {
    const CALLERS: &str = "(has(self.load.closedLoop) && has(self.load.closedLoop.concurrency) ? \
                           self.load.closedLoop.concurrency : self.load.connections * self.load.pipeline)";
    let bounded = all_clients!(
        "client.type == 'Engine' || CALLERS <= (client.type == 'Driver' ? 10000 : 100000) * self.shards.count"
    );
    let callers = Rule::new(
        SPEC,
        CLIENTS,
        bounded.replace("CALLERS", CALLERS),
        "have %s callers in %s shards, and a shard has at most 100000, or 10000 with type Driver: lower closedLoop.concurrency if \
         set, else load.pipeline or load.connections; or raise shards.count",
    );
    let pool = Rule::new(
        SPEC,
        CLIENTS,
        all_clients!("!has(client.pool.size) || client.pool.size >= self.shards.count"),
        "have a pool.size below shards.count, which is %s: every shard needs a connection; raise pool.size",
    );
    vec![callers.showing([CALLERS, "self.shards.count"]), pool.showing(["self.shards.count"])]
}

/// Features that only the engine has.
fn of_the_engine() -> Vec<Rule> {
    let features = [
        ("workload.caching", "has(self.workload.caching)"),
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas > 0"),
        ("workload.onMiss", "self.workload.onMiss != 'Ignore'"),
        ("workload.keys.pattern.perConnection", "self.workload.keys.pattern.perConnection"),
        (
            "workload.operations.keys.pattern.perConnection",
            "has(self.workload.operations) && self.workload.operations.exists(operation, has(operation.keys) && \
             has(operation.keys.pattern) && operation.keys.pattern.perConnection)",
        ),
        ("verify.mode != None", "self.verify.mode != 'None'"),
        ("load.connectionLifetime", "has(self.load.connectionLifetime)"),
        ("load.connectRate", "has(self.load.connectRate)"),
        ("load.nodesPerShard", "has(self.load.nodesPerShard)"),
        ("load.pipelineMode", "self.load.pipelineMode != 'Window'"),
        ("targets.type Pool or Sentinel", "self.targets.exists(target, target.type in ['Pool', 'Sentinel'])"),
        (
            "targets.cluster.addressMap",
            "self.targets.exists(target, has(target.cluster) && has(target.cluster.addressMap) && \
             target.cluster.addressMap.size() > 0)",
        ),
        ("thresholds.eachNode", "has(self.thresholds) && self.thresholds.exists(threshold, threshold.eachNode)"),
    ];
    let given = "has(self.load.clients) && self.load.clients.exists(client, client.type != 'Engine')";
    vec![unsupported(
        CLIENTS,
        given,
        "have one that does not support",
        &features,
        "change these, or set its type to Engine",
    )]
}
