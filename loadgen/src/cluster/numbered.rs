use super::slot::{SLOTS, crc16};

/// Digits per lookup table.
const DIGITS: usize = 3;

/// Values of a group of [`DIGITS`] digits.
const VALUES: usize = 1000;

/// The slots of keys that differ only in a decimal number.
///
/// A CRC with initial value 0 is linear: the CRC of the exclusive or of two texts of equal length is the exclusive or of their CRCs. So a
/// key's CRC is that of the key with zeros for digits, combined with the contribution of each group of digits, which is looked up.
#[derive(Debug)]
pub struct NumberedSlots {
    /// The CRC with zeros for digits.
    zeros: u16,
    /// The contribution of each value of a group, the group of the lowest digits first.
    groups: Box<[[u16; VALUES]]>,
}

impl NumberedSlots {
    /// `hashed` is the part of the key that decides its slot. Its `width` digits from `at` on are `0`.
    pub fn new(hashed: &[u8], at: usize, width: usize) -> Self {
        let end = at + width;
        let behind = vec![0; hashed.len() - end];
        let group = |group: usize| {
            let mut changes = [0; VALUES];
            for (value, change) in changes.iter_mut().enumerate() {
                // A digit combined with `0` by exclusive or is the digit's value.
                let digits = [value / 100, value / 10 % 10, value % 10].map(|digit| digit as u8);
                let own = DIGITS.min(width - group * DIGITS);
                let before = vec![0; group * DIGITS];
                *change = crc16(crc16(crc16(0, &digits[DIGITS - own..]), &before), &behind);
            }
            changes
        };
        Self { zeros: crc16(0, hashed), groups: (0..width.div_ceil(DIGITS)).map(group).collect() }
    }

    /// The slot of the key with this number.
    #[inline]
    pub fn of(&self, mut number: u64) -> u16 {
        let mut crc = self.zeros;
        for group in &self.groups {
            if number == 0 {
                break;
            }
            crc ^= group[(number % VALUES as u64) as usize];
            number /= VALUES as u64;
        }
        crc % SLOTS as u16
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::slot_of;

    proptest! {
        #[test]
        fn they_are_the_slots_of_the_keys_as_written(
            number in prop_oneof![0..1_000_000_u64, any::<u64>()],
            padding in 0..5_usize,
            before in "[a-z:]{0,9}",
            after in "[a-z:]{0,9}",
        ) {
            let width = number.to_string().len() + padding;
            let hashed = format!("{before}{}{after}", "0".repeat(width));
            let slots = NumberedSlots::new(hashed.as_bytes(), before.len(), width);
            prop_assert_eq!(slots.of(number), slot_of(format!("{before}{number:0width$}{after}").as_bytes()));
        }
    }
}
