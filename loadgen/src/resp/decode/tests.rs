use proptest::prelude::*;

use super::*;

/// Decodes `input` given in pieces of the lengths in `cuts`, the rest in one, as a connection does: what is whole by the
/// short way.
fn decode(input: &[u8], cuts: &[usize]) -> Result<Vec<(Reply, Vec<u8>)>, ProtocolError> {
    let mut decoder = Decoder::default();
    let mut whole = WholeReplies::default();
    let mut replies = Vec::new();
    let mut rest = input;
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (mut piece, after) = rest.split_at(cut.min(rest.len()));
        rest = after;
        loop {
            while decoder.is_between_replies()
                && let Some(reply) = whole.next(&mut piece)
            {
                replies.push((reply, Vec::new()));
            }
            let Some(reply) = decoder.next(&mut piece)? else { break };
            let text = if reply == Reply::Error { decoder.error_text().to_vec() } else { Vec::new() };
            replies.push((reply, text));
        }
        assert!(piece.is_empty(), "all input is consumed");
    }
    Ok(replies)
}

fn kinds(input: &[u8]) -> Result<Vec<Reply>, ProtocolError> {
    Ok(decode(input, &[])?.into_iter().map(|(reply, _)| reply).collect())
}

#[test]
fn every_type_of_resp2() {
    use Reply::{Error, Nil, Value};
    let input = b"+OK\r\n:-5\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n$-1\r\n*1\r\n:1\r\n-ERR no\r\n";
    assert_eq!(kinds(input), Ok(vec![Value, Value, Value, Value, Nil, Nil, Value, Value, Error]));
    assert_eq!(decode(input, &[]).unwrap().last().unwrap().1, b"ERR no");
}

#[test]
fn every_type_of_resp3() {
    use Reply::{Error, Nil, Value};
    let input = b"_\r\n#t\r\n,1.5\r\n(123\r\n%1\r\n+a\r\n~1\r\n:1\r\n=5\r\ntxt:a\r\n!5\r\nERR x\r\n";
    assert_eq!(kinds(input), Ok(vec![Nil, Value, Value, Value, Value, Value, Error]));
}

#[test]
fn pushes_and_attributes_answer_nothing() {
    let input = b">2\r\n+message\r\n*1\r\n:1\r\n|1\r\n+ttl\r\n:5\r\n$-1\r\n*1\r\n|1\r\n+a\r\n:1\r\n:7\r\n>0\r\n";
    assert_eq!(kinds(input), Ok(vec![Reply::Nil, Reply::Value]));
}

#[test]
fn hostile_input_is_an_error() {
    for (input, error) in [
        (&b"$-2\r\n"[..], ProtocolError::BadLength),
        (b"*-7\r\n", ProtocolError::BadLength),
        (b"$99999999999999999999\r\n", ProtocolError::BadLength),
        (b"*999999999999999999\r\n", ProtocolError::BadLength),
        (b"%1000000000000\r\n", ProtocolError::BadLength),
        (b"$\r\n", ProtocolError::BadLength),
        (b"$?\r\n", ProtocolError::BadLength),
        (b"HTTP/1.1 400 Bad Request\r\n", ProtocolError::UnknownType),
        (b"\r\n", ProtocolError::BadEnd),
        (b"+OK\n", ProtocolError::BadEnd),
        (b"$1\r\nabc", ProtocolError::BadEnd),
        (b"$1\r\na\rb", ProtocolError::BadEnd),
    ] {
        assert_eq!(kinds(input), Err(error), "{}", String::from_utf8_lossy(input));
        let cuts = vec![1; input.len()];
        assert_eq!(decode(input, &cuts).map(|_| ()), Err(error), "{}", String::from_utf8_lossy(input));
    }
}

#[test]
fn an_endless_line_is_bounded() {
    let mut decoder = Decoder::default();
    let piece = [b'+'; 1000];
    let fed = (0..100).position(|_| decoder.next(&mut &piece[..]).is_err());
    assert_eq!(fed, Some(LINE_BYTES / piece.len()));
    assert!(decoder.carry.capacity() <= 2 * LINE_BYTES);
}

#[test]
fn deep_nesting_needs_no_memory() {
    let mut decoder = Decoder::default();
    for _ in 0..1_000_000 {
        assert_eq!(decoder.next(&mut &b"*1\r\n"[..]), Ok(None));
    }
    assert_eq!(decoder.next(&mut &b":1\r\n"[..]), Ok(Some(Reply::Value)));
}

#[test]
fn a_body_is_never_copied() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.next(&mut &b"$1000000\r\n"[..]), Ok(None));
    for _ in 0..1000 {
        assert_eq!(decoder.next(&mut &[0; 1000][..]), Ok(None));
    }
    assert_eq!(decoder.next(&mut &b"\r\n"[..]), Ok(Some(Reply::Value)));
    assert_eq!(decoder.carry.capacity(), 0);
}

fn reply() -> impl Strategy<Value = (Vec<u8>, Reply)> {
    let bulk = |length| {
        prop::collection::vec(any::<u8>(), length).prop_map(|body| {
            let mut bytes = Vec::new();
            crate::resp::append_argument(&mut bytes, &body);
            (bytes, Reply::Value)
        })
    };
    let leaf = prop_oneof![
        1 => bulk(0..40),
        // Mostly as long as the one before.
        4 => bulk(12..13),
        1 => "[ -~]{0,20}".prop_map(|text| (format!("+{text}\r\n").into_bytes(), Reply::Value)),
        1 => "[ -~]{0,20}".prop_map(|text| (format!("-{text}\r\n").into_bytes(), Reply::Error)),
        1 => any::<i64>().prop_map(|number| (format!(":{number}\r\n").into_bytes(), Reply::Value)),
        1 => Just((b"$-1\r\n".to_vec(), Reply::Nil)),
        1 => Just((b"_\r\n".to_vec(), Reply::Nil)),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop::collection::vec(inner, 0..5).prop_map(|elements| {
            let mut bytes = format!("*{}\r\n", elements.len()).into_bytes();
            for (element, _) in &elements {
                bytes.extend(element);
            }
            (bytes, Reply::Value)
        })
    })
}

proptest! {
    #[test]
    fn replies_are_found_however_the_input_is_cut(
        replies in prop::collection::vec(reply(), 0..12),
        cuts in prop::collection::vec(0usize..30, 0..60),
    ) {
        let input: Vec<u8> = replies.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let found = decode(&input, &cuts).unwrap();
        prop_assert_eq!(&found, &decode(&input, &[]).unwrap());
        let found: Vec<Reply> = found.into_iter().map(|(reply, _)| reply).collect();
        let expected: Vec<Reply> = replies.into_iter().map(|(_, reply)| reply).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn garbage_never_panics(
        input in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"$*-+:_%~|>!=\r\n0123456789"[..])], 0..200),
        cuts in prop::collection::vec(0usize..9, 0..30),
    ) {
        let whole = decode(&input, &[]);
        prop_assert_eq!(decode(&input, &cuts), whole);
    }
}
