//! The series of one trial, from the conductor while it runs, then from its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{
    Latencies, Percentile, Requests, TrialLine, TrialResult, VerdictValue, VerificationResult,
};
use redisbench_benchmark::conductor::{ConductStage, LivePicture, Progress, RecentPart};
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::plan::Trial;
use redisbench_benchmark::quantile::Quantile;
use redisbench_benchmark::report::Finished;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::rate::CumulativeRate;
use redisbench_wire::snapshot::Verification;

use super::buckets::Buckets;
use super::catalogue::{
    BYTES, ERRORS, Metric, Of, RECENT_NODE_RATE, RECENT_NODE_SERVICE_TIME, RECENT_OPERATION_RATE,
    RECENT_OPERATION_RESPONSE_TIME, RECENT_RATE, RECENT_RESPONSE_TIME, RECENT_SERVICE_TIME, REQUESTS, RESPONSE_TIME,
    RESULT_NODE_REQUESTS, RESULT_NODE_SERVICE_TIME, RESULT_OPERATION_REQUESTS, RESULT_OPERATION_RESPONSE_TIME,
    RESULT_RATE, RESULT_RESPONSE_TIME, RESULT_SERVICE_TIME, SNAPSHOT_AGE, START_TIME, TARGET_RATE, TRIAL_INFO,
    TRIAL_VERDICT, VERIFICATION,
};
use super::page::{Page, Subject};

/// The most trials of a benchmark with all their series, the newest. Older ones have requests, rate, response time and verdict.
pub const DETAILED: u32 = 10;
/// The most kinds of error and the most nodes of a trial. The API bounds operations.
const LISTED: usize = 32;
/// The label of the rest.
const OTHER: &str = "Other";

const VERDICTS: [(VerdictValue, &str); 3] =
    [(VerdictValue::Valid, "Valid"), (VerdictValue::Degraded, "Degraded"), (VerdictValue::Invalid, "Invalid")];

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
        let operations = plan.workload.operations.iter().filter(|_| plan.breakdown.operation);
        Self {
            trial: trial.index,
            target: plan.target.name.clone(),
            cell: kind.cell,
            preset: kind.preset.clone().unwrap_or_default(),
            parameters: parameters(&kind.parameters.iter().cloned().collect()),
            repeat: kind.repeat.map(|repeat| repeat.to_string()).unwrap_or_default(),
            target_rate: target_rate(plan),
            operations: operations.map(|operation| operation.name.clone()).collect(),
        }
    }

    /// Of the finished trial of `line`, as far as it is known.
    fn of_line(line: &TrialLine, spec: &RedisBenchmarkSpec) -> Self {
        let only = Self::of_only(line.index, spec);
        Self {
            target: line.target.clone().unwrap_or(only.target),
            cell: line.cell,
            preset: line.preset.clone().unwrap_or_default(),
            parameters: parameters(&line.parameters),
            repeat: line.repeat.map(|repeat| repeat.to_string()).unwrap_or_default(),
            target_rate: line.search.as_ref().map(|step| step.rate_per_second),
            ..only
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

fn parameters(fields: &BTreeMap<String, String>) -> String {
    fields.iter().map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join(", ")
}

/// Counts and times of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialSample {
    pub setting: Setting,
    /// When all shards began together, in seconds since the Unix epoch.
    pub started: Option<f64>,
    requests: Labelled<&'static str>,
    errors: Labelled,
    verification: Labelled<&'static str>,
    bytes: Labelled<&'static str>,
    response: Option<Arc<Buckets>>,
    recent: Option<Recent>,
    result: Option<Outcome>,
}

/// The last seconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Recent {
    rate: u64,
    /// By percentile, in nanoseconds; so are the others.
    response: Labelled,
    service: Labelled,
    operations: Vec<(String, u64, Labelled)>,
    nodes: Vec<(String, u64, Labelled)>,
    /// In seconds.
    snapshot_age: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    rate: Option<u64>,
    response: Labelled,
    service: Labelled,
    operations: Vec<(String, Labelled<&'static str>, Labelled)>,
    nodes: Vec<(String, u64, Labelled)>,
    verdict: Option<VerdictValue>,
}

impl TrialSample {
    /// Of a trial that runs. `errors` turns all errors by kind, and their number, into those to show.
    pub fn live(
        setting: Setting,
        progress: &Progress,
        asked: &[Quantile],
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Self {
        let started = progress.start_at_unix_nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9);
        let sample = Self { setting, started, ..Self::default() };
        // A part of the shards would look like a counter that was reset.
        let live = progress.live.as_ref().filter(|live| progress.stage != ConductStage::Preparing && live.complete);
        let Some(picture) = live else { return sample };
        let total = &picture.total;
        let running = progress.stage == ConductStage::Running;
        Self {
            requests: vec![("succeeded", total.succeeded), ("error", total.errors), ("unsent", total.unsent)],
            errors: errors(&picture.errors, total.errors),
            verification: picture.verification.as_ref().map(of_verification).unwrap_or_default(),
            bytes: vec![("sent", total.sent_bytes), ("received", total.received_bytes)],
            response: Some(Arc::new(Buckets::of(&picture.response, total.overflow))),
            recent: running.then(|| Recent {
                snapshot_age: progress.oldest_snapshot_age.map(|age| age.as_secs_f64()),
                ..Recent::of(picture, asked, &sample.setting.operations)
            }),
            ..sample
        }
    }

    /// Of a trial that has a result; `errors` as in [`Self::live`].
    pub fn of_result(
        setting: Setting,
        result: &TrialResult,
        verdict: Option<VerdictValue>,
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Self {
        let kinds: Vec<_> = result.errors.iter().map(|error| (error.kind.clone(), error.count)).collect();
        Self {
            requests: of_requests(&result.requests),
            errors: errors(&kinds, result.requests.errors),
            verification: result.verification.as_ref().map(of_verification_result).unwrap_or_default(),
            setting: Setting { target_rate: result.throughput.target_per_second.or(setting.target_rate), ..setting },
            result: Some(Outcome::of(result, verdict)),
            ..Self::default()
        }
    }

    /// Of a trial that this process has conducted to its end; none if nothing was measured.
    pub fn of_finished(
        setting: Setting,
        finished: &Finished,
        last: &Progress,
        errors: impl FnOnce(&[(String, u64)], u64) -> Labelled,
    ) -> Option<Self> {
        let result = finished.result()?;
        let live = || last.live.as_ref().map(|live| Arc::new(Buckets::of(&live.response, live.total.overflow)));
        Some(Self {
            started: last.start_at_unix_nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9),
            bytes: vec![("sent", finished.sent_bytes), ("received", finished.received_bytes)],
            response: buckets(result).or_else(live),
            ..Self::of_result(setting, result, finished.verdict().map(|verdict| verdict.value), errors)
        })
    }

    /// Of the finished trial of `line`, without its details.
    pub fn of_line(line: &TrialLine, spec: &RedisBenchmarkSpec) -> Self {
        let requests = line.requests.map(|all| {
            let lost = all.in_flight.saturating_add(all.unknown);
            vec![("succeeded", all.succeeded), ("error", all.errors), ("unsent", all.unsent), ("unknown", lost)]
        });
        let times = [("50", line.p50_nanoseconds), ("99", line.p99_nanoseconds), ("99.9", line.p999_nanoseconds)];
        let outcome = Outcome {
            rate: line.achieved_per_second,
            response: named(&times),
            verdict: line.verdict,
            ..Outcome::default()
        };
        Self {
            setting: Setting::of_line(line, spec),
            started: line.start_at.as_ref().map(|at| at.0.as_microsecond() as f64 / 1e6),
            requests: requests.unwrap_or_default(),
            result: Some(outcome),
            ..Self::default()
        }
    }

    /// With the histogram and the start that a status has.
    #[must_use]
    pub fn with(self, response: Option<Arc<Buckets>>, started: Option<f64>) -> Self {
        Self { started, response, ..self }
    }

    /// Adds its series; of an older trial only requests, rate, response time and verdict.
    pub fn add_to(&self, page: &mut Page, namespace: &str, benchmark: &str, detailed: bool) {
        let Setting { trial, target, cell, preset, parameters, repeat, target_rate, .. } = &self.setting;
        let labels = [namespace, benchmark, target, &trial.to_string(), &cell.to_string()].map(str::to_owned);
        let subject = Subject { of: Of::Trial, labels: Arc::new(labels), created: self.started };
        page.add(&TRIAL_INFO, &subject, &[preset, parameters, repeat], 1_u64);
        if let Some(rate) = target_rate {
            page.add(&TARGET_RATE, &subject, &[], *rate);
        }
        if let Some(started) = self.started {
            page.add(&START_TIME, &subject, &[], started);
        }
        counts(page, &subject, &REQUESTS, &self.requests);
        if let Some(result) = &self.result {
            result.add_to(page, &subject, detailed);
        }
        if !detailed {
            return;
        }
        counts(page, &subject, &ERRORS, &self.errors);
        counts(page, &subject, &VERIFICATION, &self.verification);
        counts(page, &subject, &BYTES, &self.bytes);
        if let Some(response) = &self.response {
            page.add(&RESPONSE_TIME, &subject, &[], response.clone());
        }
        if let Some(recent) = &self.recent {
            recent.add_to(page, &subject);
        }
    }
}

impl Recent {
    fn of(picture: &LivePicture, asked: &[Quantile], operations: &[String]) -> Self {
        let Some(recent) = &picture.recent else {
            return Self { rate: picture.achieved_per_second, ..Self::default() };
        };
        let part = |part: RecentPart| (part.name, part.per_second, quantiles(&part.latency, asked));
        Self {
            rate: picture.achieved_per_second,
            response: quantiles(&recent.response, asked),
            service: recent.service.as_ref().map(|service| quantiles(service, asked)).unwrap_or_default(),
            operations: recent.operations(operations).into_iter().map(part).collect(),
            nodes: recent.nodes().into_iter().take(LISTED).map(part).collect(),
            snapshot_age: None,
        }
    }

    fn add_to(&self, page: &mut Page, subject: &Subject) {
        page.add(&RECENT_RATE, subject, &[], self.rate);
        times(page, subject, &RECENT_RESPONSE_TIME, &[], &self.response);
        times(page, subject, &RECENT_SERVICE_TIME, &[], &self.service);
        for (name, rate, latency) in &self.operations {
            page.add(&RECENT_OPERATION_RATE, subject, &[name], *rate);
            times(page, subject, &RECENT_OPERATION_RESPONSE_TIME, &[name], latency);
        }
        for (name, rate, latency) in &self.nodes {
            page.add(&RECENT_NODE_RATE, subject, &[name], *rate);
            times(page, subject, &RECENT_NODE_SERVICE_TIME, &[name], latency);
        }
        if let Some(age) = self.snapshot_age {
            page.add(&SNAPSHOT_AGE, subject, &[], age);
        }
    }
}

impl Outcome {
    fn of(result: &TrialResult, verdict: Option<VerdictValue>) -> Self {
        let (operations, nodes) = (result.operations.iter(), result.nodes.iter().take(LISTED));
        Self {
            rate: Some(result.throughput.achieved_per_second),
            response: percentiles(&result.response_time),
            service: result.service_time.as_ref().map(percentiles).unwrap_or_default(),
            operations: operations
                .map(|one| (one.name.clone(), of_requests(&one.requests), percentiles(&one.response_time)))
                .collect(),
            nodes: nodes.map(|one| (one.address.clone(), one.requests, percentiles(&one.service_time))).collect(),
            verdict,
        }
    }

    fn add_to(&self, page: &mut Page, subject: &Subject, detailed: bool) {
        if let Some(rate) = self.rate {
            page.add(&RESULT_RATE, subject, &[], rate);
        }
        times(page, subject, &RESULT_RESPONSE_TIME, &[], &self.response);
        if let Some(verdict) = self.verdict {
            verdicts(page, subject, &TRIAL_VERDICT, verdict);
        }
        if !detailed {
            return;
        }
        times(page, subject, &RESULT_SERVICE_TIME, &[], &self.service);
        for (name, requests, latency) in &self.operations {
            for (outcome, count) in requests {
                page.add(&RESULT_OPERATION_REQUESTS, subject, &[name, outcome], *count);
            }
            times(page, subject, &RESULT_OPERATION_RESPONSE_TIME, &[name], latency);
        }
        for (name, requests, latency) in &self.nodes {
            page.add(&RESULT_NODE_REQUESTS, subject, &[name], *requests);
            times(page, subject, &RESULT_NODE_SERVICE_TIME, &[name], latency);
        }
    }
}

/// Adds 1 for `verdict` and 0 for the others.
pub fn verdicts(page: &mut Page, subject: &Subject, metric: &'static Metric, verdict: VerdictValue) {
    for (value, name) in VERDICTS {
        page.add(metric, subject, &[name], u64::from(value == verdict));
    }
}

fn counts<L: AsRef<str>>(page: &mut Page, subject: &Subject, metric: &'static Metric, counts: &[(L, u64)]) {
    for (label, count) in counts {
        page.add(metric, subject, &[label.as_ref()], *count);
    }
}

/// Adds `times` in nanoseconds by percentile, with the values of the labels before.
fn times(page: &mut Page, subject: &Subject, metric: &'static Metric, before: &[&str], times: &[(String, u64)]) {
    for (percentile, nanoseconds) in times {
        let labels = [before, &[percentile.as_str()]].concat();
        page.add(metric, subject, &labels, *nanoseconds as f64 / 1e9);
    }
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

macro_rules! verification {
    ($found:ident) => {
        vec![
            ("checked", $found.checked),
            ("mismatched", $found.mismatched),
            ("corrupt", $found.corrupt),
            ("lost_write", $found.lost_writes),
            ("lost_key", $found.lost_keys),
            ("indeterminate", $found.indeterminate),
        ]
    };
}

fn of_verification(found: &Verification) -> Labelled<&'static str> {
    verification!(found)
}

fn of_verification_result(found: &VerificationResult) -> Labelled<&'static str> {
    verification!(found)
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
    use super::*;

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
