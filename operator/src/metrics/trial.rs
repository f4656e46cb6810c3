//! The series of one trial, from the conductor while it runs, then from its result.

use std::sync::Arc;

use hdrhistogram::Histogram;
use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{self, Latencies, Percentile, Requests, TrialLine, TrialResult, VerdictValue};
use redisbench_benchmark::conductor::{ConductProgress, ConductStage, LivePicture};
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::plan::Trial;
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::Finished;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::rate::CumulativeRate;
use redisbench_wire::snapshot::VerificationCounts;

use super::buckets::Buckets;
use super::catalogue::{
    BYTES, ERRORS, Metric, Of, RECENT_CACHE_RATE, RECENT_NODE_RATE, RECENT_NODE_SERVICE_TIME, RECENT_OPERATION_RATE,
    RECENT_OPERATION_RESPONSE_TIME, RECENT_RATE, RECENT_RESPONSE_TIME, RECENT_SERVICE_TIME, REQUESTS, RESPONSE_TIME,
    RESULT_CACHE, RESULT_CONNECT_TIME, RESULT_CONNECTIONS, RESULT_INVALIDATION_TIME, RESULT_NODE_REQUESTS,
    RESULT_NODE_SERVICE_TIME, RESULT_OPERATION_BANDWIDTH, RESULT_OPERATION_REQUESTS, RESULT_OPERATION_RESPONSE_TIME,
    RESULT_RATE, RESULT_RESPONSE_TIME, RESULT_SERVICE_TIME, RESULT_TLS_HANDSHAKE_TIME, SNAPSHOT_AGE, START_TIME,
    TARGET_RATE, TRIAL_INFO, TRIAL_VERDICT, VERIFICATION,
};
use super::page::{Entity, Page, Value};

/// The most trials of a benchmark with all their series, the newest. Older ones have requests, rate, response time and verdict.
pub const DETAILED: u32 = 10;
/// The most kinds of error and the most nodes of a trial. The API bounds operations.
const LISTED: usize = 32;
/// The label of the rest.
const OTHER: &str = "Other";

/// Values with their labels.
type Labelled<L = String> = Vec<(L, u64)>;

/// A trial's place among the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Its index, from 0.
    pub trial: u32,
    pub target: String,
    pub cell: u32,
    pub preset: String,
    /// The swept fields with their values, by name.
    pub parameters: String,
    /// From 0; empty if there is only one.
    pub repeat: String,
    /// The mean rate that it asks for, in requests per second. None in a closed loop.
    pub target_rate: Option<u64>,
    /// The names of its operations, if they are measured one by one.
    pub operations: Vec<String>,
}

impl Setting {
    pub fn of(trial: &Trial) -> Self {
        let (kind, plan) = (&trial.kind, &trial.spec.plan);
        let operations = plan.operation_names().into_iter().filter(|_| plan.breakdown.operation);
        Self {
            trial: trial.index,
            target: plan.target.name.clone(),
            target_rate: target_rate(plan),
            operations: operations.map(str::to_owned).collect(),
            ..Self::at(&kind.setting, kind.cell, kind.repeat)
        }
    }

    /// Of the finished trial of `line`, as far as it is known.
    fn of_line(line: &TrialLine, spec: &RedisBenchmarkSpec) -> Self {
        let only = Self::of_only(line.index, spec);
        // A step's rate is that of the operations without their own.
        let own = spec.workload.own_rates_with(&line.setting.parameters);
        Self {
            trial: line.index,
            target: line.setting.target.clone().unwrap_or(only.target),
            target_rate: line.search.as_ref().map(|step| step.rate_per_second.saturating_add(own)),
            ..Self::at(&line.setting, line.cell, line.repeat)
        }
    }

    fn at(setting: &status::Setting, cell: u32, repeat: Option<u32>) -> Self {
        let parameters = setting.parameters.iter().map(|(field, value)| format!("{field}={value}"));
        Self {
            cell,
            preset: setting.preset.clone().unwrap_or_default(),
            parameters: parameters.collect::<Vec<_>>().join(", "),
            repeat: repeat.map(|repeat| repeat.to_string()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Of the only trial of `spec`.
    pub fn of_only(trial: u32, spec: &RedisBenchmarkSpec) -> Self {
        let target = spec.targets.first().map(|target| target.name.clone()).unwrap_or_default();
        Self { trial, target, ..Self::default() }
    }
}

/// The mean rate that the measurement of a trial requests. None in a closed loop.
fn target_rate(plan: &TrialPlan) -> Option<u64> {
    let begin = plan.warmup_nanoseconds;
    let end = begin.saturating_add(plan.bound.longest_nanoseconds());
    CumulativeRate::of(plan).map(|rate| rate.mean_per_second(begin, end))
}

/// Replies that were checked, by outcome.
fn verification(found: &VerificationCounts) -> [(&'static str, u64); 6] {
    [
        ("checked", found.checked),
        ("mismatched", found.mismatched),
        ("corrupt", found.corrupt),
        ("lost_write", found.lost_writes),
        ("lost_key", found.lost_keys),
        ("indeterminate", found.indeterminate),
    ]
}

/// The series of a trial.
#[derive(Clone, Debug, Default)]
pub struct TrialSample {
    pub setting: Setting,
    /// The common start of all shards, in seconds since the Unix epoch.
    pub started: Option<f64>,
    /// Requests, rate, response time and verdict, which an older trial keeps.
    always: Samples,
    details: Samples,
}

/// Values of metrics, with the values of their own labels.
#[derive(Clone, Debug, Default)]
struct Samples(Vec<(&'static Metric, Vec<String>, Value)>);

impl TrialSample {
    /// Of a trial that runs. `errors` turns all errors by kind, and their number, into those to show.
    pub fn live(
        setting: Setting,
        progress: &ConductProgress,
        asked: &[Quantile],
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Self {
        let started = progress.start_at_unix_nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9);
        let mut sample = Self { setting, started, ..Self::default() };
        let Self { setting, always, details, .. } = &mut sample;
        // A part of the shards would look like a counter that was reset.
        let live = progress.live.as_ref().filter(|live| progress.stage != ConductStage::Preparing && live.complete);
        let Some(picture) = live else { return sample };
        let total = &picture.total;
        let requests = [("succeeded", total.succeeded), ("error", total.errors), ("unsent", total.unsent)];
        always.counts(&REQUESTS, &[], &requests);
        details.counts(&ERRORS, &[], &errors(&picture.errors, total.errors));
        if let Some(found) = &picture.verification {
            details.counts(&VERIFICATION, &[], &verification(found));
        }
        details.counts(&BYTES, &[], &[("sent", total.sent_bytes), ("received", total.received_bytes)]);
        details.add(&RESPONSE_TIME, &[], Arc::new(Buckets::of(&picture.response, total.overflow)));
        if progress.stage == ConductStage::Running {
            details.recent(picture, asked, &setting.operations);
            if let Some(age) = progress.oldest_snapshot_age {
                details.add(&SNAPSHOT_AGE, &[], age.as_secs_f64());
            }
        }
        sample
    }

    /// Of a trial that has a result; `errors` as in [`Self::live`].
    pub fn of_result(
        setting: Setting,
        result: &TrialResult,
        verdict: Option<VerdictValue>,
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Self {
        let target_rate = result.throughput.target_per_second.or(setting.target_rate);
        let mut sample = Self { setting: Setting { target_rate, ..setting }, ..Self::default() };
        let Self { always, details, .. } = &mut sample;
        always.counts(&REQUESTS, &[], &of_requests(&result.requests));
        always.result(Some(result.throughput.achieved_per_second), &percentiles(&result.response_time), verdict);
        let kinds: Vec<_> = result.errors.iter().map(|error| (error.kind.clone(), error.count)).collect();
        details.counts(&ERRORS, &[], &errors(&kinds, result.requests.errors));
        if let Some(found) = &result.verification {
            details.counts(&VERIFICATION, &[], &verification(&found.counts));
        }
        if let Some(cache) = &result.cache {
            let events = [
                ("hit", cache.hits),
                ("miss", cache.misses),
                ("invalidation", cache.invalidations),
                ("unused", cache.invalidated_unused),
                ("flush", cache.flushes),
                ("stale_hit", cache.stale_hits.unwrap_or_default()),
            ];
            details.counts(&RESULT_CACHE, &[], &events);
            details.times(&RESULT_INVALIDATION_TIME, &[], &percentiles(&cache.invalidation_time));
        }
        if let Some(made) = &result.connections {
            details.counts(&RESULT_CONNECTIONS, &[], &[("made", made.made), ("closed", made.closed)]);
            details.times(&RESULT_CONNECT_TIME, &[], &percentiles(&made.connect_time));
            if let Some(handshakes) = &made.tls_handshake_time {
                details.times(&RESULT_TLS_HANDSHAKE_TIME, &[], &percentiles(handshakes));
            }
        }
        if let Some(service) = &result.service_time {
            details.times(&RESULT_SERVICE_TIME, &[], &percentiles(service));
        }
        for one in &result.operations {
            details.counts(&RESULT_OPERATION_REQUESTS, &[&one.name], &of_requests(&one.requests));
            if let Some(own) = one.bandwidth {
                let bytes = [("sent", own.sent_bytes_per_second), ("received", own.received_bytes_per_second)];
                details.counts(&RESULT_OPERATION_BANDWIDTH, &[&one.name], &bytes);
            }
            details.times(&RESULT_OPERATION_RESPONSE_TIME, &[&one.name], &percentiles(&one.response_time));
        }
        for one in result.nodes.iter().take(LISTED) {
            details.add(&RESULT_NODE_REQUESTS, &[&one.address], one.requests);
            details.times(&RESULT_NODE_SERVICE_TIME, &[&one.address], &percentiles(&one.service_time));
        }
        sample
    }

    /// Of a trial that this process has conducted to its end; none if nothing was measured.
    pub fn of_finished(
        setting: Setting,
        finished: &Finished,
        last: &ConductProgress,
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Option<Self> {
        let result = finished.result()?;
        let live = || last.live.as_ref().map(|live| Arc::new(Buckets::of(&live.response, live.total.overflow)));
        let started = last.start_at_unix_nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9);
        let sample = Self::of_result(setting, result, finished.verdict().map(|verdict| verdict.value), errors);
        let mut sample = sample.with(buckets(result).or_else(live), started);
        let bytes = [("sent", finished.sent_bytes), ("received", finished.received_bytes)];
        sample.details.counts(&BYTES, &[], &bytes);
        Some(sample)
    }

    /// Of the finished trial of `line`, without its details.
    pub fn of_line(line: &TrialLine, spec: &RedisBenchmarkSpec) -> Self {
        let started = line.start_at.as_ref().map(|at| at.0.as_microsecond() as f64 / 1e6);
        let mut sample = Self { setting: Setting::of_line(line, spec), started, ..Self::default() };
        if let Some(all) = line.requests {
            let lost = all.in_flight.saturating_add(all.unknown);
            let requests =
                [("succeeded", all.succeeded), ("error", all.errors), ("unsent", all.unsent), ("unknown", lost)];
            sample.always.counts(&REQUESTS, &[], &requests);
        }
        let times = [("50", line.p50_nanoseconds), ("99", line.p99_nanoseconds), ("99.9", line.p999_nanoseconds)];
        sample.always.result(line.achieved_per_second, &named(&times), line.verdict);
        sample
    }

    /// With the histogram and the start that a status has.
    #[must_use]
    pub fn with(mut self, response: Option<Arc<Buckets>>, started: Option<f64>) -> Self {
        self.started = started;
        if let Some(response) = response {
            self.details.add(&RESPONSE_TIME, &[], response);
        }
        self
    }

    /// Adds its series; of an older trial only requests, rate, response time and verdict.
    pub fn add_to(&self, page: &mut Page, namespace: &str, benchmark: &str, detailed: bool) {
        let Setting { trial, target, cell, preset, parameters, repeat, target_rate, .. } = &self.setting;
        let labels = [namespace, benchmark, target, &trial.to_string(), &cell.to_string()].map(str::to_owned);
        let entity = Entity { of: Of::Trial, labels: Arc::new(labels), created: self.started };
        page.add(&TRIAL_INFO, &entity, &[preset, parameters, repeat], 1_u64);
        if let Some(rate) = target_rate {
            page.add(&TARGET_RATE, &entity, &[], *rate);
        }
        if let Some(started) = self.started {
            page.add(&START_TIME, &entity, &[], started);
        }
        let details = self.details.0.iter().filter(|_| detailed);
        for (metric, labels, value) in self.always.0.iter().chain(details) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            page.add(metric, &entity, &labels, value.clone());
        }
    }
}

impl Samples {
    fn add(&mut self, metric: &'static Metric, labels: &[&str], value: impl Into<Value>) {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.0.push((metric, labels, value.into()));
    }

    /// Adds each count with its label after the others.
    fn counts<L: AsRef<str>>(&mut self, metric: &'static Metric, before: &[&str], counts: &[(L, u64)]) {
        for (label, count) in counts {
            self.add(metric, &[before, &[label.as_ref()]].concat(), *count);
        }
    }

    /// Adds `times` in nanoseconds by percentile, after the other labels.
    fn times(&mut self, metric: &'static Metric, before: &[&str], times: &[(String, u64)]) {
        for (percentile, nanoseconds) in times {
            self.add(metric, &[before, &[percentile.as_str()]].concat(), *nanoseconds as f64 / 1e9);
        }
    }

    fn result(&mut self, rate: Option<u64>, response: &[(String, u64)], verdict: Option<VerdictValue>) {
        if let Some(rate) = rate {
            self.add(&RESULT_RATE, &[], rate);
        }
        self.times(&RESULT_RESPONSE_TIME, &[], response);
        if let Some(verdict) = verdict {
            self.counts(&TRIAL_VERDICT, &[], &verdicts(verdict));
        }
    }

    fn recent(&mut self, picture: &LivePicture, asked: &[Quantile], operations: &[String]) {
        self.add(&RECENT_RATE, &[], picture.achieved_per_second);
        if let Some(caches) = picture.caches {
            let rates = [("hit", caches.hits_per_second), ("invalidation", caches.invalidations_per_second)];
            self.counts(&RECENT_CACHE_RATE, &[], &rates);
        }
        let Some(recent) = &picture.recent else { return };
        self.times(&RECENT_RESPONSE_TIME, &[], &quantiles(&recent.response, asked));
        if let Some(service) = &recent.service {
            self.times(&RECENT_SERVICE_TIME, &[], &quantiles(service, asked));
        }
        for part in recent.operations(operations) {
            self.add(&RECENT_OPERATION_RATE, &[&part.name], part.per_second);
            self.times(&RECENT_OPERATION_RESPONSE_TIME, &[&part.name], &quantiles(&part.latency, asked));
        }
        for part in recent.nodes().into_iter().take(LISTED) {
            self.add(&RECENT_NODE_RATE, &[&part.name], part.per_second);
            self.times(&RECENT_NODE_SERVICE_TIME, &[&part.name], &quantiles(&part.latency, asked));
        }
    }
}

/// 1 for `verdict` and 0 for the others.
pub fn verdicts(verdict: VerdictValue) -> [(&'static str, u64); 3] {
    [("Valid", VerdictValue::Valid), ("Degraded", VerdictValue::Degraded), ("Invalid", VerdictValue::Invalid)]
        .map(|(name, value)| (name, u64::from(value == verdict)))
}

/// At most 32 kinds of `all` errors, and the rest as Other. Kinds that are `known` stay, so that no series comes and goes with its rank.
pub fn error_kinds(known: &mut Vec<String>, errors: &[(String, u64)], all: u64) -> Labelled {
    for (kind, _) in errors {
        if known.len() < LISTED && kind != OTHER && !known.contains(kind) {
            known.push(kind.clone());
        }
    }
    let mut shown: Labelled = errors.iter().filter(|(kind, _)| known.contains(kind)).cloned().collect();
    let rest = shown.iter().fold(all, |rest, (_, count)| rest.saturating_sub(*count));
    if rest > 0 {
        shown.push((OTHER.to_owned(), rest));
    }
    shown
}

fn of_requests(all: &Requests) -> Labelled<&'static str> {
    let lost = all.in_flight.saturating_add(all.unknown);
    vec![("succeeded", all.succeeded), ("error", all.errors), ("unsent", all.unsent), ("unknown", lost)]
}

/// The histogram of `result`, if it has one.
pub fn buckets(result: &TrialResult) -> Option<Arc<Buckets>> {
    let data = &result.histogram.as_ref()?.data;
    let encoded: EncodedHistogram = serde_json::from_value(serde_json::Value::String(data.clone())).ok()?;
    let histogram = encoded.decode(Kind::Request).ok()?;
    Some(Arc::new(Buckets::of(&histogram, result.requests.overflow)))
}

fn quantiles(histogram: &Histogram<u64>, asked: &[Quantile]) -> Labelled {
    asked.iter().filter_map(|quantile| Some((quantile.percent(), latencies::known(histogram, *quantile)?))).collect()
}

/// The known percentiles. Without the list, which a status may lack for want of room, the usual ones.
fn percentiles(of: &Latencies) -> Labelled {
    if of.percentiles.is_empty() {
        let usual = [
            ("50", of.p50_nanoseconds),
            ("90", of.p90_nanoseconds),
            ("95", of.p95_nanoseconds),
            ("99", of.p99_nanoseconds),
            ("99.9", of.p999_nanoseconds),
            ("99.99", of.p9999_nanoseconds),
        ];
        return named(&usual);
    }
    let known = |one: &Percentile| Some((one.percentile.clone(), one.nanoseconds?));
    of.percentiles.iter().filter_map(known).collect()
}

fn named(times: &[(&str, Option<u64>)]) -> Labelled {
    times.iter().filter_map(|(percentile, time)| Some(((*percentile).to_owned(), (*time)?))).collect()
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::plan::compile;
    use serde_json::json;

    use super::*;
    use crate::testing::benchmark;

    /// Each step runs beneath the same other load, whose rate a sweep may set.
    #[test]
    fn a_step_asks_for_the_same_rate_while_it_runs_and_afterwards() {
        let scan = json!({"name": "scan", "command": "SCAN 0", "rate": 10});
        let operations = json!([{"name": "get", "command": "GET __key__"}, scan]);
        let spec = benchmark(json!({"spec": {
            "workload": {"operations": operations},
            "load": {"openLoop": null, "duration": null, "warmup": "2s"},
            "search": {"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}},
            "sweep": [{"field": "workload.operations[1].rate", "values": [50, 70]}],
            "measurement": {"breakdown": ["Operation"]},
        }}))
        .spec;
        let trial = compile(&spec, "cart").unwrap().trial(0, &[]).unwrap();
        let step = json!({"ratePerSecond": trial.search.as_ref().unwrap().rate, "outcome": "Passed"});
        let line = json!({"index": 0, "state": "Completed", "attempt": 1, "search": step});
        let line = TrialLine { setting: trial.kind.setting.clone(), ..serde_json::from_value(line).unwrap() };
        let running = Setting::of(&trial).target_rate.unwrap();
        assert!([1050, 1070].contains(&running), "{running}");
        assert_eq!(TrialSample::of_line(&line, &spec).setting.target_rate, Some(running));
    }

    #[test]
    fn kinds_sum_to_all_errors_and_stay() {
        let kind = |index: u64| (format!("KIND{index:02}"), 100 - index);
        let mut known = Vec::new();
        let errors: Vec<_> = (0..40).map(kind).collect();
        let all: u64 = errors.iter().map(|(_, count)| count).sum();
        let shown = error_kinds(&mut known, &errors, all);
        assert_eq!((shown.len(), shown.iter().map(|(_, count)| count).sum::<u64>()), (33, all));
        // The 40th is now the most frequent, and stays in Other.
        let mut later = errors.clone();
        later[39].1 = 1_000_000;
        later.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let all: u64 = later.iter().map(|(_, count)| count).sum();
        let again = error_kinds(&mut known, &later, all);
        let kinds = |shown: &[(String, u64)]| shown.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&again), kinds(&shown));
        assert_eq!(again.iter().map(|(_, count)| count).sum::<u64>(), all);
    }

    #[test]
    fn shards_that_name_a_kind_other_do_not_count_twice() {
        let errors = [("Other".to_owned(), 5), ("Timeout".to_owned(), 2)];
        let shown = error_kinds(&mut Vec::new(), &errors, 7);
        assert_eq!(shown, [("Timeout".to_owned(), 2), ("Other".to_owned(), 5)]);
    }
}
