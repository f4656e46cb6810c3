//! Computes how much of the latencies the load generator itself caused, and judges whether that is too much.
//!
//! It causes two delays. Requests sent after they were due, although there was room to send them, have a response time that is longer than
//! their service time. Replies that lay in the kernel before the shard read them make both longer.

use redisbench_wire::snapshot::ReceiveDelay;

use super::generator;
use super::reason::reason;
use super::thresholds::{BUSY, BUSY_FOR_LATENCIES, OWN_SHARE, SECONDS_DOUBTFUL};
use crate::api::status::{GeneratorShare, Lack, ReasonKind, VerdictReason, VerdictValue};
use crate::measurement::Outcome;
use crate::measurement::merge::Merged;
use crate::quantile::Quantile;
use crate::{human, measurement::latencies};

const WHOLE: u64 = 1_000_000;
const BASIS_POINTS: u64 = 10_000;
const JUDGED: [Quantile; 3] = [Quantile::P50, Quantile::P99, Quantile::P999];

/// The generator's part of p50, p99 and p99.9 of response time, over successful requests; only for known quantiles.
pub fn shares(outcome: &Outcome, merged: &Merged) -> Vec<GeneratorShare> {
    let not_own = not_own(outcome, merged);
    let unread = unread(outcome);
    JUDGED.into_iter().filter_map(|quantile| share(merged, &unread, not_own, quantile)).collect()
}

fn share(merged: &Merged, unread: &ReceiveDelay, not_own: u64, quantile: Quantile) -> Option<GeneratorShare> {
    let response = latencies::known(&merged.total.response, quantile)?;
    // Even without the generator's lateness, requests that waited for the target would exceed their service time: at worst all of them lie
    // beyond the quantile. So the quantile without lateness is at most the service time's quantile raised by their share.
    let without = match &merged.total.service {
        Some(service) => quantile
            .millionths()
            .checked_add(u32::try_from(not_own).ok()?)
            .and_then(|higher| (u64::from(higher) < WHOLE).then(|| latencies::quantile(service, higher)).flatten()),
        None => None,
    };
    let sending = without.map_or(0, |without| response.saturating_sub(without));
    // A step begins at four fifths of its end or later.
    let reading = unread.quantile_nanoseconds(quantile.millionths()).map(|end| (end / 5 * 4).min(response - sending));
    let own = u128::from(sending + reading.unwrap_or(0)) * u128::from(BASIS_POINTS) / u128::from(response.max(1));
    Some(GeneratorShare {
        percentile: quantile.percent(),
        of_nanoseconds: response,
        sending_nanoseconds: sending,
        reading_nanoseconds: reading,
        basis_points: u32::try_from(own).unwrap_or(u32::MAX),
    })
}

/// Requests whose response time may exceed their service time because of the target: they waited for room, or were sent more than once. In
/// millionths of the succeeded ones, rounded up.
fn not_own(outcome: &Outcome, merged: &Merged) -> u64 {
    // A shard that does not count them may have had only such requests.
    let waited = outcome.snapshots().fold(0_u64, |sum, snapshot| {
        sum.saturating_add(snapshot.generator.waited_for_room.unwrap_or(snapshot.total.succeeded))
    });
    let tally = &merged.total.tally;
    let again = tally.redirected.saturating_add(tally.deferral_hops);
    let share = u128::from(waited.saturating_add(again)) * u128::from(WHOLE);
    u64::try_from(share.div_ceil(u128::from(tally.succeeded.max(1)))).unwrap_or(u64::MAX).min(WHOLE)
}

/// The time for which replies lay unread, over all shards. Empty if that is unknown.
fn unread(outcome: &Outcome) -> ReceiveDelay {
    let mut sum = ReceiveDelay::default();
    for delay in outcome.snapshots().filter_map(|snapshot| snapshot.generator.receive_delay.as_ref()) {
        sum.connections = sum.connections.saturating_add(delay.connections);
        sum.counts.resize(sum.counts.len().max(delay.counts.len()), 0);
        for (sum, count) in sum.counts.iter_mut().zip(&delay.counts) {
            *sum = sum.saturating_add(*count);
        }
    }
    sum
}

/// Reported if too large a part of a latency is the generator's, because the number then does not describe the target.
pub(super) fn too_much(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let shares = shares(outcome, merged);
    let worst = shares.iter().filter(|share| share.basis_points > OWN_SHARE).max_by_key(|share| share.basis_points);
    let Some(worst) = worst else { return busy(outcome, merged) };
    let (at_least, reading) = match worst.reading_nanoseconds {
        Some(reading) => ("", human::latency(reading)),
        None => ("at least ", "an unknown time".to_owned()),
    };
    let message = format!(
        "{at_least}{} % of the p{} of {} was caused by the load generator: it sent requests {} late and left replies unread \
         for {reading}; give each shard its own processor (spec.shards.template.resources), add shards \
         (spec.shards.count), or run them on machines without other work",
        worst.basis_points / 100,
        worst.percentile,
        human::latency(worst.of_nanoseconds),
        human::latency(worst.sending_nanoseconds),
    );
    Some(reason(ReasonKind::GeneratorDelay, VerdictValue::Degraded, &message))
}

/// Reported if the busiest worker of an open loop was too busy.
fn busy(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    // A closed loop has no due times, and the time that replies lie unread is measured.
    if !merged.has_due_times() {
        return None;
    }
    let busy = generator::busiest_workers(outcome);
    let (part, shard) = busy.filter(|(share, _)| (BUSY_FOR_LATENCIES..BUSY).contains(share)).max()?;
    let message = format!(
        "the busiest worker of shard {shard} ran for {} % of the load: requests queue in the load generator, so its \
         latencies are higher than the target's; add shards (spec.shards.count)",
        part / 10_000
    );
    Some(reason(ReasonKind::GeneratorDelay, VerdictValue::Degraded, &message))
}

/// Reported if workers of an open loop were too busy in seconds that decide p99, although not over the whole run. A lack of processor time
/// that is reported explains these seconds.
pub(super) fn now_and_then(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let is_reported = || generator::cpu(outcome, merged).is_some_and(|lack| lack.severity != VerdictValue::Valid);
    if !merged.has_due_times() || is_reported() {
        return None;
    }
    let busy = generator::busy_seconds(outcome, merged);
    // The more shards there are, the less the seconds of one of them decide.
    let sum = busy.iter().fold(0_u64, |sum, (decided, ..)| sum.saturating_add(*decided));
    let (_, shard, seconds) = busy.iter().max_by_key(|(decided, _, seconds)| (*decided, seconds.worst))?;
    if sum / (outcome.shards.len().max(1) as u64) < SECONDS_DOUBTFUL {
        return None;
    }
    let message = format!(
        "the busiest worker of shard {shard} ran for {} % of the measurement{}: in such seconds requests queue in the load \
         generator, so its latencies are higher than the target's; add shards (spec.shards.count)",
        seconds.mean / 10_000,
        generator::worst_second(Lack::BusiestWorker, seconds, BUSY_FOR_LATENCIES),
    );
    Some(reason(ReasonKind::GeneratorDelay, VerdictValue::Degraded, &message))
}

#[cfg(test)]
mod tests;
