//! `keys` of the workload and of single operations. The doc comments are the text of `kubectl explain`.

use std::fmt;

use redisbench_wire::plan::{self, HotKeys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::FileSpec;
use super::patterns::DECIMAL_PATTERN;
use super::problem::Problem;

/// Keyspace: `prefix`, a hash tag if `tags` is set, and a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysSpec {
    /// Prefix of the number, at most 256 characters. In a Cluster, a hash tag such as `{a}` puts all keys in one slot. Default `rb:`.
    #[serde(default = "default_prefix")]
    #[schemars(length(max = 256))]
    pub prefix: String,
    /// First number, at most 1000000000000000. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub start: u64,
    /// Number of keys, 1 to 1000000000000. Default 1000000.
    #[serde(default = "default_key_count")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub count: u64,
    /// Number of digits to zero-pad to, at most 20; it must fit the largest number. An empty `prefix` and width 20 make keys of 20 bytes.
    /// Default 0: the digits of the largest number, so that all keys have the same length.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    pub width: u32,
    /// Choice of each request's key.
    #[serde(default)]
    pub pattern: KeyPatternSpec,
    /// Hash tags, for keys of operations too. Not set by default: only those in `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<TagsSpec>,
    /// File whose lines are the keys, for keys of operations too: the key with number n is line n, from 0, without `prefix`. Requires
    /// `count`, at most its number of lines. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSpec>,
}

/// Hash tags. The key with number n is `prefix`, `{t<n mod count>}` and n, such as `rb:{t07}000107`. All keys of a request have the same
/// tag, so in a Cluster the same slot. `pattern` then selects keys among those of the tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagsSpec {
    /// Number of tags, 1 to 1000000. `keys.count` must be a multiple of it, also that of an operation.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: u32,
    /// Tags that take most requests: the first ones. Not set by default: every tag has the same probability, and with pattern `Sequential`
    /// requests take the tags in turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotTagsSpec>,
}

/// Sends most requests to the first tags and the rest to the others, evenly within each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotTagsSpec {
    /// Number of hot tags, at least 1 and less than the number of tags. Default 1.
    #[serde(default = "default_hot_tags")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: u32,
    /// Percentage of requests to the hot tags: a decimal number above 0 and below 100, such as "80", with at most 6 decimals.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub requests_percent: String,
}

/// Keys of one operation. Unset fields default to `workload.keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationKeysSpec {
    /// Prefix of the number, at most 256 characters. Default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub prefix: Option<String>,
    /// First number, at most 1000000000000000. Default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub start: Option<u64>,
    /// Number of keys, 1 to 1000000000000. Default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub count: Option<u64>,
    /// Number of digits to zero-pad to, at most 20. Default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub width: Option<u32>,
    /// Choice of each request's key. Default: as in `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<KeyPatternSpec>,
}

/// Choice of each request's key. Only the member that matches `type` can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyPatternSpec {
    /// `Uniform` draws every key with the same probability. `Sequential` walks the keys in order, across all shards. `Partitioned` gives
    /// each shard its own part to walk in order, so together they visit every key once before repeating. `Gaussian` draws keys around a
    /// mean, `Zipf` by popularity, and `HotSet` mostly from a hot part. Default `Uniform`.
    #[serde(default, rename = "type")]
    pub kind: KeyPatternType,
    /// Lets each connection walk on its own, as with memtier: with `Sequential` all keys, with `Partitioned` its own part. With `mix`
    /// `Ratio`, a connection's reads take the keys that it wrote. Requires a closed loop and a Standalone or Sentinel target. Default
    /// false.
    #[serde(default)]
    pub per_connection: bool,
    /// Settings for type `Gaussian`. Not set by default: the defaults of its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaussian: Option<GaussianSpec>,
    /// Settings for type `Zipf`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<ZipfSpec>,
    /// Settings for type `HotSet`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_set: Option<HotSetSpec>,
}

/// Choice of each request's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyPatternType {
    /// Every key with the same probability.
    #[default]
    Uniform,
    /// In order, across all shards.
    Sequential,
    /// Each shard walks its own part in order.
    Partitioned,
    /// By the normal distribution.
    Gaussian,
    /// By Zipf's law.
    Zipf,
    /// Mostly from a hot part of the keys.
    HotSet,
}

/// Normal distribution. Draws outside of the keyspace are repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GaussianSpec {
    /// Number of the key that is drawn most often, from `start` to `start` + `count` - 1. Not set by default: the middle one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_001_000_000_000_000_u64))]
    pub mean: Option<u64>,
    /// Standard deviation as a number of keys, 1 to `count`. Not set by default: a sixth of `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub standard_deviation: Option<u64>,
}

/// Zipf's law: the r-th most popular key is drawn with a probability proportional to r^-`exponent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZipfSpec {
    /// Decimal number above 0 and below 100, such as "0.99", with at most 6 decimals. A higher exponent favours the most popular keys more.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub exponent: String,
    /// Position of the popular keys. Default `Scattered`.
    #[serde(default)]
    pub hot_keys: HotKeys,
}

/// Sends most requests to a hot part of the keys and the rest to the others, evenly within each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotSetSpec {
    /// Percentage of requests to the hot keys: a decimal number above 0 and below 100, such as "90", with at most 6 decimals.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub requests_percent: String,
    /// Percentage of keys that are hot: a decimal number above 0 and below 100, such as "0.1", with at most 6 decimals. Rounded up to a
    /// whole key.
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub keys_percent: String,
    /// Position of the hot keys. Default `Scattered`.
    #[serde(default)]
    pub hot_keys: HotKeys,
}

impl Default for KeysSpec {
    fn default() -> Self {
        Self {
            prefix: default_prefix(),
            start: 0,
            count: default_key_count(),
            width: 0,
            pattern: KeyPatternSpec::default(),
            tags: None,
            file: None,
        }
    }
}

fn default_prefix() -> String {
    "rb:".into()
}

fn default_key_count() -> u64 {
    1_000_000
}

fn default_hot_tags() -> u32 {
    1
}

impl OperationKeysSpec {
    /// The operation's keys, with unset fields taken from the workload's `keys`.
    pub(super) fn over(&self, keys: &KeysSpec) -> KeysSpec {
        KeysSpec {
            prefix: self.prefix.as_ref().unwrap_or(&keys.prefix).clone(),
            start: self.start.unwrap_or(keys.start),
            count: self.count.unwrap_or(keys.count),
            width: self.width.unwrap_or(keys.width),
            pattern: self.pattern.as_ref().unwrap_or(&keys.pattern).clone(),
            tags: keys.tags.clone(),
            file: keys.file.clone(),
        }
    }
}

/// Why a prefix must not be empty.
pub(super) const NO_PREFIX: &str = "must not be empty with cleanup.keys DeletePrefix, which would delete all keys that are numbers: \
                                    set one that no other client uses, such as rb:, or cleanup.keys to Keep";

/// Why a prefix has no brace if keys have tags.
pub(super) const NO_BRACE: &str = "must not contain { with keys.tags, because Redis takes the first brace of a key for its tag: \
                                   remove it, or keys.tags";

/// Why keys with tags are not walked in parts.
pub(super) const NO_PARTS: &str = "must not be Partitioned, or perConnection, with keys.tags: set type to Sequential without \
                                   perConnection, or remove keys.tags";

/// Why tags that are taken in turns are not hot.
pub(super) const IN_TURNS: &str = "is not supported with pattern Sequential, where requests take the tags in turns: remove hot, or \
                                   set pattern.type to Uniform";

/// Reports tags with different numbers of keys.
pub(super) fn uneven_tags(count: impl fmt::Display, tags: impl fmt::Display) -> String {
    format!("is {count}, and must be a multiple of keys.tags.count, which is {tags}: every tag has as many keys")
}

/// Reports a mean outside of the keyspace.
pub(super) fn no_key(mean: impl fmt::Display, first: impl fmt::Display, last: impl fmt::Display) -> String {
    format!("is {mean}, and must be the number of a key, {first} to {last}")
}

/// Reports a standard deviation beyond the keyspace.
pub(super) fn too_wide(deviation: impl fmt::Display, count: impl fmt::Display) -> String {
    format!("is {deviation}, and must be at most keys.count, which is {count}: more is nearly Uniform")
}

/// The keys of shards. Checks the width at `field`; the rest has rules.
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
        pattern: pattern(keys),
        tags: keys.tags.as_ref().map(tags),
    }
}

fn tags(tags: &TagsSpec) -> plan::Tags {
    let hot = tags.hot.as_ref().map(|hot| plan::HotTags {
        count: hot.count,
        // Where it is none, the schema's pattern has said it.
        percent_millionths: millionths(&hot.requests_percent).unwrap_or(1_000_000),
    });
    plan::Tags { count: tags.count, hot }
}

/// Checks the normal distribution of an operation's keys, whose fields may come from `workload.keys`. That of `workload.keys` has rules.
pub(super) fn check_gaussian(keys: &KeysSpec, field: &str, problems: &mut Vec<Problem>) {
    let gaussian = keys.pattern.gaussian.unwrap_or_default();
    let mut refuse = |name: &str, message: String| {
        problems.push(Problem::new(format!("{field}.pattern.gaussian.{name}"), "", message));
    };
    let last = keys.start.saturating_add(keys.count.saturating_sub(1));
    if let Some(mean) = gaussian.mean.filter(|mean| !(keys.start..=last).contains(mean)) {
        refuse("mean", no_key(mean, keys.start, last));
    }
    if let Some(deviation) = gaussian.standard_deviation.filter(|deviation| *deviation > keys.count) {
        refuse("standardDeviation", too_wide(deviation, keys.count));
    }
}

/// Reports fewer keys than connections that each walk their own part.
pub(super) fn each_connection(count: impl fmt::Display, connections: impl fmt::Display) -> String {
    format!("is {count}, and must be at least load.connections, which is {connections}: every connection needs one")
}

fn pattern(keys: &KeysSpec) -> plan::KeyPattern {
    let KeyPatternSpec { kind, per_connection, gaussian, zipf, hot_set } = &keys.pattern;
    match (kind, zipf, hot_set) {
        (KeyPatternType::Sequential | KeyPatternType::Partitioned, ..) if *per_connection => {
            plan::KeyPattern::PerConnection { partitioned: *kind == KeyPatternType::Partitioned }
        }
        (KeyPatternType::Sequential, ..) => plan::KeyPattern::Sequential,
        (KeyPatternType::Partitioned, ..) => plan::KeyPattern::Partitioned,
        (KeyPatternType::Gaussian, ..) => {
            let GaussianSpec { mean, standard_deviation } = gaussian.unwrap_or_default();
            plan::KeyPattern::Gaussian {
                mean: mean.map_or(keys.count / 2, |mean| mean.saturating_sub(keys.start)),
                standard_deviation: standard_deviation.unwrap_or_else(|| (keys.count / 6).max(1)),
            }
        }
        (KeyPatternType::Zipf, Some(zipf), _) => plan::KeyPattern::Zipf {
            // Where it is none, the schema's pattern has said it.
            exponent_millionths: millionths(&zipf.exponent).unwrap_or(1_000_000),
            hot_keys: zipf.hot_keys,
        },
        (KeyPatternType::HotSet, _, Some(hot_set)) => {
            let share = u128::from(millionths(&hot_set.keys_percent).unwrap_or(1_000_000));
            let hot = (u128::from(keys.count) * share).div_ceil(100_000_000);
            plan::KeyPattern::HotSet {
                keys: u64::try_from(hot).unwrap_or(keys.count).clamp(1, keys.count.max(1)),
                percent_millionths: millionths(&hot_set.requests_percent).unwrap_or(1_000_000),
                hot_keys: hot_set.hot_keys,
            }
        }
        // By the rules, a type has its member.
        (KeyPatternType::Uniform | KeyPatternType::Zipf | KeyPatternType::HotSet, ..) => plan::KeyPattern::Uniform,
    }
}

/// Parses a number of [`DECIMAL_PATTERN`] into millionths.
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
mod tests;
