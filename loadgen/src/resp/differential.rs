//! Compares the decoder with the independent parser of the `redis` crate: both find the same replies and refuse the same input. The
//! functions below list the known cases in which one of them is stricter, and why.

use redis::{Parser, Value};

use super::{Decoder, ProtocolError, Reply, Taken, WholeReplies};

/// The result of one parser for some input.
#[derive(Debug, PartialEq, Eq)]
struct Reading<Refusal> {
    replies: Vec<Reply>,
    /// Why it stopped; `None` if it waits for more input.
    refusal: Option<Refusal>,
}

/// Reads `input` with both and compares.
///
/// # Panics
/// Panics if they differ.
pub(crate) fn assert_agreement(input: &[u8]) {
    if asks_for_much(input) {
        return;
    }
    let (theirs, (own, last_line)) = (theirs(input), ours(input, b""));
    let common = theirs.replies.len().min(own.replies.len());
    let shown = String::from_utf8_lossy(input);
    assert_eq!(theirs.replies[..common], own.replies[..common], "{shown:?}");
    match (&theirs.refusal, &own.refusal) {
        (Some(refusal), _) if is_narrow(refusal) => {}
        (_, Some(refusal)) if is_lenient(*refusal, last_line) => {}
        (Some(refusal), None) => {
            // Their parser refuses a type byte, ours the whole line.
            let (at_line_end, _) = ours(input, b"\r\n");
            assert!(at_line_end.refusal.is_some(), "only they refuse ({refusal}): {shown:?}");
        }
        (refused, refused_by_us) => {
            assert_eq!(refused.is_some(), refused_by_us.is_some(), "{refused:?}, {refused_by_us:?}: {shown:?}");
            assert_eq!(theirs.replies, own.replies, "{shown:?}");
        }
    }
}

fn theirs(mut input: &[u8]) -> Reading<String> {
    let mut parser = Parser::new();
    let mut replies = Vec::new();
    loop {
        match parser.parse_value(&mut input) {
            Ok(value) => replies.extend(kind(&value)),
            Err(error) if error.is_io_error() => return Reading { replies, refusal: None },
            Err(error) => return Reading { replies, refusal: Some(error.to_string()) },
        }
    }
}

/// `None` for a message that answers no command.
fn kind(value: &Value) -> Option<Reply> {
    match value {
        Value::Nil => Some(Reply::Nil),
        Value::Array(elements) | Value::Set(elements) if elements.is_empty() => Some(Reply::Nil),
        Value::Map(entries) if entries.is_empty() => Some(Reply::Nil),
        Value::ServerError(_) => Some(Reply::Error),
        Value::Push { .. } => None,
        Value::Attribute { data, .. } => kind(data),
        _ => Some(Reply::Value),
    }
}

/// Reads as the engine does. Also returns the last line read: the one refused, unless a body was refused.
fn ours<'a>(input: &'a [u8], end: &[u8]) -> (Reading<ProtocolError>, &'a [u8]) {
    let (mut whole, mut decoder) = (WholeReplies::default(), Decoder::default());
    let mut replies = Vec::new();
    for (mut rest, own) in [(input, true), (end, false)] {
        loop {
            if decoder.is_between_replies()
                && let taken @ Taken { count: 1, .. } = whole.take(&mut rest, 1)
            {
                replies.push(if taken.nil == 0 { Reply::Value } else { Reply::Nil });
                continue;
            }
            match decoder.next(&mut rest) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(error) => {
                    let read = &input[..input.len() - if own { rest.len() } else { 0 }];
                    let line = read.split_inclusive(|byte| *byte == b'\n').next_back().unwrap_or_default();
                    return (Reading { replies, refusal: Some(error) }, line);
                }
            }
        }
    }
    (Reading { replies, refusal: None }, b"")
}

/// Returns whether a list claims so many elements that their parser would reserve too much memory.
fn asks_for_much(input: &[u8]) -> bool {
    input.split(|byte| b"*%~|>".contains(byte)).any(|after| {
        let number = after.iter().take_while(|byte| !b"\r\n".contains(byte));
        number.filter(|byte| byte.is_ascii_digit()).count() > 5
    })
}

/// Returns whether their parser refuses valid input, or parts that ours does not check: deep nesting, errors that repeat a client's
/// bytes, the format of a verbatim string, the kind of a push message.
fn is_narrow(refusal: &str) -> bool {
    ["recursion depth", "utf-8", "decoding verbatim", "decoding push"].iter().any(|known| refusal.contains(known))
}

/// Returns whether their parser accepts a line that the protocol does not allow: blanks and signs around a length, lengths below -1, a
/// bare LF, anything for a large number or a null, and a push message within a reply.
fn is_lenient(refusal: ProtocolError, line: &[u8]) -> bool {
    let [kind, text @ .., b'\r', b'\n'] = line else { return line.ends_with(b"\n") };
    if refusal == ProtocolError::BadEnd {
        // The body after that line was refused.
        return false;
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    match kind {
        b'(' | b'_' | b'>' => true,
        b',' => text.trim().parse::<f64>().is_ok(),
        b'$' | b'=' | b'!' | b'*' | b'~' | b'%' | b'|' | b':' => text.trim().parse::<i64>().is_ok(),
        _ => false,
    }
}
