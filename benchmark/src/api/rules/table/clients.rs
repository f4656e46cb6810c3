//! Rules of `load.clients`: what the type of a client needs, and what it does not support.

use super::super::forms::{union, unsupported};
use super::super::rule::{Rule, SPEC};
use super::per_connection;

const CLIENT: &str = "spec.load.clients.[]";
const CLIENTS: &str = "load.clients";

/// Refuses clients for which `bad` is true, in CEL for `client`, unless the CEL before holds. The message's first `%s` is the name of one.
fn refuse(unless: &str, bad: &str, field: &str, message: &str) -> Rule {
    let condition = format!("!has(self.load.clients) || {unless}!self.load.clients.exists(client, {bad})");
    let name = format!("self.load.clients.filter(client, {bad})[0].name");
    Rule::new(SPEC, field, condition, message).showing([&name])
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
            "!has(self.comparison) || self.comparison.metric != 'CpuPerRequest' || has(self.load.clients)",
            "CpuPerRequest requires load.clients, whose processor time is measured: set clients: [{name: own, type: Engine}], or another \
             metric",
        ),
    ]);
    rules
}

/// Rules that depend on whether the target is a Cluster, as the default of `redisRs.connection` does.
fn of_topologies() -> Vec<Rule> {
    const NO_CLUSTER: &str = "self.targets.all(target, target.type != 'Cluster') || ";
    const ALL_CLUSTERS: &str = "self.targets.all(target, target.type == 'Cluster')";
    const CONNECTION: &str = "has(client.redisRs) && has(client.redisRs.connection)";
    vec![
        refuse(
            NO_CLUSTER,
            "client.type == 'SmartBatching'",
            CLIENTS,
            "%s has type SmartBatching, which does not know clusters: set RedisRs, Fred, Driver or Null",
        ),
        refuse(
            NO_CLUSTER,
            &format!("{CONNECTION} && client.redisRs.connection != 'Cluster'"),
            CLIENTS,
            "%s has a redisRs.connection for single servers, and a target is a Cluster: set it to Cluster",
        ),
        refuse(
            NO_CLUSTER,
            "client.type == 'RedisRs' && client.pool.type != 'RoundRobin'",
            CLIENTS,
            "%s has a pool.type for single servers, and a target is a Cluster: set it to RoundRobin",
        ),
        refuse(
            &format!("{ALL_CLUSTERS} || "),
            &format!("{CONNECTION} && client.redisRs.connection == 'Cluster'"),
            CLIENTS,
            "%s has redisRs.connection Cluster, which requires a target of type Cluster: set it to Multiplexed",
        ),
        refuse(
            "",
            &format!(
                "client.retries > 0 && !(client.type in ['Fred', 'Driver'] || client.type == 'RedisRs' && \
                 ({CONNECTION} ? client.redisRs.connection == 'Cluster' : {ALL_CLUSTERS}))"
            ),
            CLIENTS,
            "%s has retries, which only types Fred and Driver support, and RedisRs for a Cluster: remove them, or change its type",
        ),
    ]
}

/// The contract of drivers has neither TLS nor replicas. redis-rs verifies the host to which it connects, and reads from the primary where a
/// slot has no replica.
fn of_targets() -> Vec<Rule> {
    vec![
        refuse(
            "self.targets.all(target, !has(target.tls) && (!has(target.cluster) || target.cluster.readFrom == 'Primary')) || ",
            "client.type == 'Driver'",
            "targets",
            "have tls or cluster.readFrom, which client %s of type Driver does not support: remove it, or the client",
        ),
        refuse(
            "self.targets.all(target, (!has(target.tls) || !has(target.tls.serverName) && target.tls.minimumVersion == 'TLS12') && \
             (!has(target.cluster) || target.cluster.readFrom != 'Replica')) || ",
            "client.type == 'RedisRs'",
            "targets",
            "have tls.serverName, tls.minimumVersion or cluster.readFrom Replica, which client %s of type RedisRs does not support: \
             remove it, set PreferReplica, or remove the client",
        ),
    ]
}

/// Each caller is a task with room for a request, or with a driver a part of another program: see docs/drivers.md.
fn of_callers() -> Vec<Rule> {
    const CALLERS: &str = "(has(self.load.closedLoop) && has(self.load.closedLoop.concurrency) ? \
                           self.load.closedLoop.concurrency : self.load.connections * self.load.pipeline)";
    const SHARDS: &str = "string(self.shards.count)";
    let mut callers = refuse(
        "",
        &format!(
            "client.type != 'Engine' && {CALLERS} > (client.type == 'Driver' ? 10000 : 100000) * self.shards.count"
        ),
        CLIENTS,
        "%s has %s callers in %s shards, and a shard has at most 100000, or 10000 with type Driver: lower closedLoop.concurrency if \
         set, else load.pipeline or load.connections; or raise shards.count",
    );
    callers.values.extend([format!("string({CALLERS})"), SHARDS.to_owned()]);
    let mut pool = refuse(
        "",
        "has(client.pool.size) && client.pool.size < self.shards.count",
        CLIENTS,
        "%s has a pool.size below shards.count, which is %s: every shard needs a connection; raise pool.size",
    );
    pool.values.push(SHARDS.to_owned());
    vec![callers, pool]
}

/// Features that only the engine has.
fn of_the_engine() -> Vec<Rule> {
    let features = [
        ("workload.caching", "has(self.workload.caching)"),
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas > 0"),
        ("workload.onMiss", "self.workload.onMiss != 'Ignore'"),
        ("keys.pattern.perConnection", per_connection::SET),
        ("verify.mode other than None", "self.verify.mode != 'None'"),
        ("load.connectionLifetime", "has(self.load.connectionLifetime)"),
        ("load.connectRate", "has(self.load.connectRate)"),
        ("load.nodesPerShard", "has(self.load.nodesPerShard)"),
        ("load.pipelineMode Batch", "self.load.pipelineMode != 'Window'"),
        ("targets.type Pool or Sentinel", "self.targets.exists(target, target.type in ['Pool', 'Sentinel'])"),
        (
            "targets.cluster.addressMap",
            "self.targets.exists(target, has(target.cluster) && has(target.cluster.addressMap) && \
             target.cluster.addressMap.size() > 0)",
        ),
        ("thresholds.eachNode", "has(self.thresholds) && self.thresholds.exists(threshold, threshold.eachNode)"),
        // Not beside Operation, because both are the default.
        ("measurement.breakdown of Node alone", "self.measurement.breakdown == ['Node']"),
    ];
    let given = "has(self.load.clients) && self.load.clients.exists(client, client.type != 'Engine')";
    let fix = "change these, or set its type to Engine";
    let mut rule = unsupported(CLIENTS, given, "%s does not support", &features, fix);
    rule.values.insert(0, "self.load.clients.filter(client, client.type != 'Engine')[0].name".to_owned());
    vec![rule]
}
