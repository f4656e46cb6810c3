//! What the load generator measures of itself, so that its own limits are not taken for the target's. All of it is read
//! from the kernel, rarely: nothing here happens per request.

mod environment;
mod interface;
mod machine;
mod run_queue;
mod seconds;

pub use machine::Evidence;
pub(crate) use machine::{Observer, quota_millionths};
pub(crate) use run_queue::{RunQueue, Threads};
