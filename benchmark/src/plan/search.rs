//! Trials of `spec.search`: each follows from the results of the previous ones.

use std::sync::Arc;
use std::time::Duration;

use redisbench_statistics::search::{self, Answer, Bad, Judgement, Next, Objective, Step};
use redisbench_wire::plan::{Bound, Target};

use crate::api::load::{LoadType, OpenLoopSpec};
use crate::api::search::Search;
use crate::api::status::{LimitedBy, StepOutcome, TrialLine, TrialOutcome};
use crate::api::{GoDuration, Problem, RedisBenchmarkSpec, Validated, check_search};

/// A search, whose steps are trials.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    search: Search,
    /// The first step. Other steps differ only in rate and length.
    first: Validated,
    /// The user's minimum length of a step's measurement.
    least: Duration,
}

/// Role of a trial as a step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchTrial {
    /// Its offered rate.
    pub rate: u64,
    /// Number of the confirmation of this rate, from 1; none while climbing or halving.
    pub confirmation: Option<u32>,
    pub objective: Objective,
    /// The last good step at a clearly lower rate, if any.
    pub good: Option<GoodStep>,
}

/// A passed step, to compare with one that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodStep {
    /// Its offered rate.
    pub rate: u64,
    /// Its mean response time.
    pub mean_nanoseconds: u64,
    /// Processor time of its busiest server, in hundredths of a per cent, if it is known.
    pub server_basis_points: Option<u32>,
}

/// In per cent of a step's rate: repeated runs of a few seconds differ by a tenth, so closer steps cannot be compared by their times.
const CLEARLY_LESS: u128 = 90;

impl GoodStep {
    /// The good step with the highest rate clearly below `rate`; the latest of several.
    fn below(rate: u64, lines: &[TrialLine]) -> Option<Self> {
        let completed = lines.iter().filter(|line| line.state == TrialOutcome::Completed);
        let passed = completed.filter_map(|line| {
            let step = line.search.as_ref().filter(|step| step.outcome == StepOutcome::Passed)?;
            Some(Self {
                rate: step.rate_per_second,
                mean_nanoseconds: line.mean_nanoseconds?,
                server_basis_points: step.busiest_server_basis_points,
            })
        });
        passed
            .filter(|good| u128::from(good.rate) * 100 <= u128::from(rate) * CLEARLY_LESS)
            .max_by_key(|good| good.rate)
    }
}

/// Why a step did not pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// For people.
    pub message: String,
    /// The saturated part.
    pub limited_by: Option<LimitedBy>,
    /// Its component.
    pub component: Option<String>,
}

impl SearchPlan {
    /// Checks `cell`, the spec of a single search of the benchmark `spec`. `check` makes a trial of the spec of a step.
    ///
    /// # Errors
    /// All problems of the cell.
    pub(super) fn compile(
        spec: &RedisBenchmarkSpec,
        cell: &RedisBenchmarkSpec,
        mut check: impl FnMut(&RedisBenchmarkSpec) -> Result<Validated, Vec<Problem>>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        // The range is that of the whole benchmark, whose number of searches bounds the steps.
        let mut whole = RedisBenchmarkSpec { load: cell.load.clone(), ..spec.clone() };
        whole.load.clients.clone_from(&spec.load.clients);
        let found = spec.search.as_ref().and_then(|search| check_search(&whole, search, &mut problems));
        let Some(search) = found.filter(|_| problems.is_empty()) else {
            // Also reports problems of the rest of the spec, without repeating those already found.
            problems.extend(check(&at(cell, 1, None)).err().unwrap_or_default());
            problems.dedup();
            return Err(problems);
        };
        let lowest = search.limits.min;
        let first = check(&at(cell, lowest, Some(search.shortest(lowest))))?;
        let least = match first.plan.bound {
            Bound::Duration { nanoseconds } if cell.load.duration.is_some() => Duration::from_nanos(nanoseconds),
            _ => Duration::ZERO,
        };
        let mut plan = Self { search, first, least };
        plan.first = plan.at(lowest);
        Ok(plan)
    }

    pub(super) fn first(&self) -> (SearchTrial, Validated) {
        let first = SearchTrial {
            rate: self.search.limits.min,
            confirmation: None,
            objective: self.search.objective,
            good: None,
        };
        (first, self.first.clone())
    }

    /// The most steps that it takes.
    pub(super) fn most_steps(&self) -> usize {
        self.search.limits.steps
    }

    pub(super) fn retarget(&mut self, change: impl Fn(&mut Target)) {
        change(&mut Arc::make_mut(&mut self.first.plan).target);
    }

    /// The step after the trials of these lines; none if the search has finished.
    pub(super) fn next(&self, lines: &[TrialLine]) -> Option<(SearchTrial, Validated)> {
        let (rate, confirmation) = match search::next(&self.search.limits, &steps(lines)) {
            Next::Step { rate } => (rate, None),
            Next::Confirm { rate, nth } => (rate, Some(nth)),
            Next::Done(_) => return None,
        };
        let good = GoodStep::below(rate, lines);
        Some((SearchTrial { rate, confirmation, objective: self.search.objective, good }, self.at(rate)))
    }

    /// The step at `rate`.
    fn at(&self, rate: u64) -> Validated {
        self.first.at_rate(rate, self.search.shortest(rate).max(self.least))
    }

    /// Input of the plan's hash.
    pub(super) fn identity(&self) -> String {
        format!("{:?} {:?}", self.search, self.least)
    }
}

/// State of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchState {
    pub objective: Objective,
    /// None while the search continues.
    pub answer: Option<Answer<Why>>,
    /// The highest rate known to pass.
    pub good: Option<u64>,
    /// The lowest rate above `good` known to fail.
    pub bad: Option<Bad<Why>>,
}

/// Lines of each search, in the order in which they ran.
pub fn of_searches(lines: &[TrialLine]) -> Vec<Vec<TrialLine>> {
    let mut searches: Vec<Vec<TrialLine>> = Vec::new();
    for line in lines {
        let same = |known: &&mut Vec<TrialLine>| {
            known.first().is_some_and(|first| (first.cell, first.repeat) == (line.cell, line.repeat))
        };
        match searches.iter_mut().find(same) {
            Some(own) => own.push(line.clone()),
            None => searches.push(vec![line.clone()]),
        }
    }
    searches
}

/// State of a search of `spec` after the trials of these lines, which are of a single search; none if the spec has no search.
pub fn standing(spec: &RedisBenchmarkSpec, lines: &[TrialLine]) -> Option<SearchState> {
    let search = check_search(spec, spec.search.as_ref()?, &mut Vec::new())?;
    let steps = steps(lines);
    let answer = match search::next(&search.limits, &steps) {
        Next::Done(answer) => Some(answer),
        Next::Step { .. } | Next::Confirm { .. } => None,
    };
    let (good, bad) = search::bracket(&search.limits, &steps);
    let tell = |bad: Bad<Why>| most_telling(bad, &steps);
    let answer = answer.map(|answer| Answer { first_bad: answer.first_bad.map(tell), ..answer });
    Some(SearchState { objective: search.objective, answer, good, bad: bad.map(tell) })
}

/// Picks the most conclusive of several failures at a rate: the last one with a saturated target, which decides that the target does not
/// hold the rate. Otherwise the last one with a saturated load generator, which leaves it open.
fn most_telling(bad: Bad<Why>, steps: &[Step<Why>]) -> Bad<Why> {
    let failures = steps.iter().filter(|step| step.rate == bad.rate).filter_map(|step| match &step.judgement {
        Judgement::Failed(why) => Some(why),
        Judgement::Passed | Judgement::Unusable(_) => None,
    });
    let telling = |why: &&Why| match why.limited_by {
        Some(LimitedBy::Target) => 2,
        Some(limit) if limit.is_of_the_generator() => 1,
        _ => 0,
    };
    Bad { why: failures.max_by_key(telling).cloned().unwrap_or(bad.why), ..bad }
}

/// Steps from the lines of trials. Trials that did not complete are ignored.
fn steps(lines: &[TrialLine]) -> Vec<Step<Why>> {
    let completed = lines.iter().filter(|line| line.state == TrialOutcome::Completed);
    completed
        .filter_map(|line| {
            let step = line.search.as_ref()?;
            let why = || Why {
                message: step.why.clone().unwrap_or_default(),
                limited_by: step.limited_by,
                component: step.component.clone(),
            };
            let judgement = match step.outcome {
                StepOutcome::Passed => Judgement::Passed,
                StepOutcome::Failed => Judgement::Failed(why()),
                StepOutcome::Unusable => Judgement::Unusable(why()),
            };
            Some(Step { rate: step.rate_per_second, judgement })
        })
        .collect()
}

/// The spec of a step: an ordinary one at this rate.
fn at(spec: &RedisBenchmarkSpec, rate: u64, length: Option<Duration>) -> RedisBenchmarkSpec {
    let mut step = spec.clone();
    step.search = None;
    if step.load.kind == LoadType::OpenLoop && step.load.stages.is_empty() {
        step.load.open_loop.get_or_insert_with(OpenLoopSpec::default).rate = Some(rate);
        let length = length.unwrap_or(search::SHORTEST);
        step.load.duration.get_or_insert_with(|| GoDuration::from(length));
    }
    step
}

#[cfg(test)]
mod tests;
