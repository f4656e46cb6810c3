//! The answers of a shard to calls.

use redisbench_wire::{Refusal, RefusalCode, ShardState};
use tracing::info;

use super::Shard;
use super::calls::{ReplySender, ShardAnswer, ShardCall, Sources};
use crate::control::trial::{Accepted, Action, refusal};
use crate::engine::monotonic_nanoseconds;
use crate::target::ServerWatch;

impl Shard {
    pub(super) fn answer(&mut self, call: ShardCall) {
        let now = monotonic_nanoseconds();
        match call {
            ShardCall::State(reply) => {
                self.trial.contact(now);
                send(reply, self.trial.index(), Ok(self.trial.state()));
            }
            ShardCall::Plan(trial, request, reply) => {
                let accepted = self.trial.plan(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            ShardCall::Start(trial, request, reply) => {
                let accepted = self.trial.start(now, trial, request);
                send(reply, Some(trial), self.performed(accepted));
            }
            ShardCall::Measure(trial, request, reply) => {
                let accepted = self.trial.measure(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            ShardCall::Abort(trial, request, reply) => {
                let accepted = self.trial.abort(now, trial, request);
                send(reply, Some(trial), self.state_after(accepted));
            }
            ShardCall::Snapshot(trial, detail, reply) => {
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
            ShardCall::Probe(trial, request, reply) => {
                let accepted = self.trial.probe(now, trial, request);
                send(reply, Some(trial), self.performed(accepted));
            }
            ShardCall::Cleanup(request, reply) => {
                let accepted = self.trial.cleanup(now, request);
                send(reply, self.trial.index(), self.performed(accepted));
            }
            ShardCall::Drain(request, reply) => {
                let accepted = self.trial.drain(now, request);
                let answer = self.state_after(accepted);
                let (trial, ending) = (self.trial.index(), self.ending.clone());
                // A repeated call waits again: no answer is sent while a connection is open.
                tokio::spawn(async move {
                    ending.wait().await;
                    send(reply, trial, answer);
                });
            }
            ShardCall::Release(request, reply) => {
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

fn send<T>(reply: ReplySender<T>, trial: Option<u32>, body: Result<T, Refusal>) {
    if let Err(refused) = &body {
        info!(refusal = %refused, "refused a call");
    }
    // Sending fails if the caller has hung up, and then the answer is not needed.
    let _ = reply.send(ShardAnswer { trial, body });
}
