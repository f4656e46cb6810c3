//! Histograms and breakdowns of snapshots, merged one snapshot at a time, so a shard's share can be merged when it arrives, and its
//! snapshot then needs little memory. The order matters only beyond [`limits::NODES`] nodes: those that come last are counted together.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use redisbench_wire::histogram::{EncodedHistogram, HistogramError, Kind};
use redisbench_wire::limits;
use redisbench_wire::snapshot::{CacheCounts, Latency, NodeTally, Snapshot, Tally};

use super::latencies;
use super::measured::{Measured, MergedCache, MergedChurn, NodeMeasured, OTHER, OperationMeasured};
use crate::quantile::Quantile;

/// The histograms and breakdowns of several shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// All measured requests.
    pub total: Measured,
    /// None in a closed loop.
    pub lateness: Option<Histogram<u64>>,
    /// In the plan's order.
    pub operations: Vec<OperationMeasured>,
    /// By address and id.
    pub nodes: BTreeMap<(String, String), NodeMeasured>,
    pub cache: Option<MergedCache>,
    pub churn: Option<MergedChurn>,
}

/// Latencies in a shard's row, from its own histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLatency {
    /// Of the response time.
    pub p99_nanoseconds: Option<u64>,
    /// None in a closed loop, and in live snapshots.
    pub lateness: Option<OwnLateness>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLateness {
    pub p99_nanoseconds: Option<u64>,
    pub max_nanoseconds: Option<u64>,
}

impl OwnLatency {
    /// Of a shard with `unknown` requests after its snapshot.
    ///
    /// # Errors
    /// If a histogram violates the contract.
    pub fn of(snapshot: &Snapshot, unknown: u64) -> Result<Self, HistogramError> {
        let Latency { response, error_replies, lateness, .. } = &snapshot.latency;
        let mut answered = response.decode(Kind::Request)?;
        if let Some(replies) = error_replies {
            replies.add_to(&mut answered, Kind::Request)?;
        }
        let lateness = lateness.as_ref().map(|lateness| lateness.decode(Kind::Request)).transpose()?;
        let lateness = lateness.map(|lateness| OwnLateness {
            p99_nanoseconds: latencies::quantile(&lateness, 990_000),
            max_nanoseconds: Some(lateness.max()).filter(|_| !lateness.is_empty()),
        });
        let p99_nanoseconds = latencies::response_time_of_answered(&answered, &snapshot.total, unknown, Quantile::P99);
        Ok(Self { p99_nanoseconds, lateness })
    }
}

impl Parts {
    /// Adds a shard's share. After an error, a part of it may have been added.
    ///
    /// # Errors
    /// If a histogram violates the contract.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), HistogramError> {
        self.total.merge(&snapshot.total, &snapshot.latency)?;
        // A lost shard's live snapshot has none.
        add_optional(&mut self.lateness, snapshot.latency.lateness.as_ref())?;
        for part in &snapshot.operations {
            let known = self.operations.iter().position(|operation| operation.name == part.name);
            // Bounded, because shards report the names and each one costs a histogram.
            if known.is_none() && self.operations.len() >= limits::OPERATIONS {
                continue;
            }
            let at = known.unwrap_or_else(|| {
                let (name, measured) = (part.name.clone(), Measured::default());
                self.operations.push(OperationMeasured { name, measured, nil_replies: 0 });
                self.operations.len() - 1
            });
            let operation = &mut self.operations[at];
            operation.measured.merge(&part.tally, &part.latency)?;
            operation.nil_replies = operation.nil_replies.saturating_add(part.nil_replies);
        }
        snapshot.nodes.iter().try_for_each(|node| self.add_node(node))?;
        if let Some(part) = &snapshot.cache {
            let empty = || MergedCache { counts: CacheCounts::default(), invalidation: Kind::Request.empty() };
            let sum = self.cache.get_or_insert_with(empty);
            sum.counts.add(&part.counts);
            part.invalidation.add_to(&mut sum.invalidation, Kind::Request)?;
        }
        if let Some(part) = &snapshot.churn {
            let empty = || MergedChurn { made: 0, closed: 0, connect: Kind::Request.empty(), tls_handshake: None };
            let sum = self.churn.get_or_insert_with(empty);
            sum.made = sum.made.saturating_add(part.made);
            sum.closed = sum.closed.saturating_add(part.closed);
            part.connect.add_to(&mut sum.connect, Kind::Request)?;
            add_optional(&mut sum.tls_handshake, part.tls_handshake.as_ref())?;
        }
        Ok(())
    }

    fn add_node(&mut self, part: &NodeTally) -> Result<(), HistogramError> {
        let mut key = (part.address.clone(), part.id.clone());
        // Bounded, because shards report the names of nodes and each one costs a histogram.
        if self.nodes.len() >= limits::NODES && !self.nodes.contains_key(&key) {
            key = (OTHER.to_owned(), OTHER.to_owned());
        }
        let (address, id) = key.clone();
        let node = self.nodes.entry(key).or_insert_with(|| NodeMeasured {
            id,
            address,
            slots: 0,
            replica: false,
            connections: 0,
            requests: 0,
            errors: 0,
            redirects: 0,
            service: Kind::Node.empty(),
        });
        node.slots = node.slots.max(part.slots);
        node.replica |= part.replica;
        node.connections = node.connections.saturating_add(part.connections);
        node.requests = node.requests.saturating_add(part.requests);
        node.errors = node.errors.saturating_add(part.errors);
        node.redirects = node.redirects.saturating_add(part.redirects);
        part.service.add_to(&mut node.service, Kind::Node)
    }

    /// Moves a shard's share out of its final `snapshot`, and returns what its row needs of it. The tallies of operations stay there, too:
    /// the bandwidth of each shard's own window needs them.
    ///
    /// # Errors
    /// If a histogram violates the contract. The snapshot is then unchanged, and the final merge fails with the same error.
    pub fn take(&mut self, snapshot: &mut Snapshot) -> Result<OwnLatency, HistogramError> {
        let own = OwnLatency::of(snapshot, 0)?;
        let response = EncodedHistogram::encode(&Kind::Request.empty())?;
        self.add(snapshot)?;
        snapshot.latency = Latency { response, service: None, error_replies: None, lateness: None };
        for operation in &mut snapshot.operations {
            operation.latency = snapshot.latency.clone();
        }
        snapshot.nodes = Vec::new();
        (snapshot.cache, snapshot.churn) = (None, None);
        Ok(own)
    }
}

impl Measured {
    /// Adds other requests.
    pub fn add(&mut self, other: &Self) {
        // All have the same bounds, so nothing is refused.
        let add = |sum: &mut Histogram<u64>, part: &Histogram<u64>| {
            let _ = sum.add(part);
        };
        self.tally.add(&other.tally);
        self.unknown = self.unknown.saturating_add(other.unknown);
        add(&mut self.response, &other.response);
        let others = [(&mut self.service, &other.service), (&mut self.error_replies, &other.error_replies)];
        for (sum, part) in others {
            if let Some(part) = part {
                add(sum.get_or_insert_with(|| Kind::Request.empty()), part);
            }
        }
    }

    fn merge(&mut self, tally: &Tally, latency: &Latency) -> Result<(), HistogramError> {
        self.tally.add(tally);
        latency.response.add_to(&mut self.response, Kind::Request)?;
        add_optional(&mut self.service, latency.service.as_ref())?;
        add_optional(&mut self.error_replies, latency.error_replies.as_ref())
    }
}

/// Bytes of the histograms that [`Parts::take`] takes out of `snapshot`.
pub fn histogram_bytes(snapshot: &Snapshot) -> usize {
    let of = |latency: &Latency| {
        let others = [&latency.service, &latency.error_replies, &latency.lateness].into_iter().flatten();
        others.chain([&latency.response]).map(|encoded| encoded.as_str().len()).sum::<usize>()
    };
    let operations: usize = snapshot.operations.iter().map(|operation| of(&operation.latency)).sum();
    let nodes: usize = snapshot.nodes.iter().map(|node| node.service.as_str().len()).sum();
    let churn = snapshot.churn.iter().flat_map(|churn| [Some(&churn.connect), churn.tls_handshake.as_ref()]).flatten();
    let others = snapshot.cache.iter().map(|cache| &cache.invalidation).chain(churn);
    let others: usize = others.map(|encoded| encoded.as_str().len()).sum();
    of(&snapshot.latency) + operations + nodes + others
}

/// Bytes of `snapshot` that grow with the load's length or its parts: its histograms and its series.
pub fn kept_bytes(snapshot: &Snapshot) -> usize {
    histogram_bytes(snapshot) + size_of_val(snapshot.series.completed.as_slice())
}

fn add_optional(sum: &mut Option<Histogram<u64>>, encoded: Option<&EncodedHistogram>) -> Result<(), HistogramError> {
    match encoded {
        Some(encoded) => encoded.add_to(sum.get_or_insert_with(|| Kind::Request.empty()), Kind::Request),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redisbench_wire::snapshot::{Cache, Churn};
    use redisbench_wire::timeline::{Outcomes, Span, SpanPart};

    use super::*;
    use crate::measurement::merge::merge;
    use crate::plan::Trial;
    use crate::report::Finished;
    use crate::sample::{encoded, histogram, lose, open_loop, outcome, snapshot, trial};

    fn finished(trial: &Trial, outcome: crate::measurement::Outcome) -> Finished {
        Finished::of("sample", "run", trial, outcome).unwrap()
    }

    #[test]
    fn all_histograms_and_the_series_are_counted() {
        let mut full = snapshot(0, &[1_000_000; 10]);
        let before = histogram_bytes(&full);
        let encoded = full.latency.response.clone();
        let length = encoded.as_str().len();
        full.cache = Some(Cache { counts: CacheCounts::default(), invalidation: encoded.clone() });
        full.churn = Some(Churn { made: 0, closed: 0, connect: encoded.clone(), tls_handshake: Some(encoded) });
        assert_eq!(histogram_bytes(&full), before + 3 * length);
        assert_eq!(kept_bytes(&full), histogram_bytes(&full) + 8 * 100);
    }

    #[test]
    fn shares_that_are_merged_as_they_arrive_give_the_same_result() {
        for seconds in [0, 10] {
            are_merged_as_they_arrive(seconds);
        }
    }

    /// With a timeline of this many seconds.
    fn are_merged_as_they_arrive(seconds: u32) {
        let trial = trial(open_loop(3));
        let snapshots = (1..4).map(|shard| snapshot(shard - 1, &vec![u64::from(shard) * 1_000_000; 2_000])).collect();
        let mut whole = outcome(snapshots);
        let counts = Outcomes { sent_bytes: 500, ..Outcomes::default() };
        let parts = vec![SpanPart { counts, ..SpanPart::default() }];
        let span = |second| Span { second, seconds: 1, sent_bytes: 500, parts: parts.clone(), ..Span::default() };
        whole.timeline = (0..seconds).map(span).collect();
        // The last snapshot of a lost shard stays, because it is not final.
        lose(&mut whole, 1);
        let mut merged = whole.clone();
        for index in [2, 0] {
            let shard = &mut merged.shards[index];
            let kept = shard.snapshot.as_mut().unwrap();
            let before = histogram_bytes(kept);
            shard.own_latency = Some(merged.parts.take(kept).unwrap());
            assert!(histogram_bytes(kept) < before / 2, "{before}");
        }
        let plan = &trial.spec.plan;
        assert_eq!(merge(plan, &merged).unwrap(), merge(plan, &whole).unwrap());
        let (merged, whole) = (finished(&trial, merged), finished(&trial, whole));
        assert_eq!(merged.result(), whole.result());
        let bandwidth = merged.result().unwrap().operations[0].bandwidth.unwrap();
        assert!(bandwidth.sent_bytes_per_second > 0, "{bandwidth:?}");
        assert_eq!(merged.verdict(), whole.verdict());
        let document = |finished: &Finished| -> serde_json::Value {
            serde_json::from_str(&finished.pieces.iter().map(|(_, piece)| piece.as_str()).collect::<String>()).unwrap()
        };
        assert_eq!(document(&merged)["shardsLeftOut"], true);
        assert_eq!(document(&whole)["shards"].as_array().unwrap().len(), 3);
        assert_eq!(document(&merged)["histograms"], document(&whole)["histograms"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Few requests are without an answer, so that the percentile is often known.
        #[test]
        fn a_shards_own_percentile_is_that_of_its_measurement(
            succeeded in prop::collection::vec(1_000..100_000_000_u64, 0..4_000),
            replies in prop::option::of(prop::collection::vec(1_000..1_000_000_000_u64, 0..100)),
            (overflow, unanswered, unsent, in_flight, unknown) in (0..5_u64, 0..5_u64, 0..5_u64, 0..5_u64, 0..5_u64),
        ) {
            let mut shard = snapshot(0, &succeeded);
            shard.total = Tally { overflow, unanswered, unsent, in_flight, ..shard.total };
            shard.latency.error_replies = replies.as_deref().map(|replies| encoded(Kind::Request, replies));
            let measured = Measured {
                tally: shard.total,
                unknown,
                response: histogram(Kind::Request, &succeeded),
                service: None,
                error_replies: replies.map(|replies| histogram(Kind::Request, &replies)),
            };
            let expected = latencies::response_time(&measured, &[]).p99_nanoseconds;
            prop_assert_eq!(OwnLatency::of(&shard, unknown).unwrap().p99_nanoseconds, expected);
        }
    }
}
