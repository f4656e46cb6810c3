//! Decisions by what is observed, in the order of a run.

use std::sync::Arc;

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{ReasonKind, ShardCounts, Summary, VerdictReason, VerdictValue};
use redisbench_benchmark::conductor::{ConductProgress, ConductStage, Endpoint};
use redisbench_benchmark::measurement::{Ending, Failure};
use redisbench_benchmark::plan::compile;
use redisbench_benchmark::report::Finished;
use serde_json::{Value, json};

use super::*;
use crate::controller::observed::JobView;
use crate::tasks::Ended;
use crate::testing::{self, benchmark, status};

mod end;
mod running;
mod start;
mod trials;

const NOW: &str = "2026-01-01T01:00:00Z";

/// Decides about a benchmark with this spec and status, and checks the invariants.
fn decide_on(benchmark: &RedisBenchmark, status: &RedisBenchmarkStatus, observed: &Observed) -> Decision {
    decide_with(benchmark, status, observed, None)
}

fn decide_with(
    benchmark: &RedisBenchmark,
    status: &RedisBenchmarkStatus,
    observed: &Observed,
    problems: Option<&str>,
) -> Decision {
    let plan = problems.is_none().then(|| compile(&benchmark.spec, "cart").unwrap());
    let subject = Subject { spec: &benchmark.spec, status, generation: Some(1), problems, plan: plan.as_ref() };
    let decision = decide(&subject, observed, NOW.parse().unwrap());
    for condition in &decision.status.conditions {
        assert!(!condition.message.is_empty() && !condition.reason.is_empty(), "{condition:?}");
    }
    // Deciding again on the written status must not change it.
    let again = Subject { status: &decision.status, ..subject };
    if !decision.status.phase.is_terminal() && observed.conduct.is_some() {
        assert_eq!(decide(&again, observed, NOW.parse().unwrap()).status, decision.status);
    }
    decision
}

fn idle() -> Observed {
    Observed { fresh_run_id: "fresh".into(), ..Observed::default() }
}

fn job() -> JobView {
    JobView { uid: "job".into(), ..JobView::default() }
}

fn conducting(stage: ConductStage) -> Observed {
    let started = stage != ConductStage::Preparing;
    let progress = ConductProgress {
        stage,
        attempt: u32::from(started),
        start_at_unix_nanoseconds: started.then_some(1_767_229_200_123_456_000),
        shards: ShardCounts { desired: 2, armed: 1, ..ShardCounts::default() },
        ..ConductProgress::default()
    };
    Observed { job: Some(job()), conduct: Some(TaskView::Running(Box::new(progress))), ..idle() }
}

fn finished(ending: Ending) -> Arc<Finished> {
    let mut finished = testing::finished(0, 1, VerdictValue::Invalid);
    finished.measurement.as_mut().unwrap().verdict.reasons = vec![VerdictReason {
        reason: ReasonKind::ShardLost,
        severity: VerdictValue::Invalid,
        message: "shard 1 was lost".into(),
    }];
    Arc::new(Finished {
        ending,
        summary: Summary { shards: Some("1/2".into()), ..Summary::default() },
        shards: ShardCounts { desired: 2, finished: 1, lost: 1, ..ShardCounts::default() },
        unacknowledged: vec!["uid-b".into()],
        ..finished
    })
}

fn over(ended: Ended, since: Duration, failure: Option<&str>) -> Observed {
    let view = TaskView::Ended { ended, since, artifacts_failure: failure.map(str::to_owned), released: false };
    Observed { job: Some(job()), conduct: Some(view), ..idle() }
}

fn truth<'a>(decision: &'a Decision, kind: &str) -> (&'a str, &'a str) {
    find(&decision.status, kind).map_or(("", ""), |found| (&found.status, &found.reason))
}

fn reasons(decision: &Decision) -> Vec<&str> {
    decision.notices.iter().map(|notice| notice.reason.as_str()).collect()
}

fn none() -> RedisBenchmarkStatus {
    RedisBenchmarkStatus::default()
}
