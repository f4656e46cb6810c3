//! The real binary against a real redis-server, driven through its HTTPS calls as a conductor drives it.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod load;
mod plans;
mod protocol;
mod refusals;
