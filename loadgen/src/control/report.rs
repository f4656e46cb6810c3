//! Logs the counters of a trial whose result was never collected.

use redisbench_wire::snapshot::{ErrorTally, Snapshot, Stage, Tally, Window};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counters<'a> {
    shard: u32,
    attempt: u32,
    stage: Stage,
    window: Window,
    total: Tally,
    warmup: Tally,
    preloaded_keys: u64,
    errors: &'a [ErrorTally],
}

/// Formats the snapshot's counters as one line of JSON.
pub fn counters(snapshot: &Snapshot) -> String {
    let counters = Counters {
        shard: snapshot.shard,
        attempt: snapshot.attempt,
        stage: snapshot.stage,
        window: snapshot.window,
        total: snapshot.total,
        warmup: snapshot.warmup,
        preloaded_keys: snapshot.preloaded_keys,
        errors: &snapshot.errors,
    };
    // Serialising numbers and strings into memory cannot fail.
    serde_json::to_string(&counters).unwrap_or_default()
}
