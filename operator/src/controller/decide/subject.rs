use jiff::Timestamp;
use redisbench_benchmark::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report;

/// The benchmark to decide about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub spec: &'a RedisBenchmarkSpec,
    /// The last status.
    pub status: &'a RedisBenchmarkStatus,
    pub generation: Option<i64>,
    /// All errors of the spec. None if it is valid.
    pub problems: Option<&'a str>,
    /// The trials. None if the spec is invalid.
    pub plan: Option<&'a Plan>,
}

impl Subject<'_> {
    pub(super) fn report(&self, now: Timestamp) -> report::Subject<'_> {
        let index = self.status.trial.as_ref().map_or(0, |trial| trial.index);
        self.report_of(index, now)
    }

    /// The subject of a report on trial `index`.
    pub(super) fn report_of(&self, index: u32, now: Timestamp) -> report::Subject<'_> {
        report::Subject { spec: self.spec, shards: self.shards_of(index), generation: self.generation, now }
    }

    fn shards_of(&self, index: u32) -> u32 {
        let trial = self.plan.and_then(|plan| plan.trial(index, &self.status.trials));
        trial.map_or(self.spec.shards.count, |trial| trial.spec.plan.shards)
    }

    /// The number of shards in the current trial.
    pub(super) fn shards(&self) -> u32 {
        self.shards_of(self.status.trial.as_ref().map_or(0, |trial| trial.index))
    }

    /// The number of pods of the run: the shards of its largest trial.
    pub fn pods(&self) -> u32 {
        self.plan.map_or(self.spec.shards.count, |plan| plan.largest().plan.shards)
    }
}
