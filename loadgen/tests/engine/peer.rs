//! A scripted server: it records every command and replies at once, on request or never.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_testkit::servers::PATIENCE;

/// A received command. Pings are answered and counted, but not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The connection, numbered in the order of first commands.
    pub connection: usize,
    pub arguments: Vec<String>,
}

/// Supports just enough of the protocol. Stops with the test.
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    received: Vec<Received>,
    connections: Vec<Line>,
    /// True if new connections are held.
    hold_new: bool,
    /// The command from which on all connections are held.
    hold_at: Option<usize>,
    /// True if the first connection is held from its first command on.
    hold_first: bool,
    /// The reply to every command.
    reply: &'static [u8],
    pings: usize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            received: Vec::new(),
            connections: Vec::new(),
            hold_new: false,
            hold_at: None,
            hold_first: false,
            reply: VALUE,
            pings: 0,
        }
    }
}

impl State {
    fn hold(&mut self) {
        self.hold_new = true;
        self.connections.iter_mut().for_each(|line| line.held = true);
    }
}

/// The default reply to every command.
pub const VALUE: &[u8] = b"$1\r\nx\r\n";

struct Line {
    stream: TcpStream,
    /// Replies that are due, to commands and pings.
    unanswered: VecDeque<&'static [u8]>,
    held: bool,
}

impl Line {
    fn answer(&mut self, most: usize) {
        for _ in 0..most {
            let Some(answer) = self.unanswered.pop_front() else { return };
            // The client may have disconnected.
            let _ = self.stream.write_all(answer);
        }
    }
}

/// Serves each connection on a thread of its own. Stops with the test.
pub fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let serve = &serve;
        std::thread::scope(|threads| {
            for stream in listener.incoming().flatten() {
                threads.spawn(move || serve(stream));
            }
        });
    });
    address
}

impl Peer {
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let all = Arc::clone(&shared);
        Self { address: listen(move |stream| all.serve(stream)), shared }
    }

    pub fn node(&self) -> NodeAddress {
        self.address.into()
    }

    /// The peer as a standalone server.
    pub fn topology(&self) -> Topology {
        Topology::of(&[self.address])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Stops replying on all connections.
    pub fn hold(&self) {
        self.state().hold();
    }

    /// Stops replying on all connections with the command of this number, from 1.
    pub fn hold_at(&self, command: usize) {
        self.state().hold_at = Some(command);
    }

    /// Never replies on the first connection.
    pub fn hold_first(&self) {
        self.state().hold_first = true;
    }

    /// Replies to everything, now and from now on.
    pub fn release(&self) {
        let mut state = self.state();
        state.hold_new = false;
        for line in &mut state.connections {
            line.held = false;
            line.answer(usize::MAX);
        }
    }

    /// Replies to the oldest `count` commands of a held connection.
    pub fn answer(&self, connection: usize, count: usize) {
        self.state().connections[connection].answer(count);
    }

    /// Replies to later commands with `reply`. Returns the number of commands before.
    pub fn reply_with(&self, reply: &'static [u8]) -> usize {
        let mut state = self.state();
        state.reply = reply;
        state.received.len()
    }

    /// Closes one connection.
    pub fn close_connection(&self, connection: usize) {
        let _ = self.state().connections[connection].stream.shutdown(Shutdown::Both);
    }

    /// Sends unsolicited bytes on every connection.
    pub fn say(&self, words: &[u8]) {
        for line in &mut self.state().connections {
            line.stream.write_all(words).unwrap();
        }
    }

    /// Shuts down writing on every connection, but continues to read.
    pub fn close_half(&self) {
        for line in &self.state().connections {
            let _ = line.stream.shutdown(Shutdown::Write);
        }
    }

    /// All commands so far, in order of arrival.
    pub fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// The number of unanswered commands and pings on all connections.
    pub fn unanswered(&self) -> usize {
        self.state().connections.iter().map(|line| line.unanswered.len()).sum()
    }

    pub fn pings(&self) -> usize {
        self.state().pings
    }

    /// Waits until the received commands fulfil `condition`.
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut(&[Received]) -> bool) {
        let wait = self.shared.changed.wait_timeout_while(self.state(), PATIENCE, |state| !condition(&state.received));
        let (state, result) = wait.unwrap();
        assert!(!result.timed_out(), "waited too long for {what}, with {} commands", state.received.len());
    }

    pub fn wait_for_commands(&self, count: usize) {
        self.wait_for(&format!("{count} commands"), |received| received.len() >= count);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut reading = stream.try_clone().unwrap();
        let (mut input, mut buffer) = (Vec::new(), [0; 65_536]);
        let mut number = None;
        let mut stream = Some(stream);
        while let Ok(count @ 1..) = reading.read(&mut buffer) {
            input.extend_from_slice(&buffer[..count]);
            let mut state = self.state.lock().unwrap();
            while let Some((arguments, length)) = command(&input) {
                input.drain(..length);
                let is_command = arguments[0] != "PING";
                if is_command && state.hold_at == Some(state.received.len() + 1) {
                    state.hold();
                }
                let State { received, connections, hold_new, hold_first, reply, pings, .. } = &mut *state;
                if let Some(stream) = stream.take() {
                    let held = *hold_new || *hold_first && connections.is_empty();
                    number = Some(connections.len());
                    connections.push(Line { stream, unanswered: VecDeque::new(), held });
                }
                let connection = number.unwrap();
                let line = &mut connections[connection];
                if is_command {
                    received.push(Received { connection, arguments });
                    line.unanswered.push_back(*reply);
                } else {
                    *pings += 1;
                    line.unanswered.push_back(b"+PONG\r\n");
                }
                if !line.held {
                    line.answer(usize::MAX);
                }
            }
            self.changed.notify_all();
        }
    }
}

/// A server whose connections each have a `reply` of their own: it gets the arguments of a command and its bytes, and appends the reply.
pub fn scripted<R: FnMut(&[String], &[u8], &mut Vec<u8>)>(make: impl Fn() -> R + Send + Sync + 'static) -> Topology {
    let address = listen(move |mut stream| {
        let mut reply = make();
        let (mut input, mut buffer) = (Vec::new(), [0; 65_536]);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            input.extend_from_slice(&buffer[..count]);
            let mut output = Vec::new();
            while let Some((arguments, length)) = command(&input) {
                let raw: Vec<u8> = input.drain(..length).collect();
                reply(&arguments, &raw, &mut output);
            }
            if stream.write_all(&output).is_err() {
                return;
            }
        }
    });
    Topology::of(&[address])
}

/// The value that a SET of 100 bytes writes: its last argument, without the line break.
pub fn written(raw: &[u8]) -> Vec<u8> {
    raw[raw.len() - 102..raw.len() - 2].to_vec()
}

/// A bulk string.
pub fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// The first command of `input` and its length, if it is complete.
pub fn command(input: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut at = 0;
    let number = |kind: u8, at: &mut usize| {
        assert_eq!(*input.get(*at)?, kind);
        let end = *at + input[*at..].windows(2).position(|two| two == b"\r\n")?;
        let number: usize = std::str::from_utf8(&input[*at + 1..end]).unwrap().parse().unwrap();
        *at = end + 2;
        Some(number)
    };
    let count = number(b'*', &mut at)?;
    let mut arguments = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(b'$', &mut at)?;
        arguments.push(String::from_utf8_lossy(input.get(at..at + length)?).into_owned());
        at += length + 2;
    }
    (at <= input.len()).then_some((arguments, at))
}
