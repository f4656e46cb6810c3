//! The shard's side of the contract, call by call.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use redisbench_loadgen::engine::monotonic_nanoseconds;
use tempfile::TempDir;

use crate::contract::{self, CALLERS, Calls, Configure, Decoder, FromDriver, Hello, Ledger, Outcome, Ready, SOCKET};

/// Timeout of every step. Only a driver that hangs needs it all.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Interval of looking again, for conditions that no event reports.
#[allow(clippy::disallowed_methods, reason = "this thread has nothing else to do")]
pub fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// A running driver.
#[derive(Debug)]
pub struct Peer {
    process: Child,
    socket: UnixStream,
    decoder: Decoder,
    ledger: Ledger<()>,
    done: HashMap<u64, Outcome>,
    pub hello: Hello,
    _directory: TempDir,
}

impl Peer {
    pub fn start(command: &[String]) -> Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory")?;
        let path = directory.path().join("driver.sock");
        let listener = UnixListener::bind(&path).context("failed to listen")?;
        let (program, arguments) = command.split_first().context("no command")?;
        let process = Command::new(program)
            .args(arguments)
            .env(SOCKET, &path)
            .spawn()
            .with_context(|| format!("failed to start {program}"))?;
        let mut process = Some(process);
        let socket = accept(&listener, &mut process)?;
        let process = process.take().context("the driver has exited")?;
        let hello = Hello { protocol: 0, language: String::new(), library: String::new(), version: String::new() };
        let mut peer = Self {
            process,
            socket,
            decoder: Decoder::default(),
            ledger: Ledger::new(CALLERS),
            done: HashMap::new(),
            hello,
            _directory: directory,
        };
        match peer.receive()? {
            FromDriver::Hello(hello) => peer.hello = hello,
            other => bail!("its first frame is {other:?}, not Hello"),
        }
        Ok(peer)
    }

    /// Returns the number of connections, or why the driver refused.
    pub fn configure(&mut self, configure: &Configure) -> Result<Result<u32, String>> {
        let mut out = Vec::new();
        contract::configure(&mut out, configure)?;
        self.socket.write_all(&out)?;
        match self.receive()? {
            FromDriver::Ready(Ready { connections }) => Ok(Ok(connections)),
            FromDriver::Failed(why) => {
                ensure!(!why.is_empty(), "its Failed gives no reason");
                Ok(Err(why))
            }
            other => bail!("it replied to Configure with {other:?}, not Ready or Failed"),
        }
    }

    /// Sends calls in one frame, each with a checksum. Returns their ids.
    pub fn send(&mut self, operation: u16, calls: &[Vec<&[u8]>]) -> Result<Vec<u64>> {
        let (mut out, mut ids) = (Vec::new(), Vec::new());
        let mut frame = Calls::begin(&mut out);
        for arguments in calls {
            let id = self.ledger.begin(monotonic_nanoseconds(), true, ()).context("too many calls in flight")?;
            frame.push(id, operation, true, arguments.iter().copied());
            ids.push(id);
        }
        frame.end()?;
        self.socket.write_all(&out)?;
        Ok(ids)
    }

    /// The outcome of a call, for which others may come first.
    pub fn outcome(&mut self, id: u64) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.done.remove(&id) {
                return Ok(outcome);
            }
            match self.receive()? {
                FromDriver::Done(outcomes) => self.keep(outcomes)?,
                other => bail!("it sent {other:?} instead of Done"),
            }
        }
    }

    /// Sends one call and returns its outcome.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Result<Outcome> {
        let ids = self.send(0, &[arguments.to_vec()])?;
        self.outcome(ids[0])
    }

    /// Returns whether a call has ended.
    pub fn has_ended(&self, id: u64) -> bool {
        self.done.contains_key(&id)
    }

    /// Ends the trial. Every call in flight must end first.
    pub fn drain(&mut self) -> Result<()> {
        let mut out = Vec::new();
        contract::drain(&mut out);
        self.socket.write_all(&out)?;
        loop {
            match self.receive()? {
                FromDriver::Done(outcomes) => self.keep(outcomes)?,
                FromDriver::Bye => break,
                other => bail!("it replied to Drain with {other:?}"),
            }
        }
        ensure!(self.ledger.in_flight() == 0, "it sent Bye with {} calls in flight", self.ledger.in_flight());
        Ok(())
    }

    /// Closes the socket, after which the driver must exit.
    pub fn close(mut self) -> Result<ExitStatus> {
        self.socket.shutdown(std::net::Shutdown::Both)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < deadline, "it still runs {PATIENCE:?} after the socket was closed");
            pause();
        }
    }

    fn keep(&mut self, outcomes: Vec<Outcome>) -> Result<()> {
        let received = monotonic_nanoseconds();
        for outcome in outcomes {
            self.ledger.end(&outcome, received)?;
            self.done.insert(outcome.id, outcome);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<FromDriver> {
        let mut room = vec![0; 64 << 10];
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            match self.socket.read(&mut room) {
                Ok(0) => bail!("it closed the socket"),
                Ok(read) => self.decoder.extend(&room[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => bail!("it sent nothing for {PATIENCE:?}"),
                Err(error) => return Err(error).context("failed to read from the socket"),
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Fails only if it has exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn accept(listener: &UnixListener, process: &mut Option<Child>) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_write_timeout(Some(PATIENCE))?;
                return Ok(socket);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("failed to accept"),
        }
        if let Some(status) = process.as_mut().and_then(|process| process.try_wait().ok().flatten()) {
            *process = None;
            bail!("it exited with {status} before it connected to the socket in {SOCKET}");
        }
        if Instant::now() >= deadline {
            if let Some(mut process) = process.take() {
                let _ = process.kill();
                let _ = process.wait();
            }
            bail!("it did not connect to the socket in {SOCKET} within {PATIENCE:?}");
        }
        pause();
    }
}
