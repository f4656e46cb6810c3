//! A link of 40 Mbit/s to the server.

use std::net::SocketAddr;

use redisbench_wire::snapshot::Interface;

use crate::support::network::{self, Link, SERVER, Shaped};

/// What the link carries: 40 Mbit/s.
pub const BYTES_PER_SECOND: u64 = 5_000_000;

/// The server, within the network; outside, has the test `name` run in it, and says nothing.
pub fn inside(name: &str, shaped: Shaped) -> Option<SocketAddr> {
    network::inside(name, Link { shaped, megabits: 40, burst_kib: 64 }).then(|| SERVER.parse().unwrap())
}

/// The busiest 100 ms were about what the link carries: no more, but for a queue that is sent at once, and not much less.
pub fn assert_full(bytes_per_second: u64, interface: &Interface) {
    let expected = BYTES_PER_SECOND * 7 / 10..BYTES_PER_SECOND * 15 / 10;
    assert!(expected.contains(&bytes_per_second), "{interface:?}");
}
