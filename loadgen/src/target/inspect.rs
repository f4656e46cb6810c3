//! One look at the target: asks its endpoints in order until one answers, and compares the answer with the plan.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use redis::Value;
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{ShardPlan, Target, Topology as Kind};

use super::advice;
use super::client::{self, Client, Trouble};
use super::commands;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::slots::SlotMap;
use super::{Finding, Found};
use crate::cluster::{NodeAddress, Topology};
use crate::engine::Handshake;

/// Connecting to one address, whatever the plan allows: others are waiting.
const CONNECT_AT_MOST: Duration = Duration::from_secs(5);

type Checked<T> = Result<T, Finding>;

/// Looks at the target. `known` are the nodes of an earlier look; they are asked if the endpoints do not answer.
pub async fn look(plan: &ShardPlan, credentials: Option<&Credentials>, known: Option<&Topology>) -> Finding {
    let target = &plan.target;
    let mut endpoints = target.endpoints.iter().map(String::as_str).collect::<Vec<_>>();
    if target.topology == Kind::Standalone {
        endpoints.truncate(1);
    }
    endpoints.extend(known.iter().flat_map(|known| &known.nodes).map(|node| node.label.as_str()));
    let connect_limit = Duration::from_nanos(plan.timeouts.connect_nanoseconds).min(CONNECT_AT_MOST);
    let mut last = None;
    for text in endpoints {
        let Ok(endpoint) = text.parse::<Endpoint>() else {
            let message = format!("spec.targets[0].endpoints: {text} is not of the form host:port");
            return Finding::Failed(advice::failure(FailureReason::BadPlan, &message));
        };
        let addresses = match endpoint.resolve().await {
            Ok(addresses) => addresses,
            Err(error) => {
                // An endpoint that does not answer says more than one that has no address.
                last.get_or_insert(advice::not_resolved(&target.name, text, &client::name(&error)));
                continue;
            }
        };
        for address in addresses {
            let look = Look { plan, credentials, endpoint: &endpoint, address };
            match look.connect_and_inspect(connect_limit).await {
                Ok(found) => return Finding::Found(found),
                Err(Unanswered::Silent(what)) => last = Some(advice::unreachable(&target.name, text, &what)),
                Err(Unanswered::Judged(finding)) => return finding,
            }
        }
    }
    Finding::Obstacle(last.unwrap_or_else(|| advice::unreachable(&target.name, "none", "the list is empty")))
}

/// Why one address gave no target.
enum Unanswered {
    /// It did not answer: another may.
    Silent(String),
    /// It answered, and that decides.
    Judged(Finding),
}

impl From<Finding> for Unanswered {
    fn from(finding: Finding) -> Self {
        Self::Judged(finding)
    }
}

struct Look<'a> {
    plan: &'a ShardPlan,
    credentials: Option<&'a Credentials>,
    endpoint: &'a Endpoint,
    address: SocketAddr,
}

impl Look<'_> {
    async fn connect_and_inspect(&self, limit: Duration) -> Result<Found, Unanswered> {
        let mut client = match Client::connect(self.address, limit).await {
            Ok(client) => client,
            Err(trouble) => return Err(self.judge(trouble)),
        };
        match self.inspect(&mut client).await {
            Ok(found) => Ok(found?),
            Err(trouble) => Err(self.judge(trouble)),
        }
    }

    fn target(&self) -> &Target {
        &self.plan.target
    }

    /// The outer error is a question that was not answered, the inner one an answer that does not fit.
    async fn inspect(&self, client: &mut Client) -> Result<Checked<Found>, Trouble> {
        if let Some(credentials) = self.credentials {
            client.ask(&credentials.command()).await?;
        }
        let facts = Facts::ask(client).await?;
        if let Err(finding) = self.check_facts(&facts) {
            return Ok(Err(finding));
        }
        let topology = match self.target().topology {
            Kind::Standalone => {
                if let Err(finding) = self.select(client).await? {
                    return Ok(Err(finding));
                }
                self.standalone()
            }
            Kind::Cluster => match self.cluster(client).await? {
                Ok(topology) => topology,
                Err(finding) => return Ok(Err(finding)),
            },
        };
        if let Some(problem) = commands::check(client, &self.plan.workload).await? {
            let message = format!("target {}: {problem}: check spec.workload.operations", self.target().name);
            return Ok(Err(Finding::Failed(advice::failure(FailureReason::CommandRefused, &message))));
        }
        let handshake = self.handshake(client).await?;
        Ok(Ok(Found { topology, handshake }))
    }

    /// What an unanswered or refused question means.
    fn judge(&self, trouble: Trouble) -> Unanswered {
        let name = &self.target().name;
        if let Trouble::Silent(what) = trouble {
            return Unanswered::Silent(what);
        }
        Unanswered::Judged(match trouble.code() {
            "LOADING" | "BUSY" | "MASTERDOWN" => {
                Finding::Waiting(format!("target {name} is not ready yet: {}", trouble.text()))
            }
            _ if trouble.text().contains("max number of clients") => {
                Finding::Obstacle(advice::refused_handshake(name, trouble.text()))
            }
            _ => Finding::Failed(advice::refused_credentials(name, self.credentials, &trouble)),
        })
    }

    fn check_facts(&self, facts: &Facts) -> Checked<()> {
        let name = &self.target().name;
        if facts.is("loading", "1") {
            let left = facts.get("loading_eta_seconds").map_or(String::new(), |left| format!(", about {left} s left"));
            return Err(Finding::Waiting(format!("target {name} is loading its data set{left}")));
        }
        match self.target().topology {
            Kind::Standalone if facts.is("cluster_enabled", "1") => Err(wrong_topology(&format!(
                "target {name} ({}) is a node of a cluster: set spec.targets[0].type: Cluster",
                self.endpoint
            ))),
            Kind::Cluster if facts.is("cluster_enabled", "0") => Err(wrong_topology(&format!(
                "target {name} ({}) is not a cluster: set spec.targets[0].type: Standalone",
                self.endpoint
            ))),
            _ => Ok(()),
        }
    }

    async fn select(&self, client: &mut Client) -> Result<Checked<()>, Trouble> {
        let database = self.target().database;
        if database == 0 {
            return Ok(Ok(()));
        }
        match client.ask(redis::cmd("SELECT").arg(database)).await {
            Ok(_) => Ok(Ok(())),
            Err(Trouble::Refused(said)) if said.starts_with("ERR") => Ok(Err(wrong_topology(&format!(
                "target {} has no database {database}: check spec.targets[0].database (it said: {said})",
                self.target().name
            )))),
            Err(trouble) => Err(trouble),
        }
    }

    fn standalone(&self) -> Topology {
        let label = self.endpoint.to_string();
        Topology { nodes: vec![NodeAddress { id: label.clone(), address: self.address, label }], slots: None }
    }

    async fn cluster(&self, client: &mut Client) -> Result<Checked<Topology>, Trouble> {
        let name = &self.target().name;
        let answer = match client.ask(redis::cmd("CLUSTER").arg("SLOTS")).await {
            // INFO may be forbidden to the user; this says the same.
            Err(Trouble::Refused(said)) if said.contains("cluster support disabled") => {
                return Ok(Err(wrong_topology(&format!(
                    "target {name} ({}) is not a cluster: set spec.targets[0].type: Standalone",
                    self.endpoint
                ))));
            }
            answer => answer?,
        };
        let Some(map) = SlotMap::read(&answer, self.endpoint) else {
            return Ok(Err(wrong_topology(&format!("target {name}: its answer to CLUSTER SLOTS was not understood"))));
        };
        let uncovered = map.uncovered();
        if uncovered > 0 {
            // A cluster that is being formed gets there.
            return Ok(Err(Finding::Obstacle(advice::wrong_topology(&format!(
                "target {name}: {uncovered} of 16384 slots have no primary: repair the cluster, or wait until it is \
                 formed"
            )))));
        }
        let mut nodes = Vec::with_capacity(map.primaries.len());
        for primary in map.primaries {
            let label = primary.endpoint.to_string();
            match primary.endpoint.resolve().await.as_deref() {
                Ok([address, ..]) => nodes.push(NodeAddress { id: primary.id, address: *address, label }),
                Ok([]) => return Ok(Err(Finding::Obstacle(advice::not_resolved(name, &label, "no address")))),
                Err(error) => {
                    return Ok(Err(Finding::Obstacle(advice::not_resolved(name, &label, &client::name(error)))));
                }
            }
        }
        Ok(Ok(Topology { nodes, slots: Some(map.slots) }))
    }

    /// What every connection of the engine says first. The name is left out where the user may not set it.
    async fn handshake(&self, client: &mut Client) -> Result<Handshake, Trouble> {
        let mut bytes = Vec::new();
        let mut replies = 0;
        let mut add = |command: &redis::Cmd| {
            bytes.extend(command.get_packed_command());
            replies += 1;
        };
        if let Some(credentials) = self.credentials {
            add(&credentials.command());
        }
        if self.target().database != 0 {
            add(redis::cmd("SELECT").arg(self.target().database));
        }
        let mut set_name = redis::cmd("CLIENT");
        set_name.arg("SETNAME").arg(connection_name(&self.plan.run, self.plan.shard));
        match client.ask(&set_name).await {
            Ok(_) => add(&set_name),
            Err(Trouble::Refused(_)) => {}
            Err(silent) => return Err(silent),
        }
        Ok(Handshake::new(bytes, replies))
    }
}

fn wrong_topology(message: &str) -> Finding {
    Finding::Failed(advice::wrong_topology(message))
}

/// How the load shows in the server's CLIENT LIST: the end of the run, which differs most, and the shard.
fn connection_name(run: &str, shard: u32) -> String {
    let plain: Vec<char> = run.chars().filter(char::is_ascii_graphic).collect();
    let end: String = plain.iter().skip(plain.len().saturating_sub(8)).collect();
    format!("redisbench:{end}:{shard}")
}

/// The fields of INFO. Empty if the user may not ask.
struct Facts(HashMap<String, String>);

impl Facts {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_fields_of_info() {
        let facts = Facts::read("# Cluster\r\ncluster_enabled:1\r\n\r\nexecutable:/usr/bin/redis:server\r\n");
        assert!(facts.is("cluster_enabled", "1"));
        assert_eq!(facts.get("executable"), Some("/usr/bin/redis:server"));
        assert_eq!(facts.get("loading"), None);
    }

    #[test]
    fn connections_are_named_after_run_and_shard() {
        assert_eq!(connection_name("01j8abcdefgh", 3), "redisbench:abcdefgh:3");
        assert_eq!(connection_name("r 1", 0), "redisbench:r1:0");
    }
}
