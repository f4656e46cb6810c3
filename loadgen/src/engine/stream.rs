//! The bytes of one connection, plain or within TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustls::ClientConnection;

use super::api::Tls;
use crate::record::Delays;
use crate::resp::Output;
use crate::sys;

/// A non-blocking socket, with a TLS session if there is one.
#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    session: Option<Box<ClientConnection>>,
    /// The time for which the data read had waited in the kernel, if sampled.
    delays: Option<Box<Delays>>,
    /// Neither TLS nor delays, so a read is a single system call.
    plain: bool,
    /// The latest read emptied the socket: nothing is left until the next event.
    emptied: bool,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Bytes in the buffer; 0 at the end of the stream.
    pub count: usize,
    /// True if nothing is left. Later data is a new event.
    pub emptied: bool,
}

impl Stream {
    /// Wraps `socket`, which is connected to `endpoint`, within TLS if `tls` is given. `sampled` records [`Delays`].
    ///
    /// # Errors
    /// Fails if a TLS session cannot begin with these settings.
    pub(super) fn new(socket: TcpStream, endpoint: &str, tls: Option<&Tls>, sampled: bool) -> io::Result<Self> {
        let stamped = sampled && sys::stamp_arrivals(&socket).is_ok();
        let delays = stamped.then(Box::default);
        let session = tls.map(|tls| {
            let name = tls.name_of(endpoint)?;
            let mut session = ClientConnection::new(tls.config.clone(), name).map_err(|error| protocol(&error))?;
            // The window of requests bounds the backlog.
            session.set_buffer_limit(None);
            Ok::<_, io::Error>(Box::new(session))
        });
        let session = session.transpose()?;
        let plain = session.is_none() && delays.is_none();
        Ok(Self { socket, session, delays, plain, emptied: false })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Continues the TLS handshake. Returns whether it is complete; without TLS it always is.
    ///
    /// # Errors
    /// Fails if the peer is not trusted, does not speak TLS, or closed the connection.
    pub(super) fn secure(&mut self) -> io::Result<bool> {
        loop {
            // At the end of the handshake this sends the client's last messages.
            self.flush()?;
            let Some(session) = self.session.as_mut().filter(|session| session.is_handshaking()) else {
                return Ok(true);
            };
            match session.read_tls(&mut self.socket) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
                Ok(_) => {
                    if let Err(error) = session.process_new_packets() {
                        // Sends the alert, which gives the server the reason.
                        let _ = self.flush();
                        return Err(protocol(&error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the available data, up to the size of `buffer`.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` if there is nothing to read.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        if !self.plain {
            return self.read_otherwise(buffer);
        }
        let count = sys::receive(&self.socket, buffer)?;
        Ok(Received { count, emptied: count < buffer.len() })
    }

    fn read_otherwise(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        if self.session.is_some() {
            return self.read_session(buffer);
        }
        let mut socket = Watched { socket: &self.socket, delays: self.delays.as_deref_mut(), emptied: false };
        let count = socket.read(buffer)?;
        Ok(Received { count, emptied: socket.emptied })
    }

    /// Delays recorded since the last call of [`Self::forget_delays`].
    pub(super) fn delays(&self) -> Option<&Delays> {
        self.delays.as_deref()
    }

    pub(super) fn forget_delays(&mut self) {
        if let Some(delays) = &mut self.delays {
            **delays = Delays::default();
        }
    }

    fn read_session(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let Some(session) = &mut self.session else { return Err(io::ErrorKind::NotConnected.into()) };
        let mut count = 0;
        loop {
            match session.reader().read(&mut buffer[count..]) {
                Ok(0) => return Ok(Received { count, emptied: true }),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if std::mem::take(&mut self.emptied) {
                        return if count > 0 { Ok(Received { count, emptied: true }) } else { Err(error) };
                    }
                    let delays = self.delays.as_deref_mut();
                    let mut socket = Watched { socket: &self.socket, delays, emptied: false };
                    match session.read_tls(&mut socket) {
                        Ok(0) if count > 0 => return Ok(Received { count, emptied: false }),
                        Ok(0) => return Ok(Received { count: 0, emptied: true }),
                        Ok(_) => {
                            self.emptied = socket.emptied;
                            session.process_new_packets().map_err(|error| protocol(&error))?;
                        }
                        Err(error) if count > 0 && error.kind() == io::ErrorKind::WouldBlock => {
                            return Ok(Received { count, emptied: true });
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
            if count == buffer.len() {
                return Ok(Received { count, emptied: false });
            }
        }
    }

    /// Writes `output`, and returns how many bytes the socket or the session took.
    #[inline]
    pub(super) fn write(&mut self, output: &Output) -> io::Result<usize> {
        match (&mut self.session, output.whole()) {
            (None, Some(bytes)) => sys::send(&self.socket, bytes),
            (None, None) => sys::send_pieces(&self.socket, output.pieces()),
            (Some(session), _) => {
                output.pieces().try_for_each(|piece| session.writer().write_all(piece))?;
                Ok(output.len())
            }
        }
    }

    /// Sends what the session holds. Returns whether everything was sent.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(true) };
        while session.wants_write() {
            match session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Notes whether a read emptied the socket, and records how long the data had waited if there are `delays`.
struct Watched<'s> {
    socket: &'s TcpStream,
    delays: Option<&'s mut Delays>,
    emptied: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = if let Some(delays) = &mut self.delays {
            let (count, delay) = sys::receive_stamped(self.socket, buffer)?;
            if let Some(delay) = delay {
                delays.record(delay);
            }
            count
        } else {
            sys::receive(self.socket, buffer)?
        };
        self.emptied = count < buffer.len();
        Ok(count)
    }
}

fn protocol(error: &rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
}
