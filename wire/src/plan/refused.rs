//! Commands that cannot be part of a load, or only with permission. The lists apply where a server does not describe its commands.

const DELETES: &str = "deletes or replaces data of other clients";
const STALLS: &str = "blocks the server for all its clients";
const CHANGES: &str = "changes the server for all its clients";
const STOPS: &str = "stops the server or closes connections of other clients";

/// Commands that are harmful with any arguments.
pub const COMMANDS: &[(&str, &str)] = &[
    ("BGREWRITEAOF", STALLS),
    ("BGSAVE", STALLS),
    ("DEBUG", STOPS),
    ("FAILOVER", CHANGES),
    ("FLUSHALL", DELETES),
    ("FLUSHDB", DELETES),
    ("KEYS", STALLS),
    // It deletes the keys here, and overwrites them there.
    ("MIGRATE", DELETES),
    ("MODULE", CHANGES),
    ("PFDEBUG", STALLS),
    ("PFSELFTEST", STALLS),
    ("REPLICAOF", DELETES),
    ("RESTORE", DELETES),
    ("RESTORE-ASKING", DELETES),
    ("SAVE", STALLS),
    ("SHUTDOWN", STOPS),
    ("SLAVEOF", DELETES),
    ("SWAPDB", DELETES),
];

/// Commands with harmful subcommands.
pub const SUBCOMMANDS: &[(&str, &[&str], &str)] = &[
    ("ACL", &["DELUSER", "LOAD", "LOG", "SAVE", "SETUSER"], CHANGES),
    ("CLIENT", &["KILL", "NO-EVICT", "PAUSE", "UNPAUSE"], STOPS),
    (
        "CLUSTER",
        &[
            "ADDSLOTS",
            "ADDSLOTSRANGE",
            "BUMPEPOCH",
            "DELSLOTS",
            "DELSLOTSRANGE",
            "FAILOVER",
            "FLUSHSLOTS",
            "FORGET",
            "MEET",
            "REPLICATE",
            "RESET",
            "SAVECONFIG",
            "SET-CONFIG-EPOCH",
            "SETSLOT",
        ],
        CHANGES,
    ),
    ("CONFIG", &["RESETSTAT", "REWRITE", "SET"], CHANGES),
    ("FUNCTION", &["DELETE", "FLUSH", "KILL", "LOAD", "RESTORE"], DELETES),
    ("LATENCY", &["RESET"], CHANGES),
    ("MEMORY", &["PURGE"], STALLS),
    ("SCRIPT", &["DEBUG", "FLUSH", "KILL"], DELETES),
    ("SLOWLOG", &["RESET"], CHANGES),
];

/// Commands that wait for an event and block later requests on their connection.
pub const BLOCKING: &[&str] =
    &["BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "WAITAOF"];

/// Commands that block only with this option.
pub const BLOCKING_IF: &[(&str, &str)] = &[("XREAD", "BLOCK"), ("XREADGROUP", "BLOCK")];

/// Commands that change the state of the connection, or that do not have exactly one reply. Replies after them could not be matched to
/// requests.
pub const OF_THE_CONNECTION: &[&str] = &[
    "ASKING",
    "AUTH",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "REPLCONF",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WATCH",
];
