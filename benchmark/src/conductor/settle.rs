//! A warm-up that ends once the throughput of all shards together has settled: looked at in rounds, and ended at one instant.

use std::collections::VecDeque;

use redisbench_statistics::steady;
use redisbench_wire::MeasureRequest;
use redisbench_wire::snapshot::{Snapshot, Stage};

use super::barrier::{ACKNOWLEDGE_BEFORE, lead};
use super::clock::nanoseconds;
use super::drive::{Conductor, Stop};
use super::shards::{Shard, Standing};
use super::{Journal, ShardCalls};
use crate::verdict::STEADY;

/// As many rounds as the rule is for.
const ROUNDS: usize = 10;

/// The throughput of a warm-up, round after round.
#[derive(Debug, Default)]
pub struct Settling {
    /// Of each shard, when it was last looked at and what had succeeded then.
    last: Vec<Option<(u64, u64)>>,
    rates: VecDeque<f64>,
    /// The end has been ordered.
    over: bool,
}

impl Settling {
    /// Looks at the newest snapshots of all shards. Says whether the last rounds have no drift.
    fn look(&mut self, snapshots: &[Option<&Snapshot>]) -> bool {
        let seen: Option<Vec<(u64, u64)>> = snapshots
            .iter()
            .map(|snapshot| {
                let warm = snapshot.filter(|snapshot| snapshot.stage == Stage::Warmup)?;
                Some((warm.taken_nanoseconds, warm.warmup.succeeded))
            })
            .collect();
        // One has not begun, is lost, or is not warming up any more.
        let Some(seen) = seen else { return false };
        self.last.resize(seen.len(), None);
        let mut rate = Some(0.0);
        for ((taken, succeeded), last) in seen.into_iter().zip(&mut self.last) {
            let before = last.filter(|(before, _)| *before < taken);
            let since =
                before.map(|(before, known)| succeeded.saturating_sub(known) as f64 * 1e9 / (taken - before) as f64);
            rate = rate.zip(since).map(|(sum, since)| sum + since);
            *last = Some((taken, succeeded));
        }
        self.rates.extend(rate);
        while self.rates.len() > ROUNDS {
            self.rates.pop_front();
        }
        let rates: Vec<f64> = self.rates.iter().copied().collect();
        rates.len() == ROUNDS && rates.iter().all(|rate| *rate > 0.0) && steady::drift(&rates, &STEADY).is_none()
    }
}

/// What became of the end of a warm-up.
pub enum Settled {
    /// Nothing yet, or all shards know of it.
    Fine,
    /// Some shards measure from another instant than the others: the attempt is worth nothing.
    Torn(String),
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Ends the warm-up if it may end and the throughput has settled.
    pub async fn look_at_warmup(&mut self) -> Result<Settled, Stop> {
        if !self.shards.first().is_some_and(|shard| shard.plan.settle) {
            return Ok(Settled::Fine);
        }
        if let Some(why) = torn(&self.shards) {
            return Ok(Settled::Torn(why));
        }
        let snapshots: Vec<_> = self.shards.iter().map(|shard| shard.snapshot.as_ref()).collect();
        let settled = !self.settling.over && self.settling.look(&snapshots);
        let Some(start_at) = self.start_at.filter(|_| settled && !self.start_is_rough) else {
            return Ok(Settled::Fine);
        };
        let lead = lead(self.clock_uncertainty.unwrap_or_default() * 2, self.shards.len());
        let from = self.clock.now().saturating_add(nanoseconds(lead));
        let after_nanoseconds = u64::try_from(from.saturating_sub(start_at)).unwrap_or(0);
        self.settling.over = true;
        // It ends by itself before that.
        if after_nanoseconds >= self.shards[0].plan.warmup_nanoseconds {
            return Ok(Settled::Fine);
        }
        let request = MeasureRequest { epoch: self.config.epoch, attempt: self.attempt, after_nanoseconds };
        let until = self.clock.instant(from) - ACKNOWLEDGE_BEFORE;
        tracing::info!(milliseconds = after_nanoseconds / 1_000_000, "the throughput has settled");
        let told = self.tell(&Standing::Running, until, move |calls, endpoint, trial| async move {
            calls.measure(&endpoint, trial, &request).await
        });
        let torn = |why| Settled::Torn(format!("not all shards heard of the end of the warm-up: {why}"));
        Ok(told.await?.map_or_else(torn, |_| Settled::Fine))
    }
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
    Some(format!("shard {} measures from another instant than the others", other.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conductor::tests::snapshot;

    fn warm(taken: u64, succeeded: u64) -> Snapshot {
        let mut snapshot = snapshot(0, 1, 1);
        (snapshot.stage, snapshot.taken_nanoseconds, snapshot.warmup.succeeded) = (Stage::Warmup, taken, succeeded);
        snapshot
    }

    /// In which round, from 0, two shards of this throughput in each second are called settled.
    fn settles(rate: impl Fn(u64) -> u64) -> Option<u64> {
        let mut settling = Settling::default();
        let mut sum = 0;
        (0..60).find(|second| {
            sum += rate(*second);
            let (one, other) = (warm((second + 1) * 1_000_000_000, sum), warm((second + 1) * 1_000_000_000 + 7, sum));
            settling.look(&[Some(&one), Some(&other)])
        })
    }

    #[test]
    fn an_even_throughput_has_settled_after_ten_rounds() {
        assert_eq!(settles(|_| 1_000), Some(10));
    }

    #[test]
    fn one_that_rises_has_not_until_it_is_even() {
        assert_eq!(settles(|second| 1_000 + 50 * second), None);
        let round = settles(|second| 1_000 + 50 * second.min(20)).unwrap();
        assert!((20..30).contains(&round), "{round}");
    }

    #[test]
    fn nothing_is_said_of_shards_that_are_not_all_warming_up() {
        assert_eq!(settles(|_| 0), None);
        let mut settling = Settling::default();
        for second in 1..30 {
            assert!(!settling.look(&[Some(&warm(second * 1_000_000_000, second * 100)), None]));
        }
    }
}
