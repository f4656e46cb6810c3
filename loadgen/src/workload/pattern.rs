//! Key distributions that need more than a multiplication. Ranks count from 0. A rank is drawn from the request's own stream, so it is a
//! function of (seed, k) however many numbers it takes.

mod gaussian;
mod hot_set;
mod scatter;
mod tags;
mod unit;
mod zipf;

use redisbench_wire::plan::{HotKeys, KeyPattern, Keys, Tags};

use super::error::WorkloadError;
use super::numbering::Numbering;
use super::rng::{self, RandomStream};
use gaussian::Gaussian;
use hot_set::HotSet;
use scatter::Scatter;
use tags::TagDraw;
use zipf::Zipf;

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Uniform,
    Sequential,
    Partitioned {
        shards: u64,
    },
    /// Each connection walks its part of the keys, or with one part all of them. Its number is in the upper bits of the request's.
    PerConnection {
        parts: u64,
    },
    Drawn(Box<Drawn>),
    /// All keys of a request have its hash tag.
    Tagged(Box<Tagged>),
    /// Drawn by another number than the command's.
    Numbered(Box<(Numbering, Pattern)>),
}

impl Pattern {
    /// The same pattern with other numbers.
    pub(super) fn numbered(self, numbering: Numbering) -> Self {
        if numbering.is_plain() { self } else { Self::Numbered(Box::new((numbering, self))) }
    }

    /// The pattern of `keys` in a benchmark of `shards` shards with `connections` in all.
    pub(super) fn of(keys: &Keys, shards: u32, connections: u32, seed: u64) -> Result<Self, WorkloadError> {
        if let Some(tags) = keys.tags {
            return Ok(Self::Tagged(Box::new(Tagged::new(keys, tags, seed)?)));
        }
        let refused = |message| Err(WorkloadError::Pattern(message));
        let (distribution, hot_keys) = match keys.pattern {
            KeyPattern::Uniform => return Ok(Self::Uniform),
            KeyPattern::Sequential => return Ok(Self::Sequential),
            KeyPattern::Partitioned => return Ok(Self::Partitioned { shards: shards.into() }),
            KeyPattern::PerConnection { partitioned } => {
                return Ok(Self::PerConnection { parts: if partitioned { connections.max(1).into() } else { 1 } });
            }
            KeyPattern::Gaussian { mean, standard_deviation } => {
                if mean >= keys.count || standard_deviation == 0 || standard_deviation > keys.count {
                    return refused("the mean must be a key, and the standard deviation 1 to the number of keys");
                }
                let gaussian = Gaussian::new(keys.count, mean, standard_deviation);
                // The distribution is about neighbouring keys, so they are not scattered.
                (Distribution::Gaussian(gaussian), HotKeys::First)
            }
            KeyPattern::Zipf { exponent_millionths, hot_keys } => {
                if exponent_millionths == 0 || exponent_millionths >= 100_000_000 {
                    return refused("the exponent must be above 0 and below 100");
                }
                (Distribution::Zipf(Zipf::new(keys.count, f64::from(exponent_millionths) / 1e6)), hot_keys)
            }
            KeyPattern::HotSet { keys: hot, percent_millionths, hot_keys } => {
                if hot == 0 || hot > keys.count || percent_millionths > 100_000_000 {
                    return refused("the hot set must have between one and all keys, and at most 100 %");
                }
                (Distribution::HotSet(HotSet::new(keys.count, hot, percent_millionths)), hot_keys)
            }
        };
        let scatter =
            (hot_keys == HotKeys::Scattered).then(|| Scatter::new(keys.count, RandomStream::new(seed, rng::KEYS)));
        Ok(Self::Drawn(Box::new(Drawn { distribution, scatter })))
    }
}

/// A distribution of ranks, and the mapping of ranks to keys.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    distribution: Distribution,
    scatter: Option<Scatter>,
}

#[derive(Clone, Debug)]
enum Distribution {
    Gaussian(Gaussian),
    Zipf(Zipf),
    HotSet(HotSet),
}

impl Drawn {
    /// The index of the key of the request with this stream.
    pub(super) fn draw(&self, own: RandomStream) -> u64 {
        let rank = match &self.distribution {
            Distribution::Gaussian(gaussian) => gaussian.draw(own),
            Distribution::Zipf(zipf) => zipf.draw(own),
            Distribution::HotSet(hot_set) => hot_set.draw(own),
        };
        match &self.scatter {
            Some(scatter) => scatter.index(rank),
            None => rank,
        }
    }
}

/// Keys by the hash tag of their request.
#[derive(Clone, Debug)]
pub(super) struct Tagged {
    tag: TagDraw,
    tags: u64,
    /// Keys of each tag.
    keys: u64,
    /// The index of the first key that has the first tag.
    first: u64,
    /// The pattern among the keys of a tag. `Sequential` takes the tags in turns.
    within: Pattern,
}

impl Tagged {
    fn new(keys: &Keys, tags: Tags, seed: u64) -> Result<Self, WorkloadError> {
        let refused = |message| Err(WorkloadError::Pattern(message));
        let count = u64::from(tags.count);
        if count == 0 || !keys.count.is_multiple_of(count) {
            return refused("the number of keys must be a multiple of the number of tags, which is at least one");
        }
        let bounds = 1..tags.count;
        if tags.hot.is_some_and(|hot| !bounds.contains(&hot.count) || hot.percent_millionths > 100_000_000) {
            return refused("the hot tags must be at least one, fewer than all, and take at most 100 %");
        }
        if matches!(keys.pattern, KeyPattern::Partitioned | KeyPattern::PerConnection { .. }) {
            return refused("keys with tags cannot be walked in parts");
        }
        let of_one = tags::of_one(keys, count);
        Ok(Self {
            tag: TagDraw::new(tags, RandomStream::new(seed, rng::TAGS)),
            tags: count,
            keys: of_one.count,
            first: (count - keys.start % count) % count,
            within: Pattern::of(&of_one, 1, 1, seed)?,
        })
    }

    /// The index of key `nth` of request `k`, which has `per_request` keys.
    // Out of line, so that the common patterns stay small.
    #[inline(never)]
    pub(super) fn index(&self, k: u64, nth: u64, per_request: u64, stream: RandomStream) -> u64 {
        let drawn = || (self.tag.draw(k) + self.first) % self.tags;
        let (first, step) = match &self.within {
            Pattern::Uniform => (drawn(), stream.below(k, self.keys)),
            Pattern::Drawn(within) => (drawn(), within.draw(stream.own(k))),
            // With one key per request, this is the key after that of request k - 1. The other walks are refused.
            _ => (k % self.tags, (k / self.tags).wrapping_mul(per_request).wrapping_add(nth) % self.keys),
        };
        first + step * self.tags
    }
}

#[cfg(test)]
mod tests;
