//! Makes the plan of a client, and checks that drivers are known.

use redisbench_wire::plan::{self, Library, RedisRsConnection};

use crate::api::client::{ClientSpec, ClientType, PoolType, Sharing, SmartBatchingSpec};
use crate::api::endpoint;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;

/// The client of a trial, and what it changes in the plan.
pub(super) struct Chosen {
    /// None without `load.clients`.
    pub client: Option<plan::Client>,
    pub connections: u32,
    pub concurrency: Option<u32>,
}

/// The client of a trial: the first of the list. Refuses the path of a socket, which only the engine and local runs can use.
pub(super) fn chosen(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Chosen {
    let load = &spec.load;
    let engine = Chosen { client: None, connections: load.connections, concurrency: load.concurrency() };
    let Some(chosen) = load.clients.first() else { return engine };
    let cluster = spec.targets.first().is_some_and(|target| target.kind == plan::Topology::Cluster);
    let client = Some(chosen.plan(cluster));
    if chosen.kind == ClientType::Engine {
        return Chosen { client, ..engine };
    }
    let mut endpoints = spec.targets.iter().flat_map(|target| &target.endpoints);
    if let Some(file) = endpoints.find(|text| endpoint::is_file(text)) {
        let message = format!("is the path of a socket, which client {} cannot use: set HOST:PORT", chosen.name);
        problems.push(Problem::new("spec.targets[0].endpoints", file, message));
    }
    let callers = load.concurrency().unwrap_or_else(|| load.connections.saturating_mul(load.pipeline));
    Chosen { client, connections: chosen.pool.size.unwrap_or(load.connections), concurrency: Some(callers) }
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

    fn plan(&self, cluster: bool) -> plan::Client {
        plan::Client {
            name: self.name.clone(),
            library: self.library(cluster),
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

#[cfg(test)]
mod tests {
    use redisbench_testkit::api_server::merge;
    use serde_json::json;

    use super::check_drivers;
    use crate::{api, sample};

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
}
