//! Checks a client, and makes its plan.

use redisbench_wire::plan::{self, Library, RedisRsConnection};

use crate::api::client::{ClientPoolSpec, ClientSpec, ClientType, PoolType, RuntimeSpec, Sharing, SmartBatchingSpec};
use crate::api::comparison::ComparisonMetric;
use crate::api::keys::KeyPatternSpec;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::workload::OnMiss;

/// Maximum callers of a shard: each is a task with room for a request.
const MOST_CALLERS: u32 = 100_000;

/// The same with a driver: see docs/drivers.md.
const MOST_CALLERS_OF_DRIVER: u32 = 10_000;

/// The field of a trial's client: each trial has one.
const CLIENT: &str = "spec.load.clients[0]";

/// The client of a trial, and what it changes in the plan.
pub(super) struct Chosen {
    /// None without `load.clients`.
    pub client: Option<plan::Client>,
    pub connections: u32,
    pub concurrency: Option<u32>,
}

/// Checks the client of a trial: the first of the list.
pub(super) fn check(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Chosen {
    let load = &spec.load;
    let engine = Chosen { client: None, connections: load.connections, concurrency: load.concurrency() };
    let Some(chosen) = load.clients.first() else {
        if spec.comparison.as_ref().is_some_and(|comparison| comparison.metric == ComparisonMetric::CpuPerRequest) {
            let message = "requires load.clients, whose processor time is measured: set them, or another metric";
            problems.push(Problem::new("spec.comparison.metric", "CpuPerRequest", message));
        }
        return engine;
    };
    let cluster = spec.targets.first().is_some_and(|target| target.kind == plan::Topology::Cluster);
    let library = chosen.library(cluster);
    check_unused(chosen, &library, problems);
    if library == Library::Engine {
        return Chosen { client: Some(chosen.plan(library)), ..engine };
    }
    check_kind(chosen, &library, cluster, problems);
    let client = Some(chosen.plan(library));
    check_unsupported(spec, &chosen.name, problems);
    check_tls(spec, chosen, problems);
    check_reads(spec, chosen, problems);
    let connections = chosen.pool.size.unwrap_or(load.connections);
    if connections < spec.shards.count {
        let message = format!("must be at least shards.count, which is {}: raise it", spec.shards.count);
        let field = chosen.pool.size.map(|_| format!("{CLIENT}.pool.size"));
        problems.push(Problem::new(field.unwrap_or_else(|| "spec.load.connections".into()), connections, message));
    }
    let callers = load.concurrency().unwrap_or_else(|| load.connections.saturating_mul(load.pipeline));
    let of_shard = callers.div_ceil(spec.shards.count.max(1));
    let (kind, most) = match chosen.kind {
        ClientType::Driver => ("driver", MOST_CALLERS_OF_DRIVER),
        _ => ("client library", MOST_CALLERS),
    };
    if of_shard > most {
        let (field, value, fields) = match load.concurrency() {
            Some(callers) => ("spec.load.closedLoop.concurrency", callers, "it"),
            None => ("spec.load.pipeline", load.pipeline, "it or load.connections"),
        };
        let message = format!(
            "makes {of_shard} callers in a shard, and a {kind} has at most {most}: lower {fields}, or raise shards.count"
        );
        problems.push(Problem::new(field, value, message));
    }
    Chosen { client, connections, concurrency: Some(callers) }
}

impl ClientSpec {
    fn library(&self, cluster: bool) -> Library {
        match self.kind {
            ClientType::Engine => Library::Engine,
            ClientType::RedisRs => {
                let usual = if cluster { RedisRsConnection::Cluster } else { RedisRsConnection::Multiplexed };
                Library::RedisRs(self.redis_rs.unwrap_or_default().connection.unwrap_or(usual))
            }
            ClientType::Fred => Library::Fred,
            ClientType::SmartBatching => {
                let SmartBatchingSpec { queue, batch_bytes } = self.smart_batching.unwrap_or_default();
                Library::SmartBatching { queue, batch_bytes }
            }
            ClientType::Null => Library::Null,
            // The rules require a name.
            ClientType::Driver => Library::Driver { name: self.driver.clone().unwrap_or_default() },
        }
    }

    fn plan(&self, library: Library) -> plan::Client {
        plan::Client {
            name: self.name.clone(),
            library,
            pool: match (self.pool.kind, self.pool.sharing) {
                (PoolType::Bb8, _) => plan::Pool::Bb8,
                (PoolType::Deadpool, _) => plan::Pool::Deadpool,
                (PoolType::RoundRobin, Sharing::Shared) => plan::Pool::Shared,
                (PoolType::RoundRobin, Sharing::Exclusive) => plan::Pool::Exclusive,
            },
            threads: self.runtime.threads,
            runtime: self.runtime.flavour,
            retries: self.retries,
        }
    }
}

/// Settings that this client does not use.
fn check_unused(client: &ClientSpec, library: &Library, problems: &mut Vec<Problem>) {
    let sends_again =
        matches!(library, Library::Fred | Library::Driver { .. } | Library::RedisRs(RedisRsConnection::Cluster));
    let has_threads = !matches!(library, Library::Engine | Library::Driver { .. });
    let pools = !matches!(library, Library::Engine | Library::Null);
    let unused = [
        ("pool", !pools && client.pool != ClientPoolSpec::default()),
        ("runtime", !has_threads && client.runtime != RuntimeSpec::default()),
        ("retries", !sends_again && client.retries > 0),
    ];
    for (field, _) in unused.iter().filter(|(_, is_set)| *is_set) {
        let kind = client.kind;
        let message = match *field {
            "retries" => format!("is not supported by type {kind:?}, or by this kind of its connections: remove it"),
            _ => format!("is not used by type {kind:?}: remove it"),
        };
        problems.push(Problem::new(format!("{CLIENT}.{field}"), "", message));
    }
}

fn check_kind(client: &ClientSpec, library: &Library, cluster: bool, problems: &mut Vec<Problem>) {
    let mut refuse = |field: &str, value: &dyn std::fmt::Debug, message: String| {
        problems.push(Problem::new(format!("{CLIENT}.{field}"), format!("{value:?}"), message));
    };
    let pooled = client.pool.kind != PoolType::RoundRobin;
    if pooled && *library != Library::RedisRs(RedisRsConnection::Multiplexed) {
        let message = "is a pool of Multiplexed connections of type RedisRs: set pool.type to RoundRobin".to_owned();
        refuse("pool.type", &client.pool.kind, message);
    }
    let of_cluster = match library {
        Library::RedisRs(connection) => *connection == RedisRsConnection::Cluster,
        Library::SmartBatching { .. } => false,
        Library::Engine | Library::Fred | Library::Null | Library::Driver { .. } => cluster,
    };
    if of_cluster != cluster {
        let message = if cluster {
            "does not know clusters: set type to RedisRs, Fred, Driver or Null, and redisRs.connection to Cluster"
        } else {
            "requires a target of type Cluster: set redisRs.connection to Multiplexed"
        };
        refuse("type", &client.kind, message.to_owned());
    }
}

/// Refuses TLS with drivers, whose contract has none, and the settings that redis-rs has no way to set. It verifies the host to which it
/// connects.
fn check_tls(spec: &RedisBenchmarkSpec, client: &ClientSpec, problems: &mut Vec<Problem>) {
    let Some(tls) = spec.targets.first().and_then(|target| target.tls.as_ref()) else { return };
    let set = match client.kind {
        ClientType::Driver => vec![("tls", true)],
        ClientType::RedisRs => vec![
            ("tls.serverName", tls.server_name.is_some()),
            ("tls.minimumVersion", tls.minimum_version != plan::TlsVersion::default()),
        ],
        _ => Vec::new(),
    };
    for (field, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
        let message = format!("is not supported with clients of type {:?}: remove it, or the client", client.kind);
        problems.push(Problem::new(format!("spec.targets[0].{field}"), "", message));
    }
}

/// Refuses replicas with drivers, whose contract has none, and what redis-rs cannot promise: where a slot has no replica, it reads from the
/// primary.
fn check_reads(spec: &RedisBenchmarkSpec, client: &ClientSpec, problems: &mut Vec<Problem>) {
    let Some(cluster) = spec.targets.first().and_then(|target| target.cluster.as_ref()) else { return };
    let message = match (client.kind, cluster.read_from) {
        (ClientType::RedisRs, plan::ReadFrom::Replica) => {
            "is not supported with clients of type RedisRs, which read from a primary where a slot has no replica: set it \
             to PreferReplica, or remove the client"
        }
        (ClientType::Driver, plan::ReadFrom::Replica | plan::ReadFrom::PreferReplica) => {
            "is not supported with clients of type Driver: set it to Primary, or remove the client"
        }
        _ => return,
    };
    problems.push(Problem::new("spec.targets[0].cluster.readFrom", format!("{:?}", cluster.read_from), message));
}

/// Refuses drivers of `spec` that are not among `known`. `remedy` tells the user how to add one.
pub fn check_drivers(spec: &RedisBenchmarkSpec, known: &[&str], remedy: &str) -> Vec<Problem> {
    let drivers = spec.load.clients.iter().enumerate().filter_map(|(at, client)| Some((at, client.driver.as_deref()?)));
    let unknown = drivers.filter(|(_, driver)| !known.contains(driver));
    let problem = |(at, driver): (usize, &str)| {
        let message = match known {
            [] => format!("is unknown, as there are no drivers: {remedy}"),
            _ => format!("is unknown; the drivers are {}: name one of these, or {remedy}", known.join(", ")),
        };
        Problem::new(format!("spec.load.clients[{at}].driver"), driver, message)
    };
    unknown.map(problem).collect()
}

/// Refuses the features that only the engine has.
fn check_unsupported(spec: &RedisBenchmarkSpec, name: &str, problems: &mut Vec<Problem>) {
    let (workload, load) = (&spec.workload, &spec.load);
    let per_connection = |pattern: &KeyPatternSpec| pattern.per_connection;
    let of_operations = workload.operations.iter().enumerate().filter_map(|(at, operation)| {
        let pattern = operation.keys.as_ref()?.pattern.as_ref()?;
        per_connection(pattern).then(|| format!("spec.workload.operations[{at}].keys.pattern.perConnection"))
    });
    let of_all = per_connection(&workload.keys.pattern).then(|| "spec.workload.keys.pattern.perConnection".to_owned());
    let each_node = spec.thresholds.iter().enumerate().filter(|(_, threshold)| threshold.each_node);
    let each_node = each_node.map(|(at, _)| format!("spec.thresholds[{at}].eachNode"));
    let target = spec.targets.first();
    let kind = target.map(|target| target.kind);
    let file = target.is_some_and(|target| target.endpoints.iter().any(|one| crate::api::endpoint::is_file(one)));
    let cluster = target.and_then(|target| target.cluster.as_ref());
    let has_map = cluster.is_some_and(|cluster| !cluster.address_map.is_empty());
    let others = [
        ("spec.workload.caching", workload.caching.is_some()),
        ("spec.workload.transaction.size", workload.transaction.size > 0),
        ("spec.workload.wait.replicas", workload.wait.replicas > 0),
        ("spec.workload.onMiss", workload.on_miss != OnMiss::Ignore),
        ("spec.verify.mode", spec.verify.mode != plan::Verify::None),
        ("spec.load.connectionLifetime", load.connection_lifetime.is_some()),
        ("spec.load.connectRate", load.connect_rate.is_some()),
        ("spec.load.nodesPerShard", load.nodes_per_shard.is_some()),
        ("spec.load.pipelineMode", load.pipeline_mode != plan::PipelineMode::Window),
        ("spec.targets[0].type", matches!(kind, Some(plan::Topology::Pool | plan::Topology::Sentinel))),
        ("spec.targets[0].endpoints", file),
        ("spec.targets[0].cluster.addressMap", has_map),
    ];
    let others = others.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| field.to_owned());
    for field in others.chain(of_all).chain(of_operations).chain(each_node) {
        let message = if field.ends_with("endpoints") {
            format!("has the path of a socket, which client {name} cannot use: set HOST:PORT")
        } else {
            format!(
                "is not supported with client {name}: remove it, or set the type of that client in load.clients to Engine"
            )
        };
        problems.push(Problem::new(field, "", message));
    }
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::api_server::merge;
    use serde_json::{Value, json};

    use super::check_drivers;
    use crate::{api, sample};

    /// The problems of `client` with these changes of the spec.
    fn found(client: &Value, change: Value) -> Vec<String> {
        let mut changes = json!({"load": {"clients": [client]}});
        merge(&mut changes, change);
        sample::problems(sample::object(), &changes)
    }

    fn refused(client: &Value, change: Value, problem: &str) {
        let found = found(client, change);
        assert!(found.len() == 1 && found[0].contains(problem), "{found:?}");
    }

    #[test]
    fn settings_that_a_client_does_not_use_are_refused() {
        for (client, problem) in [
            (json!({"name": "a", "type": "Engine", "pool": {"size": 4}}), "[0].pool: is not used by type Engine"),
            (
                json!({"name": "a", "type": "Engine", "runtime": {"threads": 8}}),
                "[0].runtime: is not used by type Engine",
            ),
            (json!({"name": "a", "type": "Null", "pool": {"size": 4}}), "[0].pool: is not used by type Null"),
            (json!({"name": "a", "type": "SmartBatching", "retries": 3}), "[0].retries: is not supported by type"),
            (json!({"name": "a", "type": "RedisRs", "retries": 3}), "[0].retries: is not supported by type RedisRs"),
        ] {
            refused(&client, json!({}), problem);
        }
        assert_eq!(found(&json!({"name": "a", "type": "Fred", "retries": 3}), json!({})), [""; 0]);
        let driver =
            json!({"name": "a", "type": "Driver", "driver": "go", "pool": {"sharing": "Exclusive"}, "retries": 3});
        assert_eq!(found(&driver, json!({})), [""; 0]);
        let mut threads = driver.clone();
        threads["runtime"] = json!({"threads": 2});
        refused(&threads, json!({}), "[0].runtime: is not used by type Driver");
        let mut pooled = driver;
        pooled["pool"] = json!({"type": "Bb8"});
        refused(&pooled, json!({}), "[0].pool.type: Bb8: is a pool of Multiplexed connections");
    }

    #[test]
    fn what_only_the_engine_can_do_is_refused() {
        let fred = json!({"name": "f", "type": "Fred"});
        let walk = json!({"type": "Sequential", "perConnection": true});
        for (change, problem) in [
            (json!({"workload": {"keys": {"pattern": walk}}}), "workload.keys.pattern.perConnection: is not supported"),
            (json!({"workload": {"transaction": {"size": 2}}}), "workload.transaction.size: is not supported"),
            (
                json!({"thresholds": [{"name": "a", "metric": "ServiceTime", "quantile": "0.99", "max": "5ms", "eachNode": true}]}),
                "thresholds[0].eachNode: is not supported with client f",
            ),
        ] {
            refused(&fred, change.clone(), problem);
            assert_eq!(found(&json!({"name": "e", "type": "Engine"}), change), [""; 0]);
        }
    }

    #[test]
    fn redis_rs_verifies_the_host_that_it_connects_to() {
        let tls =
            |tls: Value| json!({"targets": [{"name": "a", "type": "Standalone", "endpoints": ["a:6379"], "tls": tls}]});
        for (set, field) in
            [(json!({"serverName": "a"}), "serverName"), (json!({"minimumVersion": "TLS13"}), "minimumVersion")]
        {
            let problem = format!("targets[0].tls.{field}: is not supported with clients of type RedisRs");
            refused(&json!({"name": "r", "type": "RedisRs"}), tls(set.clone()), &problem);
            assert_eq!(found(&json!({"name": "f", "type": "Fred"}), tls(set)), [""; 0]);
        }
        assert_eq!(found(&json!({"name": "r", "type": "RedisRs"}), tls(json!({}))), [""; 0]);
        let driver = json!({"name": "d", "type": "Driver", "driver": "go"});
        refused(&driver, tls(json!({})), "spec.targets[0].tls: is not supported with clients of type Driver");
    }

    #[test]
    fn an_unknown_driver_is_refused_with_the_known_ones() {
        let clients = json!([
            {"name": "engine", "type": "Engine"},
            {"name": "a", "type": "Driver", "driver": "go-redis"},
            {"name": "b", "type": "Driver", "driver": "jedis"},
        ]);
        let changes = json!({"load": {"clients": clients}, "comparison": {"baseline": "a"}, "repeats": {"count": 5}});
        let mut object = sample::object();
        merge(&mut object["spec"], changes);
        let spec = api::read(&object).unwrap().spec;
        let told =
            |known: &[&str]| check_drivers(&spec, known, "add it").iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told(&["go-redis", "jedis"]), [""; 0]);
        assert_eq!(
            told(&["go-redis", "lettuce"]),
            [
                "spec.load.clients[2].driver: jedis: is unknown; the drivers are go-redis, lettuce: name one of these, or add it"
            ]
        );
        assert_eq!(told(&[])[0], "spec.load.clients[1].driver: go-redis: is unknown, as there are no drivers: add it");
    }

    #[test]
    fn reads_from_replicas_are_those_of_the_library() {
        let target = |cluster: Value| json!({"targets": [{"name": "a", "type": "Cluster", "endpoints": ["a:6379"], "cluster": cluster}]});
        let [fred, redis_rs] = ["Fred", "RedisRs"].map(|kind| json!({"name": "c", "type": kind}));
        for from in ["Primary", "PreferReplica", "Replica"] {
            assert_eq!(found(&fred, target(json!({"readFrom": from}))), [""; 0]);
        }
        assert_eq!(found(&redis_rs, target(json!({"readFrom": "PreferReplica"}))), [""; 0]);
        refused(
            &redis_rs,
            target(json!({"readFrom": "Replica"})),
            "targets[0].cluster.readFrom: Replica: is not supported with clients of type RedisRs",
        );
        let driver = json!({"name": "d", "type": "Driver", "driver": "go"});
        assert_eq!(found(&driver, target(json!({"readFrom": "Primary"}))), [""; 0]);
        for from in ["PreferReplica", "Replica"] {
            refused(&driver, target(json!({"readFrom": from})), "is not supported with clients of type Driver");
        }
        let map = json!({"addressMap": [{"announced": "a:1", "reachable": "b:1"}]});
        refused(&fred, target(map), "targets[0].cluster.addressMap: is not supported with client c");
    }

    #[test]
    fn callers_are_bounded() {
        let fred = json!({"name": "f", "type": "Fred"});
        let many = |pipeline: u32| json!({"load": {"connections": 2_000, "pipeline": pipeline}});
        refused(&fred, many(101), "load.pipeline: 101: makes 202000 callers in a shard");
        assert_eq!(found(&fred, many(50)), [""; 0]);
        let driver = json!({"name": "d", "type": "Driver", "driver": "go"});
        refused(
            &driver,
            many(50),
            "load.pipeline: 50: makes 100000 callers in a shard, and a driver has at most 10000",
        );
    }
}
