//! A network of the soak's own, in which packets can be lost without harm to anything else, and small disks. Both are
//! gone with the process.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::fault::Cut;

/// The name of the table, in a namespace that holds no other.
const TABLE: &str = "redisbench-soak";

/// What is cut at the moment.
#[derive(Debug, Default)]
pub struct Network {
    own: bool,
    /// By a number that the caller chose.
    cuts: Vec<(usize, String)>,
}

impl Network {
    /// Moves this process into a network namespace of its own, with nothing but loopback, and into a mount namespace,
    /// so that disks can be full.
    ///
    /// Must be called while the process has one thread.
    ///
    /// # Errors
    /// When the kernel does not allow it, or `ip` and `nft` are missing.
    pub fn enter() -> anyhow::Result<Self> {
        // Before there is no way back.
        for (tool, version) in [("ip", "-V"), ("nft", "-v"), ("mount", "-V")] {
            command(tool, &[version])?;
        }
        // SAFETY: both take no pointers.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        if user == 0 {
            unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS)?;
        } else {
            unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS)?;
            let write = |file: &str, text: String| {
                std::fs::write(format!("/proc/self/{file}"), text).with_context(|| format!("failed to write {file}"))
            };
            write("setgroups", "deny".to_owned())?;
            write("uid_map", format!("0 {user} 1"))?;
            write("gid_map", format!("0 {group} 1"))?;
        }
        // What is mounted from here on is for this process alone.
        command("mount", &["--make-rprivate", "/"])?;
        command("ip", &["link", "set", "lo", "up"])?;
        let mut network = Self { own: true, cuts: Vec::new() };
        network.apply()?;
        Ok(network)
    }

    /// The network that is there, which cannot be cut.
    pub fn shared() -> Self {
        Self::default()
    }

    /// Whether it can be cut.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Cuts everything to and from `port`, as `number`.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn cut(&mut self, number: usize, port: u16, how: Cut) -> anyhow::Result<()> {
        let end = match how {
            Cut::Drop => "drop",
            Cut::Reset => "reject with tcp reset",
        };
        self.cuts.push((number, format!("tcp dport {port} {end}; tcp sport {port} {end}")));
        self.apply()
    }

    /// Loses `percent` of all packets, as `number`.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn lose(&mut self, number: usize, percent: u32) -> anyhow::Result<()> {
        self.cuts.push((number, format!("meta l4proto tcp numgen random mod 100 < {percent} drop")));
        self.apply()
    }

    /// Undoes what was done as `number`.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn mend(&mut self, number: usize) -> anyhow::Result<()> {
        self.cuts.retain(|(cut, _)| *cut != number);
        self.apply()
    }

    /// Ports on which somebody listens.
    pub fn listening(&self) -> Vec<u16> {
        if !self.own {
            return Vec::new();
        }
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
        let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        // 0A is LISTEN; the local address ends with the port in hexadecimal.
        lines
            .filter(|fields| fields.get(3) == Some(&"0A"))
            .filter_map(|fields| u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok())
            .collect()
    }

    /// The whole table at once, so that cuts can overlap.
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
        let mut nft = Command::new("nft")
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to start nft")?;
        if let Some(mut stdin) = nft.stdin.take() {
            stdin.write_all(text.as_bytes())?;
        }
        let output = nft.wait_with_output()?;
        anyhow::ensure!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

fn unshare(flags: libc::c_int) -> anyhow::Result<()> {
    // SAFETY: takes no pointers.
    let result = unsafe { libc::unshare(flags) };
    if result != 0 {
        return Err(io::Error::last_os_error()).context("failed to get a network namespace");
    }
    Ok(())
}

/// A disk of `kib` KiB at `directory`, until it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn mount(directory: &Path, kib: u64) -> anyhow::Result<Self> {
        let (size, place) = (format!("size={kib}k"), directory.to_string_lossy());
        command("mount", &["-t", "tmpfs", "-o", &size, "soak", &place])?;
        Ok(Self(directory.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = command("umount", &[&self.0.to_string_lossy()]) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Runs a tool to its end.
pub fn command(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start {program}"))?;
    anyhow::ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Whether a process can be given a monotonic clock of its own, by the tool that does it.
pub fn has_clocks() -> bool {
    command("unshare", &["--time", "--monotonic", "1", "true"]).is_ok()
}
