//! Searches for the highest rate at which an objective holds. Each trial only shows whether it holds at one rate.
//!
//! The next rate is a pure function of the finished steps, so a search is resumed by reading its record. It doubles the rate from the
//! lowest one until a step fails. It then halves the bracket (geometrically) until it is narrower than half of the tolerance, and confirms:
//! the answer is the highest rate that passes [`CONFIRMATIONS`] new trials in a row. If one fails, the next candidate is half a tolerance
//! lower, at most [`MOST_DOWN`] times.
//!
//! **Why half.** The answer lies below the capacity by up to the width of the bracket. It lies one step lower each time chance fails a
//! candidate just below the capacity. With whole tolerances, one such failure would put the answer outside of the tolerance; halves leave
//! room for it. The tolerance in the spec is the error of the answer, not the step size.
//!
//! **Why the first bad rate is tried again.** A burst of a neighbour can fail a step at any rate, and the rest of the search would then
//! stay below it. Confirming the good end alone would not reveal that. So before the answer is given, the lowest failed rate is tried once
//! more, if it failed only once. If it passes, the failure was chance, and the search continues above it.

mod judge;

pub use judge::{
    ACHIEVED, DISCARDED, Failure, Judgement, Objective, Observed, SHORTEST, StepMeasurement, Unusable, judge, shortest,
};

/// New trials in a row that the answer must pass.
pub const CONFIRMATIONS: u32 = 3;

/// The most times that the search steps down from an unconfirmed candidate.
pub const MOST_DOWN: u32 = 5;

/// The most steps of any search.
pub const MOST_STEPS: usize = 100;

/// The most retries of unusable steps over the whole search.
const MOST_UNUSABLE: usize = 3;

const CLIMB: u64 = 2;

/// The range and precision of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The lowest rate, in requests per second; above 0.
    pub min: u64,
    /// The highest rate; not below `min`.
    pub max: u64,
    /// The allowed relative error of the answer, such as 0.02; above 0.
    pub tolerance: f64,
    /// The most steps, at most [`MOST_STEPS`].
    pub steps: usize,
}

impl Limits {
    /// The number of steps of a search in which no step fails by chance.
    pub fn usual_steps(&self) -> usize {
        let (mut climbs, mut rate) = (1, self.min.max(1));
        while rate < self.max {
            rate = rate.saturating_mul(CLIMB);
            climbs += 1;
        }
        // From a bracket as wide as a climb down to one of half of the tolerance.
        let (mut halvings, mut width) = (0, if self.max > self.min { (CLIMB as f64).ln() } else { 0.0 });
        while width > (1.0 + self.tolerance / 2.0).ln() {
            width /= 2.0;
            halvings += 1;
        }
        // The first bad rate is tried again.
        climbs + halvings + CONFIRMATIONS as usize + 1
    }
}

/// A finished step. `W` describes why it failed, and the limiting factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<W> {
    /// The offered rate.
    pub rate: u64,
    pub judgement: Judgement<W, W>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<W> {
    Step {
        /// In requests per second.
        rate: u64,
    },
    /// Try the candidate again.
    Confirm {
        /// In requests per second.
        rate: u64,
        /// The number of this confirmation, from 1.
        nth: u32,
    },
    Done(Answer<W>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer<W> {
    pub ending: Ending<W>,
    /// The highest confirmed rate, or else the highest that passed.
    pub last_good: Option<u64>,
    /// The lowest failed rate above it, and why it failed.
    pub first_bad: Option<Bad<W>>,
    /// Failures at a rate that later passed.
    pub contradicted: u32,
}

/// A rate that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad<W> {
    /// In requests per second.
    pub rate: u64,
    /// The number of failed steps.
    pub times: u32,
    /// The reason of the last failure.
    pub why: W,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ending<W> {
    /// `last_good` is the answer.
    Found,
    /// The highest rate was confirmed: the answer is at least that.
    MaxPassed,
    /// The lowest rate failed, twice or while it was being confirmed: there is no answer within the limits.
    MinFailed,
    /// No candidate was confirmed.
    NotConfirmed,
    /// Too many steps were unusable; the reason of the last one.
    Unusable(W),
    /// There were [`Limits::steps`] steps.
    TooLong,
    /// The record has a step that this search would not have made at that point.
    OtherSearch,
}

/// The next step after these.
pub fn next<W: Clone + PartialEq>(limits: &Limits, steps: &[Step<W>]) -> Next<W> {
    match replay(limits, steps) {
        (search, Some(ending)) => Next::Done(search.answer(ending)),
        (search, None) => match search.ask() {
            Next::Step { .. } | Next::Confirm { .. } if steps.len() >= limits.steps => {
                Next::Done(search.answer(Ending::TooLong))
            }
            next => next,
        },
    }
}

/// The bracket after these steps, whether the search has ended or not: the highest rate that holds as far as is known, and the lowest
/// failed rate above it.
pub fn bracket<W: Clone + PartialEq>(limits: &Limits, steps: &[Step<W>]) -> (Option<u64>, Option<Bad<W>>) {
    let stand = replay(limits, steps).0.answer(Ending::TooLong);
    (stand.last_good, stand.first_bad)
}

/// The search after these steps, or up to its ending if that came before the last of them.
fn replay<W: Clone + PartialEq>(limits: &Limits, steps: &[Step<W>]) -> (Search<W>, Option<Ending<W>>) {
    let mut search = Search::new(limits);
    for step in steps.iter().take(limits.steps) {
        match search.ask() {
            Next::Step { rate } | Next::Confirm { rate, .. } if rate == step.rate => search.learn(step),
            Next::Step { .. } | Next::Confirm { .. } => return (search, Some(Ending::OtherSearch)),
            Next::Done(answer) => return (search, Some(answer.ending)),
        }
    }
    (search, None)
}

struct Search<W> {
    limits: Limits,
    /// The widest bracket that is not halved any more, and the step down: a ratio above 1.
    stride: f64,
    good: Option<u64>,
    passed: Vec<u64>,
    confirmed: Option<u64>,
    /// Sorted by rate.
    bad: Vec<Bad<W>>,
    phase: Phase<W>,
    downs: u32,
    unusable: Vec<W>,
    contradicted: u32,
}

enum Phase<W> {
    /// Climbing, then halving.
    Seek,
    /// The candidate, and how many of its confirmations passed.
    Confirm(u64, u32),
    /// Trying the first bad rate again.
    Doubt(u64),
    Done(Ending<W>),
}

impl<W: Clone + PartialEq> Search<W> {
    fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            stride: 1.0 + limits.tolerance / 2.0,
            good: None,
            passed: Vec::new(),
            confirmed: None,
            bad: Vec::new(),
            phase: Phase::Seek,
            downs: 0,
            unusable: Vec::new(),
            contradicted: 0,
        }
    }

    fn ask(&self) -> Next<W> {
        if let Some(why) = self.unusable.get(MOST_UNUSABLE) {
            return Next::Done(self.answer(Ending::Unusable(why.clone())));
        }
        match &self.phase {
            Phase::Seek => self.seek(),
            Phase::Confirm(rate, passed) => Next::Confirm { rate: *rate, nth: passed + 1 },
            Phase::Doubt(rate) => Next::Step { rate: *rate },
            Phase::Done(ending) => Next::Done(self.answer(ending.clone())),
        }
    }

    /// The middle of the bracket or the next rate of the climb; the good end if no rate is left in between.
    fn seek(&self) -> Next<W> {
        let Some(good) = self.good else { return Next::Step { rate: self.limits.min } };
        let rate = match self.first_bad() {
            None if good >= self.limits.max => return Next::Confirm { rate: good, nth: 1 },
            None => good.saturating_mul(CLIMB).min(self.limits.max),
            Some(bad) if bad.rate - good <= 1 || bad.rate as f64 <= good as f64 * self.stride => {
                return Next::Confirm { rate: good, nth: 1 };
            }
            Some(bad) => between(good, bad.rate),
        };
        Next::Step { rate }
    }

    fn learn(&mut self, step: &Step<W>) {
        let asked = self.ask();
        if step.judgement == Judgement::Passed {
            self.passed.push(step.rate);
        }
        match (&step.judgement, asked) {
            (Judgement::Unusable(why), _) => self.unusable.push(why.clone()),
            (Judgement::Passed, Next::Confirm { rate, nth }) if nth < CONFIRMATIONS => {
                self.phase = Phase::Confirm(rate, nth);
            }
            (Judgement::Passed, Next::Confirm { rate, .. }) => self.confirm(rate),
            (Judgement::Passed, _) => {
                let before = self.bad.len();
                self.bad.retain(|bad| bad.rate > step.rate);
                self.contradicted += u32::try_from(before - self.bad.len()).unwrap_or(u32::MAX);
                self.good = Some(step.rate);
                self.phase = Phase::Seek;
            }
            (Judgement::Failed(why), Next::Confirm { rate, .. }) => {
                self.blame(rate, why);
                self.descend(rate);
            }
            (Judgement::Failed(why), _) => {
                let times = self.blame(step.rate, why);
                if matches!(self.phase, Phase::Doubt(_)) {
                    self.phase = Phase::Done(Ending::Found);
                } else if step.rate == self.limits.min && times > 1 {
                    self.phase = Phase::Done(Ending::MinFailed);
                }
            }
        }
    }

    /// Records a failure, and returns the number of failures at this rate.
    fn blame(&mut self, rate: u64, why: &W) -> u32 {
        let place = self.bad.partition_point(|bad| bad.rate < rate);
        match self.bad.get_mut(place) {
            Some(bad) if bad.rate == rate => {
                bad.times += 1;
                bad.why = why.clone();
                bad.times
            }
            _ => {
                self.bad.insert(place, Bad { rate, times: 1, why: why.clone() });
                1
            }
        }
    }

    fn confirm(&mut self, rate: u64) {
        self.confirmed = self.confirmed.max(Some(rate));
        self.phase = match self.first_bad() {
            None => Phase::Done(Ending::MaxPassed),
            Some(bad) if bad.times == 1 => Phase::Doubt(bad.rate),
            Some(_) => Phase::Done(Ending::Found),
        };
    }

    fn descend(&mut self, from: u64) {
        self.downs += 1;
        let lower = below(from, self.stride).max(self.limits.min);
        self.phase = match self.confirmed {
            Some(confirmed) if lower <= confirmed => Phase::Done(Ending::Found),
            _ if from <= self.limits.min => Phase::Done(Ending::MinFailed),
            _ if self.downs > MOST_DOWN => Phase::Done(Ending::NotConfirmed),
            _ => Phase::Confirm(lower, 0),
        };
    }

    /// The highest confirmed rate, or else the highest that passed and is below all failures.
    fn last_good(&self) -> Option<u64> {
        let lowest = self.bad.first().map_or(u64::MAX, |bad| bad.rate);
        self.confirmed.or_else(|| self.passed.iter().copied().filter(|&rate| rate < lowest).max())
    }

    /// The lowest failure above the good rates so far.
    fn first_bad(&self) -> Option<&Bad<W>> {
        let good = match self.phase {
            Phase::Seek => self.good,
            _ => self.confirmed,
        };
        self.bad.iter().find(|bad| good.is_none_or(|good| bad.rate > good))
    }

    fn answer(&self, ending: Ending<W>) -> Answer<W> {
        let last_good = match ending {
            Ending::MinFailed => None,
            _ => self.last_good(),
        };
        let first_bad = self.bad.iter().find(|bad| last_good.is_none_or(|good| bad.rate > good)).cloned();
        Answer { ending, last_good, first_bad, contradicted: self.contradicted }
    }
}

/// The geometric mean, strictly between the two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two numbers of its type")]
fn between(low: u64, high: u64) -> u64 {
    let middle = (low as f64 * high as f64).sqrt().round() as u64;
    middle.clamp(low + 1, high - 1)
}

/// One stride lower, at least by 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a number of its type")]
fn below(rate: u64, stride: f64) -> u64 {
    let lower = (rate as f64 / stride).floor() as u64;
    lower.min(rate.saturating_sub(1))
}

#[cfg(test)]
mod tests;
