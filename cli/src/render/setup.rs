//! The setup, and a summary of the result.

use std::fmt::Write as _;

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::load::{LoadSpec, LoadType, RampSpec, StageSpec, WarmupEnds};
use redisbench_benchmark::api::spec::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{LimitedBy, Phase, VerdictValue};

use super::paint::{Paint, Style};
use super::search;
use redisbench_benchmark::human::{count, counted, latency, rate};
use redisbench_wire::plan::{Arrival, PipelineMode};

/// The most ConfigMaps that are listed.
const LISTED_MAPS: usize = 16;

/// The first lines: verdict, rate, p99, errors, and the limiting factor.
pub fn headline(benchmark: &RedisBenchmark, paint: Paint) -> String {
    let name = benchmark.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &benchmark.status else { return format!("{}\n", paint.apply(Style::Bold, name)) };
    let verdict = status.verdict.as_ref();
    let (word, style) = outcome(status);
    let mut line = format!("{}   {}", paint.apply(Style::Bold, name), paint.apply(style, &word));
    if let Some(summary) = status.summary.as_ref().filter(|_| status.result.is_some()) {
        for (label, value) in [("", &summary.rate), ("p99 ", &summary.p99), ("errors ", &summary.errors)] {
            if let Some(value) = value {
                let _ = write!(line, "   {label}{}", paint.apply(Style::Bold, value));
            }
        }
    }
    if let Some(found) = &status.search {
        let _ = write!(line, "   {}", search::answer(found, paint));
    } else if !status.searches.is_empty() {
        let _ = write!(line, "   {}", counted(status.searches.len() as u64, "search"));
    }
    line.push('\n');
    if let Some(failed) = status.conditions.iter().find(|condition| condition.type_ == "Failed")
        && failed.status == "True"
    {
        let _ = writeln!(line, "  {}: {}", paint.apply(Style::Bad, &failed.reason), failed.message);
    }
    for reason in verdict.iter().flat_map(|verdict| &verdict.reasons) {
        let name = paint.apply(verdict_style(reason.severity), &format!("{:?}", reason.reason));
        let _ = writeln!(line, "  {name}: {}", reason.message);
    }
    if let Some(verdict) = verdict.filter(|_| status.result.is_some()) {
        let _ = writeln!(
            line,
            "  {}",
            paint.apply(Style::Dim, &limited_by(verdict.limited_by, verdict.component.as_deref()))
        );
    }
    line
}

fn outcome(status: &RedisBenchmarkStatus) -> (String, Style) {
    match (status.phase, status.verdict.as_ref()) {
        (Phase::Succeeded, Some(verdict)) => (format!("{:?}", verdict.value), verdict_style(verdict.value)),
        (phase @ (Phase::Failed | Phase::Aborted), _) => (format!("{phase:?}"), Style::Bad),
        (phase, _) => (format!("{phase:?}"), Style::Bold),
    }
}

fn verdict_style(value: VerdictValue) -> Style {
    match value {
        VerdictValue::Valid => Style::Good,
        VerdictValue::Degraded => Style::Doubtful,
        VerdictValue::Invalid => Style::Bad,
    }
}

/// The component between load generator and servers.
const PATH: &str = "Path";

pub fn limited_by(limit: LimitedBy, component: Option<&str>) -> String {
    let what = match limit {
        // The usual wording does not fit this component.
        LimitedBy::Target if component == Some(PATH) => {
            return "limited by the path to the servers: proxy, network or disk (Path)".to_owned();
        }
        LimitedBy::Unknown if component == Some(PATH) => {
            return "limited by the path to the servers: proxy, network or disk. It may be the load generator's own \
                    link: set measurement.linkCapacity to rule this out (Path)"
                .to_owned();
        }
        LimitedBy::Rate => "limited by the requested rate, which was met",
        LimitedBy::Target => "limited by the target",
        LimitedBy::GeneratorCPU => "limited by the load generator's CPU, not by the target",
        LimitedBy::Client => "limited by the client under test",
        LimitedBy::GeneratorNetwork => "limited by the load generator's network, not by the target",
        LimitedBy::Connections => "limited by the connections: more of them, or more in flight, would be faster",
        LimitedBy::Unknown => "limiting factor unknown: the evidence is inconclusive",
    };
    component.map_or_else(|| what.to_owned(), |component| format!("{what} ({component})"))
}

/// Target, load and shards, one line each.
pub fn setup(benchmark: &RedisBenchmark, paint: Paint) -> String {
    let spec = &benchmark.spec;
    let mut text = String::from("\n");
    for target in &spec.targets {
        let endpoints = target.endpoints.join(", ");
        push(&mut text, paint, "target", &format!("{}: {:?} at {endpoints}", target.name, target.kind));
    }
    push(&mut text, paint, "load", &load(spec));
    if let Some(wanted) = &spec.search {
        push(&mut text, paint, "search", &search::setup(wanted));
    }
    push(&mut text, paint, "shards", &shards(benchmark));
    text
}

fn push(text: &mut String, paint: Paint, label: &str, value: &str) {
    let _ = writeln!(text, "{}  {value}", paint.apply(Style::Dim, &format!("{label:<6}")));
}

/// The most stages, and the most operations with rates of their own.
const SHOWN: usize = 4;

fn load(spec: &RedisBenchmarkSpec) -> String {
    let load = &spec.load;
    let mut loop_ = match load.kind {
        LoadType::OpenLoop => "open loop".to_owned(),
        LoadType::ClosedLoop => "closed loop".to_owned(),
    };
    let trace = spec.workload.trace.as_ref();
    if let Some(trace) = trace {
        loop_.push_str(" of a trace");
        let _ = trace.pace.as_ref().map(|pace| write!(loop_, ", at {pace} times its pace"));
    }
    if let Some(open) = &load.open_loop {
        let _ = open.rate.map(|at| write!(loop_, " at {}", rate(at)));
        if open.arrival == Arrival::Poisson {
            loop_.push_str(", Poisson arrivals");
        }
        if open.pacing_grid.parse().is_ok_and(|grid| !grid.is_zero()) {
            let _ = write!(loop_, ", on a grid of {}", open.pacing_grid.as_str());
        }
    }
    let rated =
        spec.workload.operations.iter().filter_map(|operation| Some((operation.name.as_str(), operation.rate?)));
    for (name, own) in rated.clone().take(SHOWN) {
        let _ = write!(loop_, ", {name} at {}", rate(own));
    }
    if let Some(more @ 1..) = rated.count().checked_sub(SHOWN) {
        let _ = write!(loop_, ", {more} more with rates");
    }
    let bound = match (&load.duration, load.requests_in_all(), load.stages.len()) {
        (Some(duration), _, _) => format!(" for {}", duration.as_str()),
        (None, Some(requests), _) => format!(" of {}", counted(requests, "request")),
        (None, None, 0) if spec.search.is_some() => String::new(),
        (None, None, 0) if trace.is_some() => ", once".to_owned(),
        (None, None, 0) => " until aborted".to_owned(),
        (None, None, _) => format!(", {}", stages(load)),
    };
    let mut connections = format!("{} x {} in flight", counted(load.connections.into(), "connection"), load.pipeline);
    if load.pipeline_mode == PipelineMode::Batch {
        connections.push_str(", in batches");
    }
    if let Some(callers) = load.closed_loop.and_then(|closed| closed.concurrency) {
        let _ = write!(connections, ", shared by {}", counted(callers.into(), "caller"));
    }
    let most = match load.warmup_ends {
        WarmupEnds::ByTime => "",
        WarmupEnds::WhenSettled => "at most ",
    };
    format!("{loop_}{bound} after {most}{} of warm-up, {connections}", load.warmup.as_str())
}

/// The stages, such as `100/s to 2.00k/s in 30s, 2.00k/s for 10s`. Only the first few of many.
fn stages(load: &LoadSpec) -> String {
    let stage = |stage: &StageSpec| match stage.rate {
        RampSpec { from, to } if from == to => format!("{} for {}", rate(from), stage.duration.as_str()),
        RampSpec { from, to } => format!("{} to {} in {}", rate(from), rate(to), stage.duration.as_str()),
    };
    let mut shown: Vec<String> = load.stages.iter().take(SHOWN).map(stage).collect();
    if load.stages.len() > SHOWN {
        shown.push(format!("and {}", counted((load.stages.len() - SHOWN) as u64, "more stage")));
    }
    shown.join(", ")
}

fn shards(benchmark: &RedisBenchmark) -> String {
    let status = benchmark.status.as_ref();
    let mut text = count(benchmark.spec.shards.count.into());
    if let Some(shards) = status.and_then(|status| status.shards) {
        text = format!("{} of {} finished", shards.finished, shards.desired);
        for (number, word) in [(shards.lost, "lost"), (shards.unreachable, "unreachable")] {
            if number > 0 {
                let _ = write!(text, ", {number} {word}");
            }
        }
    }
    if let Some(together) = status.and_then(|status| status.synchronization) {
        let [skew, clocks] = [together.start_skew_microseconds, together.clock_uncertainty_microseconds]
            .map(|microseconds| latency(microseconds.saturating_mul(1000)));
        let window = latency(together.common_window_milliseconds.saturating_mul(1_000_000));
        let _ = write!(text, "; started within {skew} (clock error {clocks}), common window {window}");
        if benchmark.spec.load.warmup_ends == WarmupEnds::WhenSettled {
            let warmup = latency(together.warmup_milliseconds.saturating_mul(1_000_000));
            let _ = write!(text, " after {warmup} of warm-up");
        }
    }
    text
}

/// Where to find the full result.
pub fn artifacts(status: &RedisBenchmarkStatus, paint: Paint) -> String {
    let mut maps: Vec<&str> = status.artifacts.iter().map(|artifact| artifact.config_map.as_str()).collect();
    maps.dedup();
    if maps.is_empty() {
        return String::new();
    }
    let more = maps.len().saturating_sub(LISTED_MAPS);
    maps.truncate(LISTED_MAPS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!("The full result with all histograms is in the ConfigMaps: {}{more}", maps.join(", "));
    format!("{}\n", paint.apply(Style::Dim, &text))
}
