//! Whether a throughput, or a latency, over time has settled.
//!
//! The measurement is cut into equal parts. It has *drifted* if the parts have a trend beyond chance, by the test of Mann and Kendall
//! (Kendall 1970), and if the line of Theil and Sen through them rises or falls by more than a tolerance. Neither alone
//! would do: a quiet target shows a drift of a thousandth for certain, and a noisy one drifts by 10 % without meaning it.
//! Both look at the order of the parts and at medians, so that one part that is off, such as a fork's, is no drift.
//!
//! Others were looked at. A line of least squares with Student's t needs to know how much neighbouring parts are alike, which ten
//! parts do not tell. MSER-5 (White 1997) says where to cut a warm-up, and always finds a place; whether what is left is
//! steady it does not say. Kalibera and Jones (2013) leave that to a person. `DaCapo`'s rule, the last three iterations
//! within 3 %, takes slow drift for steady and noise for drift.

use crate::summary::median;

/// Parts of a measurement whose latencies are compared.
const PARTS: usize = 10;

/// What counts as a drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Kendall's S from which on a trend is more than chance: of pairs of parts, how many more rise than fall.
    pub trend: i64,
    /// The change from the first part to the last, as a share of the median part, up to which a throughput is steady however
    /// certain the change is.
    pub tolerance: f64,
}

/// How numbers in a row rise or fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// Kendall's S: of all pairs, how many more rise than fall.
    pub s: i64,
    /// The change from one number to the next, by Theil and Sen: the median over all pairs. 0 of fewer than two.
    pub slope: f64,
}

/// The trend of `parts`.
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

/// By what share of the median part the throughput rose from the first of `parts` to the last, or fell, below 0; none if
/// it was steady by `rule`, or if nothing was done.
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

/// A latency of the first tenth of a measurement, and of the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The median of the first tenth's seconds.
    pub first: f64,
    /// The median of the last tenth's seconds.
    pub last: f64,
}

/// How a latency went by its value in each of some `seconds` in a row, if it drifted by `rule`. A tenth is the median of its seconds,
/// so that stalls, and replies that they delayed, move none of those that are longer than a few seconds. None if a tenth has no known
/// second.
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
#[path = "steady_tests.rs"]
mod tests;
