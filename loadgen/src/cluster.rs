//! Redis Cluster without I/O: the slot of a key, the owner of a slot, and the meaning of a redirect.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "slots are below 2^14")]

mod changes;
mod group;
mod numbered;
mod redirect;
mod slot;
mod topology;

pub use changes::changes;
pub use group::{Group, Uneven};
pub use numbered::NumberedSlots;
pub use redirect::{Deferral, Redirect};
pub use slot::{SLOTS, SlotHash, crc16, hashed_part, slot_of};
pub use topology::{Member, NodeAddress, Topology, UNCOVERED, UNIX};
