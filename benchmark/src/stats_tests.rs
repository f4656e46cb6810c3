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

fn names(latencies: &Latencies) -> Vec<&str> {
    latencies.beyond.iter().map(|beyond| beyond.quantile.as_str()).collect()
}

#[test]
fn all_that_had_no_answer_is_censored() {
    let tally = Tally { unanswered: 1, unsent: 1, in_flight: 1, ..Tally::default() };
    assert_eq!(names(&response_time(&measured(&[9; 4], tally))), ["p90", "p99", "p999", "p9999"]);
    assert_eq!(
        names(&response_time(&Measured { unknown: 1, ..measured(&[9; 4], tally) })),
        ["p50", "p90", "p99", "p999", "p9999"]
    );
    assert_eq!(response_time(&measured(&[], tally)).beyond[0].more_than_nanoseconds, 0);
}

#[test]
fn overflow_is_beyond_the_highest_value() {
    let longest = HIGHEST_NANOSECONDS + 7;
    let tally = Tally { overflow: 10, overflow_max_nanoseconds: longest, ..Tally::default() };
    let latencies = response_time(&measured(&[127; 90], tally));
    assert_eq!((latencies.p90_nanoseconds, latencies.max_nanoseconds), (Some(127), Some(longest)));
    assert_eq!(latencies.beyond[0].more_than_nanoseconds, HIGHEST_NANOSECONDS);
    assert_eq!(names(&latencies), ["p99", "p999", "p9999"]);
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
        mut values in prop::collection::vec(1_u64..10_000_000_000, 1..300),
        censored in 0_u64..100,
    ) {
        let latencies = response_time(&measured(&values, Tally { unsent: censored, ..Tally::default() }));
        values.sort_unstable();
        let all = values.len() as u64 + censored;
        let histogram = histogram(&values);
        let found = [
            latencies.p50_nanoseconds,
            latencies.p90_nanoseconds,
            latencies.p99_nanoseconds,
            latencies.p999_nanoseconds,
            latencies.p9999_nanoseconds,
        ];
        for (found, (name, quantile)) in found.into_iter().zip(QUANTILES) {
            let (whole, quantile) = (u64::from(WHOLE), u64::from(quantile));
            let hidden = censored > 0 && censored * whole >= (whole - quantile) * all;
            let at = usize::try_from((all * quantile).div_ceil(whole)).unwrap() - 1;
            let expected = (!hidden).then(|| histogram.highest_equivalent(values[at]).min(histogram.max()));
            prop_assert_eq!(found, expected, "{}", name);
            prop_assert_eq!(latencies.beyond.iter().any(|beyond| beyond.quantile == name), hidden);
        }
    }
}
