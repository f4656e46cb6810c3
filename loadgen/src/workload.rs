//! The content of request k: its operation, its key and its value, as functions of (seed, k) alone. Read-only once built, so workers
//! share one copy.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "results are within the bounds of their own type"
)]

mod digits;
mod error;
mod keys;
mod mix;
mod numbering;
mod pattern;
mod recorded;
pub(crate) mod rng;
mod template;
mod transaction;
mod values;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use redisbench_wire::limits;
use redisbench_wire::plan::{
    KeyPattern, Keys, Load, Operation, Part, Preload, PreloadStep, ShardPlan, TrialPlan, Workload as WorkloadPlan,
    WorkloadOptions,
};

use keys::KeySpace;
use mix::Mix;
use numbering::{Numbering, Turns};
use pattern::Pattern;
use recorded::Recorded;
use rng::RandomStream;
use template::Template;
use transaction::Around;
use values::Values;

pub use error::WorkloadError;
pub use keys::part_of;
pub use numbering::begin_apart;
pub use transaction::Compound;

/// Where a request's number has the number of a further draw of its key, if keys are drawn until they belong to a node of the shard.
pub const DRAW_SHIFT: u32 = limits::REDRAWN_BITS;

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
    /// The bits of a number that decide the operation: a further draw has another key, and the same operation.
    operation_bits: u64,
    values: Values,
    templates: Vec<Template>,
    longest: usize,
    /// The same without the values of requests, but with those of fills.
    longest_around: usize,
    slots: RandomStream,
    /// Per operation, if any has requests of several commands.
    compounds: Option<Box<[Option<Compound>]>>,
    /// Per operation, the command that writes a key that a read has missed. Empty if no operation has one.
    fills: Vec<Option<Template>>,
    /// Commands to send instead of generated ones.
    recorded: Option<Recorded>,
}

/// The operations of requests.
#[derive(Clone, Copy, Debug)]
pub struct Operations<'w> {
    workload: &'w Workload,
    /// The operation of all requests, if there is only one.
    only: Option<u16>,
}

impl Operations<'_> {
    #[inline]
    pub fn of(self, k: u64) -> u16 {
        if let Some(only) = self.only { only } else { self.workload.operation(k) }
    }
}

/// One step of a preload: a command for each number.
#[derive(Clone, Debug)]
pub struct PreloadWalk {
    pub workload: Arc<Workload>,
    /// Commands of all shards.
    pub count: u64,
    /// True if its commands count as keys.
    pub writes: bool,
}

/// The keys in a shard's own part of every key space: the workload's, which the preload writes, and those of single operations.
#[derive(Debug)]
pub struct OwnKeys {
    /// Each with the indices of its part.
    spaces: Vec<(KeySpace, Range<u64>)>,
    /// All parts in sequence, from 0.
    pub numbers: Range<u64>,
}

impl OwnKeys {
    /// The keys of the shard with `plan`.
    ///
    /// # Errors
    /// Fails if the plan cannot be run.
    pub fn of(plan: &ShardPlan) -> Result<Self, WorkloadError> {
        let mut all = vec![&plan.workload.keys];
        for keys in plan.workload.operations.iter().filter_map(|operation| operation.keys.as_ref()) {
            if !all.iter().any(|earlier| earlier.same_names(keys)) {
                all.push(keys);
            }
        }
        let mut spaces = Vec::with_capacity(all.len());
        let mut end = 0_u64;
        for keys in all {
            let space = KeySpace::new(keys, Pattern::Sequential, 1, RandomStream::new(plan.workload.seed, rng::KEYS))?;
            let space = space.of_file(plan.workload.key_file.as_ref())?;
            let part = part_of(keys.count, plan.shard.into(), plan.shards.into());
            end = end.saturating_add(part.end - part.start);
            spaces.push((space, part));
        }
        Ok(Self { spaces, numbers: 0..end })
    }

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
    /// The number of bytes that encoding may write beyond the end of a command.
    pub const SLACK: usize = template::SHORT;

    /// The trial's workload.
    ///
    /// # Errors
    /// Fails if the plan cannot be run.
    pub fn of_trial(plan: &TrialPlan) -> Result<Self, WorkloadError> {
        let transaction = plan.workload.options.transaction;
        let size = transaction.map_or(1, |transaction| transaction.size.max(1).into());
        let shared = transaction.is_some_and(|transaction| transaction.shared_keys);
        let streams = plan.streams();
        let usual = Numbering { size, shared: false, turns: None, per_seat: false, streams };
        let numbering = |turns: Option<Turns>, per_seat: bool, streams: u64| {
            let of_requests = |walk| if shared { walk } else { walk / size };
            // Every connection begins with the first of its keys.
            let walk = |turns: Turns| if per_seat { Some(0) } else { turns.walk.map(of_requests) };
            let turns = turns.map(|turns| Turns { walk: walk(turns), ..turns });
            Numbering { shared, turns, per_seat, streams, ..usual }
        };
        let lines = (streams > 1).then_some(usual);
        let values = Values::new(&plan.workload.values, plan.workload.seed)?.numbered(lines);
        let WorkloadPlan { operations, options, .. } = plan.workload.as_ref();
        let mut workload = Self::with_options(plan, operations, options, values, |keys, turns| {
            let per_connection = matches!(keys.pattern, KeyPattern::PerConnection { .. });
            // Random patterns need no turns and no streams: they can use the request's own number.
            let turns = turns.filter(|_| per_connection || keys.pattern == KeyPattern::Sequential);
            let walks = matches!(keys.pattern, KeyPattern::Sequential | KeyPattern::Partitioned);
            let pattern = Pattern::of(keys, plan.shards, plan.connections, plan.workload.seed)?;
            Ok(pattern.numbered(numbering(turns, per_connection, if walks { streams } else { 1 })))
        })?;
        if let Some(trace) = &plan.trace {
            let recorded = trace.recorded.as_ref().ok_or(WorkloadError::Trace)?;
            let recorded = Recorded::new(recorded, plan.workload.seed);
            workload.longest = workload.longest.max(recorded.longest());
            workload.longest_around = workload.longest_around.max(recorded.longest());
            workload.recorded = Some(recorded);
        }
        Ok(workload)
    }

    /// The preload's workload, with the values of this one: request k writes key k of the key space, or adds element k. `None` if nothing
    /// is to be written.
    ///
    /// # Errors
    /// Fails if the plan cannot be run.
    pub fn preload(&self, plan: &TrialPlan) -> Result<Option<Self>, WorkloadError> {
        let literal = |text: &str| vec![Part::Literal(text.to_owned())];
        let mut arguments = vec![literal("SET"), vec![Part::Key], vec![Part::Data]];
        match &plan.preload {
            Preload::None => return Ok(None),
            Preload::Always => {}
            Preload::FillMissing => arguments.push(literal("NX")),
            Preload::Elements { arguments: adds_one, .. } => arguments.clone_from(adds_one),
        }
        let operation = Operation { name: "preload".into(), weight: 1, arguments, keys: None };
        self.walk(plan, operation).map(Some)
    }

    /// All steps of the preload, repeated ones as often as they are repeated.
    ///
    /// # Errors
    /// Fails if the plan cannot be run.
    pub fn preload_walks(&self, plan: &TrialPlan) -> Result<Vec<PreloadWalk>, WorkloadError> {
        let first = self.preload(plan)?;
        let first = first.map(|workload| PreloadWalk {
            workload: Arc::new(workload),
            count: plan.preload_commands(),
            writes: true,
        });
        let mut walks: Vec<_> = first.into_iter().collect();
        for PreloadStep { keys, arguments, rounds, writes } in &plan.preload_steps {
            let (arguments, own) = (arguments.clone(), Some(keys.clone()));
            let workload = self.walk(plan, Operation { name: "preload".into(), weight: 1, arguments, keys: own })?;
            let walk = PreloadWalk { workload: Arc::new(workload), count: keys.count, writes: *writes };
            walks.extend((0..*rounds).map(|_| walk.clone()));
        }
        Ok(walks)
    }

    /// The workload of the last read, with the values of this one: request k reads key k of the followed keys. `None` if no keys are
    /// followed.
    ///
    /// # Errors
    /// Fails if the plan cannot be run.
    pub fn last_read(&self, plan: &TrialPlan) -> Result<Option<Self>, WorkloadError> {
        let Some(followed) = plan.followed() else { return Ok(None) };
        let arguments = vec![vec![Part::Literal("GET".to_owned())], vec![Part::Key]];
        let operation = Operation { name: "last read".into(), weight: 1, arguments, keys: Some(followed.keys) };
        self.walk(plan, operation).map(Some)
    }

    /// A workload of single commands of one operation that walks the keys.
    fn walk(&self, plan: &TrialPlan, operation: Operation) -> Result<Self, WorkloadError> {
        let (options, values) = (WorkloadOptions::default(), self.values.clone().numbered(None));
        Self::with_options(plan, &[operation], &options, values, |keys, _| {
            Pattern::of(&Keys { pattern: KeyPattern::Sequential, ..keys.clone() }, 1, 1, plan.workload.seed)
        })
    }

    fn with_options(
        plan: &TrialPlan,
        operations: &[Operation],
        options: &WorkloadOptions,
        values: Values,
        pattern: impl Fn(&Keys, Option<Turns>) -> Result<Pattern, WorkloadError>,
    ) -> Result<Self, WorkloadError> {
        let workload = &plan.workload;
        let operation_bits = if plan.nodes_per_shard.is_some() { (1 << DRAW_SHIFT) - 1 } else { u64::MAX };
        let (mix, turns) = Self::mix(plan, operations, options).ok_or(WorkloadError::NoOperations)?;
        // Each worker of a closed loop walks the whole sequence, beginning at its own place among the keys.
        let apart = plan.load == Load::ClosedLoop;
        let turns_of = |index: usize, keys: &Keys, per_request: u64| {
            // Operations with a rate of their own have none.
            let turns = turns.get(index).copied().filter(|turns| turns.count > 0)?;
            Some(Turns { walk: apart.then_some(keys.count / per_request.max(1)), ..turns })
        };
        let templates = operations
            .iter()
            .enumerate()
            .map(|(index, operation)| {
                if operation.arguments.is_empty() {
                    return Err(WorkloadError::EmptyCommand(operation.name.clone()));
                }
                // All operations share one stream: a request belongs to only one of them.
                let stream = RandomStream::new(workload.seed, rng::KEYS);
                let keys = operation.keys.as_ref().unwrap_or(&workload.keys);
                let per_request = template::keys_of(&operation.arguments);
                let pattern = pattern(keys, turns_of(index, keys, per_request))?;
                let keys = KeySpace::new(keys, pattern, per_request, stream)?.of_file(workload.key_file.as_ref())?;
                Template::new(&operation.arguments, keys, &values, workload.seed, Around::of(options, index))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let fills = Self::fills(plan, options, &values, |index, keys, per_request| {
            pattern(keys, turns_of(index, keys, per_request))
        })?;
        let longest_fill = fills.iter().flatten().map(Template::longest).max().unwrap_or_default();
        let longest = templates.iter().map(Template::longest).fold(longest_fill, usize::max);
        let longest_around = templates.iter().map(Template::longest_around).fold(longest_fill, usize::max);
        let compounds: Box<[_]> = templates.iter().map(Template::compound).collect();
        let compounds = compounds.iter().any(Option::is_some).then_some(compounds);
        let slots = RandomStream::new(workload.seed, rng::SLOTS);
        Ok(Self {
            mix,
            operation_bits,
            values,
            templates,
            longest,
            longest_around,
            slots,
            compounds,
            fills,
            recorded: None,
        })
    }

    /// The mix of `operations`, and the place of each if it is a fixed sequence. `None` if no operation has a weight.
    fn mix(plan: &TrialPlan, operations: &[Operation], options: &WorkloadOptions) -> Option<(Mix, Vec<Turns>)> {
        let stream = RandomStream::new(plan.workload.seed, rng::MIX);
        let of = |weights: &[u32]| Mix::new(weights.iter().copied(), stream);
        let in_turns = options.in_turns && operations.len() > 1;
        let turned = |mix: Mix| if in_turns { mix.in_turns() } else { mix };
        if options.rates.is_empty() && options.mixes.is_empty() {
            let weights: Vec<u32> = operations.iter().map(|operation| operation.weight).collect();
            let mix = turned(of(&weights)?);
            let turns = if in_turns { mix.turns() } else { Vec::new() };
            return Some((mix, turns));
        }
        let own = of(&plan.workload.weights()).map(turned);
        let turns = own.as_ref().filter(|_| in_turns).map(Mix::turns).unwrap_or_default();
        let mixes: Vec<Mix> = match options.mixes.as_slice() {
            [] => own.into_iter().collect(),
            mixes => mixes.iter().map(|weights| of(weights)).collect::<Option<_>>()?,
        };
        let rated = options.rates.iter().map(|rate| rate.operation as u16);
        Some((Mix::by_stream(mixes, rated, stream)?, turns))
    }

    fn fills(
        plan: &TrialPlan,
        options: &WorkloadOptions,
        values: &Values,
        pattern: impl Fn(usize, &Keys, u64) -> Result<Pattern, WorkloadError>,
    ) -> Result<Vec<Option<Template>>, WorkloadError> {
        let workload = &plan.workload;
        let mut fills = Vec::new();
        for fill in &options.fills {
            let index = fill.operation as usize;
            let Some(operation) = workload.operations.get(index) else { continue };
            let stream = RandomStream::new(workload.seed, rng::KEYS);
            let keys = operation.keys.as_ref().unwrap_or(&workload.keys);
            // It takes the same keys as the operation's own command.
            let per_request = template::keys_of(&operation.arguments);
            let keys = KeySpace::new(keys, pattern(index, keys, per_request)?, per_request, stream)?;
            let keys = keys.of_file(workload.key_file.as_ref())?;
            fills.resize_with(workload.operations.len(), || None);
            fills[index] = Some(Template::new(&fill.arguments, keys, values, workload.seed, None)?);
        }
        Ok(fills)
    }

    #[inline]
    pub fn draw(&self, k: u64) -> Draw {
        let operation = self.operation(k);
        Draw { operation, key: self.templates[usize::from(operation)].key_number(k) }
    }

    /// The number in the key of request `k`, which belongs to `operation`.
    pub fn key(&self, k: u64, operation: u16) -> u64 {
        self.templates[usize::from(operation)].key_number(k)
    }

    /// Passes each key of request `k`, which belongs to `operation`, to `take`. `text` is room for them.
    pub fn each_key(&self, k: u64, operation: u16, text: &mut Vec<u8>, take: impl FnMut(&[u8])) {
        self.templates[usize::from(operation)].each_key(k, text, take);
    }

    #[inline]
    pub fn operation(&self, k: u64) -> u16 {
        if self.recorded.is_some() { self.recorded_operation(k) } else { self.mix.draw(k & self.operation_bits) }
    }

    /// [`Self::operation`] for many requests: a single operation is looked up once.
    #[inline]
    pub fn operations(&self) -> Operations<'_> {
        Operations { workload: self, only: self.mix.only().filter(|_| self.recorded.is_none()) }
    }

    // Out of line, because it would cost generated requests their registers.
    #[cold]
    #[inline(never)]
    fn recorded_operation(&self, k: u64) -> u16 {
        self.recorded.as_ref().map_or(0, |recorded| recorded.operation(k))
    }

    /// Returns whether requests have lanes.
    #[inline]
    pub fn has_lanes(&self) -> bool {
        self.recorded.is_some()
    }

    /// A number that is the same for all requests of a key, if they have to keep their order.
    #[inline]
    pub fn lane(&self, k: u64) -> Option<u64> {
        self.recorded.as_ref().map(|recorded| recorded.lane(k))
    }

    /// The lanes of a recording's commands; empty without one.
    pub fn lanes(&self) -> &[u64] {
        self.recorded.as_ref().map_or(&[][..], Recorded::lanes)
    }

    /// The cluster slot of request `k`. A command without a key gets a slot by hash.
    #[inline]
    pub fn slot(&self, k: u64, operation: u16) -> u16 {
        let slot = match &self.recorded {
            None => self.templates[usize::from(operation)].slot(k),
            Some(recorded) => recorded.slot(k),
        };
        slot.unwrap_or_else(|| self.any_slot(k))
    }

    /// A slot for request `k` that does not depend on its key, uniform over the requests.
    #[inline]
    pub fn any_slot(&self, k: u64) -> u16 {
        self.slots.below(k, crate::cluster::SLOTS as u64) as u16
    }

    /// Writes the commands of requests that belong to `operation` one after the other to the beginning of `room`, and returns their length
    /// in all. `room` must have at least [`Self::longest`] bytes for each, plus [`Self::SLACK`].
    #[inline]
    pub fn encode(&self, numbers: impl IntoIterator<Item = u64> + Clone, operation: u16, room: &mut [u8]) -> usize {
        let template = &self.templates[usize::from(operation)];
        template.encode_short(numbers.clone(), &self.values, room).unwrap_or_else(|| {
            numbers.into_iter().fold(0, |written, k| written + self.encode_any(k, operation, &mut room[written..]))
        })
    }

    /// Like [`Self::encode`], by the general path, for loads that do more than send. Recorded commands take it too, because they have no key
    /// to draw. Not inlined, so that `encode` itself is inlined.
    #[inline(never)]
    pub fn encode_any(&self, k: u64, operation: u16, room: &mut [u8]) -> usize {
        if let Some(recorded) = &self.recorded {
            return recorded.encode(k, room);
        }
        self.encode_copied(&self.templates[usize::from(operation)], k, room)
    }

    fn encode_copied(&self, template: &Template, k: u64, room: &mut [u8]) -> usize {
        template.encode_steps(k, &self.values, room, |k, room| self.values.write(k, room))
    }

    /// Like [`Self::encode_any`], without the values, so at most [`Self::longest_around`] bytes. Passes each value to `apart`: the number of
    /// bytes of `room` after it, and its place in [`Self::large_values`].
    #[cold]
    pub fn encode_around(
        &self,
        k: u64,
        operation: u16,
        room: &mut [u8],
        mut apart: impl FnMut(usize, Range<usize>),
    ) -> usize {
        if let Some(recorded) = &self.recorded {
            return recorded.encode(k, room);
        }
        self.templates[usize::from(operation)].encode_steps(k, &self.values, room, |k, room| {
            apart(room.len(), self.values.place_of(k));
            0
        })
    }

    /// The bytes that values are slices of, if these are so large that they should be sent without a copy. Each call counts the slices of
    /// its result by itself, so that workers share no counter.
    pub fn large_values(&self) -> Option<Bytes> {
        self.values.pool_of_large().map(Bytes::from_owner)
    }

    /// The command of request `k` as [`Self::encode`] writes it, for callers off the hot path.
    #[cold]
    pub fn command(&self, k: u64, operation: u16) -> Vec<u8> {
        if let Some(recorded) = &self.recorded {
            return recorded.command(k).to_vec();
        }
        let mut room = vec![0; self.longest + Self::SLACK];
        let template = self.templates.get(usize::from(operation));
        let length = template.map_or(0, |template| self.encode_copied(template, k, &mut room));
        room.truncate(length);
        room
    }

    /// Returns whether keys that reads have missed are written.
    pub fn has_fills(&self) -> bool {
        !self.fills.is_empty()
    }

    /// Returns whether keys that requests of `operation` have missed are written.
    pub fn has_fill(&self, operation: u16) -> bool {
        self.fills.get(usize::from(operation)).is_some_and(Option::is_some)
    }

    /// Like [`Self::encode`], for the command that writes the key of request `k` after a miss.
    #[cold]
    pub fn encode_fill(&self, k: u64, operation: u16, room: &mut [u8]) -> usize {
        let fill = self.fills.get(usize::from(operation)).and_then(Option::as_ref);
        fill.map_or(0, |template| self.encode_copied(template, k, room))
    }

    /// Returns whether any request has several commands.
    pub fn has_compounds(&self) -> bool {
        self.compounds.is_some()
    }

    /// The commands of each request of `operation`; `None` if it is a single one.
    pub fn compound(&self, operation: u16) -> Option<Compound> {
        self.compounds.as_ref()?.get(usize::from(operation)).copied().flatten()
    }

    /// The length of the longest request in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The number of bytes that [`Self::encode_around`] or [`Self::encode_fill`] may write.
    pub fn longest_around(&self) -> usize {
        self.longest_around
    }
}

#[cfg(test)]
mod tests;
