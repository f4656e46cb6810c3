//! Diagnostics of a failed test, on standard error.

use crate::cluster::{OPERATOR, SYSTEM};
use crate::tools::kubectl;

/// Prints the benchmarks, pods, events and logs of the namespace `name`, and the operator's log since the test `began`.
pub async fn dump(name: &str, began: k8s_openapi::jiff::Timestamp) {
    let since = format!("--since-time={began}");
    let questions: [(&str, Vec<&str>); 7] = [
        ("benchmarks", vec!["-n", name, "get", "redisbenchmarks", "-o", "yaml"]),
        ("children", vec!["-n", name, "get", "pods,jobs,configmaps,secrets", "-o", "wide"]),
        ("pods", vec!["-n", name, "describe", "pods"]),
        ("events", vec!["-n", name, "get", "events", "--sort-by=.lastTimestamp"]),
        (
            "shard logs",
            vec![
                "-n",
                name,
                "logs",
                "-l",
                "batch.kubernetes.io/job-name",
                "--prefix",
                "--tail=60",
                "--max-log-requests=20",
            ],
        ),
        ("operator", vec!["-n", SYSTEM, "get", "pods", "-o", "wide"]),
        ("operator log", vec!["-n", SYSTEM, "logs", "-l", OPERATOR, "--prefix", "--tail=300", &since]),
    ];
    for (title, arguments) in questions {
        let answer = match kubectl(&arguments).await {
            Ok(text) => text,
            Err(error) => format!("{error:#}"),
        };
        eprintln!("--- {title} of {name}\n{answer}");
    }
}
