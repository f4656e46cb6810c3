//! The commands of one connection, from being staged until their reply: oldest first, as replies come.

use std::collections::VecDeque;

use crate::workload::Draw;

/// Which count a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Staged by a closed loop: the time of its send will tell.
    Undecided,
    /// Of the warm-up.
    Warmup,
    /// Of the measurement.
    Measured,
    /// Of the preload.
    Preload,
    /// Of a load that was aborted: its reply is awaited, and counts nowhere.
    Orphan,
    /// PING, on connections at rest.
    Ping,
    /// ASKING, before a request that follows an ASK redirect.
    Asking,
}

impl Class {
    /// Whether a load waits for its outcome.
    pub(super) fn is_load(self) -> bool {
        matches!(self, Self::Undecided | Self::Warmup | Self::Measured | Self::Preload)
    }
}

/// A request, wherever it is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Its number.
    pub k: u64,
    /// Its operation and key.
    pub draw: Draw,
    /// When it is due; in a closed loop, when it was sent first.
    pub due: u64,
    /// When its last hop was sent; in a queue of resends, when it got there.
    pub sent: u64,
    /// What it counts as.
    pub class: Class,
    /// Redirects so far.
    pub hops: u8,
}

impl Request {
    /// A command that carries no request.
    pub(super) fn bare(class: Class) -> Self {
        Self { k: 0, draw: Draw { operation: 0, key: 0 }, due: 0, sent: 0, class, hops: 0 }
    }
}

/// Commands that a pipeline has room for from the beginning.
const PREPARED: usize = 64;

/// Commands in flight, and behind them those staged for the next send.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    commands: VecDeque<Request>,
    staged: usize,
}

impl Pipeline {
    /// For `window` commands. A deep window gets its room when it is used: the queue walks through all it has, so that
    /// a large one would not stay in a processor's cache, and a plan must not fill the memory by a number.
    pub(super) fn of_window(window: usize) -> Self {
        Self { commands: VecDeque::with_capacity(window.min(PREPARED)), staged: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    #[inline]
    pub(super) fn staged(&self) -> usize {
        self.staged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    #[inline]
    pub(super) fn stage(&mut self, request: Request) {
        self.commands.push_back(request);
        self.staged += 1;
    }

    /// Does `then` with each staged command. The queue's two parts one after the other: an iterator over both would ask
    /// for every command which of them it is in.
    #[inline]
    pub(super) fn each_staged(&mut self, mut then: impl FnMut(&mut Request)) {
        let first = self.commands.len() - self.staged;
        let (front, back) = self.commands.as_mut_slices();
        let length = front.len();
        front.get_mut(first..).unwrap_or_default().iter_mut().for_each(&mut then);
        back.get_mut(first.saturating_sub(length)..).unwrap_or_default().iter_mut().for_each(&mut then);
    }

    /// Keeps the first `keep` of the staged commands, and returns how many others it dropped.
    pub(super) fn drop_staged(&mut self, keep: usize) -> usize {
        let dropped = self.staged.saturating_sub(keep);
        self.commands.truncate(self.commands.len() - dropped);
        self.staged -= dropped;
        dropped
    }

    /// What was staged is on its way.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.staged = 0;
    }

    /// The command that the next reply answers.
    #[inline]
    pub(super) fn answered(&mut self) -> Option<Request> {
        if self.commands.len() == self.staged { None } else { self.commands.pop_front() }
    }

    /// Drops the oldest command, which was answered.
    #[inline]
    pub(super) fn drop_oldest(&mut self) {
        self.commands.pop_front();
    }

    /// The command that has been in flight for the longest time.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&Request> {
        if self.commands.len() == self.staged { None } else { self.commands.front() }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.commands.iter_mut()
    }

    /// Empties it: the connection is gone.
    pub(super) fn take(&mut self) -> VecDeque<Request> {
        self.staged = 0;
        std::mem::take(&mut self.commands)
    }
}
