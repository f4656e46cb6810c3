//! Tests whether a throughput or a latency is steady over time.
//!
//! The measurement is cut into equal parts. It has *drifted* if the parts have a significant trend by the Mann-Kendall test (Kendall 1970),
//! and if the Theil-Sen line through them changes by more than a tolerance. One condition alone is not enough: a quiet target has a
//! significant drift of a thousandth, and a noisy one drifts by 10 % by chance. Both use the order of the parts and medians, so a single
//! outlier, such as a fork, is no drift.
//!
//! Alternatives were considered. Least squares with Student's t needs the autocorrelation, which ten parts do not show. MSER-5 (White 1997)
//! finds where to cut a warm-up, and always finds a place, but does not test whether the rest is steady. Kalibera and Jones (2013) leave
//! that to a person. `DaCapo`'s rule, the last three iterations within 3 %, takes slow drift for steady and noise for drift.

use crate::summary::median;

/// Parts of a measurement whose latencies are compared.
const PARTS: usize = 10;

/// The criteria of a drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The minimum of Kendall's S for a significant trend: the number of rising pairs of parts minus the falling ones.
    pub trend: i64,
    /// The largest change from the first part to the last, as a share of the median part, that still counts as steady however significant
    /// it is.
    pub tolerance: f64,
}

/// The trend of a sequence of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// Kendall's S: the number of rising pairs minus the falling ones.
    pub s: i64,
    /// The change from one number to the next by Theil-Sen: the median over all pairs. 0 for fewer than two.
    pub slope: f64,
}

pub(crate) fn trend(parts: &[f64]) -> Trend {
    let pairs = || (0..parts.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let difference = |(earlier, later): (usize, usize)| parts[later] - parts[earlier];
    let sign = |pair| match difference(pair) {
        rise if rise > 0.0 => 1,
        fall if fall < 0.0 => -1,
        _ => 0,
    };
    let slopes: Vec<f64> =
        pairs().map(|(earlier, later)| difference((earlier, later)) / (later - earlier) as f64).collect();
    Trend { s: pairs().map(sign).sum(), slope: if slopes.is_empty() { 0.0 } else { median(&slopes) } }
}

/// The change of throughput from the first of `parts` to the last, as a share of the median part; negative if it fell. None if it was
/// steady by `rule`, or if nothing was done.
pub fn drift(parts: &[f64], rule: &Rule) -> Option<f64> {
    let trend = trend(parts);
    if trend.s.abs() < rule.trend {
        return None;
    }
    let middle = median(parts);
    if middle <= 0.0 {
        return None;
    }
    let change = trend.slope * (parts.len() - 1) as f64 / middle;
    (change.abs() > rule.tolerance).then_some(change)
}

/// A latency in the first tenth of a measurement and in the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The median of the first tenth's seconds.
    pub first: f64,
    /// The median of the last tenth's seconds.
    pub last: f64,
}

/// The shift of a latency if it drifted by `rule`. `seconds` has its value in consecutive seconds, and a tenth is the median of its
/// seconds. So if a tenth is longer than a few seconds, stalls and the replies that they delayed do not move it. None if a tenth has no
/// known second.
pub fn shift(seconds: &[Option<f64>], rule: &Rule) -> Option<Shift> {
    let border = |part: usize| part * seconds.len() / PARTS;
    let tenth = |part: usize| -> Option<f64> {
        let known: Vec<f64> = seconds[border(part)..border(part + 1)].iter().copied().flatten().collect();
        (!known.is_empty()).then(|| median(&known))
    };
    let parts: Vec<f64> = (0..PARTS).map(tenth).collect::<Option<_>>()?;
    drift(&parts, rule)?;
    Some(Shift { first: *parts.first()?, last: *parts.last()? })
}

#[cfg(test)]
mod tests;
