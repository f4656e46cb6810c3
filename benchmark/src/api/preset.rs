//! The tests of redis-benchmark 7 by name: their commands, and the data that they need. `workload.preset` makes a trial of each.

use redisbench_wire::plan::Part;

use super::command;

/// Digits of redis-benchmark's numbers, in keys and elsewhere.
pub const DIGITS: usize = 12;

/// Stands in the table for a number below that of `redis-benchmark -r`.
const NUMBER: &str = "__number__";

/// One test of redis-benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name as for `redis-benchmark -t`.
    pub name: &'static str,
    command: &'static str,
    /// Prefix of the number in its keys; empty without keys.
    pub prefix: &'static str,
    /// Data that must exist before.
    pub fill: Fill,
}

/// Data that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing.
    Nothing,
    /// A value in every key, else the test measures misses. redis-benchmark leaves this to the previous test.
    Keys,
    /// A number of elements, each added by this command.
    Elements {
        /// Number of elements.
        count: u32,
        /// Adds one element.
        command: &'static str,
    },
    /// An element for every request, which removes it. Each call of this command adds a different one. redis-benchmark removes existing
    /// elements, then measures empty replies.
    ElementPerRequest {
        /// Adds one element.
        command: &'static str,
    },
}

const fn preset(name: &'static str, command: &'static str, prefix: &'static str, fill: Fill) -> Preset {
    Preset { name, command, prefix, fill }
}

const LIST: &str = "LPUSH mylist __data__";

const fn range(name: &'static str, command: &'static str, count: u32) -> Preset {
    preset(name, command, "", Fill::Elements { count, command: LIST })
}

/// All tests, in redis-benchmark's order. `ping_inline` is missing because commands are sent as arrays. redis-benchmark 7.0 does not have
/// `xadd`.
pub const PRESETS: &[Preset] = &[
    preset("ping_mbulk", "PING", "", Fill::Nothing),
    preset("set", "SET __key__ __data__", "key:", Fill::Nothing),
    preset("get", "GET __key__", "key:", Fill::Keys),
    preset("incr", "INCR __key__", "counter:", Fill::Nothing),
    preset("lpush", LIST, "", Fill::Nothing),
    preset("rpush", "RPUSH mylist __data__", "", Fill::Nothing),
    preset("lpop", "LPOP mylist", "", Fill::ElementPerRequest { command: LIST }),
    preset("rpop", "RPOP mylist", "", Fill::ElementPerRequest { command: LIST }),
    preset("sadd", "SADD myset element:__number__", "", Fill::Nothing),
    preset("hset", "HSET myhash element:__number__ __data__", "", Fill::Nothing),
    preset("spop", "SPOP myset", "", Fill::ElementPerRequest { command: "SADD myset element:__sequence__" }),
    preset("zadd", "ZADD myzset __number__ element:__number__", "", Fill::Nothing),
    preset(
        "zpopmin",
        "ZPOPMIN myzset",
        "",
        Fill::ElementPerRequest { command: "ZADD myzset __score__ element:__sequence__" },
    ),
    range("lrange_100", "LRANGE mylist 0 99", 100),
    range("lrange_300", "LRANGE mylist 0 299", 300),
    range("lrange_500", "LRANGE mylist 0 499", 500),
    range("lrange_600", "LRANGE mylist 0 599", 600),
    preset(
        "mset",
        "MSET __key__ __data__ __key:2__ __data__ __key:3__ __data__ __key:4__ __data__ __key:5__ __data__ __key:6__ \
         __data__ __key:7__ __data__ __key:8__ __data__ __key:9__ __data__ __key:10__ __data__",
        "key:",
        Fill::Nothing,
    ),
    preset("xadd", "XADD mystream * myfield __data__", "", Fill::Nothing),
];

/// Keys that redis-benchmark uses for all requests of a test.
const CONTAINERS: [&str; 5] = ["mylist", "myset", "myhash", "myzset", "mystream"];

fn on_key(command: &str) -> String {
    let words = command.split(' ').map(|word| if CONTAINERS.contains(&word) { "__key__" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

impl Preset {
    /// The command as in `operations[].command`, with numbers below `numbers` (at least 1), as in `redis-benchmark -r`.
    pub fn command(&self, numbers: u64) -> String {
        let last = numbers.saturating_sub(1);
        self.command.replace(NUMBER, &format!("__integer:{:0DIGITS$}:{last:0DIGITS$}__", 0))
    }

    /// Returns whether each request removes an element.
    pub fn takes(&self) -> bool {
        matches!(self.fill, Fill::ElementPerRequest { .. })
    }

    /// Returns whether all requests use the same key.
    pub fn has_one_key(&self) -> bool {
        self.command.split(' ').any(|word| CONTAINERS.contains(&word))
    }

    /// Like [`Self::command()`], with the request's key in place of redis-benchmark's single one.
    pub fn command_on_keys(&self, numbers: u64) -> String {
        on_key(&self.command(numbers))
    }

    /// Arguments of the command that adds an element, with the request's key; empty if no elements are needed.
    pub fn fill_arguments(&self) -> Vec<Vec<Part>> {
        match self.fill {
            Fill::Nothing | Fill::Keys => Vec::new(),
            // A test reads all of them.
            Fill::Elements { command, .. } | Fill::ElementPerRequest { command } => {
                command::parse(&on_key(command), None).unwrap_or_default()
            }
        }
    }

    /// Parsed arguments of [`Self::command()`].
    pub fn arguments(&self, numbers: u64) -> Vec<Vec<Part>> {
        // A test reads all of them.
        command::parse(&self.command(numbers), None).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_can_be_read() {
        for preset in PRESETS {
            let command = preset.command(1_000_000);
            assert!(command::parse(&command, None).is_ok(), "{command}");
            if let Fill::Elements { command, .. } | Fill::ElementPerRequest { command } = preset.fill {
                assert!(command::parse(command, None).is_ok(), "{command}");
            }
            let has_key = preset.arguments(10).iter().flatten().any(|part| *part == Part::Key);
            assert_eq!(has_key, !preset.prefix.is_empty(), "{}", preset.name);
        }
    }

    #[test]
    fn numbers_are_written_as_redis_benchmark_does() {
        let zadd = PRESETS.iter().find(|preset| preset.name == "zadd").unwrap();
        let number = "__integer:000000000000:000000000999__";
        assert_eq!(zadd.command(1000), format!("ZADD myzset {number} element:{number}"));
    }
}
