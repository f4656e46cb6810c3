//! Parts of a measurement in which the load is constant. Each is judged for itself.

use std::ops::Range;

use redisbench_wire::plan::Load;

use super::thresholds::SHORTEST_STAGE;
use crate::api::Validated;
use crate::measurement::Outcome;
use crate::measurement::merge::{ALWAYS, completed_window};

/// A part of the measurement with a constant load: the whole, or a stage of an open loop.
#[derive(Debug)]
pub(super) struct Plateau {
    /// Requests per second of all operations; none in a closed loop.
    pub(super) rate: Option<u64>,
    /// In nanoseconds after the start. May exceed the measurement.
    pub(super) within: Range<u64>,
    /// Such as `stage peak`, or `stages[1]` if the stage has no name. None for the whole measurement.
    pub(super) stage: Option<String>,
    /// True if the measurement ends with it.
    pub(super) is_last: bool,
}

impl Plateau {
    pub(super) fn whole(rate: Option<u64>) -> Self {
        Self { rate, within: ALWAYS, stage: None, is_last: true }
    }

    pub(super) fn name(&self) -> &str {
        self.stage.as_deref().unwrap_or("the measurement")
    }

    /// A cause that a stage may have besides those of a whole measurement, as the beginning of a list.
    pub(super) fn cause(&self) -> &'static str {
        if self.stage.is_some() { "the queue of an earlier stage may drain, " } else { "" }
    }

    /// Advice that makes it steady.
    pub(super) fn remedy(&self) -> &'static str {
        match self.stage {
            None => "measure for longer, after a longer load.warmup",
            Some(_) => "lengthen the stage, or put another one of the same rate before it",
        }
    }
}

/// The whole measurement if the load has no stages. Otherwise all stages of constant rate, except those that are short and not the last.
pub(super) fn all(spec: &Validated, outcome: &Outcome) -> Vec<Plateau> {
    let own = spec.plan.workload.own_rates_per_second();
    let stages = match &spec.plan.load {
        Load::ClosedLoop | Load::Recorded { .. } => return vec![Plateau::whole(None)],
        Load::OpenLoop { rate_per_second, stages, .. } if stages.is_empty() => {
            return vec![Plateau::whole(Some(rate_per_second.saturating_add(own)))];
        }
        Load::OpenLoop { stages, .. } => stages,
    };
    let window = completed_window(outcome);
    let mut end = spec.plan.warmup_nanoseconds;
    let mut plateaus = Vec::new();
    for (number, (stage, name)) in stages.iter().zip(&spec.stage_names).enumerate() {
        let begin = end;
        end = begin.saturating_add(stage.nanoseconds);
        let measured = end.min(window.end).saturating_sub(begin.max(window.start));
        let is_last = measured > 0 && end >= window.end;
        if stage.from_per_second == stage.to_per_second && (is_last || measured >= SHORTEST_STAGE) {
            let position = || format!("stages[{number}]");
            plateaus.push(Plateau {
                rate: Some(stage.to_per_second.saturating_add(own)),
                within: begin..end,
                stage: Some(name.as_ref().map_or_else(position, |name| format!("stage {name}"))),
                is_last,
            });
        }
    }
    plateaus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, SECOND, outcome, snapshot};

    #[test]
    fn long_stages_of_constant_rate_are_judged_and_the_last_one_of_any_length() {
        let stages = serde_json::json!([
            {"name": "low", "duration": "12s", "rate": {"from": 500, "to": 500}},
            {"duration": "5s", "rate": {"from": 800, "to": 800}},
            {"duration": "12s", "rate": {"from": 800, "to": 500}},
            {"duration": "6s", "rate": {"from": 500, "to": 500}},
        ]);
        let spec = sample::spec(1, &serde_json::json!({"type": "OpenLoop", "warmup": "2s", "stages": stages}));
        let found = |measured: u64| {
            let mut snapshot = snapshot(0, &[1_000]);
            snapshot.window.measure_from_nanoseconds += 2 * SECOND;
            snapshot.window.measure_to_nanoseconds = snapshot.window.measure_from_nanoseconds + measured * SECOND;
            snapshot.taken_nanoseconds = snapshot.window.measure_to_nanoseconds + SECOND;
            let plateaus = all(&spec, &outcome(vec![snapshot]));
            let fact =
                |one: Plateau| (one.name().to_owned(), one.within.start / SECOND, one.within.end / SECOND, one.is_last);
            plateaus.into_iter().map(fact).collect::<Vec<_>>()
        };
        let low = |is_last| ("stage low".to_owned(), 2, 14, is_last);
        assert_eq!(found(35), [low(false), ("stages[3]".to_owned(), 31, 37, true)]);
        assert_eq!(found(20), [low(false)], "it ended in the ramp");
        assert_eq!(found(4), [low(true)]);
    }
}
