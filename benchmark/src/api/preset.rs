//! The tests of redis-benchmark 7 by their names there: what each sends, and what must be there before. A trial is made
//! of each that `workload.preset` names.

use redisbench_wire::plan::Part;

use super::command;

/// Digits of redis-benchmark's numbers, in keys and elsewhere.
pub const DIGITS: usize = 12;

/// What stands for a number below that of `redis-benchmark -r` in the table.
const NUMBER: &str = "__number__";

/// One test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// As `redis-benchmark -t` takes it.
    pub name: &'static str,
    command: &'static str,
    /// Comes before the number in its keys, if it has any.
    pub prefix: &'static str,
    /// What must be there before.
    pub fill: Fill,
}

/// What a test needs to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing.
    Nothing,
    /// A value in every key, or it measures misses; redis-benchmark leaves that to the test before.
    Keys,
    /// So many elements, of which this command adds one.
    Elements {
        /// How many.
        count: u32,
        /// Adds one.
        command: &'static str,
    },
    /// An element for every request, which takes it away; this command adds one, another each time. redis-benchmark
    /// takes what there is, and measures empty replies then.
    ElementPerRequest {
        /// Adds one.
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

/// All, in the order in which redis-benchmark runs them. Not among them is `ping_inline`: commands go out as arrays.
/// redis-benchmark 7.0 has no `xadd` yet.
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

/// The keys that redis-benchmark has for all requests of a test.
const CONTAINERS: [&str; 5] = ["mylist", "myset", "myhash", "myzset", "mystream"];

fn on_key(command: &str) -> String {
    let words = command.split(' ').map(|word| if CONTAINERS.contains(&word) { "__key__" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

impl Preset {
    /// The command, as `operations[].command` has it, with numbers below `numbers`, at least 1: those of
    /// `redis-benchmark -r`.
    pub fn command(&self, numbers: u64) -> String {
        let last = numbers.saturating_sub(1);
        self.command.replace(NUMBER, &format!("__integer:{:0DIGITS$}:{last:0DIGITS$}__", 0))
    }

    /// Whether each of its requests takes an element away.
    pub fn takes(&self) -> bool {
        matches!(self.fill, Fill::ElementPerRequest { .. })
    }

    /// Whether all its requests are about one and the same key.
    pub fn has_one_key(&self) -> bool {
        self.command.split(' ').any(|word| CONTAINERS.contains(&word))
    }

    /// The command, with the request's key in the place of the one key that redis-benchmark has for all.
    pub fn command_on_keys(&self, numbers: u64) -> String {
        on_key(&self.command(numbers))
    }

    /// The arguments of what adds an element, in the same way; none if it needs none.
    pub fn fill_arguments(&self) -> Vec<Vec<Part>> {
        match self.fill {
            Fill::Nothing | Fill::Keys => Vec::new(),
            // A test reads all of them.
            Fill::Elements { command, .. } | Fill::ElementPerRequest { command } => {
                command::parse(&on_key(command), None).unwrap_or_default()
            }
        }
    }

    /// The parts of the command's arguments.
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
