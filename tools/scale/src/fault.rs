//! Faults of a measurement: their options, and how they are made.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::RUN_LABEL;
use tokio::time::{sleep, timeout};

use crate::driver::Ledger;
use crate::farm::INDEX_LABEL;
use crate::operator::Operator;

/// The namespace and name of the operator's Lease.
const LEASE: (&str, &str) = ("redisbench-system", "redisbench-operator");
/// Timeout for a new operator to take the Lease: the claim of a former one, and a start on a busy machine.
const LEADS_WITHIN: Duration = Duration::from_secs(60);
/// Interval of checking a condition.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Faults {
    /// Shards of each benchmark that are cut off in the middle of the load.
    #[arg(long, default_value_t = 0)]
    pub unreachable: u32,
    /// Abort the benchmarks in the middle of the load.
    #[arg(long)]
    pub abort: bool,
    /// Delete the benchmarks in the middle of the load, as `kubectl delete --cascade` does.
    #[arg(long, value_name = "CASCADE", conflicts_with = "abort")]
    pub delete: Option<Cascade>,
    /// Kill the operator with SIGKILL once, and start it again at once.
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["unreachable", "abort", "delete"])]
    pub kill_operator: Option<Moment>,
    /// Milliseconds by which every answer of the API server to the operator is delayed.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub slow_api: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Moment {
    /// Middle of the load.
    Running,
    /// End of the load, once half of the shards have given their results.
    Collecting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cascade {
    Background,
    Foreground,
    Orphan,
}

impl Cascade {
    pub fn parameters(self) -> DeleteParams {
        match self {
            Self::Background => DeleteParams::background(),
            Self::Foreground => DeleteParams::foreground(),
            Self::Orphan => DeleteParams::orphan(),
        }
    }
}

impl Faults {
    /// Name in the page's table. None without faults.
    pub fn name(self) -> Option<String> {
        let parts = [
            (self.slow_api > 0).then(|| format!("API answers {} ms late", self.slow_api)),
            (self.unreachable > 0).then(|| format!("{} shards cut off", self.unreachable)),
            self.kill_operator.map(|moment| format!("operator killed while {moment:?}").to_lowercase()),
            self.abort.then(|| "aborted".to_owned()),
            self.delete.map(|cascade| format!("deleted ({cascade:?})").to_lowercase()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns true if something happens during the load.
    pub fn disturb(self) -> bool {
        self.unreachable > 0 || self.abort || self.delete.is_some() || self.kill_operator.is_some()
    }
}

/// Effects of the faults on a benchmark.
#[derive(Debug, Default)]
pub struct Disturbed {
    /// Time of its abort or deletion, on the machine's monotonic clock.
    pub stopped_at: Option<u64>,
    /// Shards that were cut off, each with the measured requests in its last two snapshots. The answer with the last one may be lost.
    pub cut_off: BTreeMap<u32, [u64; 2]>,
}

/// Waits until `done`. Fails with `otherwise` after `limit`.
///
/// # Errors
/// After `limit`.
pub async fn until(limit: Duration, otherwise: &'static str, done: impl Fn() -> bool) -> Result<()> {
    let wait = async {
        while !done() {
            sleep(LOOK).await;
        }
    };
    timeout(limit, wait).await.context(otherwise)
}

/// Drops every packet to and from the first `number` shards of `run`: those that every round of calls begins with.
///
/// # Errors
/// If the pods cannot be listed, or nft refuses the rules.
pub async fn cut_off(pods: &Api<Pod>, run: &str, number: u32) -> Result<BTreeMap<u32, [u64; 2]>> {
    let list = pods.list(&ListParams::default().labels(&format!("{RUN_LABEL}={run}"))).await;
    let place = |pod: &Pod| -> Option<(u32, String)> {
        Some((pod.labels().get(INDEX_LABEL)?.parse().ok()?, pod.status.as_ref()?.pod_ip.clone()?))
    };
    let pods = list.context("failed to list the pods")?.items;
    let places: BTreeMap<u32, String> = pods.iter().filter_map(place).collect();
    let (shards, addresses): (Vec<u32>, Vec<String>) = places.into_iter().take(number as usize).unzip();
    let set = addresses.join(", ");
    let rules = format!(
        "table ip scale {{\nchain cut {{\ntype filter hook input priority 0;\n\
         ip daddr {{ {set} }} drop\nip saddr {{ {set} }} drop\n}}\n}}\n"
    );
    let status = Command::new("nft").arg(rules).status().context("failed to start nft")?;
    ensure!(status.success(), "nft refused the rules");
    // No snapshot arrives from now on.
    let reported = Ledger::look(run, |truth| truth.reported.clone());
    Ok(shards.into_iter().map(|shard| (shard, reported.get(&shard).copied().unwrap_or_default())).collect())
}

/// Kills the operator, starts it again, and notes how long it took to hold the Lease.
///
/// # Errors
/// If it cannot be started again, or does not lead in time.
pub async fn kill(client: &Client, operator: &RefCell<Operator>) -> Result<()> {
    let killed_at = SystemTime::now();
    operator.borrow_mut().restart()?;
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE.0);
    let led = async {
        loop {
            let lease = leases.get_opt(LEASE.1).await.context("failed to read the Lease")?;
            // The name is that of before, so only the time of the claim differs.
            let claimed_at = lease.and_then(|lease| lease.spec?.renew_time).map(|at| SystemTime::from(at.0));
            if let Some(Ok(gap)) = claimed_at.map(|at| at.duration_since(killed_at)) {
                return anyhow::Ok(gap);
            }
            sleep(LOOK * 10).await;
        }
    };
    let gap = timeout(LEADS_WITHIN, led).await.context("no operator took the Lease in time")??;
    operator.borrow_mut().seconds_without = Some(gap.as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        faults: Faults,
    }

    fn name(arguments: &str) -> Option<String> {
        let words = ["scale"].into_iter().chain(arguments.split_whitespace());
        Arguments::try_parse_from(words).unwrap().faults.name()
    }

    #[test]
    fn faults_are_named_by_their_options() {
        assert_eq!(name(""), None);
        assert_eq!(name("--unreachable 667").unwrap(), "667 shards cut off");
        assert_eq!(name("--kill-operator running").unwrap(), "operator killed while running");
        assert_eq!(name("--kill-operator collecting").unwrap(), "operator killed while collecting");
        assert_eq!(name("--delete orphan --unreachable 2").unwrap(), "2 shards cut off, deleted (orphan)");
        assert_eq!(name("--abort --slow-api 200").unwrap(), "API answers 200 ms late, aborted");
        assert!(Arguments::try_parse_from(["scale", "--abort", "--delete", "orphan"]).is_err());
    }
}
