//! Seconds of a trial, merged over all shards, in their form for the full result.

use std::borrow::Cow;

use redisbench_wire::plan::TrialPlan;
use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, Part, Span};
use serde::{Deserialize, Serialize};

/// Requests of all shards in one second, or in the minute or hour into which old seconds are merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Second<'a> {
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
    pub total: Part,
    /// Measured requests by operation. Omitted for a single operation, or without a breakdown by operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<NamedPart<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NamedPart<'a> {
    pub name: Cow<'a, str>,
    #[serde(flatten)]
    pub part: Cow<'a, Part>,
}

/// Converts the merged `timeline`, whose parts are the operations of `plan`.
pub fn seconds<'a>(plan: &'a TrialPlan, timeline: &'a [Span]) -> Vec<Second<'a>> {
    let operations = plan.workload.operations.as_slice();
    let operations = if plan.breakdown.operation && operations.len() > 1 { operations } else { &[] };
    let named = |span: &'a Span| {
        operations
            .iter()
            .zip(&span.parts)
            .map(|(operation, part)| NamedPart { name: Cow::Borrowed(&operation.name), part: Cow::Borrowed(part) })
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
