//! Performs the actions of a [`StateMachine`] on tokio: calls, records, and one timer.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Fuse, FusedFuture as _};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::calls::{CALLS_IN_FLIGHT, call_all};
use super::event::{Action, Answered, Ask, Event, Now};
use super::machine::StateMachine;
use super::{Call, ConductProgress, ConductorConfig, Control, Journal, Outcome, ShardCalls, ShardPresence};

/// A call without a reply for this long does not count among [`CALLS_IN_FLIGHT`]: a dial to a machine that is gone takes seconds, and the
/// calls to other shards must not wait for it.
const SLOW: Duration = Duration::from_millis(200);

/// Upper bound of all calls without a reply.
const UNANSWERED_CALLS: usize = 512;

/// Conducts the trial of `config` to its end, either from the beginning or as a takeover (see [`ConductorConfig::resume`]).
///
/// `presence` holds one entry per shard of the plan, in index order, followed by idle shards that only a later trial needs.
///
/// Unless it returns [`super::Ending::Superseded`], each shard's load has stopped, or the shard is listed as lost or
/// unacknowledged. Shards are kept until [`super::release`]. Dropping the future stops conducting at once and leaves the shards as they
/// are.
pub async fn conduct<C: ShardCalls, J: Journal>(
    config: ConductorConfig,
    calls: Arc<C>,
    journal: J,
    mut presence: watch::Receiver<Vec<ShardPresence>>,
    mut control: watch::Receiver<Control>,
    progress: watch::Sender<ConductProgress>,
) -> Outcome {
    let began = Instant::now();
    let wall_clock = config.wall_clock.clone();
    let now = move || Now { elapsed: began.elapsed(), unix_nanoseconds: wall_clock.unix_nanoseconds() };
    let mut machine = StateMachine::new(config, presence.borrow_and_update().clone(), now());
    let mut event = Event::Control(*control.borrow_and_update());
    let slots = Arc::new(Semaphore::new(CALLS_IN_FLIGHT));
    let (mut queue, mut in_flight) = (VecDeque::new(), FuturesUnordered::new());
    let mut recording = pin!(Fuse::terminated());
    let mut contacting = pin!(Fuse::terminated());
    let mut wake_at = began;
    loop {
        for action in machine.step(now(), event) {
            match action {
                Action::Call(ask) => queue.push_back(ask),
                Action::KeepContact(shards) => contacting.set(call_all(Arc::clone(&calls), shards, Call::State).fuse()),
                Action::Record(record) => recording.set(journal.record_start(record).fuse()),
                Action::Forget => {
                    queue.clear();
                    in_flight.clear();
                    recording.set(Fuse::terminated());
                }
                Action::Publish(news) => drop(progress.send_replace(*news)),
                Action::WakeAt(at) => wake_at = began + at,
                Action::Done(outcome) => return *outcome,
            }
        }
        event = loop {
            let more = !queue.is_empty() && in_flight.len() < UNANSWERED_CALLS;
            tokio::select! {
                biased;
                control = news(&mut control) => break Event::Control(control),
                presence = news(&mut presence) => break Event::Presence(presence),
                recorded = recording.as_mut(), if !recording.is_terminated() => break Event::Recorded(recorded),
                Ok(slot) = Arc::clone(&slots).acquire_owned(), if more => {
                    if let Some(ask) = queue.pop_front() {
                        in_flight.push(answer(Arc::clone(&calls), ask, began, slot));
                    }
                }
                Some(answered) = in_flight.next() => break Event::Answered(Box::new(answered)),
                _ = contacting.as_mut(), if !contacting.is_terminated() => break Event::Due,
                () = sleep_until(wake_at) => break Event::Due,
            }
        };
    }
}

/// A call. After [`SLOW`] it gives its slot to the next.
async fn answer<C: ShardCalls>(calls: Arc<C>, ask: Ask, began: Instant, slot: OwnedSemaphorePermit) -> Answered {
    let sent = began.elapsed();
    let reply = {
        let mut call = pin!(calls.call(&ask.endpoint, &ask.call));
        if let Ok(reply) = timeout(SLOW, call.as_mut()).await {
            reply
        } else {
            drop(slot);
            call.await
        }
    };
    Answered { sent, received: began.elapsed(), reply, ask }
}

/// The next value. Waits forever once the sender is gone.
async fn news<T: Clone>(receiver: &mut watch::Receiver<T>) -> T {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    receiver.borrow_and_update().clone()
}
