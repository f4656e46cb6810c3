//! A driver on a socket. Between trials it waits without a runtime.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::net::UnixStream as Plain;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::contract::{Decoder, FrameError, FromDriver, Hello};

/// Bytes that are read at once.
pub const READ_BYTES: usize = 64 << 10;

/// The longest part of a library's name and version that results show, in characters.
const NAME_LENGTH: usize = 64;

/// Why a client has no connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another try may succeed: the server or the library refused.
    Refused(String),
    /// Another try would fail too: a driver broke its contract, or has ended.
    Broken(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// A driver that has said hello, in the current runtime.
#[derive(Debug)]
pub struct Session {
    pub stream: UnixStream,
    pub decoder: Decoder,
    /// Its library, version and language.
    pub library: String,
    /// Its process, if this one can see it.
    pub process: Option<u32>,
}

/// The same without a runtime.
#[derive(Debug)]
pub struct Idle {
    stream: Plain,
    decoder: Decoder,
    library: String,
    process: Option<u32>,
}

impl Session {
    /// The driver of a new connection. `None` if it closes its socket before it says hello.
    ///
    /// # Errors
    /// Fails if its first frame is none, or no Hello.
    pub async fn begin(stream: UnixStream) -> Result<Option<Self>, String> {
        let process = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok()).filter(|id| *id > 0);
        let mut session = Self { stream, decoder: Decoder::default(), library: String::new(), process };
        match session.receive().await.map_err(|error| error.to_string())? {
            None => Ok(None),
            Some(FromDriver::Hello(hello)) => {
                session.library = named(&hello);
                Ok(Some(session))
            }
            Some(other) => Err(format!("its first frame is {:?}, not Hello", other.kind())),
        }
    }

    /// The next frame. `None` if the driver has closed its socket.
    ///
    /// # Errors
    /// Fails if its bytes are no frame.
    pub async fn receive(&mut self) -> Result<Option<FromDriver>, FrameError> {
        let mut room = vec![0; READ_BYTES];
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame));
            }
            match self.stream.read(&mut room).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(count) => self.decoder.extend(&room[..count]),
            }
        }
    }

    /// Writes frames. A driver that has closed its socket is found by the next [`Self::receive`].
    pub async fn send(&mut self, frames: &[u8]) {
        let _ = self.stream.write_all(frames).await;
    }

    /// Leaves the runtime.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub fn rest(self) -> io::Result<Idle> {
        let Self { stream, decoder, library, process } = self;
        Ok(Idle { stream: stream.into_std()?, decoder, library, process })
    }
}

impl Idle {
    /// Enters the current runtime. `None` if the driver has ended meanwhile.
    pub fn resume(mut self) -> Option<Session> {
        let mut room = [0; 1024];
        match self.stream.read(&mut room) {
            // Whatever it sent unasked is found by the next `receive`.
            Ok(count) if count > 0 => self.decoder.extend(&room[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return None,
        }
        let Self { stream, decoder, library, process } = self;
        Some(Session { stream: UnixStream::from_std(stream).ok()?, decoder, library, process })
    }
}

/// A library as results name it, such as `go-redis 9.23.0 (Go)`.
fn named(hello: &Hello) -> String {
    let part = |text: &str| text.chars().take(NAME_LENGTH).collect::<String>().replace(char::is_control, " ");
    format!("{} {} ({})", part(&hello.library), part(&hello.version), part(&hello.language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_on_one_short_line() {
        let hello = |version: &str| Hello {
            protocol: 1,
            language: "Go".into(),
            library: "go-redis".into(),
            version: version.into(),
        };
        assert_eq!(named(&hello("9.23.0")), "go-redis 9.23.0 (Go)");
        assert_eq!(named(&hello("9\n3")), "go-redis 9 3 (Go)");
        assert!(named(&hello(&"9".repeat(1_000_000))).len() < 100);
    }
}
