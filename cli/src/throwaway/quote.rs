//! Words of redis.conf.

/// Quotes any bytes as one word of redis.conf.
pub fn quote(word: &str) -> String {
    let escaped: String = word
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_every_byte() {
        assert_eq!(quote("a \"b\\\né"), r#""a \"b\\\x0a\xc3\xa9""#);
    }
}
