//! One look at the target: tries its endpoints in order until one answers, and compares the answer with the plan.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use redis::Value;
use redisbench_wire::plan::{Distribution, Protocol, ReadFrom, ShardPlan, Target, Topology as Kind};
use redisbench_wire::{FailureReason, limits};

use super::access::TargetAccess;
use super::addresses::{addresses, not_answered};
use super::client::Client;
use super::cluster::{self, MapReply};
use super::end::End;
use super::endpoint::Endpoint;
use super::finding::{Finding, FoundTarget, wrong_topology};
use super::trouble::Trouble;
use super::{advice, commands, credentials, same_slot, scripts, sentinel};
use crate::cluster::{NodeAddress, Topology};
use crate::engine::{self, Handshake};

/// Upper bound of the connect timeout per address, so that the other addresses get their turn.
const CONNECT_AT_MOST: Duration = Duration::from_secs(5);

/// Timeout for sentinels once a primary is known.
const SENTINELS: Duration = Duration::from_secs(1);

/// Looks at the target. `known` are the nodes of an earlier look, which a cluster look tries after the endpoints. If `silent`, the known
/// primary does not answer, and one that sentinels name instead is tried first.
pub async fn look(plan: &ShardPlan, access: &TargetAccess, known: Option<&Topology>, silent: bool) -> Finding {
    let target = &plan.target;
    let mut endpoints = target.endpoints.iter().map(String::as_str).collect::<Vec<_>>();
    let connect_limit = Duration::from_nanos(plan.timeouts.connect_nanoseconds).min(CONNECT_AT_MOST);
    let named: Vec<String>;
    match target.topology {
        Kind::Pool => return pool(plan, access, connect_limit).await,
        Kind::Standalone => endpoints.truncate(1),
        Kind::Cluster => {
            endpoints.extend(known.iter().flat_map(|known| &known.nodes).map(|node| node.label.as_str()));
        }
        Kind::Sentinel => {
            let mut primaries = Vec::new();
            if let Some(node) = known.and_then(|known| known.nodes.first()) {
                let avoided = silent.then_some(node.label.as_str());
                primaries = sentinel::named(plan, access, SENTINELS, avoided).await;
            }
            if primaries.is_empty() {
                match sentinel::primary(plan, access, connect_limit).await {
                    Ok(endpoint) => primaries.push(endpoint),
                    Err(finding) => return finding,
                }
            }
            named = primaries.iter().map(Endpoint::to_string).collect();
            endpoints = named.iter().map(String::as_str).collect();
        }
    }
    let mut last = None;
    for text in endpoints {
        let (endpoint, addresses) = match addresses(target, text).await {
            Ok((endpoint, addresses)) => (endpoint, known_first(addresses, known)),
            Err(Finding::Obstacle(failure)) => {
                // An endpoint that does not answer is more informative than one without an address.
                last.get_or_insert(failure);
                continue;
            }
            Err(finding) => return finding,
        };
        for address in addresses {
            let look = Look { plan, access, endpoint: &endpoint, address };
            let end = match look.connect_and_inspect(connect_limit).await {
                Ok(found) => return Finding::Found(Box::new(found)),
                Err(end) => end,
            };
            let others_may_know = match &end {
                End::Trouble(trouble) => !matches!(trouble, Trouble::Refused(_)),
                // Another sentinel may have newer information.
                End::Judged(_) => target.topology == Kind::Sentinel,
            };
            match look.judge(end).await {
                Finding::Obstacle(failure) if others_may_know => last = Some(failure),
                finding => return finding,
            }
        }
    }
    Finding::Obstacle(last.unwrap_or_else(|| advice::unreachable(&target.name, "none", "the list is empty")))
}

/// Looks at every server of a pool. All must answer.
async fn pool(plan: &ShardPlan, access: &TargetAccess, limit: Duration) -> Finding {
    let servers = match servers(&plan.target).await {
        Ok(servers) => servers,
        Err(finding) => return finding,
    };
    let mut all: Option<FoundTarget> = None;
    for (endpoint, address) in servers {
        let look = Look { plan, access, endpoint: &endpoint, address };
        match (look.connect_and_inspect(limit).await, &mut all) {
            (Ok(found), None) => all = Some(found),
            (Ok(found), Some(all)) => {
                all.topology.nodes.extend(found.topology.nodes);
                all.topology.members.extend(found.topology.members);
                all.may_evict |= found.may_evict;
                all.named &= found.named;
            }
            (Err(end), _) => return look.judge(end).await,
        }
    }
    match all {
        Some(mut found) => {
            let Topology { nodes, members, .. } = found.topology;
            let even = plan.target.distribution == Distribution::Even;
            found.topology = Topology { even, members, ..Topology::sharing(nodes) };
            found.access = for_engine(plan, access, found.named);
            Finding::Found(Box::new(found))
        }
        None => Finding::Obstacle(advice::unreachable(&plan.target.name, "none", "the list is empty")),
    }
}

/// The servers of a pool: every address of each endpoint, such as those of a headless Service, named by that address if there are several.
/// Of a host with addresses of both families the IPv4 ones, because both usually lead to the same servers.
async fn servers(target: &Target) -> Result<Vec<(Endpoint, SocketAddr)>, Finding> {
    let mut servers: Vec<(Endpoint, SocketAddr)> = Vec::new();
    for text in &target.endpoints {
        let (endpoint, mut addresses) = addresses(target, text).await?;
        if addresses.iter().any(SocketAddr::is_ipv4) {
            addresses.retain(SocketAddr::is_ipv4);
        }
        // Resolvers rotate them, and the same server must keep its slots.
        addresses.sort();
        addresses.dedup();
        let sole = addresses.len() == 1;
        for address in addresses {
            let endpoint =
                if sole { endpoint.clone() } else { Endpoint::new(&address.ip().to_string(), address.port()) };
            if !servers.iter().any(|(_, known)| *known == address) {
                servers.push((endpoint, address));
            }
        }
    }
    if servers.len() > limits::NODES {
        let message = format!(
            "spec.targets[0].endpoints: lead to {} servers, and a pool has at most {}: list fewer",
            servers.len(),
            limits::NODES
        );
        return Err(Finding::Failed(advice::failure(FailureReason::BadPlan, &message)));
    }
    Ok(servers)
}

/// Returns whether one name stands for all servers of a pool. Their ids are then addresses: the label of a server is the name only as long as the
/// name has one address.
fn is_sole_name(target: &Target) -> bool {
    target.topology == Kind::Pool && target.endpoints.len() == 1
}

/// Sorts the address in use first, so that it is kept while it answers.
fn known_first(mut addresses: Vec<SocketAddr>, known: Option<&Topology>) -> Vec<SocketAddr> {
    let in_use =
        |address: &SocketAddr| known.is_some_and(|known| known.nodes.iter().any(|node| node.address == *address));
    addresses.sort_by_key(|address| !in_use(address));
    addresses
}

struct Look<'a> {
    plan: &'a ShardPlan,
    access: &'a TargetAccess,
    endpoint: &'a Endpoint,
    address: SocketAddr,
}

impl Look<'_> {
    /// The meaning of an end.
    async fn judge(&self, end: End) -> Finding {
        match end {
            End::Judged(finding) => finding,
            End::Trouble(trouble @ Trouble::Refused(_)) => self.refused(&trouble),
            End::Trouble(trouble) => {
                let text = self.endpoint.to_string();
                not_answered(self.target(), &text, self.address, self.access, &trouble).await
            }
        }
    }

    async fn connect_and_inspect(&self, limit: Duration) -> Result<FoundTarget, End> {
        let client = &mut self.access.connect(&self.endpoint.to_string(), self.address, limit).await?;
        let facts = InfoFields::ask(client).await?;
        self.check_facts(&facts)?;
        let topology = match self.target().topology {
            Kind::Standalone | Kind::Pool => self.standalone(client).await?,
            Kind::Sentinel => {
                sentinel::check_role(self.target(), self.endpoint, client).await?;
                self.standalone(client).await?
            }
            Kind::Cluster => self.cluster(client).await?,
        };
        let operations = commands::check(client, self.plan).await?;
        let mut problem = operations.as_ref().err().cloned();
        if problem.is_none() && self.target().is_keyed() {
            problem = same_slot::check(client, self.plan).await?;
        }
        if let Some(problem) = problem {
            let message = format!("target {}: {problem}", self.target().name);
            return Err(Finding::Failed(advice::failure(FailureReason::CommandRefused, &message)).into());
        }
        let reads = operations.unwrap_or_default();
        scripts::load(self.plan, self.access, client, &topology, limit).await?;
        let named = self.may_set_name(client).await?;
        if self.target().protocol == Protocol::Resp3 {
            self.agree_on_resp3(client).await?;
        }
        Ok(FoundTarget {
            may_evict: facts.may_evict(),
            topology,
            reads,
            access: for_engine(self.plan, self.access, named),
            named,
        })
    }

    fn target(&self) -> &Target {
        &self.plan.target
    }

    /// The meaning of an error reply.
    fn refused(&self, trouble: &Trouble) -> Finding {
        let (name, said) = (&self.target().name, trouble.text());
        if trouble.is_passing() {
            Finding::Waiting(format!("target {name} is not ready yet: {said}"))
        } else if said.contains("max number of clients") {
            Finding::Obstacle(advice::refused_handshake(name, said))
        } else {
            Finding::Failed(advice::refused_credentials(name, self.access.credentials.as_ref(), trouble))
        }
    }

    fn check_facts(&self, facts: &InfoFields) -> Result<(), Finding> {
        let name = &self.target().name;
        if facts.is("loading", "1") {
            let left = facts.get("loading_eta_seconds").map_or(String::new(), |left| format!(", about {left} s left"));
            return Err(Finding::Waiting(format!("target {name} is loading its data set{left}")));
        }
        match self.target().topology {
            Kind::Standalone | Kind::Pool if facts.is("cluster_enabled", "1") => Err(wrong_topology(&format!(
                "target {name} ({}) is a node of a cluster: set spec.targets[0].type: Cluster",
                self.endpoint
            ))),
            Kind::Standalone | Kind::Pool | Kind::Cluster if facts.is_sentinel() => Err(wrong_topology(&format!(
                "target {name} ({}) is a sentinel: set spec.targets[0].type: Sentinel",
                self.endpoint
            ))),
            Kind::Cluster if facts.is("cluster_enabled", "0") => Err(self.not_a_cluster()),
            _ => Ok(()),
        }
    }

    async fn standalone(&self, client: &mut Client) -> Result<Topology, End> {
        let database = self.target().database;
        if database != 0
            && let Err(trouble) = client.ask(redis::cmd("SELECT").arg(database)).await
        {
            if trouble.code() != "ERR" {
                return Err(trouble.into());
            }
            let message = format!(
                "target {} has no database {database}: check spec.targets[0].database (reply: {})",
                self.target().name,
                trouble.text()
            );
            return Err(wrong_topology(&message).into());
        }
        let label = self.endpoint.to_string();
        let id = if is_sole_name(self.target()) { self.address.to_string() } else { label.clone() };
        let members = match client.ask(&redis::cmd("ROLE")).await {
            Ok(role) => {
                let mut members = cluster::members(&role, &label);
                members.iter_mut().take(1).for_each(|own| own.id.clone_from(&id));
                members
            }
            // A user without ROLE sees no other members.
            Err(Trouble::Refused(_)) => Vec::new(),
            Err(trouble) => return Err(trouble.into()),
        };
        let node = NodeAddress { id, address: self.address, label };
        Ok(Topology { nodes: vec![node], members, ..Topology::default() })
    }

    async fn cluster(&self, client: &mut Client) -> Result<Topology, End> {
        let map = match cluster::ask(client, self.target(), self.endpoint).await? {
            MapReply::Map(map) => map,
            // Repeats the check of INFO, which may be forbidden to the user.
            MapReply::NoCluster => return Err(self.not_a_cluster().into()),
        };
        cluster::check(self.target(), &map)?;
        Ok(cluster::topology(self.target(), map).await?)
    }

    /// Runs last, because it changes the format of replies.
    async fn agree_on_resp3(&self, client: &mut Client) -> Result<(), End> {
        match client.ask(&credentials::hello(self.access.credentials.as_ref())).await {
            Err(trouble) if matches!(trouble.code(), "ERR" | "NOPROTO") => {
                let message = format!(
                    "target {} does not support RESP3: set spec.targets[0].protocol to RESP2 (reply: {})",
                    self.target().name,
                    trouble.text()
                );
                Err(wrong_topology(&message).into())
            }
            answer => Ok(answer.map(drop)?),
        }
    }

    fn not_a_cluster(&self) -> Finding {
        wrong_topology(&format!(
            "target {} ({}) is not a cluster: set spec.targets[0].type: Standalone",
            self.target().name,
            self.endpoint
        ))
    }

    /// Returns whether the user may run CLIENT SETNAME.
    async fn may_set_name(&self, client: &mut Client) -> Result<bool, Trouble> {
        match client.ask(&set_name(self.plan)).await {
            Ok(_) => Ok(true),
            Err(Trouble::Refused(_)) => Ok(false),
            Err(silent) => Err(silent),
        }
    }
}

/// The access of the engine's connections, which set the client name if `named`.
pub(super) fn for_engine(plan: &ShardPlan, access: &TargetAccess, named: bool) -> engine::Access {
    let mut bytes = Vec::new();
    let mut replies = 0;
    let mut add = |command: &redis::Cmd| {
        bytes.extend(command.get_packed_command());
        replies += 1;
    };
    let (target, credentials) = (&plan.target, access.credentials.as_ref());
    match target.protocol {
        Protocol::Resp3 => add(&credentials::hello(credentials)),
        Protocol::Resp2 => credentials.into_iter().for_each(|credentials| add(&credentials.command())),
    }
    // No effect on a primary, which may become a replica.
    if target.read_from != ReadFrom::Primary {
        add(&redis::cmd("READONLY"));
    }
    if target.database != 0 {
        add(redis::cmd("SELECT").arg(target.database));
    }
    if named {
        add(&set_name(plan));
    }
    if let Some(caching) = &plan.workload.options.caching {
        let mut command = redis::Cmd::new();
        command.arg(caching.command());
        add(&command);
    }
    let tls = access.security.as_ref().map(|security| security.engine.clone());
    let login = credentials.map(credentials::Credentials::login);
    engine::Access { handshake: Handshake::new(bytes, replies), login, tls }
}

fn set_name(plan: &ShardPlan) -> redis::Cmd {
    let mut command = redis::cmd("CLIENT");
    command.arg("SETNAME").arg(connection_name(&plan.run, plan.shard));
    command
}

/// The name in the server's CLIENT LIST: the last characters of the run, which differ most, and the shard.
fn connection_name(run: &str, shard: u32) -> String {
    let plain: Vec<char> = run.chars().filter(char::is_ascii_graphic).collect();
    let end: String = plain.iter().skip(plain.len().saturating_sub(8)).collect();
    format!("redisbench:{end}:{shard}")
}

/// The fields of INFO. Empty if the user may not run INFO.
struct InfoFields(HashMap<String, String>);

impl InfoFields {
    async fn ask(client: &mut Client) -> Result<Self, Trouble> {
        match client.ask(&redis::cmd("INFO")).await {
            Ok(Value::BulkString(bytes)) => Ok(Self::read(&String::from_utf8_lossy(&bytes))),
            Ok(_) => Ok(Self(HashMap::new())),
            Err(trouble) if trouble.code() == "NOPERM" => Ok(Self(HashMap::new())),
            Err(trouble) => Err(trouble),
        }
    }

    fn read(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        Self(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    /// Valkey has `server_mode` instead of `redis_mode`.
    fn is_sentinel(&self) -> bool {
        self.is("redis_mode", "sentinel") || self.is("server_mode", "sentinel")
    }

    /// Returns whether the server may evict keys without an expiry. Assumed if it does not report its policy.
    fn may_evict(&self) -> bool {
        let policy = self.get("maxmemory_policy");
        !self.is("maxmemory", "0") && policy.is_none_or(|policy| policy.starts_with("allkeys-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_of_redis_and_of_valkey_say_what_they_are() {
        for (text, is_sentinel) in [
            ("redis_version:7.0.15\r\nredis_mode:sentinel\r\n", true),
            ("valkey_version:9.1.2\r\nserver_mode:sentinel\r\n", true),
            ("valkey_version:9.1.2\r\nserver_mode:standalone\r\n", false),
        ] {
            assert_eq!(InfoFields::read(text).is_sentinel(), is_sentinel, "{text}");
        }
    }

    #[test]
    fn facts_are_fields_of_info() {
        let facts = InfoFields::read("# Cluster\r\ncluster_enabled:1\r\n\r\nexecutable:/usr/bin/redis:server\r\n");
        assert!(facts.is("cluster_enabled", "1"));
        assert_eq!(facts.get("executable"), Some("/usr/bin/redis:server"));
        assert_eq!(facts.get("loading"), None);
    }

    #[test]
    fn a_server_may_evict_if_it_has_a_limit_and_takes_any_key() {
        let may = |text: &str| InfoFields::read(text).may_evict();
        assert!(may(""), "nobody knows");
        assert!(may("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n"));
        assert!(!may("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"), "no limit");
        assert!(!may("maxmemory:1000\r\nmaxmemory_policy:noeviction\r\n"));
        assert!(!may("maxmemory:1000\r\nmaxmemory_policy:volatile-lru\r\n"), "only keys that expire anyhow");
    }

    #[test]
    fn connections_are_named_after_run_and_shard() {
        assert_eq!(connection_name("01j8abcdefgh", 3), "redisbench:abcdefgh:3");
        assert_eq!(connection_name("r 1", 0), "redisbench:r1:0");
    }
}
