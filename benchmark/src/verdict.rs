//! Judges whether a result can be trusted, and what limited it. Pure.

mod generator;
mod limit;
mod network;
mod notes;
mod own_share;
mod plateau;
mod probe;
mod rate;
mod reason;
mod servers;
mod so_far;
mod steadiness;
mod strain;
mod tested;
mod thresholds;
pub(crate) use thresholds::STEADY;

use std::time::Duration;

use redisbench_wire::plan::{Client, Library, Load, Transport, Trust};
use redisbench_wire::snapshot::Tally;
use redisbench_wire::topology::Outage;

use self::reason::reason;
use self::tested::client;
use self::thresholds::{ERRORS_DOUBTFUL, ERRORS_INVALID, SKEW_OF_WARMUP, WHOLE};
use crate::api::Validated;
use crate::api::status::{LimitedBy, ReasonKind, Verdict, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::Outcome;
use crate::measurement::merge::Merged;
use crate::measurement::topology::MergedTopology;

pub use generator::{stolen_percent, worst_seconds};
pub(crate) use limit::{at_its_end, busiest_server, near_its_end, needs_probe, server_is_full};
pub use own_share::shares as generator_shares;
pub(crate) use rate::{backlog_growth, have_succeeded, is_met as rate_is_met};
pub use so_far::ShardProcessors;
pub(crate) use so_far::{SoFar, so_far};

/// Maximum number of shards that a message names.
const NAMED: usize = 16;

pub fn verdict(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Verdict {
    let is_null = client(spec).is_some_and(|client| client.library == Library::Null);
    let reasons: Vec<VerdictReason> = [
        shard_lost(outcome),
        start_skew(spec.shards.max_start_skew, outcome.start_skew, &merged.topology),
        clock_uncertain(spec, outcome),
        nothing_measured(spec, merged),
        rate::missed(spec, outcome, merged),
        rate::backlog(spec, outcome, merged),
        errors(
            &merged.total.tally,
            rate::left_by_backlog(spec, outcome, merged),
            merged.errors.first().map(|error| format!("{}: {}", error.kind, error.first_message)),
        ),
        unavailable(spec, merged),
        servers::topology_changed(&merged.topology, merged.throughput.window_nanoseconds),
        overflow(merged),
        generator::cpu(outcome, merged),
        generator::late(outcome, merged),
        generator::unread(outcome, merged),
        own_share::too_much(outcome, merged).or_else(|| own_share::now_and_then(outcome, merged)),
        steadiness::not_settled(spec, merged),
        steadiness::unsteady(spec, outcome, merged),
        servers::evictions(merged),
        servers::preload_evicted(merged),
        notes::under_replicated(merged),
        notes::misses(spec, merged),
        servers::forked(merged),
        // Its requests reach no server.
        if is_null { None } else { servers::reconciled(spec, outcome, merged) },
        wrong_replies(merged),
        data_lost(merged),
        keys_unread(merged),
        not_verified(spec),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (limited_by, component) = of_client(spec, outcome, merged, limit::limited_by(spec, outcome, merged));
    let is_judged_as_engine = finding_about(spec, outcome, merged).is_none();
    let is_fault = |reason: &VerdictReason| is_judged_as_engine || !reason.reason.is_of_the_generator();
    let reasons: Vec<_> = reasons.into_iter().filter(is_fault).collect();
    let value = reasons.iter().map(|reason| reason.severity).max().unwrap_or(VerdictValue::Valid);
    Verdict { value, reasons, limited_by, component }
}

/// The client under test if the load generator's delays are a finding about it, and no fault of the run. None if something outside the
/// client took its processors: its CPU limit, the hypervisor or other processes.
fn finding_about<'a>(spec: &'a Validated, outcome: &Outcome, merged: &Merged) -> Option<&'a Client> {
    client(spec).filter(|client| !generator::is_deprived(client, outcome, merged))
}

/// Limit of a trial, including a client under test that keeps its threads busy or calls late.
pub(crate) fn of_client(
    spec: &Validated,
    outcome: &Outcome,
    merged: &Merged,
    limited: (LimitedBy, Option<String>),
) -> (LimitedBy, Option<String>) {
    let Some(client) = finding_about(spec, outcome, merged) else { return limited };
    let own = [
        generator::cpu(outcome, merged),
        generator::late(outcome, merged),
        generator::unread(outcome, merged),
        own_share::too_much(outcome, merged),
    ];
    let is_busy = own.iter().flatten().any(|reason| reason.severity != VerdictValue::Valid);
    match limited.0 {
        LimitedBy::GeneratorCPU => (LimitedBy::Client, Some(client.name.clone())),
        LimitedBy::Unknown if is_busy => (LimitedBy::Client, Some(client.name.clone())),
        _ => limited,
    }
}

/// Wrong replies may cost the target less work, and they count as successes.
fn wrong_replies(merged: &Merged) -> Option<VerdictReason> {
    let found = merged.verification.as_ref().filter(|found| found.corrupt.max(found.mismatched) > 0)?;
    let message = format!(
        "{} held a value that was never written and {} had a type or number that the command cannot return, of {} \
         checked; all of them count as succeeded: see result.verification.findings",
        human::counted(found.corrupt, "reply"),
        human::count(found.mismatched),
        human::count(found.checked)
    );
    Some(reason(ReasonKind::WrongReplies, VerdictValue::Degraded, &message))
}

/// The numbers are correct: losing data is the target's behaviour.
fn data_lost(merged: &Merged) -> Option<VerdictReason> {
    let found = merged.verification.as_ref().filter(|found| found.lost_writes.max(found.lost_keys) > 0)?;
    let message = format!(
        "the target lost {} and {} with acknowledged writes: see result.verification.findings; \
         a failover loses writes not yet replicated, a restart those not yet saved: use WAIT, min-replicas-to-write or \
         appendfsync always",
        human::counted(found.lost_writes, "acknowledged write"),
        human::counted(found.lost_keys, "key")
    );
    Some(reason(ReasonKind::DataLost, VerdictValue::Valid, &message))
}

fn keys_unread(merged: &Merged) -> Option<VerdictReason> {
    let found = merged.verification.as_ref().filter(|found| found.unread_keys > 0)?;
    let message = format!(
        "{} of the written keys could not be read within a minute after the load: whether they lost writes is unknown",
        human::count(found.unread_keys)
    );
    Some(reason(ReasonKind::KeysUnread, VerdictValue::Valid, &message))
}

/// The numbers are correct, but the server's identity is not verified.
fn not_verified(spec: &Validated) -> Option<VerdictReason> {
    let target = &spec.plan.target;
    let servers = target.tls.as_ref().map(|tls| ("tls", tls));
    let sentinels = target.sentinels.as_ref().and_then(|own| match &own.transport {
        Transport::Tls(tls) => Some(("sentinel.transport.tls", tls)),
        Transport::SameAsTarget | Transport::Plain => None,
    });
    let (within, tls) = servers.into_iter().chain(sentinels).find(|(_, tls)| tls.trust == Trust::Anyone)?;
    let field = format!("{}.{within}", target.field());
    let message = format!(
        "the certificate of target {} was not verified: {field}.insecureSkipVerify is set{}; set {field}.caSecretRef to \
         its CA instead",
        target.name,
        if tls.client_certificate { ", so the client's certificate was sent to an unverified server" } else { "" }
    );
    Some(reason(ReasonKind::NotVerified, VerdictValue::Valid, &message))
}

fn shard_lost(outcome: &Outcome) -> Option<VerdictReason> {
    let lost: Vec<_> = outcome.lost().collect();
    let first = lost.first()?;
    let why = first.lost.as_deref().unwrap_or_default();
    let mut names: Vec<String> = lost.iter().take(NAMED).map(|shard| shard.shard.to_string()).collect();
    if lost.len() > NAMED {
        names.push("...".into());
    }
    let message = format!(
        "{} {} lost, with their measurements: shard {}; shard {}: {why}; fix the cause and run the benchmark again",
        reason::shards(lost.len(), outcome),
        human::are(outcome.shards.len() as u64),
        names.join(", "),
        first.shard
    );
    Some(reason(ReasonKind::ShardLost, VerdictValue::Invalid, &message))
}

/// Measuring begins at one instant on all shards, whenever each began its warm-up. So start skew matters only if the warm-up is not long
/// enough to absorb it.
fn start_skew(bound: Duration, skew: Option<Duration>, topology: &MergedTopology) -> Option<VerdictReason> {
    let warmup = Duration::from_nanos(topology.measured_from);
    let skew = skew.filter(|skew| *skew > bound && *skew * SKEW_OF_WARMUP > warmup)?;
    let message = format!(
        "shards started {} apart; spec.shards.maxStartSkew allows {}: give each shard its own processor, raise \
         maxStartSkew, or set load.warmup to at least {}, after which all shards begin to measure at the same time",
        time(skew),
        time(bound),
        time(skew * SKEW_OF_WARMUP)
    );
    Some(reason(ReasonKind::StartSkew, VerdictValue::Degraded, &message))
}

fn clock_uncertain(spec: &Validated, outcome: &Outcome) -> Option<VerdictReason> {
    let bound = spec.shards.max_start_skew / 2;
    let uncertainty = outcome.clock_uncertainty.filter(|uncertainty| *uncertainty > bound)?;
    let message = format!(
        "the uncertainty of the shards' clocks is {}; half of spec.shards.maxStartSkew is {}: raise maxStartSkew, or find \
         what slows the network to the shards",
        time(uncertainty),
        time(bound)
    );
    Some(reason(ReasonKind::ClockUncertain, VerdictValue::Degraded, &message))
}

/// Without requests, no other reason finds a fault. Replies of caches are no requests.
fn nothing_measured(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    let hits = merged.cache.as_ref().map_or(0, |cache| cache.counts.hits);
    if merged.total.tally.scheduled > 0 || hits > 0 {
        return None;
    }
    let why = match spec.plan.load {
        Load::ClosedLoop => {
            "a closed loop waits for earlier replies: set load.duration to many times the response time"
        }
        Load::OpenLoop { .. } | Load::Recorded { .. } => "none was due: raise the rate or load.duration",
    };
    let window = time(Duration::from_nanos(merged.throughput.window_nanoseconds));
    let message = format!("no request was sent in the measurement of {window}; {why}");
    Some(reason(ReasonKind::NothingMeasured, VerdictValue::Invalid, &message))
}

/// `queued`: unsent requests that another reason explains. They do not count here.
fn errors(tally: &Tally, queued: u64, most_frequent: Option<String>) -> Option<VerdictReason> {
    let failed = (tally.errors + tally.unsent).saturating_sub(queued);
    let more_than =
        |share: u64| u128::from(failed) * u128::from(WHOLE) > u128::from(tally.scheduled) * u128::from(share);
    let severity = if more_than(ERRORS_INVALID) {
        VerdictValue::Invalid
    } else if more_than(ERRORS_DOUBTFUL) {
        VerdictValue::Degraded
    } else {
        return None;
    };
    let first = most_frequent.map(|error| format!(", most often {error}"));
    let failed = (tally.errors > 0)
        .then(|| format!("{} failed{}", human::share(tally.errors, tally.scheduled), first.unwrap_or_default()));
    let unsent = (tally.unsent > 0)
        .then(|| format!("{} were not sent: {}", human::share(tally.unsent, tally.scheduled), waited_for(tally)));
    let both: Vec<String> = failed.into_iter().chain(unsent).collect();
    let message = format!("of {} {}", human::counted(tally.scheduled, "request"), both.join("; "));
    Some(reason(ReasonKind::Errors, severity, &message))
}

/// The causes of unsent requests.
fn waited_for(tally: &Tally) -> String {
    let connections = tally.unsent_not_connected;
    let at_end = tally.unsent_at_end;
    let room = tally.unsent.saturating_sub(connections).saturating_sub(at_end);
    let parts = [
        (room, "waited for room in a pipeline for longer than load.openLoop.unsentAfter"),
        (connections, "waited that long for a connection to their server"),
        (at_end, "were due when the load ended, and still waiting in the generator's queue for a connection with room"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{} {why}", human::count(count)))
        .collect();
    parts.join(", ")
}

/// In an open loop, requests wait and their response times show the outage; a closed loop does not even make them.
fn unavailable(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    let topology = &merged.topology;
    let longest = topology.outages_within(merged.throughput.window_nanoseconds).max_by_key(Outage::nanoseconds)?;
    let share = topology.unavailable(merged.throughput.window_nanoseconds);
    let hidden = spec.plan.load == Load::ClosedLoop && share > ERRORS_INVALID;
    let (slots, of_all) = match longest.slots {
        _ if !topology.slotted => (String::new(), ""),
        slots => (format!(" (slots {}-{})", slots.first, slots.last), " of all slots"),
    };
    let loading = match merged.total.tally.loading_hops {
        0 => String::new(),
        hops => {
            let (replies, were) = (human::counted(hops, "reply"), human::were(hops));
            format!("; {replies} {were} LOADING: a server was loading its keys")
        }
    };
    let message = format!(
        "no replies for {} from {}{slots}: {}.{:02} % of the time{of_all}{}{loading}; see status.topology",
        human::latency(longest.nanoseconds()),
        longest.node,
        share / 100,
        share % 100,
        if hidden { ", which a closed loop hides because it sends fewer requests meanwhile" } else { "" }
    );
    let severity = if hidden { VerdictValue::Invalid } else { VerdictValue::Degraded };
    Some(reason(ReasonKind::Unavailable, severity, &message))
}

fn overflow(merged: &Merged) -> Option<VerdictReason> {
    let tally = &merged.total.tally;
    if tally.overflow == 0 {
        return None;
    }
    let message = format!(
        "{} exceeded the range of a histogram, the longest took {}: set a shorter load.timeouts.request",
        human::counted(tally.overflow, "request"),
        human::latency(tally.overflow_max_nanoseconds)
    );
    Some(reason(ReasonKind::Overflow, VerdictValue::Degraded, &message))
}

fn time(duration: Duration) -> String {
    human::latency(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
