//! Rules of `targets`.

use super::super::forms::union;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    const TARGET: &str = "spec.targets.[]";
    const TRANSPORT: &str = "spec.targets.[].sentinel.transport";
    let mut rules = vec![
        Rule::new(
            TARGET,
            "database",
            "self.type != 'Cluster' || self.database == 0",
            "is %s, and must be 0 for type Cluster, which has no other",
        )
        .showing(["self.database"]),
        Rule::new(
            TARGET,
            "endpoints",
            "self.type != 'Standalone' || self.endpoints.size() == 1",
            "has %s entries, and must have exactly one for type Standalone: only one can be loaded",
        )
        .showing(["self.endpoints.size()"]),
    ];
    let sentinel = "sentinel: {masterName: mymaster}";
    let pool = "pool: {distribution: ByKey}";
    rules.extend(union(
        TARGET,
        "type",
        &[("cluster", &["Cluster"], ""), ("sentinel", &["Sentinel"], sentinel), ("pool", &["Pool"], pool)],
    ));
    rules.push(Rule::new(
        SPEC,
        "targets",
        "self.verify.mode == 'None' || self.targets.all(target, !has(target.pool) || target.pool.distribution == 'ByKey')",
        "has a pool with distribution Even, whose servers may hold a key's writes for a while before others have them: set \
         verify.mode to None, or distribution to ByKey",
    ));
    rules.extend(union(TRANSPORT, "type", &[("tls", &["TLS"], "tls: {}")]));
    rules.extend(["spec.targets.[].tls", "spec.targets.[].sentinel.transport.tls"].map(|tls| {
        Rule::new(
            tls,
            "caSecretRef",
            "!self.insecureSkipVerify || !has(self.caSecretRef)",
            "must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        )
    }));
    rules
}
