//! The lines of a file, as values or keys.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The lines of a file, at least one. A clone shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct Lines {
    text: Arc<[u8]>,
    /// The place of each in `text`.
    places: Arc<[Range<usize>]>,
}

impl Lines {
    /// The most bytes of a file: those of a ConfigMap.
    pub const BYTES: u32 = 1 << 20;

    /// The most lines of a file that are not empty: of one byte each.
    pub const MOST: u32 = Self::BYTES / 2;

    /// A shard's name of the file of values.
    pub const VALUES_FILE: &str = "values";

    /// A shard's name of the file of keys.
    pub const KEYS_FILE: &str = "keys";

    /// The lines of `text`, without the `\n` or `\r\n` at their ends. `None` if it is empty.
    pub fn of(text: Vec<u8>) -> Option<Self> {
        let mut start = 0;
        let places = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let content = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
            let place = start..start + content.len();
            start += line.len();
            place
        });
        let places: Arc<[_]> = places.collect();
        (!places.is_empty()).then(|| Self { text: text.into(), places })
    }

    /// The line of request `k`: they take turns.
    pub fn line(&self, k: u64) -> &[u8] {
        let number = k % self.places.len().max(1) as u64;
        let place = usize::try_from(number).ok().and_then(|number| self.places.get(number));
        place.and_then(|place| self.text.get(place.clone())).unwrap_or_default()
    }

    /// The number of lines.
    pub fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// The number of the first line without any bytes, from 0.
    pub fn first_empty(&self) -> Option<usize> {
        self.places.iter().position(Range::is_empty)
    }

    /// The length of the longest line in bytes.
    pub fn longest(&self) -> usize {
        self.places.iter().map(ExactSizeIterator::len).max().unwrap_or(0)
    }
}

/// Keys from a file that every shard has: the key with number n is line n, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFile {
    /// No plan carries them: a shard reads them when it gets the plan.
    #[serde(skip)]
    pub lines: Option<Lines>,
}

/// A plan in a log does not show the file.
impl fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} lines", self.places.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_turns_without_their_ends() {
        let lines = Lines::of(b"a\r\n\nlong\n".to_vec()).unwrap();
        let of = |k| String::from_utf8_lossy(lines.line(k)).into_owned();
        assert_eq!([0, 1, 2, 3, 5, u64::MAX].map(of), ["a", "", "long", "a", "long", "a"]);
        assert_eq!((lines.longest(), format!("{lines:?}").as_str()), (4, "3 lines"));
        assert_eq!((lines.count(), lines.first_empty()), (3, Some(1)));
        assert_eq!(Lines::of(b"a\nb".to_vec()).unwrap().line(1), b"b", "the last one needs no end");
        assert_eq!(Lines::of(Vec::new()), None);
    }
}
