//! Rules of `thresholds`.

use super::super::forms::union;
use super::super::rule::Rule;

pub(super) fn all() -> Vec<Rule> {
    const THRESHOLD: &str = "spec.thresholds.[]";
    let members: [(&str, &[&str], &str); 4] = [
        ("quantile", &["ResponseTime", "ServiceTime"], "\"0.99\""),
        ("max", &["ResponseTime", "ServiceTime"], "2ms"),
        ("maxBasisPoints", &["ErrorRate"], "1"),
        ("minPerSecond", &["Throughput"], "10000"),
    ];
    let mut rules = union(THRESHOLD, "metric", &members);
    rules.extend([
        Rule::new(
            THRESHOLD,
            "operation",
            "!self.eachNode || !has(self.operation)",
            "is not supported with eachNode: remove one of the two",
        ),
        Rule::new(
            THRESHOLD,
            "metric",
            "!self.eachNode || self.metric != 'ResponseTime'",
            "ResponseTime is not supported with eachNode, because a node's part begins when the request is sent: set \
             ServiceTime",
        ),
    ]);
    rules
}
