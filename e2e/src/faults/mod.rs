//! Faults on the cluster of this machine, and the checks after each.
//!
//! Faults apply to real parts: a signal to a container's process, a rule in a pod's network namespace. Dropping its guard undoes each
//! fault, so also a test that panics or times out undoes it. They need the cluster of `e2e/cluster`, whose processes are visible on this
//! machine.

mod cut;
mod events;
mod history;
mod lag;
mod ledger;
mod memory;
pub mod operator;
mod parts;
mod process;
mod report;

pub use cut::{CONTROL, Cut};
pub use lag::Lag;
pub use ledger::Ledger;
pub use memory::take_away as take_memory_away;
pub use parts::{Disturbed, Part};
pub use process::{Process, Stopped};
pub use report::{Expected, Report};

/// Waits as long as a fault lasts. A fixed wait, because no condition marks its end.
pub async fn lasts(time: std::time::Duration) {
    tokio::time::sleep(time).await; // how long the fault itself is
}
