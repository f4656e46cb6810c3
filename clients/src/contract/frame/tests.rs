use proptest::prelude::*;
use redisbench_testkit::hostile::{Target, drive};

use super::*;
use crate::contract::CALLERS;

/// A frame as a driver writes it.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = (1 + u32::try_from(content.len()).unwrap()).to_le_bytes().to_vec();
    out.push(kind);
    out.extend_from_slice(content);
    out
}

fn done(outcomes: &[Outcome]) -> Vec<u8> {
    let mut content = Vec::new();
    for outcome in outcomes {
        for number in [outcome.id, outcome.called, outcome.completed] {
            content.extend_from_slice(&number.to_le_bytes());
        }
        content.extend_from_slice(&outcome.checksum.unwrap_or_default().to_le_bytes());
        let (result, word) = match &outcome.result {
            Ok(()) => (0, ""),
            Err(CallErrorKind::Reply(word)) => (1, word.as_str()),
            Err(CallErrorKind::Timeout) => (2, ""),
            Err(CallErrorKind::Disconnected) => (3, ""),
            Err(CallErrorKind::Library(word)) => (4, word.as_str()),
        };
        let flags = u8::from(outcome.checksum.is_some()) | u8::from(outcome.null) << 1;
        content.extend_from_slice(&[flags, result, u8::try_from(word.len()).unwrap()]);
        content.extend_from_slice(word.as_bytes());
    }
    frame(6, &content)
}

const HELLO: &[u8] = br#"{"protocol":1,"language":"Go","library":"go-redis","version":"9.23.0"}"#;

fn decode_all(bytes: &[u8], piece: usize) -> Result<Vec<FromDriver>, FrameError> {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        decoder.extend(piece);
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let result = prop_oneof![
        Just(Ok(())),
        Just(Err(CallErrorKind::Timeout)),
        Just(Err(CallErrorKind::Disconnected)),
        "[A-Z]{1,32}".prop_map(|word| Err(CallErrorKind::Reply(word))),
        "[A-Z]{1,32}".prop_map(|word| Err(CallErrorKind::Library(word))),
    ];
    (any::<(u64, u64, u64, Option<u32>, bool)>(), result).prop_map(
        |((id, called, completed, checksum, null), result)| Outcome { id, called, completed, checksum, null, result },
    )
}

proptest! {
    #[test]
    fn outcomes_round_trip_in_pieces_of_any_size(
        outcomes in prop::collection::vec(prop::collection::vec(outcome(), 0..8), 0..4),
        piece in 1..200_usize,
    ) {
        let bytes: Vec<u8> = outcomes.iter().flat_map(|outcomes| done(outcomes)).collect();
        let expected: Vec<FromDriver> = outcomes.into_iter().map(FromDriver::Done).collect();
        prop_assert_eq!(decode_all(&bytes, piece), Ok(expected));
    }
}

#[test]
fn frames_of_a_driver_are_decoded() {
    let bytes = [frame(1, HELLO), frame(3, br#"{"connections":16}"#), frame(4, b"no\nroute"), frame(8, b"")].concat();
    let frames = decode_all(&bytes, usize::MAX).unwrap();
    let Some(FromDriver::Hello(hello)) = frames.first() else { panic!("{frames:?}") };
    assert_eq!((hello.library.as_str(), hello.version.as_str()), ("go-redis", "9.23.0"));
    let expected =
        [FromDriver::Ready(Ready { connections: 16 }), FromDriver::Failed("no route".into()), FromDriver::Bye];
    assert_eq!(frames[1..], expected);
}

#[test]
fn what_breaks_the_contract_is_named() {
    let message = |bytes: &[u8]| decode_all(bytes, usize::MAX).unwrap_err().to_string();
    let one = Outcome { id: 1, called: 2, completed: 3, checksum: None, null: false, result: Ok(()) };
    let with = |at: usize, byte: u8| {
        let mut bytes = done(std::slice::from_ref(&one));
        bytes[at] = byte;
        message(&bytes)
    };
    // Refused by its length alone.
    assert_eq!(
        message(&(1_u32 << 30).to_le_bytes()),
        "the driver sent a frame of 1073741824 bytes; the contract allows 1 to 1048576"
    );
    assert!(message(&[0; 4]).contains("a frame of 0 bytes"));
    assert!(message(&frame(7, b"")).contains("a frame of kind 7"));
    assert!(message(&frame(200, b"")).contains("a frame of kind 200"));
    let other = String::from_utf8_lossy(HELLO).replace("\"protocol\":1", "\"protocol\":2");
    assert_eq!(message(&frame(1, other.as_bytes())), "the driver speaks version 2 of the contract, not 1");
    assert!(message(&frame(1, b"{}")).contains("a malformed Hello: missing field `protocol`"));
    assert!(message(&frame(3, br#"{"connections":-1}"#)).contains("a malformed Ready"));
    assert!(message(&frame(8, b"!")).contains("a malformed Bye"));
    assert!(message(&frame(6, &[0; 30])).contains("an outcome is cut off"));
    assert!(with(5 + 28, 4).contains("unknown flags"));
    assert!(with(5 + 29, 5).contains("an unknown result"));
    assert!(with(5 + 29, 1).contains("needs a word"));
    assert!(with(5 + 30, 9).contains("is cut off"));
}

#[test]
fn the_outcomes_of_all_callers_fit_into_a_frame() {
    assert!(usize::from(CALLERS) * (OUTCOME + WORD_BYTES) < FROM_DRIVER_BYTES);
}

#[test]
fn calls_are_written_as_documented() {
    let mut out = Vec::new();
    let open = Calls::begin(&mut out).pause();
    let mut calls = Calls::resume(&mut out, open);
    let arguments: [&[u8]; 2] = [b"GET", b"a\r\n\0"];
    let length = calls.push(0x0102_0304_0506_0708, 3, true, arguments.into_iter());
    calls.end().unwrap();
    drain(&mut out);
    assert_eq!(length, out.len() - 5);
    let expected: [&[u8]; 7] = [
        &[31, 0, 0, 0, 5],
        &[8, 7, 6, 5, 4, 3, 2, 1, 3, 0, 1, 2, 0, 0, 0],
        &[3, 0, 0, 0],
        b"GET",
        &[4, 0, 0, 0],
        b"a\r\n\0",
        &[1, 0, 0, 0, 7],
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn a_frame_that_is_too_large_is_not_written() {
    let (mut out, value) = (vec![1], vec![0; TO_DRIVER_BYTES]);
    let mut calls = Calls::begin(&mut out);
    calls.push(1, 0, false, [value.as_slice()].into_iter());
    assert!(calls.end().unwrap_err().to_string().contains("the contract allows 67108864"));
    assert_eq!(out, [1]);
}

/// Decodes and ends the calls of a ledger.
fn decode_hostile(input: &[u8]) {
    let mut ledger = crate::contract::Ledger::new(4);
    let _ = (0..3).map(|call| ledger.begin(10, false, call)).collect::<Vec<_>>();
    let Ok(frames) = decode_all(input, 1000) else { return };
    for frame in frames {
        let FromDriver::Done(outcomes) = frame else { continue };
        for outcome in outcomes {
            let _ = ledger.end(&outcome, u64::MAX);
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let outcome = |id, result| Outcome { id, called: 20, completed: 30, checksum: Some(7), null: true, result };
    let outcomes = [
        outcome(1 << 16, Ok(())),
        outcome(1 << 16 | 1, Err(CallErrorKind::Reply("WRONGTYPE".into()))),
        outcome(1 << 16 | 2, Err(CallErrorKind::Timeout)),
    ];
    vec![frame(1, HELLO), frame(3, br#"{"connections":16}"#), frame(4, b"refused"), done(&outcomes), frame(8, b"")]
}

#[test]
fn hostile_input_is_refused() {
    let words = || vec!["protocol".to_owned(), "connections".to_owned()];
    let target = Target { name: "frames", run: decode_hostile, seeds, words, memory: (256 << 10, 16), cases: 20_000 };
    drive(env!("CARGO_MANIFEST_DIR"), &[target]);
}
