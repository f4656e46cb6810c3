//! Rules of `verify`. Those for mode Values also apply to mode Replies if commands count, which only Rust can see.

use redisbench_wire::plan::Verify;

use super::super::super::verify;
use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    const LEAST: u32 = Verify::STAMP_BYTES;
    const MOST: u64 = Verify::KEYS_PER_SHARD;
    let too_small = [("fixed", "bytes"), ("range", "minBytes")].map(|(member, bytes)| {
        let size = format!("self.workload.values.size.{member}");
        let bytes = format!("{size}.{bytes}");
        Rule::new(
            SPEC,
            bytes.replace("self.", ""),
            format!("self.verify.mode != 'Values' || !has({size}) || {bytes} >= {LEAST}"),
            format!("is %s, and must be at least {LEAST} with verify.mode Values: these bytes identify the write"),
        )
        .showing([&bytes])
    });
    let features = [
        ("workload.transaction.size", "self.workload.transaction.size > 0"),
        ("workload.wait.replicas", "self.workload.wait.replicas > 0"),
        ("workload.onMiss", "self.workload.onMiss != 'Ignore'"),
        ("workload.mix", "self.workload.mix != 'Random'"),
        ("workload.keys.file", "has(self.workload.keys.file)"),
        ("workload.keys.tags", "has(self.workload.keys.tags)"),
        ("preload.data", filled!("self.preload.data")),
        // A replica may lag behind.
        (
            "targets.cluster.readFrom other than Primary",
            "self.targets.exists(target, has(target.cluster) && target.cluster.readFrom != 'Primary')",
        ),
    ];
    let of_all = unsupported(
        "verify.mode",
        "self.verify.mode != 'None'",
        "does not support",
        &features,
        "change these, or set it to None",
    );
    let others = [
        Rule::new(
            SPEC,
            "workload.values.size.weighted",
            format!(
                "self.verify.mode != 'Values' || !has(self.workload.values.size.weighted) || \
                 self.workload.values.size.weighted.all(size, size.bytes >= {LEAST})"
            ),
            format!(
                "has an entry of %s bytes, and all must have at least {LEAST} with verify.mode Values: these identify the write"
            ),
        )
        .showing([&format!("self.workload.values.size.weighted.filter(size, size.bytes < {LEAST})[0].bytes")]),
        Rule::new(
            SPEC,
            "load.pipelineMode",
            "self.verify.mode != 'Values' || self.load.pipelineMode != 'Batch'",
            verify::one_write("Values"),
        ),
        Rule::new(
            SPEC,
            "workload.values.content.type",
            "self.verify.mode != 'Values' || self.workload.values.content.type != 'File'",
            "must not be File with verify.mode Values, which writes values of its own: set it to Random, or verify.mode to Replies",
        ),
        Rule::new(
            SPEC,
            "workload.keys.count",
            format!("self.verify.mode != 'Values' || self.workload.keys.count <= {MOST} * self.shards.count"),
            verify::too_many_keys("%s", "%s", "Values"),
        )
        .showing(["self.workload.keys.count", &format!("{MOST} * self.shards.count")]),
    ];
    too_small.into_iter().chain([of_all]).chain(others).collect()
}
