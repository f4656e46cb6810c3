//! Progress that a conductor publishes while it conducts.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use redisbench_wire::snapshot::{Tally, VerificationCounts};
use redisbench_wire::timeline::{NodePart, Span, SpanPart};

use super::cached::CacheRates;
use super::intervals::planned_length;
use super::{ConductorConfig, StartRecord};
use crate::api::status::{NodeProgress, ShardCounts};
use crate::measurement::judged::Judged;
use crate::measurement::merge;
use crate::measurement::seconds::{measured, service};
use crate::measurement::topology::MergedTopology;
use crate::verdict::ShardProcessors;

/// State of a trial, replaced as a whole on every change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConductProgress {
    pub stage: ConductStage,
    /// Counted from 0.
    pub trial: u32,
    /// Number of trials of the run.
    pub of: u32,
    /// Counted from 1; 0 until it is known.
    pub attempt: u32,
    /// The last attempt that was ordered or recorded and then given up, while no attempt has been measured; otherwise 0. Its recorded start
    /// is void.
    pub missed: u32,
    /// The start of the trial, in nanoseconds since the Unix epoch; none until it is recorded.
    pub start_at_unix_nanoseconds: Option<u64>,
    pub shards: ShardCounts,
    /// The part of the preload's commands that succeeded.
    pub preloaded_percent: u32,
    /// Index of the first shard that is not armed, and its obstacle.
    pub waiting_for: Option<String>,
    /// Merge of the newest live snapshots; none before the first.
    pub live: Option<Arc<LivePicture>>,
    /// Thresholds of the measurement and whether they hold so far.
    pub thresholds: Vec<Judged>,
    /// Difference between the shards' first sends; none until two are known.
    pub start_skew: Option<Duration>,
    /// Half of the worst shard's round trip; none before the clocks are measured.
    pub clock_uncertainty: Option<Duration>,
    /// Highest age of the newest snapshots of running shards.
    pub oldest_snapshot_age: Option<Duration>,
}

impl ConductProgress {
    /// Progress before any shard was asked. A recorded start counts as a start, judged by the time of day. If the trial's planned end has
    /// passed, the stage is Collecting, so that an abort that was not handled during the trial does not stop it.
    pub fn at_first(config: &ConductorConfig, unix_nanoseconds: u64) -> Self {
        let shards = ShardCounts { desired: config.plan.shards, ..ShardCounts::default() };
        let place = Self { trial: config.trial, of: config.of, shards, ..Self::default() };
        let Some(StartRecord { start_at_unix_nanoseconds, .. }) = config.resume else {
            return Self { attempt: config.attempts, missed: config.attempts, ..place };
        };
        let end = Duration::from_nanos(start_at_unix_nanoseconds).saturating_add(planned_length(&config.plan));
        let over = Duration::from_nanos(unix_nanoseconds) >= end;
        let stage = if over { ConductStage::Collecting } else { ConductStage::Running };
        Self { stage, start_at_unix_nanoseconds: Some(start_at_unix_nanoseconds), ..place }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConductStage {
    /// Waiting for shards to appear, prepare and arm.
    #[default]
    Preparing,
    /// The start is ordered and the trial's end has not passed.
    Running,
    /// The load has ended; final snapshots are fetched.
    Collecting,
    /// The outcome is available.
    Done,
}

/// Latency of succeeded requests in the last seconds, rounded up by at most 1/32.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentLatency {
    pub response: Histogram<u64>,
    /// None in a closed loop.
    pub service: Option<Histogram<u64>>,
    /// The measured requests of these seconds by operation and by node.
    pub span: Span,
}

/// Requests of one operation or node in the last seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentPart {
    pub name: String,
    /// Requests per second: of an operation the successful ones, of a node all.
    pub per_second: u64,
    /// Response time of successful requests; of a node their service time.
    pub latency: Histogram<u64>,
}

impl RecentLatency {
    /// The requests of each of the plan's `operations`. None without that breakdown.
    pub fn operations(&self, operations: &[String]) -> Vec<RecentPart> {
        let parts = self.span.parts.iter().filter(|_| self.span.parts.len() == operations.len());
        let part = |(name, part): (&String, &SpanPart)| RecentPart {
            name: name.clone(),
            per_second: self.per_second(part.counts.succeeded),
            latency: measured(iter::once(part)).response,
        };
        operations.iter().zip(parts).map(part).collect()
    }

    /// The requests of each node, by its address, in the order of the addresses.
    pub fn nodes(&self) -> Vec<RecentPart> {
        let part = |node: &NodePart| RecentPart {
            name: node.address.clone(),
            per_second: self.per_second(node.requests),
            latency: service(node),
        };
        self.span.nodes.iter().map(part).collect()
    }

    fn per_second(&self, count: u64) -> u64 {
        merge::per_second(count, u64::from(self.span.seconds) * 1_000_000_000)
    }
}

/// Merge of the newest snapshot of every shard, final ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct LivePicture {
    /// Measured requests.
    pub total: Tally,
    /// Requests of the warm-up.
    pub warmup: Tally,
    /// Response time of succeeded requests.
    pub response: Histogram<u64>,
    /// Errors by kind, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Result of checking replies so far; none if nothing is checked.
    pub verification: Option<VerificationCounts>,
    /// Progress of the trial.
    pub percent: u8,
    /// Successful requests per second, of the warm-up or measured, over the last five seconds that all shards have completed. Before any,
    /// the rate since the beginning.
    pub achieved_per_second: u64,
    /// Latency of measured requests over the same seconds; none if they contain none.
    pub recent: Option<RecentLatency>,
    /// Client-side caches of all shards that are not lost; none without caches, and before the measurement.
    pub caches: Option<CacheRates>,
    /// True if any shard has begun to measure.
    pub measuring: bool,
    /// True if each shard that is not lost has sent a snapshot. Until then, after a takeover, counts are lower than they were.
    pub complete: bool,
    /// Bytes of the snapshots' encoded histograms, which are most of their size.
    pub snapshot_bytes: u64,
    /// The target's servers so far.
    pub topology: MergedTopology,
    /// Every shard of the plan, in index order.
    pub shards: Vec<LiveShard>,
    /// Redis nodes over the seconds of `achieved_per_second`; empty unless the plan counts them by the second.
    pub nodes: Vec<NodeProgress>,
}

/// One shard of a [`LivePicture`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveShard {
    pub lost: bool,
    /// It did not answer the last call.
    pub unreachable: bool,
    /// Successful requests per second, over the seconds of the picture.
    pub achieved_per_second: u64,
    /// Measured requests that failed or were not sent.
    pub failed: u64,
    pub processors: ShardProcessors,
}

#[cfg(test)]
mod tests {
    use redisbench_wire::histogram::Kind;
    use redisbench_wire::timeline::{Coarse, Outcomes};

    use super::*;

    #[test]
    fn the_last_seconds_are_told_apart_by_operation_and_node() {
        let part = |succeeded: u64| {
            let mut response = Coarse::default();
            response.record(1_000_000, succeeded);
            let counts = Outcomes { succeeded, errors: 5, ..Outcomes::default() };
            SpanPart { counts, response: response.buckets(), ..SpanPart::default() }
        };
        let node = NodePart { address: "redis:6379".into(), requests: 45, errors: 10, ..NodePart::default() };
        let span = Span { seconds: 5, parts: vec![part(30), part(10)], nodes: vec![node], ..Span::default() };
        let recent = RecentLatency { response: Kind::Request.empty(), service: None, span };
        let seen = |parts: Vec<RecentPart>| -> Vec<_> {
            parts.into_iter().map(|part| (part.name, part.per_second, part.latency.len())).collect()
        };
        let operations = ["get", "set"].map(str::to_owned);
        assert_eq!(seen(recent.operations(&operations)), [("get".to_owned(), 6, 30), ("set".to_owned(), 2, 10)]);
        assert_eq!(seen(recent.nodes()), [("redis:6379".to_owned(), 9, 0)]);
        // Without the breakdown there is one part for all.
        assert!(recent.operations(&operations[..1]).is_empty());
    }
}
