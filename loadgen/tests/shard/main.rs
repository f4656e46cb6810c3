//! The real binary against a real redis-server, driven through its HTTPS API like a conductor does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod changes;
mod cleanup;
mod client;
mod load;
mod mapping;
mod names;
#[path = "../support/open_loop.rs"]
mod open_loop;
mod plans;
mod pool;
mod protocol;
mod protocol3;
mod proxy;
mod reads;
mod refusals;
mod replay;
mod rights;
mod scripts;
mod sentinel;
mod sentinel_access;
mod servers;
mod tls;
mod tracing;
mod trials;
mod values;
mod verify;
mod windows;
