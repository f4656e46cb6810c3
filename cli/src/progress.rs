//! Live progress on standard error: a full-screen view on a terminal, otherwise a line at intervals. Uses only the object, so that
//! `local`, `run` and `watch` show the same.

mod frame;
mod model;
#[cfg(test)]
mod picture;
mod reason;
pub mod rows;
mod screen;
mod state;
mod view;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkSpec, RedisBenchmarkStatus};
use redisbench_benchmark::human;

use reason::Reason;
use state::{state, troubles};
use view::View;

pub use reason::reasons;

/// The interval between lines without a view.
const LINE_INTERVAL: Duration = Duration::from_secs(3);

/// Shows the progress of a benchmark.
#[derive(Debug, Default)]
pub struct Display {
    /// None without a terminal.
    view: Option<View>,
    shown: Option<Line>,
    /// Printed reasons: the trial and the name.
    told: BTreeSet<(u32, String)>,
}

/// The last printed line's state and time.
#[derive(Debug)]
struct Line {
    phase: Phase,
    text: String,
    at: Timestamp,
}

impl Display {
    /// With plain lines if `plain`, or if there is no terminal.
    pub fn new(plain: bool) -> Self {
        Self { view: if plain { None } else { View::open() }, ..Self::default() }
    }

    /// Shows the state of `benchmark` at `now`. May be called at any rate.
    pub fn show(&mut self, benchmark: &RedisBenchmark, now: Timestamp) {
        if let Some(view) = &mut self.view {
            return view.show(benchmark, now);
        }
        let Some(status) = &benchmark.status else { return };
        let line = line(&benchmark.spec, status, now);
        if self.is_due(status.phase, &line, now) {
            eprintln!("{line}");
            self.shown = Some(Line { phase: status.phase, text: line, at: now });
        }
        for reason in self.news(status) {
            eprintln!("  {reason}");
        }
    }

    /// Reasons that were not printed in this trial.
    fn news(&mut self, status: &RedisBenchmarkStatus) -> Vec<Reason> {
        let trial = status.trial.as_ref().map_or(0, |trial| trial.index);
        reasons(status).into_iter().filter(|reason| self.told.insert((trial, reason.name.clone()))).collect()
    }

    /// Prints a note. While the view is shown, it is part of the view, and printed at its end.
    pub fn note(&mut self, text: &str) {
        if let Some(view) = &mut self.view {
            view.note(text);
        } else {
            eprintln!("{text}");
        }
    }

    /// Gives the terminal back, before a prompt or at the end. The next [`Self::show`] takes it again.
    pub fn clear(&mut self) {
        if let Some(view) = &mut self.view {
            view.clear();
        }
    }

    fn is_due(&self, phase: Phase, text: &str, now: Timestamp) -> bool {
        self.shown.as_ref().is_none_or(|shown| {
            let age = Duration::try_from(now.duration_since(shown.at)).unwrap_or_default();
            shown.phase != phase || (age >= LINE_INTERVAL && shown.text != text)
        })
    }
}

/// One line: phase, time, rate, percentiles, errors and rates of client-side caches, or what the benchmark is waiting for.
pub fn line(spec: &RedisBenchmarkSpec, status: &RedisBenchmarkStatus, now: Timestamp) -> String {
    let mut parts = state(spec, status, now);
    if status.phase == Phase::Running {
        let progress = status.progress.clone().unwrap_or_default();
        parts.push(human::rate(progress.achieved_per_second));
        let quantiles = [
            ("p50", progress.p50_nanoseconds),
            ("p99", progress.p99_nanoseconds),
            ("p99.9", progress.p999_nanoseconds),
        ];
        parts.extend(
            quantiles.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", human::latency(value?)))),
        );
        let errors = status.summary.as_ref().and_then(|summary| summary.errors.as_ref());
        parts.extend(errors.map(|errors| format!("errors {errors}")));
        let caches = [("hits", progress.cache_hits_per_second), ("invalidations", progress.invalidations_per_second)];
        parts.extend(caches.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", human::rate(value?)))));
    }
    parts.extend(troubles(status));
    parts.join("   ")
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::status::{
        Progress, ReasonKind, ShardCounts, Summary, TrialStatus, VerdictReason, VerdictValue,
    };
    use serde_json::json;

    use super::*;
    use crate::manifest::parse;
    use crate::manifest::tests::MINIMAL;

    fn manifest() -> String {
        MINIMAL.replace("duration: 10s", "duration: 1m, warmup: 5s")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn running() -> RedisBenchmarkStatus {
        let start_at = Some(serde_json::from_value(json!("1970-01-01T00:01:40.000000Z")).unwrap());
        RedisBenchmarkStatus {
            phase: Phase::Running,
            trial: Some(TrialStatus { index: 0, of: 1, attempt: 1, start_at, setting: None }),
            progress: Some(Progress {
                percent: 30,
                achieved_per_second: 5000,
                p99_nanoseconds: Some(1_450_000),
                measuring: true,
                ..Progress::default()
            }),
            summary: Some(Summary { errors: Some("0 (0 %)".to_owned()), ..Summary::default() }),
            shards: Some(ShardCounts { desired: 2, running: 2, ..ShardCounts::default() }),
            ..RedisBenchmarkStatus::default()
        }
    }

    #[test]
    fn running_says_rate_latency_errors_and_time() {
        let spec = parse(&manifest()).unwrap().benchmark.spec;
        let mut status = running();
        let progress = status.progress.as_mut().unwrap();
        (progress.p50_nanoseconds, progress.p999_nanoseconds) = (Some(312_000), Some(9_100_000));
        assert_eq!(
            line(&spec, &status, at(120)),
            "Running   20s of 1m05s   5.00k/s   p50 312 µs   p99 1.45 ms   p99.9 9.10 ms   errors 0 (0 %)"
        );
        status = running();
        assert_eq!(line(&spec, &status, at(120)), "Running   20s of 1m05s   5.00k/s   p99 1.45 ms   errors 0 (0 %)");
        let progress = status.progress.as_mut().unwrap();
        (progress.cache_hits_per_second, progress.invalidations_per_second) = (Some(20_000), Some(3));
        assert_eq!(
            line(&spec, &status, at(120)),
            "Running   20s of 1m05s   5.00k/s   p99 1.45 ms   errors 0 (0 %)   hits 20.0k/s   invalidations 3/s"
        );
        status = running();
        status.shards = Some(ShardCounts { desired: 2, running: 1, lost: 1, ..ShardCounts::default() });
        assert_eq!(
            line(&spec, &status, at(102)),
            "Running   2s, warming up   5.00k/s   p99 1.45 ms   errors 0 (0 %)   1 of 2 shards lost"
        );
    }

    #[test]
    fn a_trial_of_several_says_what_it_is_of() {
        let spec = parse(&manifest()).unwrap().benchmark.spec;
        let mut status = running();
        let trial = status.trial.as_mut().unwrap();
        (trial.index, trial.of, trial.setting) = (1, 12, Some("load.connections=64, repeat 2".to_owned()));
        assert_eq!(
            line(&spec, &status, at(120)),
            "Running   trial 2 of 12: load.connections=64, repeat 2   20s of 1m05s   5.00k/s   p99 1.45 ms   errors 0 (0 %)"
        );
    }

    #[test]
    fn a_load_without_an_end_says_so() {
        let spec = parse(&manifest().replace("duration: 1m, ", "")).unwrap().benchmark.spec;
        let text = line(&spec, &running(), at(120));
        assert!(text.starts_with("Running   20s, until aborted   5.00k/s"), "{text}");
        let trace = "trace: {configMapRef: {name: monday, key: monitor.txt}}";
        let once = manifest().replace("operations: [{name: get, command: GET __key__}]", trace);
        let once = once.replace("duration: 1m, warmup: 5s", "warmup: 0s");
        let text = line(&parse(&once).unwrap().benchmark.spec, &running(), at(120));
        assert!(text.starts_with("Running   20s, until the recording ends   5.00k/s"), "{text}");
    }

    #[test]
    fn a_measurement_of_few_requests_is_no_warmup() {
        let spec =
            parse(&manifest().replace("warmup: 5s", "warmup: 30s, warmupEnds: WhenSettled")).unwrap().benchmark.spec;
        let mut status = running();
        let progress = status.progress.as_mut().unwrap();
        (progress.p99_nanoseconds, progress.achieved_per_second) = (None, 7);
        assert_eq!(line(&spec, &status, at(120)), "Running   20s   7/s   errors 0 (0 %)");
        status.progress.as_mut().unwrap().measuring = false;
        assert_eq!(line(&spec, &status, at(120)), "Running   20s, warming up   7/s   errors 0 (0 %)");
    }

    #[test]
    fn preparing_says_what_is_waited_for() {
        let spec = parse(&manifest()).unwrap().benchmark.spec;
        let mut status = running();
        status.phase = Phase::Preparing;
        status.shards = Some(ShardCounts { desired: 2, armed: 1, ..ShardCounts::default() });
        assert_eq!(line(&spec, &status, at(0)), "Preparing   1 of 2 shards are armed   preload 30 %");
    }

    #[test]
    fn lines_come_with_a_new_phase_or_with_news_after_a_while() {
        let shown = Line { phase: Phase::Running, text: "a".to_owned(), at: at(100) };
        let display = Display { shown: Some(shown), ..Display::default() };
        assert!(!display.is_due(Phase::Running, "b", at(102)));
        assert!(display.is_due(Phase::Running, "b", at(103)));
        assert!(!display.is_due(Phase::Running, "a", at(200)));
        assert!(display.is_due(Phase::Collecting, "a", at(100)));
        assert!(Display::default().is_due(Phase::Pending, "", at(0)));
    }

    #[test]
    fn a_reason_is_news_once_in_each_trial() {
        let (mut display, mut status) = (Display::default(), running());
        let mut news = |status: &RedisBenchmarkStatus| -> Vec<String> {
            display.news(status).iter().map(ToString::to_string).collect()
        };
        assert_eq!(news(&status), [""; 0]);
        status.progress.as_mut().unwrap().reasons = vec![VerdictReason {
            reason: ReasonKind::ShardLost,
            severity: VerdictValue::Invalid,
            message: "1 of 2 shards are lost".to_owned(),
        }];
        assert_eq!(news(&status), ["Invalid ShardLost: 1 of 2 shards are lost"]);
        let slow = json!({"name": "slow", "outcome": "Failed", "message": "p99 is 2 ms; must be at most 1 ms"});
        status.thresholds = vec![serde_json::from_value(slow).unwrap()];
        assert_eq!(news(&status), ["Invalid threshold slow: p99 is 2 ms; must be at most 1 ms"]);
        assert_eq!(news(&status), [""; 0]);
        status.trial.as_mut().unwrap().index = 1;
        assert_eq!(news(&status).len(), 2);
    }
}
