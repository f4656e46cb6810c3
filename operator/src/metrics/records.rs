//! Finished trials that this process conducted. Statuses lack their histograms, bytes and kinds of error.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::trial::{DETAILED, TrialSample};

/// The most records. One takes a few KiB, or 100 KiB with many operations, nodes and percentiles.
const RECORDS: usize = 300;

/// With the UIDs of their benchmarks, the newest last.
#[derive(Debug, Default)]
pub struct Records(VecDeque<(String, Arc<TrialSample>)>);

impl Records {
    /// Adds a trial of the benchmark `uid`, and drops those beyond the bounds.
    pub fn add(&mut self, uid: &str, trial: TrialSample) {
        let index = trial.setting.trial;
        self.0.retain(|(known, old)| {
            known != uid || (old.setting.trial != index && old.setting.trial.saturating_add(DETAILED) > index)
        });
        self.0.push_back((uid.to_owned(), Arc::new(trial)));
        if self.0.len() > RECORDS {
            self.0.pop_front();
        }
    }

    /// The trials of the benchmark `uid`, by index.
    pub fn of(&self, uid: &str) -> BTreeMap<u32, Arc<TrialSample>> {
        let own = self.0.iter().filter(|(known, _)| known == uid);
        own.map(|(_, trial)| (trial.setting.trial, trial.clone())).collect()
    }

    pub fn forget(&mut self, uid: &str) {
        self.0.retain(|(known, _)| known != uid);
    }
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::conductor::ConductProgress;

    use super::super::Setting;
    use super::*;

    #[test]
    fn the_newest_trials_are_kept() {
        let mut records = Records::default();
        let trial = |trial| {
            TrialSample::live(Setting { trial, ..Setting::default() }, &ConductProgress::default(), &[], |_, _| {
                Vec::new()
            })
        };
        for index in [0, 0].into_iter().chain(0..12) {
            records.add("long", trial(index));
        }
        assert_eq!(records.of("long").into_keys().collect::<Vec<_>>(), (2..12).collect::<Vec<_>>());
        for other in 10..RECORDS {
            records.add(&other.to_string(), trial(0));
        }
        assert_eq!(records.of("long").len(), 10);
        records.add("one more", trial(0));
        assert_eq!((records.of("long").len(), records.of("one more").len()), (9, 1));
        records.forget("long");
        assert!(records.of("long").is_empty());
    }
}
