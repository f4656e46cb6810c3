//! Converts coarse per-second histograms into the histograms that quantiles are read from.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::{HIGHEST_NANOSECONDS, Kind};
use redisbench_wire::snapshot::Tally;
use redisbench_wire::timeline::{Buckets, Coarse, NodePart, Span, SpanPart, highest_in};

use crate::measurement::measured::Measured;
use crate::quantile::Quantile;

/// Merges the requests of `parts`. A latency is rounded up to the end of its bucket, by at most 1/32.
pub fn measured<'a>(parts: impl Iterator<Item = &'a SpanPart>) -> Measured {
    let mut sum = Measured::default();
    for SpanPart { counts, response, service, error_replies } in parts {
        sum.tally.add(&Tally {
            // Other scheduled requests are still waiting for their outcome.
            scheduled: counts.finished(),
            succeeded: counts.succeeded,
            errors: counts.errors,
            unanswered: counts.unanswered,
            unsent: counts.unsent,
            late: counts.late,
            overflow: counts.overflow,
            overflow_max_nanoseconds: if counts.overflow > 0 { HIGHEST_NANOSECONDS } else { 0 },
            ..Tally::default()
        });
        add(&mut sum.response, response);
        add_optional(&mut sum.service, service);
        add_optional(&mut sum.error_replies, error_replies);
    }
    sum
}

/// Response time of the succeeded requests of `span` at `quantile`, rounded up as above; none if there are too few.
pub(crate) fn quantile(span: &Span, quantile: Quantile) -> Option<u64> {
    let mut sum = Coarse::default();
    span.parts.iter().for_each(|part| sum.add(&part.response));
    quantile_of(&sum.buckets(), quantile)
}

/// The latency at `quantile`, rounded up as above; none if there are too few.
pub fn quantile_of(buckets: &Buckets, quantile: Quantile) -> Option<u64> {
    let count = buckets.count();
    if count < quantile.needs() {
        return None;
    }
    let rank = (u128::from(count) * u128::from(quantile.millionths())).div_ceil(1_000_000);
    let mut seen = 0_u128;
    let found = buckets.iter().find(|(_, times)| {
        seen += u128::from(*times);
        seen >= rank
    });
    found.map(|(bucket, _)| highest_in(bucket))
}

/// Service times of a node, with the bounds of its kind. They are rounded up likewise, below 8 µs by at most 128 ns.
pub(crate) fn service(node: &NodePart) -> Histogram<u64> {
    let mut service = Kind::Node.empty();
    add(&mut service, &node.service);
    service
}

fn add(histogram: &mut Histogram<u64>, buckets: &Buckets) {
    for (bucket, count) in buckets.iter() {
        histogram.saturating_record_n(highest_in(bucket).min(HIGHEST_NANOSECONDS), count);
    }
}

fn add_optional(histogram: &mut Option<Histogram<u64>>, buckets: &Buckets) {
    if !buckets.is_empty() {
        add(histogram.get_or_insert_with(|| Kind::Request.empty()), buckets);
    }
}
