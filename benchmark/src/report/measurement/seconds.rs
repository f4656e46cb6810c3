//! Seconds of a trial, merged over all shards, in their form for the full result.

use redisbench_wire::plan::TrialPlan;
use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, Span, SpanPart};
use serde::{Deserialize, Serialize};

/// Requests of all shards in one second, or in the minute or hour into which old seconds are merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Second {
    /// Beginning, in whole seconds since the start instant.
    pub second: u32,
    /// Length in seconds.
    pub seconds: u32,
    /// Requests of the warm-up, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Outcomes>,
    /// Bytes written to sockets while measuring.
    pub sent_bytes: u64,
    /// Bytes read from sockets while measuring.
    pub received_bytes: u64,
    /// All measured requests.
    pub total: SpanPart,
    /// Measured requests by operation. Omitted for a single operation, or without a breakdown by operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<NamedPart>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedPart {
    pub name: String,
    #[serde(flatten)]
    pub part: SpanPart,
}

/// Converts the merged `timeline`, whose parts are the operations of `plan`.
pub fn seconds(plan: &TrialPlan, timeline: &[Span]) -> Vec<Second> {
    let names = plan.operation_names();
    let operations = if plan.breakdown.operation && names.len() > 1 { names.as_slice() } else { &[] };
    let label = |span: &Span| {
        let parts = operations.iter().zip(span.parts.clone());
        parts.map(|(name, part)| NamedPart { name: (*name).to_owned(), part }).collect()
    };
    let second = |span: &Span| Second {
        second: span.second,
        seconds: span.seconds,
        warmup: (span.warmup != Outcomes::default()).then_some(span.warmup),
        sent_bytes: span.sent_bytes,
        received_bytes: span.received_bytes,
        total: total(span),
        operations: label(span),
    };
    timeline.iter().map(second).collect()
}

fn total(span: &Span) -> SpanPart {
    if let [only] = span.parts.as_slice() {
        return only.clone();
    }
    let together = |of: fn(&SpanPart) -> &Buckets| {
        let mut sum = Coarse::default();
        span.parts.iter().for_each(|part| sum.add(of(part)));
        sum.buckets()
    };
    SpanPart {
        counts: span.counts(),
        response: together(|part| &part.response),
        service: together(|part| &part.service),
        error_replies: together(|part| &part.error_replies),
    }
}
