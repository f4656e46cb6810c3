//! The calls in flight, and the checks of their outcomes: a driver is believed only within what the shard itself saw.

use super::frame::Outcome;

/// Bits of an id that select the caller; the others count its calls.
const CALLER_BITS: u32 = 16;

/// The calls in flight, with what belongs to each.
#[derive(Debug)]
pub struct Ledger<T> {
    callers: Vec<Caller<T>>,
    free: Vec<u16>,
}

#[derive(Debug)]
struct Caller<T> {
    calls: u64,
    call: Option<InFlight<T>>,
}

#[derive(Debug)]
struct InFlight<T> {
    sent: u64,
    checksum: bool,
    call: T,
}

/// Why an outcome breaks the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("the driver completed call {0}, which was never sent")]
    Unknown(u64),
    #[error("the driver completed call {0} twice")]
    Twice(u64),
    #[error(
        "BadClock: the driver's times of call {id} must keep sent {sent} <= called {called} <= completed {completed} <= received \
         {received}, in nanoseconds of CLOCK_MONOTONIC"
    )]
    BadClock { id: u64, sent: u64, called: u64, completed: u64, received: u64 },
    #[error("the driver gave no checksum of call {0}, which asked for one")]
    NoChecksum(u64),
}

impl<T> Ledger<T> {
    pub fn new(callers: u16) -> Self {
        let free: Vec<u16> = (0..callers).rev().collect();
        Self { callers: free.iter().map(|_| Caller { calls: 0, call: None }).collect(), free }
    }

    /// Returns whether a call can begin.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.callers.len() - self.free.len()
    }

    /// The call that has been in flight the longest, and when it was sent.
    pub fn oldest(&self) -> Option<(u64, u64)> {
        let places = (0_u64..).zip(&self.callers);
        let in_flight =
            places.filter_map(|(caller, place)| Some((place.calls << CALLER_BITS | caller, place.call.as_ref()?.sent)));
        in_flight.min_by_key(|(_, sent)| *sent)
    }

    /// Begins a call at `sent`. Returns its id, or nothing if no caller is free.
    pub fn begin(&mut self, sent: u64, checksum: bool, call: T) -> Option<u64> {
        let caller = self.free.pop()?;
        let place = &mut self.callers[usize::from(caller)];
        place.calls += 1;
        place.call = Some(InFlight { sent, checksum, call });
        Some(place.calls << CALLER_BITS | u64::from(caller))
    }

    /// Ends the call of an outcome that was read at `received`.
    ///
    /// # Errors
    /// Fails if the outcome breaks the contract.
    pub fn end(&mut self, outcome: &Outcome, received: u64) -> Result<T, LedgerError> {
        let Outcome { id, called, completed, checksum, .. } = *outcome;
        let (calls, caller) = (id >> CALLER_BITS, id & ((1 << CALLER_BITS) - 1));
        let caller = u16::try_from(caller).unwrap_or(u16::MAX);
        let place = self.callers.get_mut(usize::from(caller)).ok_or(LedgerError::Unknown(id))?;
        if calls == 0 || calls > place.calls {
            return Err(LedgerError::Unknown(id));
        }
        let Some(InFlight { sent, checksum: wanted, call }) = place.call.take_if(|_| place.calls == calls) else {
            return Err(LedgerError::Twice(id));
        };
        self.free.push(caller);
        if !(sent <= called && called <= completed && completed <= received) {
            return Err(LedgerError::BadClock { id, sent, called, completed, received });
        }
        if wanted && checksum.is_none() {
            return Err(LedgerError::NoChecksum(id));
        }
        Ok(call)
    }

    /// The calls that never ended.
    pub fn abandon(&mut self) -> impl Iterator<Item = T> {
        self.callers.iter_mut().filter_map(|caller| caller.call.take().map(|in_flight| in_flight.call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(id: u64, called: u64, completed: u64) -> Outcome {
        Outcome { id, called, completed, checksum: None, null: false, result: Ok(()) }
    }

    #[test]
    fn callers_are_used_again_under_other_ids() {
        let mut ledger = Ledger::new(2);
        let ids: Vec<u64> = (0..2).filter_map(|call| ledger.begin(10, false, call)).collect();
        assert_eq!((ledger.begin(10, false, 2), ledger.in_flight()), (None, 2));
        assert_eq!(ledger.end(&outcome(ids[1], 10, 12), 13), Ok(1));
        assert_eq!(ledger.oldest(), Some((ids[0], 10)));
        let again = ledger.begin(14, false, 3).unwrap();
        assert!(!ids.contains(&again));
        assert_eq!(ledger.end(&outcome(ids[1], 14, 15), 16), Err(LedgerError::Twice(ids[1])));
        assert_eq!(ledger.end(&outcome(again, 14, 15), 16), Ok(3));
        assert_eq!(ledger.abandon().collect::<Vec<_>>(), [0]);
        assert_eq!(ledger.oldest(), None);
    }

    #[test]
    fn an_id_that_was_never_sent_is_refused() {
        let mut ledger = Ledger::new(2);
        let id = ledger.begin(10, false, ()).unwrap();
        for unknown in [0, u64::MAX, id + 1, id + (1 << CALLER_BITS), 9_999] {
            assert_eq!(ledger.end(&outcome(unknown, 10, 10), 10), Err(LedgerError::Unknown(unknown)));
        }
        assert_eq!(ledger.end(&outcome(id, 10, 10), 10), Ok(()));
        assert_eq!(ledger.end(&outcome(id, 10, 10), 10), Err(LedgerError::Twice(id)));
    }

    #[test]
    fn times_outside_what_the_shard_saw_are_refused() {
        for (called, completed, is_good) in [
            (100, 200, true),
            (150, 150, true),
            (99, 150, false),
            (150, 149, false),
            (150, 201, false),
            (u64::MAX, 0, false),
        ] {
            let mut ledger = Ledger::new(1);
            let id = ledger.begin(100, false, ()).unwrap();
            let ended = ledger.end(&outcome(id, called, completed), 200);
            assert_eq!(ended.is_ok(), is_good, "{called} {completed}");
            if let Err(error) = ended {
                assert!(error.to_string().starts_with("BadClock: the driver's times of call"), "{error}");
            }
        }
    }

    #[test]
    fn a_checksum_that_was_asked_for_is_given() {
        let mut ledger = Ledger::new(1);
        let id = ledger.begin(1, true, ()).unwrap();
        assert_eq!(ledger.end(&outcome(id, 1, 1), 1), Err(LedgerError::NoChecksum(id)));
        let id = ledger.begin(1, true, ()).unwrap();
        assert_eq!(ledger.end(&Outcome { checksum: Some(0), ..outcome(id, 1, 1) }, 1), Ok(()));
    }
}
