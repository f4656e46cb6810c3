//! Cuts a pod's network: packets are dropped silently, as in a failing network.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;

use super::process::{Process, command};

/// The port of a shard's control API.
pub const CONTROL: u16 = 7379;

/// A pod's network namespace. Kept open, so that it stays the same even if the process in it ends.
#[derive(Debug)]
pub(super) struct Network(File);

impl Network {
    pub fn of(pod: &Pod) -> Result<Self> {
        let pid = Process::any_of(pod)?.pid;
        File::open(format!("/proc/{pid}/ns/net")).map(Self).context("failed to open a pod's network namespace")
    }

    /// The option of nsenter for it.
    pub fn option(&self) -> String {
        format!("--net=/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// A table of nftables in a pod's network. Removed on drop.
#[derive(Debug)]
pub(super) struct Table {
    network: Network,
    name: String,
}

impl Table {
    /// Adds a table with these chains.
    pub fn add(network: Network, chains: &str) -> Result<Self> {
        static TABLES: AtomicU32 = AtomicU32::new(0);
        let table = Self { network, name: format!("e2e_{}", TABLES.fetch_add(1, Ordering::Relaxed)) };
        table.nft(&["-f", "-"], &format!("table inet {} {{\n{chains}}}\n", table.name))?;
        Ok(table)
    }

    fn nft(&self, arguments: &[&str], input: &str) -> Result<()> {
        command("nsenter", &[&[self.network.option().as_str(), "nft"], arguments].concat(), input)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Err(error) = self.nft(&["delete", "table", "inet", &self.name], "") {
            eprintln!("failed to remove rules of a pod's network: {error:#}");
        }
    }
}

/// A cut in a pod's network. Heals on drop.
#[derive(Debug)]
pub struct Cut {
    _table: Table,
}

impl Cut {
    /// Drops TCP packets from and to `port`, on either side.
    pub fn make(pod: &Pod, port: u16) -> Result<Self> {
        Ok(Self { _table: Table::add(Network::of(pod)?, &chains(port))? })
    }

    pub fn heal(self) {
        drop(self);
    }
}

fn chains(port: u16) -> String {
    let chain = |hook: &str, interface: &str| {
        let rule = |end: &str| format!("{interface} != \"lo\" tcp {end} {port} drop\n");
        format!("chain {hook} {{\ntype filter hook {hook} priority -300;\n{}{}}}\n", rule("dport"), rule("sport"))
    };
    chain("input", "iifname") + &chain("output", "oifname")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_dropped_and_loopback_is_not() {
        let chains = chains(7379);
        assert_eq!(chains.matches("!= \"lo\" tcp dport 7379 drop").count(), 2);
        assert_eq!(chains.matches("!= \"lo\" tcp sport 7379 drop").count(), 2);
    }
}
