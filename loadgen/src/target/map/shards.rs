//! The answer to `CLUSTER SHARDS`: lists of names and values. Newer servers may add more.

use redis::Value;

use super::part::{MapNode, MapShard, endpoint, range};
use crate::target::client::text;
use crate::target::endpoint::Endpoint;

pub(super) fn read(answer: &Value, asked: &Endpoint, tls: bool) -> Option<Vec<MapShard>> {
    let Value::Array(shards) = answer else { return None };
    let mut parts = Vec::with_capacity(shards.len());
    for shard in shards {
        add_part(&mut parts, shard, asked, tls)?;
    }
    Some(parts)
}

/// Adds nothing if the shard has no primary.
fn add_part(parts: &mut Vec<MapShard>, shard: &Value, asked: &Endpoint, tls: bool) -> Option<()> {
    let Value::Array(slots) = field(shard, "slots")? else { return None };
    let Value::Array(nodes) = field(shard, "nodes")? else { return None };
    let ranges = slots.chunks(2).map(|pair| range(pair.first()?, pair.get(1)?)).collect::<Option<_>>()?;
    let nodes = nodes.iter().map(|fields| node(fields, asked, tls)).collect::<Option<Vec<_>>>()?;
    let (mut primaries, mut replicas): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|(primary, _)| *primary);
    // A replaced primary may still be listed; the healthy one has the slots.
    primaries.sort_by_key(|(_, node)| !node.healthy);
    let mut primaries = primaries.into_iter().map(|(_, node)| node);
    let Some(primary) = primaries.next() else { return Some(()) };
    replicas.extend(primaries.map(|node| (false, node)));
    let replicas = replicas.into_iter().map(|(_, node)| node).collect();
    parts.push(MapShard { ranges, primary, replicas });
    Some(())
}

fn node(fields: &Value, asked: &Endpoint, tls: bool) -> Option<(bool, MapNode)> {
    let port = |name| match field(fields, name) {
        Some(Value::Int(port)) if *port > 0 => Some(*port),
        _ => None,
    };
    let (wanted, other) = if tls { ("tls-port", "port") } else { ("port", "tls-port") };
    let host = field(fields, "endpoint").unwrap_or(&Value::Nil);
    let endpoint = endpoint(host, port(wanted).or_else(|| port(other))?, asked)?;
    let told = |name| field(fields, name).and_then(text);
    let id = told("id").map_or_else(|| endpoint.to_string(), str::to_owned);
    let healthy = told("health").is_none_or(|health| health == "online");
    Some((told("role")? == "master", MapNode { id, endpoint, healthy }))
}

/// The value after `name` in a list of names and values.
fn field<'v>(pairs: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Array(pairs) = pairs else { return None };
    pairs.chunks(2).find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| pair.get(1))
}

#[cfg(test)]
mod tests {
    use super::super::ClusterMap;
    use super::super::testing::{asked, bulk};
    use super::*;

    fn node(id: &str, host: &str, role: &str, health: &str) -> Value {
        let fields = [
            ("id", bulk(id)),
            ("port", Value::Int(7001)),
            ("tls-port", Value::Int(7002)),
            ("ip", bulk("10.0.0.9")),
            ("endpoint", bulk(host)),
            ("role", bulk(role)),
            ("replication-offset", Value::Int(5)),
            ("health", bulk(health)),
        ];
        Value::Array(fields.into_iter().flat_map(|(name, value)| [bulk(name), value]).collect())
    }

    fn shard(slots: &[i64], nodes: Vec<Value>) -> Value {
        let slots = slots.iter().map(|slot| Value::Int(*slot)).collect();
        Value::Array(vec![bulk("slots"), Value::Array(slots), bulk("nodes"), Value::Array(nodes)])
    }

    #[test]
    fn nodes_are_told_with_their_part_and_health() {
        let answer = Value::Array(vec![
            shard(&[], vec![node("new", "10.0.0.4", "master", "online")]),
            shard(
                &[8192, 16383],
                vec![node("r", "10.0.0.3", "replica", "loading"), node("b", "b", "master", "online")],
            ),
            shard(&[0, 99, 200, 8191], vec![node("a", "", "master", "fail")]),
        ]);
        let map = ClusterMap::of_shards(&answer, &asked(), false).unwrap();
        let told: Vec<_> = map.primaries.iter().map(|node| (node.id.as_str(), node.healthy)).collect();
        assert_eq!(told, [("a", false), ("b", true)]);
        assert_eq!(map.primaries[0].endpoint, Endpoint::new("seed", 7001));
        assert_eq!((map.slots[0], map.slots[8191], map.slots[16383], map.uncovered()), (0, 0, 1, 100));
        let [(1, replica)] = map.replicas.as_slice() else { panic!("{:?}", map.replicas) };
        assert_eq!((replica.id.as_str(), replica.healthy), ("r", false));
        assert_eq!(
            map.idle.iter().map(|(primary, node)| (*primary, node.id.as_str())).collect::<Vec<_>>(),
            [(true, "new")]
        );
        let secure = ClusterMap::of_shards(&answer, &asked(), true).unwrap();
        assert_eq!(secure.primaries[1].endpoint, Endpoint::new("b", 7002));
    }

    #[test]
    fn the_slots_of_a_shard_are_those_of_its_primary_that_serves() {
        let nodes = vec![node("old", "h", "master", "fail"), node("heir", "h", "master", "online")];
        let map = ClusterMap::of_shards(&Value::Array(vec![shard(&[0, 16383], nodes)]), &asked(), false).unwrap();
        assert_eq!((map.primaries[0].id.as_str(), map.replicas[0].1.id.as_str()), ("heir", "old"));
    }

    #[test]
    fn an_answer_of_another_shape_is_none() {
        let good = vec![node("a", "h", "master", "online")];
        for answer in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![shard(&[0], good.clone())]),
            Value::Array(vec![shard(&[0, 16384], good)]),
            Value::Array(vec![shard(&[0, 1], vec![Value::Array(vec![bulk("id")])])]),
        ] {
            assert_eq!(ClusterMap::of_shards(&answer, &asked(), false), None, "{answer:?}");
        }
    }
}
