use std::io::Write as _;
use std::{iter, mem};

use bytes::{Buf as _, Bytes};

/// Encoded commands to be sent. Its memory is initialized and reused, so that encoding a command takes plain copies. Large values stay
/// where they are.
#[derive(Debug, Default)]
pub struct Output {
    memory: Vec<u8>,
    /// The bytes between `head` and `length` are to be sent.
    head: usize,
    length: usize,
    /// Values outside of the memory, each with the place in it that they come before, in sequence.
    apart: Vec<(usize, Bytes)>,
}

impl Output {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.length && self.apart.is_empty()
    }

    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length - self.head + self.apart.iter().map(|(_, value)| value.len()).sum::<usize>()
    }

    /// All bytes, if they are in one place.
    #[inline]
    pub fn whole(&self) -> Option<&[u8]> {
        self.apart.is_empty().then(|| &self.memory[self.head..self.length])
    }

    /// All bytes. None of the pieces is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = self.head;
        let last = self.apart.last().map_or(from, |(place, _)| *place);
        let pairs = self.apart.iter().flat_map(move |(place, value)| {
            let before = mem::replace(&mut from, *place);
            [&self.memory[before..*place], value]
        });
        pairs.chain(iter::once(&self.memory[last..self.length])).filter(|piece| !piece.is_empty())
    }

    /// Removes the first `count` bytes. The others are not moved.
    #[inline]
    pub fn drop_front(&mut self, mut count: usize) {
        if !self.apart.is_empty() {
            count = self.drop_values(count);
        }
        self.head = self.length.min(self.head + count);
    }

    /// Removes the first `count` bytes up to the end of the last value that is among them. Returns how many are left to remove.
    #[cold]
    fn drop_values(&mut self, mut count: usize) -> usize {
        let mut gone = 0;
        for (place, value) in &mut self.apart {
            let before = count.min(*place - self.head);
            (self.head, count) = (self.head + before, count - before);
            if self.head < *place {
                break;
            }
            let part = count.min(value.len());
            value.advance(part);
            count -= part;
            if !value.is_empty() {
                break;
            }
            gone += 1;
        }
        self.apart.drain(..gone);
        count
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            (self.head, self.length) = (0, 0);
        }
        let (begin, end) = (self.length, self.length + bytes.len());
        if self.memory.len() < end {
            self.grow(end);
        }
        self.memory[begin..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// Moves all bytes of `other` to the end.
    #[cold]
    pub fn take_from(&mut self, other: &mut Self) {
        let (head, length) = (mem::replace(&mut other.head, other.length), other.length);
        self.append(&other.memory[head..length]);
        let begin = self.length - (length - head);
        self.apart.extend(other.apart.drain(..).map(|(place, value)| (place - head + begin, value)));
    }

    /// At least `length` bytes to write commands to, instead of those that were to be sent. [`Self::set_length`] sets how many were used.
    #[inline]
    pub fn room(&mut self, length: usize) -> &mut [u8] {
        if self.memory.len() < length || !self.apart.is_empty() {
            self.prepare(length);
        }
        &mut self.memory
    }

    #[cold]
    fn prepare(&mut self, length: usize) {
        self.apart.clear();
        if self.memory.len() < length {
            self.grow(length);
        }
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        self.memory.resize(length.max(self.memory.len() * 2), 0);
    }

    /// Declares the first `length` bytes of the room as the commands.
    #[inline]
    pub fn set_length(&mut self, length: usize) {
        (self.head, self.length) = (0, length.min(self.memory.len()));
    }

    /// Inserts values, and empties their list. Each has the number of bytes of the room that follow it.
    pub fn insert(&mut self, values: &mut Vec<(usize, Bytes)>) {
        let full = values.drain(..).filter(|(_, value)| !value.is_empty());
        self.apart.extend(full.map(|(after, value)| (self.memory.len().saturating_sub(after), value)));
    }
}

/// Appends the header of a command with `arguments` arguments.
pub fn append_header(buffer: &mut Vec<u8>, arguments: usize) {
    // Writing into memory cannot fail.
    let _ = write!(buffer, "*{arguments}\r\n");
}

pub fn append_argument(buffer: &mut Vec<u8>, argument: &[u8]) {
    let _ = write!(buffer, "${}\r\n", argument.len());
    buffer.extend_from_slice(argument);
    buffer.extend_from_slice(b"\r\n");
}

pub fn append_command(buffer: &mut Vec<u8>, arguments: &[&[u8]]) {
    append_header(buffer, arguments.len());
    for argument in arguments {
        append_argument(buffer, argument);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn output_grows_and_is_used_again() {
        let mut output = Output::default();
        assert_eq!(output.whole(), Some(&b""[..]));
        for (length, byte) in [(3, b'a'), (200, b'b'), (2, b'c')] {
            output.room(length)[..length].fill(byte);
            output.set_length(length);
            assert_eq!(output.whole(), Some(vec![byte; length].as_slice()));
        }
    }

    /// A command of some bytes and a value before each of them.
    #[derive(Clone, Debug)]
    enum Step {
        Append(Vec<u8>),
        Command(Vec<Vec<u8>>),
        Drop(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || vec(any::<u8>(), 0..9);
        let drop = (0..30_usize).prop_map(Step::Drop);
        vec(prop_oneof![bytes().prop_map(Step::Append), vec(bytes(), 0..4).prop_map(Step::Command), drop], 0..30)
    }

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_in_which_they_came(steps in steps()) {
            let (mut output, mut rest, mut expected) = (Output::default(), Output::default(), Vec::new());
            for step in steps {
                match step {
                    Step::Append(bytes) => {
                        rest.append(&bytes);
                        expected.extend(bytes);
                    }
                    Step::Command(values) => {
                        let room = output.room(values.len() + 1);
                        room[..=values.len()].fill(b'+');
                        let end = room.len();
                        output.set_length(values.len() + 1);
                        let places = (0..).map(|place| end - place);
                        output.insert(&mut places.zip(values.iter().cloned().map(Bytes::from)).collect());
                        expected.extend(values.into_iter().flat_map(|value| [value, vec![b'+']].concat()));
                        expected.push(b'+');
                        rest.take_from(&mut output);
                        prop_assert!(output.is_empty());
                    }
                    Step::Drop(count) => {
                        let count = count.min(expected.len());
                        rest.drop_front(count);
                        expected.drain(..count);
                    }
                }
                prop_assert_eq!(rest.pieces().collect::<Vec<_>>().concat(), expected.clone());
                prop_assert!(rest.pieces().all(|piece| !piece.is_empty()));
                prop_assert_eq!((rest.len(), rest.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert!(rest.whole().is_none_or(|bytes| bytes == expected));
            }
        }
    }

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut buffer = Vec::new();
        append_command(&mut buffer, &[b"SET", b"", b"a\r\nb"]);
        assert_eq!(buffer, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
    }
}
