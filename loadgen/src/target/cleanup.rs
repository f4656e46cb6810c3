//! Deletes a shard's part of the keys. By name, so that no other keys can be deleted.

use std::time::Duration;

use redis::{Pipeline, Value};
use redisbench_wire::plan::{ReadFrom, ShardPlan};
use redisbench_wire::{CleanupState, limits};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::access::{Mounts, TargetAccess};
use super::client::Client;
use super::finding::Finding;
use super::trouble::Trouble;
use super::{FIRST_PAUSE, look_in_time};
use crate::cluster::{NodeAddress, slot_of};
use crate::workload::OwnKeys;

/// Keys in flight: about a millisecond of work for a server.
const BATCH: u64 = 1_000;
/// Failures in a row before giving up. A finished batch resets the count.
const TRIES: u32 = 3;
const CONNECT: Duration = Duration::from_secs(5);

/// Deletes the keys of the shard with `plan`, and sends its progress until it has finished or given up.
pub async fn clean_up(plan: ShardPlan, mounts: Mounts, progress: mpsc::Sender<CleanupState>) {
    // Deletes on primaries, even if no replica is left to read from.
    let plan = plan.with(|plan| plan.target.read_from = ReadFrom::Primary);
    let mut state = CleanupState::default();
    match OwnKeys::of(&plan) {
        Ok(keys) => {
            let mut sweep = Sweep { plan: &plan, mounts: &mounts, progress: &progress, next: keys.numbers.start };
            let mut failures = 0;
            while let Err(message) = sweep.run(&keys, &mut state, &mut failures).await {
                failures += 1;
                if failures == TRIES {
                    state.failure = Some(limits::message(&message));
                    break;
                }
                sleep(FIRST_PAUSE).await;
            }
        }
        Err(error) => state.failure = Some(error.to_string()),
    }
    state.done = state.failure.is_none();
    // Sending fails if the shard ends, which needs no progress.
    let _ = progress.send(state).await;
}

struct Sweep<'a> {
    plan: &'a ShardPlan,
    mounts: &'a Mounts,
    progress: &'a mpsc::Sender<CleanupState>,
    /// The first number whose key may still exist.
    next: u64,
}

impl Sweep<'_> {
    /// Deletes from the first remaining number to the end. Fails if a server refuses a command: its slots may have moved, so the caller
    /// looks at the target again.
    async fn run(&mut self, keys: &OwnKeys, state: &mut CleanupState, failures: &mut u32) -> Result<(), String> {
        let topology = match look_in_time(self.plan, self.mounts, None, false).await {
            Finding::Found(found) => found.topology,
            Finding::Map(topology) => topology,
            Finding::Waiting(reason) => return Err(reason),
            Finding::Obstacle(failure) | Finding::Failed(failure) => return Err(failure.message),
        };
        let access = TargetAccess::read(self.plan, self.mounts).await.map_err(|failure| failure.message)?;
        let mut clients = Vec::with_capacity(topology.nodes.len());
        for node in &topology.nodes {
            clients.push(self.connect(node, &access).await.map_err(|trouble| said(node, &trouble))?);
        }
        while self.next < keys.numbers.end {
            let end = keys.numbers.end.min(self.next + BATCH);
            let mut pipelines = vec![Pipeline::new(); clients.len()];
            for number in self.next..end {
                let key = keys.key(number);
                let owner = topology.slots.as_ref().map_or(0, |slots| usize::from(slots[usize::from(slot_of(&key))]));
                // Always true: a target with an unassigned slot is never reported as found.
                if let Some(pipeline) = pipelines.get_mut(owner) {
                    pipeline.cmd("UNLINK").arg(key);
                }
            }
            for ((client, node), pipeline) in clients.iter_mut().zip(&topology.nodes).zip(&pipelines) {
                if !pipeline.is_empty() {
                    let answers = client.ask_all(pipeline).await.map_err(|trouble| said(node, &trouble))?;
                    let removed = answers.iter().filter(|answer| **answer == Value::Int(1)).count();
                    state.removed_keys += removed as u64;
                }
            }
            self.next = end;
            *failures = 0;
            // Intermediate progress may be dropped; the final state is sent reliably.
            let _ = self.progress.try_send(state.clone());
        }
        Ok(())
    }

    async fn connect(&self, node: &NodeAddress, access: &TargetAccess) -> Result<Client, Trouble> {
        let mut client = access.connect(&node.label, node.address, CONNECT).await?;
        if self.plan.target.database != 0 {
            client.ask(redis::cmd("SELECT").arg(self.plan.target.database)).await?;
        }
        Ok(client)
    }
}

fn said(node: &NodeAddress, trouble: &Trouble) -> String {
    format!("failed to delete keys at {}: {}", node.label, trouble.text())
}
