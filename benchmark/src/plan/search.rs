//! Trials of `spec.search`: each follows from what those before it came to.

use std::time::Duration;

use redisbench_statistics::search::{self, Answer, Bad, Next, Objective, Outcome, Step};
use redisbench_wire::plan::{Load, Target};

use crate::api::search::{self as api, Search};
use crate::api::spec::{LoadType, OpenLoopSpec};
use crate::api::status::{LimitedBy, StepOutcome, TrialLine, TrialOutcome};
use crate::api::{Bound, GoDuration, Problem, RedisBenchmarkSpec, Validated, validate};

/// A search, of which each step is a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    search: Search,
    /// The first step. The others are the same at other rates.
    first: Validated,
    /// What a user wants each step to measure at least.
    least: Duration,
}

/// What a trial is as a step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchTrial {
    /// The rate that it offers.
    pub rate: u64,
    /// Which confirmation of this rate it is, from 1; none if it climbs or halves.
    pub confirmation: Option<u32>,
    /// What must hold.
    pub objective: Objective,
    /// The last good step that offered clearly less; none if there is none.
    pub good: Option<GoodStep>,
}

/// A step that passed, for a comparison with one that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodStep {
    /// The rate that it offered.
    pub rate: u64,
    /// Its mean response time.
    pub mean_nanoseconds: u64,
}

/// In per cent of a step's rate: repeated runs of seconds differ by a tenth, so that closer steps tell nothing by their times.
const CLEARLY_LESS: u128 = 90;

impl GoodStep {
    /// The one of the highest rate that is clearly below `rate`; of several, the latest.
    fn below(rate: u64, lines: &[TrialLine]) -> Option<Self> {
        let completed = lines.iter().filter(|line| line.state == TrialOutcome::Completed);
        let passed = completed.filter_map(|line| {
            let step = line.search.as_ref().filter(|step| step.outcome == StepOutcome::Passed)?;
            Some(Self { rate: step.rate_per_second, mean_nanoseconds: line.mean_nanoseconds? })
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
    /// What was at its end.
    pub limited_by: Option<LimitedBy>,
    /// Which part of that.
    pub component: Option<String>,
}

impl SearchPlan {
    /// Checks the spec of a benchmark called `name`, which has a search.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn compile(spec: &RedisBenchmarkSpec, name: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let found = spec.search.as_ref().and_then(|search| api::check(spec, search, &mut problems));
        if !spec.workload.preset.is_empty() {
            let message = "must not be set with search, which is about one load: name operations instead";
            problems.push(Problem::new("spec.workload.preset", spec.workload.preset.join(", "), message));
        }
        if !spec.thresholds.is_empty() {
            let message =
                "must not be set with search, which goes beyond what holds: search.objective takes their place";
            problems.push(Problem::new("spec.thresholds", spec.thresholds.len(), message));
        }
        if spec.repeats.count > 1 {
            let message = "must be 1 with search, which confirms its answer by three fresh trials itself: remove repeats or search";
            problems.push(Problem::new("spec.repeats.count", spec.repeats.count, message));
        }
        if let Some(comparison) = &spec.comparison {
            let message = "must not be set with search: make a benchmark of each target and search in each, or remove one of them";
            problems.push(Problem::new("spec.comparison", comparison.baseline.as_deref().unwrap_or_default(), message));
        }
        if !spec.sweep.is_empty() {
            let fields: Vec<_> = spec.sweep.iter().map(|entry| entry.field.as_str()).collect();
            let message =
                "must not be set with search: make a benchmark of each value and search in each, or remove one of them";
            problems.push(Problem::new("spec.sweep", fields.join(", "), message));
        }
        let Some(search) = found.filter(|_| problems.is_empty()) else {
            // What is wrong with the rest is said in the same breath, but for what a search says itself.
            problems.extend(validate(&at(spec, 1, None), name).err().unwrap_or_default());
            problems.dedup();
            return Err(problems);
        };
        let limits = search.limits;
        let length = search::shortest(limits.min, search.arrivals, &search.objective);
        let first = validate(&at(spec, limits.min, Some(length)), name)?;
        let least = match first.bound {
            Bound::Duration(least) if spec.load.duration.is_some() => least,
            _ => Duration::ZERO,
        };
        let mut plan = Self { search, first, least };
        plan.first = plan.at(limits.min);
        Ok(plan)
    }

    /// The first step.
    pub(super) fn first(&self) -> (SearchTrial, Validated) {
        let first = SearchTrial {
            rate: self.search.limits.min,
            confirmation: None,
            objective: self.search.objective,
            good: None,
        };
        (first, self.first.clone())
    }

    pub(super) fn retarget(&mut self, change: impl Fn(&mut Target)) {
        change(&mut self.first.target);
    }

    /// What comes after the trials of these lines; none if the search is over.
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
        let mut spec = self.first.clone();
        if let Load::OpenLoop { rate_per_second, .. } = &mut spec.load {
            *rate_per_second = rate;
        }
        spec.bound =
            Bound::Duration(search::shortest(rate, self.search.arrivals, &self.search.objective).max(self.least));
        spec
    }

    /// What is to be hashed of it.
    pub(super) fn identity(&self) -> String {
        format!("{:?} {:?}", self.search, self.least)
    }
}

/// Where a search stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What must hold.
    pub objective: Objective,
    /// What it found; none while it goes on.
    pub answer: Option<Answer<Why>>,
    /// The highest rate that holds, as far as is known.
    pub good: Option<u64>,
    /// The lowest above it that does not.
    pub bad: Option<Bad<Why>>,
}

/// Where the search of `spec` stands after the trials of these lines; none if it has no search.
pub fn standing(spec: &RedisBenchmarkSpec, lines: &[TrialLine]) -> Option<Standing> {
    let search = api::check(spec, spec.search.as_ref()?, &mut Vec::new())?;
    let steps = steps(lines);
    let answer = match search::next(&search.limits, &steps) {
        Next::Done(answer) => Some(answer),
        Next::Step { .. } | Next::Confirm { .. } => None,
    };
    let (good, bad) = search::bracket(&search.limits, &steps);
    let tell = |bad: Bad<Why>| most_telling(bad, &steps);
    let answer = answer.map(|answer| Answer { first_bad: answer.first_bad.map(tell), ..answer });
    Some(Standing { objective: search.objective, answer, good, bad: bad.map(tell) })
}

/// Of several failures at a rate, the last in which the target was at its end: it does not hold that rate, whatever else there
/// was. If there is none, the last in which the load generator was: then nobody knows whether the target does.
fn most_telling(bad: Bad<Why>, steps: &[Step<Why>]) -> Bad<Why> {
    let failures = steps.iter().filter(|step| step.rate == bad.rate).filter_map(|step| match &step.outcome {
        Outcome::Failed(why) => Some(why),
        Outcome::Passed | Outcome::Unusable(_) => None,
    });
    let telling = |why: &&Why| match why.limited_by {
        Some(LimitedBy::Target) => 2,
        Some(limit) if limit.is_of_the_generator() => 1,
        _ => 0,
    };
    Bad { why: failures.max_by_key(telling).cloned().unwrap_or(bad.why), ..bad }
}

/// The steps that trials were. A trial that did not end by itself is none.
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
            let outcome = match step.outcome {
                StepOutcome::Passed => Outcome::Passed,
                StepOutcome::Failed => Outcome::Failed(why()),
                StepOutcome::Unusable => Outcome::Unusable(why()),
            };
            Some(Step { rate: step.rate_per_second, outcome })
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
#[path = "search_tests.rs"]
mod tests;
