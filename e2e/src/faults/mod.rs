//! Making faults on the cluster of this machine, and the account that is taken after each.
//!
//! Faults go to real parts: a signal to a container's process, a rule in a pod's network namespace. Each is undone by
//! dropping its guard, so also when a test panics or runs out of time. They need the cluster of `e2e/cluster`, whose
//! processes this machine sees.

mod account;
mod cut;
mod events;
mod history;
mod lag;
mod ledger;
mod memory;
pub mod operator;
mod parts;
mod process;

pub use account::{Account, Expected, Server};
pub use cut::{CONTROL, Cut, Link, REDIS};
pub use lag::Lag;
pub use ledger::Ledger;
pub use memory::take_away as take_memory_away;
pub use parts::{Disturbed, Part};
pub use process::{Process, Signal, Stopped};

/// A fault lasts this long: the one thing that a test cannot wait for otherwise.
pub async fn lasts(time: std::time::Duration) {
    tokio::time::sleep(time).await; // how long the fault itself is
}
