//! The replies of the null server.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::cluster::SLOTS;

/// Size of the pre-rendered buffer of each reply to a load's commands.
const RENDERED: usize = 64 << 10;

/// The count of queued commands saturates here.
const MOST_QUEUED: u32 = 1 << 20;

/// The kind of reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Value,
    Done,
    One,
    Pong,
    List,
    Nothing,
    /// The reply to HELLO 2.
    Hello2,
    /// The reply to HELLO 3.
    Hello3,
    Information,
    Setting,
    Slots,
    Nodes,
    ClusterState,
    Identity,
    /// CLUSTER KEYSLOT and others: an unknown subcommand even in a cluster, as CLUSTER SHARDS is for old servers.
    NoCluster,
    Multi,
    /// `QUEUED`, within a transaction.
    Queued,
    /// EXEC: a list of `OK`, one for each queued command.
    Exec(u32),
    /// A protocol error, after which the connection closes.
    Broken(&'static str),
}

impl Want {
    /// The reply to `count` such commands, given the number of commands in the connection's open transaction, if any.
    pub(super) fn within(self, count: u32, queued: &mut Option<u32>) -> Self {
        match (self, &mut *queued) {
            (Self::Multi, None) => {
                *queued = Some(0);
                Self::Done
            }
            (Self::Exec(_), Some(commands)) => {
                let commands = std::mem::take(commands);
                *queued = None;
                Self::Exec(commands)
            }
            (Self::Broken(_), _) | (_, None) => self,
            (_, Some(commands)) => {
                *commands = commands.saturating_add(count).min(MOST_QUEUED);
                Self::Queued
            }
        }
    }

    /// From the name and second word of a command, case-insensitive. Unknown commands get `OK`.
    #[inline]
    pub(super) fn of(name: &[u8], second: &[u8]) -> Self {
        if name.eq_ignore_ascii_case(b"GET") {
            return Self::Value;
        }
        if name.eq_ignore_ascii_case(b"SET") {
            return Self::Done;
        }
        Self::of_others(name, second)
    }

    fn of_others(name: &[u8], second: &[u8]) -> Self {
        let mut upper = [0; 16];
        let Some(upper) = upper.get_mut(..name.len()) else { return Self::Done };
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        match &*upper {
            b"PING" => Self::Pong,
            b"GETSET" | b"GETDEL" | b"GETEX" | b"GETRANGE" | b"HGET" | b"LPOP" | b"RPOP" | b"LINDEX" | b"SPOP"
            | b"SRANDMEMBER" | b"ZSCORE" | b"DUMP" | b"ECHO" => Self::Value,
            b"INCR" | b"DECR" | b"INCRBY" | b"DECRBY" | b"DEL" | b"UNLINK" | b"EXISTS" | b"TOUCH" | b"EXPIRE"
            | b"PEXPIRE" | b"PERSIST" | b"TTL" | b"PTTL" | b"APPEND" | b"STRLEN" | b"SETNX" | b"SETRANGE"
            | b"SETBIT" | b"GETBIT" | b"BITCOUNT" | b"LPUSH" | b"RPUSH" | b"LPUSHX" | b"RPUSHX" | b"LLEN" | b"LREM"
            | b"SADD" | b"SREM" | b"SCARD" | b"SISMEMBER" | b"HSET" | b"HSETNX" | b"HDEL" | b"HLEN" | b"HEXISTS"
            | b"HINCRBY" | b"ZADD" | b"ZREM" | b"ZCARD" | b"ZCOUNT" | b"ZRANK" | b"PFADD" | b"PFCOUNT" | b"GEOADD"
            | b"PUBLISH" | b"DBSIZE" | b"WAIT" => Self::One,
            b"MGET" | b"HMGET" | b"HGETALL" | b"HKEYS" | b"HVALS" | b"LRANGE" | b"SMEMBERS" | b"SINTER" | b"SUNION"
            | b"SDIFF" | b"ZRANGE" | b"ZREVRANGE" | b"ZRANGEBYSCORE" | b"ZPOPMIN" | b"ZPOPMAX" | b"XRANGE" => {
                Self::List
            }
            b"COMMAND" | b"KEYS" => Self::Nothing,
            b"HELLO" => {
                if second == b"3" {
                    Self::Hello3
                } else {
                    Self::Hello2
                }
            }
            b"MULTI" => Self::Multi,
            b"EXEC" => Self::Exec(0),
            b"INFO" => Self::Information,
            b"CONFIG" if second.eq_ignore_ascii_case(b"GET") => Self::Setting,
            b"CLIENT" if second.eq_ignore_ascii_case(b"ID") => Self::One,
            b"CLUSTER" => Self::of_cluster(second),
            _ => Self::Done,
        }
    }

    fn of_cluster(question: &[u8]) -> Self {
        let is = |name: &[u8]| question.eq_ignore_ascii_case(name);
        match () {
            () if is(b"SLOTS") => Self::Slots,
            () if is(b"NODES") => Self::Nodes,
            () if is(b"INFO") => Self::ClusterState,
            () if is(b"MYID") => Self::Identity,
            () => Self::NoCluster,
        }
    }
}

/// Facts that the server reports about itself.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    /// One address per node.
    pub addresses: Vec<SocketAddr>,
    pub is_cluster: bool,
}

/// All replies. Those to a load's commands are pre-rendered.
#[derive(Debug)]
pub(super) struct Replies {
    value: Repeated,
    done: Repeated,
    one: Repeated,
    list: Repeated,
    knowledge: Knowledge,
}

/// One reply, repeated to fill the buffer.
#[derive(Debug)]
struct Repeated {
    bytes: Vec<u8>,
    length: usize,
}

impl Repeated {
    fn new(reply: &[u8]) -> Self {
        Self { bytes: reply.repeat((RENDERED / reply.len()).max(1)), length: reply.len() }
    }

    /// As many of `count` replies as the buffer holds.
    fn of(&self, count: u32) -> (&[u8], u32) {
        let fit = self.bytes.len() / self.length;
        let taken = fit.min(count as usize);
        (&self.bytes[..taken * self.length], u32::try_from(taken).unwrap_or(count))
    }
}

impl Replies {
    pub(super) fn new(value_bytes: usize, knowledge: Knowledge) -> Self {
        let value = [format!("${value_bytes}\r\n").as_bytes(), &vec![b'x'; value_bytes], b"\r\n"].concat();
        Self {
            done: Repeated::new(b"+OK\r\n"),
            one: Repeated::new(b":1\r\n"),
            list: Repeated::new(&[b"*1\r\n", value.as_slice()].concat()),
            value: Repeated::new(&value),
            knowledge,
        }
    }

    /// Appends replies of `node`, which has executed `commands` commands, for at least one of `count` commands. Returns the number
    /// answered.
    #[inline]
    pub(super) fn append(
        &self,
        (want, count): (Want, u32),
        node: usize,
        commands: impl Fn() -> u64,
        out: &mut Vec<u8>,
    ) -> u32 {
        let repeated = match want {
            Want::Value => &self.value,
            Want::Done => &self.done,
            Want::One => &self.one,
            Want::List => &self.list,
            _ => {
                out.extend_from_slice(self.rare(want, node, commands()).as_bytes());
                return 1;
            }
        };
        let (bytes, taken) = repeated.of(count);
        out.extend_from_slice(bytes);
        taken
    }

    fn rare(&self, want: Want, node: usize, commands: u64) -> String {
        let is_cluster = self.knowledge.is_cluster;
        match want {
            Want::Value | Want::Done | Want::One | Want::List => String::new(),
            Want::Multi => "+OK\r\n".to_owned(),
            Want::Queued => "+QUEUED\r\n".to_owned(),
            Want::Exec(commands) => format!("*{commands}\r\n{}", "+OK\r\n".repeat(commands as usize)),
            Want::Pong => "+PONG\r\n".to_owned(),
            Want::Nothing => "*0\r\n".to_owned(),
            Want::Setting => "*2\r\n$4\r\nsave\r\n$0\r\n\r\n".to_owned(),
            Want::Hello2 => format!("*14\r\n{}", self.hello(2)),
            Want::Hello3 => format!("%7\r\n{}", self.hello(3)),
            Want::Information => bulk(&self.information(commands)),
            Want::Broken(why) => format!("-ERR Protocol error: {why}\r\n"),
            Want::Slots if is_cluster => self.slots(),
            Want::Nodes if is_cluster => bulk(&self.nodes(node)),
            Want::ClusterState if is_cluster => bulk(&format!(
                "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\n\
                 cluster_known_nodes:{0}\r\ncluster_size:{0}\r\n",
                self.knowledge.addresses.len()
            )),
            Want::Identity if is_cluster => bulk(&identity(node)),
            Want::NoCluster if is_cluster => "-ERR unknown subcommand\r\n".to_owned(),
            Want::Slots | Want::Nodes | Want::ClusterState | Want::Identity | Want::NoCluster => {
                "-ERR This instance has cluster support disabled\r\n".to_owned()
            }
        }
    }

    fn mode(&self) -> &'static str {
        if self.knowledge.is_cluster { "cluster" } else { "standalone" }
    }

    fn hello(&self, version: u8) -> String {
        let mode = bulk(self.mode());
        format!(
            "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n0.0.0\r\n$5\r\nproto\r\n:{version}\r\n\
             $2\r\nid\r\n:1\r\n$4\r\nmode\r\n{mode}$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
        )
    }

    fn information(&self, commands: u64) -> String {
        format!(
            "# Server\r\nredis_version:0.0.0\r\nredis_mode:{}\r\nexecutable:redisbench-loadgen null-server\r\n\
             \r\n# Persistence\r\nloading:0\r\n\r\n# Stats\r\ntotal_commands_processed:{commands}\r\n\
             \r\n# Replication\r\nrole:master\r\n\r\n# Cluster\r\ncluster_enabled:{}\r\n",
            self.mode(),
            u8::from(self.knowledge.is_cluster),
        )
    }

    /// Each node's slots and address.
    fn parts(&self) -> impl Iterator<Item = (usize, usize, SocketAddr)> {
        let addresses = &self.knowledge.addresses;
        let border = |node: usize| SLOTS * node / addresses.len();
        addresses.iter().enumerate().map(move |(node, address)| (border(node), border(node + 1) - 1, *address))
    }

    /// Leaves the host empty, which means the one that the client connected to.
    fn slots(&self) -> String {
        let mut text = format!("*{}\r\n", self.knowledge.addresses.len());
        for (node, (first, last, address)) in self.parts().enumerate() {
            let _ = write!(text, "*3\r\n:{first}\r\n:{last}\r\n*3\r\n$0\r\n\r\n:{}\r\n", address.port());
            text.push_str(&bulk(&identity(node)));
        }
        text
    }

    fn nodes(&self, asked: usize) -> String {
        let line = |(node, (first, last, address)): (usize, (usize, usize, SocketAddr))| {
            let flags = if node == asked { "myself,master" } else { "master" };
            format!("{} {address}@0 {flags} - 0 0 {} connected {first}-{last}\n", identity(node), node + 1)
        };
        self.parts().enumerate().map(line).collect()
    }
}

/// A node ID of the same length as a real one.
fn identity(node: usize) -> String {
    format!("{node:040x}")
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
