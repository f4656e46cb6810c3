//! A thread of the null server: one epoll loop over its own connections.
#![allow(clippy::cast_possible_truncation, reason = "indices of connections come back from the kernel as they were")]

use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use super::replies::{Replies, Want};
use super::scan::{Broken, Scanner, Shapes};
use crate::sys::{self, Event, EventFlags, NO_EVENT, Poller, Waker};

/// The eventfd's key among the events.
const MAIL: u64 = u64::MAX;
/// Keys of listeners begin here.
const LISTENERS: u64 = 1 << 32;

const EVENTS: usize = 256;

/// Size of the shared read buffer, the most that one receive returns.
const READ_BYTES: usize = 64 << 10;

/// Replies are rendered while sending, up to this many bytes at a time.
const WRITE_BYTES: usize = 256 << 10;

/// The poll timeout without pending work.
const IDLE: Duration = Duration::from_secs(3600);
/// Retry interval of accept when descriptors have run out.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// State that the threads share. Each writes its own count, once per batch.
#[derive(Debug)]
pub(super) struct SharedState {
    replies: Replies,
    commands: Vec<Count>,
    stopped: AtomicBool,
}

/// Padded to a cache line to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU64);

impl SharedState {
    pub(super) fn new(replies: Replies, threads: usize) -> Self {
        let commands = (0..threads).map(|_| Count::default()).collect();
        Self { replies, commands, stopped: AtomicBool::new(false) }
    }

    /// All threads end at their next wakeup.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn commands(&self) -> u64 {
        self.commands.iter().map(|count| count.0.load(Relaxed)).sum()
    }
}

/// Another thread that takes sockets to serve.
#[derive(Debug)]
pub(super) struct Colleague {
    pub sender: SyncSender<(TcpStream, usize)>,
    pub waker: Arc<Waker>,
}

#[derive(Debug)]
pub(super) struct Thread {
    shared: Arc<SharedState>,
    index: usize,
    poller: Poller,
    mail: Receiver<(TcpStream, usize)>,
    listeners: Vec<TcpListener>,
    colleagues: Vec<Colleague>,
    /// Index of the thread that gets the next connection; 0 is this one.
    turn: usize,
    /// True if a listener's backlog may still hold clients.
    accept_again: bool,
    connections: Vec<Option<Session>>,
    free: Vec<usize>,
    /// Connections to read again, because one read did not drain them.
    again: Vec<usize>,
    read_buffer: Vec<u8>,
    shapes: Shapes,
    output: PendingOutput,
}

#[derive(Debug)]
struct Session {
    stream: TcpStream,
    node: usize,
    scanner: Scanner,
    /// Commands queued in the open transaction, if any.
    queued: Option<u32>,
    /// Replies that the socket has not accepted yet. Nothing is read until they are sent.
    backlog: Option<Box<PendingOutput>>,
    /// Close once the replies are sent.
    closing: bool,
}

impl Thread {
    pub(super) fn new(
        shared: Arc<SharedState>,
        index: usize,
        waker: &Waker,
        mail: Receiver<(TcpStream, usize)>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(waker, MAIL)?;
        Ok(Self {
            shared,
            index,
            poller,
            mail,
            listeners: Vec::new(),
            colleagues: Vec::new(),
            turn: 0,
            accept_again: false,
            connections: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            read_buffer: vec![0; READ_BYTES],
            shapes: Shapes::default(),
            output: PendingOutput::default(),
        })
    }

    /// Makes this the accepting thread, which distributes the connections.
    pub(super) fn accepting(mut self, listeners: Vec<TcpListener>, colleagues: Vec<Colleague>) -> io::Result<Self> {
        for (node, listener) in listeners.iter().enumerate() {
            self.poller.add(listener, LISTENERS + node as u64)?;
        }
        self.listeners = listeners;
        self.colleagues = colleagues;
        Ok(self)
    }

    pub(super) fn run(mut self) {
        let mut events = vec![NO_EVENT; EVENTS];
        while !self.shared.stopped.load(Relaxed) {
            let timeout = match (self.again.is_empty(), self.accept_again) {
                (false, _) => Duration::ZERO,
                (true, true) => ACCEPT_AGAIN,
                (true, false) => IDLE,
            };
            let happened = match self.poller.wait(&mut events, Some(timeout)) {
                Ok(happened) => happened,
                Err(error) => {
                    eprintln!("null server: failed to wait for events: {error}");
                    return;
                }
            };
            for &Event { flags, data } in happened {
                match data.u64() {
                    MAIL => self.take_mail(),
                    LISTENERS.. => self.accept_again = true,
                    connection => self.serve(connection as usize, flags.contains(EventFlags::OUT)),
                }
            }
            for connection in std::mem::take(&mut self.again) {
                self.serve(connection, false);
            }
            if self.accept_again {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        self.accept_again = false;
        for node in 0..self.listeners.len() {
            loop {
                match self.listeners[node].accept() {
                    Ok((stream, _)) => self.deal_out(stream, node),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The client disconnected before the accept.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => {
                        self.accept_again = true;
                        break;
                    }
                }
            }
        }
    }

    fn deal_out(&mut self, stream: TcpStream, node: usize) {
        // Setting these fails only if the connection was reset.
        if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
            return;
        }
        let turn = self.turn;
        self.turn = (turn + 1) % (self.colleagues.len() + 1);
        match turn.checked_sub(1) {
            None => self.add(stream, node),
            Some(colleague) => {
                let colleague = &self.colleagues[colleague];
                // Fails only if the thread has ended. Dropping the socket then closes it.
                if colleague.sender.send((stream, node)).is_ok() {
                    colleague.waker.wake();
                }
            }
        }
    }

    fn take_mail(&mut self) {
        while let Ok((stream, node)) = self.mail.try_recv() {
            self.add(stream, node);
        }
    }

    fn add(&mut self, stream: TcpStream, node: usize) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        if self.poller.add(&stream, index as u64).is_err() {
            // The kernel has no memory for another watch: close the socket.
            self.free.push(index);
            return;
        }
        self.connections[index] =
            Some(Session { stream, node, scanner: Scanner::default(), queued: None, backlog: None, closing: false });
    }

    fn serve(&mut self, index: usize, is_writable: bool) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else { return };
        if connection.backlog.is_some() && !is_writable {
            return;
        }
        let mut turn = Turn {
            shared: &self.shared,
            read_buffer: &mut self.read_buffer,
            shapes: &mut self.shapes,
            output: &mut self.output,
            count: &self.shared.commands[self.index].0,
        };
        match turn.serve(connection) {
            Ok(NextStep::Wait) => {}
            Ok(NextStep::Again) => self.again.push(index),
            Ok(NextStep::Close) | Err(_) => {
                self.connections[index] = None;
                self.free.push(index);
                // The output belonged to the closed connection.
                self.output.clear();
            }
        }
    }
}

enum NextStep {
    Wait,
    Again,
    Close,
}

/// A thread's state, lent to the connection that it serves.
struct Turn<'a> {
    shared: &'a SharedState,
    read_buffer: &'a mut [u8],
    shapes: &'a mut Shapes,
    output: &'a mut PendingOutput,
    count: &'a AtomicU64,
}

impl Turn<'_> {
    /// One receive, and one send of all replies to it.
    #[inline]
    fn serve(&mut self, connection: &mut Session) -> io::Result<NextStep> {
        if let Some(backlog) = &mut connection.backlog {
            if !backlog.send(&connection.stream, self.shared, connection.node)? {
                return Ok(NextStep::Wait);
            }
            connection.backlog = None;
            if connection.closing {
                return Ok(NextStep::Close);
            }
        }
        let received = match sys::receive(&connection.stream, self.read_buffer) {
            Ok(0) => return Ok(NextStep::Close),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(NextStep::Wait),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(NextStep::Again),
            Err(error) => return Err(error),
        };
        let mut found = 0;
        let output = &mut *self.output;
        let queued = &mut connection.queued;
        let scanned = connection.scanner.scan(&self.read_buffer[..received], self.shapes, |want, count| {
            found += u64::from(count);
            output.push(want.within(count, queued), count);
        });
        // No other thread writes this counter.
        self.count.store(self.count.load(Relaxed) + found, Relaxed);
        if let Err(Broken(why)) = scanned {
            output.push(Want::Broken(why), 1);
            connection.closing = true;
        }
        if !output.send(&connection.stream, self.shared, connection.node)? {
            connection.backlog = Some(Box::new(std::mem::take(output)));
            return Ok(NextStep::Wait);
        }
        Ok(match received {
            _ if connection.closing => NextStep::Close,
            // A read that did not fill the buffer has drained the socket. Later data triggers a new edge.
            received if received == self.read_buffer.len() => NextStep::Again,
            _ => NextStep::Wait,
        })
    }
}

/// Pending replies: rendered bytes, then replies not yet rendered. So pending replies take bounded memory, however long they are.
#[derive(Debug, Default)]
struct PendingOutput {
    bytes: Vec<u8>,
    sent: usize,
    owed: VecDeque<(Want, u32)>,
}

impl PendingOutput {
    #[inline]
    fn push(&mut self, want: Want, more: u32) {
        match self.owed.back_mut() {
            Some((last, count)) if *last == want => *count += more,
            _ => self.owed.push_back((want, more)),
        }
    }

    /// Sends until the output is empty or the socket is full. Returns true if it is empty.
    #[inline]
    fn send(&mut self, stream: &TcpStream, shared: &SharedState, node: usize) -> io::Result<bool> {
        loop {
            if self.sent == self.bytes.len() {
                self.render(shared, node);
                if self.bytes.is_empty() {
                    return Ok(true);
                }
            }
            match sys::send(stream, &self.bytes[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn render(&mut self, shared: &SharedState, node: usize) {
        self.bytes.clear();
        self.sent = 0;
        while self.bytes.len() < WRITE_BYTES {
            let Some(first) = self.owed.front_mut() else { break };
            first.1 -= shared.replies.append(*first, node, || shared.commands(), &mut self.bytes);
            if first.1 == 0 {
                self.owed.pop_front();
            }
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
        self.owed.clear();
    }
}
