//! Collects the shards' per-second counts. A shard's seconds are held until all shards have completed them, and then merged. No IO.
//!
//! Seconds are exact at any polling interval: a lost answer is requested again, and a late one completes seconds that other shards
//! completed earlier.

use std::ops::Range;

use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::timeline::{History, Span, kept_spans, merge};

use super::shards::{Shard, Standing};

const SECOND: u64 = 1_000_000_000;

/// Merged seconds of all shards.
#[derive(Debug, Default)]
pub struct Course {
    history: History,
    operations: usize,
    /// Minimum number of single seconds to keep.
    seconds: usize,
}

impl Course {
    /// For a mix of this many operations. At least the last `seconds` are kept one by one; older ones are merged into longer spans.
    pub fn new(operations: usize, seconds: usize) -> Self {
        Self { history: History::default(), operations, seconds }
    }

    /// Merges the seconds that all running shards have completed. Without running shards, merges all.
    pub fn advance(&mut self, shards: &mut [Shard]) {
        let running = shards.iter().filter(|shard| shard.standing == Standing::Running);
        let complete = running.map(|shard| shard.seconds.next()).min();
        let complete = complete.or_else(|| shards.iter().map(|shard| shard.seconds.next()).max()).unwrap_or_default();
        if complete <= self.history.complete() {
            return;
        }
        let spans = shards.iter_mut().flat_map(|shard| shard.seconds.until(complete)).collect();
        let merged = merge(spans);
        let nodes = merged.iter().map(|span| span.nodes.len()).max().unwrap_or_default();
        let kept = kept_spans(self.operations + nodes).max(self.seconds);
        for span in merged {
            self.history.push(span, kept);
        }
        self.history.complete_until(complete, kept);
    }

    /// Resets for another attempt.
    pub fn forget(&mut self) {
        self.history = History::default();
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// All seconds in order: merged ones, and those that not all shards have completed.
    pub fn all(&self, shards: &mut [Shard]) -> Vec<Span> {
        let rest = shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.seconds).into_rest());
        merge(self.history.since(0).cloned().chain(rest).collect())
    }
}

/// The whole seconds in which all shards measure, as far as reported.
pub fn measured(shards: &[Shard]) -> Option<Range<u32>> {
    // A shard that was cut short does not end the measurement of the others.
    let all_cut = shards.iter().all(Shard::is_cut_short);
    let measuring = shards.iter().filter(|shard| all_cut || !shard.is_cut_short());
    let snapshots = measuring.filter_map(|shard| shard.snapshot.as_ref());
    let begun = snapshots.filter(|snapshot| snapshot.window.start_nanoseconds > 0);
    let (mut start, mut end) = (None, u32::MAX);
    for snapshot in begun {
        start = start.max(Some(since_start(snapshot, snapshot.window.measure_from_nanoseconds).div_ceil(SECOND)));
        if snapshot.window.measure_to_nanoseconds > 0 {
            let to = since_start(snapshot, snapshot.window.measure_to_nanoseconds) / SECOND;
            end = end.min(u32::try_from(to).unwrap_or(u32::MAX));
        }
    }
    Some(u32::try_from(start?).unwrap_or(u32::MAX)..end)
}

/// The whole seconds in which all shards warm up. None before all have begun, and once one measures.
pub fn warming_up(shards: &[Shard]) -> Option<Range<u32>> {
    let mut end = u32::MAX;
    for shard in shards.iter().filter(|shard| !shard.is_cut_short()) {
        let snapshot = shard.snapshot.as_ref().filter(|snapshot| snapshot.stage == Stage::Warmup)?;
        let from = since_start(snapshot, snapshot.window.measure_from_nanoseconds) / SECOND;
        end = end.min(u32::try_from(from).unwrap_or(u32::MAX));
    }
    Some(0..end)
}

fn since_start(snapshot: &Snapshot, instant: u64) -> u64 {
    instant.saturating_sub(snapshot.window.start_nanoseconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redisbench_wire::snapshot::Window;
    use redisbench_wire::timeline::{Outcomes, SpanPart, Timeline};

    use super::*;
    use crate::conductor::tests::{part, snapshot};

    fn second(second: u32, succeeded: u64) -> Span {
        let warmup = Outcomes { succeeded, ..Outcomes::default() };
        Span { second, seconds: 1, warmup, parts: vec![SpanPart::default()], ..Span::default() }
    }

    fn told(from: u32, complete: u32, until: u32) -> Timeline {
        Timeline {
            from,
            complete,
            more: false,
            spans: (from..until).map(|at| second(at, 10 + u64::from(at))).collect(),
        }
    }

    fn shards(count: u32) -> Vec<Shard> {
        let mut shards: Vec<Shard> = (0..count).map(|shard| Shard::new(part(shard, count), String::new())).collect();
        for shard in &mut shards {
            shard.standing = Standing::Running;
        }
        shards
    }

    fn found(course: &Course) -> Vec<(u32, u64)> {
        course.history().since(0).map(|span| (span.second, span.warmup.succeeded)).collect()
    }

    #[test]
    fn a_second_is_merged_once_all_have_completed_it() {
        let (mut shards, mut course) = (shards(2), Course::new(1, 0));
        shards[0].seconds.take(told(0, 3, 4));
        course.advance(&mut shards);
        assert_eq!(found(&course), []);
        shards[1].seconds.take(told(0, 2, 3));
        course.advance(&mut shards);
        assert_eq!(found(&course), [(0, 20), (1, 22)]);
        // A repeated answer, and one to an older request.
        shards[1].seconds.take(told(0, 2, 3));
        shards[1].seconds.take(told(2, 4, 5));
        course.advance(&mut shards);
        assert_eq!(found(&course)[2..], [(2, 24)]);
        // Each shard has its own count of the merged seconds.
        assert_eq!([0..3, 1..2].map(|range| shards[0].seconds.succeeded(&range)), [10 + 11 + 12, 11]);
    }

    #[test]
    fn a_lost_shard_holds_up_nothing_and_is_in_the_sum() {
        let (mut shards, mut course) = (shards(2), Course::new(1, 0));
        shards[0].seconds.take(told(0, 4, 5));
        shards[1].seconds.take(told(0, 2, 3));
        shards[1].standing = Standing::Lost("evicted".into());
        course.advance(&mut shards);
        assert_eq!(found(&course), [(0, 20), (1, 22), (2, 12), (3, 13)]);
        let all: u64 = course.all(&mut shards).iter().map(|span| span.warmup.succeeded).sum();
        assert_eq!(all, (10 + 11 + 12 + 13 + 14) + (10 + 11 + 12));
    }

    #[test]
    fn a_shard_that_was_cut_short_ends_the_measurement_of_no_other() {
        let mut shards = shards(2);
        for (shard, seconds) in shards.iter_mut().zip([60, 20]) {
            let mut kept = snapshot(shard.index(), 1, 1);
            kept.window = Window {
                start_nanoseconds: SECOND,
                measure_from_nanoseconds: SECOND,
                measure_to_nanoseconds: (1 + seconds) * SECOND,
                ..Window::default()
            };
            (kept.aborted, kept.terminated) = (seconds == 20, seconds == 20);
            shard.snapshot = Some(kept);
        }
        assert_eq!(measured(&shards), Some(0..60));
        // If all were, the first counts.
        let kept = shards[0].snapshot.as_mut().unwrap();
        (kept.aborted, kept.terminated) = (true, true);
        assert_eq!(measured(&shards), Some(0..20));
    }

    proptest! {
        /// Each second is merged once with all counts, in any order of answers and with any of them lost.
        #[test]
        fn windows_do_not_depend_on_when_shards_are_asked(
            asked in prop::collection::vec((0_usize..3, 0..30_u32, any::<bool>()), 0..60),
        ) {
            let (mut shards, mut course) = (shards(3), Course::new(1, 0));
            let mut now = 0;
            for (shard, later, lost) in asked {
                now += later / 10;
                let from = shards[shard].seconds.next();
                if !lost {
                    shards[shard].seconds.take(told(from, now.max(from), now.max(from) + 1));
                }
                course.advance(&mut shards);
                let complete = shards.iter().map(|shard| shard.seconds.next()).min().unwrap();
                let expected: Vec<_> = (0..complete).map(|at| (at, 3 * (10 + u64::from(at)))).collect();
                prop_assert_eq!(found(&course), expected);
            }
        }
    }
}
