use proptest::prelude::*;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Tally;

use super::*;

/// Expected values below are the upper ends of buckets, which are 64 ns wide there.
fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Kind::Request.empty();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

fn measured(answered: &[u64], tally: Tally) -> Measured {
    Measured { tally, unknown: 0, response: histogram(answered), service: None, error_replies: None }
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
