//! Loads scripts and function libraries into every primary before the load and at every later look at the target. A newly promoted replica
//! or restarted server may lack them.

use std::time::Duration;

use redis::Cmd;
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Script, TrialPlan};

use super::access::TargetAccess;
use super::advice;
use super::client::Client;
use super::end::End;
use super::finding::Finding;
use super::trouble::Trouble;
use crate::cluster::Topology;

/// Loads all scripts into the servers of `topology`. `client` is connected to one of them, or to the only one of a target without slots.
pub(super) async fn load(
    plan: &TrialPlan,
    access: &TargetAccess,
    client: &mut Client,
    topology: &Topology,
    limit: Duration,
) -> Result<(), End> {
    let options = &plan.workload.options;
    if options.scripts.is_empty() && options.functions.is_empty() {
        return Ok(());
    }
    if topology.slots.is_none() {
        return load_into(plan, client).await;
    }
    for node in &topology.nodes {
        let connected = access.connect(&node.label, node.address, limit).await;
        let mut client = connected.map_err(|trouble| match trouble {
            // The node may have failed and be replaced soon.
            Trouble::Silent(what) | Trouble::Foreign(what) => {
                End::from(Finding::Obstacle(advice::unreachable(&plan.target.name, &node.label, &what)))
            }
            decided => decided.into(),
        })?;
        load_into(plan, &mut client).await?;
    }
    Ok(())
}

async fn load_into(plan: &TrialPlan, client: &mut Client) -> Result<(), End> {
    let options = &plan.workload.options;
    let script = |script: &Script| {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&script.source);
        command
    };
    let library = |library: &Script| {
        let mut command = redis::cmd("FUNCTION");
        command.arg("LOAD").arg("REPLACE").arg(&library.source);
        command
    };
    let all = [("scripts", &options.scripts, script as fn(&Script) -> Cmd), ("functions", &options.functions, library)];
    for (field, scripts, command) in all {
        for (index, script) in scripts.iter().enumerate() {
            match client.ask(&command(script)).await {
                Err(trouble @ Trouble::Refused(_)) if !trouble.is_passing() => {
                    let said = trouble.text();
                    let message = format!(
                        "target {}: spec.workload.{field}[{index}].source: {}: the server refused it: correct it, or \
                         allow the user to load it (reply: {said})",
                        plan.target.name, script.name
                    );
                    return Err(Finding::Failed(advice::failure(FailureReason::CommandRefused, &message)).into());
                }
                answer => drop(answer?),
            }
        }
    }
    Ok(())
}
