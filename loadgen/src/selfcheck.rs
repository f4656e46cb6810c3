//! Measurements of the load generator itself, so that its limits are not mistaken for the target's. All come from the kernel at low
//! frequency, never per request.

mod environment;
mod interface;
mod machine;
mod meter;
mod run_queue;
mod seconds;

pub use machine::{Evidence, ObservedMachine};
pub(crate) use machine::{Observer, quota_millionths};
pub use meter::Meter;
pub use run_queue::RunQueue;
pub(crate) use run_queue::{Threads, Times};
