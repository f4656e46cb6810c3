//! Frames and their bounds. A frame is its length (u32), its kind (u8) and its content; numbers are little-endian.

use serde::{Deserialize, Serialize};

use super::{FROM_DRIVER_BYTES, PROTOCOL, TO_DRIVER_BYTES, WORD_BYTES};

/// Bytes of the length.
const LENGTH: usize = 4;
/// Bytes of an outcome before its word.
const OUTCOME: usize = 31;
/// The longest text of a failure that is kept, in bytes.
const FAILURE_BYTES: usize = 1024;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Hello = 1,
    Configure = 2,
    Ready = 3,
    Failed = 4,
    Call = 5,
    Done = 6,
    Drain = 7,
    Bye = 8,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Hello, Self::Configure, Self::Ready, Self::Failed, Self::Call, Self::Done, Self::Drain, Self::Bye];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Which library a driver calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub protocol: u32,
    pub language: String,
    pub library: String,
    pub version: String,
}

/// The connections and calls of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Configure {
    pub topology: Topology,
    /// HOST:PORT of the server, or of some nodes of the cluster.
    pub addresses: Vec<String>,
    /// The version of RESP, 2 or 3.
    pub protocol: u8,
    pub database: u32,
    /// Files with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    /// Connections to the server, or to each node.
    pub connections: u32,
    /// Calls in flight at most.
    pub callers: u16,
    pub sharing: Sharing,
    /// Maximum retries of a call by the library.
    pub retries: u32,
    pub connect_timeout_milliseconds: u64,
    pub response_timeout_milliseconds: u64,
    pub operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Topology {
    Standalone,
    Cluster,
}

/// The use of a connection by calls: several at a time, or one that holds it until its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    Shared,
    Exclusive,
}

/// One operation of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub name: String,
    /// The index of the argument with the first key, from which a library finds the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<usize>,
}

/// A driver is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    pub connections: u32,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub id: u64,
    /// The time at which the library was called, on the machine's monotonic clock.
    pub called: u64,
    pub completed: u64,
    /// The sum of the reply's checksums, if the call asked for it.
    pub checksum: Option<u32>,
    /// The reply was null.
    pub null: bool,
    pub result: Result<(), CallErrorKind>,
}

/// The kind of a call's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The server's error, by its first word.
    Reply(String),
    Timeout,
    Disconnected,
    /// The library refused the call; a word for why.
    Library(String),
}

/// A frame of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromDriver {
    Hello(Hello),
    Ready(Ready),
    Failed(String),
    Done(Vec<Outcome>),
    Bye,
}

impl FromDriver {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Ready(_) => Kind::Ready,
            Self::Failed(_) => Kind::Failed,
            Self::Done(_) => Kind::Done,
            Self::Bye => Kind::Bye,
        }
    }
}

/// Why bytes of a driver break the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the driver sent a frame of {0} bytes; the contract allows 1 to {FROM_DRIVER_BYTES}")]
    Length(u32),
    #[error("the driver sent a frame of kind {0}, which only the shard sends or which does not exist")]
    Kind(u8),
    #[error("the driver speaks version {0} of the contract, not {PROTOCOL}")]
    Protocol(u32),
    #[error("the driver sent a malformed {kind:?}: {problem}")]
    Malformed { kind: Kind, problem: String },
    #[error("a call needs a frame of {0} bytes; the contract allows {TO_DRIVER_BYTES}")]
    TooLarge(usize),
}

/// Finds frames in a stream of bytes. Holds at most one frame and what was read with it.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes at the beginning that were decoded.
    used: usize,
}

impl Decoder {
    /// Adds bytes from the socket.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// Fails if the bytes break the contract. The stream is unusable from then on.
    pub fn next_frame(&mut self) -> Result<Option<FromDriver>, FrameError> {
        let unread = &self.buffer[self.used..];
        let Some((length, rest)) = unread.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        if length == 0 || length as usize > FROM_DRIVER_BYTES {
            return Err(FrameError::Length(length));
        }
        let Some(frame) = rest.get(..length as usize) else { return Ok(None) };
        let decoded = decode(frame)?;
        self.used += LENGTH + frame.len();
        Ok(Some(decoded))
    }
}

fn decode(frame: &[u8]) -> Result<FromDriver, FrameError> {
    let (kind, content) = frame.split_first().ok_or(FrameError::Length(0))?;
    let unknown = FrameError::Kind(*kind);
    let kind = Kind::of(*kind).ok_or(unknown.clone())?;
    let malformed = |problem: String| FrameError::Malformed { kind, problem };
    let of_json = |error: serde_json::Error| malformed(error.to_string());
    match kind {
        Kind::Hello => {
            let hello: Hello = serde_json::from_slice(content).map_err(of_json)?;
            if hello.protocol == PROTOCOL {
                Ok(FromDriver::Hello(hello))
            } else {
                Err(FrameError::Protocol(hello.protocol))
            }
        }
        Kind::Ready => serde_json::from_slice(content).map(FromDriver::Ready).map_err(of_json),
        Kind::Failed => {
            let text = String::from_utf8_lossy(&content[..content.len().min(FAILURE_BYTES)]);
            Ok(FromDriver::Failed(text.replace(char::is_control, " ")))
        }
        Kind::Done => outcomes(content).map(FromDriver::Done).map_err(|problem| malformed(problem.to_owned())),
        Kind::Bye if content.is_empty() => Ok(FromDriver::Bye),
        Kind::Bye => Err(malformed("it has content".to_owned())),
        Kind::Configure | Kind::Call | Kind::Drain => Err(unknown),
    }
}

fn outcomes(mut content: &[u8]) -> Result<Vec<Outcome>, &'static str> {
    let mut outcomes = Vec::with_capacity(content.len() / OUTCOME);
    while !content.is_empty() {
        let (fixed, rest) = content.split_first_chunk::<OUTCOME>().ok_or("an outcome is cut off")?;
        let [.., flags, result, length] = *fixed;
        let number = |at: usize| fixed[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let sum = fixed[24..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let word = rest.get(..length.into()).ok_or("the word of an error is cut off")?;
        let word = str::from_utf8(word).map_err(|_| "the word of an error is not UTF-8")?;
        if word.len() > WORD_BYTES || word.contains(|letter: char| letter.is_control() || letter == ' ') {
            return Err("the word of an error is longer than 32 bytes, or several words");
        }
        if flags > 3 {
            return Err("an outcome has unknown flags");
        }
        let result = match (result, word.is_empty()) {
            (0, true) => Ok(()),
            (1, false) => Err(CallErrorKind::Reply(word.to_owned())),
            (2, true) => Err(CallErrorKind::Timeout),
            (3, true) => Err(CallErrorKind::Disconnected),
            (4, false) => Err(CallErrorKind::Library(word.to_owned())),
            (0..=4, _) => {
                return Err("an error of a reply or of the library needs a word, and other results have none");
            }
            _ => return Err("an outcome has an unknown result"),
        };
        let checksum = (flags & 1 > 0).then_some(sum);
        outcomes.push(Outcome {
            id: number(0),
            called: number(8),
            completed: number(16),
            checksum,
            null: flags & 2 > 0,
            result,
        });
        content = &rest[length.into()..];
    }
    Ok(outcomes)
}

/// Writes frames into a buffer.
fn begin(out: &mut Vec<u8>, kind: Kind) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    out.push(kind as u8);
    at
}

fn end(out: &mut Vec<u8>, at: usize) -> Result<(), FrameError> {
    let length = out.len() - at - LENGTH;
    match u32::try_from(length) {
        Ok(bytes) if length <= TO_DRIVER_BYTES => {
            out[at..at + LENGTH].copy_from_slice(&bytes.to_le_bytes());
            Ok(())
        }
        _ => {
            out.truncate(at);
            Err(FrameError::TooLarge(length))
        }
    }
}

/// Appends a Configure.
///
/// # Errors
/// Fails if it is larger than a frame.
pub fn configure(out: &mut Vec<u8>, configure: &Configure) -> Result<(), FrameError> {
    let at = begin(out, Kind::Configure);
    // Serialising plain data into memory cannot fail.
    out.extend_from_slice(&serde_json::to_vec(configure).unwrap_or_default());
    end(out, at)
}

/// Appends a Drain.
pub fn drain(out: &mut Vec<u8>) {
    let at = begin(out, Kind::Drain);
    out[at..at + LENGTH].copy_from_slice(&1_u32.to_le_bytes());
}

/// Appends a frame of calls.
#[derive(Debug)]
pub struct Calls<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Calls<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        let at = begin(out, Kind::Call);
        Self { out, at }
    }

    /// Continues the frame that begins at `at`, and with which `out` ends.
    pub fn resume(out: &'a mut Vec<u8>, at: usize) -> Self {
        Self { out, at }
    }

    /// Leaves the frame open for [`Self::resume`]. Returns where it begins.
    pub fn pause(self) -> usize {
        self.at
    }

    /// Adds a call, with a checksum of its reply if asked for. Returns the frame's bytes so far.
    pub fn push<'b>(
        &mut self,
        id: u64,
        operation: u16,
        checksum: bool,
        arguments: impl ExactSizeIterator<Item = &'b [u8]>,
    ) -> usize {
        self.out.extend_from_slice(&id.to_le_bytes());
        self.out.extend_from_slice(&operation.to_le_bytes());
        self.out.push(u8::from(checksum));
        self.number(arguments.len());
        for argument in arguments {
            self.number(argument.len());
            self.out.extend_from_slice(argument);
        }
        self.out.len() - self.at
    }

    /// A number beyond u32 makes the frame larger than any frame may be, so [`Self::end`] fails.
    fn number(&mut self, number: usize) {
        self.out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// # Errors
    /// Fails if the frame is too large; nothing was appended then.
    pub fn end(self) -> Result<(), FrameError> {
        end(self.out, self.at)
    }
}

#[cfg(test)]
mod tests;
