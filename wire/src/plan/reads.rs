//! The list of read-only commands, for places that cannot ask the server: the operator that makes a plan, and shards whose user may not
//! call COMMAND.

/// Commonly used commands that servers up to Redis 7 flag as `readonly`, in capitals: of keys, strings, hashes, lists, sets, sorted sets,
/// streams and places, and scripts.
pub const READS: &str = "
    DBSIZE DUMP EXISTS EXPIRETIME KEYS PEXPIRETIME PTTL RANDOMKEY SCAN SORT_RO TOUCH TTL TYPE
    BITCOUNT BITFIELD_RO BITPOS GET GETBIT GETRANGE LCS MGET PFCOUNT STRLEN SUBSTR
    HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS
    LINDEX LLEN LPOS LRANGE
    SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER SSCAN SUNION
    ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
    ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION
    XLEN XPENDING XRANGE XREAD XREVRANGE
    GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH
    EVALSHA_RO EVAL_RO FCALL_RO
";

/// Returns true if a command, in any case, is known to only read keys.
pub fn only_reads(name: &str) -> bool {
    READS.split_whitespace().any(|read| read.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_told_from_writes() {
        let names: Vec<&str> = READS.split_whitespace().collect();
        assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])), "one is listed twice");
        assert!(only_reads("get") && only_reads("ZRANGE") && only_reads("BITCOUNT") && only_reads("ZUNION"));
        assert!(!only_reads("SET") && !only_reads("GETDEL") && !only_reads("GETEX") && !only_reads("EVAL"));
        assert!(!only_reads("SORT"), "it may store");
    }
}
