//! The commands to send: operations, keys and values.

use serde::{Deserialize, Serialize};

use super::argument::Part;
use super::lines::{KeyFile, Lines};
use super::options::WorkloadOptions;

/// The commands to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// The weighted mix, at least one, weights above 0.
    pub operations: Vec<Operation>,
    /// The keys.
    pub keys: Keys,
    /// Takes the keys of all operations from a file: prefix and width have no effect, and there are no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<KeyFile>,
    /// The values.
    pub values: Values,
    /// Operation, key and value of request k are a function of (seed, k).
    pub seed: u64,
    /// Additions to these requests.
    #[serde(default)]
    pub options: WorkloadOptions,
}

impl Workload {
    /// The most connections that can number their requests apart, times the commands of a request.
    pub const APART: u64 = 1 << 25;

    /// The keys of each operation.
    pub fn keys_of_operations(&self) -> impl Iterator<Item = &Keys> {
        self.operations.iter().map(|operation| operation.keys.as_ref().unwrap_or(&self.keys))
    }

    /// Returns whether an operation has no rate of its own, as the commands of a recording, which a plan does not list.
    pub fn has_mix(&self) -> bool {
        self.options.rates.is_empty() || self.options.rates.len() < self.operations.len()
    }

    /// Requests per second of the operations with rates of their own. Saturates.
    pub fn own_rates_per_second(&self) -> u64 {
        self.options.rates.iter().fold(0, |sum, rate| sum.saturating_add(rate.per_second))
    }

    /// The weights of all operations in the mix: 0 for those with a rate of their own.
    pub fn weights(&self) -> Vec<u32> {
        let mut weights: Vec<u32> = self.operations.iter().map(|operation| operation.weight).collect();
        for rate in &self.options.rates {
            if let Some(weight) = weights.get_mut(rate.operation as usize) {
                *weight = 0;
            }
        }
        weights
    }

    /// Returns whether each connection numbers its own requests.
    pub fn is_per_connection(&self) -> bool {
        self.keys_of_operations().any(|keys| matches!(keys.pattern, KeyPattern::PerConnection { .. }))
    }
}

/// One entry of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Unique in the mix.
    pub name: String,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
    /// The command's arguments, the first being its name. Each is the concatenation of its parts.
    pub arguments: Vec<Vec<Part>>,
    /// Keys of its own, instead of the workload's.
    pub keys: Option<Keys>,
}

/// The values that commands write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Values {
    /// The length of values.
    pub size: ValueSize,
    /// The content of values.
    pub content: ValueContent,
    /// The lines of [`ValueContent::Lines`]. No plan carries them: a shard reads them when it gets the plan.
    #[serde(skip)]
    pub lines: Option<Lines>,
}

impl Values {
    /// Random values of `bytes` bytes.
    pub fn fixed(bytes: u32) -> Self {
        let content = ValueContent::Random { compressibility_percent: 0 };
        Self { size: ValueSize::Fixed { bytes }, content, lines: None }
    }

    /// The longest value that is possible, in bytes.
    pub fn longest(&self) -> u32 {
        match self.content {
            ValueContent::Random { .. } | ValueContent::Zero => self.size.longest(),
            ValueContent::Lines => Lines::BYTES,
        }
    }
}

/// The length of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueSize {
    /// The same length for all.
    Fixed {
        /// The length.
        bytes: u32,
    },
    /// Each length with the same probability.
    Range {
        /// The shortest.
        least_bytes: u32,
        /// The longest, no shorter than the shortest.
        most_bytes: u32,
    },
    /// Each length with a probability proportional to its weight, which is above 0.
    Weighted(Vec<WeightedSize>),
}

/// One of several lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeightedSize {
    /// The length.
    pub bytes: u32,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
}

impl ValueSize {
    /// The longest value, in bytes.
    pub fn longest(&self) -> u32 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { most_bytes, .. } => *most_bytes,
            Self::Weighted(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }

    /// The shortest value, in bytes.
    pub fn shortest(&self) -> u32 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { least_bytes, .. } => *least_bytes,
            Self::Weighted(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// The mean length in bytes, rounded down.
    pub fn mean(&self) -> u64 {
        match self {
            Self::Fixed { bytes } => (*bytes).into(),
            Self::Range { least_bytes, most_bytes } => u64::midpoint((*least_bytes).into(), (*most_bytes).into()),
            Self::Weighted(sizes) => {
                let weights: u128 = sizes.iter().map(|size| u128::from(size.weight)).sum();
                let bytes: u128 = sizes.iter().map(|size| u128::from(size.bytes) * u128::from(size.weight)).sum();
                u64::try_from(bytes / weights.max(1)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The content of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueContent {
    /// Random bytes.
    Random {
        /// The share of zeros among them, which compress to almost nothing.
        compressibility_percent: u32,
    },
    /// Zeros.
    Zero,
    /// The lines of a file that every shard has: request k writes line k modulo their number. Sizes have no effect.
    Lines,
}

/// The key space: `prefix`, a hash tag if there are tags, and a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// The text before the number. A hash tag in it is honoured.
    pub prefix: String,
    /// The first number.
    pub start: u64,
    /// The number of keys, at least 1.
    pub count: u64,
    /// The number is padded with zeros to this many digits. 0 pads to the digits of the largest number, so that all keys have the same
    /// length.
    pub width: u32,
    /// The selection of a request's key; with tags, of its key among those of its tag.
    pub pattern: KeyPattern,
    /// The hash tags of the keys, if they have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
}

/// Hash tags: the key with number n has `{t<n mod count>}` between prefix and number, padded with zeros to the digits of the last tag. All
/// keys of a request have the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// The number of tags, at least 1. The number of keys is a multiple of it.
    pub count: u32,
    /// The first tags may take more requests than the others. Otherwise every tag has the same probability, by hash of (seed, k). Where keys
    /// are walked, requests take the tags in turns.
    pub hot: Option<HotTags>,
}

/// The tags that take most requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotTags {
    /// The number of hot tags, which are the first: at least 1 and fewer than all.
    pub count: u32,
    /// Their share of the requests, in millionths of a percent.
    pub percent_millionths: u32,
}

/// The selection of one of the keys 0..count by request k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum KeyPattern {
    /// Each with the same probability, by hash of (seed, k).
    Uniform,
    /// k mod count, so that all shards together walk the keys in order.
    Sequential,
    /// Shard i of N walks keys `count*i/N .. count*(i+1)/N` in order: together each key once, then again.
    Partitioned,
    /// Each connection walks keys in order, by its own requests: only in a closed loop whose connections select their requests.
    PerConnection {
        /// If true, connection c of C walks keys `count*c/C .. count*(c+1)/C`, otherwise every key.
        partitioned: bool,
    },
    /// By the normal distribution, drawn again if the result is outside of the key space.
    Gaussian {
        /// The key in the middle of the distribution: below the count.
        mean: u64,
        /// In keys, 1 to the count.
        standard_deviation: u64,
    },
    /// The key of rank r, from 1, with a probability proportional to r^-exponent.
    Zipf {
        /// The exponent in millionths: above 0 and below 100 million.
        exponent_millionths: u32,
        /// Maps ranks to keys.
        hot_keys: HotKeys,
    },
    /// The first `keys` ranks share `percent_millionths` of the requests evenly; the other keys share the rest.
    HotSet {
        /// The number of hot keys, 1 to the count.
        keys: u64,
        /// Their share of the requests, in millionths of a percent.
        percent_millionths: u32,
        /// Maps ranks to keys.
        hot_keys: HotKeys,
    },
}

/// Which keys are requested most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HotKeys {
    /// The first n ranks, for every n, are spread evenly over the key space.
    #[default]
    Scattered,
    /// Rank r is key r - 1.
    First,
}
