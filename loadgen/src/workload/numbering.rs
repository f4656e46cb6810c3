//! The number by which a command draws its keys, where it is not the number of its request.

/// The distance between closed loops that each walk the whole sequence: 2^38 requests, more than any of them sends.
const APART_BITS: u32 = 38;

/// The seat that request `k` belongs to, and its number there, if every seat begins apart.
pub(super) fn seat_of(k: u64) -> (u64, u64) {
    (k >> APART_BITS, k & ((1 << APART_BITS) - 1))
}

/// The first request of the closed loop of `seat` in a sequence that repeats after `period` requests: far from those of all other seats,
/// and at the beginning of a period.
pub fn begin_apart(seat: u64, period: u64) -> u64 {
    (seat << APART_BITS).next_multiple_of(period.max(1))
}

/// Maps the number of a command to the number that its keys are drawn by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbering {
    /// Commands per request.
    pub size: u64,
    /// True if all of them take the same keys.
    pub shared: bool,
    /// Set if each operation walks its keys by counting only its own requests.
    pub turns: Option<Turns>,
    /// True if each seat counts only its own requests. Its number stays in the upper bits.
    pub per_seat: bool,
    /// The number of streams to which requests belong in turns, at least 1. Each counts its own, and those of the mix count together.
    pub streams: u64,
}

/// The place of an operation in a mix with a fixed sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// Requests until the sequence repeats.
    pub period: u64,
    /// The first of them that belongs to this operation.
    pub first: u64,
    /// The number of them that belong to this operation.
    pub count: u64,
    /// In a closed loop, the number of its requests that take every key once.
    pub walk: Option<u64>,
}

impl Turns {
    /// The number of the operation's requests before request `k`, which belongs to it.
    fn ordinal(self, k: u64) -> u64 {
        let (k, begin) = match self.walk {
            None => (k, 0),
            Some(walk) => {
                let (seat, _) = seat_of(k);
                (k - begin_apart(seat, self.period).min(k), place(seat, walk))
            }
        };
        begin + (k / self.period) * self.count + (k % self.period).saturating_sub(self.first)
    }
}

/// Where a seat begins in a walk of length `walk`. The reversed bits of its number divide the walk evenly among any power of two of
/// seats, and nearly evenly otherwise, without depending on the number of seats.
fn place(seat: u64, walk: u64) -> u64 {
    let fraction = (seat as u32).reverse_bits();
    ((u128::from(walk) * u128::from(fraction)) >> u32::BITS) as u64
}

impl Numbering {
    /// Returns whether it changes nothing.
    pub(super) fn is_plain(self) -> bool {
        self.turns.is_none() && self.streams == 1 && !((self.shared || self.per_seat) && self.size > 1)
    }

    /// The number that the keys of command `number` are drawn by.
    pub(super) fn of(self, number: u64) -> u64 {
        let (k, command) = (number / self.size.max(1), number % self.size.max(1));
        // Most plans have one, and a division costs more than to look.
        let k = if self.streams > 1 { k / self.streams } else { k };
        let turn = self.turns.map_or(k, |turns| turns.ordinal(k));
        let of_command =
            |turn: u64| if self.shared { turn } else { turn.wrapping_mul(self.size).wrapping_add(command) };
        if !self.per_seat {
            return of_command(turn);
        }
        (seat_of(k).0 << APART_BITS) | seat_of(of_command(seat_of(turn).1)).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_transaction_share_keys_or_walk_on() {
        let own = Numbering { size: 3, shared: false, turns: None, per_seat: false, streams: 1 };
        let shared = Numbering { shared: true, ..own };
        assert!(own.is_plain() && !shared.is_plain());
        assert_eq!((0..7).map(|number| own.of(number)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!((0..7).map(|number| shared.of(number)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn a_stream_counts_its_own_requests() {
        // Two commands each of requests 0, 2 and 4, which are the first of two streams.
        let own = Numbering { size: 2, shared: false, turns: None, per_seat: false, streams: 2 };
        assert!(!own.is_plain());
        assert_eq!([0, 1, 4, 5, 8, 9].map(|number| own.of(number)), [0, 1, 2, 3, 4, 5]);
        // And of requests 1, 3 and 5, of the second.
        assert_eq!([2, 3, 6, 7, 10, 11].map(|number| own.of(number)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_operation_counts_its_own_turns() {
        // One request of the first operation, then three of the second.
        let turns = |first, count| Numbering {
            size: 1,
            shared: false,
            turns: Some(Turns { period: 4, first, count, walk: None }),
            per_seat: false,
            streams: 1,
        };
        assert_eq!([0, 4, 8].map(|k| turns(0, 1).of(k)), [0, 1, 2]);
        assert_eq!([1, 2, 3, 5, 6, 7, 9].map(|k| turns(1, 3).of(k)), [0, 1, 2, 3, 4, 5, 6]);
        let twice = Numbering { size: 2, ..turns(1, 3) };
        assert_eq!([2, 3, 4, 5, 6, 7, 10, 11].map(|number| twice.of(number)), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_seat_counts_its_own_commands() {
        let own = Numbering { size: 2, shared: false, turns: None, per_seat: true, streams: 1 };
        let turns = Some(Turns { period: 3, first: 1, count: 2, walk: Some(0) });
        for seat in [0, 1, 70_000] {
            let of = |numbering: Numbering, commands: [u64; 4], period| {
                commands.map(|command| seat_of(numbering.of(begin_apart(seat, period) * numbering.size + command)))
            };
            assert_eq!(of(own, [0, 1, 2, 3], 1), [0, 1, 2, 3].map(|number| (seat, number)));
            // The first of three requests belongs to another operation.
            let in_turns = Numbering { size: 1, turns, ..own };
            assert_eq!(of(in_turns, [1, 2, 4, 5], 3), [0, 1, 2, 3].map(|number| (seat, number)));
            let shared = Numbering { shared: true, ..own };
            assert_eq!(of(shared, [0, 1, 2, 3], 1), [0, 0, 1, 1].map(|number| (seat, number)));
        }
    }

    #[test]
    fn seats_divide_a_walk_among_them() {
        assert_eq!([0, 1, 2, 3].map(|seat| place(seat, 1000)), [0, 500, 250, 750]);
        for seats in 1..70 {
            let mut places: Vec<_> = (0..seats).map(|seat| place(seat, 1 << 20)).collect();
            places.sort_unstable();
            let nearest = places.windows(2).map(|two| two[1] - two[0]).min();
            assert!(nearest.is_none_or(|nearest| nearest * 2 * seats >= 1 << 20), "{seats}: {nearest:?}");
        }
    }
}
