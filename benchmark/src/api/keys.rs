//! `keys` of the workload and of single operations: which there are, and which one a request takes. The doc comments are
//! the text of `kubectl explain`.

use redisbench_wire::plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// A decimal number above 0 and below 100, of at most 8 characters, and so of at most 6 decimals.
pub const DECIMAL_PATTERN: &str = r"^([1-9][0-9]?(\.[0-9]+)?|0\.0*[1-9][0-9]*)$";

/// The key space: `prefix` followed by a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysSpec {
    /// Comes before the number, at most 256 characters. In a Cluster a hash tag in it, such as `{a}`, puts all keys in
    /// one slot. Default `rb:`.
    #[serde(default = "default_prefix")]
    #[schemars(length(max = 256))]
    pub prefix: String,
    /// The first number, at most 1000000000000000. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub start: u64,
    /// How many keys, 1 to 1000000000000. Default 1000000.
    #[serde(default = "default_key_count")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub count: u64,
    /// Digits that the number is padded to with zeros, at most 20; it must hold the largest number. With an empty `prefix`
    /// a width of 20 makes keys of 20 bytes. Default 0: as many as the largest number has, so that all keys are of one
    /// length.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    pub width: u32,
    /// Which key a request takes.
    #[serde(default)]
    pub pattern: KeyPatternSpec,
}

/// Keys of one operation. What is not set is as in `workload.keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationKeysSpec {
    /// Comes before the number, at most 256 characters. Not set by default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub prefix: Option<String>,
    /// The first number, at most 1000000000000000. Not set by default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub start: Option<u64>,
    /// How many keys, 1 to 1000000000000. Not set by default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub count: Option<u64>,
    /// Digits that the number is padded to with zeros, at most 20. Not set by default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub width: Option<u32>,
    /// Which key a request takes. Not set by default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<KeyPatternSpec>,
}

/// Which key a request takes. The member of its type's name says more about it, and no other may be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyPatternSpec {
    /// `Uniform` draws each key with the same probability. `Sequential` walks them in order, all shards together.
    /// `Partitioned` gives each shard its own part to walk in order, so that all together touch each key once, then again.
    /// `Gaussian` draws keys around a mean, `Zipf` some keys far more often than others, as by popularity, and `HotSet` a
    /// part of them most of the time. Default `Uniform`.
    #[serde(default, rename = "type")]
    pub kind: KeyPatternType,
    /// For type `Gaussian`. Not set by default: all as its fields say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaussian: Option<GaussianSpec>,
    /// For type `Zipf`, and required then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<ZipfSpec>,
    /// For type `HotSet`, and required then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_set: Option<HotSetSpec>,
}

/// Which key a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyPatternType {
    /// Each with the same probability.
    #[default]
    Uniform,
    /// In order, all shards together.
    Sequential,
    /// Each shard walks its own part in order.
    Partitioned,
    /// By the normal distribution.
    Gaussian,
    /// By Zipf's law.
    Zipf,
    /// Most of the time one of a few.
    HotSet,
}

/// The normal distribution. What it would draw before the first or beyond the last key is drawn again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GaussianSpec {
    /// The number of the key that is drawn most often, from `start` to `start` + `count` - 1. Not set by default: the one
    /// in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_001_000_000_000_000_u64))]
    pub mean: Option<u64>,
    /// How many keys away from the mean the standard deviation is, 1 to `count`. Not set by default: a sixth of `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub standard_deviation: Option<u64>,
}

/// Zipf's law: the r-th most popular key is drawn with a probability in proportion to r to the power of -`exponent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZipfSpec {
    /// A decimal number above 0 and below 100, such as "0.99", with at most 6 decimals: the higher, the more the first
    /// keys get.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub exponent: String,
    /// Which keys are popular. Default `Scattered`.
    #[serde(default)]
    pub hot_keys: HotKeys,
}

/// Most requests go to a part of the keys, evenly among them, and the rest to the others, evenly too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotSetSpec {
    /// The share of the requests that go to the hot keys, in percent: a decimal number above 0 and below 100, such as
    /// "90", with at most 6 decimals.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub requests_percent: String,
    /// The share of the keys that are hot, in percent: a decimal number above 0 and below 100, such as "0.1", with at most 6
    /// decimals. Rounded up to a whole key.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub keys_percent: String,
    /// Which keys are hot. Default `Scattered`.
    #[serde(default)]
    pub hot_keys: HotKeys,
}

/// Which keys are drawn most often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HotKeys {
    /// Keys spread evenly over the key space, others for another seed.
    #[default]
    Scattered,
    /// Those with the lowest numbers, in order, as memtier has them.
    First,
}

impl Default for KeysSpec {
    fn default() -> Self {
        Self {
            prefix: default_prefix(),
            start: 0,
            count: default_key_count(),
            width: 0,
            pattern: KeyPatternSpec::default(),
        }
    }
}

fn default_prefix() -> String {
    "rb:".into()
}

fn default_key_count() -> u64 {
    1_000_000
}

impl OperationKeysSpec {
    /// The keys of the operation in a workload with these.
    pub(super) fn over(&self, keys: &KeysSpec) -> KeysSpec {
        KeysSpec {
            prefix: self.prefix.as_ref().unwrap_or(&keys.prefix).clone(),
            start: self.start.unwrap_or(keys.start),
            count: self.count.unwrap_or(keys.count),
            width: self.width.unwrap_or(keys.width),
            pattern: self.pattern.as_ref().unwrap_or(&keys.pattern).clone(),
        }
    }
}

/// Checks the keys at `field`.
pub(super) fn check(keys: &KeysSpec, field: &str, problems: &mut Vec<Problem>) -> plan::Keys {
    let largest = keys.start.saturating_add(keys.count.saturating_sub(1));
    let digits = largest.checked_ilog10().unwrap_or(0) + 1;
    if keys.width != 0 && keys.width < digits {
        let message = format!(
            "is too small for the largest number {largest}: set it to {digits} or more, or to 0 for as many as needed"
        );
        problems.push(Problem::new(format!("{field}.width"), keys.width, message));
    }
    plan::Keys {
        prefix: keys.prefix.clone(),
        start: keys.start,
        count: keys.count,
        width: keys.width,
        pattern: check_pattern(keys, &format!("{field}.pattern"), problems),
    }
}

fn check_pattern(keys: &KeysSpec, field: &str, problems: &mut Vec<Problem>) -> plan::KeyPattern {
    let KeyPatternSpec { kind, gaussian, zipf, hot_set } = &keys.pattern;
    let members = [
        ("gaussian", "Gaussian", gaussian.is_some()),
        ("zipf", "Zipf", zipf.is_some()),
        ("hotSet", "HotSet", hot_set.is_some()),
    ];
    let own = format!("{kind:?}");
    for (member, of, _) in members.into_iter().filter(|(_, of, is_set)| *is_set && *of != own) {
        let message = format!("must not be set for type {own}: remove it, or set type to {of}");
        problems.push(Problem::new(format!("{field}.{member}"), "", message));
    }
    let mut required = |member: &str, example: &str| {
        let message = format!("must be set for type {own}, such as {member}: {{{example}}}");
        problems.push(Problem::new(format!("{field}.{member}"), "", message));
    };
    match (kind, zipf, hot_set) {
        (KeyPatternType::Uniform, ..) => plan::KeyPattern::Uniform,
        (KeyPatternType::Sequential, ..) => plan::KeyPattern::Sequential,
        (KeyPatternType::Partitioned, ..) => plan::KeyPattern::Partitioned,
        (KeyPatternType::Gaussian, ..) => check_gaussian(keys, gaussian.unwrap_or_default(), field, problems),
        (KeyPatternType::Zipf, Some(zipf), _) => plan::KeyPattern::Zipf {
            // Where it is none, the schema's pattern has said it.
            exponent_millionths: millionths(&zipf.exponent).unwrap_or(1_000_000),
            hot_keys: zipf.hot_keys.into(),
        },
        (KeyPatternType::HotSet, _, Some(hot_set)) => {
            let share = u128::from(millionths(&hot_set.keys_percent).unwrap_or(1_000_000));
            let hot = (u128::from(keys.count) * share).div_ceil(100_000_000);
            plan::KeyPattern::HotSet {
                keys: u64::try_from(hot).unwrap_or(keys.count).clamp(1, keys.count.max(1)),
                percent_millionths: millionths(&hot_set.requests_percent).unwrap_or(1_000_000),
                hot_keys: hot_set.hot_keys.into(),
            }
        }
        (KeyPatternType::Zipf, None, _) => {
            required("zipf", "exponent: \"0.99\"");
            plan::KeyPattern::Uniform
        }
        (KeyPatternType::HotSet, _, None) => {
            required("hotSet", "requestsPercent: \"90\", keysPercent: \"10\"");
            plan::KeyPattern::Uniform
        }
    }
}

fn check_gaussian(
    keys: &KeysSpec,
    gaussian: GaussianSpec,
    field: &str,
    problems: &mut Vec<Problem>,
) -> plan::KeyPattern {
    let mean = gaussian.mean.unwrap_or_else(|| keys.start.saturating_add(keys.count / 2));
    let index = mean.checked_sub(keys.start).filter(|index| *index < keys.count);
    if index.is_none() && keys.count > 0 {
        let last = keys.start.saturating_add(keys.count - 1);
        let message = format!("must be the number of a key, {} to {last}", keys.start);
        problems.push(Problem::new(format!("{field}.gaussian.mean"), mean, message));
    }
    let standard_deviation = gaussian.standard_deviation.unwrap_or_else(|| (keys.count / 6).max(1));
    if standard_deviation > keys.count && keys.count > 0 {
        let message = format!("must be at most keys.count, which is {}: more is nearly Uniform", keys.count);
        problems.push(Problem::new(format!("{field}.gaussian.standardDeviation"), standard_deviation, message));
    }
    plan::KeyPattern::Gaussian { mean: index.unwrap_or(0), standard_deviation }
}

impl From<HotKeys> for plan::HotKeys {
    fn from(hot_keys: HotKeys) -> Self {
        match hot_keys {
            HotKeys::Scattered => Self::Scattered,
            HotKeys::First => Self::First,
        }
    }
}

/// A number of [`DECIMAL_PATTERN`] in millionths. None if it is not.
pub(super) fn millionths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leads = whole.len() > 1 && whole.starts_with('0');
    if !digits(whole) || !digits(decimals) || leads || whole.len() > 2 || decimals.len() > 6 {
        return None;
    }
    let value = whole.parse::<u32>().ok()? * 1_000_000 + format!("{decimals:0<6}").parse::<u32>().ok()?;
    (value > 0).then_some(value)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
