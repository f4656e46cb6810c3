//! A search in the simulated world: the capacity of its target, and the checks that each step and the answer follow from it.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{SearchEnding, SearchStep, StepOutcome, TrialLine, TrialOutcome, VerdictValue};
use redisbench_benchmark::plan::{Plan, compile, standing};
use serde_json::{Value, json};

use crate::ground_truth::Run;
use crate::scenario::{NAME, Scenario, Several};
use crate::world::{World, lock};

/// The limit of the median response time. Steps beyond the capacity exceed it.
const MOST_MILLISECONDS: u64 = 20;

/// The additional response time beyond the capacity, in nanoseconds.
pub const OVERLOAD: u64 = 50_000_000;

/// A search and the capacity of its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    min: u64,
    max: u64,
    tolerance_basis_points: u32,
    /// The highest rate that the target sustains, and its relative variation between trials.
    capacity: f64,
    noise: f64,
    seed: u64,
}

impl Search {
    pub fn draw(rng: &mut StdRng) -> Self {
        let min = 100 * rng.random_range(1..=3);
        let max = min * rng.random_range(1..=3);
        let capacity = rng.random_range(0.8 * min as f64..=1.2 * max as f64);
        let noise = [0.0, 0.02, 0.1][rng.random_range(0..3)];
        Self { min, max, tolerance_basis_points: 2_000, capacity, noise, seed: rng.random() }
    }

    pub fn spec(&self) -> Value {
        json!({
            "objective": {"quantile": "0.5", "max": format!("{MOST_MILLISECONDS}ms")},
            "rate": {"min": self.min, "max": self.max, "toleranceBasisPoints": self.tolerance_basis_points},
        })
    }

    /// Returns whether the target sustains `rate` in a trial.
    pub fn holds(&self, trial: u32, rate: u64) -> bool {
        let mut rng = StdRng::seed_from_u64(self.seed ^ u64::from(trial).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rate as f64 <= self.capacity * (1.0 + rng.random_range(-1.0..=1.0) * self.noise)
    }
}

impl Scenario {
    /// Turns one of thirty worlds into a search. Uses its own random numbers, so that the worlds of all other seeds stay the same. A search
    /// takes minutes, over which the faults are spread.
    pub fn draw_search(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0073_6561_7263_6821);
        if !rng.random_bool(1.0 / 30.0) {
            return;
        }
        self.several = Several::Search(Search::draw(&mut rng));
        (self.closed, self.requests, self.warmup_seconds, self.seconds) = (false, None, 2, 10);
        self.interval_seconds = [0, 0, 5][rng.random_range(0..3)];
        // The usual number of steps with these limits.
        self.trials = 9;
        for (at, _) in &mut self.faults {
            *at += std::time::Duration::from_secs(18) * rng.random_range(0..self.trials);
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Returns whether the target sustains the rate of a trial.
    pub fn holds(&self, trial: u32, rate: u64) -> bool {
        match &self.several {
            Several::Search(search) => search.holds(trial, rate),
            Several::Presets | Several::Repeats | Several::Shards(_) => true,
        }
    }
}

impl World {
    /// Judges the lines of a search, and the answer if it has ended, against the truth and against the pure rule applied to the truth.
    pub fn judge_search(&self, search: &Search, status: &Value, lines: &[Value], run: &Run) {
        let Ok(spec) = serde_json::from_value::<RedisBenchmarkSpec>(self.scenario.benchmark()["spec"].clone()) else {
            return self.violated("the search has no spec");
        };
        let Ok(plan) = compile(&spec, NAME) else { return self.violated("the search has no plan") };
        let told: Vec<TrialLine> = lines.iter().filter_map(|line| serde_json::from_value(line.clone()).ok()).collect();
        self.check(told.len() == lines.len(), || format!("no lines of trials: {lines:?}"));
        let truth = self.true_lines(search, &plan, &told, run);
        let succeeded = status["phase"] == "Succeeded";
        let next = plan.trial(u32::try_from(truth.len()).unwrap_or(u32::MAX), &truth);
        self.check(!succeeded || next.is_none(), || "Succeeded, but the search has not finished".to_owned());
        // A trial that began after the last line must follow from the lines too.
        for ((attempt, _), started) in run.started.range(((u32::try_from(truth.len()).unwrap_or(0), 0), 0)..) {
            let rate = next.as_ref().filter(|next| next.index == attempt.0).and_then(|next| Some(next.search?.rate));
            self.check(rate == Some(started.rate), || {
                format!("trial {} began at {}/s, but the trials before give {rate:?}", attempt.0, started.rate)
            });
        }
        let Some(standing) = standing(&spec, &truth) else { return self.violated("the search has no state") };
        let found = &status["search"];
        if let Some(answer) = &standing.answer {
            let completed = told.iter().all(|line| line.state == TrialOutcome::Completed);
            self.check(succeeded || !completed || status["phase"] != "Failed", || {
                format!("the search found {answer:?}, but is {}", status["phase"])
            });
            let bad = answer.first_bad.as_ref().map(|bad| bad.rate);
            let same = found["lastGoodPerSecond"].as_u64() == answer.last_good
                && found["firstBadPerSecond"].as_u64() == bad
                && found["contradicted"].as_u64().unwrap_or(0) == u64::from(answer.contradicted)
                && found["ending"].is_string();
            self.check(same, || format!("the search found {answer:?}, but reports {found}"));
            let ending = serde_json::from_value(found["ending"].clone()).unwrap_or(SearchEnding::Inconclusive);
            self.check_answer(search, &truth, ending, found);
        } else {
            self.check(found["ending"].is_null() && !succeeded, || format!("not finished, but found {found}"));
        }
    }

    /// The expected lines, with each step judged by the target's true capacity.
    fn true_lines(&self, search: &Search, plan: &Plan, told: &[TrialLine], run: &Run) -> Vec<TrialLine> {
        let mut truth: Vec<TrialLine> = Vec::new();
        for line in told {
            let Some(step) = plan.trial(line.index, &truth).and_then(|trial| trial.search) else {
                self.violated(format_args!("trial {} is beyond the end of the search", line.index));
                break;
            };
            let begun = run.of_try((line.index, line.attempt)).find(|started| started.rate != step.rate);
            self.check(begun.is_none(), || {
                format!("trial {} began at {begun:?}, but the trials before give {}/s", line.index, step.rate)
            });
            let mut right = line.clone();
            right.search = line.search.clone().map(|told| {
                let says_nothing = told.outcome == StepOutcome::Unusable;
                let outcome = match search.holds(line.index, step.rate) {
                    _ if says_nothing => StepOutcome::Unusable,
                    true => StepOutcome::Passed,
                    false => StepOutcome::Failed,
                };
                SearchStep { rate_per_second: step.rate, confirmation: step.confirmation, outcome, ..told }
            });
            self.check(line.state != TrialOutcome::Completed || right.search.is_some(), || {
                format!("trial {} was measured, but is not a step", line.index)
            });
            if line.state == TrialOutcome::Completed {
                // Nothing else makes a verdict Invalid here.
                let says_nothing = line.search.as_ref().is_some_and(|step| step.outcome == StepOutcome::Unusable);
                self.check(says_nothing == (line.verdict == Some(VerdictValue::Invalid)), || {
                    format!("step {} is usable with lost shards, or unusable without: {line:?}", line.index)
                });
                self.check(right.search == line.search, || {
                    format!("step {} must be {:?}, but is {:?}", line.index, right.search, line.search)
                });
            }
            truth.push(right);
        }
        truth
    }

    /// The answer must follow from the target's behaviour.
    fn check_answer(&self, search: &Search, truth: &[TrialLine], ending: SearchEnding, found: &Value) {
        let passes = |rate: u64| {
            let steps = truth.iter().filter_map(|line| line.search.as_ref());
            steps.filter(|step| step.rate_per_second == rate && step.outcome == StepOutcome::Passed).count()
        };
        let good = found["lastGoodPerSecond"].as_u64();
        let name = match ending {
            SearchEnding::Found => "- a search found its result",
            SearchEnding::MaxPassed => "- a search passed its highest rate",
            SearchEnding::MinFailed => "- a search failed at its lowest rate",
            SearchEnding::GeneratorLimited | SearchEnding::Inconclusive => "- a search had no result",
        };
        lock(&self.ground_truth).count(name);
        let is_answer = matches!(ending, SearchEnding::Found | SearchEnding::MaxPassed);
        self.check(!is_answer || good.is_some_and(|good| passes(good) >= 3), || {
            format!("a result that did not pass three times: {found}")
        });
        let range = search.capacity * (1.0 - search.noise)..=search.capacity * (1.0 + search.noise);
        let near = |good: u64| {
            good as f64 <= *range.end()
                && good as f64 >= range.start() * (1.0 - f64::from(search.tolerance_basis_points) / 1e4)
        };
        self.check(ending != SearchEnding::Found || good.is_some_and(near), || {
            format!("found {found}, but the target holds {range:?}")
        });
    }
}
