//! `--baseline`: the manifest's load against a server that does no work, on this machine. The result is the load generator's own limit: no
//! measurement of a Redis from here can show more.

mod null_server;
mod report;

use std::path::Path;
use std::time::Duration;

use redisbench_benchmark::api::GoDuration;
use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::load::{LoadType, WarmupEnds};
use redisbench_benchmark::api::spec::CleanupSpec;
use redisbench_benchmark::api::verify::VerifySpec;
use redisbench_benchmark::api::workload::PreloadSpec;
use redisbench_wire::plan::{Lines, Topology};

use super::measure::measure;
use super::order::Order;
use super::shards;
use crate::arguments::LocalArguments;
use crate::exit::{BAD, GOOD, USAGE};
use crate::interrupt::Interrupts;
use crate::progress::Display;
use crate::validate;
use null_server::{NullServerOptions, NullServerProcess};
use report::{Baseline, Figures, Run};

/// The longest run of a baseline, even if the manifest's load is longer.
const LONGEST: Duration = Duration::from_secs(10);
/// The number of primaries that the null server simulates if the target is a cluster.
const PRIMARIES: u16 = 3;

/// Runs the load, and prints the limits of this machine.
///
/// # Errors
/// If something other than the benchmark fails: the null server, the load generator, standard output.
pub async fn perform(
    arguments: &LocalArguments,
    order: &Order,
    interrupts: &Interrupts,
    display: &mut Display,
) -> anyhow::Result<u8> {
    let program = shards::find_load_generator(arguments.loadgen.as_deref(), order.plan.needs_clients())?;
    let is_open = order.benchmark.spec.load.kind == LoadType::OpenLoop;
    // A fixed rate does not show the maximum, so a closed loop runs first.
    let edited = order.edited(at_most).and_then(|most| Ok((most, order.edited(shortened)?)));
    let (most, written) = match edited {
        Ok(orders) => orders,
        Err(problems) => {
            validate::report(arguments.file.as_deref(), &problems);
            return Ok(USAGE);
        }
    };
    let mut baseline = Baseline::new(order.name());
    for (order, is_most) in [(most, true), (written, false)] {
        if !is_most && !is_open {
            continue;
        }
        display.note(if is_most { "baseline: maximum rate" } else { "baseline: the manifest's load" });
        let Some(figures) = Box::pin(run(&program, order, interrupts, display)).await? else {
            return Ok(BAD);
        };
        if is_most { baseline.at_most = Some(figures) } else { baseline.as_written = Some(figures) }
    }
    display.clear();
    baseline.print(arguments.output)?;
    Ok(GOOD)
}

/// Runs once against a new null server. None if it had no result; the reason was printed.
async fn run(
    program: &Path,
    mut order: Order,
    interrupts: &Interrupts,
    display: &mut Display,
) -> anyhow::Result<Option<Figures>> {
    let options = options(&order);
    let null_server = NullServerProcess::start(program, options).await?;
    order.redirect(null_server.endpoints());
    let length = Duration::from_nanos(order.plan.largest().plan.bound.longest_nanoseconds());
    let before = null_server.cpu();
    let times = ProcessorTimes::now();
    let (benchmark, outcome) = Box::pin(measure(program, order, interrupts, display, None)).await?;
    let null_server_cpu = null_server.cpu().saturating_sub(before);
    let processors_busy_percent = times.busy_percent_until(ProcessorTimes::now());
    null_server.stop().await;
    let snapshots = outcome.shards.iter().filter_map(|shard| shard.snapshot.as_ref());
    let cpu_nanoseconds = snapshots.map(|snapshot| snapshot.generator.cpu_nanoseconds).sum();
    let run = Run {
        benchmark: &benchmark,
        cpu_nanoseconds,
        length,
        null_server_cpu,
        threads: options.threads,
        processors_busy_percent,
    };
    let figures = Figures::of(&run);
    if figures.is_none() {
        display.clear();
        crate::render::print(&benchmark, crate::arguments::Output::Table)?;
    }
    Ok(figures)
}

/// CPU time of all processors since boot, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessorTimes {
    idle: u64,
    all: u64,
}

impl ProcessorTimes {
    /// Zero if the kernel does not report them.
    fn now() -> Self {
        Self::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; guest time is included in the first two.
        let times: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
        Self { idle: times.iter().skip(3).take(2).sum(), all: times.iter().sum() }
    }

    fn busy_percent_until(self, later: Self) -> u64 {
        let all = later.all.saturating_sub(self.all);
        all.saturating_sub(later.idle.saturating_sub(self.idle)) * 100 / all.max(1)
    }
}

/// A null server that is not the limit: it needs less CPU per request than a worker, and gets the remaining processors.
fn options(order: &Order) -> NullServerOptions {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = order.workers() as usize * order.plan.largest().plan.shards as usize;
    NullServerOptions {
        nodes: match order.plan.largest().plan.target.topology {
            Topology::Standalone | Topology::Sentinel | Topology::Pool => 0,
            Topology::Cluster => PRIMARIES,
        },
        // All its replies have the same length.
        value_bytes: u32::try_from(mean_bytes(order)).unwrap_or(u32::MAX),
        threads: processors.saturating_sub(workers).max(1),
    }
}

/// The same load, shortened and without additional work, which a server that keeps no keys does not need.
fn shortened(spec: &mut RedisBenchmarkSpec) {
    let load = &mut spec.load;
    let written = load.duration.as_ref().and_then(|duration| duration.parse().ok()).unwrap_or(LONGEST);
    load.duration = Some(GoDuration::from(written.min(LONGEST)));
    load.requests = None;
    load.requests_per_connection = None;
    load.max_duration = None;
    // For a search, the lowest rate: it shows the load generator's own share in the objective.
    let searched = spec.search.take().map(|search| search.rate.min);
    // For stages, the highest rate throughout.
    let rates = std::mem::take(&mut load.stages).into_iter().flat_map(|stage| [stage.rate.from, stage.rate.to]);
    if let Some(highest) = rates.chain(searched).max() {
        // All of its fields have defaults.
        load.open_loop = load.open_loop.take().or_else(|| serde_json::from_str("{}").ok());
        if let Some(open_loop) = &mut load.open_loop {
            open_loop.rate = Some(highest);
        }
    }
    load.warmup = GoDuration::from(Duration::ZERO);
    load.warmup_ends = WarmupEnds::ByTime;
    spec.preload = PreloadSpec::default();
    spec.cleanup = CleanupSpec::default();
    // The null server keeps no keys, so verification would report all of them as lost.
    spec.verify = VerifySpec::default();
    // It tracks no keys either, and connections that it closes would tell nothing of the load generator.
    spec.workload.caching = None;
    spec.load.connection_lifetime = None;
    spec.load.nodes_per_shard = None;
}

/// The same load as a closed loop, for the maximum rate.
fn at_most(spec: &mut RedisBenchmarkSpec) {
    shortened(spec);
    spec.load.kind = LoadType::ClosedLoop;
    spec.load.open_loop = None;
    spec.workload.operations.iter_mut().for_each(|operation| operation.rate = None);
}

/// The mean length of values, or that of the lines of the file that they come from.
fn mean_bytes(order: &Order) -> u64 {
    let Some((_, text)) = order.files.iter().find(|(name, _)| *name == Lines::VALUES_FILE) else {
        return order.plan.largest().plan.workload.values.size.mean();
    };
    let bytes: usize = text.lines().map(str::len).sum();
    (bytes / text.lines().count().max(1)) as u64
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::RedisBenchmarkSpec;
    use serde_json::json;

    use super::{ProcessorTimes, shortened};

    #[test]
    fn of_stages_the_highest_rate_is_run() {
        let mut spec: RedisBenchmarkSpec = serde_json::from_value(json!({
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "OpenLoop", "stages": [
                {"duration": "1h", "rate": {"from": 100, "to": 900}},
                {"duration": "1h", "rate": {"from": 900, "to": 10}},
            ]},
        }))
        .unwrap();
        shortened(&mut spec);
        assert_eq!(spec.load.open_loop.and_then(|open_loop| open_loop.rate), Some(900));
        assert!(spec.load.stages.is_empty() && spec.load.duration.is_some_and(|length| length.as_str() == "10s"));
    }

    #[test]
    fn processors_are_busy_when_they_are_neither_idle_nor_waiting() {
        let before = ProcessorTimes::read("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let after = ProcessorTimes::read("cpu  140 10 110 720 110 0 5 5 0 0\n");
        assert_eq!(before.busy_percent_until(after), 70);
        assert_eq!(ProcessorTimes::read("").busy_percent_until(ProcessorTimes::default()), 0);
    }
}
