//! The budget of disruptions of a run's pods.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Run, pod};

/// Holds evictions of the run's `shards` back until its end. A number of pods, because a share needs a controller with a scale, which a Job
/// has not. Pods that do not run may be evicted.
pub fn disruption_budget(run: &Run, shards: u32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: run.owned(run.child_name()),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(i32::try_from(shards).unwrap_or(i32::MAX))),
            selector: Some(pod::selector(run)),
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".into()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}
