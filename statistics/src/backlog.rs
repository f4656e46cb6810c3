//! Backlog growth in an open loop. The backlog is the number of requests that are due and have no outcome yet.
//!
//! A target that serves less than the offered rate builds a queue. As long as the queue fits into the connections, no request fails and the
//! rate looks met; only the backlog shows it. One high point proves nothing, because a target catches up after a pause. So the window is
//! cut into ten parts, and their mean backlogs must rise as [`crate::steady`] tests a throughput, by more than a stable queue fluctuates.

use std::time::Duration;

use crate::steady;

const PARTS: usize = 10;

/// The minimum of Kendall's S of ten parts for a significant rise, as in the verdict on a throughput.
const TREND: i64 = 31;

/// In shorter windows, growth cannot be distinguished from the first requests' round trips.
const SHORTEST: Duration = Duration::from_secs(5);

/// The minimum growth, as a share of the requests due in the window: half of the effect to be detected, 0.5 %.
const GROWTH: f64 = 0.0025;

/// The queue of a target below its capacity fluctuates by this many requests.
const LEAST: f64 = 16.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// In requests per second.
    pub per_second: f64,
    /// As a share of the rate.
    pub share: f64,
}

/// Backlog growth over a window of constant rate. None if it did not grow, or if the window is too short. `completed` has the number of
/// requests that ended in each interval of the window. `failed` is the number of requests due in it that ended otherwise; their times are
/// unknown, so growth up to `failed` is attributed to them.
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
mod tests;
