//! Judges the servers' own statistics: whether they executed what was sent to them, and what other work they did.

use std::ops::Range;

use redisbench_wire::plan::{Client, Verify};
use redisbench_wire::snapshot::{ServerCommands, ServerCpu, ServerNode, ServerStats};
use redisbench_wire::topology::ChangeKind;

use super::rate;
use super::reason::reason;
use super::tested::client;
use super::thresholds::{FULL_WHILE_BEHIND, MAIN_THREAD, SHORTEST_CPU, UNEXPLAINED, UNEXPLAINED_LEAST};
use crate::api::Validated;
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::merge::Merged;
use crate::measurement::topology::MergedTopology;
use crate::measurement::{Ending, Outcome};

const MILLION: u64 = 1_000_000;

/// Bounds of the number of commands sent, given that their execution may be uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    least: u64,
    most: u64,
}

impl Sent {
    /// Covers warm-up and measurement. `rejected`: the servers' counts include commands refused before execution.
    fn of(spec: &Validated, merged: &Merged, rejected: bool) -> Self {
        let mut both = merged.total.tally;
        both.add(&merged.warmup);
        let size = spec.plan.workload.options.transaction.map_or(1, |transaction| u64::from(transaction.size));
        let hops = both.redirect_hops.saturating_add(both.deferral_hops);
        // For a refused transaction, the number of its commands that the server counted is unknown.
        let refused = if rejected && size == 1 { hops } else { 0 };
        let last_read = merged.verification.as_ref().filter(|_| spec.plan.verify != Verify::None).map_or(0, |found| {
            let indeterminate = found.lost_writes.saturating_add(found.lost_keys).saturating_add(found.indeterminate);
            found
                .read_keys
                .saturating_add(found.unread_keys)
                .saturating_add(found.corrupt)
                .saturating_add(indeterminate)
        });
        let least = both.succeeded.saturating_mul(size).saturating_add(refused).saturating_add(both.fills);
        // A failed request may or may not have been executed.
        let ends = both.succeeded.saturating_add(both.errors).saturating_add(hops);
        let most = ends.saturating_mul(size).saturating_add(both.fills).saturating_add(both.fill_errors);
        Self { least, most: most.saturating_add(last_read) }
    }
}

/// Checks that the servers executed exactly what was sent to them.
pub(super) fn reconciled(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    // After an early stop or with a lost shard, the number of sent commands is unknown.
    if outcome.ending != Ending::Completed || outcome.lost().next().is_some() {
        return None;
    }
    let servers = merged.servers.as_ref()?;
    let commands = match comparable(servers) {
        Ok(commands) => commands,
        Err(why) => {
            let message = format!("the servers' command counts were not compared with the commands sent: {why}");
            return Some(reason(ReasonKind::NotReconciled, VerdictValue::Valid, &message));
        }
    };
    let rejected = commands.iter().all(|commands| commands.rejected.is_some());
    let sum = |of: fn(&ServerCommands) -> u64| commands.iter().map(of).fold(0, u64::saturating_add);
    let executed = sum(|commands| commands.calls.saturating_add(commands.rejected.unwrap_or_default()));
    let foreign = sum(|commands| commands.foreign);
    let sent = Sent::of(spec, merged, rejected);
    if spec.spec.measurement.shared_target {
        return shared(sent, executed, foreign);
    }
    let message = unexplained(sent, executed, foreign, client(spec))?;
    Some(reason(ReasonKind::Unreconciled, VerdictValue::Degraded, &message))
}

/// Notes the commands of other clients, which are expected. Fewer commands than were sent are still a fault.
fn shared(sent: Sent, executed: u64, foreign: u64) -> Option<VerdictReason> {
    if let Some(message) = unexplained(sent, executed.min(sent.most), 0, None) {
        return Some(reason(ReasonKind::Unreconciled, VerdictValue::Degraded, &message));
    }
    let others = executed.saturating_sub(sent.most).saturating_add(foreign);
    let all = executed.saturating_add(foreign);
    let message = format!(
        "other clients sent {} of the {} commands that the servers counted, which measurement.sharedTarget expects",
        human::count(others),
        human::count(all)
    );
    (others > 0).then(|| reason(ReasonKind::NotReconciled, VerdictValue::Valid, &message))
}

/// Commands that each server executed, or why that is unknown.
fn comparable(servers: &ServerStats) -> Result<Vec<ServerCommands>, String> {
    if !servers.not_compared.is_empty() {
        let names = servers.not_compared.join(", ");
        return Err(format!(
            "{names}: the counts of these also include housekeeping commands, or do not show what was executed"
        ));
    }
    let of = |node: &ServerNode| {
        let why =
            || node.note.clone().unwrap_or_else(|| format!("{} was not present for the whole load", node.address));
        node.commands.ok_or_else(why)
    };
    match servers.nodes.as_slice() {
        [] => Err("no server was queried".to_owned()),
        nodes => nodes.iter().map(of).collect(),
    }
}

/// A message if too many commands are unexplained. `client` is the client under test.
fn unexplained(sent: Sent, executed: u64, foreign: u64, client: Option<&Client>) -> Option<String> {
    let more = executed.saturating_sub(sent.most);
    let fewer = sent.least.saturating_sub(executed);
    let all = more.saturating_add(fewer).saturating_add(foreign);
    let whole = sent.most.max(executed);
    if all <= UNEXPLAINED_LEAST || u128::from(all) * u128::from(UNEXPLAINED) <= u128::from(whole) {
        return None;
    }
    let count = human::count;
    let (sent, why) = if fewer > 0 {
        (
            sent.least,
            "servers that were not queried execute requests too (behind a proxy, for example), or counters were reset"
                .to_owned(),
        )
    } else {
        // A library repeats commands of the mix only.
        (sent.most, surplus(client.filter(|_| more > 0)))
    };
    let others = if foreign > 0 { format!(" and {} other commands", count(foreign)) } else { String::new() };
    Some(format!(
        "the servers counted {} commands of the mix{others}, this benchmark sent {}: {} are unexplained, more than 0.1 %; \
         {why}",
        count(executed),
        count(sent),
        human::share(all, whole),
    ))
}

/// Why servers executed more than was sent. A library that repeats a call reports it once.
fn surplus(client: Option<&Client>) -> String {
    const OTHER: &str = "another client uses the target";
    let repeats = match client {
        None => return format!("{OTHER} and leaves it less time for this benchmark"),
        Some(Client { name, retries: 0, .. }) => {
            format!("client {name} repeats calls although load.clients[].retries is 0")
        }
        Some(Client { name, retries, .. }) => {
            format!("client {name} repeats failed calls (load.clients[].retries is {retries})")
        }
    };
    format!("{repeats}, or {OTHER}; both leave the target less time for the requests that are counted")
}

pub(super) fn evictions(merged: &Merged) -> Option<VerdictReason> {
    let evicted = |node: &ServerNode| Some(node.after?.evicted_keys.saturating_sub(node.before?.evicted_keys));
    let nodes = merged.servers.as_ref()?.nodes.iter();
    let evicting: Vec<_> =
        nodes.filter_map(|node| Some((evicted(node)?, node))).filter(|(keys, _)| *keys > 0).collect();
    let (most, node) = evicting.iter().max_by_key(|(keys, _)| *keys)?;
    let all = evicting.iter().map(|(keys, _)| *keys).fold(0, u64::saturating_add);
    let message = format!(
        "the target evicted {} during the load, {} of them on {}: evictions cost extra work, and reads miss; raise \
         maxmemory, or write less (workload.keys.count, workload.values.size)",
        human::counted(all, "key"),
        human::count(*most),
        node.address
    );
    Some(reason(ReasonKind::Evictions, VerdictValue::Degraded, &message))
}

/// Reported if keys of the preload were gone before the load began.
pub(super) fn preload_evicted(merged: &Merged) -> Option<VerdictReason> {
    let nodes = &merged.servers.as_ref()?.nodes;
    let before = || nodes.iter().filter_map(|node| node.before);
    let keys = before().map(|sample| sample.keys).fold(0, u64::saturating_add);
    let evicted = before().map(|sample| sample.evicted_keys).fold(0, u64::saturating_add);
    // Keys may also expire, or be deleted by other clients.
    if evicted == 0 || keys >= merged.preloaded_keys || nodes.iter().any(|node| node.before.is_none()) {
        return None;
    }
    let message = format!(
        "the preload wrote {}, but {} existed when the load began: the target evicts keys, so reads miss; raise \
         maxmemory, or write less (workload.keys.count, workload.values.size)",
        human::counted(merged.preloaded_keys, "key"),
        human::count(keys)
    );
    Some(reason(ReasonKind::Evictions, VerdictValue::Valid, &message))
}

/// Forking is normal for a server that is configured to save. The numbers are correct, but another run may have had no fork.
pub(super) fn forked(merged: &Merged) -> Option<VerdictReason> {
    let nodes = merged.servers.as_ref()?.nodes.iter();
    let forked: Vec<&ServerNode> = nodes.filter(|node| node.forks > 0 || node.had_child).collect();
    let longest = forked.iter().max_by_key(|node| (node.longest_fork_microseconds, node.forks))?;
    let what = match (longest.forks, longest.longest_fork_microseconds) {
        (0, _) => "had a child process".to_owned(),
        (forks, microseconds) => format!(
            "forked {}, which paused it for up to {}",
            if forks == 1 { "once".to_owned() } else { format!("{} times", human::count(forks)) },
            human::latency(microseconds.saturating_mul(1_000))
        ),
    };
    let others = match forked.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} other servers)"),
    };
    let message = format!(
        "{} {what}{others} during the measurement: to save, to rewrite its append-only file, or for a replica; until the \
         child exits, each written page is copied first. Compare with runs that forked too, or measure long enough for \
         the usual number of forks",
        longest.address
    );
    Some(reason(ReasonKind::Forked, VerdictValue::Valid, &message))
}

/// Slots being migrated on purpose stay available, so they do not count. A new primary is another server, with other keys in its caches.
pub(super) fn topology_changed(topology: &MergedTopology, window_nanoseconds: u64) -> Option<VerdictReason> {
    let window = topology.measured_from..topology.measured_from.saturating_add(window_nanoseconds);
    let another = |kind: ChangeKind| matches!(kind, ChangeKind::BecamePrimary | ChangeKind::Gone);
    let changes =
        topology.changes.iter().filter(|change| another(change.what) && window.contains(&change.at_nanoseconds));
    let first = changes.clone().next()?;
    let what = if first.what == ChangeKind::Gone { "left" } else { "became a primary" };
    let message = format!(
        "topology changes during the measurement: {}; the first: {} {what} {} after it began; see status.topology",
        changes.count(),
        first.node,
        human::latency(first.at_nanoseconds.saturating_sub(topology.measured_from))
    );
    Some(reason(ReasonKind::TopologyChanged, VerdictValue::Degraded, &message))
}

/// The server that had no processor time left, if any: its id and component. It was full over the whole window, or for as long as requests
/// fell `behind` their rate, such as at the top of a ramp. A server's counts do not include in which seconds it was full.
pub(super) fn full(merged: &Merged, behind: &[Range<u64>]) -> Option<String> {
    if let Some((component, _)) = busiest(merged, MAIN_THREAD) {
        return Some(component);
    }
    if behind.is_empty() {
        return None;
    }
    let least = u128::from(rate::length(behind)) * u128::from(FULL_WHILE_BEHIND);
    let while_behind = |cpu: &ServerCpu| u128::from(cpu.full_nanoseconds) * u128::from(MILLION) >= least;
    let full = comparable_cpus(merged).filter(|(_, cpu)| cpu.full_nanoseconds >= SHORTEST_CPU && while_behind(cpu));
    full.max_by_key(|(_, cpu)| cpu.full_nanoseconds).map(component)
}

/// The server with the highest share of processor time, if that is at least `least`: its id and component, and the share in hundredths of a
/// per cent.
pub(super) fn busiest(merged: &Merged, least: u32) -> Option<(String, u32)> {
    let (node, cpu) = comparable_cpus(merged)
        .filter(|(_, cpu)| cpu.mean_basis_points >= least && cpu.nanoseconds >= SHORTEST_CPU)
        .max_by_key(|(_, cpu)| cpu.mean_basis_points)?;
    Some((component((node, cpu)), cpu.mean_basis_points))
}

/// Servers with their processor times, without those whose times may include several threads.
fn comparable_cpus(merged: &Merged) -> impl Iterator<Item = (&ServerNode, ServerCpu)> {
    let nodes = merged.servers.iter().flat_map(|servers| &servers.nodes);
    nodes.filter_map(|node| {
        let cpu = node.cpu?;
        let several =
            !cpu.main_thread && node.after.or(node.before).is_some_and(|seen| seen.io_threads_active == Some(true));
        (!several).then_some((node, cpu))
    })
}

fn component((node, cpu): (&ServerNode, ServerCpu)) -> String {
    let id = human::cut(&node.id, 256);
    if cpu.main_thread { format!("{id}/MainThread") } else { id.to_owned() }
}

#[cfg(test)]
mod tests;
