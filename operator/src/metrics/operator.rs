//! Metrics of the operator itself.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use redisbench_benchmark::conductor::{CallCounts, ResultMemory};
use redisbench_wire::histogram::Kind;

use super::buckets::Buckets;
use super::catalogue::{
    BUILD_INFO, LEADER, LEASE_HELD, LEASE_ROUNDS, MERGES, Of, PROCESS_START, QUEUE_LENGTH, QUEUE_WAIT,
    RECONCILE_DURATION, RECONCILIATIONS, RESIDENT_MEMORY, RESULT_MEMORY, RESULT_WAITING, SHARD_CALLS, WATCH_AGE,
    WATCH_ERRORS, WATCH_EVENTS, WATCH_FAILING,
};
use super::page::{Entity, Page};

/// Counts of this process. Clones share them. Not of types of `prometheus-client`: the series of a `Family` cannot be listed, which the
/// binary form needs.
#[derive(Clone, Debug, Default)]
pub struct OperatorMetrics(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    started: SystemTime,
    /// By result.
    reconciliations: BTreeMap<&'static str, u64>,
    durations: Histogram<u64>,
    waits: Histogram<u64>,
    /// Since when benchmarks wait for a reconciliation, by namespace and name.
    waiting: HashMap<(String, String), Instant>,
    /// By resource and scope.
    watches: BTreeMap<(&'static str, String), Watch>,
    /// By result.
    lease_rounds: BTreeMap<&'static str, u64>,
    lease_held: Option<SystemTime>,
    leading: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            started: SystemTime::now(),
            reconciliations: BTreeMap::from([("success", 0)]),
            durations: Kind::Request.empty(),
            waits: Kind::Request.empty(),
            waiting: HashMap::new(),
            watches: BTreeMap::new(),
            lease_rounds: BTreeMap::new(),
            lease_held: None,
            leading: false,
        }
    }
}

#[derive(Debug, Default)]
struct Watch {
    events: u64,
    errors: u64,
    /// The last event, or the first failure if there was none.
    last: Option<Instant>,
    failing: bool,
}

impl OperatorMetrics {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts are independent, so a panic elsewhere leaves no partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reconciliation, by the class of its error if it failed.
    pub fn reconciled(&self, took: Duration, error: Option<&'static str>) {
        let mut state = self.lock();
        *state.reconciliations.entry(error.unwrap_or("success")).or_default() += 1;
        record(&mut state.durations, took);
    }

    /// A change of a benchmark waits for a reconciliation. Further changes wait with the first.
    pub fn queued(&self, namespace: Option<&str>, name: &str) {
        self.lock().waiting.entry(key(namespace, name)).or_insert_with(Instant::now);
    }

    /// The reconciliation of a benchmark starts, or the benchmark is gone.
    pub fn dequeued(&self, namespace: Option<&str>, name: &str) {
        let mut state = self.lock();
        if let Some(since) = state.waiting.remove(&key(namespace, name)) {
            record(&mut state.waits, since.elapsed());
        }
    }

    /// Counts an event or a failure of the watch of `resource` in a namespace, or in all.
    pub fn watched(&self, resource: &'static str, scope: Option<&str>, succeeded: bool) {
        let mut state = self.lock();
        let watch = state.watches.entry((resource, scope.unwrap_or_default().to_owned())).or_default();
        watch.failing = !succeeded;
        if succeeded {
            watch.events += 1;
            watch.last = Some(Instant::now());
        } else {
            watch.errors += 1;
            watch.last.get_or_insert_with(Instant::now);
        }
    }

    pub fn lease_round(&self, result: &'static str) {
        let mut state = self.lock();
        *state.lease_rounds.entry(result).or_default() += 1;
        if result == "held" {
            state.lease_held = Some(SystemTime::now());
        }
    }

    pub fn set_leading(&self, leading: bool) {
        self.lock().leading = leading;
    }

    /// Adds all of them, with the number of `calls` to shards and of `merges` of snapshots, and the `memory` of final snapshots.
    pub fn add_to(&self, page: &mut Page, calls: &CallCounts, memory: &ResultMemory, merges: u64) {
        let state = self.lock();
        let started = unix_seconds(state.started);
        let operator = Entity { of: Of::Operator, labels: Arc::default(), created: Some(started) };
        page.add(&BUILD_INFO, &operator, &[env!("CARGO_PKG_VERSION")], 1_u64);
        page.add(&PROCESS_START, &operator, &[], started);
        if let Some(bytes) = resident_memory() {
            page.add(&RESIDENT_MEMORY, &operator, &[], bytes);
        }
        for (part, bytes) in ["reading", "kept"].into_iter().zip(memory.used()) {
            page.add(&RESULT_MEMORY, &operator, &[part], bytes as u64);
        }
        page.add(&RESULT_WAITING, &operator, &[], memory.waiting() as u64);
        page.add(&LEADER, &operator, &[], u64::from(state.leading));
        if let Some(held) = state.lease_held {
            page.add(&LEASE_HELD, &operator, &[], unix_seconds(held));
        }
        for (result, count) in &state.lease_rounds {
            page.add(&LEASE_ROUNDS, &operator, &[result], *count);
        }
        for (result, count) in &state.reconciliations {
            page.add(&RECONCILIATIONS, &operator, &[result], *count);
        }
        page.add(&RECONCILE_DURATION, &operator, &[], Arc::new(Buckets::of(&state.durations, 0)));
        page.add(&QUEUE_LENGTH, &operator, &[], state.waiting.len() as u64);
        page.add(&QUEUE_WAIT, &operator, &[], Arc::new(Buckets::of(&state.waits, 0)));
        for ((resource, scope), watch) in &state.watches {
            let labels = [*resource, scope.as_str()];
            page.add(&WATCH_EVENTS, &operator, &labels, watch.events);
            page.add(&WATCH_ERRORS, &operator, &labels, watch.errors);
            page.add(&WATCH_FAILING, &operator, &labels, u64::from(watch.failing));
            if let Some(last) = watch.last {
                page.add(&WATCH_AGE, &operator, &labels, last.elapsed().as_secs_f64());
            }
        }
        for ((call, outcome), count) in calls.all() {
            page.add(&SHARD_CALLS, &operator, &[call, outcome], count);
        }
        page.add(&MERGES, &operator, &[], merges);
    }
}

fn key(namespace: Option<&str>, name: &str) -> (String, String) {
    (namespace.unwrap_or_default().to_owned(), name.to_owned())
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// None where the kernel does not report it.
fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::super::format::Format;
    use super::*;

    #[test]
    fn the_operator_counts_its_work() {
        let metrics = OperatorMetrics::default();
        metrics.reconciled(Duration::from_millis(3), None);
        metrics.reconciled(Duration::from_millis(3), Some("conflict"));
        metrics.queued(Some("perf"), "cart");
        metrics.queued(Some("perf"), "cart");
        metrics.queued(Some("perf"), "login");
        metrics.dequeued(Some("perf"), "cart");
        metrics.watched("pods", None, true);
        metrics.watched("pods", None, false);
        metrics.lease_round("held");
        metrics.set_leading(true);
        let mut page = Page::default();
        metrics.add_to(&mut page, &CallCounts::default(), &ResultMemory::default(), 3);
        let text = String::from_utf8(Format::Text.encode(page)).unwrap();
        for line in [
            "redisbench_reconciliations_total{result=\"success\"} 1",
            "redisbench_reconciliations_total{result=\"conflict\"} 1",
            "redisbench_reconcile_duration_seconds_count 2",
            "redisbench_queue_length 1",
            "redisbench_queue_wait_seconds_count 1",
            "redisbench_watch_events_total{resource=\"pods\",scope=\"\"} 1",
            "redisbench_watch_errors_total{resource=\"pods\",scope=\"\"} 1",
            "redisbench_watch_failing{resource=\"pods\",scope=\"\"} 1",
            "redisbench_lease_rounds_total{result=\"held\"} 1",
            "redisbench_leader 1",
            "redisbench_merges_total 3",
            "redisbench_result_memory_bytes{part=\"kept\"} 0",
            "redisbench_result_reads_waiting 0",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line} in\n{text}");
        }
        assert!(resident_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
