//! The reconcile driver: validate, observe, decide, apply, publish events.

mod aggregate;
pub mod apply;
mod cache;
mod context;
pub mod decide;
pub mod decision;
mod error;
mod execute;
pub mod observe;
pub mod observed;
pub mod pod_store;
pub mod status;
mod step;
mod throttle;
mod unreadable;
pub mod watch;

pub use context::{Context, Guarded, Settings, Shared};
pub use error::ReconcileError;
pub use step::{reconcile, retry};

#[cfg(test)]
mod tests;
