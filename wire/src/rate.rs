//! The cumulative rate L of an open loop: the number of requests of the whole benchmark that are due by a time after the start. Request k
//! is due at L^-1(k). The point x of a Poisson process of rate 1 is due at L^-1(x), which makes it a process of L's rate (the time change
//! of a Poisson process).
//!
//! L is a line where the rate is constant and a parabola where it is a ramp. Due times are exact in runs of any length: computed in
//! integers, and rounded down to a nanosecond.

use crate::limits;
use crate::plan::{Load, RateStage, TrialPlan};

/// The number of fractional bits of a position between two requests.
pub const FRACTION_BITS: u32 = 40;

/// L is counted in parts of a request, which makes it an integer: t ns at a requests per second have 2at parts, and a ramp of D ns from a
/// to b has `(a + b) * D`.
const PARTS: u128 = 2_000_000_000;

/// L over the warm-up and the stages. The last rate continues without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CumulativeRate {
    /// At least one. The last has no end.
    pieces: Vec<Piece>,
}

/// A line or a parabola.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Its beginning, in nanoseconds after the start.
    begins: u64,
    /// L at its beginning, in parts.
    before: u128,
    length: u64,
    /// Requests per second at its beginning (`from`) and at its end (`to`).
    from: u64,
    to: u64,
}

impl CumulativeRate {
    /// L of `plan`, of all its operations together. None in a closed loop, and with recorded due times.
    pub fn of(plan: &TrialPlan) -> Option<Self> {
        let own = plan.workload.own_rates_per_second();
        Self::raised(plan, own)
    }

    /// L of the mix: of the operations without rates of their own. None in a closed loop, or if all have one.
    pub fn of_mix(plan: &TrialPlan) -> Option<Self> {
        Self::raised(plan, 0).filter(|_| plan.workload.has_mix())
    }

    /// L of the mix and then of each operation with a rate of its own. Empty in a closed loop. Each numbers its requests from 0.
    pub fn each(plan: &TrialPlan) -> Vec<Self> {
        let Load::OpenLoop { .. } = plan.load else { return Vec::new() };
        let own = plan.workload.options.rates.iter().map(|rate| Self::new(rate.per_second, 0, &[]));
        Self::of_mix(plan).into_iter().chain(own).collect()
    }

    /// The count of numbers that the requests of all streams of `plan` take, if it is an open loop.
    pub fn numbers(plan: &TrialPlan) -> u64 {
        let until = plan.warmup_nanoseconds.saturating_add(plan.bound.longest_nanoseconds());
        let most = Self::each(plan).iter().map(|rate| rate.count_before(until)).max();
        most.unwrap_or_default().saturating_add(1).saturating_mul(plan.streams())
    }

    /// L of the plan's load, with `more` requests per second throughout.
    fn raised(plan: &TrialPlan, more: u64) -> Option<Self> {
        let Load::OpenLoop { rate_per_second, stages, .. } = &plan.load else { return None };
        let raise = |rate: u64| rate.saturating_add(more);
        let stages = stages.iter().map(|stage| RateStage {
            from_per_second: raise(stage.from_per_second),
            to_per_second: raise(stage.to_per_second),
            ..*stage
        });
        Some(Self::new(raise(*rate_per_second), plan.warmup_nanoseconds, &stages.collect::<Vec<_>>()))
    }

    /// `rate` per second for `warmup` nanoseconds, then the stages. Without stages, `rate` throughout. Values are clamped to the bounds of
    /// [`limits`].
    pub fn new(rate: u64, warmup: u64, stages: &[RateStage]) -> Self {
        let allowed = |rate: u64| rate.clamp(1, limits::RATE_PER_SECOND);
        let mut rate_now = allowed(rate);
        let (mut pieces, mut begins, mut before) = (Vec::with_capacity(stages.len() + 2), 0_u64, 0_u128);
        let warmup = RateStage { nanoseconds: warmup, from_per_second: rate_now, to_per_second: rate_now };
        let warmup = (!stages.is_empty()).then_some(warmup);
        for stage in warmup.iter().chain(stages).filter(|stage| stage.nanoseconds > 0) {
            let (from, to) = (allowed(stage.from_per_second), allowed(stage.to_per_second));
            let length = stage.nanoseconds.min(limits::OPEN_LOOP_NANOSECONDS);
            pieces.push(Piece { begins, before, length, from, to });
            begins = begins.saturating_add(length);
            before += u128::from(from + to) * u128::from(length);
            rate_now = to;
        }
        pieces.push(Piece { begins, before, length: u64::MAX, from: rate_now, to: rate_now });
        Self { pieces }
    }

    /// The rate, if it is constant throughout.
    pub fn constant(&self) -> Option<u64> {
        let (first, others) = self.pieces.split_first()?;
        others.is_empty().then_some(first.from)
    }

    /// The due time of request `k`: L^-1(k), in nanoseconds after the start.
    pub fn due(&self, k: u64) -> u64 {
        self.inverse(u128::from(k) << FRACTION_BITS)
    }

    /// L^-1 of a position in units of 2^-[`FRACTION_BITS`] requests, in nanoseconds after the start.
    pub fn inverse(&self, position: u128) -> u64 {
        let parts = position.saturating_mul(PARTS);
        let (whole, fraction) = (parts >> FRACTION_BITS, parts & ((1 << FRACTION_BITS) - 1));
        let piece = self.piece(|piece| piece.before <= whole);
        let time = piece.inverse(whole.saturating_sub(piece.before), fraction);
        piece.begins.saturating_add(time)
    }

    /// The number of requests that are due before `nanoseconds` after the start.
    pub fn count_before(&self, nanoseconds: u64) -> u64 {
        // Request k is due if k parts are fewer than L at that time, so both sides may be rounded up.
        clamp(self.parts(nanoseconds).div_ceil(PARTS))
    }

    /// The mean rate between two times after the start, in requests per second, rounded to the nearest integer.
    pub fn mean_per_second(&self, from: u64, to: u64) -> u64 {
        let time = 2 * u128::from(to.saturating_sub(from).max(1));
        let parts = self.parts(from.saturating_add(to.saturating_sub(from).max(1))) - self.parts(from);
        clamp((parts + time / 2) / time)
    }

    /// L at a time, in parts, rounded up.
    fn parts(&self, nanoseconds: u64) -> u128 {
        let piece = self.piece(|piece| piece.begins <= nanoseconds);
        piece.before + piece.parts(nanoseconds.saturating_sub(piece.begins))
    }

    /// The last piece for which `has_begun` holds.
    fn piece(&self, has_begun: impl Fn(&Piece) -> bool) -> Piece {
        match self.pieces.as_slice() {
            [only] => *only,
            pieces => pieces[pieces.partition_point(has_begun).saturating_sub(1)],
        }
    }
}

impl Piece {
    /// Its parts before `time` after its beginning, rounded up.
    fn parts(&self, time: u64) -> u128 {
        if self.from == self.to {
            return 2 * u128::from(self.from) * u128::from(time);
        }
        self.curve(time.min(self.length)).unsigned_abs().div_ceil(self.length.into())
    }

    /// The parts before `time`, times the length: `2Dat + (b - a)t^2`. The bounds of rate and time keep it below 2 * 10^9 * (2.16 *
    /// 10^14)^2, which is less than 2^127.
    fn curve(&self, time: u64) -> i128 {
        let (length, time) = (i128::from(self.length), i128::from(time));
        let (from, to) = (i128::from(self.from), i128::from(self.to));
        2 * length * from * time + (to - from) * time * time
    }

    /// The greatest integer time with at most `whole` parts and `fraction` of another before it.
    fn inverse(&self, whole: u128, fraction: u128) -> u64 {
        if self.from == self.to {
            return clamp(whole / (2 * u128::from(self.from)));
        }
        let length = u128::from(self.length);
        let wanted = length * whole + ((length * fraction) >> FRACTION_BITS);
        self.solve(i128::try_from(wanted).unwrap_or(i128::MAX))
    }

    /// The greatest integer time whose curve is at most `wanted`. Newton's method from a floating-point estimate, with integer steps and an
    /// integer test. On a parabola, all iterates after the first are on one side. Each step at least halves the distance and is at least 1,
    /// so there are few steps for any estimate.
    fn solve(&self, wanted: i128) -> u64 {
        let mut time = self.estimate(wanted).min(self.length);
        // More than enough to halve 64 bits.
        for _ in 0..256 {
            let missing = wanted - self.curve(time);
            let slope = self.slope(time);
            if missing < 0 {
                time = time.saturating_sub(steps(missing, slope));
            } else if time < self.length && self.curve(time + 1) <= wanted {
                time = time.saturating_add(steps(missing, slope)).min(self.length);
            } else {
                break;
            }
        }
        time
    }

    /// The slope of the curve per nanosecond: twice the length times the rate.
    fn slope(&self, time: u64) -> i128 {
        let (length, time) = (i128::from(self.length), i128::from(time));
        let (from, to) = (i128::from(self.from), i128::from(self.to));
        (2 * (length * from + (to - from) * time)).max(1)
    }

    /// The root of the curve, in a form without cancellation.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate, which whole numbers mend"
    )]
    fn estimate(&self, wanted: i128) -> u64 {
        let (from, to, length) = (self.from as f64, self.to as f64, self.length as f64);
        let parts = wanted as f64 / length;
        let square = from * from + (to - from) * parts / length;
        (parts / (from + square.max(0.0).sqrt())) as u64
    }
}

/// A Newton step in nanoseconds, at least 1.
fn steps(missing: i128, slope: i128) -> u64 {
    clamp((missing.unsigned_abs() / slope.unsigned_abs()).max(1))
}

fn clamp(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
