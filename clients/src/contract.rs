//! The contract with a driver, a program that calls a client library: docs/drivers.md. Pure: bytes in, frames out.

mod frame;
mod ledger;

pub use frame::{
    CallErrorKind, Calls, Configure, Decoder, FrameError, FromDriver, Hello, Kind, Operation, Outcome, Ready, Sharing,
    Topology, configure, drain,
};
pub use ledger::{Ledger, LedgerError};

/// The version of the contract.
pub const PROTOCOL: u32 = 1;

/// The environment variable with the path of the shard's socket.
pub const SOCKET: &str = "REDISBENCH_DRIVER_SOCKET";

/// The largest frame from a driver, in bytes after its length: more than the outcomes of [`CALLERS`] calls.
pub const FROM_DRIVER_BYTES: usize = 1 << 20;

/// The largest frame to a driver, in bytes after its length. A value has at most 16 MiB.
pub const TO_DRIVER_BYTES: usize = 64 << 20;

/// The longest word of an error, in bytes.
pub const WORD_BYTES: usize = 32;

/// The most calls in flight.
pub const CALLERS: u16 = 10_000;

/// One of this many calls asks for a checksum.
pub const CHECKSUM_EVERY: u64 = 1_024;
