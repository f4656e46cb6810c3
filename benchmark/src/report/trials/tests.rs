use redisbench_wire::histogram::Kind as HistogramKind;
use redisbench_wire::snapshot::{Cache, CacheCounts, Snapshot, VerificationCounts};
use serde_json::json;

use super::super::repeats::{Experiment, Together, cells};
use super::super::why::{FIELDS, MANY};
use super::*;
use crate::api::preset::PRESETS;
use crate::api::status::{Artifact, SearchStep, Setting, StepOutcome, VerificationResult};
use crate::api::sweep::{MOST_SWEPT, MOST_TRIALS};
use crate::api::{RedisBenchmark, sweepable_fields};
use crate::report::Measurement;
use crate::report::conditions::{condition, find};
use crate::sample::{encoded, open_loop, outcome, snapshot, subject};

fn finished(trial: u32, of: u32) -> Finished {
    let spec = open_loop(1);
    let mut outcome = outcome(vec![snapshot(0, &[1_450_000; 10_000])]);
    outcome.of = of;
    let setting = Setting { preset: Some("get".into()), ..Setting::default() };
    let kind = Kind { setting, ..Kind::default() };
    let trial = crate::plan::Trial { index: trial, of, kind, ..crate::sample::trial(spec) };
    Finished::of("sample", "run", &trial, outcome).unwrap()
}

#[test]
fn a_line_says_what_the_result_says() {
    let finished = finished(1, 3);
    let (line, result) = (finished.line.clone().unwrap(), finished.measurement.unwrap().result);
    assert_eq!((line.index, line.setting.preset.as_deref(), line.attempt), (1, Some("get"), 1));
    assert_eq!(line.requests, Some(TrialRequests::from(&result.requests)));
    assert_eq!(line.achieved_per_second, Some(result.throughput.achieved_per_second));
    assert_eq!(line.p99_nanoseconds, result.response_time.p99_nanoseconds);
    assert_eq!((line.state, line.verdict), (TrialOutcome::Completed, Some(VerdictValue::Valid)));
    assert_eq!(finished.pieces.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["trial-1.result.json"]);
}

/// The line of a trial of this shard alone, in a sweep of `swept` fields.
fn line_of(snapshot: Snapshot, of: u32, swept: usize) -> TrialLine {
    let mut outcome = outcome(vec![snapshot]);
    outcome.of = of;
    let parameters = sweepable_fields().into_iter().take(swept).map(|field| (field, "1".to_owned())).collect();
    let kind = Kind { setting: Setting { parameters, ..Setting::default() }, ..Kind::default() };
    let trial = crate::plan::Trial { index: 1, of, kind, ..crate::sample::trial(open_loop(1)) };
    Finished::of("sample", "run", &trial, outcome).unwrap().line.unwrap()
}

#[test]
fn a_line_has_the_counts_of_caches_where_there_is_room() {
    let counts = CacheCounts { hits: 900, misses: 100, invalidations: 54, ..CacheCounts::default() };
    let cache = |of: u32, swept: usize| {
        let mut snapshot = snapshot(0, &vec![1_000_000; 10_000]);
        snapshot.cache = Some(Cache { counts, invalidation: encoded(HistogramKind::Request, &[]) });
        line_of(snapshot, of, swept).cache
    };
    let counted = TrialCache { hits: 900, misses: 100, hit_basis_points: 9_000, invalidations: 54 };
    assert_eq!([(3, 0), (MANY, 1), (MANY - 1, 4)].map(|(of, swept)| cache(of, swept)), [Some(counted); 3]);
    assert_eq!(cache(MANY, 2), None);
    assert_eq!(line_of(snapshot(0, &vec![1_000_000; 10_000]), 3, 0).cache, None);
}

#[test]
fn a_line_has_the_largest_share_of_the_load_generator() {
    let share = |service: u64, of: u32, swept: usize| {
        let mut snapshot = snapshot(0, &vec![1_000_000; 10_000]);
        snapshot.latency.service = Some(encoded(HistogramKind::Request, &vec![service; 10_000]));
        snapshot.generator.waited_for_room = Some(0);
        line_of(snapshot, of, swept).generator_share_basis_points
    };
    // A histogram has a precision of one thousandth.
    assert!(share(500_000, 3, 0).is_some_and(|share| share.abs_diff(5_000) < 10));
    // Nothing is known: no request was late, and the time of unread replies is unknown.
    assert_eq!(share(1_000_000, 3, 0), None);
    // Many lines with long settings have no room.
    assert!(share(500_000, MANY, FIELDS).is_some() && share(500_000, MANY - 1, FIELDS + 1).is_some());
    assert_eq!(share(500_000, MANY, FIELDS + 1), None);
}

#[test]
fn an_only_trial_has_no_line() {
    let finished = finished(0, 1);
    assert_eq!(finished.line, None);
    assert_eq!(finished.pieces[0].0, "result.json");
}

#[test]
fn trials_follow_one_another_to_the_end() {
    let benchmark = crate::api::read(&crate::sample::object()).unwrap();
    let subject = subject(&benchmark);
    let mut status = RedisBenchmarkStatus::default();
    for trial in 0..2 {
        let (why, message) = subject.next_trial(&mut status, &finished(trial, 3));
        assert_eq!(why, "TrialOver");
        assert_eq!(message, format!("trial {} of 3, get, 1.00k/s, p99 1.45 ms, verdict Valid", trial + 1));
        let next = status.trial.as_ref().unwrap();
        assert_eq!((next.index, next.attempt, status.phase), (trial + 1, 0, Phase::Preparing));
    }
    let (why, message) = subject.over(&mut status, &finished(2, 3)).unwrap();
    assert_eq!((why.as_str(), message.as_str()), ("Succeeded", "3 trials completed, worst verdict Valid"));
    assert_eq!((status.trials.len(), status.result.as_ref()), (3, None));
    assert_eq!(crate::api::status_problems(&status), []);
}

#[test]
fn the_worst_trial_decides_whether_a_run_is_verified() {
    let benchmark = crate::api::read(&crate::sample::object()).unwrap();
    let subject = subject(&benchmark);
    let verified = |lost_writes: [u64; 3]| {
        let mut status = RedisBenchmarkStatus::default();
        for (index, lost_writes) in (0..).zip(lost_writes) {
            let mut finished = finished(index, 3);
            let counts = VerificationCounts { checked: 500, lost_writes, ..VerificationCounts::default() };
            let found = VerificationResult { counts, ..VerificationResult::default() };
            finished.measurement.as_mut().unwrap().result.verification = Some(found);
            if index < 2 {
                subject.next_trial(&mut status, &finished);
            } else {
                subject.over(&mut status, &finished);
            }
        }
        let condition = find(&status, condition::VERIFIED).unwrap();
        (condition.status.clone(), condition.message.clone())
    };
    let told = |(status, message): (&str, &str)| (status.to_owned(), message.to_owned());
    assert_eq!(verified([0, 0, 0]), told(("True", "trial 3 of 3: 500 replies were checked, no problems found")));
    assert_eq!(verified([0, 7, 0]), told(("False", "trial 2 of 3: 500 replies were checked: 7 lost writes")));
}

/// Lines of a run of `most` trials with 10 repeats of each cell and this number of swept fields, in which every text has its maximum
/// length.
fn long_lines(most: u32, swept: usize) -> Vec<TrialLine> {
    let last = finished(most - 1, most);
    // A million requests per second for eleven days.
    let many = 1_000_000_000_000;
    let requests =
        TrialRequests { scheduled: many, succeeded: many, errors: many, unsent: many, in_flight: many, unknown: many };
    let mut fields = sweepable_fields();
    // The fields with the longest names that can be combined: at most one pattern of keys has fields.
    fields.retain(|field| !field.contains(".gaussian.") && !field.contains(".zipf."));
    fields.sort_by_key(|field| std::cmp::Reverse(field.len()));
    let field = |field: &String| (field.clone(), "1000000000000".to_owned());
    let preset = PRESETS.iter().map(|preset| preset.name).max_by_key(|name| name.len()).unwrap();
    let line = |index| TrialLine {
        index,
        setting: Setting {
            preset: Some(preset.to_owned()),
            parameters: fields[..swept].iter().map(field).collect(),
            ..Setting::default()
        },
        cell: index % (most / 10),
        repeat: Some(index / (most / 10)),
        attempt: 1_000,
        requests: Some(requests),
        misses: Some(many),
        cache: has_room_for_cache(most, swept).then_some(TrialCache {
            hits: many,
            misses: many,
            hit_basis_points: 10_000,
            invalidations: many,
        }),
        achieved_per_second: Some(1_000_000_000),
        mean_nanoseconds: Some(600_000_000_000),
        p50_nanoseconds: Some(600_000_000_000),
        p99_nanoseconds: Some(600_000_000_000),
        p999_nanoseconds: Some(600_000_000_000),
        failed_thresholds: 64,
        generator_share_basis_points: has_room_for_shares(most, swept, false).then_some(10_000),
        limited_by: Some(LimitedBy::GeneratorNetwork),
        verdict: Some(VerdictValue::Degraded),
        why: Some("w".repeat(why_bytes(most, swept))),
        ..last.line.clone().unwrap()
    };
    (0..most).map(line).collect()
}

/// The same lines of clients in the place of targets.
fn of_clients(lines: Vec<TrialLine>, swept: usize) -> Vec<TrialLine> {
    let most = u32::try_from(lines.len()).unwrap();
    let line = |line: TrialLine| TrialLine {
        setting: Setting { client: line.setting.target, target: None, ..line.setting },
        cpu_per_request_nanoseconds: Some(1_000_000_000),
        generator_share_basis_points: has_room_for_shares(most, swept, true).then_some(10_000),
        why: line.why.filter(|_| has_room_for_why(most, swept, true)),
        ..line
    };
    lines.into_iter().map(line).collect()
}

/// Lines of a comparison of `targets` at the maximum number of settings, with 5 trials of each.
fn compared(lines: Vec<TrialLine>, targets: u32) -> Vec<TrialLine> {
    let line = |line: TrialLine| {
        let setting = line.index / (5 * targets);
        let value = |field| (field, (1_000_000_000_000 + u64::from(setting)).to_string());
        TrialLine {
            setting: Setting {
                target: Some(long_name(line.index % targets)),
                parameters: line.setting.parameters.into_keys().map(value).collect(),
                ..line.setting
            },
            cold: true,
            cell: setting * targets + line.index % targets,
            repeat: Some(line.index / targets % 5),
            ..line
        }
    };
    lines.into_iter().map(line).collect()
}

fn long_name(target: u32) -> String {
    format!("{}{target}", "t".repeat(31))
}

/// The status at the end of a run with these lines.
fn largest(benchmark: &RedisBenchmark, mut lines: Vec<TrialLine>) -> RedisBenchmarkStatus {
    let most_bytes = if benchmark.spec.search.is_some() { 320 << 10 } else { 256 << 10 };
    let most = u32::try_from(lines.len()).unwrap();
    let mut last = finished(most - 1, most);
    let whole = Measurement::read(last.pieces.iter().map(|(_, piece)| piece.as_str())).unwrap();
    last.line = lines.pop();
    let mut status = RedisBenchmarkStatus { trials: lines, ..RedisBenchmarkStatus::default() };
    status.artifacts = (0..most)
        .map(|trial| Artifact {
            name: format!("trial-{trial}.result.json"),
            config_map: format!("{}-result-{trial}", "n".repeat(46)),
        })
        .collect();
    subject(benchmark).over(&mut status, &last);
    let mut together = Together::default();
    together.add(&whole).unwrap();
    let mut experiment = Experiment::default();
    for cell in cells(&benchmark.spec, &status.trials) {
        experiment.add(cell, Some(&together)).unwrap();
    }
    experiment.tell(&mut status);
    assert_eq!(crate::api::status_problems(&status), []);
    let bytes = serde_json::to_vec(&status).unwrap().len();
    assert!(bytes <= most_bytes, "{bytes} bytes");
    status
}

#[test]
fn the_largest_plan_fits_into_a_status_that_the_schema_accepts() {
    let benchmark = crate::api::read(&crate::sample::object()).unwrap();
    // The lines of fewer trials have whole reasons.
    for most in [u32::try_from(MOST_TRIALS).unwrap(), MANY - 10] {
        for swept in 0..=usize::try_from(MOST_SWEPT).unwrap() {
            let status = largest(&benchmark, long_lines(most, swept));
            // Omitted entries are counted, and listed in the artifact.
            assert_eq!(status.repeats.len() as u64 + status.repeats_left_out, u64::from(most / 10));
        }
    }
}

#[test]
fn the_reason_of_one_of_a_few_trials_is_whole() {
    let mut late = snapshot(0, &vec![1_000_000; 10_000]);
    late.latency.service = Some(encoded(HistogramKind::Request, &vec![500_000; 10_000]));
    late.generator.waited_for_room = Some(0);
    let why = |of| line_of(late.clone(), of, 1).why.unwrap();
    assert!(why(MANY).ends_with('…'), "{}", why(MANY));
    let (whole, cut) = (why(MANY - 1), why(MANY));
    assert!(whole.len() > 96 && !whole.ends_with('…') && whole.starts_with(cut.trim_end_matches('…')), "{whole}");
    let line = TrialLine { verdict: Some(VerdictValue::Degraded), ..line_of(late.clone(), 3, 0) };
    assert_eq!(worst(&[line], 3).unwrap().reasons[0].message, format!("trial 2 of 3: {whole}"));
}

#[test]
fn the_most_searches_fit_as_well() {
    let mut object = crate::sample::object();
    object["spec"]["load"] = json!({"type": "OpenLoop", "connections": 8, "warmup": "2s"});
    object["spec"]["search"] =
        json!({"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}});
    object["spec"]["sweep"] = json!([{"field": "load.pipeline", "values": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}]);
    let benchmark = crate::api::read(&object).unwrap();
    let most = u32::try_from(MOST_TRIALS).unwrap();
    for swept in 0..=usize::try_from(MOST_SWEPT).unwrap() {
        let step = SearchStep {
            rate_per_second: 1_000_000_000,
            confirmation: Some(3),
            outcome: StepOutcome::Failed,
            why: Some("w".repeat(160)),
            limited_by: Some(LimitedBy::GeneratorNetwork),
            component: Some("c".repeat(288)),
            busiest_server_basis_points: Some(10_000),
        };
        let searched = |line: TrialLine| TrialLine {
            cell: line.index / 25,
            repeat: None,
            search: Some(search::fitted(step.clone(), most, swept)),
            ..line
        };
        let status = largest(&benchmark, long_lines(most, swept).into_iter().map(searched).collect());
        assert_eq!(status.searches.len(), 10);
    }
}

#[test]
fn the_largest_comparison_fits_as_well() {
    let mut object = crate::sample::object();
    let target = object["spec"]["targets"][0].clone();
    let named = |index| {
        let mut target = target.clone();
        target["name"] = json!(long_name(index));
        target
    };
    object["spec"]["comparison"] = json!({"baseline": long_name(0)});
    object["spec"]["repeats"] = json!({"count": 5});
    // These numbers give the most trials, and the most results.
    let most = usize::try_from(MOST_SWEPT).unwrap();
    for (targets, settings, results, swept) in
        [(2, 25, 25, most), (2, 25, 25, FIELDS), (7, 7, 42, most), (8, 6, 42, most)]
    {
        object["spec"]["targets"] = (0..targets).map(named).collect();
        let benchmark = crate::api::read(&object).unwrap();
        let status = largest(&benchmark, compared(long_lines(targets * settings * 5, swept), targets));
        assert_eq!(status.comparison.len() as u64 + status.comparison_left_out, results);
        assert!(status.comparison.iter().all(|one| one.metrics.len() == 5 && one.pairs == 5));
        assert_eq!(status.repeats.len() as u64 + status.repeats_left_out, u64::from(targets * settings));
        let clients = of_clients(compared(long_lines(targets * settings * 5, swept), targets), swept);
        largest(&benchmark, clients);
    }
}

#[test]
fn all_trials_together_have_the_room_of_one() {
    let piece = |of| finished(0, of).pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>();
    // A small result is never shortened, however many trials there are.
    assert_eq!(piece(2), piece(9));
    let most = u32::try_from(MOST_TRIALS).unwrap();
    assert!(piece(most) * usize::try_from(MOST_TRIALS).unwrap() <= 64 << 20);
}

#[test]
fn of_many_doubtful_trials_the_worst_are_named() {
    let of = |index: u32, verdict| {
        let line = finished(index, 40).line.unwrap();
        TrialLine { verdict: Some(verdict), why: Some("why".into()), ..line }
    };
    let mut lines: Vec<_> = (0..30).map(|index| of(index, VerdictValue::Degraded)).collect();
    lines.push(of(30, VerdictValue::Invalid));
    lines.push(of(31, VerdictValue::Valid));
    let verdict = worst(&lines, 40).unwrap();
    assert_eq!(doubtful(&lines).len(), 31);
    assert_eq!((verdict.value, verdict.reasons.len()), (VerdictValue::Invalid, 16));
    assert_eq!(verdict.reasons[0].message, "trial 31 of 40, get: why");
    assert_eq!(verdict.reasons[1].message, "trial 1 of 40, get: why");
    assert_eq!(worst(&[], 40), None);
}

#[test]
fn a_sweep_over_shards_says_from_where_on_the_target_is_the_limit() {
    use LimitedBy::{Connections, GeneratorCPU, GeneratorNetwork, Target, Unknown};
    let trials = |limits: &[(u32, LimitedBy)], field: &str| -> Vec<TrialLine> {
        let line = |&(shards, limit): &(u32, LimitedBy)| TrialLine {
            setting: Setting { parameters: [(field.to_owned(), shards.to_string())].into(), ..Setting::default() },
            limited_by: Some(limit),
            ..finished(0, 2).line.unwrap()
        };
        limits.iter().map(line).collect()
    };
    let drawn = [(12, Target), (1, GeneratorNetwork), (16, Target), (8, GeneratorNetwork)];
    let told = turning_point(&trials(&drawn, "shards.count")).unwrap();
    assert_eq!(told, "up to 8 shards the load generator's network was the limit, from 12 on the target");
    for silent in [
        [(1, GeneratorNetwork), (2, GeneratorNetwork)],
        [(1, Target), (2, Target)],
        [(1, Target), (2, GeneratorCPU)],
        [(1, Unknown), (2, Target)],
        [(1, Connections), (2, Target)],
    ] {
        assert_eq!(turning_point(&trials(&silent, "shards.count")), None, "{silent:?}");
    }
    assert_eq!(turning_point(&trials(&drawn, "load.connections")), None);
    assert_eq!(turning_point(&[]), None);
}
