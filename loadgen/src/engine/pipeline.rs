//! The commands of one connection, from staging to reply, oldest first.

use super::queue::Queue;
use crate::record::Period;

/// The count that a command belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Class {
    /// Staged by a closed loop; the time of the send decides.
    #[default]
    Undecided,
    Warmup,
    Measured,
    Preload,
    /// Part of the final read of everything that was written.
    Check,
    /// Part of an aborted load: its reply is awaited but not counted.
    Orphan,
    /// Like `Orphan`, for a trial whose requests get several replies each.
    OrphanOfTrial,
    /// Not a request: writes a key that a read has missed.
    Fill,
    /// PING on an idle connection.
    Ping,
    /// ASKING, before a request that follows an ASK redirect.
    Asking,
}

impl Class {
    /// Returns whether the command is sent in addition to requests. These classes come last, so one comparison is enough.
    #[inline]
    pub(super) fn is_beside(self) -> bool {
        self as u8 >= Self::Fill as u8
    }

    /// The period that its requests count for.
    #[inline]
    pub(super) fn period(self) -> Option<Period> {
        match self {
            Self::Warmup => Some(Period::Warmup),
            Self::Measured => Some(Period::Measured),
            _ => None,
        }
    }

    /// Returns whether a load waits for its outcome.
    pub(super) fn is_load(self) -> bool {
        matches!(self, Self::Undecided | Self::Warmup | Self::Measured | Self::Preload | Self::Check | Self::Fill)
    }
}

/// A request at any stage. Kept small, because there is one for each request in flight: the time of sending is stored once per send, and
/// the key is drawn again from the request's number where it is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Its number.
    pub k: u64,
    /// Its due time; in a closed loop, its first send. Unset while undecided.
    pub due: u64,
    /// Index into the mix.
    pub operation: u16,
    pub class: Class,
    pub hops: Hops,
}

/// The number of earlier sends of a request: redirects followed, counted up to 7, and deferrals, counted up to 15. Between them, whether
/// ASKING precedes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hops(u8);

impl Hops {
    /// The largest count of deferrals.
    pub(super) const MOST: u8 = 15;

    /// The largest count of redirects, and the bits that it takes.
    const REDIRECTS: u8 = 7;

    const ASKING: u8 = 8;

    /// Returns whether this is the first send.
    #[inline]
    pub(super) fn is_first(self) -> bool {
        self.0 == 0
    }

    pub(super) fn redirects(self) -> u8 {
        self.0 & Self::REDIRECTS
    }

    pub(super) fn deferrals(self) -> u8 {
        self.0 >> 4
    }

    /// Returns whether ASKING precedes it.
    pub(super) fn is_asking(self) -> bool {
        self.0 & Self::ASKING != 0
    }

    pub(super) fn redirect(&mut self) {
        self.0 += u8::from(self.redirects() < Self::REDIRECTS);
    }

    pub(super) fn defer(&mut self) {
        self.0 += u8::from(self.deferrals() < Self::MOST) << 4;
    }

    /// Notes whether ASKING precedes it.
    pub(super) fn ask(&mut self, asking: bool) {
        self.0 = self.0 & !Self::ASKING | u8::from(asking) << 3;
    }
}

impl Request {
    /// A command that carries no request.
    pub(super) fn bare(class: Class) -> Self {
        Self { k: 0, due: 0, operation: 0, class, hops: Hops::default() }
    }

    /// Returns whether both have the same operation, class and hops.
    #[inline]
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.operation == other.operation && self.class == other.class && self.hops == other.hops
    }

    /// A request of a closed loop, whose class and due time are set when it is sent.
    #[inline]
    pub(super) fn undecided(k: u64, operation: u16) -> Self {
        Self { k, due: 0, operation, class: Class::Undecided, hops: Hops::default() }
    }
}

/// A request without a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub k: u64,
    /// Its due time; in a closed loop, the time at which it was drawn.
    pub due: u64,
}

/// The commands of one send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub sent: u64,
    /// The class of its undecided requests.
    class: Class,
    /// Commands without a reply.
    count: u32,
}

impl Flight {
    /// Returns whether a request of this send is measured and sent for the first time.
    #[inline]
    pub(super) fn is_plain(&self, request: &Request) -> bool {
        let class = if request.class == Class::Undecided { self.class } else { request.class };
        class == Class::Measured && request.hops.is_first()
    }

    #[inline]
    pub(super) fn due(&self, request: &Request) -> u64 {
        if request.class == Class::Undecided { self.sent } else { request.due }
    }

    /// Gives an undecided request the class and due time of this send.
    #[inline]
    pub(super) fn decide(&self, request: Request) -> Request {
        match request.class {
            Class::Undecided => Request { class: self.class, due: self.sent, ..request },
            _ => request,
        }
    }
}

/// The initial capacity of a pipeline, in commands.
const PREPARED: usize = 64;

/// Commands in flight, followed by those staged for the next send.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    commands: Queue<Request>,
    /// The oldest send, empty only if there is none. Usually there is no other. Kept inline, because checking thousands of connections
    /// for late replies must touch no more than the connection itself.
    oldest: Flight,
    /// The sends after it, none of them empty. All sends together cover every command that is not staged.
    later: Queue<Flight>,
    staged: u32,
    /// Undecided commands among the staged ones. They are the last.
    undecided: u32,
}

impl Pipeline {
    /// A pipeline for `window` commands. A deep window is allocated as it is used, so that a large number in a plan does not exhaust
    /// memory.
    pub(super) fn of_window(window: usize) -> Self {
        Self { commands: Queue::with_capacity(window.min(PREPARED)), ..Self::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    #[inline]
    pub(super) fn staged(&self) -> &[Request] {
        let commands = self.commands.as_slice();
        &commands[commands.len() - self.staged as usize..]
    }

    #[inline]
    pub(super) fn staged_count(&self) -> usize {
        self.staged as usize
    }

    #[inline]
    pub(super) fn undecided_count(&self) -> usize {
        self.undecided as usize
    }

    #[inline]
    pub(super) fn stage(&mut self, request: Request) {
        self.commands.push(request);
        self.staged += 1;
        self.undecided += u32::from(request.class == Class::Undecided);
    }

    /// Stages requests, all of them undecided.
    #[inline]
    pub(super) fn stage_undecided(&mut self, requests: impl Iterator<Item = Request>) {
        let before = self.commands.len();
        self.commands.extend(requests);
        let count = (self.commands.len() - before) as u32;
        self.staged += count;
        self.undecided += count;
    }

    /// Keeps the first `keep` of the staged undecided commands.
    pub(super) fn keep_undecided(&mut self, keep: usize) {
        let dropped = self.undecided.saturating_sub(u32::try_from(keep).unwrap_or(u32::MAX));
        self.commands.truncate(self.commands.len() - dropped as usize);
        self.staged -= dropped;
        self.undecided -= dropped;
    }

    /// Marks the staged commands as sent at `sent`; its undecided requests get `class`.
    #[inline]
    pub(super) fn sent(&mut self, sent: u64, class: Class) {
        let flight = Flight { sent, class, count: self.staged };
        if self.oldest.count == 0 {
            self.oldest = flight;
        } else if flight.count > 0 {
            self.later.push(flight);
        }
        self.staged = 0;
        self.undecided = 0;
    }

    /// The oldest send and those of its commands that still wait for replies.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(Flight, &[Request])> {
        let commands = self.commands.as_slice().get(..self.oldest.count as usize)?;
        (!commands.is_empty()).then_some((self.oldest, commands))
    }

    /// The command that the next reply answers, decided.
    pub(super) fn oldest_request(&self) -> Option<Request> {
        let (flight, requests) = self.oldest()?;
        Some(flight.decide(*requests.first()?))
    }

    /// Drops `count` answered commands of [`Self::oldest`].
    #[inline]
    pub(super) fn drop_oldest(&mut self, count: usize) {
        self.commands.drop_front(count);
        self.oldest.count -= count as u32;
        if self.oldest.count == 0
            && let Some(next) = self.later.as_slice().first()
        {
            self.oldest = *next;
            self.later.drop_front(1);
        }
    }

    /// Removes the command that the next reply answers, and returns it decided, with the time it was sent.
    #[inline]
    pub(super) fn answered(&mut self) -> Option<(Request, u64)> {
        let (flight, requests) = self.oldest()?;
        let request = flight.decide(*requests.first()?);
        self.drop_oldest(1);
        Some((request, flight.sent))
    }

    /// The send of the command that has been in flight longest.
    pub(super) fn oldest_sent(&self) -> Option<u64> {
        (self.oldest.count > 0).then_some(self.oldest.sent)
    }

    /// Turns the requests of a load into orphans. `compounds` if requests of the trial may get several replies each.
    pub(super) fn orphan(&mut self, compounds: bool) {
        let load = self.commands.as_mut_slice().iter_mut().filter(|request| request.class.is_load());
        load.for_each(|request| {
            let single = !compounds || matches!(request.class, Class::Preload | Class::Fill);
            request.class = if single { Class::Orphan } else { Class::OrphanOfTrial };
        });
        self.undecided = 0;
    }

    /// Empties the pipeline after the connection closed. Returns each command with the time it was sent, `u64::MAX` for staged ones.
    pub(super) fn take(&mut self) -> Vec<(Request, u64)> {
        let mut taken = Vec::with_capacity(self.commands.len());
        while let Some(answered) = self.answered() {
            taken.push(answered);
        }
        taken.extend(self.staged().iter().map(|request| (*request, u64::MAX)));
        *self = Self::default();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_flight_takes_little_room() {
        assert_eq!((size_of::<Request>(), size_of::<Flight>()), (24, 16));
    }

    #[test]
    fn hops_are_counted_apart() {
        let mut hops = Hops::default();
        assert!(hops.is_first() && !hops.is_asking());
        hops.ask(true);
        (0..9).for_each(|_| hops.redirect());
        (0..20).for_each(|_| hops.defer());
        assert_eq!((hops.redirects(), hops.deferrals(), hops.is_asking()), (7, 15, true));
        hops.ask(false);
        assert_eq!((hops.redirects(), hops.deferrals(), hops.is_asking()), (7, 15, false));
    }

    #[test]
    fn a_send_decides_what_was_undecided() {
        let mut pipeline = Pipeline::of_window(4);
        pipeline.stage(Request { k: 7, due: 50, operation: 1, class: Class::Measured, hops: Hops(1) });
        pipeline.stage(Request::undecided(8, 0));
        pipeline.sent(100, Class::Warmup);
        pipeline.stage(Request::undecided(9, 0));
        assert_eq!((pipeline.staged_count(), pipeline.undecided_count()), (1, 1));
        let told = |answered: Option<(Request, u64)>| answered.map(|(of, sent)| (of.k, of.class, of.due, sent));
        assert_eq!(told(pipeline.answered()), Some((7, Class::Measured, 50, 100)));
        assert_eq!(told(pipeline.answered()), Some((8, Class::Warmup, 100, 100)));
        assert_eq!(told(pipeline.answered()), None, "staged, but not sent");
        pipeline.sent(200, Class::Measured);
        assert_eq!(pipeline.oldest_sent(), Some(200));
        assert_eq!(told(pipeline.answered()), Some((9, Class::Measured, 200, 200)));
        assert!(pipeline.is_empty());
    }

    #[test]
    fn undecided_requests_are_dropped_from_the_end() {
        let mut pipeline = Pipeline::of_window(4);
        pipeline.stage(Request { k: 1, due: 50, operation: 0, class: Class::Measured, hops: Hops(1) });
        (2..5).for_each(|k| pipeline.stage(Request::undecided(k, 0)));
        pipeline.keep_undecided(1);
        assert_eq!(pipeline.staged().iter().map(|request| request.k).collect::<Vec<_>>(), [1, 2]);
        pipeline.sent(100, Class::Measured);
        assert_eq!(pipeline.take().len(), 2);
        assert!(pipeline.is_empty() && pipeline.oldest_sent().is_none());
    }
}
