//! The bytes of replies as the server sent them.

/// The bytes of a bulk string of `length` bytes: `$<length>`, the string, and two line ends.
pub fn bulk(length: usize) -> usize {
    1 + digits(length) + 2 + length + 2
}

/// The bytes of a null: `_` in RESP3, and in RESP2 a string without length.
pub fn null(resp3: bool) -> usize {
    if resp3 { 3 } else { 5 }
}

/// The decimal digits of a number.
pub fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_bulk_string_is_the_servers() {
        for text in ["", "a", "123456789", "1234567890"] {
            assert_eq!(bulk(text.len()), format!("${}\r\n{text}\r\n", text.len()).len());
        }
    }
}
