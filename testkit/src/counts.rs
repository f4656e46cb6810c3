//! Counts by name, for the summary of many runs.

use std::collections::BTreeMap;
use std::fmt;

/// The number of times that each of several events happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    pub fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.0.entry(name.into()).or_default() += count;
    }

    /// The number of times that it happened.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(name, count)| self.add(name, count));
    }
}

/// A line for each name.
impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, count)| writeln!(formatter, "{count:>9} {name}"))
    }
}

/// The name of an enum's variant, with that of a variant in it: `Halt Killed` of `Halt(Killed { after: 1s })`.
pub fn variant(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    let is_end = |letter: char| !letter.is_alphabetic() && letter != '(';
    text.split(is_end).next().unwrap_or_default().trim_end_matches('(').replace('(', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_names_without_their_fields() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "only for its names")]
        enum Fault {
            Abort,
            Kill { shard: u32 },
            Lose(u32),
            Halt(Option<u32>, u32),
        }
        let names = [Fault::Abort, Fault::Kill { shard: 1 }, Fault::Lose(7), Fault::Halt(Some(1), 2)];
        assert_eq!(names.map(|fault| variant(&fault)), ["Abort", "Kill", "Lose", "Halt Some"]);
    }
}
