//! Which requests a worker takes, and the due times of an open loop. Exact: rounding errors do not accumulate, however long the run.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]

mod constant;
mod exponential;
mod poisson;
mod replay;
mod replayed;
mod seat;
mod slot;
mod streams;

use redisbench_wire::plan::{Arrival, Load, TrialPlan};
use redisbench_wire::rate::CumulativeRate;

use constant::Constant;
use poisson::Poisson;
use replayed::Replayed;
use streams::{Single, Streams};

pub use replay::Replay;
pub use seat::Seat;
pub use slot::Slot;

/// The due times of one worker, and its position in them. They are rounded down to a nanosecond, and then up to the pacing grid.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    grid: Grid,
    step: u64,
    present: Slot,
    times: DueTimes,
}

/// How a worker's due times are calculated.
#[derive(Clone, Debug)]
enum DueTimes {
    /// Request k at k over the rate.
    Constant(Constant),
    /// Request k at L^-1(k).
    Stages(CumulativeRate),
    /// A Poisson process.
    Poisson(Box<Poisson>),
    /// Several schedules as one.
    Streams(Box<Streams<Schedule>>),
    /// The requests of a recording.
    Replayed(Box<Replayed>),
}

impl Schedule {
    /// The schedule of `seat`, beginning at `start`; `None` in a closed loop.
    pub fn of(plan: &TrialPlan, seat: Seat, start: u64) -> Option<Self> {
        let Load::OpenLoop { arrival, pacing_grid_nanoseconds, .. } = plan.load else { return None };
        let of = |rate, seed| Self::new(seat, rate, arrival, seed, pacing_grid_nanoseconds, start);
        let options = &plan.workload.options;
        if options.rates.is_empty() && options.mixes.is_empty() {
            return Some(of(CumulativeRate::of(plan)?, plan.workload.seed));
        }
        let streams = Box::new(Streams::new(plan, start, of));
        let (present, grid) = (streams.present(), Grid::new(seat, pacing_grid_nanoseconds));
        Some(Self { start, grid, step: 0, present, times: DueTimes::Streams(streams) })
    }

    /// The schedule of a recording's requests of `seat`, beginning at `start`; `None` in a closed loop.
    pub fn of_replay(plan: &TrialPlan, replay: &Replay, seat: Seat, start: u64) -> Option<Self> {
        let (Load::OpenLoop { pacing_grid_nanoseconds: grid, .. }
        | Load::Recorded { pacing_grid_nanoseconds: grid, .. }) = plan.load
        else {
            return None;
        };
        let present = Slot { k: replay.peek().unwrap_or(u64::MAX), due: 0 };
        let times = DueTimes::Replayed(Box::new(Replayed::of(plan, replay)?));
        let mut schedule = Self { start, grid: Grid::new(seat, grid), step: 0, present, times };
        schedule.present.due = schedule.due();
        Some(schedule)
    }

    fn new(seat: Seat, rate: CumulativeRate, arrival: Arrival, seed: u64, grid: u64, start: u64) -> Self {
        let times = match (arrival, rate.constant()) {
            (Arrival::Constant, Some(rate)) => DueTimes::Constant(Constant::new(seat, rate)),
            (Arrival::Constant, None) => DueTimes::Stages(rate),
            (Arrival::Poisson, _) => DueTimes::Poisson(Box::new(Poisson::new(seat, rate, seed))),
        };
        let present = Slot { k: seat.first(), due: 0 };
        let mut schedule = Self { start, grid: Grid::new(seat, grid), step: seat.step(), present, times };
        schedule.present.due = schedule.due();
        schedule
    }

    #[inline]
    pub fn peek(&self) -> Slot {
        self.present
    }

    #[inline]
    pub fn advance(&mut self) {
        self.present.k += self.step;
        if let DueTimes::Constant(constant) = &mut self.times {
            constant.advance();
            self.present.due = self.start.saturating_add(self.grid.up(constant.time()));
        } else {
            self.advance_by_rate();
        }
    }

    /// Like `advance`, for due times that cost more. Out of line, so that a constant rate costs little.
    #[inline(never)]
    fn advance_by_rate(&mut self) {
        match &mut self.times {
            DueTimes::Poisson(poisson) => poisson.advance(),
            DueTimes::Streams(streams) => {
                streams.advance();
                self.present = streams.present();
                return;
            }
            DueTimes::Replayed(replayed) => {
                replayed.replay.advance();
                self.present.k = replayed.replay.peek().unwrap_or(u64::MAX);
            }
            DueTimes::Constant(_) | DueTimes::Stages(_) => {}
        }
        self.present.due = self.due();
    }

    /// Returns whether no slot is left.
    pub fn is_over(&self) -> bool {
        self.present.due == u64::MAX
    }

    /// The end of the schedule of all workers, after all their slots; `None` if it does not.
    pub fn end(&self) -> Option<u64> {
        let DueTimes::Replayed(replayed) = &self.times else { return None };
        // Each worker's grid may move its last slot by less than the width.
        replayed.end().map(|time| self.start.saturating_add(time).saturating_add(self.grid.width))
    }

    /// The number of slots from the current one on that are due before `end`.
    pub fn due_before(&self, end: u64) -> u64 {
        // The latest time that the grid does not round up to `end` or later.
        let last = end.checked_sub(self.start).and_then(|time| time.checked_sub(1));
        let Some(latest) = last.and_then(|last| self.grid.down(last)) else { return 0 };
        let first_beyond = match &self.times {
            DueTimes::Constant(constant) => constant.count_until(latest),
            DueTimes::Stages(rate) => rate.count_before(latest.saturating_add(1)),
            DueTimes::Poisson(poisson) => return poisson.slots_until(latest),
            DueTimes::Streams(streams) => return streams.due_before(end),
            DueTimes::Replayed(replayed) => return replayed.count_until(latest),
        };
        first_beyond.saturating_sub(self.present.k).div_ceil(self.step)
    }

    /// The due time of the current slot.
    #[inline]
    fn due(&self) -> u64 {
        let time = match &self.times {
            DueTimes::Constant(constant) => constant.time(),
            DueTimes::Stages(rate) => rate.due(self.present.k),
            DueTimes::Poisson(poisson) => poisson.time(),
            DueTimes::Streams(streams) => return streams.present().due,
            DueTimes::Replayed(replayed) => match replayed.time() {
                Some(time) => time,
                None => return u64::MAX,
            },
        };
        self.start.saturating_add(self.grid.up(time))
    }
}

impl Single for Schedule {
    fn slot(&self) -> Slot {
        self.present
    }

    fn take(&mut self) {
        self.advance();
    }

    fn count_before(&self, end: u64) -> u64 {
        self.due_before(end)
    }
}

/// The pacing grid of one worker. Each worker's grid has its own offset, so that workers do not fire together.
#[derive(Clone, Copy, Debug)]
struct Grid {
    /// 0 is exact.
    width: u64,
    offset: u64,
}

impl Grid {
    fn new(seat: Seat, width: u64) -> Self {
        let place = u128::from(seat.shard) * u128::from(seat.workers) + u128::from(seat.worker);
        Self { width, offset: (u128::from(width) * place / u128::from(seat.step().max(1))) as u64 }
    }

    #[inline]
    fn up(self, time: u64) -> u64 {
        if self.width == 0 {
            return time;
        }
        match time.checked_sub(self.offset) {
            Some(over) => over.div_ceil(self.width).saturating_mul(self.width).saturating_add(self.offset),
            None => self.offset,
        }
    }

    /// The last grid point at or before `time`, if there is one.
    fn down(self, time: u64) -> Option<u64> {
        if self.width == 0 {
            return Some(time);
        }
        time.checked_sub(self.offset).map(|over| self.offset + over / self.width * self.width)
    }
}

#[cfg(test)]
mod tests;
