//! One connection and its server.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use super::pipeline::{Pipeline, Request};
use super::queue::Queue;
use super::stream::Stream;
use super::worker::Progress;
use crate::resp::Decoder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Not connected; the next attempt is at this time.
    Down {
        retry: u64,
    },
    /// The kernel is connecting.
    Connecting {
        deadline: u64,
    },
    /// The TLS handshake is running.
    Securing {
        deadline: u64,
    },
    /// Waiting for the replies to the handshake commands.
    Greeting {
        deadline: u64,
        /// Replies still to come.
        replies: u32,
    },
    Ready,
    /// Not connecting, because its server left the target. It connects again if the server returns.
    Retired,
}

impl Link {
    /// Returns whether a connection attempt is under way.
    pub(super) fn is_in_the_making(self) -> bool {
        matches!(self, Self::Connecting { .. } | Self::Securing { .. } | Self::Greeting { .. })
    }
}

/// A connection. Its buffers are small: reading and encoding use the worker's.
#[derive(Debug)]
pub(super) struct Connection {
    /// Index of the server.
    pub node: u32,
    pub link: Link,
    /// Consecutive failures, for the backoff.
    pub failures: u32,
    pub stream: Option<Stream>,
    pub decoder: Decoder,
    pub pipeline: Pipeline,
    /// The replies so far to the oldest request, where requests get several.
    pub progress: Option<Box<Progress>>,
    /// Bytes that the socket did not take. With TLS, the session holds them.
    unsent: Queue<u8>,
    /// Bytes wait for room in the socket.
    blocked: bool,
    /// Whether it is in its node's `open` list.
    pub listed: bool,
    /// Was ready at least once.
    pub known: bool,
    /// Requests that the current batch still lacks, where requests are sent in batches.
    batch_left: u32,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    All,
    /// The rest waits for room in the socket.
    Blocked,
}

impl Connection {
    pub(super) fn new(node: u32, window: usize) -> Self {
        Self {
            node,
            link: Link::Down { retry: 0 },
            failures: 0,
            stream: None,
            decoder: Decoder::default(),
            pipeline: Pipeline::of_window(window),
            progress: None,
            unsent: Queue::default(),
            blocked: false,
            listed: false,
            known: false,
            batch_left: 0,
        }
    }

    /// How many more commands fit into `window`, with at most `batch` in one send.
    #[inline]
    pub(super) fn room(&self, window: usize, batch: usize) -> usize {
        if self.link != Link::Ready || self.blocked {
            return 0;
        }
        window.saturating_sub(self.pipeline.len()).min(batch.saturating_sub(self.pipeline.staged_count()))
    }

    /// How many of `room` commands the current batch of `size` may still take. The next batch begins when the pipeline is empty. A large
    /// batch takes several sends.
    pub(super) fn of_batch(&mut self, room: usize, size: usize) -> usize {
        if self.pipeline.is_empty() {
            self.batch_left = size as u32;
        }
        let part = room.min(self.batch_left as usize);
        self.batch_left -= part as u32;
        part
    }

    /// Writes `bytes`, and keeps what the socket does not take.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        if self.blocked && !self.unsent.is_empty() {
            self.unsent.extend(bytes.iter().copied());
            return Ok(Sent::Blocked);
        }
        let sent = write(stream, bytes)?;
        self.blocked = sent < bytes.len() || !stream.flush()?;
        if sent < bytes.len() {
            self.unsent.extend(bytes[sent..].iter().copied());
        }
        Ok(if self.blocked { Sent::Blocked } else { Sent::All })
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.blocked
    }

    /// Writes more of what the socket did not take before.
    pub(super) fn send_rest(&mut self) -> io::Result<Sent> {
        if !self.blocked {
            return Ok(Sent::All);
        }
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let sent = write(stream, self.unsent.as_slice())?;
        self.unsent.drop_front(sent);
        self.blocked = !self.unsent.is_empty() || !stream.flush()?;
        Ok(if self.blocked { Sent::Blocked } else { Sent::All })
    }

    /// Closes the socket and resets everything but the server. Returns the commands without a reply, each with the time it was sent.
    pub(super) fn close(&mut self, link: Link) -> Vec<(Request, u64)> {
        self.stream = None;
        self.link = link;
        self.unsent = Queue::default();
        self.blocked = false;
        self.decoder.reset();
        self.progress = None;
        self.pipeline.take()
    }
}

/// Writes until everything is written or the socket is full.
#[inline]
fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// A server and the requests that wait for it.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Node {
    pub id: String,
    pub address: SocketAddr,
    pub label: String,
    pub connections: Vec<u32>,
    /// Connections that may have room, the next to use first.
    pub open: VecDeque<u32>,
    /// Requests to be sent again after a redirect or a pause, ordered by due time. They are sent before all others.
    pub resends: VecDeque<Resend>,
    /// Requests that found no room.
    pub waiting: VecDeque<Waiting>,
    /// No longer part of the target.
    pub retired: bool,
    /// Serves reads only.
    pub replica: bool,
    /// When it last replied without an error in this load; 0 if never.
    pub answered: u64,
    /// A request failed there and it has not replied since; see the outages of [`super::worker`].
    pub out: bool,
    /// Its last connection broke, or none could be made: nothing can be sent there.
    pub unreachable: bool,
    /// A request got no reply there, so idle connections may be dead too and must be tested.
    pub suspect: bool,
}

/// A request to be sent again, to the server that its slot has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resend {
    pub request: Request,
    /// When it began to wait.
    pub since: u64,
    /// Whether ASKING precedes it.
    pub asking: bool,
}

/// A request without a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub k: u64,
    /// When it was due; in a closed loop, when it was drawn.
    pub due: u64,
}

impl Node {
    pub(super) fn new(id: &str, address: SocketAddr, label: &str) -> Self {
        Self {
            id: id.to_owned(),
            address,
            label: label.to_owned(),
            connections: Vec::new(),
            open: VecDeque::new(),
            resends: VecDeque::new(),
            waiting: VecDeque::new(),
            retired: false,
            replica: false,
            answered: 0,
            out: false,
            unreachable: false,
            suspect: false,
        }
    }

    /// Inserts by due time.
    pub(super) fn resend(&mut self, resend: Resend) {
        let at = self.resends.partition_point(|other| other.request.due <= resend.request.due);
        self.resends.insert(at, resend);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;
    use crate::engine::sys;

    /// Moving the rest for every piece that the socket takes would copy a large value many times over.
    #[test]
    fn what_the_socket_did_not_take_stays_where_it_is() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = sys::connect(listener.local_addr().unwrap(), 0).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut connection = Connection::new(0, 1);
        connection.stream = Some(Stream::new(stream, "127.0.0.1:1", None, false).unwrap());
        let value = vec![7; 32 << 20];
        assert_eq!(connection.send(&value).unwrap(), Sent::Blocked);
        let end = connection.unsent.as_slice().as_ptr_range().end;
        let (mut buffer, mut received, mut pieces) = (vec![0; 1 << 20], 0, 0);
        while connection.has_unsent() {
            received += server.read(&mut buffer).unwrap();
            let before = connection.unsent.len();
            connection.send_rest().unwrap();
            let left = connection.unsent.as_slice();
            assert!(left.is_empty() || left.as_ptr_range().end == end, "moved {} of {before} bytes", left.len());
            pieces += usize::from(left.len() < before);
        }
        assert!(pieces > 1, "it was taken in one piece");
        while received < value.len() {
            received += server.read(&mut buffer).unwrap();
        }
        assert_eq!(received, value.len());
    }
}
