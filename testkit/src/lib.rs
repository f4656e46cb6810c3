//! For tests only: real servers, clusters, proxies and networks, the rules of an API server, and hostile input for decoders. Everything ends with the test. Depends on no
//! crate of the product, so that every crate can use it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up fails"
)]

pub mod api_server;
pub mod haproxy;
pub mod hostile;
pub mod log;
pub mod network;
pub mod processes;
pub mod servers;
