//! The checks, one for each requirement of the contract.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use flate2::Crc;

use super::peer::{PATIENCE, Peer, pause};
use super::server::Server;
use crate::contract::{CallErrorKind, Configure, Operation, Outcome, Sharing, Topology};

/// The driver's command and the server.
#[derive(Debug)]
pub struct Suite {
    command: Vec<String>,
    noop: bool,
    server: Server,
}

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    /// It also holds for a driver that calls no library.
    pub noop: bool,
    pub run: fn(&Suite) -> Result<()>,
}

pub const ALL: &[Check] = &[
    Check { name: "says hello, and exits when the socket closes", noop: true, run: hello },
    Check { name: "refuses what it cannot connect to, and can be configured again", noop: false, run: refuses },
    Check { name: "passes arguments of any bytes and size", noop: false, run: arguments },
    Check { name: "decodes every type of reply, in RESP2 and RESP3", noop: false, run: replies },
    Check { name: "names errors by their first word", noop: false, run: errors },
    Check { name: "completes calls in the order of their replies", noop: false, run: order },
    Check { name: "ends a call after its timeout", noop: false, run: timeout },
    Check { name: "ends the calls of a lost connection, and connects again", noop: false, run: disconnect },
    Check { name: "makes every call once", noop: true, run: counts },
    Check { name: "shares connections, or says that it cannot", noop: false, run: shares },
    Check { name: "drains, closes its connections, and begins another trial", noop: true, run: drains },
];

impl Suite {
    pub fn start(command: Vec<String>) -> Result<Self> {
        let noop = command.last().is_some_and(|last| last == "--noop");
        Ok(Self { command, noop, server: Server::start()? })
    }

    fn configuration(&self) -> Configure {
        let operation = |name: &str, key| Operation { name: name.to_owned(), key };
        Configure {
            topology: Topology::Standalone,
            addresses: vec![self.server.address.to_string()],
            protocol: 2,
            database: 0,
            username_file: None,
            password_file: Some(self.server.file("password")),
            connections: 4,
            callers: 64,
            sharing: Sharing::Exclusive,
            retries: 0,
            connect_timeout_milliseconds: 5_000,
            response_timeout_milliseconds: 20_000,
            operations: vec![operation("anything", None), operation("first", Some(1))],
        }
    }

    fn peer(&self) -> Result<Peer> {
        Peer::start(&self.command)
    }

    /// A driver that is connected.
    fn ready(&self, configure: &Configure) -> Result<Peer> {
        let mut peer = self.peer()?;
        self.connect(&mut peer, configure)?;
        Ok(peer)
    }

    fn connect(&self, peer: &mut Peer, configure: &Configure) -> Result<()> {
        let connections = peer.configure(configure)?.map_err(anyhow::Error::msg).context("it refused the server")?;
        if !self.noop {
            let made = self.server.clients()?;
            let wanted = configure.connections;
            ensure!(connections >= wanted, "it reports {connections} connections instead of {wanted}");
            ensure!(made >= wanted as usize, "it made {made} of {wanted} connections before Ready");
        }
        Ok(())
    }
}

fn hello(suite: &Suite) -> Result<()> {
    let peer = suite.peer()?;
    let hello = &peer.hello;
    for (field, text) in [("language", &hello.language), ("library", &hello.library), ("version", &hello.version)] {
        ensure!(!text.is_empty(), "the {field} of its Hello is empty");
    }
    ensure!(hello.version.starts_with(|first: char| first.is_ascii_digit()), "{:?} is no version", hello.version);
    let status = peer.close()?;
    ensure!(status.success(), "it exited with {status} after the socket was closed");
    Ok(())
}

fn refuses(suite: &Suite) -> Result<()> {
    let mut peer = suite.peer()?;
    let good = suite.configuration();
    let closed = Configure { addresses: vec!["127.0.0.1:1".into()], ..good.clone() };
    let wrong = Configure { password_file: Some(suite.server.file("wrong")), ..good.clone() };
    for (bad, what) in [(wrong, "a wrong password"), (closed, "a closed port")] {
        ensure!(peer.configure(&bad)?.is_err(), "it is Ready with {what}");
    }
    suite.connect(&mut peer, &good)?;
    ensure_checksum(&peer.call(&[b"PING"])?, &[b"PONG"])
}

fn checksum(leaves: &[&[u8]]) -> u32 {
    leaves.iter().fold(0, |sum: u32, leaf| {
        let mut crc = Crc::new();
        crc.update(leaf);
        sum.wrapping_add(crc.sum())
    })
}

fn ensure_checksum(outcome: &Outcome, leaves: &[&[u8]]) -> Result<()> {
    ensure!(outcome.result == Ok(()), "a call failed: {:?}", outcome.result);
    let (got, expected) = (outcome.checksum.unwrap_or_default(), checksum(leaves));
    ensure!(got == expected, "the checksum of a reply is {got:08x} instead of {expected:08x}");
    ensure!(!outcome.null, "a reply is null");
    Ok(())
}

fn arguments(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..8 << 12).flat_map(|index: u16| index.to_le_bytes()).cycle().take(8 << 20).collect();
    let cases: [(&[u8], &[u8]); 4] =
        [(b"text", b"value"), (&every_byte, &every_byte), (b"", b""), (b"large\r\n\0", &large)];
    for (key, value) in cases {
        for (operation, arguments, reply) in
            [(1, vec![b"SET".as_slice(), key, value], b"OK".as_slice()), (1, vec![b"GET".as_slice(), key], value)]
        {
            let ids = peer.send(operation, &[arguments])?;
            ensure_checksum(&peer.outcome(ids[0])?, &[reply])
                .with_context(|| format!("for a key of {} bytes and a value of {} bytes", key.len(), value.len()))?;
        }
    }
    let numbers: Vec<String> = (0..2_000).map(|number| format!("many:{number}")).collect();
    let mut many: Vec<&[u8]> = vec![b"MSET"];
    many.extend(numbers.iter().map(String::as_bytes));
    ensure_checksum(&peer.call(&many)?, &[b"OK"]).context("for 2001 arguments")
}

fn replies(suite: &Suite) -> Result<()> {
    for protocol in [2, 3] {
        let mut peer = suite.ready(&Configure { protocol, ..suite.configuration() })?;
        let mut call = |words: &[&str]| peer.call(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        call(&["DEL", "list", "hash", "none"])?;
        let cases: [(&[&str], &[&[u8]]); 9] = [
            (&["PING"], &[b"PONG"]),
            (&["RPUSH", "list", "a", "b"], &[b"2"]),
            (&["LRANGE", "list", "0", "-1"], &[b"a", b"b"]),
            (&["LRANGE", "nothing", "0", "-1"], &[]),
            (&["MGET", "none", "none"], &[]),
            (&["HSET", "hash", "field", "value", "other", "7"], &[b"2"]),
            (&["HGETALL", "hash"], &[b"field", b"value", b"other", b"7"]),
            (&["EVAL", "return {1, {'x', -2}, false, 'y'}", "0"], &[b"1", b"x", b"-2", b"y"]),
            (&["ECHO", "9007199254740993"], &[b"9007199254740993"]),
        ];
        for (words, leaves) in cases {
            ensure_checksum(&call(words)?, leaves)
                .with_context(|| format!("of {} in RESP{protocol}", words.join(" ")))?;
        }
        let nothing = call(&["GET", "none"])?;
        ensure!(nothing.result == Ok(()) && nothing.null, "a null reply in RESP{protocol} is {nothing:?}");
    }
    Ok(())
}

fn errors(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    peer.call(&[b"SET", b"text", b"x"])?;
    let cases: [(&[&[u8]], &str); 5] = [
        (&[b"LPUSH", b"text", b"y"], "WRONGTYPE"),
        (&[b"NOSUCHCOMMAND"], "ERR"),
        (&[b"EVALSHA", b"0123456789012345678901234567890123456789", b"0"], "NOSCRIPT"),
        (&[b"EVAL", b"return redis.error_reply('CUSTOM error')", b"0"], "CUSTOM"),
        (&[b"EVAL", b"return redis.error_reply('READONLY error')", b"0"], "READONLY"),
    ];
    for (arguments, word) in cases {
        let outcome = peer.call(arguments)?;
        let expected = Err(CallErrorKind::Reply(word.to_owned()));
        ensure!(outcome.result == expected, "a reply with the error {word} is {:?}", outcome.result);
    }
    ensure_checksum(&peer.call(&[b"GET", b"text"])?, &[b"x"])
}

fn order(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    suite.server.ask::<u64>(&["DEL", "queue"])?;
    let blocked = peer.send(0, &[vec![b"BLPOP", b"queue", b"15"]])?[0];
    for _ in 0..20 {
        let outcome = peer.call(&[b"PING"])?;
        ensure_checksum(&outcome, &[b"PONG"])?;
    }
    ensure!(!peer.has_ended(blocked), "a blocked call ended before its reply");
    suite.server.ask::<u64>(&["LPUSH", "queue", "element"])?;
    ensure_checksum(&peer.outcome(blocked)?, &[b"queue", b"element"])
}

fn timeout(suite: &Suite) -> Result<()> {
    let configure = Configure { response_timeout_milliseconds: 300, ..suite.configuration() };
    let mut peer = suite.ready(&configure)?;
    suite.server.ask::<String>(&["CLIENT", "PAUSE", "1500", "ALL"])?;
    let outcome = peer.call(&[b"PING"])?;
    ensure!(outcome.result == Err(CallErrorKind::Timeout), "a call without a reply for 1.5 s is {:?}", outcome.result);
    let took = outcome.completed - outcome.called;
    ensure!(took >= 300_000_000, "a call timed out after {} ms instead of 300", took / 1_000_000);
    ensure!(took < 1_500_000_000, "a call timed out after {} ms instead of 300", took / 1_000_000);
    Ok(())
}

fn disconnect(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    let blocked = peer.send(0, &[vec![b"BLPOP", b"nothing", b"15"]])?[0];
    // The call has reached the server.
    let deadline = Instant::now() + PATIENCE;
    while !suite.server.ask::<String>(&["INFO", "clients"])?.contains("blocked_clients:1") {
        ensure!(Instant::now() < deadline, "a blocking call did not reach the server");
        pause();
    }
    suite.server.ask::<u64>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])?;
    let outcome = peer.outcome(blocked)?;
    ensure!(
        outcome.result == Err(CallErrorKind::Disconnected),
        "a call on a closed connection is {:?}",
        outcome.result
    );
    let deadline = Instant::now() + PATIENCE;
    let mut in_a_row = 0;
    while in_a_row < 8 {
        let again = peer.call(&[b"PING"])?;
        in_a_row = if again.result == Ok(()) { in_a_row + 1 } else { 0 };
        ensure!(Instant::now() < deadline, "calls still fail after the connections were closed: {:?}", again.result);
        if in_a_row == 0 {
            pause();
        }
    }
    Ok(())
}

/// Calls of the check that counts them, and how many are in flight.
const CALLS: usize = 5_000;
const IN_FLIGHT: usize = 64;

fn counts(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    count(suite, &mut peer)
}

fn count(suite: &Suite, peer: &mut Peer) -> Result<()> {
    suite.server.ask::<u64>(&["DEL", "counter"])?;
    let increment: Vec<&[u8]> = vec![b"INCR", b"counter"];
    let mut waiting = peer.send(1, &vec![increment.clone(); IN_FLIGHT])?;
    let mut sum = 0_u32;
    for sent in IN_FLIGHT..CALLS + IN_FLIGHT {
        let outcome = peer.outcome(waiting[sent % IN_FLIGHT])?;
        ensure!(outcome.result == Ok(()), "a call failed: {:?}", outcome.result);
        sum = sum.wrapping_add(outcome.checksum.unwrap_or_default());
        if sent < CALLS {
            waiting[sent % IN_FLIGHT] = peer.send(1, std::slice::from_ref(&increment))?[0];
        }
    }
    if !suite.noop {
        let counted: usize = suite.server.ask(&["GET", "counter"])?;
        ensure!(counted == CALLS, "{CALLS} calls of INCR made {counted}");
        let texts: Vec<String> = (1..=CALLS).map(|number| number.to_string()).collect();
        let expected = checksum(&texts.iter().map(String::as_bytes).collect::<Vec<_>>());
        ensure!(sum == expected, "the replies to INCR are not 1 to {CALLS}");
    }
    Ok(())
}

fn shares(suite: &Suite) -> Result<()> {
    let mut peer = suite.peer()?;
    match peer.configure(&Configure { sharing: Sharing::Shared, ..suite.configuration() })? {
        Ok(_) => count(suite, &mut peer),
        Err(why) => {
            ensure!(why.contains("Exclusive"), "its reason does not say which sharing it has: {why}");
            Ok(())
        }
    }
}

fn drains(suite: &Suite) -> Result<()> {
    let mut peer = suite.ready(&suite.configuration())?;
    peer.send(0, &vec![vec![b"PING".as_slice()]; IN_FLIGHT])?;
    peer.send(0, &[vec![b"BLPOP", b"nothing", b"0.2"]])?;
    peer.drain()?;
    let deadline = Instant::now() + PATIENCE;
    while suite.server.clients()? > 0 {
        ensure!(Instant::now() < deadline, "it keeps connections after Bye");
        pause();
    }
    let other = Configure {
        username_file: Some(suite.server.file("username")),
        database: 3,
        protocol: 3,
        ..suite.configuration()
    };
    suite.connect(&mut peer, &other)?;
    let outcome = peer.call(&[b"CLIENT", b"INFO"])?;
    ensure!(outcome.result == Ok(()), "a call of the second trial failed: {:?}", outcome.result);
    if !suite.noop {
        let list: String = suite.server.ask(&["CLIENT", "LIST", "TYPE", "normal"])?;
        let used = list.lines().filter(|line| line.contains(" db=3 ") && line.contains(" user=driver "));
        ensure!(used.count() >= 1, "no connection uses database 3 and user driver:\n{list}");
    }
    peer.drain()
}
