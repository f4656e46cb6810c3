//! The times at which a worker stays awake although it has nothing to do.
//!
//! A thread that sleeps until an instant runs some time after it: the timer fires, the processor leaves its idle state, and the scheduler
//! switches. The same delay follows the arrival of a reply. Over loopback and in fast networks it is as long as the latencies themselves.
//! A worker of an open loop therefore wakes up before a request is due, and stays awake after a send if a reply is about to arrive. Both
//! times follow recent wake-ups and replies, within a small share of the worker's time. On a pacing grid it sleeps: a grid is chosen to
//! save processor time, and polling before each of its instants would cost more than the requests.

use redisbench_wire::plan::Load;

use crate::selfcheck::Times;

/// The share of a processor's time that may be spent awake: one part in this many.
const SHARE: u64 = 8;

/// The longest lead or wait for a reply, in nanoseconds. Longer delays come from a busy processor or the network, next to which waking up
/// is short.
const LONGEST: u64 = 250_000;

/// The most credit that can be saved up, in nanoseconds. It bounds the time spent at once.
const SAVED: u64 = 2_000_000;

/// Waiting for replies leaves at least this much credit for requests that become due, in nanoseconds.
const RESERVE: u64 = 1_000_000;

/// A worker that waited for a processor during more than one part in this many of the time between two looks shares its processor.
const CONTESTED: u64 = 8;

/// It then sleeps for this many times the wait. A thread that sleeps is scheduled sooner than one that ran and yielded. Trying again
/// costs less than one request in 200.
const REST: u64 = 200;

/// A worker that ran for more than one part in this many of that time finds its requests awake anyway. Polling would only make it look
/// busier than its load.
const BUSY: u64 = 2;

/// The longest sleep that it then takes between requests, in nanoseconds.
const BUSY_REST: u64 = 1_000_000_000;

/// The time before or after an instant for which a worker must be awake so that it misses only one event in `ONE_OF`, in nanoseconds. It
/// adapts: up by a step after a missed event, otherwise down by `1 / ONE_OF` of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach<const ONE_OF: u64>(u64);

impl<const ONE_OF: u64> Reach<ONE_OF> {
    const STEP: u64 = 2_000;

    /// Records the delay of one event. Delays beyond [`LONGEST`] do not raise the reach, because no reach would have caught them.
    fn took(&mut self, time: u64) {
        if time > self.0 && time <= LONGEST {
            self.0 = (self.0 + Self::STEP).min(LONGEST);
        } else {
            self.0 = self.0.saturating_sub(Self::STEP / ONE_OF);
        }
    }

    /// Called when the credit did not suffice.
    fn shorten(&mut self) {
        self.0 -= self.0 / 64;
    }
}

/// A worker's record of its wake-ups. All times are in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// Elapsed time divided by this is the credit earned.
    divisor: u64,
    lead: Reach<500>,
    reply: Reach<10>,
    /// The send of the latest request, if nothing has arrived since.
    sent: Option<u64>,
    /// Time that may be spent awake.
    credit: u64,
    /// Time up to which credit was given.
    credited: u64,
    /// Total run time and run queue wait at the latest look, and the time of that look.
    times: Times,
    looked: u64,
    /// The worker sleeps between requests until then, because its processor is contested or busy. On a pacing grid always.
    rests: u64,
}

impl Vigil {
    /// For a worker that generates `load` and may use `processor` millionths of a processor.
    pub(super) fn of(load: &Load, processor: u64) -> Self {
        let on_grid = matches!(
            load,
            Load::OpenLoop { pacing_grid_nanoseconds: 1.., .. } | Load::Recorded { pacing_grid_nanoseconds: 1.., .. }
        );
        let rests = if on_grid { u64::MAX } else { 0 };
        Self { divisor: (SHARE * 1_000_000) / processor.max(1), rests, ..Self::default() }
    }

    /// The time at which to wake up for a request that is due at `due`, seen from `now`.
    #[inline]
    pub(super) fn before(&self, due: u64, now: u64) -> u64 {
        if now < self.rests { due } else { due.saturating_sub(self.lead.0) }
    }

    /// Returns whether to stay awake at `now` for a reply.
    #[inline]
    pub(super) fn expects(&self, now: u64) -> bool {
        self.credit > RESERVE && now >= self.rests && self.sent.is_some_and(|sent| now < sent + self.reply.0)
    }

    /// Records that the alarm for `instant` woke the worker at `now`.
    pub(super) fn woke(&mut self, instant: u64, now: u64) {
        self.lead.took(now.saturating_sub(instant));
    }

    #[inline]
    pub(super) fn sent(&mut self, now: u64) {
        self.sent = Some(now);
    }

    /// Records that something was received.
    #[inline]
    pub(super) fn came(&mut self, now: u64) {
        if let Some(sent) = self.sent.take() {
            self.reply.took(now.saturating_sub(sent));
        }
    }

    /// Records the worker's total run time and run queue wait up to `now`.
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

    /// Charges the time from `since` to `now`, during which the worker stayed awake and nothing happened.
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
    use crate::open_loop::OpenLoop;

    const PROCESSOR: u64 = 1_000_000;
    const MICROSECOND: u64 = 1_000;

    /// A worker of an open loop, which may use `processor` millionths of a processor.
    fn vigil(processor: u64, pacing_grid_nanoseconds: u64) -> Vigil {
        Vigil::of(&OpenLoop { pacing_grid_nanoseconds, ..OpenLoop::at(1_000) }.load(), processor)
    }

    /// A worker with a request due every `interval`, which takes `latency(n)` to wake up the nth time. Returns how late the last half of
    /// its sends were, sorted, and the share of time spent awake for nothing, in thousandths.
    fn paced(processor: u64, interval: u64, latency: impl Fn(u64) -> u64) -> (Vec<u64>, u64) {
        const COUNT: u64 = 40_000;
        let mut vigil = vigil(processor, 0);
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
        // A few wake-ups are slow: being early for these too would take half the time.
        let latency = |n: u64| if n.is_multiple_of(20) { 200 * MICROSECOND } else { 10 * MICROSECOND };
        for (processor, most) in [(PROCESSOR, 130), (PROCESSOR / 4, 35)] {
            let (_, awake) = paced(processor, 400 * MICROSECOND, latency);
            assert!(awake <= most, "{awake} in a thousand");
        }
    }

    #[test]
    fn a_worker_without_a_processor_to_itself_sleeps() {
        let mut vigil = Vigil { lead: Reach(50 * MICROSECOND), credit: SAVED, ..vigil(PROCESSOR, 0) };
        vigil.reply = Reach(50 * MICROSECOND);
        let due = 1_000_000;
        assert_eq!(vigil.before(due, 0), due - 50 * MICROSECOND);
        // It waited for 6 of the first 50 ms, then for 7 of the next 50.
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
    fn a_worker_on_a_grid_sleeps_until_the_instants_of_the_grid() {
        let mut vigil = Vigil { lead: Reach(50 * MICROSECOND), credit: SAVED, ..vigil(PROCESSOR, 1) };
        vigil.reply = Reach(50 * MICROSECOND);
        // It has a processor to itself.
        vigil.looked(Times::default(), 1_000_000_000);
        let (now, due) = (1_000_000_001, 1_001_000_000);
        vigil.sent(now);
        assert_eq!(vigil.before(due, now), due);
        assert!(!vigil.expects(now));
    }

    #[test]
    fn a_busy_worker_does_not_poll() {
        let mut vigil = Vigil { lead: Reach(50 * MICROSECOND), ..vigil(PROCESSOR, 0) };
        // It ran for 24 of the first 50 ms, then for 26 of the next 50.
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
            let mut vigil = Vigil { credit: SAVED, ..vigil(PROCESSOR, 0) };
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
