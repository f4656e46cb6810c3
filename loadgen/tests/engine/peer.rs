//! A server that does as it is told: it records every command, and answers at once, when told to, or never.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use redisbench_loadgen::cluster::{NodeAddress, Topology};

use crate::support::PATIENCE;

/// A command that came in. Pings are answered, counted, and are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The connection, numbered in the order of the connections' first commands.
    pub connection: usize,
    pub arguments: Vec<String>,
}

/// Speaks just enough of the protocol. Ends with the test.
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
    /// Whether connections that come are held.
    hold_new: bool,
    /// The reply to every command.
    reply: &'static [u8],
    pings: usize,
}

impl Default for State {
    fn default() -> Self {
        Self { received: Vec::new(), connections: Vec::new(), hold_new: false, reply: VALUE, pings: 0 }
    }
}

/// The reply to every command, unless the test sets another.
pub const VALUE: &[u8] = b"$1\r\nx\r\n";

/// One connection.
struct Line {
    stream: TcpStream,
    /// Commands without an answer, whether of the test or pings.
    unanswered: VecDeque<&'static [u8]>,
    held: bool,
}

impl Line {
    fn answer(&mut self, most: usize) {
        for _ in 0..most {
            let Some(answer) = self.unanswered.pop_front() else { return };
            // The other side may be gone.
            let _ = self.stream.write_all(answer);
        }
    }
}

impl Peer {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&all);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub fn node(&self) -> NodeAddress {
        let label = self.address.to_string();
        NodeAddress { id: label.clone(), address: self.address, label }
    }

    /// As a standalone server.
    pub fn topology(&self) -> Topology {
        Topology { nodes: vec![self.node()], slots: None, ..Topology::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }

    /// Answers nothing any more, on no connection.
    pub fn hold(&self) {
        let mut state = self.state();
        state.hold_new = true;
        state.connections.iter_mut().for_each(|line| line.held = true);
    }

    /// Answers nothing any more on one connection.
    pub fn hold_connection(&self, connection: usize) {
        self.state().connections[connection].held = true;
    }

    /// Answers everything, and goes on so.
    pub fn release(&self) {
        let mut state = self.state();
        state.hold_new = false;
        for line in &mut state.connections {
            line.held = false;
            line.answer(usize::MAX);
        }
    }

    /// Answers the oldest `count` commands of a held connection.
    pub fn answer(&self, connection: usize, count: usize) {
        self.state().connections[connection].answer(count);
    }

    /// Answers commands that come from now on with `reply`. Returns how many had come before.
    pub fn reply_with(&self, reply: &'static [u8]) -> usize {
        let mut state = self.state();
        state.reply = reply;
        state.received.len()
    }

    /// Closes one connection, which the other side sees as the end of its stream.
    pub fn close_connection(&self, connection: usize) {
        let _ = self.state().connections[connection].stream.shutdown(Shutdown::Both);
    }

    /// Says what nobody asked for, on every connection.
    pub fn say(&self, words: &[u8]) {
        for line in &mut self.state().connections {
            line.stream.write_all(words).unwrap();
        }
    }

    /// Says nothing more on any connection, but goes on reading.
    pub fn close_half(&self) {
        for line in &self.state().connections {
            let _ = line.stream.shutdown(Shutdown::Write);
        }
    }

    /// What came so far, in the order in which it came.
    pub fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// Commands that wait for their answers, of all connections.
    pub fn unanswered(&self) -> usize {
        self.state().connections.iter().map(|line| line.unanswered.len()).sum()
    }

    /// Pings that came so far.
    pub fn pings(&self) -> usize {
        self.state().pings
    }

    /// Waits until `condition` holds of what was received.
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut(&[Received]) -> bool) {
        let wait = self.shared.changed.wait_timeout_while(self.state(), PATIENCE, |state| !condition(&state.received));
        let (state, result) = wait.unwrap();
        assert!(!result.timed_out(), "waited too long for {what}, with {} commands", state.received.len());
    }

    /// Waits for so many commands.
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
                let State { received, connections, hold_new, reply, pings } = &mut *state;
                if let Some(stream) = stream.take() {
                    number = Some(connections.len());
                    connections.push(Line { stream, unanswered: VecDeque::new(), held: *hold_new });
                }
                let connection = number.unwrap();
                let line = &mut connections[connection];
                if arguments[0] == "PING" {
                    *pings += 1;
                    line.unanswered.push_back(b"+PONG\r\n");
                } else {
                    received.push(Received { connection, arguments });
                    line.unanswered.push_back(*reply);
                }
                if !line.held {
                    line.answer(usize::MAX);
                }
            }
            self.changed.notify_all();
        }
    }
}

/// The first command of `input` and its length, if it is all there.
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
