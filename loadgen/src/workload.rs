//! What request k is: its operation, its key and its value, as functions of (seed, k) alone. Read-only once built, so
//! that workers share one copy.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "results are within the bounds of their own type"
)]

pub(crate) mod elementary;
mod keys;
mod mix;
mod pattern;
pub(crate) mod rng;
mod template;
mod values;

use std::ops::Range;

use redisbench_wire::plan::{Keys, Operation, Part, Preload, ShardPlan};

use keys::KeySpace;
use mix::Mix;
use pattern::Pattern;
use rng::Stream;
use template::Template;
use values::Values;

pub use keys::part_of;

/// The most digits of a key's number, and with them the longest padding.
const DIGITS: usize = 32;

/// Why a plan's workload cannot be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Nothing to draw from.
    #[error("workload.operations has no operation with a weight above 0")]
    NoOperations,
    /// A command without a name.
    #[error("workload.operations {0:?} has an empty command")]
    EmptyCommand(String),
    /// No keys, or more than numbers.
    #[error("workload.keys: start {start} and count {count} must give 1 to 2^64 - 1 numbers")]
    Keys {
        /// As in the plan.
        start: u64,
        /// As in the plan.
        count: u64,
    },
    /// Too much padding.
    #[error("workload.keys.width is {0}, but may be at most {DIGITS}")]
    Width(u32),
    /// A distribution that is none.
    #[error("workload.keys.pattern: {0}")]
    Pattern(&'static str),
    /// Lengths of values that are none.
    #[error("workload.values.size has no length with a weight above 0, or one that ends before it begins")]
    Sizes,
    /// A range of numbers that is none.
    #[error("workload.operations: numbers from {least} to {most} are none, more than 2^64, or wider than their width")]
    Integer {
        /// As in the plan.
        least: i64,
        /// As in the plan.
        most: i64,
    },
}

/// A request's operation, and the number of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Index into the mix.
    pub operation: u16,
    /// The number in the key.
    pub key: u64,
}

/// A mix of operations over a key space.
#[derive(Debug)]
pub struct Workload {
    mix: Mix,
    values: Values,
    templates: Vec<Template>,
    longest: usize,
    slots: Stream,
}

/// The keys of a shard's own part of every key space: of the workload's, which its preload writes, and of those of single
/// operations.
#[derive(Debug)]
pub struct OwnKeys {
    /// Each with the indices of its part.
    spaces: Vec<(KeySpace, Range<u64>)>,
    /// All parts behind each other, from 0.
    pub numbers: Range<u64>,
}

impl OwnKeys {
    /// Those of the shard with `plan`.
    ///
    /// # Errors
    /// When the plan cannot be run.
    pub fn of(plan: &ShardPlan) -> Result<Self, WorkloadError> {
        let mut all = vec![&plan.workload.keys];
        for keys in plan.workload.operations.iter().filter_map(|operation| operation.keys.as_ref()) {
            let names = |keys: &Keys| (keys.prefix.clone(), keys.start, keys.count, keys.width);
            if all.iter().all(|earlier| names(earlier) != names(keys)) {
                all.push(keys);
            }
        }
        let mut spaces = Vec::with_capacity(all.len());
        let mut end = 0_u64;
        for keys in all {
            let space = KeySpace::new(keys, Pattern::Sequential, 1, Stream::new(plan.workload.seed, rng::KEYS))?;
            let part = part_of(keys.count, plan.shard.into(), plan.shards.into());
            end = end.saturating_add(part.end - part.start);
            spaces.push((space, part));
        }
        Ok(Self { spaces, numbers: 0..end })
    }

    /// The key with this number.
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut at = number;
        for (space, part) in &self.spaces {
            let length = part.end - part.start;
            if at < length {
                return space.key(part.start + at);
            }
            at -= length;
        }
        Vec::new()
    }
}

impl Workload {
    /// What encoding may write behind a command.
    pub const SLACK: usize = template::SHORT;

    /// The trial's workload.
    ///
    /// # Errors
    /// When the plan cannot be run.
    pub fn of_trial(plan: &ShardPlan) -> Result<Self, WorkloadError> {
        Self::new(plan, &plan.workload.operations, |keys, stream| Pattern::of(keys, plan.shards, stream))
    }

    /// The preload's: request k writes key k of the key space. None if nothing is to be written.
    ///
    /// # Errors
    /// When the plan cannot be run.
    pub fn of_preload(plan: &ShardPlan) -> Result<Option<Self>, WorkloadError> {
        let literal = |text: &str| vec![Part::Literal(text.to_owned())];
        let mut arguments = vec![literal("SET"), vec![Part::Key], vec![Part::Data]];
        match plan.preload {
            Preload::None => return Ok(None),
            Preload::Always => {}
            Preload::FillMissing => arguments.push(literal("NX")),
        }
        let operation = Operation { name: "preload".into(), weight: 1, arguments, keys: None };
        Self::new(plan, &[operation], |_, _| Ok(Pattern::Sequential)).map(Some)
    }

    /// The last read's: request k reads key k of the keys whose values are followed. None if there are none.
    ///
    /// # Errors
    /// When the plan cannot be run.
    pub fn of_last_read(plan: &ShardPlan) -> Result<Option<Self>, WorkloadError> {
        let Some(followed) = plan.followed() else { return Ok(None) };
        let arguments = vec![vec![Part::Literal("GET".to_owned())], vec![Part::Key]];
        let operation = Operation { name: "last read".into(), weight: 1, arguments, keys: Some(followed.keys) };
        Self::new(plan, &[operation], |_, _| Ok(Pattern::Sequential)).map(Some)
    }

    fn new(
        plan: &ShardPlan,
        operations: &[Operation],
        pattern: impl Fn(&Keys, Stream) -> Result<Pattern, WorkloadError>,
    ) -> Result<Self, WorkloadError> {
        let workload = &plan.workload;
        let values = Values::new(&workload.values, workload.seed)?;
        let templates = operations
            .iter()
            .map(|operation| {
                if operation.arguments.is_empty() {
                    return Err(WorkloadError::EmptyCommand(operation.name.clone()));
                }
                // One stream for all: a request is of one operation only.
                let stream = Stream::new(workload.seed, rng::KEYS);
                let keys = operation.keys.as_ref().unwrap_or(&workload.keys);
                let per_request = template::keys_of(&operation.arguments);
                let keys = KeySpace::new(keys, pattern(keys, stream)?, per_request, stream)?;
                Template::new(&operation.arguments, keys, &values, workload.seed)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let longest = templates.iter().map(Template::longest).max().unwrap_or_default();
        let weights = operations.iter().map(|operation| operation.weight);
        let mix = Mix::new(weights, Stream::new(workload.seed, rng::MIX)).ok_or(WorkloadError::NoOperations)?;
        Ok(Self { mix, values, templates, longest, slots: Stream::new(workload.seed, rng::SLOTS) })
    }

    /// Operation and key of request `k`.
    #[inline]
    pub fn draw(&self, k: u64) -> Draw {
        let operation = self.mix.draw(k);
        Draw { operation, key: self.templates[usize::from(operation)].key_number(k) }
    }

    /// The number in the key of request `k`, which is of `operation`.
    pub fn key(&self, k: u64, operation: u16) -> u64 {
        self.templates[usize::from(operation)].key_number(k)
    }

    /// The operation of request `k`.
    #[inline]
    pub fn operation(&self, k: u64) -> u16 {
        self.mix.draw(k)
    }

    /// The cluster slot that request `k` belongs to; any, by hash, if its command names no key.
    #[inline]
    pub fn slot(&self, k: u64, operation: u16) -> u16 {
        let template = &self.templates[usize::from(operation)];
        template.slot(k).unwrap_or_else(|| self.slots.below(k, crate::cluster::SLOTS as u64) as u16)
    }

    /// Writes the command of request `k`, which is of `operation`, to the beginning of `room`, which has at least
    /// [`Self::longest`] bytes and [`Self::SLACK`], and returns its length.
    #[inline]
    pub fn encode(&self, k: u64, operation: u16, room: &mut [u8]) -> usize {
        let template = &self.templates[usize::from(operation)];
        template.encode(k, &self.values, room)
    }

    /// The same, by the way that all commands can go: for loads that do more than send.
    pub fn encode_any(&self, k: u64, operation: u16, room: &mut [u8]) -> usize {
        self.templates[usize::from(operation)].encode_any(k, &self.values, room)
    }

    /// The bytes of the longest command.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// How many operations the mix has.
    pub fn operations(&self) -> usize {
        self.templates.len()
    }
}

#[cfg(test)]
mod tests;
