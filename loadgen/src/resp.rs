//! The Redis protocol without I/O: encodes commands and decodes replies. RESP2, and RESP3 from servers that use it without being asked.
#![forbid(unsafe_code)]

mod decode;
#[cfg(test)]
pub(crate) mod differential;
mod encode;

pub use decode::{Decoder, ProtocolError, Reply, Taken, WholeReplies};
pub use encode::{Output, append_argument, append_command, append_header};

/// An error's text without the arguments that a server echoes for an unknown command. The arguments of AUTH are secret.
pub fn without_arguments(error: &str) -> &str {
    error.split(", with args").next().unwrap_or_default()
}
