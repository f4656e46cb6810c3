//! The conductor's calls and their answers.

use std::sync::Arc;

use redisbench_wire::{
    AbortRequest, AcceptedStart, AfterRequest, CleanupState, Detail, EpochRequest, PlanRequest, ProbeState, Refusal,
    RefusalCode, ShardState, StartRequest,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::Shard;
use crate::control::driver::Driver;
use crate::control::trial::{Accepted, Action, refusal};
use crate::engine::monotonic_nanoseconds;
use crate::target::{ServerView, ServerWatch};

/// An answer and the trial that it refers to.
#[derive(Debug)]
pub struct Answered<T> {
    /// The requested trial, else the present one.
    pub trial: Option<u32>,
    pub body: T,
}

/// Channel for the answer to a call.
pub type Reply<T> = oneshot::Sender<Answered<Result<T, Refusal>>>;

/// Sources of a snapshot.
#[derive(Debug)]
pub struct Sources {
    /// The measurement.
    pub driver: Arc<dyn Driver>,
    /// The servers' statistics, if the plan asks for them.
    pub servers: Option<ServerView>,
    /// True if nothing but the load was sent until now, so that the servers' counters belong to the load.
    pub load_was_last: bool,
    /// Cancelled once a signal to terminate has stopped the load.
    pub terminated: CancellationToken,
}

/// A call with a valid credential.
#[derive(Debug)]
pub enum Call {
    /// `GET /v1/state`.
    State(Reply<ShardState>),
    /// `PUT /v1/trials/{t}`.
    Plan(u32, PlanRequest, Reply<ShardState>),
    /// `PUT /v1/trials/{t}/start`.
    Start(u32, StartRequest, Reply<AcceptedStart>),
    /// `PUT /v1/trials/{t}/measure`.
    Measure(u32, AfterRequest, Reply<ShardState>),
    /// `PUT /v1/trials/{t}/probe`.
    Probe(u32, AfterRequest, Reply<ProbeState>),
    /// `PUT /v1/trials/{t}/abort`.
    Abort(u32, AbortRequest, Reply<ShardState>),
    /// `GET /v1/trials/{t}/snapshot`. Returns the sources, so that encoding blocks no other call.
    Snapshot(u32, Detail, Reply<Sources>),
    /// `PUT /v1/cleanup`.
    Cleanup(EpochRequest, Reply<CleanupState>),
    /// `PUT /v1/drain`.
    Drain(EpochRequest, Reply<ShardState>),
    /// `PUT /v1/release`.
    Release(EpochRequest, Reply<ShardState>),
}

impl Shard {
    pub(super) fn answer(&mut self, call: Call) {
        let now = monotonic_nanoseconds();
        match call {
            Call::State(reply) => {
                self.trial.contact(now);
                send(reply, self.trial.index(), Ok(self.trial.state()));
            }
            Call::Plan(trial, request, reply) => {
                let accepted = self.trial.plan(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            Call::Start(trial, request, reply) => {
                let accepted = self.trial.start(now, trial, request);
                send(reply, Some(trial), self.performed(accepted));
            }
            Call::Measure(trial, request, reply) => {
                let accepted = self.trial.measure(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            Call::Abort(trial, request, reply) => {
                let accepted = self.trial.abort(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            Call::Snapshot(trial, detail, reply) => {
                let allowed = self.trial.snapshot(now, trial, detail);
                let sources = allowed.and_then(|()| {
                    let driver = self.driver.clone();
                    let driver = driver.ok_or_else(|| refusal(RefusalCode::Unavailable, "the engine has stopped"))?;
                    let servers = self.servers.as_ref().map(ServerWatch::view);
                    let (load_was_last, terminated) = (self.trial.load_was_last(), self.terminated.clone());
                    Ok(Sources { driver, servers, load_was_last, terminated })
                });
                send(reply, Some(trial), sources);
            }
            Call::Probe(trial, request, reply) => {
                let accepted = self.trial.probe(now, trial, request);
                send(reply, Some(trial), self.performed(accepted));
            }
            Call::Cleanup(request, reply) => {
                let accepted = self.trial.cleanup(now, request);
                send(reply, self.trial.index(), self.performed(accepted));
            }
            Call::Drain(request, reply) => {
                let accepted = self.trial.drain(now, request);
                let answer = self.state_after(accepted);
                let (trial, ending) = (self.trial.index(), self.ending.clone());
                // A repeated call waits again: no answer is sent while a connection is open.
                tokio::spawn(async move {
                    ending.wait().await;
                    send(reply, trial, answer);
                });
            }
            Call::Release(request, reply) => {
                let accepted = self.trial.release(now, request);
                send(reply, self.trial.index(), self.state_after(accepted));
            }
        }
    }

    /// Performs the actions of a call before reading the state.
    fn state_after(&mut self, accepted: Accepted) -> Result<ShardState, Refusal> {
        self.performed(accepted.map(|actions| ((), actions))).map(|()| self.trial.state())
    }

    /// Performs the actions of a call, and returns its answer.
    fn performed<T>(&mut self, accepted: Result<(T, Vec<Action>), Refusal>) -> Result<T, Refusal> {
        accepted.map(|(answer, actions)| {
            self.perform(actions);
            answer
        })
    }
}

fn send<T>(reply: Reply<T>, trial: Option<u32>, body: Result<T, Refusal>) {
    if let Err(refused) = &body {
        info!(refusal = %refused, "refused a call");
    }
    // Sending fails if the caller has hung up, and then the answer is not needed.
    let _ = reply.send(Answered { trial, body });
}
