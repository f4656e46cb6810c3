//! The report of a baseline, as text and as JSON.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use anyhow::Context as _;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::human::{latency, rate};
use serde::Serialize;

use crate::arguments::Output;
use crate::render::{self, Grid, Paint};

/// From here on, a component is likely the limit.
const BUSY_PERCENT: u64 = 90;
/// The same for all processors. Lower, because the interval begins before the load does.
const ALL_BUSY_PERCENT: u64 = 80;

#[derive(Debug)]
pub struct Run<'a> {
    pub benchmark: &'a RedisBenchmark,
    /// CPU time of all workers.
    pub cpu_nanoseconds: u64,
    pub length: Duration,
    /// CPU time of all its threads during the run.
    pub null_server_cpu: Duration,
    /// The number of the null server's threads.
    pub threads: usize,
    /// Busy time of all processors, including other programs, in per cent.
    pub processors_busy_percent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Target rate in requests per second. None in a closed loop.
    pub target_per_second: Option<u64>,
    pub achieved_per_second: u64,
    pub cpu_nanoseconds_per_request: u64,
    pub p50_nanoseconds: Option<u64>,
    pub p99_nanoseconds: Option<u64>,
    pub busiest_worker_percent: u32,
    /// CPU usage of the null server's threads.
    pub null_server_busy_percent: u64,
    /// Usage of all processors, including other programs.
    pub processors_busy_percent: u64,
    /// The share of all processors used by load generator and null server.
    pub own_percent: u64,
    pub limited_by: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Limit {
    /// The target rate was met.
    Rate,
    /// A worker was saturated.
    LoadGenerator,
    /// The null server was saturated, so the load generator could do more.
    NullServer,
    /// All processors were busy. Load generator and null server share them with the other programs on this machine.
    Processors,
    /// None was saturated: the number of requests in flight was the limit.
    InFlight,
}

impl Figures {
    /// None if the run has no result.
    pub fn of(run: &Run<'_>) -> Option<Self> {
        let status = run.benchmark.status.as_ref().filter(|status| status.phase == Phase::Succeeded)?;
        let result = status.result.as_ref()?;
        let succeeded = result.requests.succeeded;
        let share = |time: Duration, of: usize| {
            let whole = run.length.as_nanos() * of.max(1) as u128;
            u64::try_from(time.as_nanos() * 100 / whole.max(1)).unwrap_or(u64::MAX)
        };
        let throughput = &result.throughput;
        let target = throughput.target_per_second;
        let busiest = result.shards.iter().map(|shard| shard.busiest_worker_percent).max().unwrap_or(0);
        let null_server = share(run.null_server_cpu, run.threads);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let own = share(Duration::from_nanos(run.cpu_nanoseconds) + run.null_server_cpu, processors);
        let achieved = throughput.achieved_per_second;
        Some(Self {
            target_per_second: target,
            achieved_per_second: achieved,
            cpu_nanoseconds_per_request: run.cpu_nanoseconds / succeeded.max(1),
            p50_nanoseconds: result.response_time.p50_nanoseconds,
            p99_nanoseconds: result.response_time.p99_nanoseconds,
            busiest_worker_percent: busiest,
            null_server_busy_percent: null_server,
            processors_busy_percent: run.processors_busy_percent,
            own_percent: own,
            limited_by: match target {
                // The same criterion as in the verdict.
                Some(target) if achieved * 100 >= target * 99 => Limit::Rate,
                _ if u64::from(busiest) >= BUSY_PERCENT => Limit::LoadGenerator,
                _ if null_server >= BUSY_PERCENT => Limit::NullServer,
                _ if run.processors_busy_percent >= ALL_BUSY_PERCENT => Limit::Processors,
                _ => Limit::InFlight,
            },
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    name: String,
    /// From a closed loop.
    pub at_most: Option<Figures>,
    /// At the manifest's rate. None if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Figures>,
}

impl Baseline {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), at_most: None, as_written: None }
    }

    pub fn print(&self, output: Output) -> anyhow::Result<()> {
        let text = match output {
            Output::Table => self.text(Paint::for_stream(io::IsTerminal::is_terminal(&io::stdout()))),
            Output::Json => serde_json::to_string_pretty(self).context("failed to write the baseline as JSON")? + "\n",
            Output::Yaml => serde_yaml::to_string(self).context("failed to write the baseline as YAML")?,
        };
        render::write(text)
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = format!("{}: its load against a server that does no work, on this machine\n", self.name);
        let heads = ["requests", "CPU per request", "p50", "p99", "busiest worker", "null server"];
        let mut grid = Grid::new("Baseline", &heads);
        let rows = [("maximum, in a closed loop", &self.at_most), ("as in the manifest", &self.as_written)];
        for (name, figures) in rows {
            let Some(figures) = figures else { continue };
            let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), latency);
            grid.row([
                name.to_owned(),
                rate(figures.achieved_per_second),
                latency(figures.cpu_nanoseconds_per_request),
                known(figures.p50_nanoseconds),
                known(figures.p99_nanoseconds),
                format!("{} %", figures.busiest_worker_percent),
                format!("{} %", figures.null_server_busy_percent),
            ]);
        }
        text.push_str(&grid.text(paint));
        text.push('\n');
        if let Some(most) = &self.at_most {
            let _ = writeln!(text, "{}", sentence(most));
        }
        if let Some(written) = &self.as_written {
            let _ = writeln!(text, "{}", sentence(written));
        }
        text.push_str(
            "Latency above these values is added by Redis or the network. This machine cannot generate rates above \
             these.\n",
        );
        text
    }
}

/// The meaning of the figures, in a sentence.
fn sentence(figures: &Figures) -> String {
    let achieved = rate(figures.achieved_per_second);
    let p99 = figures.p99_nanoseconds.map_or_else(|| "-".to_owned(), latency);
    match (figures.limited_by, figures.target_per_second) {
        (Limit::Rate, _) => {
            format!("The manifest's rate is met, and the p99 of {p99} is due to the load generator and this machine.")
        }
        (_, Some(target)) => format!(
            "The manifest's rate of {} is not met even by a server that does no work: it reaches {achieved}.",
            rate(target)
        ),
        (Limit::LoadGenerator, _) => {
            format!("This machine's load generator reaches at most {achieved} with this load: a worker was saturated.")
        }
        (Limit::NullServer, _) => format!(
            "This machine's load generator reaches at least {achieved} with this load: the null server limited it."
        ),
        (Limit::Processors, _) => format!(
            "This machine's load generator reaches at most {achieved} beside a server that does no work: all \
             processors were busy, and these two used {} %.",
            figures.own_percent
        ),
        (Limit::InFlight, _) => format!(
            "With this many requests in flight, this machine's load generator reaches at most {achieved}. Nothing was \
             saturated: use more connections or a deeper pipeline."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(limited_by: Limit) -> Figures {
        Figures {
            target_per_second: None,
            achieved_per_second: 412_000,
            cpu_nanoseconds_per_request: 2_310,
            p50_nanoseconds: Some(81_000),
            p99_nanoseconds: Some(190_000),
            busiest_worker_percent: 98,
            null_server_busy_percent: 61,
            processors_busy_percent: 97,
            own_percent: 80,
            limited_by,
        }
    }

    #[test]
    fn a_person_reads_what_the_machine_can_do() {
        let written = Figures { target_per_second: Some(5_000), achieved_per_second: 5_000, ..figures(Limit::Rate) };
        let at_most = Some(figures(Limit::LoadGenerator));
        let baseline = Baseline { name: "b".into(), at_most, as_written: Some(written) };
        assert_eq!(
            baseline.text(Paint::for_stream(false)),
            "b: its load against a server that does no work, on this machine\n\n\
             Baseline                    requests   CPU per request       p50      p99   busiest worker   null server\n\
             maximum, in a closed loop     412k/s           2.31 µs   81.0 µs   190 µs             98 %          61 %\n\
             as in the manifest           5.00k/s           2.31 µs   81.0 µs   190 µs             98 %          61 %\n\n\
             This machine's load generator reaches at most 412k/s with this load: a worker was saturated.\n\
             The manifest's rate is met, and the p99 of 190 µs is due to the load generator and this machine.\n\
             Latency above these values is added by Redis or the network. This machine cannot generate rates above \
             these.\n"
        );
    }

    #[test]
    fn a_rate_out_of_reach_is_named() {
        let missed = Figures { target_per_second: Some(1_000_000), ..figures(Limit::Processors) };
        let said = sentence(&missed);
        assert!(said.contains("1.00M/s is not met") && said.contains("412k/s"), "{said}");
    }
}
