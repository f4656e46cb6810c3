//! For tests and tools only: real servers, clusters, proxies and networks, the rules of an API server, hostile input for decoders, what the
//! machine did meanwhile, the reading of results, and documents. Everything ends with the test. Depends on no crate of the product, so that
//! every crate can use it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a test that cannot be set up fails"
)]

pub mod api_server;
pub mod counts;
pub mod documents;
pub mod evidence;
pub mod examples;
pub mod haproxy;
pub mod hostile;
pub mod log;
pub mod machine;
pub mod markdown;
pub mod network;
pub mod processes;
pub mod sentinel;
pub mod servers;
pub mod status;
