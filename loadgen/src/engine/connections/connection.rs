//! One connection.

use std::io;

use super::lifetime::Life;
use crate::engine::depth::Depth;
use crate::engine::pipeline::{Pipeline, Request};
use crate::engine::progress::Progress;
use crate::engine::stream::Stream;
use crate::resp::{Decoder, Output};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
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
    pub(crate) fn is_in_the_making(self) -> bool {
        matches!(self, Self::Connecting { .. } | Self::Securing { .. } | Self::Greeting { .. })
    }
}

/// A connection. Its buffers are small: reading and encoding use the worker's.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Index of the server.
    node: u32,
    pub(super) link: Link,
    /// Consecutive failures, for the backoff.
    pub(super) failures: u32,
    pub(super) stream: Option<Stream>,
    /// Its end, if connections have a lifetime and a load runs.
    pub life: Option<Life>,
    /// The beginning of its making.
    pub(super) began: u64,
    /// The beginning and the length of its TLS handshake; only if connections have a lifetime.
    pub(super) tls_handshake: Option<(u64, u64)>,
    pub decoder: Decoder,
    pub pipeline: Pipeline,
    /// The replies so far to the oldest request, where requests get several.
    pub progress: Option<Box<Progress>>,
    /// Bytes that the socket did not take. With TLS, the session holds them.
    unsent: Output,
    /// Bytes wait for room in the socket.
    blocked: bool,
    /// True if it is in its node's `open` list.
    pub(super) listed: bool,
    /// Was ready at least once.
    pub(super) known: bool,
    /// Requests that the current batch still lacks, where requests are sent in batches.
    batch_left: u32,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
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
            life: None,
            began: 0,
            tls_handshake: None,
            decoder: Decoder::default(),
            pipeline: Pipeline::of_window(window),
            progress: None,
            unsent: Output::default(),
            blocked: false,
            listed: false,
            known: false,
            batch_left: 0,
        }
    }

    pub(crate) fn node(&self) -> usize {
        self.node as usize
    }

    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// The send of the oldest command in flight, if the connection is ready.
    pub(crate) fn oldest_sent(&self) -> Option<u64> {
        self.pipeline.oldest_sent().filter(|_| self.link == Link::Ready)
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.link == Link::Ready && self.pipeline.is_empty()
    }

    /// Its bytes; `None` if it is closed.
    pub(crate) fn stream(&mut self) -> Option<&mut Stream> {
        self.stream.as_mut()
    }

    /// The number of commands that still fit.
    #[inline]
    pub(crate) fn room(&self, Depth { window, batch }: Depth) -> usize {
        if self.link != Link::Ready || self.blocked {
            return 0;
        }
        let staged = self.pipeline.staged_count();
        let room = window.saturating_sub(self.pipeline.len()).min(batch.saturating_sub(staged));
        match &self.life {
            None => room,
            Some(life) => life.room(room, staged),
        }
    }

    /// Returns whether it can be closed because its life has ended.
    #[inline]
    pub(crate) fn is_worn_out(&self) -> bool {
        self.life.is_some_and(|life| life.is_over()) && self.is_at_rest()
    }

    /// The number of `room` commands that the current batch of `size` may still take. The next batch begins when the pipeline is empty. A
    /// large batch takes several sends.
    pub(crate) fn of_batch(&mut self, room: usize, size: usize) -> usize {
        if self.pipeline.is_empty() {
            self.batch_left = size as u32;
        }
        let part = room.min(self.batch_left as usize);
        self.batch_left -= part as u32;
        part
    }

    /// Writes `output`, and keeps what the socket does not take.
    #[inline]
    pub(crate) fn send(&mut self, output: &mut Output) -> io::Result<Sent> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let behind = self.blocked && !self.unsent.is_empty();
        if !behind && write(stream, output)? == Sent::All {
            self.blocked = false;
            return Ok(Sent::All);
        }
        self.blocked = true;
        self.unsent.take_from(output);
        Ok(Sent::Blocked)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.blocked
    }

    /// Writes more of what the socket did not take before.
    pub(crate) fn send_rest(&mut self) -> io::Result<Sent> {
        if !self.blocked {
            return Ok(Sent::All);
        }
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let sent = write(stream, &mut self.unsent)?;
        self.blocked = sent == Sent::Blocked;
        Ok(sent)
    }

    /// Closes the socket and resets everything but the server. Returns the commands without a reply, each with the time it was sent.
    pub(super) fn close(&mut self, link: Link) -> Vec<(Request, u64)> {
        self.stream = None;
        self.life = None;
        self.link = link;
        self.unsent = Output::default();
        self.blocked = false;
        self.decoder.reset();
        self.progress = None;
        self.pipeline.take()
    }
}

/// Writes until everything is sent or the socket is full. Removes from `output` what was written.
#[inline]
fn write(stream: &mut Stream, output: &mut Output) -> io::Result<Sent> {
    while !output.is_empty() {
        match stream.write(output) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => output.drop_front(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Blocked),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(if stream.flush()? { Sent::All } else { Sent::Blocked })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use bytes::Bytes;

    use super::*;
    use crate::sys;

    /// A copy for every piece that the socket takes would move a large value many times over.
    #[test]
    fn large_values_are_sent_from_where_they_are() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = sys::connect(listener.local_addr().unwrap(), 0).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut connection = Connection::new(0, 1);
        connection.stream = Some(Stream::new(stream, "127.0.0.1:1", None, false).unwrap());
        let value = Bytes::from((0..32_u32 << 18).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
        let mut expected = b"<".to_vec();
        (0..2).for_each(|_| expected.extend_from_slice(&value));
        expected.extend_from_slice(b">and more");
        let mut output = Output::default();
        let after = output.room(2).len() - 1;
        output.room(2)[..2].copy_from_slice(b"<>");
        output.set_length(2);
        output.insert(&mut vec![(after, value.clone()), (after, value.clone())]);
        assert_eq!(connection.send(&mut output).unwrap(), Sent::Blocked);
        output.append(b"and more");
        assert_eq!(connection.send(&mut output).unwrap(), Sent::Blocked);
        let (mut buffer, mut received, mut pieces) = (vec![0; 1 << 20], Vec::new(), 0);
        while received.len() < expected.len() {
            let count = server.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
            let before = connection.unsent.len();
            connection.send_rest().unwrap();
            let within = |piece: &[u8]| piece.len() < 10 || value.as_ptr_range().contains(&piece.as_ptr());
            assert!(connection.unsent.pieces().all(within), "a value was copied");
            pieces += usize::from(connection.unsent.len() < before);
        }
        assert!(pieces > 1, "it was taken in one piece");
        assert!(received == expected, "other bytes arrived");
        assert!(output.is_empty() && !connection.has_unsent());
    }
}
