//! Delays the traffic to a pod's port, so that tests can apply a fault between a call and its arrival.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;

use super::process::{Process, command};

const FORWARDER: &str = include_str!("lag.py");
const TABLE: &str = "e2e_lag";

/// The delay of a pod's port. Ends on drop, which breaks the connections through it and loses held data.
#[derive(Debug)]
pub struct Lag {
    namespace: File,
    forwarder: Child,
}

impl Lag {
    /// From now on, data to `port` of the pod arrives after `delay`. Open connections break.
    pub fn make(pod: &Pod, port: u16, delay: Duration) -> Result<Self> {
        let pid = Process::any_of(pod)?.pid;
        let namespace =
            File::open(format!("/proc/{pid}/ns/net")).context("failed to open a pod's network namespace")?;
        let listen = port.wrapping_add(10_000);
        let mut forwarder = Command::new("nsenter")
            .args([&enter(&namespace), "python3", "-c", FORWARDER, &listen.to_string(), &port.to_string()])
            .arg(delay.as_secs_f64().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the forwarder")?;
        let said = forwarder.stdout.take().context("no output of the forwarder")?;
        let lag = Self { namespace, forwarder };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the forwarder did not start: {line}");
        // Open connections are redirected too. The forwarder does not have them, so they break.
        let rules = format!(
            "table inet {TABLE} {{\nchain prerouting {{\ntype nat hook prerouting priority -100;\n\
             iifname != \"lo\" tcp dport {port} redirect to :{listen}\n}}\n}}\n"
        );
        command("nsenter", &[&enter(&lag.namespace), "nft", "-f", "-"], &rules)?;
        Ok(lag)
    }

    /// Silently holds all data from now on.
    pub fn hold(&self) -> Result<()> {
        command("kill", &["-STOP", &self.forwarder.id().to_string()], "")
    }
}

impl Drop for Lag {
    fn drop(&mut self) {
        let _ = self.forwarder.kill();
        let _ = self.forwarder.wait();
        if let Err(error) = command("nsenter", &[&enter(&self.namespace), "nft", "delete", "table", "inet", TABLE], "")
        {
            eprintln!("failed to remove a lag: {error:#}");
        }
    }
}

/// The option of nsenter for the namespace of our open file.
fn enter(namespace: &File) -> String {
    format!("--net=/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd())
}
