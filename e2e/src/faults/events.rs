//! The events of one benchmark, and a check of their consistency.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::benchmark::{phase, reason};
use crate::json::list;
use crate::namespace::TestNamespace;

pub type Told = BTreeMap<String, u64>;

/// The events of the object with this UID.
pub async fn told(namespace: &TestNamespace, uid: &str) -> Result<Told> {
    let selector = format!("involvedObject.uid={uid}");
    let events = namespace.kubectl_json(&["get", "events", "--field-selector", &selector]).await?;
    Ok(counted(&events))
}

fn counted(events: &Value) -> Told {
    let mut told = Told::new();
    for event in list(events, "/items") {
        // A repeated event is one object with a count, in one of two fields.
        let counts = [&event["series"]["count"], &event["count"]];
        let count = counts.into_iter().filter_map(Value::as_u64).max().unwrap_or(1).max(1);
        *told.entry(event["reason"].as_str().unwrap_or_default().to_owned()).or_default() += count;
    }
    told
}

/// Checks that each reason occurs once, except for those that may `repeat`, that losses of shards were reported, and that the event of the
/// end matches the phase.
pub fn check(told: &Told, repeat: &[&str], object: &Value) -> Result<()> {
    for (reason, count) in told {
        ensure!(*count == 1 || repeat.contains(&reason.as_str()), "{reason} was reported {count} times: {told:?}");
    }
    let lost = object.pointer("/status/shards/lost").and_then(Value::as_u64).unwrap_or(0);
    ensure!(lost == 0 || told.contains_key("ShardLost"), "{lost} shards are lost, but no event reports it: {told:?}");
    let end = match phase(object) {
        "Failed" => reason(object, "Failed").unwrap_or_default().to_owned(),
        other => other.to_owned(),
    };
    ensure!(told.contains_key(&end), "no event reports {end}: {told:?}");
    let others = ["Succeeded", "Aborted", "Failed"].into_iter().filter(|other| **other != end);
    let contradicting: Vec<&str> = others.filter(|other| told.contains_key(*other)).collect();
    ensure!(contradicting.is_empty(), "it finished as {end}, but events report {contradicting:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_and_contradicting_events_are_found() {
        let object = json!({"status": {"phase": "Succeeded"}});
        let events = |reasons: &[&str]| {
            let items: Vec<Value> = reasons.iter().map(|reason| json!({"reason": reason})).collect();
            counted(&json!({"items": items}))
        };
        check(&events(&["Started", "Succeeded"]), &[], &object).unwrap();
        check(&events(&["Started", "Started", "Succeeded"]), &["Started"], &object).unwrap();
        for wrong in [&["Started"][..], &["Started", "Started", "Succeeded"], &["Succeeded", "Aborted"]] {
            assert!(check(&events(wrong), &[], &object).is_err(), "{wrong:?}");
        }
        let series = counted(&json!({"items": [{"reason": "Started", "series": {"count": 3}}]}));
        assert_eq!(series["Started"], 3);
    }
}
