use proptest::prelude::*;

use super::*;
use crate::resp::differential::assert_agreement;

/// Decodes `input` as a connection does: in pieces with the lengths in `cuts` and the rest in one, complete replies by the fast path.
fn decode(input: &[u8], cuts: &[usize]) -> Result<Vec<(Reply, Vec<u8>)>, ProtocolError> {
    let mut decoder = Decoder::default();
    let mut whole = WholeReplies::default();
    let mut replies = Vec::new();
    let mut rest = input;
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (mut piece, after) = rest.split_at(cut.min(rest.len()));
        rest = after;
        loop {
            let (mut together, before) = (Taken::default(), replies.len());
            if decoder.is_between_replies() {
                together = WholeReplies::default().take(&mut &*piece, usize::MAX);
                assert!(together.count == 0 || WholeReplies::may_take(piece));
                while let taken @ Taken { count: 1, .. } = whole.take(&mut piece, 1) {
                    replies.push((if taken.nil == 0 { Reply::Value } else { Reply::Nil }, Vec::new()));
                }
            }
            let nil = replies[before..].iter().filter(|(reply, _)| *reply == Reply::Nil).count() as u64;
            assert_eq!(together, Taken { count: replies.len() - before, nil }, "many are taken as one by one");
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
    assert_eq!(kinds(input), Ok(vec![Value, Value, Value, Value, Nil, Nil, Nil, Value, Error]));
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
        (b"=-1\r\n", ProtocolError::BadLength),
        (b"%-1\r\n", ProtocolError::BadLength),
        (b"~-1\r\n", ProtocolError::BadLength),
        (b">-3\r\n", ProtocolError::BadLength),
        (b"$99999999999999999999\r\n", ProtocolError::BadLength),
        (b"*999999999999999999\r\n", ProtocolError::BadLength),
        (b"%1000000000000\r\n", ProtocolError::BadLength),
        (b"$\r\n", ProtocolError::BadLength),
        (b"$?\r\n", ProtocolError::BadLength),
        (b"HTTP/1.1 400 Bad Request\r\n", ProtocolError::UnknownType),
        (b"\0\0\0\0\r\n", ProtocolError::UnknownType),
        (b"\r\n", ProtocolError::BadEnd),
        (b"+OK\n", ProtocolError::BadEnd),
        (b"$1\r\nabc", ProtocolError::BadEnd),
        (b"$1\r\na\rb", ProtocolError::BadEnd),
        (b":\r\n", ProtocolError::BadValue),
        (b":1a\r\n", ProtocolError::BadValue),
        (b":--1\r\n", ProtocolError::BadValue),
        (b":9223372036854775808\r\n", ProtocolError::BadValue),
        (b"*1\r\n:x\r\n", ProtocolError::BadValue),
        (b",1.5.2\r\n", ProtocolError::BadValue),
        (b"#y\r\n", ProtocolError::BadValue),
        (b"(1e5\r\n", ProtocolError::BadValue),
        (b"_1\r\n", ProtocolError::BadValue),
        (b"*1\r\n>1\r\n+a\r\n", ProtocolError::UnknownType),
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

/// A reply of RESP2 or RESP3.
fn reply() -> impl Strategy<Value = (Vec<u8>, Reply)> {
    let line = |text: String, reply| (format!("{text}\r\n").into_bytes(), reply);
    let body = |kind: char, body: &[u8]| [format!("{kind}{}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat();
    let scalar = prop_oneof![
        "[+][ -~]{0,20}",
        any::<i64>().prop_map(|number| format!(":{number}")),
        any::<f64>().prop_map(|number| format!(",{number:?}")),
        prop::sample::select(vec![",inf", ",-inf", ",nan", ",1.5e-9", "#t", "#f", ":+7"]).prop_map(str::to_owned),
        "[(]-?[0-9]{1,40}",
    ];
    let leaf = prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(move |bytes| (body('$', &bytes), Reply::Value)),
        // Usually as long as the one before.
        6 => prop::collection::vec(any::<u8>(), 12).prop_map(move |bytes| (body('$', &bytes), Reply::Value)),
        1 => "[ -~]{0,20}".prop_map(move |text| (body('!', text.as_bytes()), Reply::Error)),
        1 => "(txt|mkd):[ -~]{0,20}".prop_map(move |text| (body('=', text.as_bytes()), Reply::Value)),
        1 => "-[ -~]{0,20}".prop_map(move |text| line(text, Reply::Error)),
        1 => prop::sample::select(vec!["$-1", "*-1", "_"]).prop_map(move |text| line(text.to_owned(), Reply::Nil)),
        1 => scalar.prop_map(move |text| line(text, Reply::Value)),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let kind = prop::sample::select(vec!['*', '~', '%', '|']);
        (kind, prop::collection::vec(inner.clone(), 0..6), inner).prop_map(|(kind, mut elements, (data, reply))| {
            let per_entry = if matches!(kind, '%' | '|') { 2 } else { 1 };
            elements.truncate(elements.len() / per_entry * per_entry);
            let mut bytes = format!("{kind}{}\r\n", elements.len() / per_entry).into_bytes();
            bytes.extend(elements.iter().flat_map(|(element, _)| element));
            // Attributes belong to the reply after them.
            if kind == '|' {
                bytes.extend(data);
                return (bytes, reply);
            }
            (bytes, if elements.is_empty() { Reply::Nil } else { Reply::Value })
        })
    })
}

/// Replies, some preceded by a push message, and the outcomes of the replies.
fn stream() -> impl Strategy<Value = (Vec<u8>, Vec<Reply>)> {
    let push = prop::collection::vec(reply(), 0..3).prop_map(|elements| {
        let mut bytes = format!(">{}\r\n+message\r\n", elements.len() + 1).into_bytes();
        bytes.extend(elements.iter().flat_map(|(element, _)| element));
        bytes
    });
    prop::collection::vec((prop::option::weighted(0.2, push), reply()), 0..12).prop_map(|all| {
        let bytes =
            all.iter().flat_map(|(push, (bytes, _))| [push.clone().unwrap_or_default(), bytes.clone()].concat());
        (bytes.collect(), all.iter().map(|(_, (_, reply))| *reply).collect())
    })
}

/// Bytes that have a meaning to a decoder, and arbitrary ones.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), prop::sample::select(&b"$*-+:_%~|>!=#,(\r\n0123456789"[..])]
}

/// One change: where, how many bytes to remove, and the bytes to insert.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    (any::<prop::sample::Index>(), 0_usize..3, prop::collection::vec(byte(), 0..3))
}

proptest! {
    #[test]
    fn replies_are_found_however_the_input_is_cut(
        (input, expected) in stream(),
        cuts in prop::collection::vec(0usize..30, 0..60),
    ) {
        let found = decode(&input, &cuts).unwrap();
        prop_assert_eq!(&found, &decode(&input, &[]).unwrap());
        prop_assert_eq!(&found, &decode(&input, &vec![1; input.len()]).unwrap());
        let found: Vec<Reply> = found.into_iter().map(|(reply, _)| reply).collect();
        prop_assert_eq!(found, expected);
        assert_agreement(&input);
    }

    #[test]
    fn broken_replies_are_refused_as_others_refuse_them(
        (mut input, _) in stream(),
        changes in prop::collection::vec(change(), 1..3),
        cuts in prop::collection::vec(0usize..9, 0..30),
    ) {
        for (at, gone, come) in changes {
            let at = at.index(input.len() + 1);
            let end = (at + gone).min(input.len());
            input.splice(at..end, come);
        }
        prop_assert_eq!(decode(&input, &cuts), decode(&input, &[]));
        assert_agreement(&input);
    }

    #[test]
    fn garbage_never_panics(
        input in prop::collection::vec(byte(), 0..200),
        cuts in prop::collection::vec(0usize..9, 0..30),
    ) {
        let whole = decode(&input, &[]);
        prop_assert_eq!(decode(&input, &cuts), whole);
        assert_agreement(&input);
    }
}
