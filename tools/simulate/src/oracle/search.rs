//! The checks that each step of a search and its answer follow from the capacity of the target.

use redisbench_benchmark::api::RedisBenchmarkSpec;
use redisbench_benchmark::api::status::{SearchEnding, SearchStep, StepOutcome, TrialLine, TrialOutcome, VerdictValue};
use redisbench_benchmark::plan::{Plan, compile, standing};
use serde_json::Value;

use crate::ground_truth::Run;
use crate::scenario::NAME;
use crate::search::Search;
use crate::world::{World, lock};

/// Judges the lines of a search, and the answer if it has ended, against the truth and against the pure rule applied to the truth.
pub fn judge(world: &World, search: &Search, status: &Value, lines: &[Value], run: &Run) {
    let Ok(spec) = serde_json::from_value::<RedisBenchmarkSpec>(world.scenario.benchmark()["spec"].clone()) else {
        return world.violated("the search has no spec");
    };
    let Ok(plan) = compile(&spec, NAME) else { return world.violated("the search has no plan") };
    let told: Vec<TrialLine> = lines.iter().filter_map(|line| serde_json::from_value(line.clone()).ok()).collect();
    world.check(told.len() == lines.len(), || format!("no lines of trials: {lines:?}"));
    let truth = true_lines(world, search, &plan, &told, run);
    let succeeded = status["phase"] == "Succeeded";
    let next = plan.trial(u32::try_from(truth.len()).unwrap_or(u32::MAX), &truth);
    world.check(!succeeded || next.is_none(), || "Succeeded, but the search has not finished".to_owned());
    // A trial that began after the last line must follow from the lines too.
    for ((attempt, _), started) in run.started.range(((u32::try_from(truth.len()).unwrap_or(0), 0), 0)..) {
        let rate = next.as_ref().filter(|next| next.index == attempt.0).and_then(|next| Some(next.search?.rate));
        world.check(rate == Some(started.rate), || {
            format!("trial {} began at {}/s, but the trials before give {rate:?}", attempt.0, started.rate)
        });
    }
    let Some(standing) = standing(&spec, &truth) else { return world.violated("the search has no state") };
    let found = &status["search"];
    if let Some(answer) = &standing.answer {
        let completed = told.iter().all(|line| line.state == TrialOutcome::Completed);
        world.check(succeeded || !completed || status["phase"] != "Failed", || {
            format!("the search found {answer:?}, but is {}", status["phase"])
        });
        let bad = answer.first_bad.as_ref().map(|bad| bad.rate);
        let same = found["lastGoodPerSecond"].as_u64() == answer.last_good
            && found["firstBadPerSecond"].as_u64() == bad
            && found["contradicted"].as_u64().unwrap_or(0) == u64::from(answer.contradicted)
            && found["ending"].is_string();
        world.check(same, || format!("the search found {answer:?}, but reports {found}"));
        let ending = serde_json::from_value(found["ending"].clone()).unwrap_or(SearchEnding::Inconclusive);
        check_answer(world, search, &truth, ending, found);
    } else {
        world.check(found["ending"].is_null() && !succeeded, || format!("not finished, but found {found}"));
    }
}

/// The expected lines, with each step judged by the target's true capacity.
fn true_lines(world: &World, search: &Search, plan: &Plan, told: &[TrialLine], run: &Run) -> Vec<TrialLine> {
    let mut truth: Vec<TrialLine> = Vec::new();
    for line in told {
        let Some(step) = plan.trial(line.index, &truth).and_then(|trial| trial.search) else {
            world.violated(format_args!("trial {} is beyond the end of the search", line.index));
            break;
        };
        let begun = run.of_try((line.index, line.attempt)).find(|started| started.rate != step.rate);
        world.check(begun.is_none(), || {
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
        world.check(line.state != TrialOutcome::Completed || right.search.is_some(), || {
            format!("trial {} was measured, but is not a step", line.index)
        });
        if line.state == TrialOutcome::Completed {
            // Nothing else makes a verdict Invalid here.
            let says_nothing = line.search.as_ref().is_some_and(|step| step.outcome == StepOutcome::Unusable);
            world.check(says_nothing == (line.verdict == Some(VerdictValue::Invalid)), || {
                format!("step {} is usable with lost shards, or unusable without: {line:?}", line.index)
            });
            world.check(right.search == line.search, || {
                format!("step {} must be {:?}, but is {:?}", line.index, right.search, line.search)
            });
        }
        truth.push(right);
    }
    truth
}

/// The answer must follow from the target's behaviour.
fn check_answer(world: &World, search: &Search, truth: &[TrialLine], ending: SearchEnding, found: &Value) {
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
    lock(&world.ground_truth).count(name);
    let is_answer = matches!(ending, SearchEnding::Found | SearchEnding::MaxPassed);
    world.check(!is_answer || good.is_some_and(|good| passes(good) >= 3), || {
        format!("a result that did not pass three times: {found}")
    });
    world.check(ending != SearchEnding::Found || good.is_some_and(|good| search.is_near(good)), || {
        format!("found {found}, but the target holds {:?}", search.capacities())
    });
}
