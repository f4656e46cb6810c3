//! Time stamps of single requests, for tracing.

use redisbench_wire::plan::TrialPlan;

use crate::workload::rng::{self, RandomStream};

/// Traced requests of a worker that are kept until the cold side takes them.
const MOST: usize = 256;

/// The time stamps of one request, in nanoseconds of the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The request's number.
    pub k: u64,
    /// Index into the mix.
    pub operation: u16,
    /// Index of the node that replied. `None` if only the client library knows.
    pub node: Option<u32>,
    /// Its due time; in a closed loop, its first send.
    pub due: u64,
    /// The time of its last send. `None` if it failed elsewhere than in its reply.
    pub sent: Option<u64>,
    /// The time at which its outcome was known.
    pub ended: u64,
    pub redirects: u8,
    /// The kind of error that ended it.
    pub error: Option<String>,
}

/// Traced requests on their way to the cold side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    pub spans: Vec<Span>,
    /// Traced requests that were dropped for lack of room.
    pub lost: u64,
    /// Labels of the nodes, by index.
    pub nodes: Vec<String>,
}

/// Chooses requests to trace, and keeps their time stamps.
#[derive(Clone, Debug)]
pub(super) struct Traces {
    chosen: RandomStream,
    one_in: u64,
    traced: Traced,
}

impl Traces {
    /// None unless the plan asks for tracing.
    pub(super) fn of(plan: &TrialPlan) -> Option<Self> {
        let one_in = plan.tracing.as_ref()?.one_in;
        Some(Self { chosen: RandomStream::new(plan.workload.seed, rng::TRACES), one_in, traced: Traced::default() })
    }

    /// Returns whether request `k` is traced. Drawn by number rather than counted: shards, workers and mixes in turns follow multiples of k.
    #[inline]
    pub(super) fn chooses(&self, k: u64) -> bool {
        self.chosen.below(k, self.one_in) == 0
    }

    pub(super) fn add(&mut self, span: Span) {
        if self.traced.spans.len() < MOST {
            self.traced.spans.push(span);
        } else {
            self.traced.lost += 1;
        }
    }

    /// Removes what was kept, if anything.
    pub(super) fn take(&mut self) -> Option<Traced> {
        (!self.traced.spans.is_empty()).then(|| std::mem::take(&mut self.traced))
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::Tracing;

    use super::*;

    fn traces(one_in: u64) -> Traces {
        let tracing = Some(Tracing { endpoint: "http://collector:4318".into(), one_in });
        Traces::of(&TrialPlan { tracing, ..TrialPlan::basic("redis:6379") }).unwrap()
    }

    fn span(k: u64) -> Span {
        Span { k, operation: 0, node: Some(0), due: 1, sent: Some(2), ended: 3, redirects: 0, error: None }
    }

    #[test]
    fn every_part_of_a_load_has_its_share_of_traced_requests() {
        assert!(Traces::of(&TrialPlan::basic("redis:6379")).is_none());
        let all = traces(1);
        assert!((0..1000).all(|k| all.chooses(k)));
        // 2,500 of each of four shards are expected; 300 are six standard deviations.
        let traces = traces(100);
        for shard in 0..4 {
            let chosen = (0..250_000).filter(|turn| traces.chooses(turn * 4 + shard)).count();
            assert!(chosen.abs_diff(2500) < 300, "shard {shard}: {chosen}");
        }
    }

    #[test]
    fn traces_beyond_the_room_are_counted() {
        let mut traces = traces(1);
        assert_eq!(traces.take(), None);
        (0..MOST as u64 + 7).for_each(|k| traces.add(span(k)));
        let taken = traces.take().unwrap();
        assert_eq!((taken.spans.len(), taken.lost, taken.spans[5].k), (MOST, 7, 5));
        traces.add(span(9));
        assert_eq!(traces.take().unwrap(), Traced { spans: vec![span(9)], ..Traced::default() });
    }
}
