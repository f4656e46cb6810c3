//! A reply as it came, told apart by its type.

/// A reply, without its parts but for those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'r> {
    /// A line of text.
    Status(&'r [u8]),
    /// A number.
    Integer(i64),
    /// A string of bytes.
    Bulk(&'r [u8]),
    /// Null, of any kind.
    Nil,
    /// A list.
    Array,
    /// Pairs, in RESP3.
    Map,
    /// A list without order, in RESP3.
    Set,
    /// A number with a fraction, in RESP3.
    Double,
    /// Yes or no, in RESP3.
    Boolean,
    /// Too long to be kept, or of a type that is not told apart.
    Unknown,
}

impl<'r> Seen<'r> {
    /// What the bytes of one whole reply are. Those of a longer one than is kept are `whole: false`.
    pub fn of(raw: &'r [u8], whole: bool) -> Self {
        let mut raw = raw;
        // What a server says beside its replies stands before one.
        while let [b'>' | b'|', ..] = raw {
            let Some(rest) = skip(raw) else { return Self::Unknown };
            raw = rest;
        }
        let Some((kind, text, rest)) = line(raw) else { return Self::Unknown };
        match kind {
            b'+' => Self::Status(text),
            b':' => number(text).map_or(Self::Unknown, Self::Integer),
            b'_' => Self::Nil,
            b'$' | b'*' if text == b"-1" => Self::Nil,
            b'$' if whole => rest.strip_suffix(b"\r\n").map_or(Self::Unknown, Self::Bulk),
            // The first four bytes say of what kind the text is.
            b'=' if whole => {
                rest.strip_suffix(b"\r\n").and_then(|text| text.get(4..)).map_or(Self::Unknown, Self::Bulk)
            }
            // Too long for any value that was written, whatever is in it.
            b'$' | b'=' => Self::Bulk(b""),
            b'*' => Self::Array,
            b'%' => Self::Map,
            b'~' => Self::Set,
            b',' => Self::Double,
            b'#' => Self::Boolean,
            _ => Self::Unknown,
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status(_) => "a status",
            Self::Integer(_) => "an integer",
            Self::Bulk(_) => "a string",
            Self::Nil => "nil",
            Self::Array => "an array",
            Self::Map => "a map",
            Self::Set => "a set",
            Self::Double => "a double",
            Self::Boolean => "a boolean",
            Self::Unknown => "a reply of another type",
        }
    }
}

fn line(raw: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let end = raw.iter().position(|byte| *byte == b'\n')?;
    let [kind, text @ .., b'\r'] = &raw[..end] else { return None };
    Some((*kind, text, &raw[end + 1..]))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What stands behind the first element.
fn skip(raw: &[u8]) -> Option<&[u8]> {
    let mut rest = raw;
    let mut wanted: u64 = 1;
    while wanted > 0 {
        let (kind, text, behind) = line(rest)?;
        rest = behind;
        let top = rest.len() + text.len() + 3 == raw.len();
        // Attributes belong to the element behind them, unless they are what is skipped.
        if kind != b'|' || top {
            wanted -= 1;
        }
        let count = || number(text).and_then(|count| u64::try_from(count).ok());
        match kind {
            b'$' | b'=' | b'!' if text != b"-1" => {
                rest = rest.get(usize::try_from(count()?).ok()?.checked_add(2)?..)?;
            }
            b'*' | b'~' | b'>' if text != b"-1" => wanted = wanted.checked_add(count()?)?,
            b'%' | b'|' => wanted = wanted.checked_add(count()?.checked_mul(2)?)?,
            _ => {}
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_known_by_its_type() {
        for (raw, seen) in [
            (&b"+OK\r\n"[..], Seen::Status(b"OK")),
            (b":-42\r\n", Seen::Integer(-42)),
            (b"$3\r\na\r\n\r\n", Seen::Bulk(b"a\r\n")),
            (b"$0\r\n\r\n", Seen::Bulk(b"")),
            (b"$-1\r\n", Seen::Nil),
            (b"*-1\r\n", Seen::Nil),
            (b"_\r\n", Seen::Nil),
            (b"=7\r\ntxt:abc\r\n", Seen::Bulk(b"abc")),
            (b"*2\r\n:1\r\n:2\r\n", Seen::Array),
            (b"%1\r\n+a\r\n:1\r\n", Seen::Map),
            (b"~0\r\n", Seen::Set),
            (b",1.5\r\n", Seen::Double),
            (b"#t\r\n", Seen::Boolean),
            (b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n$1\r\nv\r\n", Seen::Bulk(b"v")),
            (b"|1\r\n+ttl\r\n:3\r\n:7\r\n", Seen::Integer(7)),
            (b">1\r\n|1\r\n+a\r\n:1\r\n:2\r\n:7\r\n", Seen::Integer(7)),
            (b"|2\r\n+a", Seen::Unknown),
        ] {
            assert_eq!(Seen::of(raw, true), seen, "{}", String::from_utf8_lossy(raw));
        }
        assert_eq!(Seen::of(b"$900\r\nabc", false), Seen::Bulk(b""));
    }
}
