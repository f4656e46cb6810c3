//! A scanner that finds the ends of replies in whatever pieces the socket hands out. Bodies of bulk strings are
//! skipped and never copied; only a header line that is cut in two is carried over to the next piece.

mod note;

use note::Note;

/// The longest line (header, status or error) that is accepted.
const LINE_BYTES: usize = 64 << 10;

/// The longest bulk string that is accepted: the largest that a server can be configured to send.
const BULK_BYTES: u64 = 1 << 40;

/// The most elements that a reply may still want, whatever its nesting.
const ELEMENTS: u64 = 1 << 40;

/// How much of an error's text is kept.
const ERROR_BYTES: usize = 256;

/// One complete reply, as far as a load generator needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Anything that is neither nil, empty nor an error.
    Value,
    /// Null, or nothing in an array, set or map: a missing key, nothing left to take, or a condition that was not met.
    Nil,
    /// An error, whose text is [`Decoder::error_text`] until the next reply is decoded.
    Error,
}

/// The peer does not speak the protocol. The connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A reply begins with an unknown byte.
    #[error("a reply begins with an unknown byte")]
    UnknownType,
    /// A length is no number, negative or beyond all bounds.
    #[error("a reply has an impossible length")]
    BadLength,
    /// A line never ends.
    #[error("a reply's line is longer than 64 KiB")]
    LongLine,
    /// A line or body does not end in CR LF.
    #[error("a reply does not end in CR LF")]
    BadEnd,
    /// A number, truth value or null is none.
    #[error("a reply is not of the type that it says")]
    BadValue,
}

/// The state of decoding between two pieces of input: some words, and the start of a line if one was cut.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes of a body, and its CR LF, still to be skipped.
    skip: u64,
    /// Elements still wanted before the reply is complete; 0 between replies. Nesting needs no stack: an aggregate of n
    /// simply wants n elements more.
    wanted: u64,
    /// What the reply in progress is.
    reply: Option<Reply>,
    /// What is being read answers no command: a push message, or attributes before a reply.
    aside: bool,
    /// A line whose end has not come yet.
    carry: Vec<u8>,
    error: Vec<u8>,
    /// What was noted of the last reply; none where nobody wants that.
    note: Option<Box<Note>>,
}

impl Decoder {
    /// Consumes input up to the end of the next reply, or all of it if the reply is incomplete.
    ///
    /// # Errors
    /// When the input is not RESP. The decoder is of no use afterwards.
    #[inline]
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ProtocolError> {
        if self.is_between_replies()
            && let Some(reply) = WholeReplies::default().next_unlike(input)
        {
            return Ok(Some(reply));
        }
        self.next_in_pieces::<false>(input)
    }

    /// The same, and notes how the reply begins and the first error within it: [`Self::note`].
    ///
    /// # Errors
    /// When the input is not RESP. The decoder is of no use afterwards.
    pub fn next_noted(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ProtocolError> {
        self.next_in_pieces::<true>(input)
    }

    /// The first bytes of the first line of the last reply that was noted, its type included.
    pub fn note(&self) -> &[u8] {
        self.note.as_ref().map_or(&[], |note| note.line())
    }

    /// The text of the first error within that reply, without its leading `-`, cut to 256 bytes.
    pub fn nested_error(&self) -> Option<&[u8]> {
        self.note.as_ref()?.nested()
    }

    /// Whether nothing is left over from the input before.
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

    /// Forgets everything, for a new connection.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Skips what there is of a body. Says whether it is through.
    #[inline]
    fn skip_body(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        let here = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input.len());
        // The body's CR LF are the last two of the bytes to skip, and may come in different pieces.
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
            // Keeps a small allocation for the next cut line, and gives back a large one.
            if line.capacity() <= 64 {
                self.carry = line;
            }
        }
        Ok(complete)
    }

    /// Takes one whole line, its LF included.
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
            // Attributes stand before the element that they speak of and are none themselves.
            b'|' => self.want(2 * count(text)?)?,
            _ => return Err(ProtocolError::UnknownType),
        }
        Ok(())
    }

    /// One element is there (but for its body).
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

/// Takes replies that are as nearly all are: a status, a number, null or a bulk string, short and wholly there. Remembers
/// the header of the latest bulk string, because the next is mostly as long.
#[derive(Debug, Default)]
pub struct WholeReplies {
    /// The header's bytes, the first in the lowest place. Before there is one everything has it, but no reply has its
    /// length of 0.
    header: u64,
    /// The bits of a word that its bytes take.
    mask: u64,
    /// The bytes of the whole reply.
    length: usize,
}

impl WholeReplies {
    /// Consumes the next reply. What it is not sure of stays for [`Decoder::next`]. Only to be asked between two replies.
    #[inline]
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Reply> {
        if let Some(word) = input.first_chunk()
            && u64::from_le_bytes(*word) & self.mask == self.header
            && let Some((reply, rest)) = input.split_at_checked(self.length)
            && reply.ends_with(b"\r\n")
        {
            *input = rest;
            return Some(Reply::Value);
        }
        self.next_unlike(input)
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
            [b'+', b'O', b'K', b'\r', b'\n', ..] => (Reply::Value, 5),
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

    /// Remembers the header of the bulk string that `input` begins with, if it fits into a word.
    fn remember(&mut self, input: &[u8], length: usize) {
        let Some((word, header)) = input.first_chunk().zip(line_end(input)).filter(|(_, end)| *end < 8) else { return };
        self.mask = u64::MAX >> (8 * (7 - header));
        self.header = u64::from_le_bytes(*word) & self.mask;
        self.length = length;
    }
}

/// The length of a bulk string, from behind its `$` to its end.
#[inline]
fn bulk(rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    // Up to 999,999 bytes: more does not come in one piece.
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

/// Where the first line ends: the index of its LF.
#[inline]
fn line_end(input: &[u8]) -> Option<usize> {
    // Headers are a handful of bytes, for which a plain loop is the fastest search.
    input.iter().position(|byte| *byte == b'\n')
}

#[inline]
fn length(text: &[u8]) -> Result<u64, ProtocolError> {
    number(text).filter(|length| *length <= BULK_BYTES).ok_or(ProtocolError::BadLength)
}

fn count(text: &[u8]) -> Result<u64, ProtocolError> {
    number(text).filter(|count| *count <= ELEMENTS).ok_or(ProtocolError::BadLength)
}

/// Whether `text` is what a line of type `kind` must hold.
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

/// Whether `text` is a decimal number of 64 bits with its sign.
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
