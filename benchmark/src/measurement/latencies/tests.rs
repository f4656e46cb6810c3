use proptest::prelude::*;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Tally;

use super::*;
use crate::sample;

/// Expected values below are the upper ends of buckets, which are 64 ns wide there.
fn histogram(values: &[u64]) -> Histogram<u64> {
    sample::histogram(Kind::Request, values)
}

fn measured(answered: &[u64], tally: Tally) -> Measured {
    Measured { tally, response: histogram(answered), ..Measured::default() }
}

/// Percentiles with only a bound.
fn beyond(latencies: &Latencies) -> Vec<&str> {
    let beyond = latencies.percentiles.iter().filter(|one| one.more_than_nanoseconds.is_some());
    beyond.map(|one| one.percentile.as_str()).collect()
}

const THREE: [Quantile; 3] = [Quantile::P50, Quantile::P90, Quantile::P95];

#[test]
fn all_that_had_no_answer_is_censored() {
    let tally = Tally { unanswered: 40, unsent: 40, in_flight: 40, ..Tally::default() };
    let of = |measured: Measured| response_time(&measured, &THREE);
    assert_eq!(beyond(&of(measured(&[9; 160], tally))), ["90", "95"]);
    assert_eq!(beyond(&of(Measured { unknown: 40, ..measured(&[9; 160], tally) })), ["50", "90", "95"]);
    assert_eq!(of(measured(&[], Tally { unsent: 200, ..tally })).percentiles[0].more_than_nanoseconds, Some(0));
}

const MILLISECOND: u64 = 1_000_000;

/// Within the histogram's three digits.
fn about(found: Option<u64>, expected: u64) -> bool {
    found.is_some_and(|found| found.abs_diff(expected) * 1000 <= expected)
}

#[test]
fn a_quantile_is_read_at_its_rank_over_all_scheduled() {
    // 1 ms to 10,000 ms, each once.
    let succeeded: Vec<u64> = (1..=10_000).map(|ms| ms * MILLISECOND).collect();
    let all = response_time(&measured(&succeeded, Tally::default()), &Quantile::USUAL);
    let found = [all.p50_nanoseconds, all.p95_nanoseconds, all.p99_nanoseconds, all.p999_nanoseconds];
    for (found, expected) in found.into_iter().zip([5_000, 9_500, 9_900, 9_990]) {
        assert!(about(found, expected * MILLISECOND), "{expected} ms: {all:?}");
    }
    // Needs ten times as many.
    assert_eq!(all.p9999_nanoseconds, None);
    assert!(beyond(&all).is_empty());
}

#[test]
fn requests_without_an_answer_count_as_longer_than_any() {
    // 985 answered in 1 to 985 ms; 10 without a reply and 5 never sent.
    let succeeded: Vec<u64> = (1..=985).map(|ms| ms * MILLISECOND).collect();
    let measured = measured(&succeeded, Tally { unanswered: 10, unsent: 5, ..Tally::default() });
    let all = response_time(&measured, &Quantile::USUAL);
    assert!(about(all.p90_nanoseconds, 900 * MILLISECOND), "rank 900 of 1000: {all:?}");
    assert_eq!((all.p99_nanoseconds, beyond(&all)), (None, vec!["99"]));
    let bound = all.percentiles.iter().find_map(|one| one.more_than_nanoseconds);
    assert!(about(bound, 985 * MILLISECOND), "more than {bound:?}");
    let of_succeeded = response_time_of_succeeded(&measured, &Quantile::USUAL);
    assert!(about(of_succeeded.p95_nanoseconds, 936 * MILLISECOND), "rank 936 of 985: {of_succeeded:?}");
    assert!(beyond(&of_succeeded).is_empty());
}

/// At 10 of 1000, rank 990 is the last that was answered, yet what lies above it is unknown.
#[test]
fn a_share_of_exactly_one_minus_q_is_beyond() {
    for (unanswered, known) in [(9, true), (10, false), (11, false)] {
        let tally = Tally { unanswered, ..Tally::default() };
        let answered = vec![MILLISECOND; usize::try_from(1000 - unanswered).unwrap()];
        let p99 = response_time(&measured(&answered, tally), &[]).p99_nanoseconds;
        assert_eq!((p99.is_some(), about(p99, MILLISECOND)), (known, known), "{unanswered}");
    }
}

#[test]
fn error_replies_have_a_latency_of_their_own() {
    let error_replies = Some(histogram(&[9 * MILLISECOND; 500]));
    let measured = Measured { error_replies, ..measured(&[MILLISECOND; 500], Tally::default()) };
    let (all, of_succeeded) = (response_time(&measured, &[]), response_time_of_succeeded(&measured, &[]));
    assert!(about(all.p50_nanoseconds, MILLISECOND));
    assert!(about(all.p90_nanoseconds, 9 * MILLISECOND));
    assert!(about(of_succeeded.p90_nanoseconds, MILLISECOND));
}

#[test]
fn nothing_measured_has_no_quantiles() {
    assert_eq!(response_time(&measured(&[], Tally::default()), &Quantile::USUAL), Latencies::default());
}

#[test]
fn overflow_is_beyond_the_highest_value() {
    let longest = HIGHEST_NANOSECONDS + 7;
    let tally = Tally { overflow: 20, overflow_max_nanoseconds: longest, ..Tally::default() };
    let latencies = response_time(&measured(&[127; 180], tally), &THREE);
    assert_eq!((latencies.p90_nanoseconds, latencies.max_nanoseconds), (Some(127), Some(longest)));
    assert_eq!(latencies.percentiles[2].more_than_nanoseconds, Some(HIGHEST_NANOSECONDS));
    assert_eq!(beyond(&latencies), ["95"]);
}

/// A quantile needs enough requests: p99.99 of 180 requests would be their maximum, and so would p99.9 and p99.
#[test]
fn a_quantile_is_not_given_of_too_few_requests() {
    let of = |count: u64| {
        response_time(&measured(&vec![1_000; usize::try_from(count).unwrap()], Tally::default()), &Quantile::USUAL)
    };
    let needed =
        |count: u64| -> Vec<u64> { of(count).percentiles.iter().filter_map(|one| one.needed_requests).collect() };
    assert_eq!(needed(180), [200, 1_000, 10_000, 100_000]);
    assert_eq!(needed(200), [1_000, 10_000, 100_000]);
    assert_eq!(needed(9_999), [10_000, 100_000]);
    let few = of(999);
    assert_eq!((few.p95_nanoseconds.is_some(), few.p99_nanoseconds, few.p999_nanoseconds), (true, None, None));
    let enough = of(1_000);
    assert_eq!((enough.p99_nanoseconds.is_some(), enough.p999_nanoseconds), (true, None));
    assert_eq!(response_time_quantile(&measured(&[1; 999], Tally::default()), Quantile::P99), None);
    assert_eq!(known(&histogram(&[1; 999]), Quantile::P99), None);
    assert!(known(&histogram(&[1; 1_000]), Quantile::P99).is_some());
    // A minimum count of one: the maximum is known for any number of requests.
    assert!(known(&histogram(&[1]), Quantile::parse("1").unwrap()).is_some());
}

#[test]
fn an_interval_is_that_of_its_ranks() {
    // 64 to 64,000 ns, one per bucket.
    let values: Vec<u64> = (1..=1_000).map(|step| step * 64).collect();
    let at = |rank: u64| Some(histogram(&values).highest_equivalent(rank * 64));
    let all = response_time(&measured(&values, Tally::default()), &[Quantile::P50, Quantile::P99]);
    let [median, p99] = &all.percentiles[..] else { panic!("{all:?}") };
    assert_eq!((median.low_nanoseconds, median.nanoseconds, median.high_nanoseconds), (at(469), at(500), at(532)));
    assert_eq!((p99.low_nanoseconds, p99.nanoseconds, p99.high_nanoseconds), (at(983), at(990), at(997)));
    // Five of them had no answer: rank 997 is one of these.
    let censored = response_time(&measured(&values[..995], Tally { unsent: 5, ..Tally::default() }), &[Quantile::P99]);
    let p99 = &censored.percentiles[0];
    assert_eq!((p99.low_nanoseconds, p99.nanoseconds, p99.high_nanoseconds), (at(983), at(990), None));
    let whole = Interval { low: at(983).unwrap(), high: at(997) };
    assert_eq!(interval(&histogram(&values), Quantile::P99), Some(whole));
    // Those in flight do not count.
    let in_flight = measured(&values, Tally { in_flight: 500, ..Tally::default() });
    assert_eq!(response_time_interval(&in_flight, Quantile::P99), Some(whole));
}

#[test]
fn there_is_no_mean_of_what_has_no_time() {
    let mean = |tally: Tally| response_time(&measured(&[1_000; 990], tally), &[]).mean_nanoseconds;
    assert!(mean(Tally::default()).is_some());
    for tally in [
        Tally { unanswered: 9, ..Tally::default() },
        Tally { unsent: 1, ..Tally::default() },
        Tally { in_flight: 1, ..Tally::default() },
        Tally { overflow: 1, ..Tally::default() },
    ] {
        assert_eq!(mean(tally), None, "{tally:?}");
    }
}

#[test]
fn ranks_are_exact_where_floats_are_not() {
    assert_eq!(rank(10_000, 999_900), 9_999);
    assert_eq!(rank(10_001, 999_900), 10_000);
    assert_eq!(rank(1, 500_000), 1);
    assert_eq!(rank(u64::MAX, 999_900), u64::MAX - u64::MAX / 10_000);
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_sorted_values(
        mut values in prop::collection::vec(1_u64..10_000_000_000, 1..1_500),
        censored in 0_u64..300,
    ) {
        let latencies =
            response_time(&measured(&values, Tally { unsent: censored, ..Tally::default() }), &Quantile::USUAL);
        values.sort_unstable();
        let all = values.len() as u64 + censored;
        let histogram = histogram(&values);
        let found = [
            latencies.p50_nanoseconds,
            latencies.p90_nanoseconds,
            latencies.p95_nanoseconds,
            latencies.p99_nanoseconds,
            latencies.p999_nanoseconds,
            latencies.p9999_nanoseconds,
        ];
        for (found, (quantile, percentile)) in found.into_iter().zip(Quantile::USUAL.iter().zip(&latencies.percentiles)) {
            let (whole, millionths) = (u64::from(WHOLE), u64::from(quantile.millionths()));
            let few = all < quantile.needs();
            let hidden = !few && censored > 0 && censored * whole >= (whole - millionths) * all;
            let at = usize::try_from((all * millionths).div_ceil(whole)).unwrap() - 1;
            let expected = (!few && !hidden).then(|| histogram.highest_equivalent(values[at]).min(histogram.max()));
            prop_assert_eq!(found, expected, "{}", quantile.name());
            prop_assert_eq!(percentile.nanoseconds, expected);
            prop_assert_eq!(percentile.more_than_nanoseconds.is_some(), hidden);
            prop_assert_eq!(percentile.needed_requests.is_some(), few);
            prop_assert!(percentile.low_nanoseconds <= percentile.nanoseconds);
            prop_assert!(percentile.high_nanoseconds.is_none_or(|high| Some(high) >= percentile.nanoseconds));
        }
    }
}

#[test]
fn a_curve_has_values_that_too_few_requests_support() {
    let values: Vec<u64> = (1..=1_000).map(|nth| nth * 1_000).collect();
    let unanswered = Tally { scheduled: 1_002, errors: 2, unanswered: 2, ..Tally::default() };
    let last = Quantile::of_millionths(999_999).unwrap();
    let points = curve(&measured(&values, unanswered), &[Quantile::P99, Quantile::P999, last]);
    let known = |nanoseconds: u64| Some(Kind::Request.empty().highest_equivalent(nanoseconds));
    assert_eq!((points[0].percentile.nanoseconds, points[0].at_rank), (known(992_000), known(992_000)));
    assert_eq!((points[1].percentile.needed_requests, points[1].at_rank), (Some(10_000), None));
    assert_eq!(points[2].at_rank, None);
    let answered = curve(&measured(&values, Tally::default()), &[Quantile::P999]);
    assert_eq!((answered[0].percentile.nanoseconds, answered[0].at_rank), (None, known(999_000)));
}
