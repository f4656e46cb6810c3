use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{Bound, Limits, Load, TrialPlan};

use super::duration::{GoDuration, nanoseconds};
use super::limit::Threshold;
use super::spec::{OnLost, Placement, RedisBenchmarkSpec};
use super::target::TargetSecrets;
use super::template::ShardTemplate;
use crate::quantile::Quantile;

/// Added to the longest time that a trial can take by its own timeouts.
const TRIAL_GRACE: Duration = Duration::from_secs(60);
/// A shard that is armed and gets neither a start nor a call for this long has been forgotten.
const ARMED_LIMIT: Duration = Duration::from_secs(600);
/// A shard that has finished and gets no call for this long has been forgotten. The spec's collect timeout applies if it is longer.
const FINISHED_LIMIT: Duration = Duration::from_secs(600);

/// Validated spec: building objects from it cannot fail. Only [`super::validate`] creates one.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The spec of this trial alone, without sweep, repeats, search and further targets.
    pub spec: Arc<RedisBenchmarkSpec>,
    /// The plan that the shards get.
    pub plan: Arc<TrialPlan>,
    /// Secrets for the target's servers.
    pub secrets: TargetSecrets,
    /// Secrets that its sentinels do not share with the servers.
    pub sentinel_secrets: TargetSecrets,
    /// Deletes the keys after the load.
    pub cleanup: bool,
    /// Names of the stages, in order.
    pub stage_names: Vec<Option<String>>,
    /// Limits that the measurement must meet.
    pub thresholds: Vec<Threshold>,
    /// Reported percentiles of latencies, lowest first.
    pub percentiles: Vec<Quantile>,
    /// Pods that generate the load.
    pub shards: Shards,
    /// Time from the end until the benchmark is deleted, if ever.
    pub ttl_after_finished: Option<Duration>,
}

impl Validated {
    /// The same at another rate of its open loop, for `length`.
    pub(crate) fn at_rate(&self, rate: u64, length: Duration) -> Self {
        let mut plan = TrialPlan::clone(&self.plan);
        if let Load::OpenLoop { rate_per_second, .. } = &mut plan.load {
            *rate_per_second = rate;
        }
        plan.bound = Bound::Duration { nanoseconds: nanoseconds(length) };
        plan.limits = limits(&plan, &self.shards);
        let mut spec = RedisBenchmarkSpec::clone(&self.spec);
        spec.load.open_loop.iter_mut().for_each(|open| open.rate = Some(rate));
        spec.load.duration = Some(GoDuration::from(length));
        Self { plan: Arc::new(plan), spec: Arc::new(spec), ..self.clone() }
    }
}

/// The time limits of `plan`, from its other fields.
pub(super) fn limits(plan: &TrialPlan, shards: &Shards) -> Limits {
    let unsent = match plan.load {
        Load::OpenLoop { unsent_after_nanoseconds, .. } | Load::Recorded { unsent_after_nanoseconds, .. } => {
            unsent_after_nanoseconds
        }
        Load::ClosedLoop => 0,
    };
    let measured = plan.warmup_nanoseconds + plan.bound.longest_nanoseconds();
    let last = unsent + plan.timeouts.request_nanoseconds + plan.last_read_nanoseconds();
    Limits {
        trial_nanoseconds: measured + last + nanoseconds(TRIAL_GRACE),
        // The first armed shard waits for the last one, for up to the prepare timeout.
        armed_nanoseconds: nanoseconds(ARMED_LIMIT.max(shards.prepare_timeout)),
        finished_nanoseconds: nanoseconds(FINISHED_LIMIT.max(shards.collect_timeout)),
        unattended_nanoseconds: nanoseconds(shards.unattended),
    }
}

/// Pods that generate the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Shards {
    /// Reaction to the loss of a shard.
    pub on_lost: OnLost,
    /// Placement on nodes.
    pub placement: Placement,
    /// Maximum difference between start times.
    pub max_start_skew: Duration,
    /// Timeout until all are ready.
    pub prepare_timeout: Duration,
    /// Timeout for results after the end of the load.
    pub collect_timeout: Duration,
    /// Time without a call from the operator after which a shard stops its load.
    pub unattended: Duration,
    /// Labels of their Job.
    pub job_labels: BTreeMap<String, String>,
    /// Settings of the pods.
    pub template: ShardTemplate,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::sample::{checked, spec};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn limits_leave_room_for_everything_that_is_planned() {
        let load = json!({"type": "OpenLoop", "openLoop": {"rate": 9}, "duration": "10s", "warmup": "3s"});
        let limits = spec(2, &load).plan.limits;
        // Warm-up, measurement, unsent after, request timeout, grace.
        assert_eq!(limits.trial_nanoseconds, (3 + 10 + 10 + 1 + 60) * SECOND);
        assert_eq!(limits.armed_nanoseconds, 600 * SECOND);
        assert_eq!(limits.finished_nanoseconds, 600 * SECOND);
        assert_eq!(limits.unattended_nanoseconds, 300 * SECOND);
    }

    #[test]
    fn shards_hold_their_results_for_as_long_as_they_may_be_collected() {
        let spec = checked(&json!({"shards": {"collectTimeout": "1h"}}));
        assert_eq!(spec.plan.limits.finished_nanoseconds, 3600 * SECOND);
    }
}
