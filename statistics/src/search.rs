//! The highest rate at which an objective holds, found by trials that each say only whether it held at theirs.
//!
//! What to try next is a pure function of the steps that are over, so a search is resumed by reading its record. It climbs by
//! doubling from the lowest rate until a step fails, halves the bracket (geometrically) until that is narrower than half of the
//! tolerance, and then confirms: the answer is the highest rate that passes [`CONFIRMATIONS`] fresh trials out of as many. If
//! one fails, the next candidate is half a tolerance lower, [`MOST_DOWN`] times at most.
//!
//! **Why half.** The answer lies below the capacity by up to the bracket's width and, each time chance fails a candidate that is just
//! below the capacity, by one step more. With whole tolerances one such chance ends outside of the tolerance; halves leave
//! room for it. What a user asks for is how far the answer may be off, not how the search strides.
//!
//! **Why the first bad rate is tried again.** A neighbour's burst can fail a step at any rate, and the whole search would then stay
//! below it: confirming the good end alone would not show that. So before the answer is given, the lowest rate that failed is tried
//! once more, if it failed only once. If it passes, that failure was chance, and the search goes on above it.

mod judge;

pub use judge::{
    ACHIEVED, Arrivals, DISCARDED, Failure, Judgement, Measured, Objective, Observed, SHORTEST, Unusable, judge,
    shortest,
};

/// Fresh trials in a row that the answer must pass.
pub const CONFIRMATIONS: u32 = 3;

/// How often the search goes down from a candidate that was not confirmed.
pub const MOST_DOWN: u32 = 5;

/// The most steps of a search.
pub const MOST_STEPS: usize = 100;

/// How often a step that says nothing is repeated, over the whole search.
const MOST_UNUSABLE: usize = 3;

const CLIMB: u64 = 2;

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The lowest rate, in requests per second; above 0.
    pub min: u64,
    /// The highest rate; not below `min`.
    pub max: u64,
    /// How far the answer may be off, such as 0.02; above 0.
    pub tolerance: f64,
}

/// A step that is over. `W` says why, and what was the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<W> {
    /// The rate that was offered.
    pub rate: u64,
    /// How it went.
    pub outcome: Outcome<W>,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<W> {
    /// The objective held.
    Passed,
    /// It did not.
    Failed(W),
    /// Nothing can be said; the step is repeated.
    Unusable(W),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<W> {
    /// Try this rate.
    Step {
        /// In requests per second.
        rate: u64,
    },
    /// Try the candidate once more.
    Confirm {
        /// In requests per second.
        rate: u64,
        /// Which of its confirmations it is, from 1.
        nth: u32,
    },
    /// The search is over.
    Done(Answer<W>),
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<W> {
    /// How it ended.
    pub ending: Ending<W>,
    /// The highest rate that was confirmed, or else that passed at all: the last good.
    pub last_good: Option<u64>,
    /// The lowest rate above it that failed: the first bad, and why.
    pub first_bad: Option<Bad<W>>,
    /// Steps that others contradicted: failures at a rate that later passed.
    pub contradicted: u32,
}

/// A rate that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad<W> {
    /// In requests per second.
    pub rate: u64,
    /// In how many steps.
    pub times: u32,
    /// Why, in the last of them.
    pub why: W,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending<W> {
    /// `last_good` is the answer.
    Found,
    /// The highest rate was confirmed: the answer is that or more.
    MaxPassed,
    /// The lowest rate failed, twice or when it was to be confirmed: there is no answer in these limits.
    MinFailed,
    /// No candidate was confirmed.
    NotConfirmed,
    /// Too many steps said nothing; why the last one did not.
    Unusable(W),
    /// There were [`MOST_STEPS`] steps.
    TooLong,
    /// The record has a step that this search would not have made at that place.
    OtherSearch,
}

/// What comes after these steps.
pub fn next<W: Clone + PartialEq>(limits: &Limits, steps: &[Step<W>]) -> Next<W> {
    let mut search = Search::new(limits);
    for step in steps.iter().take(MOST_STEPS) {
        match search.ask() {
            Next::Done(answer) => return Next::Done(answer),
            Next::Step { rate } | Next::Confirm { rate, .. } if rate != step.rate => {
                return Next::Done(search.answer(Ending::OtherSearch));
            }
            Next::Step { .. } | Next::Confirm { .. } => search.learn(step),
        }
    }
    match search.ask() {
        next @ Next::Done(_) => next,
        _ if steps.len() >= MOST_STEPS => Next::Done(search.answer(Ending::TooLong)),
        next => next,
    }
}

/// Where a search stands after these steps, whether it is over or not: the highest rate that holds as far as is known, and the
/// lowest above it that failed.
pub fn bracket<W: Clone + PartialEq>(limits: &Limits, steps: &[Step<W>]) -> (Option<u64>, Option<Bad<W>>) {
    let mut search = Search::new(limits);
    for step in steps.iter().take(MOST_STEPS) {
        match search.ask() {
            Next::Step { rate } | Next::Confirm { rate, .. } if rate == step.rate => search.learn(step),
            _ => break,
        }
    }
    let stand = search.answer(Ending::TooLong);
    (stand.last_good, stand.first_bad)
}

struct Search<W> {
    limits: Limits,
    /// The widest bracket that needs no more halving, and how far to go down: a ratio above 1.
    stride: f64,
    /// The highest rate that passed.
    good: Option<u64>,
    /// All that passed.
    passed: Vec<u64>,
    /// The highest rate that was confirmed.
    confirmed: Option<u64>,
    /// By rate, the lowest first.
    bad: Vec<Bad<W>>,
    phase: Phase,
    downs: u32,
    unusable: Vec<W>,
    contradicted: u32,
}

enum Phase {
    /// Climbing and halving.
    Seek,
    /// The candidate, and how many of its confirmations passed.
    Confirm(u64, u32),
    /// The first bad rate, once more.
    Doubt(u64),
    Found,
    MaxPassed,
    MinFailed,
    NotConfirmed,
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
        match self.phase {
            Phase::Seek => self.seek(),
            Phase::Confirm(rate, passed) => Next::Confirm { rate, nth: passed + 1 },
            Phase::Doubt(rate) => Next::Step { rate },
            Phase::Found => Next::Done(self.answer(Ending::Found)),
            Phase::MaxPassed => Next::Done(self.answer(Ending::MaxPassed)),
            Phase::MinFailed => Next::Done(self.answer(Ending::MinFailed)),
            Phase::NotConfirmed => Next::Done(self.answer(Ending::NotConfirmed)),
        }
    }

    /// Where the bracket is halved, or the climb goes on; or its good end, if there is nothing between.
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
        if step.outcome == Outcome::Passed {
            self.passed.push(step.rate);
        }
        match (&step.outcome, asked) {
            (Outcome::Unusable(why), _) => self.unusable.push(why.clone()),
            (Outcome::Passed, Next::Confirm { rate, nth }) if nth < CONFIRMATIONS => {
                self.phase = Phase::Confirm(rate, nth);
            }
            (Outcome::Passed, Next::Confirm { rate, .. }) => self.confirm(rate),
            (Outcome::Passed, _) => {
                let before = self.bad.len();
                self.bad.retain(|bad| bad.rate > step.rate);
                self.contradicted += u32::try_from(before - self.bad.len()).unwrap_or(u32::MAX);
                self.good = Some(step.rate);
                self.phase = Phase::Seek;
            }
            (Outcome::Failed(why), Next::Confirm { rate, .. }) => {
                self.blame(rate, why);
                self.descend(rate);
            }
            (Outcome::Failed(why), _) => {
                let times = self.blame(step.rate, why);
                if matches!(self.phase, Phase::Doubt(_)) {
                    self.phase = Phase::Found;
                } else if step.rate == self.limits.min && times > 1 {
                    self.phase = Phase::MinFailed;
                }
            }
        }
    }

    /// Notes a failure; how many this rate has now.
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
            None => Phase::MaxPassed,
            Some(bad) if bad.times == 1 => Phase::Doubt(bad.rate),
            Some(_) => Phase::Found,
        };
    }

    fn descend(&mut self, from: u64) {
        self.downs += 1;
        let lower = below(from, self.stride).max(self.limits.min);
        self.phase = match self.confirmed {
            Some(confirmed) if lower <= confirmed => Phase::Found,
            _ if from <= self.limits.min => Phase::MinFailed,
            _ if self.downs > MOST_DOWN => Phase::NotConfirmed,
            _ => Phase::Confirm(lower, 0),
        };
    }

    /// The highest rate that was confirmed, or else that passed and is below all that failed.
    fn last_good(&self) -> Option<u64> {
        let lowest = self.bad.first().map_or(u64::MAX, |bad| bad.rate);
        self.confirmed.or_else(|| self.passed.iter().copied().filter(|&rate| rate < lowest).max())
    }

    /// The lowest failure above what is good so far.
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

/// The geometric middle, strictly between the two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two numbers of its type")]
fn between(low: u64, high: u64) -> u64 {
    let middle = (low as f64 * high as f64).sqrt().round() as u64;
    middle.clamp(low + 1, high - 1)
}

/// One stride down, at least by 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a number of its type")]
fn below(rate: u64, stride: f64) -> u64 {
    let lower = (rate as f64 / stride).floor() as u64;
    lower.min(rate.saturating_sub(1))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
