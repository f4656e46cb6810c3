//! Which replies of the target are checked.

use serde::{Deserialize, Serialize};

use super::argument::Part;
use super::workload::{Keys, Operation, Workload};

/// Which replies of the target are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verify {
    /// Nothing.
    #[default]
    None,
    /// Each reply must have a type that the command returns; commands that count must also return the right value.
    Replies,
    /// Also checks that values are those written, and that none is lost. Every value begins with a stamp.
    Values,
}

impl Verify {
    /// The length of a stamp in bytes, and the minimum length of a value.
    pub const STAMP_BYTES: u32 = 24;

    /// The most keys in a shard's own part. It uses [`Self::BYTES_PER_KEY`] of memory for each.
    pub const KEYS_PER_SHARD: u64 = 8_000_000;

    /// Memory for the state of one key.
    pub const BYTES_PER_KEY: usize = 16;

    /// The timeout for reading all keys after the load.
    pub const LAST_READ_NANOSECONDS: u64 = 60_000_000_000;
}

/// A command's effect on the key in its first argument, as far as its values can be tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Neither changes nor returns the value: uses another key, or metadata only.
    Beside,
    /// Reads the whole value.
    Read,
    /// Writes a value of the workload.
    Write {
        /// The argument that is the value.
        data: usize,
        /// True if the key expires.
        expires: bool,
        /// True if the reply is the previous value.
        returns_old: bool,
    },
    /// Adds to a number.
    Count {
        /// The increment; not 0.
        by: i64,
    },
    /// Changes the value in another way.
    Other,
}

/// Commands that neither change a value nor return all of it.
const BESIDE: [&str; 8] = ["EXISTS", "STRLEN", "TTL", "PTTL", "TYPE", "TOUCH", "GETRANGE", "GETBIT"];

impl Role {
    /// The role of a command with these arguments.
    pub fn of(arguments: &[Vec<Part>]) -> Self {
        let names_keys = arguments.iter().flatten().any(|part| matches!(part, Part::Key | Part::NthKey(_)));
        if !names_keys {
            return Self::Beside;
        }
        let words: Vec<String> = arguments.iter().map(|argument| word(argument)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words.get(1) != Some(&KEY) {
            return Self::Other;
        }
        match words.as_slice() {
            ["GET", KEY] => Self::Read,
            ["INCR", KEY] => Self::Count { by: 1 },
            ["DECR", KEY] => Self::Count { by: -1 },
            ["INCRBY", KEY, by] => count(by, 1),
            ["DECRBY", KEY, by] => count(by, -1),
            ["SETEX" | "PSETEX", KEY, _, DATA] => Self::Write { data: 3, expires: true, returns_old: false },
            ["GETSET", KEY, DATA] => Self::Write { data: 2, expires: false, returns_old: true },
            ["SET", KEY, DATA, options @ ..] => set(options),
            [name, ..] if BESIDE.contains(name) => Self::Beside,
            _ => Self::Other,
        }
    }
}

const KEY: &str = "\0key";
const DATA: &str = "\0data";

/// An argument as a word: a literal in capitals, a placeholder by its kind.
fn word(argument: &[Part]) -> String {
    match argument {
        [Part::Key] => KEY.to_owned(),
        [Part::Data] => DATA.to_owned(),
        parts => parts
            .iter()
            .map(|part| if let Part::Literal(text) = part { text.to_uppercase() } else { "\0".to_owned() })
            .collect(),
    }
}

fn count(by: &str, sign: i64) -> Role {
    match by.parse::<i32>() {
        Ok(by) if by != 0 => Role::Count { by: i64::from(by) * sign },
        _ => Role::Other,
    }
}

fn set(options: &[&str]) -> Role {
    let (mut expires, mut returns_old) = (false, false);
    let mut rest = options;
    loop {
        rest = match rest {
            [] => return Role::Write { data: 2, expires, returns_old },
            ["EX" | "PX" | "EXAT" | "PXAT", _, rest @ ..] => {
                expires = true;
                rest
            }
            // An existing expiry is kept.
            ["KEEPTTL", rest @ ..] => rest,
            ["GET", rest @ ..] => {
                returns_old = true;
                rest
            }
            _ => return Role::Other,
        };
    }
}

/// The keys whose values are tracked, of the whole benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Their names. The pattern is not used.
    pub keys: Keys,
    /// The increment of each count. None if values are tracked.
    pub step: Option<i64>,
}

impl Workload {
    /// The keys whose values are tracked. With [`Verify::Values`] those of the workload. With [`Verify::Replies`] the keys of counting
    /// commands, if all have the same increment and no other command writes them.
    pub fn followed(&self, verify: Verify) -> Option<Followed> {
        match verify {
            Verify::None => None,
            Verify::Values => Some(Followed { keys: self.keys.clone(), step: None }),
            Verify::Replies => self.counted(),
        }
    }

    fn counted(&self) -> Option<Followed> {
        let counts = |operation: &Operation| {
            if let Role::Count { by } = Role::of(&operation.arguments) { Some(by) } else { None }
        };
        let (first, step) = self.operations.iter().find_map(|operation| Some((operation, counts(operation)?)))?;
        let keys = self.keys_of(first);
        let alone =
            self.operations.iter().filter(|operation| self.keys_of(operation).same_names(keys)).all(|operation| {
                match Role::of(&operation.arguments) {
                    Role::Read | Role::Beside => true,
                    Role::Count { by } => by == step,
                    Role::Write { .. } | Role::Other => false,
                }
            });
        alone.then(|| Followed { keys: keys.clone(), step: Some(step) })
    }

    /// The keys of an operation.
    pub fn keys_of<'w>(&'w self, operation: &'w Operation) -> &'w Keys {
        operation.keys.as_ref().unwrap_or(&self.keys)
    }
}

impl Keys {
    /// True if both name the same keys, regardless of the pattern.
    pub fn same_names(&self, other: &Self) -> bool {
        let tags = |keys: &Self| keys.tags.map(|tags| tags.count);
        (&self.prefix, self.start, self.count, self.width, tags(self))
            == (&other.prefix, other.start, other.count, other.width, tags(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(word: &str) -> Part {
        match word {
            "K" => Part::Key,
            "V" => Part::Data,
            "N" => Part::Integer { least: 1, most: 9, width: 0 },
            literal => Part::Literal(literal.to_owned()),
        }
    }

    fn role(command: &str) -> Role {
        Role::of(&command.split(' ').map(|word| vec![part(word)]).collect::<Vec<_>>())
    }

    #[test]
    fn counts_are_followed_where_nothing_else_writes() {
        let followed = |commands: &[&str]| {
            let operation = |command: &&str| Operation {
                name: (*command).to_owned(),
                weight: 1,
                arguments: command.split(' ').map(|word| vec![part(word)]).collect(),
                keys: None,
            };
            let operations = commands.iter().map(operation).collect();
            let workload = Workload { operations, ..Workload::clone(&crate::plan::tests::plan().workload) };
            workload.followed(Verify::Replies).and_then(|followed| followed.step)
        };
        assert_eq!(followed(&["GET K"]), None);
        assert_eq!(followed(&["GET K", "INCR K", "SET other V"]), Some(1));
        assert_eq!(followed(&["DECRBY K 2", "TTL K"]), Some(-2));
        assert_eq!(followed(&["INCR K", "INCRBY K 2"]), None, "two steps");
        assert_eq!(followed(&["INCR K", "SET K V"]), None);
        assert_eq!(followed(&["INCR K", "DEL K"]), None);
    }

    #[test]
    fn what_a_command_does_to_a_value() {
        let write = |data, expires, returns_old| Role::Write { data, expires, returns_old };
        for (command, expected) in [
            ("get K", Role::Read),
            ("SET K V", write(2, false, false)),
            ("SET K V EX N", write(2, true, false)),
            ("set K V px 100 get", write(2, true, true)),
            ("SET K V KEEPTTL", write(2, false, false)),
            ("SETEX K 10 V", write(3, true, false)),
            ("GETSET K V", write(2, false, true)),
            ("INCR K", Role::Count { by: 1 }),
            ("DECRBY K 3", Role::Count { by: -3 }),
            ("TTL K", Role::Beside),
            ("PING", Role::Beside),
            ("INCRBY K 0", Role::Other),
            ("INCRBY K N", Role::Other),
            ("SET K V NX", Role::Other),
            ("SET K 7", Role::Other),
            ("MGET K K", Role::Other),
            ("APPEND K V", Role::Other),
            ("BITOP AND x K", Role::Other),
        ] {
            assert_eq!(role(command), expected, "{command}");
        }
    }
}
