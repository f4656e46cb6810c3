//! State kept between reconciliations. All of it may be lost: then a status is written or a retry happens a little early.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redisbench_benchmark::api::{Problem, RedisBenchmarkSpec, check_drivers, json_bytes};
use redisbench_benchmark::human;
use redisbench_benchmark::plan::{Plan, compile};
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::build::{Drivers, Run};
use crate::environment::Compute;
use crate::tasks::TaskRegistry;

/// The most statuses per second that one operator writes for new numbers only.
const WRITES_PER_SECOND: u32 = 20;
/// The first and the longest pause before a retry. Users wait for this pause after they free a taken name, or after an outage of the API
/// server.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// The same after a conflict. Usually the watch delivers the other client's write at once.
const CONFLICT_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// A temporary failure is published after this number of consecutive failures.
const LASTING: u32 = 4;
/// Maximum bytes of all kept plans with their specs, as JSON. In memory, a plan of many short arguments takes an estimated ten times as
/// much, and the operator has 512 MiB by default. The plan of a conducted benchmark is always kept, because several reconciliations per
/// second need it, so a benchmark begins only if there is room for its plan. Others are reconciled when something changes, and then
/// compiled again if necessary.
const PLAN_BYTES: usize = 16 << 20;
/// Maximum number of plans that are compiled at once. Each may need the memory of a plan at its limit.
const COMPILES: usize = 2;

#[derive(Debug)]
pub struct Cache {
    contents: Mutex<Contents>,
    /// Maximum bytes of the kept plans.
    plan_bytes: usize,
    compiles: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Contents {
    benchmarks: HashMap<String, Entry>,
    second: Option<(Instant, u32)>,
    /// Number of uses of plans. Orders them by their last use.
    uses: u64,
}

#[derive(Debug, Default)]
struct Entry {
    namespace: String,
    written: Option<Instant>,
    cleared: bool,
    failures: u32,
    conflicts: u32,
    failure: Option<(&'static str, String)>,
    kept: Option<Kept>,
    /// Bytes of its latest plan, kept or not.
    plan_bytes: Option<usize>,
    /// May be conducted: its plan is counted as if it were.
    admitted: bool,
}

/// A compiled plan.
#[derive(Debug)]
struct Kept {
    of: Arc<RedisBenchmarkSpec>,
    plan: Arc<Compiled>,
    /// Its bytes with its spec, as JSON.
    bytes: usize,
    /// The number of its last use.
    used: u64,
}

impl Contents {
    /// The entry of `uid`, new if there is none. With its namespace from the start, so that it can be forgotten by namespace.
    fn entry(&mut self, namespace: &str, uid: &str) -> &mut Entry {
        let new = || Entry { namespace: namespace.to_owned(), ..Entry::default() };
        self.benchmarks.entry(uid.to_owned()).or_insert_with(new)
    }

    /// The kept plan of `uid` and its spec.
    fn plan(&mut self, uid: &str) -> Option<(Arc<RedisBenchmarkSpec>, Arc<Compiled>)> {
        self.uses += 1;
        let kept = self.benchmarks.get_mut(uid)?.kept.as_mut()?;
        kept.used = self.uses;
        Some((kept.of.clone(), kept.plan.clone()))
    }

    /// Removes plans, the least recently used first, until the rest takes at most `budget` bytes. Never removes those of `conducted`.
    fn evict(&mut self, budget: usize, conducted: &HashSet<String>) -> Vec<Kept> {
        let kept = self.benchmarks.values().filter_map(|entry| entry.kept.as_ref());
        let mut bytes: usize = kept.map(|kept| kept.bytes).sum();
        if bytes <= budget {
            return Vec::new();
        }
        let idle = self.benchmarks.iter_mut().filter(|(uid, _)| !conducted.contains(*uid));
        let mut idle: Vec<_> = idle.map(|(_, entry)| &mut entry.kept).filter(|kept| kept.is_some()).collect();
        idle.sort_by_key(|kept| kept.as_ref().map(|kept| kept.used));
        let mut evicted = Vec::new();
        for kept in idle {
            if bytes <= budget {
                break;
            }
            if let Some(kept) = kept.take() {
                bytes -= kept.bytes;
                evicted.push(kept);
            }
        }
        evicted
    }
}

/// The trials of a spec, or all its errors.
pub type Compiled = Result<Plan, String>;

impl Default for Cache {
    fn default() -> Self {
        Self::within(PLAN_BYTES)
    }
}

impl Cache {
    /// A cache that keeps plans of at most this many bytes, besides those of conducted benchmarks.
    pub fn within(plan_bytes: usize) -> Self {
        Self { contents: Mutex::default(), plan_bytes, compiles: Arc::new(Semaphore::new(COMPILES)) }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // Entries are independent, so a panic elsewhere leaves no partial change.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the status of `uid` was written.
    pub fn since_write(&self, uid: &str) -> Option<Duration> {
        self.lock().benchmarks.get(uid)?.written.map(|at| at.elapsed())
    }

    /// Records that the status of `uid` was written, or that a write was tried.
    pub fn wrote(&self, namespace: &str, uid: &str) {
        self.lock().entry(namespace, uid).written = Some(Instant::now());
    }

    /// Returns whether the children of `uid` were deleted and none was created since.
    pub fn cleared(&self, uid: &str) -> bool {
        self.lock().benchmarks.get(uid).is_some_and(|entry| entry.cleared)
    }

    /// Records whether the children of `uid` were deleted.
    pub fn set_cleared(&self, namespace: &str, uid: &str, cleared: bool) {
        self.lock().entry(namespace, uid).cleared = cleared;
    }

    /// The trials of `spec`, of the benchmark of `run`, which may name `drivers`. Cached while the spec is the same, because there may be
    /// hundreds of trials and several reconciliations per second. If the plans together exceed the budget, those of benchmarks without a
    /// task in `tasks` are dropped, possibly this one too.
    ///
    /// # Errors
    /// If compiling panics.
    pub async fn plan(
        &self,
        run: &Run,
        spec: &RedisBenchmarkSpec,
        drivers: &Drivers,
        compute: &Compute,
        tasks: &TaskRegistry,
    ) -> Result<Arc<Compiled>, JoinError> {
        let known = self.lock().plan(&run.uid);
        if let Some((_, plan)) = known.filter(|(of, _)| **of == *spec) {
            return Ok(plan);
        }
        let known: Vec<&str> = drivers.images.keys().map(String::as_str).collect();
        let unknown = check_drivers(spec, &known, "add its image to drivers in the operator's chart");
        let of = Arc::new(spec.clone());
        let (name, compiled) = (run.benchmark.clone(), of.clone());
        // The work continues if its caller gives up, so it holds the permit itself. The semaphore is never closed.
        let permit = self.compiles.clone().acquire_owned().await;
        let work = move || {
            let plan =
                compile(&compiled, &name).and_then(|plan| if unknown.is_empty() { Ok(plan) } else { Err(unknown) });
            let joined =
                |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let plan = plan.map_err(joined);
            let bytes = plan.as_ref().map_or_else(String::len, Plan::json_bytes) + json_bytes(compiled.as_ref());
            drop(permit);
            (Arc::new(plan), bytes)
        };
        let (plan, bytes) = compute.run(work).await?;
        let kept = Kept { of, plan: plan.clone(), bytes, used: 0 };
        let conducted = tasks.of_namespace(None).into_iter().collect();
        let evicted = self.keep(run, kept, &conducted);
        // Freeing a large plan takes a while, so not under the lock.
        drop(evicted);
        Ok(plan)
    }

    /// Keeps a plan of the benchmark of `run`. Returns those that were evicted for it.
    fn keep(&self, run: &Run, kept: Kept, conducted: &HashSet<String>) -> Vec<Kept> {
        let mut contents = self.lock();
        contents.uses += 1;
        let used = contents.uses;
        let entry = contents.entry(&run.namespace, &run.uid);
        entry.plan_bytes = Some(kept.bytes);
        entry.kept = Some(Kept { used, ..kept });
        contents.evict(self.plan_bytes, conducted)
    }

    /// Admits the benchmark `uid`, which is to begin, if its latest plan fits into the budget beside those of conducted and admitted ones.
    /// One alone always fits. Returns why it does not fit.
    pub fn admit(&self, uid: &str, tasks: &TaskRegistry) -> Option<String> {
        let conducted: HashSet<String> = tasks.of_namespace(None).into_iter().collect();
        let mut contents = self.lock();
        let counts = |(other, entry): (&String, &Entry)| {
            let counts = other != uid && (entry.admitted || conducted.contains(other));
            entry.plan_bytes.filter(|_| counts)
        };
        let others: usize = contents.benchmarks.iter().filter_map(counts).sum();
        let entry = contents.benchmarks.get_mut(uid)?;
        let bytes = entry.plan_bytes?;
        entry.admitted = others == 0 || others + bytes <= self.plan_bytes;
        let message = || {
            // The same as long as it waits.
            let (needed, all) = (human::bytes(bytes as u64), human::bytes(self.plan_bytes as u64));
            format!(
                "waiting for memory of the operator: its plan needs {needed}, and those of running benchmarks leave less of \
                 {all}; it begins when others have finished"
            )
        };
        (!entry.admitted).then(message)
    }

    /// Drops the trials of the benchmark of `run`, which has finished or waits.
    pub fn drop_plan(&self, run: &Run) {
        let mut contents = self.lock();
        let entry = contents.entry(&run.namespace, &run.uid);
        entry.admitted = false;
        let dropped = entry.kept.take();
        drop(contents);
        drop(dropped);
    }

    #[cfg(test)]
    pub fn has_plan(&self, uid: &str) -> bool {
        self.lock().benchmarks.get(uid).is_some_and(|entry| entry.kept.is_some())
    }

    /// Returns whether another status may be written in this second.
    pub fn may_write(&self) -> bool {
        let mut contents = self.lock();
        let second = contents.second.get_or_insert_with(|| (Instant::now(), 0));
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 += 1;
        second.1 <= WRITES_PER_SECOND
    }

    /// The failure of the last reconciliation of `uid` that a person can resolve.
    pub fn failure(&self, uid: &str) -> Option<(&'static str, String)> {
        self.lock().benchmarks.get(uid)?.failure.clone()
    }

    /// Records a failed reconciliation of `uid`, and returns the pause before the next. Both `failure` and `lasting_failure` are reason and
    /// message; the second is stored only after several consecutive failures.
    pub fn failed(
        &self,
        namespace: &str,
        uid: &str,
        failure: Option<(&'static str, String)>,
        lasting_failure: Option<(&'static str, String)>,
        chance: u64,
    ) -> Duration {
        let mut contents = self.lock();
        let entry = contents.entry(namespace, uid);
        let pause = growing(PAUSES, &mut entry.failures);
        entry.failure = failure.or(lasting_failure.filter(|_| entry.failures >= LASTING));
        jitter(pause, chance)
    }

    /// Records a conflict about `uid`, and returns the pause before the next reconciliation.
    pub fn conflicted(&self, namespace: &str, uid: &str, chance: u64) -> Duration {
        let mut contents = self.lock();
        let entry = contents.entry(namespace, uid);
        jitter(growing(CONFLICT_PAUSES, &mut entry.conflicts), chance)
    }

    /// Records a successful reconciliation of `uid`.
    pub fn succeeded(&self, uid: &str) {
        if let Some(entry) = self.lock().benchmarks.get_mut(uid) {
            (entry.failures, entry.conflicts) = (0, 0);
            entry.failure = None;
        }
    }

    /// The UIDs of benchmarks with an entry in `namespace`, or in all namespaces.
    pub fn of_namespace(&self, namespace: Option<&str>) -> Vec<String> {
        let contents = self.lock();
        let inside =
            contents.benchmarks.iter().filter(|(_, entry)| namespace.is_none_or(|name| name == entry.namespace));
        inside.map(|(uid, _)| uid.clone()).collect()
    }

    /// Drops the entry of a deleted benchmark.
    pub fn forget(&self, uid: &str) {
        self.lock().benchmarks.remove(uid);
    }
}

/// The pause after `times` in a row, which it increments.
fn growing((first, longest): (Duration, Duration), times: &mut u32) -> Duration {
    let doublings = (*times).min(16);
    *times = times.saturating_add(1);
    first.saturating_mul(1 << doublings).min(longest)
}

/// Between half and one and a half of `pause`, by `chance`, so that simultaneous failures are not retried simultaneously.
pub fn jitter(pause: Duration, chance: u64) -> Duration {
    pause / 2 + pause.saturating_mul(u32::try_from(chance % 1024).unwrap_or(0)) / 1024
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tasks::ARTIFACTS_LIMIT;
    use crate::testing::benchmark;

    /// The run of the benchmark `uid`.
    fn run_of(uid: &str) -> Run {
        Run { namespace: "perf".into(), benchmark: "cart".into(), uid: uid.into(), id: "r".into() }
    }

    /// Keeps a plan of this size for each of `uids`, one after the other.
    fn keep_all(cache: &Cache, uids: &[&str], bytes: usize, conducted: &HashSet<String>) {
        let of = Arc::new(benchmark(json!({})).spec);
        for uid in uids {
            let kept = Kept { of: of.clone(), plan: Arc::new(Err(String::new())), bytes, used: 0 };
            cache.keep(&run_of(uid), kept, conducted);
        }
    }

    /// Those of `uids` that have a plan.
    fn kept<'a>(cache: &Cache, uids: &[&'a str]) -> Vec<&'a str> {
        uids.iter().copied().filter(|uid| cache.has_plan(uid)).collect()
    }

    #[test]
    fn the_least_recently_used_plans_are_evicted() {
        let cache = Cache::within(30);
        let uids = ["a", "b", "c", "d", "e"];
        keep_all(&cache, &uids[..3], 10, &HashSet::new());
        assert_eq!(kept(&cache, &uids), ["a", "b", "c"], "exactly the budget");
        cache.lock().plan("a").unwrap();
        keep_all(&cache, &["d"], 10, &HashSet::new());
        assert_eq!(kept(&cache, &uids), ["a", "c", "d"]);
        keep_all(&cache, &["e"], 20, &HashSet::new());
        assert_eq!(kept(&cache, &uids), ["d", "e"]);
        // Replaces the one that it has.
        keep_all(&cache, &["e"], 15, &HashSet::new());
        assert_eq!(kept(&cache, &uids), ["d", "e"]);
    }

    #[test]
    fn plans_of_conducted_benchmarks_are_never_evicted() {
        let cache = Cache::within(20);
        let uids = ["a", "b", "c", "d"];
        let conducted: HashSet<String> = ["a".to_owned(), "b".to_owned(), "c".to_owned()].into();
        keep_all(&cache, &["a", "d", "b"], 10, &conducted);
        assert_eq!(kept(&cache, &uids), ["a", "b"]);
        keep_all(&cache, &["c"], 10, &conducted);
        assert_eq!(kept(&cache, &uids), ["a", "b", "c"]);
        keep_all(&cache, &["d"], 10, &conducted);
        assert_eq!(kept(&cache, &uids), ["a", "b", "c"], "no room for others");
        // Once they are conducted no more, the next plan takes their place.
        keep_all(&cache, &["d"], 10, &HashSet::new());
        assert_eq!(kept(&cache, &uids), ["c", "d"]);
    }

    #[tokio::test]
    async fn plans_larger_than_the_budget_together_are_compiled_again() {
        let (spec, drivers) = (benchmark(json!({})).spec, Drivers::default());
        let plan = async |cache: &Cache, uid: &str| {
            cache.plan(&run_of(uid), &spec, &drivers, &Compute::Here, &TaskRegistry::default()).await.unwrap()
        };
        let whole = Cache::default();
        let first = plan(&whole, "a").await;
        assert!(Arc::ptr_eq(&first, &plan(&whole, "a").await));
        let bytes = whole.lock().benchmarks["a"].kept.as_ref().unwrap().bytes;
        assert!(bytes > json_bytes(&spec), "{bytes}");
        // One fits, two do not.
        let cache = Cache::within(bytes * 2 - 1);
        for uid in ["a", "b", "a", "b"] {
            assert_eq!(plan(&cache, uid).await, first);
            assert_eq!(kept(&cache, &["a", "b"]), [uid]);
        }
        // None fits.
        let cache = Cache::within(bytes - 1);
        assert_eq!(plan(&cache, "a").await, first);
        assert_eq!(kept(&cache, &["a"]), Vec::<&str>::new());
    }

    #[test]
    fn a_benchmark_begins_only_if_there_is_room_for_its_plan() {
        let (cache, tasks, none) = (Cache::within(20), TaskRegistry::default(), HashSet::new());
        assert_eq!(cache.admit("a", &tasks), None, "nothing is known about it");
        keep_all(&cache, &["a"], 30, &none);
        assert_eq!(cache.admit("a", &tasks), None, "one alone");
        keep_all(&cache, &["b", "c"], 10, &none);
        let waits = cache.admit("b", &tasks).unwrap();
        assert!(waits.contains("its plan needs 10 B, and those of running benchmarks leave less of 20 B"), "{waits}");
        cache.drop_plan(&run_of("a"));
        assert_eq!([cache.admit("b", &tasks), cache.admit("c", &tasks)], [None, None], "exactly the budget");
        assert!(cache.admit("a", &tasks).is_some(), "its plan was dropped, but not its size");
        assert_eq!(cache.admit("c", &tasks), None, "it does not count against itself");
        cache.drop_plan(&run_of("b"));
        cache.forget("c");
        assert_eq!(cache.admit("a", &tasks), None);
    }

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let cache = Cache::default();
        for chance in 0..40 {
            assert!(cache.failed("perf", "a", None, None, chance * 27) <= PAUSES.1 * 3 / 2);
        }
        assert!(cache.failed("perf", "a", None, None, 0) >= PAUSES.1 / 2);
        cache.succeeded("a");
        assert!(cache.failed("perf", "a", None, None, 1023) <= PAUSES.0 * 3 / 2);
    }

    #[test]
    fn a_result_that_is_refused_is_given_up_within_two_minutes() {
        let cache = Cache::default();
        let mut waited = Duration::ZERO;
        while waited < ARTIFACTS_LIMIT {
            waited += cache.failed("perf", "a", None, None, 1023);
        }
        // Given up by this attempt, and reported by the next.
        assert!(waited + cache.failed("perf", "a", None, None, 1023) <= 2 * ARTIFACTS_LIMIT);
    }

    #[test]
    fn conflicts_do_not_make_a_fast_loop() {
        let cache = Cache::default();
        let pauses: Vec<Duration> = (0..20).map(|_| cache.conflicted("perf", "a", 512)).collect();
        assert_eq!((pauses[0], pauses[19]), CONFLICT_PAUSES);
        assert!(pauses.is_sorted());
        cache.succeeded("a");
        assert_eq!(cache.conflicted("perf", "a", 512), CONFLICT_PAUSES.0);
    }

    #[test]
    fn what_may_pass_is_told_when_it_does_not() {
        let cache = Cache::default();
        let told = |_| {
            cache.failed("perf", "a", None, Some(("Failing", "why".into())), 0);
            cache.failure("a").is_some()
        };
        assert_eq!((0..5).map(told).collect::<Vec<_>>(), [false, false, false, true, true]);
        cache.succeeded("a");
        assert_eq!(cache.failure("a"), None);
    }

    #[test]
    fn each_entry_has_its_namespace_from_the_start() {
        let cache = Cache::default();
        cache.wrote("perf", "written");
        cache.set_cleared("perf", "cleared", true);
        cache.failed("perf", "failed", None, None, 0);
        cache.conflicted("perf", "conflicted", 0);
        let mut inside = cache.of_namespace(Some("perf"));
        inside.sort();
        assert_eq!(inside, ["cleared", "conflicted", "failed", "written"]);
        assert_eq!(cache.of_namespace(Some("other")), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_bounded_per_second() {
        let cache = Cache::default();
        assert_eq!((0..100).filter(|_| cache.may_write()).count(), WRITES_PER_SECOND as usize);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(cache.may_write());
    }
}
