//! A scrape of all metrics: which benchmarks are in it, and where their numbers come from: the conductor of a running trial, the record
//! of a finished one, or the status. Deleted benchmarks leave no series behind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::reflector::Store;
use redisbench_benchmark::api::status::{Phase, ThresholdOutcome};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::conductor::{ConductProgress, LivePicture};
use redisbench_benchmark::report::conditions::condition;

use crate::controller::Guarded;
use crate::metrics::OperatorMetrics;
use crate::metrics::buckets::Buckets;
use crate::metrics::catalogue::{
    BENCHMARKS, CLOCK_UNCERTAINTY, FINISHED_LIMIT, FINISHED_TIME, HIDDEN, MEMORY, Of, PHASE, SHARDS, START_SKEW,
    THRESHOLDS, VERDICT,
};
use crate::metrics::format::Format;
use crate::metrics::page::{Entity, Page};
use crate::metrics::trial::{self, DETAILED, Setting, TrialSample, error_kinds, verdicts};
use crate::tasks::{ConductTask, TaskRegistry};

const PHASES: [(Phase, &str); 8] = [
    (Phase::Pending, "Pending"),
    (Phase::Preparing, "Preparing"),
    (Phase::Running, "Running"),
    (Phase::Suspended, "Suspended"),
    (Phase::Collecting, "Collecting"),
    (Phase::Succeeded, "Succeeded"),
    (Phase::Failed, "Failed"),
    (Phase::Aborted, "Aborted"),
];

/// Bounds the operator's memory for a scrape, and Prometheus' series.
const SAMPLES: usize = 50_000;

#[derive(Clone)]
pub struct Metrics {
    operator: OperatorMetrics,
    source: Arc<Source>,
}

impl Metrics {
    /// Of the benchmarks in `stores`: one store for each watched namespace, or one for all. Of finished ones, the newest `finished` have
    /// series.
    pub fn new(operator: OperatorMetrics, stores: Vec<Store<Guarded>>, tasks: TaskRegistry, finished: usize) -> Self {
        Self { operator, source: Arc::new(Source::new(stores, tasks, finished)) }
    }

    pub fn scrape(&self, format: Format) -> Vec<u8> {
        let (mut page, tasks) = (Page::default(), &self.source.tasks);
        self.operator.add_to(&mut page, &tasks.calls(), &tasks.memory(), tasks.merges());
        self.source.add_to(&mut page);
        format.encode(page)
    }
}

/// Access to the state of all benchmarks.
struct Source {
    stores: Vec<Store<Guarded>>,
    tasks: TaskRegistry,
    /// The number of finished benchmarks to show.
    finished: usize,
    /// The number of samples from which on further benchmarks are hidden.
    samples: usize,
    /// Computed from shown objects, by UID.
    known: Mutex<HashMap<String, Known>>,
}

/// Computed from one version of an object, because it takes long.
#[derive(Clone, Debug)]
struct Known {
    version: Option<String>,
    /// The length of the object as JSON.
    bytes: u64,
    /// The histogram of the only trial's result.
    response: Option<Arc<Buckets>>,
}

impl Source {
    fn new(stores: Vec<Store<Guarded>>, tasks: TaskRegistry, finished: usize) -> Self {
        Self { stores, tasks, finished, samples: SAMPLES, known: Mutex::default() }
    }

    /// Adds the series of the unfinished and the newest finished benchmarks.
    fn add_to(&self, page: &mut Page) {
        let objects: Vec<_> = self.stores.iter().flat_map(Store::state).collect();
        let all: Vec<&RedisBenchmark> = objects.iter().filter_map(|object| object.0.as_ref().ok()).collect();
        let operator = Entity { of: Of::Operator, labels: Arc::default(), created: None };
        for (phase, name) in PHASES {
            let count = all.iter().filter(|benchmark| phase_of(benchmark) == phase).count();
            page.add(&BENCHMARKS, &operator, &[name], count as u64);
        }
        page.add(&FINISHED_LIMIT, &operator, &[], self.finished as u64);

        let (mut ended, mut others): (Vec<&RedisBenchmark>, Vec<_>) =
            all.iter().copied().partition(|benchmark| phase_of(benchmark).is_terminal());
        ended.sort_by_cached_key(|benchmark| Reverse((finished_at(benchmark), benchmark.uid())));
        ended.truncate(self.finished);
        others.sort_by_cached_key(|benchmark| {
            let uid = benchmark.uid().unwrap_or_default();
            (self.tasks.get(&uid).is_none(), benchmark.creation_timestamp(), uid)
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut former = std::mem::take(&mut *known);
        for benchmark in others.into_iter().chain(ended) {
            if page.samples() >= self.samples {
                break;
            }
            let uid = benchmark.uid().unwrap_or_default();
            let version = benchmark.resource_version();
            let same = former.remove(&uid).filter(|former| former.version == version);
            let facts = same.unwrap_or_else(|| Known::of(benchmark, version));
            self.add_benchmark(page, benchmark, &uid, &facts);
            known.insert(uid, facts);
        }
        page.add(&HIDDEN, &operator, &[], (all.len() - known.len()) as u64);
    }

    fn add_benchmark(&self, page: &mut Page, benchmark: &RedisBenchmark, uid: &str, facts: &Known) {
        let (namespace, name) = (benchmark.namespace().unwrap_or_default(), benchmark.name_any());
        let entity = Entity { of: Of::Benchmark, labels: Arc::new([namespace.clone(), name.clone()]), created: None };
        let empty = RedisBenchmarkStatus::default();
        let status = benchmark.status.as_ref().unwrap_or(&empty);
        for (phase, name) in PHASES {
            page.add(&PHASE, &entity, &[name], u64::from(phase == status.phase));
        }
        if let Some(at) = finished_at(benchmark) {
            page.add(&FINISHED_TIME, &entity, &[], at.as_microsecond() as f64 / 1e6);
        }
        let task = self.tasks.get(uid);
        let progress = task.as_ref().map(|task| task.progress()).unwrap_or_default();
        add_status(page, &entity, status, &progress);
        page.add(&MEMORY, &entity, &["object"], facts.bytes);
        if let Some(live) = &progress.live {
            page.add(&MEMORY, &entity, &["snapshots"], live.snapshot_bytes);
            page.add(&MEMORY, &entity, &["merged"], merged_bytes(live));
        }

        let trials = self.trials(benchmark, status, task.as_deref(), uid, facts);
        let older = trials.len().saturating_sub(DETAILED as usize);
        for (index, trial) in trials.iter().enumerate() {
            trial.add_to(page, &namespace, &name, index >= older);
        }
    }

    /// All trials that have begun, in order.
    fn trials(
        &self,
        benchmark: &RedisBenchmark,
        status: &RedisBenchmarkStatus,
        task: Option<&ConductTask>,
        uid: &str,
        facts: &Known,
    ) -> Vec<Arc<TrialSample>> {
        let spec = &benchmark.spec;
        let mut trials: BTreeMap<u32, Arc<TrialSample>> =
            status.trials.iter().map(|line| (line.index, Arc::new(TrialSample::of_line(line, spec)))).collect();
        if let Some(result) = &status.result
            && trials.is_empty()
        {
            let present = status.trial.as_ref();
            let setting = Setting::of_only(present.map_or(0, |trial| trial.index), spec);
            let verdict = status.verdict.as_ref().map(|verdict| verdict.value);
            let kinds = |errors: &[(String, u64)], all| error_kinds(&mut Vec::new(), errors, all);
            let started = present.and_then(|trial| Some(trial.start_at.as_ref()?.0.as_microsecond() as f64 / 1e6));
            let sample = TrialSample::of_result(setting, result, verdict, kinds).with(facts.response.clone(), started);
            trials.insert(sample.setting.trial, Arc::new(sample));
        }
        trials.extend(self.tasks.records(uid));
        if let Some(task) = task {
            trials.entry(task.trial).or_insert_with(|| {
                let asked = spec.measurement.quantiles();
                let kinds = |errors: &[(String, u64)], all| task.error_kinds(errors, all);
                Arc::new(TrialSample::live(task.setting.clone(), &task.progress(), &asked, kinds))
            });
        }
        trials.into_values().collect()
    }
}

impl Known {
    fn of(benchmark: &RedisBenchmark, version: Option<String>) -> Self {
        let bytes = serde_json::to_vec(benchmark).map_or(0, |json| json.len() as u64);
        let result = benchmark.status.as_ref().and_then(|status| status.result.as_ref());
        Self { version, bytes, response: result.and_then(trial::buckets) }
    }
}

fn add_status(page: &mut Page, entity: &Entity, status: &RedisBenchmarkStatus, progress: &ConductProgress) {
    if let Some(verdict) = &status.verdict {
        for (name, count) in verdicts(verdict.value) {
            page.add(&VERDICT, entity, &[name], count);
        }
    }
    if !status.thresholds.is_empty() {
        let outcomes = [
            (ThresholdOutcome::Pending, "Pending"),
            (ThresholdOutcome::Passed, "Passed"),
            (ThresholdOutcome::NotJudged, "NotJudged"),
            (ThresholdOutcome::Failed, "Failed"),
        ];
        for (outcome, name) in outcomes {
            let count = status.thresholds.iter().filter(|one| one.outcome == outcome).count();
            page.add(&THRESHOLDS, entity, &[name], count as u64);
        }
    }
    if let Some(shards) = status.shards {
        for (state, count) in [
            ("desired", shards.desired),
            ("armed", shards.armed),
            ("running", shards.running),
            ("finished", shards.finished),
            ("lost", shards.lost),
            ("unreachable", shards.unreachable),
        ] {
            page.add(&SHARDS, entity, &[state], u64::from(count));
        }
    }
    let reported = status.synchronization;
    let seconds = |micros: u64| micros as f64 / 1e6;
    let skew = progress.start_skew.map(|skew| skew.as_secs_f64());
    if let Some(skew) = reported.map(|known| seconds(known.start_skew_microseconds)).or(skew) {
        page.add(&START_SKEW, entity, &[], skew);
    }
    let uncertainty = progress.clock_uncertainty.map(|uncertainty| uncertainty.as_secs_f64());
    if let Some(uncertainty) = reported.map(|known| seconds(known.clock_uncertainty_microseconds)).or(uncertainty) {
        page.add(&CLOCK_UNCERTAINTY, entity, &[], uncertainty);
    }
}

fn phase_of(benchmark: &RedisBenchmark) -> Phase {
    benchmark.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// None before it has finished.
fn finished_at(benchmark: &RedisBenchmark) -> Option<Timestamp> {
    let conditions = &benchmark.status.as_ref()?.conditions;
    let finished = conditions.iter().find(|one| one.type_ == condition::FINISHED && one.status == "True")?;
    Some(finished.last_transition_time.0)
}

/// Of the counts of the merged histograms.
fn merged_bytes(live: &LivePicture) -> u64 {
    let recent = live.recent.iter().flat_map(|recent| [Some(&recent.response), recent.service.as_ref()]).flatten();
    let values: usize = recent.chain([&live.response]).map(hdrhistogram::Histogram::distinct_values).sum();
    values as u64 * 8
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;
    use redisbench_benchmark::conductor::{CacheRates, ConductStage, RecentLatency};
    use redisbench_benchmark::measurement::topology::MergedTopology;
    use redisbench_testkit::api_server::merge;
    use redisbench_wire::histogram::{EncodedHistogram, Kind};
    use redisbench_wire::snapshot::Tally;
    use redisbench_wire::timeline::Span;
    use serde_json::{Value, json};

    use super::*;
    use crate::build::Run;
    use crate::controller::status::strip_finished;
    use crate::testing::{benchmark, run, status};

    fn text(source: &Source) -> String {
        let mut page = Page::default();
        source.add_to(&mut page);
        String::from_utf8(Format::Text.encode(page)).unwrap()
    }

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|known| known == line), "no {line} in\n{text}");
    }

    fn guarded(change: Value, state: Value) -> Guarded {
        let mut object = benchmark(change);
        object.status = Some(status(state));
        serde_json::from_value(serde_json::to_value(&object).unwrap()).unwrap()
    }

    fn result() -> Value {
        let mut histogram = Kind::Request.empty();
        histogram.record_n(1_000_000, 9).unwrap();
        json!({
            "requests": {"scheduled": 20, "succeeded": 9, "errors": 11, "unsent": 0, "late": 0, "redirected": 0},
            "throughput": {"targetPerSecond": 1234, "achievedPerSecond": 900, "minPerSecond": 1, "maxPerSecond": 2},
            "bandwidth": {"sentBytesPerSecond": 1, "receivedBytesPerSecond": 2},
            "responseTime": {"percentiles": [
                {"percentile": "12.5", "nanoseconds": 1_000_000},
                {"percentile": "99", "moreThanNanoseconds": 5},
            ]},
            "errors": [{"kind": "Timeout", "count": 7, "firstMessage": ""}],
            "histogram": {"encoding": "HdrV2DeflateBase64", "data": EncodedHistogram::encode(&histogram).unwrap().as_str()},
        })
    }

    #[test]
    fn a_finished_benchmark_is_shown_from_its_status_until_it_is_gone() {
        let (reader, mut writer) = store();
        let source = Source::new(vec![reader], TaskRegistry::default(), 1);
        let object = guarded(json!({}), json!({"phase": "Succeeded", "result": result()}));
        writer.apply_watcher_event(&Event::Apply(object.clone()));
        let labels = r#"namespace="perf",benchmark="cart",target="redis",trial="0",cell="0""#;
        for _ in 0..2 {
            let text = text(&source);
            for line in [
                format!("redisbench_requests_total{{{labels},outcome=\"succeeded\"}} 9"),
                format!("redisbench_errors_total{{{labels},kind=\"Timeout\"}} 7"),
                format!("redisbench_errors_total{{{labels},kind=\"Other\"}} 4"),
                format!("redisbench_response_time_seconds_count{{{labels}}} 9"),
                // Unknown percentiles are left out.
                format!("redisbench_result_response_time_seconds{{{labels},percentile=\"12.5\"}} 0.001"),
                format!("redisbench_target_requests_per_second{{{labels}}} 1234"),
                format!("redisbench_result_requests_per_second{{{labels}}} 900"),
                "redisbench_phase{namespace=\"perf\",benchmark=\"cart\",phase=\"Succeeded\"} 1".to_owned(),
                "redisbench_benchmarks{phase=\"Succeeded\"} 1".to_owned(),
            ] {
                has(&text, &line);
            }
            assert!(!text.contains("percentile=\"99\""), "{text}");
        }
        writer.apply_watcher_event(&Event::Delete(object));
        let text = text(&source);
        assert!(!text.contains("cart"), "{text}");
        assert!(source.known.lock().unwrap().is_empty());
    }

    #[test]
    fn the_series_of_a_finished_benchmark_need_only_what_is_cached() {
        let mut result = result();
        let requests = result["requests"].clone();
        let time = json!({"p50Nanoseconds": 900_000});
        let more = json!({
            "serviceTime": time,
            "sendLateness": time,
            "responseTimeOfSucceeded": time,
            "generatorShare": [{
                "percentile": "50", "ofNanoseconds": 9, "sendingNanoseconds": 2, "readingNanoseconds": 1,
                "basisPoints": 3333}],
            "operations": [{"name": "get", "requests": requests, "hits": 9, "misses": 0, "responseTime": time}],
            "nodes": [{
                "id": "n", "address": "redis:6379", "slots": 0, "requests": 9, "errors": 0, "redirects": 0,
                "serviceTime": time, "imbalancePercent": 100}],
            "errors": [{"kind": "Timeout", "count": 7, "firstMessage": "no reply"}],
            "verification": {
                "mode": "Values", "checked": 9, "mismatched": 1, "lostWrites": 0, "lostKeys": 0, "corrupt": 0,
                "indeterminate": 0, "ambiguousWrites": 0, "readKeys": 0, "unreadKeys": 0},
        });
        merge(&mut result, more);
        let state = json!({
            "phase": "Succeeded",
            "result": result,
            "synchronization": {
                "startSkewMicroseconds": 5, "clockUncertaintyMicroseconds": 6, "commonWindowMilliseconds": 7},
            "topology": {"primaries": 1, "replicas": 0},
            "verdict": {
                "value": "Valid", "limitedBy": "Rate",
                "reasons": [{"reason": "Misses", "severity": "Valid", "message": "m"}]},
            "artifacts": [{"name": "result.json", "configMap": "cart-result-0"}],
        });
        let line = json!({
            "index": 0, "parameters": {"load.pipeline": "16"}, "state": "Completed", "attempt": 1, "verdict": "Valid",
            "requests": {"succeeded": 9, "errors": 0, "unsent": 0, "scheduled": 9, "unknown": 0, "inFlight": 0},
            "achievedPerSecond": 9, "p50Nanoseconds": 5, "p99Nanoseconds": 6, "p999Nanoseconds": 7, "why": "w".repeat(96)});
        let shown = |object: Guarded| -> Vec<String> {
            let (reader, mut writer) = store();
            writer.apply_watcher_event(&Event::Apply(object));
            let text = text(&Source::new(vec![reader], TaskRegistry::default(), 1));
            let lines = text.lines().filter(|line| !line.starts_with("redisbench_benchmark_memory_bytes"));
            lines.map(str::to_owned).collect()
        };
        for trials in [0, 250] {
            let mut state = state.clone();
            state["trials"] = vec![line.clone(); trials].into();
            let whole = guarded(json!({}), state);
            let mut cached = whole.clone();
            strip_finished(cached.0.as_mut().unwrap().status.as_mut().unwrap());
            let bytes = |object: &Guarded| serde_json::to_vec(object.0.as_ref().unwrap()).unwrap().len();
            assert!(bytes(&cached) + 96 * trials < bytes(&whole));
            assert_eq!(shown(cached), shown(whole));
        }
    }

    #[test]
    fn the_newest_finished_benchmarks_keep_series() {
        let (reader, mut writer) = store();
        for (name, at) in
            [("old", "2026-01-01T00:00:00Z"), ("new", "2026-01-03T00:00:00Z"), ("mid", "2026-01-02T00:00:00Z")]
        {
            let finished = json!({
                "type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": at,
            });
            let state = json!({"phase": "Succeeded", "conditions": [finished]});
            writer.apply_watcher_event(&Event::Apply(guarded(json!({"metadata": {"name": name, "uid": name}}), state)));
        }
        let running = guarded(json!({"metadata": {"name": "running", "uid": "r"}}), json!({"phase": "Running"}));
        writer.apply_watcher_event(&Event::Apply(running));
        let shown = |finished| {
            let text = text(&Source::new(vec![reader.clone()], TaskRegistry::default(), finished));
            has(&text, "redisbench_benchmarks{phase=\"Succeeded\"} 3");
            has(&text, &format!("redisbench_hidden_benchmarks {}", 3_usize.saturating_sub(finished)));
            let time = "redisbench_finished_timestamp_seconds{namespace=\"perf\",benchmark=\"new\"} 1767398400.0";
            assert_eq!(text.lines().any(|line| line == time), finished > 0, "{text}");
            ["old", "mid", "new", "running"].map(|name| text.contains(&format!("benchmark=\"{name}\"")))
        };
        assert_eq!(shown(0), [false, false, false, true]);
        assert_eq!(shown(2), [false, true, true, true]);
        assert_eq!(shown(9), [true, true, true, true]);
    }

    #[test]
    fn samples_are_bounded_and_benchmarks_at_work_come_first() {
        let (reader, mut writer) = store();
        let tasks = TaskRegistry::default();
        let _work = tasks.put_running(Run { uid: "working".into(), ..run() }, 0, ConductProgress::default());
        for name in ["first", "second", "working"] {
            let object = guarded(json!({"metadata": {"name": name, "uid": name}}), json!({"phase": "Pending"}));
            writer.apply_watcher_event(&Event::Apply(object));
        }
        let text = text(&Source { samples: 10, ..Source::new(vec![reader], tasks, 1) });
        assert!(text.contains("benchmark=\"working\"") && !text.contains("benchmark=\"first\""), "{text}");
        has(&text, "redisbench_hidden_benchmarks 2");
    }

    #[test]
    fn trials_are_series_of_their_own_and_stay() {
        let (reader, mut writer) = store();
        let tasks = TaskRegistry::default();
        let source = Source::new(vec![reader], tasks.clone(), 1);
        let line = json!({
            "index": 0, "target": "old", "cell": 0, "repeat": 0, "state": "Completed", "attempt": 1,
            "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0},
            "achievedPerSecond": 500, "p99Nanoseconds": 2_000_000, "verdict": "Valid",
        });
        let object = guarded(json!({}), json!({"phase": "Running", "trials": [line]}));
        writer.apply_watcher_event(&Event::Apply(object));

        let mut response = Kind::Request.empty();
        response.record_n(1_000_000, 5).unwrap();
        let mut recent = Kind::Request.empty();
        recent.record_n(3_000_000, 2_000).unwrap();
        let picture = LivePicture {
            total: Tally { scheduled: 5, succeeded: 5, ..Tally::default() },
            warmup: Tally::default(),
            response,
            errors: Vec::new(),
            verification: None,
            percent: 1,
            achieved_per_second: 400,
            recent: Some(RecentLatency { response: recent, service: None, span: Span::default() }),
            caches: Some(CacheRates { hits_per_second: 900, invalidations_per_second: 0 }),
            measuring: true,
            complete: true,
            snapshot_bytes: 4_096,
            topology: MergedTopology::default(),
            shards: Vec::new(),
            nodes: Vec::new(),
        };
        let stage = ConductStage::Running;
        let progress =
            ConductProgress { stage, trial: 1, of: 2, live: Some(Arc::new(picture)), ..ConductProgress::default() };
        let publish = tasks.put_running(Run { uid: "u-1".into(), ..run() }, 1, progress.clone());
        let (first, second) = (r#"target="old",trial="0",cell="0""#, r#"target="",trial="1",cell="0""#);
        let shown = text(&source);
        let labelled = |name: &str, trial: &str, rest: &str| {
            format!("redisbench_{name}{{namespace=\"perf\",benchmark=\"cart\",{trial}{rest}}}")
        };
        has(&shown, &(labelled("requests_total", first, ",outcome=\"succeeded\"") + " 10"));
        has(&shown, &(labelled("result_response_time_seconds", first, ",percentile=\"99\"") + " 0.002"));
        has(&shown, &(labelled("trial_verdict", first, ",verdict=\"Valid\"") + " 1"));
        has(&shown, &(labelled("requests_total", second, ",outcome=\"succeeded\"") + " 5"));
        has(&shown, &(labelled("recent_requests_per_second", second, "") + " 400"));
        let cached = |event: &str| labelled("recent_cache_events_per_second", second, &format!(",event=\"{event}\""));
        has(&shown, &(cached("hit") + " 900"));
        has(&shown, &(cached("invalidation") + " 0"));
        let p99 = shown
            .lines()
            .find(|line| line.starts_with(&labelled("recent_response_time_seconds", second, ",percentile=\"99\"")));
        assert!(p99.is_some_and(|line| line.contains(" 0.003")), "{shown}");

        has(&shown, "redisbench_benchmark_memory_bytes{namespace=\"perf\",benchmark=\"cart\",part=\"snapshots\"} 4096");

        // After a takeover, no counter is shown before it has the requests of all shards.
        let partial = progress.live.as_deref().cloned().map(|live| Arc::new(LivePicture { complete: false, ..live }));
        publish.send(ConductProgress { live: partial, ..progress.clone() }).unwrap();
        let shown = text(&source);
        assert!(!shown.contains(&labelled("requests_total", second, "").replace('}', ",")), "{shown}");

        // Gauges of the last seconds end with the load; counters stay.
        publish.send(ConductProgress { stage: ConductStage::Collecting, ..progress }).unwrap();
        let shown = text(&source);
        assert!(!shown.contains("redisbench_recent"), "{shown}");
        has(&shown, &(labelled("requests_total", second, ",outcome=\"succeeded\"") + " 5"));
    }
}
