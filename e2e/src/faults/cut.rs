//! Cuts a pod's network: packets are dropped silently, as in a failing network.

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;

use super::process::{Process, command};

/// The port of a shard's control API.
pub const CONTROL: u16 = 7379;
/// The port of the Redis servers under test.
pub const REDIS: u16 = 6379;

/// The part of the network to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// TCP from or to this port, on either side.
    Port(u16),
    /// Everything from and to this address.
    Peer(IpAddr),
    /// Everything but the pod's loopback.
    All,
}

impl Link {
    /// The rules that match the dropped packets, incoming and outgoing.
    fn rules(self) -> [Vec<String>; 2] {
        match self {
            Self::Port(port) => {
                let either = vec![format!("tcp dport {port}"), format!("tcp sport {port}")];
                [either.clone(), either]
            }
            Self::Peer(address) => {
                let family = if address.is_ipv4() { "ip" } else { "ip6" };
                [vec![format!("{family} saddr {address}")], vec![format!("{family} daddr {address}")]]
            }
            Self::All => [vec![String::new()], vec![String::new()]],
        }
    }
}

/// A cut in a pod's network. Heals on drop.
#[derive(Debug)]
pub struct Cut {
    /// Kept open, so that it stays the same network namespace even if the process in it ends.
    namespace: File,
    table: String,
}

impl Cut {
    /// Cuts the `link` of a pod.
    ///
    /// # Errors
    /// If the pod has no network on this machine, or the rules are refused.
    pub fn make(pod: &Pod, link: Link) -> Result<Self> {
        static CUTS: AtomicU32 = AtomicU32::new(0);
        let pid = Process::any_of(pod)?.pid;
        let namespace =
            File::open(format!("/proc/{pid}/ns/net")).context("failed to open a pod's network namespace")?;
        let table = format!("e2e_cut_{}", CUTS.fetch_add(1, Ordering::Relaxed));
        let cut = Self { namespace, table };
        cut.nft(&["-f", "-"], &table_of(&cut.table, link))?;
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

fn table_of(name: &str, link: Link) -> String {
    let [incoming, outgoing] = link.rules();
    let chain = |hook: &str, interface: &str, rules: Vec<String>| {
        let rules: String = rules.iter().map(|rule| format!("{interface} != \"lo\" {rule} drop\n")).collect();
        format!("chain {hook} {{\ntype filter hook {hook} priority -300;\n{rules}}}\n")
    };
    let (incoming, outgoing) = (chain("input", "iifname", incoming), chain("output", "oifname", outgoing));
    format!("table inet {name} {{\n{incoming}{outgoing}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_dropped_and_loopback_is_not() {
        let table = table_of("t", Link::Port(7379));
        assert_eq!(table.matches("!= \"lo\" tcp dport 7379 drop").count(), 2);
        assert_eq!(table.matches("!= \"lo\" tcp sport 7379 drop").count(), 2);
        let table = table_of("t", Link::Peer("10.0.0.1".parse().unwrap()));
        assert!(table.contains("ip saddr 10.0.0.1") && table.contains("ip daddr 10.0.0.1"));
    }
}
