//! Several schedules of one worker as one: that of the mix, and one for each operation with a rate of its own. Request n of stream s is
//! request k = n * streams + s of the benchmark.

use redisbench_wire::plan::{Arrival, Load, TrialPlan};
use redisbench_wire::rate::CumulativeRate;

use super::slot::Slot;
use crate::workload::rng::{ARRIVALS, RandomStream};

/// The schedule of one stream, which numbers its requests from 0.
pub(super) trait Single {
    /// The current slot.
    fn slot(&self) -> Slot;
    fn take(&mut self);
    /// The number of slots from the current one on that are due before `end`.
    fn count_before(&self, end: u64) -> u64;
}

#[derive(Clone, Debug)]
pub(super) struct Streams<S> {
    count: u64,
    members: Vec<Member<S>>,
    /// The member whose slot is due first.
    next: usize,
}

#[derive(Clone, Debug)]
struct Member<S> {
    schedule: S,
    stream: u64,
    borders: Borders,
}

/// Where each stage with a mix of its own begins, but the first. Each continues the numbers of the one before, in the next stream.
#[derive(Clone, Debug)]
enum Borders {
    /// By the first request that is due in it.
    Requests(Vec<u64>),
    /// By its time, because due times are random.
    Times(Vec<u64>),
}

impl<S: Single> Streams<S> {
    /// The streams of `plan`, beginning at `start`. `of` makes the schedule of a rate with a seed.
    pub(super) fn new(plan: &TrialPlan, start: u64, of: impl Fn(CumulativeRate, u64) -> S) -> Self {
        let seed = plan.workload.seed;
        let mix = CumulativeRate::of_mix(plan).map(|rate| {
            let borders = Borders::of(plan, &rate, start);
            Member::new(of(rate, seed), 0, borders)
        });
        let own = plan.workload.options.rates.iter().zip(plan.mix_streams()..).map(|(rate, stream)| {
            // Each has random gaps of its own.
            let seed = RandomStream::new(seed, ARRIVALS).own(stream).at(0);
            Member::new(of(CumulativeRate::new(rate.per_second, 0, &[]), seed), stream, Borders::Requests(Vec::new()))
        });
        let mut streams = Self { count: plan.streams(), members: mix.into_iter().chain(own).collect(), next: 0 };
        streams.next = streams.first_due();
        streams
    }

    /// The slot that is due first. Of several, that of the first stream.
    pub(super) fn present(&self) -> Slot {
        let Some(member) = self.members.get(self.next) else { return Slot { k: 0, due: u64::MAX } };
        let Slot { k, due } = member.schedule.slot();
        Slot { k: k.wrapping_mul(self.count).wrapping_add(member.stream), due }
    }

    pub(super) fn advance(&mut self) {
        if let Some(member) = self.members.get_mut(self.next) {
            member.schedule.take();
            member.come_to_stage();
        }
        self.next = self.first_due();
    }

    /// The number of slots from the current one on that are due before `end`.
    pub(super) fn due_before(&self, end: u64) -> u64 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(member.schedule.count_before(end)))
    }

    fn first_due(&self) -> usize {
        let members = self.members.iter().enumerate();
        members.min_by_key(|(_, member)| member.schedule.slot().due).map_or(0, |(index, _)| index)
    }
}

impl<S: Single> Member<S> {
    fn new(schedule: S, stream: u64, borders: Borders) -> Self {
        let mut member = Self { schedule, stream, borders };
        member.come_to_stage();
        member
    }

    /// Comes to the stage of the current slot.
    fn come_to_stage(&mut self) {
        let Slot { k, due } = self.schedule.slot();
        let (borders, at) = match &self.borders {
            Borders::Requests(first) => (first, k),
            Borders::Times(begins) => (begins, due),
        };
        while borders.get(self.stream as usize).is_some_and(|border| *border <= at) {
            self.stream += 1;
        }
    }
}

impl Borders {
    /// Those of the stages of `plan`, whose mix has the cumulative rate `rate`.
    fn of(plan: &TrialPlan, rate: &CumulativeRate, start: u64) -> Self {
        let Load::OpenLoop { arrival, stages, .. } = &plan.load else { return Self::Requests(Vec::new()) };
        let ends = stages.iter().scan(plan.warmup_nanoseconds, |end, stage| {
            *end = end.saturating_add(stage.nanoseconds);
            Some(*end)
        });
        // The last stage has no end.
        let begins = ends.take(plan.workload.options.mixes.len().saturating_sub(1));
        match arrival {
            Arrival::Constant => Self::Requests(begins.map(|begin| rate.count_before(begin)).collect()),
            Arrival::Poisson => Self::Times(begins.map(|begin| start.saturating_add(begin)).collect()),
        }
    }
}

#[cfg(test)]
mod tests;
