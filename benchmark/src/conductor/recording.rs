//! The history of recording starts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

/// First and longest pause before another start is recorded.
const JOURNAL_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];

/// Maximum added to the lead for a slow journal.
const LONGEST_ALLOWANCE: Duration = Duration::from_secs(30);

/// History of recording starts.
#[derive(Debug, Default)]
pub struct Recording {
    pub failing_since: Option<Duration>,
    failures: u32,
    /// Added to the lead, for a slow journal.
    pub allowance: Duration,
}

impl Recording {
    /// Keeps the allowance: a slow journal usually stays slow.
    pub fn worked(&mut self) {
        *self = Self { allowance: self.allowance, ..Self::default() };
    }

    /// Gives the next record more time.
    pub fn took_too_long(&mut self, lead: Duration) {
        self.allowance = (self.allowance + lead).min(LONGEST_ALLOWANCE);
    }

    /// Pause before the next try: doubled each time, with jitter from the run's identity, so that runs which failed together do not retry
    /// together.
    pub fn pause(&mut self, run: &str) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let pause = JOURNAL_PAUSES[0].saturating_mul(1 << self.failures.min(8)).min(JOURNAL_PAUSES[1]);
        let mut hasher = DefaultHasher::new();
        (run, self.failures).hash(&mut hasher);
        pause / 2 + pause * u32::try_from(hasher.finish() % 1024).unwrap_or(0) / 1024
    }
}
