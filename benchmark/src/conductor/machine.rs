//! The course of a trial as a state machine: which action follows which event.
//!
//! Pure: the current time is a parameter and effects are returned as [`Action`]s, so tests run whole trials in virtual time. Each phase is a
//! type with its own `step`, in its own file; [`super::driver`] performs the actions.

use super::barrier::Start;
use super::cleanup::CleanUp;
use super::drain::Drain;
use super::event::{Action, Event, Now};
use super::measure::{Measure, MeasureEnd};
use super::prepare::Prepare;
use super::probe::RunProbe;
use super::stop::StopLoad;
use super::take_over::TakeOver;
use super::trial::{Conductor, Step};
use super::{ConductStage, ConductorConfig, Ending, Outcome, ShardPresence};
use crate::measurement::Cleanup;

/// A conductor and its present phase.
pub struct StateMachine {
    conductor: Conductor,
    phase: AnyPhase,
}

enum AnyPhase {
    TakeOver(TakeOver),
    Drain(Drain),
    Prepare(Prepare),
    Start(Start),
    Measure(Measure),
    Probe(RunProbe),
    Stop(StopLoad),
    CleanUp(CleanUp),
    Done,
}

impl StateMachine {
    pub fn new(config: ConductorConfig, presence: Vec<ShardPresence>, now: Now) -> Self {
        let conductor = Conductor::new(config, presence, now);
        let phase = match conductor.config.resume {
            Some(record) => AnyPhase::TakeOver(TakeOver::begin(&conductor, record)),
            None => AnyPhase::Drain(Drain::begin(&conductor)),
        };
        Self { conductor, phase }
    }

    /// Handles `event` at `now`, which never decreases. The first event is usually [`Event::Control`].
    pub fn step(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.conductor.begin_step(now);
        let mut event = self.conductor.take_in(event);
        while let Some(next) = self.next(event) {
            self.phase = next;
            event = Event::Due;
        }
        self.conductor.out.end()
    }

    /// The phase that follows; none while the present one continues.
    fn next(&mut self, event: Event) -> Option<AnyPhase> {
        let c = &mut self.conductor;
        let aborts = c.control.abort;
        let next = match &mut self.phase {
            AnyPhase::Stop(phase) => then(phase.step(c, event), c, clean_up),
            AnyPhase::CleanUp(phase) => then(phase.step(c, event), c, finish),
            AnyPhase::Done => Ok(None),
            // The trial stays complete.
            AnyPhase::Probe(_) if aborts => then(Ok(Some(Ending::Completed)), c, clean_up),
            // Without load to stop, an abort takes effect only if a new attempt begins.
            _ if aborts && c.published.stage != ConductStage::Collecting => Err(Ending::Aborted),
            AnyPhase::TakeOver(phase) => then(phase.step(c, event), c, measure_or_drain),
            AnyPhase::Drain(phase) => then(phase.step(c, event), c, |c, ()| AnyPhase::Prepare(Prepare::begin(c))),
            AnyPhase::Prepare(phase) => then(phase.step(c, event), c, |c, ()| AnyPhase::Start(Start::begin(c))),
            AnyPhase::Start(phase) => then(phase.step(c, event), c, measure_or_drain),
            AnyPhase::Measure(phase) => then(phase.step(c, event), c, after),
            AnyPhase::Probe(phase) => then(phase.step(c, event), c, |c, probes| {
                match probes {
                    Ok(probes) => c.probes = probes,
                    Err(why) => tracing::info!(why, "this trial has no probe"),
                }
                clean_up(c, Ending::Completed)
            }),
        };
        next.unwrap_or_else(|ending| {
            c.out.forget();
            Some(match ending {
                Ending::Superseded => clean_up(c, ending),
                _ => AnyPhase::Stop(StopLoad::begin(c, ending)),
            })
        })
    }
}

/// Enters the phase that follows once the present one has a result. No reply to the calls of the present phase reaches the next.
fn then<T>(step: Step<T>, c: &mut Conductor, next: impl FnOnce(&mut Conductor, T) -> AnyPhase) -> Step<AnyPhase> {
    let Some(result) = step? else { return Ok(None) };
    c.out.forget();
    Ok(Some(next(c, result)))
}

fn measure_or_drain(c: &mut Conductor, started: bool) -> AnyPhase {
    if started { AnyPhase::Measure(Measure::begin(c)) } else { AnyPhase::Drain(Drain::begin(c)) }
}

fn after(c: &mut Conductor, measured: MeasureEnd) -> AnyPhase {
    match measured {
        MeasureEnd::Done => return RunProbe::begin(c).map_or_else(|| clean_up(c, Ending::Completed), AnyPhase::Probe),
        MeasureEnd::Again => c.restarts += 1,
        MeasureEnd::NeverStarted => c.missed = c.attempt,
    }
    c.give_up_attempt();
    AnyPhase::Drain(Drain::begin(c))
}

/// The measurement is safe. From here on only another conductor changes the result.
fn clean_up(c: &mut Conductor, ending: Ending) -> AnyPhase {
    if c.config.cleanup && ending != Ending::Superseded {
        AnyPhase::CleanUp(CleanUp::begin(c, ending))
    } else {
        finish(c, (ending, None))
    }
}

fn finish(c: &mut Conductor, (ending, cleanup): (Ending, Option<Cleanup>)) -> AnyPhase {
    c.publish(ConductStage::Done);
    let outcome = Outcome { cleanup, ..c.outcome(ending) };
    c.out.actions.push(Action::Done(Box::new(outcome)));
    AnyPhase::Done
}
