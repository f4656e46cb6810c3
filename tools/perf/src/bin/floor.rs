//! `redisbench-floor`: a client that makes only the system calls that every client needs. Per batch, it receives and
//! sends prepared bytes once, and it waits once for all batches that are ready. It draws no keys, decodes only the
//! first reply, and measures no latency.
//!
//! Its cost per request is the kernel's cost on this machine. The rest of a load generator's cost is the load
//! generator's own.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use rustix::event::epoll;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// The length of all values.
const VALUE: usize = 100;
/// Larger than the replies to a full pipeline, so that one receive reads them all.
const BUFFER: usize = 64 << 10;
const EVENTS: usize = 1024;
const TIMER: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads servers with the bare system calls.
#[derive(Debug, Parser)]
struct Options {
    /// Address of a server; several share the connections
    #[arg(required = true)]
    addresses: Vec<SocketAddr>,
    /// The only key; one per server
    #[arg(long = "key", required = true)]
    keys: Vec<String>,
    /// Total number of connections
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Requests in flight per connection
    #[arg(long, default_value_t = 1)]
    pipeline: usize,
    /// Total number of requests
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// The only operation
    #[arg(long, value_enum, default_value_t = Operation::Get)]
    operation: Operation,
    /// Requests per second; 0 is a closed loop
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Microseconds between instants at which requests are due
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..))]
    grid: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Operation {
    Get,
    Set,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let begin = Instant::now();
    let mut floor = Floor::connect(&options)?;
    if options.rate == 0 { floor.closed_loop() } else { floor.open_loop(options.rate, options.grid) }?;
    println!("{} requests in {:.3} s", floor.answered, begin.elapsed().as_secs_f64());
    Ok(())
}

/// A full pipeline of one server's requests.
struct Batch {
    bytes: Vec<u8>,
    /// Bytes of one request.
    length: usize,
}

struct Connection {
    stream: TcpStream,
    server: usize,
    /// Bytes of an incomplete reply.
    partial: usize,
    in_flight: usize,
}

struct Floor {
    poller: rustix::fd::OwnedFd,
    connections: Vec<Connection>,
    batches: Vec<Batch>,
    /// Bytes of one reply.
    reply: usize,
    pipeline: usize,
    requests: u64,
    sent: u64,
    answered: u64,
}

impl Floor {
    fn connect(options: &Options) -> anyhow::Result<Self> {
        anyhow::ensure!(
            options.keys.len() == options.addresses.len(),
            "--key {}: there must be one per server, which are {}",
            options.keys.join(" --key "),
            options.addresses.len()
        );
        let reply = match options.operation {
            Operation::Get => "$100\r\n".len() + VALUE + "\r\n".len(),
            Operation::Set => "+OK\r\n".len(),
        };
        anyhow::ensure!(
            options.pipeline > 0 && options.pipeline * reply < BUFFER,
            "--pipeline {}: must be from 1 to {}",
            options.pipeline,
            (BUFFER - 1) / reply
        );
        let mut batches = Vec::new();
        for (address, key) in options.addresses.iter().zip(&options.keys) {
            let command = match options.operation {
                Operation::Get => redis::Cmd::get(key),
                Operation::Set => redis::Cmd::set(key, vec![b'x'; VALUE]),
            };
            check(*address, &command)?;
            let request = command.get_packed_command();
            batches.push(Batch { length: request.len(), bytes: request.repeat(options.pipeline) });
        }
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC).context("failed to create an epoll instance")?;
        let mut connections = Vec::with_capacity(options.connections);
        for index in 0..options.connections {
            let server = index % options.addresses.len();
            let stream = open(options.addresses[server])?;
            stream.set_nonblocking(true).context("failed to set a socket to non-blocking")?;
            let what = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&poller, &stream, epoll::EventData::new_u64(index as u64), what)
                .context("failed to watch a socket")?;
            connections.push(Connection { stream, server, partial: 0, in_flight: 0 });
        }
        Ok(Self {
            poller,
            connections,
            batches,
            reply,
            pipeline: options.pipeline,
            requests: options.requests,
            sent: 0,
            answered: 0,
        })
    }

    /// Keeps the maximum of requests in flight until all are answered.
    fn closed_loop(&mut self) -> anyhow::Result<()> {
        for index in 0..self.connections.len() {
            self.send(index, self.pipeline)?;
        }
        let (mut events, mut buffer) = (Vec::with_capacity(EVENTS), vec![0; BUFFER]);
        while self.answered < self.requests {
            for index in self.wait(&mut events)? {
                let answered = self.receive(index, &mut buffer)?;
                self.send(index, answered)?;
            }
        }
        Ok(())
    }

    /// At each instant of the grid, sends the due requests, on idle connections.
    fn open_loop(&mut self, rate: u64, grid_microseconds: u64) -> anyhow::Result<()> {
        let timer = timer(Duration::from_micros(grid_microseconds)).context("failed to create a timer")?;
        let what = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.poller, &timer, epoll::EventData::new_u64(TIMER), what).context("failed to watch a timer")?;
        let begin = Instant::now();
        let mut idle: VecDeque<usize> = (0..self.connections.len()).collect();
        let (mut events, mut buffer) = (Vec::with_capacity(EVENTS), vec![0; BUFFER]);
        while self.answered < self.requests {
            for index in self.wait(&mut events)? {
                if index < self.connections.len() {
                    self.receive(index, &mut buffer)?;
                    if self.connections[index].in_flight == 0 {
                        idle.push_back(index);
                    }
                    continue;
                }
                // Reading resets it.
                let mut expirations = [0; 8];
                if rustix::io::read(&timer, &mut expirations) == Err(rustix::io::Errno::AGAIN) {
                    continue;
                }
                let due = due(begin.elapsed(), rate, grid_microseconds).min(self.requests);
                while self.sent < due
                    && let Some(index) = idle.pop_front()
                {
                    let count = usize::try_from(due - self.sent).unwrap_or(usize::MAX);
                    self.send(index, count.min(self.pipeline))?;
                }
            }
        }
        Ok(())
    }

    /// The connections that are ready, or the timer, whose index is beyond theirs.
    #[inline]
    fn wait<'a>(&self, events: &'a mut Vec<epoll::Event>) -> anyhow::Result<impl Iterator<Item = usize> + use<'a>> {
        events.clear();
        match epoll::wait(&self.poller, rustix::buffer::spare_capacity(events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for replies"),
        }
        Ok(events.iter().map(|event| usize::try_from(event.data.u64()).unwrap_or(usize::MAX)))
    }

    /// Sends up to `count` of the remaining requests.
    #[inline]
    fn send(&mut self, index: usize, count: usize) -> anyhow::Result<()> {
        let count = usize::try_from(self.requests - self.sent).unwrap_or(usize::MAX).min(count);
        if count == 0 {
            return Ok(());
        }
        let connection = &mut self.connections[index];
        let batch = &self.batches[connection.server];
        let bytes = &batch.bytes[..count * batch.length];
        let written = connection.stream.write(bytes).context("failed to send")?;
        anyhow::ensure!(written == bytes.len(), "the socket had no room for {} bytes", bytes.len());
        connection.in_flight += count;
        self.sent += count as u64;
        Ok(())
    }

    /// Receives once. Returns the number of completed replies.
    #[inline]
    fn receive(&mut self, index: usize, buffer: &mut [u8]) -> anyhow::Result<usize> {
        let connection = &mut self.connections[index];
        match connection.stream.read(buffer) {
            Ok(0) => anyhow::bail!("the server closed a connection"),
            Ok(received) => connection.partial += received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error).context("failed to receive"),
        }
        let answered = connection.partial / self.reply;
        anyhow::ensure!(answered <= connection.in_flight, "the server sent more replies than requests");
        connection.partial %= self.reply;
        connection.in_flight -= answered;
        self.answered += answered as u64;
        Ok(answered)
    }
}

fn open(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE);
    let stream = stream.with_context(|| format!("failed to connect to {address}"))?;
    stream.set_nodelay(true).context("failed to set TCP_NODELAY")?;
    Ok(stream)
}

/// Checks the first reply, because later only bytes are counted.
fn check(address: SocketAddr, command: &redis::Cmd) -> anyhow::Result<()> {
    let client = redis::Client::open(format!("redis://{address}"))?;
    let mut connection = client.get_connection_with_timeout(PATIENCE).context("failed to connect")?;
    connection.set_read_timeout(Some(PATIENCE)).context("failed to set a time limit")?;
    let reply: redis::Value = command.query(&mut connection).with_context(|| format!("{address} refused a request"))?;
    let fits = match &reply {
        redis::Value::BulkString(value) => value.len() == VALUE,
        other => *other == redis::Value::Okay,
    };
    anyhow::ensure!(fits, "{address} replied {reply:?} instead of OK or {VALUE} bytes");
    Ok(())
}

/// A timer that fires once per `interval`.
fn timer(interval: Duration) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
    let nanoseconds = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    let interval = Timespec { tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000 };
    let periodic = Itimerspec { it_interval: interval, it_value: interval };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &periodic)?;
    Ok(timer)
}

/// Number of requests due by the last instant of the grid.
fn due(elapsed: Duration, rate: u64, grid_microseconds: u64) -> u64 {
    let grid = u128::from(grid_microseconds);
    let due = elapsed.as_micros() / grid * grid * u128::from(rate) / 1_000_000;
    u64::try_from(due).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_on_the_grid_and_in_time() {
        let due = |microseconds| due(Duration::from_micros(microseconds), 20_000, 250);
        assert_eq!([due(0), due(249), due(250), due(499), due(500), due(1_000_000)], [0, 0, 5, 5, 10, 20_000]);
        // A rate that is not a multiple of the grid loses no requests in the long run.
        assert_eq!(super::due(Duration::from_secs(10), 777, 1000), 7770);
    }
}
