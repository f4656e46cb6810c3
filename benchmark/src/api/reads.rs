//! Which commands only read. The server knows it too, but may not tell.

use redisbench_wire::plan::Part;

const READS: &[&str] = &[
    "BITCOUNT",
    "BITFIELD_RO",
    "BITPOS",
    "CLUSTER",
    "COMMAND",
    "CONFIG",
    "DBSIZE",
    "DUMP",
    "ECHO",
    "EVALSHA_RO",
    "EVAL_RO",
    "EXISTS",
    "EXPIRETIME",
    "FCALL_RO",
    "GEODIST",
    "GEOHASH",
    "GEOPOS",
    "GEORADIUSBYMEMBER_RO",
    "GEORADIUS_RO",
    "GEOSEARCH",
    "GET",
    "GETBIT",
    "GETRANGE",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HKEYS",
    "HLEN",
    "HMGET",
    "HRANDFIELD",
    "HSCAN",
    "HSTRLEN",
    "HVALS",
    "INFO",
    "KEYS",
    "LCS",
    "LINDEX",
    "LLEN",
    "LPOS",
    "LRANGE",
    "MEMORY",
    "MGET",
    "OBJECT",
    "PEXPIRETIME",
    "PFCOUNT",
    "PING",
    "PTTL",
    "RANDOMKEY",
    "ROLE",
    "SCAN",
    "SCARD",
    "SDIFF",
    "SINTER",
    "SINTERCARD",
    "SISMEMBER",
    "SMEMBERS",
    "SMISMEMBER",
    "SORT_RO",
    "SRANDMEMBER",
    "SSCAN",
    "STRLEN",
    "SUBSTR",
    "SUNION",
    "TIME",
    "TOUCH",
    "TTL",
    "TYPE",
    "XINFO",
    "XLEN",
    "XPENDING",
    "XRANGE",
    "XREAD",
    "XREVRANGE",
    "ZCARD",
    "ZCOUNT",
    "ZDIFF",
    "ZINTER",
    "ZINTERCARD",
    "ZLEXCOUNT",
    "ZMSCORE",
    "ZRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYLEX",
    "ZRANGEBYSCORE",
    "ZRANK",
    "ZREVRANGE",
    "ZREVRANGEBYLEX",
    "ZREVRANGEBYSCORE",
    "ZREVRANK",
    "ZSCAN",
    "ZSCORE",
    "ZUNION",
];

/// Whether a command is known to change nothing.
pub(super) fn only_reads(arguments: &[Vec<Part>]) -> bool {
    match arguments.first().map(Vec::as_slice) {
        Some([Part::Literal(name)]) => READS.binary_search(&name.to_ascii_uppercase().as_str()).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    #[test]
    fn reads_are_told_from_writes() {
        assert!(READS.is_sorted());
        let reads = |command: &str| only_reads(&parse(command, None).unwrap());
        assert!(reads("get __key__") && reads("ZRANGE a 0 1") && reads("BITCOUNT a") && reads("ZUNION 1 a"));
        assert!(!reads("SET a b") && !reads("GETDEL a") && !reads("EVAL x 0") && !reads("SORT a STORE b"));
    }
}
