//! Reads a cluster's map from a node, and selects the nodes that the load uses.

use redis::Value;
use redisbench_wire::plan::{ReadFrom, Target};

use super::advice;
use super::client::{self, Client, text};
use super::end::End;
use super::endpoint::Endpoint;
use super::finding::{Finding, wrong_topology};
use super::map::{ClusterMap, MapNode};
use super::trouble::Trouble;
use crate::cluster::{Member, NodeAddress, SLOTS, Topology, UNCOVERED};

/// A node's reply about its cluster's map.
pub enum MapReply {
    Map(ClusterMap),
    /// The server has cluster support disabled.
    NoCluster,
}

/// Uses `CLUSTER SHARDS`, available since Redis 7, or `CLUSTER SLOTS` where that is unknown or forbidden.
pub async fn ask(client: &mut Client, target: &Target, asked: &Endpoint) -> Result<MapReply, End> {
    match client.ask(redis::cmd("CLUSTER").arg("SHARDS")).await {
        Ok(answer) => read(target, "SHARDS", ClusterMap::of_shards(&answer, asked, target.tls.is_some())),
        Err(Trouble::Refused(said)) if said.contains("cluster support disabled") => Ok(MapReply::NoCluster),
        // Unknown to an older server, or forbidden to the user.
        Err(Trouble::Refused(_)) => match client.ask(redis::cmd("CLUSTER").arg("SLOTS")).await {
            Err(Trouble::Refused(said)) if said.contains("cluster support disabled") => Ok(MapReply::NoCluster),
            answer => read(target, "SLOTS", ClusterMap::of_slots(&answer?, asked)),
        },
        Err(trouble) => Err(trouble.into()),
    }
}

fn read(target: &Target, command: &str, map: Option<ClusterMap>) -> Result<MapReply, End> {
    let message = || format!("target {}: failed to parse its reply to CLUSTER {command}", target.name);
    map.map(MapReply::Map).ok_or_else(|| wrong_topology(&message()).into())
}

/// Fails if a load cannot begin with the map.
pub fn check(target: &Target, map: &ClusterMap) -> Result<(), Finding> {
    let name = &target.name;
    let uncovered = map.uncovered();
    if uncovered > 0 {
        // A cluster may still be forming.
        let message = format!(
            "target {name}: {uncovered} of 16384 slots have no primary: repair the cluster, wait until it has formed, \
             or use another in spec.targets[0].endpoints"
        );
        return Err(Finding::Obstacle(advice::wrong_topology(&message)));
    }
    if target.read_from == ReadFrom::Replica {
        let without = |primary: usize| !map.replicas.iter().any(|(of, replica)| *of == primary && replica.healthy);
        let lonely: Vec<usize> = (0..map.primaries.len()).filter(|primary| without(*primary)).collect();
        if let Some(first) = lonely.first() {
            let slots = map.slots.iter().filter(|slot| lonely.contains(&usize::from(**slot))).count();
            let message = format!(
                "target {name}: {slots} of 16384 slots have no replica available, such as those of {}: set \
                 spec.targets[0].cluster.readFrom to PreferReplica or Primary, or give every primary a replica",
                map.primaries[*first].endpoint
            );
            let failure = advice::wrong_topology(&message);
            // A replica that is loading or unreachable may return.
            let may_come = lonely.iter().all(|primary| map.replicas.iter().any(|(of, _)| of == primary));
            return Err(if may_come { Finding::Obstacle(failure) } else { Finding::Failed(failure) });
        }
    }
    Ok(())
}

/// The servers that the load uses, and all members.
pub async fn topology(target: &Target, map: ClusterMap) -> Result<Topology, Finding> {
    let mut nodes = Vec::with_capacity(map.primaries.len());
    for primary in &map.primaries {
        nodes.push(locate(target, primary).await?);
    }
    let readers = match target.read_from {
        ReadFrom::Primary => None,
        from => Some(readers(target, &map, &mut nodes, from == ReadFrom::PreferReplica).await?),
    };
    let member =
        |primary, node: MapNode| Member { label: label(target, &node), id: node.id, primary, healthy: node.healthy };
    let primaries = map.primaries.into_iter().map(|node| member(true, node));
    let replicas = map.replicas.into_iter().map(|(_, node)| member(false, node));
    let members = primaries.chain(replicas).chain(map.idle.into_iter().map(|(primary, node)| member(primary, node)));
    let members = members.collect();
    Ok(Topology { nodes, slots: Some(map.slots), readers, members, even: false })
}

/// The node that serves reads of each slot. The replicas of a primary share its slots.
async fn readers(
    target: &Target,
    map: &ClusterMap,
    nodes: &mut Vec<NodeAddress>,
    fall_back: bool,
) -> Result<Box<[u16; SLOTS]>, Finding> {
    let mut replicas: Vec<Vec<u16>> = vec![Vec::new(); map.primaries.len()];
    for (of, replica) in map.replicas.iter().filter(|(_, replica)| replica.healthy) {
        // A cluster has far fewer nodes; the engine refuses a larger number than it can index.
        replicas[*of].push(u16::try_from(nodes.len()).unwrap_or(UNCOVERED));
        nodes.push(locate(target, replica).await?);
    }
    let mut readers = map.slots.clone();
    for (slot, reader) in readers.iter_mut().enumerate().filter(|(_, owner)| **owner != UNCOVERED) {
        let replicas = &replicas[usize::from(*reader)];
        match replicas.len() {
            0 if fall_back => {}
            0 => *reader = UNCOVERED,
            count => *reader = replicas[slot % count],
        }
    }
    Ok(readers)
}

/// The node's reachable address as text.
fn label(target: &Target, node: &MapNode) -> String {
    let announced = node.endpoint.to_string();
    target.reachable(&announced).map_or(announced, str::to_owned)
}

async fn locate(target: &Target, node: &MapNode) -> Result<NodeAddress, Finding> {
    let (name, label) = (&target.name, label(target, node));
    let Ok(endpoint) = label.parse::<Endpoint>() else {
        let message = format!("target {name}: the address of a node, {label}, is not of the form host:port");
        return Err(wrong_topology(&message));
    };
    match endpoint.resolve().await {
        Ok(addresses) => Ok(NodeAddress { id: node.id.clone(), address: addresses[0], label }),
        Err(error) => Err(Finding::Obstacle(advice::not_resolved(name, &label, &client::name(&error)))),
    }
}

/// A standalone server and its replicas, from its ROLE. Empty if the user may not run ROLE.
pub fn members(role: &Value, own: &str) -> Vec<Member> {
    let Value::Array(fields) = role else { return Vec::new() };
    let member = |label: String, primary| Member { id: label.clone(), label, primary, healthy: true };
    let is_primary = matches!(fields.first(), Some(Value::BulkString(role)) if role == b"master");
    let mut members = vec![member(own.to_owned(), is_primary)];
    if let (true, Some(Value::Array(replicas))) = (is_primary, fields.get(2)) {
        members.extend(replicas.iter().filter_map(|replica| {
            let Value::Array(fields) = replica else { return None };
            let [host, port, ..] = fields.as_slice() else { return None };
            Some(member(Endpoint::new(text(host)?, text(port)?.parse().ok()?).to_string(), false))
        }));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn node(id: &str, port: u16, healthy: bool) -> MapNode {
        MapNode { id: id.into(), endpoint: Endpoint::new("127.0.0.1", port), healthy }
    }

    /// Two primaries. The first has two replicas, and `healthy` of them serve.
    fn map(healthy: usize) -> ClusterMap {
        let mut slots: Box<[u16; SLOTS]> = vec![0; SLOTS].into_boxed_slice().try_into().unwrap();
        slots[8192..].fill(1);
        ClusterMap {
            primaries: vec![node("a", 1, true), node("b", 2, true)],
            slots,
            replicas: (0..2).map(|at| (0, node(&format!("r{at}"), 3 + at, usize::from(at) < healthy))).collect(),
            idle: vec![(true, node("i", 9, true))],
        }
    }

    fn target(read_from: ReadFrom) -> Target {
        Target { read_from, ..sample::plan().target.clone() }
    }

    #[tokio::test]
    async fn replicas_are_known_and_not_used_unless_they_are_read_from() {
        let found = topology(&target(ReadFrom::Primary), map(2)).await.unwrap();
        assert_eq!((found.nodes.len(), found.readers.as_ref(), found.counts()), (2, None, (2, 2)));
        assert_eq!(found.members.len(), 5);
    }

    #[tokio::test]
    async fn replicas_share_the_reads_of_their_primary() {
        let found = topology(&target(ReadFrom::PreferReplica), map(2)).await.unwrap();
        let readers = found.readers.unwrap();
        let ids = |slot: usize| found.nodes[usize::from(readers[slot])].id.as_str();
        assert_eq!([ids(0), ids(1), ids(2), ids(8192)], ["r0", "r1", "r0", "b"]);
        let readers = topology(&target(ReadFrom::PreferReplica), map(1)).await.unwrap().readers.unwrap();
        assert_eq!((readers[0], readers[1]), (2, 2), "not the one that does not serve");
        let readers = topology(&target(ReadFrom::Replica), map(0)).await.unwrap().readers.unwrap();
        assert_eq!((readers[0], readers[8192]), (UNCOVERED, UNCOVERED));
    }

    #[test]
    fn a_slot_without_a_replica_is_refused_where_one_is_to_be_read() {
        assert!(check(&target(ReadFrom::PreferReplica), &map(0)).is_ok());
        let refused = check(&target(ReadFrom::Replica), &map(2));
        let Err(Finding::Failed(failure)) = refused else { panic!("{refused:?}") };
        assert!(failure.message.contains("8192 of 16384 slots have no replica"), "{}", failure.message);
        assert!(failure.message.contains("127.0.0.1:2") && failure.message.contains("readFrom"), "{}", failure.message);
        let mut waiting = map(0);
        waiting.replicas.push((1, node("s", 5, true)));
        assert!(matches!(check(&target(ReadFrom::Replica), &waiting), Err(Finding::Obstacle(_))));
    }

    #[test]
    fn a_server_tells_who_follows_it() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let replica = Value::Array(vec![bulk("10.0.0.2"), bulk("6380"), bulk("99")]);
        let role = Value::Array(vec![bulk("master"), Value::Int(99), Value::Array(vec![replica])]);
        let told: Vec<_> = members(&role, "h:1").into_iter().map(|member| (member.label, member.primary)).collect();
        assert_eq!(told, [("h:1".to_owned(), true), ("10.0.0.2:6380".to_owned(), false)]);
        let role = Value::Array(vec![bulk("slave"), bulk("h"), Value::Int(1)]);
        assert!(!members(&role, "h:1")[0].primary);
        assert_eq!(members(&Value::Nil, "h:1"), []);
    }
}
