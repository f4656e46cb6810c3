//! The scanner must not depend on how the stream is split.

use proptest::prelude::*;

use super::replies::Want;
use super::scan::{Broken, Scanner, Shapes};
use crate::resp::append_command;

/// The reply kinds of `input`, scanned in pieces that end at `cuts`.
fn scanned(input: &[u8], cuts: &[usize]) -> (Vec<Want>, Result<(), Broken>) {
    let (mut scanner, mut shapes) = (Scanner::default(), Shapes::default());
    let mut wants = Vec::new();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).chain([0, input.len()]).collect();
    cuts.sort_unstable();
    for piece in cuts.windows(2) {
        let found = |want, count| wants.extend(std::iter::repeat_n(want, count as usize));
        if let Err(broken) = scanner.scan(&input[piece[0]..piece[1]], &mut shapes, found) {
            return (wants, Err(broken));
        }
    }
    (wants, Ok(()))
}

fn command(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_command(&mut bytes, &words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    bytes
}

fn wants(words: &str) -> Want {
    let (found, outcome) = scanned(&command(words), &[]);
    assert_eq!((found.len(), outcome), (1, Ok(())), "{words}");
    found[0]
}

#[test]
fn commands_are_known_in_any_case() {
    assert_eq!(wants("get k"), Want::Value);
    assert_eq!(wants("SeT k v"), Want::Done);
    assert_eq!(wants("PING"), Want::Pong);
    assert_eq!(wants("hello 3 AUTH a b"), Want::Hello3);
    assert_eq!(wants("HELLO"), Want::Hello2);
    assert_eq!(wants("CONFIG GET save"), Want::Setting);
    assert_eq!(wants("CONFIG SET a b"), Want::Done);
    assert_eq!(wants("cluster slots"), Want::Slots);
    assert_eq!(wants("GETS k"), Want::Done);
    assert_eq!(wants("a-name-that-no-command-of-this-server-has k"), Want::Done);
}

#[test]
fn a_transaction_is_queued_until_its_end() {
    let mut queued = None;
    let mut told = |words: &str| wants(words).within(1, &mut queued);
    assert_eq!(told("GET a"), Want::Value);
    assert_eq!(told("multi"), Want::Done);
    assert_eq!([told("SET a b"), told("GET a")], [Want::Queued, Want::Queued]);
    assert_eq!(told("exec"), Want::Exec(2));
    assert_eq!([told("EXEC"), told("GET a")], [Want::Exec(0), Want::Value]);
}

#[test]
fn commands_that_look_alike_are_told_apart() {
    let stream =
        ["GET key:1", "GET key:2", "SET key:1 abc", "SET key:2 abc", "SET key:2 abcd", "PUT key:1", "GET key:33"];
    let found = scanned(&stream.map(command).concat(), &[]).0;
    let [value, done] = [Want::Value, Want::Done];
    assert_eq!(found, [value, value, done, done, done, done, value]);
    // The second word decides, and both have the same length.
    let found =
        scanned(&["CONFIG SET a", "CONFIG GET a", "CLUSTER NODES", "CLUSTER SLOTS"].map(command).concat(), &[]).0;
    assert_eq!(found, [done, Want::Setting, Want::Nodes, Want::Slots]);
}

#[test]
fn plain_lines_are_commands_too() {
    let (found, outcome) = scanned(b"PING\r\n\r\n  get  k\nconfig get save\r\n*0\r\n*-1\r\n", &[]);
    assert_eq!((found, outcome), (vec![Want::Pong, Want::Value, Want::Setting], Ok(())));
}

#[test]
fn what_is_no_command_ends_the_connection() {
    for (input, why) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n+3\r\n", "expected '$'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$999999999\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999999999999999999999999999999\r\n", "invalid bulk length"),
    ] {
        assert_eq!(scanned(input.as_bytes(), &[]).1, Err(Broken(why)), "{input}");
    }
    let long = vec![b'x'; 65 << 10];
    assert_eq!(scanned(&long, &[]).1, Err(Broken("too big inline request")));
}

fn any_command() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just(b"GET".to_vec()),
        Just(b"set".to_vec()),
        Just(b"PING".to_vec()),
        Just(b"CLUSTER".to_vec()),
        Just(b"HELLO".to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let argument =
        prop_oneof![Just(b"SLOTS".to_vec()), Just(b"3".to_vec()), prop::collection::vec(any::<u8>(), 0..200)];
    (name, prop::collection::vec(argument, 0..5)).prop_map(|(name, arguments)| {
        let words: Vec<&[u8]> = std::iter::once(&name).chain(&arguments).map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        append_command(&mut bytes, &words);
        bytes
    })
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        different in prop::collection::vec(any_command(), 1..8),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        // Repeats some commands, as a load does.
        let commands: Vec<&[u8]> = order.iter().map(|index| index.get(&different).as_slice()).collect();
        let stream = commands.concat();
        let (found, outcome) = scanned(&stream, &cuts);
        prop_assert_eq!(outcome, Ok(()));
        prop_assert_eq!(found.len(), commands.len());
        let every_byte: Vec<usize> = (0..stream.len()).collect();
        prop_assert_eq!((found, outcome), scanned(&stream, &every_byte));
    }

    #[test]
    fn any_input_is_read_alike_however_it_is_cut(
        input in prop::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()], 0..200),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let whole = scanned(&input, &[]);
        prop_assert_eq!(whole, scanned(&input, &cuts));
    }
}
