//! Push messages of a connection, with the keys that they invalidate. The decoder skips push messages, so they are taken before it.

use crate::resp::ProtocolError;

/// The longest push message that is kept until its end arrives, in bytes.
const LONGEST: usize = 256 << 20;

/// One push message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Push<'a> {
    /// These keys, encoded as an array's elements, changed.
    Invalidate(Keys<'a>),
    /// All keys changed: FLUSHALL or FLUSHDB.
    InvalidateAll,
    /// It is about something else.
    Other,
}

/// The elements of an array of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys<'a>(&'a [u8]);

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() { None } else { string(&mut self.0).ok() }
    }
}

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Its end has not arrived.
    Incomplete,
    Malformed(ProtocolError),
}

impl From<ProtocolError> for Missing {
    fn from(error: ProtocolError) -> Self {
        Self::Malformed(error)
    }
}

/// Takes the push message at the beginning of `input`, which begins with `>`.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Result<Push<'a>, Missing> {
    let mut rest = *input;
    let elements = header(&mut rest, b'>')?.ok_or(ProtocolError::BadLength)?;
    let mut content = rest;
    for _ in 0..elements {
        skip(&mut rest, 0)?;
    }
    *input = rest;
    if elements != 2 || string(&mut content) != Ok(b"invalidate") {
        return Ok(Push::Other);
    }
    Ok(match content.first() {
        Some(b'*') => match header(&mut content, b'*')? {
            // Exactly the elements are left, except for the rest of the input.
            Some(_) => Push::Invalidate(Keys(&content[..content.len() - rest.len()])),
            None => Push::InvalidateAll,
        },
        Some(b'_') => Push::InvalidateAll,
        _ => Push::Other,
    })
}

/// Nested aggregates in a push message. No server nests deeper.
const NESTED: usize = 8;

/// Skips one value.
fn skip(input: &mut &[u8], depth: usize) -> Result<(), Missing> {
    match input.first() {
        None => Err(Missing::Incomplete),
        Some(b'$' | b'=') => string(input).map(drop),
        Some(kind @ (b'*' | b'~' | b'%')) if depth < NESTED => {
            let kind = *kind;
            let factor = if kind == b'%' { 2 } else { 1 };
            for _ in 0..factor * header(input, kind)?.unwrap_or(0) {
                skip(input, depth + 1)?;
            }
            Ok(())
        }
        Some(b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_') => line(input).map(drop),
        Some(_) => Err(ProtocolError::UnknownType.into()),
    }
}

/// The line at the beginning of `input`, without its end.
fn line<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Missing> {
    let end = input.iter().position(|byte| *byte == b'\n').ok_or(Missing::Incomplete)?;
    let (line, rest) = input.split_at(end + 1);
    *input = rest;
    line.strip_suffix(b"\r\n").ok_or(Missing::Malformed(ProtocolError::BadEnd))
}

/// The number after the type byte `kind`; `None` for null.
fn header(input: &mut &[u8], kind: u8) -> Result<Option<usize>, Missing> {
    let text = line(input)?.strip_prefix(&[kind]).ok_or(ProtocolError::UnknownType)?;
    if text == b"-1" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().filter(|_| text.len() <= 9).and_then(|text| text.parse().ok());
    Ok(Some(number.ok_or(ProtocolError::BadLength)?))
}

/// The string at the beginning of `input`; null is empty.
fn string<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Missing> {
    let kind = input.first().copied().unwrap_or(b'$');
    let Some(length) = header(input, kind)? else { return Ok(&[]) };
    let (text, rest) = input.split_at_checked(length).ok_or(Missing::Incomplete)?;
    match rest {
        [b'\r', b'\n', rest @ ..] => {
            *input = rest;
            Ok(text)
        }
        [] | [b'\r'] => Err(Missing::Incomplete),
        _ => Err(ProtocolError::BadEnd.into()),
    }
}

/// The beginning of a push message whose end has not arrived.
#[derive(Debug, Default)]
pub(super) struct Partial(Vec<u8>);

impl Partial {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Keeps `input`, which has no end of a message.
    pub(super) fn keep(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
        if self.0.len() + input.len() > LONGEST {
            return Err(ProtocolError::BadLength);
        }
        self.0.extend_from_slice(input);
        *input = &[];
        Ok(())
    }

    /// The kept beginning followed by `input`.
    pub(super) fn join(&mut self, input: &[u8]) -> Vec<u8> {
        let mut joined = std::mem::take(&mut self.0);
        joined.extend_from_slice(input);
        joined
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(mut input: &[u8]) -> (Result<Push<'_>, Missing>, usize) {
        let push = take(&mut input);
        (push, input.len())
    }

    fn keys(input: &[u8]) -> Vec<Vec<u8>> {
        match taken(input).0 {
            Ok(Push::Invalidate(keys)) => keys.map(<[u8]>::to_vec).collect(),
            other => panic!("{other:?}"),
        }
    }

    const TWO: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$3\r\nb\r\n\r\n";

    #[test]
    fn keys_are_taken_whatever_they_contain() {
        assert_eq!(keys(TWO), [b"a".to_vec(), b"b\r\n".to_vec()]);
        assert_eq!(taken(&[TWO, b"+OK\r\n"].concat()).1, 5);
        assert_eq!(keys(b">2\r\n$10\r\ninvalidate\r\n*0\r\n"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn null_is_every_key_and_other_messages_are_skipped() {
        for all in [&b">2\r\n$10\r\ninvalidate\r\n_\r\n"[..], b">2\r\n$10\r\ninvalidate\r\n*-1\r\n"] {
            assert_eq!(taken(all), (Ok(Push::InvalidateAll), 0));
        }
        for other in [&b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n%1\r\n+a\r\n:1\r\n"[..], b">0\r\n"] {
            assert_eq!(taken(other), (Ok(Push::Other), 0));
        }
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for bad in [&b">x\r\n"[..], b">2\n", b">-1\r\n", b">1\r\n?1\r\n", b">1\r\n$1\r\naxx"] {
            assert!(matches!(taken(bad).0, Err(Missing::Malformed(_))), "{bad:?}");
        }
        let deep = [&b">1\r\n"[..], &b"*1\r\n".repeat(100)].concat();
        assert!(matches!(taken(&deep).0, Err(Missing::Malformed(_))));
    }

    proptest! {
        #[test]
        fn every_cut_waits_for_the_rest(cut in 1..TWO.len()) {
            let mut partial = Partial::default();
            let mut first = &TWO[..cut];
            prop_assert_eq!(take(&mut first), Err(Missing::Incomplete));
            prop_assert_eq!(first.len(), cut, "nothing is taken");
            partial.keep(&mut first).unwrap();
            prop_assert!(first.is_empty() && !partial.is_empty());
            let joined = partial.join(&TWO[cut..]);
            prop_assert_eq!(keys(&joined), [b"a".to_vec(), b"b\r\n".to_vec()]);
        }
    }
}
