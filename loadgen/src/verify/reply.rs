//! Replies by type.

/// A reply. Keeps only the content that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'r> {
    /// A simple string.
    Status(&'r [u8]),
    Integer(i64),
    /// A bulk or verbatim string.
    Bulk(&'r [u8]),
    /// Null of any kind.
    Nil,
    Array,
    /// RESP3 only.
    Map,
    /// RESP3 only.
    Set,
    /// RESP3 only.
    Double,
    /// RESP3 only.
    Boolean,
    /// Too long to keep, or another type.
    Unknown,
}

impl<'r> Seen<'r> {
    /// Parses one complete reply. `whole` is false if only its beginning was kept.
    pub fn of(raw: &'r [u8], whole: bool) -> Self {
        let mut raw = raw;
        // Skip push messages and attributes before the reply.
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
            // The first four bytes are the format of the text.
            b'=' if whole => {
                rest.strip_suffix(b"\r\n").and_then(|text| text.get(4..)).map_or(Self::Unknown, Self::Bulk)
            }
            // Longer than any written value, so the content does not matter.
            b'$' | b'=' => Self::Bulk(b""),
            b'*' => Self::Array,
            b'%' => Self::Map,
            b'~' => Self::Set,
            b',' => Self::Double,
            b'#' => Self::Boolean,
            _ => Self::Unknown,
        }
    }

    /// The type as text, for messages.
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

/// The bytes after the first element.
fn skip(raw: &[u8]) -> Option<&[u8]> {
    let mut rest = raw;
    let mut wanted: u64 = 1;
    while wanted > 0 {
        let (kind, text, behind) = line(rest)?;
        rest = behind;
        let top = rest.len() + text.len() + 3 == raw.len();
        // An attribute belongs to the element after it, unless the attribute itself is skipped.
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
