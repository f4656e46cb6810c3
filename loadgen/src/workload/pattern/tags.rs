//! The hash tag of a request, and the keys of a tag.

use redisbench_wire::plan::{KeyPattern, Keys, Tags};

use super::hot_set::HotSet;
use crate::workload::rng::RandomStream;

/// Draws the tag of a request.
#[derive(Clone, Debug)]
pub(super) struct TagDraw {
    count: u64,
    hot: Option<HotSet>,
    stream: RandomStream,
}

impl TagDraw {
    pub(super) fn new(tags: Tags, stream: RandomStream) -> Self {
        let count = tags.count.into();
        let hot = tags.hot.map(|hot| HotSet::new(count, hot.count.into(), hot.percent_millionths));
        Self { count, hot, stream }
    }

    pub(super) fn draw(&self, k: u64) -> u64 {
        match &self.hot {
            None => self.stream.below(k, self.count),
            Some(hot) => hot.draw(self.stream.own(k)),
        }
    }
}

/// The keys of one of `tags` tags, without the tag: a part as large as all others, of the same pattern on a smaller scale.
pub(super) fn of_one(keys: &Keys, tags: u64) -> Keys {
    let pattern = match keys.pattern {
        KeyPattern::Gaussian { mean, standard_deviation } => {
            KeyPattern::Gaussian { mean: mean / tags, standard_deviation: standard_deviation.div_ceil(tags) }
        }
        KeyPattern::HotSet { keys, percent_millionths, hot_keys } => {
            KeyPattern::HotSet { keys: keys.div_ceil(tags), percent_millionths, hot_keys }
        }
        same @ (KeyPattern::Uniform
        | KeyPattern::Sequential
        | KeyPattern::Partitioned
        | KeyPattern::PerConnection { .. }
        | KeyPattern::Zipf { .. }) => same,
    };
    Keys { count: keys.count / tags, pattern, tags: None, ..keys.clone() }
}
