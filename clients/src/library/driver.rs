//! A library in a program of its own: docs/drivers.md. Calls and outcomes go through the driver's socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::plan::{self, Pool};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use super::outcome::{CallError, Finished, Reply};
use super::setup::{Named, Setup};
use crate::command::Command;
use crate::contract::{
    self, CHECKSUM_EVERY, Calls, Configure, FromDriver, Ledger, Operation, Outcome, Sharing, Topology,
};
use crate::drivers::{self, DriverTurn, Socket};
use crate::session::{Fault, READ_BYTES, Session};

/// A frame with this many bytes takes no further call.
const FRAME_BYTES: usize = 64 << 10;

/// Interval of looking for calls without an outcome.
const LOOK: Duration = Duration::from_secs(1);

/// A driver that is connected.
#[derive(Debug)]
pub struct Connections {
    exchange: Arc<Exchange>,
    socket: Arc<Socket>,
    /// The longest time that the driver may take for Bye.
    patience: Duration,
    serving: Mutex<Option<JoinHandle<()>>>,
    /// Its library, version and language.
    pub library: String,
    /// Its process, if this one can see it.
    pub process: Option<u32>,
}

/// State that callers share with the task that owns the socket.
#[derive(Debug)]
struct Exchange {
    state: Mutex<State>,
    /// There is something to write.
    work: Notify,
    /// A call may begin.
    room: Notify,
}

#[derive(Debug)]
struct State {
    ledger: Ledger<oneshot::Sender<Outcome>>,
    /// Frames to write.
    out: Vec<u8>,
    /// Where the frame of calls begins that takes more of them.
    open: Option<usize>,
    calls: u64,
    is_draining: bool,
    /// Why the driver can make no further call.
    broken: Option<String>,
}

impl Connections {
    /// Configures the driver, which opens `count` connections.
    ///
    /// # Errors
    /// Fails if the driver refuses or breaks its contract.
    pub async fn open(setup: &Setup, count: usize) -> Result<Self, Fault> {
        let Some(socket) = &setup.driver else { return Err(Fault::Broken("the client names no driver".to_owned())) };
        let name = &socket.name;
        let broken = |why: String| Fault::Broken(format!("driver {name}: {why}"));
        let (mut session, turn) = socket.session().await?;
        let mut frames = Vec::new();
        let configure = configuration(setup, socket, count).map_err(broken)?;
        contract::configure(&mut frames, &configure).map_err(|error| broken(error.to_string()))?;
        let limit = socket.patience.step.saturating_add(setup.connect_timeout);
        let configured = async {
            session.send(&frames).await;
            session.receive().await
        };
        let reply = timeout(limit, configured)
            .await
            .map_err(|_| broken(format!("it sent neither Ready nor Failed within {limit:?}")))?
            .map_err(|error| broken(error.to_string()))?;
        match reply {
            // Without its library, a driver has no connections.
            Some(FromDriver::Ready(ready)) if ready.connections == 0 || ready.connections >= configure.connections => {}
            Some(FromDriver::Ready(ready)) => {
                let (made, wanted) = (ready.connections, configure.connections);
                return Err(broken(format!("it is Ready with {made} of {wanted} connections")));
            }
            Some(FromDriver::Failed(why)) => {
                drivers::rest(session, turn);
                return Err(Fault::Refused(format!("driver {name}: {why}")));
            }
            Some(other) => return Err(broken(format!("it replied to Configure with {:?}", other.kind()))),
            None => return Err(broken(ended(socket, "it closed its socket instead of sending Ready").await)),
        }
        // The library may wait for a connection as long as for a reply, and repeats both.
        let steps = setup.client.retries.saturating_add(1).saturating_mul(2);
        let outcome = socket.patience.outcome.saturating_add(setup.response_timeout.saturating_mul(steps));
        let exchange = Arc::new(Exchange::new(configure.callers));
        let (library, process) = (session.library.clone(), session.process);
        let serving = tokio::spawn(serve(Arc::clone(&exchange), Arc::clone(socket), (session, turn), outcome));
        Ok(Self {
            exchange,
            socket: Arc::clone(socket),
            patience: socket.patience.step.saturating_add(outcome),
            serving: Mutex::new(Some(serving)),
            library,
            process,
        })
    }

    /// Lets the driver make a call.
    ///
    /// # Errors
    /// Fails if the driver has ended or broken its contract.
    pub async fn call(&self, command: &Command) -> Result<Finished, String> {
        loop {
            let room = self.exchange.room.notified();
            if let Some(outcome) = self.exchange.begin(command)? {
                return match outcome.await {
                    Ok(outcome) => Ok(called(&outcome)),
                    Err(_) => Err(self.exchange.fault()),
                };
            }
            room.await;
        }
    }

    /// Ends the trial in the driver, which keeps its socket for the next one.
    pub async fn close(&self) {
        let serving = lock(&self.serving).take();
        self.exchange.drain();
        if let Some(mut serving) = serving
            && timeout(self.patience, &mut serving).await.is_err()
        {
            // The driver loses its socket, so that it ends.
            serving.abort();
            tracing::warn!(driver = self.socket.name, "no Bye within {:?} after Drain", self.patience);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a driver ended, with its exit status if it is a process of this shard.
async fn ended(socket: &Socket, why: &str) -> String {
    match socket.last_word().await {
        Some(status) => format!("{why}, and ended with {status}"),
        None => why.to_owned(),
    }
}

/// The configuration of the driver, and the files of credentials that it reads.
fn configuration(setup: &Setup, socket: &Socket, count: usize) -> Result<Configure, String> {
    let written = |error: std::io::Error| format!("its credentials cannot be written: {error}");
    let login = setup.login.as_ref();
    let password = login.map(|login| socket.credential("password", &login.password)).transpose().map_err(written)?;
    let username = login.and_then(|login| login.username.as_ref());
    let username = username.map(|name| socket.credential("username", name.as_bytes())).transpose().map_err(written)?;
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let address = |(host, port): &(String, u16)| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    };
    // In the contract, the name is an argument too.
    let operation =
        |named: &Named| Operation { name: named.operation.clone(), key: named.key.map(|argument| argument + 1) };
    Ok(Configure {
        topology: match setup.target.topology {
            plan::Topology::Cluster => Topology::Cluster,
            // Validation refuses the others.
            plan::Topology::Standalone | plan::Topology::Sentinel | plan::Topology::Pool => Topology::Standalone,
        },
        addresses: setup.servers.iter().map(address).collect(),
        protocol: if setup.is_resp3() { 3 } else { 2 },
        database: setup.target.database,
        username_file: username,
        password_file: password,
        connections: u32::try_from(count).unwrap_or(u32::MAX),
        callers: setup.callers,
        sharing: if setup.client.pool == Pool::Exclusive { Sharing::Exclusive } else { Sharing::Shared },
        retries: setup.client.retries,
        connect_timeout_milliseconds: milliseconds(setup.connect_timeout),
        response_timeout_milliseconds: milliseconds(setup.response_timeout),
        operations: setup.commands.iter().map(operation).collect(),
    })
}

/// An outcome as the caller counts it, with the driver's own times. The bytes of its reply are not known.
fn called(outcome: &Outcome) -> Finished {
    let Outcome { called, completed, .. } = *outcome;
    let reply = match &outcome.result {
        Ok(()) => Ok(Reply { nil: outcome.null, bytes: 0 }),
        Err(contract::CallErrorKind::Reply(word)) => Err(CallError::reply(word)),
        Err(contract::CallErrorKind::Timeout) => Err(CallError::timeout("no reply in time")),
        Err(contract::CallErrorKind::Disconnected) => {
            Err(CallError::connection("the connection broke or was not made"))
        }
        Err(contract::CallErrorKind::Library(word)) => Err(CallError::library(word)),
    };
    Finished { called, completed, reply }
}

/// Passes on calls and outcomes until the trial ends, or the driver does.
async fn serve(
    exchange: Arc<Exchange>,
    socket: Arc<Socket>,
    (mut session, turn): (Session, DriverTurn),
    patience: Duration,
) {
    let over = exchange.run(&mut session, patience).await;
    match over {
        Ok(()) => drivers::rest(session, turn),
        Err(why) => {
            // Before anybody hears of it, because the driver ends without it.
            drop(session);
            let why = match why {
                Broken::Closed(in_flight) => {
                    ended(&socket, &format!("it closed its socket with {in_flight} calls in flight")).await
                }
                Broken::Contract(why) => why,
            };
            exchange.give_up(format!("driver {}: {why}", socket.name));
        }
    }
}

/// The early end of an exchange.
enum Broken {
    /// The driver closed its socket with this many calls in flight.
    Closed(usize),
    Contract(String),
}

impl Exchange {
    fn new(callers: u16) -> Self {
        let ledger = Ledger::new(callers);
        let state = State { ledger, out: Vec::new(), open: None, calls: 0, is_draining: false, broken: None };
        Self { state: Mutex::new(state), work: Notify::new(), room: Notify::new() }
    }

    fn fault(&self) -> String {
        lock(&self.state).broken.clone().unwrap_or_else(|| "the driver was closed".to_owned())
    }

    /// Writes a call. Returns its outcome to come, or `None` if as many as possible are in flight, such as those of an aborted load.
    fn begin(&self, command: &Command) -> Result<Option<oneshot::Receiver<Outcome>>, String> {
        let mut state = lock(&self.state);
        if let Some(why) = &state.broken {
            return Err(why.clone());
        }
        if state.is_draining {
            return Ok(None);
        }
        let checksum = state.calls.is_multiple_of(CHECKSUM_EVERY);
        let (answer, outcome) = oneshot::channel();
        let Some(id) = state.ledger.begin(monotonic_nanoseconds(), checksum, answer) else { return Ok(None) };
        state.calls += 1;
        let State { out, open, .. } = &mut *state;
        let mut calls = match open.take() {
            Some(at) => Calls::resume(out, at),
            None => Calls::begin(out),
        };
        let operation = u16::try_from(command.operation()).unwrap_or(u16::MAX);
        if calls.push(id, operation, checksum, command.arguments()) < FRAME_BYTES {
            *open = Some(calls.pause());
        } else {
            calls.end().map_err(|error| error.to_string())?;
        }
        drop(state);
        self.work.notify_one();
        Ok(Some(outcome))
    }

    /// No call follows.
    fn drain(&self) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_draining, true) && state.end_frame().is_ok() {
            contract::drain(&mut state.out);
        }
        drop(state);
        self.work.notify_one();
    }

    /// Ends all calls, because the driver can make none.
    fn give_up(&self, why: String) {
        let mut state = lock(&self.state);
        state.broken = Some(why);
        state.ledger.abandon().for_each(drop);
        drop(state);
        self.room.notify_waiters();
    }

    /// Returns after Bye.
    async fn run(&self, session: &mut Session, patience: Duration) -> Result<(), Broken> {
        let Session { stream, decoder, .. } = session;
        let (mut reader, mut writer) = stream.split();
        let (mut room, mut batch, mut written) = (vec![0; READ_BYTES], Vec::new(), 0);
        let mut look = interval(LOOK);
        loop {
            if written == batch.len() {
                batch.clear();
                written = 0;
                lock(&self.state).take(&mut batch).map_err(Broken::Contract)?;
            }
            tokio::select! {
                count = writer.write(&batch[written..]), if written < batch.len() => {
                    written += count.map_err(|_| self.closed())?;
                }
                count = reader.read(&mut room) => {
                    let received = monotonic_nanoseconds();
                    let count = count.ok().filter(|count| *count > 0).ok_or_else(|| self.closed())?;
                    decoder.extend(&room[..count]);
                    while let Some(frame) = decoder.next_frame().map_err(|error| Broken::Contract(error.to_string()))? {
                        if self.receive(frame, received).map_err(Broken::Contract)? {
                            return Ok(());
                        }
                    }
                }
                () = self.work.notified(), if written == batch.len() => {}
                _ = look.tick() => self.check_patience(patience).map_err(Broken::Contract)?,
            }
        }
    }

    fn closed(&self) -> Broken {
        Broken::Closed(lock(&self.state).ledger.in_flight())
    }

    /// Ends the calls of a frame that was read at `received`. Returns whether it is Bye.
    fn receive(&self, frame: FromDriver, received: u64) -> Result<bool, String> {
        let mut state = lock(&self.state);
        match frame {
            FromDriver::Done(outcomes) if outcomes.is_empty() => Err("it sent a Done without an outcome".to_owned()),
            FromDriver::Done(outcomes) => {
                for outcome in outcomes {
                    let answer = state.ledger.end(&outcome, received).map_err(|error| error.to_string())?;
                    // The call's load may have been aborted.
                    let _ = answer.send(outcome);
                }
                drop(state);
                self.room.notify_waiters();
                Ok(false)
            }
            FromDriver::Bye if state.is_draining => match state.ledger.in_flight() {
                0 => Ok(true),
                count => Err(format!("it sent Bye with {count} calls in flight")),
            },
            other => Err(format!("it sent {:?} without being asked", other.kind())),
        }
    }

    fn check_patience(&self, patience: Duration) -> Result<(), String> {
        let Some((id, sent)) = lock(&self.state).ledger.oldest() else { return Ok(()) };
        let waited = Duration::from_nanos(monotonic_nanoseconds().saturating_sub(sent));
        if waited <= patience {
            return Ok(());
        }
        Err(format!("it stalls: call {id} has no outcome after {} ms", waited.as_millis()))
    }
}

impl State {
    fn end_frame(&mut self) -> Result<(), String> {
        match self.open.take() {
            Some(at) => Calls::resume(&mut self.out, at).end().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Moves the frames to write into `batch`, which is empty.
    fn take(&mut self, batch: &mut Vec<u8>) -> Result<(), String> {
        self.end_frame()?;
        std::mem::swap(&mut self.out, batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
