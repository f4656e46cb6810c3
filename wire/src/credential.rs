use std::fmt;

/// The bearer token of a run. Compared in constant time and never printed.
#[derive(Clone)]
pub struct RunToken(String);

impl RunToken {
    /// Creates a token from the text in the run's Secret, without trailing white space.
    pub fn new(token: &str) -> Self {
        Self(token.trim_end().to_owned())
    }

    /// The value of the `Authorization` header. Keep it out of every log.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns whether `header` is the `Authorization` header of this token. The time does not depend on where they differ.
    pub fn matches(&self, header: &str) -> bool {
        let expected = self.header();
        if self.0.is_empty() || expected.len() != header.len() {
            return false;
        }
        expected.bytes().zip(header.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl fmt::Debug for RunToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RunToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_only_itself() {
        let token = RunToken::new("abc\n");
        assert!(token.matches("Bearer abc"));
        assert!(!token.matches("Bearer abd"));
        assert!(!token.matches("Bearer abcd"));
        assert!(!token.matches(""));
        assert!(!RunToken::new("").matches("Bearer "));
        assert_eq!(format!("{token:?}"), "RunToken(..)");
    }
}
