//! A stamp at the beginning of each value: its writer, and the number of the write to this key.

use redisbench_wire::plan::Verify;

use crate::workload::rng::mix;

const LENGTH: usize = Verify::STAMP_BYTES as usize;

/// A writer: one shard of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    run: u64,
    shard: u32,
}

/// The stamp of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamped {
    /// This writer's write with this number, from 1.
    Own(u32),
    /// A valid stamp of another run.
    Foreign,
    /// Not a valid stamp for this key.
    Broken,
}

impl Writer {
    /// A writer per trial, so that values of an earlier trial of the same run are not its own.
    pub(super) fn new(run: &str, trial: u32, shard: u32) -> Self {
        let run = run.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mix(hash ^ u64::from(byte)));
        Self { run: mix(run ^ u64::from(trial)), shard }
    }

    /// Stamps `value` as write number `sequence` of key `key`. Leaves a value that is too short unchanged.
    pub(super) fn write(self, key: u64, sequence: u32, value: &mut [u8]) {
        let Some((stamp, rest)) = value.split_first_chunk_mut::<LENGTH>() else { return };
        let sum = checksum(self.run, self.shard, key, sequence, rest);
        let words =
            [&self.run.to_le_bytes()[..], &sum.to_le_bytes(), &sequence.to_le_bytes(), &self.shard.to_le_bytes()];
        let mut at = 0;
        for word in words {
            stamp[at..at + word.len()].copy_from_slice(word);
            at += word.len();
        }
    }

    /// Reads the stamp of key `key`'s value.
    pub(super) fn read(self, key: u64, value: &[u8]) -> Stamped {
        let Some((stamp, rest)) = value.split_first_chunk::<LENGTH>() else { return Stamped::Broken };
        let [run, sum] = [0, 8].map(|at| u64::from_le_bytes(word(stamp, at)));
        let [sequence, shard] = [16, 20].map(|at| u32::from_le_bytes(word(stamp, at)));
        if sequence == 0 || sum != checksum(run, shard, key, sequence, rest) {
            return Stamped::Broken;
        }
        match (run == self.run, shard == self.shard) {
            (true, true) => Stamped::Own(sequence),
            // No other shard writes this key.
            (true, false) => Stamped::Broken,
            (false, _) => Stamped::Foreign,
        }
    }
}

fn word<const BYTES: usize>(stamp: &[u8; LENGTH], at: usize) -> [u8; BYTES] {
    let mut word = [0; BYTES];
    word.copy_from_slice(&stamp[at..at + BYTES]);
    word
}

/// Against accidents, not against an adversary: each input bit changes about half of the output bits, and as each step is a permutation,
/// two inputs never collide in one.
fn checksum(run: u64, shard: u32, key: u64, sequence: u32, rest: &[u8]) -> u64 {
    let mut sum = mix(run ^ mix(key ^ mix(u64::from(shard) << 32 | u64::from(sequence))));
    let mut words = rest.chunks_exact(8);
    for piece in words.by_ref() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(piece);
        sum = mix(sum ^ u64::from_le_bytes(bytes)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(sum ^ u64::from_le_bytes(last) ^ mix(rest.len() as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_changed_bit_is_seen(
            bytes in prop::collection::vec(any::<u8>(), LENGTH..200),
            key in any::<u64>(),
            sequence in 1..u32::MAX,
            bit in any::<prop::sample::Index>(),
        ) {
            let writer = Writer::new("run", 0, 3);
            let mut value = bytes.clone();
            writer.write(key, sequence, &mut value);
            prop_assert_eq!(writer.read(key, &value), Stamped::Own(sequence));
            prop_assert_eq!(&value[LENGTH..], &bytes[LENGTH..]);
            prop_assert_eq!(writer.read(key ^ 1, &value), Stamped::Broken, "another key's");
            prop_assert_eq!(Writer::new("run", 0, 4).read(key, &value), Stamped::Broken, "another shard's");
            for other in [Writer::new("later", 0, 3), Writer::new("run", 1, 3)] {
                prop_assert_eq!(other.read(key, &value), Stamped::Foreign);
            }
            let mut longer = value.clone();
            longer.push(0);
            prop_assert_eq!(writer.read(key, &longer), Stamped::Broken);
            prop_assert_eq!(writer.read(key, &value[..value.len() - 1]), Stamped::Broken);
            let bit = bit.index(value.len() * 8);
            value[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(writer.read(key, &value), Stamped::Broken);
        }
    }
}
