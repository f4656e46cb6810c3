//! A driver in a thread of the test, which keeps the contract or breaks it in one way.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;

use redisbench_clients::contract::{Configure, Kind};
use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_testkit::servers::wait_until;

/// The behavior of a driver at its first calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Lets the server execute them.
    Good,
    /// Closes its socket.
    Dies,
    /// Nothing.
    Stalls,
    /// Completes them in an hour.
    FromTheFuture,
    /// Completed them before they were sent.
    FromThePast,
    /// Completes a call that was never sent.
    Unknown,
    /// Completes a call twice.
    Twice,
    /// Gives no checksum.
    Unchecked,
    /// Sends frames that say nothing.
    Floods,
    /// Announces a frame of 1 GiB.
    TooLarge,
    /// Says hello again.
    Hello,
    /// Says goodbye before the shard does.
    Bye,
}

const HOUR: u64 = 3_600_000_000_000;

#[derive(Debug)]
struct Call {
    id: u64,
    arguments: Vec<Vec<u8>>,
}

/// Calls that a driver has seen when its socket is closed.
#[derive(Debug, Default)]
pub struct Seen {
    pub configured: Vec<Configure>,
    pub calls: usize,
    pub checksums: usize,
}

/// Starts a driver that connects to `socket`.
pub fn start(socket: PathBuf, script: Script) -> JoinHandle<Seen> {
    std::thread::spawn(move || {
        let mut driver = Scripted { stream: UnixStream::connect(socket).unwrap(), script, seen: Seen::default() };
        let hello = br#"{"protocol":1,"language":"Rust","library":"scripted","version":"1.0"}"#;
        driver.send(Kind::Hello, hello);
        driver.serve();
        driver.seen
    })
}

struct Scripted {
    stream: UnixStream,
    script: Script,
    seen: Seen,
}

impl Scripted {
    /// Fails if the shard has given the driver up.
    fn send(&mut self, kind: Kind, content: &[u8]) {
        let mut frame = (1 + u32::try_from(content.len()).unwrap()).to_le_bytes().to_vec();
        frame.push(kind as u8);
        frame.extend_from_slice(content);
        let _ = self.stream.write_all(&frame);
    }

    /// The next frame. `None` once the socket is closed.
    fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        Some((frame[0], frame.split_off(1)))
    }

    fn serve(&mut self) {
        let mut server = None;
        while let Some((kind, content)) = self.receive() {
            if kind == Kind::Configure as u8 {
                let configure: Configure = serde_json::from_slice(&content).unwrap();
                let address: SocketAddr = configure.addresses[0].parse().unwrap();
                let client = redis::Client::open(format!("redis://{address}")).unwrap();
                server = client.get_connection().ok();
                let ready = format!(r#"{{"connections":{}}}"#, configure.connections);
                self.seen.configured.push(configure);
                self.send(Kind::Ready, ready.as_bytes());
            } else if kind == Kind::Drain as u8 {
                self.send(Kind::Bye, b"");
            } else if kind == Kind::Call as u8 {
                let calls = self.calls(&content);
                if self.script == Script::Dies {
                    return;
                }
                self.answer(&calls, server.as_mut().unwrap());
            }
        }
    }

    fn calls(&mut self, mut content: &[u8]) -> Vec<Call> {
        let mut calls = Vec::new();
        while !content.is_empty() {
            let id = u64::from_le_bytes(take(&mut content));
            let operation = u16::from_le_bytes(take(&mut content));
            assert_eq!(operation, 0);
            let [flags] = take(&mut content);
            let count = u32::from_le_bytes(take(&mut content));
            let mut argument = || {
                let length = u32::from_le_bytes(take(&mut content)) as usize;
                let (argument, rest) = content.split_at(length);
                content = rest;
                argument.to_vec()
            };
            let arguments = (0..count).map(|_| argument()).collect();
            self.seen.calls += 1;
            self.seen.checksums += usize::from(flags & 1);
            calls.push(Call { id, arguments });
        }
        calls
    }

    fn answer(&mut self, calls: &[Call], server: &mut redis::Connection) {
        let (now, first) = (monotonic_nanoseconds(), calls[0].id);
        match self.script {
            Script::Good => {
                let done = calls.iter().flat_map(|call| {
                    let called = monotonic_nanoseconds();
                    let mut command = redis::Cmd::new();
                    for argument in &call.arguments {
                        command.arg(argument.as_slice());
                    }
                    let reply: redis::Value = command.query(server).unwrap();
                    outcome(call.id, called, monotonic_nanoseconds(), reply == redis::Value::Nil)
                });
                let done: Vec<u8> = done.collect();
                self.send(Kind::Done, &done);
            }
            Script::Stalls | Script::Dies => {}
            Script::FromTheFuture => self.send(Kind::Done, &outcome(first, now, now + HOUR, true)),
            Script::FromThePast => self.send(Kind::Done, &outcome(first, now.saturating_sub(HOUR), now, true)),
            Script::Unknown => self.send(Kind::Done, &outcome(u64::MAX, now, now, true)),
            Script::Twice => {
                self.send(Kind::Done, &[outcome(first, now, now, true), outcome(first, now, now, true)].concat());
            }
            Script::Unchecked => {
                let mut done = outcome(first, now, now, true);
                done[28] = 0;
                self.send(Kind::Done, &done);
            }
            Script::Floods => {
                for _ in 0..100_000 {
                    self.send(Kind::Done, b"");
                }
            }
            Script::TooLarge => {
                let _ = self.stream.write_all(&(1_u32 << 30).to_le_bytes());
            }
            Script::Hello => self.send(Kind::Hello, br#"{"protocol":1,"language":"","library":"","version":""}"#),
            Script::Bye => self.send(Kind::Bye, b""),
        }
    }
}

fn take<const N: usize>(content: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = content.split_first_chunk().unwrap();
    *content = rest;
    *taken
}

/// A success with a checksum.
fn outcome(id: u64, called: u64, completed: u64, null: bool) -> Vec<u8> {
    let mut bytes = [id, called, completed].map(u64::to_le_bytes).concat();
    bytes.extend_from_slice(&[0, 0, 0, 0, 1 | u8::from(null) << 1, 0, 0]);
    bytes
}

/// Waits for the driver's end, which follows that of its socket.
pub fn end(driver: JoinHandle<Seen>) -> Seen {
    wait_until("the driver ends", || driver.is_finished());
    driver.join().unwrap()
}
