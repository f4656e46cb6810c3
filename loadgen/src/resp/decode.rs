//! A scanner that finds the ends of replies, whatever pieces the socket delivers. Bodies of bulk strings are skipped and never copied.
//! Only a header line that is split is carried over to the next piece.

mod note;

use note::Note;

/// The longest line (header, status or error) accepted, in bytes.
const LINE_BYTES: usize = 64 << 10;

/// The longest bulk string accepted, in bytes: the largest that a server can be configured to send.
const BULK_BYTES: u64 = 1 << 40;

/// The maximum number of pending elements of a reply, at any nesting.
const ELEMENTS: u64 = 1 << 40;

/// The part of an error's text that is kept, in bytes.
const ERROR_BYTES: usize = 256;

/// The reply `+OK` as the beginning of a word.
const OK: u64 = u64::from_le_bytes(*b"+OK\r\n\0\0\0");
const OK_LENGTH: usize = 5;
/// The bits of a word that `+OK` occupies.
const OK_MASK: u64 = u64::MAX >> (8 * (8 - OK_LENGTH));

/// The outcome of one complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Anything that is neither null, empty nor an error.
    Value,
    /// Null, or an empty array, set or map: a missing key, nothing left to take, or a condition that was not met.
    Nil,
    /// An error. [`Decoder::error_text`] is its text until the next reply is decoded.
    Error,
}

/// The peer violated the protocol. The connection is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A reply begins with an unknown byte.
    #[error("a reply begins with an unknown byte")]
    UnknownType,
    /// A length is not a number, negative or out of bounds.
    #[error("a reply has an invalid length")]
    BadLength,
    /// A line is longer than 64 KiB.
    #[error("a reply's line is longer than 64 KiB")]
    LongLine,
    /// A line or body does not end in CR LF.
    #[error("a reply does not end in CR LF")]
    BadEnd,
    /// The text of a number, boolean or null is invalid.
    #[error("a reply does not match its type")]
    BadValue,
}

/// The decoder's state between two pieces of input: a few words, and the beginning of a line that was split.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes of a body, including its CR LF, still to skip.
    skip: u64,
    /// Elements still missing from the reply; 0 between replies. Nesting needs no stack: an aggregate of n elements adds n.
    wanted: u64,
    /// The outcome of the reply in progress.
    reply: Option<Reply>,
    /// The input being read answers no command: a push message, or attributes before a reply.
    aside: bool,
    /// A line whose end was not received yet.
    carry: Vec<u8>,
    error: Vec<u8>,
    /// The note of the last reply; `None` if notes are not used.
    note: Option<Box<Note>>,
}

impl Decoder {
    /// Consumes input up to the end of the next reply, or all of it if the reply is incomplete.
    ///
    /// # Errors
    /// Fails if the input is not RESP. The decoder is unusable afterwards.
    #[inline]
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ProtocolError> {
        if self.is_between_replies()
            && let Some(reply) = WholeReplies::default().next_unlike(input)
        {
            return Ok(Some(reply));
        }
        self.next_in_pieces::<false>(input)
    }

    /// Like [`Self::next`], and also notes the beginning of the reply and the first error nested in it: [`Self::note`].
    ///
    /// # Errors
    /// Fails if the input is not RESP. The decoder is unusable afterwards.
    pub fn next_noted(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ProtocolError> {
        self.next_in_pieces::<true>(input)
    }

    /// The beginning of the first line of the last noted reply, including its type byte.
    pub fn note(&self) -> &[u8] {
        self.note.as_ref().map_or(&[], |note| note.line())
    }

    /// The text of the first error nested in that reply, without its leading `-`, cut to 256 bytes.
    pub fn nested_error(&self) -> Option<&[u8]> {
        self.note.as_ref()?.nested()
    }

    /// Returns whether no reply is in progress.
    #[inline]
    pub fn is_between_replies(&self) -> bool {
        self.skip == 0 && self.wanted == 0 && self.carry.is_empty() && self.reply.is_none() && !self.aside
    }

    fn next_in_pieces<const NOTED: bool>(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ProtocolError> {
        loop {
            if self.skip > 0 && !self.skip_body(input)? {
                return Ok(None);
            }
            if self.wanted == 0
                && let Some(reply) = self.reply.take()
            {
                if !std::mem::take(&mut self.aside) {
                    return Ok(Some(reply));
                }
                continue;
            }
            if input.is_empty() {
                return Ok(None);
            }
            if self.carry.is_empty() {
                let Some(end) = line_end(input) else {
                    if input.len() > LINE_BYTES {
                        return Err(ProtocolError::LongLine);
                    }
                    self.carry.extend_from_slice(input);
                    *input = &[];
                    return Ok(None);
                };
                let (line, rest) = input.split_at(end + 1);
                *input = rest;
                self.line::<NOTED>(line)?;
            } else if !self.carried_line::<NOTED>(input)? {
                return Ok(None);
            }
        }
    }

    /// The text of the last error reply, without its leading `-`, cut to 256 bytes.
    pub fn error_text(&self) -> &[u8] {
        &self.error
    }

    /// Resets all state, for a new connection.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Skips the available part of a body. Returns whether its end was reached.
    #[inline]
    fn skip_body(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        let here = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
        // The body's CR LF are the last two bytes to skip, and may arrive in different pieces.
        for (from_end, byte) in [(2, b'\r'), (1, b'\n')] {
            let at = self.skip.checked_sub(from_end).and_then(|at| usize::try_from(at).ok());
            if at.and_then(|at| input.get(at)).is_some_and(|found| *found != byte) {
                return Err(ProtocolError::BadEnd);
            }
        }
        *input = &input[here..];
        self.skip -= here as u64;
        Ok(self.skip == 0)
    }

    #[cold]
    fn carried_line<const NOTED: bool>(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        let (taken, complete) = match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (input.len(), false),
        };
        if self.carry.len() + taken > LINE_BYTES {
            return Err(ProtocolError::LongLine);
        }
        let (head, rest) = input.split_at(taken);
        self.carry.extend_from_slice(head);
        *input = rest;
        if complete {
            let mut line = std::mem::take(&mut self.carry);
            self.line::<NOTED>(&line)?;
            line.clear();
            // Keeps a small allocation for the next split line, and frees a large one.
            if line.capacity() <= 64 {
                self.carry = line;
            }
        }
        Ok(complete)
    }

    /// Takes one whole line, including its LF.
    #[inline]
    fn line<const NOTED: bool>(&mut self, line: &[u8]) -> Result<(), ProtocolError> {
        let [kind, text @ .., b'\r', b'\n'] = line else {
            return Err(ProtocolError::BadEnd);
        };
        let top = self.wanted == 0;
        if NOTED {
            self.note.get_or_insert_default().take(top, *kind, text);
        }
        match kind {
            b'$' | b'=' => {
                if text == b"-1" && *kind == b'$' {
                    self.element(top, Reply::Nil);
                } else {
                    let length = length(text)?;
                    self.skip = length + 2;
                    self.element(top, Reply::Value);
                }
            }
            b':' | b',' | b'#' | b'(' | b'_' if !is_scalar(*kind, text) => return Err(ProtocolError::BadValue),
            b'+' | b':' | b',' | b'#' | b'(' => self.element(top, Reply::Value),
            b'-' => {
                if top {
                    self.keep_error(text);
                }
                self.element(top, Reply::Error);
            }
            b'_' => self.element(top, Reply::Nil),
            b'!' => {
                let length = length(text)?;
                if top {
                    self.keep_error(b"a bulk error");
                }
                self.skip = length + 2;
                self.element(top, Reply::Error);
            }
            b'*' if text == b"-1" => self.element(top, Reply::Nil),
            b'*' | b'~' => self.aggregate(top, text, 1)?,
            b'%' => self.aggregate(top, text, 2)?,
            b'>' if top => {
                self.aside = true;
                self.aggregate(top, text, 1)?;
            }
            b'|' if top => {
                self.aside = true;
                self.aggregate(top, text, 2)?;
            }
            // Nested attributes precede their element and do not count as one.
            b'|' => self.want(2 * count(text)?)?,
            _ => return Err(ProtocolError::UnknownType),
        }
        Ok(())
    }

    /// Counts one element (except for its body).
    #[inline]
    fn element(&mut self, top: bool, reply: Reply) {
        if top {
            self.reply = Some(reply);
        } else {
            self.wanted -= 1;
        }
    }

    fn aggregate(&mut self, top: bool, text: &[u8], factor: u64) -> Result<(), ProtocolError> {
        let elements = count(text)? * factor;
        self.element(top, if elements == 0 { Reply::Nil } else { Reply::Value });
        self.want(elements)
    }

    fn want(&mut self, elements: u64) -> Result<(), ProtocolError> {
        self.wanted += elements;
        if self.wanted > ELEMENTS { Err(ProtocolError::BadLength) } else { Ok(()) }
    }

    #[cold]
    fn keep_error(&mut self, text: &[u8]) {
        self.error.clear();
        self.error.extend_from_slice(&text[..text.len().min(ERROR_BYTES)]);
    }
}

/// Takes the most common replies: a status, a number, null or a bulk string, short and complete. Remembers the header of the latest bulk
/// string, because the next one usually has the same length.
#[derive(Debug)]
pub struct WholeReplies {
    /// The header's bytes, the first in the lowest place.
    header: u64,
    /// The bits of a word that the header occupies.
    mask: u64,
    /// The length of the whole reply in bytes.
    length: usize,
}

impl Default for WholeReplies {
    /// No input has this header.
    fn default() -> Self {
        Self { header: u64::MAX, mask: 0, length: 0 }
    }
}

/// Replies taken together, none of them an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub count: usize,
    /// Of them, those that are [`Reply::Nil`].
    pub nil: u64,
}

impl WholeReplies {
    /// Returns whether `input` may begin with a reply that [`Self::take`] consumes.
    #[inline]
    pub fn may_take(input: &[u8]) -> bool {
        matches!(input, [b'$' | b'+' | b':', ..])
    }

    /// Consumes up to `most` replies. Leaves anything uncertain to [`Decoder::next`]. Call it only between two replies.
    #[inline]
    pub fn take(&mut self, input: &mut &[u8], most: usize) -> Taken {
        let mut taken = Taken::default();
        loop {
            taken.count += self.take_alike(input, most - taken.count);
            if taken.count == most {
                return taken;
            }
            let Some(reply) = self.next_unlike(input) else { return taken };
            taken.count += 1;
            taken.nil += u64::from(reply == Reply::Nil);
        }
    }

    /// Consumes up to `most` replies that are `+OK` or have the remembered header.
    #[inline]
    fn take_alike(&self, input: &mut &[u8], most: usize) -> usize {
        let (mut count, mut unread) = (0, *input);
        while count < most
            && let Some(word) = unread.first_chunk()
        {
            let word = u64::from_le_bytes(*word);
            let length = if word & self.mask == self.header {
                self.length
            } else if word & OK_MASK == OK {
                OK_LENGTH
            } else {
                break;
            };
            let Some((reply, rest)) = unread.split_at_checked(length) else { break };
            if !reply.ends_with(b"\r\n") {
                break;
            }
            unread = rest;
            count += 1;
        }
        *input = unread;
        count
    }

    #[inline(never)]
    fn next_unlike(&mut self, input: &mut &[u8]) -> Option<Reply> {
        let (reply, length) = match *input {
            [b'$', b'-', b'1', b'\r', b'\n', ..] => (Reply::Nil, 5),
            [b'$', rest @ ..] => {
                let length = bulk(rest)? + 1;
                self.remember(input, length);
                (Reply::Value, length)
            }
            [b'+', b'O', b'K', b'\r', b'\n', ..] => (Reply::Value, OK_LENGTH),
            [b':', rest @ ..] => {
                let end = rest.iter().take(21).position(|byte| *byte == b'\r')?;
                if rest.get(end + 1) != Some(&b'\n') || !is_integer(&rest[..end]) {
                    return None;
                }
                (Reply::Value, end + 3)
            }
            _ => return None,
        };
        *input = input.get(length..)?;
        Some(reply)
    }

    /// Remembers the header of the bulk string at the beginning of `input`, if it fits into a word.
    fn remember(&mut self, input: &[u8], length: usize) {
        let Some((word, header)) = input.first_chunk().zip(line_end(input)).filter(|(_, end)| *end < 8) else { return };
        self.mask = u64::MAX >> (8 * (7 - header));
        self.header = u64::from_le_bytes(*word) & self.mask;
        self.length = length;
    }
}

/// The length of a bulk string after its `$`, including the final CR LF.
#[inline]
fn bulk(rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    // Up to 999,999 bytes: longer strings do not arrive in one piece.
    for (at, byte) in rest.iter().enumerate().take(7) {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            length = length * 10 + usize::from(digit);
            continue;
        }
        let end = at + 2 + length;
        let ends = at > 0 && *byte == b'\r' && rest.get(at + 1) == Some(&b'\n');
        return (ends && rest.get(end..end + 2)? == b"\r\n").then_some(end + 2);
    }
    None
}

/// The index of the first LF.
#[inline]
fn line_end(input: &[u8]) -> Option<usize> {
    // Headers are a few bytes long, for which a plain loop is the fastest search.
    input.iter().position(|byte| *byte == b'\n')
}

#[inline]
fn length(text: &[u8]) -> Result<u64, ProtocolError> {
    number(text).filter(|length| *length <= BULK_BYTES).ok_or(ProtocolError::BadLength)
}

fn count(text: &[u8]) -> Result<u64, ProtocolError> {
    number(text).filter(|count| *count <= ELEMENTS).ok_or(ProtocolError::BadLength)
}

/// Returns whether `text` is valid for a line of type `kind`.
#[cold]
fn is_scalar(kind: u8, text: &[u8]) -> bool {
    match kind {
        b':' => is_integer(text),
        b',' => std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok()),
        b'#' => matches!(text, b"t" | b"f"),
        b'(' => is_digits(unsigned(text)),
        _ => text.is_empty(),
    }
}

/// Returns whether `text` is a decimal 64-bit integer with optional sign.
#[inline]
fn is_integer(text: &[u8]) -> bool {
    let digits = unsigned(text);
    // 18 digits cannot overflow.
    is_digits(digits) && (digits.len() <= 18 || std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok()))
}

#[inline]
fn unsigned(text: &[u8]) -> &[u8] {
    if let [b'-' | b'+', digits @ ..] = text { digits } else { text }
}

#[inline]
fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

#[inline]
fn number(text: &[u8]) -> Option<u64> {
    // 18 digits cannot overflow.
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut number = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests;
