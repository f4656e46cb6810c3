//! When a worker stays awake although it has nothing to do.
//!
//! A thread that sleeps until an instant runs some time after it: the timer fires, the processor leaves its idle state, and the
//! scheduler switches. So it does after a reply has come. Over loopback and in fast networks that is as long as the latencies
//! themselves. A worker of an open loop therefore has itself woken up before a request is due, and stays awake after a send for a reply
//! that is about to come: by as much as it took lately, within a small share of its time.

use crate::selfcheck::Times;

/// The time that may be spent awake, of that of a processor.
const SHARE: u64 = 8;

/// The longest time to be early, or to wait for a reply, in nanoseconds. What takes longer is a busy processor's doing, or that of
/// a network, beside which waking up is short.
const LONGEST: u64 = 250_000;

/// The most that may have been saved up, in nanoseconds: it bounds what is spent at once.
const SAVED: u64 = 2_000_000;

/// Replies are waited for only while this much is left for requests that become due, in nanoseconds.
const RESERVE: u64 = 1_000_000;

/// A worker that waited for a processor for more than an eighth of the time between two looks has none to itself.
const CONTESTED: u64 = 8;

/// It then sleeps for so many times what it waited: a thread that sleeps is let in sooner than one that ran and gave way. What it costs to
/// try again is less than one request in 200.
const REST: u64 = 200;

/// A worker that ran for more than half of that time finds its requests awake anyway. Polling would make it look busier than its load does.
const BUSY: u64 = 2;

/// How long it then sleeps between requests, in nanoseconds.
const BUSY_REST: u64 = 1_000_000_000;

/// How long before or after an instant a worker is to be awake, so that all but one in so many events find it so. It follows what was
/// seen: up by a step when an event was missed, down by a fraction of it otherwise. In nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach<const ONE_OF: u64>(u64);

impl<const ONE_OF: u64> Reach<ONE_OF> {
    const STEP: u64 = 2_000;

    /// An event took so long. One that took longer than the longest says nothing: no reach would have done.
    fn took(&mut self, time: u64) {
        if time > self.0 && time <= LONGEST {
            self.0 = (self.0 + Self::STEP).min(LONGEST);
        } else {
            self.0 = self.0.saturating_sub(Self::STEP / ONE_OF);
        }
    }

    /// More was spent than may be.
    fn shorten(&mut self) {
        self.0 -= self.0 / 64;
    }
}

/// What a worker knows of waking up. All times are nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// A processor's time is divided by this to give what may be spent.
    divisor: u64,
    lead: Reach<500>,
    reply: Reach<10>,
    /// When a request was sent, of which no reply has come.
    sent: Option<u64>,
    /// Time that may be spent.
    credit: u64,
    /// Up to when it was credited.
    credited: u64,
    /// How long it had run and waited for a processor at the latest look, and when that was.
    times: Times,
    looked: u64,
    /// Until when to sleep, as others want the processor.
    rests: u64,
}

impl Vigil {
    /// Of a worker that may use so many millionths of a processor.
    pub(super) fn of(processor: u64) -> Self {
        Self { divisor: (SHARE * 1_000_000) / processor.max(1), ..Self::default() }
    }

    /// When to be woken up, seen from `now`, for what is due at `due`.
    #[inline]
    pub(super) fn before(&self, due: u64, now: u64) -> u64 {
        if now < self.rests { due } else { due.saturating_sub(self.lead.0) }
    }

    /// Whether to stay awake at `now` for a reply.
    #[inline]
    pub(super) fn expects(&self, now: u64) -> bool {
        self.credit > RESERVE && now >= self.rests && self.sent.is_some_and(|sent| now < sent + self.reply.0)
    }

    /// The alarm of `instant` woke the worker up at `now`.
    pub(super) fn woke(&mut self, instant: u64, now: u64) {
        self.lead.took(now.saturating_sub(instant));
    }

    /// A request was sent.
    #[inline]
    pub(super) fn sent(&mut self, now: u64) {
        self.sent = Some(now);
    }

    /// Something has come.
    #[inline]
    pub(super) fn came(&mut self, now: u64) {
        if let Some(sent) = self.sent.take() {
            self.reply.took(now.saturating_sub(sent));
        }
    }

    /// Takes how long the worker has run and waited for a processor up to `now`.
    pub(super) fn looked(&mut self, times: Times, now: u64) {
        let elapsed = now.saturating_sub(self.looked);
        let waited = times.waited.saturating_sub(self.times.waited);
        let ran = times.ran.saturating_sub(self.times.ran);
        if waited > elapsed / CONTESTED {
            self.rests = self.rests.max(now.saturating_add(waited.saturating_mul(REST)));
        } else if ran > elapsed / BUSY {
            self.rests = self.rests.max(now.saturating_add(BUSY_REST));
        }
        (self.times, self.looked) = (times, now);
    }

    /// The worker stayed awake from `since` to `now`, and nothing happened.
    #[inline]
    pub(super) fn stayed(&mut self, since: u64, now: u64) {
        let stayed = now.saturating_sub(since);
        let earned = now.saturating_sub(self.credited) / self.divisor;
        self.credited = now;
        let saved = (self.credit + earned).min(SAVED);
        if saved < stayed {
            self.lead.shorten();
        }
        self.credit = saved.saturating_sub(stayed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSOR: u64 = 1_000_000;
    const MICROSECOND: u64 = 1_000;

    /// A worker that has a request due every `interval`, and takes `latency(n)` to wake up the nth time. Returns how late the last half of
    /// its sends were, sorted, and the part of the time that it stayed awake for nothing, in thousandths.
    fn paced(processor: u64, interval: u64, latency: impl Fn(u64) -> u64) -> (Vec<u64>, u64) {
        const COUNT: u64 = 40_000;
        let mut vigil = Vigil::of(processor);
        let (mut late, mut awake) = (Vec::new(), 0);
        for n in 1..=COUNT {
            let due = n * interval;
            let instant = vigil.before(due, (n - 1) * interval);
            let mut now = instant + latency(n);
            vigil.woke(instant, now);
            while now < due {
                vigil.stayed(now, now + MICROSECOND);
                awake += MICROSECOND;
                now += MICROSECOND;
            }
            late.push(now - due);
        }
        let mut late = late.split_off(late.len() / 2);
        late.sort_unstable();
        (late, awake * 1_000 / (COUNT * interval))
    }

    #[test]
    fn requests_are_sent_on_time_however_long_waking_up_takes() {
        // Between 30 and 60 us, and one in a thousand far longer.
        let latency = |n: u64| if n.is_multiple_of(1_000) { 5_000_000 } else { (30 + n * 7919 % 31) * MICROSECOND };
        let (late, awake) = paced(PROCESSOR, 400 * MICROSECOND, latency);
        assert!(late[late.len() * 98 / 100] <= MICROSECOND, "{late:?}");
        assert!(awake <= 125, "{awake} in a thousand");
    }

    #[test]
    fn no_more_is_spent_than_the_share_of_what_the_worker_may_use() {
        // Sometimes long: being early for these too would take half the time.
        let latency = |n: u64| if n.is_multiple_of(20) { 200 * MICROSECOND } else { 10 * MICROSECOND };
        for (processor, most) in [(PROCESSOR, 130), (PROCESSOR / 4, 35)] {
            let (_, awake) = paced(processor, 400 * MICROSECOND, latency);
            assert!(awake <= most, "{awake} in a thousand");
        }
    }

    #[test]
    fn a_worker_without_a_processor_to_itself_sleeps() {
        let mut vigil = Vigil { lead: Reach(50 * MICROSECOND), credit: SAVED, ..Vigil::of(PROCESSOR) };
        vigil.reply = Reach(50 * MICROSECOND);
        let due = 1_000_000;
        assert_eq!(vigil.before(due, 0), due - 50 * MICROSECOND);
        // Of 50 ms it waited for 6, then for 7.
        for (waited, now, contested) in [(6, 50, false), (13, 100, true)] {
            vigil.looked(Times { ran: 0, waited: waited * 1_000_000 }, now * 1_000_000);
            let now = now * 1_000_000 + 1;
            vigil.sent(now);
            assert_eq!(vigil.before(now + due, now) == now + due, contested);
            assert_eq!(vigil.expects(now), !contested);
        }
        let later = (100 + 7 * 200) * 1_000_000;
        vigil.sent(later);
        assert_eq!(vigil.before(later + due, later), later + due - 50 * MICROSECOND);
        assert!(vigil.expects(later));
    }

    #[test]
    fn a_busy_worker_does_not_poll() {
        let mut vigil = Vigil { lead: Reach(50 * MICROSECOND), ..Vigil::of(PROCESSOR) };
        // Of 50 ms it ran for 24, then for 26.
        for (ran, now, busy) in [(24, 50, false), (50, 100, true)] {
            vigil.looked(Times { ran: ran * 1_000_000, waited: 0 }, now * 1_000_000);
            let now = now * 1_000_000 + 1;
            assert_eq!(vigil.before(now + 1_000_000, now) == now + 1_000_000, busy);
        }
        let later = 1_101_000_000;
        assert!(vigil.before(later + 1_000_000, later) < later + 1_000_000);
    }

    #[test]
    fn replies_are_expected_only_where_they_come_soon() {
        let expects = |latency: u64| {
            let mut vigil = Vigil { credit: SAVED, ..Vigil::of(PROCESSOR) };
            for n in 1..1_000 {
                vigil.sent(n * 1_000_000);
                vigil.came(n * 1_000_000 + latency);
            }
            assert!(!vigil.expects(1_000_000_000), "nothing was sent");
            vigil.sent(1_000_000_000);
            vigil.expects(1_000_000_000 + latency - 1)
        };
        assert!(expects(30 * MICROSECOND));
        assert!(!expects(600 * MICROSECOND));
    }
}
