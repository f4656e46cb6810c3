//! Delays the traffic to a pod's port, so that tests can apply a fault between a call and its arrival.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use redisbench_testkit::processes::{Running, SIGSTOP, signal};

use super::cut::{Network, Table};

const FORWARDER: &str = include_str!("lag.py");

/// The delay of a pod's port. Ends on drop, which breaks the connections through it and loses held data.
#[derive(Debug)]
pub struct Lag {
    forwarder: Running,
    _redirection: Table,
}

impl Lag {
    /// From now on, data to `port` of the pod arrives after `delay`. Open connections break.
    pub fn make(pod: &Pod, port: u16, delay: Duration) -> Result<Self> {
        let network = Network::of(pod)?;
        let listen = port.wrapping_add(10_000);
        let forwarder = Command::new("nsenter")
            .args([&network.option(), "python3", "-c", FORWARDER, &listen.to_string(), &port.to_string()])
            .arg(delay.as_secs_f64().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the forwarder")?;
        let mut forwarder = Running(forwarder);
        let said = forwarder.0.stdout.take().context("no output of the forwarder")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the forwarder did not start: {line}");
        // Open connections are redirected too. The forwarder does not have them, so they break.
        let chain = format!(
            "chain prerouting {{\ntype nat hook prerouting priority -100;\n\
             iifname != \"lo\" tcp dport {port} redirect to :{listen}\n}}\n"
        );
        Ok(Self { forwarder, _redirection: Table::add(network, &chain)? })
    }

    /// Silently holds all data from now on.
    pub fn hold(&self) -> Result<()> {
        ensure!(signal(self.forwarder.0.id().cast_signed(), SIGSTOP), "the forwarder has ended");
        Ok(())
    }
}
