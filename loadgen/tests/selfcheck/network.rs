//! A link of 40 Mbit/s to the server.

use std::net::SocketAddr;

use redisbench_testkit::network::{self, Link, SERVER, Shaped};
use redisbench_wire::snapshot::Interface;

/// The link's capacity: 40 Mbit/s.
pub const BYTES_PER_SECOND: u64 = 5_000_000;

/// The server's address within the network. Outside, runs the test `name` inside it and returns `None`.
pub fn inside(name: &str, shaped: Shaped) -> Option<SocketAddr> {
    network::inside(name, Link { shaped, megabits: 40, burst_kib: 64 }).then(|| SERVER.parse().unwrap())
}

/// The busiest 100 ms reached about the link's capacity: above it at most by a queue that is sent at once, and not far below.
pub fn assert_full(bytes_per_second: u64, interface: &Interface) {
    let expected = BYTES_PER_SECOND * 7 / 10..BYTES_PER_SECOND * 15 / 10;
    assert!(expected.contains(&bytes_per_second), "{interface:?}");
}
