//! Commands from the cold side to a worker: a bounded queue, and an eventfd that wakes the worker to read it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use redisbench_wire::Detail;
use redisbench_wire::snapshot::Stage;
use tokio::sync::oneshot;

use super::api::Access;
use super::together::Together;
use crate::cluster::Topology;
use crate::record::{Draft, WorkerReport};
use crate::sys::Waker;

/// More than can pile up while a worker is busy, because the cold side waits for its answers.
const CAPACITY: usize = 64;

#[derive(Debug)]
pub(super) enum Command {
    Connect,
    Preload(Arc<Together>),
    Start {
        start: u64,
        together: Arc<Together>,
    },
    /// Ends the warm-up early, at this instant of the monotonic clock.
    MeasureFrom(u64),
    Abort,
    Rearm,
    /// Closes all connections and makes none until the next [`Command::Connect`].
    Disconnect {
        done: oneshot::Sender<()>,
    },
    Topology(Arc<Topology>),
    /// Credentials and TLS settings for connections made from now on.
    Access(Arc<Access>),
    Snapshot {
        detail: Detail,
        /// The first second to report.
        from: u32,
        answer: oneshot::Sender<Box<WorkerReport>>,
    },
}

/// A live snapshot in the making. While it is made, the worker sends.
#[derive(Debug)]
pub(super) struct Asked {
    /// The first second to report.
    pub from: u32,
    pub answer: oneshot::Sender<Box<WorkerReport>>,
    /// The copy so far, and the stage of the load when it began.
    pub begun: Option<(Draft, WorkerReport, Stage)>,
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Mailbox {
    sender: Option<SyncSender<Command>>,
    waker: Arc<Waker>,
}

impl Mailbox {
    pub(super) fn new(waker: Arc<Waker>) -> (Self, Receiver<Command>) {
        let (sender, receiver) = sync_channel(CAPACITY);
        (Self { sender: Some(sender), waker }, receiver)
    }

    /// Returns whether the command was queued.
    pub(super) fn send(&self, command: Command) -> bool {
        let sent = self.sender.as_ref().is_some_and(|sender| sender.try_send(command).is_ok());
        self.waker.wake();
        sent
    }

    /// Stops the worker, even if the queue is full.
    pub(super) fn close(&mut self) {
        self.sender = None;
        self.waker.wake();
    }
}
