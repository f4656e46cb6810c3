//! Advice about a verdict.

use redisbench_benchmark::api::status::{LimitedBy, ReasonKind, VerdictValue};

pub fn meaning(value: VerdictValue) -> &'static str {
    match value {
        VerdictValue::Valid => "As far as was checked, these numbers are correct.",
        VerdictValue::Degraded => "Use these numbers with care, for the reasons below.",
        VerdictValue::Invalid => "Do not use these numbers, for the reasons below.",
    }
}

/// Advice about a reason.
pub fn about(reason: ReasonKind) -> &'static str {
    match reason {
        ReasonKind::ShardLost => "Fix the cause in the message, and run the benchmark again.",
        ReasonKind::StartSkew => "Set a longer load.warmup, or give each shard a processor of its own.",
        ReasonKind::ClockUncertain => "Fix the network to the shards, or raise spec.shards.maxStartSkew.",
        ReasonKind::NothingMeasured => "Set a longer load.duration, or a higher rate.",
        ReasonKind::RateMissed => "Lower the rate, or change what limited the throughput.",
        ReasonKind::Backlog => "Lower the rate: with this one, response times depend on how long the load lasts.",
        ReasonKind::Errors => {
            "Look at the errors below. If requests were unsent, use more connections or a lower rate."
        }
        ReasonKind::Unavailable => {
            "Look at the outages below and at the servers' logs. Use an open loop, which keeps its rate during an outage."
        }
        ReasonKind::Overflow => "Set a load.timeouts.request of less than 600 s.",
        ReasonKind::GeneratorCPU | ReasonKind::GeneratorDelay | ReasonKind::SendLate => {
            "Give the shards more CPU (shards.template.resources), use more shards, or use idle machines."
        }
        ReasonKind::ReceiveLate => {
            "Find what stopped the shard: short memory, a frozen container, or a paused machine."
        }
        ReasonKind::GeneratorLimited => "Give the load generator more of what the message names, and search again.",
        ReasonKind::TopologyChanged => "Run again, unless the change is what you test.",
        ReasonKind::Unsteady => {
            "Set a longer load.warmup and load.duration, or longer stages. Against pauses, use an open loop."
        }
        ReasonKind::Evictions => "Raise the servers' maxmemory, or write less.",
        ReasonKind::Unreconciled => {
            "Keep other clients away from the target, and set the retries of client libraries to 0. If it executed fewer \
             commands, another server replies, as with a proxy."
        }
        ReasonKind::WrongReplies => "Look at the findings below: the target or something before it changes data.",
        ReasonKind::Trial => "Look at the trials below, and at the report of each that is not Valid.",
        ReasonKind::DataLost => "Use WAIT, min-replicas-to-write or appendfsync always, if losing writes matters.",
        ReasonKind::KeysUnread => "Use fewer keys.",
        ReasonKind::UnderReplicated => "Add replicas, or wait for fewer of them.",
        ReasonKind::Misses => "Set preload.mode: a miss is faster than a hit.",
        ReasonKind::Forked => "Compare only with runs in which the servers forked too.",
        ReasonKind::NotReconciled => "Nothing, if no other client used the target.",
        ReasonKind::NotVerified => "Set caSecretRef, so that the target's identity is verified.",
    }
}

/// Advice on getting more throughput.
pub fn next(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Rate => "The target may do more: raise the rate, or let a search find the highest one.",
        LimitedBy::Target => "The target did what it could: this is its limit under this load.",
        LimitedBy::GeneratorCPU => "The target may do more: add CPU or shards.",
        LimitedBy::Client => "This is the client's limit with these threads and connections: the target may do more.",
        LimitedBy::GeneratorNetwork => "The target may do more: add machines for the shards.",
        LimitedBy::Connections => "The target may do more: add connections, or requests in flight on them.",
        LimitedBy::Unknown => "Set measurement.probe and measurement.linkCapacity, so that the next run can tell.",
    }
}
