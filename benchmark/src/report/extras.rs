//! Results of client-side caches, of clients and of connections with a lifetime.

use crate::api::Validated;
use crate::api::status::{CacheResult, ClientResult, ConnectionsResult};
use crate::measurement::measured::{MergedCache, MergedChurn};
use crate::measurement::merge::{Merged, MergedClient, measured_nanoseconds, per_second};
use crate::measurement::{Outcome, latencies};
use redisbench_wire::plan::{Library, Verify};
use redisbench_wire::snapshot::{ServerSample, ServerStats};

/// The longest measurement of a shard: counts of all shards are over this time.
fn measured(outcome: &Outcome) -> u64 {
    outcome.snapshots().map(measured_nanoseconds).max().unwrap_or_default()
}

pub(super) fn cache(spec: &Validated, outcome: &Outcome, cache: &MergedCache) -> CacheResult {
    let counts = &cache.counts;
    let time = measured(outcome);
    let reads = u128::from(counts.hits) + u128::from(counts.misses);
    let share = (u128::from(counts.hits) * 10_000).checked_div(reads).unwrap_or_default();
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    CacheResult {
        hits: counts.hits,
        misses: counts.misses,
        hit_basis_points: u32::try_from(share).unwrap_or(10_000),
        hits_per_second: per_second(counts.hits, time),
        invalidations: counts.invalidations,
        invalidations_per_second: per_second(counts.invalidations, time),
        invalidated_unused: counts.invalidated_unused,
        not_cached: counts.not_cached,
        flushes: counts.flushes,
        evicted: counts.evicted,
        expired: counts.expired,
        caching_calls: counts.caching_calls,
        requests_saved: signed(counts.hits).saturating_sub(signed(counts.caching_calls)),
        stale_hits: (spec.plan.verify == Verify::Values).then_some(counts.stale_hits),
        invalidation_time: latencies::plain(&cache.invalidation, &spec.percentiles),
    }
}

/// The rise of a counter of all servers over the load. None if one of them does not report it, or was not the same for the whole load.
fn risen(servers: &ServerStats, of: fn(&ServerSample) -> Option<u64>) -> Option<u64> {
    let mut each = servers.nodes.iter().map(|node| {
        // Known only if no counter was reset in between.
        node.commands.and_then(|_| of(&node.after?)?.checked_sub(of(&node.before?)?))
    });
    let sum = each.try_fold(0_u64, |sum, more| Some(sum.saturating_add(more?)))?;
    (!servers.nodes.is_empty()).then_some(sum)
}

pub(super) fn client(spec: &Validated, outcome: &Outcome, merged: &Merged, client: &MergedClient) -> ClientResult {
    let usage = &client.usage;
    let each = |whole: u64| whole.checked_div(client.requests).unwrap_or_default();
    let in_thousand =
        |part: u64, whole: u64| u64::try_from(u128::from(part) * 1_000 / u128::from(whole.max(1))).unwrap_or(u64::MAX);
    let chosen = spec.plan.client.as_ref();
    // Requests of a client of type Null reach no server. Those of a lost shard reached them in an unknown number.
    let reached = chosen.is_some_and(|chosen| chosen.library != Library::Null) && outcome.lost().next().is_none();
    let servers = merged.servers.as_ref().filter(|_| reached && client.requests > 0);
    let risen = |of| servers.and_then(|servers| risen(servers, of));
    let (commands, reads) = (risen(|sample| sample.commands), risen(|sample| sample.reads));
    ClientResult {
        name: chosen.map(|chosen| chosen.name.clone()).unwrap_or_default(),
        version: usage.version.clone(),
        connections: usage.connections,
        callers: usage.callers,
        cpu_per_request_nanoseconds: each(usage.user_nanoseconds.saturating_add(usage.system_nanoseconds)),
        user_per_request_nanoseconds: each(usage.user_nanoseconds),
        system_per_request_nanoseconds: each(usage.system_nanoseconds),
        context_switches_per_thousand_requests: in_thousand(usage.context_switches, client.requests),
        server_cpu_per_request_nanoseconds: risen(|sample| sample.cpu_nanoseconds).map(each),
        commands_per_thousand_reads: commands
            .zip(reads.filter(|reads| *reads > 0))
            .map(|(commands, reads)| in_thousand(commands, reads)),
        peak_bytes: usage.peak_bytes,
    }
}

pub(super) fn connections(spec: &Validated, outcome: &Outcome, churn: &MergedChurn) -> ConnectionsResult {
    ConnectionsResult {
        made: churn.made,
        closed: churn.closed,
        made_per_second: per_second(churn.made, measured(outcome)),
        connect_time: latencies::plain(&churn.connect, &spec.percentiles),
        tls_handshake_time: churn.tls_handshake.as_ref().map(|times| latencies::plain(times, &spec.percentiles)),
    }
}
