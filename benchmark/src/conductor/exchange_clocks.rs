//! Exchanges clocks with all shards until each is known precisely enough for a start.

use std::collections::VecDeque;
use std::time::Duration;

use super::event::Event;
use super::trial::{Conductor, Step};
use super::{Call, Ending, Failure, reason};

/// Consecutive clock exchanges with one shard.
const EXCHANGES: u32 = 5;

/// Rounds of exchanges before a clock counts as uncertain, and the time between them. Causes of a long round trip, such as the end of a
/// preload or other work on the machine, are often temporary, and one trial that fails ends an experiment of many.
const CLOCK_ROUNDS: u32 = 40;
const BETWEEN_CLOCK_ROUNDS: Duration = Duration::from_millis(250);

/// Concurrent clock exchanges: few, because waiting for a processor lengthens the round trip.
const CLOCKS_AT_ONCE: usize = 8;

pub struct ExchangeClocks {
    began: Duration,
    /// Number of rounds begun.
    rounds: u32,
    next_round_at: Duration,
    /// Shards that this round has not called yet.
    queue: VecDeque<usize>,
    /// Exchanges that each shard has left in this round.
    left: Vec<u32>,
}

impl ExchangeClocks {
    pub fn begin(conductor: &mut Conductor) -> Self {
        conductor.shards.iter_mut().for_each(|shard| shard.clock = None);
        let left = vec![0; conductor.shards.len()];
        Self { began: conductor.now, rounds: 0, next_round_at: conductor.now, queue: VecDeque::new(), left }
    }

    /// Returns false if a shard could not be reached, so that preparing continues.
    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<bool> {
        if let Event::Answered(answered) = event {
            let index = answered.ask.shard;
            if !conductor.shards[index].take_clock(*answered) {
                return Ok(Some(false));
            }
            self.left[index] = self.left[index].saturating_sub(1);
            if self.left[index] > 0 {
                conductor.call(index, Call::Clock);
            }
            self.next_round_at = conductor.now + BETWEEN_CLOCK_ROUNDS;
        }
        let allowed = conductor.config.limits.max_start_skew / 2;
        loop {
            while conductor.out.unanswered < CLOCKS_AT_ONCE
                && let Some(index) = self.queue.pop_front()
            {
                conductor.call(index, Call::Clock);
            }
            if conductor.out.unanswered > 0 {
                return Ok(None);
            }
            let clocks = conductor.shards.iter().map(|shard| shard.clock).enumerate();
            let vague = clocks.filter(|(_, clock)| clock.is_none_or(|clock| clock.half_round_trip() > allowed));
            let vague: VecDeque<_> = vague.map(|(index, _)| index).collect();
            if vague.is_empty() || self.rounds == CLOCK_ROUNDS {
                conductor.clocks_took = conductor.now.saturating_sub(self.began);
                return judge(conductor, allowed).map(|()| Some(true));
            }
            if conductor.now < self.next_round_at {
                conductor.out.wake_by(self.next_round_at);
                return Ok(None);
            }
            self.rounds += 1;
            self.left.fill(EXCHANGES);
            self.queue = vague;
        }
    }
}

fn judge(conductor: &mut Conductor, allowed: Duration) -> Result<(), Ending> {
    let worst = conductor
        .shards
        .iter()
        .filter_map(|shard| Some((shard.clock?.half_round_trip(), shard.index())))
        .max()
        .unwrap_or_default();
    conductor.clock_uncertainty = Some(worst.0);
    if worst.0 <= allowed {
        return Ok(());
    }
    let message = format!(
        "the clock uncertainty of shard {} is {} us, and maxStartSkew {} ms allows {} us; raise shards.maxStartSkew \
         or find what slows the network to the shard",
        worst.1,
        worst.0.as_micros(),
        conductor.config.limits.max_start_skew.as_millis(),
        allowed.as_micros()
    );
    Err(Ending::Failed(Failure::new(reason::CLOCK_UNCERTAIN, message)))
}
