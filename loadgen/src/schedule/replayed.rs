//! The due times of a recording's requests: those of a rate, or the recorded ones.

use redisbench_wire::plan::{Load, Recorded, TrialPlan};
use redisbench_wire::rate::CumulativeRate;

use super::replay::Replay;

/// A worker's requests with their due times.
#[derive(Clone, Debug)]
pub(super) struct Replayed {
    pub(super) replay: Replay,
    due: Due,
}

#[derive(Clone, Debug)]
enum Due {
    /// Request k at L^-1(k).
    Rate(CumulativeRate),
    Recorded(RecordedTimes),
}

/// Recorded times at another speed.
#[derive(Clone, Debug)]
struct RecordedTimes {
    recorded: Recorded,
    /// The distance between repetitions, at least 1.
    period: u128,
    /// In millionths, at least 1.
    pace: u128,
}

const MILLION: u128 = 1_000_000;

impl Replayed {
    /// `None` in a closed loop.
    pub(super) fn of(plan: &TrialPlan, replay: &Replay) -> Option<Self> {
        let due = match (&plan.load, &plan.trace) {
            (Load::Recorded { pace_millionths, .. }, Some(trace)) => {
                let recorded = trace.recorded.clone()?;
                let period = recorded.period_nanoseconds().max(1).into();
                Due::Recorded(RecordedTimes { recorded, period, pace: (*pace_millionths).max(1).into() })
            }
            _ => Due::Rate(CumulativeRate::of(plan)?),
        };
        Some(Self { replay: replay.clone(), due })
    }

    /// The due time of the current request, in nanoseconds after the start; `None` after the last one.
    pub(super) fn time(&self) -> Option<u64> {
        self.replay.peek().map(|k| self.due.of(k))
    }

    /// The number of slots from the current one on that are due at or before `latest`.
    pub(super) fn count_until(&self, latest: u64) -> u64 {
        self.replay.count_before(self.due.count_before(latest.saturating_add(1)))
    }

    /// The beginning of the repetition after the last one, which is not replayed.
    pub(super) fn end(&self) -> Option<u64> {
        self.replay.count().map(|count| self.due.of(count))
    }
}

impl Due {
    fn of(&self, k: u64) -> u64 {
        match self {
            Self::Rate(rate) => rate.due(k),
            Self::Recorded(times) => times.of(k),
        }
    }

    /// The number of requests that are due before `nanoseconds` after the start.
    fn count_before(&self, nanoseconds: u64) -> u64 {
        match self {
            Self::Rate(rate) => rate.count_before(nanoseconds),
            Self::Recorded(times) => times.count_before(nanoseconds),
        }
    }
}

impl RecordedTimes {
    fn of(&self, k: u64) -> u64 {
        let commands = self.recorded.commands();
        let count = commands.len().max(1) as u64;
        let after = commands.get((k % count) as usize).map_or(0, |command| command.after_nanoseconds);
        let time = u128::from(k / count) * self.period + u128::from(after);
        u64::try_from(time * MILLION / self.pace).unwrap_or(u64::MAX)
    }

    fn count_before(&self, nanoseconds: u64) -> u64 {
        let commands = self.recorded.commands();
        // time*MILLION/pace < nanoseconds, rounded down, is time < nanoseconds*pace/MILLION, rounded up.
        let time = (u128::from(nanoseconds) * self.pace).div_ceil(MILLION);
        let (rounds, rest) = (time / self.period, time % self.period);
        let within = commands.partition_point(|command| u128::from(command.after_nanoseconds) < rest);
        u64::try_from(rounds * commands.len() as u128 + within as u128).unwrap_or(u64::MAX)
    }
}
