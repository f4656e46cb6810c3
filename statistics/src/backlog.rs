//! Whether the backlog of an open loop grows: requests that are due and have no outcome yet.
//!
//! A target that serves less than it is asked for builds a queue. As long as the queue fits into the connections, no request fails
//! and the rate looks met; only the backlog shows it. One high point proves nothing: a pause of the target is caught up with.
//! So the window is cut into ten parts, and their mean backlogs must rise as [`crate::steady`] tests a throughput, by more than
//! a queue moves by itself.

use std::time::Duration;

use crate::steady;

/// Parts of the window.
const PARTS: usize = 10;

/// Kendall's S of ten parts from which on a rise is more than chance, as in the verdict on a throughput.
const TREND: i64 = 31;

/// Shorter windows do not tell growth from the first requests' round trips.
const SHORTEST: Duration = Duration::from_secs(5);

/// The share of the requests due in the window by which the backlog must grow: half of what is to be found, 0.5 %.
const GROWTH: f64 = 0.0025;

/// A queue below its capacity moves by this many requests on its own.
const LEAST: f64 = 16.0;

/// How a backlog grew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// By how many requests each second.
    pub per_second: f64,
    /// The same as a share of the rate.
    pub share: f64,
}

/// How the backlog of a constant rate grew over a window; none if it did not, or if the window is too short to say.
/// `completed` has the requests that ended in each interval of the window, and `failed` is how many of the requests due in it
/// ended otherwise. When these failed is not known, so growth up to their number counts as theirs.
pub fn growth(due_per_second: f64, interval: Duration, completed: &[u64], failed: u64) -> Option<Growth> {
    let each = completed.len() / PARTS;
    let seconds = interval.as_secs_f64() * (each * PARTS) as f64;
    if each == 0 || seconds < SHORTEST.as_secs_f64() {
        return None;
    }
    let due = due_per_second * seconds;
    let failed = (failed as f64).min(due);
    let ended = (due - failed) / (each * PARTS) as f64;
    let mut waiting = 0.0;
    let backlog: Vec<f64> = completed[..each * PARTS]
        .iter()
        .map(|&completed| {
            waiting += ended - completed as f64;
            waiting
        })
        .collect();
    let parts: Vec<f64> = backlog.chunks_exact(each).map(|part| part.iter().sum::<f64>() / each as f64).collect();
    let trend = steady::trend(&parts);
    let grown = trend.slope * PARTS as f64;
    if trend.s < TREND || grown <= (GROWTH * due).max(LEAST) + failed {
        return None;
    }
    let per_second = grown / seconds;
    Some(Growth { per_second, share: per_second / due_per_second })
}

#[cfg(test)]
#[path = "backlog_tests.rs"]
mod tests;
