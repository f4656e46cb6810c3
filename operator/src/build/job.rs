use std::time::Duration;

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
};
use redisbench_wire::exit::{ABANDONED, REFUSED};

use super::{CONTAINER, JobInput, pod};

/// Exit codes of shards that a retry cannot help: a bad plan, credential or target, and a limit that was exceeded after a start.
pub const FINAL_EXITS: [i32; 2] = [REFUSED as i32, ABANDONED as i32];
/// Retries per shard.
pub const RETRIES: i32 = 3;

/// The Indexed Job whose pods are the run's shards.
pub fn job(input: &JobInput<'_>) -> Job {
    let shards = i32::try_from(input.spec().plan.shards).unwrap_or(i32::MAX);
    let mut metadata = input.run.owned(input.run.child_name());
    // Validation refuses keys of ours.
    metadata.labels.get_or_insert_default().extend(input.spec().shards.job_labels.clone());
    Job {
        metadata,
        spec: Some(JobSpec {
            active_deadline_seconds: i64::try_from(deadline(input.plan.longest()).as_secs()).ok(),
            backoff_limit_per_index: Some(RETRIES),
            completion_mode: Some("Indexed".into()),
            completions: Some(shards),
            parallelism: Some(shards),
            pod_failure_policy: Some(PodFailurePolicy { rules: failure_rules() }),
            pod_replacement_policy: Some("Failed".into()),
            template: pod::template(input),
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// `activeDeadlineSeconds`, a safety net. Includes a day for the preload and up to two restarts.
fn deadline(longest: Duration) -> Duration {
    const SLACK: Duration = Duration::from_secs(24 * 3600);
    longest + SLACK
}

/// Never `FailJob`: one bad index must not kill shards that hold results.
fn failure_rules() -> Vec<PodFailurePolicyRule> {
    vec![
        PodFailurePolicyRule {
            action: "Ignore".into(),
            on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                type_: "DisruptionTarget".into(),
                status: "True".into(),
            }]),
            ..PodFailurePolicyRule::default()
        },
        PodFailurePolicyRule {
            action: "FailIndex".into(),
            on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
                container_name: Some(CONTAINER.into()),
                operator: "In".into(),
                values: FINAL_EXITS.to_vec(),
            }),
            ..PodFailurePolicyRule::default()
        },
    ]
}
