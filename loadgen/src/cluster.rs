//! Redis Cluster without input or output: which slot a key is in, who owns a slot, and what a redirect says.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "slots are below 2^14")]

mod changes;
mod numbered;
mod redirect;
mod slot;
mod topology;

pub use changes::changes;
pub use numbered::NumberedSlots;
pub use redirect::{Deferral, Redirect};
pub use slot::{SLOTS, crc16, hashed_part, slot_of};
pub use topology::{Member, NodeAddress, Topology, UNCOVERED, UNIX};
