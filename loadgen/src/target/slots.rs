//! The answer to `CLUSTER SLOTS`: which primary owns which slots. Pure.

use redis::Value;

use super::endpoint::Endpoint;
use crate::cluster::{SLOTS, UNCOVERED};

/// A primary as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    /// The node's id.
    pub id: String,
    /// Where clients should connect.
    pub endpoint: Endpoint,
}

/// The primaries and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    /// In the order of their first slot.
    pub primaries: Vec<Primary>,
    /// Per slot an index into `primaries`, or [`UNCOVERED`].
    pub slots: Box<[u16; SLOTS]>,
}

impl SlotMap {
    /// How many slots nobody owns.
    pub fn uncovered(&self) -> usize {
        self.slots.iter().filter(|slot| **slot == UNCOVERED).count()
    }

    /// Reads the answer. `asked` is whom we asked: a node that does not know its own address leaves it out.
    pub fn read(answer: &Value, asked: &Endpoint) -> Option<Self> {
        let slots = vec![UNCOVERED; SLOTS].into_boxed_slice().try_into().ok()?;
        let mut map = Self { primaries: Vec::new(), slots };
        let Value::Array(ranges) = answer else { return None };
        let mut ranges = ranges.iter().map(|range| read_range(range, asked)).collect::<Option<Vec<_>>>()?;
        ranges.sort_by_key(|(first, ..)| *first);
        for (first, last, primary) in ranges {
            let known = map.primaries.iter().position(|present| present.id == primary.id);
            let index = known.unwrap_or_else(|| {
                map.primaries.push(primary);
                map.primaries.len() - 1
            });
            // A cluster has at most as many primaries as slots.
            map.slots.get_mut(first..=last)?.fill(u16::try_from(index).ok()?);
        }
        Some(map)
    }
}

fn read_range(range: &Value, asked: &Endpoint) -> Option<(usize, usize, Primary)> {
    let Value::Array(fields) = range else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = fields.as_slice() else { return None };
    let [host, Value::Int(port), rest @ ..] = primary.as_slice() else { return None };
    // Nil or empty: the address that we reached it by. "?": a name that was promised and not set.
    let host = text(host).filter(|host| !host.is_empty() && host != "?").unwrap_or_else(|| asked.host().to_owned());
    let endpoint = Endpoint::new(&host, u16::try_from(*port).ok()?);
    let id = rest.first().and_then(text).unwrap_or_else(|| endpoint.to_string());
    let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
    (first <= last).then_some((first, last, Primary { id, endpoint }))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn node(host: Value, port: i64, id: &str) -> Value {
        Value::Array(vec![host, Value::Int(port), bulk(id), Value::Array(vec![])])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    fn asked() -> Endpoint {
        Endpoint::new("seed", 7000)
    }

    #[test]
    fn primaries_own_their_ranges() {
        let answer = Value::Array(vec![
            range(8192, 16383, vec![node(bulk("10.0.0.2"), 7001, "b"), node(bulk("10.0.0.3"), 7002, "replica")]),
            range(0, 99, vec![node(bulk("10.0.0.1"), 7000, "a")]),
            range(100, 8191, vec![node(bulk("10.0.0.1"), 7000, "a")]),
        ]);
        let map = SlotMap::read(&answer, &asked()).unwrap();
        let ids: Vec<_> = map.primaries.iter().map(|primary| primary.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!((map.slots[0], map.slots[8191], map.slots[8192], map.slots[16383]), (0, 0, 1, 1));
        assert_eq!(map.uncovered(), 0);
    }

    #[test]
    fn a_node_without_an_address_is_the_one_we_asked() {
        for host in [Value::Nil, bulk(""), bulk("?")] {
            let map = SlotMap::read(&Value::Array(vec![range(0, 1, vec![node(host, 7009, "a")])]), &asked()).unwrap();
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
            assert_eq!(SlotMap::read(&answer, &asked()), None, "{answer:?}");
        }
        assert_eq!(SlotMap::read(&Value::Array(vec![]), &asked()).unwrap().uncovered(), SLOTS);
    }
}
