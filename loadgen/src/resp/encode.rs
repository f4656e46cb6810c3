use std::io::Write as _;

/// Appends the header of a command with `arguments` arguments.
pub fn append_header(buffer: &mut Vec<u8>, arguments: usize) {
    // Writing into memory cannot fail.
    let _ = write!(buffer, "*{arguments}\r\n");
}

/// Appends one argument.
pub fn append_argument(buffer: &mut Vec<u8>, argument: &[u8]) {
    let _ = write!(buffer, "${}\r\n", argument.len());
    buffer.extend_from_slice(argument);
    buffer.extend_from_slice(b"\r\n");
}

/// Appends a whole command.
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
    fn a_command_is_an_array_of_bulk_strings() {
        let mut buffer = Vec::new();
        append_command(&mut buffer, &[b"SET", b"", b"a\r\nb"]);
        assert_eq!(buffer, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
    }
}
