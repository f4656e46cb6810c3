//! `workload.values`. The doc comments are the text of `kubectl explain`.

use std::time::Duration;

use redisbench_wire::{limits, plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{Durations, GoDuration, SECOND};
use super::fields::default_one;
use super::file::{ConfigMapKeyRef, FileSpec};
use super::problem::Problem;

/// Ten years.
const LONGEST_TTL: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Values that commands write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesSpec {
    /// Length of the values. Default: 100 bytes, fixed.
    #[serde(default)]
    pub size: ValueSizeSpec,
    /// Content of the values.
    #[serde(default)]
    pub content: ValueContentSpec,
    /// Range of `__ttl__` in commands, such as `SET __key__ __data__ EX __ttl__`, and required with it. Not set by default. Keys of
    /// `preload.mode` do not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TtlSpec>,
}

/// Length of the values. Only the member that matches `type` can be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueSizeSpec {
    /// `Fixed` uses one length. `Range` draws each length of `range` with the same probability. `Weighted` draws one of the lengths in
    /// `weighted` by their weights. Default `Fixed`.
    #[serde(default, rename = "type")]
    pub kind: ValueSizeType,
    /// Length for type `Fixed`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedSizeSpec>,
    /// Range for type `Range`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<SizeRangeSpec>,
    /// Lengths for type `Weighted`, required for it: 1 to 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::VALUE_SIZES))]
    pub weighted: Vec<WeightedSizeSpec>,
}

/// Distribution of value lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueSizeType {
    /// All values have one length.
    #[default]
    Fixed,
    /// Any length of a range.
    Range,
    /// One of several lengths.
    Weighted,
}

/// Length of all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedSizeSpec {
    /// Length in bytes, 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub bytes: u32,
}

/// Range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SizeRangeSpec {
    /// Minimum length in bytes, 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub min_bytes: u32,
    /// Maximum length in bytes, `minBytes` to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_bytes: u32,
}

/// One length of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeightedSizeSpec {
    /// Length in bytes, 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub bytes: u32,
    /// Weight of this length, 1 to 1000000. Its share of the values is this over the sum of all weights. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
}

/// Content of the values. Only the member that matches `type` can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueContentSpec {
    /// `Random` fills values with random bytes, `Zero` with zeros. `File` takes the lines of `file` in turns: request k writes line k modulo
    /// their number, of whatever length. Default `Random`.
    #[serde(default, rename = "type")]
    pub kind: ValueContentType,
    /// Percentage by which values of type `Random` can be compressed, 0 to 100. This share is zeros, in runs of up to 4096 bytes. Values
    /// much shorter than the mean have it only on average. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub compressibility_percent: u32,
    /// Lines for type `File`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSpec>,
}

/// Content of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueContentType {
    /// Random bytes.
    #[default]
    Random,
    /// Zeros.
    Zero,
    /// Lines of a file.
    File,
}

/// Range of the time to live. Every whole second in it has the same probability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TtlSpec {
    /// Minimum, in whole seconds: 1s to 87600h.
    pub min: GoDuration,
    /// Maximum, in whole seconds: `min` to 87600h.
    pub max: GoDuration,
}

impl ValuesSpec {
    /// The ConfigMap's key whose lines are values, if they come from a file.
    pub fn file(&self) -> Option<&ConfigMapKeyRef> {
        self.content.file.as_ref().map(|file| &file.config_map_ref)
    }
}

impl Default for ValueSizeSpec {
    fn default() -> Self {
        Self {
            kind: ValueSizeType::Fixed,
            fixed: Some(FixedSizeSpec { bytes: 100 }),
            range: None,
            weighted: Vec::new(),
        }
    }
}

/// The values of shards. By the rules, a type has its member.
pub(super) fn to_plan(values: &ValuesSpec) -> plan::Values {
    let ValueSizeSpec { kind, fixed, range, weighted } = &values.size;
    let size = match (kind, range) {
        (ValueSizeType::Range, Some(range)) => {
            plan::ValueSize::Range { least_bytes: range.min_bytes, most_bytes: range.max_bytes }
        }
        (ValueSizeType::Weighted, _) => {
            let size = |size: &WeightedSizeSpec| plan::WeightedSize { bytes: size.bytes, weight: size.weight };
            plan::ValueSize::Weighted(weighted.iter().map(size).collect())
        }
        (ValueSizeType::Fixed | ValueSizeType::Range, _) => {
            plan::ValueSize::Fixed { bytes: fixed.map_or(0, |fixed| fixed.bytes) }
        }
    };
    let content = match values.content.kind {
        ValueContentType::Random => {
            plan::ValueContent::Random { compressibility_percent: values.content.compressibility_percent }
        }
        ValueContentType::Zero => plan::ValueContent::Zero,
        ValueContentType::File => plan::ValueContent::Lines,
    };
    plan::Values { size, content, lines: None }
}

/// Minimum and maximum of the range at `field` in seconds.
pub(super) fn check_ttl(ttl: &TtlSpec, field: &str, problems: &mut Vec<Problem>) -> (i64, i64) {
    let before = problems.len();
    let mut durations = Durations { problems, within: field };
    let [min, max] =
        [("min", &ttl.min), ("max", &ttl.max)].map(|(name, text)| durations.between(name, text, SECOND, LONGEST_TTL));
    for (name, text, duration) in [("min", &ttl.min, min), ("max", &ttl.max, max)] {
        if duration.subsec_nanos() != 0 {
            problems.push(Problem::new(format!("{field}.{name}"), text, "must be in whole seconds"));
        }
    }
    if min > max && problems.len() == before {
        problems.push(Problem::new(
            format!("{field}.max"),
            &ttl.max,
            format!("must be at least min, which is {}", ttl.min),
        ));
    }
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    (seconds(min), seconds(max))
}

#[cfg(test)]
mod tests;
