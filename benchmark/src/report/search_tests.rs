use serde_json::json;

use super::*;
use crate::conductor::Outcome;
use crate::merge::merge;
use crate::plan::plans;
use crate::sample::{lose, outcome, snapshot, spec, with_timeouts};

const P99: Objective = Objective::Quantile { quantile: 0.99, max_nanoseconds: 2_000_000 };

/// A step at 1000 requests per second, over one shard or more.
fn judged(objective: Objective, outcome: &Outcome) -> SearchStep {
    let count = u32::try_from(outcome.shards.len()).unwrap();
    let load = json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s", "warmup": "2s"});
    let spec = spec(count, &load);
    let merged = merge(&plans(&spec, "run"), outcome).unwrap().unwrap();
    let judged = verdict::verdict(&spec, outcome, &merged);
    step(&SearchTrial { rate: 1_000, confirmation: Some(2), objective }, &spec, outcome, &merged, &judged)
}

/// Ten seconds of one request each millisecond, of which some are slow.
fn values(slow: usize) -> Vec<u64> {
    (0..10_000).map(|request| if request < slow { 5_000_000 } else { 1_000_000 }).collect()
}

#[test]
fn a_step_is_judged_by_the_quantile_of_all_shards() {
    let passed = judged(P99, &outcome(vec![snapshot(0, &values(99))]));
    assert_eq!((passed.outcome, passed.rate_per_second, passed.confirmation), (StepOutcome::Passed, 1_000, Some(2)));
    assert_eq!((passed.why, passed.limited_by), (None, None));
    let failed = judged(P99, &outcome(vec![snapshot(0, &values(101))]));
    assert_eq!(failed.outcome, StepOutcome::Failed);
    assert_eq!(failed.why.unwrap(), "the quantile of response time was 5.00 ms, 2.00 ms is the most");
    assert!(failed.limited_by.is_some());
}

/// Requests without an answer are no fast ones.
#[test]
fn timeouts_are_beyond_the_quantile() {
    let failed = judged(P99, &outcome(vec![with_timeouts(snapshot(0, &values(0)), 200)]));
    assert_eq!(failed.outcome, StepOutcome::Failed);
    assert!(failed.why.as_ref().unwrap().contains("longer than any that was answered"), "{failed:?}");
    let few = judged(Objective::ErrorRate { max: 0.01 }, &outcome(vec![with_timeouts(snapshot(0, &values(0)), 200)]));
    assert_eq!(few.outcome, StepOutcome::Failed);
    assert!(few.why.as_ref().unwrap().contains("1.96 %"), "{few:?}");
}

#[test]
fn what_is_not_achieved_does_not_hold() {
    let behind = judged(Objective::Achieved { min: 0.99 }, &outcome(vec![snapshot(0, &values(0)[..9_800])]));
    assert_eq!(behind.outcome, StepOutcome::Failed);
    assert!(behind.why.as_ref().unwrap().contains("98.00 % of the rate was achieved"), "{behind:?}");
    let backlog = judged(Objective::Achieved { min: 0.99 }, &outcome(vec![snapshot(0, &values(0)[..9_920])]));
    assert_eq!(backlog.outcome, StepOutcome::Failed);
    assert!(backlog.why.as_ref().unwrap().contains("8 more requests were due than ended"), "{backlog:?}");
}

/// It measured another load than the others.
#[test]
fn a_step_that_lost_a_shard_says_nothing() {
    let mut lost = outcome(vec![snapshot(0, &values(0)[..5_000]), snapshot(1, &values(0)[..5_000])]);
    lose(&mut lost, 1);
    let step = judged(P99, &lost);
    assert_eq!(step.outcome, StepOutcome::Unusable);
    assert!(step.why.unwrap().contains("lost"));
}

#[test]
fn what_was_found_is_said_in_a_sentence() {
    let why = Why { message: "too slow".into(), limited_by: None };
    let bad = search::Bad { rate: 10_100, times: 2, why: why.clone() };
    let answer = |ending, good: Option<u64>| {
        let answer = Answer { ending, last_good: good, first_bad: Some(bad.clone()), contradicted: 1 };
        result(&answer, 20)
    };
    let found = answer(Ending::Found, Some(10_000));
    assert_eq!(found.message, "the objective holds up to 10.0k/s; at 10.1k/s not: too slow");
    assert_eq!((found.ending, found.last_good_per_second), (SearchEnding::Found, Some(10_000)));
    assert_eq!((found.first_bad_per_second, found.contradicted), (Some(10_100), 1));
    for (ending, said) in [
        (Ending::MinFailed, SearchEnding::MinFailed),
        (Ending::NotConfirmed, SearchEnding::Inconclusive),
        (Ending::TooLong, SearchEnding::Inconclusive),
        (Ending::Unusable(why), SearchEnding::Inconclusive),
    ] {
        assert_eq!(answer(ending, None).ending, said);
    }
}
