//! Whether a throughput over time has settled.
//!
//! The test is a trend: a straight line through the throughput of equal windows (least squares). What it climbs or falls from the
//! first window to the end of the last, as a share of the mean, is the **drift**. A measurement is *not settled* if the drift is
//! beyond the tolerance and beyond chance. Neither alone would do: a quiet target shows a drift of a thousandth for certain, and a noisy
//! one drifts by 10 % without meaning it.
//!
//! Chance is judged by Student's t from what a cubic leaves of the windows, not the line: a warm-up and a fill are bent, and their bend
//! is no noise. Neighbouring windows are alike, so n of them count as n (1 - r) / (1 + r), where r is the correlation of
//! neighbours (Santer et al. 2000); that of so few windows comes out too low, on average by about 1/n, which is put back.
//!
//! Others were looked at. MSER-5 (White 1997) says where to cut a warm-up, and always finds a place; whether what is left is
//! steady it does not say. Kalibera and Jones (2013) leave that to a person. `DaCapo`'s rule, the last three iterations
//! within 3 %, takes slow drift for steady and noise for drift.

use std::time::Duration;

use crate::student::{Confidence, two_sided};
use crate::summary::mean;

/// The most windows that a series is cut into.
pub const MOST_WINDOWS: usize = 30;

/// The fewest windows that say anything.
pub const FEWEST_WINDOWS: usize = 10;

/// The highest power of the curve that noise is told from.
const DEGREE: usize = 3;

/// What counts as settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The drift, as a share of the mean, up to which a throughput is steady whatever chance says.
    pub tolerance: f64,
    /// How sure to be of a drift beyond that.
    pub confidence: Confidence,
}

impl Rule {
    /// 10 % and 99.9 %. Noise that lasts for seconds looks like a drift in a measurement of seconds: with less, clean
    /// measurements of noisy targets would be called unsteady.
    pub const USUAL: Self = Self { tolerance: 0.1, confidence: Confidence::BEYOND_DOUBT };
}

/// The straight line through a throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How many windows there are.
    pub windows: usize,
    /// By what share of the mean the line rises (or falls, below 0) over all windows.
    pub drift: f64,
    /// How often chance alone gives a drift this far from 0.
    pub p_value: f64,
}

/// Whether a throughput has settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// Nothing speaks against it.
    Settled(Trend),
    /// It rose or fell by more than the tolerance, and by more than chance.
    NotSettled(Trend),
    /// Fewer than [`FEWEST_WINDOWS`], or nothing was done in them.
    Unknown,
}

/// A series of counts at equal intervals as windows of equal length: of a second or more, and at most [`MOST_WINDOWS`]. What is
/// left at the end and makes no whole window is dropped.
pub fn windows(interval: Duration, counts: &[u64]) -> Vec<f64> {
    let second = 1_000_000_000_u128.div_ceil(interval.as_nanos().max(1));
    let points = usize::try_from(second).unwrap_or(usize::MAX).max(counts.len().div_ceil(MOST_WINDOWS)).max(1);
    counts.chunks_exact(points).map(|window| window.iter().map(|&count| count as f64).sum()).collect()
}

/// The trend of a throughput; none of fewer than [`FEWEST_WINDOWS`], or if nothing was done in them.
pub fn trend(windows: &[f64]) -> Option<Trend> {
    let level = mean(windows);
    if windows.len() < FEWEST_WINDOWS || !level.is_finite() || level <= 0.0 {
        return None;
    }
    let count = windows.len() as f64;
    let mut left: Vec<f64> = windows.iter().map(|window| window - level).collect();
    let mut slope = 0.0;
    for (power, curve) in curves(windows.len()).iter().enumerate() {
        let share: f64 = curve.iter().zip(&left).map(|(curve, left)| curve * left).sum();
        left.iter_mut().zip(curve).for_each(|(left, curve)| *left -= share * curve);
        if power == 0 {
            slope = share;
        }
    }
    let squares: f64 = left.iter().map(|left| left * left).sum();
    let neighbours: f64 = left.windows(2).map(|two| two[0] * two[1]).sum();
    let alike = if squares > 0.0 { (neighbours / squares + 1.0 / count).clamp(0.0, 0.95) } else { 0.0 };
    let worth = count * (1.0 - alike) / (1.0 + alike);
    let degrees = (worth - (DEGREE + 1) as f64).max(1.0);
    let error = (squares / degrees).sqrt();
    // A curve that leaves nothing: what rounding made of that is no noise.
    let p_value = if error <= level * 1e-12 {
        if slope.abs() <= level * 1e-12 { 1.0 } else { 0.0 }
    } else {
        two_sided(degrees, slope / error)
    };
    // The line's slope is in lengths of the first curve, whose steps are one over its own length.
    let steps = (count * (count * count - 1.0) / 12.0).sqrt();
    Some(Trend { windows: windows.len(), drift: slope / steps * count / level, p_value })
}

/// The curves from the straight line up to the cubic at so many places: of length 1, and at right angles to each other and to the
/// mean (Gram and Schmidt).
fn curves(places: usize) -> Vec<Vec<f64>> {
    let middle = (places as f64 - 1.0) / 2.0;
    let mut curves: Vec<Vec<f64>> = vec![vec![1.0 / (places as f64).sqrt(); places]];
    for _ in 0..DEGREE {
        // The next power is the last curve times the place.
        let last = curves.last().cloned().unwrap_or_default();
        let mut curve: Vec<f64> =
            last.iter().enumerate().map(|(place, last)| last * (place as f64 - middle) / middle).collect();
        for other in &curves {
            let share: f64 = curve.iter().zip(other).map(|(one, other)| one * other).sum();
            curve.iter_mut().zip(other).for_each(|(one, other)| *one -= share * other);
        }
        let length = curve.iter().map(|one| one * one).sum::<f64>().sqrt();
        for one in &mut curve {
            *one /= length;
        }
        curves.push(curve);
    }
    curves.remove(0);
    curves
}

/// Whether a measurement was steady: only what is beyond the tolerance and beyond chance is not.
pub fn steadiness(windows: &[f64], rule: &Rule) -> Steadiness {
    match trend(windows) {
        None => Steadiness::Unknown,
        Some(trend) if trend.drift.abs() > rule.tolerance && trend.p_value < rule.confidence.error() => {
            Steadiness::NotSettled(trend)
        }
        Some(trend) => Steadiness::Settled(trend),
    }
}

/// From which window on the rest is settled, for saying how much longer a warm-up should be. 0 if all of it is; none if not
/// even the last [`FEWEST_WINDOWS`] are.
pub fn settles_at(windows: &[f64], rule: &Rule) -> Option<usize> {
    let last = windows.len().checked_sub(FEWEST_WINDOWS)?;
    (0..=last).find(|&from| matches!(steadiness(&windows[from..], rule), Steadiness::Settled(_)))
}

/// Whether a warm-up may end: the drift of the last [`FEWEST_WINDOWS`] is within the tolerance. This asks for more than a
/// measurement must show: a warm-up can wait.
pub fn has_settled(windows: &[f64], rule: &Rule) -> bool {
    let last = windows.len().checked_sub(FEWEST_WINDOWS).and_then(|from| trend(&windows[from..]));
    last.is_some_and(|trend| trend.drift.abs() <= rule.tolerance)
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
