//! The `configuration` of memtier's JSON, from a spec. Settings without a counterpart have the value that memtier writes for an unused one.

use redisbench_benchmark::api::keys::KeyPatternType;
use redisbench_benchmark::api::values::ValueSizeType;
use redisbench_benchmark::api::{GoDuration, RedisBenchmarkSpec};
use redisbench_wire::plan::Protocol;
use serde_json::{Value, json};

/// Empty without a spec.
pub fn configuration(spec: Option<&RedisBenchmarkSpec>) -> Value {
    let Some(spec) = spec else { return json!({}) };
    let (load, workload) = (&spec.load, &spec.workload);
    let target = spec.targets.first();
    let endpoint = target.and_then(|target| target.endpoints.first()).map_or("", String::as_str);
    let socket = endpoint.strip_prefix("unix:").unwrap_or_default();
    let (host, port) = endpoint.rsplit_once(':').filter(|_| socket.is_empty()).unwrap_or_default();
    let tls = target.and_then(|target| target.tls.as_ref());
    let threads = spec.shards.count.max(1);
    let clients = load.connections / threads;
    let rate = load.open_loop.as_ref().and_then(|open| open.rate).unwrap_or(0).saturating_add(workload.own_rates());
    let weight = |command: &str| {
        let starts = |text: &str| text.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(command));
        // An operation with a rate of its own is in no mix.
        let mixed = workload.operations.iter().filter(|operation| operation.rate.is_none());
        let matching = mixed.filter(|operation| starts(&operation.command));
        matching.map(|operation| u64::from(operation.weight)).sum::<u64>()
    };
    let size = &workload.values.size;
    let range = size.range.filter(|_| size.kind == ValueSizeType::Range);
    let sizes = size.weighted.iter().map(|one| format!("{}:{}", one.bytes, one.weight)).collect::<Vec<_>>().join(",");
    let (ttl, file) = (workload.values.ttl.as_ref(), workload.values.file());
    let pattern = &workload.keys.pattern;
    let letter = match pattern.kind {
        KeyPatternType::Uniform | KeyPatternType::HotSet => "R",
        KeyPatternType::Sequential => "S",
        KeyPatternType::Partitioned => "P",
        KeyPatternType::Gaussian => "G",
        KeyPatternType::Zipf => "Z",
    };
    let exponent: f64 = pattern.zipf.as_ref().and_then(|zipf| zipf.exponent.parse().ok()).unwrap_or(0.0);
    let gaussian = pattern.gaussian.unwrap_or_default();
    json!({
        "server": host.trim_matches(['[', ']']),
        "port": port.parse::<u16>().unwrap_or(0),
        "uri": "",
        "unix socket": socket,
        "address family": "Unspecified",
        "protocol": if target.is_some_and(|target| target.protocol == Protocol::Resp3) { "resp3" } else { "resp2" },
        "out_file": "",
        "tls": tls.is_some().to_string(),
        "cert": "",
        "key": "",
        "cacert": "",
        "tls_skip_verify": tls.is_some_and(|tls| tls.insecure_skip_verify).to_string(),
        "sni": tls.and_then(|tls| tls.server_name.as_deref()).unwrap_or_default(),
        "client_stats": "",
        "run_count": 1,
        "debug": 0,
        "requests": requests_per_connection(spec).unwrap_or(0),
        "rate_limit": rate / u64::from(load.connections.max(1)),
        "clients": clients,
        "threads": threads,
        "test_time": load.duration.as_ref().map_or(0, seconds),
        "ratio": format!("{}:{}", weight("SET"), weight("GET")),
        "pipeline": load.pipeline,
        "data_size": size.fixed.filter(|_| file.is_none()).map_or(0, |fixed| fixed.bytes),
        "data_offset": 0,
        "random_data": file.is_none().to_string(),
        "data_size_range": range.map_or("0:0".to_owned(), |range| format!("{}:{}", range.min_bytes, range.max_bytes)),
        "data_size_list": sizes,
        "data_size_pattern": "R",
        "expiry_range": ttl.map_or("0:0".to_owned(), |ttl| format!("{}:{}", seconds(&ttl.min), seconds(&ttl.max))),
        "data_import": file.map_or("", |file| file.key.as_str()),
        "data_verify": "false",
        "verify_only": "false",
        "generate_keys": "false",
        "key_prefix": if workload.keys.file.is_some() { "" } else { workload.keys.prefix.as_str() },
        "key_minimum": workload.keys.start,
        "key_maximum": workload.keys.start.saturating_add(workload.keys.count.saturating_sub(1)),
        "key_pattern": format!("{letter}:{letter}"),
        "key_stddev": gaussian.standard_deviation.unwrap_or(0),
        "key_median": gaussian.mean.unwrap_or(0),
        "key_zipf_exp": exponent,
        "reconnect_interval": 0,
        "connection_timeout": 0,
        "thread_conn_start_min_jitter_micros": 0,
        "thread_conn_start_max_jitter_micros": 0,
        "multi_key_get": 0,
        "select-db": target.map_or(0, |target| target.database),
        "no-expiry": "false",
        "wait-ratio": "0:0",
        "num-slaves": "0:0",
        "wait-timeout": "0-0",
        "print-all-runs": "false",
    })
}

/// Requests per connection, if a number of requests ends the load.
pub fn requests_per_connection(spec: &RedisBenchmarkSpec) -> Option<u64> {
    let total = spec.load.requests.map(|requests| requests / u64::from(spec.load.connections.max(1)));
    spec.load.requests_per_connection.or(total)
}

fn seconds(duration: &GoDuration) -> u64 {
    duration.parse().map_or(0, |length| length.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    #[test]
    fn the_ratio_is_that_of_the_mix() {
        let text = "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {name: a}
spec:
  targets: [{name: redis, type: Standalone, endpoints: ['redis:6379']}]
  workload:
    operations:
    - {name: set, weight: 2, command: SET __key__ __data__}
    - {name: get, weight: 8, command: get __key__}
    - {name: tenant, rate: 100, command: GET a}
  load: {type: OpenLoop, openLoop: {rate: 900}, connections: 10, duration: 10s}
";
        let configuration = configuration(Some(&parse(text).unwrap().benchmark.spec));
        assert_eq!((&configuration["ratio"], &configuration["rate_limit"]), (&json!("2:8"), &json!(100)));
    }
}
