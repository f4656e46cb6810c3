//! The seconds of a trial, merged over all shards, as the full result has them.

use redisbench_wire::plan::ShardPlan;
use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, Part, Span};
use serde::Serialize;

/// What all shards did in one second, or in the minute or hour that old seconds become.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Second<'a> {
    /// When it begins: whole seconds since the start instant.
    pub second: u32,
    /// How long it is, in seconds.
    pub seconds: u32,
    /// The warm-up's requests, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Outcomes>,
    /// Bytes written to sockets while measuring.
    pub sent_bytes: u64,
    /// Bytes read from sockets while measuring.
    pub received_bytes: u64,
    /// All measured requests.
    pub total: Part,
    /// The same by operation. Left out if there is only one, or no breakdown by operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<NamedPart<'a>>,
}

/// One operation's requests in a second.
#[derive(Clone, Debug, Serialize)]
pub struct NamedPart<'a> {
    /// The operation's name.
    pub name: &'a str,
    /// Its requests.
    #[serde(flatten)]
    pub part: &'a Part,
}

/// The `timeline` of all shards together, whose operations are those of `plan`.
pub fn seconds<'a>(plan: Option<&'a ShardPlan>, timeline: &'a [Span]) -> Vec<Second<'a>> {
    let operations = plan.filter(|plan| plan.breakdown.operation).map(|plan| plan.workload.operations.as_slice());
    let operations = operations.filter(|operations| operations.len() > 1).unwrap_or_default();
    let named = |span: &'a Span| {
        operations.iter().zip(&span.parts).map(|(operation, part)| NamedPart { name: &operation.name, part })
    };
    let second = |span: &'a Span| Second {
        second: span.second,
        seconds: span.seconds,
        warmup: (span.warmup != Outcomes::default()).then_some(span.warmup),
        sent_bytes: span.sent_bytes,
        received_bytes: span.received_bytes,
        total: total(span),
        operations: named(span).collect(),
    };
    timeline.iter().map(second).collect()
}

fn total(span: &Span) -> Part {
    if let [only] = span.parts.as_slice() {
        return only.clone();
    }
    let together = |of: fn(&Part) -> &Buckets| {
        let mut sum = Coarse::default();
        span.parts.iter().for_each(|part| sum.add(of(part)));
        sum.buckets()
    };
    Part {
        counts: span.counts(),
        response: together(|part| &part.response),
        service: together(|part| &part.service),
        error_replies: together(|part| &part.error_replies),
    }
}
