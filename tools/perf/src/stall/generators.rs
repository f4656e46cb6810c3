//! The available generators: their command lines and the parsing of their output.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::load::{LENGTH, RATE};
use crate::clients::{Client, Load};
use crate::local;
use crate::machine::COMMIT;
use crate::servers::Servers;

/// Latencies that a generator reports, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reported {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Debug)]
pub struct Generator {
    pub name: &'static str,
    /// The command line of a run.
    pub line: String,
    /// The command line that prints the version.
    pub version: String,
    pub read: fn(&str) -> Option<Reported>,
    /// True if it has a rate.
    pub keeps_rate: bool,
    pub note: &'static str,
}

/// The client libraries that run under `kubectl redisbench local`, and their types in a manifest.
const LIBRARIES: [(&str, &str); 3] = [("redis-rs", "RedisRs"), ("fred", "Fred"), ("smart-batching", "SmartBatching")];

/// All, ours first. Writes manifests to `folder`.
pub fn all(servers: &Servers, resp_benchmark: Option<&Path>, folder: &Path) -> anyhow::Result<Vec<Generator>> {
    let (port, load) = (servers.port(), Load { rate: Some((RATE, 0)), ..Load::closed("get", 1, RATE * LENGTH) });
    let mut all = vec![Generator {
        name: "redisbench",
        line: Client::Ours.line(servers, &load),
        version: COMMIT.1.to_owned(),
        read: ours,
        keeps_rate: true,
        note: "the bare engine; latency from the due time",
    }];
    for (name, kind) in LIBRARIES {
        let file = folder.join(format!("{name}.yaml"));
        let manifest = local::reads(port, &open_loop(name, kind)).to_string();
        std::fs::write(&file, manifest).with_context(|| format!("failed to write {}", file.display()))?;
        all.push(Generator {
            name,
            line: format!("kubectl-redisbench local --plain -o json -f {}", file.display()),
            version: COMMIT.1.to_owned(),
            read: library,
            keeps_rate: true,
            note: "a library of `load.clients` on 50 connections; latency from the due time",
        });
    }
    all.extend(resp_benchmark.map(|path| Generator {
        name: "resp-benchmark",
        line: format!(
            "{} -p {port} -c 50 -t {RATE} -s {LENGTH} --cores 0 \"GET {{key uniform 100000}}\"",
            path.display()
        ),
        version: format!("{} -v", path.display()),
        read: resp,
        keeps_rate: true,
        note: "limits the rate; latency from the send; prints average and p99 only",
    }));
    all.push(Generator {
        name: "redis-benchmark",
        // These take about ten seconds.
        line: format!("redis-benchmark -p {port} -c 50 -n 1000000 -r 100000 -d 100 -t get"),
        version: "redis-benchmark --version".to_owned(),
        read: redis_benchmark,
        keeps_rate: false,
        note: "has no rate option: a closed loop at full speed",
    });
    Ok(all)
}

fn open_loop(name: &str, kind: &str) -> Value {
    json!({
        "type": "OpenLoop",
        "openLoop": {"rate": RATE},
        "connections": 50,
        "clients": [{"name": name, "type": kind, "pool": {"size": 50}}],
        "warmup": "0s",
        "duration": format!("{LENGTH}s"),
    })
}

/// The number after `name`, in a text like `p50 12 us, p99 34 us`.
fn after(text: &str, name: &str) -> Option<f64> {
    let rest = text.split(name).nth(1)?.trim_start_matches([' ', ':']);
    rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?.parse().ok()
}

fn ours(output: &str) -> Option<Reported> {
    let line = output.lines().find_map(|line| line.strip_prefix("response time: "))?;
    let [mean, p50, p99, p999, max] =
        ["mean ", "p50 ", "p99 ", "p99.9 ", "max "].map(|name| Some(after(line, name)? / 1000.0));
    Some(Reported { mean, p50, p99, p999, max })
}

/// The object on standard output, which standard error follows.
fn library(output: &str) -> Option<Reported> {
    let object: Value = serde_json::Deserializer::from_str(output).into_iter().next()?.ok()?;
    let times = &object["status"]["result"]["responseTime"];
    let [mean, p50, p99, p999, max] = ["mean", "p50", "p99", "p999", "max"]
        .map(|name| Some(times[format!("{name}Nanoseconds")].as_u64()? as f64 / 1e6));
    Some(Reported { mean, p50, p99: Some(p99?), p999, max })
}

/// Its last line has the figures of the whole run.
fn resp(output: &str) -> Option<Reported> {
    let line = output.lines().rfind(|line| line.contains("p99:"))?;
    Some(Reported { mean: after(line, "avg:"), p99: after(line, "p99:"), ..Reported::default() })
}

fn redis_benchmark(output: &str) -> Option<Reported> {
    let mut lines = output.lines().skip_while(|line| !line.contains("latency summary (msec)")).skip(2);
    let numbers: Vec<Option<f64>> = lines.next()?.split_whitespace().map(|word| word.parse().ok()).collect();
    let [mean, _, p50, _, p99, max] = numbers[..] else { return None };
    // Its list of percentiles lacks this one: use the first at or above it.
    let percentile = |line: &str| {
        let (percent, rest) = line.split_once("% <= ")?;
        let at_least = percent.trim().parse::<f64>().is_ok_and(|percent| percent >= 99.9);
        if at_least { rest.split(' ').next()?.parse().ok() } else { None }
    };
    let p999 = output.split(['\n', '\r']).find_map(percentile);
    Some(Reported { mean, p50, p99, p999, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_is_read() {
        let text =
            "1 requests\nresponse time: mean 13912.5 us, p50 104 us, p99 412000 us, p99.9 491000 us, max 500100 us\n";
        let [mean, p50, p99, p999, max] = [13.9125, 0.104, 412.0, 491.0, 500.1].map(Some);
        assert_eq!(ours(text), Some(Reported { mean, p50, p99, p999, max }));

        let times = json!({"meanNanoseconds": 14_000_000, "p50Nanoseconds": 104_000, "p99Nanoseconds": 412_000_000});
        let text = format!("{}\nmachine: busy\n", json!({"status": {"result": {"responseTime": times}}}));
        let (mean, p50, p99) = (Some(14.0), Some(0.104), Some(412.0));
        assert_eq!(library(&text), Some(Reported { mean, p50, p99, ..Reported::default() }));
        assert_eq!(library("error: no port"), None);

        let text = "\u{1b}[Fqps: 19887(overall 19991), conn: 50, cnt: 55920, avg: 0.41ms, p99: 4.3ms\n\
                    qps: 19991, conn: 50, cnt: 60054, avg: 0.40ms, p99: 4.2ms\n";
        assert_eq!(resp(text), Some(Reported { mean: Some(0.4), p99: Some(4.2), ..Reported::default() }));

        let text = "====== GET ======\nLatency by percentile distribution:\n99.871% <= 18.111 milliseconds (cumulative count 9)\n\
                    99.902% <= 19.103 milliseconds (cumulative count 9)\n99.943% <= 20.111 milliseconds\n\nSummary:\n  \
                    throughput summary: 44964.03 requests per second\n  latency summary (msec):\n          avg       min\n\
                    \x20       0.745     0.120     0.575     1.031     5.175    23.263\n";
        let [mean, p50, p99, p999, max] = [0.745, 0.575, 5.175, 19.103, 23.263].map(Some);
        assert_eq!(redis_benchmark(text), Some(Reported { mean, p50, p99, p999, max }));
        assert_eq!((ours(""), resp(""), redis_benchmark("")), (None, None, None));
    }
}
