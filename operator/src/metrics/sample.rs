//! The source of the metrics: the conductor of a running benchmark, otherwise the status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use redisbench_benchmark::api::status::{Latencies, Percentile, TrialResult};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::conductor::{ConductStage, LivePicture, Progress};
use redisbench_benchmark::measurement::latencies;
use redisbench_benchmark::quantile::Quantile;
use redisbench_wire::histogram::{EncodedHistogram, Kind};

use super::benchmark::{Buckets, Sample};
use crate::tasks::{ConductTask, TaskRegistry};

/// Access to the state of all benchmarks.
pub struct Source {
    stores: Vec<Store<DeserializeGuard<RedisBenchmark>>>,
    tasks: TaskRegistry,
    /// Decoded histograms of finished benchmarks, by UID.
    decoded: Mutex<HashMap<String, Option<Arc<Buckets>>>>,
}

impl Source {
    /// For the benchmarks in `stores`: one store for each watched namespace, or one for all.
    pub fn new(stores: Vec<Store<DeserializeGuard<RedisBenchmark>>>, tasks: TaskRegistry) -> Self {
        Self { stores, tasks, decoded: Mutex::default() }
    }

    /// The current state of every benchmark.
    pub fn samples(&self) -> Vec<Sample> {
        let objects: Vec<_> = self.stores.iter().flat_map(Store::state).collect();
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::take(&mut *decoded);
        objects
            .iter()
            .filter_map(|object| object.0.as_ref().ok())
            .map(|benchmark| {
                let uid = benchmark.uid().unwrap_or_default();
                let mut sample = self.sample(&uid, benchmark);
                if let Some(result) = benchmark.status.as_ref().and_then(|status| status.result.as_ref()) {
                    let buckets = former.get(&uid).cloned().unwrap_or_else(|| buckets(result));
                    sample.response.clone_from(&buckets);
                    decoded.insert(uid, buckets);
                }
                sample
            })
            .collect()
    }

    fn sample(&self, uid: &str, benchmark: &RedisBenchmark) -> Sample {
        let empty = RedisBenchmarkStatus::default();
        let status = benchmark.status.as_ref().unwrap_or(&empty);
        let conduct = self.tasks.get(uid);
        let mut sample = Sample {
            namespace: benchmark.namespace().unwrap_or_default(),
            benchmark: benchmark.name_any(),
            phase: status.phase,
            target_rate: target_rate(benchmark, status, conduct.as_deref()),
            shards: status.shards,
            start_skew: status.synchronization.map(|known| known.start_skew_microseconds as f64 / 1e6),
            clock_uncertainty: status.synchronization.map(|known| known.clock_uncertainty_microseconds as f64 / 1e6),
            verdict: status.verdict.as_ref().map(|verdict| verdict.value),
            bytes: self.tasks.final_bytes(uid),
            ..Sample::default()
        };
        match (&status.result, conduct) {
            (Some(result), _) => finished(&mut sample, result),
            (None, Some(conduct)) => {
                live(&mut sample, &conduct.progress(), &benchmark.spec.measurement.quantiles());
            }
            (None, None) => {}
        }
        sample
    }
}

/// The rate of the running trial, or of the trial in the result. The spec's rate applies only to a single trial, because sweeps and
/// searches have one per trial.
fn target_rate(
    benchmark: &RedisBenchmark,
    status: &RedisBenchmarkStatus,
    conduct: Option<&ConductTask>,
) -> Option<u64> {
    let spec = &benchmark.spec;
    let single = spec.search.is_none() && spec.sweep.is_empty();
    match (&status.result, conduct) {
        (Some(result), _) if result.throughput.target_per_second.is_some() => result.throughput.target_per_second,
        (None, Some(conduct)) => conduct.target_rate(),
        _ if single => spec.load.mean_rate(),
        _ => None,
    }
}

fn buckets(result: &TrialResult) -> Option<Arc<Buckets>> {
    let data = &result.histogram.as_ref()?.data;
    let encoded: EncodedHistogram = serde_json::from_value(serde_json::Value::String(data.clone())).ok()?;
    let histogram = encoded.decode(Kind::Request).ok()?;
    Some(Arc::new(Buckets::of(&histogram, result.requests.overflow)))
}

fn finished(sample: &mut Sample, result: &TrialResult) {
    let requests = &result.requests;
    sample.requests = vec![("succeeded", requests.succeeded), ("error", requests.errors), ("unsent", requests.unsent)];
    sample.errors = result.errors.iter().map(|error| (error.kind.clone(), error.count)).collect();
    sample.achieved_rate = Some(result.throughput.achieved_per_second);
    if let Some(found) = &result.verification {
        sample.verification = vec![
            ("checked", found.checked),
            ("mismatched", found.mismatched),
            ("corrupt", found.corrupt),
            ("lost_write", found.lost_writes),
            ("lost_key", found.lost_keys),
            ("indeterminate", found.indeterminate),
        ];
    }
    sample.response_quantiles = known(&result.response_time);
    sample.service_quantiles = result.service_time.as_ref().map(known).unwrap_or_default();
}

fn known(latencies: &Latencies) -> Vec<(String, u64)> {
    let known = |one: &Percentile| Some((Quantile::of_percent(&one.percentile)?.share(), one.nanoseconds?));
    latencies.percentiles.iter().filter_map(known).collect()
}

fn live(sample: &mut Sample, progress: &Progress, asked: &[Quantile]) {
    let seconds = |time: std::time::Duration| time.as_secs_f64();
    sample.start_skew = progress.start_skew.map(seconds);
    sample.clock_uncertainty = progress.clock_uncertainty.map(seconds);
    sample.snapshot_age = progress.oldest_snapshot_age.map(seconds);
    if progress.stage != ConductStage::Preparing
        && let Some(picture) = &progress.live
    {
        picture_of(sample, picture, asked);
    }
}

fn picture_of(sample: &mut Sample, picture: &LivePicture, asked: &[Quantile]) {
    let total = &picture.total;
    sample.requests = vec![("succeeded", total.succeeded), ("error", total.errors), ("unsent", total.unsent)];
    // The same number of kinds as in a finished result.
    sample.errors = picture.errors.iter().take(32).cloned().collect();
    sample.bytes = vec![("sent", total.sent_bytes), ("received", total.received_bytes)];
    sample.achieved_rate = Some(picture.achieved_per_second);
    if let Some(found) = &picture.verification {
        sample.verification = vec![
            ("checked", found.checked),
            ("mismatched", found.mismatched),
            ("corrupt", found.corrupt),
            ("lost_write", found.lost_writes),
            ("lost_key", found.lost_keys),
            ("indeterminate", found.indeterminate),
        ];
    }
    sample.response = Some(Arc::new(Buckets::of(&picture.response, total.overflow)));
    let quantiles = |histogram: &Histogram<u64>| -> Vec<(String, u64)> {
        asked.iter().filter_map(|quantile| Some((quantile.share(), latencies::known(histogram, *quantile)?))).collect()
    };
    if let Some(recent) = &picture.recent {
        sample.response_quantiles = quantiles(&recent.response);
        sample.service_quantiles = recent.service.as_ref().map(quantiles).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::testing::{benchmark, status};

    #[test]
    fn a_finished_benchmark_is_sampled_from_its_status_until_it_is_gone() {
        let (reader, mut writer) = store();
        let source = Source::new(vec![reader], TaskRegistry::default());
        let mut histogram = Kind::Request.empty();
        histogram.record_n(1_000_000, 9).unwrap();
        let data = EncodedHistogram::encode(&histogram).unwrap();
        let mut finished = benchmark(json!({}));
        let zero = json!({"scheduled": 10, "succeeded": 9, "errors": 1, "unsent": 0, "late": 0, "redirected": 0});
        finished.status = Some(status(json!({"phase": "Succeeded", "result": {
            "requests": zero,
            "throughput": {"achievedPerSecond": 900, "minPerSecond": 1, "maxPerSecond": 2},
            "bandwidth": {"sentBytesPerSecond": 1, "receivedBytesPerSecond": 2},
            "responseTime": {"percentiles": [
                {"percentile": "12.5", "nanoseconds": 1_000_000},
                {"percentile": "99", "moreThanNanoseconds": 5},
                {"percentile": "99.9", "neededRequests": 10_000},
            ]},
            "histogram": {"encoding": "HdrV2DeflateBase64", "data": data.as_str()},
        }})));
        let guarded: DeserializeGuard<RedisBenchmark> =
            serde_json::from_value(serde_json::to_value(&finished).unwrap()).unwrap();
        writer.apply_watcher_event(&Event::Apply(guarded.clone()));

        for _ in 0..2 {
            let samples = source.samples();
            let sample = &samples[0];
            assert_eq!((sample.namespace.as_str(), sample.benchmark.as_str()), ("perf", "cart"));
            assert_eq!(sample.requests, [("succeeded", 9), ("error", 1), ("unsent", 0)]);
            assert_eq!(sample.response.as_deref(), Some(&Buckets::of(&histogram, 0)));
            // Unknown quantiles are left out.
            assert_eq!(sample.response_quantiles, [("0.125".to_owned(), 1_000_000)]);
            assert_eq!((sample.target_rate, sample.achieved_rate), (Some(1000), Some(900)));
        }
        writer.apply_watcher_event(&Event::Delete(guarded));
        assert!(source.samples().is_empty());
        assert!(source.decoded.lock().unwrap().is_empty());
    }
}
