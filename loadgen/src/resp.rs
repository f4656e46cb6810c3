//! The Redis protocol without input or output: commands become bytes, bytes become replies. RESP2, and RESP3 where a
//! server speaks it unasked.
#![forbid(unsafe_code)]

mod decode;
#[cfg(test)]
pub(crate) mod differential;
mod encode;

pub use decode::{Decoder, ProtocolError, Reply, WholeReplies};
pub use encode::{Output, append_argument, append_command, append_header};

/// An error's text without the arguments that a server repeats of a command it does not know: those of AUTH are a
/// secret.
pub fn without_arguments(error: &str) -> &str {
    error.split(", with args").next().unwrap_or_default()
}
