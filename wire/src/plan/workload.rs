//! What is asked of the target: operations, keys and values.

use serde::{Deserialize, Serialize};

use super::options::WorkloadOptions;

/// What is asked of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// The weighted mix, at least one, weights above 0.
    pub operations: Vec<Operation>,
    /// The keys.
    pub keys: Keys,
    /// The values.
    pub values: Values,
    /// Operation, key and value of request k are a function of (seed, k).
    pub seed: u64,
    /// What is done around, beside and before them.
    #[serde(default)]
    pub options: WorkloadOptions,
}

/// One entry of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Unique in the mix.
    pub name: String,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
    /// The command's arguments, the first being its name; each the concatenation of its parts.
    pub arguments: Vec<Vec<Part>>,
    /// Keys of its own, in place of the workload's.
    pub keys: Option<Keys>,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    /// As it stands.
    Literal(String),
    /// The request's key, prefix and all.
    Key,
    /// Another key of the request: the second, the third and so on, from 2.
    NthKey(u32),
    /// The request's value.
    Data,
    /// A random number, another one wherever it stands.
    Integer {
        /// The lowest.
        least: i64,
        /// The highest, no lower than the lowest.
        most: i64,
        /// Digits that it is padded to with zeros; 0 writes it as it is. Only where none is below 0.
        width: u32,
    },
    /// The request's number, k.
    Sequence,
    /// A random number from 0 to 1, with nine decimals.
    Score,
}

/// The values that commands write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Values {
    /// How long they are.
    pub size: ValueSize,
    /// What is in them.
    pub content: ValueContent,
}

impl Values {
    /// Random values of so many bytes.
    pub fn fixed(bytes: u32) -> Self {
        Self { size: ValueSize::Fixed { bytes }, content: ValueContent::Random { compressibility_percent: 0 } }
    }
}

/// How long values are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueSize {
    /// All alike.
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
    /// Each of these with a probability in proportion to its weight, which is above 0.
    Weighted(Vec<WeightedSize>),
}

/// One length of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeightedSize {
    /// The length.
    pub bytes: u32,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
}

impl ValueSize {
    /// The most bytes that a value has.
    pub fn longest(&self) -> u32 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { most_bytes, .. } => *most_bytes,
            Self::Weighted(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }

    /// The fewest bytes that a value has.
    pub fn shortest(&self) -> u32 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { least_bytes, .. } => *least_bytes,
            Self::Weighted(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// The mean number of bytes, rounded down.
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

/// What is in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueContent {
    /// Random bytes.
    Random {
        /// The share of them that is zeros, which a compressor makes nothing of.
        compressibility_percent: u32,
    },
    /// Zeros.
    Zero,
}

/// The key space: `prefix` followed by a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// Before the number. A hash tag in it is honoured.
    pub prefix: String,
    /// The first number.
    pub start: u64,
    /// How many keys, at least 1.
    pub count: u64,
    /// Digits that the number is padded to with zeros; 0 pads to the digits of the largest number, so that all keys
    /// have one length.
    pub width: u32,
    /// Which key a request takes.
    pub pattern: KeyPattern,
}

/// Which key request k takes, out of keys 0..count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum KeyPattern {
    /// Each with the same probability, by hash of (seed, k).
    Uniform,
    /// k mod count, so that all shards together walk the keys in order.
    Sequential,
    /// Shard i of N walks keys `count*i/N .. count*(i+1)/N` in order: together each key once, then again.
    Partitioned,
    /// By the normal distribution, drawn again where it leads beyond the first or the last key.
    Gaussian {
        /// The key in its middle: below the count.
        mean: u64,
        /// In keys, 1 to the count.
        standard_deviation: u64,
    },
    /// The key of rank r, from 1, with a probability in proportion to r^-exponent.
    Zipf {
        /// The exponent in millionths: above 0 and below 100 million.
        exponent_millionths: u32,
        /// Which key has which rank.
        hot_keys: HotKeys,
    },
    /// The first ranks share most of the requests evenly, and the others the rest.
    HotSet {
        /// How many they are, 1 to the count.
        keys: u64,
        /// Their share of the requests, in millionths of a percent.
        percent_millionths: u32,
        /// Which key has which rank.
        hot_keys: HotKeys,
    },
}

/// Which keys are asked for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HotKeys {
    /// Every first n ranks are spread evenly over the key space.
    Scattered,
    /// Rank r is key r - 1.
    First,
}
