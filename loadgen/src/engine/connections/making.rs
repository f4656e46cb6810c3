//! The making of a connection: when it may begin, TLS, the first commands, and its timeout.

use std::io;

use super::Connections;
use super::connection::Link;
use crate::cluster::{NodeAddress, UNIX};
use crate::engine::api::ConnectFailure;
use crate::engine::stream::Stream;
use crate::resp::{self, Output, Reply};
use crate::sys::{self, Poller};

/// The maximum number of concurrent connection attempts, so that a server's accept backlog is not overrun.
const AT_ONCE: usize = 64;

/// One connection in this many records how long replies waited in the kernel.
const STAMPED: usize = 16;

/// Why a connection could not be made.
#[derive(Debug)]
pub(in crate::engine) struct Failure {
    pub reason: ConnectFailure,
    pub why: String,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectFailure::Refused,
            io::ErrorKind::TimedOut => ConnectFailure::TimedOut,
            _ => match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EADDRNOTAVAIL) => ConnectFailure::Resources,
                _ => ConnectFailure::Broken,
            },
        };
        Self { reason, why: error.to_string() }
    }
}

impl Connections {
    /// The number of attempts that may begin now.
    pub(in crate::engine) fn free_attempts(&self) -> usize {
        let making = self.all.iter().filter(|connection| connection.link.is_in_the_making());
        AT_ONCE.saturating_sub(making.count())
    }

    /// Returns whether the making of a connection may begin. The first attempt of each is free, others have turns. `hurried`: a load runs,
    /// so attempts at an unreachable server are not delayed by those before.
    ///
    /// # Errors
    /// Too early: when to ask again, or `u64::MAX` if the next ordinary tick is early enough.
    pub(in crate::engine) fn due(&mut self, index: usize, hurried: bool, now: u64) -> Result<(), u64> {
        let connection = &self.all[index];
        let Link::Down { retry } = connection.link else { return Err(u64::MAX) };
        let retries = &mut self.pools[connection.node()].retries;
        if retry > now && !(hurried && retries.are_scouts()) {
            return Err(u64::MAX);
        }
        if connection.failures == 0 && !retries.are_scouts() {
            return Ok(());
        }
        retries.due(now)
    }

    /// Begins to make a connection that is due.
    pub(in crate::engine) fn begin(
        &mut self,
        index: usize,
        poller: &Poller,
        to: &NodeAddress,
        now: u64,
    ) -> Result<(), Failure> {
        let retries = &mut self.pools[self.all[index].node()].retries;
        if self.all[index].failures > 0 || retries.are_scouts() {
            retries.began(now);
        }
        let timeouts = self.common.plan.timeouts;
        let file = to.label.strip_prefix(UNIX);
        let socket = match file {
            None => sys::connect(to.address, timeouts.request_nanoseconds),
            Some(path) => sys::connect_to_file(path),
        }?;
        poller.add(&socket, index as u64)?;
        // The kernel stamps no data that arrives over a UNIX socket.
        let sampled = file.is_none() && index.is_multiple_of(STAMPED);
        let stream = Stream::new(socket, &to.label, self.access.tls.as_ref(), sampled)?;
        let connection = &mut self.all[index];
        connection.stream = Some(stream);
        (connection.began, connection.tls_handshake) = (now, None);
        connection.link = Link::Connecting { deadline: now.saturating_add(timeouts.connect_nanoseconds) };
        Ok(())
    }

    /// Continues once the kernel has connected, successfully or not: completes the TLS handshake if there is one, then sends the first
    /// commands. Returns whether the connection is complete.
    pub(in crate::engine) fn secure(&mut self, index: usize) -> Result<bool, Failure> {
        let connection = &mut self.all[index];
        let Some(stream) = &mut connection.stream else { return Ok(false) };
        let (Link::Connecting { deadline } | Link::Securing { deadline }) = connection.link else { return Ok(false) };
        if let Link::Connecting { .. } = connection.link
            && let Some(error) = stream.take_error().unwrap_or_else(Some)
        {
            return Err(error.into());
        }
        if self.lives.is_some() && self.access.tls.is_some() {
            connection.tls_handshake.get_or_insert_with(|| (sys::monotonic_nanoseconds(), 0));
        }
        connection.link = Link::Securing { deadline };
        let secured = stream.secure().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Failure { reason: ConnectFailure::NotSecure, why: error.to_string() },
            _ => error.into(),
        });
        if !secured? {
            return Ok(false);
        }
        if let Some((began, length)) = &mut connection.tls_handshake {
            *length = sys::monotonic_nanoseconds().saturating_sub(*began);
        }
        let handshake = &self.access.handshake;
        connection.link = Link::Greeting { deadline, replies: handshake.replies };
        let mut output = Output::default();
        output.append(&handshake.bytes);
        connection.send(&mut output)?;
        Ok(handshake.replies == 0)
    }

    /// Handles one reply to the first commands. Returns whether the connection is complete.
    pub(in crate::engine) fn greeted(&mut self, index: usize, reply: Reply) -> Result<bool, Failure> {
        let connection = &mut self.all[index];
        if reply == Reply::Error {
            let text = String::from_utf8_lossy(connection.decoder.error_text());
            let why = resp::without_arguments(&text).to_owned();
            return Err(Failure { reason: ConnectFailure::HandshakeRefused, why });
        }
        match &mut connection.link {
            Link::Greeting { replies, .. } if *replies > 1 => {
                *replies -= 1;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Why the making of a connection took too long, if it did.
    pub(in crate::engine) fn timed_out(&self, index: usize, now: u64) -> Option<Failure> {
        let timeout = self.common.plan.timeouts.connect_nanoseconds / 1_000_000;
        match self.all[index].link {
            Link::Securing { deadline } if deadline <= now => {
                let why = format!("TLS: no reply within {timeout} ms; does the server use TLS on this port?");
                Some(Failure { reason: ConnectFailure::NotSecure, why })
            }
            Link::Connecting { deadline } | Link::Greeting { deadline, .. } if deadline <= now => {
                let why = format!("no reply within {timeout} ms");
                Some(Failure { reason: ConnectFailure::TimedOut, why })
            }
            _ => None,
        }
    }
}
