//! The outcome of a call: a reply or an error.

/// A reply without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// True if it is null or an empty collection.
    pub nil: bool,
    /// Its length as the server sent it. Of replies that a library has already decoded, exact for null, integers, strings and arrays.
    pub bytes: usize,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The time at which the library was called, on the monotonic clock.
    pub called: u64,
    /// The time at which it returned.
    pub completed: u64,
    pub reply: Result<Reply, CallError>,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// `Timeout`, `ConnectionReset`, `Library`, or the first word of the server's error.
    pub kind: String,
    pub message: String,
    /// True if the server replied with it.
    pub answered: bool,
    /// True if the library may have sent the request.
    pub sent: bool,
}

impl CallError {
    pub fn timeout(message: impl Into<String>) -> Self {
        Self { kind: "Timeout".into(), message: message.into(), answered: false, sent: true }
    }

    pub fn connection(message: impl Into<String>) -> Self {
        Self { kind: "ConnectionReset".into(), message: message.into(), answered: false, sent: true }
    }

    /// The library refused the call, for the reason that `word` names.
    pub fn library(word: &str) -> Self {
        let message = format!("the library refused the call: {word}");
        Self { kind: "Library".into(), message, answered: false, sent: false }
    }

    /// The same for a request that got no connection.
    pub fn unsent(self) -> Self {
        Self { sent: false, ..self }
    }

    /// The length of the server's reply; 0 if it did not reply.
    pub fn bytes(&self) -> usize {
        if self.answered { self.message.len() + 3 } else { 0 }
    }

    /// An error reply of the server, whose first word is its kind.
    pub fn reply(text: &str) -> Self {
        let word = text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("ERR");
        Self { kind: word.chars().take(32).collect(), message: text.to_owned(), answered: true, sent: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_replys_first_word_is_its_kind() {
        let error = CallError::reply("WRONGTYPE Operation against a key");
        assert_eq!((error.kind.as_str(), error.answered), ("WRONGTYPE", true));
        assert_eq!(CallError::reply("").kind, "ERR");
    }
}
