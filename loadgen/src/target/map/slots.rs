//! The answer to `CLUSTER SLOTS`.

use redis::Value;

use super::part::{MapNode, MapShard, endpoint, range};
use crate::target::client::text;
use crate::target::endpoint::Endpoint;

pub(super) fn read(answer: &Value, asked: &Endpoint) -> Option<Vec<MapShard>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(|range| part(range, asked)).collect()
}

fn part(fields: &Value, asked: &Endpoint) -> Option<MapShard> {
    let Value::Array(fields) = fields else { return None };
    let [first, last, primary, replicas @ ..] = fields.as_slice() else { return None };
    Some(MapShard {
        ranges: vec![range(first, last)?],
        primary: node(primary, asked)?,
        replicas: replicas.iter().map(|replica| node(replica, asked)).collect::<Option<_>>()?,
    })
}

fn node(fields: &Value, asked: &Endpoint) -> Option<MapNode> {
    let Value::Array(fields) = fields else { return None };
    let [host, Value::Int(port), rest @ ..] = fields.as_slice() else { return None };
    let endpoint = endpoint(host, *port, asked)?;
    let id = rest.first().and_then(text).map_or_else(|| endpoint.to_string(), str::to_owned);
    Some(MapNode { id, endpoint, healthy: true })
}

#[cfg(test)]
mod tests {
    use super::super::ClusterMap;
    use super::super::testing::{asked, bulk};
    use super::*;
    use crate::cluster::SLOTS;

    fn node(host: Value, port: i64, id: &str) -> Value {
        Value::Array(vec![host, Value::Int(port), bulk(id), Value::Array(vec![])])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    #[test]
    fn primaries_own_their_ranges() {
        let answer = Value::Array(vec![
            range(8192, 16383, vec![node(bulk("10.0.0.2"), 7001, "b"), node(bulk("10.0.0.3"), 7002, "replica")]),
            range(0, 99, vec![node(bulk("10.0.0.1"), 7000, "a")]),
            range(100, 8191, vec![node(bulk("10.0.0.1"), 7000, "a")]),
        ]);
        let map = ClusterMap::of_slots(&answer, &asked()).unwrap();
        let ids: Vec<_> = map.primaries.iter().map(|primary| primary.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!((map.slots[0], map.slots[8191], map.slots[8192], map.slots[16383]), (0, 0, 1, 1));
        assert_eq!(map.uncovered(), 0);
        let [(of, replica)] = map.replicas.as_slice() else { panic!("{:?}", map.replicas) };
        assert_eq!((*of, replica.id.as_str(), replica.endpoint.to_string()), (1, "replica", "10.0.0.3:7002".into()));
    }

    #[test]
    fn a_node_without_an_address_is_the_one_we_asked() {
        for host in [Value::Nil, bulk(""), bulk("?")] {
            let answer = Value::Array(vec![range(0, 1, vec![node(host, 7009, "a")])]);
            let map = ClusterMap::of_slots(&answer, &asked()).unwrap();
            assert_eq!(map.primaries[0].endpoint, Endpoint::new("seed", 7009));
            assert_eq!(map.uncovered(), SLOTS - 2);
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_none() {
        let answers = [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16384, vec![node(bulk("h"), 1, "a")])]),
            Value::Array(vec![range(5, 4, vec![node(bulk("h"), 1, "a")])]),
            Value::Array(vec![range(0, 4, vec![node(bulk("h"), 70000, "a")])]),
            Value::Array(vec![range(0, 4, vec![])]),
        ];
        for answer in answers {
            assert_eq!(ClusterMap::of_slots(&answer, &asked()), None, "{answer:?}");
        }
        assert_eq!(ClusterMap::of_slots(&Value::Array(vec![]), &asked()).unwrap().uncovered(), SLOTS);
    }
}
