//! Making faults on the cluster of this machine, and the account that is taken after each.
//!
//! Faults go to real parts: a signal to a container's process, a rule in a pod's network namespace. Each is undone by
//! dropping its guard, so also when a test panics or runs out of time. They need the cluster of `e2e/cluster`, whose
//! processes this machine sees.

mod account;
mod cut;
mod events;
mod ledger;
pub mod operator;
mod process;

pub use account::{Account, Expected, Server};
pub use cut::{CONTROL, Cut, Link, REDIS};
pub use ledger::Ledger;
pub use process::{Process, Signal, Stopped};
