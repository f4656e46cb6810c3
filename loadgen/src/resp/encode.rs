use std::io::Write as _;

/// Encoded commands to be sent. Its memory is initialized and reused, so that encoding a command takes plain copies.
#[derive(Debug, Default)]
pub struct Output {
    memory: Vec<u8>,
    /// The bytes between `head` and `length` are to be sent.
    head: usize,
    length: usize,
}

impl Output {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.head..self.length]
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.length
    }

    /// Removes the first `count` bytes. The others are not moved.
    #[inline]
    pub fn drop_front(&mut self, count: usize) {
        self.head = self.length.min(self.head + count);
    }

    /// Whether the bytes take at least half of the memory.
    pub fn fills_memory(&self) -> bool {
        self.bytes().len() >= self.memory.len() / 2
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.is_empty() {
            (self.head, self.length) = (0, 0);
        }
        let (begin, end) = (self.length, self.length + bytes.len());
        self.room(end)[begin..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// At least `length` bytes to write commands to. [`Self::set_length`] sets how many were used.
    #[inline]
    pub fn room(&mut self, length: usize) -> &mut [u8] {
        if self.memory.len() < length {
            self.grow(length);
        }
        &mut self.memory
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
    use super::*;

    #[test]
    fn output_grows_and_is_used_again() {
        let mut output = Output::default();
        assert_eq!(output.bytes(), b"");
        for (length, byte) in [(3, b'a'), (200, b'b'), (2, b'c')] {
            output.room(length)[..length].fill(byte);
            output.set_length(length);
            assert_eq!(output.bytes(), vec![byte; length]);
        }
    }

    #[test]
    fn bytes_leave_at_the_front_and_come_at_the_end() {
        let mut output = Output::default();
        for (added, leaving, left) in [("abc", 1, "bc"), ("de", 3, "e"), ("f", 2, ""), ("ghi", 0, "ghi"), ("", 9, "")] {
            output.append(added.as_bytes());
            output.drop_front(leaving);
            assert_eq!((output.bytes(), output.is_empty()), (left.as_bytes(), left.is_empty()));
        }
    }

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut buffer = Vec::new();
        append_command(&mut buffer, &[b"SET", b"", b"a\r\nb"]);
        assert_eq!(buffer, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
    }
}
