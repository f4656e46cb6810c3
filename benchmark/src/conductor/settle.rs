//! Ends the warm-up early, at one instant for all shards, once their total throughput over whole seconds is steady.

use std::ops::Range;

use redisbench_statistics::steady;
use redisbench_wire::AfterRequest;
use redisbench_wire::timeline::History;

use super::Call;
use super::broadcast::Broadcast;
use super::clock::{duration, nanoseconds};
use super::intervals::{ACKNOWLEDGE_BEFORE, lead, reach_all};
use super::seconds::warming_up;
use super::shards::{Shard, Standing};
use super::trial::Conductor;
use crate::api::settling::SETTLED_SECONDS;
use crate::verdict::STEADY;

const SECOND: u64 = 1_000_000_000;

/// Returns whether the throughput of the last seconds of `history` has no drift. All of them must belong to the warm-up.
fn settled(history: &History, warm: Range<u32>) -> bool {
    let end = history.complete();
    if end > warm.end || end < warm.start + SETTLED_SECONDS {
        return false;
    }
    let mut rates = [0.0; SETTLED_SECONDS as usize];
    for span in history.since(end - SETTLED_SECONDS).take_while(|span| span.end() <= end) {
        let place = span.second.checked_sub(end - SETTLED_SECONDS).and_then(|place| rates.get_mut(place as usize));
        // A longer span began before the last seconds.
        let Some(rate) = place.filter(|_| span.seconds == 1) else { return false };
        *rate = span.warmup.succeeded as f64;
    }
    rates.iter().all(|rate| *rate > 0.0) && steady::drift(&rates, &STEADY).is_none()
}

pub enum Settled {
    /// Not ended yet, or long ago.
    Fine,
    /// All shards must acknowledge this end.
    Ordered(Broadcast),
    /// Some shards begin to measure at another instant: the attempt is void.
    Torn(String),
}

impl Conductor {
    /// Orders the end of the warm-up if it may end early and the throughput is steady.
    pub fn look_at_warmup(&mut self) -> Settled {
        if !self.config.plan.settle {
            return Settled::Fine;
        }
        if let Some(why) = torn(&self.shards) {
            return Settled::Torn(why);
        }
        // It has no load any more, and would refuse.
        let leaves = |shard: &Shard| shard.standing == Standing::Running && shard.leaving.is_some();
        if self.shards.iter().any(leaves) {
            return Settled::Fine;
        }
        let warm = warming_up(&self.shards).filter(|_| self.settled_at.is_none());
        let settled = warm.is_some_and(|warm| settled(self.course.history(), warm));
        let Some(start_at) = self.start_at.filter(|_| settled && !self.start_is_rough) else {
            return Settled::Fine;
        };
        let lead = lead(self.clock_uncertainty.unwrap_or_default() * 2, reach_all(self.shards.len()));
        let from = self.clock().saturating_add(nanoseconds(lead));
        // Rounded up to a whole second, so that per-second counts cover the measurement from its first second.
        let after_nanoseconds = u64::try_from(from.saturating_sub(start_at)).unwrap_or(0).next_multiple_of(SECOND);
        self.settled_at = Some(self.now);
        // The warm-up ends by itself before that.
        if after_nanoseconds >= self.config.plan.warmup_nanoseconds {
            return Settled::Fine;
        }
        let request = AfterRequest { epoch: self.config.epoch, attempt: self.attempt, after_nanoseconds };
        tracing::info!(milliseconds = after_nanoseconds / 1_000_000, "the throughput has settled");
        match self.asks(&Standing::Running, |_| Some(Call::Measure(self.config.trial, request))) {
            Ok(asks) => {
                let until = duration(from).saturating_sub(ACKNOWLEDGE_BEFORE);
                Settled::Ordered(Broadcast::begin(self, asks, until))
            }
            Err(why) => Settled::Torn(unacknowledged(&why)),
        }
    }
}

pub fn unacknowledged(why: &str) -> String {
    format!("not all shards acknowledged the end of the warm-up: {why}")
}

/// Why the shards do not measure together, if they do not.
fn torn(shards: &[Shard]) -> Option<String> {
    let begins = shards.iter().filter_map(|shard| {
        let snapshot = shard.snapshot.as_ref()?;
        let since_start = |instant: u64| instant.saturating_sub(snapshot.window.start_nanoseconds);
        let window = &snapshot.window;
        (window.start_nanoseconds > 0).then(|| {
            (shard.index(), since_start(window.measure_from_nanoseconds), since_start(snapshot.taken_nanoseconds))
        })
    });
    let begins: Vec<_> = begins.collect();
    let first = begins.iter().map(|(_, from, _)| *from).min()?;
    let other = begins.iter().find(|(_, from, taken)| *from != first && *taken >= first)?;
    Some(format!("shard {} started measuring at a different instant than the others", other.0))
}

#[cfg(test)]
mod tests {
    use redisbench_wire::timeline::{Outcomes, Span};

    use super::*;

    /// The second, from 0, after which this throughput counts as steady.
    fn settles(rate: impl Fn(u32) -> u64) -> Option<u32> {
        let mut history = History::default();
        (0..60).find(|second| {
            let warmup = Outcomes { succeeded: rate(*second), ..Outcomes::default() };
            history.push(Span { second: *second, seconds: 1, warmup, ..Span::default() }, 3_600);
            settled(&history, 0..60)
        })
    }

    #[test]
    fn an_even_throughput_has_settled_after_ten_seconds() {
        assert_eq!(settles(|_| 1_000), Some(9));
    }

    #[test]
    fn one_that_rises_has_not_until_it_is_even() {
        assert_eq!(settles(|second| 1_000 + 50 * u64::from(second)), None);
        let second = settles(|second| 1_000 + 50 * u64::from(second.min(20))).unwrap();
        assert!((20..30).contains(&second), "{second}");
    }

    #[test]
    fn seconds_without_answers_have_not_settled() {
        assert_eq!(settles(|_| 0), None);
    }

    #[test]
    fn nothing_is_said_of_what_is_measured() {
        let mut history = History::default();
        let warmup = Outcomes { succeeded: 1_000, ..Outcomes::default() };
        (0..12).for_each(|second| history.push(Span { second, seconds: 1, warmup, ..Span::default() }, 3_600));
        assert_eq!([11, 12].map(|end| settled(&history, 0..end)), [false, true]);
    }
}
