//! Diagnostics of a failed test, on standard error.

use crate::cluster::{OPERATOR, SYSTEM};
use crate::tools::kubectl;

/// Prints the benchmarks, pods, events and logs of the namespace `name`, and the operator's log since the test `began`.
pub async fn dump(name: &str, began: k8s_openapi::jiff::Timestamp) {
    let shard_logs = "logs -l batch.kubernetes.io/job-name --prefix --tail=60 --max-log-requests=20";
    let operator_log = format!("logs -l {OPERATOR} --prefix --tail=300 --since-time={began}");
    let questions: [(&str, &str, &str); 7] = [
        ("benchmarks", name, "get redisbenchmarks -o yaml"),
        ("children", name, "get pods,jobs,configmaps,secrets -o wide"),
        ("pods", name, "describe pods"),
        ("events", name, "get events --sort-by=.lastTimestamp"),
        ("shard logs", name, shard_logs),
        ("operator", SYSTEM, "get pods -o wide"),
        ("operator log", SYSTEM, &operator_log),
    ];
    for (title, namespace, command) in questions {
        let arguments: Vec<&str> = ["-n", namespace].into_iter().chain(command.split(' ')).collect();
        let answer = kubectl(&arguments).await.unwrap_or_else(|error| format!("{error:#}"));
        eprintln!("--- {title} of {name}\n{answer}");
    }
}
