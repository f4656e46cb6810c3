//! Comparisons of our figures with those of a document.

use redisbench_statistics::Interval;

use crate::comparison::Metric;

/// The share by which throughputs must differ to count as different. The default of comparisons.
const EFFECT: f64 = 0.02;

/// A claim of a document about a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    Above(f64),
    Below(f64),
}

/// Says whether the claim holds, by the whole interval of our ratio.
pub fn verdict(bound: Bound, ours: Option<Interval>) -> &'static str {
    let Some(Interval { lower, upper }) = ours else { return "not measured" };
    let (holds, fails) = match bound {
        Bound::Above(limit) => (lower > limit, upper <= limit),
        Bound::Below(limit) => (upper < limit, lower >= limit),
    };
    match (holds, fails) {
        (true, _) => "holds",
        (_, true) => "does not hold",
        _ => "undecided",
    }
}

/// Says whether our comparison of throughputs has the direction of a document's ratio.
pub fn direction(theirs: f64, ours: Option<&Metric>) -> &'static str {
    let outcome = if theirs > 1.0 + EFFECT {
        "Faster"
    } else if theirs < 1.0 - EFFECT {
        "Slower"
    } else {
        "NoDifference"
    };
    match ours.map(|metric| metric.outcome.as_str()) {
        None => "not measured",
        Some("Inconclusive") => "undecided",
        Some(own) if own == outcome => "same direction",
        Some(_) => "other direction",
    }
}

/// Says whether a document's ratio is in our interval.
pub fn place(theirs: f64, ours: Option<&Metric>) -> &'static str {
    match ours.and_then(|metric| metric.interval) {
        None => "-",
        Some(interval) if interval.contains(theirs) => "inside",
        Some(interval) if theirs < interval.lower => "below",
        Some(_) => "above",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_judged_by_the_whole_interval() {
        let ours = Some(Interval { lower: 0.03, upper: 0.06 });
        let verdicts = [0.1, 0.06, 0.05, 0.03, 0.01].map(|limit| verdict(Bound::Below(limit), ours));
        assert_eq!(verdicts, ["holds", "undecided", "undecided", "does not hold", "does not hold"]);
        let verdicts = [0.1, 0.06, 0.05, 0.03, 0.01].map(|limit| verdict(Bound::Above(limit), ours));
        assert_eq!(verdicts, ["does not hold", "does not hold", "undecided", "undecided", "holds"]);
        assert_eq!(verdict(Bound::Above(1.0), None), "not measured");
    }

    #[test]
    fn a_direction_is_that_of_the_outcome() {
        let ours = |outcome: &str| Metric {
            name: "Throughput".to_owned(),
            outcome: outcome.to_owned(),
            ratio: Some(0.6),
            interval: Some(Interval { lower: 0.5, upper: 0.7 }),
        };
        for (theirs, outcome, expected) in [
            (0.68, "Slower", "same direction"),
            (0.68, "NoDifference", "other direction"),
            (0.99, "NoDifference", "same direction"),
            (9.1, "Faster", "same direction"),
            (9.1, "Inconclusive", "undecided"),
        ] {
            assert_eq!(direction(theirs, Some(&ours(outcome))), expected, "{theirs} {outcome}");
        }
        assert_eq!((direction(1.0, None), place(1.0, None)), ("not measured", "-"));
        let places = [0.4, 0.5, 0.7, 0.8].map(|theirs| place(theirs, Some(&ours("Slower"))));
        assert_eq!(places, ["below", "inside", "inside", "above"]);
    }
}
