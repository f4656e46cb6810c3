/// The number of slots of a Redis Cluster.
pub const SLOTS: usize = 16_384;

/// CRC-16/XMODEM, continued from `crc`, which is 0 at the beginning.
#[inline]
pub fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) ^ u16::from(*byte)) & 0xff])
}

/// The slot of `key`. Only the hash tag counts if it has one.
pub fn slot_of(key: &[u8]) -> u16 {
    let (start, end) = hashed_part(key);
    crc16(0, &key[start..end]) % SLOTS as u16
}

/// [`slot_of`] a key that comes in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotHash {
    whole: u16,
    tag: Tag,
}

#[derive(Clone, Copy, Debug, Default)]
enum Tag {
    #[default]
    Unseen,
    Open {
        crc: u16,
        is_empty: bool,
    },
    Closed(u16),
    /// The first one is empty, so none counts.
    Empty,
}

impl SlotHash {
    /// Continues with the next piece of the key.
    pub fn add(&mut self, piece: &[u8]) {
        self.whole = crc16(self.whole, piece);
        for byte in piece.iter().copied() {
            self.tag = match (self.tag, byte) {
                (Tag::Unseen, b'{') => Tag::Open { crc: 0, is_empty: true },
                (Tag::Open { is_empty: true, .. }, b'}') => Tag::Empty,
                (Tag::Open { crc, .. }, b'}') => Tag::Closed(crc),
                (Tag::Open { crc, .. }, byte) => Tag::Open { crc: crc16(crc, &[byte]), is_empty: false },
                (tag, _) => tag,
            };
        }
    }

    /// The slot of the whole key.
    pub fn slot(self) -> u16 {
        let crc = if let Tag::Closed(crc) = self.tag { crc } else { self.whole };
        crc % SLOTS as u16
    }
}

/// The range of `key` that decides its slot: the text between the first `{` and the next `}` if it is not empty, otherwise the whole key.
pub fn hashed_part(key: &[u8]) -> (usize, usize) {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let length = key[open + 1..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then_some((open + 1, open + 1 + length))
    });
    tag.unwrap_or((0, key.len()))
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_s_examples() {
        assert_eq!(crc16(0, b"123456789"), 0x31C3);
        assert_eq!(crc16(crc16(0, b"1234"), b"56789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(0, b"foo{}{bar}") % 16384);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        assert_eq!(slot_of(b"open{tag"), crc16(0, b"open{tag") % 16384);
    }

    #[test]
    fn pieces_of_a_key_have_its_slot() {
        for key in ["foo", "{user}.a", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "open{tag", "a}b{c}", "{}", ""] {
            for cut in 0..=key.len() {
                let mut hash = SlotHash::default();
                hash.add(&key.as_bytes()[..cut]);
                hash.add(&key.as_bytes()[cut..]);
                assert_eq!(hash.slot(), slot_of(key.as_bytes()), "{key} cut at {cut}");
            }
        }
    }
}
