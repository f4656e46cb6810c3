//! Decides whether a snapshot replaces the kept one. Pure.

use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::Snapshot;

/// Returns whether `new` replaces `kept` as the snapshot of the shard with `plan` in `attempt`. The client has already checked that it
/// comes from the accepted incarnation.
///
/// # Errors
/// If it belongs to another shard or attempt, cannot have been measured, or its counters go back. Such a snapshot is dropped.
pub fn replaces(kept: Option<&Snapshot>, new: &Snapshot, plan: &ShardPlan, attempt: u32) -> Result<bool, String> {
    if (new.shard, new.attempt) != (plan.shard, attempt) {
        return Err(format!("a snapshot of shard {}, attempt {}, not of attempt {attempt}", new.shard, new.attempt));
    }
    new.check()?;
    let planned = plan.operation_names();
    let names = new.operations.iter().map(|operation| operation.name.as_str());
    if !new.operations.is_empty() && !names.eq(planned.iter().copied()) {
        return Err("a snapshot whose operations differ from the plan's".to_owned());
    }
    let parts = if plan.breakdown.operation { planned.len() } else { 1 };
    if new.timeline.spans.iter().any(|span| span.parts.len() > parts) {
        return Err("seconds whose operations differ from the plan's".to_owned());
    }
    if !plan.node_seconds && new.timeline.spans.iter().any(|span| !span.nodes.is_empty()) {
        return Err("seconds of nodes, which the plan does not request".to_owned());
    }
    let Some(kept) = kept else { return Ok(true) };
    if new.sequence <= kept.sequence {
        return Ok(false);
    }
    // Counters only rise, except `scheduled`: requests not sent by the end of a quota's time are not scheduled.
    let outcomes = |snapshot: &Snapshot| {
        [&snapshot.total, &snapshot.warmup].map(|tally| [tally.succeeded, tally.errors, tally.unsent])
    };
    let fallen = outcomes(kept).into_iter().flatten().zip(outcomes(new).into_iter().flatten());
    if let Some((before, after)) = fallen.into_iter().find(|(before, after)| after < before) {
        return Err(format!("a snapshot whose counters decreased from {before} to {after}"));
    }
    Ok(true)
}

/// Returns whether the snapshot shows any change. A trial without changes may have failed.
pub fn advances(kept: &Snapshot, new: &Snapshot) -> bool {
    let mark = |snapshot: &Snapshot| {
        let outcomes =
            |tally: &redisbench_wire::snapshot::Tally| (tally.scheduled, tally.succeeded, tally.errors, tally.unsent);
        (snapshot.stage, outcomes(&snapshot.total), outcomes(&snapshot.warmup))
    };
    mark(kept) != mark(new)
}

#[cfg(test)]
mod tests {
    use redisbench_wire::histogram::{EncodedHistogram, Kind};
    use redisbench_wire::limits;
    use redisbench_wire::snapshot::{OperationTally, Tally};
    use redisbench_wire::timeline::{Coarse, NodePart, Outcomes, Span, SpanPart};

    use super::*;
    use crate::conductor::tests::{part, snapshot};

    #[test]
    fn only_a_higher_sequence_replaces() {
        let (plan, kept) = (part(1, 2), snapshot(1, 2, 5));
        assert_eq!(replaces(None, &kept, &plan, 2), Ok(true));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 4), &plan, 2), Ok(false));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 5), &plan, 2), Ok(false));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 6), &plan, 2), Ok(true));
    }

    #[test]
    fn what_is_not_of_this_trial_is_no_data() {
        assert!(replaces(None, &snapshot(0, 2, 1), &part(1, 2), 2).is_err());
        assert!(replaces(None, &snapshot(1, 1, 1), &part(1, 2), 2).is_err());
    }

    /// The reason for refusing a snapshot with this change.
    fn refused(change: impl FnOnce(&mut Snapshot)) -> String {
        let mut changed = snapshot(1, 2, 6);
        change(&mut changed);
        replaces(Some(&unsent(5, 4)), &changed, &part(1, 2), 2).unwrap_err()
    }

    fn unsent(sequence: u64, unsent: u64) -> Snapshot {
        Snapshot { total: Tally { scheduled: unsent, unsent, ..Tally::default() }, ..snapshot(1, 2, sequence) }
    }

    #[test]
    fn what_cannot_have_been_measured_is_no_data() {
        let says = |what: &str, change: fn(&mut Snapshot)| {
            let said = refused(change);
            assert!(said.contains(what), "{said}");
        };
        says("do not add up", |lopsided| lopsided.total.scheduled = 1);
        says("series points", |long| long.series.completed = vec![0; limits::SERIES_POINTS + 1]);
        says("counters decreased from 4 to 0", |_| {});
        says("which is out of range", |huge| huge.total.sent_bytes = u64::MAX);
        says("ns, which is out of range", |late| late.window.first_send_nanoseconds = u64::MAX);
        // More successes than latencies, or the reverse.
        says("0 response times, but the counters have 5", |mute| {
            (mute.total.scheduled, mute.total.succeeded) = (5, 5);
        });
        says("1 response times, but the counters have 0", |invented| {
            let mut histogram = Kind::Request.empty();
            histogram.record(1_000_000).unwrap();
            invented.latency.response = EncodedHistogram::encode(&histogram).unwrap();
        });
        says("a snapshot whose operations differ", |stranger| {
            let (tally, latency) = (stranger.total, stranger.latency.clone());
            stranger.operations = vec![OperationTally { name: "mine".into(), tally, nil_replies: 0, latency }];
        });
        says("9 bytes sent by operation in a second, more than bytes sent: 8", |invented| {
            let counts = Outcomes { sent_bytes: 9, ..Outcomes::default() };
            let parts = vec![SpanPart { counts, ..SpanPart::default() }];
            invented.timeline.spans = vec![Span { seconds: 1, sent_bytes: 8, parts, ..Span::default() }];
        });
        says("seconds whose operations differ", |stranger| {
            stranger.timeline.spans = vec![Span { seconds: 1, parts: vec![SpanPart::default(); 2], ..Span::default() }];
        });
        says("seconds of nodes", |stranger| {
            stranger.timeline.spans = vec![Span { seconds: 1, nodes: vec![NodePart::default()], ..Span::default() }];
        });
        says("errors of a node in a second", |strange| {
            let nodes = vec![NodePart { errors: 1, ..NodePart::default() }];
            strange.timeline.spans = vec![Span { seconds: 1, nodes, ..Span::default() }];
        });
        says("0 service times of a node in a second", |mute| {
            let nodes = vec![NodePart { requests: 1, ..NodePart::default() }];
            mute.timeline.spans = vec![Span { seconds: 1, nodes, ..Span::default() }];
        });
        says("requests of nodes over all seconds", |invented| {
            let nodes = vec![NodePart { requests: 1, errors: 1, ..NodePart::default() }];
            invented.timeline.spans = vec![Span { seconds: 1, nodes, ..Span::default() }];
        });
        says("not a valid span", |strange| strange.timeline.spans = vec![Span { seconds: 7, ..Span::default() }]);
        says("2 requests, succeeded measured over all seconds", |invented| {
            let counts = Outcomes { succeeded: 2, ..Outcomes::default() };
            let mut response = Coarse::default();
            response.record(1, 2);
            let part = SpanPart { counts, response: response.buckets(), ..SpanPart::default() };
            invented.timeline.spans = vec![Span { seconds: 1, parts: vec![part], ..Span::default() }];
        });
    }
}
