//! The possible types of a command's reply.

use redisbench_wire::plan::Part;

use super::Seen;

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u16);

impl Kinds {
    const OK: Self = Self(1);
    const STATUS: Self = Self(2);
    const INTEGER: Self = Self(4);
    const BULK: Self = Self(8);
    const NIL: Self = Self(16);
    const ARRAY: Self = Self(32);
    const MAP: Self = Self(64);
    const SET: Self = Self(128);
    const DOUBLE: Self = Self(256);
    /// For an unknown command: anything but an error.
    const ANY: Self = Self(u16::MAX);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, seen: Seen<'_>) -> bool {
        let kind = match seen {
            Seen::Status(b"OK") => Self::OK.or(Self::STATUS),
            Seen::Status(_) => Self::STATUS,
            Seen::Integer(_) => Self::INTEGER,
            Seen::Bulk(_) => Self::BULK,
            Seen::Nil => Self::NIL,
            Seen::Array => Self::ARRAY,
            Seen::Map => Self::MAP,
            Seen::Set => Self::SET,
            Seen::Double => Self::DOUBLE,
            Seen::Boolean | Seen::Unknown => Self(1 << 15),
        };
        self.0 & kind.0 != 0
    }

    /// The types as text, for messages.
    pub(super) fn names(self) -> String {
        let names = [
            (Self::OK, "OK"),
            (Self::STATUS, "a status"),
            (Self::INTEGER, "an integer"),
            (Self::BULK, "a string"),
            (Self::NIL, "nil"),
            (Self::ARRAY, "an array"),
            (Self::MAP, "a map"),
            (Self::SET, "a set"),
            (Self::DOUBLE, "a double"),
        ];
        let names: Vec<_> = names.into_iter().filter(|(kind, _)| self.0 & kind.0 != 0).map(|(_, name)| name).collect();
        names.join(" or ")
    }

    /// The types of the reply to a command with these arguments.
    pub(super) fn of(arguments: &[Vec<Part>]) -> Self {
        let words: Vec<String> = arguments.iter().map(|argument| literal(argument)).collect();
        let Some((name, rest)) = words.split_first() else { return Self::ANY };
        let has = |option: &str| rest.iter().skip(1).any(|word| word == option);
        match name.as_str() {
            // Options that change the type of the reply.
            "SET" if has("GET") => Self::BULK.or(Self::NIL),
            "SET" if has("NX") || has("XX") => Self::OK.or(Self::NIL),
            "ZADD" if has("INCR") => Self::BULK.or(Self::DOUBLE).or(Self::NIL),
            "LPOS" if has("COUNT") => Self::ARRAY,
            "PING" => Self::STATUS.or(Self::BULK),
            "SRANDMEMBER" | "SPOP" if rest.len() > 1 => Self::ARRAY.or(Self::SET),
            "LPOP" | "RPOP" if rest.len() > 1 => Self::ARRAY.or(Self::NIL),
            "HRANDFIELD" if rest.len() > 1 => Self::ARRAY,
            "ZRANK" | "ZREVRANK" if has("WITHSCORE") => Self::ARRAY.or(Self::NIL),
            "BITFIELD" | "BITFIELD_RO" => Self::ARRAY,
            name => TABLE.iter().find(|(names, _)| names.contains(&name)).map_or(Self::ANY, |(_, kinds)| *kinds),
        }
    }
}

fn literal(argument: &[Part]) -> String {
    argument.iter().map(|part| if let Part::Literal(text) = part { text.to_uppercase() } else { "\0".into() }).collect()
}

/// Commands by the type of their reply, in RESP2 and RESP3.
const TABLE: [(&[&str], Kinds); 12] = [
    (
        &["SET", "SETEX", "PSETEX", "MSET", "HMSET", "LSET", "LTRIM", "RENAME", "PFMERGE", "SELECT", "WATCH", "XGROUP"],
        Kinds::OK,
    ),
    (&["TYPE"], Kinds::STATUS),
    (
        &[
            "INCR",
            "DECR",
            "INCRBY",
            "DECRBY",
            "APPEND",
            "STRLEN",
            "SETRANGE",
            "SETNX",
            "MSETNX",
            "GETBIT",
            "SETBIT",
            "BITCOUNT",
            "BITPOS",
            "BITOP",
            "DEL",
            "UNLINK",
            "EXISTS",
            "TOUCH",
            "EXPIRE",
            "PEXPIRE",
            "EXPIREAT",
            "PEXPIREAT",
            "EXPIRETIME",
            "PEXPIRETIME",
            "PERSIST",
            "TTL",
            "PTTL",
            "RENAMENX",
            "MOVE",
            "COPY",
            "LPUSH",
            "RPUSH",
            "LPUSHX",
            "RPUSHX",
            "LLEN",
            "LREM",
            "LINSERT",
            "HSET",
            "HSETNX",
            "HDEL",
            "HLEN",
            "HEXISTS",
            "HINCRBY",
            "HSTRLEN",
            "SADD",
            "SREM",
            "SCARD",
            "SISMEMBER",
            "SMOVE",
            "SINTERSTORE",
            "SUNIONSTORE",
            "SDIFFSTORE",
            "SINTERCARD",
            "ZADD",
            "ZREM",
            "ZCARD",
            "ZCOUNT",
            "ZLEXCOUNT",
            "ZREMRANGEBYRANK",
            "ZREMRANGEBYSCORE",
            "ZREMRANGEBYLEX",
            "ZRANGESTORE",
            "ZUNIONSTORE",
            "ZINTERSTORE",
            "ZDIFFSTORE",
            "ZINTERCARD",
            "PFADD",
            "PFCOUNT",
            "XLEN",
            "XDEL",
            "XACK",
            "XTRIM",
            "GEOADD",
            "GEOSEARCHSTORE",
            "PUBLISH",
            "SPUBLISH",
            "WAIT",
            "DBSIZE",
        ],
        Kinds::INTEGER,
    ),
    (
        &[
            "GET",
            "GETDEL",
            "GETEX",
            "GETSET",
            "HGET",
            "LINDEX",
            "LPOP",
            "RPOP",
            "RPOPLPUSH",
            "LMOVE",
            "BLMOVE",
            "BRPOPLPUSH",
            "SPOP",
            "SRANDMEMBER",
            "HRANDFIELD",
            "RANDOMKEY",
            "DUMP",
            "XADD",
        ],
        Kinds::BULK.or(Kinds::NIL),
    ),
    (&["GETRANGE", "SUBSTR", "ECHO", "INCRBYFLOAT", "HINCRBYFLOAT"], Kinds::BULK),
    (&["ZSCORE", "ZINCRBY", "GEODIST"], Kinds::BULK.or(Kinds::NIL).or(Kinds::DOUBLE)),
    (&["ZRANK", "ZREVRANK", "LPOS"], Kinds::INTEGER.or(Kinds::NIL)),
    (
        &[
            "MGET",
            "HMGET",
            "HKEYS",
            "HVALS",
            "LRANGE",
            "KEYS",
            "ZRANGE",
            "ZREVRANGE",
            "ZRANGEBYSCORE",
            "ZREVRANGEBYSCORE",
            "ZRANGEBYLEX",
            "ZREVRANGEBYLEX",
            "ZPOPMIN",
            "ZPOPMAX",
            "ZMSCORE",
            "ZUNION",
            "ZINTER",
            "ZDIFF",
            "XRANGE",
            "XREVRANGE",
            "SMISMEMBER",
            "SCAN",
            "HSCAN",
            "SSCAN",
            "ZSCAN",
            "GEOPOS",
            "GEOHASH",
            "GEOSEARCH",
            "TIME",
        ],
        Kinds::ARRAY,
    ),
    (&["BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "LMPOP", "BLMPOP", "ZMPOP", "BZMPOP"], Kinds::ARRAY.or(Kinds::NIL)),
    (&["HGETALL"], Kinds::ARRAY.or(Kinds::MAP)),
    (&["XREAD", "XREADGROUP"], Kinds::ARRAY.or(Kinds::MAP).or(Kinds::NIL)),
    (&["SMEMBERS", "SINTER", "SUNION", "SDIFF"], Kinds::ARRAY.or(Kinds::SET)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(command: &str) -> Kinds {
        Kinds::of(&command.split(' ').map(|word| vec![Part::Literal(word.into())]).collect::<Vec<_>>())
    }

    #[test]
    fn options_change_the_type() {
        let (ok, nil, bulk) = (Seen::Status(b"OK"), Seen::Nil, Seen::Bulk(b"x"));
        let of = |command| [ok, nil, bulk].map(|seen| kinds(command).has(seen));
        assert_eq!(of("set k v"), [true, false, false]);
        assert_eq!(of("SET k v NX"), [true, true, false]);
        assert_eq!(of("SET k v EX 1 get"), [false, true, true]);
        assert_eq!(of("GET k"), [false, true, true]);
        assert_eq!(of("SPOP k"), [false, true, true]);
        assert_eq!(of("SPOP k 2"), [false, false, false]);
        assert_eq!(of("SOMETHING NEW"), [true, true, true]);
        assert!(kinds("PING").has(Seen::Status(b"PONG")) && !kinds("SET k v").has(Seen::Status(b"QUEUED")));
        assert!(kinds("SMEMBERS k").has(Seen::Set) && kinds("HGETALL k").has(Seen::Map));
        assert_eq!(kinds("XREAD").names(), "nil or an array or a map");
    }

    #[test]
    fn no_command_stands_twice() {
        let mut all: Vec<&str> = TABLE.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
