//! The counters of a trial for the log, when nobody collected its result.

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

/// One line of JSON: everything of the snapshot that is a number.
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
    // Plain numbers and texts: serialising them into memory cannot fail.
    serde_json::to_string(&counters).unwrap_or_default()
}
