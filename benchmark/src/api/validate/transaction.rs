//! Validation of `spec.workload.transaction` and `spec.workload.wait`.

use redisbench_wire::plan;

use crate::api::duration::{Durations, MILLISECOND, MINUTE};
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::transaction::{TransactionKeys, TransactionSpec, WaitSpec};
use crate::api::{placeholder, reads, script, target};

/// Checks `spec.workload.transaction` for `operations`.
pub(super) fn check_transaction(
    spec: &RedisBenchmarkSpec,
    operations: &[plan::Operation],
    problems: &mut Vec<Problem>,
) -> Option<plan::Transaction> {
    let TransactionSpec { size, keys } = spec.workload.transaction;
    if size == 0 {
        return None;
    }
    let shared_keys = keys == TransactionKeys::Shared;
    let slotted = target::keyed(&spec.targets).is_some();
    for (index, operation) in operations.iter().enumerate().filter(|_| slotted && size > 1) {
        let own = spec.workload.operations.get(index).and_then(|operation| operation.keys.as_ref());
        let own = own.map(|own| own.over(&spec.workload.keys));
        // A wrong number of keys was reported before.
        let keys = script::keys(&operation.arguments).unwrap_or_default();
        if !placeholder::stays_in_a_slot(keys, own.as_ref().unwrap_or(&spec.workload.keys), shared_keys) {
            let field = format!("spec.workload.operations[{index}].command");
            let command = spec.workload.operations.get(index).map_or("", |operation| &operation.command);
            let prefix = match spec.workload.keys.file {
                None => "give keys.prefix a hash tag, such as {rb}:, or ",
                Some(_) => "",
            };
            let message = format!(
                "uses a different key for each command of a transaction, and a Cluster, or a Pool with distribution ByKey, has \
                 keys of different slots on different servers: {prefix}set spec.workload.transaction.keys to Shared"
            );
            problems.push(Problem::new(field, command, message));
        }
    }
    Some(plan::Transaction { size, shared_keys })
}

/// Checks `spec.workload.wait` for `operations`.
pub(super) fn check_wait(
    spec: &RedisBenchmarkSpec,
    operations: &[plan::Operation],
    problems: &mut Vec<Problem>,
) -> Option<plan::Wait> {
    let WaitSpec { replicas, timeout } = &spec.workload.wait;
    if *replicas == 0 {
        return None;
    }
    let length = Durations { problems: &mut *problems, within: "spec.workload.wait" }.between(
        "timeout",
        timeout,
        MILLISECOND,
        10 * MINUTE,
    );
    let request = &spec.load.timeouts.request;
    if request.parse().is_ok_and(|request| length >= request) {
        let message = format!(
            "must be less than load.timeouts.request, which is {request}: otherwise requests time out before WAIT returns; \
             lower it, or raise load.timeouts.request"
        );
        problems.push(Problem::new("spec.workload.wait.timeout", timeout, message));
    }
    let writes = |operation: &plan::Operation| !reads::only_reads(&operation.arguments);
    let numbered = (0..).zip(operations);
    let operations: Vec<u32> = numbered.filter(|(_, operation)| writes(operation)).map(|(index, _)| index).collect();
    if operations.is_empty() {
        let message = "has no effect: no operation writes; set it to 0, or add one that does";
        problems.push(Problem::new("spec.workload.wait.replicas", replicas, message));
    }
    let timeout_milliseconds = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    Some(plan::Wait { replicas: *replicas, timeout_milliseconds, operations })
}
