//! Redis Cluster without input or output: which slot a key is in, who owns a slot, and what a redirect says.
#![forbid(unsafe_code)]

mod redirect;
mod slot;
mod topology;

pub use redirect::Redirect;
pub use slot::{SLOTS, crc16, hashed_part, slot_of};
pub use topology::{NodeAddress, Topology, UNCOVERED};
