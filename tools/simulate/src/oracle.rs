//! The invariants of a finished run.

mod search;

use redisbench_testkit::status::{imbalances, list, number};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::snapshot::Tally;
use serde_json::Value;

use crate::ground_truth::{Run, Try};
use crate::scenario::Several;
use crate::world::{World, lock};

/// The conductor must have had all acknowledgements of a start this long before it.
const ACKNOWLEDGED_BEFORE: u64 = 500_000_000;
/// `maxStartSkew` of the scenario: the default.
const SKEW: u64 = 20_000_000;

/// The event of a load that a signal stopped, and whose counts are all in the result.
pub const COLLECTED: &str = "- all counts of a terminated shard were collected";

/// Returns whether a signal stopped this shard, and the result has all counts of it.
fn is_collected(run: &Run, shard: &Value, attempt: Try) -> bool {
    let Some(started) = run.started.get(&(attempt, index(shard))).filter(|started| started.terminated) else {
        return false;
    };
    let requests = &shard["requests"];
    let known = number(&requests["scheduled"]).saturating_sub(number(&requests["unknown"]));
    let told = (known, number(&requests["redirectHops"]));
    started.ended.as_ref().is_some_and(|ended| told == (ended.scheduled, ended.redirect_hops))
}

fn index(shard: &Value) -> u32 {
    shard["index"].as_u64().and_then(|index| u32::try_from(index).ok()).unwrap_or(u32::MAX)
}

fn attempt(trial: &Value) -> u32 {
    u32::try_from(number(&trial["attempt"])).unwrap_or(0)
}

/// Judges a terminal status.
pub fn judge(world: &World, status: &Value) {
    let conditions = || list(&status["conditions"]).iter();
    let finished = conditions().find(|condition| condition["type"] == "Finished");
    world.check(finished.is_some_and(|condition| condition["status"] == "True"), || {
        format!("{} without condition Finished", status["phase"])
    });
    let refused = |condition: &Value| {
        let reasons = ["Unknown", "Malformed", "PlanConflict", "WrongPhase", "InstantPassed", "Internal"];
        condition["type"] == "Failed" && reasons.iter().any(|reason| condition["reason"] == *reason)
    };
    let failed = conditions().find(|condition| refused(condition));
    world.check(failed.is_none(), || format!("operator and shard disagree: {failed:?}"));
    let run = status["runId"].as_str().unwrap_or_default();
    let panics = lock(&world.ground_truth).run(run).panics;
    let failures = number(&status["conductorFailures"]);
    world.check(failures <= panics, || format!("{panics} conductors panicked, but the status counts {failures}"));
    let broken = |condition: &Value| condition["type"] == "Failed" && condition["reason"] == "InternalError";
    let is_broken = conditions().any(broken);
    world.check(!is_broken || panics > 1, || format!("failed because {panics} conductors panicked"));
    let succeeded = status["phase"] == "Succeeded";
    if world.scenario.trials > 1 {
        return judge_trials(world, status, succeeded);
    }
    let result = &status["result"];
    if result.is_null() {
        world.check(!succeeded, || "Succeeded without a result".to_owned());
        return;
    }
    let attempt = attempt(&status["trial"]);
    let lost = judge_result(world, status, result, &status["verdict"]["value"], (0, attempt), succeeded);
    world.check(status["shards"]["lost"].as_u64() == Some(lost as u64), || {
        format!("{lost} shards are lost, but the status counts {}", status["shards"]["lost"])
    });
}

/// Each finished trial has a line and a full result. If the run succeeded, all trials have.
fn judge_trials(world: &World, status: &Value, succeeded: bool) {
    let lines = list(&status["trials"]);
    let in_order = (0..).zip(lines).all(|(index, line)| line["index"].as_u64() == Some(index));
    world.check(in_order, || format!("the trials are {lines:?}"));
    if let Several::Search(search) = &world.scenario.several {
        let run = lock(&world.ground_truth).run(status["runId"].as_str().unwrap_or_default()).clone();
        search::judge(world, search, status, lines, &run);
    } else {
        world.check(!succeeded || lines.len() == world.scenario.trials as usize, || {
            format!("Succeeded with {} of {} trials", lines.len(), world.scenario.trials)
        });
    }
    world.check(status["result"].is_null(), || "the result is that of one of several trials".to_owned());
    for (index, line) in (0_u32..).zip(lines) {
        let completed = line["state"] == "Completed";
        let is_last = index as usize + 1 == lines.len();
        world.check(completed || is_last, || format!("a trial follows one that did not complete: {line}"));
        world.check(completed || !succeeded, || format!("Succeeded with {line}"));
        let name = format!("trial-{index}.result.json");
        let kept = list(&status["artifacts"]).iter().any(|artifact| artifact["name"] == name.as_str());
        if line["requests"].is_null() || !kept {
            continue;
        }
        let Some(full) = lock(&world.cluster).artifact(&index.to_string(), &name) else {
            world.violated(format_args!("the full result of trial {index} is missing"));
            continue;
        };
        world.check(full["result"]["requests"]["scheduled"] == line["requests"]["scheduled"], || {
            format!("the full result of trial {index} has other requests than {line}")
        });
        let attempt = (index, attempt(line));
        judge_result(world, status, &full["result"], &line["verdict"], attempt, completed);
    }
    if world.scenario.several == Several::Repeats && succeeded {
        judge_repeats(world, status, lines);
    }
}

/// The aggregate of the repeats exists, regardless of the operators that ran them, and includes every request.
fn judge_repeats(world: &World, status: &Value, lines: &[Value]) {
    let cells = list(&status["repeats"]);
    let all: Vec<u64> = (0..lines.len() as u64).collect();
    world.check(cells.len() == 1 && cells[0]["trials"] == serde_json::json!(all), || {
        format!("the repeats are {cells:?}")
    });
    let is_result = |artifact: &&Value| artifact["name"].as_str().is_some_and(|name| name.ends_with(".result.json"));
    if list(&status["artifacts"]).iter().filter(is_result).count() < lines.len() {
        return;
    }
    world.check(cells.first().is_some_and(|cell| cell["aggregate"].is_object()), || {
        format!("the repeats have no aggregate: {cells:?}")
    });
    let document = lock(&world.cluster).artifact("experiment", "experiment.json");
    let histogram = document.and_then(|document| {
        serde_json::from_value::<EncodedHistogram>(document["cells"][0]["histogram"].clone()).ok()
    });
    let recorded = histogram.and_then(|histogram| histogram.count(Kind::Request).ok());
    let succeeded: u64 = lines.iter().map(|line| number(&line["requests"]["succeeded"])).sum();
    world.check(recorded == Some(succeeded), || {
        format!("{succeeded} requests succeeded, but the merged histogram has {recorded:?}")
    });
}

/// Judges the result of one trial; `completed` if it was measured to its end. Returns the number of lost shards.
fn judge_result(
    world: &World,
    status: &Value,
    result: &Value,
    verdict: &Value,
    attempt: Try,
    completed: bool,
) -> usize {
    let verdict = verdict.as_str().unwrap_or("none");
    let shards = list(&result["shards"]);
    world.check(shards.len() == world.scenario.shards_of(attempt.0) as usize, || {
        format!("{} shards in the result", shards.len())
    });
    let lost = shards.iter().filter(|shard| shard["state"] == "Lost").count();
    world.check(lost == 0 || verdict == "Invalid", || format!("{lost} shards are lost, but the verdict is {verdict}"));
    for shard in shards {
        let run = status["runId"].as_str().unwrap_or_default();
        judge_shard(world, lock(&world.ground_truth).run(run), shard, attempt, completed);
        let collected = is_collected(lock(&world.ground_truth).run(run), shard, attempt);
        if collected {
            lock(&world.ground_truth).count(COLLECTED);
        }
    }
    for imbalance in imbalances(result, &["shards"]) {
        world.violated(&imbalance);
    }
    let requests = &result["requests"];
    let count = |field: &str| number(&requests[field]);
    let found = &result["verification"];
    let checked = count("succeeded") + number(&result["warmup"]["succeeded"]);
    let same = |field: &str, wanted: u64| number(&found[field]) == wanted;
    let verified = same("checked", checked) && same("lostWrites", count("redirectHops"));
    world.check(if world.scenario.verifies() { verified } else { found.is_null() }, || {
        format!("{checked} replies were to be verified of {requests}, but the result has {found}")
    });
    let mut ground_truth = lock(&world.ground_truth);
    if completed {
        let run = ground_truth.run(status["runId"].as_str().unwrap_or_default());
        let whole: u64 = run.of_try(attempt).map(|started| started.whole.scheduled).sum();
        let all_started = run.of_try(attempt).count() == shards.len();
        let scheduled = count("scheduled");
        // Unknown: whether a silent shard got the start, and how many requests a lost shard would have sent in a closed loop.
        let right = if lost > 0 && (!all_started || world.scenario.closed) {
            scheduled - count("unknown").min(scheduled) <= whole
        } else {
            scheduled == whole
        };
        world.check(right, || format!("{whole} requests were due, not {requests}"));
    }
    lost
}

fn judge_shard(world: &World, run: &Run, shard: &Value, attempt: Try, succeeded: bool) {
    let index = index(shard);
    let heard = Tally {
        scheduled: number(&shard["requests"]["scheduled"]),
        redirect_hops: number(&shard["requests"]["redirectHops"]),
        ..Tally::default()
    };
    let Some(started) = run.started.get(&(attempt, index)) else {
        // A shard that never started has no requests.
        return world.check(heard.redirect_hops == 0, || {
            format!("shard {index} never started in attempt {attempt:?}, but has {}", shard["requests"])
        });
    };
    let same = |truth: &Tally| (truth.scheduled, truth.redirect_hops) == (heard.scheduled, heard.redirect_hops);
    if shard["state"] != "Finished" {
        let known = heard.scheduled - number(&shard["requests"]["unknown"]).min(heard.scheduled);
        return world
            .check(known <= started.whole.scheduled && heard.redirect_hops <= started.whole.redirect_hops, || {
                format!("lost shard {index} has {}, more than {:?}", shard["requests"], started.whole)
            });
    }
    world.check(started.ended.as_ref().is_some_and(same), || {
        format!("shard {index} reports {}, but the truth is {:?}", shard["requests"], started.ended)
    });
    if !succeeded {
        return;
    }
    world.check(same(&started.whole), || {
        format!("shard {index} counts as finished with {} of {:?}", shard["requests"], started.whole)
    });
    // A takeover continues if all shards have accepted, however late. The conductor uses its own clock, and knows a shard's to within
    // the skew.
    let taken_over = Some(&started.epoch) != run.epochs.get(&attempt.0.into());
    world.check(taken_over || started.accepted_at + ACKNOWLEDGED_BEFORE <= started.start_at + SKEW, || {
        let lead = started.start_at.saturating_sub(started.accepted_at);
        format!("shard {index} received the start instant only {} ms before it", lead / 1_000_000)
    });
    let of_attempt = || run.of_try(attempt).map(|started| started.start_at);
    let skew = of_attempt().max().unwrap_or(0) - of_attempt().min().unwrap_or(0);
    world.check(skew <= SKEW, || format!("the shards started {} us apart", skew / 1_000));
}
