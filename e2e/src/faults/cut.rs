//! Cuts a pod's network: packets are dropped silently, as in a failing network.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;

use super::process::{Process, command};

/// The port of a shard's control API.
pub const CONTROL: u16 = 7379;

/// A cut in a pod's network. Heals on drop.
#[derive(Debug)]
pub struct Cut {
    /// Kept open, so that it stays the same network namespace even if the process in it ends.
    namespace: File,
    table: String,
}

impl Cut {
    /// Drops TCP packets from and to `port`, on either side.
    pub fn make(pod: &Pod, port: u16) -> Result<Self> {
        static CUTS: AtomicU32 = AtomicU32::new(0);
        let pid = Process::any_of(pod)?.pid;
        let namespace =
            File::open(format!("/proc/{pid}/ns/net")).context("failed to open a pod's network namespace")?;
        let table = format!("e2e_cut_{}", CUTS.fetch_add(1, Ordering::Relaxed));
        let cut = Self { namespace, table };
        cut.nft(&["-f", "-"], &table_of(&cut.table, port))?;
        Ok(cut)
    }

    /// Removes the cut.
    pub fn heal(self) {
        drop(self);
    }

    fn nft(&self, arguments: &[&str], input: &str) -> Result<()> {
        let namespace = format!("--net=/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd());
        command("nsenter", &[&[namespace.as_str(), "nft"], arguments].concat(), input)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        if let Err(error) = self.nft(&["delete", "table", "inet", &self.table], "") {
            eprintln!("failed to remove a cut: {error:#}");
        }
    }
}

fn table_of(name: &str, port: u16) -> String {
    let chain = |hook: &str, interface: &str| {
        let rule = |end: &str| format!("{interface} != \"lo\" tcp {end} {port} drop\n");
        format!("chain {hook} {{\ntype filter hook {hook} priority -300;\n{}{}}}\n", rule("dport"), rule("sport"))
    };
    format!("table inet {name} {{\n{}{}}}\n", chain("input", "iifname"), chain("output", "oifname"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_dropped_and_loopback_is_not() {
        let table = table_of("t", 7379);
        assert_eq!(table.matches("!= \"lo\" tcp dport 7379 drop").count(), 2);
        assert_eq!(table.matches("!= \"lo\" tcp sport 7379 drop").count(), 2);
    }
}
