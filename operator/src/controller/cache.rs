//! State kept between reconciliations. All of it may be lost: then a status is written or a retry happens a little early.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redisbench_benchmark::api::{Problem, RedisBenchmarkSpec, check_drivers};
use redisbench_benchmark::plan::{Plan, compile};
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::build::{Drivers, Run};
use crate::environment::Compute;

/// The most statuses per second that one operator writes for new numbers only.
const WRITES_PER_SECOND: u32 = 20;
/// The first and the longest pause before a retry. Users wait for this pause after they free a taken name, or after an outage of the API
/// server.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// The same after a conflict. Usually the watch delivers the other client's write at once.
const CONFLICT_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// A temporary failure is published after this number of consecutive failures.
const LASTING: u32 = 4;

#[derive(Debug, Default)]
pub struct Cache(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    benchmarks: HashMap<String, Entry>,
    second: Option<(Instant, u32)>,
}

#[derive(Debug, Default)]
struct Entry {
    namespace: String,
    written: Option<Instant>,
    cleared: bool,
    failures: u32,
    conflicts: u32,
    failure: Option<(&'static str, String)>,
    compiled: Option<(RedisBenchmarkSpec, Arc<Compiled>)>,
}

impl Contents {
    /// The entry of `uid`, new if there is none. With its namespace from the start, so that it can be forgotten by namespace.
    fn entry(&mut self, namespace: &str, uid: &str) -> &mut Entry {
        let new = || Entry { namespace: namespace.to_owned(), ..Entry::default() };
        self.benchmarks.entry(uid.to_owned()).or_insert_with(new)
    }
}

/// The trials of a spec, or all its errors.
pub type Compiled = Result<Plan, String>;

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        // Entries are independent, so a panic elsewhere leaves no partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// hundreds of trials and several reconciliations per second.
    ///
    /// # Errors
    /// If compiling panics.
    pub async fn plan(
        &self,
        run: &Run,
        spec: &RedisBenchmarkSpec,
        drivers: &Drivers,
        compute: &Compute,
    ) -> Result<Arc<Compiled>, JoinError> {
        let known = self.lock().benchmarks.get(&run.uid).and_then(|entry| entry.compiled.clone());
        if let Some((_, plan)) = known.filter(|(known, _)| known == spec) {
            return Ok(plan);
        }
        let (name, of) = (run.benchmark.clone(), spec.clone());
        let plan = compute.run(move || compile(&of, &name)).await?;
        let joined = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let known: Vec<&str> = drivers.images.keys().map(String::as_str).collect();
        let unknown = check_drivers(spec, &known, "add its image to drivers in the operator's chart");
        let plan = plan.and_then(|plan| if unknown.is_empty() { Ok(plan) } else { Err(unknown) });
        let plan = Arc::new(plan.map_err(joined));
        self.lock().entry(&run.namespace, &run.uid).compiled = Some((spec.clone(), plan.clone()));
        Ok(plan)
    }

    /// Drops the trials of the benchmark of `run`, which has finished.
    pub fn drop_plan(&self, run: &Run) {
        let mut contents = self.lock();
        let entry = contents.benchmarks.entry(run.uid.clone()).or_default();
        entry.namespace.clone_from(&run.namespace);
        entry.compiled = None;
    }

    #[cfg(test)]
    pub fn has_plan(&self, uid: &str) -> bool {
        self.lock().benchmarks.get(uid).is_some_and(|entry| entry.compiled.is_some())
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
    use super::*;
    use crate::tasks::ARTIFACTS_LIMIT;

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
