//! Search: the result of each trial as a step, and the result of the search.

use std::borrow::Cow;
use std::time::Duration;

use redisbench_statistics::search::{
    self, Answer, Bad, CONFIRMATIONS, Ending, Failure, Judgement, MOST_STEPS, Objective, Observed, StepMeasurement,
    Unusable,
};
use redisbench_wire::plan::{Arrival, Load};

use super::why::{REASONS, why_bytes};
use crate::api::status::{
    CellSearch, LimitedBy, ReasonKind, SearchEnding, SearchResult, SearchStep, StepOutcome, TrialLine, TrialOutcome,
    Verdict, VerdictReason, VerdictValue,
};
use crate::api::{GoDuration, RedisBenchmarkSpec, RedisBenchmarkStatus, Validated, combinations};
use crate::human;
use crate::measurement::Outcome;
use crate::measurement::latencies::{self, Censored};
use crate::measurement::measured::Measured;
use crate::measurement::merge::Merged;
use crate::plan::{self, GoodStep, SearchState, SearchTrial, Why};
use crate::quantile::Quantile;
use crate::verdict;

/// Maximum bytes of a step's reason.
const WHY_BYTES: usize = 160;
/// Maximum bytes of a search's message.
const MESSAGE_BYTES: usize = 768;
const WHOLE: f64 = 1_000_000.0;
/// In per cent of the time that the rate explains: repeated runs of a few seconds differ by a tenth.
const LONGER: u128 = 110;

/// Judges a trial as a step of a search.
pub(super) fn step(
    trial: &SearchTrial,
    spec: &Validated,
    outcome: &Outcome,
    merged: &Merged,
    judged: &Verdict,
) -> SearchStep {
    let step = |outcome, why: Option<String>| SearchStep {
        rate_per_second: trial.rate,
        confirmation: trial.confirmation,
        outcome,
        why: why.map(|why| human::shorten(&why, WHY_BYTES).into_owned()),
        limited_by: None,
        component: None,
        busiest_server_basis_points: verdict::busiest_server(merged),
    };
    let lost = judged.reasons.iter().find(|reason| reason.reason == ReasonKind::ShardLost);
    if let Some(lost) = lost.filter(|lost| lost.severity == VerdictValue::Invalid) {
        return step(StepOutcome::Unusable, Some(lost.message.clone()));
    }
    match search::judge(trial.rate, &trial.objective, &measured(trial, spec, outcome, merged)) {
        Judgement::Passed => step(StepOutcome::Passed, None),
        Judgement::Failed(failure) => {
            let limit = at_its_end(spec, outcome, merged, judged);
            let (limited_by, component) = match verdict::of_client(spec, outcome, merged, limit) {
                (LimitedBy::Unknown, None) => near_its_end(trial, spec, outcome, merged, judged),
                known => known,
            };
            let failed = step(StepOutcome::Failed, Some(failed(&trial.objective, &failure)));
            SearchStep { limited_by: Some(limited_by), component, ..failed }
        }
        Judgement::Unusable(unusable) => step(StepOutcome::Unusable, Some(says_nothing(&unusable))),
    }
}

/// Maximum bytes of the component of a step of several searches. Their results have it whole.
const COMPONENT_BYTES: usize = 24;

/// `step` with shorter texts if it is one of several searches, which have up to `of` steps with `fields` swept fields: all must fit into a
/// status.
pub(super) fn fitted(step: SearchStep, of: u32, fields: usize) -> SearchStep {
    if of as usize <= MOST_STEPS {
        return step;
    }
    let shorter = |text: String, bytes| human::shorten(&text, bytes).into_owned();
    SearchStep {
        why: step.why.map(|why| shorter(why, why_bytes(of, fields))),
        component: step.component.map(|component| shorter(component, COMPONENT_BYTES)),
        ..step
    }
}

/// The saturated part in a step that failed. A shard that sent late on its own account, or lacked processor time, explains a slow quantile
/// even if it is one of many and did not limit the throughput.
fn at_its_end(spec: &Validated, outcome: &Outcome, merged: &Merged, judged: &Verdict) -> (LimitedBy, Option<String>) {
    let limit = verdict::at_its_end(spec, outcome, merged);
    let own = |reason: &VerdictReason| reason.severity != VerdictValue::Valid && reason.reason.is_of_the_generator();
    if limit.0 == LimitedBy::Unknown
        && !verdict::server_is_full(spec, outcome, merged)
        && judged.reasons.iter().any(own)
    {
        return (LimitedBy::GeneratorCPU, None);
    }
    limit
}

/// The server near saturation in a step whose quantile was too long. Nothing else can have delayed requests, and since the last good
/// step response times grew like those of a queue and the server's work grew with the rate. A busy server may reply in time, and a slow one
/// may wait for something else.
fn near_its_end(
    trial: &SearchTrial,
    spec: &Validated,
    outcome: &Outcome,
    merged: &Merged,
    judged: &Verdict,
) -> (LimitedBy, Option<String>) {
    let unknown = (LimitedBy::Unknown, None);
    let own = judged.reasons.iter().any(|reason| reason.reason.is_of_the_generator());
    let is_about_time = matches!(trial.objective, Objective::Quantile { .. });
    // If both a server and a link are saturated, neither alone is the limit.
    if own || !is_about_time || verdict::server_is_full(spec, outcome, merged) {
        return unknown;
    }
    let mean = latencies::response_time(&merged.total, &[]).mean_nanoseconds;
    let Some((good, mean)) = trial.good.zip(mean) else { return unknown };
    // Times and work are those of all operations, also of those with a rate of their own.
    let own = spec.plan.workload.own_rates_per_second();
    let (good, rate) = (GoodStep { rate: good.rate.saturating_add(own), ..good }, trial.rate.saturating_add(own));
    match verdict::near_its_end(spec, outcome, merged) {
        Some((server, share)) if has_queued(&good, rate, mean) && works_for_the_rate(&good, rate, share) => {
            (LimitedBy::Target, Some(server))
        }
        _ => unknown,
    }
}

/// Returns whether the server's processor time grew with the rate since the good step, and so is the work of this load. Half as much is
/// enough, because a busier server needs less time per request. If another server was the busiest then, this one had even less to do.
fn works_for_the_rate(good: &GoodStep, rate: u64, share: u32) -> bool {
    good.server_basis_points.is_none_or(|before| {
        let more = |now: u64, before: u64| u128::from(now.saturating_sub(before));
        2 * more(share.into(), before.into()) * u128::from(good.rate) >= more(rate, good.rate) * u128::from(before)
    })
}

/// Returns whether response times grew by more than the rate since the good step. Fixed costs do not grow with the rate, and a resource
/// shared by all requests in flight grows in proportion; a queue before a nearly saturated server grows faster.
fn has_queued(good: &GoodStep, rate: u64, mean_nanoseconds: u64) -> bool {
    let explained = u128::from(good.mean_nanoseconds) * u128::from(rate);
    good.mean_nanoseconds > 0
        && u128::from(mean_nanoseconds) * u128::from(good.rate) * 100 >= explained.saturating_mul(LONGER)
}

/// Requests that the searched rate is of: without operations that have a rate of their own.
fn searched<'m>(spec: &Validated, merged: &'m Merged) -> Cow<'m, Measured> {
    let workload = &spec.plan.workload;
    if workload.options.rates.is_empty() {
        return Cow::Borrowed(&merged.total);
    }
    let weights = workload.weights();
    let names = workload.operations.iter().zip(weights).filter(|(_, weight)| *weight > 0);
    let names: Vec<&str> = names.map(|(operation, _)| operation.name.as_str()).collect();
    let mut all = Measured::default();
    for operation in merged.operations.iter().filter(|operation| names.contains(&operation.name.as_str())) {
        all.add(&operation.measured);
    }
    Cow::Owned(all)
}

fn measured(trial: &SearchTrial, spec: &Validated, outcome: &Outcome, merged: &Merged) -> StepMeasurement {
    let (searched, throughput) = (searched(spec, merged), &merged.throughput);
    let tally = &searched.tally;
    let failed = tally.errors.saturating_add(tally.unsent);
    let target = throughput.target.unwrap_or(trial.rate);
    // A request at the window's edge, the first round trip, and chance in Poisson arrivals do not count as missed. Operations with a rate
    // of their own do not make up for failed requests of the others.
    let met = verdict::rate_is_met(spec, merged) && verdict::have_succeeded(&searched);
    let achieved = match &searched {
        _ if met => target.max(throughput.mean),
        Cow::Borrowed(_) => throughput.mean,
        // Completions over time are those of all operations.
        Cow::Owned(_) => throughput.mean.min(part_of(target, tally.succeeded, tally.scheduled)),
    };
    let quantile = match trial.objective {
        Objective::Quantile { quantile, .. } => {
            let found = Quantile::of_millionths(millionths(quantile))
                .and_then(|quantile| latencies::response_time_quantile(&searched, quantile));
            found.map(|found| match found {
                Censored::Known(nanoseconds) => Observed::Nanoseconds(nanoseconds),
                Censored::MoreThan(_) => Observed::Beyond,
            })
        }
        Objective::ErrorRate { .. } | Objective::Achieved { .. } => None,
    };
    StepMeasurement {
        // All connections are closed between two trials.
        in_flight_before: 0,
        discarded: Duration::from_nanos(spec.plan.warmup_nanoseconds),
        measured: Duration::from_nanos(throughput.window_nanoseconds),
        scheduled: tally.scheduled,
        failed,
        scheduled_per_second: target as f64,
        achieved_per_second: achieved as f64,
        poisson: matches!(spec.plan.load, Load::OpenLoop { arrival: Arrival::Poisson, .. }),
        quantile,
        backlog_growth: verdict::backlog_growth(spec, outcome, merged).map(|growth| growth.per_second),
    }
}

/// `rate * part / whole`.
fn part_of(rate: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of at most 1")]
fn millionths(share: f64) -> u32 {
    (share * WHOLE).round() as u32
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// The quantile of an objective, such as `p99`; otherwise its metric.
fn name(objective: &Objective) -> String {
    match objective {
        Objective::Quantile { quantile, .. } => {
            Quantile::parse(&quantile.to_string()).map_or_else(|| "response time".to_owned(), Quantile::name)
        }
        Objective::ErrorRate { .. } => "errors".to_owned(),
        Objective::Achieved { .. } => "the achieved rate".to_owned(),
    }
}

/// The objective, for people.
fn wanted(objective: &Objective) -> String {
    let name = name(objective);
    match objective {
        Objective::Quantile { max_nanoseconds, .. } => {
            format!("{name} of at most {}", human::latency(*max_nanoseconds))
        }
        Objective::ErrorRate { max } => format!("{name} of at most {}", percent(*max)),
        Objective::Achieved { min } => format!("{name} at {} or more", percent(*min)),
    }
}

fn failed(objective: &Objective, failure: &Failure) -> String {
    match failure {
        Failure::Behind { achieved, min } => {
            format!("{} of the rate was achieved, the minimum is {}", percent(*achieved), percent(*min))
        }
        Failure::Backlog { per_second } => format!("the backlog grew by {per_second:.0} requests per second"),
        Failure::Latency { observed, max_nanoseconds } => {
            let observed = match observed {
                Observed::Nanoseconds(nanoseconds) => human::latency(*nanoseconds),
                Observed::Beyond => "longer than any reply took".to_owned(),
            };
            format!("{} was {observed}, the maximum is {}", name(objective), human::latency(*max_nanoseconds))
        }
        Failure::Errors { share, max } => {
            format!("{} of the requests failed, the maximum is {}", percent(*share), percent(*max))
        }
    }
}

fn says_nothing(unusable: &Unusable) -> String {
    match unusable {
        Unusable::NotDrained(count) => {
            let (requests, were) = (human::counted(*count, "request"), human::were(*count));
            format!("{requests} of the previous step {were} in flight")
        }
        Unusable::DiscardedTooShort(length) => format!("only {} were discarded", GoDuration::from(*length)),
        Unusable::TooShort(length) => format!("it measured less than the required {}", GoDuration::from(*length)),
        Unusable::TooFew(count) => {
            let (requests, are) = (human::counted(*count, "request"), human::are(*count));
            format!("{requests} {are} too few for the quantile")
        }
        Unusable::NoQuantile => "the quantile was not measured".to_owned(),
    }
}

/// Sets the results of the searches of `spec` from the lines of `status`: that of a single search, or those of several.
pub(super) fn set_searches(status: &mut RedisBenchmarkStatus, spec: &RedisBenchmarkSpec) {
    let found = |lines: &[TrialLine]| plan::standing(spec, lines).map(|standing| result(&standing, lines.len()));
    if combinations(spec) == 1 {
        status.search = found(&status.trials);
        return;
    }
    let of_cell = |lines: &Vec<TrialLine>| {
        let (first, result) = lines.first().zip(found(lines))?;
        Some(CellSearch {
            cell: first.cell,
            repeat: first.repeat,
            setting: first.setting.clone(),
            steps: u32::try_from(lines.len()).unwrap_or(u32::MAX),
            result,
        })
    };
    status.searches = plan::of_searches(&status.trials).iter().filter_map(of_cell).collect();
}

/// For several trials, or several searches, a line each: the last step that confirmed the answer, with the rate found. A search without an
/// answer about the target has a line that does not count.
pub(super) fn answers<'a>(spec: &RedisBenchmarkSpec, lines: &'a [TrialLine]) -> Cow<'a, [TrialLine]> {
    if spec.search.is_none() {
        return Cow::Borrowed(lines);
    }
    let answer = |lines: &Vec<TrialLine>| {
        let answer = plan::standing(spec, lines)?.answer;
        let good = answer.filter(|answer| answer.ending == Ending::Found && !is_of_the_generator(answer));
        let good = good.and_then(|answer| answer.last_good);
        let of_good = |line: &&TrialLine| {
            let step = line.search.as_ref();
            step.is_some_and(|step| Some(step.rate_per_second) == good && step.outcome == StepOutcome::Passed)
        };
        let line = lines.iter().rev().find(of_good);
        Some(match line {
            Some(line) => TrialLine { achieved_per_second: good, limited_by: None, ..line.clone() },
            None => TrialLine { state: TrialOutcome::Failed, ..lines.last()?.clone() },
        })
    };
    Cow::Owned(plan::of_searches(lines).iter().filter_map(answer).collect())
}

/// Returns whether the search ended at the load generator's limit, so that the target may hold more.
fn is_of_the_generator(answer: &Answer<Why>) -> bool {
    answer.first_bad.as_ref().and_then(|bad| bad.why.limited_by).is_some_and(LimitedBy::is_of_the_generator)
}

/// Maximum searches in a sentence.
const TOLD: usize = 3;

/// Several searches in a sentence.
pub(super) fn sentence(searches: &[CellSearch]) -> String {
    let tell = |search: &CellSearch| {
        let rate = column(&search.result).unwrap_or_else(|| "no result".to_owned());
        format!("{}: {rate}", search.name())
    };
    let more = searches.len().saturating_sub(TOLD);
    let more = (more > 0).then(|| format!("{more} more in status.searches"));
    searches.iter().take(TOLD).map(tell).chain(more).collect::<Vec<_>>().join("; ")
}

fn result(standing: &SearchState, steps: usize) -> SearchResult {
    let (good, bad) = match &standing.answer {
        Some(answer) => (answer.last_good, answer.first_bad.as_ref()),
        None => (standing.good, standing.bad.as_ref()),
    };
    let (ending, message) = match &standing.answer {
        Some(answer) => {
            let (ending, message) = ended(&answer.ending, &wanted(&standing.objective), good, bad, steps);
            (Some(ending), message)
        }
        None => (None, so_far(&wanted(&standing.objective), good, bad)),
    };
    SearchResult {
        ending,
        message: human::shorten(&message, MESSAGE_BYTES).into_owned(),
        last_good_per_second: good,
        first_bad_per_second: bad.map(|bad| bad.rate),
        why: bad.map(|bad| bad.why.message.clone()),
        limited_by: bad.and_then(|bad| bad.why.limited_by),
        component: bad.and_then(|bad| bad.why.component.clone()),
        contradicted: standing.answer.as_ref().map_or(0, |answer| answer.contradicted.into()),
    }
}

fn so_far(wanted: &str, good: Option<u64>, bad: Option<&Bad<Why>>) -> String {
    let [good, bad] = [good, bad.map(|bad| bad.rate)].map(|rate| rate.map(human::exact_rate));
    match (good, bad) {
        (Some(good), Some(bad)) => format!("so far {wanted} holds at {good} and not at {bad}"),
        (Some(good), None) => format!("so far {wanted} holds at {good}"),
        (None, Some(bad)) => format!("so far {wanted} does not hold at {bad}"),
        (None, None) => format!("no result yet for {wanted}"),
    }
}

fn ended(
    ending: &Ending<Why>,
    wanted: &str,
    good: Option<u64>,
    bad: Option<&Bad<Why>>,
    steps: usize,
) -> (SearchEnding, String) {
    let good = good.map(human::exact_rate).unwrap_or_default();
    let not =
        bad.map_or_else(String::new, |bad| format!("; not at {}: {}", human::exact_rate(bad.rate), because(&bad.why)));
    let ours = bad.and_then(|bad| Some((bad, way_out(bad.why.limited_by?)?)));
    match (ending, ours) {
        (Ending::Found, Some((bad, way_out))) => {
            let message = format!(
                "{wanted} holds at {good}, and the target may hold more: at {} the load generator was the limit: {}; \
                 {way_out}",
                human::exact_rate(bad.rate),
                because(&bad.why)
            );
            (SearchEnding::GeneratorLimited, message)
        }
        (Ending::MinFailed, Some((bad, way_out))) => {
            let message = format!(
                "no result for the target: the load generator was the limit at the lowest rate of the search, {}: {}; \
                 {way_out}",
                human::exact_rate(bad.rate),
                because(&bad.why)
            );
            (SearchEnding::Inconclusive, message)
        }
        (ending, _) => ended_at_the_target(ending, wanted, &good, &not, bad, steps),
    }
}

/// Like `ended`, if the load generator was not the limit.
fn ended_at_the_target(
    ending: &Ending<Why>,
    wanted: &str,
    good: &str,
    not: &str,
    bad: Option<&Bad<Why>>,
    steps: usize,
) -> (SearchEnding, String) {
    match ending {
        Ending::Found => (SearchEnding::Found, format!("{wanted} holds up to {good}{not}")),
        Ending::MaxPassed => {
            let message = format!("{wanted} holds at {good}, the highest rate of the search: raise search.rate.max");
            (SearchEnding::MaxPassed, message)
        }
        Ending::MinFailed => {
            let lowest = "does not hold at the lowest rate of the search: lower search.rate.min or relax the objective";
            (SearchEnding::MinFailed, format!("{wanted} {lowest}{not}"))
        }
        Ending::NotConfirmed => {
            let varies = varies(bad);
            (SearchEnding::Inconclusive, format!("no rate passed three fresh trials in a row: {varies}{not}"))
        }
        Ending::Unusable(why) => {
            (SearchEnding::Inconclusive, format!("too many steps were unusable, the last because {}", why.message))
        }
        Ending::TooLong => {
            (SearchEnding::Inconclusive, format!("inconclusive after {}{not}", human::counted(steps as u64, "step")))
        }
        Ending::OtherSearch => {
            (SearchEnding::Inconclusive, "the steps in the status belong to another search".to_owned())
        }
    }
}

/// Why a rate may pass at one time and fail at another, with a remedy.
fn varies(bad: Option<&Bad<Why>>) -> String {
    let limit = bad.and_then(|bad| bad.why.limited_by);
    let wider = "a wider search.rate.toleranceBasisPoints may help";
    match (limit, limit.and_then(way_out)) {
        (_, Some(way_out)) => {
            format!("the load generator was the limit, not the target: {way_out}, or use a quieter machine")
        }
        (Some(LimitedBy::Target), _) => format!("the target holds the same rate only sometimes: {wider}"),
        _ => format!("the same rate holds only sometimes: {wider}"),
    }
}

/// Remedy for a saturated load generator; none if it was not the limit.
fn way_out(limit: LimitedBy) -> Option<&'static str> {
    match limit {
        LimitedBy::GeneratorCPU => {
            Some("add shards (spec.shards.count), or give them more CPU (spec.shards.template.resources)")
        }
        LimitedBy::GeneratorNetwork => Some("add shards on more machines (spec.shards.count)"),
        LimitedBy::Connections => Some("allow more requests in flight (spec.load.connections, spec.load.pipeline)"),
        LimitedBy::Rate | LimitedBy::Target | LimitedBy::Client | LimitedBy::Unknown => None,
    }
}

/// Result of a finished search for a table column: a bound if only that is known, otherwise nothing.
pub(super) fn column(found: &SearchResult) -> Option<String> {
    let good = found.last_good_per_second.map(human::rate);
    match found.ending {
        Some(SearchEnding::Found) => good,
        Some(SearchEnding::GeneratorLimited | SearchEnding::MaxPassed) | None => good.map(|good| format!(">= {good}")),
        Some(SearchEnding::MinFailed) => found.first_bad_per_second.map(|bad| format!("< {}", human::rate(bad))),
        Some(SearchEnding::Inconclusive) => None,
    }
}

/// Adds the results of several searches to the verdict on their steps.
pub(super) fn conclude_all(searches: &[CellSearch], verdict: &mut Verdict) {
    for search in searches.iter().rev().filter(|one| one.result.ending == Some(SearchEnding::GeneratorLimited)) {
        let held = verdict.limited_by;
        conclude(&search.result, verdict);
        // Each search has a limit of its own.
        (verdict.limited_by, verdict.component) = (held, None);
        if let Some(reason) = verdict.reasons.first_mut() {
            reason.message = format!("{}: {}", search.name(), reason.message);
        }
    }
    verdict.reasons.truncate(REASONS);
}

/// Adds the result of a search to the verdict on its steps: each step may be measured correctly although the search ended at the load
/// generator's limit.
pub(super) fn conclude(found: &SearchResult, verdict: &mut Verdict) {
    match found.ending {
        Some(SearchEnding::MaxPassed) => verdict.limited_by = LimitedBy::Rate,
        Some(SearchEnding::Found | SearchEnding::GeneratorLimited) => {
            verdict.limited_by = found.limited_by.unwrap_or(LimitedBy::Unknown);
            verdict.component.clone_from(&found.component);
        }
        Some(SearchEnding::MinFailed | SearchEnding::Inconclusive) | None => {}
    }
    if found.ending == Some(SearchEnding::GeneratorLimited) {
        let held =
            found.last_good_per_second.map_or_else(String::new, |good| format!(" than {}", human::exact_rate(good)));
        let way_out = found.limited_by.and_then(way_out).unwrap_or_default();
        let reason = VerdictReason {
            reason: ReasonKind::GeneratorLimited,
            severity: VerdictValue::Degraded,
            message: format!("the load generator ended the search, and the target may hold more{held}: {way_out}"),
        };
        verdict.value = verdict.value.max(reason.severity);
        verdict.reasons.insert(0, reason);
    }
}

fn because(why: &Why) -> String {
    match limit(why.limited_by, why.component.as_deref()) {
        Some(limit) => format!("{}, limited by {limit}", why.message),
        None => format!("{}, the limit is unknown", why.message),
    }
}

/// The saturated part, for people, if it is known.
fn limit(limited_by: Option<LimitedBy>, component: Option<&str>) -> Option<String> {
    let limit = limited_by.filter(|limit| *limit != LimitedBy::Unknown)?;
    Some(component.map_or_else(|| format!("{limit:?}"), |component| format!("{limit:?} ({component})")))
}

/// A step in a line for people, to follow its number.
pub(super) fn describe(step: &SearchStep) -> String {
    let rate = human::exact_rate(step.rate_per_second);
    let nth = step.confirmation.map_or_else(String::new, |nth| format!(", {nth} of {CONFIRMATIONS} times"));
    let why = Why {
        message: step.why.clone().unwrap_or_default(),
        limited_by: step.limited_by,
        component: step.component.clone(),
    };
    match step.outcome {
        StepOutcome::Passed => format!(" at {rate}: passed{nth}"),
        StepOutcome::Failed => format!(" at {rate}: failed: {}", because(&why)),
        StepOutcome::Unusable => format!(" at {rate}: unusable: {}", why.message),
    }
}

/// Returns whether the verdict on the whole search depends on a step: failed steps are part of any search.
pub(super) fn counts(step: Option<&SearchStep>) -> bool {
    step.is_none_or(|step| step.outcome == StepOutcome::Passed)
}

#[cfg(test)]
mod tests;
