//! The soak's own network namespace, in which packets can be dropped without affecting anything else, and small disks. Both end with the
//! process.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use redisbench_testkit::processes::run;

use crate::fault::Cut;

/// The environment variable that marks a process inside the namespaces.
const INSIDE: &str = "REDISBENCH_SOAK_NETWORK";
/// The name of the nftables table, the only one in the namespace.
const TABLE: &str = "redisbench-soak";

/// The current cuts. By default, of the existing network, which cannot be cut.
#[derive(Debug, Default)]
pub struct Network {
    /// True if it can be cut.
    pub own: bool,
    /// By the caller's numbers.
    cuts: Vec<(usize, String)>,
}

impl Network {
    /// Runs this program again in a network of its own, with only loopback, and with mounts of its own, for small disks. Returns there, or
    /// if that is not possible.
    pub fn enter() -> anyhow::Result<Self> {
        if env::var_os(INSIDE).is_none() {
            for (tool, version) in [("ip", "-V"), ("nft", "-v"), ("mount", "-V")] {
                run(tool, &[version], "")?;
            }
            let root = ["--net", "--mount", "--"];
            let user = ["--map-root-user", "--net", "--mount", "--"];
            let is_root = run("unshare", &[&root[..], &["true"]].concat(), "").is_ok();
            let namespaces = if is_root { &root[..] } else { &user };
            run("unshare", &[namespaces, &["true"]].concat(), "")?;
            let mut again = Command::new("unshare");
            again.args(namespaces).arg(env::current_exe()?).args(env::args_os().skip(1)).env(INSIDE, "");
            return Err(again.exec()).context("failed to run this program in its own network");
        }
        run("ip", &["link", "set", "lo", "up"], "")?;
        let mut network = Self { own: true, cuts: Vec::new() };
        network.apply()?;
        Ok(network)
    }

    /// Cuts all traffic of `port`, as `number`.
    pub fn cut(&mut self, number: usize, port: u16, how: Cut) -> anyhow::Result<()> {
        let end = match how {
            Cut::Drop => "drop",
            Cut::Reset => "reject with tcp reset",
        };
        self.cuts.push((number, format!("tcp dport {port} {end}; tcp sport {port} {end}")));
        self.apply()
    }

    /// Drops `percent` of all packets, as `number`.
    pub fn lose(&mut self, number: usize, percent: u32) -> anyhow::Result<()> {
        self.cuts.push((number, format!("meta l4proto tcp numgen random mod 100 < {percent} drop")));
        self.apply()
    }

    pub fn mend(&mut self, number: usize) -> anyhow::Result<()> {
        self.cuts.retain(|(cut, _)| *cut != number);
        self.apply()
    }

    /// Ports with a listener.
    pub fn listening(&self) -> Vec<u16> {
        if !self.own {
            return Vec::new();
        }
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
        let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        // 0A is LISTEN. The local address ends with the port in hexadecimal.
        lines
            .filter(|fields| fields.get(3) == Some(&"0A"))
            .filter_map(|fields| u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok())
            .collect()
    }

    /// Replaces the whole table, so that cuts can overlap.
    fn apply(&mut self) -> anyhow::Result<()> {
        if !self.own {
            return Ok(());
        }
        let rules: Vec<&str> = self.cuts.iter().flat_map(|(_, rules)| rules.split("; ")).collect();
        let text = format!(
            "table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\nchain input {{\n\
             type filter hook input priority 0\n{}\n}}\n}}\n",
            rules.join("\n")
        );
        run("nft", &["-f", "-"], &text)?;
        Ok(())
    }
}

/// A disk of `kib` KiB at `directory`. Unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(directory: &Path, kib: u64) -> anyhow::Result<Self> {
        let (size, place) = (format!("size={kib}k"), directory.to_string_lossy());
        run("mount", &["-t", "tmpfs", "-o", &size, "soak", &place], "")?;
        Ok(Self(directory.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.0.to_string_lossy()], "") {
            eprintln!("warning: {error}");
        }
    }
}

/// Returns whether processes can have their own monotonic clocks, tested with the tool that sets them.
pub fn has_clocks() -> bool {
    run("unshare", &["--time", "--monotonic", "1", "true"], "").is_ok()
}
